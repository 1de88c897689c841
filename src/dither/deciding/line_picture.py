"""The picture of an explanation: the lines of all arms over z, their envelope, and how probable each z is."""

from typing import TYPE_CHECKING, Any

import numpy as np

from dither import noise
from dither.base import errors

if TYPE_CHECKING:
    from dither.deciding.explain import Explanation


def draw(e: "Explanation", ax: Any = None) -> Any:
    """Draw it with matplotlib: lines (those that can win in colour), envelope, density of z, and z. -> the axes

    Raises ImportError where matplotlib is not installed.
    """
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError:
            raise errors.missing_extra("matplotlib", extra="experiments") from None
        ax = pyplot.subplots(figsize=(7, 4), layout="constrained")[1]
    z = _grid(e)
    able = ~np.isnan(e.low)
    # At most 200 of the arms that cannot win: nobody could tell more lines apart.
    for i in np.flatnonzero(~able)[:200]:
        ax.plot(z, e.m[i] + z * e.w[i], color="0.85", linewidth=0.8, zorder=1)
    for i in np.flatnonzero(able):
        label = f"arm {i}: {e.propensity[i]:.3g}"
        ax.plot(z, e.m[i] + z * e.w[i], linewidth=1.2, zorder=2, label=label)
    top = np.max(e.m[able, None] + z * e.w[able, None], axis=0)
    ax.plot(z, top, color="black", linewidth=4, alpha=0.25, zorder=1.5, label="highest")
    inside = e.corners[(e.corners > z[0]) & (e.corners < z[-1])]
    ax.plot(inside, np.interp(inside, z, top), "o", color="black", markersize=4, zorder=4)
    if e.z is not None:
        ax.axvline(e.z, color="black", linestyle="--", linewidth=1, label=f"z = {e.z:.3g}")
    heights = e.m[able, None] + z[[0, -1]] * e.w[able, None]
    base, room = heights.min(), max(float(np.ptp(heights)), 1e-12)
    shape = _density(e, z)
    ax.fill_between(z, base - 0.35 * room, base - 0.35 * room + 0.3 * room * shape, color="0.8", zorder=0)
    ax.set(xlabel="z", ylabel="score  m + z w", xlim=(z[0], z[-1]))
    if np.sum(able) <= 12:
        ax.legend(fontsize="small")
    return ax


def _grid(e: "Explanation") -> np.ndarray:
    """The values of z to draw: all but a probability of 1e-4 on either side, or all points; and z itself."""
    if isinstance(e.law, noise.Points):
        low, high = min(e.law.points), max(e.law.points)
    else:
        wide = np.linspace(e.law.panels[0], e.law.panels[-1], 4001)
        shown = wide[(e.law.cdf(wide) > 1e-4) & (e.law.sf(wide) > 1e-4)]
        low, high = shown[0], shown[-1]
    if e.z is not None:
        low, high = min(low, e.z), max(high, e.z)
    margin = 0.02 * (high - low) or 1.0
    return np.unique(np.r_[np.linspace(low - margin, high + margin, 400), e.corners.clip(low, high)])


def _density(e: "Explanation", z: np.ndarray) -> np.ndarray:
    """The density of z, scaled so that its highest value is 1; with finitely many values, a spike at each."""
    if isinstance(e.law, noise.Points):
        shape = np.zeros(len(z))
        np.add.at(shape, np.argmin(np.abs(z - np.array(e.law.points)[:, None]), axis=1), e.law.weights)
    else:
        shape = np.gradient(e.law.cdf(z), z)
    return shape / np.max(shape)
