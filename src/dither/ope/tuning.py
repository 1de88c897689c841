"""Settings of bandits, chosen from a log: c, λ, forgetting, or whole algorithms.

    learn    the first rows teach a bandit of every setting
    choose   the next rows judge all of them: each is frozen, and an estimator says what it would have earned there.
             What has a half_life is frozen as it stands at the first of these rows
    report   the last rows, which had no part in the choice, judge the chosen one, which has learnt the rows before

The rows stand in the order of time. An estimate is the reward of one decision of a policy that learns nothing more. So
it does not show what exploring now is worth in later rounds, and a setting that explores little looks better than it
is. Therefore, of all settings that for sure lose little against the best, the one that explores most is chosen.

Where no two settings can be told apart, the numbers choose nothing, and what ran is kept: the setting whose policy and
model are those that wrote the log. If it is not among them, it is the one of the same kind of policy and model, or else
of any, whose settings are nearest to their defaults (Σ|ln v/default| of numbers above 0, and 1 for anything else that
differs; of settings that were tried with one value alone, nothing), and of several such the one that was named first.
To tell a difference δ with intervals of width W from n rows, about n (W/2δ)² rows are needed, as W falls with 1/√n: for
normal ones that is (z sd/δ)², sd that of the paired difference of a row.

On the log of a policy that learnt meanwhile (`unasked`), the estimator is "ips" with "anytime" intervals, of values and
of paired differences, if nobody chose another one. What "dr" and its normal interval say of the chosen one is shown
beside it.
"""

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dither.algorithms import Spec, specs
from dither.bandit.bandit import Bandit
from dither.base import errors
from dither.base.errors import Option
from dither.log import reader
from dither.log.logged import Logged
from dither.log.warm import warm_start
from dither.ope import intervals, worth
from dither.ope.bounded import LEVELS, IntervalSettings, ordered
from dither.ope.candidates import Saved
from dither.ope.choosing import ranked
from dither.ope.contributions import Contributions
from dither.ope.estimators import contributions
from dither.ope.in_memory import compare, estimate
from dither.ope.intervals import Tally
from dither.ope.result import Difference, Estimate
from dither.ope.unasked import SAFE, SAFE_INTERVAL, UNKNOWN, Logging
from dither.ope.unasked import reward_range as reward_range_of
from dither.ope.verdicts import rounded_up, unsupported

ESTIMATORS = ("dr", "sndr", "snips", "ips")
FAILURES = (ValueError, TypeError, ArithmeticError, RuntimeError)  # of a setting, which is left out then


class TriedSetting(NamedTuple):
    """One setting, judged on the rows that choose."""

    spec: Spec
    estimate: Estimate
    explores: float  # mean over rows of 1/Σp²: how many arms it shows, in effect; 1 for a policy without chance
    unsupported: str  # why the log cannot tell its value, as `dither evaluate` says it; "" where it can
    gap: Difference  # to the setting of the highest estimate; the intervals hold for all pairs at once (Bonferroni)


