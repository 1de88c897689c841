"""What each row adds to an estimate, and the table of the estimators that say it.

    V̂ = mean(b) + Σsu/Σsv,  mean(b) = Σsb/Σs         a mean (u = 0, v = 1), a ratio (b = 0), or both
    ψ_i = s_i/s̄ (b_i - mean(b) + (u_i - ρ v_i)/mean(v))   the linearised contribution, ρ = Σsu/Σsv; Σψ = 0
    se² = Σ_g (Σ_{i in g} ψ_i)²/n²                    g a row or a cluster; for means times G/(G-1), G their number
    e_i = n ∂V̂/∂p_i · se(p_i)                        what a Monte Carlo p adds: se² + Σe²/n²

Row i stands for s_i rows of the traffic, and s̄ is the mean of s. Every estimate is over the traffic: it divides by Σs,
so it is a ratio where the s_i differ. A factor common to all s cancels. If all s are 1, a mean is a plain mean.

The se of a ratio is that of the delta method (divisor n, as is usual for a linearised error). Where p comes from
independent draws for each row, the spread of ψ already has their error; to add e² is on the safe side.

`ESTIMATORS` is the table, by name. Each `Estimator` says what it reads. A new estimator is one more line. The formulas
and their sources are in `estimators`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from dither.base import errors
from dither.log.bets import CERTAIN
from dither.log.check import HEAVIEST
from dither.ope.bounded import Bounded, Extremes
from dither.ope.rows import Rows
from dither.ope.weighing import weighed

READS = ("shown", "all arms", "past")


@dataclass(frozen=True)
class Contributions:
    """The rows of one estimate, before they are summed."""

    method: str
    rows: Rows = field(repr=False)
    b: np.ndarray | None = field(repr=False)  # (n,) None: 0
    u: np.ndarray | None = field(repr=False)  # (n,) None: 0, with v = 1
    v: np.ndarray | None = field(repr=False)  # (n,)
    errors: np.ndarray | None = field(repr=False)  # (n, 3) what the errors of p do to b, u, v; None: p is exact
    bounded: Bounded
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """The rows used."""
        return len(self.rows.r)

    @property
    def ddof(self) -> int:
        """1 for means, 0 for ratios."""
        return 1 if self.u is None else 0

    @property
    def of_rewards(self) -> bool:
        """Whether the estimate reads rewards and weights alone, and no reward model."""
        return self.bounded.form == "weighted" or (self.bounded.form == "ratio" and self.b is None)

    @property
    def columns(self) -> tuple[tuple[np.ndarray | None, float], ...]:
        """b, u and v, each with the number that stands for None."""
        return (self.b, 0.0), (self.u, 0.0), (self.v, 1.0)

    @property
    def certain(self) -> float:
        """The mass of Q on arms that could not be shown, as far as p and P say it."""
        return self.rows.mean(certain_gap(self.rows))

    @property
    def error(self) -> np.ndarray | None:
        """e (n,), whose sign has no meaning; None where p is exact."""
        if self.errors is None:
            return None
        slip, share = self.errors[:, 0], self.rows.share
        if self.u is not None and self.v is not None:
            mean = self.rows.mean(self.v)
            rho = ratio(self.rows.mean(self.u), mean)
            slip = slip + (self.errors[:, 1] - rho * self.errors[:, 2]) * ratio(1.0, mean)
        return share * slip

    @property
    def se(self) -> float:
        """The standard error of V̂; NaN for one row or one cluster."""
        return standard_error(self.influence(), self.rows, self.error, ddof=self.ddof)

    def value(self) -> float:
        """V̂; NaN where all weights of a ratio are 0."""
        value = 0.0 if self.b is None else self.rows.mean(self.b)
        if self.u is None or self.v is None:
            return value
        return value + ratio(self.rows.mean(self.u), self.rows.mean(self.v))

    def influence(self) -> np.ndarray:
        """ψ (n,)."""
        psi = np.zeros(self.n) if self.b is None else self.b - self.rows.mean(self.b)
        if self.u is not None and self.v is not None:
            mean = self.rows.mean(self.v)
            if mean == 0:
                return np.full(self.n, np.nan)
            psi = psi + (self.u - self.rows.mean(self.u) / mean * self.v) / mean
        return self.rows.share * psi

    def some(self, which: Any) -> "Contributions":
        """Some of the rows, without clusters, for a value and its error."""
        parts = {name: getattr(self, name) for name in ("b", "u", "v", "errors")}
        chosen: dict[str, Any] = {name: None if x is None else x[which] for name, x in parts.items()}
        return replace(self, rows=self.rows.some(which), **chosen)


def ratio(top: float, bottom: float) -> float:
    """top/bottom; NaN for 0/0."""
    return top / bottom if bottom else np.nan


def grouped(x: np.ndarray, group: np.ndarray | None) -> np.ndarray:
    """Sums of x (n,) or (n, C) over the clusters; x itself where there are no clusters."""
    if group is None:
        return x
    if x.ndim == 1:
        return np.bincount(group, weights=x)
    return np.stack([np.bincount(group, weights=column) for column in x.T], axis=1)


def standard_error(psi: np.ndarray, rows: Rows, error: np.ndarray | None, *, ddof: int) -> float:
    """se of the mean of ψ (n,), by clusters where there are any, widened by e (n,). NaN for one row or one cluster."""
    n, sums = len(psi), grouped(psi, rows.group)
    if len(sums) < 2:
        return float("nan")
    variance = float(sums @ sums) * len(sums) / (len(sums) - ddof) / n**2
    if error is not None:
        variance += float(error @ error) / n**2
    return float(np.sqrt(variance))


def certain_gap(rows: Rows) -> np.ndarray:
    """The mass of Q on arms that could not be shown (n,): from P; without P it is 1 - q where p = 1, else 0."""
    if rows.gap is not None:
        return rows.gap
    return np.where(1 - rows.p <= CERTAIN, np.maximum(1 - rows.w * rows.p, 0.0), 0.0)


def unsupported(mean: float, certain: float, *, has_P: bool) -> float:
    """The mass of the new policy that the log could not show.

    mean : mean of the weights; certain : the part that P, or p = 1, tells (`certain_gap`); has_P : whether P is known,
    which then tells all of it
    """
    return certain if has_P else max(certain, 1.0 - mean, 0.0)


def cusum(psi: np.ndarray) -> float:
    """P-value of the claim that x_1, ..., x_n have one mean. psi (n,) : x less its mean, in order of time. Asymptotic.

    D = max_k |Σ_{i<=k} ψ_i|/(sd √n) tends to the maximum of a Brownian bridge, so P(D > d) is that of Kolmogorov.
    """
    spread = float(np.sqrt(psi @ psi))
    if not spread > 0:
        return 1.0
    return float(special.kolmogorov(np.max(np.abs(np.cumsum(psi))) / spread))


def extremes(rows: Rows) -> Extremes:
    """The least and the largest of what the rows show."""
    parts = [rows.r] if rows.M is None else [rows.r, rows.M]
    low, high = min(float(np.min(x)) for x in parts), max(float(np.max(x)) for x in parts)
    s = (1.0, 1.0) if rows.s is None else (float(np.min(rows.s)), float(np.max(rows.s)))
    return Extremes(float(np.max(rows.w)), low, high, rows.group is not None, s)


@dataclass(frozen=True)
class Estimator:
    """An estimator, and what it reads of a log.

    rows : (rows of the log, setting) -> `Contributions`, unweighted. Weights of rows are applied to what it returns
    reads : "shown" if the estimator needs of Q and M only w, m (of the arm shown) and m̄. A log with these numbers is
        then enough. "all arms" if it looks at other columns of `Rows.Q` or `Rows.M`
    predicts : whether it needs M
    setting : name, lowest and highest value of its setting; None: it has no setting
    """

    rows: Callable[[Rows, Any], Contributions]
    reads: str = "all arms"
    predicts: bool | None = False
    setting: tuple[str, float, float] | None = None

    def __post_init__(self) -> None:
        errors.among("part of a log that an estimator reads", self.reads, READS)

    def __call__(self, rows: Rows, setting: Any) -> Contributions:
        """What each row adds."""
        return self.rows(rows, setting)


def find(method: "str | Estimator | Callable[..., Contributions]") -> Estimator:
    """The estimator itself, or by its name. A plain function counts as reading all arms. Raises LookupError."""
    if isinstance(method, str):
        errors.among("estimator", method, ESTIMATORS)
        method = ESTIMATORS[method]
    return method if isinstance(method, Estimator) else Estimator(method)


class NamedEstimator(NamedTuple):
    """An estimator by its name, with its setting."""

    name: str  # as it was written
    method: str
    setting: float | None

    @classmethod
    def parse(cls, text: str) -> "NamedEstimator":
        """NAME or NAME:SETTING. Raises LookupError for an unknown name, ValueError for a setting out of its range."""
        method, colon, number = text.partition(":")
        rule = find(method).setting
        if rule is None:
            if colon:
                raise ValueError(f"the estimator {method} has no setting, got {text!r}")
            return cls(text, method, None)
        try:
            setting = float(number)
        except ValueError:
            raise ValueError(
                f"the estimator {method} needs its {rule[0]}: write {method}:NUMBER, got {text!r}"
            ) from None
        errors.within(rule[0], setting, *rule[1:])
        return cls(text, method, setting)

    @property
    def rule(self) -> Estimator:
        """The estimator."""
        return find(self.method)


def _left(rows: Rows) -> np.ndarray:
    """r - m (n,)."""
    M: Any = rows.M
    return rows.r - np.take_along_axis(M, rows.a[:, None], axis=1)[:, 0]


def _model(rows: Rows) -> np.ndarray:
    """m̄ (n,)."""
    M: Any = rows.M
    return np.einsum("ij,ij->i", rows.Q, M)


def _relative(rows: Rows) -> np.ndarray | None:
    """se(p)/p, the relative error of a weight."""
    return None if rows.p_se is None else rows.p_se / rows.p


def _mean(form: str, method: str, rows: Rows, weight: np.ndarray, slope: np.ndarray, limit: float | None, *notes: str):
    """A mean: of weight × r (form "weighted"), or of m̄ + weight × (r - m) ("residual"). slope : w ∂weight/∂w (n,)."""
    y, relative = rows.r if form == "weighted" else _left(rows), _relative(rows)
    b = weight * y if form == "weighted" else _model(rows) + weight * y
    errors = None if relative is None else _beside(slope * y * relative)
    return Contributions(method, rows, b, None, None, errors, Bounded(form, limit), notes)


def _normalised(method: str, rows: Rows, b: np.ndarray | None, y: np.ndarray) -> Contributions:
    u, relative = rows.w * y, _relative(rows)
    errors = None if relative is None else _beside(0 * u, u * relative, rows.w * relative)
    return Contributions(method, rows, b, u, rows.w, errors, Bounded("ratio"))


def _beside(b: np.ndarray, u: np.ndarray | None = None, v: np.ndarray | None = None) -> np.ndarray:
    """Three columns side by side, (n, 3). A column that is None is zeros."""
    return np.stack([np.zeros_like(b) if part is None else part for part in (b, u, v)], axis=1)


def _dm(rows: Rows, _) -> Contributions:
    return Contributions("dm", rows, _model(rows), None, None, None, Bounded("model", 0.0))


def _ips(rows: Rows, _) -> Contributions:
    return _mean("weighted", "ips", rows, rows.w, rows.w, None)


def _clipped(rows: Rows, clip: float) -> Contributions:
    cut = rows.w > clip
    note = f"{int(cut.sum())} of {len(cut)} weights clipped at {clip:g}"
    weight, slope = np.minimum(rows.w, clip), np.where(cut, 0.0, rows.w)
    return _mean("weighted", "clipped_ips", rows, weight, slope, clip, note)


def _snips(rows: Rows, _) -> Contributions:
    return _normalised("snips", rows, None, rows.r)


def _sndr(rows: Rows, _) -> Contributions:
    return _normalised("sndr", rows, _model(rows), _left(rows))


def _dr(rows: Rows, _) -> Contributions:
    return _mean("residual", "dr", rows, rows.w, rows.w, None)


def _switch(rows: Rows, tau: float) -> Contributions:
    weight = np.where(rows.w <= tau, rows.w, 0.0)
    note = f"{int(np.sum(rows.w > tau))} of {len(weight)} rows, of weight above {tau:g}, left to the model"
    return _mean("residual", "switch_dr", rows, weight, weight, tau, note)


def _dros(rows: Rows, lam: float) -> Contributions:
    square = rows.w * rows.w
    total = np.where(square + lam > 0, square + lam, 1.0)
    weight = lam * rows.w / total
    slope = weight * (lam - square) / total
    return _mean("residual", "dros", rows, weight, slope, np.sqrt(lam) / 2, f"lam={lam:g}")


def _sgdr(rows: Rows, lam: float) -> Contributions:
    total = 1 - lam + lam * rows.w
    total = np.where(total > 0, total, 1.0)
    weight = rows.w / total
    limit = 1 / lam if lam else None
    return _mean("residual", "sgdr", rows, weight, weight * (1 - lam) / total, limit, f"lam={lam:g}")


def stabilised(weights: str, rows: Rows, batches: tuple[np.ndarray, np.ndarray] | None = None) -> Contributions:
    """The terms of IPS, or of DR where there are predictions, weighted by what the past says (`weighing.weighed`)."""
    if rows.P is None or rows.kind != "exact":
        raise errors.Refused(
            f"{weights} is for the log of a policy that learns, and needs its exact probabilities of all arms in every "
            "row: pass ", errors.Option("P"), ", log with probabilities=True, or take ips",
        )  # fmt: skip
    D: Any = (_ips if rows.M is None else _dr)(rows, None).b
    order = slice(None) if rows.order is None else rows.order
    h = np.empty(len(D))
    h[order] = weighed(rows._replace(Q=rows.Q[order], P=rows.P[order]), D[order], weights, batches)
    return Contributions(weights, rows, None, h * D, h, None, Bounded("ratio"))


ESTIMATORS: dict[str, Estimator] = {
    "dm": Estimator(_dm, "shown", predicts=True),
    "ips": Estimator(_ips, "shown"),
    "clipped_ips": Estimator(_clipped, "shown", setting=("clip", 1e-300, HEAVIEST)),
    "snips": Estimator(_snips, "shown"),
    "dr": Estimator(_dr, "shown", predicts=True),
    "sndr": Estimator(_sndr, "shown", predicts=True),
    "switch_dr": Estimator(_switch, "shown", predicts=True, setting=("tau", 0, HEAVIEST)),
    "dros": Estimator(_dros, "shown", predicts=True, setting=("lam", 0, HEAVIEST)),
    "sgdr": Estimator(_sgdr, "shown", predicts=True, setting=("lam", 0, 1)),
    "stablevar": Estimator(partial(stabilised, "stablevar"), "past", predicts=None),
    "minvar": Estimator(partial(stabilised, "minvar"), "past", predicts=None),
}
