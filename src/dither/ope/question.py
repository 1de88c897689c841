"""What is asked of a log, and the answer of one piece of the log. The answers are sums, which add up over pieces.

A policy gives q in each row, the probability of the arm shown. With reward predictions there are two more numbers: m,
the prediction for the arm shown, and g = Σ_k Q_k M_k. Most estimators need no more of Q and M than these three.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dither.base import errors
from dither.base.errors import Option, Refused
from dither.deciding import inputs
from dither.log.check import Report
from dither.log.logged import Logged
from dither.log.schema import KINDS
from dither.ope import candidates, contributions, partial
from dither.ope.bounded import Bounded
from dither.ope.candidates import LOGGING, Policy, Shown
from dither.ope.rows import Rows, second


class Asked(NamedTuple):
    """An estimator and its setting."""

    name: str  # as it was written
    method: str
    setting: float | None

    @classmethod
    def parse(cls, text: str) -> "Asked":
        """NAME or NAME:SETTING. Raises LookupError for an unknown name, ValueError for a setting out of its range."""
        method, colon, number = text.partition(":")
        rule = contributions.find(method).setting
        if rule is None:
            if colon:
                raise ValueError(f"the estimator {method} has no setting, got {text!r}")
            return cls(text, method, None)
        try:
            setting = float(number)
        except ValueError:
            raise ValueError(
                f"the estimator {method} needs its {rule[0]}: write {method}:NUMBER, got {text!r}"
            ) from None
        errors.within(rule[0], setting, *rule[1:])
        return cls(text, method, setting)


@dataclass(frozen=True)
class Question:
    """Everything that the sums depend on. It is sent to other processes."""

    policies: tuple[Policy, ...]
    estimators: tuple[Asked, ...]
    predictions: str | None = None  # a column: lists (K,) M, or m of the arm shown
    cluster: str | None = None
    missing: str | float = "error"  # rows without a reward: see `Logged.usable`, also for the next two
    invalid: str = "error"
    duplicates: str = "error"
    arms: int | None = None  # number of arms, where the log does not say
    keep: bool = False  # whether to keep what each row adds to a mean, for intervals that sums cannot give

    def __post_init__(self) -> None:
        if not self.estimators:
            raise Refused("no estimator: give at least one with ", Option("estimators"))
        for what, names in (
            ("policies", [policy.name for policy in self.policies]),
            ("estimators", [asked.name for asked in self.estimators]),
        ):
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise ValueError(
                    f"{what} must have different names; {twice[0]!r} is there {names.count(twice[0])} times"
                )
        if LOGGING in (policy.name for policy in self.policies):
            raise ValueError(f"a policy must not be called {LOGGING!r}, which is the name of what ran")
        if self.arms is not None:
            errors.at_least("arms", self.arms, 1)

    @property
    def in_order(self) -> bool:
        """Whether an estimator reads the past, so that the log must be one piece in order of time."""
        return any(contributions.find(asked.method).reads == "past" for asked in self.estimators)

    @property
    def columns(self) -> set[str]:
        """The columns that are read besides those that every log has."""
        named = {name for policy in self.policies for name in policy.columns}
        named |= {"probabilities", "time"} if self.in_order else set()
        return named | {name for name in (self.predictions, self.cluster) if name is not None}

    @property
    def predicts(self) -> bool:
        """Whether an estimator needs reward predictions."""
        found = [contributions.find(asked.method).predicts for asked in self.estimators]
        return any(found) or (None in found and self.predictions is not None)


class Part(NamedTuple):
    """The answer of some rows. The answers of parts of a log add up."""

    sums: partial.Sums  # its names: `key`
    checked: int  # rows whose logged probabilities say what the propensity must be (`log.check`)
    known: tuple[bool, ...]  # of each policy: whether every row says how much of it is on arms that could not be shown
    kinds: tuple[frozenset[str], ...]  # of the log's propensities, then of each policy's
    rounding: tuple[float, ...]  # of each policy: how far its weights may be off, as columns hold few digits
    second: tuple[float, ...]  # of each policy: Σs²φ (`diagnostics.expected_rows`); NaN where a row does not say it


def key(policy: str, estimator: str) -> str:
    """The name of an estimate in the sums."""
    return f"{policy} by {estimator}"


BASE = key(LOGGING, "mean")  # the mean of the rewards: by weights that are 1
MOST_ROUNDING = 1e-3  # an error of a weight above this does not come from the digits of a column


@np.errstate(all="ignore")
def answer(log: Logged, question: Question) -> tuple[Part | None, Report]:
    """The sums of one piece and its report. The sums are None if none of its rows can be used.

    Raises ValueError if the answer depends on how many arms were on offer and nothing says it.
    """
    log = told(log, question)
    log = log.usable(missing=question.missing, invalid=question.invalid, duplicates=question.duplicates)
    log = log.standing()
    return (_sums(log, question) if len(log) else None), log.report or Report(0, 0)


def add(a: Part | None, b: Part | None) -> Part | None:
    """The answer of the rows of both. The rows of a come first."""
    if a is None or b is None:
        return a if b is None else b
    return Part(
        partial.merge(a.sums, b.sums),
        a.checked + b.checked,
        tuple(x and y for x, y in zip(a.known, b.known, strict=True)),
        tuple(x | y for x, y in zip(a.kinds, b.kinds, strict=True)),
        tuple(max(x, y) for x, y in zip(a.rounding, b.rounding, strict=True)),
        tuple(x + y for x, y in zip(a.second, b.second, strict=True)),
    )


def told(log: Logged, question: Question) -> Logged:
    """The log with the number of arms: its own, or else the number that the user gave."""
    if log.catalogue is not None or log.known_arms:
        return log
    if question.arms is not None:
        return replace(log, catalogue=tuple(map(str, range(question.arms))))
    columns = [policy.q for policy in question.policies if isinstance(policy, candidates.Column)]
    lists = [name for name in (*columns, question.predictions) if name in log.frame.columns]
    if len(columns) == len(question.policies) and not any(candidates.is_list(log, str(name)) for name in lists):
        return log  # the probability of the arm shown is all that is asked for
    a = log.a
    largest = int(a.max(initial=-1)) if log.most is None else log.most - 1
    more = ""
    if len(a) and a.min() > 0:
        more = (
            f". Positions count from 0, and the first {len(a):,} rows never show 0: if yours count from 1, subtract 1"
        )
    raise Refused(
        *("the log does not say it: say how many arms were on offer with ", Option("arms")),
        f"; the largest position shown is {largest}{more}",
    )


def _sums(log: Logged, question: Question) -> Part:
    """The sums of usable rows, of which there is at least one."""
    kinds, se = _errors(log)
    P = log.P if "probabilities" in log.frame.columns else None
    full = 0 if P is None else int(np.count_nonzero(~np.isnan(P).any(axis=1)))
    base = contributions.find("ips")(_rows(log, Shown(log.p), None, None, None, who=LOGGING), None)
    made, known, of_policies, rounding = {BASE: replace(base, bounded=Bounded("weighted", 1.0))}, [], [], []
    moments: list[float] = []
    for policy in question.policies:
        shown = policy.shown(log)
        known.append(shown.Q is not None and full == len(log))
        of_policies.append(frozenset({shown.kind}))
        moments.append(_second(log, shown, P) if known[-1] and log.kind == "exact" else np.nan)
        rounding.append(max(_rounding(log.p, log.p), _rounding(shown.q, log.p)))
        mg = _predicted(log, shown, question, policy.name) if question.predicts else None
        rows = _rows(log, shown, mg, P, se, who=policy.name)
        for asked in question.estimators:
            found = contributions.find(asked.method)
            given = rows if found.reads == "shown" else _all_arms(rows, log, shown, question, asked, policy.name)
            given = given._replace(P=P, kind=log.kind) if found.reads == "past" else given
            made[key(policy.name, asked.name)] = found(given, asked.setting)
    labels = None if question.cluster is None else _labels(log, question.cluster)
    sums = partial.sums(made, numbers=log.numbers, cluster=labels, keep=question.keep)
    if not np.all(np.isfinite(sums.squares)):
        raise ValueError(
            "rewards times weights are too large for float64, their squares overflow: scale the rewards down"
        )
    checked = full if log.kind == "exact" else 0
    return Part(sums, checked, tuple(known), (kinds, *of_policies), tuple(rounding), tuple(moments))


def _rows(log: Logged, shown: Shown, mg: Any, P: Any, se: np.ndarray | None, *, who: str) -> Rows:
    """What the estimators of `dither.ope` start from.

    Two arms take the place of all K. One is the arm shown, with probability q and prediction m. The other has the rest
    of the probability, and the mean prediction (g - qm)/(1 - q), which g gives. The two have the same weights and the
    same model value g as all K arms.
    """
    q, n = shown.q, len(log)
    w = q / log.p
    if not np.all(w < inputs.LARGEST):
        i = int(np.argmax(~(w < inputs.LARGEST)))
        raise ValueError(f"the weight q/p must be below {inputs.LARGEST:g}; {who} has {w[i]:g} in row {log.numbers[i]}")
    M = None
    if mg is not None:
        m, g = mg
        M = np.column_stack([m, np.divide(g - q * m, 1 - q, out=m.copy(), where=q < 1)])
    gap = None
    if P is not None and shown.Q is not None:
        gap = np.where(np.isnan(P).any(axis=1), np.where(log.p < 1, 0.0, 1 - q), np.sum(shown.Q, axis=1, where=P <= 0))
    Q = np.column_stack([q, 1 - q])
    arms = np.zeros(n, dtype=np.int64)
    return Rows(log.r, arms, log.p, w, Q, M, se, KINDS[0], None, None, gap, None, {}, log.weight, _limit(log, shown, P))


def _all_arms(rows: Rows, log: Logged, shown: Shown, question: Question, asked: Asked, who: str) -> Rows:
    """The same rows with all arms, for an estimator that reads them. Raises ValueError if they are not known."""
    if shown.Q is None:
        raise ValueError(
            f"the estimator {asked.name} reads the probabilities of all arms, and {who} gives that of the arm shown "
            "alone: pass a column of lists"
        )
    M, column = None, question.predictions
    if column is not None and contributions.find(asked.method).predicts is not False:
        if not candidates.is_list(log, column):
            raise ValueError(
                f"the estimator {asked.name} reads the predictions of all arms, and column {column!r} predicts for the "
                "arm shown alone: let it hold lists, a number for each arm"
            )
        M = log.matrix(column)
    return rows._replace(a=log.a, Q=shown.Q, M=M)


def _second(log: Logged, shown: Shown, P: Any) -> float:
    """Σs²φ."""
    Q: Any = shown.Q
    s = 1.0 if log.weight is None else log.weight
    return float(np.sum(s**2 * second(P, Q)))


def _limit(log: Logged, shown: Shown, P: Any) -> float | None:
    """A bound on the weights, whatever arm a row shows; None if a row has neither probabilities nor a floor."""
    if log.kind != "exact":
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.where(log.floor > 0, log.K / log.floor, np.nan)
        if P is not None and shown.Q is not None:
            most = np.max(np.divide(shown.Q, P, out=np.zeros(P.shape), where=P > 0), axis=1)
            bound = np.where(np.isnan(P).any(axis=1), bound, most)
    return None if np.isnan(bound).any() else float(np.max(bound))


def _predicted(log: Logged, shown: Shown, question: Question, who: str) -> tuple[np.ndarray, np.ndarray]:
    """m and g (n,)."""
    column = question.predictions
    if column is None:
        needy = next(asked.name for asked in question.estimators if contributions.find(asked.method).predicts)
        ways = Option("predictions", means="COLUMN"), ", or ", Option("model"), " to make them"
        raise Refused(f"{needy} needs reward predictions: ", *ways)
    if not candidates.is_list(log, column):
        if shown.g is None:
            raise ValueError(
                f"column {column!r} predicts for the arm shown alone, so {who} needs its own prediction in each row: "
                f"write column:q,g with g = Σ_k Q_k M_k, or let {column!r} hold lists, a number for each arm"
            )
        return candidates.number(log, column), shown.g
    M = log.matrix(column)
    candidates.refuse(~np.isfinite(M).all(axis=1), log, f"column {column!r} must hold finite numbers")
    if shown.g is not None:
        return candidates.of_shown(M, log.a), shown.g
    if shown.Q is None:
        raise ValueError(
            f"{who} gives the probability of the arm shown alone: with lists in {column!r} it must give lists too, or "
            f"write column:q,g with g = Σ_k Q_k M_k"
        )
    return candidates.of_shown(M, log.a), np.einsum("ij,ij->i", shown.Q, M)


def _errors(log: Logged) -> tuple[frozenset[str], np.ndarray | None]:
    """The kinds of the logged propensities, and their standard errors (n,) where any are Monte Carlo."""
    if log.kind == "exact":
        return frozenset({"exact"}), None
    kinds = log.kinds
    drawn, se = kinds == "monte_carlo", log.se
    candidates.refuse(drawn & np.isnan(se), log, "Monte Carlo propensities need their propensity_se")
    return frozenset(kinds.tolist()), np.where(drawn, se, 0.0)


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


def _labels(log: Logged, name: str) -> np.ndarray:
    column = log.column(name)
    candidates.refuse(
        log.series(name).is_null().to_numpy(), log, f"column {name!r} must say to which cluster a row belongs"
    )
    return column.astype(str) if column.dtype.kind == "O" else column
