"""Fields that are numbers: scaled, or standardised by the first rows and cut."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dither.base import errors
from dither.features import kind, transformers, values

_PLAIN = {float, int, bool}
_NEAR = 2**53  # whole numbers below it are floats without rounding
_ALL = kind.Gaps()  # no value was missing


@dataclass(frozen=True)
class Numeric(kind.Kind):
    """A number, scaled: (x - mean)/scale, one column. Both are stated, or both are fitted.

    missing : "zero": the mean stands for it; "column": the same, and a column says so with a 1; "error": it is refused
    """

    mean: float | None = None
    scale: float | None = None
    missing: str = "zero"
    name: ClassVar[str] = "numeric"
    _most: ClassVar[float] = errors.LARGEST  # (x - mean)/scale is smaller, or is cut

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.mean is None) != (self.scale is None):
            raise ValueError("mean and scale must both be stated, as in Numeric(mean=40, scale=15), or both be fitted")
        if self.scale is not None:
            errors.within("scale", self.scale, 1 / errors.LARGEST, errors.LARGEST)
            errors.within("mean", self.mean, -errors.LARGEST, errors.LARGEST)
            object.__setattr__(self, "mean", float(self.mean))  # type: ignore[arg-type]
            object.__setattr__(self, "scale", float(self.scale))

    @property
    def fitted(self) -> bool:
        """Whether mean and scale are known."""
        return self.scale is not None

    def fit(self, column: Sequence[Any]) -> "Numeric":
        """With the mean and the standard deviation of the values that are not missing (1 where they are all equal)."""
        mean, scale = transformers.moments(_numbers(column))
        return replace(self, mean=mean, scale=scale)

    def of_values(self, field: str) -> list[str]:
        """The field itself."""
        return [field]

    def write(self, column: Sequence[Any], out: np.ndarray) -> kind.Gaps:
        """Scale the values."""
        if len(column) == 1 and type(column[0]) in _PLAIN and abs(column[0]) < _NEAR:
            y = (column[0] - self.mean) / self.scale  # a context of one request: an array would take four times as long
            if abs(y) < self._most:
                out[0, 0] = y
                return _ALL
        x = _numbers(column)
        y = self._cut((x - self.mean) / self.scale)  # type: ignore[operator]
        out[:, 0] = y
        if np.vdot(y, y) < errors.LARGEST**2:
            return _ALL
        far = ~(np.abs(y) < errors.LARGEST) & ~np.isnan(x)
        if far.any():
            i = int(np.argmax(far))
            raise kind.Wrong(i, f"is {x[i]:g}, too far from the mean {self.mean:g} for the scale {self.scale:g}")
        gone = np.flatnonzero(np.isnan(x))
        out[gone, 0] = 0.0
        return kind.Gaps(missing=gone.tolist())

    def _cut(self, y: np.ndarray) -> np.ndarray:
        """The scaled values as they are written."""
        return y

    def __str__(self) -> str:
        if not self.fitted:
            return f"{self.name}, not fitted"
        return f"{self.name}, mean {self.mean:.6g}, scale {self.scale:.6g}"


@dataclass(frozen=True)
class Standard(Numeric):
    """A number, standardised: (x - mean)/scale, one column, cut at `clip` from both sides.

    Mean and scale are stated, or learnt once from the first rows (`Features.fit`), and then they stay. So X is the same
    function of a context for as long as a bandit learns.

    clip : how many scales from the mean a value counts at most, so that a few rows cannot rule what is learnt
    least : how many values a fit needs at least, for mean and scale to say something of the rows that come later
    """

    clip: float = 5.0
    least: int = 32
    name: ClassVar[str] = "standard"

    def __post_init__(self) -> None:
        errors.within("clip", self.clip, 1 / errors.LARGEST, errors.LARGEST)
        errors.at_least("least", self.least, 1)
        for name in ("clip", "_most"):
            object.__setattr__(self, name, float(self.clip))
        super().__post_init__()

    def fit(self, column: Sequence[Any]) -> "Numeric":
        """As for `Numeric`. Raises ValueError for fewer values than `least`."""
        there = int(np.sum(~np.isnan(_numbers(column))))
        if there < self.least:
            raise ValueError(
                f"has {there} values, and mean and scale are learnt from {self.least} at least: fit to more rows; or "
                "state them, as in Standard(mean=40, scale=15); or lower `least`"
            )
        return super().fit(column)

    def _cut(self, y: np.ndarray) -> np.ndarray:
        return np.clip(y, -self.clip, self.clip)

    def __str__(self) -> str:
        return f"{super().__str__()}, cut at {self.clip:g}" if self.fitted else super().__str__()


def _numbers(column: Sequence[Any]) -> np.ndarray:
    """The values as float64 (n,), NaN where they are missing."""
    if set(map(type, column)) <= _PLAIN:
        try:
            x = np.array(column, dtype=np.float64)
        except OverflowError:
            x = np.array([np.inf])
        if np.vdot(x, x) < errors.LARGEST**2:
            return x
    numbers = [kind.at(i, values.number, value) for i, value in enumerate(column)]
    return np.array([math.nan if x is None else x for x in numbers])
