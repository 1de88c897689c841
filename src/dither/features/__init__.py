"""Features as users have them: fields of contexts and arms, by name, become the columns of X (docs/features.md)."""

from dither.features.arm_catalogue import Catalogue
from dither.features.column_sizes import ColumnSizeWarning
from dither.features.encoder import Features
from dither.features.kinds import Category, Hashed, Numeric, Standard, Text, Words

__all__ = ["Catalogue", "Category", "ColumnSizeWarning", "Features", "Hashed", "Numeric", "Standard", "Text", "Words"]
