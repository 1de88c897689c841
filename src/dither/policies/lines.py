"""What all policies share whose scores are lines, s_i(z) = m_i + z w_i: the view, and the choice probabilities."""

from typing import Any, NamedTuple

from dither import arrays, noise, propensity
from dither.arrays import Array


class Lines(NamedTuple):
    """What a policy sees before chance enters."""

    m: Array  # (..., K)  height at z = 0: the mean; reward
    w: Array  # (..., K)  slope: the width times the scale; reward


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


def keys(view: Lines, law, *, coupled: bool) -> tuple[Array, ...] | None:
    """What must agree for two arms to be one, given the law of z.

    One continuous z: their lines. A continuous z each: arms that move never are. Finitely many values: their scores.
    """
    if isinstance(law, noise.Points):
        return None
    if coupled:
        return tuple(view)
    xp, (m, w) = arrays.namespace(view.m), view
    number = xp.astype(xp.arange(1, m.shape[-1] + 1), m.dtype)
    return xp.where(w > 0, number, xp.zeros_like(m)), xp.where(w > 0, xp.zeros_like(m), m)


def decide(view: Lines, z: Array, u: float, law, *, coupled: bool = True) -> tuple[int, float]:
    """The arm and its probability for one request: the same as `scores` and `chosen`. z a number, or (K,)."""
    if coupled and not isinstance(law, noise.Points):
        decided = propensity.decide(*view, float(z), law=law)
        if decided is not None:
            return decided
    arm = arrays.argmax(view.m + z * view.w, u=u, keys=keys(view, law, coupled=coupled))
    return int(arm), float(chosen(view, arm, law, coupled=coupled, mask=None))


def chosen(view: Lines, arm: Array, law, *, coupled: bool, mask: Array | None) -> Array:
    """The probability of `arm` (...), given the law of z."""
    if isinstance(law, noise.Points) or not coupled:
        return arrays.pick(all_arms(view, law, coupled=coupled, mask=mask), arm, rank=0)
    return propensity.chosen(*view, arm, law=law, mask=mask)


def all_arms(view: Lines, law, *, coupled: bool, mask: Array | None, log: bool = False) -> Array:
    """The probabilities of all arms, (..., K), given the law of z, or their logarithms."""
    finite = isinstance(law, noise.Points)
    rule: Any
    if coupled:
        rule = propensity.points if finite else propensity.envelope
    else:
        rule = propensity.uncoupled_points if finite else propensity.uncoupled
    return rule(*view, law=law, mask=mask, log=log)
