"""Chooses the exploration scale c of a bandit from a log."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dither.bandit.bandit import Bandit
from dither.base import errors
from dither.models import Ridge
from dither.ope.estimators import contributions
from dither.ope.in_memory import compare, estimate
from dither.ope.result import Difference, Estimate
from dither.ope.rows import row_weights, with_arms
from dither.policies import FeaturePerturbation

CANDIDATES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of c
DOUBT, GAP = 1e-3, 0.05  # the log does not support c if the mean weight is below 1 - GAP with a P-value below DOUBT
LOSS = 0.05  # of the size of the highest estimate: what one gives up for exploring, where nothing is said


def effective(s: Any) -> np.ndarray:
    """Weights of rows s (n,), scaled so that their sum is (Σs)²/Σs²: so many equal weights would say as much (Kish).

    Then a model that counts observations is as sure as these rows allow, and not as sure as all the traffic would make
    it. A factor common to all s changes nothing. Raises ValueError as the estimators do.
    """
    s = np.asarray(row_weights(s, len(np.asarray(s))))
    s = s / np.max(s)
    return s * (np.sum(s) / np.sum(s * s))


class Ranking(NamedTuple):
    """Several settings, each by its place, of which each has an estimate on the same rows."""

    best: int  # the highest estimate of those that the log supports
    gaps: tuple[Difference, ...]  # of each to the best; the intervals hold for all pairs at once (Bonferroni)
    loss: float  # reward of a decision that one gives up for exploring
    allowed: tuple[int, ...]  # those that the log supports; all of them where it supports none
    tied: tuple[int, ...]  # of these the best, and those that the log cannot tell apart from it
    affordable: tuple[int, ...]  # and those that for sure lose at most `loss` against the best

    @property
    def apart(self) -> bool:
        """Whether a setting can be told apart from the best, or the best alone is supported."""
        return len(self.tied) < len(self.allowed) or len(self.allowed) == 1

    @property
    def widest(self) -> float:
        """The width of the widest interval of a difference."""
        return max(one.interval[1] - one.interval[0] for one in self.gaps)


def ranked(
    estimates: Sequence[Estimate],
    supported: Sequence[bool],
    *,
    level: float,
    loss: float | None,
    gap: Callable[..., Difference] = compare,
) -> Ranking:
    """The ranking. loss : None: a share of the highest estimate; gap : as `in_memory.compare`."""
    count = len(estimates)
    allowed = tuple(i for i in range(count) if supported[i]) or tuple(range(count))
    best = max(allowed, key=lambda i: estimates[i].value)
    each = 1 - (1 - level) / max(count * (count - 1) / 2, 1)
    gaps = tuple(gap(one, estimates[best], level=each) for one in estimates)
    loss = LOSS * abs(estimates[best].value) if loss is None else float(loss)
    tied, affordable = (tuple(i for i in allowed if gaps[i].interval[e] >= least) for e, least in ((1, 0), (0, -loss)))
    return Ranking(best, gaps, loss, allowed, tied, affordable)


class Candidate(NamedTuple):
    """One c, judged on the second part of the log."""

    c: float
    value: float  # estimated reward of a decision
    se: float
    low: float  # normal interval of the value
    high: float
    ess: float  # effective sample size, (Σw)²/Σw²
    weight_mean: float  # about 1 where the log supports the policy
    supported: bool  # whether the log supports the policy
    gap: float  # value less that of `best`, paired
    gap_low: float  # its interval, simultaneous over all pairs (Bonferroni)
    gap_high: float


@dataclass(frozen=True)
class ChosenC:
    """What `choose_c` found."""

    table: tuple[Candidate, ...]
    best: float  # the c with the highest estimate, among those that the log supports
    tied: tuple[float, ...]  # `best` and the supported c that the log cannot tell apart from it
    c: float  # the largest c for which the log excludes a loss above `loss`
    loss: float  # reward of a decision
    rows: tuple[int, int]  # how many rows trained the model, and how many judged
    says: str


def choose_c(
    r: Any,
    a: Any,
    p: Any,
    X: Any,
    *,
    cs: Sequence[float] = CANDIDATES,
    model: Any = None,
    policy: Any = None,
    estimator: str = "dr",
    floor: float = 0.0,
    share: float = 0.5,
    loss: float | None = None,
    level: float = 0.95,
    mask: Any = None,
    weight: Any = None,
) -> ChosenC:
    """The exploration scale c of feature perturbation, from a log.

    The first `share` of the rows trains the model. The other rows judge each c: FP, frozen after the first rows, has
    choice probabilities on their arm sets, and DR or SNIPS says what these would have earned. DR takes its reward
    predictions from the same model, which has not seen these rows. Rows must stand in the order of time.

    Parameters
    ----------
    r, a, p, X, mask, weight : as for `fit`; the model learns each row `effective(weight)` times
    cs : candidates, at least two
    model : from `dither.models`; None: Ridge()
    policy : a `FeaturePerturbation`, whose other settings are kept, or another policy with a field c and exact
        propensities; None: FeaturePerturbation()
    estimator : "dr" or "snips"
    floor : the floor of the bandit
    share : share of the rows for training
    loss : the reward of a decision that one gives up for exploring; None: 5 % of the size of the highest estimate
    level : level of the intervals; the intervals of the gaps hold for all pairs at once (Bonferroni)

    The log cannot show what exploring now is worth in later rounds. The estimate is the reward of one decision of a
    policy that learns nothing more. So a small c looks better than it is, most of all where the model knows little.
    This is why `c` is the largest candidate for which the paired interval excludes a loss above `loss` against the
    best. A log that says little then does not recommend much exploration.
    """
    rows = with_arms(r, a, p, X, mask, weight).standing()
    model = Ridge() if model is None else model
    policy = FeaturePerturbation() if policy is None else policy
    errors.among("estimator", estimator, ("dr", "snips"))
    errors.within("share", share, 0.01, 0.99)
    errors.within("level", level, 0.5, 0.9999)
    if loss is not None:
        errors.within("loss", loss, 0, 1e100)
    cs = tuple(sorted({float(c) for c in cs}))
    if len(cs) < 2:
        raise ValueError(f"cs must hold at least two different candidates, got {list(cs)}")
    n = len(rows.r)
    cut = int(share * n)
    if min(cut, n - cut) < 2:
        raise ValueError(f"a log of {n} rows cannot be split at share={share:g}: both parts need two rows")
    train, test = rows.part(slice(cut)), rows.part(slice(cut, None))
    estimates = []
    for c in cs:
        bandit = Bandit(model, replace(policy, c=c), dim=rows.X.shape[-1], seed=0, floor=floor)
        bandit.update(train.x, train.r, weight=None if train.s is None else effective(train.s))
        Q, _, kind = bandit.propensities(test.X, mask=test.mask, detail=True)
        if kind != "exact":
            raise ValueError(f"policy must have exact propensities, as FeaturePerturbation has; got {policy!r}")
        M = bandit.predict(test.X) if estimator == "dr" else None
        terms = contributions(estimator, test.r, test.a, test.p, Q, M, weight=test.s)
        estimates.append(estimate(terms, level=level, warn=False))
    supported = [one.weight_mean >= 1 - GAP or one.support_test >= DOUBT for one in estimates]
    ranking = ranked(estimates, supported, level=level, loss=loss)
    table = tuple(
        Candidate(c, e.value, e.se, *e.interval, e.ess, e.weight_mean, fine, gap.value, *gap.interval)
        for c, e, fine, gap in zip(cs, estimates, supported, ranking.gaps, strict=True)
    )
    return _chosen(table, ranking, estimator, (cut, n - cut))


def _chosen(table: tuple[Candidate, ...], ranking: Ranking, estimator: str, rows: tuple[int, int]) -> ChosenC:
    """The choice, in sentences."""
    tied = tuple(table[i].c for i in ranking.tied)
    c = max(table[i].c for i in ranking.affordable)
    says = f"c = {table[ranking.best].c:g} has the highest {estimator.upper()} estimate on {rows[1]:,} rows"
    if len(tied) > 1:
        says += f"; the log cannot tell c = {_listed(tied)} apart (paired intervals hold 0)"
    worse = [table[i].c for i in ranking.allowed if i not in ranking.tied]
    if worse:
        says += f"; worse, beyond the error of the paired comparison: c = {_listed(worse)}"
    thin = [one.c for one in table if not one.supported]
    if thin and len(thin) < len(table):
        says += f"; not judged, as the log has too little of what it would show: c = {_listed(thin)}"
    elif thin:
        says += "; but the log has too little of what any candidate would show: log with a floor"
    says += f". The largest that for sure costs at most {ranking.loss:.2g} a decision: c = {c:g}"
    says += ". What exploring teaches for later rounds is not in these numbers."
    return ChosenC(table, table[ranking.best].c, tied, c, ranking.loss, rows, says)


def _listed(cs: Sequence[float]) -> str:
    return ", ".join(f"{c:g}" for c in cs)
