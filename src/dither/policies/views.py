"""What all policies share whose scores are lines, s_i(z) = m_i + z w_i: the view, the choice, and its probabilities.

One continuous z for all arms: lines that rounding cannot tell apart are one, and the interval of z decides. Finitely
many values of z: the scores at each value decide. A continuous z for each arm: arms that move never tie.
"""

from typing import Any, NamedTuple

import numpy as np

from dither import arrays, noise, propensity
from dither.arrays import Array
from dither.policies import scale


class Lines(NamedTuple):
    """What a policy sees before chance enters."""

    m: Array  # (..., K)  height at z = 0: the mean; reward
    w: Array  # (..., K)  slope: the width times the scale; reward
    slack: propensity.Slack | None = None  # what rounding may have done to both; None: what it does to any number


def seen(model: Any, state: Any, X: Array, *, by: Any, gram: bool = False) -> Lines:
    """The lines of a model's means and widths; by: the scale of the widths, a number or (...); gram: widths in V."""
    raw = model.width(state, X)
    w = scale.times(by, model.gram_width(state, X) if gram else raw)
    return Lines(model.mean(state, X), w, slack(model, state, raw))


def slack(model: Any, state: Any, raw: Array) -> propensity.Slack | None:
    """What rounding may have done to lines of the widths `raw` (..., K); None where the model does not know."""
    if "rounding" not in model.abilities:
        return None
    known = model.rounding(state)
    return propensity.Slack(known.rho, raw, known.omega)


def check(law: Any, *, name: str, coupled: bool) -> None:
    """Refuse a law of your own that lacks what drawing, or a z for each arm, takes."""
    if not isinstance(law, noise.Custom):
        return
    if law.ppf is None:
        raise ValueError(f"{name} must have quantiles to be drawn from: noise.Custom(cdf, sf, ppf=...); got {law!r}")
    if not coupled and law.density is None:
        raise ValueError(f"{name} must have a density where arms have a z each: noise.Custom(..., density=...)")


def scores(view: Lines, z: Array) -> Array:
    """m + z w: z (...) shared by the arms, or (..., K)."""
    return view.m + (z if z.ndim == view.m.ndim else z[..., None]) * view.w


def best(view: Lines, z: Array, law, *, u: Array, coupled: bool, mask: Array | None) -> Array:
    """The arms shown, given z (...) or (..., K) and a uniform u (...) for ties. -> (...) integers"""
    view = spread_over(view, z.shape if coupled else z.shape[:-1])
    finite = isinstance(law, noise.Points)
    if coupled:
        return propensity.drawn(view.m, view.w, z, u=u, slack=view.slack, mask=mask, points=finite)
    if finite:
        error = None if view.slack is None else view.slack.at(z, view.m, view.w)
        return arrays.argmax(scores(view, z), u=u, error=error, mask=mask)
    return propensity.drawn_apart(view.m, view.w, z, u=u, slack=view.slack, mask=mask)


def spread_over(view: Lines, batch: tuple[int, ...]) -> Lines:
    """The view of one request, for many draws at once: `batch` leading axes; as it is where it has them."""
    if view.m.shape[:-1] == batch:
        return view
    xp, shape = arrays.namespace(view.m), (*batch, view.m.shape[-1])
    m, w = (xp.broadcast_to(part, shape) for part in view[:2])
    if view.slack is None:
        return Lines(m, w)
    return Lines(m, w, view.slack._replace(raw=xp.broadcast_to(view.slack.raw, shape)))


def decide(view: Lines, z: Array, law, *, u: Array, coupled: bool, mask: Array | None) -> tuple[int, float]:
    """The arm and its probability for one request: the same as `best` and `chosen`. z a number, or (K,)."""
    m, w, slack = view
    if mask is not None:
        arms = mask.nonzero()[0]
        own, p = decide(_kept(view, arms), z if coupled else z[arms], law, u=u, coupled=coupled, mask=None)
        return int(arms[own]), p
    if coupled:
        rule = propensity.decide_points if isinstance(law, noise.Points) else propensity.decide
        decided = rule(m, w, float(z), law=law, slack=slack)
        if decided is not None:
            return decided
        if not isinstance(law, noise.Points):
            return propensity.confirm(m, w, float(z), law=law, u=float(u), slack=slack)
    arm = best(view, z, law, u=u, coupled=coupled, mask=None)
    return int(arm), float(chosen(view, arm, law, coupled=coupled, mask=None))


def _kept(view: Lines, arms: np.ndarray) -> Lines:
    """The lines of some arms of one request."""
    m, w, slack = view
    if slack is None:
        return Lines(m[arms], w[arms])
    w, rho, raw, omega = w[arms], *(part[arms] if np.size(part) > 1 else part for part in slack)
    return Lines(m[arms], w, propensity.Slack(rho, w if slack.raw is view.w else raw, omega))


def chosen(view: Lines, arm: Array, law, *, coupled: bool, mask: Array | None) -> Array:
    """The probability of `arm` (...), given the law of z."""
    if coupled and view.m.ndim == 1 and mask is None and not isinstance(law, noise.Points):
        p = propensity.alone(view.m, view.w, int(arm), law=law, slack=view.slack)
        if p is not None:
            return np.float64(p)
    if isinstance(law, noise.Points) or not coupled:
        return arrays.pick(all_arms(view, law, coupled=coupled, mask=mask), arm, rank=0)
    return propensity.chosen(view.m, view.w, arm, law=law, slack=view.slack, mask=mask)


def all_arms(view: Lines, law, *, coupled: bool, mask: Array | None, log: bool = False) -> Array:
    """The probabilities of all arms, (..., K), given the law of z, or their logarithms."""
    finite = isinstance(law, noise.Points)
    rule: Any
    if coupled:
        rule = propensity.points if finite else propensity.envelope
    else:
        rule = propensity.uncoupled_points if finite else propensity.uncoupled
    return rule(view.m, view.w, law=law, slack=view.slack, mask=mask, log=log)


def in_turn(view: Lines, z: Array, law, *, u: Array, coupled: bool, mask: Array | None) -> Array:
    """The k arms shown in order: `best`, then the best of what is left, and so on. u (..., k) -> (..., k) integers"""
    if coupled and not isinstance(law, noise.Points):
        view = spread_over(view, z.shape)
        return propensity.listed_at(view.m, view.w, z, u=u, slack=view.slack, mask=mask)
    return arrays.in_turn(
        lambda u, left: best(view, z, law, u=u, coupled=coupled, mask=left), u, view.m.shape[-1], mask
    )
