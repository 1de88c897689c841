"""The kinds of fields by name."""

from typing import Any

from dither.features.bags import Text, Words
from dither.features.categorical import Category, Hashed
from dither.features.cyclic import Hour, Weekday
from dither.features.numeric import Numeric, Standard

KINDS: dict[str, Any] = {each.name: each for each in (Numeric, Category, Hashed, Text, Words, Standard, Hour, Weekday)}
