"""Features as users have them: fields of contexts and arms, by name, become the columns of X (docs/features.md)."""

from dither.features.arm_catalogue import Catalogue
from dither.features.encoder import Features
from dither.features.kinds import Category, Hashed, Numeric, Text, Words

__all__ = ["Catalogue", "Category", "Features", "Hashed", "Numeric", "Text", "Words"]
