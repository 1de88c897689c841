"""Optimism: a bonus without chance.

UCB      s_i = m_i + β w_i
    radius="constant"   β = √Λ S + R √(d log((1 + T/Λ)/δ)), ‖x‖ <= 1, δ = 1/T                     `theory.ucb`
    radius="oful"       β_t = √λ S + R √(2 log(1/δ) + log(det V/det λI))                  `theory.self_normalised`
    radius="ucb-glm"    β = (R/κ) √((d/2) log(1 + 2T/d) + log(1/δ))                              `theory.ucb_glm`
    radius="d-linucb"   β_t = √λ S + R √(2 log(1/δ) + log(det Ṽ/det λI)), ‖x‖ in V⁻¹ṼV⁻¹     `theory.self_normalised`
    radius="ofuglb"     β_t = √(2 (1 + S M_μ)(1 + W_t²)), L_t = (1 + S/2)(t - 1) for logit        `theory.ofuglb_e`
GLMUCB   s_i = μ(m_i) + ρ ‖x_i‖ in the norm of V⁻¹, the bonus outside μ                          `theory.glm_ucb`

LinUCB = OFUL (Abbasi-Yadkori, Pál, Szepesvári 2011) is UCB with the first or the second radius. UCB-GLM (Li, Lu,
Zhou 2017) has the third, and widths in V = λI + Σ xx' (gram=True). OFUGLB-e (Lee, Yun, Jun 2024) has the last. D-LinUCB
(Russac, Vernade, Cappé 2019, Theorem 1) has the fourth, for a model with a discount: Ṽ = λI + Σ ω² xx', where V has ω.

Where a model forgets, T beside Λ or d, and t in L_t, are the sum of what so many observations count. A set then holds
with probability 1 - δ in each round, and not in all rounds at once. docs/drift.md says what holds of the widths.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from dither import theory
from dither.base import errors
from dither.base.arrays import Array
from dither.models.model import link
from dither.policies import scale, views

Radius = Literal["constant", "oful", "ucb-glm", "d-linucb", "ofuglb"]
RADII = get_args(Radius)


@dataclass(frozen=True)
class UCB:
    """On any model with `mean` and `width` (with `logdet` and `lam` for "oful", `lipschitz` for "ofuglb").

    With gram=True it asks for `gram_width` besides, with "d-linucb" for `noise_width` and `noise_logdet`.
    """

    beta: float | None = None  # β; None: the radius below
    radius: Radius = "constant"
    sigma: scale.Sigma = 1.0  # R, sd of the reward noise; "auto", beside a beta: found (policies/scale.py)
    S: float | None = 1.0  # bound on ‖θ*‖; None: √d
    horizon: int | None = None  # T; None: t
    Lam: float = 1.0  # Λ in β
    sigma_again: bool = False  # σ w in place of w: the code that the curves follow counts σ twice (preset as_run)
    kappa: float = 0.25  # κ of "ucb-glm", the least μ'
    gram: bool = False  # widths in the norm of V⁻¹, where the model's own have another matrix

    def __post_init__(self) -> None:
        check(self)

    @property
    def needs(self) -> frozenset[str]:
        """What it asks of a model."""
        return needs(self)

    draw = views.nothing

    def rule(self, model, state, *, t: int, d: int) -> views.LineRule:
        """The scale β of the widths."""
        return views.LineRule(radius(self, model, state, t, d=model.ambient(d)), norm(self), score="optimistic")

    def view(self, model, state, X: Array, *, t: int) -> views.Scores:
        """The scores m + β w (..., K)."""
        return views.of_rule(self.rule(model, state, t=t, d=X.shape[-1]), model, state, X)


@dataclass(frozen=True)
class GLMUCB:
    """GLM-UCB (Filippi, Cappé, Garivier, Szepesvári 2010), on any model with `predict` and `gram_width`."""

    rho: float | None = None  # ρ; None: the one of the formula
    k_mu: float = 0.25  # Lipschitz constant of μ
    c_mu: float = 0.25  # least slope of μ; own paper: of |η| <= S
    R: float = 1.0  # the largest reward
    horizon: int | None = None  # T; None: t
    needs = frozenset({"predict", "gram_width"})
    draw = views.nothing

    def __post_init__(self) -> None:
        if self.rho is not None:
            errors.within("rho", self.rho, 0, errors.LARGEST)
        for name in ("k_mu", "c_mu", "R"):
            errors.positive(name, getattr(self, name))
        errors.at_least("horizon", self.horizon, 1, or_none=True)

    def view(self, model, state, X: Array, *, t: int) -> views.Scores:
        """The scores μ(m) + ρ w (..., K)."""
        d, T = model.ambient(X.shape[-1]), self.horizon or t
        rho = self.rho
        if rho is None:
            rho = theory.glm_ucb(T, d=d, delta=1 / T, k_mu=self.k_mu, c_mu=self.c_mu, R=self.R)
        bonus = views.times(rho, model.gram_width(state, X))
        s = model.predict(state, X) + bonus
        return views.of_rewards(model, state, X, s, lambda e, w: self.k_mu * e.rho * w + e.omega * bonus)


def check(policy: Any) -> None:
    """Refuse settings of UCB or RandUCB that make no sense."""
    errors.among("radius", policy.radius, RADII)
    if policy.beta is not None:
        errors.within("beta", policy.beta, 0, errors.LARGEST)
    scale.sigma(policy, theorem=None if policy.beta is not None else f"radius={policy.radius!r}", instead="beta=1.0")
    if scale.finds(policy) and (policy.gram or policy.radius == "d-linucb" or policy.sigma_again):
        raise ValueError(
            "sigma='auto' gives widths of its own: leave gram=True, radius='d-linucb' and sigma_again=True out, or "
            "give sigma a number"
        )
    for name, number in (("Lam", policy.Lam), ("S", policy.S), ("kappa", policy.kappa)):
        if number is not None:
            errors.positive(name, number)
    errors.at_least("horizon", policy.horizon, 1, or_none=True)
    if policy.gram and policy.radius == "d-linucb":
        raise ValueError("radius='d-linucb' has a width of its own: leave gram=True out, or take another radius")


def needs(policy: Any) -> frozenset[str]:
    """What UCB or RandUCB asks of a model."""
    of_radius = {
        "oful": {"logdet", "lam"},
        "d-linucb": {"logdet", "noise_logdet", "lam"},
        "ofuglb": {"lipschitz"},
    }.get(policy.radius, set())
    more = of_radius if policy.beta is None else set()
    return frozenset({"mean", "width", norm(policy)} | more)


def norm(policy: Any) -> str:
    """The ability that gives the widths of UCB or RandUCB."""
    if scale.finds(policy):
        return scale.width(policy)
    if policy.radius == "d-linucb":
        return "noise_width"
    return "gram_width" if policy.gram else "width"


def radius(policy: Any, model: Any, state: Any, t: int, *, d: int) -> Any:
    """β of UCB or RandUCB: a number, or an array (...) where it depends on the data. d is the dimension of θ."""
    twice = policy.sigma if policy.sigma_again else 1.0
    if policy.beta is not None:
        return policy.beta * twice
    T = policy.horizon or t
    S = math.sqrt(d) if policy.S is None else policy.S
    if policy.radius == "constant":
        return theory.ucb(model.seen(T), d=d, lam=policy.Lam, S=S, R=policy.sigma, delta=1 / T) * twice
    if policy.radius == "ucb-glm":
        return theory.ucb_glm(model.seen(T), d=d, sigma=policy.sigma, kappa=policy.kappa, delta=1 / T) * twice
    if policy.radius == "ofuglb":
        W = likelihood_radius(model, state, t, d=d, S=S, T=T)
        return theory.ofuglb_e(W, S=S, M=link(model).concordance(S)) * twice
    logdet = model.logdet(state) if policy.radius == "oful" else model.noise_logdet(state)
    return theory.self_normalised(logdet, lam=model.lam_of(state), S=S, R=policy.sigma, delta=1 / T) * twice


def likelihood_radius(model: Any, state: Any, t: int, *, d: int, S: float, T: int) -> Any:
    """W_t of OFUGLB, where the loss may exceed its least value by W_t² at level 1/T: a number or (...)."""
    logit = link(model).name == "logit"
    L = (1 + S / 2) * model.seen(t - 1) if logit else model.lipschitz(state, S)
    return theory.W(t, d=d, S=S, L=L, delta=1 / T)
