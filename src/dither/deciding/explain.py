"""Why an arm was shown: the lines of all arms over z, the corners of their envelope, and who wins between them."""

import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither import noise, propensity
from dither.base import errors, notebook
from dither.deciding import decision
from dither.deciding.decision import Moment
from dither.deciding.demands import Demands
from dither.deciding.request import Request
from dither.policies.views import Lines


@dataclass(frozen=True, repr=False)
class Explanation:
    """The lines m_i + z w_i of one request, and the interval of z in which each arm is the best; NaN: in none."""

    m: np.ndarray  # (K,)  height at z = 0: the mean
    w: np.ndarray  # (K,)  slope: the width times the scale
    low: np.ndarray  # (K,)  the arm is the best for low <= z < high
    high: np.ndarray  # (K,)  arms that are one line have one interval and share its probability
    propensity: np.ndarray  # (K,)  with the uniform share, as `Bandit.propensities`
    corners: np.ndarray  # (C,)  z_1 < z_2 < ..., where the best arm changes
    law: Any  # the law of z
    uniform: float  # the share of choices that is uniform, whatever z
    z: float | None  # the value that was asked about; None: none was
    best: tuple[int, ...]  # the arms that are the highest at z: several where they tie, none where no z was given

    def table(self, *, arms: int = 20) -> str:
        """The arms that can win, from the lowest z to the highest, at most `arms` of them, as text."""
        able = np.flatnonzero(~np.isnan(self.low))
        able = able[np.lexsort((able, self.low[able]))]
        rows = [f"{'arm':>6} {'m':>12} {'w':>12} {'z from':>10} {'to':>10} {'probability':>12}"]
        for i in able[:arms]:
            mark = "  <- z" if i in self.best else ""
            rows.append(
                f"{i:>6} {self.m[i]:>12.5g} {self.w[i]:>12.5g} {self.low[i]:>10.4f} {self.high[i]:>10.4f} "
                f"{self.propensity[i]:>12.4g}{mark}"
            )
        more, never = len(able) - arms, len(self.m) - len(able)
        rows += [f"{more} more arms can win"] if more > 0 else []
        rows += [f"{never} of {len(self.m)} arms are not the best at any z"] if never else []
        rows += [f"a share {self.uniform:g} of choices is uniform"] if self.uniform else []
        return "\n".join(rows)

    def __repr__(self) -> str:
        at = f" at z = {self.z:.4f}" if self.z is not None else ""
        return f"Explanation of {len(self.m)} arms{at}, {type(self.law).__name__}\n{self.table()}"

    def _repr_html_(self) -> str:
        """What a notebook shows: the table, in which the arms that are the best at z are marked."""
        rest = self.table().splitlines()[1:]
        able = [line for line in rest if line[:6].strip().isdecimal()]
        rows = [(cells[0] + " ← z" * (len(cells) > 6), *cells[1:6]) for cells in (line.split() for line in able)]
        at = f" at z = {self.z:.4f}" if self.z is not None else ""
        title = f"Explanation of {len(self.m)} arms{at}, {type(self.law).__name__}"
        heads = ["arm", "m", "w", "z from", "to", "probability"]
        return notebook.table(heads, rows, title=title, says=rest[len(able) :])

    def plot(self, ax: Any = None) -> Any:
        """Draw it with matplotlib: lines (those that can win in colour), envelope, density of z, and z. -> the axes

        Raises ImportError where matplotlib is not installed.
        """
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError:
                raise errors.missing_extra("matplotlib", extra="experiments") from None
            ax = pyplot.subplots(figsize=(7, 4), layout="constrained")[1]
        z = self._grid()
        able = ~np.isnan(self.low)
        # At most 200 of the arms that cannot win: nobody could tell more lines apart.
        for i in np.flatnonzero(~able)[:200]:
            ax.plot(z, self.m[i] + z * self.w[i], color="0.85", linewidth=0.8, zorder=1)
        for i in np.flatnonzero(able):
            label = f"arm {i}: {self.propensity[i]:.3g}"
            ax.plot(z, self.m[i] + z * self.w[i], linewidth=1.2, zorder=2, label=label)
        top = np.max(self.m[able, None] + z * self.w[able, None], axis=0)
        ax.plot(z, top, color="black", linewidth=4, alpha=0.25, zorder=1.5, label="highest")
        inside = self.corners[(self.corners > z[0]) & (self.corners < z[-1])]
        ax.plot(inside, np.interp(inside, z, top), "o", color="black", markersize=4, zorder=4)
        if self.z is not None:
            ax.axvline(self.z, color="black", linestyle="--", linewidth=1, label=f"z = {self.z:.3g}")
        heights = self.m[able, None] + z[[0, -1]] * self.w[able, None]
        base, room = heights.min(), max(float(np.ptp(heights)), 1e-12)
        shape = self._density(z)
        ax.fill_between(z, base - 0.35 * room, base - 0.35 * room + 0.3 * room * shape, color="0.8", zorder=0)
        ax.set(xlabel="z", ylabel="score  m + z w", xlim=(z[0], z[-1]))
        if np.sum(able) <= 12:
            ax.legend(fontsize="small")
        return ax

    def _grid(self) -> np.ndarray:
        """The values of z to draw: all but a probability of 1e-4 on either side, or all points; and z itself."""
        if isinstance(self.law, noise.Points):
            low, high = min(self.law.points), max(self.law.points)
        else:
            wide = np.linspace(self.law.panels[0], self.law.panels[-1], 4001)
            shown = wide[(self.law.cdf(wide) > 1e-4) & (self.law.sf(wide) > 1e-4)]
            low, high = shown[0], shown[-1]
        if self.z is not None:
            low, high = min(low, self.z), max(high, self.z)
        margin = 0.02 * (high - low) or 1.0
        return np.unique(np.r_[np.linspace(low - margin, high + margin, 400), self.corners.clip(low, high)])

    def _density(self, z: np.ndarray) -> np.ndarray:
        """The density of z, scaled so that its highest value is 1; with finitely many values, a spike at each."""
        if isinstance(self.law, noise.Points):
            shape = np.zeros(len(z))
            np.add.at(shape, np.argmin(np.abs(z - np.array(self.law.points)[:, None]), axis=1), self.law.weights)
        else:
            shape = np.gradient(self.law.cdf(z), z)
        return shape / np.max(shape)


