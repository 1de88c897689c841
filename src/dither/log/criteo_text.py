"""Criteo's counterfactual text, as the Ad Placement Challenge of NIPS 2017 published it (Lefortier et al. 2016).

id |l 0.999 |p 112.6 |f 0:300 1:250 2:1     the candidate that was shown: label and *inverse* propensity
id |f 0:300 1:250 7:1                       the other candidates, each a line with the same id

label   0.001: a click, the reward is 1; 0.999: none, the reward is 0
|p      1/p, so p of the example is 1/112.6
f       feature:value, of the context and the candidate together

Of the impressions without a click, 1 in 10 is in the published files. So such a row stands for 10 decisions (`weight`).
The candidate that was shown comes first in its block. Its place among the arms is taken from a hash of the id instead,
so that a place says nothing of what was shown.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dither.base import errors
from dither.features import hashing
from dither.log import lines
from dither.log.logged import Logged

LABELS = {0.001: 1.0, 0.999: 0.0}  # label -> reward
KEPT = 0.1  # share of the impressions without a click that were published
UNLABELLED = "no label: an impression to predict for"
Block = list[tuple[int, str]]  # numbers of lines, and the lines


def criteo(
    path: Any,
    *,
    features: bool = False,
    names: Sequence[str] | None = None,
    most: int = 1000,
    kept: float = KEPT,
    malformed: str = "error",
) -> Logged:
    """A log of Criteo's counterfactual text.

    path : a file, packed (gzip, bzip2, xz, zstd) or not, or an iterable of lines
    features, names, most, malformed : as for `dsjson`. The published data have 74,000 features
    kept : share of the impressions without a click that are in the file: 0.1 as published; 1 where all of them are

    A file without labels is to be predicted for: its impressions are left out and counted. Between impressions with a
    label, one without is malformed, as the id of a candidate may be mistyped; so is the last one of a file that has no
    line end there. Raises as `dsjson` does.
    """
    lines.choice("malformed", malformed, "error", "leave out")
    errors.within("kept", kept, 1e-6, 1)
    columns = lines.FeatureNames(features=features, most=most, names=names, cross=False)

    def row(block: Block) -> dict[str, Any] | str:
        return _of_block(block, columns if features else None, kept)

    return lines.log_of(lines.opened(path), _blocks, row, columns, malformed, where=lines.named(path))


def _blocks(text: Iterable[str]) -> Iterator[tuple[int, Block]]:
    """Each impression: the lines with one id, one after the other, and the number of the first.

    A line without an id is damaged, and makes its impression so, which would else lack a candidate. After the first
    label, so does a line with another id and no label: it may be a candidate of the impression before.
    """
    block: Block = []
    last, labelled = "", False
    for number, line in lines.singly(text):
        id, bar, rest = line.partition("|")
        id, begins = (id.strip(), rest.startswith("l ")) if bar else (last, False)
        if block and id != last and (begins or not labelled):
            yield block[0][0], block
            block = []
        block.append((number, line))
        last, labelled = id, labelled or begins
    if block:
        yield block[0][0], block


def _of_block(block: Block, names: lines.FeatureNames | None, kept: float) -> dict[str, Any] | str:
    label: tuple[float, float] | None = None
    arms: list[lines.Features] = []
    id = ""
    for number, line in block:
        with lines.at(number):
            lines.whole_line(line)
            before, (id, parts) = id, _parts(line)
            if before and id != before:
                raise lines.Malformed(
                    f"the id is {id}, where {before} was before, and the line has no |l and |p: the first line of an "
                    "impression has them, and its candidates have its id"
                )
            if ("l" in parts) != ("p" in parts) or ("l" in parts and arms):
                raise lines.Malformed("the first line of an impression has |l and |p, and no other line has them")
            label = _label(parts) if "l" in parts else label
            if "f" not in parts:
                raise lines.Malformed("there is no |f with the features of a candidate")
            arms.append(lines.summed(map(_feature, parts["f"].split())))
    if label is None:
        return UNLABELLED
    K, (reward, p) = len(arms), label
    place, _ = hashing.place(id, K)
    arms[0], arms[place] = arms[place], arms[0]
    noted = None if names is None else [names.noted(arm) for arm in arms]
    ids = [str(i + 1) for i in range(K)]
    weight = 1.0 if reward else 1 / kept
    return lines.decision(ids, noted, place, p, -reward, id=id, weight=weight) | {"arms": None}


def _parts(line: str) -> tuple[str, dict[str, str]]:
    """The id, and what stands after |l, |p and |f."""
    id, *parts = line.split("|")
    if not id.strip() or not parts:
        raise lines.Malformed("a line begins with the id of its impression and a |")
    named = [part.partition(" ") for part in parts]
    names = [name for name, _, _ in named]
    if set(names) - {"l", "p", "f"} or len(set(names)) < len(names):
        raise lines.Malformed(f"a line has |l, |p and |f, each once at most; got {', '.join(names) or 'none'}")
    return id.strip(), {name: rest.strip() for name, _, rest in named}


def _label(parts: dict[str, str]) -> tuple[float, float]:
    """Reward and propensity."""
    label, inverse = lines.real(parts["l"], "the label"), lines.real(parts["p"], "the inverse propensity")
    if label not in LABELS:
        raise lines.Malformed(f"the label must be 0.001 (a click) or 0.999 (none), got {parts['l']}")
    if inverse < 1:
        raise lines.Malformed(f"|p is the inverse of the propensity, and so at least 1; got {parts['p']}")
    return LABELS[label], 1 / inverse


def _feature(word: str) -> tuple[str, float]:
    name, colon, value = word.rpartition(":")
    if not colon or not name:
        raise lines.Malformed(f"a feature is number:value, got {word!r}")
    return name, lines.real(value, f"feature {name}")
