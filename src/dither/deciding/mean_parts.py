"""What a mean is made of, in a model whose score is linear: what each field gives to it, in units of reward.

    m_i = x_i'θ̂ = Σ_g s_ig,    s_ig = Σ_{j in g} x_ij θ̂_j           the score of arm i, and the part of the field g
    v_a μ(m_a) - v_b μ(m_b) = δ_v + Σ_g δ_g                       the difference of two means, with values v
    δ_g = v̄ μ̄' (s_ag - s_bg),   δ_v = μ̄ (v_a - v_b)
    μ̄' = (μ(m_a) - μ(m_b))/(m_a - m_b),   v̄ = (v_a + v_b)/2,   μ̄ = (μ(m_a) + μ(m_b))/2

A link bends the score, so a mean itself is no sum over fields. A difference of two means is: μ̄' is the mean slope of μ
on the straight way from one score to the other (the integrated gradients of Sundararajan, Taly, Yan 2017). With the
identity link and without values δ_g is s_ag - s_bg itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dither.base import arrays
from dither.deciding.decision import Moment
from dither.deciding.request import Request
from dither.models.model import link

SUM = 1e-9  # the parts must sum to the mean, but for this share of their sizes


@dataclass(frozen=True)
class MeanParts:
    """What fields give to the scores of the arms, and to the difference of two means."""

    names: tuple[str, ...]  # (G,)  fields and crosses of the `Features`; else columns; else their positions
    scores: np.ndarray  # (K, G)  s: parts of the score before the link, which they sum to; NaN for an arm not on offer
    arm: int | None = None  # a, the position of the arm whose mean is compared; None: nothing is
    against: int | None = None  # b, of the arm that it is compared with
    differences: np.ndarray | None = None  # (G,)  δ, units of reward
    of_values: float = 0.0  # δ_v, units of reward times value

    @property
    def order(self) -> np.ndarray:
        """The fields, those that moved the difference most first; where nothing is compared, those of the scores."""
        size = np.nanmax(abs(self.scores), axis=0, initial=0.0) if self.differences is None else abs(self.differences)
        return np.argsort(-size, kind="stable")

    def of_arms(self, places: Sequence[int]) -> "MeanParts":
        """The same of some of the arms, in this order; those that are compared are among them."""
        a, b = (None if arm is None else list(places).index(arm) for arm in (self.arm, self.against))
        return replace(self, scores=self.scores[list(places)], arm=a, against=b)


def parts(now: Moment, request: Request, names: tuple[str, ...] | None) -> MeanParts | None:
    """The parts of the scores of one request. None: this model's scores are no sums over columns.

    names : (d,) the field of each column; None: the columns have no fields
    """
    model, X, theta = now.model, request.X, getattr(now.state, "theta", None)
    d = X.shape[-1]
    if "scores" not in model.abilities or "beneath" in model.abilities or theta is None:
        return None
    theta = arrays.numpy(theta)
    if theta.shape not in ((d,), (*request.shape, d)):
        return None
    each = X * theta  # (K, d)
    if np.any(abs(np.sum(each, axis=-1) - model.mean(now.state, X)) > SUM * (np.sum(abs(each), axis=-1) + 1e-300)):
        return None
    fields = names or request.columns or tuple(f"x[{j}]" for j in range(d))
    place = {name: g for g, name in enumerate(dict.fromkeys(fields))}
    of = np.array([place[name] for name in fields])
    together = np.argsort(of, kind="stable")
    s = np.add.reduceat(each[:, together], np.searchsorted(of[together], np.arange(len(place))), axis=1)
    if request.mask is not None:
        s[~request.mask] = np.nan
    return MeanParts(tuple(place), s)


def compared(made_of: MeanParts, now: Moment, request: Request, arm: int, against: int) -> MeanParts:
    """The parts, with those of the difference of two means."""
    mu, (a, b) = link(now.model).mu, (arm, against)
    m = np.sum(made_of.scores[[a, b]], axis=-1)
    r, v = mu(m), np.ones(2) if request.values is None else request.values[[a, b]]
    slope = _slope(mu, *m)
    change = np.mean(v) * slope * (made_of.scores[a] - made_of.scores[b])
    of_values = float(np.mean(r) * (v[0] - v[1]))
    return MeanParts(made_of.names, made_of.scores, a, b, change, of_values)


def _slope(mu: Any, x: float, y: float) -> float:
    """The mean slope of μ between two scores; where they are all but one, that of a short way about them."""
    reach = max(abs(x - y), 1e-6 * (1 + abs(x) + abs(y)))
    middle = (x + y) / 2
    low, high = middle - reach / 2, middle + reach / 2
    return float((mu(np.float64(high)) - mu(np.float64(low))) / (high - low))
