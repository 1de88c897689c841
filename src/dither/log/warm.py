"""Warm start: a bandit learns the rewards of a log before it goes live."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dither.base import errors
from dither.log import reader, schema, teaching
from dither.log.check import Report
from dither.log.logged import Logged
from dither.log.sources import split


class RewardWarning(UserWarning):
    """Missing rewards are left out, and all rewards that came are the same number."""


class Learnt(NamedTuple):
    """How many rows a warm start read, used and left out."""

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

    log : a `Logged`, or what `dither.log.batches` reads. It is read `chunk` rows at a time. A file is read twice if it
        has a column weight or if missing="leave out": all rows must be seen first
    weights : None: each row counts once; "ips": each row counts 1/p times, as if all arms had been shown equally often
    missing : rows without a reward: "error", "leave out", or the number to take for the reward. If rewards are left out
        and all others are the same number, a `RewardWarning` says so first
    slots : for a bandit with disjoint slots, arm id -> slot. None: the ids are numbers of slots, or else positions in
        the order of the log, which a bandit takes that has learnt nothing yet

    A log may be thinned (column weight: a row stands for s decisions). Then each row counts s Σs/Σs² times, and all
    rows together (Σs)²/Σs² times: equally weighted rows of that number would say as much. So the bandit learns what the
    traffic earned, and is as sure of it as these rows allow. A factor common to all s changes nothing.

    A model with a half_life learns each row at the time of its decision, in seconds since 1970.

    Raises ValueError as `Logged.usable` and `Bandit.update` do. Chunks that were learnt before the error stay learnt.
    """
    if weights not in (None, "ips"):
        raise ValueError(f"weights must be None or 'ips', got {weights!r}")
    errors.at_least("chunk", chunk, 1)
    require = schema.REQUIRED if weights else ("arm", "reward")

    def parts() -> Iterator[Logged]:
        for part in _parts(log, chunk, require):
            yield (part.usable(missing=missing) if weights else _rewarded(part, missing)).standing()

    scale, pupil = _looked(parts(), missing), teaching.of_bandit(bandit, slots)  # before it learns the first chunk
    total = Report(0, 0)
    for use in parts():
        if len(use):
            settings: dict[str, Any] = {"weight": 1 / use.p} if weights else {}
            if scale is not None:
                settings["weight"] = _stands(use) * scale * settings.get("weight", 1.0)
            part = teaching.lessons(use, pupil)
            at = use.seconds if bandit.clocked else None
            teaching.teach(bandit, part, use.r, at=at, **settings)
        total += use.report or Report(len(use), len(use))
    return Learnt(total.read, total.used, total.left_out)


def only(gone: int, came: int, value: float, *, cure: str) -> str:
    """The warning for a log whose rewards are missing in part, and otherwise all the same number."""
    return (
        f"{gone:,} of {gone + came:,} rewards are missing, and all {came:,} that came are {value:g}. Left out, every "
        f"decision seems to earn {value:g}. Where a reward that does not come is 0, as with clicks, say {cure}"
    )


def _looked(parts: Iterator[Logged], missing: str | float) -> float | None:
    """Σs/Σs² of the rows to be learnt; None if all rows count the same. Warns if all rewards are the same number.

    Without a column weight, and if nothing is left out, only the first chunk is read.
    """
    sums, ends, rewards, gone, used = np.zeros(2), (np.inf, 0.0), (np.inf, -np.inf), 0, 0
    for use in parts:
        if "weight" not in use.frame.columns and missing != "leave out":
            return None
        gone += (use.report or Report(0, 0)).left_out.get("no reward came", 0)
        used += len(use)
        if len(use):
            s = _stands(use)
            sums += np.sum(s), np.sum(s * s)
            ends = min(ends[0], float(np.min(s))), max(ends[1], float(np.max(s)))
            rewards = min(rewards[0], float(np.min(use.r))), max(rewards[1], float(np.max(use.r)))
    if gone and used and rewards[0] == rewards[1]:
        warnings.warn(only(gone, used, rewards[0], cure="missing=0"), RewardWarning, stacklevel=3)
    return None if ends[0] >= ends[1] else float(sums[0] / sums[1])


def _stands(rows: Logged) -> np.ndarray:
    """How many decisions each row stands for (n,); 1 in a log without the column weight."""
    s = rows.weight
    return np.ones(len(rows)) if s is None else s


def _parts(source: Any, chunk: int, require: tuple[str, ...]) -> Iterator[Logged]:
    if isinstance(source, Logged):
        return split(source, chunk)
    return reader.batches(source, rows=chunk, require=require)


def _rewarded(rows: Logged, missing: str | float) -> Logged:
    """The rows with a reward, whatever their propensities."""
    frame = rows.frame.with_columns(propensity=1.0, propensity_kind=schema.polars().lit("estimated"))
    return replace(rows, frame=frame, report=None).usable(missing=missing)
