"""Ids of arms: one rule for whoever takes them. An id is a text that is not empty, or a whole number.

A text is brought to Unicode's form NFC, so that an id is the same however its accents were typed.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dither.deciding import inputs
from dither.features import records, tokens, values


def id_text(id: Any) -> str:
    """An id as text. Raises ValueError for what is neither a text nor a whole number."""
    if isinstance(id, str) and id:
        return inputs.storable(tokens.nfc(id if type(id) is str else values.text(id)))
    if isinstance(id, bool) or not hasattr(id, "__index__"):
        raise ValueError(f"an id must be a text that is not empty, or a whole number; got {id!r}")
    return str(id.__index__())


def id_texts(arms: Any) -> tuple[str, ...]:
    """The ids of the arms of a request as texts, (K,). arms : as a user passes them, see `id_list`

    Raises ValueError as `id_list` and `id_text` do, and for an id that comes twice: it would have two probabilities.
    """
    texts = tuple(map(id_text, id_list(arms)))
    if len(set(texts)) != len(texts):
        raise ValueError(f"arms must be different ids, got {len(texts)} ({len(set(texts))} different): {list(texts)}")
    return texts


def spelt(id: Any, among: Collection[str]) -> str:
    """An id as text, in the form that it has among others: older ledgers have ids in other forms than NFC."""
    text = values.text(id) if isinstance(id, str) else str(id)
    form = tokens.nfc(text)
    if text in among or form.isascii():
        return text if text in among else form
    return form if form in among else next((one for one in among if tokens.nfc(one) == form), form)


def with_ids(arms: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """The records of id -> record, in which the id stands for a field `id`, as in a catalogue. Raises as `id_texts`."""
    pairs = zip(id_texts(arms), arms.values(), strict=True)
    return [{"id": id} | records.record(one, f"arm {id!r}") for id, one in pairs]


def brought(arms: Any) -> list[Any] | None:
    """What each arm of a request, or of B requests one after the other, brings beside its id; None: ids alone.

    arms : as a user passes them: id -> record or None, a list of such, or ids
    """
    if isinstance(arms, Mapping):
        return list(arms.values())
    if not isinstance(arms, (list, tuple)) or not arms or isinstance(arms[0], (str, int)):
        return None
    if not any(isinstance(one, Mapping) for one in arms):
        return None
    return [record for one in arms for record in (one.values() if isinstance(one, Mapping) else [None] * len(one))]


def id_list(arms: Any) -> Sequence[Any]:
    """The ids that a user passes: a list, a tuple, an array or a column of them, which stay as they are; a dict's keys.

    Raises ValueError for anything else, and for no id.
    """
    arms = arms if type(arms) is list else list(arms) if isinstance(arms, Mapping) else records.column(arms)
    if isinstance(arms, (str, bytes)) or not isinstance(arms, Sequence) or not len(arms):
        cure = f": arms=[{arms!r}]" if isinstance(arms, str) else ""
        raise ValueError(f"arms must be a list of at least one id, got {arms!r}{cure}")
    return arms
