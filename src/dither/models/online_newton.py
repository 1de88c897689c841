"""The model of GLOC (Jun, Bhargava, Nowak, Willett 2017): an online learner, and a ridge regression on what it said.

    z_s = x_s'θ_s,  g_s = μ(z_s) - r_s,   θ_{s+1} = Proj(θ_s - (g_s/κ) V̄_s⁻¹ x_s),   V̄_s = λI + Σ_{q<=s} x_q x_q'
    B = 2κS²λ + (1/2κ) Σ g_s² ‖x_s‖²_{V̄_s⁻¹}                              bounds the regret of the learner
    θ̄ = V̄⁻¹ Σ z_s x_s,   ‖θ* - θ̄‖²_{V̄} <= β with probability 1 - δ        `theory.gloc_beta`

θ_1 = 0, Proj goes to ‖θ‖ <= S in the norm of V̄_s, and κ is the least μ' for |η| <= S. No history is kept: one
observation takes O(d²) time, or O(d³) where the step leaves the ball, and memory is constant. Its paper has the matrix
εI + Σ xx' in the learner; here ε is λ, so that one matrix serves both.

Why B: with u = θ_s - θ*, a projection brings the learner no farther from θ*, so 2 g_s x_s'u <= κ‖u‖²_{V̄_s} -
κ‖θ_{s+1} - θ*‖²_{V̄_s} + g_s² ‖x_s‖²_{V̄_s⁻¹}/κ. Summed over s, the norms leave κ (x_s'u)² for each s, which the
κ-convex loss gives back, and κλ‖θ_1 - θ*‖². The paper bounds that by 4κλS², for any θ_1 in the ball.
"""

from dataclasses import dataclass
from typing import NamedTuple

from dither import links, theory
from dither.base import arrays, errors
from dither.base.arrays import Array
from dither.models.linear_model import LinkedModel, penalty
from dither.models.ridge import Ridge, RidgeState

CLOSE = 1e-12  # of a length to S, relative, where the projection is done
STEPS = 100  # of Newton's method that a projection may take; it took 8 at most


class OnlineNewtonState(NamedTuple):
    """What is known: shapes (...) are replications, none for one bandit."""

    ridge: RidgeState  # V̄ and θ̄, which were learnt from z_s in place of rewards
    learner: Array  # (..., d)  θ_s of the online learner, ‖θ_s‖ <= S
    paid: Array  # (...)  (1/2κ) Σ g² ‖x‖²_{V̄⁻¹}
    misfit: Array  # (...)  ‖z‖² - θ̄'X'z, the least value of ‖Xθ - z‖² + λ‖θ‖²

    @property
    def theta(self) -> Array:
        """θ̄, the centre of the confidence set: (..., d)."""
        return self.ridge.theta

    @property
    def F(self) -> Array:
        """V̄⁻¹ = FF': (..., d, d)."""
        return self.ridge.F

    @property
    def lost(self) -> Array:
        """What rounding has done, given the z_s as they were computed: (..., 5 + 4d), as of `digits`."""
        return self.ridge.lost


