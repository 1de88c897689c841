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
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from dither import links
from dither.base import arrays, errors
from dither.base.arrays import Array
from dither.models import digits, factor, forgetting, history, linear_model, penalty, statistics
from dither.models.forgetting import Forgetting
from dither.models.glm import anew, certificate, forgotten, lazy, learn, refits, rounding
from dither.models.glm.lazy import Lazy
from dither.models.history import History
from dither.models.linear_model import LinkedModel
from dither.models.model import Factors, abilities_of
from dither.models.penalty import Penalty, Rule

OF_ROWS = frozenset({"gram_width", "gram_sample", "lipschitz"})  # what a model that forgets reads off its rows
Solver = Literal["certified", "exact", "counts", "online"]
SOLVERS = get_args(Solver)


class GLMState(NamedTuple):
    """What is known: shapes (...) are replications, none for one bandit."""

    F: Array  # (..., d, d)  Ĥ⁻¹ = FF'
    theta: Array  # (..., d)  θ̂
    G: Array | None  # (..., d, d)  as F, for the Hessian of the objective, where that is not Ĥ (ridge, min_derivative)
    lazy: Lazy  # how exact θ̂ is, and what it takes to know that
    history: History  # the rows learnt from
    extra: Any  # `statistics.Extra`: what a policy asked for besides
    H: Array | None = None  # (..., d, d)  the curvature that F is a factor of, where the rows fade
    now: Array | None = None  # (...)  the time, where there is a clock
    rule: Rule | None = None  # λ, where it is of the first rows