@dataclass(frozen=True)
class Tuned:
    """What `tune` found."""

    tried: tuple[TriedSetting, ...]  # in the order in which they were asked for
    best: Spec  # the highest estimate on the rows that choose, among those that the log supports
    tied: tuple[Spec, ...]  # `best`, and those that the log cannot tell apart from it
    chosen: Spec  # of those that for sure lose at most `loss`, the one that explores most
    loss: float  # reward of a decision
    value: Estimate  # of `chosen`, on the last rows
    gain: Difference  # what `chosen` earns there above what ran, paired
    rows: tuple[int, int, int]  # that learnt, chose and report
    bandit: Bandit  # `chosen`, which has learnt the rows before the last part: the one that was judged
    failed: dict[str, str]  # settings that ended with an error -> the error
    ran: Spec | None = None  # the setting that wrote the log, where it is among them
    told: bool = True  # whether any two settings could be told apart; if not, `chosen` keeps what ran
    rows_needed: float = 0.0  # so many rows that choose could tell a difference of `loss`, where nothing was told apart
    logging: Logging = UNKNOWN  # what the log says of the policy that ran
    valued: bool = False  # whether arms had values, which the rewards do not count (`dither.ope.worth`)
    narrow: tuple[Estimate, Difference] | None = (
        None  # value and gain by "dr" and normal intervals, beside anytime ones
    )

    def __str__(self) -> str:
        return "\n".join(self.says)

    @property
    def says(self) -> list[str]:
        """What was found, in sentences."""
        _, judged, last = self.rows
        texts = [
            f"Of {len(self.tried)} settings, {self.best} has the highest {self.value.method.upper()} estimate on "
            f"{judged:,} rows that chose."
        ]
        thin = [str(one.spec) for one in self.tried if one.unsupported]
        if len(thin) == len(self.tried) - 1:
            texts.append("It is the only one that the log can judge.")
        elif len(self.tied) > 1:
            names = ", ".join(str(spec) for spec in self.tied if spec != self.best)
            texts.append(f"The log cannot tell it apart from {names}: the paired intervals hold 0.")
        else:
            texts.append("It is above all others by more than the error of the paired comparisons.")
        texts += [f"{name} is left out, since it ended with an error: {why}" for name, why in self.failed.items()]
        if len(thin) == len(self.tried):
            texts.append(
                "The log has too little of what any setting would show, so no estimate is sure: log with a floor, or "
                "log more."
            )
        elif thin:
            texts.append(f"Not judged, as the log has too little of what it would show: {', '.join(thin)}.")
        few = next((tally for one in self.tried if intervals.few(tally := _tally(one.estimate))), None)
        if few is not None:
            texts.append(
                f"Few rewards of the rows that chose differ from {few.values[int(np.argmax(few.mass))]:g}, so these "
                "rows tell little: where all rewards are 0 and 1, or two values, the intervals hold for those that "
                "were not seen."
            )
        texts.append(self._choice())
        texts.append(
            f"On {last:,} later rows, which had no part in the choice, it earns {in_ends(self.value)} a decision; "
            f"against what ran {in_ends(self.gain, sign='+')}: {self._verdict()}."
        )
        return texts + self._learnt() + [worth.TUNED] * self.valued

    def _choice(self) -> str:
        """Which setting, and why."""
        if self.told:
            return (
                f"Chosen: {self.chosen}. Of the settings whose interval excludes a loss above {self.loss:.2g} a "
                "decision against the best, it explores most. What exploring teaches for later rounds is not in these "
                "numbers."
            )
        kept = "it is what ran" if self.chosen == self.ran else "of what was tried it is nearest to what ran"
        rows = "no number of rows that choose would be enough"
        if math.isfinite(self.rows_needed):
            rows = (
                f"about {rounded_up(max(self.rows_needed, 1)):,} rows that choose would be needed, not {self.rows[1]:,}"
            )
        return (
            f"Chosen: {self.chosen}. No two settings can be told apart, and {kept}. To tell a difference of "
            f"{self.loss:.2g} a decision, {rows}."
        )

    def _learnt(self) -> list[str]:
        """What holds on the log of a policy that learnt."""
        if not self.logging.learnt.value:
            return []
        says = f"The policy that ran {self.logging.learnt.words}."
        if self.narrow is None:
            return [
                f"{says} On such a log these intervals cover too rarely: leave the estimator out, or give the range."
            ]
        value, gain = self.narrow
        return [
            f"{says} So all intervals are anytime ones of ips, which hold there. By {value.method.upper()} with normal "
            f"ones, which are narrower and cover too rarely there, {self.chosen} earns {in_ends(value)}, and against "
            f"what ran {in_ends(gain, sign='+')}."
        ]

    def _verdict(self) -> str:
        if why := _why_not(self.value):
            return f"not supported by this log: {why.rstrip('.')}"
        low, high = self.gain.interval
        return "better" if low > 0 else "worse" if high < 0 else "not told apart"