def explain(now: Moment, request: Request, demands: Demands, *, z: float | None) -> Explanation:
    """The explanation of one request.

    Raises TypeError for a policy whose arms are not lines that one z moves; ValueError for a z that is no number.
    """
    view, mask = now.view(request), request.mask
    lines = decision.lines(view)
    if lines is None:
        raise no_lines(now.policy)
    p = demands.of(decision.propensities(view, mask=mask))
    return of_lines(lines, p=p, uniform=demands.uniform, z=z, mask=mask)


def of_lines(lines: Lines, *, p: np.ndarray, uniform: float, z: float | None, mask: np.ndarray | None) -> Explanation:
    """The explanation of lines (K,) with the probabilities p (K,), of which a share is uniform."""
    m, w, slack, law, *_ = lines
    sets = propensity.settle(m[None], w[None], slack=slack or propensity.rounded(m, w, mask), mask=_row(mask))
    hull = propensity.corners(sets.m, sets.w, mask=_row(mask))
    low, high, of = np.full(m.shape, np.nan), np.full(m.shape, np.nan), sets.of[0]
    for arm, a, b in zip(hull.arm, hull.low, hull.high, strict=True):
        one = of == of[arm]
        low[one], high[one] = a, b
    best: tuple[int, ...] = ()
    if z is not None:
        if np.ndim(z) or not isinstance(z, numbers.Real) or not math.isfinite(z):
            raise ValueError(f"z must be one finite number, got {z!r}; of a batch, explain one request at a time")
        if isinstance(law, noise.Points):
            tied = propensity.shared_at(m, w, float(z), slack=slack, mask=mask) > 0
        else:
            tied = (low <= z) & (z < high)
        best = tuple(np.flatnonzero(tied).tolist())
    return Explanation(m, w, low, high, p, hull.low[1:], law, uniform, None if z is None else float(z), best)


def _row(mask: np.ndarray | None) -> np.ndarray | None:
    return None if mask is None else mask[None]


def no_lines(policy: Any) -> TypeError:
    """The error of a policy whose arms are not lines that one z moves."""
    return TypeError(
        f"explain needs arms that one z moves along lines, which {type(policy).__name__} as it is set does not have: "
        f"FeaturePerturbation and RandUCB with coupled=True have; propensities(X) says what this policy does"
    )
