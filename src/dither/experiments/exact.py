"""What exact propensities buy: the error of off-policy estimates from FP's logs and from Thompson sampling's.

The policies act on one frozen model in one synthetic world (`dither.ope.synthetic`, finitely many contexts, so that
every value is exact), and other policies are judged from their logs by IPS and DR. Propensities of the arms shown:

    exact         p                        FP's Gaussian mass between corners
    smooth        (1 + k)/(1 + n)          k of n fresh decisions agree with the arm shown, which counts as one more:
                                           what a `Bandit` logs
    left out      k/n; rows with k = 0 are left out
    guarded       max(k/n, 1e-6)
    floor known   (1 - ε) j/n + ε/K        j of n draws without the uniform coin; never 0 where there is a floor ε

Given the arm shown, k is Bin(n, p) and j Bin(n, own part of p), independent over the rows. So E of 1/p̂ and 1/p̂² are
finite sums, and with them bias and error of the estimates (`expected`; the simulation must agree). The smooth rule has
E[1/p̂ | a] = (1 - (1-p)^{n+1})/p, hence

    E[IPS] = V - mean over contexts of Σ_a Q_a μ_a (1 - p_a)^{n+1}

Thompson sampling has no closed form: here it is the policy with the frequencies of 200,000 draws a context for its
probabilities; arms and k are both drawn from these, so that the simulation is consistent with itself.

What a propensity costs is measured apart (`exact_report.costs`): FP needs the widths, O(K d²), Monte Carlo n draws of
θ̃ and n score vectors, O(n (d² + K d)).
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, stats

import dither
from dither import errors, models, policies, streams
from dither.ope import synthetic

DRAWS = (1, 10, 30, 100, 300, 1000)  # n
RULES = ("smooth", "left out", "guarded")
FLOORED = ("floor known",)  # rules that say more than "smooth" where there is a floor
ESTIMATORS = ("IPS", "DR")
LOGGERS = ("FP", "FP matched", "TS")
GUARD = 1e-6
WARM = 40  # rows of a uniform log that the frozen model has seen
REFERENCE = 200_000  # draws a context for the probabilities of Thompson sampling
NORMAL = 1.959963984540054  # of 95 % intervals


@dataclass(frozen=True)
class Case:
    """A question to a log."""

    name: str
    says: str
    floor: float = 0.0  # ε of the logging policies

    def target(self, here: synthetic.World) -> np.ndarray:
        """The policy to be judged, as a table (contexts, K)."""
        X, _ = _finite(here)
        if self.name == "greedy":
            return bandit(here, policies.Greedy()).propensities(X)
        if self.name == "bolder":
            return bandit(here, policies.FeaturePerturbation(c=2.0)).propensities(X)
        other = here.log(synthetic.uniform, 10 * WARM, run=1_000_001)
        return synthetic.Softmax(np.linalg.lstsq(other.x, other.r, rcond=None)[0], 0.3).probabilities(X)


CASES = (
    Case("greedy", "no more exploration: the greedy policy of the same model"),
    Case("bolder", "FP with twice the c, which shows arms that FP's own log hardly has"),
    Case("other", "a softmax policy from other data; the loggers have a floor of 0.1", 0.1),
)


class Tables(NamedTuple):
    """Probabilities and rewards in each context, (contexts, K)."""

    own: np.ndarray  # of the logging policy, without its floor
    p: np.ndarray  # with it
    Q: np.ndarray  # of the policy that is judged
    M: np.ndarray  # reward predictions
    mu: np.ndarray  # expected rewards


class Line(NamedTuple):
    """One estimator on the logs of one policy with one kind of propensities."""

    case: str
    logger: str
    rule: str
    draws: int  # n; 0 where exact
    estimator: str
    bias: float
    bias_se: float
    rmse: float
    rmse_se: float
    expected_bias: float  # without chance; NaN for rows left out
    expected_rmse: float
    coverage: float  # of the 95 % normal interval that takes p̂ for p
    left_out: float  # share of the rows
    truth: float
    logger_value: float  # what the logging policy earned a decision


def world(seed: int = 0) -> synthetic.World:
    """Ten arms, a hundred contexts, and curved rewards, so that the linear reward model of DR is wrong."""
    return synthetic.World(dim=5, arms=10, bend=0.5, noise=0.5, contexts=100, seed=seed)


def bandit(here: synthetic.World, policy: Any) -> dither.Bandit:
    """The policy on the frozen model, taught by a short uniform log: the same for all."""
    made = dither.Bandit(models.Ridge(1.0), policy, dim=here.dim, seed=here.seed)
    warm = here.log(synthetic.uniform, WARM, run=1_000_000)
    made.update(warm.x, warm.r)
    return made


def frequencies(ts: dither.Bandit, X: np.ndarray, *, draws: int) -> np.ndarray:
    """How often Thompson sampling shows each arm: the same draws of θ̃ in every context, X (S, K, d) -> (S, K)."""
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
    """The tables (contexts, K) of FP and TS with c = 1, and of FP with the c at which it earns what TS does; that c.

    draws : a context, for TS
    """
    X, mu = _finite(here)

    def fp(c: float) -> np.ndarray:
        return bandit(here, policies.FeaturePerturbation(c=c)).propensities(X)

    ts = frequencies(bandit(here, policies.ThompsonSampling()), X, draws=draws)
    earned = float(np.mean(np.sum(ts * mu, axis=1)))
    c = math.exp(optimize.brentq(lambda s: np.mean(np.sum(fp(math.exp(s)) * mu, axis=1)) - earned, 0, 5, xtol=1e-3))
    return dict(zip(LOGGERS, (fp(1.0), fp(c), ts), strict=True)), c


def tables(here: synthetic.World, case: Case, own: dict[str, np.ndarray]) -> dict[str, Tables]:
    """All that the logs of each logger and their estimates depend on."""
    X, mu = _finite(here)
    M, Q = bandit(here, policies.Greedy()).predict(X), case.target(here)
    return {name: Tables(P, (1 - case.floor) * P + case.floor / here.arms, Q, M, mu) for name, P in own.items()}


def expected(
    given: Tables, *, rule: str, n: int, floor: float, rows: int, noise: float
) -> dict[str, tuple[float, float]]:
    """Bias and root mean squared error of each estimator, from the law of k: sums, no chance."""
    p, Q = given.p, given.Q
    if rule == "left out":
        return dict.fromkeys(ESTIMATORS, (math.nan, math.nan))
    if rule == "exact":
        first, second = np.where(p > 0, Q, 0.0), np.divide(Q, p, out=np.zeros(p.shape), where=p > 0) * Q
    else:
        k = np.arange(n + 1)
        law = stats.binom.pmf(k, n, (given.own if rule in FLOORED else p)[..., None])  # (S, K, n+1)
        inverse = 1 / estimate(k, rule=rule, n=n, floor=floor, arms=p.shape[1])
        first, second = p * Q * (law @ inverse), p * Q**2 * (law @ inverse**2)
    found = {}
    truth = float(np.mean(np.sum(Q * given.mu, axis=1)))
    for name, M in zip(ESTIMATORS, (np.zeros(p.shape), given.M), strict=True):
        base, gap = np.sum(Q * M, axis=1), given.mu - M
        one, two = np.sum(first * gap, axis=1), np.sum(second * (gap**2 + noise**2), axis=1)
        mean = float(np.mean(base + one))
        variance = float(np.mean(base**2 + 2 * base * one + two)) - mean**2
        found[name] = (mean - truth, math.sqrt((mean - truth) ** 2 + variance / rows))
    return found


def estimate(k: np.ndarray, *, rule: str, n: int, floor: float, arms: int) -> np.ndarray:
    """p̂ of the rule from the number k of hits among n draws; 0 where nothing is known."""
    if rule == "smooth":
        return (1 + k) / (1 + n)
    if rule == "floor known":
        return (1 - floor) * k / n + floor / arms
    return np.maximum(k / n, GUARD) if rule == "guarded" else k / n


class Logs(NamedTuple):
    """Many logs of one policy: R logs of n rows, (R, n) each."""

    context: np.ndarray  # int
    a: np.ndarray  # int
    r: np.ndarray


def logs(here: synthetic.World, given: Tables, *, count: int, rows: int) -> Logs:
    """The same contexts and reward noise for every policy."""
    each = [here.log(given.p, rows, run=run) for run in range(count)]
    return Logs(*(np.stack([getattr(one, name) for one in each]) for name in Logs._fields))


def shown(given: Tables, log: Logs, *, rule: str, n: int, floor: float, rng: np.random.Generator) -> np.ndarray:
    """p̂ of the arms shown, (R, n); 0 in rows that must be left out."""
    if rule == "exact":
        return given.p[log.context, log.a]
    law = given.own if rule in FLOORED else given.p
    return estimate(rng.binomial(n, law[log.context, log.a]), rule=rule, n=n, floor=floor, arms=given.p.shape[1])


def judge(given: Tables, log: Logs, p: np.ndarray, *, estimator: str) -> tuple[np.ndarray, np.ndarray]:
    """The estimates of the logs and their standard errors, (R,) each, from the rows with p > 0."""
    keep = p > 0
    w = np.divide(given.Q[log.context, log.a], p, out=np.zeros(p.shape), where=keep)
    if estimator == "IPS":
        phi = w * log.r
    else:
        phi = np.sum(given.Q * given.M, axis=1)[log.context] + w * (log.r - given.M[log.context, log.a])
    count = np.sum(keep, axis=1)
    value = np.sum(phi, axis=1, where=keep) / count
    square = np.sum((phi - value[:, None]) ** 2, axis=1, where=keep)
    return value, np.sqrt(square / (count - 1) / count)


def lines(
    case: Case,
    own: dict[str, np.ndarray],
    *,
    here: synthetic.World,
    count: int = 300,
    rows: int = 1000,
    draws: tuple[int, ...] = DRAWS,
) -> list[Line]:
    """Every logger, rule, n and estimator on `count` logs of `rows` decisions; own as `loggers` gives it."""
    errors.at_least("logs", count, 2)
    errors.at_least("rows", rows, 2)
    rules = RULES if not case.floor else (*RULES, *FLOORED)
    kinds = [("exact", 0), *((rule, n) for rule in rules for n in draws)]
    found = []
    for logger, given in tables(here, case, own).items():
        log = logs(here, given, count=count, rows=rows)
        truth, earned = here.value(given.Q).value, here.value(given.p).value
        for rule, n in kinds:
            rng = streams.stream(here.seed, n, "monte_carlo", 2)
            p = shown(given, log, rule=rule, n=n, floor=case.floor, rng=rng)
            sums = expected(given, rule=rule, n=n, floor=case.floor, rows=rows, noise=here.noise)
            for estimator in ESTIMATORS:
                value, se = judge(given, log, p, estimator=estimator)
                error = value - truth
                rmse = math.sqrt(np.mean(error**2))
                found.append(
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
    return found


def _finite(here: synthetic.World) -> tuple[np.ndarray, np.ndarray]:
    """The contexts (S, K, d) and the expected rewards (S, K) of a world that has finitely many."""
    if here.instance.X is None or here.instance.mu is None:
        raise ValueError("the experiment needs a world with finitely many contexts: pass contexts=")
    return here.instance.X, here.instance.mu
