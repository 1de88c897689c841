"""Generalised linear regression with ridge, and a certificate of how exact it is (paper, Sections 3 and 4).

    θ̂ = argmin Σ ω [g(x'θ) - r x'θ] + (λ/2)‖θ‖²       Ĥ = λI + Σ ω μ'(x'θ̂) xx' = (FF')⁻¹       w_i = ‖x_i‖_{Ĥ⁻¹}

Learning one observation costs O(d²). The objective is replaced by a model of it: each earlier row counts by the
quadratic at the logit ζ where it entered, and the new row counts by its own loss. The new θ is the exact minimiser of
that model, so that nothing diverges on separable starts:

    u = H⁻¹x,  q = x'u,  ζ = x'θ - ωq (μ(ζ) - r),  v = ω μ'(ζ),  θ ← θ + u (ζ - x'θ)/q,  H⁻¹ ← H⁻¹ - v uu'/(1 + v q)

A bound says how far θ may then be from θ̂, without reading the history (`certificate`). The solver says when the
history is read, and so what the bound is kept to:

    "certified"   E <= tol, and |log eigenvalues of H against Ĥ| <= 2 log(1 + tol); below 1,000 rows as "exact"
    "exact"       both at most 1e-8 after every observation, where rounding allows, and mostly 1e-13: O(t d²)
    "counts"      as "exact", for a fixed set of arms: equal rows share a count and a sum, so O(K d²) whatever t is
    "online"      the first 1,024 observations are solved, and the history is never read again: O(d²) and constant
                  memory, for services that live for years; exact for the identity link alone

E bounds ‖θ - θ̂‖ in the norms of H and Ĥ. The scale of exploration, c = 1, is one unit of that norm: every score is
within E w_i of the exact one. `GLM.bound` gives both numbers.
"""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import array_api_compat
import array_api_compat.numpy

from dither import links
from dither.base import arrays, errors
from dither.base.arrays import Array
from dither.models import digits, forgetting, history, statistics
from dither.models.forgetting import Forgetting
from dither.models.glm import certificate, forgotten, lazy, learn, refits, rounding
from dither.models.glm.lazy import Lazy
from dither.models.history import History
from dither.models.one_theta import OneTheta

ABILITIES = frozenset(
    {
        "mean",
        "mean_at",
        "predict",
        "width",
        "gram_width",
        "sample",
        "gram_sample",
        "hessian_sample",
        "scores",
        "flat",
        "lam",
        "lipschitz",
        "bound",
        "rounding",
        "reach",
    }
)
OF_ROWS = frozenset({"gram_width", "gram_sample", "lipschitz"})  # what a model that forgets reads off its rows
SOLVERS = ("certified", "exact", "counts", "online")


class GLMState(NamedTuple):
    """What is known: shapes (...) are replications, none for one bandit."""

    F: Array  # (..., d, d)  Ĥ⁻¹ = FF'
    theta: Array  # (..., d)  θ̂
    G: Array | None  # (..., d, d)  as F, for the Hessian of the objective, where that is not Ĥ (ridge, min_derivative)
    lazy: Lazy  # how exact θ̂ is, and what it takes to know that
    history: History  # the rows learnt from
    extra: statistics.Extra | None  # what a policy asked for besides
    H: Array | None = None  # (..., d, d)  the curvature that F is a factor of, where the rows fade
    now: Array | None = None  # (...)  the time, where there is a clock


