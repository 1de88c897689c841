"""Whether the arms of budgets are there. A budget of a mistyped id would limit nothing, and nobody would know.

Where arms are known before they come, an id that none of them has is refused: in a catalogue, or among disjoint slots.
Else ids are known when they are on offer. So after some decisions it is told of which arms of budgets none was.
"""

from collections.abc import Collection, Iterable
from typing import Any

from dither.base import errors
from dither.log.database import arm_events, encodings, keeping

PATIENCE = 100  # decisions of a process, after which it is told which arms of budgets were never on offer
CURE = "live.change(budgets={...}) has other ones"


def every_arm(connection: Any) -> list[str] | None:
    """The ids that a decision of the ledger may have on offer; None: they are not known until they come."""
    if encodings.CATALOGUE in keeping.settings(connection):
        return arm_events.ids(connection) or None
    return keeping.facts(connection).get("slots")


def check(connection: Any, ids: Iterable[str]) -> None:
    """Raise LookupError where an arm of a budget is none of those that are known."""
    names = every_arm(connection)
    for id in ids:
        if names is not None and id not in names:
            raise LookupError(
                f"budgets= has an arm {id!r}, and the ledger has no arm of this id{_near(id, names)} A budget is of an "
                f"arm that is there: add the arm first, and then give its budget by live.change(budgets=...)"
            )


class UnseenArms:
    """The arms of budgets that were not on offer yet, in this process."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._left, self._seen, self._decisions = set(ids), dict[str, None](), 0

    def offered(self, ids: Collection[str], decisions: int) -> str | None:
        """These were on offer, in so many decisions more; -> what is to be told, once."""
        if not self._left:
            return None
        self._left.difference_update(ids)
        self._seen |= dict.fromkeys(ids)
        self._decisions += decisions
        if not self._left or self._decisions < PATIENCE:
            return None
        names, unseen = list(self._seen), sorted(self._left)
        self._left.clear()
        each = [f"{id!r} was on offer in none of them{_near(id, names)}" for id in unseen[: errors.MANY]]
        return f"this process has decided {self._decisions} times, and of its budgets {' '.join(each)} If so, {CURE}"


def _near(id: str, names: Collection[str]) -> str:
    """What the arm may have been meant to be, as the end of a sentence."""
    near = errors.nearest(id, list(names))
    return f". Did you mean {near!r}?" if near else f". There are {errors.listed(map(repr, names))}."
