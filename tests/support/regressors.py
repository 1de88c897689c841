"""Bandits on regressors and what they learn from."""

import numpy as np
from numpy.testing import assert_array_equal

import dither
from dither.base import trees
from dither.policies import GeneralFeaturePerturbation


class Spy:
    """Predicts the last reward that it saw, times the first feature; remembers how many rows each fit had."""

    def __init__(self, log=None):
        self.log = [] if log is None else log
        self.rows_ = 0

    def __deepcopy__(self, memo):  # copies share the log
        twin = Spy(self.log)
        vars(twin).update({k: v for k, v in vars(self).items() if k != "log"})
        return twin

    def fit(self, X, y):
        self.log.append(len(X))
        self.rows_, self.last_ = len(X), y[-1]

    def partial_fit(self, X, y):
        self.log.append(len(X))
        self.rows_, self.last_ = self.rows_ + len(X), y[-1]

    def predict(self, X):
        return self.last_ * X[:, 0]


def data(n=40, d=3, *, K=None, binary=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    r = X @ np.arange(1, d + 1) + 0.3 * rng.normal(size=n)
    return X, (r > 0).astype(float) if binary else r, rng.integers(K, size=n) if K else None


def bandit(model, policy=None, **settings):
    return dither.Bandit(model, policy or GeneralFeaturePerturbation(), **{"dim": 3, "seed": 0} | settings)


def taught(b, X, r, arm=None):
    for i in range(len(r)):
        b.update(X[i], r[i], **({} if arm is None else {"arm": arm[i]}))
    return b


def same(a, b):
    """Two bandits hold the same arrays, and answer alike."""
    ours, theirs = trees.leaves(a.state, "state"), trees.leaves(b.state, "state")
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert_array_equal(ours[name], theirs[name], err_msg=name)
    X = np.random.default_rng(5).normal(size=(6, a.dim) if a.slots is None else a.dim)
    assert_array_equal(a.mean(X), b.mean(X))
    assert [a.choose(X).arm for _ in range(20)] == [b.choose(X).arm for _ in range(20)]
