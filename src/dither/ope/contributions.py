"""What each row adds to an estimate: the one form that all estimators share.

    V̂ = mean(b) + Σsu/Σsv,  mean(b) = Σsb/Σs         a mean (u = 0, v = 1), a ratio (b = 0), or both
    ψ_i = s_i/s̄ (b_i - mean(b) + (u_i - ρ v_i)/mean(v))   the linearised contribution, ρ = Σsu/Σsv; Σψ = 0
    se² = Σ_g (Σ_{i in g} ψ_i)²/n²                    g a row or a cluster; for means times G/(G-1), G their number
    e_i = n ∂V̂/∂p_i · se(p_i)                        what a Monte Carlo p adds: se² + Σe²/n²

s_i is how many rows of the traffic row i stands for, s̄ its mean: every estimate is over the traffic, divides by Σs, and
is a ratio where the s_i differ. A factor common to all s cancels. Where all are 1 a mean is a plain mean.

The ratio's se is the delta method's (divisor n, as is usual for a linearised error). Where p comes from independent
draws for each row, their error is part of the spread of ψ already; adding e² is on the safe side.
"""

from dataclasses import dataclass, field

import numpy as np

from dither.ope.rows import Log

CERTAIN = 1e-9  # 1 - p below which no other arm could be shown


@dataclass(frozen=True)
class Bounded:
    """How the weights and rewards bound b, for intervals that need it: low <= b <= high.

    form : "weighted" (w r), "residual" (m + w (r - m)), "model" (m), or "ratio", which has no such bound
    """

    form: str
    weight: float | None = None  # the largest that the weight used can be; None: only the caller knows

    def limits(self, weight: float, low: float, high: float) -> tuple[float, float]:
        """The bounds of b for weights in [0, weight] and rewards and predictions in [low, high]."""
        if self.form == "weighted":
            return min(0.0, weight * low), max(0.0, weight * high)
        width = max(weight * (high - low), 0.0)
        return (low - width, high + width) if self.form == "residual" else (low, high)


@dataclass(frozen=True)
class Contributions:
    """The rows of one estimate, before they are summed."""

    method: str
    log: Log = field(repr=False)
    b: np.ndarray | None = field(repr=False)  # (n,) None: 0
    u: np.ndarray | None = field(repr=False)  # (n,) None: 0, with v = 1
    v: np.ndarray | None = field(repr=False)  # (n,)
    errors: np.ndarray | None = field(repr=False)  # (n, 3) what the errors of p do to b, u, v; None: p is exact
    bounded: Bounded
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """The rows used."""
        return len(self.log.r)

    @property
    def ddof(self) -> int:
        """1 for means, 0 for ratios."""
        return 1 if self.u is None else 0

    def columns(self) -> np.ndarray:
        """s b, s u, s v and s side by side, (n, 4)."""
        made = np.empty((self.n, 4))
        for k, x in enumerate((0.0 if self.b is None else self.b, 0.0 if self.u is None else self.u,
                               1.0 if self.v is None else self.v, 1.0)):  # fmt: skip
            made[:, k] = x
        return made if self.log.s is None else made * self.log.s[:, None]

    @property
    def error(self) -> np.ndarray | None:
        """e (n,), but for its sign; None where p is exact."""
        if self.errors is None:
            return None
        slip, share = self.errors[:, 0], self.log.share
        if self.u is not None and self.v is not None:
            mean = self.log.mean(self.v)
            rho = ratio(self.log.mean(self.u), mean)
            slip = slip + (self.errors[:, 1] - rho * self.errors[:, 2]) * ratio(1.0, mean)
        return share * slip

    def value(self) -> float:
        """V̂; NaN where all weights of a ratio are 0."""
        value = 0.0 if self.b is None else self.log.mean(self.b)
        if self.u is None or self.v is None:
            return value
        return value + ratio(self.log.mean(self.u), self.log.mean(self.v))

    def influence(self) -> np.ndarray:
        """ψ (n,)."""
        psi = np.zeros(self.n) if self.b is None else self.b - self.log.mean(self.b)
        if self.u is not None and self.v is not None:
            mean = self.log.mean(self.v)
            if mean == 0:
                return np.full(self.n, np.nan)
            psi = psi + (self.u - self.log.mean(self.u) / mean * self.v) / mean
        return self.log.share * psi


def ratio(top: float, bottom: float) -> float:
    """top/bottom; NaN for 0/0."""
    return top / bottom if bottom else np.nan


def grouped(x: np.ndarray, group: np.ndarray | None) -> np.ndarray:
    """Sums of x (n,) or (n, C) over the clusters; x itself where each row stands alone."""
    if group is None:
        return x
    if x.ndim == 1:
        return np.bincount(group, weights=x)
    return np.stack([np.bincount(group, weights=column) for column in x.T], axis=1)


def certain_gap(log: Log) -> np.ndarray:
    """The mass of Q on arms that could not be shown (n,): from P, else 1 - q where p = 1, all that p alone says."""
    if log.gap is not None:
        return log.gap
    return np.where(1 - log.p <= CERTAIN, np.maximum(1 - log.w * log.p, 0.0), 0.0)


def standard_error(psi: np.ndarray, log: Log, error: np.ndarray | None, *, ddof: int) -> float:
    """se of the mean of ψ (n,), by clusters where there are any, widened by e (n,); NaN for one unit."""
    n, sums = len(psi), grouped(psi, log.group)
    if len(sums) < 2:
        return float("nan")
    variance = float(sums @ sums) * len(sums) / (len(sums) - ddof) / n**2
    if error is not None:
        variance += float(error @ error) / n**2
    return float(np.sqrt(variance))
