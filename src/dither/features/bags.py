"""Fields that are texts: bags of words, hashed or with a vocabulary."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dither.features import hashing, kind, transformers, values


@dataclass(frozen=True)
class Text(kind.HashedKind):
    """A bag of words in `width` columns by a stable hash with signs (`hashing`), scaled to length 1. Nothing is fitted.

    A text is cut into its words (`values.words`); a list of texts is a bag as it is, such as tags.
    """

    width: int = 64
    name: ClassVar[str] = "text"

    def write(self, column: Sequence[Any], out: np.ndarray) -> kind.Gaps:
        """Add the words of each text up, with signs."""
        gone = []
        for i, value in enumerate(column):
            bag = kind.at(i, _bag, value)
            if bag is None:
                gone.append(i)
                out[i, self.width :] = 1.0
                continue
            sums: dict[int, int] = {}
            for word, n in bag.items():
                place, sign = hashing.place(word, self.width)
                sums[place] = sums.get(place, 0) + sign * n
            _unit(out, i, sums)
        return kind.Gaps(missing=gone)

    def __str__(self) -> str:
        return f"text, hashed into {self.width} columns"


@dataclass(frozen=True)
class Words(kind.ListedKind):
    """A bag of words with a column for each word of a vocabulary, which is stated or fitted; scaled to length 1.

    vocabulary : the words; None: to be fitted. Other words count for nothing
    most, least : a fit keeps the `most` frequent words, of those that are in at least `least` texts

    A text is unknown if it has words, and none of them is in the vocabulary. unknown, missing : as for `Category`
    """

    vocabulary: tuple[str, ...] | None = None
    unknown: str = "zero"
    missing: str = "zero"
    most: int | None = 500
    least: int = 1
    name: ClassVar[str] = "words"
    _list, _mark = "vocabulary", "^"

    def fit(self, column: Sequence[Any]) -> "Words":
        """With the words of the texts, sorted."""
        bags = [bag for i, value in enumerate(column) if (bag := kind.at(i, _bag, value)) is not None]
        return replace(self, vocabulary=transformers.vocabulary(bags, most=self.most, least=self.least))

    def write(self, column: Sequence[Any], out: np.ndarray) -> kind.Gaps:
        """Count the words of each text."""
        gone, odd = [], []
        for i, value in enumerate(column):
            bag = kind.at(i, _bag, value)
            if bag is None:
                gone.append(i)
                continue
            sums = {self._place[word]: n for word, n in bag.items() if word in self._place}
            _unit(out, i, sums)
            if bag and not sums:
                odd.append(i)
        if self.unknown == "column":
            out[odd, len(self._place)] = 1.0
        if self.missing == "column":
            out[gone, -1] = 1.0
        return kind.Gaps(gone, odd)

    def __str__(self) -> str:
        return "words, not fitted" if self.vocabulary is None else f"words, a vocabulary of {len(self.vocabulary)}"


def _bag(value: Any) -> Mapping[str, int] | None:
    return None if values.missing(value) else Counter(values.words(value))


def _unit(out: np.ndarray, i: int, sums: Mapping[int, int]) -> None:
    """Write a bag into row i, scaled to length 1. The sums are whole numbers, so their order changes nothing."""
    length = math.sqrt(sum(n * n for n in sums.values()))
    for column, n in sums.items():
        if n:
            out[i, column] = n / length
