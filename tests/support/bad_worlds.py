"""Environments that break a rule of `dither.testing`, one for each check."""

from typing import ClassVar

import numpy as np

from dither import envs


class World(envs.Linear):
    """Right, but for the one method that a subclass has."""


class ShortMeans(World):
    def means(self, run, X, more):
        return super().means(run, X, more)[:, :1]


class TwoDraws(World):
    def fill(self, run, rng, out):
        out[:] = rng.standard_normal(out.shape) + rng.standard_normal()


class Common(World):
    kept: ClassVar[dict] = {"n": 0}

    def fill(self, run, rng, out):
        self.kept["n"] += 1
        out[:] = rng.standard_normal(out.shape) + self.kept["n"]


class DrawnMeans(World):
    def means(self, run, X, more):
        return super().means(run, X, more) + np.random.default_rng().normal(size=X.shape[:2])


class Generous(World):
    def reward_noise(self, rng, n):
        return super().reward_noise(rng, n) + 0.3


class Early(World):
    def delays(self, rng, n):
        return rng.integers(-1, 2, n)


class OneRun(World):
    kept: ClassVar[dict] = {}

    def start(self, rng):
        return super().start(np.random.default_rng(0)), self.kept

    def fill(self, run, rng, out):
        run[1]["n"] = run[1].get("n", 0) + 1
        out[:] = rng.standard_normal(out.shape) * run[1]["n"]

    def means(self, run, X, more):
        return super().means(run[0], X, more)


class Seeded(World):
    def fill(self, run, rng, out):
        out[:] = np.random.standard_normal(out.shape)  # noqa: NPY002


class NobodyHome(World):
    def offered(self, run, rng, X, more):
        return rng.random(X.shape[:2]) < 0.1


class Numbers(World):
    def offered(self, run, rng, X, more):
        return np.ones(X.shape[:2])


class Cleared(World):
    def offered(self, run, rng, X, more):
        X[:, 0] = 0
        return np.ones(X.shape[:2], dtype=bool)


class SizedMasks(World):
    def offered(self, run, rng, X, more):
        return np.tile(np.arange(X.shape[1]) < len(X), (len(X), 1))


class Forgetful(World):
    def fill(self, run, rng, out, t):
        super().fill(run, rng, out)
        return t  # and not of each round

    def means(self, run, X, more):
        return super().means(run, X, more) + more


SMALL = dict(dim=3, arms=4)
BAD_WORLDS = [
    ("protocol", ShortMeans(**SMALL), r"It must be \(24, 4\)"),
    ("blocks", TwoDraws(**SMALL), "fill gives other rounds"),
    ("runs", Common(**SMALL), "another run goes on beside"),
    ("means", DrawnMeans(**SMALL), "differ when asked twice"),
    ("rewards", Generous(**SMALL), "the rewards of arm"),
    ("delays", Early(**SMALL), "at least 0"),
    ("offers", NobodyHome(**SMALL), "no arm on offer"),
    ("offers", Numbers(**SMALL), "float64"),
    ("offers", Cleared(**SMALL), "changes the contexts"),
    ("blocks", SizedMasks(**SMALL), "offered gives other rounds"),
    ("blocks", Forgetful(**SMALL), "means gives other rounds"),
    ("streams", OneRun(**SMALL), "run 3 alone is not run 3 of 4"),
    ("global_randomness", Seeded(**SMALL), "global generator moves"),
]
