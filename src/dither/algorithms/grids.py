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
    log: bool = False

    def __post_init__(self) -> None:
        low, high = float(self.low), float(self.high)
        if not low < high < math.inf:
            raise ValueError(f"a range goes up, from a smaller to a larger number, got {self}")
        if self.log and low <= 0:
            raise ValueError(f"a range of logarithms begins above 0, got {self}")

    def __str__(self) -> str:
        return f"{'log:' * self.log}{self.low}..{self.high}"

    def draw(self, rng: np.random.Generator, *, fractions: bool) -> str:
        """A number as text. fractions=False: a whole number, where both ends are written as such."""
        low, high, u = float(self.low), float(self.high), rng.random()
        x = low * (high / low) ** u if self.log else low + (high - low) * u
        if not fractions and self.low.lstrip("-+").isdigit() and self.high.isdigit():
            return str(round(x))
        return repr(min(max(float(f"{x:.{DIGITS}g}"), low), high))


Values = tuple[str | Range, ...]


@dataclass(frozen=True)
class Grid:
    """What is tried of one algorithm: what stays, and the values of each setting that varies."""

    base: Any  # "LinFP:lam=1", or an algorithm that is given as no text
    axes: tuple[tuple[str, Values], ...] = ()

    @classmethod
    def parse(cls, text: Any) -> "Grid":
        """From "NAME:setting=value|value,..."; what is no text has one setting."""
        if not isinstance(text, str):
            return cls(text)
        name, kept, axes = text, [], []
        for i, part in enumerate(split(text, ",")):
            key, equals, values = part.partition("=")
            if i == 0:
                name, colon, key = key.rpartition(":") if equals else (part, "", "")
                part = part.removeprefix(name + colon)
            found = _values(split(values, "|"), inside=text) if equals else ()
            if len(found) > 1 or any(isinstance(value, Range) for value in found):
                axes.append((key.strip(), found))
            elif part:
                kept.append(part)
        if split(name, "|") != [name]:
            raise ValueError(f"| stands between values, as in NAME:setting=value|value; got {text!r}")
        _each_once([*(name for name, _ in axes), *(part.partition("=")[0].strip() for part in kept)], inside=text)
        return cls(name + ":" * bool(kept) + ",".join(kept), tuple(axes))

    def over(self, axes: Iterable[tuple[str, Values]]) -> "Grid":
        """The grid with these settings too."""
        return replace(self, axes=(*self.axes, *axes))

    @property
    def ranges(self) -> dict[str, list[Range]]:
        """The settings of which a range is to be tried."""
        found = {name: [value for value in values if isinstance(value, Range)] for name, values in self.axes}
        return {name: ranges for name, ranges in found.items() if ranges}

    def texts(self) -> list[str]:
        """Every combination of the values, as "c=0.1,lam=1"; "" where nothing varies.

        Raises ValueError for a range, which has no end of values.
        """
        for name, (found, *_) in self.ranges.items():
            raise ValueError(
                f"{name}={found} is a range: say how many values to draw of it (--tries 20, or tries=20), or write "
                f"values, as in {name}={found.low}|{found.high}"
            )
        names = [name for name, _ in self.axes]
        return [
            _text(zip(names, chosen, strict=True))
            for chosen in itertools.product(*([str(value) for value in values] for _, values in self.axes))
        ]

    def tries(self, n: int, *, seed: int, fractions: Collection[str] = ()) -> list[str]:
        """n different combinations, drawn at random, as `texts` gives them; the one there is where nothing varies.

        The first m of n are the same for every n, and a setting has the same values in every algorithm that has it.
        fractions : the settings that may be no whole number
        """
        errors.at_least("tries", n, 1)
        if not self.axes:
            return [""]
        drawn = itertools.islice(self._draws(seed, fractions), n * DRAWS)
        found = list(itertools.islice(_unique(drawn), n))
        if len(found) < n:
            raise ValueError(f"only {len(found)} different settings of {self.base} were found: ask for no more tries")
        return found

    def _draws(self, seed: int, fractions: Collection[str]) -> Iterator[str]:
        streams = {name: np.random.default_rng([seed, *name.encode()]) for name, _ in self.axes}
        while True:
            yield _text((name, _drawn(streams[name], values, name in fractions)) for name, values in self.axes)


def axis(text: str) -> tuple[str, Values]:
    """A setting and its values, from "c=0.1,0.3,1", "c=0.1|0.3|1" or "c=log:0.01..10"."""
    name, equals, values = text.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"a sweep is written setting=value,value,... or setting=log:low..high, got {text!r}")
    parts = [value for part in split(values, ",") for value in split(part, "|")]
    return name.strip(), _values(parts, inside=text)


def axes(given: Mapping[str, Iterable[object]] | Iterable[str]) -> list[tuple[str, Values]]:
    """Settings and their values, from texts, or from a dict such as {"c": [0.1, 1], "lam": "log:1e-4..1"}."""
    if isinstance(given, Mapping):
        found = [
            axis(f"{name}={values}")
            if isinstance(values, str)
            else (name, _values([written(value) for value in _each(values)], inside=f"{name}={values}"))
            for name, values in given.items()
        ]
    else:
        texts = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
        if isinstance(given, str) or not all(isinstance(text, str) for text in texts):
            raise ValueError(
                'settings must be a dict such as {"c": [0.1, 1]}, or a list of texts such as ["c=0.1,1"]; '
                f"got {given!r}"
            )
        found = [axis(text) for text in texts]
    _each_once(
        [name for name, _ in found], inside=" ".join(f"{name}={'|'.join(map(str, values))}" for name, values in found)
    )
    return found


def split(text: str, mark: str) -> list[str]:
    """The parts between the marks; a mark inside quotes or brackets is none."""
    parts = [""]
    for piece in _PIECE.findall(text):
        if piece == mark:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _each(values: Any) -> Iterable[object]:
    """The values; a number alone is one."""
    return values if isinstance(values, Iterable) else [values]


def written(value: object) -> str:
    """A value as `split` leaves it whole: text with a mark in it stands in quotes."""
    text = str(value)
    return repr(text) if isinstance(value, str) and (set(text) & set(",|") or _RANGE.fullmatch(text)) else text


def _text(given: Iterable[tuple[str, str]]) -> str:
    return ",".join(f"{name}={value}" for name, value in given)


def _values(parts: Iterable[str], *, inside: str) -> Values:
    found = tuple(_value(part.strip()) for part in parts)
    if not found or not all(map(str, found)):
        raise ValueError(f"a value is missing in {inside!r}")
    return found


def _value(text: str) -> str | Range:
    match = _RANGE.fullmatch(text)
    if match is None and _HALF.fullmatch(text):
        raise ValueError(f"a range goes from a number to a number, as 0.1..10 or log:0.1..10; got {text!r}")
    return Range(match[2], match[3], bool(match[1])) if match else text


def _drawn(rng: np.random.Generator, values: Values, fractions: bool) -> str:
    value = values[rng.integers(len(values))]
    return value.draw(rng, fractions=fractions) if isinstance(value, Range) else value


def _unique(texts: Iterator[str]) -> Iterator[str]:
    seen: set[str] = set()
    for text in texts:
        if text not in seen:
            seen.add(text)
            yield text


def _each_once(names: list[str], *, inside: str) -> None:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"{twice[0]} is set twice in {inside!r}")
