"""What all policies share whose scores are lines, s_i(z) = m_i + z w_i: the view, and the choice probabilities."""

from typing import NamedTuple

from dither import arrays, noise, propensity
from dither.arrays import Array


class Lines(NamedTuple):
    """What a policy sees before chance enters."""

    m: Array  # (..., K)  height at z = 0: the mean; reward
    w: Array  # (..., K)  slope: the width times the scale; reward


def scores(view: Lines, z: Array) -> Array:
    """m + z w: z (...) shared by the arms, or (..., K)."""
    return view.m + (z if z.ndim == view.m.ndim else z[..., None]) * view.w


def decide(view: Lines, z: float, u: float, law) -> tuple[int, float]:
    """The arm and its probability for one request, z shared by the arms: the same as `scores` and `chosen`."""
    decided = propensity.decide(*view, float(z), law=law)
    if decided is not None:
        return decided
    arm = arrays.argmax(view.m + z * view.w, u=u, keys=tuple(view))
    return int(arm), float(propensity.chosen(*view, arm, law=law))


def chosen(view: Lines, arm: Array, law, *, coupled: bool, mask: Array | None) -> Array:
    """The probability of `arm` (...), given the law of z."""
    if isinstance(law, noise.Points) or not coupled:
        return arrays.pick(all_arms(view, law, coupled=coupled, mask=mask), arm, rank=0)
    return propensity.chosen(*view, arm, law=law, mask=mask)


def all_arms(view: Lines, law, *, coupled: bool, mask: Array | None) -> Array:
    """The probabilities of all arms, (..., K), given the law of z."""
    if isinstance(law, noise.Points):
        return propensity.points(*view, law=law, mask=mask)
    return (propensity.envelope if coupled else propensity.uncoupled)(*view, law=law, mask=mask)
