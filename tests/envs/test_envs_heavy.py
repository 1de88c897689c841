"""Heavy tails and means that are not linear: their laws against SciPy, and their bounds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from dither import envs
from worlds import ENV, LOGISTIC, equal, run

N = 20_000


class Mixture:
    """The law of contaminated noise."""

    def __init__(self, q, m, s):
        self.q, self.m, self.s = q, m, s

    def cdf(self, x):
        return (1 - self.q) * stats.norm.cdf(x / self.s) + self.q * stats.norm.cdf(x / self.s / self.m)

    def std(self):
        second = [share * (self.s * factor) ** 2 for share, factor in ((1 - self.q, 1), (self.q, self.m))]
        return np.sqrt(sum(second))


LAWS = [  # the environment, and the law that its noise has
    (envs.StudentNoise(ENV, df=3.0, scale=0.7), stats.t(3, scale=0.7)),
    (envs.StudentNoise(ENV, df=1.5), stats.t(1.5)),
    (envs.ParetoNoise(ENV, alpha=2.5, scale=2.0), stats.lomax(2.5, loc=-2 / 1.5, scale=2.0)),
    (envs.ParetoNoise(ENV, alpha=1.5), stats.lomax(1.5, loc=-2)),
    (envs.ContaminatedNoise(ENV, share=0.2, factor=5.0, scale=0.5), Mixture(0.2, 5.0, 0.5)),
    (envs.ContaminatedNoise(ENV, share=0.0), stats.norm()),
]


@pytest.mark.parametrize(("env", "law"), LAWS, ids=lambda part: f"{type(part).__name__}")
def test_noise_has_the_law_that_is_stated(env, law):
    noise = env.reward_noise(np.random.default_rng(0), N // 5)
    assert noise.shape == (N // 5, 5)
    assert stats.kstest(noise.ravel(), law.cdf).pvalue > 1e-6
    rng = np.random.default_rng(0)
    assert_array_equal(np.concatenate([env.reward_noise(rng, n) for n in (1, 13, N // 5 - 14)]), noise)
    sd = law.std()
    assert env.sd == pytest.approx(sd) if np.isfinite(sd) else np.isinf(env.sd)
    assert env.sigma == (env.sd if np.isfinite(sd) else env.scale)
    # seen red: the Pareto law not shifted; outliers on the wrong side of the quantile; scale squared


@pytest.mark.parametrize("env", [env for env, law in LAWS if np.isfinite(law.std())], ids=repr)
def test_noise_is_centred(env):
    noise = env.reward_noise(np.random.default_rng(1), 4 * N)
    assert abs(noise.mean()) < 5 * env.sd / np.sqrt(noise.size)


def test_all_else_is_that_of_the_environment_within():
    heavy = envs.StudentNoise(ENV)
    assert (heavy.S, heavy.arms, heavy.dim, heavy.disjoint) == (ENV.S, ENV.arms, ENV.dim, ENV.disjoint)
    bare, noisy = run(ENV, ["Greedy"], record=[1]), run(heavy, ["Greedy"], record=[1])
    assert_array_equal(bare.regret, noisy.regret)  # the first arm is drawn, whatever the noise
    equal(run(envs.ContaminatedNoise(ENV, factor=1.0)), run(envs.ContaminatedNoise(ENV, share=0.0)))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: envs.StudentNoise(LOGISTIC), "draws rewards from the means"),
        (lambda: envs.StudentNoise(ENV, df=1.0), "df must be above 1"),
        (lambda: envs.ParetoNoise(ENV, alpha=0.5), "alpha must be above 1"),
        (lambda: envs.ParetoNoise(ENV, scale=0.0), "scale must be"),
        (lambda: envs.ContaminatedNoise(ENV, share=1.1), "share must lie"),
        (lambda: envs.ContaminatedNoise(ENV, factor=-1.0), "factor must be"),
        (lambda: envs.Misspecified(ENV, zeta=-0.1), "zeta must lie"),
        (lambda: envs.Misspecified(ENV, frequency=0.0), "frequency must be"),
        (lambda: envs.Misspecified(LOGISTIC), "means of a link"),
        (lambda: envs.Misspecified(envs.Classification([[1.0], [2.0]], [0, 1])), "share a context"),
    ],
)
def test_noise_and_deviations_that_make_no_sense_are_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_means_deviate_by_zeta_at_most():
    inner = envs.Linear(dim=4, arms=50)
    env = envs.Misspecified(inner, zeta=0.3)
    begun, X = env.start(np.random.default_rng(0)), np.empty((400, 50, 4))
    more = env.fill(begun, np.random.default_rng(1), X, t=1)
    off = env.means(begun, X, more) - X @ begun.inner.theta
    assert np.max(np.abs(off)) <= 0.3 + 1e-12
    assert np.max(np.abs(off)) > 0.299
    assert_allclose(off, 0.3 * np.sin(X @ begun.outer.omega + begun.outer.phi), atol=1e-12)
    flat, dev = X.reshape(-1, 4), off.ravel()
    fitted = flat @ np.linalg.lstsq(flat, dev)[0]
    assert np.var(dev - fitted) > 0.9 * np.var(dev)  # hardly any of it is linear
    assert_allclose(env.means(begun, X[:, ::-1], more), env.means(begun, X, more)[:, ::-1], atol=1e-12)
    omegas = np.array([env.start(np.random.default_rng(i)).outer for i in range(500)], dtype=object)
    normal = np.concatenate(omegas[:, 0]) / env.frequency
    assert stats.kstest(normal, "norm").pvalue > 1e-6
    assert stats.kstest(omegas[:, 1].astype(float) / (2 * np.pi), "uniform").pvalue > 1e-6
    # seen red: ζ twice; frequency 0.1, which is nearly linear


def test_without_a_deviation_it_is_the_environment_within():
    equal(run(envs.Misspecified(ENV, zeta=0.0)), run(ENV))
