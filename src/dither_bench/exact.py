"""The study behind `dither exact`: how much exact propensities improve off-policy estimates.

The question is how large the error of such an estimate is from a log of FP, and from a log of Thompson sampling. The
policies act on one frozen model in one synthetic world (`dither.ope.synthetic`). The world has finitely many contexts,
so that every value is exact. Other policies are judged from the logs by IPS and DR. The logs differ in the propensities
p̂ of the arms shown:

    exact         p                        for FP, the Gaussian mass between two corners
    smooth        (1 + k)/(1 + n)          k of n fresh decisions agree with the arm shown, which counts as one
                                           more draw; this is what a `Bandit` logs
    left out      k/n                      rows with k = 0 are left out
    guarded       max(k/n, 1e-6)
    floor known   (1 - ε) j/n + ε/K        j of n draws without the uniform coin agree; never 0 with a floor ε > 0

Given the arm shown, k is Bin(n, p), and j is Bin(n, the part of p without the coin); both are independent over the
rows. So the expectations of 1/p̂ and 1/p̂² are finite sums, and bias and error of the estimates follow from them without
chance (`expected`). The simulation must agree with them. The smooth rule has E[1/p̂ | a] = (1 - (1-p)^{n+1})/p, hence

    E[IPS] = V - mean over contexts of Σ_a Q_a μ_a (1 - p_a)^{n+1}

The probabilities of Thompson sampling have no closed form. Here it is the policy whose probabilities are the
frequencies of 200,000 draws a context. Both the arms and k are drawn from these frequencies, so the simulation agrees
with itself.

`exact_report.costs` measures what a propensity costs. FP needs the widths, O(K d²). Monte Carlo needs n draws of θ̃ and
n vectors of scores, O(n (d² + K d)).
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, stats

import dither
from dither import models, policies
from dither.base import errors, streams
from dither.ope import synthetic

DRAWS = (1, 10, 30, 100, 300, 1000)  # n
RULES = ("smooth", "left out", "guarded")
FLOORED = ("floor known",)  # the rules that use the floor, where there is one
ESTIMATORS = ("IPS", "DR")
LOGGERS = ("FP", "FP matched", "TS")
GUARD = 1e-6  # the least p̂ of the rule "guarded"
WARM = 40  # rows of a uniform log that the frozen model has seen
REFERENCE = 200_000  # draws a context for the probabilities of Thompson sampling
NORMAL = 1.959963984540054  # half the width of a 95 % normal interval, in standard errors


@dataclass(frozen=True)
class JudgedPolicy:
    """A question that is put to the logs: what is another policy worth?"""

    name: str
    says: str  # in words
    floor: float = 0.0  # ε of the logging policies

    def target(self, here: synthetic.World) -> np.ndarray:
        """The probabilities of the policy to be judged, (contexts, K)."""
        X, _ = _finite(here)
        if self.name == "greedy":
            return bandit(here, policies.Greedy()).propensities(X)
        if self.name == "bolder":
            return bandit(here, policies.FeaturePerturbation(c=2.0)).propensities(X)
        other = here.log(synthetic.uniform, 10 * WARM, run=1_000_001)
        return synthetic.ScoreSoftmax(np.linalg.lstsq(other.x, other.r, rcond=None)[0], 0.3).probabilities(X)


CASES = (
    JudgedPolicy("greedy", "no more exploration: the greedy policy of the same model"),
    JudgedPolicy("bolder", "FP with twice the c, which shows arms that FP's own log hardly has"),
    JudgedPolicy("other", "a softmax policy from other data; the loggers have a floor of 0.1", 0.1),
)


class ContextTables(NamedTuple):
    """Probabilities and rewards in each context, (contexts, K)."""

    bare: np.ndarray  # probabilities of the logging policy, without its floor
    p: np.ndarray  # the same with its floor
    Q: np.ndarray  # probabilities of the policy that is judged
    M: np.ndarray  # reward predictions
    mu: np.ndarray  # expected rewards


class Line(NamedTuple):
    """The errors of one estimator on the logs of one policy, with one kind of propensities."""

    case: str
    logger: str
    rule: str
    draws: int  # n; 0 for exact propensities
    estimator: str
    bias: float
    bias_se: float
    rmse: float
    rmse_se: float
    expected_bias: float  # from the sums, without chance; NaN for the rule "left out"
    expected_rmse: float
    coverage: float  # of the 95 % normal interval that takes p̂ for p
    left_out: float  # share of the rows that are left out
    truth: float  # value of the policy that is judged
    logger_value: float  # value of the logging policy


def world(seed: int = 0) -> synthetic.World:
    """The world of the study: ten arms, a hundred contexts. Rewards are curved, so that DR's linear model is wrong."""
    return synthetic.World(dim=5, arms=10, bend=0.5, noise=0.5, contexts=100, seed=seed)


