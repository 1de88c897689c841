"""Fields that are texts: bags of words, hashed or with a vocabulary."""

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dither.base import errors
from dither.features import hashing, kind, tokens, transformers, values


@dataclass(frozen=True)
class Text(kind.HashedKind):
    """A bag of words in `width` columns by a stable hash with signs (`hashing`), scaled to length 1. Nothing is fitted.

    A text is cut into its words (`tokens`); a list of texts is a bag as it is, such as tags.

    signed : whether a word adds 1 or -1 to its column, by its hash. With signs, the inner product of two texts is on
        average that of their words. But two words of one text cancel if they meet in a column with other signs, which
        of all pairs 1 in 2·width does; a text of two such words is then the same as one without words.
        `Features.cancelled` counts the texts in which words cancel. Without signs no word is lost: words that share a
        column add up, and look alike
    """

    width: int = 64
    signed: bool = True
    name: ClassVar[str] = "text"

    def __post_init__(self) -> None:
        errors.true_or_false("signed", self.signed)
        object.__setattr__(self, "signed", bool(self.signed))
        super().__post_init__()

    def write(self, column: Sequence[Any], out: np.ndarray) -> kind.Gaps:
        """Add the words of each text up, with signs or without."""
        return _write(self, column, out, self._sums)

    def read(self, value: Any) -> Counter[str]:
        """How often each word of a text comes."""
        return Counter(values.words(value, self.version))

    def _sums(self, bag: Mapping[str, int]) -> dict[int, int]:
        sums: dict[int, int] = {}
        for word, n in bag.items():
            place, sign = hashing.place(word, self.width)
            sums[place] = sums.get(place, 0) + (sign * n if self.signed else n)
        return sums

    def __str__(self) -> str:
        return f"text, hashed into {self.width} columns" + ", without signs" * (not self.signed)


@dataclass(frozen=True)
class Words(kind.ListedKind):
    """A bag of words with a column for each word of a vocabulary, which is stated or fitted; scaled to length 1.

    vocabulary : the words, of which those of texts are in lower case; None: to be fitted. Others count for nothing
    most, least : a fit keeps the `most` frequent words, of those that are in at least `least` texts

    A text is unknown if it has words, and none of them is in the vocabulary. unknown, missing : as for `Category`
    """

    vocabulary: Sequence[Any] | None = None
    unknown: str = "zero"
    missing: str = "zero"
    most: int | None = 500
    least: int = 1
    version: int = tokens.VERSION
    name: ClassVar[str] = "words"
    _learn = staticmethod(transformers.vocabulary)
    _list, _mark = "vocabulary", "^"

    def read(self, value: Any) -> Counter[str]:
        """How often each word of a text comes."""
        return Counter(values.words(value, self.version))

    def write(self, column: Sequence[Any], out: np.ndarray) -> kind.Gaps:
        """Count the words of each text."""
        return _write(self, column, out, self._sums)

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        """Word -> its column. One that is stated as "C++" is found in a text, too, whose words are in lower case."""
        if self.version == tokens.FIRST:
            return self._place
        cut = {text: tokens.words(text, self.version) for text in self._place}
        return {words[0]: self._place[text] for text, words in reversed(cut.items()) if len(words) == 1} | self._place

    def _sums(self, bag: Mapping[str, int]) -> dict[int, int]:
        sums: dict[int, int] = {}
        for word, n in bag.items():
            if word in self._places:
                sums[self._places[word]] = sums.get(self._places[word], 0) + n
        return sums

    def __str__(self) -> str:
        return "words, not fitted" if self.vocabulary is None else f"words, a vocabulary of {len(self.vocabulary)}"


def _write(
    field: "Text | Words",
    column: Sequence[Any],
    out: np.ndarray,
    sums_of: Callable[[Mapping[str, int]], dict[int, int]],
) -> kind.Gaps:
    """Write each bag into a row of out (n, width), scaled to length 1.

    sums_of : bag -> place in the row -> a whole number, so that their order changes nothing
    """
    gone, odd, cancelled = [], [], []
    for i, value in enumerate(column):
        bag = kind.at(i, field.read, value)
        if bag is None:
            gone.append(i)
            continue
        sums = sums_of(bag)
        if bag and not sums:
            odd.append(i)
        if not all(sums.values()):
            cancelled.append(i)
        length = math.sqrt(sum(n * n for n in sums.values()))
        for place, n in sums.items():
            if n:
                out[i, place] = n / length
    return kind.Gaps(gone, odd, cancelled)
