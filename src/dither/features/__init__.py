"""Features as users have them: fields of contexts and arms, by name, become the columns of X (docs/features.md)."""

from dither.features.arm_catalogue import Catalogue
from dither.features.column_sizes import ColumnSizeWarning
from dither.features.encoder import Features
from dither.features.kinds import Category, Hashed, Hour, Numeric, Standard, Text, Weekday, Words
from dither.features.slips import MisspeltWarning

__all__ = [
    "Catalogue",
    "Category",
    "ColumnSizeWarning",
    "Features",
    "Hashed",
    "Hour",
    "MisspeltWarning",
    "Numeric",
    "Standard",
    "Text",
    "Weekday",
    "Words",
]
