"""The rules of rewards: which reward counts, which is known, in conflict or late. One set for every home of a log.

A reward finds its decision by id. It may come late, in parts, twice, in conflict, or with an unknown id. Each pair of a
decision and a part counts once:

    counted     the first value of its part. It counts
    known       the same value again, as a retry sends it. Nothing changes
    conflict    another value. It is kept as an event, and never counts
    late        the horizon of the decision has passed. It is kept as an event, and never counts

The horizon is a length of time after the decision. A reward is late if its time is after the horizon, or if the
decision was closed before the reward came. A decision is closed when `expire` finds that its horizon has passed. If
it has no reward by then, the default reward counts for it, where the log has a default. With the rule "counts" for
late rewards they count as others do. Such a log has no default, since a decision would have two rewards.

A ledger may be told which parts there are. Then a decision is complete when each of them has a value that counts, or
when its horizon has passed with at least one; parts that did not come are 0. What a bandit learns is the sum of the
parts of a complete decision, once. If late rewards count, no horizon makes a decision complete.

In a ledger a reward that counts may be corrected. The correction is an event of its own, and counts in its place. What
was answered before stays so: the value that was corrected is known when it is sent again.

The rule of the log says how the parts of a decision make its reward:

    sum     the sum of the parts (often there is one part, without a name)
    last    the part with the latest time; if times are equal, the part that came last
    list    all parts in a list, in order of arrival; the reader of the log makes one number of them

`RewardRegister` keeps a folder's decisions in memory: the ids and the rewards, about 200 bytes for each decision.
"""

import math
import numbers
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dither.deciding import inputs

Answer: TypeAlias = Literal["counted", "known", "conflict", "late"]
Many: TypeAlias = list[Any] | tuple[Any, ...] | np.ndarray[Any, Any]  # ids

RULES = ("sum", "last", "list")
LATE = ("kept", "counts")  # what comes of a reward after the horizon
COUNTS = ("counted", "default")  # events that count; "default" is the reward that a passed horizon gave
EVENTS = (*COUNTS, "conflict", "late", "correction")
CORRECTION = "correction"  # another value for what counted, from a person or a refund: it counts in place of it
LARGEST = 1e70  # size of a reward: the sums of its squares, over weights up to 1e70, are numbers
WHOLE = "whole"  # not an event of its own: it says that a decision is complete, and has the sum of its parts


def id_text(id: Any) -> str:
    """The id of a decision as the log holds it: a text; a number is written as text.

    Raises ValueError for what is neither, and for a text that not every home of a log can hold.
    """
    if hasattr(id, "propensity"):
        raise TypeError(f"id must be the id of a decision, and not the decision itself: pass its field id, got {id!r}")
    if isinstance(id, (list, tuple, set, dict, np.ndarray)) or id is None or id != id:
        raise ValueError(f"id must be a text or a number, got {id!r}")
    id = id.item() if isinstance(id, np.generic) else id
    return inputs.storable(id if isinstance(id, str) else str(id))


def several(ids: Any) -> bool:
    """Whether it is ids of several decisions: a list, or an array with an axis."""
    return isinstance(ids, (list, tuple)) or (isinstance(ids, np.ndarray) and ids.ndim > 0)


def finite(r: Any, id: Any = None) -> float:
    """The reward as a float. Raises ValueError for a reward that is not a finite number, or larger than `LARGEST`.

    id : of its decision, for the error; None: it is the default
    """
    if type(r) is float and -LARGEST <= r <= LARGEST:  # the usual case
        return r
    if getattr(r, "ndim", None) == 0 and not np.ma.is_masked(r):  # a scalar of NumPy, or an array without axes
        r = r.item()  # of what is masked it would be some number
    try:
        number = float(r) if isinstance(r, numbers.Real) else math.nan
    except OverflowError:  # of a whole number
        number = math.inf
    whose = "as the default" if id is None else f"for decision {id!r}"
    if not math.isfinite(number):
        raise ValueError(f"reward must be a finite number, got {r!r} {whose}")
    if abs(number) > LARGEST:
        raise ValueError(
            f"reward must be between {-LARGEST:g} and {LARGEST:g}, so that what rewards add up to is exact; got {r!r} "
            f"{whose}: send it in a larger unit"
        )
    return number


