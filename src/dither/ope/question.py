"""What is asked of a log, and the answer of one piece of the log. The answers are sums, which add up over pieces.

A policy gives q in each row, the probability of the arm shown. With reward predictions there are two more numbers: m,
the prediction for the arm shown, and g = Σ_k Q_k M_k. Most estimators need no more of Q and M than these three.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dither.base import errors
from dither.base.errors import Option, Refused
from dither.deciding import inputs
from dither.log.check import Report
from dither.log.logged import Logged
from dither.log.schema import KINDS
from dither.ope import candidates, partial
from dither.ope.bounded import Bounded
from dither.ope.candidates import LOGGING, CandidatePolicy, PolicyRows
from dither.ope.contributions import NamedEstimator, find
from dither.ope.rows import Rows, second

BASE = (LOGGING, "mean")  # the mean of the rewards: by weights that are 1
MOST_ROUNDING = 1e-3  # an error of a weight above this does not come from the digits of a column


@dataclass(frozen=True)
class Question:
    """Everything that the sums depend on. It is sent to other processes."""

    policies: tuple[CandidatePolicy, ...]
    estimators: tuple[NamedEstimator, ...]
    predictions: str | None = None  # a column: lists (K,) M, or m of the arm shown
    cluster: str | None = None
    missing: str | float = "error"  # rows without a reward: see `Logged.usable`, also for the next two
    invalid: str = "error"
    duplicates: str = "error"
    arms: int | None = None  # number of arms, where the log does not say
    keep: bool = False  # whether to keep what each row adds to a mean, for intervals that sums cannot give
    beside: str | None = None  # the interval of all estimators but ips; None: all have one interval

    def __post_init__(self) -> None:
        if not self.estimators:
            raise Refused("no estimator: give at least one with ", Option("estimators"))
        for what, several in (("policies", self.policies), ("estimators", self.estimators)):
            names = [one.name for one in several]
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise ValueError(
                    f"{what} must have different names; {twice[0]!r} is there {names.count(twice[0])} times"
                )
        if LOGGING in (policy.name for policy in self.policies):
            raise ValueError(f"a policy must not be called {LOGGING!r}, which is the name of what ran")
        if self.arms is not None:
            errors.at_least("arms", self.arms, 1)

    def interval_of(self, estimator: NamedEstimator, interval: str) -> str:
        """The kind of the interval of an estimator. interval : that of ips"""
        return interval if self.beside is None or estimator.method == "ips" else self.beside

    @property
    def in_order(self) -> bool:
        """Whether an estimator reads the past, so that the log must be one piece in order of time."""
        return any(estimator.rule.reads == "past" for estimator in self.estimators)

    @property
    def columns(self) -> set[str]:
        """The columns that are read besides those that every log has."""
        names = {name for policy in self.policies for name in policy.columns}
        names |= {"probabilities", "time"} if self.in_order else set()
        return names | {name for name in (self.predictions, self.cluster) if name is not None}

    @property
    def predicts(self) -> bool:
        """Whether an estimator needs reward predictions."""
        needs = [estimator.rule.predicts for estimator in self.estimators]
        return any(needs) or (None in needs and self.predictions is not None)

    def usable(self, logged: Logged) -> Logged:
        """The rows that may be used, with a report. Raises ValueError for others, unless they are to be left out."""
        return _counted(logged, self).usable(missing=self.missing, invalid=self.invalid, duplicates=self.duplicates)


class PolicyFacts(NamedTuple):
    """What some rows say of a policy besides its sums. The facts of parts of a log add up."""

    has_P: bool  # whether every row says how much of it is on arms that could not be shown
    kinds: frozenset[str]  # of its probabilities
    rounding: float  # how far its weights may be off, as columns hold few digits
    second: float  # Σs²φ (`diagnostics.expected_rows`); NaN where a row does not say it

    def plus(self, other: "PolicyFacts") -> "PolicyFacts":
        """The facts of the rows of both."""
        rounding, second = max(self.rounding, other.rounding), self.second + other.second
        return PolicyFacts(self.has_P and other.has_P, self.kinds | other.kinds, rounding, second)


class PieceSums(NamedTuple):
    """The answer of some rows. The answers of parts of a log add up."""

    sums: partial.Sums  # its names: (policy, estimator)
    checked: int  # rows whose logged probabilities say what the propensity must be (`log.check`)
    kinds: frozenset[str]  # of the log's propensities
    facts: dict[str, PolicyFacts]  # name of a policy -> what the rows say of it
    valued: bool = False  # whether arms had values, which the rewards do not count (`dither.ope.worth`)


@np.errstate(all="ignore")
def answer(logged: Logged, question: Question) -> tuple[PieceSums | None, Report]:
    """The sums of one piece and its report. The sums are None if none of its rows can be used.

    Raises ValueError if the answer depends on how many arms were on offer and nothing says it.
    """
    logged = question.usable(logged).standing()
    return (_sums(Piece.of(logged, question)) if len(logged) else None), logged.report or Report(0, 0)


def add(a: PieceSums | None, b: PieceSums | None) -> PieceSums | None:
    """The answer of the rows of both. The rows of a come first."""
    if a is None or b is None:
        return a if b is None else b
    facts = {name: mine.plus(b.facts[name]) for name, mine in a.facts.items()}
    sums, checked = partial.merge(a.sums, b.sums), a.checked + b.checked
    return PieceSums(sums, checked, a.kinds | b.kinds, facts, a.valued or b.valued)


def _counted(logged: Logged, question: Question) -> Logged:
    """The log with the number of arms: its own, or else the number that the user gave."""
    if logged.catalogue is not None or logged.known_arms:
        return logged
    if question.arms is not None:
        return replace(logged, catalogue=tuple(map(str, range(question.arms))))
    columns = [policy.q for policy in question.policies if isinstance(policy, candidates.ColumnPolicy)]
    lists = [name for name in (*columns, question.predictions) if name in logged.frame.columns]
    if len(columns) == len(question.policies) and not any(candidates.is_list(logged, str(name)) for name in lists):
        return logged  # the probability of the arm shown is all that is asked for
    a = logged.a
    largest = int(a.max(initial=-1)) if logged.most is None else logged.most - 1
    more = ""
    if len(a) and a.min() > 0:
        more = (
            f". Positions count from 0, and the first {len(a):,} rows never show 0: if yours count from 1, subtract 1"
        )
    raise Refused(
        *("the log does not say it: say how many arms were on offer with ", Option("arms")),
        f"; the largest position shown is {largest}{more}",
    )


@dataclass(frozen=True, eq=False)
class Piece:
    """Usable rows of a log, at least one, as the estimators of `dither.ope` start from them."""

    logged: Logged
    question: Question
    kinds: frozenset[str]  # of the logged propensities
    se: np.ndarray | None  # (n,) standard errors of the logged propensities; None: all are exact
    P: np.ndarray | None  # (n, K) logged probabilities of all arms, NaN in rows without; None: no row has any
    silent: Any  # (n,) which rows lack a probability; None: no row has any

    @classmethod
    def of(cls, logged: Logged, question: Question) -> "Piece":
        """The piece. Raises ValueError for Monte Carlo propensities without a standard error."""
        kinds, se = ["exact"], None
        if logged.kind != "exact":
            drawn, kinds = logged.kinds == "monte_carlo", logged.kinds.tolist()
            candidates.refuse(drawn & np.isnan(logged.se), logged, "Monte Carlo propensities need their propensity_se")
            se = np.where(drawn, logged.se, 0.0)
        P = logged.P if "probabilities" in logged.frame.columns else None
        return cls(logged, question, frozenset(kinds), se, P, None if P is None else np.isnan(P).any(axis=1))

    @cached_property
    def M(self) -> np.ndarray | None:
        """Predictions for all arms (n, K); None if the column predicts for the arm shown alone."""
        column = str(self.question.predictions)
        return self.logged.matrix(column) if candidates.is_list(self.logged, column) else None

    def of_shown(self, policy: PolicyRows, who: str) -> Rows:
        """The rows with two arms in place of all K.

        One is the arm shown, with probability q and prediction m. The other has the rest of the probability, and the
        mean prediction (g - qm)/(1 - q), which g gives. The two have the same weights and the same model value g as
        all K arms.
        """
        logged, q = self.logged, policy.q
        w = q / logged.p
        if not np.all(w < inputs.LARGEST):
            i = int(np.argmax(~(w < inputs.LARGEST)))
            raise ValueError(
                f"the weight q/p must be below {inputs.LARGEST:g}; {who} has {w[i]:g} in row {logged.numbers[i]}"
            )
        M = gap = None
        if self.question.predicts and who != LOGGING:
            m, g = self.predicted(policy, who)
            M = np.column_stack([m, np.divide(g - q * m, 1 - q, out=m.copy(), where=q < 1)])
        if self.P is not None and policy.Q is not None:
            gap = np.sum(policy.Q, axis=1, where=self.P <= 0)
            gap = np.where(self.silent, np.where(logged.p < 1, 0.0, 1 - q), gap)
        return Rows(
            logged.r, np.zeros(len(q), dtype=np.int64), logged.p, w, np.column_stack([q, 1 - q]), M, self.se, KINDS[0],
            None, None, gap, None, {}, logged.weight, self.limit(policy),
        )  # fmt: skip

    def of_all(self, rows: Rows, policy: PolicyRows, estimator: NamedEstimator, who: str) -> Rows:
        """The same rows with all arms, for an estimator that reads them. Raises ValueError if they are not known."""
        logged, column, rule = self.logged, self.question.predictions, estimator.rule
        if rule.reads == "shown":
            return rows
        if policy.Q is None:
            raise ValueError(
                f"the estimator {estimator.name} reads the probabilities of all arms, and {who} gives that of the arm "
                "shown alone: pass a column of lists"
            )
        M = None
        if column is not None and rule.predicts is not False:
            M = self.M
            if M is None:
                raise ValueError(
                    f"the estimator {estimator.name} reads the predictions of all arms, and column {column!r} predicts "
                    "for the arm shown alone: let it hold lists, a number for each arm"
                )
        rows = rows._replace(a=logged.a, Q=policy.Q, M=M)
        return rows._replace(P=self.P, kind=logged.kind) if rule.reads == "past" else rows

    def predicted(self, policy: PolicyRows, who: str) -> tuple[np.ndarray, np.ndarray]:
        """m and g (n,)."""
        logged, column = self.logged, self.question.predictions
        if column is None:
            needy = next(one.name for one in self.question.estimators if one.rule.predicts)
            ways = Option("predictions", means="COLUMN"), ", or ", Option("model"), " to make them"
            raise Refused(f"{needy} needs reward predictions: ", *ways)
        if self.M is None:
            if policy.g is None:
                raise ValueError(
                    f"column {column!r} predicts for the arm shown alone, so {who} needs its own prediction in each "
                    f"row: write column:q,g with g = Σ_k Q_k M_k, or let {column!r} hold lists, a number for each arm"
                )
            return candidates.number(logged, column), policy.g
        M = self.M
        candidates.refuse(~np.isfinite(M).all(axis=1), logged, f"column {column!r} must hold finite numbers")
        if policy.g is not None:
            return candidates.of_shown(M, logged.a), policy.g
        if policy.Q is None:
            raise ValueError(
                f"{who} gives the probability of the arm shown alone: with lists in {column!r} it must give lists too, "
                f"or write column:q,g with g = Σ_k Q_k M_k"
            )
        return candidates.of_shown(M, logged.a), np.einsum("ij,ij->i", policy.Q, M)

    def second(self, policy: PolicyRows) -> float:
        """Σs²φ; NaN where a row does not say it."""
        if policy.Q is None or self.P is None or self.silent.any() or self.logged.kind != "exact":
            return np.nan
        s = 1.0 if self.logged.weight is None else self.logged.weight
        return float(np.sum(s**2 * second(self.P, policy.Q)))

    def limit(self, policy: PolicyRows) -> float | None:
        """A bound on the weights, whatever arm a row shows; None if a row has neither probabilities nor a floor."""
        logged = self.logged
        if logged.kind != "exact":
            return None
        bound = np.where(logged.floor > 0, logged.K / logged.floor, np.nan)
        if self.P is not None and policy.Q is not None:
            ratios = np.divide(policy.Q, self.P, out=np.zeros(self.P.shape), where=self.P > 0)
            bound = np.where(self.silent, bound, np.max(ratios, axis=1))
        return None if np.isnan(bound).any() else float(np.max(bound))

    def labels(self) -> np.ndarray | None:
        """The clusters of the rows (n,); None if nobody asked."""
        name = self.question.cluster
        if name is None:
            return None
        absent, column = self.logged.series(name).is_null().to_numpy(), self.logged.column(name)
        candidates.refuse(absent, self.logged, f"column {name!r} must say to which cluster a row belongs")
        return column.astype(str) if column.dtype.kind == "O" else column


def _sums(piece: Piece) -> PieceSums:
    logged, question = piece.logged, piece.question
    full = 0 if piece.P is None else int(np.count_nonzero(~piece.silent))
    base = find("ips")(piece.of_shown(PolicyRows(logged.p), LOGGING)._replace(p_se=None), None)
    terms = {BASE: replace(base, bounded=Bounded("weighted", 1.0))}
    facts: dict[str, PolicyFacts] = {}
    for policy in question.policies:
        shown = policy.shown(logged)
        rows = piece.of_shown(shown, policy.name)
        for estimator in question.estimators:
            every = piece.of_all(rows, shown, estimator, policy.name)
            terms[policy.name, estimator.name] = estimator.rule(every, estimator.setting)
        off = max(_rounding(logged.p, logged.p), _rounding(shown.q, logged.p))
        has_P = shown.Q is not None and full == len(logged)
        facts[policy.name] = PolicyFacts(has_P, frozenset({shown.kind}), off, piece.second(shown))
    sums = partial.sums(terms, numbers=logged.numbers, cluster=piece.labels(), keep=question.keep)
    if not np.all(np.isfinite(sums.squares)):
        raise ValueError(
            "rewards times weights are too large for float64, their squares overflow: scale the rewards down"
        )
    return PieceSums(sums, full if logged.kind == "exact" else 0, piece.kinds, facts, logged.valued)


def _rounding(x: np.ndarray, p: np.ndarray) -> float:
    """How far the weights may be off where x (n,), p or q, has 3 to 8 decimals: (mean of (half a unit/p)²)^½.

    At least that of float32, at most MOST_ROUNDING. Fewer decimals are taken as exact, as in 0.5 and 0.25.
    """
    for digits in range(9):
        scaled = x * 10.0**digits
        if np.all(np.abs(scaled - np.round(scaled)) <= 1e-15 * scaled + 1e-15):
            if digits < 3:
                break
            unit = 0.5 * 10.0**-digits
            return float(np.clip(np.sqrt(np.mean((unit / p) ** 2)), candidates.ROUNDING, MOST_ROUNDING))
    return candidates.ROUNDING