@dataclass(frozen=True)
class OnlineNewton(LinkedModel):
    """For X (..., K, d) shared by all arms, with ‖x‖ <= 1: for longer x, pass the κ of |η| <= S max‖x‖.

    A weight is one of the loss, in one step. The radius holds for weights up to 1.
    """

    link: links.Name = "logit"
    lam: float = 1.0  # λ; feature²
    S: float = 1.0  # bound on ‖θ*‖
    kappa: float | None = None  # κ, the least μ'; None: that of |η| <= S
    R: float = 0.5  # the noise of a reward is R-sub-Gaussian; ½ for rewards in [0, 1]

    def __post_init__(self) -> None:
        links.find(self.link)
        penalty("lam", self.lam)
        for name in ("S", "R"):
            errors.positive(name, getattr(self, name))
        if self.kappa is not None:
            errors.positive("kappa", self.kappa)
        errors.within(f"kappa, for link={self.link!r} and S={self.S:g},", self.slope, 1e-50, 1e50)

    @property
    def slope(self) -> float:
        """κ."""
        return self.function.kappa(self.S) if self.kappa is None else self.kappa

    @property
    def regression(self) -> Ridge:
        """What θ̄ and V̄ are learnt by."""
        return Ridge(self.lam)

    def check(self, state: OnlineNewtonState) -> None:
        """Refuse a state that no data can lead to, as of a file that something else wrote."""
        self.regression.check(state.ridge)
        xp = arrays.namespace(state.paid)
        if float(xp.min(state.paid)) < 0 or float(xp.min(state.misfit)) < 0:
            raise ValueError("its paid and misfit are sums of squares, and one of them is below 0")
        if float(xp.max(arrays.norms(state.learner))) > self.S * (1 + 1e-9):
            raise ValueError(f"its learner is longer than S={self.S:g}")

    def init(self, dim: int, *, batch=(), needs=frozenset(), xp=arrays.NUMPY, device=None) -> OnlineNewtonState:
        """V̄ = λI, θ̄ = θ_1 = 0, with leading axes `batch`."""
        ridge = self.regression.init(dim, batch=batch, xp=xp, device=device)
        paid, misfit = (xp.zeros(batch, dtype=xp.float64, device=device) for _ in range(2))
        return OnlineNewtonState(ridge, xp.zeros_like(ridge.theta), paid, misfit)

    def update(self, state: OnlineNewtonState, x: Array, r: Array, *, weight: Array | None = None) -> OnlineNewtonState:
        """One more observation: x (..., d), r (...), weight (...) (a weight of 0 changes nothing)."""
        ridge, learner, paid, misfit = state
        p = arrays.dot(ridge.F.mT, x)
        q, z = arrays.inner(p, p), arrays.inner(x, learner)
        g, e, omega = self.function.mu(z) - r, z - arrays.inner(x, ridge.theta), 1.0 if weight is None else weight
        s = 1 + omega * q  # V̄⁻¹x becomes V̄⁻¹x/s, and ‖x‖² in its norm q/s
        step = omega * g / (self.slope * s)
        ridge = self.regression.update(ridge, x, z, weight=weight)
        moved = learner - step[..., None] * arrays.dot(state.ridge.F, p)
        paid = paid + omega * g * step * q / 2
        return OnlineNewtonState(ridge, projected(moved, ridge.F, S=self.S), paid, misfit + omega * e * e / s)

    def radius(self, state: OnlineNewtonState, *, delta: float) -> Array:
        """√β, (..., 1): with probability 1 - δ, |x'(θ* - θ̄)| is at most this times the width, in all rounds."""
        B = 2 * self.slope * self.S**2 * self.lam + state.paid
        beta = theory.gloc_beta(B, state.misfit, kappa=self.slope, lam=self.lam, S=self.S, R=self.R, delta=delta)
        return arrays.namespace(state.paid).sqrt(beta)[..., None]


def projected(theta: Array, F: Array, *, S: float) -> Array:
    """argmin over ‖v‖ <= S of ‖v - θ‖ in the norm of A, A⁻¹ = FF': θ (..., d), F (..., d, d) -> (..., d).

    v = (A + νI)⁻¹ A θ with the ν >= 0 that makes ‖v‖ = S. From ν = 0, Newton's method on 1/‖v‖ - 1/S comes nearer to
    that ν from below in every step, as in trust regions (Moré, Sorensen 1983).
    """
    xp = arrays.namespace(theta)
    length = arrays.norms(theta)
    if not arrays.some(length > S):
        return theta
    U, f, _ = xp.linalg.svd(F, full_matrices=False)
    inverse = f * f  # the eigenvalues of A⁻¹
    c = arrays.dot(U.mT, theta)
    nu = xp.zeros_like(length)
    for _ in range(STEPS):
        shrunk = 1 / (1 + nu[..., None] * inverse)
        v = c * shrunk
        norm = arrays.norms(v)
        far = norm > S * (1 + CLOSE)
        if not arrays.some(far):
            break
        slope = xp.sum(v * v * inverse * shrunk, axis=-1)  # -‖v‖ d‖v‖/dν
        nu = xp.where(far, nu + norm * norm * (norm / S - 1) / xp.where(far, slope, 1.0), nu)
    v = arrays.dot(U, v) * (S / xp.where(norm > S, norm, S))[..., None]
    return xp.where((length > S)[..., None], v, theta)
