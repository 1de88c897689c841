"""What happens to the arms of a catalogue, and who keeps it; ids as texts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np

from dither.features import records

KINDS_OF_EVENTS = ("add", "change", "retire", "restore")


class Event(NamedTuple):
    """One change of a catalogue."""

    version: int  # of the catalogue with this change
    what: str  # one of `KINDS_OF_EVENTS`
    id: str
    record: dict[str, Any] | None  # all fields of the arm after "add" and "change"


class Keeper(Protocol):
    """Who keeps the events of a catalogue elsewhere, such as a ledger that other processes have too."""

    def turn(self) -> AbstractContextManager[Any]:
        """Held while the catalogue changes. It is taken before the lock of the catalogue."""

    def keeping(self) -> AbstractContextManager[Callable[[Sequence[Event]], None]]:
        """A transaction: it takes in the events of others, and gives the call that keeps new ones."""

    def kept(self) -> None:
        """Called after the change, without the lock of the catalogue."""


def id_text(id: Any) -> str:
    """An id as text."""
    if isinstance(id, str) and id:
        return str(id)
    if isinstance(id, bool) or not hasattr(id, "__index__"):
        raise ValueError(f"an id must be a text that is not empty, or a whole number; got {id!r}")
    return str(id.__index__())


def listed(arms: Any, field: str) -> Iterable[tuple[Any, Any]]:
    """The ids and the records that a catalogue begins with."""
    if arms is None:
        return []
    if isinstance(arms, Mapping):
        return arms.items()
    return records.keyed(arms, field)


def longer(array: np.ndarray, n: int) -> np.ndarray:
    """The array with room for at least n + 1 rows, twice as many as before."""
    out = np.zeros((max(2 * len(array), n + 1, 8), *array.shape[1:]), dtype=array.dtype)
    out[: len(array)] = array
    return out