def total(paid: list[float]) -> float:
    """The sum of parts, exactly rounded; infinite where it is too large, so that no bandit learns it."""
    try:
        return math.fsum(paid)
    except OverflowError:
        return sum(paid)


def parts(names: Any) -> list[str]:
    """The names of parts. Raises ValueError unless they are different texts that are not empty, one or more."""
    each = None if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
    if not each or not all(isinstance(name, str) and name for name in each) or len(set(each)) < len(each):
        raise ValueError(f"parts must be different texts that are not empty, such as ['click', 'sale'], got {names!r}")
    for name in each:
        part(name)
    return each


def part(name: Any) -> None:
    """Raise ValueError for a part that is no text, is empty, or cannot be held by every home of a log."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"part must be a text that is not empty, or None where there is one reward; got {name!r}")
    inputs.storable(name, what="part")


def unlearnable(odd: list[str], parts: list[str], *, where: Any) -> ValueError:
    """The error of rewards in `where` with parts that a bandit would never learn. odd : these; parts : all of theirs"""
    return ValueError(
        f"the bandit of this ledger would never learn the parts {', '.join(map(repr, odd[:5]))} of the rewards in "
        f"{where}: take it over into a ledger that was told of all of them, Live(home, bandit=..., parts={parts})"
    )


def unknown(id: str) -> LookupError:
    """The error of a reward whose id no decision has."""
    return LookupError(f"no decision {id!r} in this log: a reward needs the id of a decision that was recorded")


def erased(id: str) -> LookupError:
    """The error of a reward whose decision was erased."""
    return LookupError(f"decision {id!r} was erased, with its reward: it takes no other")


def answer(r: float, *, counted: float | None, late: bool = False) -> Answer:
    """What becomes of a reward.

    counted : the reward that counts for the same part of the same decision, where one came before; else None
    late : whether the horizon has passed, and late rewards do not count
    """
    if counted is not None:
        return "known" if counted == r else "conflict"
    return "late" if late else "counted"


class Event(NamedTuple):
    """A reward as it was received."""

    decision: int  # number of its decision in the log
    id: str
    part: str | None
    reward: float
    time: Any  # datetime
    conflict: bool


class RewardRegister:
    """Which decisions there are, and which rewards came for them."""

    def __init__(self) -> None:
        self._decisions: dict[str, int] = {}
        self._erased: set[str] = set()
        self._paid: dict[tuple[int, str | None], float] = {}

    def enter(self, id: str, decision: int) -> None:
        """Enter a new decision. Raises ValueError if an earlier decision has the id."""
        if id in self._decisions:
            raise ValueError(f"id {id!r} was given to a decision before: ids must differ")
        self._decisions[id] = decision

    def erase(self, ids: Iterable[str]) -> None:
        """The data of these decisions was erased: they take no rewards."""
        self._erased.update(ids)

    def leave(self, id: str) -> None:
        """Forget a decision that was not recorded after all."""
        del self._decisions[id]

    def reward(self, id: str, r: Any, *, part: str | None = None, time: Any = None) -> tuple[Answer, Event | None]:
        """'counted', 'known' (the same value again) or 'conflict' (another value); and the event to keep.

        Raises LookupError for an id that no decision has, or whose decision was erased; ValueError for a reward that is
        not a finite number.
        """
        if id not in self._decisions:
            raise unknown(id)
        if id in self._erased:
            raise erased(id)
        decision, r = self._decisions[id], finite(r, id)
        said = answer(r, counted=self._paid.get((decision, part)))
        if said == "known":
            return said, None
        if said == "counted":
            self._paid[decision, part] = r
        return said, Event(decision, id, part, r, time, said == "conflict")

    def forget(self, event: Event) -> None:
        """Take back an event that was not recorded after all."""
        if not event.conflict:
            del self._paid[event.decision, event.part]

    def replay(self, event: Event) -> None:
        """Take up an event that was recorded earlier, when a log is opened again."""
        if not event.conflict:
            self._paid[event.decision, event.part] = event.reward
