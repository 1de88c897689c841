"""What a reader checks before an estimate. Findings have counts and row numbers: no row leaves a log silently.

For a row with logged probabilities π_j, the shown arm drawn from them, S the arms with π_j > 0 and p = π_a:

    E[1/p] = |S|,    Var[1/p] = Σ_{j in S} 1/π_j - |S|²,    0 < 1/p <= max_{j in S} 1/π_j

So the mean of 1/p over the log must agree with the mean of |S|. The same is true of the arms with π_j >= LEAST alone,
if a row that shows another arm counts 0. This is what is tested, because 1/p then has a bound. Where a floor f is
logged and no probabilities are, |S| = K, 1/p <= K/f =: B and Var[1/p] <= K B - K². The policy may have learnt from
earlier rows, so the differences form a martingale. Freedman's inequality (Annals of Probability 3, 1975, Theorem 1.6)
bounds their mean over n rows. Call V the sum of the variances and l = log(2/δ). Then the mean exceeds
√(2 V l)/n + B l/(3n) with probability at most δ. The test is for exact propensities only: the inverse of a Monte Carlo
propensity has another mean (docs/ope.md).

Some faults use draws again: copies of one bandit, forks, and a seed that is given at every restart. They leave equal z.
Two equal z of a continuous law have probability 0. As float64, two draws agree by chance with probability at most
2^-53, so n²/2^54 pairs are expected among n draws. More pairs than the Poisson law of that mean allows are a fault.
Such draws also bend the weights of single arms, which `bets` tests.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import special

from dither.base import errors
from dither.deciding.inputs import MOST_OFF, ROUNDING
from dither.log import schema
from dither.log.bets import EachArm, each_arm

DELTA = 1e-4  # a log without fault fails the test of the mean of 1/p at most this often
LEAST = 1e-3  # arms of less probability stay out of the test: the spread of their 1/p would hide everything else
HEAVIEST = 1e100  # the squares of larger weights overflow
LIGHTEST = 1e-100  # the squares of smaller weights of rows become 0; a weight of 0 itself is allowed
SHOWN = 10  # row numbers that a finding prints
OFFERED = ("arm_set", "features", "arms", "K")  # the columns that say which arms were on offer
ERASED = "the decision was erased"
FALLEN = "the store was away, and a fallback was shown, which nothing had drawn"
LOOKED_AT = 5000  # so many first rows say whether the policy changed: one that learns changes most at first
Broken: TypeAlias = tuple[str, str, np.ndarray]  # kind and text of a finding, and whether each row has it (n,)


@dataclass(frozen=True)
class Finding:
    """One kind of thing that is wrong, or worth knowing."""

    kind: str  # "propensity", "kind", "arm", "reward", "duplicate", "missing", "erased", "floor", "weights", "thinned",
    # "arms", and "draws", "law": z that came before
    text: str
    rows: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False)  # numbers in the log
    refused: bool = False  # whether an estimate refuses such rows unless the user leaves them out

    @property
    def count(self) -> int:
        """How many rows."""
        return len(self.rows)

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.rows[:SHOWN].tolist())) + ", ..." * (self.count > SHOWN)
        where = f" ({self.count} row{'s' * (self.count != 1)}: {shown})" if self.count else ""
        return f"{'refused' if self.refused else 'note'}: {self.text}{where}"


class Inverse(NamedTuple):
    """The test of the mean of 1/p, as sums. The sums of parts of a log add up."""

    n: int = 0  # rows that can be checked
    inverse: float = 0.0  # Σ 1/p over the rows whose shown arm has at least LEAST
    support: float = 0.0  # Σ |S|
    variance: float = 0.0  # Σ Var[1/p]
    largest: float = 0.0  # B, the largest value that 1/p could have

    @property
    def ok(self) -> bool | None:
        """Whether the means agree; None where no row can be checked."""
        return None if self.n == 0 else abs(self.inverse - self.support) / self.n <= self.bound

    @property
    def bound(self) -> float:
        """The means of a log without fault are farther apart than this with probability at most DELTA."""
        length = math.log(2 / DELTA)
        return (math.sqrt(2 * self.variance * length) + self.largest * length / 3) / self.n + ROUNDING * self.largest

    def merge(self, other: "Inverse") -> "Inverse":
        """Both parts of a log."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in self._fields[:4]}
        return Inverse(**sums | {"largest": max(self.largest, other.largest)})

    def __str__(self) -> str:
        if self.n == 0:
            return "mean of 1/p: not checkable, as no exact propensities with all probabilities or a floor are logged"
        return (
            f"mean of 1/p: {self.inverse / self.n:.4g}, where {self.support / self.n:.4g} arms could be chosen: "
            f"{'agree' if self.ok else 'DISAGREE'} within {self.bound:.2g} ({self.n} rows)"
        )