def tune(
    log: Any,
    algorithms: Sequence[Any],
    *,
    learn: float = 0.5,
    choose: float = 0.25,
    estimator: str | None = None,
    floor: float = 0.0,
    slots: int | None = None,
    loss: float | None = None,
    level: float = 0.95,
    reward_range: tuple[float, float] | None = None,
    draws: int = 1000,
    missing: str | float = "error",
    invalid: str = "error",
    duplicates: str = "error",
) -> Tuned:
    """Choose the settings of a bandit from a log, on rows apart from those that report its value.

    log : a `dither.log.Logged`, or what `dither.log.read` reads; its rows need features
    algorithms : texts with all values to try ("LinFP:c=0.3|1|3,lam=0.1|1", "Greedy"), or policies of your own
    learn, choose : shares of the rows that teach and that choose; the others report
    estimator : one of ESTIMATORS, with normal intervals. "dr" and "sndr" take the predictions of each bandit itself,
        which has not seen the rows that it is judged on. None: "dr"; but "ips" with anytime intervals on the log of a
        policy that learnt
    floor : the floor of the bandit: it belongs to the policy that is judged
    slots : the number of disjoint slots, for logs of one context a row
    loss : the reward of a decision that one gives up for exploring; None: 5 % of the size of the highest estimate
    level : of all intervals
    reward_range : what a reward can be, (low, high), for anytime intervals; None: as the log knows it, by what it was
        told or by the link of its model
    draws : Monte Carlo draws a row, for policies whose probabilities have no closed form
    missing, invalid, duplicates : as for `Logged.usable`

    A setting that ends with an error is left out and named. Raises ValueError for fewer than two settings and for too
    few rows; as the readers and estimators do; and the error of the first setting where all end with one.
    """
    if estimator is not None:
        errors.among("estimator", estimator, ESTIMATORS)
    errors.within("level", level, *LEVELS)
    errors.at_least("draws", draws, 1)
    if loss is not None:
        errors.within("loss", loss, 0, 1e100)
    every = _several(algorithms)
    logged = log if isinstance(log, Logged) else reader.read(log)
    logging, texts = Logging.of(logged), [one.text for one in logged.acting]
    logged = logged.usable(missing=missing, invalid=invalid, duplicates=duplicates).standing()
    first, second, last = _parts(logged, learn, choose)
    how = _interval(logging, reward_range, level) if estimator is None else IntervalSettings(level=level)
    by = SAFE if how.interval == SAFE_INTERVAL else estimator or "dr"
    trial = SettingTrial(by, draws, how, floor, slots, logged.X.shape[-1])
    fine, judgements, failed = trial.each(every, first, second)
    estimates, explores = zip(*judgements, strict=True)
    why = [_why_not(one) for one in estimates]
    ranking = ranked(estimates, [not text for text in why], level=level, loss=loss, gap=trial.gap)
    wrote, text = list(map(trial.text, fine)), texts[-1] if texts else None
    ran = next((i for i, one in enumerate(wrote) if text is not None and _plain(one) == _plain(text)), None)
    told = loss is not None or ranking.apart
    place = max(ranking.affordable, key=lambda i: explores[i]) if told else _nearest(fine, wrote, text, ran)
    bandit = trial.taught(fine[place], _rows(logged, 0, len(first) + len(second)))
    value, gain = trial.reported(bandit, last)
    return Tuned(
        tried=tuple(map(TriedSetting, fine, estimates, explores, why, ranking.gaps)),
        best=fine[ranking.best],
        tied=tuple(fine[i] for i in ranking.tied),
        chosen=fine[place],
        loss=ranking.loss,
        value=value,
        gain=gain,
        rows=(len(first), len(second), len(last)),
        bandit=bandit,
        failed={str(spec): str(reason) for spec, reason in failed.items()},
        ran=None if ran is None else fine[ran],
        told=told,
        rows_needed=0.0 if told else rows_needed(len(second), ranking.widest, ranking.loss),
        logging=logging,
        valued=logged.valued,
        narrow=trial.beside.reported(bandit, last) if trial.safe else None,
    )


def _several(algorithms: Sequence[Any]) -> list[Spec]:
    """The settings to try. Raises ValueError for fewer than two."""
    if isinstance(algorithms, str):
        raise ValueError(f"algorithms must be a list of texts; got {algorithms!r}: write [{algorithms!r}]")
    every = specs(*algorithms)
    if len(every) < 2:
        raise ValueError(
            f"tune needs at least two settings, as in LinFP:c=0.3|1; got {', '.join(map(str, every)) or 'none'}"
        )
    return list(every)


