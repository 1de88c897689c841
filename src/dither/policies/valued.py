"""Views where each arm has a value: the arm of the highest value times expected reward is shown, s_i = v_i μ(score_i).

With five prices and a model of purchases, the values are the prices, and what is maximised is the revenue.

    Lines, identity link      v m + z v w: lines again, exact
    Lines, log link           m + log v + z w has the order of v e^{m + zw}: lines again, exact
    Lines, logit link         `Curves`: exact, with one z for all arms, for up to `propensity.MOST_CURVES` arms
    other scores, links       `Paid`: Monte Carlo
"""

from typing import Any, NamedTuple

import numpy as np

from dither import noise, propensity
from dither.base import arrays
from dither.base.arrays import Array


class Paid(NamedTuple):
    """v μ(scores) of a view that shows the arm of its highest score."""

    view: Any
    v: Array  # (..., K)
    link: Any

    def scores(self, *chance: Array) -> Array:
        """The values times the rewards that the scores, before the link, stand for: (..., K)."""
        return self.v * self.link.mu(self.view.scores(*chance))


class Curves(NamedTuple):
    """The scores v_i μ(m_i + z w_i) of the logit link, with one z for all arms."""

    m: Array  # (..., K)
    w: Array  # (..., K)
    v: Array  # (..., K)
    law: Any  # of z
    along: Array | None = None  # as of `views.Lines`

    def z(self, zeta: Array) -> Array:
        """The z that moves the arms: (...)."""
        return zeta if self.along is None else arrays.namespace(zeta).vecdot(zeta, self.along)

    def scores(self, zeta: Array) -> Array:
        """How far each curve lies below the highest: at most 0, (..., K)."""
        return propensity.of_curves(self.m, self.w, self.v, self.z(zeta)[..., None])[0]

    def best(self, zeta: Array, *, u: Array, mask: Array | None = None) -> Array:
        """The arms shown, with a uniform u (...) for ties: (...) integers."""
        s, error = propensity.of_curves(self.m, self.w, self.v, self.z(zeta)[..., None], mask=mask)
        return arrays.argmax(s, u=u, error=error, mask=mask)

    @property
    def propensities(self) -> Any:
        """The rule for the probabilities of all arms, mask= -> (..., K); None where there are too many arms."""
        return self._all if self.m.shape[-1] <= propensity.MOST_CURVES else None

    def _all(self, *, mask: np.ndarray | None = None) -> np.ndarray:
        p = np.zeros(self.m.shape)
        on = np.ones(self.m.shape, dtype=bool) if mask is None else np.broadcast_to(mask, self.m.shape)
        for row in np.ndindex(self.m.shape[:-1]):
            arms = np.flatnonzero(on[row])
            m, w, v = (part[row][arms] for part in (self.m, self.w, np.broadcast_to(self.v, self.m.shape)))
            if isinstance(self.law, noise.Points):
                s, error = propensity.of_curves(m, w, v, np.asarray(self.law.points)[:, None])
                p[row][arms] = np.asarray(self.law.weights) @ arrays.share(s, error=error)
            else:
                p[row][arms] = propensity.curves(m, w, v, law=self.law)
        return p


def lines(view: Any, v: Array, link: Any) -> Any:
    """The view of lines where the arms have values v."""
    if link.name == "identity":
        slack = view.slack and view.slack._replace(raw=view.slack.raw * v)
        return view._replace(m=view.m * v, w=view.w * v, slack=slack)
    if link.name == "log":
        return view._replace(m=view.m + np.log(v))
    if link.name == "logit" and view.coupled:
        return Curves(view.m, view.w, v, view.law, view.along)
    return Paid(view, v, link)