class PolicyChanges(NamedTuple):
    """Whether the policy that wrote a log changed while it ran, as far as rows with the same arms on offer say."""

    rows: int = 0  # rows whose arms on offer and arm shown occur with another probability too
    of: int = 0  # rows whose arms on offer and arm shown occur more than once; 0: the log cannot say it


def changes(rows: Any) -> PolicyChanges:
    """Of a `Logged`, by its first LOOKED_AT rows with exact propensities.

    If the same arms were on offer, and the same arm was shown with another probability, the policy learnt in between,
    or saw more than the log has (such as prices). Features that never repeat say nothing, nor does a log without any.
    """
    if not {"features", "arm_set"} & set(rows.frame.columns):
        return PolicyChanges()
    rows = rows.filter((np.arange(len(rows)) < LOOKED_AT) & (rows.kinds == "exact") & (rows.p > 0) & (rows.a >= 0))
    offers = [rows.frame[n].to_list() if n in rows.frame.columns else [None] * len(rows) for n in OFFERED]
    probabilities: dict[Any, list[float]] = {}
    for offer, a, p in zip(zip(*offers, strict=True), rows.a.tolist(), rows.p.tolist(), strict=True):
        if offer[:2] != (None, None):
            probabilities.setdefault((repr(offer), a), []).append(p)
    again = [ps for ps in probabilities.values() if len(ps) > 1]
    other = [ps for ps in again if max(ps) - min(ps) > ROUNDING * max(ps)]
    return PolicyChanges(sum(map(len, other)), sum(map(len, again)))


