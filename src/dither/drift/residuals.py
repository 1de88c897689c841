"""An alarm for a model that goes on learning: charts of what rewards differ from what it predicted before each.

    e = r - m                     m: the prediction, before the reward is learnt
    z = (e - ē)/(σ √(1 + v))      ē, σ: mean and sd of the earlier ones; v: the share of the variance that the model has
    S ← max(0, S + its log likelihood ratio),  an alarm where S >= h;  one chart for a rise and one for a fall

Only rewards are watched of which the model is sure, v <= `SURE`: elsewhere e is what it has still to learn. The first
`FIRST` of them say what the residuals are like. So a bias that stays, as of a model that is too simple, is no change.
After an alarm all of that begins anew.

    law="normal"     S moves by λ z - λ²/2, and h is that of `alarm.Alarm`
    law="bernoulli"  for rewards from 0 to 1. p = m + ē, and S moves by r ln(p₁/p) + (1 - r) ln((1 - p₁)/(1 - p)), where
                     p₁ is λ sd from p, at most half the way to 0 or 1. While nothing changes S falls by K a value on
                     average, the information of p against p₁, and the mean time to an alarm is (e^h - h - 1)/(K ζ²),
                     where ζ <= 1 is for the overshoot (Siegmund 1985). h is that of ζ = 1, and of the mean of K so
                     far. So the rate is a bound, and holds where p changes from value to value
    law=None         "bernoulli" where the first rewards are all 0 or 1, and else "normal"

A change is said to have begun where the chart that gave the alarm left 0 for the last time: the likeliest place.
"""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from dither.base import errors
from dither.drift.alarm import threshold

FIRST = 500  # values of which mean and sd are taken before any is judged
SURE = 0.0625  # share of the model's own uncertainty in the variance of a residual: a quarter of a sd
_LEAST = 1e-6  # of p and 1 - p
LAWS = ("normal", "bernoulli")


@dataclass(frozen=True)
class ResidualAlarm:
    """What is watched, and how. It is given to `dither.Live`: `alarm=ResidualAlarm(rate=1e-5)`.

    Parameters
    ----------
    rate : false alarms for each reward that is watched, in (0, 0.1]: about so many with the law "normal", at most about
        so many with "bernoulli", as long as the model predicts as well as before
    shift : λ in (0, 2], the change of a residual that is looked for, in its sd
    law : "normal", "bernoulli" for rewards from 0 to 1, or None: the first rewards say it

    Raises ValueError for settings that make no sense.
    """

    rate: float = 1e-4
    shift: float = 0.5
    law: str | None = None

    def __post_init__(self) -> None:
        errors.positive("rate", self.rate)
        errors.within("rate", self.rate, 0, 0.1)
        errors.positive("shift", self.shift)
        errors.within("shift", self.shift, 0, 2)
        if self.law is not None:
            errors.among("law", self.law, LAWS)


@dataclass(frozen=True)
class Change:
    """An alarm: the rewards are not what was predicted."""

    value: int  # the reward that gave the alarm, as the how many-th that was watched
    place: Any  # of it, as it was passed: when it was decided, and in which batch it was learnt
    began: Any  # the place of the reward from which on they probably differ
    rewards: int  # how many there were from there on
    difference: float  # mean of reward - prediction over these, without what it was before


@dataclass
class ResidualChart:
    """One chart, and what came since it left 0."""

    S: float = 0.0
    began: Any = None
    rewards: int = 0
    total: float = 0.0  # of e - ē
    information: float = 0.0  # Σ K of all values since the alarm began anew, with the law "bernoulli"

    def after(self, step: float, place: Any, e: float) -> None:
        """One value more."""
        S = self.S + step
        if S <= 0:
            self.S, self.began, self.rewards, self.total = 0.0, None, 0, 0.0
            return
        if self.began is None:
            self.began = place
        self.S, self.rewards, self.total = S, self.rewards + 1, self.total + e