@dataclass(frozen=True)
class GLM(Forgetting, OneTheta):
    """For X (..., K, d) shared by all arms.

    link : "logit", "log" (Poisson), "probit" or "identity" (`dither.links`); rewards must lie in its support
    lam : λ; feature²
    solver, tol : as above; tol is in units of one width, from 1e-8 to 1
    min_derivative : Ĥ takes max(μ', this) for μ' (the paper's 0.25 makes it λI + Σ xx'/4 for logit); θ̂ is the same
    constrain : S, for θ̂ over ‖θ‖ <= S; None: over all θ
    ridge : the λ of the objective, where it is another than that of Ĥ
    discount, window, half_life : how older observations count (`models/forgetting.py`); at most one of them is set
    """

    link: str = "logit"
    lam: float = 1e-4
    solver: str = "certified"
    tol: float = 0.05
    min_derivative: float = 0.0
    constrain: float | None = None
    ridge: float | None = None
    discount: float = 1.0
    window: int | None = None
    half_life: float | None = None
    owns = True  # update takes own=
    heaviest = 1e15  # weight that float64 can hold beside those of other observations

    def __post_init__(self) -> None:
        links.find(self.link)
        for name, value in (("lam", self.lam), ("ridge", self.rho)):
            errors.positive(name, value)
            errors.within(name, value, 1e-100, 1e100)
        errors.among("solver", self.solver, SOLVERS)
        errors.within("tol", self.tol, learn.TIGHT, 1)
        errors.within("min_derivative", self.min_derivative, 0, 1e100)
        forgetting.check(self)
        if self.window is not None and self.solver in ("online", "counts"):
            raise ValueError(
                f"a window takes out its oldest rows, and solver={self.solver!r} does not know which they are: window "
                "needs solver='certified' or 'exact', or pass discount="
            )
        if self.constrain is not None:
            errors.positive("constrain", self.constrain)
            if self.solver == "online":
                raise ValueError("solver='online' keeps no history to project with: constrain needs another solver")

    @property
    def function(self) -> links.Link:
        """μ and its kin."""
        return links.find(self.link)

    @property
    def support(self) -> tuple[float, float]:
        """Between which the rewards lie."""
        return self.function.support

    @property
    def rho(self) -> float:
        """The λ of the objective."""
        return self.lam if self.ridge is None else self.ridge

    @functools.cached_property
    def abilities(self) -> frozenset[str]:
        """What it can tell a policy."""
        online = self.solver == "online"
        if not self.forgets:
            return ABILITIES if online else ABILITIES | {"refit", "rows"}
        rows = {"refit"} if self.window is None else {"refit", "rows"}  # whole observations, in a window alone
        return ABILITIES - OF_ROWS if online else ABILITIES | rows

    def check(self, state: GLMState) -> None:
        """Refuse a state that no data can lead to, as of a file that something else wrote."""
        if float(arrays.namespace(state.F).min(arrays.norms(state.F))) <= 0:
            raise ValueError("its F is no square root of a positive definite matrix")
        history.check(state.history)
        lazy.check(state.lazy)
        if state.extra is not None:
            statistics.check(state.extra)

    def init(self, dim: int, *, batch=(), needs=frozenset(), xp=array_api_compat.numpy, device=None) -> GLMState:
        """Ĥ = λI, θ̂ = 0, with leading axes `batch`."""
        zeros = xp.zeros((*batch, dim), dtype=xp.float64, device=device)
        square = xp.zeros((*batch, dim, dim), dtype=xp.float64, device=device)
        eye = xp.eye(dim, dtype=xp.float64, device=device)
        G = square + eye / self.rho**0.5 if self.apart else None
        extra = None if self.forgets else statistics.init(needs, zeros, lam=self.lam)
        kept, rows = lazy.init(zeros, self.rho, self.lam), history.init(zeros)
        F, H = square + eye / self.lam**0.5, None
        if self.fades:
            kept, H = kept._replace(left=zeros[..., 0] + 1.0), square + eye * self.lam
        if self.forgets and self.window is None:
            kept = kept._replace(mass=zeros[..., 0] + 0.0, unread=rows.rows + 0)
        now = None if self.half_life is None else zeros[..., 0] + forgetting.BEFORE
        return GLMState(F, zeros, G, kept, rows, extra, H, now)

    def update(
        self,
        state: GLMState,
        x: Array,
        r: Array,
        *,
        weight: Array | None = None,
        at: Array | None = None,
        own: bool = False,
    ) -> GLMState:
        """One more observation: x (..., d), r (...), weight (...) (a weight of 0 changes nothing).

        at (...) : with `half_life`, the time of the observation
        own : the caller gives the old state up, so the history is added to in place rather than copied
        """
        xp = arrays.namespace(x)
        if r.dtype != xp.float64:
            r = xp.astype(r, xp.float64)
        if weight is not None:
            weight = xp.asarray(weight, dtype=xp.float64)
        if self.forgets:
            state, weight = forgotten.aged(self, state, r, weight, at)
        return learn.learn(self, state, x, r, weight, own=own)

    def update_many(
        self,
        state: GLMState,
        X: Array,
        r: Array,
        *,
        weight: Array | None = None,
        at: Array | None = None,
        own: bool = False,
    ) -> GLMState:
        """n observations at once: X (..., n, d), r, weight, at (..., n); read once, not n times."""
        xp, n = arrays.namespace(X), X.shape[-2]
        r = xp.asarray(r, dtype=xp.float64)
        each = {name: A for name, A in (("weight", weight), ("at", at)) if A is not None}
        if n > 1 and self.solver not in ("online", "counts"):
            first, last = ({name: A[..., part] for name, A in each.items()} for part in (slice(-1), -1))
            if self.forgets:
                state = forgotten.taken(self, state, X[..., :-1, :], r[..., :-1], **first)
            else:
                state = learn.taken(state, X[..., :-1, :], r[..., :-1], first.get("weight"))
            return self.update(state, X[..., -1, :], r[..., -1], **last, own=True)
        for k in range(n):  # the old one outlives a refusal
            part = {name: A[..., k] for name, A in each.items()}
            state = self.update(state, X[..., k, :], r[..., k], **part, own=k > 0)
        return state

    def advanced(self, state: GLMState, at: Array) -> GLMState:
        """The state at the time at (...), without an observation (`half_life` alone)."""
        return forgotten.advanced(self, state, at)

    def predict(self, state: GLMState, X: Array) -> Array:
        """μ(x_i'θ̂), the expected rewards: X (..., K, d) -> (..., K)."""
        return self.function.mu(arrays.dot(X, state.theta))

    def width(self, state: GLMState, X: Array) -> Array:
        """w_i = ‖x_i‖ in the norm of Ĥ⁻¹: X (..., K, d) -> (..., K)."""
        return arrays.norms(X @ state.F)

    def gram_width(self, state: GLMState, X: Array) -> Array:
        """‖x_i‖ in the norm of V⁻¹, V = λI + Σ xx': X (..., K, d) -> (..., K)."""
        if self.forgets:
            return forgotten.gram_width(self, state, X)
        return arrays.norms(X @ _extra(state).gram_width)

    def sample(self, state: GLMState, eta: Array) -> Array:
        """F η ~ N(0, Ĥ⁻¹) for η ~ N(0, I): (..., d) -> (..., d)."""
        return arrays.dot(state.F, eta)

    def gram_sample(self, state: GLMState, eta: Array) -> Array:
        """N(0, Σ xx') from η ~ N(0, I): (..., 2d) -> (..., d)."""
        if self.forgets:
            return forgotten.gram_sample(state, eta)
        return statistics.gram_sample(_extra(state).gram, eta)

    def hessian_sample(self, state: GLMState, eta: Array) -> Array:
        """N(0, Ĥ) from η ~ N(0, I): (..., d) -> (..., d)."""
        xp = arrays.namespace(eta)
        return xp.linalg.solve(state.F.mT, eta[..., None])[..., 0]

    def rows(self, state: GLMState) -> History:
        """The rows of the fit: each one's features, count and sum of rewards."""
        return state.history

    def refit(
        self, state: GLMState, *, shift: Array | None = None, count: Array | None = None, total: Array | None = None
    ) -> Array:
        """argmin Σ [n g(x'θ) - τ x'θ] - shift'θ + (λ/2)‖θ‖² with other counts n or sums τ (..., N), from θ̂: (..., d).

        shift (..., d). Newton's method to E <= 0.001, from any history and for rewards outside the support, where λ
        alone bounds θ: there it may be very long. Leading axes are the state's, or draws where the state has none.
        """
        given = [A for A in (shift, count, total) if A is not None]
        lead = max((A.shape[:-1] for A in given), key=len)
        return refits.refitted(self, state, lead, shift=shift, count=count, total=total)

    def lipschitz(self, state: GLMState, S: float) -> Array:
        """L_t, at most, for ‖θ‖ <= S, (...): `statistics.lipschitz`."""
        norms = forgotten.norms(state) if self.forgets else _extra(state).norms
        return statistics.lipschitz(norms, S=S, link=self.function)

    def bound(self, state: GLMState) -> Array:
        """E and the bound on |log eigenvalues of H against Ĥ|, (..., 2): what is certain of this state's exactness.

        Infinite where nothing is certain: for the online solver after its first observations.
        """
        return state.lazy.bound

    def rounding(self, state: GLMState) -> digits.Rounding:
        """What rounding may have done to means and widths, (..., 1) each: of their own computation and of the products.

        Never what `tol` leaves open: of θ and F as the solver has them in exact numbers.
        """
        xp, kept, d = arrays.namespace(state.theta), state.lazy, state.theta.shape[-1]
        unit = (d + 4) * rounding.UNIT
        inverse = kept.inverse if state.G is None else lazy.square(state.F)
        rho = kept.stretch * (kept.noise + unit * xp.sqrt(kept.trace) * arrays.norms(state.theta))
        omega = certificate.grown(kept.blur / 2) + unit * kept.stretch * xp.sqrt(kept.trace * inverse)
        return digits.told(rho, omega)

    def reach(self, state: GLMState) -> Array:
        """No width is larger than this times ‖x‖, (...)."""
        return digits.reach(state.F)

    def passes(self, state: GLMState) -> Array:
        """How often the history was read so far, (...)."""
        return state.lazy.passes

    def bytes(self, dim: int, rounds: int) -> int:
        """About how much memory one run takes after so many rounds (of as many rows, but for "counts")."""
        rows = {"online": learn.WARM, "counts": history.PAD}.get(self.solver, rounds)
        return 8 * (int(1.5 * rows) * (dim + 2) + 4 * dim * dim + lazy.cap(rounds, dim) * (dim + 2))

    @property
    def fades(self) -> bool:
        """Whether older rows count for less by a factor, and the bound is kept through that; else each pass is read."""
        return (self.discount < 1 or self.half_life is not None) and not self.apart

    @property
    def apart(self) -> bool:
        """Whether the objective's Hessian is another matrix than Ĥ."""
        return self.rho != self.lam or self.min_derivative > 0 or self.constrain is not None


def _extra(state: GLMState) -> Any:
    """The statistics that a policy asked for when the state was made."""
    return state.extra
