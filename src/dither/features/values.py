"""Single values of fields: which of them are missing, and what a category, a number and a text are.

missing     None, NaN (of decimal too), and what pandas and NumPy have for them (NA, NaT)
category    a text in the form NFC; a whole number as its digits, so that 3, 3.0 and "3" are one; True is "True"
number      real numbers, Decimals, True (1) and False (0); a text such as "3" is no number
time        a datetime, a date, a time of day, those of NumPy and pandas, and texts in the form ISO 8601
words       a text, cut by the rule of `tokens`; or several texts in the form NFC, as they are

The rules for texts have a number, `tokens.VERSION`. By the first one, texts were not brought to NFC.
"""

import contextlib
import datetime
import decimal
import math
import numbers
from collections.abc import Set
from typing import Any

import numpy as np

from dither.base.errors import LARGEST
from dither.features import tokens

_WHOLE = 2.0**53  # up to here float64 has every whole number


class Odd(ValueError):
    """A value that its field cannot take. The message goes after the name of the field."""


def missing(value: Any) -> bool:
    """Whether there is no value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    if isinstance(value, decimal.Decimal):
        return value.is_nan()
    return isinstance(value, (float, np.floating)) and bool(value != value)


def real(value: Any) -> bool:
    """Whether it is a number of some kind."""
    return isinstance(value, (numbers.Real, np.bool_, decimal.Decimal)) and not isinstance(value, np.timedelta64)


def text(value: str) -> str:
    """The text itself, also where `str` of it says another, as for a member of an Enum that is a text too."""
    return str.__str__(value)


def category(value: Any, version: int = tokens.VERSION) -> str:
    """The name of a category."""
    if isinstance(value, str):
        return _form(text(value), version)
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if real(value) and isinstance(value, numbers.Integral) and abs(int(value)) < LARGEST:
        return str(int(value))
    if real(value):
        x = number(value)
        return str(int(x)) if x == int(x) and abs(x) < _WHOLE else repr(x)
    cure = (
        ": write a time as a text, or let the field be an 'hour' or a 'weekday'" if hasattr(value, "isoformat") else ""
    )
    raise Odd(f"must be a text, a number, True or False; got {value!r}{cure}")


def number(value: Any) -> float:
    """The number as a float."""
    if real(value):
        try:
            x = float(value)
        except (OverflowError, ValueError):  # an integer that is too large; a signalling NaN of decimal
            x = math.inf
        if abs(x) < LARGEST:
            return x
        raise Odd(f"must be finite and below {LARGEST:g}; got {x:g}")
    cure = ": turn it into a number first, or declare the field a category" if isinstance(value, str) else ""
    raise Odd(f"must be a number, got {value!r}{cure}")


Time = datetime.datetime | datetime.date | datetime.time


def time(value: Any) -> Time | None:
    """A time as Python has it; None for what is none.

    A text is one in the form ISO 8601, with what parts its numbers: "2026-11-30", "2026-11-30T18:05Z", "18:05". So a
    number that came as a text is none.
    """
    if isinstance(value, (datetime.date, datetime.time)):  # a datetime is a date
        return value
    if isinstance(value, np.datetime64):
        if np.datetime_data(value)[0] in ("Y", "M", "W", "D"):
            return value.astype("datetime64[D]").item()
        return value.astype("datetime64[us]").item()
    if isinstance(value, str) and any(mark in value for mark in ":-"):
        for form in (datetime.date, datetime.datetime, datetime.time):
            with contextlib.suppress(ValueError):
                return form.fromisoformat(text(value))
    return None


def words(value: Any, version: int = tokens.VERSION) -> list[str]:
    """The words of a text, or the texts of a bag."""
    if isinstance(value, str):
        return tokens.words(text(value), version)
    return [_form(word, version) for word in texts(value)]


def texts(value: Any) -> list[str]:
    """The texts of a bag as they are, those of a set in the order of the alphabet."""
    if bag(value) and all(isinstance(word, str) for word in value):
        each = [text(word) for word in value]
        return sorted(each) if isinstance(value, Set) else each
    raise Odd(f"must be a text or a list of texts, got {value!r}")


def _form(text: str, version: int) -> str:
    return text if version == tokens.FIRST else tokens.nfc(text)


def bag(value: Any) -> bool:
    """Whether it is a collection of texts, if it is anything."""
    return isinstance(value, (list, tuple, Set)) or (isinstance(value, np.ndarray) and value.ndim == 1)
