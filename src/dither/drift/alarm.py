"""An alarm for drift: Page's CUSUM, which says when the mean of a stream has changed, at a stated rate of false alarms.

    z_t = (v_t - mean)/σ                                   where the mean is known, as that of residuals is: 0
    z_t = (v_t - v̄_{t-1})/(σ √(1 + 1/(t-1)))               else, from the second value on: recursive residuals
    S ← max(0, S ± λ z - λ²/2),  an alarm when S >= h      one chart for each side; λ = `shift`

S is the largest log likelihood ratio of a shift of λσ that began at some time against none. After an alarm the stream
begins anew. Recursive residuals of normal values are independent N(0, 1) as long as nothing changes, whatever the mean
is. So the rate is the stated one for an unknown mean too.

    law="normal"    h is where the mean time between false alarms is 1/rate for normal values, by Siegmund's formula
                    (e^{2kb} - 2kb - 1)/(2k²),  k = λ/2,  b = h/λ + 1.166;  two charts add their rates. Measured, the
                    rate is within 3 % of the stated one for λ <= 1, and up to 10 % above it for λ = 2
    law="bernoulli" for values of 0 and 1 with a known mean: the exact likelihood ratio, and an exact mean time between
                    false alarms of each chart (`clicks`). Its λσ is at most half the way from the mean to 0 or 1
    law="bounded"   h = log(charts/rate): the mean time is at least 1/rate for every law with E e^{λz} <= e^{λ²/2}, as
                    of values in an interval of length 2σ, however they depend on earlier ones (Lorden)

Sources: Page, "Continuous inspection schemes", Biometrika 1954; Lorden, "Procedures for reacting to a change in
distribution", Annals of Statistics 1971; Siegmund, "Sequential Analysis", 1985, equation 2.57 with its correction for
overshoot; recursive residuals: Brown, Durbin, Evans, JRSS B 1975.
"""

import functools
import math
from typing import Any

import numpy as np

from dither.base import errors
from dither.drift.clicks import ClickChart

OVERSHOOT = 1.166  # twice the mean overshoot of a normal walk, 2 · 0.583
SIDES = {"both": (1.0, -1.0), "up": (1.0,), "down": (-1.0,)}
LAWS = ("normal", "bernoulli", "bounded")


