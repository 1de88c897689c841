"""The model of Logistic-UCB-2 (Faury, Abeille, Calauzènes, Fercoq 2020): an estimate that is kept admissible.

    θ̂_t = argmin Σ [g(x'θ) - r x'θ] + λ_t‖θ‖²/2,   g_t(θ) = Σ μ(x'θ) x + λ_t θ,   H_t(θ) = Σ μ'(x'θ) xx' + λ_t I
    θ_t = argmin over W_t of ‖g_t(θ) - g_t(θ̂_t)‖ in the norm of H_t⁻¹(θ);   it is θ̂_t wherever that lies in W_t
    W_t = {‖θ‖ <= S, |x_s'θ| <= ℓ_s for s < t},   ℓ_s = |x_s'θ_s| + (2 + 4S) γ_s ‖x_s‖ in the norm of H_s⁻¹(θ_s)
    V_t = Σ xx' + (λ_t/κ) I,   κ the least μ' for |η| <= S,   λ_t = d log t, d at least

The paper's ℓ_s is the largest |x_s'θ| over the confidence set at s. This one is never smaller, so W_t is an outer bound
of theirs: θ* stays in it, and the confidence set with it, but their regret bound was proved for the smaller set. The
problem over W_t is not convex. SciPy's SLSQP solves it from two starts, and what it leaves above γ_t widens the bonus.

Every update reads the history some times, so this is for small problems.
"""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dither import links, theory
from dither.base import arrays, errors
from dither.base.arrays import Array
from dither.models import buffers, digits, factor, history
from dither.models.glm import batched, rounding
from dither.models.glm.batched import Aim, Curvature
from dither.models.glm.objective import Problem
from dither.models.history import History
from dither.models.linear_model import LinearModel, penalty
from dither.models.model import abilities_of

LOGIT = links.LINKS["logit"]
BEND = 1 / (6 * 3**0.5)  # sup |μ''|
TOLERANCE = 1e-10  # of SLSQP, in the square of the gap
LOOSE = TOLERANCE**0.5  # so θ_t, where SLSQP has found it, is off by a share of this in the norm of H


class AdmissibleState(NamedTuple):
    """What is known: shapes (...) are replications, none for one bandit."""

    theta: Array  # (..., d)  θ_t
    F: Array  # (..., d, d)  H_t⁻¹(θ_t) = FF'
    G: Array  # (..., d, d)  V_t⁻¹ = GG'
    estimate: Array  # (..., d)  θ̂_t
    gap: Array  # (...)  ‖g_t(θ_t) - g_t(θ̂_t)‖ in the norm of H_t⁻¹(θ_t); 0 where θ_t is θ̂_t
    error: Array  # (..., 2)  ρ and ω of `digits.Rounding`
    history: History  # the rows learnt from
    buffer: Array  # (..., N)  ℓ_s of each row


