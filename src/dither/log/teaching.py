"""What the rows of a log teach: one way, for a warm start, for a ledger that takes a log over, and for a replay.

    rows of a log  ->  lessons: x, and the slot that was shown, as whoever learns has columns and slots  ->  update

A lesson is refused where it means something else to whoever learns: other `Features`, other columns, another width, one
context for arms that have features of their own, an arm without a slot.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dither.deciding import inputs
from dither.log import schema
from dither.log.logged import Logged


class Pupil(NamedTuple):
    """Who learns, as far as the meaning of a row depends on it."""

    columns: tuple[str, ...] | None  # (d,) names of its features in their order; None: they go by place
    encoded_by: str | None  # fingerprint of its `Features`; None: it has none
    slotted: bool  # whether its arms are disjoint slots
    slots: Mapping[str, int] | None = None  # id of an arm -> its slot; None: as the log says
    dim: int | None = None  # d; None: not known
    learnt: bool = False  # whether its slots stand for arms already, so that a log cannot say which they are


class Lessons(NamedTuple):
    """What n rows teach."""

    x: np.ndarray  # (n, d) features of the arm shown; with slots the contexts
    slots: np.ndarray | None = None  # (n,) int  the slot that was shown; None: arms have features of their own
    columns: tuple[str, ...] | None = None  # (d,) names of the columns of x


def of_bandit(bandit: Any, slots: Mapping[str, int] | None = None) -> Pupil:
    """A bandit as a pupil; slots : id -> slot, where the log does not say it."""
    features = None if bandit.features is None else bandit.features.fingerprint
    return Pupil(bandit.columns, features, bandit.slots is not None, slots, bandit.dim, bandit.observations > 0)


def lessons(rows: Logged, pupil: Pupil) -> Lessons:
    """What rows teach a pupil. Raises ValueError for what would mean something else to it."""
    if not pupil.slotted and "features" in rows.frame.columns and rows.contexts.any():
        raise ValueError(
            f"the log has one context a row for {rows.K.max()} arms, which says nothing of the arm shown: one context "
            "a row needs a bandit with disjoint=K, a model for each arm (on the command line --slots K)"
        )
    slots = _slots(rows, pupil) if pupil.slotted else None
    rows = rows.placed(pupil.columns, pupil.encoded_by)
    x = rows.x
    if pupil.dim is not None and x.shape[-1] != pupil.dim:
        raise ValueError(f"x must have width {pupil.dim}, that of the bandit; the log has features of {x.shape[-1]}")
    return Lessons(x, slots, rows.names)


def teach(bandit: Any, part: Lessons, r: Any, *, at: Any = None, weight: Any = None) -> None:
    """Let a bandit learn rewards r (n,), or one; at : times of the decisions, in seconds since 1970.

    Raises what `Bandit.update` raises.
    """
    x = part.x if part.columns is None else inputs.Named(part.x, part.columns)
    time = at if bandit.clocked else None
    bandit.update(x, r, arm=part.slots, at=time, weight=weight)


def offered(rows: Logged, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Which of K slots was shown in each row, (n,), and which were on offer, (n, K), to one that has learnt nothing.

    Raises ValueError as `lessons` does, and for a slot that there is not.
    """
    each = rows.arm_ids()
    counts = [len(ids) for ids in each]
    places = np.concatenate([np.arange(n) for n in counts])
    slots = _numbers(rows, Pupil(None, None, True), [id for ids in each for id in ids], places)
    if slots.max() >= K:
        raise ValueError(f"the log has slot {slots.max()}, and the bandit has {K} slots: disjoint={slots.max() + 1}")
    mask = np.zeros((len(rows), K), dtype=bool)
    mask[np.repeat(np.arange(len(rows)), counts), slots] = True
    return slots[np.cumsum(counts) - counts + rows.a], mask


def _slots(rows: Logged, pupil: Pupil) -> np.ndarray:
    """The slots of the arms shown, (n,)."""
    a = rows.a
    return _numbers(rows, pupil, [ids[i] for ids, i in zip(rows.arm_ids(), a.tolist(), strict=True)], a)


def _numbers(rows: Logged, pupil: Pupil, ids: list[str], places: np.ndarray) -> np.ndarray:
    """The slots of arms, which have these ids and places in their rows.

    Raises ValueError where neither the log nor the pupil says which they are.
    """
    slots, order = pupil.slots, rows.slot_ids or rows.catalogue
    if slots is None and pupil.learnt and order is not None and order != tuple(map(str, range(len(order)))):
        raise ValueError(
            f"the slots have learnt of arms already, which the order of this log, {schema.some(order)}, need not be: "
            "give slots={name: number of the slot}"
        )
    if slots is None and rows.slot_ids is not None:
        later = [id for id in set(ids) - set(rows.slot_ids) if id.isdecimal() and int(id) >= len(rows.slot_ids)]
        slots = {id: slot for slot, id in enumerate(rows.slot_ids)} | {id: int(id) for id in later}
    if slots is not None:
        unknown = sorted(set(ids) - slots.keys())
        if unknown:
            raise ValueError(f"slots must name every arm of the log; it lacks {', '.join(map(repr, unknown[:5]))}")
        return np.array([slots[id] for id in ids])
    if rows.catalogue is not None:
        place = {id: i for i, id in enumerate(rows.catalogue)}
        return np.array([place.get(id, position) for id, position in zip(ids, places.tolist(), strict=True)])
    if not all(id.isdecimal() for id in ids):
        raise ValueError(f"the arms have names, such as {ids[0]!r}: give slots={{name: number of the slot}}")
    return np.array([int(id) for id in ids])