def rows_needed(n: int, width: float, difference: float) -> float:
    """How many rows could tell a difference, where intervals of n rows are so wide: n (W/2δ)²; inf for none."""
    return n * (width / (2 * difference)) ** 2 if difference > 0 else math.inf


def _interval(logging: Logging, ends: tuple[float, float] | None, level: float) -> IntervalSettings:
    """The interval where nobody chose an estimator. Raises ValueError where it needs a range that nobody knows."""
    ends = logging.reward_range if ends is None else ends
    if not logging.learnt.value or (ends is None and not logging.learnt.stated):
        return IntervalSettings(level=level)
    ends = reward_range_of(ends, logging, Option("estimator", "dr"))
    return IntervalSettings(SAFE_INTERVAL, level, ordered(ends))


def _plain(text: str | None) -> str:
    """The text with 1.0 as 1, since one setting may be written in both ways."""
    return re.sub(r"(?<=[=(, ])(-?\d+)\.0(?!\d)", r"\1", text or "")


def _kind(text: str | None) -> tuple[str, ...]:
    """The kinds of a policy and of a model that a log names."""
    return tuple(part.partition("(")[0] for part in (text or "").split(" on ")[:2])


def _nearest(several: Sequence[Spec], texts: Sequence[str], text: str | None, ran: int | None) -> int:
    """What ran; else the setting of the same kind, or else of any, that is nearest to its defaults, the first of them.

    texts : what a log says of each; text : what it says of the policy that ran; ran : its place, where it is there.
    What was tried with one value alone does not count
    """
    if ran is not None:
        return ran
    tried: dict[tuple[str, str], set[Any]] = {}
    for spec in several:
        for name, value in spec.settings:
            tried.setdefault((spec.name, name), set()).add(value)
    keys = []
    for spec, says in zip(several, texts, strict=True):
        plain = replace(spec, settings=())
        pairs = [(value, plain.value(name)) for name, value in spec.settings if len(tried[spec.name, name]) > 1]
        keys.append((_kind(says) != _kind(text), sum(_apart(value, default) for value, default in pairs)))
    return keys.index(min(keys))


def _apart(value: Any, default: Any) -> float:
    if value == default:
        return 0.0
    numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) and one > 0 for one in (value, default))
    return abs(math.log(value / default)) if numbers else 1.0


@dataclass(frozen=True)
class SettingTrial:
    """How a setting learns and how it is judged."""

    estimator: str
    draws: int
    how: IntervalSettings
    floor: float
    slots: int | None
    dim: int

    @property
    def safe(self) -> bool:
        """Whether its intervals hold on the log of a policy that learnt."""
        return self.how.interval == SAFE_INTERVAL

    @property
    def beside(self) -> "SettingTrial":
        """The one with narrow intervals."""
        return replace(self, estimator="dr", how=IntervalSettings(level=self.how.level))

    def each(
        self, every: Sequence[Spec], first: Logged, second: Logged
    ) -> tuple[list[Spec], list[tuple[Estimate, float]], dict[Spec, Exception]]:
        """The settings that could be judged, what `judged` says of each, and the errors of the others.

        Raises the error of the first setting where all end with one.
        """
        fine, judgements, failed = [], [], dict[Spec, Exception]()
        for spec in every:
            try:
                judgements.append(self.judged(self.taught(spec, first), second))
                fine.append(spec)
            except FAILURES as reason:
                failed[spec] = reason
        if not fine:
            raise next(iter(failed.values()))
        return fine, judgements, failed

    def reported(self, bandit: Bandit, last: Logged) -> tuple[Estimate, Difference]:
        """What a bandit would have earned, and its gain over what ran."""
        value, _ = self.judged(bandit, last)
        return value, self.gap(value, self.ran(last), level=self.how.level)

    def text(self, spec: Spec) -> str:
        """What a log says of a bandit with these settings."""
        model, policy = spec.configure(self.dim, disjoint=self.slots, facts={})
        return f"{policy} on {model}"

    def taught(self, spec: Spec, logged: Logged) -> Bandit:
        """A bandit with these settings that has learnt the rows."""
        model, policy = spec.configure(self.dim, disjoint=self.slots, facts={})
        bandit = Bandit(model, policy, dim=self.dim, seed=0, floor=self.floor)
        warm_start(bandit, logged)
        return bandit

    def judged(self, bandit: Bandit, logged: Logged) -> tuple[Estimate, float]:
        """What the bandit, as it is, would have earned; and how many arms it shows, in effect."""
        if bandit.clocked:
            bandit.advance(np.min(logged.seconds))
        Q = np.asarray(Saved("bandit", bandit, draws=self.draws).shown(logged).Q)
        logged = logged.aligned(bandit)
        M = np.where(logged.mask, bandit.predict(logged.X), 0.0) if self.estimator in ("dr", "sndr") else None
        of_rows = {"kind": logged.kinds, "p_se": np.nan_to_num(logged.se), "weight": logged.weight}
        terms = contributions(self.estimator, logged.r, logged.a, logged.p, Q, M, **of_rows)
        one = estimate(terms, warn=False, **vars(self.how))
        tally = _tally(one)
        if not self.safe and intervals.few(tally):
            one = replace(one, interval=intervals.hull(one.interval, intervals.unseen(tally, self.how.level, None)))
        return one, float(np.mean(1 / np.sum(Q * Q, axis=1)))

    def ran(self, logged: Logged) -> Estimate:
        """The mean reward of what ran: every weight is 1."""
        certain = np.ones(len(logged))
        terms = contributions("ips", logged.r, 0 * certain, certain, certain[:, None], weight=logged.weight)
        return estimate(terms, level=self.how.level, warn=False)

    def gap(self, one: Estimate, other: Estimate, *, level: float) -> Difference:
        """The paired difference of two estimates."""
        if not self.safe or one is other:  # what is compared with itself has no error
            return _wider_gap(one, other, level=level)
        return compare(one, other, level=level, interval=SAFE_INTERVAL, reward_range=self.how.reward_range)