@dataclass(frozen=True)
class Admissible(LinearModel):
    """Logistic regression for X (..., K, d) shared by all arms, with ‖x‖ <= 1: for longer x, pass the κ of S max‖x‖."""

    lam: float | None = None  # λ; None: d max(1, log t)
    S: float = 1.0  # bound on ‖θ*‖
    kappa: float | None = None  # κ, the least μ'; None: that of |η| <= S
    M: float = BEND  # bound on |μ''|
    horizon: int | None = None  # T, for δ = 1/T; None: t
    function = LOGIT  # μ and its kin
    support = function.support  # between which the rewards lie
    heaviest = 1e15  # weight that float64 can hold beside those of other observations

    def __post_init__(self) -> None:
        errors.positive("S", self.S)
        errors.positive("M", self.M)
        errors.at_least("horizon", self.horizon, 1, or_none=True)
        for name in ("lam", "kappa"):
            if (value := getattr(self, name)) is not None:
                penalty(name, value)
        errors.within(f"kappa, for S={self.S:g},", self.slope, 1e-50, 1e50)

    @functools.cached_property
    def abilities(self) -> frozenset[str]:
        """What it can tell a policy: no λ, which may depend on t."""
        return abilities_of(type(self)) - {"lam"}

    @property
    def slope(self) -> float:
        """κ."""
        return LOGIT.kappa(self.S) if self.kappa is None else self.kappa

    def check(self, state: AdmissibleState) -> None:
        """Refuse a state that no data can lead to, as of a file that something else wrote."""
        history.check(state.history)
        factor.check(state.F)
        factor.check(state.G, "G")
        if state.buffer.shape != state.history.count.shape:
            raise ValueError("its buffer has not one number for each row of its history")

    def init(self, dim: int, *, batch=(), needs=frozenset(), xp=arrays.NUMPY, device=None) -> AdmissibleState:
        """θ_1 = 0, with leading axes `batch`."""
        zeros = xp.zeros((*batch, dim), dtype=xp.float64, device=device)
        lam, rows = dim if self.lam is None else self.lam, history.init(zeros)
        return AdmissibleState(
            zeros,
            factor.identity(zeros, 1 / lam**0.5),
            factor.identity(zeros, (self.slope / lam) ** 0.5),
            xp.zeros_like(zeros),
            arrays.blank(zeros),
            arrays.blank(zeros, 2),
            rows,
            xp.zeros_like(rows.count),
        )

    def update(self, state: AdmissibleState, x: Array, r: Array, *, weight: Array | None = None) -> AdmissibleState:
        """One more observation: x (..., d), r (...), weight (...) (a weight of 0 changes nothing)."""
        xp = arrays.namespace(x)
        most = xp.abs(arrays.inner(x, state.theta)) + self._radius(state)[0] * arrays.norms(arrays.dot(state.F.mT, x))
        rows = history.append(state.history, x, xp.asarray(r, dtype=xp.float64), weight, distinct=False)
        room = rows.count.shape[-1]
        limits = buffers.grown(state.buffer, room, rank=0) if room > state.buffer.shape[-1] else state.buffer
        limits = arrays.replace(limits, state.history.rows, most, rank=0)
        lam, n = self._lam(rows), history.blocks(int(xp.max(rows.rows)))
        used = History(rows.X[..., :n, :], rows.count[..., :n], rows.total[..., :n], rows.rows)
        solved = _solved(used, state.estimate, lam)
        theta, F, gap = self._admissible(solved[0], solved[1], used, limits[..., :n], lam)
        error = xp.where(gap[..., None] > 0, solved[2] + LOOSE, solved[2])
        V = arrays.gram(used.X, used.count, lam / self.slope)
        return AdmissibleState(theta, F, _inverse_factor(V), solved[0], gap, error, rows, limits)

    def bonus(self, state: AdmissibleState, X: Array) -> Array:
        """What makes μ(x_i'θ_t) an upper bound of μ(x_i'θ*), at level 1 - δ: X (..., K, d) -> (..., K)."""
        slope, (_, gamma) = LOGIT.slopes(self.mean(state, X))[1], self._radius(state)
        w, v, of = self.width(state, X), self.gram_width(state, X), dict(S=self.S, kappa=self.slope, M=self.M)
        return theory.logistic_ucb2_bonus(slope, w, v, gamma=gamma[..., None], gap=state.gap[..., None], **of)

    def gram_width(self, state: AdmissibleState, X: Array) -> Array:
        """‖x_i‖ in the norm of V_t⁻¹, V_t = (λ_t/κ)I + Σ xx': X (..., K, d) -> (..., K)."""
        return arrays.norms(X @ state.G)

    def rounding(self, state: AdmissibleState) -> digits.Rounding:
        """What rounding may have done to means and widths, and SciPy's tolerance where θ_t is not θ̂_t."""
        return digits.shaped(state.error[..., 0], state.error[..., 1])

    def bytes(self, dim: int, rounds: int) -> int:
        """About how much memory one run takes after so many rounds."""
        return 8 * (int(1.5 * rounds) * (dim + 3) + 4 * dim * dim)

    def _lam(self, rows: History) -> Array:
        """λ_t, (...); t is the weight of what was learnt, plus 1."""
        xp, d = arrays.namespace(rows.count), rows.X.shape[-1]
        n = xp.sum(rows.count, axis=-1)
        return xp.zeros_like(n) + self.lam if self.lam is not None else d * xp.clip(xp.log1p(n), min=1.0)

    def _radius(self, state: AdmissibleState) -> tuple[Array, Array]:
        """(1 + 2S)(γ_t + max(γ_t, gap)), which is (2 + 4S)γ_t, and γ_t: (...) each."""
        xp, d = arrays.namespace(state.theta), state.theta.shape[-1]
        t = 1 + xp.sum(state.history.count, axis=-1)
        delta = 1 / t if self.horizon is None else xp.zeros_like(t) + 1 / self.horizon
        gamma = xp.asarray(theory.logistic_ucb2_gamma(t, d=d, lam=self._lam(state.history), S=self.S, delta=delta))
        return (1 + 2 * self.S) * (gamma + xp.maximum(gamma, state.gap)), gamma

    def _admissible(
        self, estimate: Array, F: Array, rows: History, limits: Array, lam: Array
    ) -> tuple[Array, Array, Array]:
        """θ_t, the factor of its H⁻¹, and its gap; estimate (..., d) with factor F, limits (..., n) the ℓ_s."""
        xp = arrays.namespace(estimate)
        inside = xp.all(xp.abs(arrays.dot(rows.X, estimate)) <= limits, axis=-1)
        inside = inside & (arrays.norms(estimate) <= self.S)
        gap = xp.zeros_like(lam)
        if not arrays.some(~inside):
            return estimate, F, gap
        theta, F, gap = (np.array(arrays.numpy(A)) for A in (estimate, F, gap))
        X, count, limit, weight = (arrays.numpy(A) for A in (rows.X, rows.count, limits, lam))
        for run in np.ndindex(theta.shape[:-1]):
            if not bool(inside[run]):
                W = AdmissibleSet(X[run], count[run], float(weight[run]), limit[run], self.S)
                theta[run], F[run], gap[run] = nearest(W, theta[run])
        return tuple(arrays.beside(A, estimate) for A in (theta, F, gap))


