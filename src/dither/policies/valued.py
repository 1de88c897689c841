"""Views where each arm has a value: the arm of the highest value times expected reward is shown, s_i = v_i μ(score_i).

With five prices and a model of purchases, the values are the prices, and what is maximised is the revenue.

    Lines, identity link      v m + z v w: lines again, exact
    Lines, log link           m + log v + z w has the order of v e^{m + zw}: lines again, exact
    Lines, logit link         `Curves`: exact, with one z for all arms, for up to `propensity.MOST_CURVES` arms
    Lines, probit link        `Curves`: Monte Carlo
    other scores              `Paid`: Monte Carlo

Values come settled: those that nothing but rounding tells apart are one number (`Request.values`). Arms of one value
then have the order of their scores, with the ties that these have without values. Arms of several values are compared
by v μ, or by log v + log μ where the link has that.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dither import noise, propensity
from dither.base import arrays
from dither.base.arrays import Array
from dither.propensity import Slack
from dither.propensity.settled import UNIT


class Paid(NamedTuple):
    """v μ(scores) of a view that shows the arm of its highest score."""

    view: Any
    v: Array  # (..., K)
    link: Any
    error: Callable[..., Array] | None = None  # of the scores, from what was drawn; None: they are rounded

    def scores(self, *chance: Array) -> Array:
        """The values times the rewards that the scores, before the link, stand for: (..., K)."""
        return self.v * self.link.mu(self.view.scores(*chance))

    def best(self, *chance: Array, u: Array, mask: Array | None = None) -> Array:
        """The arms shown, with a uniform u (...) for ties: (...) integers."""
        x = arrays.numpy(self.view.scores(*chance))
        error = arrays.spread(x, mask=mask) if self.error is None else self.error(*chance)
        return arrays.nth(tied(x, error, self.v, self.link, mask), u)


class Curves(NamedTuple):
    """The scores v_i μ(m_i + z w_i) of the logit or the probit link, with one z for all arms."""

    m: Array  # (..., K)
    w: Array  # (..., K)
    v: Array  # (..., K)
    law: Any  # of z
    along: Array | None = None  # as of `views.Lines`
    slack: Slack | None = None  # as of `views.Lines`
    link: Any = propensity.LOGIT

    def z(self, zeta: Array) -> Array:
        """The z that moves the arms: (...)."""
        return zeta if self.along is None else arrays.namespace(zeta).vecdot(zeta, self.along)

    def scores(self, zeta: Array) -> Array:
        """v μ: (..., K)."""
        return self.v * self.link.mu(self.m + self.z(zeta)[..., None] * self.w)

    def best(self, zeta: Array, *, u: Array, mask: Array | None = None) -> Array:
        """The arms shown, with a uniform u (...) for ties: (...) integers."""
        z = self.z(zeta)
        if isinstance(self.law, noise.Points):
            return arrays.nth(self.at(z, mask), u)
        m, w, v, *_ = self
        return propensity.drawn_of_curves(m, w, v, z, u=u, link=self.link, slack=self.slack, mask=mask)

    def at(self, z: Any, mask: Array | None = None) -> Array:
        """Which arms tie for the highest at one of finitely many z (...): (..., K) bool."""
        m, w, v, *_ = self
        return propensity.curves_at_point(m, w, v, z, link=self.link, slack=self.slack, mask=mask)

    @property
    def propensities(self) -> Any:
        """The rule for the probabilities of all arms, mask= -> (..., K); None where none is known."""
        if self.link.name != "logit" or self.m.shape[-1] > propensity.MOST_CURVES:
            return None
        return self._of_points if isinstance(self.law, noise.Points) else self._all

    def _of_points(self, *, mask: np.ndarray | None = None) -> np.ndarray:
        p = np.zeros(self.m.shape)
        for z, weight in zip(self.law.points, self.law.shares.tolist(), strict=True):
            share = self.at(z, mask) * 1.0
            p += weight * share / np.sum(share, axis=-1, keepdims=True)
        return p

    def _all(self, *, mask: np.ndarray | None = None) -> np.ndarray:
        p, whole = np.zeros(self.m.shape), self.slack or propensity.rounded(self.m, self.w, mask)
        on = np.ones(self.m.shape, dtype=bool) if mask is None else np.broadcast_to(mask, self.m.shape)
        parts = (self.m, self.w, self.v, whole.m, whole.omega)
        m, w, v, error, omega = (np.broadcast_to(part, self.m.shape) for part in parts)
        for row in np.ndindex(self.m.shape[:-1]):
            arms = np.flatnonzero(on[row])
            slack = Slack(error[row][arms], 1.0, omega[row][arms])
            p[row][arms] = propensity.curves(m[row][arms], w[row][arms], v[row][arms], law=self.law, slack=slack)
        return p


def lines(view: Any, v: Array, link: Any) -> Any:
    """The view of lines where the arms have values v."""
    if link.name == "identity":
        return view._replace(m=view.m * v, w=view.w * v, slack=_scaled(view, v))
    if link.name == "log":
        price = _log_price(v)
        rounding = 2 * UNIT * (abs(view.m) + abs(price)) * (price != 0)
        slack = view.slack and Slack(view.slack.m + rounding, 1.0, view.slack.omega)
        return view._replace(m=view.m + price, slack=slack)
    if view.coupled:
        return Curves(view.m, view.w, v, view.law, view.along, view.slack, link)
    slack = view.slack or propensity.rounded(view.m, view.w)
    return Paid(view, v, link, lambda zeta: slack.at(view.z(zeta), view.m, view.w))


def tied(x: np.ndarray, error: np.ndarray, v: np.ndarray, link: Any, mask: np.ndarray | None) -> np.ndarray:
    """Which arms tie for the highest v μ(x): x and its errors, v (..., K) -> (..., K) bool."""
    if link.name == "identity":
        return arrays.top(v * x, error=v * error + 2 * UNIT * abs(v * x), mask=mask)
    if link.name == "log":
        price = _log_price(v)
        return arrays.top(x + price, error=error + 2 * UNIT * (abs(x) + abs(price)) * (price != 0), mask=mask)
    return propensity.top_of_curves(x, error, v, link=link, mask=mask)


def _scaled(view: Any, v: Array) -> Slack | None:
    """The errors of v m and v w."""
    slack = view.slack
    return slack and Slack((slack.m + 2 * UNIT * abs(view.m)) * v, 1.0, slack.omega + 2 * UNIT)


def _log_price(v: np.ndarray) -> np.ndarray:
    """log v, up to a constant of each request: 0 where all values are one, so that no digit of a score is lost."""
    return np.log(v) - np.log(np.max(v, axis=-1, keepdims=True))
