"""Rewards joined to decisions by id: late, in parts, twice, in conflict, or for no one.

The unit that counts once is (decision, part). The same value again is a retry and changes nothing; another value is a
conflict: it is kept as an event and never counts. How the parts of a decision make its reward is the rule of the log:

    sum     r = Σ of the parts (one part without a name: that reward)
    last    the part of the latest time; of equal times the one that came last
    list    all parts in a list, in order of arrival; one number is made of them when the log is read

Memory: the ids and what was paid for them, some 200 bytes a decision.
"""

import math
import numbers
from typing import Any, NamedTuple

RULES = ("sum", "last", "list")


class Event(NamedTuple):
    """A reward as it was received."""

    decision: int  # number of its decision in the log
    id: str
    part: str | None
    reward: float
    time: Any  # datetime
    conflict: bool


class Ledger:
    """Which decisions there are, and what came for them."""

    def __init__(self) -> None:
        self._decisions: dict[str, int] = {}
        self._paid: dict[tuple[int, str | None], float] = {}

    def enter(self, id: str, decision: int) -> None:
        """A new decision. Raises ValueError where the id is taken."""
        if id in self._decisions:
            raise ValueError(f"id {id!r} was given to a decision before: ids must differ")
        self._decisions[id] = decision

    def leave(self, id: str) -> None:
        """Forget a decision that was not recorded after all."""
        del self._decisions[id]

    def reward(self, id: str, r: Any, *, part: str | None = None, time: Any = None) -> tuple[str, Event | None]:
        """'counted', 'known' (the same value again) or 'conflict' (another value), and the event to keep.

        Raises LookupError for an id that was never given out, ValueError for what is no finite number.
        """
        if id not in self._decisions:
            raise LookupError(f"no decision {id!r} in this log: a reward needs the id of a decision that was recorded")
        if isinstance(r, (str, bytes)) or not isinstance(r, numbers.Real) or not math.isfinite(r):
            raise ValueError(f"reward must be a finite number, got {r!r} for decision {id!r}")
        decision, r = self._decisions[id], float(r)
        known = self._paid.get((decision, part))
        if known is None:
            self._paid[decision, part] = r
            return "counted", Event(decision, id, part, r, time, False)
        if known == r:
            return "known", None
        return "conflict", Event(decision, id, part, r, time, True)

    def forget(self, event: Event) -> None:
        """Take back an event that was not recorded after all."""
        if not event.conflict:
            del self._paid[event.decision, event.part]

    def replay(self, event: Event) -> None:
        """An event that was recorded earlier, as when a log is opened again."""
        if not event.conflict:
            self._paid[event.decision, event.part] = event.reward
