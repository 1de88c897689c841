"""Several values of a setting in one text: "LinFP:c=0.1|0.3|1,lam=1e-4|1" is six algorithms with settings.

    c=0.1|0.3|1        these values; a | inside quotes or brackets belongs to the value
    c=0..2             a range: values are drawn, each as likely as another
    c=log:0.01..10     a range: the logarithm is drawn, so that each power of ten is as likely as another

A `Grid` knows nothing of algorithms: whoever reads the texts that it gives says which names exist.
"""

import itertools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dither.base import errors

DIGITS = 3  # of a drawn number, so that the name of what was tried can be read and typed
DRAWS = 50  # for each try: so often a search draws before it says that there is nothing else to try
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
_RANGE = re.compile(rf"(log:)?({_NUMBER})\.\.({_NUMBER})", re.IGNORECASE)
_HALF = re.compile(rf"(?:log:)?(?:{_NUMBER}\.\..*|[^.'\"]*\.\.{_NUMBER})", re.IGNORECASE)  # one end is a number
_PIECE = re.compile(r"""'[^']*'|"[^"]*"|\([^()]*\)|\[[^\[\]]*\]|.""", re.DOTALL)


@dataclass(frozen=True)
class Range:
    """Numbers from low to high, both as they were written."""

    low: str
    high: str
    geometric: bool = False  # the logarithm is drawn

    def __post_init__(self) -> None:
        low, high = float(self.low), float(self.high)
        if not low < high < math.inf:
            raise ValueError(f"a range goes up, from a smaller to a larger number, got {self}")
        if self.geometric and low <= 0:
            raise ValueError(f"a range of logarithms begins above 0, got {self}")

    def __str__(self) -> str:
        return f"{'log:' * self.geometric}{self.low}..{self.high}"

    def draw(self, rng: np.random.Generator, *, fractions: bool) -> str:
        """A number as text. fractions=False: a whole number, where both ends are written as such."""
        low, high, u = float(self.low), float(self.high), rng.random()
        x = low * (high / low) ** u if self.geometric else low + (high - low) * u
        if not fractions and self.low.lstrip("-+").isdigit() and self.high.isdigit():
            return str(round(x))
        return repr(min(max(float(f"{x:.{DIGITS}g}"), low), high))


Values = tuple[str | Range, ...]
Axis = tuple[str, Values]


@dataclass(frozen=True)
class Grid:
    """What is tried of one algorithm: what stays, and the values of each setting that varies."""

    base: Any  # "LinFP:lam=1", or an algorithm that is given as no text
    axes: tuple[Axis, ...] = ()

    @classmethod
    def parse(cls, text: Any) -> "Grid":
        """From "NAME:setting=value|value,..."; what is no text has one setting."""
        if not isinstance(text, str):
            return cls(text)
        first, *rest = split(text, ",")
        begins, equals, _ = first.partition("=")
        name, colon, _ = begins.rpartition(":") if equals else (first, "", "")
        fixed, axes = [], []
        for part in (first.removeprefix(name + colon), *rest):
            key, equals, value = part.partition("=")
            values = _values(split(value, "|"), inside=text) if equals else ()
            if len(values) > 1 or any(isinstance(value, Range) for value in values):
                axes.append((key.strip(), values))
            elif part:
                fixed.append(part)
        if split(name, "|") != [name]:
            raise ValueError(f"| stands between values, as in NAME:setting=value|value; got {text!r}")
        _each_once([*(name for name, _ in axes), *(part.partition("=")[0].strip() for part in fixed)], inside=text)
        return cls(name + ":" * bool(fixed) + ",".join(fixed), tuple(axes))

    def over(self, axes: Iterable[Axis]) -> "Grid":
        """The grid with these settings too."""
        return replace(self, axes=(*self.axes, *axes))

    @property
    def ranges(self) -> dict[str, list[Range]]:
        """The settings of which a range is to be tried."""
        ranges = {name: [value for value in values if isinstance(value, Range)] for name, values in self.axes}
        return {name: some for name, some in ranges.items() if some}

    def texts(self) -> list[str]:
        """Every combination of the values, as "c=0.1,lam=1"; "" where nothing varies.

        Raises ValueError for a range, which has no end of values.
        """
        for name, (range_, *_) in self.ranges.items():
            raise ValueError(
                f"{name}={range_} is a range: say how many values to draw of it (--tries 20, or tries=20), or write "
                f"values, as in {name}={range_.low}|{range_.high}"
            )
        pieces = ([f"{name}={value}" for value in values] for name, values in self.axes)
        return [",".join(combination) for combination in itertools.product(*pieces)]

    def tries(self, n: int, *, seed: int, fractions: Collection[str] = ()) -> list[str]:
        """n different combinations, drawn at random, as `texts` gives them; the one there is where nothing varies.

        The first m of n are the same for every n, and a setting has the same values in every algorithm that has it.
        fractions : the settings that may be no whole number
        """
        errors.at_least("tries", n, 1)
        if not self.axes:
            return [""]
        texts: dict[str, None] = {}
        for text in itertools.islice(self._draws(seed, fractions), n * DRAWS):
            texts[text] = None
            if len(texts) == n:
                return list(texts)
        raise ValueError(f"only {len(texts)} different settings of {self.base} were found: ask for no more tries")

    def _draws(self, seed: int, fractions: Collection[str]) -> Iterator[str]:
        streams = {name: np.random.default_rng([seed, *name.encode()]) for name, _ in self.axes}
        while True:
            yield ",".join(f"{name}={_drawn(streams[name], values, name in fractions)}" for name, values in self.axes)


