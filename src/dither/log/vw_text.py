"""Vowpal Wabbit's text with contextual-bandit labels. Costs become rewards, r = -cost.

action:cost:probability | features        one line for each decision (--cb K); actions count from 1
shared | features                         one block of lines for each decision (--cb_adf), which ends with a blank line:
| features                                the shared features first, then one line for each action;
n:cost:probability | features             the action shown has the label, whose n is not read

2 3:1:0.5 | x       a number before the only label is the action of another policy (--eval): column `other`
1 2:1:0.5 4 | x     other numbers without a cost are actions that were on offer
| x                 with one line for each decision, a line without a label asks for a prediction: it is left out
a:2 b :3            features: a number after the colon is the value, else 1; features without a name are [0], [1], ...
'tag|               a tag is not the id of a decision: column `tag`
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from dither.base import errors
from dither.log import schema
from dither.log.lines import Features, Malformed, Names, added, choice, log_of, named, opened, positions, real, singly
from dither.log.logged import Logged

UNLABELLED = "no label: a line to predict for"
HEAD = 1000  # so many lines are read to tell whether the file has blocks
SLOTS = ("ccb", "slates")


def vw_text(
    path: Any,
    *,
    K: int | None = None,
    adf: bool | None = None,
    features: bool = False,
    cross: bool = False,
    names: Sequence[str] | None = None,
    most: int = 1000,
    malformed: str = "error",
) -> Logged:
    """A log of text lines with contextual-bandit labels.

    path : a file, packed (gzip, bzip2, xz) or not, or an iterable of lines
    K : number of actions, for files with one line for each decision (as in --cb K); None: the largest in the file
    adf : True: a block of lines for each decision; False: one line for each. None: the first 1000 lines tell. They are
        blocks if one of them is shared, or if lines without a label stand in blocks with at most one label
    features, cross, names, most, malformed : as for `dsjson`. A file with one line for each decision has one context a
        row, for models with disjoint slots, so cross is refused there

    Raises as `dsjson` does.
    """
    choice("malformed", malformed, "error", "leave out")
    if K is not None:
        errors.at_least("K", K, 1)
    known = Names(features=features, most=most, names=names, cross=cross)
    where = named(path)
    lines: Iterator[str] = iter(opened(path))
    if adf is None:
        head = list(itertools.islice(lines, HEAD))
        adf, lines = _looks_like_blocks(head), itertools.chain(head, lines)
    wanted = known if features else None
    if adf:
        if K is not None:
            raise ValueError(f"K is for files with one line a decision; {where} has blocks, which say it: leave K out")
        return positions(log_of(lines, _blocks, lambda block: _of_block(block, wanted), known, malformed, where=where))
    if cross:
        raise ValueError(f"cross is for blocks of lines; {where} has one context for all actions: leave cross out")
    log = log_of(lines, singly, lambda line: _of_line(line, wanted), known, malformed, where=where)
    pl = schema.polars()
    top = int(log.frame["most"].max())
    if K is not None and top > K:
        raise ValueError(f"K must be at least {top}, the largest action of the file; got {K}")
    frame = log.frame.drop("most").with_columns(pl.col("K").fill_null(K or top))
    frame = frame.drop("other") if frame["other"].null_count() == frame.height else frame
    return replace(log, frame=frame, catalogue=tuple(str(i + 1) for i in range(K or top)))


def _of_line(line: str, names: Names | None) -> dict[str, Any] | str:
    """The row of a decision on one line. Actions without a cost were on offer too."""
    label, tag, found = _parsed(line)
    if label[:1] == ["shared"]:
        raise Malformed("a shared line stands in blocks of lines: pass adf=True")
    if not label:
        return UNLABELLED
    costs = [_label(token) for token in label if ":" in token]
    if len(costs) != 1:
        raise Malformed(f"a decision has one label action:cost:probability, got {len(costs)}")
    action, cost, p = costs[0]
    numbers = [int(real(token.split(":")[0], "action")) for token in label]
    if min(numbers) < 1:
        raise Malformed(f"actions count from 1, got {min(numbers)}")
    other = numbers[0] if len(label) == 2 and ":" not in label[0] else None
    offered = sorted(set(numbers if other is None else [action]))
    listed = len(offered) > 1
    return {
        "id": None,
        "tag": tag,
        "arms": [str(i) for i in offered] if listed else None,
        "K": len(offered) if listed else None,
        "features": None if names is None else [names.known(found)],
        "arm": offered.index(action) if listed else action - 1,
        "propensity": p,
        "propensity_kind": "exact",
        "reward": 0.0 - cost,
        "most": max(numbers),
        "other": None if other is None else str(other),
    }


def _of_block(block: list[str], names: Names | None) -> dict[str, Any]:
    """The row of a block of lines: the shared features, then a line for each action."""
    shared: Features = {}
    actions: list[Features] = []
    shown: list[tuple[int, float, float]] = []
    tag = None
    for line in block:
        label, own, found = _parsed(line)
        tag = tag or own
        if label[:1] == ["shared"]:
            if actions:
                raise Malformed("the shared line must be the first of its block")
            shared = found
            continue
        if len(label) > 1:
            raise Malformed(f"an action's line has one label at most, got {' '.join(label)!r}")
        if label:
            _, cost, p = _label(label[0])
            shown.append((len(actions), cost, p))
        actions.append(found)
    if len(shown) != 1:
        raise Malformed(
            f"one action of a block has the label of what was shown; {len(shown)} of {len(actions)} have one"
        )
    arm, cost, p = shown[0]
    ids = [str(i + 1) for i in range(len(actions))]
    return {
        "id": None,
        "tag": tag,
        "arms": ids,
        "K": len(actions),
        "features": None if names is None else names.arms(shared, actions, ids),
        "arm": arm,
        "propensity": p,
        "propensity_kind": "exact",
        "reward": 0.0 - cost,
    }


def _parsed(line: str) -> tuple[list[str], str | None, Features]:
    """The label's tokens, the tag, and the features of one line."""
    head, bar, rest = line.partition("|")
    if not bar:
        raise Malformed("there is no | before the features")
    tokens, tag = head.split(), None
    if tokens and (tokens[-1].startswith("'") or head[-1:] not in (" ", "\t")):
        tag = tokens.pop().removeprefix("'")
        if tag.count(":") == 2:
            raise Malformed(f"{tag!r} touches the |, which makes it a tag: put a space between")
    if tokens and tokens[0] in SLOTS:
        raise ValueError("has several slots (CCB or slates), of which a log of single decisions cannot be made")
    found: Features = {}
    for space in rest.split("|"):
        words = space.split()
        prefix, scale = "", 1.0
        if words and space[:1] not in (" ", "\t", ""):
            name, _, factor = words.pop(0).partition(":")
            prefix, scale = f"{name}^", real(factor, "the scale of a namespace") if factor else 1.0
        anonymous = itertools.count()
        for word in words:
            name, _, value = word.partition(":")
            name = name or f"[{next(anonymous)}]"
            try:
                number = float(value) if value else 1.0
            except ValueError:
                name, number = f"{name}={value}", 1.0
            found = added(found, {prefix + name: real(number, f"feature {name!r}") * scale})
    return tokens, tag, found


def _label(token: str) -> tuple[int, float, float]:
    parts = token.split(":")
    if len(parts) != 3:
        raise Malformed(f"a label is action:cost:probability, got {token!r}")
    action = real(parts[0], "action")
    return int(action), real(parts[1], "cost"), real(parts[2], "probability")


def _blocks(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Each block, with the number of its first line."""
    block: list[str] = []
    number = 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            block.append(line.rstrip("\r\n"))
        elif block:
            yield number - len(block), block
            block = []
    if block:
        yield number - len(block) + 1, block


def _looks_like_blocks(lines: list[str]) -> bool:
    """Whether one line is shared, or lines without a label stand in blocks with at most one label."""
    heads: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            heads[-1].append(line.partition("|")[0].strip() if "|" in line else "")
        elif heads[-1]:
            heads.append([])
    if any(head.startswith("shared") for block in heads for head in block):
        return True
    labels = [sum(":" in head for head in block) for block in heads]
    bare = any(not head for block in heads for head in block)
    return bare and max(labels) <= 1 and max(len(block) for block in heads) > 1
