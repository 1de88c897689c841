"""Rewards joined to decisions by id. A reward may come late, in parts, twice, in conflict, or with an unknown id.

Each (decision, part) counts once. If the same value comes again, it is a retry and changes nothing. If another value
comes, it is a conflict: it is kept as an event and never counts. The rule of the log says how the parts of a decision
make its reward:

    sum     the sum of the parts (often there is one part, without a name)
    last    the part with the latest time; if times are equal, the part that came last
    list    all parts in a list, in order of arrival; the reader of the log makes one number of them

Memory: the ids and the rewards, about 200 bytes for each decision.
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
    """Which decisions there are, and which rewards came for them."""

    def __init__(self) -> None:
        self._decisions: dict[str, int] = {}
        self._paid: dict[tuple[int, str | None], float] = {}

    def enter(self, id: str, decision: int) -> None:
        """Enter a new decision. Raises ValueError if an earlier decision has the id."""
        if id in self._decisions:
            raise ValueError(f"id {id!r} was given to a decision before: ids must differ")
        self._decisions[id] = decision

    def leave(self, id: str) -> None:
        """Forget a decision that was not recorded after all."""
        del self._decisions[id]

    def reward(self, id: str, r: Any, *, part: str | None = None, time: Any = None) -> tuple[str, Event | None]:
        """'counted', 'known' (the same value again) or 'conflict' (another value); and the event to keep.

        Raises LookupError for an id that no decision has, ValueError for a reward that is not a finite number.
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
        """Take up an event that was recorded earlier, when a log is opened again."""
        if not event.conflict:
            self._paid[event.decision, event.part] = event.reward
