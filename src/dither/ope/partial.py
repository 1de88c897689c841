"""Estimates of logs larger than memory: sums that add over parts of the log, for several policies at once.

    part of the log -> contributions -> sums;  merge(sums, sums) -> sums;  estimates(sums), differences(sums, base)

For each policy the columns sb, su, sv and sw, and one column of s, the weights of the rows (1 where there are none): a
unit is a row, or the sum over a cluster. Kept are their mean and their sums of squares and products about it, merged as
Chan, Golub and LeVeque (1979) do: nothing cancels. With c_j the coefficients of policy j's ψ (`rows`), Σψψ' = c S c':
the errors of values and differences.
"""

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dither import errors
from dither.ope import balance, diagnostics, intervals
from dither.ope.balance import Balance
from dither.ope.contributions import Bounded, Contributions, certain_gap, grouped, ratio
from dither.ope.result import Difference, Estimate, difference_of
from dither.ope.rows import KINDS

PER = 4  # columns a policy: b, u, v, w


class Sums(NamedTuple):
    """What is known of J policies from the rows so far; its size does not depend on them. C = 1 + 4J."""

    names: tuple[str, ...]  # (J)
    methods: tuple[str, ...]  # (J)
    bounded: tuple[Bounded, ...]  # (J)
    ddof: tuple[int, ...]  # (J)
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
    known: bool  # whether P was passed
    left_out: dict[str, int]  # reason -> rows

    @property
    def total(self) -> float:
        """Σs: the rows of the traffic."""
        return float(self.mean[0] * self.units)


def sums(made: Mapping[str, Contributions]) -> Sums:
    """The sums of one part of a log: name -> contributions, all of the same rows.

    With cluster=, all rows of a cluster must be in one part: only then are its sums those of the whole log.
    """
    if not made:
        raise ValueError("sums needs the contributions of at least one policy")
    parts = list(made.values())
    first = parts[0].log
    for name, part in made.items():
        if part.n != parts[0].n or not np.array_equal(part.log.r, first.r):
            raise ValueError(f"all contributions must be of the same rows, in one order: {name!r} is of others")
        if (part.log.s is None) != (first.s is None) or not np.array_equal(_s(part), _s(parts[0])):
            raise ValueError(f"all contributions must have the same weight=: {name!r} has another")
    units = _rows(parts)
    if first.group is not None:
        units = np.stack([grouped(row, first.group) for row in units])
    mean = np.mean(units, axis=1)
    units -= mean[:, None]
    slips = np.zeros((3 * len(parts), 3 * len(parts)))
    if any(part.errors is not None for part in parts):
        each = [np.zeros((3, parts[0].n)) if part.errors is None else part.errors.T for part in parts]
        table = np.concatenate(each) * _s(parts[0])
        slips = table @ table.T
    weights = [_weights(part) for part in parts]
    logs = {id(part.log): part.log for part in parts}  # estimators of one policy share it
    each_log = {key: balance.of(log.w, log.p, log.s, log.limit) for key, log in logs.items()}
    balanced = tuple(each_log[id(part.log)] for part in parts)
    largest = np.array([np.max(part.log.w) for part in parts])
    ends = [intervals.seen(part.log)[1:3] for part in parts]
    return Sums(
        tuple(made), tuple(part.method for part in parts), tuple(part.bounded for part in parts),
        tuple(part.ddof for part in parts), parts[0].n, units.shape[1], mean, units @ units.T, slips,
        np.array(weights), largest, balanced, intervals.seen(first).rows, np.array(ends),
        KINDS[max(KINDS.index(part.log.kind) for part in parts)],
        first.group is not None, first.gap is not None, dict(first.left_out),
    )  # fmt: skip


def _s(part: Contributions) -> Any:
    return 1.0 if part.log.s is None else part.log.s


def _weights(part: Contributions) -> list[float]:
    """A row of `Sums.weights`."""
    s, w = _s(part), part.log.w
    carried = s * w
    return [float(carried @ carried), float(carried @ w), float(np.sum(s * certain_gap(part.log)))]


def _rows(parts: list[Contributions]) -> np.ndarray:
    """The columns of `Sums`, each one row: (C, n). Written along the rows, which takes a third of the time."""
    made = np.empty((1 + PER * len(parts), parts[0].n))
    made[0] = 1.0
    for j, part in enumerate(parts):
        given = (part.b, part.u, part.v, part.log.w)
        for k, (column, constant) in enumerate(zip(given, (0.0, 0.0, 1.0, 0.0), strict=True)):
            made[1 + PER * j + k] = constant if column is None else column
    if parts[0].log.s is not None:
        made *= parts[0].log.s
    return made


def merge(a: Sums, b: Sums) -> Sums:
    """The sums of two parts of a log together. Order does not matter but for rounding."""
    if (a.names, a.methods, a.bounded, a.clustered, a.known) != (b.names, b.methods, b.bounded, b.clustered, b.known):
        raise ValueError(
            f"sums must be of the same policies and estimators: got {a.names} {a.methods} and {b.names} {b.methods}"
        )
    units = a.units + b.units
    gap, share = b.mean - a.mean, b.units / units
    reasons = a.left_out.keys() | b.left_out.keys()
    return a._replace(
        n=a.n + b.n,
        units=units,
        mean=a.mean + share * gap,
        squares=a.squares + b.squares + np.outer(gap, gap) * (a.units * share),
        errors=a.errors + b.errors,
        weights=a.weights + b.weights,
        largest=np.maximum(a.largest, b.largest),
        balance=tuple(balance.merge(x, y) for x, y in zip(a.balance, b.balance, strict=True)),
        rows=(min(a.rows[0], b.rows[0]), max(a.rows[1], b.rows[1])),
        ends=np.stack([np.minimum(a.ends[:, 0], b.ends[:, 0]), np.maximum(a.ends[:, 1], b.ends[:, 1])], axis=1),
        kind=KINDS[max(KINDS.index(a.kind), KINDS.index(b.kind))],
        left_out={reason: a.left_out.get(reason, 0) + b.left_out.get(reason, 0) for reason in sorted(reasons)},
    )


