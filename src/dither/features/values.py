"""Single values of fields: which of them are missing, and what a category, a number and a text are.

missing     None, NaN, and what pandas has for them (NA, NaT)
category    a text as it is; a whole number as its digits, so that 3, 3.0 and "3" are one; True is "True"
number      real numbers, Decimals, True (1) and False (0); a text such as "3" is no number
words       a text, cut into its runs of letters and digits, in lower case; or several texts, as they are
"""

import decimal
import math
import numbers
import re
from collections.abc import Iterable, Set
from typing import Any

import numpy as np

from dither.errors import LARGEST

WORD = re.compile(r"\w+")
_WHOLE = 2.0**53  # up to here float64 has every whole number


class Odd(ValueError):
    """A value that its field cannot take. The message goes after the name of the field."""


def missing(value: Any) -> bool:
    """Whether there is no value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(value != value)


def category(value: Any) -> str:
    """The name of a category."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, (float, np.floating)) and math.isfinite(value):
        value = float(value)
        return str(int(value)) if value == int(value) and abs(value) < _WHOLE else repr(value)
    raise Odd(f"must be a text, a whole number, a finite float, True or False; got {value!r}")


def number(value: Any) -> float:
    """The number as a float."""
    if isinstance(value, (numbers.Real, np.bool_, decimal.Decimal)):
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if abs(found) < LARGEST:
            return found
        raise Odd(f"must be finite and below {LARGEST:g}; got {value!r}")
    cure = ": turn it into a number first, or declare the field a category" if isinstance(value, str) else ""
    raise Odd(f"must be a number, got {value!r}{cure}")


def words(value: Any) -> list[str]:
    """The words of a text, or the texts of a bag."""
    if isinstance(value, str):
        return WORD.findall(value.casefold())
    if isinstance(value, (list, tuple, np.ndarray, Set)) and all(isinstance(word, str) for word in value):
        found = [str(word) for word in value]
        return sorted(found) if isinstance(value, Set) else found
    raise Odd(f"must be a text or a list of texts, got {value!r}")


def counts(bag: Iterable[str]) -> dict[str, int]:
    """How often each word comes."""
    found: dict[str, int] = {}
    for word in bag:
        found[word] = found.get(word, 0) + 1
    return found