class AdmissibleSet(NamedTuple):
    """W_t of one run, and the rows behind it."""

    X: Array  # (n, d)
    count: Array  # (n,)
    lam: float
    limits: Array  # (n,)  ℓ_s
    S: float

    def gap(self, theta: np.ndarray, estimate: np.ndarray) -> float:
        """‖g(θ) - g(θ̂)‖² in the norm of H⁻¹(θ)."""
        z = self.X @ theta
        mu, slope = LOGIT.slopes(z)
        off = (self.count * (mu - LOGIT.mu(self.X @ estimate))) @ self.X + self.lam * (theta - estimate)
        return float(off @ np.linalg.solve(arrays.gram(self.X, self.count * slope, np.float64(self.lam)), off))

    def share(self, theta: np.ndarray) -> float:
        """The largest s <= 1 for which sθ is admissible: W contains 0, and with θ all of the way to it."""
        far = np.abs(self.X @ theta)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(far > self.limits, self.limits / far, 1.0)
        return min(1.0, self.S / max(float(np.linalg.norm(theta)), 1e-300), float(shares.min(initial=1.0)))


def nearest(W: AdmissibleSet, estimate: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """θ_t, the factor of its H⁻¹ and its gap, for one history whose θ̂ (d,) is not in W."""
    from scipy import optimize  # it would double the time of `import dither`, and only this needs it

    X, S = W.X, W.S
    rows = W.limits < S * np.linalg.norm(X, axis=1)  # the ball alone bounds the others
    X, limits = X[rows], W.limits[rows]
    constraints: list[Any] = [{"type": "ineq", "fun": lambda v: S * S - v @ v, "jac": lambda v: -2 * v}]
    if len(X):
        both, ends = np.r_[-X, X], np.r_[limits, limits]
        constraints.append({"type": "ineq", "fun": lambda v: ends + both @ v, "jac": lambda v: both})
    best = W.share(estimate) * estimate
    for start in (best, np.zeros_like(best)):
        point = optimize.minimize(
            W.gap, start, args=(estimate,), constraints=constraints, method="SLSQP", options={"ftol": TOLERANCE}
        ).x
        if np.isfinite(point).all():
            best = min(best, W.share(point) * point, key=lambda v: W.gap(v, estimate))
    slope = LOGIT.slopes(W.X @ best)[1]
    H = arrays.gram(W.X, W.count * slope, np.float64(W.lam))
    return best, _inverse_factor(H), W.gap(best, estimate) ** 0.5


def _solved(rows: History, start: Array, lam: Array) -> tuple[Array, Array, Array]:
    """θ̂ (..., d), a factor of its H⁻¹ (..., d, d), and the errors of rounding (..., 2), by Newton's method."""
    xp, (*lead, n, d) = arrays.namespace(start), rows.X.shape

    def flat(A: Array, *shape: int) -> Array:
        return xp.reshape(A, (-1, *shape))

    X, count = flat(rows.X, n, d), flat(rows.count, n)
    longest = xp.max(arrays.norms(X), axis=-1)
    problem = Problem(LOGIT, X, count, flat(rows.total, n), flat(lam), longest)
    solution = batched.solve(problem, flat(start, d), Aim(xp.full_like(problem.rho, 1e-8)), Curvature())
    diagonal, inverse = xp.vecdot(solution.R.mT, solution.R.mT), xp.vecdot(solution.F, solution.F)
    unit = (d + 4) * digits.SAFETY * digits.UNIT
    rho = 2 * solution.slope + unit * rounding.length(diagonal, solution.theta)
    omega = solution.offset + unit * rounding.spread(diagonal, inverse)
    error = xp.stack([rho, xp.where(omega < digits.MOST, omega, digits.MOST)], axis=-1)
    return xp.reshape(solution.theta, (*lead, d)), xp.reshape(solution.F, (*lead, d, d)), xp.reshape(error, (*lead, 2))


def _inverse_factor(H: Array) -> Array:
    """F with H⁻¹ = FF': (..., d, d). Raises ValueError where float64 cannot hold it."""
    R = arrays.cholesky(H)
    if R is None:
        raise batched.not_found()
    return arrays.namespace(H).linalg.inv(R)
