"""Estimates from logs larger than memory, for several policies at once. The sums of parts of a log add up.

    part of the log -> contributions -> sums;  merge(sums, sums) -> sums;  estimates(sums), differences(sums, base)

Each policy has the columns sb, su, sv and sw. One more column is s, the weights of the rows (1 where there are none). A
unit is a row, or the sum over a cluster. The sums keep the mean of the columns, and their sums of squares and products
about the mean. These are merged as Chan, Golub and LeVeque (1979) do, so that nothing cancels. With c_j the
coefficients of ψ of policy j (`contributions`), Σψψ' = c S c' gives the errors of values and differences.

The totals of groups of rows are kept besides (`Groups`), for clusters, the bootstrap and the test of drift:

    Ψ_g = B_g - n_g b̄ + (U_g - ρ V_g) n/Σsv     how group g moves an estimate; B_g, U_g, V_g its totals, ΣΨ = 0
    se² = G/(G - ddof) Σ_g Ψ_g²/n²              with G clusters, whose rows may stand anywhere in the log

n = Σs is the number of rows of the traffic, and n_g the number in a group. Rows are also grouped into at most BLOCKS
blocks of 2^k successive rows. In a log of fewer rows, each block is one row. If rows are independent, drawing blocks
anew is the bootstrap of rows. If they are not, it is more careful.

From an estimate's evidence on (`intervals.estimated`) the road is that of rows in memory. `in_memory` has their
evidence from two passes over the rows: there a spread that is 0 is exactly 0, which sums cannot promise.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dither.base import errors
from dither.log import bets
from dither.log.bets import Balance
from dither.log.check import together
from dither.log.schema import KINDS
from dither.ope import diagnostics, intervals
from dither.ope.bounded import Bounded, Extremes, IntervalSettings
from dither.ope.contributions import Contributions, certain_gap, cusum, extremes, grouped, ratio
from dither.ope.intervals import Evidence, Tally
from dither.ope.result import Difference, Estimate

PER = 4  # columns a policy: b, u, v, w
BLOCKS = 10_000


class Groups(NamedTuple):
    """Totals of G groups for J estimates, in order of their labels."""

    label: np.ndarray  # (G,) distinct, sorted
    n: np.ndarray  # (G,) Σs, rows of the traffic
    T: np.ndarray  # (G, J, 3)  Σsb, Σsu, Σsv over each group
    width: int = 0  # of blocks: rows each, a power of two, the label row // width; 0: clusters, by the user's labels

    def lean(self, j: int) -> np.ndarray:
        """Ψ of the j-th estimate (G,); NaN if the estimate has no value."""
        n = np.sum(self.n)
        B, U, V = self.T[:, j].T
        total = float(np.sum(V))
        return B - self.n * (np.sum(B) / n) + (U - ratio(float(np.sum(U)), total) * V) * ratio(float(n), total)

    def totals(self, j: int) -> np.ndarray:
        """Σsb, Σsu, Σsv, Σs of the j-th estimate, (G, 4)."""
        return np.column_stack([self.T[:, j], self.n])


class Sums(NamedTuple):
    """What is known of J policies from the rows so far. C = 1 + 4J. Only `kept` grows with the number of rows."""

    names: tuple[Any, ...]  # (J)
    methods: tuple[str, ...]  # (J)
    bounded: tuple[Bounded, ...]  # (J)
    ddof: tuple[int, ...]  # (J)
    of_rewards: tuple[bool, ...]  # (J) whether rewards and weights are all that it reads
    n: int  # rows
    units: int  # rows, or clusters
    mean: np.ndarray  # (C,) of the columns over the units
    squares: np.ndarray  # (C, C) sums of squares and products about the mean
    errors: np.ndarray  # (3J, 3J) sums of squares and products of what the errors of p do to b, u, v
    weights: np.ndarray  # (J, 3) sums over rows: (sw)², sw², s `contributions.certain_gap`
    largest: np.ndarray  # (J,) the largest w
    balance: tuple[Balance, ...]  # (J) what the tests of the weights need
    rows: tuple[float, float]  # the least and the largest s
    ends: np.ndarray  # (J, 2) least and largest of the rewards and predictions
    kind: str  # the weakest of the propensities
    clustered: bool
    has_P: bool  # whether P was passed
    left_out: dict[str, int]  # reason -> rows
    tallies: tuple[Tally, ...]  # (J) rewards by value, for events that are few
    blocks: Groups | None = None  # of successive rows, where the numbers of the rows are known
    clusters: Groups | None = None  # by the user's labels
    kept: tuple[tuple[Any, ...], ...] | None = None  # of each part in order s (or None), b of each policy, w of each

    @property
    def total(self) -> float:
        """Σs: the rows of the traffic."""
        return float(self.mean[0] * self.units)

    def certain(self, j: int) -> float:
        """The mass of policy j on arms that could not be shown, as far as p and P say it."""
        return float(self.weights[j, 2]) / self.total


def sums(
    contributions: Mapping[Any, Contributions], *, numbers: Any = None, cluster: Any = None, keep: bool = False
) -> Sums:
    """The sums of one part of a log: name -> contributions, all of the same rows.

    numbers (n,) : numbers of the rows in the whole log, ascending; "bootstrap" and the test of drift need them
    cluster (n,) : labels of one type, such as users; the rows of a label may stand in several parts
    keep : whether to keep the terms of the rows, which "betting" and "anytime" need; the parts must then be merged in
        their order

    If the contributions were made with cluster=, all rows of a cluster must be in one part.
    """
    if not contributions:
        raise ValueError("sums needs the contributions of at least one policy")
    parts = list(contributions.values())
    first = parts[0].rows
    for name, part in contributions.items():
        if part.n != parts[0].n or not np.array_equal(part.rows.r, first.r):
            raise ValueError(f"all contributions must be of the same rows, in one order: {name!r} is of others")
        if (part.rows.s is None) != (first.s is None) or not np.array_equal(_s(part), _s(parts[0])):
            raise ValueError(f"all contributions must have the same weight=: {name!r} has another")
    units = _columns(parts)
    if first.group is not None:
        units = np.stack([grouped(row, first.group) for row in units])
    mean = np.mean(units, axis=1)
    units -= mean[:, None]
    slips = np.zeros((3 * len(parts), 3 * len(parts)))
    if any(part.errors is not None for part in parts):
        each = [np.zeros((3, parts[0].n)) if part.errors is None else part.errors.T for part in parts]
        table = np.concatenate(each) * _s(parts[0])
        slips = table @ table.T
    ends, alike = [extremes(part.rows) for part in parts], {id(part.rows.w): part.rows for part in parts}
    balance = {key: bets.balance(rows.w, rows.p, rows.s, rows.limit) for key, rows in alike.items()}
    tallies = {key: intervals.tallied(rows.r, rows.w, rows.s) for key, rows in alike.items()}  # many share weights
    return Sums(
        names=tuple(contributions),
        methods=tuple(part.method for part in parts),
        bounded=tuple(part.bounded for part in parts),
        ddof=tuple(part.ddof for part in parts),
        of_rewards=tuple(part.of_rewards for part in parts),
        n=parts[0].n,
        units=units.shape[1],
        mean=mean,
        squares=units @ units.T,
        errors=slips,
        weights=np.array([_weights(part) for part in parts]),
        largest=np.array([one.weight for one in ends]),
        balance=tuple(balance[id(part.rows.w)] for part in parts),
        rows=ends[0].rows,
        ends=np.array([(one.low, one.high) for one in ends]),
        kind=max((part.rows.kind for part in parts), key=KINDS.index),
        clustered=first.group is not None,
        has_P=first.gap is not None,
        left_out=dict(first.left_out),
        tallies=tuple(tallies[id(part.rows.w)] for part in parts),
        blocks=None if numbers is None else blocks(parts, np.asarray(numbers)),
        clusters=None if cluster is None else by_label(parts, np.asarray(cluster)),
        kept=((first.s, *(part.b for part in parts), *(part.rows.w for part in parts)),) if keep else None,
    )


def _s(part: Contributions) -> Any:
    return 1.0 if part.rows.s is None else part.rows.s


def _weights(part: Contributions) -> list[float]:
    """A row of `Sums.weights`."""
    s, w = _s(part), part.rows.w
    carried = s * w
    return [float(carried @ carried), float(carried @ w), float(np.sum(s * certain_gap(part.rows)))]


def _columns(parts: list[Contributions]) -> np.ndarray:
    """The columns of `Sums`, each one row: (C, n). Written along the rows, which takes a third of the time."""
    columns = np.empty((1 + PER * len(parts), parts[0].n))
    columns[0] = 1.0
    for j, part in enumerate(parts):
        for k, (x, constant) in enumerate((*part.columns, (part.rows.w, 0.0))):
            columns[1 + PER * j + k] = constant if x is None else x
    if parts[0].rows.s is not None:
        columns *= parts[0].rows.s
    return columns


def by_label(parts: Sequence[Contributions], label: np.ndarray) -> Groups:
    """The totals of J estimates of the same rows by label (n,), of any kind that can be sorted."""
    labels, index = np.unique(label, return_inverse=True)
    return Groups(labels, *_totals(parts, lambda x: np.bincount(index, weights=x, minlength=len(labels))))


def blocks(parts: Sequence[Contributions], row: np.ndarray) -> Groups:
    """The totals of J estimates by blocks; row (n,) the numbers of their rows in the whole log, ascending."""
    width = 1 << (int(row[-1]) // BLOCKS).bit_length()
    label = row // width
    starts = np.flatnonzero(np.diff(label, prepend=-1))
    return Groups(label[starts], *_totals(parts, lambda x: np.add.reduceat(x, starts)), width)


def _totals(parts: Sequence[Contributions], add: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Σs of each of G groups (G,), and Σsb, Σsu, Σsv of each estimate in them (G, J, 3); v = 1 for means."""
    s = parts[0].rows.s
    n = add(np.ones(parts[0].n) if s is None else s)
    T = np.zeros((len(n), len(parts), 3))
    for j, part in enumerate(parts):
        for k, (x, constant) in enumerate(part.columns):
            T[:, j, k] = constant * n if x is None else add(x if s is None else s * x)
    return n, T