def in_ends(one: Estimate | Difference, *, sign: str = "") -> str:
    """A number with its interval."""
    low, high = one.interval
    return f"{one.value:{sign}.4g} [{low:{sign}.4g}, {high:{sign}.4g}]"


def _parts(logged: Logged, learn: float, choose: float) -> tuple[Logged, Logged, Logged]:
    for name, share in (("learn", learn), ("choose", choose)):
        errors.within(name, share, 0.01, 0.98)
    if learn + choose > 0.99:
        raise ValueError(f"learn and choose must leave rows that report, got {learn:g} + {choose:g}: at most 0.99")
    n = len(logged)
    ends = (0, int(learn * n), int((learn + choose) * n), n)
    if min(np.diff(ends)) < 2:
        raise ValueError(f"a log of {n} rows cannot be cut in parts of {learn:g} and {choose:g}: each needs two rows")
    one, two, three = (_rows(logged, *cut) for cut in itertools.pairwise(ends))
    return one, two, three


def _rows(logged: Logged, start: int, stop: int) -> Logged:
    place = np.arange(len(logged))
    return logged.filter((place >= start) & (place < stop))


def _terms(one: Estimate) -> Contributions:
    """What each row adds to an estimate of rows."""
    terms: Any = one.contributions
    return terms


def _tally(one: Estimate) -> Tally:
    """The rewards of an estimate by value."""
    rows = _terms(one).rows
    return intervals.tallied(rows.r, rows.w, rows.s)


def _wider_gap(one: Estimate, other: Estimate, *, level: float) -> Difference:
    """The difference of two estimates, with an interval that also holds for rewards that their rows do not show.

    Estimates of the same weights differ in nothing.
    """
    gap, tallies = compare(one, other, level=level), (_tally(one), _tally(other))
    if not any(map(intervals.few, tallies)) or np.array_equal(_terms(one).rows.w, _terms(other).rows.w):
        return gap
    ends = [intervals.unseen(tally, (1 + level) / 2, None) for tally in tallies]
    return replace(gap, interval=intervals.wider_gap(gap.interval, *ends))


def _why_not(one: Estimate) -> str:
    """Why the log cannot tell the value of a policy; "" if it can."""
    terms = _terms(one)
    return unsupported(one, has_P=terms.rows.gap is not None, certain=terms.certain)