@dataclass
class WatchedResiduals:
    """Where the charts stand. It is a function of the settings and of the values in turn, and JSON can hold it."""

    n: int = 0  # values that were watched
    unsure: int = 0  # that were passed over, as the model was not sure of them
    since: int = 0  # values since the last alarm
    law: str | None = None  # since then; None: it is not decided yet
    binary: bool = True  # whether all values since then are 0 or 1
    mean: float = 0.0  # of e, since then
    squares: float = 0.0  # Σ (e - ē)²/(1 + v)
    charts: list[ResidualChart] = field(
        default_factory=lambda: [ResidualChart(), ResidualChart()]
    )  # for a rise, and for a fall
    alarms: list[Change] = field(default_factory=list)

    def see(self, about: ResidualAlarm, r: float, m: float, v: float, place: Any) -> Change | None:
        """One reward, what was predicted for it, and the model's share of its variance; -> the alarm that it gives."""
        if not (math.isfinite(r) and math.isfinite(m) and v <= SURE):
            self.unsure += 1
            return None
        self.n += 1
        e, change = r - m, None
        if self.since >= FIRST and self.law == "bernoulli" and not 0 <= r <= 1:
            self._anew("normal")
        if self.law != "normal" and about.law != "normal" and 0 < m < 1:
            p = _share(m + (self.mean if self.since >= FIRST else 0.0))
            for chart, q in zip(self.charts, (p, 1 - p), strict=True):
                chart.information += -q * _ratio(1.0, q, about.shift) - (1 - q) * _ratio(0.0, q, about.shift)
        if self.since >= FIRST:
            change = self._judge(about, r, m, v, place)
        elif self.since == FIRST - 1:
            binary = self.binary and r in (0.0, 1.0)
            self.law = about.law or self.law or ("bernoulli" if binary else "normal")
        self.binary = self.binary and r in (0.0, 1.0)
        self.since += 1
        off = e - self.mean
        self.mean += off / self.since
        self.squares += off * (e - self.mean) / (1 + v)
        if change is not None:
            self.alarms.append(change)
            self._anew(None)
        return change

    def _anew(self, law: str | None) -> None:
        self.since, self.mean, self.squares, self.binary, self.law = 0, 0.0, 0.0, True, law
        self.charts = [ResidualChart(), ResidualChart()]

    def _judge(self, about: ResidualAlarm, r: float, m: float, v: float, place: Any) -> Change | None:
        e, λ = r - m - self.mean, about.shift
        if self.law == "bernoulli":
            p = _share(m + self.mean)
            steps = [_ratio(r, p, λ), _ratio(1 - r, 1 - p, λ)]
            ends = [_height(chart.information / (self.since + 1) * 2 / about.rate) for chart in self.charts]
        else:
            variance, ends = self.squares / (self.since - 1), [threshold(2 / about.rate, λ)] * 2
            z = e / math.sqrt(variance * (1 + v + 1 / self.since)) if variance > 0 else math.copysign(bool(e) * 1e3, e)
            steps = [λ * z - λ * λ / 2, -λ * z - λ * λ / 2]
        for chart, step in zip(self.charts, steps, strict=True):
            chart.after(step, place, e)
        over = [chart for chart, h in zip(self.charts, ends, strict=True) if 0 < h <= chart.S]
        if not over:
            return None
        highest = max(over, key=lambda chart: chart.S)
        return Change(self.n, place, highest.began, highest.rewards, highest.total / highest.rewards)

    def described(self) -> dict[str, Any]:
        """As JSON has it, to the bit."""
        return asdict(self)

    @classmethod
    def of_description(cls, about: dict[str, Any]) -> "WatchedResiduals":
        """What `described` gave."""
        charts, alarms = (
            [kind(**one) for one in about[name]] for name, kind in (("charts", ResidualChart), ("alarms", Change))
        )
        return cls(**(about | {"charts": charts, "alarms": alarms}))


def _share(p: float) -> float:
    return min(max(p, _LEAST), 1 - _LEAST)


def _height(time: float) -> float:
    """h, of which e^h - h - 1 is so much."""
    h = math.log1p(time + math.sqrt(2 * time))  # too high
    for _ in range(6):  # the function is convex
        h -= (math.expm1(h) - h - time) / math.expm1(h) if h > 0 else 0.0
    return h


def _ratio(r: float, p: float, shift: float) -> float:
    """The log likelihood ratio of a rise of p, for a reward from 0 to 1."""
    raised = min(p + shift * math.sqrt(p * (1 - p)), (1 + p) / 2)
    return r * math.log(raised / p) + (1 - r) * math.log((1 - raised) / (1 - p))