class Alarm:
    """Watches a stream of numbers, such as rewards or the residuals of a bandit.

    Parameters
    ----------
    rate : false alarms for each value, in (0, 0.1]: one in 1/rate values on average while nothing changes
    shift : λ in (0, 2], the change of the mean that is looked for, in σ. Smaller changes are found later
    sigma : σ, the sd of a value; for law="bounded" half the length of the interval. For law="bernoulli" it follows from
        the mean
    mean : the mean before the change; None: it is not known, and is learnt from the stream (normal values alone)
    side : "both", "up" or "down"
    law : "normal"; "bernoulli" for values that are 0 or 1, such as clicks; or "bounded"

    Raises ValueError for settings that make no sense.
    """

    def __init__(
        self,
        *,
        rate: float,
        shift: float = 1.0,
        sigma: float = 1.0,
        mean: float | None = None,
        side: str = "both",
        law: str = "normal",
    ) -> None:
        errors.positive("rate", rate)
        errors.within("rate", rate, 0, 0.1)
        errors.positive("shift", shift)
        errors.within("shift", shift, 0, 2)
        errors.positive("sigma", sigma)
        errors.among("side", side, SIDES)
        errors.among("law", law, LAWS)
        if mean is not None:
            errors.within("mean", mean, -errors.LARGEST, errors.LARGEST)
        elif law != "normal":
            raise ValueError(
                f"law={law!r} holds for a known mean alone: pass mean=, such as 0 for residuals, or law='normal'"
            )
        if law == "bernoulli":
            sigma = _of_clicks(mean, sigma)
        self.rate, self.shift, self.sigma, self.mean, self.side, self.law = rate, shift, sigma, mean, side, law
        self._signs = SIDES[side]
        time = len(self._signs) / rate  # of each chart
        self._clicks: list[ClickChart] = []
        if law == "bernoulli" and mean is not None:
            of_ones = [mean if sign > 0 else 1 - mean for sign in self._signs]
            self._clicks = [ClickChart.of(p, shift * sigma, time) for p in of_ones]
        self.threshold = 1.0 if self._clicks else threshold(time, shift) if law == "normal" else math.log(time)
        self.n = 0  # values so far
        self.alarms: list[int] = []  # how many values had come at each alarm
        self._begin()

    def _begin(self) -> None:
        self._charts = [0.0] * len(self._signs)
        self._steps = [chart.start for chart in self._clicks]
        self._since, self._average = 0, 0.0  # values since the last alarm, and their mean

    @property
    def statistic(self) -> float:
        """S, the larger one of two charts: an alarm comes at `threshold`. For law="bernoulli" as a share of it."""
        if self._clicks:
            return max(S / chart.height for S, chart in zip(self._steps, self._clicks, strict=True))
        return max(self._charts)

    def update(self, value: float) -> bool:
        """One more value. -> whether this one gives the alarm.

        Raises ValueError for NaN and infinity, and for law="bernoulli" for what is neither 0 nor 1.
        """
        value = float(value)
        if not abs(value) < errors.LARGEST:
            raise ValueError(f"a value must be a finite number below {errors.LARGEST:g}, got {value!r}")
        if self._clicks and value not in (0.0, 1.0):
            raise ValueError(f"law='bernoulli' is for values of 0 and 1, got {value!r}: take law='normal' or 'bounded'")
        self.n += 1
        if self._clicks:
            pairs = zip(self._steps, self._clicks, self._signs, strict=True)
            self._steps = [chart.after(S, value == (sign > 0)) for S, chart, sign in pairs]
        elif not self._learn(value):
            return False
        if self.statistic < self.threshold:
            return False
        self.alarms.append(self.n)
        self._begin()
        return True

    def _learn(self, value: float) -> bool:
        """Move the charts; -> whether they moved: the first value alone says nothing where it is the mean."""
        self._since += 1
        if self.mean is not None:
            z = (value - self.mean) / self.sigma
        elif self._since == 1:
            self._average = value
            return False
        else:
            before = self._since - 1
            z = (value - self._average) / (self.sigma * math.sqrt(1 + 1 / before))
            self._average += (value - self._average) / self._since
        less = self.shift * self.shift / 2
        pairs = zip(self._charts, self._signs, strict=True)
        self._charts = [max(0.0, S + self.shift * sign * z - less) for S, sign in pairs]
        return True

    def watch(self, values: Any) -> list[int]:
        """Many values in turn, (n,). -> the places of those that gave an alarm, counted from 0."""
        return [i for i, value in enumerate(np.asarray(values, dtype=float).ravel().tolist()) if self.update(value)]

    def delay(self, change: float) -> float:
        """How many values an alarm takes on average after the mean has changed by `change` σ, which was known before.

        Siegmund's formula for a chart at 0, and for law="bernoulli" exact. Raises ValueError unless |change| > shift/2,
        since less is hardly ever found; and for a change that takes the mean of clicks out of (0, 1).
        """
        drift = abs(change) - self.shift / 2
        if not drift > 0:
            raise ValueError(f"change must be above shift/2 = {self.shift / 2:g}, got {change!r}: set a smaller shift")
        if self.mean is None or not self._clicks:
            return _time(-drift, self.threshold / self.shift)
        p = self.mean + change * self.sigma
        if not 0 < p < 1:
            raise ValueError(
                f"a change of {change:g} sd takes the mean of clicks to {p:g}, out of (0, 1): take a smaller one"
            )
        sign = 1.0 if change > 0 else -1.0
        if sign not in self._signs:
            raise ValueError(f"side={self.side!r} does not look for a change of {change:g}: take side='both'")
        return float(self._clicks[self._signs.index(sign)].times(p if change > 0 else 1 - p)[0])

    def __repr__(self) -> str:
        return (
            f"Alarm(rate={self.rate:g}, shift={self.shift:g}, sigma={self.sigma:g}, mean={self.mean}, "
            f"side={self.side!r}, law={self.law!r})"
        )


def _of_clicks(mean: float | None, sigma: float) -> float:
    """The sd of clicks."""
    if mean is None or not 0 < mean < 1:
        raise ValueError(f"mean must lie in (0, 1), as the share of clicks does for law='bernoulli'; got {mean!r}")
    if sigma != 1.0:
        raise ValueError(f"sigma follows from the mean for law='bernoulli', got {sigma!r}: leave it out")
    return math.sqrt(mean * (1 - mean))


def _time(k: float, h: float) -> float:
    """The mean time to an alarm of S ← max(0, S + z - k) at h, where z is N(0, 1)."""
    x = 2 * k * (h + OVERSHOOT)
    return (math.expm1(x) - x) / (2 * k * k) if x < 700 else math.inf


@functools.lru_cache(maxsize=100)
def threshold(time: float, shift: float) -> float:
    """h, in log likelihoods, at which the mean time to a false alarm of one chart is `time`."""
    low, high = 0.0, 1.0
    while _time(shift / 2, high) < time:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _time(shift / 2, middle) < time else (low, middle)
    return shift * high
