"""The views that policies share: what there is before chance enters, and what follows from it.

    Scores   nothing is drawn: the arm of the highest score is shown, and arms that tie have equal shares
    Lines    m_i + z w_i: one z for all arms, or one for each; the probabilities are exact
    Drawn    a view made of functions, for scores of any other form

With one continuous z for all arms, lines that rounding cannot tell apart are one line, and the interval of z decides.
With finitely many values of z, the scores at each value decide. With a continuous z for each arm, arms that move never
tie. `policy_contract.Answers` lists what a view may answer.
"""

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from dither import links, noise, propensity
from dither.base import arrays
from dither.base.arrays import Array
from dither.policies import valued
from dither.propensity import settled

NORMAL = noise.Gaussian()


class LineRule(NamedTuple):
    """How a policy scores arms by their means and widths, before a request is looked at: `of_rule` makes the view.

    A policy of this library that scores so has `rule(model, state, t=, d=)`, and its `view` is that of its rule. Then
    the compiled step may decide without a view (`deciding/stepping.py`).
    """

    by: Any = 1.0  # the scale of the widths, a number or (...)
    norm: str = "width"  # the ability that gives the widths
    law: Any = NORMAL  # of z, as of `Lines`
    coupled: bool = True  # likewise
    along: Array | None = None  # likewise
    score: Literal["drawn", "optimistic", "mean"] = "drawn"  # m + z w at what was drawn, m + w, or m


def of_rule(rule: LineRule, model: Any, state: Any, X: Array) -> Any:
    """The view of a policy's rule: `Lines` where z is drawn, else `Scores`."""
    by, norm, law, coupled, along, score = rule
    if score == "mean":
        return means(model, state, X)
    view = lines(model, state, X, by=by, norm=norm, law=law, coupled=coupled, along=along)
    return optimistic(view) if score == "optimistic" else view


class Drawn(NamedTuple):
    """Scores that are a function of what was drawn, and probabilities where they are known."""

    scores: Callable[..., Array]  # what `draw` made, each array with `...` in place of n -> (..., K)
    propensities: Callable[..., Array] | None = None  # mask= (..., K) or None -> (..., K), sums to 1; None: not known


class Scores(NamedTuple):
    """Scores that nothing moves, and a function that says which of them tie where they lie near each other."""

    s: Array  # (..., K)
    tied: Callable[[Array | None], Array]  # mask (..., K) or None -> which tie for the highest score, (..., K) bool
    most: float | None = None  # no score has a larger error; None: not known
    weighed: Callable[[Array, Any], Callable[[Array | None], Array]] | None = None  # v, link -> `tied` with values
    rewards: bool = False  # whether the scores are on the scale of rewards, where the model has a link

    def valued(self, v: Array, link: Any) -> "Scores":
        """The same where the arms have values v (..., K)."""
        link = links.LINKS["identity"] if self.rewards else link
        s = v * link.mu(self.s)
        if self.weighed is None:
            return Scores(s, lambda mask: valued.tied(self.s, arrays.spread(self.s, mask=mask), v, link, mask))
        return Scores(s, self.weighed(v, link))

    def scores(self) -> Array:
        """The scores, (..., K)."""
        return self.s

    def best(self, *, u: Array, mask: Array | None = None) -> Array:
        """The arms shown: (...) integers."""
        if self.most is not None:
            xp = arrays.namespace(self.s)
            offered = self.s if mask is None else xp.where(mask, self.s, -xp.inf)
            arm = xp.argmax(offered, axis=-1)
            best = arrays.pick(offered, arm, rank=0)[..., None]
            if int(xp.count_nonzero(offered >= best - 2 * self.most)) == math.prod(arm.shape):
                return arm  # the usual case: no score is near, whatever rounding did
        return arrays.nth(self.tied(mask), u)

    def decide(self, *, u: Array, mask: Array | None = None) -> tuple[int, float]:
        """The arm and its probability for one request at once."""
        s = self.s if mask is None else np.where(mask, self.s, -np.inf)
        arm = int(s.argmax())
        if self.most is not None and np.count_nonzero(s >= s[arm] - 2 * self.most) == 1:
            return arm, 1.0
        tied = self.tied(mask)
        return int(arrays.nth(tied, u)), 1 / int(np.count_nonzero(tied))

    def in_turn(self, *, u: Array, mask: Array | None = None) -> Array:
        """The k arms shown in order: u (..., k) -> (..., k) integers."""
        return settled.in_turn(self.tied, u, arrays.left(u, self.s.shape[-1], mask))

    def propensities(self, *, mask: Array | None = None) -> Array:
        """1 for the best arm; shared where arms tie."""
        xp, tied = arrays.namespace(self.s), self.tied(mask)
        share = xp.astype(tied, xp.float64)
        return share / xp.sum(share, axis=-1, keepdims=True)


