"""What a log says of the policies that wrote it: whether they learnt meanwhile, and what their rewards can be.

The column `learnt` is a number that changes when the policy has learnt: a `Log` writes how many rewards its bandit had
learnt, a ledger the number of the last batch. So a log whose rows have two such numbers is that of a policy that
learnt, and a log whose rows all have one is not. A rule that acts in place of a bandit, and a function that is never
trained, do not learn, whatever is learnt beside them.

Rows without such a number, as logs had before there was one, are the fallback: what says `policy on model` was written
by a bandit, and a bandit learns unless the rows tell otherwise (`check.changes`). Of other tables the rows alone tell.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from dither import links
from dither.log import schema
from dither.log.check import PolicyChanges

ENOUGH = 30  # so many rows whose arms came again, all with the probability that they had, say that nothing was learnt
RULE = "a rule, explored"  # begins the text of a rule that acts in place of a bandit
_FIXED = re.compile(rf"^{RULE}|\) on Fixed\(")
_BANDIT = re.compile(r"[)>] on [\w<]")
_LINK = re.compile(r"\blink='(\w+)'")
_RANGE = re.compile(r"\breward_range=\(([^,()]+), ([^,()]+)\)")


class ActingPolicy(NamedTuple):
    """What some rows of a log, those with one text in the column `policy`, say of what wrote them."""

    text: str | None
    least: int | None  # of the column `learnt`
    most: int | None
    silent: int  # rows without it

    @property
    def fixed(self) -> bool:
        """Whether it does not learn, whatever is learnt beside it."""
        return self.text is not None and _FIXED.search(self.text) is not None

    @property
    def range(self) -> tuple[float, float] | None:
        """What its rewards can be, as far as its text tells: by the model, or by its link; None: anything.

        A `Log` and a ledger of `Live` state a range. The text is asked where neither does, as in older logs.
        """
        text = self.text or ""
        stated, link = _RANGE.search(text), _LINK.search(text)
        if stated is not None:
            return float(stated[1]), float(stated[2])
        support = links.LINKS[link[1]].support if link is not None and link[1] in links.LINKS else (0.0, float("inf"))
        return support if abs(support[0]) + abs(support[1]) < float("inf") else None


def policies(frame: Any) -> tuple[ActingPolicy, ...]:
    """Those of a frame, lazy or not, one for each text in its column `policy`."""
    pl = schema.polars()
    there = frame.collect_schema()
    text, learnt = (
        pl.col(name) if name in there else pl.lit(None, dtype=schema.dtype(schema.COLUMNS[name]))
        for name in ("policy", "learnt")
    )
    rows = frame.lazy().select(text=text.cast(pl.String), learnt=learnt.cast(pl.Int64), one=pl.int_range(pl.len()))
    number = pl.col("learnt")
    facts = rows.group_by("text", maintain_order=True).agg(
        least=number.min(), most=number.max(), silent=number.null_count()
    )
    return tuple(ActingPolicy(*row) for row in facts.collect().iter_rows())


class PolicyLearning(NamedTuple):
    """Whether what wrote a log learnt meanwhile."""

    value: bool | None = None  # None: the log does not say it
    words: str = ""  # what the policy that ran did, after its name; "" where it did not learn
    stated: bool = False  # whether the log says it of itself, and not its rows alone


def learnt(acting: Sequence[ActingPolicy], changes: PolicyChanges) -> PolicyLearning:
    """By what the rows say, and by the arms that came again."""
    free = [one for one in acting if not one.fixed]
    numbers = [number for one in free for number in (one.least, one.most) if number is not None]
    if numbers and min(numbers) < max(numbers):
        said = "learnt while it wrote this log: its rows say how much it had learnt, and it was not always the same"
        return PolicyLearning(True, said, stated=True)
    silent = [one for one in free if one.silent]
    if acting and not silent:
        return PolicyLearning(False, stated=True)
    bandits = any(one.text is not None and _BANDIT.search(one.text) for one in silent)
    if changes.rows:
        said = (
            f"changed while it ran: in {changes.rows:,} of {changes.of:,} rows at the start whose arms came again, the "
            "arm shown had another probability then. It learnt, or saw more than the log has"
        )
        return PolicyLearning(True, said, stated=bandits)
    if changes.of >= ENOUGH:
        return PolicyLearning(False)
    if bandits:
        said = "may have learnt while it wrote this log: it is a bandit, and nothing says that it did not learn"
        return PolicyLearning(True, said, stated=True)
    return PolicyLearning()


def reward_range(acting: Sequence[ActingPolicy]) -> tuple[float, float] | None:
    """What the rewards of a log can be, as far as the texts of all its policies tell; None: anything."""
    ranges = [one.range for one in acting]
    there = [ends for ends in ranges if ends is not None]
    if not there or len(there) < len(ranges):
        return None
    return min(low for low, _ in there), max(high for _, high in there)
