"""What the tests of the simulator share: environments, families of algorithms, a short run."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import dither
from dither import envs
from properties import NETWORKS, bounded

ENV = envs.Linear(dim=3, arms=5)


DIGITS = envs.Classification(np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 4)


def steep(rng, mean, X, t):
    """Noise of sd |x_1|, and twice as much in even rounds."""
    even = (np.arange(t, t + len(mean)) % 2 == 0)[:, None]
    return np.abs(X[..., 0]) * np.where(even, 2.0, 1.0) * rng.standard_normal(mean.shape)


WORLDS = {
    "linear": ENV,
    "fixed": envs.Linear(dim=3, arms=5, contexts=1),
    "sets": envs.Linear(dim=3, arms=5, contexts=3, noise=0.1, norm=2.0),
    "raw": envs.Linear(dim=3, arms=5, unit=False, noise=0.0),
    "classification": DIGITS,
    "delayed": envs.Delayed(ENV, delay=3),
    "random delay": envs.Delayed(DIGITS, mean=2.0),
    "logistic": envs.Logistic(dim=3, arms=5, norm=2.0),
    "probit": envs.Probit(dim=3, arms=5, contexts=2),
    "clipped": envs.Clipped(dim=3, arms=5, norm=2.0),
    "poisson": envs.Poisson(dim=3, arms=5, contexts=1),
    "masked": envs.Masked(ENV, share=0.4),
    "few on offer": envs.Masked(DIGITS, least=1, most=3),
    "abrupt": envs.Abrupt(ENV, rounds=(7, 8, 40)),
    "rotating": envs.Rotating(envs.Logistic(dim=3, arms=5), period=50.0),
    "walking": envs.Walking(ENV, step=0.1),
    "student": envs.StudentNoise(ENV, df=3.0),
    "pareto": envs.ParetoNoise(ENV, alpha=2.5),
    "contaminated": envs.ContaminatedNoise(ENV),
    "misspecified": envs.Misspecified(ENV, zeta=0.2),
    "noised": envs.Noised(ENV, steep),
    "all at once": envs.Delayed(
        envs.Masked(envs.Misspecified(envs.StudentNoise(envs.Walking(ENV, step=0.1))), least=2), delay=2
    ),
}


T = 60


LOGISTIC = WORLDS["logistic"]


GLMS = [name for name in dither.ALGORITHMS if bounded(name)]


LINEAR = [name for name in dither.ALGORITHMS if name not in GLMS and name not in NETWORKS]


FAMILIES = {  # environment, algorithms, rounds
    "linear": (ENV, LINEAR, T),
    "logistic": (LOGISTIC, GLMS, 8),
    "networks": (ENV, NETWORKS, 40),
}


each_family = pytest.mark.parametrize("family", FAMILIES)


def run(env, names=("LinFP", "LinPHE"), **settings):
    return dither.simulate(env, list(names), **{"runs": 5, "rounds": T, "seed": 3} | settings)


def equal(a, b):
    assert_array_equal(a.regret, b.regret)
    assert_array_equal(a.realised, b.realised)
    assert_array_equal(a.rounds, b.rounds)
