"""What happens to the arms of a catalogue, and who keeps it; ids as texts."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np

from dither.deciding import inputs
from dither.features import records, values

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


def id_text(id: Any) -> str:
    """An id as text. Raises ValueError for what is neither a text nor a whole number."""
    if isinstance(id, str) and id:
        return inputs.storable(id if type(id) is str else values.text(id))
    if isinstance(id, bool) or not hasattr(id, "__index__"):
        raise ValueError(f"an id must be a text that is not empty, or a whole number; got {id!r}")
    return str(id.__index__())


def id_texts(arms: Any) -> tuple[str, ...]:
    """The ids of the arms of a request as texts, (K,). arms : as a user passes them, see `id_list`

    Raises ValueError as `id_list` and `id_text` do.
    """
    return tuple(map(id_text, id_list(arms)))


def id_list(arms: Any) -> Sequence[Any]:
    """The ids that a user passes: a list, a tuple, an array or a column of them, which stay as they are.

    Raises ValueError for anything else, for no id, and for records: a request has those that the catalogue has.
    """
    arms = arms if type(arms) is list else records.column(arms)
    if isinstance(arms, Mapping):
        raise ValueError(
            f"arms must be a list of ids, as the catalogue has the records; got records, {arms!r}: change an arm by "
            f"catalogue.change(id, record), and pass arms={list(arms)!r}"
        )
    if isinstance(arms, (str, bytes)) or not isinstance(arms, Sequence) or not len(arms):
        raise ValueError(f"arms must be a list of at least one id, got {arms!r}")
    return arms


def longer(array: np.ndarray, n: int) -> np.ndarray:
    """The array with room for at least n + 1 rows, twice as many as before."""
    out = np.zeros((max(2 * len(array), n + 1, 8), *array.shape[1:]), dtype=array.dtype)
    out[: len(array)] = array
    return out