def bandit(here: synthetic.World, policy: Any) -> dither.Bandit:
    """The policy on the frozen model, which has learnt a short uniform log that is the same for all policies."""
    learner = dither.Bandit(models.Ridge(1.0), policy, dim=here.dim, seed=here.seed)
    warm = here.log(synthetic.uniform, WARM, run=1_000_000)
    learner.update(warm.x, warm.r)
    return learner


def frequencies(ts: dither.Bandit, X: np.ndarray, *, draws: int) -> np.ndarray:
    """How often Thompson sampling shows each arm: X (S, K, d) -> (S, K). All contexts share the draws of θ̃."""
    rng = streams.stream(ts.seed, 0, "monte_carlo", 1)
    hits = np.zeros(X.shape[:-1])
    for start in range(0, draws, 2000):
        eta = rng.standard_normal((min(2000, draws - start), X.shape[-1]))
        tilde = ts.theta + ts.policy.c * ts.model.sample(ts.state, eta)
        arm = np.argmax((tilde @ X.reshape(-1, X.shape[-1]).T).reshape(len(eta), *X.shape[:-1]), axis=-1)
        for k in range(X.shape[1]):
            hits[:, k] += np.count_nonzero(arm == k, axis=0)
    return hits / draws


def loggers(here: synthetic.World, *, draws: int = REFERENCE) -> tuple[dict[str, np.ndarray], float]:
    """The probabilities (contexts, K) of `LOGGERS`, and the c of "FP matched".

    FP and TS have c = 1. "FP matched" has the c with which FP earns as much as TS.
    draws : how many draws a context takes for TS
    """
    X, mu = _finite(here)

    def fp(c: float) -> np.ndarray:
        return bandit(here, policies.FeaturePerturbation(c=c)).propensities(X)

    ts = frequencies(bandit(here, policies.ThompsonSampling()), X, draws=draws)
    earned = float(np.mean(np.sum(ts * mu, axis=1)))
    c = math.exp(optimize.brentq(lambda s: np.mean(np.sum(fp(math.exp(s)) * mu, axis=1)) - earned, 0, 5, xtol=1e-3))
    return dict(zip(LOGGERS, (fp(1.0), fp(c), ts), strict=True)), c


def tables(here: synthetic.World, case: JudgedPolicy, probabilities: dict[str, np.ndarray]) -> dict[str, ContextTables]:
    """The tables from which each logger makes its logs, and from which they are judged."""
    X, mu = _finite(here)
    M, Q = bandit(here, policies.Greedy()).predict(X), case.target(here)
    return {
        name: ContextTables(P, (1 - case.floor) * P + case.floor / here.arms, Q, M, mu)
        for name, P in probabilities.items()
    }


def expected(
    of: ContextTables, *, rule: str, n: int, floor: float, rows: int, noise: float
) -> dict[str, tuple[float, float]]:
    """Bias and root mean squared error of each estimator, as sums over the law of k, without chance."""
    p, Q = of.p, of.Q
    if rule == "left out":
        return dict.fromkeys(ESTIMATORS, (math.nan, math.nan))
    if rule == "exact":
        first, second = np.where(p > 0, Q, 0.0), np.divide(Q, p, out=np.zeros(p.shape), where=p > 0) * Q
    else:
        k = np.arange(n + 1)
        law = stats.binom.pmf(k, n, (of.bare if rule in FLOORED else p)[..., None])  # (S, K, n+1)
        inverse = 1 / estimate(k, rule=rule, n=n, floor=floor, arms=p.shape[1])
        first, second = p * Q * (law @ inverse), p * Q**2 * (law @ inverse**2)
    errors_of = {}
    truth = float(np.mean(np.sum(Q * of.mu, axis=1)))
    for name, M in zip(ESTIMATORS, (np.zeros(p.shape), of.M), strict=True):
        base, gap = np.sum(Q * M, axis=1), of.mu - M
        one, two = np.sum(first * gap, axis=1), np.sum(second * (gap**2 + noise**2), axis=1)
        mean = float(np.mean(base + one))
        variance = float(np.mean(base**2 + 2 * base * one + two)) - mean**2
        errors_of[name] = (mean - truth, math.sqrt((mean - truth) ** 2 + variance / rows))
    return errors_of


