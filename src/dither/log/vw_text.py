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
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from dither.base import errors
from dither.features.tokens import nfc
from dither.log import lines, schema
from dither.log.logged import Logged

UNLABELLED = "no label: a line to predict for"
HEAD = 1000  # so many lines are read to tell whether the file has blocks
ACTIONS = 10**6  # so many actions a file with one line a decision has at most, since a row has a place for each
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
    lines.choice("malformed", malformed, "error", "leave out")
    if K is not None:
        errors.at_least("K", K, 1)
    columns = lines.FeatureNames(features=features, most=most, names=names, cross=cross)
    where = lines.named(path)
    rest: Iterator[str] = _told(lines.opened(path), where)
    if adf is None:
        head = list(itertools.islice(rest, HEAD))
        adf, rest = _looks_like_blocks(head), itertools.chain(head, rest)
    wanted = columns if features else None
    if adf:
        if K is not None:
            raise ValueError(f"K is for files with one line a decision; {where} has blocks, which say it: leave K out")
        return lines.positions(
            lines.log_of(rest, _blocks, lambda block: _of_block(block, wanted), columns, malformed, where=where)
        )
    if cross:
        raise ValueError(f"cross is for blocks of lines; {where} has one context for all actions: leave cross out")
    rows = lines.log_of(rest, lines.singly, lambda line: _of_line(line, wanted), columns, malformed, where=where)
    top = int(rows.frame["most"].max())
    if K is not None and top > K:
        raise ValueError(f"K must be at least {top}, the largest action of the file; got {K}")
    frame = rows.frame.drop("most").with_columns(schema.polars().col("K").fill_null(K or top))
    frame = frame.drop("other") if frame["other"].null_count() == frame.height else frame
    return replace(rows, frame=frame, catalogue=tuple(str(i + 1) for i in range(K or top)))


def _told(text: Iterable[str], where: str) -> Iterator[str]:
    """The lines. Warn if the last one has no end: nothing else would show that it is cut."""
    for line in text:
        if isinstance(line, lines.Unended):
            warnings.warn(
                f"{where} ends without the end of a line, as a file does that was cut: then features or actions of its "
                "last decision are missing. Take the whole file, or write a line end there if it is whole",
                UserWarning,
                stacklevel=2,
            )
        yield line


def _of_line(line: str, names: lines.FeatureNames | None) -> dict[str, Any] | str:
    """The row of a decision on one line. Actions without a cost were on offer too."""
    label, tag, context = _parsed(line)
    if label[:1] == ["shared"]:
        raise lines.Malformed("a shared line stands in blocks of lines: pass adf=True")
    if not label:
        return UNLABELLED
    costs = [_label(token) for token in label if ":" in token]
    if len(costs) != 1:
        raise lines.Malformed(f"a decision has one label action:cost:probability, got {len(costs)}")
    action, cost, p = costs[0]
    numbers = [lines.whole(token.split(":")[0], "action") for token in label]
    if min(numbers) < 1:
        raise lines.Malformed(f"actions count from 1, got {min(numbers)}")
    if max(numbers) > ACTIONS:
        raise lines.Malformed(f"actions count from 1 to K, and K is {ACTIONS:,} at most; got {max(numbers)}")
    other = numbers[0] if len(label) == 2 and ":" not in label[0] else None
    offered = sorted(set(numbers if other is None else [action]))
    features = None if names is None else [names.noted(context)]
    more = {"tag": tag, "most": max(numbers), "other": None if other is None else str(other)}
    if len(offered) == 1:
        return lines.decision(None, features, action - 1, p, cost, **more)
    return lines.decision([str(i) for i in offered], features, offered.index(action), p, cost, **more)


def _of_block(block: list[str], names: lines.FeatureNames | None) -> dict[str, Any]:
    """The row of a block of lines: the shared features, then a line for each action."""
    shared: lines.Features = {}
    actions: list[lines.Features] = []
    shown: list[tuple[int, float, float]] = []
    tag = None
    for line in block:
        label, tag_here, parsed = _parsed(line)
        tag = tag or tag_here
        if label[:1] == ["shared"]:
            if actions:
                raise lines.Malformed("the shared line must be the first of its block")
            shared = parsed
            continue
        if len(label) > 1:
            raise lines.Malformed(f"an action's line has one label at most, got {' '.join(label)!r}")
        if label:
            _, cost, p = _label(label[0])
            shown.append((len(actions), cost, p))
        actions.append(parsed)
    if len(shown) != 1:
        raise lines.Malformed(
            f"one action of a block has the label of what was shown; {len(shown)} of {len(actions)} have one"
        )
    arm, cost, p = shown[0]
    ids = [str(i + 1) for i in range(len(actions))]
    features = None if names is None else names.arms(shared, actions, ids)
    return lines.decision(ids, features, arm, p, cost, tag=tag)


def _parsed(line: str) -> tuple[list[str], str | None, lines.Features]:
    """The label's tokens, the tag, and the features of one line."""
    head, bar, rest = line.partition("|")
    if not bar:
        raise lines.Malformed("there is no | before the features")
    tokens, tag = head.split(), None
    if tokens and (tokens[-1].startswith("'") or head[-1:] not in (" ", "\t")):
        tag = tokens.pop().removeprefix("'")
        if tag.count(":") == 2:
            raise lines.Malformed(f"{tag!r} touches the |, which makes it a tag: put a space between")
    if tokens and tokens[0] in SLOTS:
        raise ValueError("has several slots (CCB or slates), of which a log of single decisions cannot be made")
    features: lines.Features = {}
    for space in rest.split("|"):
        words = space.split()
        prefix, scale = "", 1.0
        if words and space[:1] not in (" ", "\t", ""):
            name, _, factor = words.pop(0).partition(":")
            prefix, scale = f"{name}^", lines.real(factor, "the scale of a namespace") if factor else 1.0
        anonymous = itertools.count()
        for word in words:
            name, _, value = word.partition(":")
            name = name or f"[{next(anonymous)}]"
            try:
                number = lines.number(value) if value else 1.0
            except ValueError:
                name, number = f"{name}={value}", 1.0
            x = lines.real(number, f"feature {name!r}") * scale
            name = nfc(prefix + name)
            features[name] = features.get(name, 0.0) + x
    return tokens, tag, features


def _label(token: str) -> tuple[int, float, float]:
    parts = token.split(":")
    if len(parts) != 3:
        raise lines.Malformed(f"a label is action:cost:probability, got {token!r}")
    return lines.whole(parts[0], "action"), lines.real(parts[1], "cost"), lines.real(parts[2], "probability")


def _blocks(text: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Each block, with the number of its first line."""
    for full, numbered in itertools.groupby(enumerate(text, 1), lambda each: bool(each[1].strip())):
        if full:
            numbers, block = zip(*numbered, strict=True)
            yield numbers[0], [line.rstrip("\r\n") for line in block]


def _looks_like_blocks(text: list[str]) -> bool:
    """Whether one line is shared, or lines without a label stand in blocks with at most one label."""
    heads = [[line.partition("|")[0].strip() if "|" in line else "" for line in block] for _, block in _blocks(text)]
    if any(head.startswith("shared") for block in heads for head in block):
        return True
    labels = [sum(":" in head for head in block) for block in heads]
    bare = any(not head for block in heads for head in block)
    return bare and max(labels) <= 1 and max(map(len, heads)) > 1
