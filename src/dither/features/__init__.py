"""Features as users have them: fields of contexts and arms, by name, become the columns of X (docs/features.md)."""

from dither.features.encoder import Features
from dither.features.kinds import Category, Hashed, Numeric, Text, Words
from dither.features.known_arms import Catalogue

__all__ = ["Catalogue", "Category", "Features", "Hashed", "Numeric", "Text", "Words"]
