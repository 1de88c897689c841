"""Fields that are texts: bags of words, hashed or with a vocabulary."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dither.features import hashing, kind, transformers, values


def _bag(value: Any) -> Counter[str]:
    """How often each word comes."""
    return Counter(values.words(value))


@dataclass(frozen=True)
class Text(kind.HashedKind):
    """A bag of words in `width` columns by a stable hash with signs (`hashing`), scaled to length 1. Nothing is fitted.

    A text is cut into its words (`values.words`); a list of texts is a bag as it is, such as tags.
    """

    width: int = 64
    name: ClassVar[str] = "text"

    def write(self, column: Sequence[Any], out: np.ndarray) -> kind.Gaps:
        """Add the words of each text up, with signs."""
        return _write(column, out, self._sums)

    def _sums(self, bag: Mapping[str, int]) -> dict[int, int]:
        sums: dict[int, int] = {}
        for word, n in bag.items():
            place, sign = hashing.place(word, self.width)
            sums[place] = sums.get(place, 0) + sign * n
        return sums

    def __str__(self) -> str:
        return f"text, hashed into {self.width} columns"


@dataclass(frozen=True)
class Words(kind.ListedKind):
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
    read, _learn = staticmethod(_bag), staticmethod(transformers.vocabulary)
    _list, _mark = "vocabulary", "^"

    def write(self, column: Sequence[Any], out: np.ndarray) -> kind.Gaps:
        """Count the words of each text."""
        return _write(column, out, self._sums)

    def _sums(self, bag: Mapping[str, int]) -> dict[int, int]:
        return {self._place[word]: n for word, n in bag.items() if word in self._place}

    def __str__(self) -> str:
        return "words, not fitted" if self.vocabulary is None else f"words, a vocabulary of {len(self.vocabulary)}"


def _write(column: Sequence[Any], out: np.ndarray, sums_of: Callable[[Mapping[str, int]], dict[int, int]]) -> kind.Gaps:
    """Write each bag into a row of out (n, width), scaled to length 1.

    sums_of : bag -> place in the row -> a whole number, so that their order changes nothing
    """
    gone, odd = [], []
    for i, value in enumerate(column):
        bag = kind.at(i, _bag, value)
        if bag is None:
            gone.append(i)
            continue
        sums = sums_of(bag)
        if bag and not sums:
            odd.append(i)
        length = math.sqrt(sum(n * n for n in sums.values()))
        for place, n in sums.items():
            if n:
                out[i, place] = n / length
    return kind.Gaps(gone, odd)
