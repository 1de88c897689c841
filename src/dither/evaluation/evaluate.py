"""From a log to estimates: pieces are summed, on several cores; what the sums say is worked out once, at the end."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dither import errors, ope
from dither.evaluation import groups
from dither.evaluation.policies import LOGGING, Saved
from dither.evaluation.question import BASE, Part, Question, add, answer, key
from dither.log import Logged, Report
from dither.ope import betting, diagnostics, intervals
from dither.ope.partial import PER
from dither.ope.result import difference_of

INTERVALS = ("normal", "bootstrap", "bernstein", "betting")


@dataclass(frozen=True)
class How:
    """Which interval, and what it must be told. Paired differences have normal intervals but for "bootstrap"."""

    interval: str = "normal"
    level: float = 0.95
    reward_range: tuple[float, float] | None = None  # bounds on rewards and predictions: for "bernstein" and "betting"
    weight_max: float | None = None  # a bound on the weights known beforehand, such as K/floor: for the same
    resamples: int = 2000  # of the bootstrap
    seed: int = 0  # of the bootstrap

    def __post_init__(self) -> None:
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
    found = {(LOGGING, "mean"): end.estimate(BASE, known=True)}
    known = dict(zip((policy.name for policy in question.policies), part.known, strict=True))
    certain: dict[str, float] = {}
    gaps, first = [], question.policies[0].name if question.policies else LOGGING
    for policy in question.policies:
        for asked in question.estimators:
            mine = key(policy.name, asked.name)
            found[policy.name, asked.name] = end.estimate(mine, known=known[policy.name])
            certain[policy.name] = end.certain(mine)
            gaps.append(Gap(policy.name, asked.name, LOGGING, end.difference(mine, BASE)))
            if policy.name != first:
                gaps.append(Gap(policy.name, asked.name, first, end.difference(mine, key(first, asked.name))))
    kinds = dict(zip([LOGGING, *(policy.name for policy in question.policies)], part.kinds, strict=True))
    clusters = None if part.clusters is None else len(part.clusters.n)
    blocks = len(part.blocks.n), part.blocks.width
    rounding = dict(zip((policy.name for policy in question.policies), part.rounding, strict=True))
    saved = tuple(policy.name for policy in question.policies if isinstance(policy, Saved))
    settled = (report, how, blocks, clusters, part.checked, rounding, saved)
    return Evaluation(found, tuple(gaps), known, certain, kinds, *settled)


class _End:
    """The sums, and what is worked out from them once."""

    def __init__(self, part: Part, how: How) -> None:
        self.part, self.how, self.sums = part, how, part.sums
        self.estimates = ope.estimates(self.sums, level=how.level, warn=False)
        exact = ope.estimates(self.sums._replace(errors=np.zeros_like(self.sums.errors)), level=how.level, warn=False)
        self.extra = {name: max(e.se**2 - exact[name].se ** 2, 0.0) for name, e in self.estimates.items()}
        self.leans = None
        if part.clusters is not None:
            self.leans = {name: groups.lean(part.clusters, j) for j, name in enumerate(self.sums.names)}
        self.draws = None
        if how.interval == "bootstrap":
            units, rng = part.clusters or part.blocks, np.random.default_rng(how.seed)
            self.draws = dict(zip(self.sums.names, groups.resampled(units, rng, times=how.resamples).T, strict=True))

    def estimate(self, name: str, *, known: bool) -> ope.Estimate:
        """With its interval, and the test of drift from blocks of successive rows."""
        found, j = self.estimates[name], self.sums.names.index(name)
        blocks = groups.lean(self.part.blocks, j)
        drift = diagnostics.cusum(blocks) if np.all(np.isfinite(blocks)) else np.nan
        gap = diagnostics.unsupported(found.weight_mean, self.certain(name), known=known)
        se = found.se
        if self.leans is not None:
            se = groups.standard_error(self.leans[name], found.n, ddof=self.sums.ddof[j])
            se = float(np.sqrt(se**2 + self.extra[name]))
        ends = self._interval(name, j, found.value, se)
        how = self.how.interval
        return replace(found, se=se, interval=ends, drift=drift, unsupported=gap, interval_method=how)

    def certain(self, name: str) -> float:
        """The mass on arms that could not be shown, as far as logged probabilities tell it."""
        return float(self.sums.weights[self.sums.names.index(name), 2]) / self.sums.n

    def difference(self, name: str, base: str) -> ope.Difference:
        """name less base: on the same rows, or clusters, or resamples."""
        found, level = ope.differences(self.sums, base, level=self.how.level)[name], self.how.level
        if self.leans is not None:
            ddof = max(self.sums.ddof[self.sums.names.index(one)] for one in (name, base))
            se = groups.standard_error(self.leans[name] - self.leans[base], found.n, ddof=ddof)
            se = float(np.sqrt(se**2 + self.extra[name] + self.extra[base]))
            found = difference_of(found.value, se, level=level, n=found.n)
        if self.draws is None:
            return found
        return replace(found, interval=self._percentiles(self.draws[name] - self.draws[base]))

    def _interval(self, name: str, j: int, value: float, se: float) -> tuple[float, float]:
        level = self.how.level
        if self.how.interval == "normal":
            return intervals.about(value, se, level)
        more = intervals.about(0.0, float(np.sqrt(self.extra[name])), level)[1]
        if self.draws is not None:
            low, high = self._percentiles(self.draws[name])
            return low - more, high + more
        low, high = self._limits(name, j)
        if self.how.interval == "bernstein":
            n, column = self.sums.n, 1 + PER * j
            variance = float(self.sums.squares[column, column]) / (n - 1) if n > 1 else np.inf
            half = intervals.bernstein_half(variance, n, high - low, level) + more
            return max(low, value - half), min(high, value + half)
        x = (np.concatenate(self.part.kept[name]) - low) / (high - low)
        left, right = (low + (high - low) * end for end in betting.interval(x, level=level))
        return max(low, left - more), min(high, right + more)

    def _limits(self, name: str, j: int) -> tuple[float, float]:
        """What the terms of a mean lie between."""
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
        seen = intervals.Seen(float(sums.largest[j]), float(sums.ends[j, 0]), float(sums.ends[j, 1]), False)
        return intervals.limits(
            bounded, seen, method, {"reward_range": self.how.reward_range, "weight_max": self.how.weight_max}
        )

    def _percentiles(self, draws: np.ndarray) -> tuple[float, float]:
        draws = draws[np.isfinite(draws)]
        if not len(draws):
            return np.nan, np.nan
        low, high = np.quantile(draws, [(1 - self.how.level) / 2, (1 + self.how.level) / 2])
        return float(low), float(high)


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
