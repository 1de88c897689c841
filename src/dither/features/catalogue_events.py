"""What happens to the arms of a catalogue, and who keeps it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np

KINDS_OF_EVENTS = ("add", "change", "retire", "restore")


class ArmEvent(NamedTuple):
    """One change of a catalogue."""

    version: int  # of the catalogue with this change
    what: str  # one of `KINDS_OF_EVENTS`
    id: str
    record: dict[str, Any] | None  # all fields of the arm after "add" and "change"


class Keeper(Protocol):
    """Who keeps the events of a catalogue elsewhere, such as a ledger that other processes have too."""

    def turn(self) -> AbstractContextManager[Any]:
        """Held while the catalogue changes. It is taken before the lock of the catalogue."""

    def keeping(self) -> AbstractContextManager[Callable[[Sequence[ArmEvent]], None]]:
        """A transaction: it takes in the events of others, and gives the call that keeps new ones."""

    def kept(self) -> None:
        """Called after the change, without the lock of the catalogue."""


def event_of(event: Any) -> ArmEvent:
    """An event from one, or from a list as JSON has it: a copy. Raises ValueError for what is none."""
    try:
        version, what, id, record = event
    except (TypeError, ValueError):
        raise ValueError(f"an event must be (version, what, id, record), got {event!r}") from None
    wrong = not isinstance(id, str) or not id or not (record is None or isinstance(record, dict))
    if wrong or not whole(version) or version < 1:
        raise ValueError(
            f"an event must have a whole number from 1 on, what happened, an id that is a text, and a record or None; "
            f"got {event!r}"
        )
    return ArmEvent(int(version), what, id, None if record is None else copied(record))


def copied(record: dict[str, Any]) -> dict[str, Any]:
    """A record that shares nothing with this one: values are texts, numbers, None, or lists of texts."""
    return {name: list(value) if isinstance(value, list) else value for name, value in record.items()}


def whole(n: Any) -> bool:
    """Whether it is a whole number."""
    return hasattr(n, "__index__") and not isinstance(n, (bool, np.ndarray))


def longer(array: np.ndarray, n: int) -> np.ndarray:
    """The array with room for at least n + 1 rows, twice as many as before."""
    out = np.zeros((max(2 * len(array), n + 1, 8), *array.shape[1:]), dtype=array.dtype)
    out[: len(array)] = array
    return out