def axis(text: str) -> Axis:
    """A setting and its values, from "c=0.1,0.3,1", "c=0.1|0.3|1" or "c=log:0.01..10"."""
    name, equals, values = text.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"a sweep is written setting=value,value,... or setting=log:low..high, got {text!r}")
    return name.strip(), _values([value for part in split(values, ",") for value in split(part, "|")], inside=text)


def axes(settings: Mapping[str, Iterable[object]] | Iterable[str]) -> list[Axis]:
    """Settings and their values, from texts, or from a dict such as {"c": [0.1, 1], "lam": "log:1e-4..1"}."""
    if isinstance(settings, Mapping):
        pairs = [_axis(name, values) for name, values in settings.items()]
    else:
        texts = list(_each(settings))
        if isinstance(settings, str) or not all(isinstance(text, str) for text in texts):
            raise ValueError(
                'settings must be a dict such as {"c": [0.1, 1]}, or a list of texts such as ["c=0.1,1"]; '
                f"got {settings!r}"
            )
        pairs = [axis(text) for text in texts]
    shown = " ".join(f"{name}={'|'.join(map(str, values))}" for name, values in pairs)
    _each_once([name for name, _ in pairs], inside=shown)
    return pairs


def split(text: str, mark: str) -> list[str]:
    """The parts between the marks; a mark inside quotes or brackets is none."""
    parts = [""]
    for piece in _PIECE.findall(text):
        if piece == mark:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def written(value: object) -> str:
    """A value as `split` leaves it whole: text with a mark in it stands in quotes."""
    text = str(value)
    return repr(text) if isinstance(value, str) and (set(text) & set(",|") or _RANGE.fullmatch(text)) else text


def _axis(name: str, values: Any) -> Axis:
    """A setting and its values, which Python has as a text, as several values or as one."""
    if isinstance(values, str):
        return axis(f"{name}={values}")
    return name, _values(map(written, _each(values)), inside=f"{name}={values}")


def _each(values: Any) -> Iterable[Any]:
    """The values; a number alone is one."""
    return values if isinstance(values, Iterable) else [values]


def _values(parts: Iterable[str], *, inside: str) -> Values:
    values = tuple(_value(part.strip()) for part in parts)
    if not values or not all(map(str, values)):
        raise ValueError(f"a value is missing in {inside!r}")
    return values


def _value(text: str) -> str | Range:
    match = _RANGE.fullmatch(text)
    if match is None and _HALF.fullmatch(text):
        raise ValueError(f"a range goes from a number to a number, as 0.1..10 or log:0.1..10; got {text!r}")
    return Range(match[2], match[3], bool(match[1])) if match else text


def _drawn(rng: np.random.Generator, values: Values, fractions: bool) -> str:
    value = values[rng.integers(len(values))]
    return value.draw(rng, fractions=fractions) if isinstance(value, Range) else value


def _each_once(names: list[str], *, inside: str) -> None:
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{twice[0]} is set twice in {inside!r}")