def merge_groups(a: Groups, b: Groups) -> Groups:
    """The totals of the rows of both. Blocks of blocks are the blocks that the whole log has."""
    width = max(a.width, b.width)
    if width:
        a, b = (part._replace(label=part.label // (width // part.width)) for part in (a, b))
    labels, index = np.unique(np.concatenate([a.label, b.label]), return_inverse=True)
    n = np.bincount(index, weights=np.concatenate([a.n, b.n]), minlength=len(labels))
    T = np.zeros((len(labels), *a.T.shape[1:]))
    np.add.at(T, index, np.concatenate([a.T, b.T]))
    return Groups(labels, n, T, width)


def merge(a: Sums, b: Sums) -> Sums:
    """The sums of two parts of a log together. Their order matters for rounding, and for "betting"."""
    if any(getattr(a, name) != getattr(b, name) for name in ("names", "methods", "bounded", "clustered", "has_P")):
        raise ValueError(
            f"sums must be of the same policies and estimators: got {a.names} {a.methods} and {b.names} {b.methods}"
        )
    for name in ("blocks", "clusters", "kept"):
        if (getattr(a, name) is None) != (getattr(b, name) is None):
            raise ValueError(f"sums must be made alike: {name} are known of one and not of the other")
    units = a.units + b.units
    gap, share = b.mean - a.mean, b.units / units
    return a._replace(
        n=a.n + b.n,
        units=units,
        mean=a.mean + share * gap,
        squares=a.squares + b.squares + np.outer(gap, gap) * (a.units * share),
        errors=a.errors + b.errors,
        weights=a.weights + b.weights,
        largest=np.maximum(a.largest, b.largest),
        balance=tuple(map(bets.merged, a.balance, b.balance)),
        rows=(min(a.rows[0], b.rows[0]), max(a.rows[1], b.rows[1])),
        ends=np.stack([np.minimum(a.ends[:, 0], b.ends[:, 0]), np.maximum(a.ends[:, 1], b.ends[:, 1])], axis=1),
        kind=max(a.kind, b.kind, key=KINDS.index),
        left_out=dict(sorted(together(a.left_out, b.left_out).items())),
        tallies=tuple(map(intervals.merge_tallies, a.tallies, b.tallies)),
        blocks=None if a.blocks is None or b.blocks is None else merge_groups(a.blocks, b.blocks),
        clusters=None if a.clusters is None or b.clusters is None else merge_groups(a.clusters, b.clusters),
        kept=None if a.kept is None or b.kept is None else (*a.kept, *b.kept),
    )


def resample(s: Sums, *, seed: int | None = None, times: int = IntervalSettings.resamples) -> np.ndarray:
    """The J estimates from blocks, or clusters, drawn anew as many as there are: (times, J); NaN for 0/0.

    `estimates` and `differences` both take them as draws=.
    """
    return resampled(_drawn_from(s), seed, times=times)


def resampled(groups: Groups, seed: Any, *, times: int) -> np.ndarray:
    """The J estimates of as many groups drawn anew with replacement: (times, J)."""
    G, J = groups.T.shape[:2]
    drawn = intervals.resampled(np.column_stack([groups.T.reshape(G, 3 * J), groups.n]), seed, times)
    each = drawn[:, :-1].reshape(times, J, 3)
    return intervals.values_of(np.concatenate([each, np.broadcast_to(drawn[:, None, -1:], (times, J, 1))], axis=2))


def _drawn_from(s: Sums) -> Groups:
    groups = s.blocks if s.clusters is None else s.clusters
    if groups is None:
        raise ValueError("resamples of sums need the numbers of the rows in the whole log: sums(made, numbers=...)")
    return groups


def estimates(
    s: Sums,
    *,
    draws: np.ndarray | None = None,
    warn: bool = True,
    names: Collection[Any] | None = None,
    **options: Any,
) -> dict[Any, Estimate]:
    """name -> estimate. Value and se are those of the whole log in memory.

    names : which of them; None: all
    options : `IntervalSettings`. "bootstrap" and "bca" need sums made with numbers= or cluster=, and "betting" needs
        keep=True
    draws (times, J) : from `resample`, to draw once for several calls
    """
    how, results = intervals.settings(options), {}
    if draws is None and how.interval in ("bootstrap", "bca"):
        draws = resample(s, seed=how.seed, times=how.resamples)
    for j, name in enumerate(s.names):
        if names is not None and name not in names:
            continue
        x = _evidence(s, j, draws)
        results[name] = intervals.estimated(x, how)
        if warn:
            diagnostics.warn_of(results[name], x, stacklevel=3, who=f"{name}: ")
    return results


def differences(
    s: Sums,
    base: Any,
    *,
    level: float = 0.95,
    draws: np.ndarray | None = None,
    names: Collection[Any] | None = None,
    interval: str = "normal",
    **options: Any,
) -> dict[Any, Difference]:
    """name -> the value minus the value of `base`, with the error of the paired difference.

    draws (times, J) : from `resample`; the intervals are then percentiles of the differences of the same resamples
    names : which of them; None: all
    interval : "normal"; or "anytime" for means of w r, which holds on the log of a policy that learns. It needs
        reward_range=, sums made with keep=True, and row_weight_max= where the weights of rows differ
    """
    errors.among("policy", base, s.names)
    how = intervals.of_differences(interval, level, options)
    values, k, gaps = _values(s), s.names.index(base), {}
    for j, name in enumerate(s.names):
        if j == k or (names is not None and name not in names):
            continue
        c = np.zeros(len(s.names))
        c[j], c[k] = 1.0, -1.0
        of = float(values[j] - values[k]), _se(s, c, max(s.ddof[j], s.ddof[k]))
        if how.interval == "anytime":
            error = float(np.sqrt(_slip(s, c))) / s.total
            pair = _evidence(s, j, None), _evidence(s, k, None)
            gaps[name] = intervals.open_difference(*of, s.n, *pair, how, error=error)
        else:
            gaps[name] = intervals.difference(*of, level, s.n, None if draws is None else draws[:, j] - draws[:, k])
    return gaps


def _evidence(s: Sums, j: int, draws: np.ndarray | None) -> Evidence:
    """What the j-th estimate needs of the sums; draws (times, J) : resamples of all."""
    pick, mean, (squares, spread, _) = [0, 1 + PER * j], float(_of(s, j)[3]), s.weights[j]
    lean = None if s.blocks is None else s.blocks.lean(j)
    clustered = s.clustered or s.clusters is not None

    def in_order() -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        if s.kept is None:
            raise ValueError(
                "interval='betting' and 'anytime' need the terms of the rows: keep them, sums(made, keep=True)"
            )
        parts = [(part[1 + j], part[1 + len(s.names) + j], part[0]) for part in s.kept]
        b, w, weights = zip(*((b, w, np.ones(len(b)) if t is None else t) for b, w, t in parts), strict=True)
        return np.concatenate(b), np.concatenate(w), np.concatenate(weights)

    return Evidence(
        method=s.methods[j],
        kind=s.kind,
        value=float(_values(s)[j]),
        se=_se(s, np.eye(len(s.names))[j], s.ddof[j]),
        n=s.n,
        units=s.units if s.clusters is None else len(s.clusters.n),
        error=float(np.sqrt(_slips(s)[j, j])) / s.total,
        left_out=s.left_out,
        ess=float((mean * s.total) ** 2 / squares) if squares else 0.0,
        weight_mean=mean,
        weight_max=float(s.largest[j]),
        weight_sd=float(np.sqrt(max(spread / s.total - mean * mean, 0.0))),
        drift=float("nan") if lean is None or not np.all(np.isfinite(lean)) else cusum(lean),
        certain=s.certain(j),
        has_P=s.has_P,
        balance=s.balance[j],
        extremes=lambda: Extremes(float(s.largest[j]), float(s.ends[j, 0]), float(s.ends[j, 1]), clustered, s.rows),
        bounded=s.bounded[j],
        of_rewards=s.of_rewards[j],
        moments=lambda: (s.mean[pick], s.squares[np.ix_(pick, pick)] / max(s.n - 1, 1)),
        in_order=in_order,
        tally=lambda: s.tallies[j],
        totals=lambda: _drawn_from(s).totals(j),
        draws=lambda times, seed: (resample(s, seed=seed, times=times) if draws is None else draws)[:, j],
    )


def _of(s: Sums, j: int) -> np.ndarray:
    """The means of b, u, v, w of policy j over the rows."""
    return s.mean[1 + PER * j : 1 + PER * (j + 1)] / s.mean[0]


def _values(s: Sums) -> np.ndarray:
    return np.array([b + ratio(u, v) for b, u, v, _ in (_of(s, j) for j in range(len(s.names)))])


def _coefficients(s: Sums) -> np.ndarray:
    """ψ of each policy from the columns of a unit: (J, C)."""
    c = np.zeros((len(s.names), len(s.mean)))
    for j in range(len(s.names)):
        b, u, v, _ = _of(s, j)
        c[j, 0] = -b
        c[j, 1 + PER * j : 4 + PER * j] = 1.0, ratio(1.0, v), -ratio(ratio(u, v), v)
    return c


def _slips(s: Sums) -> np.ndarray:
    """Σee' of the errors of p: (J, J)."""
    columns = np.arange(1, len(s.mean)).reshape(-1, PER)[:, :3].ravel()  # b, u, v of each policy
    picked = _coefficients(s)[:, columns]
    return picked @ s.errors @ picked.T


def _slip(s: Sums, c: np.ndarray) -> float:
    """Σe² of Σ_j c_j V̂_j, c (J,), of the policies with c_j ≠ 0."""
    used = np.flatnonzero(c)
    return float(c[used] @ _slips(s)[np.ix_(used, used)] @ c[used])


def _se(s: Sums, c: np.ndarray, ddof: int) -> float:
    """Standard error of Σ_j c_j V̂_j, c (J,). Only policies with c_j ≠ 0 are read, since V̂ of another may be NaN."""
    used, slip = np.flatnonzero(c), _slip(s, c) / s.total**2
    if s.clusters is not None:
        lean = np.sum([c[j] * s.clusters.lean(int(j)) for j in used], axis=0)
        G = len(lean)
        spread = float(np.sqrt(lean @ lean * G / (G - ddof))) / s.total if ddof < G else np.nan
        return float(np.sqrt(spread**2 + slip))
    psi = _coefficients(s)
    block = (psi @ s.squares @ psi.T / s.total**2)[np.ix_(used, used)]
    factor = s.units / (s.units - ddof) if s.units > 1 else np.nan  # one unit has no spread
    return float(np.sqrt(max(float(c[used] @ block @ c[used]), 0.0) * factor + slip))