class Lines(NamedTuple):
    """Scores m_i + z w_i. z is drawn: one number for all arms (coupled), or one for each arm."""

    m: Array  # (..., K)  height at z = 0: the mean; reward
    w: Array  # (..., K)  slope: the width times the scale, not negative; reward
    slack: propensity.Slack | None = None  # the rounding errors of m and w; None: those of any number
    law: Any = NORMAL  # of z: one of `dither.noise`, as its `marginal` gives it
    coupled: bool = True  # one z for all arms
    along: Array | None = None  # (..., dim of θ)  where a vector ζ is drawn: z = ζ'along; None: z itself is drawn

    def valued(self, v: Array, link: Any) -> Any:
        """The same where the arms have values v (..., K): `policies.valued` says of what form."""
        return valued.lines(self, v, link)

    @property
    def lines(self) -> "Lines | None":
        """The lines that one z moves; None where each arm has a z of its own."""
        return self if self.coupled else None

    def z(self, zeta: Array) -> Array:
        """The z that moves the arms: (...), uncoupled (..., K)."""
        return zeta if self.along is None else arrays.namespace(zeta).vecdot(zeta, self.along)

    def scores(self, zeta: Array) -> Array:
        """m + z w: (..., K)."""
        z = self.z(zeta)
        return self.m + (z[..., None] if self.coupled else z) * self.w

    def best(self, zeta: Array, *, u: Array, mask: Array | None = None) -> Array:
        """The arms shown, with a uniform u (...) for ties: (...) integers."""
        return self._best(self.z(zeta), u=u, mask=mask)

    def in_turn(self, zeta: Array, *, u: Array, mask: Array | None = None) -> Array:
        """The k arms shown in order: `best`, then the best of what is left, and so on. u (..., k) -> (..., k)"""
        z = self.z(zeta)
        m, w, slack, law, coupled, _ = self._over(z.shape if self.coupled else z.shape[:-1])
        if coupled and not isinstance(law, noise.Points):
            return propensity.listed_at(m, w, z, u=u, slack=slack, mask=mask)

        def tied(left: Array) -> Array:
            if coupled:
                return propensity.shared_at(m, w, z, slack=slack, mask=left) > 0
            return propensity.tied_apart(m, w, z, law=law, slack=slack, mask=left)

        return settled.in_turn(tied, u, arrays.left(u, m.shape[-1], mask))

    def decide(self, zeta: Array, *, u: Array, mask: Array | None = None) -> tuple[int, float]:
        """The arm and its probability for one request: the same as `best` and `chosen`."""
        m, w, slack, law, coupled, along = self
        z = zeta if along is None else self.z(zeta)
        if mask is not None:
            arms = mask.nonzero()[0]
            place, p = self._kept(arms).decide(z if coupled else z[arms], u=u)
            return int(arms[place]), p
        if coupled:
            finite = isinstance(law, noise.Points)
            rule = propensity.decide_points if finite else propensity.decide
            decided = rule(m, w, float(z), law=law, slack=slack)
            if decided is not None:
                return decided
            if not finite:
                return propensity.confirm(m, w, float(z), law=law, u=float(u), slack=slack)
        arm = self._best(z, u=u, mask=None)
        return int(arm), float(self.chosen(arm))

    def chosen(self, arm: Array, *, mask: Array | None = None) -> Array:
        """The probability of `arm` (...): exact."""
        m, w, slack, law, coupled, _ = self
        finite = isinstance(law, noise.Points)
        if coupled and m.ndim == 1 and mask is None and not finite:
            p = propensity.alone(m, w, int(arm), law=law, slack=slack)
            if p is not None:
                return np.float64(p)
        if finite or not coupled:
            return arrays.pick(self.propensities(mask=mask), arm, rank=0)
        return propensity.chosen(m, w, arm, law=law, slack=slack, mask=mask)

    def propensities(self, *, mask: Array | None = None) -> Array:
        """The probabilities of all arms, (..., K): exact."""
        return self._all(mask, log=False)

    def log_propensities(self, *, mask: Array | None = None) -> Array:
        """Their logarithms, right where the probabilities underflow."""
        return self._all(mask, log=True)

    def _all(self, mask: Array | None, *, log: bool) -> Array:
        finite = isinstance(self.law, noise.Points)
        rule: Any = propensity.uncoupled
        if self.coupled:
            rule = propensity.points if finite else propensity.envelope
        return rule(self.m, self.w, law=self.law, slack=self.slack, mask=mask, log=log)

    def _best(self, z: Array, *, u: Array, mask: Array | None) -> Array:
        m, w, slack, law, coupled, _ = self._over(z.shape if self.coupled else z.shape[:-1])
        finite = isinstance(law, noise.Points)
        if coupled:
            return propensity.drawn(m, w, z, u=u, slack=slack, mask=mask, points=finite)
        return propensity.drawn_apart(m, w, z, u=u, law=law, slack=slack, mask=mask)

    def _over(self, batch: tuple[int, ...]) -> "Lines":
        """The lines with the leading axes `batch`: those of one request are repeated for many draws at once."""
        if self.m.shape[:-1] == batch:
            return self
        xp, shape, slack = arrays.namespace(self.m), (*batch, self.m.shape[-1]), self.slack
        if slack is not None:
            slack = slack._replace(raw=xp.broadcast_to(slack.raw, shape))
        return self._replace(m=xp.broadcast_to(self.m, shape), w=xp.broadcast_to(self.w, shape), slack=slack)

    def _kept(self, arms: np.ndarray) -> "Lines":
        """The lines of some arms of one request, where z is known."""
        m, w, slack = self.m[arms], self.w[arms], self.slack
        if slack is not None:
            rho, raw, omega = (part[arms] if np.size(part) > 1 else part for part in slack)
            slack = propensity.Slack(rho, w if slack.raw is self.w else raw, omega)
        return self._replace(m=m, w=w, slack=slack, along=None)


