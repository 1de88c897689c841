"""From a log to a verdict. The pieces of a log are summed, on several cores; the sums are judged once, at the end."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dither.base import errors, notebook
from dither.base.errors import Option, Refused
from dither.base.workers import Workers, delayed
from dither.log import reader, sources
from dither.log.check import LOOKED_AT, Report
from dither.log.logged import Logged
from dither.log.reader import Pieces
from dither.ope import candidates, fitting, intervals, partial, unasked, unknown, verdicts
from dither.ope.bounded import BOUNDED, ONE_VALUE, IntervalSettings
from dither.ope.candidates import LOGGING, Saved
from dither.ope.contributions import NamedEstimator, unsupported
from dither.ope.evaluation import EvaluationNumbers, Events, Gap
from dither.ope.intervals import Tally
from dither.ope.question import BASE, PieceSums, Question, add, answer
from dither.ope.result import HEADS, Difference, Estimate, row_of
from dither.ope.timed import Timed, in_order
from dither.ope.unasked import UNKNOWN, Logging
from dither.ope.verdicts import Verdict

AHEAD = "2 * n_jobs"  # pieces that are read before their answers are there, as joblib writes it
INTERVALS = intervals.OF_LOGS


class Evaluation(EvaluationNumbers):
    """What a log says about policies."""

    def verdicts(self) -> list[Verdict]:
        """What the log says about each policy compared with what ran, in plain words, by the first estimator."""
        return verdicts.verdicts(self)

    def notes(self) -> list[str]:
        """What a reader must know besides the verdicts."""
        return verdicts.notes(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: a row for each policy and estimator, the verdicts and the notes."""
        rows = [(policy, *row_of(estimate)) for (policy, _), estimate in self.estimates.items()]
        says = [f"{verdict.policy}: {verdict.text}" for verdict in self.verdicts()]
        return notebook.table(["policy", *HEADS], rows, says=[*says, *self.notes()], texts=2)


@dataclass(frozen=True)
class Reading:
    """Which log is read, and what is made of it before it is judged."""

    data: Any  # a path; or a `Logged` or a frame
    settings: Mapping[str, Any]  # how a file is read (`dither.log.sources.LogSource`)
    timed: Timed | None = None  # None: nothing is asked about time
    model: str | None = None  # makes reward predictions
    seed: int = 0  # of the model
    logging: Logging = UNKNOWN  # what the log says of the policy that ran

    def looked(self, question: Question) -> Logging:
        """What the log says of the policy that ran, by all of its rows, and by the arms on offer in the first ones."""
        if isinstance(self.data, (str, Path)):
            file = self.source(question)
            first = next(iter(file.pieces({"features", "arm_set", "policy", "learnt"}, rows=LOOKED_AT).each), None)
        else:
            if self.settings:
                name = next(iter(self.settings))
                raise ValueError(f"{name}= is for files, which are read here; name the columns of a frame before")
            first = reader.read(self.data)
        return UNKNOWN if first is None else Logging.of(first)

    def source(self, question: Question) -> sources.LogSource:
        """The file, with what the question needs of it."""
        text = () if question.cluster is None else (question.cluster,)
        return sources.LogSource(self.data, arms=question.arms, text=text, **self.settings)

    def once(self, question: Question) -> "Reading":
        """The same, with the rows of a ledger in its place, which are read once: all that is said is of one moment."""
        if not isinstance(self.data, (str, Path)) or not reader.is_ledger(self.data):
            return self
        return replace(self, data=self.source(question).whole(self._columns(question)), settings={})

    def _columns(self, question: Question) -> set[str]:
        """The columns that are needed of a log that is held in memory."""
        columns = question.columns | (self.timed.columns if self.timed else set())
        return (columns | ({"features"} if self.model is not None else set())) - {fitting.COLUMN}

    def opened(self, question: Question) -> tuple[sources.LogSource | None, Logged | None]:
        """The file, if it is one, and the log in memory. A file is read in pieces, unless it must be seen whole."""
        if not isinstance(self.data, (str, Path)):
            return None, reader.read(self.data)
        file = self.source(question)
        if self.timed is None and self.model is None and not question.in_order:
            return file, None
        return file, file.whole(self._columns(question))

    def prepared(self, whole: Logged, question: Question) -> tuple[Logged, Report | None]:
        """The log as it is judged, and a report on the rows that were left out on the way, if any could be."""
        if question.in_order:
            in_order(whole)
        if self.timed is not None:
            whole = self.timed.applied(whole, question.missing)
        if self.model is None:
            return whole, None
        whole = fitting.predicted(question.usable(whole), self.model, question.cluster, question.in_order, self.seed)
        return whole, whole.report


