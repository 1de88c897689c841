"""Warm start: what a log has paid for, learnt by a bandit before it goes live."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dither import errors, inputs
from dither.log import reader, schema
from dither.log.check import Report
from dither.log.logged import Logged


class Learnt(NamedTuple):
    """What a warm start did."""

    read: int
    used: int
    left_out: dict[str, int]  # reason -> rows


def warm_start(
    bandit: Any,
    log: Any,
    *,
    weights: str | None = None,
    missing: str | float = "error",
    slots: dict[str, int] | None = None,
    chunk: int = 10_000,
) -> Learnt:
    """Feed the features of the shown arms and their rewards to `bandit.update`, in the order of the log.

    log : a `Logged`, or what `dither.log.batches` reads, `chunk` rows at a time: memory for one chunk
    weights : None: each row counts once; "ips": 1/p times, as if the arms had been shown alike often
    missing : rows without a reward: "error", "leave out", or the number that stands for it
    slots : with disjoint slots, the slot of each arm id; None: ids that are slot numbers, or else positions

    Raises ValueError as `Logged.usable` and `Bandit.update` do; chunks that were learnt before stay learnt.
    """
    if weights not in (None, "ips"):
        raise ValueError(f"weights must be None or 'ips', got {weights!r}")
    errors.at_least("chunk", chunk, 1)
    total = Report(0, 0)
    for part in _parts(log, chunk, schema.REQUIRED if weights else ("arm", "reward")):
        use = part.usable(missing=missing) if weights else _rewarded(part, missing)
        if len(use):
            settings: dict[str, Any] = {"weight": 1 / use.p} if weights else {}
            if bandit.slots is None and "features" in use.frame.columns and use.slots:
                raise ValueError(
                    f"the log has one context a row for {use.K.max()} arms, which says nothing of the arm shown: one "
                    "context a row needs a bandit with disjoint=K, a model for each arm"
                )
            if bandit.slots is not None:
                settings["arm"] = _slots(use, slots)
            use = use.aligned(bandit)
            x = use.x if use.names is None else inputs.Named(use.x, use.names)
            bandit.update(x, use.r, **settings)
        total += use.report or Report(len(use), len(use))
    return Learnt(total.read, total.used, total.left_out)


def _parts(log: Any, chunk: int, require: tuple[str, ...]) -> Any:
    if not isinstance(log, Logged):
        return reader.batches(log, rows=chunk, require=require)
    keep = np.arange(len(log))
    return (log.filter((keep >= at) & (keep < at + chunk)) for at in range(0, len(log), chunk))


def _rewarded(log: Logged, missing: str | float) -> Logged:
    """The rows with a reward, whatever their propensities."""
    pl = schema.polars()
    frame = log.frame.with_columns(pl.lit(1.0).alias("propensity"), pl.lit("estimated").alias("propensity_kind"))
    return replace(log, frame=frame, report=None).usable(missing=missing)


def _slots(log: Logged, slots: dict[str, int] | None) -> np.ndarray:
    a = log.a
    ids = [offered[i] for offered, i in zip(log.arm_ids(), a.tolist(), strict=True)]
    if slots is not None:
        unknown = sorted(set(ids) - slots.keys())
        if unknown:
            raise ValueError(f"slots must name every arm of the log; it lacks {', '.join(map(repr, unknown[:5]))}")
        return np.array([slots[name] for name in ids])
    if log.catalogue is not None:
        place = {name: i for i, name in enumerate(log.catalogue)}
        return np.array([place.get(name, position) for name, position in zip(ids, a.tolist(), strict=True)])
    if not all(name.isdecimal() for name in ids):
        raise ValueError(f"the arms have names, such as {ids[0]!r}: give slots={{name: number of the slot}}")
    return np.array([int(name) for name in ids])