def estimate(k: np.ndarray, *, rule: str, n: int, floor: float, arms: int) -> np.ndarray:
    """p̂ of the rule, from the number k of hits among n draws; 0 for a row that is left out."""
    if rule == "smooth":
        return (1 + k) / (1 + n)
    if rule == "floor known":
        return (1 - floor) * k / n + floor / arms
    return np.maximum(k / n, GUARD) if rule == "guarded" else k / n


class Logs(NamedTuple):
    """R logs of one policy with n rows each: (R, n)."""

    context: np.ndarray  # int
    a: np.ndarray  # int
    r: np.ndarray


def logs(here: synthetic.World, of: ContextTables, *, count: int, rows: int) -> Logs:
    """The logs of one policy. Every policy meets the same contexts and the same reward noise."""
    each = [here.log(of.p, rows, run=run) for run in range(count)]
    return Logs(*(np.stack([getattr(one, name) for one in each]) for name in Logs._fields))


def shown(of: ContextTables, sample: Logs, *, rule: str, n: int, floor: float, rng: np.random.Generator) -> np.ndarray:
    """p̂ of the arms shown, (R, n); 0 in rows that are left out."""
    if rule == "exact":
        return of.p[sample.context, sample.a]
    law = of.bare if rule in FLOORED else of.p
    return estimate(rng.binomial(n, law[sample.context, sample.a]), rule=rule, n=n, floor=floor, arms=of.p.shape[1])


def judge(of: ContextTables, sample: Logs, p: np.ndarray, *, estimator: str) -> tuple[np.ndarray, np.ndarray]:
    """The estimate from each log and its standard error, (R,) each, over the rows with p > 0."""
    keep = p > 0
    w = np.divide(of.Q[sample.context, sample.a], p, out=np.zeros(p.shape), where=keep)
    if estimator == "IPS":
        phi = w * sample.r
    else:
        phi = np.sum(of.Q * of.M, axis=1)[sample.context] + w * (sample.r - of.M[sample.context, sample.a])
    count = np.sum(keep, axis=1)
    value = np.sum(phi, axis=1, where=keep) / count
    square = np.sum((phi - value[:, None]) ** 2, axis=1, where=keep)
    return value, np.sqrt(square / (count - 1) / count)


def lines(
    case: JudgedPolicy,
    probabilities: dict[str, np.ndarray],
    *,
    here: synthetic.World,
    count: int = 300,
    rows: int = 1000,
    draws: tuple[int, ...] = DRAWS,
) -> list[Line]:
    """The errors for every logger, rule, n and estimator on `count` logs of `rows` decisions.

    probabilities : from `loggers`
    """
    errors.at_least("logs", count, 2)
    errors.at_least("rows", rows, 2)
    rules = RULES if not case.floor else (*RULES, *FLOORED)
    kinds = [("exact", 0), *((rule, n) for rule in rules for n in draws)]
    table = []
    for logger, of in tables(here, case, probabilities).items():
        sample = logs(here, of, count=count, rows=rows)
        truth, earned = here.value(of.Q).value, here.value(of.p).value
        for rule, n in kinds:
            rng = streams.stream(here.seed, n, "monte_carlo", 2)
            p = shown(of, sample, rule=rule, n=n, floor=case.floor, rng=rng)
            sums = expected(of, rule=rule, n=n, floor=case.floor, rows=rows, noise=here.noise)
            for estimator in ESTIMATORS:
                value, se = judge(of, sample, p, estimator=estimator)
                error = value - truth
                rmse = math.sqrt(np.mean(error**2))
                table.append(
                    Line(
                        *(case.name, logger, rule, n, estimator),
                        *(float(np.mean(error)), float(np.std(error, ddof=1)) / math.sqrt(count)),
                        *(rmse, float(np.std(error**2, ddof=1)) / math.sqrt(count) / (2 * rmse)),
                        *sums[estimator],
                        coverage=float(np.mean(np.abs(error) <= NORMAL * se)),
                        left_out=float(np.mean(p == 0)),
                        truth=truth,
                        logger_value=earned,
                    )
                )
    return table


def _finite(here: synthetic.World) -> tuple[np.ndarray, np.ndarray]:
    """The contexts (S, K, d) and the expected rewards (S, K) of a world with finitely many contexts."""
    if here.instance.X is None or here.instance.mu is None:
        raise ValueError("the experiment needs a world with finitely many contexts: pass contexts=")
    return here.instance.X, here.instance.mu
