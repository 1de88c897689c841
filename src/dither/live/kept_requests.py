"""What a request was made of, as its decision keeps it (`store="records"`)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dither.deciding.request import Request
from dither.features import Catalogue, Features, raw_records, records
from dither.features.arm_ids import spelt, with_ids
from dither.features.raw_records import RawRequest
from dither.live.requests import Call


def features_of(bandit: Any, catalogue: Catalogue | None) -> Features | None:
    """The Features that make X of a request; None: X comes as it is."""
    return bandit.features if catalogue is None else catalogue.features


def fits(features: Features | None) -> None:
    """Raise ValueError where there is nothing to keep, since X comes as it is."""
    if features is None:
        raise ValueError(
            "store='records' keeps what Features make X of, and this bandit gets X itself: give it Features, "
            "dither.LinFP(features=...), or a catalogue; or keep X alone, store='all'"
        )


def kept(call: Call, request: Request, catalogue: Catalogue | None) -> list[bytes]:
    """The records of each request of a call, as bytes; [] where X came as it is.

    request : that of the choice, whose mask says which arms were on offer

    Raises ValueError for a value that cannot be kept.
    """
    if isinstance(call.context, np.ndarray):
        return []
    contexts: list[Any] = [None] * request.size if call.context is None else raw_records.listed(call.context)
    masks = np.broadcast_to(True if request.mask is None else request.mask, request.shape).reshape(len(contexts), -1)
    if catalogue is None:
        each = _each(call.arms, len(contexts))
        arms: list[Any] = [one if one is None else _on_offer(one, mask) for one, mask in zip(each, masks, strict=True)]
    else:
        arms = [_beside(call.arms, request.ids or (), mask) for mask in masks]
    pairs = zip(contexts, arms, strict=True)
    return [raw_records.packed(RawRequest(context, of_arms)) for context, of_arms in pairs]


def _each(arms: Any, n: int) -> list[Any]:
    """The records of the arms of each of n requests; None: there are none, in the disjoint form."""
    if arms is None:
        return [None] * n
    if isinstance(arms, Mapping):
        arms = with_ids(arms)
    if records.sequence(arms) and len(arms) and records.several(arms[0]):
        return [raw_records.listed(one) for one in arms]
    return [raw_records.listed(arms)] * n


def _on_offer(arms: list[dict[str, Any]], mask: np.ndarray) -> list[dict[str, Any]]:
    return [one for one, on in zip(arms, mask, strict=True) if on]


def _beside(arms: Any, ids: tuple[str, ...], mask: np.ndarray) -> dict[str, Any] | None:
    """The records that a request brings beside ids, of those on offer; None: it brings none."""
    if not isinstance(arms, Mapping):
        return None
    offered = {id for id, on in zip(ids, mask, strict=True) if on}
    named = ((spelt(id, ids), one) for id, one in arms.items() if one is not None)
    return {id: records.record(one, f"arm {id!r}") for id, one in named if id in offered} or None