def nothing(policy: Any, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
    """The `draw` of a policy without chance."""
    return ()


def vector(policy: Any, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
    """The `draw` of a policy that moves θ: standard normals (n, dim), where dim is that of θ."""
    return (rng.standard_normal((n, dim)),)


def two_vectors(policy: Any, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
    """The `draw` of a policy that moves all rewards at once: standard normals (n, 2 dim)."""
    return (rng.standard_normal((n, 2 * dim)),)


def check(law: Any, *, name: str, coupled: bool) -> None:
    """Refuse a custom law without quantiles, which drawing needs, or without the density that uncoupled arms need."""
    if not isinstance(law, noise.Custom):
        return
    if law.ppf is None:
        raise ValueError(f"{name} must have quantiles to be drawn from: noise.Custom(cdf, sf, ppf=...); got {law!r}")
    if not coupled and law.density is None:
        raise ValueError(f"{name} must have a density where arms have a z each: noise.Custom(..., density=...)")


def lines(model: Any, state: Any, X: Array, *, by: Any, norm: str = "width", **more: Any) -> Lines:
    """The lines of a model's means and widths.

    by : the scale of the widths, a number or (...); more : fields of `Lines`
    norm : the ability that gives the widths: "width", "gram_width", "noise_width" or "error_width"
    """
    raw, width, length, share = _widths(model, state, X, norm)
    slack = None
    if "rounding" in model.abilities:
        rho, omega = model.rounding(state)
        rho, omega = (part if factor is None else part * factor for part, factor in ((rho, length), (omega, share)))
        slack = propensity.Slack(rho, raw, omega)
    return Lines(model.mean(state, X), times(by, width), slack, **more)


def _widths(model: Any, state: Any, X: Array, norm: str) -> tuple[Array, Array, Any, Any]:
    """What errors of means go by, and the widths of that name; then two factors, where None is 1.

    ‖x_i‖_{V⁻¹} is at most the first times what errors go by; relative errors of the widths: the second times its own.
    """
    if norm == "error_width":
        w, raw, length, share = model.error_width(state, X)
        return raw, w, length, share
    raw = model.width(state, X)
    if norm == "width":
        return raw, raw, None, None
    width = operator.methodcaller(norm, state, X)(model)
    if norm == "gram_width":
        return raw, width, None, None
    # x'V⁻¹ is read twice, and its error is a share of the larger width
    return raw, width, None, 2 * raw / arrays.namespace(width).where(width > 0, width, 1.0)


def times(scale: Any, w: Array) -> Array:
    """The scale, a number or (...), times w (..., K)."""
    if getattr(scale, "ndim", 0):
        return w * scale[..., None]
    return w if scale == 1 else w * scale


def means(model: Any, state: Any, X: Array) -> Scores:
    """The means of a model as scores. The error of x'θ̂ is at most ρ w, and w is at most `reach` times ‖x‖."""
    m = model.mean(state, X)
    if not {"rounding", "width"} <= model.abilities:
        return plain(m)
    rho, most = model.rounding(state).rho, None

    def error() -> Array:
        return rho * model.width(state, X)

    if "reach" in model.abilities:
        length = math.sqrt(arrays.largest(arrays.square(X)))
        most = arrays.largest(rho) * arrays.largest(model.reach(state)) * length
    return Scores(m, lambda mask: arrays.top(m, error=error(), mask=mask), most, _by_errors(m, error))


def of_rewards(model: Any, state: Any, X: Array, s: Array, error: Callable[[Any, Array], Array]) -> Scores:
    """Scores s (..., K) on the scale of rewards.

    error : their error from that of the model, a `digits.Rounding`, and its widths; besides, every number is rounded
    """
    if not {"rounding", "width"} <= model.abilities:
        return plain(s, rewards=True)

    def errors() -> Array:
        return error(model.rounding(state), model.width(state, X)) + arrays.spread(s)

    return Scores(s, lambda mask: arrays.top(s, error=errors(), mask=mask), weighed=_by_errors(s, errors), rewards=True)


def _by_errors(s: Array, error: Callable[[], Array]) -> Callable[[Array, Any], Callable[[Array | None], Array]]:
    """`Scores.weighed` of scores that are compared by their errors."""
    return lambda v, link: lambda mask: valued.tied(s, error(), v, link, mask)


def plain(s: Array, *, rewards: bool = False) -> Scores:
    """Scores about which only one thing is known: they are rounded."""
    return Scores(s, lambda mask: arrays.top(s, mask=mask), rewards=rewards)


def optimistic(lines: Lines) -> Scores:
    """The scores m + w of lines at z = 1. Parallel lines are compared by their means."""
    m, w, slack, *_ = lines

    def tied(mask: Array | None) -> Array:
        errors = None if slack is None else propensity.Slack(*(arrays.numpy(part) for part in slack))
        offered = None if mask is None else arrays.numpy(mask)
        share = propensity.shared_at(arrays.numpy(m), arrays.numpy(w), 1.0, slack=errors, mask=offered) > 0
        return arrays.beside(share, m)

    def weighed(v: Array, link: Any) -> Callable[[Array | None], Array]:
        view = lines.valued(v, link)
        return functools.partial(view.at, 1.0) if isinstance(view, valued.Curves) else optimistic(view).tied

    return Scores(m + w, tied, None if slack is None else slack.most(m, w), weighed)