def estimates(
    s: Sums, *, interval: str = "normal", level: float = 0.95, warn: bool = True, **bounds: Any
) -> dict[str, Estimate]:
    """name -> estimate: value and se as of the whole log in memory.

    interval : "normal", "asymptotic" (narrowest=) or "bernstein" (reward_range=, weight_max=, row_weight_max=); the
        others need the rows
    """
    errors.within("level", level, 1e-6, 1 - 1e-6)
    if interval not in ("normal", "asymptotic", "bernstein"):
        raise ValueError(
            f"interval must be 'normal' or 'bernstein' (or 'asymptotic') where only sums are known, got {interval!r}"
        )
    values, one, found = _values(s), np.eye(len(s.names)), {}
    for j, name in enumerate(s.names):
        value, se = float(values[j]), _se(s, one[j], s.ddof[j])
        ends = intervals.about(value, se, level)
        if interval == "asymptotic":
            ends = intervals.about_always(value, se, s.units, level, bounds.get("narrowest", intervals.NARROWEST))
        if interval == "bernstein":
            ends = bernstein(s, j, level, bounds)
        health = _health(s, j, bounds.get("weight_max"))
        found[name] = Estimate(
            value=value, se=se, interval=ends, n=s.n, **health, level=level, method=s.methods[j],
            interval_method=interval, kind=s.kind, left_out=dict(s.left_out), notes=(), contributions=None,
        )  # fmt: skip
        if warn:
            said = diagnostics.complaints(found[name], known=s.known, certain=certain(s, j))
            for category, message in said or diagnostics.quiet(found[name]):
                warnings.warn(f"{name}: {message}", category, stacklevel=2)
    return found


def differences(s: Sums, base: str, *, level: float = 0.95) -> dict[str, Difference]:
    """name -> value less that of `base`, with the error of the paired difference."""
    if base not in s.names:
        raise errors.unknown("policy", base, known=s.names)
    errors.within("level", level, 1e-6, 1 - 1e-6)
    values, k, found = _values(s), s.names.index(base), {}
    for j, name in enumerate(s.names):
        if j != k:
            c = np.zeros(len(s.names))
            c[j], c[k] = 1.0, -1.0
            se = _se(s, c, max(s.ddof[j], s.ddof[k]))
            found[name] = difference_of(float(values[j] - values[k]), se, level=level, n=s.n)
    return found


def _factor(units: int, ddof: int) -> float:
    return units / (units - ddof) if units > 1 else np.nan  # one unit has no spread


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
    c = _coefficients(s)
    J = len(s.names)
    picked = np.zeros((J, 3 * J))
    for j in range(J):
        picked[j, 3 * j : 3 * j + 3] = c[j, 1 + PER * j : 4 + PER * j]
    return picked @ s.errors @ picked.T


def _covariance(s: Sums) -> np.ndarray:
    """Σψψ'/n² of the policies, (J, J): without the factors of the divisor and without the errors of p."""
    c = _coefficients(s)
    return c @ s.squares @ c.T / s.total**2


def _se(s: Sums, c: np.ndarray, ddof: int) -> float:
    """Standard error of Σ_j c_j V̂_j, c (J,). Of the policies in it alone: 0 × NaN is NaN, and a ratio may be one."""
    used = np.flatnonzero(c)
    c, block = c[used], np.ix_(used, used)
    spread = max(float(c @ _covariance(s)[block] @ c), 0.0) * _factor(s.units, ddof)
    return float(np.sqrt(spread + float(c @ _slips(s)[block] @ c) / s.total**2))


def certain(s: Sums, j: int) -> float:
    """The mass of policy j on arms that could not be shown, as far as p and P tell it."""
    return float(s.weights[j, 2]) / s.total


def _health(s: Sums, j: int, limit: float | None) -> dict[str, float]:
    w, (squares, spread, _) = float(_of(s, j)[3]), s.weights[j]
    known = None if limit is None else max(limit, float(s.largest[j]))
    return {
        "ess": float((w * s.total) ** 2 / squares) if squares else 0.0,
        "weight_mean": w,
        "weight_max": float(s.largest[j]),
        "weight_sd": float(np.sqrt(max(spread / s.total - w * w, 0.0))),
        "unsupported": diagnostics.unsupported(w, certain(s, j), known=s.known),
        "weight_test": balance.p_value(s.balance[j], limit=known),
        "support_test": balance.support(s.balance[j]),
        "drift": float("nan"),
    }


def bernstein(s: Sums, j: int, level: float, bounds: dict[str, Any]) -> tuple[float, float]:
    """The empirical Bernstein interval of policy j (`intervals.bernstein_ends`)."""
    seen = intervals.Seen(float(s.largest[j]), float(s.ends[j, 0]), float(s.ends[j, 1]), s.clustered, s.rows)
    ends, (mean, spread) = intervals.limits(s.bounded[j], seen, "bernstein", bounds), moments(s, j)
    more = intervals.about(0.0, float(np.sqrt(_slips(s)[j, j])) / s.total, level)[1]
    most = intervals.row_limit(seen, "bernstein", bounds)
    return intervals.bernstein_ends(mean, spread, s.n, most, ends, level, more=more)


def moments(s: Sums, j: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean (2,) and covariance (2, 2), divisor n - 1, of s and s b over the rows."""
    pick = [0, 1 + PER * j]
    return s.mean[pick], s.squares[np.ix_(pick, pick)] / max(s.n - 1, 1)
