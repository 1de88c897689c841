"""From a log to estimates: pieces are summed, on several cores; what the sums say is worked out once, at the end."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dither import errors, ope
from dither.log import Logged, Report
from dither.ope import diagnostics, groups, intervals, partial, unseen
from dither.ope.candidates import LOGGING, Saved
from dither.ope.question import BASE, Part, Question, add, answer, key
from dither.ope.result import difference_of

INTERVALS = ("normal", "bootstrap", "bernstein", "betting", "clopper_pearson", "asymptotic")


@dataclass(frozen=True)
class How:
    """Which interval, and what it must be told. Paired differences have normal intervals but for "bootstrap".

    Where few rewards differ (`unseen.few`), the normal and the bootstrap interval are widened to hold the one for
    events not seen, and that of a difference to hold what the two intervals leave, each at half of what may miss.
    """

    interval: str = "normal"
    level: float = 0.95
    reward_range: tuple[float, float] | None = None  # bounds on rewards and predictions: for "bernstein" and "betting"
    weight_max: float | None = None  # a bound on the weights known beforehand, such as K/floor: for the same
    row_weight_max: float | None = None  # a bound on the weights of rows known beforehand: for the same
    resamples: int = 2000  # of the bootstrap
    seed: int = 0  # of the bootstrap

    def __post_init__(self) -> None:
        object.__setattr__(self, "interval", self.interval.replace("-", "_"))
        if self.interval not in INTERVALS:
            raise errors.unknown("interval", self.interval, known=INTERVALS)
        errors.within("level", self.level, 1e-6, 1 - 1e-6)
        errors.at_least("resamples", self.resamples, 100)
        errors.at_least("seed", self.seed, 0)
        if self.bounded and self.reward_range is None:
            raise ValueError(f"the {self.interval} interval needs bounds known beforehand: --reward-range LOW HIGH")

    @property
    def bounded(self) -> bool:
        """Whether the interval is for bounded terms."""
        return self.interval in ("bernstein", "betting")


class Events(NamedTuple):
    """Few rewards that differ."""

    tally: unseen.Tally
    held: bool  # whether the interval holds for events not seen; else nothing says what rewards could have come


class Gap(NamedTuple):
    """A policy less another, by one estimator on the same rows."""

    policy: str
    estimator: str
    against: str
    found: ope.Difference


@dataclass(frozen=True)
class Evaluation:
    """What a log says about policies."""

    estimates: dict[tuple[str, str], ope.Estimate]  # (policy, estimator); the first is (LOGGING, "mean")
    gaps: tuple[Gap, ...]  # to the logging policy and to the first policy
    known: dict[str, bool]  # policy -> whether the log tells in every row which arms could not be shown
    certain: dict[str, float]  # policy -> its mass on arms of which the log tells that they could not be shown
    kinds: dict[str, frozenset[str]]  # of each policy's probabilities; LOGGING: of the logged propensities
    report: Report  # rows read, used, left out, findings
    how: How
    blocks: tuple[int, int]  # number of blocks of successive rows, and rows of each
    clusters: int | None
    checked: int  # rows in which the logging policy's own weight could be checked to be 1
    rounding: dict[str, float]  # policy -> how far its weights may be off, as columns hold few digits
    saved: tuple[str, ...]  # policies that are saved bandits, which may have learnt from these rows
    events: dict[str, Events]  # policy -> its rewards by value, where few differ

    @property
    def policies(self) -> tuple[str, ...]:
        """The names that were asked about, in order."""
        return tuple(dict.fromkeys(policy for policy, _ in self.estimates if policy != LOGGING))

    @property
    def estimators(self) -> tuple[str, ...]:
        """The estimators that were asked for, in order."""
        return tuple(dict.fromkeys(name for policy, name in self.estimates if policy != LOGGING))

    @property
    def logging(self) -> ope.Estimate:
        """What ran: the mean of the rewards."""
        return self.estimates[LOGGING, "mean"]

    def gap(self, policy: str, estimator: str, against: str = LOGGING) -> ope.Difference | None:
        """The policy less another; None where they were not compared."""
        wanted = (policy, estimator, against)
        return next((gap.found for gap in self.gaps if gap[:3] == wanted), None)


def evaluate(
    pieces: Iterable[Logged],
    question: Question,
    how: How | None = None,
    *,
    jobs: int = 1,
    on_progress: Callable[[int], object] = lambda rows: None,
) -> Evaluation:
    """Sum the pieces, in order, and say what they say. on_progress is told the rows read.

    The same pieces give the same bits whatever `jobs`; other pieces of the same log the same numbers to rounding.
    Raises ValueError for rows that break a rule and were not asked to be left out, and where no row is left.
    """
    errors.at_least("jobs", jobs, 1)
    how = how or How()
    question = replace(question, keep=how.interval == "betting")
    total, report = None, Report(0, 0)
    for part, seen in _answers(pieces, question, jobs):
        total, report = add(total, part), report + seen
        on_progress(report.read)
    if total is None:
        raise ValueError(f"no row is left to evaluate: {report}")
    return conclude(total, question, report, how)


@np.errstate(all="ignore")
def conclude(part: Part, question: Question, report: Report, how: How) -> Evaluation:
    """The estimates and the differences that sums give."""
    end = _End(part, how)
    found = {(LOGGING, "mean"): end.estimate(BASE, LOGGING, known=True)}
    known = dict(zip((policy.name for policy in question.policies), part.known, strict=True))
    certain: dict[str, float] = {}
    gaps, first = [], question.policies[0].name if question.policies else LOGGING
    for policy in question.policies:
        for asked in question.estimators:
            mine = key(policy.name, asked.name)
            found[policy.name, asked.name] = end.estimate(mine, policy.name, known=known[policy.name])
            certain[policy.name] = end.certain(mine)
            gaps.append(Gap(policy.name, asked.name, LOGGING, end.difference(mine, BASE, policy.name, LOGGING)))
            if policy.name != first:
                gap = end.difference(mine, key(first, asked.name), policy.name, first)
                gaps.append(Gap(policy.name, asked.name, first, gap))
    kinds = dict(zip([LOGGING, *(policy.name for policy in question.policies)], part.kinds, strict=True))
    clusters = None if part.clusters is None else len(part.clusters.n)
    blocks = len(part.blocks.n), part.blocks.width
    rounding = dict(zip((policy.name for policy in question.policies), part.rounding, strict=True))
    saved = tuple(policy.name for policy in question.policies if isinstance(policy, Saved))
    settled = (report, how, blocks, clusters, part.checked, rounding, saved, end.few)
    return Evaluation(found, tuple(gaps), known, certain, kinds, *settled)


class _End:
    """The sums, and what is worked out from them once."""

    def __init__(self, part: Part, how: How) -> None:
        self.part, self.how, self.sums = part, how, part.sums
        self.estimates = ope.estimates(self.sums, level=how.level, warn=False, weight_max=how.weight_max)
        exact = ope.estimates(self.sums._replace(errors=np.zeros_like(self.sums.errors)), level=how.level, warn=False)
        self.extra = {name: max(e.se**2 - exact[name].se ** 2, 0.0) for name, e in self.estimates.items()}
        self.leans = None
        if part.clusters is not None:
            self.leans = {name: groups.lean(part.clusters, j) for j, name in enumerate(self.sums.names)}
        self.draws = None
        if how.interval == "bootstrap":
            units, rng = part.clusters or part.blocks, np.random.default_rng(how.seed)
            self.draws = dict(zip(self.sums.names, groups.resampled(units, rng, times=how.resamples).T, strict=True))
        guarded = how.interval in ("normal", "bootstrap", "asymptotic") and part.clusters is None
        rare = {who: tally for who, tally in part.events.items() if guarded and unseen.few(tally)}
        self.few = {who: Events(tally, self._unseen(who, how.level) is not None) for who, tally in rare.items()}

    def estimate(self, name: str, who: str, *, known: bool) -> ope.Estimate:
        """With its interval, and the test of drift from blocks of successive rows."""
        found, j = self.estimates[name], self.sums.names.index(name)
        blocks = groups.lean(self.part.blocks, j)
        drift = diagnostics.cusum(blocks) if np.all(np.isfinite(blocks)) else np.nan
        gap = diagnostics.unsupported(found.weight_mean, self.certain(name), known=known)
        se = found.se
        if self.leans is not None:
            se = groups.standard_error(self.leans[name], self.sums.total, ddof=self.sums.ddof[j])
            se = float(np.sqrt(se**2 + self.extra[name]))
        ends, how = self._interval(name, j, who, found.value, se), self.how.interval
        if who in self.few and self.few[who].held and found.method != "dm":
            ends, how = _hull(ends, self._unseen(who, self.how.level)), f"{how}, wider for events not seen"
        return replace(found, se=se, interval=ends, drift=drift, unsupported=gap, interval_method=how)

    def certain(self, name: str) -> float:
        """The mass on arms that could not be shown, as far as logged probabilities tell it."""
        return partial.certain(self.sums, self.sums.names.index(name))

    def difference(self, name: str, base: str, who: str, other: str) -> ope.Difference:
        """name less base, of the policies who and other: on the same rows, or clusters, or resamples."""
        found, level = ope.differences(self.sums, base, level=self.how.level)[name], self.how.level
        if self.leans is not None:
            ddof = max(self.sums.ddof[self.sums.names.index(one)] for one in (name, base))
            se = groups.standard_error(self.leans[name] - self.leans[base], self.sums.total, ddof=ddof)
            se = float(np.sqrt(se**2 + self.extra[name] + self.extra[base]))
            found = difference_of(found.value, se, level=level, n=found.n)
        if self.draws is not None:
            found = replace(found, interval=self._percentiles(self.draws[name] - self.draws[base]))
        rare = [one for one in (who, other) if one in self.few]
        if not rare or not all(self.few[one].held for one in rare) or self.estimates[name].method == "dm":
            return found
        mine, theirs = (self._unseen(one, (1 + level) / 2) for one in (who, other))
        if mine is None or theirs is None:
            return found
        return replace(found, interval=_hull(found.interval, (mine[0] - theirs[1], mine[1] - theirs[0])))

    def _unseen(self, who: str, level: float) -> tuple[float, float] | None:
        """The interval of a policy's value that holds for events not seen."""
        bound = self.how.weight_max if who != LOGGING else None
        return unseen.interval(self.part.events[who], level, self.how.reward_range, bound=bound)

    def _interval(self, name: str, j: int, who: str, value: float, se: float) -> tuple[float, float]:
        level = self.how.level
        if self.how.interval == "normal":
            return intervals.about(value, se, level)
        if self.how.interval == "asymptotic":
            units = self.sums.units if self.leans is None else len(self.leans[name])
            return intervals.about_always(value, se, units, level, intervals.NARROWEST)
        if self.how.interval == "clopper_pearson":
            return self._exact(j, who)
        more = intervals.about(0.0, float(np.sqrt(self.extra[name])), level)[1]
        if self.draws is not None:
            low, high = self._percentiles(self.draws[name])
            return low - more, high + more
        ends, seen, options = self._limits(name, j)
        most = intervals.row_limit(seen, self.how.interval, options)
        if self.how.interval == "bernstein":
            mean, spread = partial.moments(self.sums, j)
            return intervals.bernstein_ends(mean, spread, self.sums.n, most, ends, level, more=more)
        s = np.concatenate(self.part.counted)
        b = np.concatenate(self.part.kept[name])
        return intervals.betting_ends(b, intervals.counted(s, most), ends, level, more=more)

    def _exact(self, j: int, who: str) -> tuple[float, float]:
        """Clopper and Pearson's interval, of rewards alone."""
        form, method = self.sums.bounded[j].form, self.sums.methods[j]
        if form not in ("weighted", "ratio") or method not in diagnostics.OF_REWARDS:
            raise ValueError(
                f"the clopper_pearson interval is for means of rewards, not for {method}: take ips or snips"
            )
        if self.leans is not None:
            raise ValueError("the clopper_pearson interval takes rows as independent: with --cluster take normal")
        if method == "clipped_ips":
            raise ValueError("the clopper_pearson interval is of the value itself: take ips or snips, not clipped_ips")
        tally, level = self.part.events[who], self.how.level
        return unseen.clopper_pearson(tally, level, self.how.reward_range, of_shown=form == "ratio" or who == LOGGING)

    def _limits(self, name: str, j: int) -> tuple[tuple[float, float], intervals.Seen, dict[str, Any]]:
        """What the terms of a mean lie between, what the rows show of it, and what was said beforehand."""
        sums, method = self.sums, self.how.interval
        bounded = replace(sums.bounded[j], weight=1.0) if name == BASE else sums.bounded[j]
        if bounded.form == "ratio":
            raise ValueError(
                f"the {method} interval is for means of bounded terms, and {name} is a ratio: take ips or dr"
            )
        if self.leans is not None:
            raise ValueError(
                f"the {method} interval takes rows as independent: with --cluster take normal or bootstrap"
            )
        if bounded.weight is None and self.how.weight_max is None:
            raise ValueError(
                f"the {method} interval of {name} needs a bound on the weights: --weight-max, such as K/floor"
            )
        largest, least, most = float(sums.largest[j]), float(sums.ends[j, 0]), float(sums.ends[j, 1])
        seen = intervals.Seen(largest, least, most, False, sums.rows)
        options = {name: getattr(self.how, name) for name in ("reward_range", "weight_max", "row_weight_max")}
        return intervals.limits(bounded, seen, method, options), seen, options

    def _percentiles(self, draws: np.ndarray) -> tuple[float, float]:
        draws = draws[np.isfinite(draws)]
        if not len(draws):
            return np.nan, np.nan
        low, high = np.quantile(draws, [(1 - self.how.level) / 2, (1 + self.how.level) / 2])
        return float(low), float(high)


def _hull(a: tuple[float, float], b: tuple[float, float] | None) -> tuple[float, float]:
    """The interval that holds both; a NaN end gives way."""
    return a if b is None else (float(np.fmin(a[0], b[0])), float(np.fmax(a[1], b[1])))


def _answers(pieces: Iterable[Logged], question: Question, jobs: int) -> Iterator[tuple[Part | None, Report]]:
    """The answers in the order of the pieces; never more pieces in memory than one a job and one that waits."""
    if jobs == 1:
        yield from (answer(piece, question) for piece in pieces)
        return
    try:
        import joblib
    except ImportError:
        raise errors.missing_extra("joblib", extra="experiments") from None
    # NumPy lets threads run side by side, and nothing is copied; a bandit's own Python would hold them up
    backend = "loky" if any(isinstance(policy, Saved) for policy in question.policies) else "threading"
    work = joblib.Parallel(n_jobs=jobs, backend=backend, return_as="generator", pre_dispatch=jobs + 1)
    yield from work(joblib.delayed(answer)(piece, question) for piece in pieces)
