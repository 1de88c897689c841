"""The same request under the same id: it is answered as it was before, from the ledger, by any process.

A call that ran out of time may have been stored. So whoever calls again must not get another decision: his page may
show the first one. The ledger keeps a digest of what was asked with the id. It is looked at only where a call is
refused, since an id that is there refuses the call, and so may arms that have gone since.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from dither.deciding import decision
from dither.features import Catalogue
from dither.features.arm_ids import spelt
from dither.live import beside
from dither.live.requests import Call
from dither.live.shown import Shown, ShownMany
from dither.log import Ledger
from dither.log.database import entering
from dither.log.reward_rules import id_text, several

DIGEST = 16  # bytes


class OtherRequest(ValueError):
    """An id that was given to a decision before, by another request. Nothing is stored."""


def digest(body: Any) -> bytes | None:
    """Of what was asked for: bytes or a text; None: nobody has said it. Raises TypeError for anything else."""
    if body is None:
        return None
    if not isinstance(body, (bytes, str)):
        raise TypeError(f"body must be bytes or a text, which say what is asked for; got {body!r}")
    return hashlib.blake2b(body if isinstance(body, bytes) else body.encode(), digest_size=DIGEST).digest()


def ids_of(call: Call) -> list[str]:
    """The ids that a call gives to its decisions."""
    if call.id is None:
        return []
    return [id_text(one) for one in (call.id if several(call.id) else [call.id])]


def other(id: str) -> OtherRequest:
    """The error of an id that another request has."""
    return OtherRequest(
        f"id {id!r} was given to a decision before, by another request, or its data was erased: give each request an "
        f"id of its own, and send it again as it was where you repeat it"
    )


def answer(ledger: Ledger, catalogue: Catalogue | None, call: Call, refusal: Exception) -> Any:
    """What was answered to the same request before, or the error of this one.

    refusal : with which the call ended. It stays where no decision has an id of the call
    """
    ledger.committer.begun()  # a closed ledger answers nothing
    ids, asked = ids_of(call), digest(call.body)
    with ledger.database.reading() as connection:
        there = entering.stored(connection, ids)
    if not there:
        return refusal
    for id in ids:
        if id not in there or there[id].digest != asked:
            return other(id if id in there else next(iter(there)))
    ledger.database.durable()
    each = [_shown(there[id], call, catalogue) for id in ids]
    return together(each) if several(call.id) else each[0]


def together(each: list[Shown]) -> ShownMany:
    """Decisions of one call as one answer."""
    kind, exact = decision.weakest(one.propensity_kind for one in each), all(one.propensity_se is None for one in each)
    se = None if exact else np.array([one.propensity_se or 0.0 for one in each])
    z = None if any(one.z is None for one in each) else np.array([one.z for one in each])
    p, ids = np.array([one.propensity for one in each]), tuple(one.id for one in each)
    arms, places = np.array([one.arm for one in each]), np.array([one.place for one in each])
    return ShownMany(arms, p, kind, se, z, None, ids, places, each[0].fallback)


def fell(row: entering.Stored) -> bool:
    """Whether a decision of the table is a fallback, so that nothing was drawn and nothing spent."""
    return json.loads(row.extra or "{}").get(beside.FALLBACK) is True


def _shown(row: entering.Stored, call: Call, catalogue: Catalogue | None) -> Shown:
    """A decision of the table as it was answered."""
    extra = json.loads(row.extra or "{}")
    arm, place = _arm(row, call, catalogue, extra.get(beside.CATALOGUE))
    p = float("nan") if row.propensity is None else row.propensity
    kind: Any = row.propensity_kind
    return Shown(arm, p, kind, row.propensity_se, row.z, None, row.id, place, fell(row))


def _arm(row: entering.Stored, call: Call, catalogue: Catalogue | None, version: int | None) -> tuple[Any, int]:
    """The arm and its position in the request. version : of the catalogue, at the decision"""
    if row.arms is None:  # all positions were on offer, and have no other names
        return row.arm, row.arm
    name = json.loads(row.arms)[row.arm]
    passed = _names(call.arms)
    if row.slot is not None:
        return (row.slot if catalogue is None and passed is None and name == str(row.slot) else name), row.slot
    if passed is not None:
        return name, passed.index(spelt(name, passed))
    if catalogue is not None and version is not None:
        return name, catalogue.at(version).ids.index(name)
    return int(name), int(name)


def _names(arms: Any) -> list[str] | None:
    """The ids that a call passes; None: it passes none."""
    if arms is None or not len(arms):
        return None
    first = next(iter(arms))
    return None if isinstance(first, Mapping) else [id_text(one) for one in arms]
