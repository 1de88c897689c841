"""Vowpal Wabbit's text with contextual-bandit labels. Costs become rewards, r = -cost.

action:cost:probability | features        a line a decision (--cb K); actions count from 1
shared | features                         blocks (--cb_adf) that end with a blank line: what all actions share, then
| features                                a line for each action,
n:cost:probability | features             of which the one shown has the label; n is not read
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from dither import errors
from dither.log import schema
from dither.log.lines import Features, Malformed, Names, choice, log_of, named, opened, real, singly
from dither.log.logged import Logged


def vw_text(
    path: Any,
    *,
    K: int | None = None,
    adf: bool | None = None,
    features: bool = False,
    most: int = 1000,
    malformed: str = "error",
) -> Logged:
    """A log of text lines with contextual-bandit labels.

    path : a file, or an iterable of lines
    K : number of actions of the one-line form (as in --cb K); None: the largest that appears
    adf : True: blocks of lines, an action each; False: one line a decision; None: blocks if one of the first 1000
        lines is shared or has no label
    features, most, malformed : as for `dsjson`; the one-line form gives one context a row

    Raises as `dsjson` does.
    """
    choice("malformed", malformed, "error", "leave out")
    if K is not None:
        errors.at_least("K", K, 1)
    names = Names(most)
    where = named(path)
    lines: Iterator[str] = iter(opened(path))
    if adf is None:
        head = list(itertools.islice(lines, 1000))
        adf, lines = _looks_like_blocks(head), itertools.chain(head, lines)
    wanted = names if features else None
    if adf:
        return log_of(lines, _blocks, lambda block: _of_block(block, wanted), names, malformed, where=where)
    log = log_of(lines, singly, lambda line: _of_line(line, wanted), names, malformed, where=where)
    pl = schema.polars()
    top = int(log.frame["most"].max())
    if K is not None and top > K:
        raise ValueError(f"K must be at least {top}, the largest action of the file; got {K}")
    frame = log.frame.drop("most").with_columns(pl.col("K").fill_null(K or top))
    catalogue = tuple(str(i + 1) for i in range(K or top))
    return Logged(frame, catalogue=catalogue, report=log.report, names=log.names)


def _of_line(line: str, names: Names | None) -> dict[str, Any]:
    """One line a decision: the actions without a cost were on offer."""
    label, tag, found = _parsed(line)
    if label[:1] == ["shared"]:
        raise Malformed("a shared line stands in blocks of lines: pass adf=True")
    costs = [_label(token) for token in label if ":" in token]
    if len(costs) != 1:
        raise Malformed(f"a decision has one label action:cost:probability, got {len(costs)}")
    action, cost, p = costs[0]
    offered = sorted({int(real(token.split(":")[0], "action")) for token in label})
    if offered[0] < 1:
        raise Malformed(f"actions count from 1, got {offered[0]}")
    listed = len(offered) > 1
    return {
        "id": tag,
        "arms": [str(i) for i in offered] if listed else None,
        "K": len(offered) if listed else None,
        "features": None if names is None else [names.sparse(found)],
        "arm": offered.index(action) if listed else action - 1,
        "propensity": p,
        "propensity_kind": "exact",
        "reward": 0.0 - cost,
        "most": offered[-1],
    }


def _of_block(block: list[str], names: Names | None) -> dict[str, Any]:
    """A block of lines: what all share, then an action each."""
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
    return {
        "id": tag,
        "arms": [str(i + 1) for i in range(len(actions))],
        "K": len(actions),
        "features": None if names is None else [names.sparse(shared | own) for own in actions],
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
    found: Features = {}
    for space in rest.split("|"):
        words = space.split()
        prefix, scale = "", 1.0
        if words and space[:1] not in (" ", "\t", ""):
            name, _, factor = words.pop(0).partition(":")
            prefix, scale = f"{name}^", real(factor, "the scale of a namespace") if factor else 1.0
        for word in words:
            name, _, value = word.partition(":")
            try:
                number = float(value) if value else 1.0
            except ValueError:
                name, number = f"{name}={value}", 1.0
            found[prefix + name] = real(number, f"feature {name!r}") * scale
    return tokens, tag, found


def _label(token: str) -> tuple[int, float, float]:
    parts = token.split(":")
    if len(parts) != 3:
        raise Malformed(f"a label is action:cost:probability, got {token!r}")
    action = real(parts[0], "action")
    return int(action), real(parts[1], "cost"), real(parts[2], "probability")


def _blocks(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Blocks with the number of their first line."""
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
    """Whether some line is shared or has no label, as only those of blocks are."""
    heads = [line.partition("|")[0].strip() for line in lines if "|" in line]
    return any(not head or head.startswith("shared") for head in heads)