def evaluate(
    log: Any,
    policies: Mapping[str, Any] | Iterable[Any] = ("uniform",),
    estimators: Sequence[str] | None = None,
    *,
    predictions: str | None = None,
    model: str | None = None,
    cluster: str | None = None,
    interval: str | None = None,
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
    resamples: int = IntervalSettings.resamples,
    seed: int = 0,
    jobs: int = 1,
    backend: str = "loky",
    scheduler: str | None = None,
    on_progress: Callable[[int, int], object] = lambda done, rows: None,
    **source: Any,
) -> Evaluation:
    """What other policies would have earned on the traffic of a log: estimates, intervals, and verdicts in plain words.

    log : a file, a folder that `dither.log.Log` wrote, or a folder of Parquet parts, which are read in pieces; or a
        ledger, by its file or its URL, a `dither.log.Logged` or a frame, in memory
    policies : a list, or a mapping name -> policy. A policy is a word as in `candidates` ("uniform", "arm:NAME",
        "column:NAME", "bandit.npz"), a `dither.Bandit` as it is, or an array of its probabilities in each row: (n, K),
        or (n,) for the arm shown
    estimators : names, with a setting where the estimator has one ("snips", "clipped_ips:5"); None: "snips" and "ips",
        and before them "dr" if there are predictions; "ips" comes first where the policy learnt (`interval`). The first
        one gives the verdict
    predictions : a column: lists of the reward predicted for each arm, or the reward predicted for the arm shown
    model : "ridge" or "gbm", to make predictions from the features, cross-fitted in memory
    cluster : a column, such as the user. Rows with the same value may depend on each other
    interval : None: "normal"; but where the policy that ran learnt meanwhile, as the log says (`dither.log.acting`),
        and nobody chose estimators, "anytime" for ips and its differences, which holds there, and "normal" for others
    level, reward_range, weight_max, row_weight_max, resamples : see `bounded.IntervalSettings`. reward_range None: what
        the log was told of its rewards, or what the link of its model allows
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
    if missing == "bounds" and reward_range is None:
        bounds = Option("reward_range", means="(low, high)")
        raise Refused("bounds for missing rewards need to know what they can be: ", bounds)
    errors.at_least("draws", draws, 1)
    workers = None if (backend, jobs, scheduler) == ("loky", 1, None) else Workers(backend, jobs, scheduler)
    if model is not None and predictions is not None:
        raise Refused("give ", Option("predictions"), " or ", Option("model"), ", not both")
    column = fitting.COLUMN if model is not None else predictions
    names = estimators or [*(["dr"] if column is not None else []), "snips", "ips"]
    question = Question(
        candidates.policies(policies, draws=draws), tuple(map(NamedEstimator.parse, names)), column, cluster,
        missing, invalid, duplicates, arms,
    )  # fmt: skip
    how = IntervalSettings(interval or "normal", level, reward_range, weight_max, row_weight_max, resamples, seed)
    how = intervals.for_logs(how)
    timed = _timed(how, question, horizon, late, now, half_life, window, at, by)
    reading = Reading(log, source, timed, model, seed).once(question)
    reading, question, how = _of_log(reading, question, how, free=interval is None and estimators is None)
    if missing != "bounds" or reward_range is None:
        return _evaluated(reading, question, how, workers, on_progress)
    half = replace(how, level=(1 + level) / 2)
    low, high = (
        _evaluated(reading, replace(question, missing=end), half, workers, on_progress) for end in reward_range
    )
    return unknown.bounded(low, high, reward_range, level)


def _timed(how: IntervalSettings, question: Question, horizon: Any, late: str, *others: Any) -> Timed | None:
    """What is asked about time; None: nothing. others : now, half_life, window, at and by, as for `evaluate`"""
    if late == "settled" and all(x is None for x in (horizon, *others)):
        return None
    timed = Timed.of(horizon, late, *others)
    timed.refuse(how.interval, question.in_order)
    return timed


def _of_log(
    reading: Reading, question: Question, how: IntervalSettings, *, free: bool
) -> tuple[Reading, Question, IntervalSettings]:
    """The same, with what the log says of the policy that ran. free : whether nobody chose estimators and interval."""
    logging = reading.looked(question)
    if free and logging.learnt.value:
        question, how = unasked.held(question, how, logging, reading.timed)
    elif how.interval in BOUNDED and how.reward_range is None:
        how = replace(how, reward_range=logging.reward_range)
        intervals.bounds_are_there(how)
    return replace(reading, logging=logging), question, how


def _evaluated(
    reading: Reading,
    question: Question,
    how: IntervalSettings,
    workers: Workers | None,
    on_progress: Callable[[int, int], object],
) -> Evaluation:
    """Read the log and judge it."""
    (file, whole), report, rows = reading.opened(question), None, sources.ROWS
    if whole is not None:
        whole, report = reading.prepared(whole, question)
        rows = max(len(whole), 1) if question.in_order else rows
        pieces = Pieces(len(whole), sources.split(whole, rows))
    elif file is not None:
        pieces = file.pieces(question.columns, rows=rows)
    evaluation = judged(
        pieces.each, question, how, workers=workers if pieces.rows > rows else None,
        on_progress=lambda done: on_progress(done, pieces.rows),
    )  # fmt: skip
    return replace(
        evaluation,
        report=report or evaluation.report,
        ran=reading.logging,
        timed=reading.timed,
        periods={} if whole is None else _by_period(whole, reading.timed, question, how),
    )


def _by_period(logged: Logged, timed: Timed | None, question: Question, how: IntervalSettings) -> dict[str, Evaluation]:
    """The evaluation of each period by itself, in order. A period without a row that can be used is not there."""
    labels = None if timed is None else timed.labels(logged)
    if labels is None:
        return {}
    answers = {
        label: answer(logged.filter(labels == label), replace(question, keep=how.interval in ONE_VALUE))
        for label in np.unique(labels).tolist()
    }
    return {
        label: conclude(sums, question, report, how) for label, (sums, report) in answers.items() if sums is not None
    }


def judged(
    pieces: Iterable[Logged],
    question: Question,
    how: IntervalSettings | None = None,
    *,
    workers: Workers | None = None,
    on_progress: Callable[[int], object] = lambda rows: None,
) -> Evaluation:
    """Sum the pieces, in order, and judge the sums. workers : None: this process alone.

    on_progress is called with the number of rows read. The same pieces give the same bits, whoever sums them up with
    the same BLAS and processor. Other pieces of the same log give the same numbers up to rounding. Raises ValueError
    for rows that break a rule (unless they are to be left out), and if no row is left.
    """
    how = how or IntervalSettings()
    question = replace(question, keep=how.interval in ONE_VALUE)
    total, report = None, Report(0, 0)
    for part, of_part in _answers(pieces, question, workers):
        total, report = add(total, part), report + of_part
        on_progress(report.read)
    if total is None:
        raise ValueError(f"no row is left to evaluate: {report}")
    return conclude(total, question, report, how)


def _answers(
    pieces: Iterable[Logged], question: Question, workers: Workers | None
) -> Iterator[tuple[PieceSums | None, Report]]:
    """The answers, in the order of the pieces. Memory holds a few pieces for each worker."""
    if workers is None or workers.alone:
        return (answer(piece, question) for piece in pieces)
    # NumPy lets threads run in parallel, without copies. The Python code of a bandit does not, so it needs processes
    threads = workers.backend == "loky" and not any(isinstance(policy, Saved) for policy in question.policies)
    calls = (delayed(answer)(piece, question) for piece in pieces)
    return workers.results(calls, ordered=True, ahead=AHEAD, threads=threads)


@np.errstate(all="ignore")
def conclude(part: PieceSums, question: Question, report: Report, how: IntervalSettings) -> Evaluation:
    """The evaluation from sums: estimates and differences."""
    sums, names = part.sums, [policy.name for policy in question.policies]
    places: dict[str, int] = {}  # of each policy's first estimate
    for j, (who, _) in enumerate(sums.names):
        places.setdefault(who, j)
    has_P = {who: facts.has_P for who, facts in part.facts.items()}
    certain = {who: sums.certain(places[who]) for who in names}
    draws = partial.resample(sums, seed=how.seed, times=how.resamples) if how.interval == "bootstrap" else None
    kinds = {one.name: question.interval_of(one, how.interval) for one in question.estimators}
    kinds[BASE[1]] = how.interval
    estimates = _estimates(sums, kinds, how, draws)
    tallies = {who: sums.tallies[j] for who, j in places.items()}
    events = _few(tallies, how) if sums.clusters is None else {}
    for (who, by), e in estimates.items():
        lost = unsupported(e.weight_mean, certain.get(who, 0.0), has_P=has_P.get(who, True))
        ends, method = e.interval, e.interval_method
        if who in events and events[who].held and e.method != "dm":
            ends = intervals.hull(ends, _unseen(who, tallies[who], how, how.level))
            method = f"{method}, wider for events not seen"
        estimates[who, by] = replace(e, unsupported=lost, interval=ends, interval_method=method)
    rivals = [BASE, *((names[0], one.name) for one in question.estimators if len(names) > 1)]
    differences = {base: _differences(sums, base, kinds, how, draws) for base in rivals}
    gaps = []
    for (who, by), e in estimates.items():
        for base in rivals if who != LOGGING else ():
            if base == BASE or (base[1] == by and base[0] != who):
                gap = differences[base][who, by]
                if e.method != "dm" and not events.keys().isdisjoint((who, base[0])):
                    one, other = (_unseen(name, tallies[name], how, (1 + how.level) / 2) for name in (who, base[0]))
                    gap = replace(gap, interval=intervals.wider_gap(gap.interval, one, other))
                gaps.append(Gap(who, by, base[0], gap))
    return Evaluation(
        estimates=estimates,
        gaps=tuple(gaps),
        has_P=has_P,
        certain=certain,
        kinds={LOGGING: part.kinds} | {who: facts.kinds for who, facts in part.facts.items()},
        report=report,
        how=how,
        blocks=(len(sums.blocks.n), sums.blocks.width) if sums.blocks is not None else (0, 0),
        clusters=None if sums.clusters is None else len(sums.clusters.n),
        checked=part.checked,
        rounding={who: facts.rounding for who, facts in part.facts.items()},
        expected={who: sums.total**2 / facts.second for who, facts in part.facts.items()},
        saved=tuple(policy.name for policy in question.policies if isinstance(policy, Saved)),
        events=events,
        beside=question.beside,
        valued=part.valued,
    )


def _estimates(sums: partial.Sums, kinds: Mapping[str, str], how: IntervalSettings, draws: Any) -> dict[Any, Estimate]:
    """The estimates, in their order. kinds : estimator -> the kind of its interval"""
    results: dict[Any, Estimate] = {}
    for kind in set(kinds.values()):
        some = [key for key in sums.names if kinds[key[1]] == kind]
        results |= partial.estimates(sums, warn=False, names=some, draws=draws, **vars(replace(how, interval=kind)))
    return {key: results[key] for key in sums.names}


def _differences(
    sums: partial.Sums, base: tuple[str, str], kinds: Mapping[str, str], how: IntervalSettings, draws: Any
) -> dict[Any, Difference]:
    """The differences to one estimate: those of anytime intervals have such an interval too."""
    gaps: dict[Any, Difference] = {}
    for is_open in {kind == "anytime" for kind in kinds.values()}:
        some = [
            key for key in sums.names if (kinds[key[1]] == "anytime") == is_open and base in (BASE, (base[0], key[1]))
        ]
        bounds: dict[str, Any] = dict(reward_range=how.reward_range, row_weight_max=how.row_weight_max)
        more: dict[str, Any] = dict(interval="anytime", **bounds) if is_open else {}
        gaps |= partial.differences(sums, base, level=how.level, draws=draws, names=some, **more)
    return gaps


def _few(tallies: dict[str, Tally], how: IntervalSettings) -> dict[str, Events]:
    """The policies for which few rewards differ. Empty for intervals that do not use the spread of the rows."""
    if how.interval not in ("normal", "bootstrap", "asymptotic"):
        return {}
    rare = {who: tally for who, tally in tallies.items() if intervals.few(tally)}
    return {who: Events(tally, _unseen(who, tally, how, how.level) is not None) for who, tally in rare.items()}


def _unseen(who: str, tally: Tally, how: IntervalSettings, level: float) -> intervals.Interval | None:
    """The interval of the value of a policy that also holds for events that were not seen."""
    return intervals.unseen(tally, level, how.reward_range, bound=how.weight_max if who != LOGGING else None)
