"""Performance profiles and interquartile means over the panels of a figure (Agarwal et al., NeurIPS 2021).

x        the regret of a run at the horizon over the mean regret of the panel's reference: panels can be put together
profile  τ -> share of the runs with x ≤ τ; the mean of the panels' shares. Higher is better, and so is further left
IQM      mean of the middle half of all x: it bears runs that went astray, and uses more of the runs than a median
interval of 95 %, by a bootstrap within each panel. A resampled run is the same run of all algorithms, since they saw
         the same contexts; the reference's mean is taken anew. Those of a profile hold for each τ by itself

Few runs, drawn with replacement, differ less than new runs would. So the quantiles of the n resampled runs are moved
away from the estimate by the factor √(n/(n - 1)) t/z, where t and z are the quantiles of Student's law with n - 1
degrees of freedom and of the normal law: 9.2 for two runs, 1.58 for five, 1.04 for fifty. Without it the interval of a
difference that is 0 misses 0 in half of all pairs of runs, and in a tenth of all fives (Hesterberg, "What teachers
should know about the bootstrap", The American Statistician 2015, has the like for percentiles).

Every panel counts alike: as many runs of each are taken as every algorithm has in every panel. Agarwal et al. divide
scores by those of people; a regret has no such scale, so the reference of the tables takes the place.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from dither.algorithms import Spec
from dither_bench.define.panels import Figure, reference
from dither_bench.judge import tables
from dither_bench.judge.choices import logarithmic

TRIMMED = 0.25  # the share of the runs that an interquartile mean leaves out at each end
RESAMPLES = 1000
POINTS = 201  # τ at which a profile is taken
LEVEL = 0.95
EDGE = 0.01  # the quantile of x at which an axis of logarithms begins
TAIL = 0.9  # the quantile that says how bad the bad runs are


@dataclass(frozen=True)
class ProfileScores:
    """The regrets at the horizon of P panels, A algorithms and n runs."""

    regret: np.ndarray  # (A, P, n)
    of_reference: np.ndarray  # (P, n)
    algorithms: tuple[Spec, ...]  # A; those that have results in every panel
    panels: tuple[str, ...]  # P
    left_out: tuple[Spec, ...]  # the algorithms that some panels lack

    @property
    def runs(self) -> int:
        """n."""
        return self.of_reference.shape[-1]

    @property
    def relative(self) -> np.ndarray:
        """x (A, P, n): 1 is the mean of the reference."""
        return self.regret / self.of_reference.mean(axis=-1)[:, None]

    def resampled(self, *, seed: int = 0) -> np.ndarray:
        """x (A, B, P, n) of runs that were drawn with replacement within each panel."""
        P, n = self.of_reference.shape
        drawn = np.random.default_rng(seed).integers(n, size=(RESAMPLES, P, n))
        panel = np.arange(P)[:, None]
        base = self.of_reference[panel, drawn].mean(axis=-1, keepdims=True)
        return np.stack([regret[panel, drawn] / base for regret in self.regret])


class NoProfile(ValueError):
    """The results of a figure have no profile."""


def scores(figure: Figure, curves: pl.DataFrame) -> ProfileScores:
    """Of the rows of `tables.curves`.

    Raises NoProfile where the panels have no algorithm and run in common, and where a reference has no regret.
    """
    panels = [panel for panel in figure.panels if not curves.filter(panel=panel.name).is_empty()]
    if not panels:
        raise NoProfile(f"there are no results of {figure.name} to make a profile of")
    last: dict[tuple[str, Spec], dict[int, float]] = {}
    for panel in panels:
        for spec in panel.algorithms:
            last[panel.name, spec] = tables.at(curves, panel, panel.rounds, algorithm=str(spec))
    every = list(dict.fromkeys(spec for panel in panels for spec in panel.algorithms))
    whole = tuple(spec for spec in every if all(last.get((panel.name, spec)) for panel in panels))
    base = {panel.name: reference(panel) for panel in panels}
    common = [_common(last, panel.name, (*whole, base[panel.name])) for panel in panels]
    n = min(map(len, common))
    if not whole or n == 0:
        raise NoProfile(f"the panels of {figure.name} have no algorithm and run in common, which a profile needs")
    shared = [(panel.name, runs[:n]) for panel, runs in zip(panels, common, strict=True)]
    of_reference = np.array([[last[name, base[name]][run] for run in runs] for name, runs in shared])
    for (name, _), mean in zip(shared, of_reference.mean(axis=-1), strict=True):
        if not mean > 0:
            raise NoProfile(
                f"{base[name]} has the mean regret {mean:g} in {name}, and a profile divides by it: take more rounds, "
                "or name another algorithm first"
            )
    regret = np.array([[[last[name, spec][run] for run in runs] for name, runs in shared] for spec in whole])
    names = tuple(panel.name for panel in panels)
    return ProfileScores(regret, of_reference, whole, names, tuple(spec for spec in every if spec not in whole))


def robust(scores: ProfileScores) -> pl.DataFrame:
    """A row an algorithm: what bears runs that went astray, in units of the reference's mean.

    Columns algorithm, iqm, low, high, difference, difference_low, difference_high (of the IQM from that of the
    reference, whose runs are paired), mean, median, tail (the 90 % quantile), runs, panels. An interval needs two runs.
    """
    x, again = scores.relative, iqm(scores.resampled())
    of_reference = ProfileScores(scores.of_reference[None], scores.of_reference, (), scores.panels, ())
    base, base_again = iqm(of_reference.relative)[0], iqm(of_reference.resampled())[0]
    rows = []
    for i, spec in enumerate(scores.algorithms):
        mean = float(iqm(x)[i])
        gap = mean - float(base)
        sure = (*_interval(mean, again[i], scores), gap, *_interval(gap, again[i] - base_again, scores))
        more = (float(x[i].mean()), float(np.median(x[i])), float(np.quantile(x[i], TAIL)))
        rows.append((str(spec), mean, *sure, *more, scores.runs, len(scores.panels)))
    names = ["iqm", "low", "high", "difference", "difference_low", "difference_high", "mean", "median", "tail"]
    schema = {"algorithm": pl.String} | dict.fromkeys(names, pl.Float64) | dict.fromkeys(("runs", "panels"), pl.Int64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def profile(scores: ProfileScores, at: Sequence[float] | np.ndarray | None = None) -> pl.DataFrame:
    """Columns algorithm, tau, share, low, high; at : the τ (G,), or None for those of `taus`."""
    x, again = scores.relative, scores.resampled()
    tau = taus(x) if at is None else np.asarray(at, dtype=float)
    frames = []
    for i, spec in enumerate(scores.algorithms):
        share = shares(x[i], tau)
        low, high = None, None  # of one run: the spread is unknown
        if scores.runs > 1:
            low, high = ends(share, shares(again[i], tau), n=scores.runs)
            low, high = np.maximum(low, 0), np.minimum(high, 1)
        columns = {"algorithm": str(spec), "tau": tau, "share": share, "low": low, "high": high}
        frames.append(pl.DataFrame(columns, schema_overrides={"low": pl.Float64, "high": pl.Float64}))
    return pl.concat(frames)


def shares(x: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """The share of the runs with x ≤ τ, over panels and runs; x (..., P, n), tau (G,) -> (..., G)."""
    flat = np.sort(x.reshape(*x.shape[:-2], -1), axis=-1)
    rows = flat.reshape(-1, flat.shape[-1])
    counts = np.array([np.searchsorted(row, tau, side="right") for row in rows])
    return counts.reshape(*flat.shape[:-1], tau.size) / flat.shape[-1]


def iqm(x: np.ndarray) -> np.ndarray:
    """The interquartile mean over panels and runs; x (..., P, n)."""
    return np.asarray(stats.trim_mean(x.reshape(*x.shape[:-2], -1), TRIMMED, axis=-1))


def ends(estimate: Any, again: np.ndarray, *, n: int) -> tuple[Any, Any]:
    """The ends of intervals of estimates (...) from their resamples (B, ...) of n runs, n >= 2."""
    at = (1 + LEVEL) / 2
    low, high = np.quantile(again, [1 - at, at], axis=0)
    wider = math.sqrt(n / (n - 1)) * stats.t.ppf(at, n - 1) / stats.norm.ppf(at)
    return estimate + wider * (low - estimate), estimate + wider * (high - estimate)


def taus(x: np.ndarray) -> np.ndarray:
    """Where the profiles are taken: evenly from below the least x to the largest; in log τ where they span much."""
    low, high = float(np.quantile(x[x > 0], EDGE)) if np.any(x > 0) else 1.0, float(x.max(initial=1.0))
    least = float(x.min(initial=1.0))
    below = least - (high - least) / POINTS
    return np.geomspace(low, high, POINTS) if logarithmic((low, high)) else np.linspace(below, high, POINTS)


def _common(last: dict[tuple[str, Spec], dict[int, float]], panel: str, specs: tuple[Spec, ...]) -> list[int]:
    return sorted(set.intersection(*(set(last[panel, spec]) for spec in specs)))


def _interval(estimate: float, again: np.ndarray, scores: ProfileScores) -> tuple[float | None, float | None]:
    """The ends of the interval; None for one run, which says nothing of the spread."""
    low, high = (None, None) if scores.runs == 1 else map(float, ends(estimate, again, n=scores.runs))
    return low, high
