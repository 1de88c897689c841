"""Fields that are texts: bags of words, hashed or with a vocabulary."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dither.base import errors
from dither.features import hashing, kind, transformers, values


@dataclass(frozen=True)
class Text:
    """A bag of words in `width` columns by a stable hash with signs (`hashing`), scaled to length 1. Nothing is fitted.

    A text is cut into its words (`values.words`); a list of texts is a bag as it is, such as tags.
    """

    width: int = 64
    missing: str = "zero"
    name: ClassVar[str] = "text"
    fitted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        errors.at_least("width", self.width, 1)
        errors.one_of("missing", self.missing, kind.RULES)

    def fit(self, given: Sequence[Any]) -> "Text":
        """Itself."""
        return self

    def columns(self, field: str) -> list[str]:
        """`field#0`, `field#1`, ..., then `field (missing)`."""
        return [f"{field}#{i}" for i in range(self.width)] + [f"{field} (missing)"] * (self.missing == "column")

    def write(self, given: Sequence[Any], out: np.ndarray) -> kind.Met:
        """Add the words of each text up, with signs."""
        gone = []
        for i, value in enumerate(given):
            bag = kind.at(i, _bag, value)
            if bag is None:
                gone.append(i)
                out[i, self.width :] = 1.0
                continue
            sums: dict[int, int] = {}
            for word, n in bag.items():
                column, sign = hashing.place(word, self.width)
                sums[column] = sums.get(column, 0) + sign * n
            _unit(out, i, sums)
        return kind.Met(missing=gone)

    def __str__(self) -> str:
        return f"text, hashed into {self.width} columns"


@dataclass(frozen=True)
class Words:
    """A bag of words with a column for each word of a vocabulary, which is stated or fitted; scaled to length 1.

    vocabulary : the words; None: to be fitted. Other words count for nothing
    most, least : a fit keeps the `most` frequent words, of those that are in at least `least` texts

    A text is unknown if it has words, and none of them is in the vocabulary. unknown, missing : as for `Category`
    """

    vocabulary: Sequence[Any] | None = None
    unknown: str = "zero"
    missing: str = "zero"
    most: int | None = 500
    least: int = 1
    name: ClassVar[str] = "words"

    def __post_init__(self) -> None:
        errors.one_of("unknown", self.unknown, kind.RULES)
        errors.one_of("missing", self.missing, kind.RULES)
        errors.at_least("most", self.most, 1, or_none=True)
        errors.at_least("least", self.least, 1)
        if self.vocabulary is not None:
            object.__setattr__(self, "vocabulary", kind.texts("vocabulary", self.vocabulary))
        object.__setattr__(self, "_place", {word: i for i, word in enumerate(self.vocabulary or ())})

    @property
    def fitted(self) -> bool:
        """Whether the vocabulary is known."""
        return self.vocabulary is not None

    def fit(self, given: Sequence[Any]) -> "Words":
        """With the words of the texts, sorted."""
        bags = [bag for i, value in enumerate(given) if (bag := kind.at(i, _bag, value)) is not None]
        return replace(self, vocabulary=transformers.vocabulary(bags, most=self.most, least=self.least))

    def columns(self, field: str) -> list[str]:
        """`field^word` for each word, then `field (unknown)` and `field (missing)`."""
        more = [f"{field} ({what})" for what in ("unknown", "missing") if getattr(self, what) == "column"]
        return [f"{field}^{kind.escaped(word)}" for word in self.vocabulary or ()] + more

    def write(self, given: Sequence[Any], out: np.ndarray) -> kind.Met:
        """Count the words of each text."""
        place, end = self._place, len(self.vocabulary or ())  # type: ignore[attr-defined]
        gone, odd = [], []
        for i, value in enumerate(given):
            bag = kind.at(i, _bag, value)
            if bag is None:
                gone.append(i)
                continue
            known = {place[word]: n for word, n in bag.items() if word in place}
            _unit(out, i, known)
            if bag and not known:
                odd.append(i)
        if self.unknown == "column":
            out[odd, end] = 1.0
        if self.missing == "column":
            out[gone, -1] = 1.0
        return kind.Met(gone, odd)

    def __str__(self) -> str:
        return "words, not fitted" if self.vocabulary is None else f"words, a vocabulary of {len(self.vocabulary)}"


def _bag(value: Any) -> dict[str, int] | None:
    return None if values.missing(value) else values.counts(values.words(value))


def _unit(out: np.ndarray, i: int, sums: dict[int, int]) -> None:
    """Write a bag into row i, scaled to length 1. The sums are whole numbers, so their order changes nothing."""
    length = math.sqrt(sum(n * n for n in sums.values()))
    for column, n in sums.items():
        if n:
            out[i, column] = n / length
