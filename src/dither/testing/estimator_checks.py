"""Checks of estimators for off-policy evaluation: sums add up, weights count rows, and nothing else is read."""

import dataclasses
import itertools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dither import ope
from dither.base import errors
from dither.ope.contributions import find
from dither.testing import chance
from dither.testing.checking import checker, close, farthest, require

ARMS, CONTEXTS = 4, 3
SAME = 1e-9  # relative: how nearly an estimate of the same rows must be the same


@dataclass(frozen=True)
class EstimatorCase:
    """An estimator, its setting, and logs whose truth is known."""

    estimator: ope.Estimator
    part: str
    setting: float | None = None
    rows: int = 400
    logs: int = 200
    unbiased: bool = False
    seed: int = 0
    expected: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        errors.at_least("rows", self.rows, 20)
        errors.at_least("logs", self.logs, 20)

    def arrays(self, number: int = 0) -> dict[str, np.ndarray]:
        """r, a, p, Q and M of one log: rewards 0 and 1, predictions that are near and wrong."""
        rng, n = np.random.default_rng([self.seed, number]), self.rows
        mu, behaviour, target = self._world()
        x = rng.integers(0, CONTEXTS, n)
        a = (rng.random((n, 1)) > np.cumsum(behaviour[x], axis=1)).sum(axis=1).clip(max=ARMS - 1)
        r = (rng.random(n) < mu[x, a]).astype(float)
        return {"r": r, "a": a, "p": behaviour[x, a], "Q": target[x], "M": 0.6 * mu[x] + 0.1}

    def truth(self) -> float:
        """The value of the new policy."""
        mu, _, target = self._world()
        return float(np.mean(np.sum(mu * target, axis=1)))

    def _world(self) -> tuple[np.ndarray, ...]:
        """Expected rewards, the logging policy and the new one, in each context: (contexts, K)."""
        rng = np.random.default_rng([self.seed, 99])
        return rng.uniform(0.1, 0.9, (CONTEXTS, ARMS)), *(rng.dirichlet(np.full(ARMS, 3.0), CONTEXTS) for _ in range(2))

    def terms(self, arrays: Mapping[str, Any], **options: Any) -> ope.Contributions:
        """What each row of a log adds."""
        M = arrays["M"] if self.estimator.predicts else None
        r, a, p, Q = (arrays[name] for name in "rapQ")
        return ope.contributions(self.estimator, r, a, p, Q, M, setting=self.setting, **options)

    def estimate(self, arrays: Mapping[str, Any], **options: Any) -> ope.Estimate:
        """The estimate of a log."""
        return ope.estimate(self.terms(arrays, **options), warn=False)


def finite(case: EstimatorCase) -> None:
    """A log with support gives a finite value, a standard error above 0, and one term for each row."""
    terms = case.terms(case.arrays())
    estimate = ope.estimate(terms, warn=False)
    require(
        np.isfinite(estimate.value) and 0 < estimate.se < np.inf,
        f"the estimate is {estimate.value:.4g} ± {estimate.se:.2g}",
        cure="Divide by sums that cannot be 0 where the log shows what the policy shows",
    )
    require(
        terms.influence().shape == (case.rows,),
        f"the terms have shape {terms.influence().shape}",
        cure=f"b, u and v are ({case.rows},), a number for each row",
    )


def row_order(case: EstimatorCase) -> None:
    """The order of the rows does not matter."""
    arrays = case.arrays()
    turned = np.random.default_rng(1).permutation(case.rows)
    _agree(case.estimate(arrays), case.estimate(_rows(arrays, turned)), "rows in another order",
           cure="Each row's term comes from that row and from sums over all rows")  # fmt: skip


def weights(case: EstimatorCase) -> None:
    """A row of weight k counts as k rows, a row of weight 0 as none, and equal weights change nothing."""
    arrays = case.arrays()
    times = np.random.default_rng(2).integers(0, 4, case.rows)
    counted, repeated = case.estimate(arrays, weight=times.astype(float)), case.estimate(_rows(arrays, _repeat(times)))
    require(
        close(counted.value, repeated.value, rtol=SAME),
        f"rows of weight k give {counted.value:.9g}, and each of them k times gives {repeated.value:.9g}",
        cure="Return the unweighted terms: weights are applied to them afterwards",
    )
    _agree(case.estimate(arrays, weight=np.full(case.rows, 7.0)), case.estimate(arrays), "equal weights",
           cure="Return the unweighted terms: weights are applied to them afterwards")  # fmt: skip


def clusters(case: EstimatorCase) -> None:
    """If every row comes twice and each pair is one cluster, the estimate and its standard error stay the same."""
    arrays = case.arrays()
    twice = np.repeat(np.arange(case.rows), 2)
    doubled, once = case.estimate(_rows(arrays, twice), cluster=twice), case.estimate(arrays)
    _agree(doubled, once, "every row twice, in clusters", cure="Give each row a term of its own: clusters sum them")


def reads(case: EstimatorCase) -> None:
    """An estimator that says that it reads "shown" uses nothing but w, m and m̄ of a row."""
    arrays = case.arrays()
    if case.estimator.reads != "shown":
        return
    rows = np.arange(case.rows)
    q, m = arrays["Q"][rows, arrays["a"]], arrays["M"][rows, arrays["a"]]
    rest = (np.sum(arrays["Q"] * arrays["M"], axis=1) - q * m) / (1 - q)
    brief = arrays | {"a": np.zeros(case.rows, dtype=int), "Q": np.stack([q, 1 - q], 1), "M": np.stack([m, rest], 1)}
    _agree(case.estimate(brief), case.estimate(arrays), "a log that holds w, m and m̄ alone",
           cure="Say reads='all arms' of the estimator: then it is given all of Q and M, or is refused")  # fmt: skip