def together(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    """How many rows were left out of two parts of a log, by reason."""
    return dict(Counter(a) + Counter(b))


@dataclass(frozen=True)
class Report:
    """What was read, used and left out, and what was found. The reports of parts of a log add up."""

    read: int
    used: int
    left_out: dict[str, int] = field(default_factory=dict)  # reason -> rows
    filled: int = 0  # missing rewards that were replaced by a number
    findings: tuple[Finding, ...] = ()
    inverse: Inverse = Inverse()  # the mean of 1/p against the number of arms that could be chosen
    bets: EachArm = EachArm()  # the mean weight of each arm against 1

    @property
    def ok(self) -> bool:
        """Whether an estimate may use all rows, and no finding is against the propensities."""
        doubts = any(f.refused or f.kind in ("floor", "weights", "draws") for f in self.findings)
        return self.inverse.ok is not False and not self.bets.doubted and not doubts

    def __add__(self, other: "Report") -> "Report":
        left_out = together(self.left_out, other.left_out)
        findings = {(f.kind, f.text, f.refused): f for f in self.findings}
        for f in other.findings:
            key = (f.kind, f.text, f.refused)
            findings[key] = replace(f, rows=np.r_[findings[key].rows, f.rows]) if key in findings else f
        sums = self.filled + other.filled, tuple(findings.values()), self.inverse.merge(other.inverse)
        return Report(self.read + other.read, self.used + other.used, left_out, *sums, self.bets.merge(other.bets))

    def __str__(self) -> str:
        lines = [f"left out: {count} ({reason})" for reason, count in self.left_out.items()]
        lines += [f"{self.filled} missing rewards filled in"] * bool(self.filled)
        lines += [str(part) for part in (*self.findings, self.inverse, self.bets)]
        head = f"{self.read} rows read, {self.used} used, {self.read - self.used} left out"
        return "\n  ".join([head, *lines])


def check(rows: Any) -> Report:
    """All findings on a `Logged`, which is not changed."""
    findings = (*_findings(RULES, rows, refused=True), *_notes(rows))
    return Report(len(rows), len(rows), findings=findings, inverse=_inverse(rows), bets=each_arm(rows))


def usable(rows: Any, *, missing: str | float, invalid: str, duplicates: str) -> Any:
    """See `Logged.usable`."""
    for name, value in (("invalid", invalid), ("duplicates", duplicates)):
        if value not in ("error", "leave out"):
            raise ValueError(f"{name} must be 'error' or 'leave out', got {value!r}")
    if missing not in ("error", "leave out") and not (isinstance(missing, (int, float)) and math.isfinite(missing)):
        raise ValueError(f"missing must be 'error', 'leave out' or a finite number, got {missing!r}")
    rows = present(rows)
    numbers, left_out = rows.numbers, {}
    answers = {"duplicates": duplicates, "missing": missing, "invalid": invalid}
    keep, filled = np.ones(len(rows), dtype=bool), 0
    for finding in sorted(_findings(RULES, rows, refused=True), key=lambda f: f.kind == "missing"):
        name = {"duplicate": "duplicates", "missing": "missing"}.get(finding.kind, "invalid")
        hit = np.isin(numbers, finding.rows) & keep
        if answers[name] == "error":
            number = (" or ", errors.Option(name, means="NUMBER")) if name == "missing" else ()
            cure = ("mend the log, or ask for ", errors.Option(name, "leave out"), *number)
            raise errors.Refused(f"{finding}: ", *cure)
        if answers[name] != "leave out":  # the number that is filled in
            filled = int(hit.sum())
            continue
        keep &= ~hit
        if hit.any():
            left_out[finding.text] = int(hit.sum())
    rest = rows.filter(keep)
    if filled:
        reward = schema.polars().col("reward").fill_null(float(missing)).fill_nan(float(missing))
        rest = replace(rest, frame=rest.frame.with_columns(reward))
    before = rows.report or Report(len(rows), len(rows), bets=each_arm(rows))  # of an earlier step, such as a reader
    sums = len(rest), together(before.left_out, left_out), before.filled + filled
    return replace(rest, report=Report(before.read, *sums, _notes(rest), _inverse(rest), before.bets))


def present(rows: Any) -> Any:
    """The rows that can be judged: without those whose data was erased, and without fallbacks, which nothing has drawn.

    What an erased decision earned is not known, and 0 would be a claim.
    """
    for name, reason in (("erased", ERASED), ("fallen", FALLEN)):
        if (hit := getattr(rows, name)).any():
            report = rows.report or Report(len(rows), len(rows), bets=each_arm(rows))
            rows = without(replace(rows, report=report), ~hit, reason)
    return rows


def without(rows: Any, keep: np.ndarray, reason: str) -> Any:
    """The rows where `keep` (n,) is True. The report counts the other rows under the reason."""
    rest, gone = rows.filter(keep), int(np.sum(~keep))
    report = rest.report or Report(len(rows), len(rows))
    left_out = together(report.left_out, {reason: gone})
    return replace(rest, report=replace(report, used=report.used - gone, left_out=left_out))


def _findings(rules: Iterable[Callable[[Any], Iterable[Broken]]], rows: Any, *, refused: bool) -> list[Finding]:
    broken = (one for rule in rules for one in rule(rows))
    return [Finding(kind, text, rows.numbers[hit], refused) for kind, text, hit in broken if hit.any()]


def _notes(rows: Any) -> tuple[Finding, ...]:
    """The findings that are worth knowing. They keep no row out of an estimate."""
    return (*_findings((_erased, _floors, _weights, _thinned, _draws), rows, refused=False), *_number(rows))


def _kinds(rows: Any) -> Iterator[Broken]:
    kinds = rows.kinds
    cure = (
        "estimate them with dither.ope.propensities_from, and say that they are estimated (kind='estimated', on the "
        "command line --kind estimated), or log with monte_carlo= or a policy with exact ones"
    )
    yield "kind", f"propensities of kind 'none' cannot be used: {cure}", (kinds == "none") & ~rows.fallen
    yield "kind", f"propensity_kind must be one of {', '.join(schema.KINDS)}", ~np.isin(kinds, schema.KINDS)


def _propensities(rows: Any) -> Iterator[Broken]:
    p, some = rows.p, rows.kinds != "none"
    yield "propensity", "propensity is NaN or null", np.isnan(p) & some
    yield "propensity", "propensity is 0, of an arm that was shown", (p == 0) & some
    yield "propensity", "propensity is negative", (p < 0) & some
    yield "propensity", "propensity is above 1", (p > 1 + ROUNDING) & some
    yield "propensity", "propensity_se is negative", rows.se < 0


def _arms(rows: Any) -> Iterator[Broken]:
    a, K, absent = rows.a, rows.K, rows.frame["arm"].is_null().to_numpy()
    yield "arm", "no arm was on offer", K < 1
    yield "arm", "arm is missing", absent & (K >= 1)
    yield "arm", "arm is not among those on offer", ((a < 0) | (a >= K)) & (K >= 1) & ~absent


def _rewards(rows: Any) -> Iterator[Broken]:
    r = rows.r
    yield "reward", "reward is infinite", np.isinf(r)
    yield "missing", "no reward came", np.isnan(r) & ~rows.erased


def _row_weights(rows: Any) -> Iterator[Broken]:
    s = rows.weight
    if s is not None:
        text = f"weight is negative, not finite, or neither 0 nor between {LIGHTEST:g} and {HEAVIEST:g}"
        yield "weight", text, ~((s == 0) | ((s >= LIGHTEST) & (s <= HEAVIEST)))


def _duplicates(rows: Any) -> Iterator[Broken]:
    yield "duplicate", "id came before", came_before(rows)


def came_before(rows: Any) -> np.ndarray:
    """Whether the id of each row came before (n,). A log without ids has no such row."""
    if rows.repeats is not None:
        return rows.repeats
    if "id" not in rows.frame.columns:
        return np.zeros(len(rows), dtype=bool)
    ids = rows.frame["id"]
    return (~ids.is_first_distinct() & ids.is_not_null()).to_numpy()


def _erased(rows: Any) -> Iterator[Broken]:
    yield "erased", f"{ERASED}: it is left out of every estimate", rows.erased
    yield "fallback", f"{FALLEN}: it is left out of every estimate", rows.fallen


def _floors(rows: Any) -> Iterator[Broken]:
    floor, K, p = rows.floor, rows.K, rows.p
    with np.errstate(divide="ignore", invalid="ignore"):
        low = (p < floor / K * (1 - ROUNDING)) & (rows.kinds == "exact") & (p > 0)
    yield "floor", "floor is not in [0, 1]", (floor < 0) | (floor > 1)
    yield "floor", "propensity is below floor / arms on offer, which it cannot be", low


def _weights(rows: Any) -> Iterator[Broken]:
    """The weights of the logging policy against itself, π_a/p: each must be 1."""
    if not _has(rows, "probabilities"):
        return
    P, p, a = rows.P, rows.p, rows.a
    total = P.sum(axis=1)
    inside = (a >= 0) & (a < rows.K)
    shown = P[np.arange(len(rows)), np.where(inside, a, 0)]
    exact = inside & ~np.isnan(total) & (rows.kinds == "exact")
    off = abs(total - 1) > np.minimum(ROUNDING * np.maximum(rows.K, 10), MOST_OFF)
    yield "weights", "probabilities do not sum to 1", off
    yield "weights", "probabilities are negative", (P < 0).any(axis=1)
    missing = np.isnan(total) & rows.frame["probabilities"].is_not_null().to_numpy()
    yield "weights", "probabilities are missing for some arms on offer, or are no numbers", missing
    text = "propensity is not the logged probability of the shown arm: the policy's own weights are not 1"
    yield "weights", text, exact & (abs(shown - p) > ROUNDING * np.maximum(p, shown))


def _inverse(rows: Any) -> Inverse:
    if rows.weight is not None and np.any(rows.weight != rows.weight[0]):
        return Inverse()  # nobody knows by what rule the log was thinned: the mean of 1/p is another one then
    p, K = rows.p, rows.K.astype(np.float64)
    S, V, B = np.full((3, len(rows)), np.nan)
    floor, rare = np.clip(rows.floor, 0, 1), np.zeros(len(rows), dtype=bool)
    bounded = floor > 0
    B[bounded] = K[bounded] / floor[bounded]
    S[bounded], V[bounded] = K[bounded], (K * B - K**2)[bounded]
    if _has(rows, "probabilities"):
        P = rows.P
        full, support = ~np.isnan(P).any(axis=1), P >= LEAST
        inverse = np.divide(1.0, P, out=np.zeros_like(P), where=support)
        count = np.count_nonzero(support, axis=1)
        shown = np.take_along_axis(P, rows.a[:, None], axis=1)[:, 0]  # not p, which may be rounded to the other side
        rare[full] = shown[full] < LEAST
        S[full], B[full] = count[full], inverse.max(axis=1, initial=0.0)[full]
        V[full] = np.maximum(inverse.sum(axis=1) - count**2, 0.0)[full]
    use = (rows.kinds == "exact") & (p > 0) & (p <= 1 + ROUNDING) & ~np.isnan(S)
    if not use.any():
        return Inverse()
    inverse, support, variance = (float(np.sum(part[use])) for part in (~rare / np.where(use, p, 1.0), S, V))
    return Inverse(int(use.sum()), inverse, support, variance, float(B[use].max()))


def _draws(rows: Any) -> Iterator[Broken]:
    """Draws of chance that were used more than once. Where chance explains all repeats, no row is named."""
    z, n = rows.z, len(rows)
    laws = rows.frame["z_law"].to_list() if "z_law" in rows.frame.columns else [None] * n
    cure = "copies of a bandit that decide need streams of their own: load(path, seed=None)"
    for law, kind, text in (
        ("continuous", "draws", f"z came before, which has probability 0: {cure}"),
        (None, "law", f"z came before, and its law is not logged: if it is continuous, {cure}"),
    ):
        use = np.array([one == law for one in laws], dtype=bool)
        places = np.flatnonzero(use & ~np.isnan(z) & (z != 0))  # 0: the vector form has it where nothing was learnt
        _, first = np.unique(z[places], return_index=True)
        again = np.zeros(n, dtype=bool)
        again[np.delete(places, first)] = True
        if again.sum() > _by_chance(len(places)):
            yield kind, text, again
            return


def _by_chance(n: int) -> int:
    """The number of repeats among n draws that chance exceeds with probability at most DELTA."""
    expected, k = n * n / 2.0**54, 0
    while special.gammainc(k + 1, expected) > DELTA:  # P(more than k), a Poisson law
        k += 1
    return k


def _thinned(rows: Any) -> Iterator[Broken]:
    if rows.weight is not None:
        text = "rows stand for another number of decisions than 1 (column weight): estimates count each as many times"
        yield "thinned", text, rows.weight != 1


def _number(rows: Any) -> list[Finding]:
    """A finding where K is only the number of arms that were shown: an arm that was never shown does not count."""
    if rows.known_arms:
        return []
    text = f"number of arms not logged: at least {rows.K.max(initial=0)}"
    shown = rows.a[rows.a >= 0]
    least = int(shown.min(initial=rows.most or 0)) if rows.least is None else rows.least
    if rows.catalogue is None and shown.size and least > 0:
        text += f"; position 0 never occurs, the least is {least}: arms count from 0, so subtract 1 where yours do not"
    return [Finding("arms", text)]


def _has(rows: Any, name: str) -> bool:
    return name in rows.frame.columns and rows.frame[name].null_count() < len(rows) and rows.K.max(initial=0) > 0


RULES = (_kinds, _propensities, _arms, _rewards, _row_weights, _duplicates)  # rules for single rows; for `usable` too
