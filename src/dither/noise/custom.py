"""A law of z of your own, given by its distribution function."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from dither.base import arrays
from dither.noise import slices
from dither.noise.laws import Gaussian
from dither.noise.slices import Function


@dataclass(frozen=True)
class Custom:
    """Any continuous law of z, symmetric or not, by functions of arrays, such as those of a frozen SciPy distribution.

    cdf, sf : P(z' <= z) and P(z' > z) for z in [-inf, inf]; each must be accurate in its own tail
    ppf : the quantiles on (0, 1), from which z is drawn; `FeaturePerturbation(noise=...)` and `panels` need them
    density : the density of z; uncoupled arms need it
    logcdf, logsf : log cdf and log sf, also where cdf and sf underflow; None: the logarithms of cdf and sf are taken

    A file cannot hold functions, so a bandit with such a law can be pickled and not saved.
    """

    cdf: Function
    sf: Function
    ppf: Function | None = None
    density: Function | None = None
    logcdf: Function | None = None
    logsf: Function | None = None
    symmetric = False  # whether it is, is not known

    def __post_init__(self) -> None:
        for name in ("cdf", "sf"):
            if not callable(getattr(self, name)):
                raise TypeError(f"{name} must be a function of an array, got {getattr(self, name)!r}")
        for name, function, rising in (("cdf", self.cdf, True), ("sf", self.sf, False)):
            ends = np.asarray(function(np.array([-np.inf, np.inf])), dtype=float)
            if ends.shape != (2,) or not np.allclose(ends, [1 - rising, rising]):
                raise ValueError(f"{name} must go from {1 - rising} at -inf to {int(rising)} at inf, got {ends}")

    @classmethod
    def of(cls, distribution: Any) -> "Custom":
        """The law of a frozen continuous distribution as SciPy has them: `Custom.of(scipy.stats.t(df=5))`."""
        d = distribution
        return cls(d.cdf, d.sf, ppf=d.ppf, density=d.pdf, logcdf=d.logcdf, logsf=d.logsf)

    def marginal(self, dim: int) -> "Custom":
        """Itself: a law of z, the same in every dimension."""
        return self

    @property
    def panels(self) -> tuple[float, ...]:
        """The quantiles of this law at the levels where a Gaussian has the ends of its panels."""
        z = np.array(Gaussian.panels)
        quantiles = self._quantiles()
        return tuple(np.unique(quantiles(np.minimum(special.ndtr(z), 1 - 2.0**-53))).tolist())

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Independent draws of z, by inversion."""
        u = rng.random(shape)
        z = np.asarray(self._quantiles()(np.maximum(arrays.numpy(u), 2.0**-54)), dtype=float)
        return arrays.beside(z, u)

    def log_cdf(self, z: np.ndarray) -> np.ndarray:
        """log P(z' <= z)."""
        return arrays.ln(self.cdf(z)) if self.logcdf is None else self.logcdf(z)

    def log_sf(self, z: np.ndarray) -> np.ndarray:
        """log P(z' > z)."""
        return arrays.ln(self.sf(z)) if self.logsf is None else self.logsf(z)

    def pdf(self, z: np.ndarray) -> np.ndarray:
        """The density."""
        if self.density is None:
            raise ValueError("arms with a z each need the density: noise.Custom(cdf, sf, density=...)")
        return self.density(z)

    def log_pdf(self, z: np.ndarray) -> np.ndarray:
        """The logarithm of the density."""
        return arrays.ln(self.pdf(z))

    def smooth(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """0, which says that no such length is known."""
        return np.zeros(np.broadcast_shapes(np.shape(low), np.shape(high)))

    def mass(self, low: float, high: float) -> float:
        """P(low < z <= high) for two numbers."""
        return float(slices.mass(self, low, high))

    def _quantiles(self) -> Function:
        """ppf. Raises ValueError where it was not given."""
        if self.ppf is None:
            raise ValueError("to draw z and to integrate over it takes its quantiles: noise.Custom(cdf, sf, ppf=...)")
        return self.ppf