def parts(case: EstimatorCase) -> None:
    """Sums of parts of a log, merged, give the estimate of the whole."""
    arrays = case.arrays()
    cuts = (0, case.rows // 5, case.rows // 2, case.rows)
    total = None
    for i, j in itertools.pairwise(cuts):
        one = ope.sums({"mine": case.terms(_rows(arrays, np.arange(i, j)))})
        total = one if total is None else ope.merge(total, one)
    assert total is not None
    _agree(ope.estimates(total, warn=False)["mine"], case.estimate(arrays), "sums of three parts",
           cure="A row's b, u and v must not depend on the other rows: quantiles and means of the log are no part "
           "of them")  # fmt: skip


def purity(case: EstimatorCase) -> None:
    """The arrays of the log are read and not written, and two calls give one answer."""
    arrays = case.arrays()
    for array in arrays.values():
        array.flags.writeable = False
    _agree(case.estimate(arrays), case.estimate(arrays), "two calls", cure="Draw nothing: an estimate is a formula",
           rtol=0.0)  # fmt: skip


def refused(case: EstimatorCase) -> None:
    """Rows that make no sense, and a setting out of its range, are refused with ValueError."""
    arrays = case.arrays()
    bad: list[tuple[str, dict[str, Any]]] = [
        ("r", {"r": np.where(np.arange(case.rows) == 3, np.nan, arrays["r"])}),
        ("p", {"p": np.where(np.arange(case.rows) == 3, 0.0, arrays["p"])}),
        ("Q", {"Q": arrays["Q"] * 2}),
        ("a", {"a": arrays["a"] + ARMS}),
    ]
    for name, changes in bad:
        _refuses(case, arrays | changes, f"{name} that makes no sense")
    if case.estimator.setting is not None:
        name, low, high = case.estimator.setting
        for value in (low - 1, float("nan"), high * 2):
            _refuses(dataclasses.replace(case, setting=value), arrays, f"{name}={value:g}")


def unbiased(case: EstimatorCase) -> None:
    """Over many logs the estimates average to the truth, where unbiased=True says so."""
    if not case.unbiased:
        return
    values, truth = np.array([case.estimate(case.arrays(i)).value for i in range(case.logs)]), case.truth()
    se = values.std(ddof=1) / np.sqrt(case.logs)
    require(
        abs(values.mean() - truth) <= chance.errors_allowed(1) * se,
        f"the estimates of {case.logs} logs average {values.mean():.5g} ± {se:.2g}, and the truth is {truth:.5g}",
        cure="Weight each reward by Q/p of the arm shown; or leave unbiased=True out, if a bias is meant",
    )


@checker(finite, row_order, weights, clusters, reads, parts, purity, refused, unbiased)
def check_estimator(
    estimator: str | ope.Estimator | Callable[..., ope.Contributions],
    *,
    setting: float | None = None,
    unbiased: bool = False,
    rows: int = 400,
    logs: int = 200,
    seed: int = 0,
    expected_failed_checks: Mapping[str, str] | None = None,
) -> EstimatorCase:
    """Check an estimator of `dither.ope` on logs whose truth is known.

    estimator : a name in `ope.ESTIMATORS`, an `ope.Estimator`, or its function (log, setting) -> contributions
    setting : of an estimator that has one (clip, tau, lam)
    unbiased : also check that the estimates of many logs average to the truth
    rows, logs : decisions in a log, and logs for `unbiased`
    seed : of the logs: a check fails always or never
    expected_failed_checks : name -> why the estimator cannot pass; these must fail

    Raises CheckFailed (an AssertionError) that names each rule that is broken, with the numbers and what to do;
    LookupError for a name of no check or estimator. `check_estimator.checks(...)`, with the same arguments, lists them
    one by one.
    """
    rule = find(estimator)
    if rule.reads == "past":
        raise ValueError(
            "check_estimator is for estimators whose rows stand for themselves: what one that reads the past makes of "
            "a row depends on the others, so its parts do not add up"
        )
    name = estimator if isinstance(estimator, str) else getattr(rule.rows, "__name__", "the estimator")
    return EstimatorCase(rule, name, setting, rows, logs, unbiased, seed, dict(expected_failed_checks or {}))


def _rows(arrays: Mapping[str, np.ndarray], which: np.ndarray) -> dict[str, np.ndarray]:
    return {name: array[which] for name, array in arrays.items()}


def _repeat(times: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(len(times)), times)


def _agree(estimate: ope.Estimate, other: ope.Estimate, what: str, *, cure: str, rtol: float = SAME) -> None:
    """Value and standard error of two estimates are the same."""
    for name in ("value", "se"):
        x, y = getattr(estimate, name), getattr(other, name)
        require(close(x, y, rtol=rtol), f"{what}: {name} is {farthest(x, y)}", cure=cure)


def _refuses(case: EstimatorCase, arrays: Mapping[str, Any], what: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case.terms(arrays)
    except ValueError:
        return
    require(False, f"{what} is taken", cure="Start from the rows that `dither.ope.contributions` has checked")