@dataclass(frozen=True)
class GLM(Forgetting, LinkedModel):
    """For X (..., K, d) shared by all arms.

    link : "logit", "log" (Poisson), "probit" or "identity" (`dither.links`); rewards must lie in its support
    lam : λ; feature²; "auto": μ'(0)² times that of the first rows (`models/penalty.py`). That rule is for a θ which
        moves rewards. Near η = 0 a reward moves by μ'(0) times what η does, so the penalty is on ‖μ'(0) θ‖²
    solver, tol : as above; tol is in units of one width, from 1e-8 to 1
    min_derivative : Ĥ takes max(μ', this) for μ' (the paper's 0.25 makes it λI + Σ xx'/4 for logit); θ̂ is the same
    constrain : S, for θ̂ over ‖θ‖ <= S; None: over all θ
    ridge : the λ of the objective, where it is another than that of Ĥ
    discount, window, half_life : how older observations count (`models/forgetting.py`); at most one of them is set
    """

    link: links.Name = "logit"
    lam: Penalty = 1e-4
    solver: Solver = "certified"
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
        penalty.check("lam", self.lam)
        if self.ridge is not None:
            linear_model.penalty("ridge", self.ridge)
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

    def lam_of(self, state: GLMState) -> Any:
        """λ: a number, or (...) where it is of the first rows."""
        return self.lam if state.rule is None else self.share * state.rule.lam

    @functools.cached_property
    def share(self) -> float:
        """μ'(0)²: 1/16 for logit."""
        return float(self.function.slopes(np.float64(0.0))[1]) ** 2

    def rho_of(self, state: GLMState) -> Any:
        """The λ of the objective, likewise."""
        return self.lam_of(state) if self.ridge is None else self.ridge

    @functools.cached_property
    def abilities(self) -> frozenset[str]:
        """What it can tell a policy."""
        online, every = self.solver == "online", abilities_of(type(self))
        if not self.forgets:
            return every - {"refit", "rows"} if online else every
        without = OF_ROWS | {"refit", "rows"} if online else frozenset() if self.window is not None else {"rows"}
        return every - without  # whole observations, in a window alone

    def check(self, state: GLMState) -> None:
        """Refuse a state that no data can lead to, as of a file that something else wrote."""
        factor.check(state.F)
        history.check(state.history)
        lazy.check(state.lazy)
        if state.extra is not None:
            statistics.check(state.extra)

    def init(self, dim: int, *, batch=(), needs=frozenset(), xp=arrays.NUMPY, device=None) -> GLMState:
        """Ĥ = λI, θ̂ = 0, with leading axes `batch`."""
        zeros = xp.zeros((*batch, dim), dtype=xp.float64, device=device)
        rule = penalty.init(zeros) if self.lam == penalty.AUTO else None
        lam: Any = self.lam if rule is None else self.share * penalty.FIRST
        rho = lam if self.ridge is None else self.ridge
        G = factor.identity(zeros, 1 / rho**0.5) if self.apart else None
        extra = None if self.forgets else statistics.init(needs, zeros, lam=lam)
        kept, rows = lazy.init(zeros, rho, lam), history.init(zeros)
        F, H = factor.identity(zeros, 1 / lam**0.5), None
        if self.follows:
            kept, H = kept._replace(left=zeros[..., 0] + 1.0), factor.identity(zeros, lam)
        if self.fades:
            kept = kept._replace(mass=zeros[..., 0] + 0.0, unread=rows.rows + 0)
        now = None if self.half_life is None else zeros[..., 0] + forgetting.BEFORE
        return GLMState(F, zeros, G, kept, rows, extra, H, now, rule)

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
        if state.rule is not None:
            state = self.announced(state, x[..., None, :], r[..., None], None if weight is None else weight[..., None])
        return self.absorbed(state, x, r, weight=weight, at=at, own=own)

    def shares(self, state: GLMState) -> bool:
        """Whether slots have one λ, of the rows of all."""
        return state.rule is not None

    def announced(
        self, state: GLMState, X: Array, r: Array, weight: Array | None = None, *, slots: bool = False
    ) -> GLMState:
        """The state whose λ knows of rows X (..., n, d) that will be learnt, of rewards r and weights (..., n).

        slots : the last leading axis of the state is one of slots, which have one λ; X has no such axis
        """
        if state.rule is None:
            return state
        xp, rule = arrays.namespace(X), state.rule
        if weight is not None:
            weight = xp.asarray(weight, dtype=xp.float64)
        if not slots:
            return anew.announced(self, state, penalty.advanced(rule, X, weight))
        one = penalty.advanced(Rule(*(part[..., 0] for part in rule)), X, weight)
        parts = (xp.zeros_like(part) + new[..., None] for part, new in zip(rule, one, strict=True))
        return anew.announced(self, state, Rule(*parts))

    def absorbed(self, state: GLMState, x: Array, r: Array, *, own: bool = False, **settings: Any) -> GLMState:
        """The state after an observation that was announced, with settings as of `update`."""
        xp, weight = arrays.namespace(x), settings.get("weight")
        if r.dtype != xp.float64:
            r = xp.astype(r, xp.float64)
        if weight is not None:
            weight = xp.asarray(weight, dtype=xp.float64)
        if self.forgets:
            state, weight = forgotten.aged(self, state, r, weight, settings.get("at"))
        return learn.learn(self, state, x, r, weight, own=own)

    def update_many(self, state: GLMState, X: Array, r: Array, *, own: bool = False, **settings: Any) -> GLMState:
        """n observations at once: X (..., n, d), r, weight, at (..., n); read once, not n times."""
        state = self.announced(state, X, r, settings.get("weight"))
        return self.absorbed_many(state, X, r, **settings)

    def absorbed_many(self, state: GLMState, X: Array, r: Array, *, own: bool = False, **settings: Any) -> GLMState:
        """The state after n observations that were announced, with settings as of `update_many`."""
        r = arrays.namespace(X).asarray(r, dtype=arrays.namespace(X).float64)
        n = X.shape[-2]
        at_once = {"online": min(n, learn.room(state)), "counts": 0}.get(self.solver, n)  # the rows that are kept
        if 1 < at_once < n:
            for part in (slice(at_once), slice(at_once, n)):
                some: dict[str, Any] = {name: None if A is None else A[..., part] for name, A in settings.items()}
                state = self.absorbed_many(state, X[..., part, :], r[..., part], **some)
            return state
        if at_once < max(n, 2):
            for i in range(n):
                one = {name: None if A is None else A[..., i] for name, A in settings.items()}
                state = self.absorbed(state, X[..., i, :], r[..., i], **one, own=i > 0)
            return state
        each = {name: A for name, A in settings.items() if A is not None}
        first, last = ({name: A[..., part] for name, A in each.items()} for part in (slice(-1), -1))
        if self.forgets:
            state = forgotten.taken(self, state, X[..., :-1, :], r[..., :-1], **first)
        else:
            state = learn.taken(state, X[..., :-1, :], r[..., :-1], first.get("weight"))
        return self.absorbed(state, X[..., -1, :], r[..., -1], **last, own=True)

    def joined(self, state: GLMState) -> GLMState:
        """The state of slots of which the last are new: they get the λ of the first one."""
        if state.rule is None:
            return state
        xp = arrays.namespace(state.theta)
        return anew.announced(self, state, Rule(*(xp.zeros_like(part) + part[..., :1] for part in state.rule)))

    def advanced(self, state: GLMState, at: Array) -> GLMState:
        """The state at the time at (...), without an observation (`half_life` alone)."""
        return forgotten.advanced(self, state, at)

    def gram_width(self, state: GLMState, X: Array) -> Array:
        """‖x_i‖ in the norm of V⁻¹, V = λI + Σ xx': X (..., K, d) -> (..., K)."""
        if self.forgets:
            return arrays.norms(X @ arrays.root_of_inverse(forgotten.gram(state, self.lam_of(state))))
        return arrays.norms(X @ state.extra.gram_width)

    def gram_sample(self, state: GLMState, eta: Array) -> Array:
        """N(0, Σ xx') from η ~ N(0, I): (..., 2d) -> (..., d)."""
        if self.forgets:
            return statistics.matrix_sample(forgotten.gram(state, 0.0), eta)
        return statistics.gram_sample(state.extra.gram, eta)

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

        shift (..., d). By Newton's method, to E <= 0.001. Rewards may lie outside the support: there λ alone bounds θ,
        which may be very long. Leading axes are the state's, or draws where the state has none.
        """
        lead = max((A.shape[:-1] for A in (shift, count, total) if A is not None), key=len)
        return refits.refitted(self, state, lead, shift=shift, count=count, total=total)

    def lipschitz(self, state: GLMState, S: float) -> Array:
        """L_t, at most, for ‖θ‖ <= S, (...): `statistics.lipschitz`."""
        norms = forgotten.norms(state) if self.forgets else state.extra.norms
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
        inverse = kept.inverse if state.G is None else xp.vecdot(state.F, state.F)
        rho = kept.stretch * (kept.noise + unit * rounding.length(kept.diagonal, state.theta))
        omega = certificate.grown(kept.blur / 2) + unit * kept.stretch * rounding.spread(kept.diagonal, inverse)
        return digits.shaped(rho, omega)

    def factors(self, state: GLMState, norm: str, *, slots: bool = False) -> Factors | None:
        """Those of `width`."""
        if norm != "width":
            return None
        rho, omega = map(arrays.largest, self.rounding(state))
        return Factors(state.theta, state.F, None, rho, omega)

    def passes(self, state: GLMState) -> Array:
        """How often the history was read so far, (...)."""
        return state.lazy.passes

    def bytes(self, dim: int, rounds: int) -> int:
        """About how much memory one run takes after so many rounds (of as many rows, but for "counts")."""
        rows = {"online": learn.WARM, "counts": history.PAD}.get(self.solver, rounds)
        return 8 * (int(1.5 * rows) * (dim + 2) + 4 * dim * dim + lazy.cap(rounds, dim) * (dim + 2))

    @property
    def follows(self) -> bool:
        """Whether the bound follows rows that fade; else the history is read after each of them."""
        return self.fades and not self.apart

    @property
    def apart(self) -> bool:
        """Whether the objective's Hessian is another matrix than Ĥ."""
        return self.ridge not in (None, self.lam) or self.min_derivative > 0 or self.constrain is not None
