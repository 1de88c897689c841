"""Models that break a rule of `dither.testing`, one for each check."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dither import models


@dataclass(frozen=True)
class Mine(models.Ridge):
    """Right, but for the one method that a subclass has."""


class NoBatch(Mine):
    def init(self, dim, *, batch=(), **settings):
        return super().init(dim, **settings)


class InPlace(Mine):
    def update(self, state, x, r, *, weight=None):
        new = super().update(state, x, r, weight=weight)
        for A, B in zip(state[:2], new[:2], strict=True):
            A[...] = B
        return new


class FirstAlone(Mine):
    def update_many(self, state, X, r, **settings):
        return self.update(state, X[..., 0, :], r[..., 0]) if X.shape[-2] else state


class Forgets(Mine):
    def update(self, state, x, r, *, weight=None):
        new = super().update(state, x, r, weight=weight)
        return new._replace(theta=0.8 * new.theta)


class NoWeight(Mine):
    def update(self, state, x, r, *, weight=None):
        return super().update(state, x, r)


class Overwrites(Mine):
    owns = True

    def update(self, state, x, r, *, weight=None, own=False):
        if own:
            state.theta[...] += 1.0
        return super().update(state, x, r, weight=weight)

    def update_many(self, state, X, r, *, weight=None, own=False):
        return super().update_many(state, X, r, weight=weight)


class Narrow(Mine):
    def width(self, state, X):
        return super().width(state, X) * (-1 if state.theta.any() else 1)  # before the first reward, `Bandit` looks


class Linear(models.GLM):
    def predict(self, state, X):
        return 5 * self.mean(state, X)


class Deaf(Mine):
    def update(self, state, x, r, *, weight=None):
        return super().update(state, x, 0 * r, weight=weight)


class Restless(Mine):
    def update(self, state, x, r, *, weight=None):
        new = super().update(state, x, r, weight=weight)
        return new._replace(theta=new.theta + np.random.default_rng().normal(size=new.theta.shape))


class Unloadable(Mine):
    def check(self, state):
        raise ValueError("never")


class Deeper(Mine):
    """Another λ for each leading axis."""

    def init(self, dim, *, batch=(), **settings):
        return models.Ridge(self.lam * (1 + len(batch))).init(dim, batch=batch, **settings)


class Shared(Mine):
    def mean(self, state, X):
        m = super().mean(state, X)
        return np.broadcast_to(m[:1], m.shape) if m.ndim == 2 and state.theta.ndim == 2 else m


class OneRequest(Mine):
    def mean(self, state, X):
        return self._product(X, state.theta)

    def _product(self, X, theta):
        return np.einsum("kd,d->k", X, theta)


class Bare(Mine):
    def init(self, dim):
        return super().init(dim)


class Counting(NamedTuple):
    theta: Any
    n: Any


class NoArray(Mine):
    def init(self, dim, *, batch=(), **_):
        return Counting(np.zeros((*batch, dim)), 0)


class NoTupleState(Mine):
    def init(self, dim, *, batch=(), **_):
        return {"theta": np.zeros((*batch, dim))}


class Mixed(Mine):
    def update(self, state, x, r, *, weight=None):
        new = super().update(state, x, r, weight=weight)
        return new._replace(theta=new.theta - 1e-3 * new.theta.mean(axis=0)) if new.theta.ndim > 1 else new


class Shown(NamedTuple):
    x: Any  # (..., n, d)
    r: Any  # (..., n)


class Past(NamedTuple):
    history: Any


class Growing(NamedTuple):
    rows: Any


@dataclass(frozen=True)
class Nearby:
    """A smooth mean of the rewards nearby: without a count it takes the zeros of other slots as rewards."""

    kind: ClassVar[Any] = Past
    abilities = frozenset({"mean"})

    def init(self, dim, *, batch=(), **_):
        return self.kind(Shown(np.zeros((*batch, 0, dim)), np.zeros((*batch, 0))))

    def update(self, state, x, r):
        h = state[0]
        x, r = np.concatenate([h.x, x[..., None, :]], axis=-2), np.concatenate([h.r, r[..., None]], axis=-1)
        return self.kind(Shown(x, r))

    def mean(self, state, X):
        h = state[0]
        near = np.exp(-np.sum((X[..., :, None, :] - h.x[..., None, :, :]) ** 2, axis=-1))
        return np.sum(near * h.r[..., None, :], axis=-1) / (1 + near.sum(axis=-1))


class Rows(Nearby):
    kind = Growing


class Averages(NamedTuple):
    theta: Any  # (...)
    n: Any  # (...)


@dataclass(frozen=True)
class OneArray:
    """The mean of all rewards. It and the count begin as one array."""

    abilities = frozenset({"mean"})

    def init(self, dim, *, batch=(), **_):
        zeros = np.zeros(batch)
        return Averages(zeros, zeros)

    def update(self, state, x, r):
        return Averages(state.theta + (r - state.theta) / (state.n + 1), state.n + 1)

    def mean(self, state, X):
        return state.theta[..., None] + np.zeros(X.shape[:-1])


class Views(OneArray):
    """The same by views of one array that overlap."""

    def init(self, dim, *, batch=(), **_):
        whole = np.zeros((*batch, 2))
        return Averages(whole[..., 0], whole[..., :1][..., 0])


class FeaturesAlone(NamedTuple):
    theta: Any  # (..., d)


@dataclass(frozen=True)
class Steps:
    """Right, and on no base class: but for the one method that a subclass has."""

    abilities = frozenset({"mean"})

    def init(self, dim, *, batch=(), **_):
        return FeaturesAlone(np.zeros((*batch, dim)))

    def update(self, state, x, r):
        return FeaturesAlone(state.theta + r[..., None] * x)

    def mean(self, state, X):
        return (X @ state.theta[..., None])[..., 0]


class CountsInSelf(Steps):
    count: ClassVar[int] = 0

    def update(self, state, x, r):
        object.__setattr__(self, "count", self.count + 1)
        return super().update(state, x, r)

    def mean(self, state, X):
        return super().mean(state, X) / (1 + self.count)


class CountsInClass(Steps):
    rewards: ClassVar[list[Any]] = []

    def update(self, state, x, r):
        self.rewards.append(r)
        return super().update(state, x, r)

    def mean(self, state, X):
        return super().mean(state, X) / (1 + len(self.rewards))


class StepsInClass(CountsInClass):
    mean = Steps.mean

    def update(self, state, x, r):
        return super().update(state, x, r / (1 + len(self.rewards)))


class DrawsFromSelf(Mine):
    count: ClassVar[int] = 0

    def sample(self, state, eta):
        return super().sample(state, eta) / (1 + self.count)

    def update(self, state, x, r, *, weight=None):
        object.__setattr__(self, "count", self.count + 1)
        return super().update(state, x, r, weight=weight)

    def update_many(self, state, X, r, **settings):
        object.__setattr__(self, "count", self.count + 1)
        return super().update_many(state, X, r, **settings)


class NoDecorator:  # no dataclass
    abilities = frozenset({"mean"})
    init, update, mean = Steps.init, Steps.update, Steps.mean


class IgnoresBatch(Steps):
    def init(self, dim, **_):
        return FeaturesAlone(np.zeros(dim))


class OneRun(Steps):
    def mean(self, state, X):
        return X @ state.theta


class Two(Mine):
    def mean(self, state, X):
        return super().mean(state, X)[..., :2]


class Doubled(Mine):
    def scores(self, theta, X):
        return 2 * super().scores(theta, X)


class Twice(Doubled):
    def mean(self, state, X):
        return 2 * super().mean(state, X)


class Squared(Mine):
    def width(self, state, X):
        return super().width(state, X) ** 2


class OfV(Mine):
    def sample(self, state, eta):
        return np.linalg.solve(state.F.mT, eta)


class WrongSide(Mine):
    def sample(self, state, eta):
        return np.linalg.cholesky(state.F @ state.F.mT).mT @ eta


class Around(Mine):
    def sample(self, state, eta):
        return state.theta + super().sample(state, eta)


class Long(Mine):
    def perturb(self, state, eta):
        return eta


class Falling(Mine):
    def logdet(self, state):
        return -super().logdet(state)


class Seven(Mine):
    def logdet(self, state):
        return np.zeros(7)


BAD_MODELS = [
    ("shapes", NoBatch(), "one entry for each run"),
    ("shapes", Two(), "for each arm"),
    ("shapes", Bare(), r"init takes no batch, needs, xp, device\. Write init\(self, dim, \*, batch=\(\), \*\*_\)"),
    ("shapes", NoArray(), r"no array: \{'state\.n': 'int'\}"),
    ("shapes", NoTupleState(), "init returns a dict"),
    ("shapes", OneArray(), r"one array under two names: state\.theta and state\.n"),
    ("shapes", Views(), "one array under two names"),
    ("shapes", IgnoresBatch(), r"every array of init begins with `batch`, as in np\.zeros\(\(\*batch, dim\)\)"),
    ("shapes", OneRun(), r"core dimension .* for X @ theta write \(X @ theta\[\.\.\., None\]\)\[\.\.\., 0\]"),
    ("purity", InPlace(), "writes into the state"),
    ("purity", CountsInSelf(), "`mean` of one state and one X is another after an update.* Keep no counter"),
    ("purity", CountsInClass(), "`mean` of one state and one X is another"),
    ("purity", StepsInClass(), r"learns one observation twice, and state\.theta differs"),
    ("purity", DrawsFromSelf(), "`sample` of one state"),
    ("purity", NoDecorator(), r"Write @dataclass\(frozen=True\) above the class"),
    ("update_many", FirstAlone(), "n observations at once"),
    ("order", Forgets(), "another order"),
    ("weights", NoWeight(), "a weight of 3"),
    ("refused", Overwrites(), "is refused, and the state has changed"),
    ("width", Narrow(), "a width is -"),
    ("scores", Doubled(), r"scores\(state.theta, X\) is not mean"),
    ("scores", Twice(), "is not x'θ"),
    ("sample", Squared(), "is not the width"),
    ("sample", OfV(), "is not the width"),
    ("sample", WrongSide(), "is not the width"),
    ("sample", Around(), "sample of η = 0 .* The policy adds θ̂ itself"),
    ("sample", Long(), r"perturb of η = 0 has shape \(6,\)"),
    ("logdet", Falling(), "logdet after the first rewards is -"),
    ("logdet", Seven(), "logdet before the first rewards is"),
    ("predict", Linear(), "the predicted rewards reach"),
    ("learning", Deaf(), "after 20 rewards"),
    ("seed", Restless(), "know different things"),
    ("save_and_load", Unloadable(), "never"),
    ("save_and_load", CountsInSelf(), "`mean` of the loaded model is another"),
    ("save_and_load", DrawsFromSelf(), "`sample` of the loaded model is another"),
    ("save_and_load", Rows(), r"state\.rows\.x is float64\(0, 3\) in `init` and .* only in a field named history"),
    ("slots", Deeper(), "slot 1 of Disjoint"),
    ("slots", Nearby(), "rows of zeros: keep a count or a weight"),
    ("lockstep", Mixed(), "state.theta of run 0 of three is not that of run 0 alone"),
    ("lockstep", Shared(), "beside it"),
]
