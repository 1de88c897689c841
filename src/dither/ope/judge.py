"""From a log to a verdict. The pieces of a log are summed, on several cores; the sums are judged once, at the end."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dither.base import errors
from dither.base.errors import Option, Refused
from dither.base.workers import Workers, delayed
from dither.log import reader, sources
from dither.log.check import LOOKED_AT, PolicyChanges, Report, changes
from dither.log.logged import Logged
from dither.ope import candidates, fitting, intervals, partial, unknown
from dither.ope.candidates import LOGGING, Saved
from dither.ope.contributions import unsupported
from dither.ope.periods import one_value
from dither.ope.question import BASE, Asked, Part, Question, add, answer, key
from dither.ope.result import LEVELS, Difference, Estimate
from dither.ope.timed import Timed, in_order

if TYPE_CHECKING:
    from dither.ope.verdicts import Verdict

AHEAD = "2 * n_jobs"  # pieces that are read before their answers are there, as joblib writes it
INTERVALS = ("normal", "bootstrap", "bernstein", "betting", "anytime", "clopper_pearson", "asymptotic")


@dataclass(frozen=True)
class How:
    """Which interval, and what it must know. Paired differences have normal intervals, or bootstrap ones if asked.

    If few rewards differ (`intervals.few`), an interval is widened so that it also holds for events that were not seen.
    The interval of a difference is widened to hold all differences that two such intervals allow. Each of these two
    fails with half the probability.
    """

    interval: str = "normal"
    level: float = 0.95
    reward_range: tuple[float, float] | None = None  # bounds on rewards and predictions: for the bounded intervals
    weight_max: float | None = None  # a bound on weights, known beforehand, such as K/floor: for bernstein and betting
    row_weight_max: float | None = None  # a bound on the weights of rows that is known beforehand
    resamples: int = intervals.RESAMPLES  # of the bootstrap
    seed: int = 0  # of the bootstrap

    def __post_init__(self) -> None:
        object.__setattr__(self, "interval", self.interval.replace("-", "_"))
        errors.among("interval", self.interval, INTERVALS)
        errors.within("level", self.level, *LEVELS)
        errors.at_least("resamples", self.resamples, 100)
        errors.at_least("seed", self.seed, 0)
        if self.bounded and self.reward_range is None:
            bounds = Option("reward_range", means="(low, high)")
            raise Refused(f"the {self.interval} interval needs bounds known beforehand: ", bounds)

    @property
    def bounded(self) -> bool:
        """Whether the interval is one for bounded terms."""
        return self.interval in ("bernstein", "betting", "anytime")

    @property
    def keeps(self) -> bool:
        """Whether the interval needs what every row adds, in order."""
        return self.interval in ("betting", "anytime")

    @property
    def bounds(self) -> dict[str, Any]:
        """The bounds on rewards and weights that the user gave."""
        return {name: getattr(self, name) for name in ("reward_range", "weight_max", "row_weight_max")}


class Events(NamedTuple):
    """The rewards of a policy by value, where few of them differ from the usual one."""

    tally: intervals.Tally
    held: bool  # whether the interval holds for events not seen; if not, no one said which rewards are possible


class Gap(NamedTuple):
    """The value of a policy minus the value of another, by one estimator on the same rows."""

    policy: str
    estimator: str
    against: str
    found: Difference


@dataclass(frozen=True)
class Evaluation:
    """What a log says about policies."""

    estimates: dict[tuple[str, str], Estimate]  # (policy, estimator); the first is (LOGGING, "mean")
    gaps: tuple[Gap, ...]  # to the logging policy and to the first policy
    known: dict[str, bool]  # policy -> whether every row says which arms could not be shown
    certain: dict[str, float]  # policy -> its mass on arms that, as the log says, could not be shown
    kinds: dict[str, frozenset[str]]  # of each policy's probabilities; LOGGING: of the logged propensities
    report: Report  # rows read, used, left out, findings
    how: How
    blocks: tuple[int, int]  # number of blocks of successive rows, and rows of each
    clusters: int | None
    checked: int  # rows in which the logging policy's own weight could be checked to be 1
    rounding: dict[str, float]  # policy -> how far its weights may be off, as columns hold few digits
    expected: dict[str, float]  # policy -> effective rows that the probabilities promise; NaN where they are not logged
    saved: tuple[str, ...]  # policies that are saved bandits, which may have learnt from these rows
    events: dict[str, Events]  # policy -> its rewards by value; only policies for which few rewards differ
    changes: PolicyChanges = PolicyChanges()  # whether the policy that ran changed while it ran, by the first rows
    timed: Timed | None = None  # what was asked about time
    unknown: int = 0  # missing rewards that may have been anything: the intervals hold for all that they can be
    periods: dict[str, "Evaluation"] = field(default_factory=dict)  # period -> what its rows say; empty: nobody asked

    @property
    def policies(self) -> tuple[str, ...]:
        """The names that were asked about, in order."""
        return tuple(dict.fromkeys(policy for policy, _ in self.estimates if policy != LOGGING))

    @property
    def estimators(self) -> tuple[str, ...]:
        """The estimators that were asked for, in order."""
        return tuple(dict.fromkeys(name for policy, name in self.estimates if policy != LOGGING))

    @property
    def logging(self) -> Estimate:
        """The value of the policy that ran: the mean of the rewards."""
        return self.estimates[LOGGING, "mean"]

    def gap(self, policy: str, estimator: str, against: str = LOGGING) -> Difference | None:
        """The value of a policy minus that of another; None if the two were not compared."""
        wanted = (policy, estimator, against)
        return next((gap.found for gap in self.gaps if gap[:3] == wanted), None)

    def changed(self, policy: str, estimator: str) -> float:
        """P-value of "the value of the policy is the same in all periods"; NaN where it cannot be told."""
        found = [one.estimates[policy, estimator] for one in self.periods.values()]
        return one_value(np.array([e.value for e in found]), np.array([e.se for e in found]))

    def verdicts(self) -> "list[Verdict]":
        """What the log says about each policy compared with what ran, in plain words, by the first estimator."""
        from dither.ope import verdicts

        return verdicts.verdicts(self)

    def notes(self) -> list[str]:
        """What a reader must know besides the verdicts."""
        from dither.ope import verdicts

        return verdicts.notes(self)


def evaluate(
    log: Any,
    policies: Mapping[str, Any] | Iterable[Any] = ("uniform",),
    estimators: Sequence[str] | None = None,
    *,
    predictions: str | None = None,
    model: str | None = None,
    cluster: str | None = None,
    interval: str = "normal",
    level: float = 0.95,
    reward_range: tuple[float, float] | None = None,
    weight_max: float | None = None,
    row_weight_max: float | None = None,
    missing: str | float = "error",
    invalid: str = "error",
    duplicates: str = "error",
    arms: int | None = None,
    horizon: Any = None,
    late: str = "settled",
    now: Any = None,
    half_life: Any = None,
    window: Any = None,
    at: Any = None,
    by: str | None = None,
    draws: int = 1000,
    resamples: int = intervals.RESAMPLES,
    seed: int = 0,
    jobs: int = 1,
    backend: str = "loky",
    scheduler: str | None = None,
    on_progress: Callable[[int, int], object] = lambda done, rows: None,
    **source: Any,
) -> Evaluation:
    """What other policies would have earned on the traffic of a log: estimates, intervals, and verdicts in plain words.

    log : a file, a folder that `dither.log.Log` wrote, or a folder of Parquet parts, which are read in pieces; or a
        `dither.log.Logged` or a frame, in memory
    policies : a list, or a mapping name -> policy. A policy is a word as in `candidates` ("uniform", "arm:NAME",
        "column:NAME", "bandit.npz"), a `dither.Bandit` as it is, or an array of its probabilities in each row: (n, K),
        or (n,) for the arm shown
    estimators : names, with a setting where the estimator has one ("snips", "clipped_ips:5"); None: "snips" and "ips",
        and before them "dr" if there are predictions. The first one gives the verdict
    predictions : a column: lists of the reward predicted for each arm, or the reward predicted for the arm shown
    model : "ridge" or "gbm", to make predictions from the features, cross-fitted in memory
    cluster : a column, such as the user. Rows with the same value may depend on each other
    interval, level, reward_range, weight_max, row_weight_max, resamples : see `How`
    missing, invalid, duplicates : see `dither.log.Logged.usable`. missing may be "bounds" too: anything within
        `reward_range`, so that the intervals hold whatever was missing
    arms : number of arms on offer, where the log does not say it
    horizon : a length of time after a decision: rewards that come later do not count, and what has not come by then is
        `missing`, a number. Lengths are seconds, a timedelta, or a text such as "12h" or "7d"
    late : what becomes of decisions whose horizon has not passed: "settled" (they are left out) or "weighted" (rewards
        that came count for those that could not come yet: `dither.ope.arrived`)
    now : when the log was read; None: the latest time in it
    half_life, window, at : the value near the time `at` (None: of the latest decision): `dither.ope.recent`
    by : a column, or "hour", "day", "week", "month" or "year": the value of each period too, and whether it changed.
        These six hold the log in memory
    draws : Monte Carlo draws for each row, for bandits whose probabilities have no closed form
    seed : seed of the bootstrap and of the models
    jobs, backend, scheduler : who sums up the pieces (`dither.base.workers.Workers`). With "loky" these are threads, or
        processes if a policy is a bandit. This process reads the log and sends the pieces
    on_progress : is called with the rows done and the rows of the log
    source : how a file is read: format, arm, propensity, reward, kind, options (`dither.log.sources.LogSource`)

    Raises FileNotFoundError and LookupError for a file, column or name that does not exist. Raises ValueError for
    arguments that exclude each other, for rows that break a rule (unless they are to be left out), and for a log that
    cannot answer.
    """
    if missing == "bounds":
        if reward_range is None:
            raise Refused(
                "bounds for missing rewards need to know what they can be: ",
                Option("reward_range", means="(low, high)"),
            )
        asked: dict[str, Any] = {name: given for name, given in locals().items() if name not in ("log", "source")}
        if not isinstance(policies, (str, Mapping)):
            asked["policies"] = list(policies)  # they are asked about twice
        low, high = (evaluate(log, **asked | source | dict(missing=end, level=(1 + level) / 2)) for end in reward_range)
        return unknown.bounded(low, high, reward_range, level)
    errors.at_least("draws", draws, 1)
    workers = Workers(backend, jobs, scheduler)
    if model is not None and predictions is not None:
        raise Refused("give ", Option("predictions"), " or ", Option("model"), ", not both")
    column = fitting.COLUMN if model is not None else predictions
    names = estimators or [*(["dr"] if column is not None else []), "snips", "ips"]
    question = Question(
        candidates.policies(policies, draws=draws), tuple(map(Asked.parse, names)), predictions=column, cluster=cluster,
        missing=missing, invalid=invalid, duplicates=duplicates, arms=arms,
    )  # fmt: skip
    how = How(interval, level, reward_range, weight_max, row_weight_max, resamples, seed)
    timed = None
    if late != "settled" or any(x is not None for x in (horizon, now, half_life, window, at, by)):
        timed = Timed.asked(horizon, late, now, half_life, window, at, by)
        timed.refuse(how.interval, question.in_order)
    report = None
    if isinstance(log, (str, Path)):
        here = sources.LogSource(Path(log), arms=arms, text=() if cluster is None else (cluster,), **source)
        more = question.columns | (timed.columns if timed else set()) | ({"features"} if model is not None else set())
        held = model is not None or question.in_order or timed is not None
        whole = here.whole(more - {fitting.COLUMN}) if held else None
    elif source:
        raise ValueError(f"{next(iter(source))}= is for files, which are read here; name the columns of a frame before")
    else:
        whole = reader.read(log)
    given = whole
    if whole is not None and question.in_order:
        in_order(whole)
    if whole is not None and timed is not None:
        whole = timed.applied(whole, missing)
    if model is not None and whole is not None:
        whole, report = fitting.predicted(whole, question, model, seed=seed)
    rows = sources.ROWS if whole is None or not question.in_order else max(len(whole), 1)
    if whole is None:
        pieces = here.pieces(question.columns, rows=rows)
    else:
        pieces = sources.Pieces(len(whole), sources.split(whole, rows))
    found = judged(
        pieces.each, question, how, workers=workers if pieces.rows > rows else Workers(),
        on_progress=lambda done: on_progress(done, pieces.rows),
    )  # fmt: skip
    if isinstance(log, (str, Path)) and here.rules.streamed is not None:
        given = next(iter(here.pieces({"features", "arm_set"}, rows=LOOKED_AT).each), None)
    seen = PolicyChanges() if given is None else changes(given)
    parts = {} if timed is None or timed.by is None or whole is None else _by_period(whole, timed, question, how)
    return replace(found, report=report or found.report, changes=seen, timed=timed, periods=parts)


def _by_period(log: Logged, timed: Timed, question: Question, how: How) -> dict[str, Evaluation]:
    """The evaluation of each period by itself, in order. A period without a row that can be used is not there."""
    labels: Any = timed.labels(log)
    found: dict[str, Evaluation] = {}
    for label in np.unique(labels).tolist():
        part, report = answer(log.filter(labels == label), replace(question, keep=how.keeps))
        if part is not None:
            found[label] = conclude(part, question, report, how)
    return found


def judged(
    pieces: Iterable[Logged],
    question: Question,
    how: How | None = None,
    *,
    workers: Workers | None = None,
    on_progress: Callable[[int], object] = lambda rows: None,
) -> Evaluation:
    """Sum the pieces, in order, and judge the sums. on_progress is called with the number of rows read.

    The same pieces give the same bits, whoever sums them up with the same BLAS and processor. Other pieces of the same
    log give the same numbers up to rounding. Raises ValueError for rows that break a rule (unless they are to be left
    out), and if no row is left.
    """
    how = how or How()
    question = replace(question, keep=how.keeps)
    total, report = None, Report(0, 0)
    for part, seen in _answers(pieces, question, workers or Workers()):
        total, report = add(total, part), report + seen
        on_progress(report.read)
    if total is None:
        raise ValueError(f"no row is left to evaluate: {report}")
    return conclude(total, question, report, how)


@np.errstate(all="ignore")
def conclude(part: Part, question: Question, report: Report, how: How) -> Evaluation:
    """The evaluation from sums: estimates and differences."""
    sums, names = part.sums, [policy.name for policy in question.policies]
    of = {(who, asked.name): key(who, asked.name) for who in names for asked in question.estimators}
    of = {(LOGGING, "mean"): BASE} | of
    place: dict[str, int] = {}  # of each policy's first estimate
    for (who, _), name in of.items():
        place.setdefault(who, sums.names.index(name))
    known = dict(zip(names, part.known, strict=True))
    certain = {who: partial.certain(sums, place[who]) for who in names}
    draws = partial.resample(sums, seed=how.seed, times=how.resamples) if how.interval == "bootstrap" else None
    made = partial.estimates(sums, interval=how.interval, level=how.level, warn=False, draws=draws, **how.bounds)
    tallies = {who: sums.tallies[j] for who, j in place.items()}
    few = _few(tallies, how) if sums.clusters is None else {}
    found = {}
    for (who, by), name in of.items():
        gap = unsupported(made[name].weight_mean, certain.get(who, 0.0), known=known.get(who, True))
        found[who, by] = _wider(replace(made[name], unsupported=gap), who, few.get(who), how)
    bases, gaps = {}, []
    for (who, by), name in of.items():
        for other in dict.fromkeys((LOGGING, names[0])) if who != LOGGING else ():
            base = of[other, "mean" if other == LOGGING else by]
            if other == who:
                continue
            if base not in bases:
                bases[base] = partial.differences(sums, base, level=how.level, draws=draws)
            difference = bases[base][name]
            if made[name].method != "dm":
                difference = _wider_gap(difference, (who, other), few, tallies, how)
            gaps.append(Gap(who, by, other, difference))
    return Evaluation(
        estimates=found,
        gaps=tuple(gaps),
        known=known,
        certain=certain,
        kinds=dict(zip([LOGGING, *names], part.kinds, strict=True)),
        report=report,
        how=how,
        blocks=(len(sums.blocks.n), sums.blocks.width) if sums.blocks is not None else (0, 0),
        clusters=None if sums.clusters is None else len(sums.clusters.n),
        checked=part.checked,
        rounding=dict(zip(names, part.rounding, strict=True)),
        expected={who: sums.total**2 / x for who, x in zip(names, part.second, strict=True)},
        saved=tuple(policy.name for policy in question.policies if isinstance(policy, Saved)),
        events=few,
    )


def _few(tallies: dict[str, intervals.Tally], how: How) -> dict[str, Events]:
    """The policies for which few rewards differ. Empty for intervals that do not use the spread of the rows."""
    if how.interval not in ("normal", "bootstrap", "asymptotic"):
        return {}
    rare = {who: tally for who, tally in tallies.items() if intervals.few(tally)}
    return {who: Events(tally, _unseen(who, tally, how, how.level) is not None) for who, tally in rare.items()}


def _unseen(who: str, tally: intervals.Tally, how: How, level: float) -> intervals.Interval | None:
    """The interval of the value of a policy that also holds for events that were not seen."""
    return intervals.unseen(tally, level, how.reward_range, bound=how.weight_max if who != LOGGING else None)


def _wider(found: Estimate, who: str, events: Events | None, how: How) -> Estimate:
    """The estimate with an interval that also holds for events that were not seen."""
    if events is None or not events.held or found.method == "dm":
        return found
    ends = intervals.hull(found.interval, _unseen(who, events.tally, how, how.level))
    return replace(found, interval=ends, interval_method=f"{found.interval_method}, wider for events not seen")


def _wider_gap(
    found: Difference, pair: tuple[str, str], few: dict[str, Events], tallies: dict[str, intervals.Tally], how: How
) -> Difference:
    """The difference with an interval that also holds all differences between the intervals of both values.

    Each of these two intervals fails with half the probability.
    """
    rare = [few[who] for who in pair if who in few]
    if not rare or not all(events.held for events in rare):
        return found
    mine, theirs = (_unseen(who, tallies[who], how, (1 + how.level) / 2) for who in pair)
    if mine is None or theirs is None:
        return found
    return replace(found, interval=intervals.hull(found.interval, (mine[0] - theirs[1], mine[1] - theirs[0])))


def _answers(pieces: Iterable[Logged], question: Question, workers: Workers) -> Iterator[tuple[Part | None, Report]]:
    """The answers, in the order of the pieces. Memory holds a few pieces for each worker."""
    if workers.alone:
        return (answer(piece, question) for piece in pieces)
    # NumPy lets threads run in parallel, without copies. The Python code of a bandit does not, so it needs processes
    threads = workers.backend == "loky" and not any(isinstance(policy, Saved) for policy in question.policies)
    calls = (delayed(answer)(piece, question) for piece in pieces)
    return workers.results(calls, ordered=True, ahead=AHEAD, threads=threads)
