"""`dither.testing`: our own parts pass it, and each check finds a part that breaks its rule."""

import dataclasses
import itertools
import pickle
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from scipy import special
from sklearn.linear_model import Ridge as Penalised

import dither
from dither import envs, models, ope, testing
from dither.ope.contributions import find
from properties import ALL, EXCUSED, NETWORKS, brief, exactly, few, integrates
from worlds import WORLDS

# Our own parts


def tried(name):
    """An algorithm's policy on its model, and how much of it is tried."""
    model, policy = dither.ALGORITHMS[name].configure(3, lam=0.5, **exactly(name))
    n = few(model, policy, 5_000 if name in NETWORKS else 20_000)  # policies on networks have few rules of their own
    requests = max(min(few(model, policy, 60), brief(model, policy, 60)), 5)
    rtol = 1e-9 if integrates(model, policy) else 1e-12
    return testing.check_policy.checks(policy, model, draws=n, requests=requests, rtol=rtol)


@pytest.mark.parametrize("check", testing.check_policy.rules)
@pytest.mark.parametrize("name", dither.ALGORITHMS)
def test_every_policy_keeps_the_rules(name, check):
    next(one for one in tried(name) if one.name == check)()


@pytest.mark.parametrize("name", [name for name in dither.ALGORITHMS if "slots" not in EXCUSED.get(name, {})])
def test_every_policy_keeps_the_rules_among_slots(name):
    model, policy = dither.ALGORITHMS[name].configure(3, lam=0.5, disjoint=4, **exactly(name))
    n = few(model, policy, 2_000)
    testing.check_policy(policy, model, draws=n, requests=max(min(few(model, policy, 20), 20), 5))


def f(X):
    return X[:, 0]


_STEP = {"order": EXCUSED["DeepFP"]["order"], "weights": "a weight is one of the loss, in one step"}
MODELS = [  # every class, with the settings that make another model of it; and what it cannot pass
    (models.Ridge(0.5), {}),
    (models.Diagonal(0.5), {}),
    *((models.GLM(link=link, lam=0.5), {}) for link in dither.links.LINKS if link != "identity"),
    (models.GLM(solver="counts"), {}),
    (models.GLM(solver="online"), {}),
    (models.Admissible(lam=0.5, S=4.0), {}),  # wide enough for θ̂: else SciPy's tolerance shows
    *((models.OnlineNewton(link=link, lam=0.5), _STEP) for link in dither.links.LINKS),
    (models.Disjoint(models.Ridge(0.5), 3), {}),
    (models.Disjoint(models.GLM(), 2), {}),
    (models.Network(hidden=(8, 6), dtype="float64"), _STEP),
    (models.Network(hidden=(8, 6), dtype="float64", slots=3), _STEP),
    (models.NeuralLinear(hidden=(8,), dtype="float64"), _STEP),
    (models.Regressor(Penalised(), refit=1), {}),
    (models.Regressor(Penalised(), refit=1, slots=3), {}),
    (models.Fixed(f), {"learning": "it is never trained"}),
    (models.Fixed(f, slots=2), {"learning": "it is never trained"}),
]


@pytest.mark.parametrize("check", testing.check_model.rules)
@pytest.mark.parametrize(("model", "excused"), MODELS, ids=lambda part: re.sub(r" at 0x\w+", "", repr(part))[:60])
def test_every_model_keeps_the_rules(model, excused, check):
    checks = testing.check_model.checks(model, expected_failed_checks=excused)
    next(one for one in checks if one.name == check)()


def test_every_model_is_tried():
    assert {type(model).__name__ for model, _ in MODELS} == set(models.__all__)
    assert {type(model) for model, _ in ALL.values()} <= {type(model) for model, _ in MODELS}


def replayed():
    rng = np.random.default_rng(0)
    log = dither.log.Log()
    X, a = rng.normal(size=(60, 4, 3)), rng.integers(0, 4, 60)
    made = log.record(dither.Decision(a, np.full(60, 0.25), "exact", None), X=X)
    for id in made.id:
        log.reward(id, 1.0)
    return envs.Replay(log.read(), M=rng.normal(size=(60, 4)))


@pytest.mark.parametrize("check", testing.check_environment.rules)
@pytest.mark.parametrize("world", [*WORLDS, "replay"])
def test_every_environment_keeps_the_rules(world, check):
    checks = testing.check_environment.checks(replayed() if world == "replay" else WORLDS[world])
    next(one for one in checks if one.name == check)()


def test_every_environment_is_tried():
    tried = {type(env).__name__ for env in WORLDS.values()} | {"Replay"}
    assert tried == set(envs.__all__) - {"Environment", "Kappas", "Replayed", "kappas"}


SETTINGS = {"clipped_ips": 2.0, "switch_dr": 1.5, "dros": 3.0, "sgdr": 0.4}
BIASED = {  # where its setting, or a prediction that is wrong, makes it so
    "dm": "the predictions are wrong",
    **dict.fromkeys(SETTINGS, "weights are cut off or shrunk"),
}


@pytest.mark.parametrize("check", testing.check_estimator.rules)
@pytest.mark.parametrize("name", [name for name, one in ope.ESTIMATORS.items() if one.reads != "past"])
def test_every_estimator_keeps_the_rules(name, check):
    excused = {"unbiased": BIASED[name]} if name in BIASED else {}
    checks = testing.check_estimator.checks(
        name, setting=SETTINGS.get(name), unbiased=True, expected_failed_checks=excused
    )
    next(one for one in checks if one.name == check)()


# Policies that break a rule, one for each check


class Seen(NamedTuple):
    m: Any
    temperature: float

    def scores(self, noise):
        return self.m + self.temperature * noise

    def propensities(self, *, mask=None):
        return special.softmax(np.where(True if mask is None else mask, self.m, -np.inf) / self.temperature, axis=-1)


@dataclass(frozen=True)
class Softmax:
    temperature: float = 0.5
    needs = frozenset({"mean"})

    def draw(self, rng, n, *, arms, dim):
        return (rng.gumbel(size=(n, arms)),)

    def view(self, model, state, X, *, t):
        return Seen(model.mean(state, X), self.temperature)


class TwoCalls(Softmax):
    def draw(self, rng, n, *, arms, dim):
        return (rng.gumbel(size=(n, arms)) + rng.random((n, 1)),)


class NoTuple(Softmax):
    def draw(self, rng, n, *, arms, dim):
        return rng.gumbel(size=(n, arms))


def seeing(**methods):
    """Softmax with another view: methods of the view by name."""
    kind = type("Other", (Seen,), methods)

    class Broken(Softmax):
        def view(self, model, state, X, *, t):
            return kind(model.mean(state, X), self.temperature)

    return Broken


def drawn_again(self, *, mask=None):
    p = Seen.propensities(self, mask=mask) * np.random.default_rng().uniform(0.9, 1, self.m.shape)
    return p / p.sum(axis=-1, keepdims=True)


def hotter(self, *, mask=None):  # T7: said .206, drawn .088
    return Seen(self.m, 2 * self.temperature).propensities(mask=mask)


def by_place(self, noise):
    return Seen.scores(self, noise) + 0.5 * np.arange(self.m.shape[-1])


def place_known(self, *, mask=None):
    return Seen(self.m + 0.5 * np.arange(self.m.shape[-1]), self.temperature).propensities(mask=mask)


def first(self, noise, *, u, mask=None):
    return np.argmax(np.where(True if mask is None else mask, self.m, -np.inf), axis=-1) + 0 * u.astype(int)


def halved(self, *, mask=None):
    with np.errstate(divide="ignore"):
        return np.log(self.propensities(mask=mask)) - np.log(2)


def by_number(self, noise, *, u, mask=None):
    left = np.broadcast_to(True if mask is None else mask, (*u.shape[:-1], self.m.shape[-1]))
    return np.argsort(~left, axis=-1, kind="stable")[..., : u.shape[-1]]


def none_masked(self, noise, *, u, mask=None):
    return np.argmax(self.scores(noise), axis=-1)


def by_batch(self, noise):
    return self.m + self.temperature * noise * (1 + np.std(self.m[..., 0]))


def by_rank(self, noise):
    return self.m + (self.temperature if self.m.ndim == 1 else 3 * self.temperature) * noise


def of_numpy(self, noise, *, u, mask=None):
    arm = np.argmax(self.scores(noise))
    return arm, self.propensities(mask=mask)[arm]


class Drawn(NamedTuple):
    m: Any

    def scores(self, noise):  # another law where few are drawn at once
        return self.m + (0.0 if len(noise) == 400 else 0.5) * noise


class FewAreGreedy(Softmax):
    def view(self, model, state, X, *, t):
        return Drawn(model.mean(state, X))


class Writes(Softmax):
    def view(self, model, state, X, *, t):
        state.theta[...] += 1e-9
        return super().view(model, state, X, t=t)


class Remembers(Softmax):
    asked: ClassVar[Any] = None

    def view(self, model, state, X, *, t):
        object.__setattr__(self, "asked", t)
        return super().view(model, state, X, t=t)


class Counts(Softmax):
    seen: ClassVar[int] = 0

    def view(self, model, state, X, *, t):
        type(self).seen += 1
        return super().view(model, state, X, t=t)


SEEN = itertools.count(1)


class CountsBeside(Softmax):
    def view(self, model, state, X, *, t):
        return Drawn(model.mean(state, X) / next(SEEN))


class Column(Softmax):
    def draw(self, rng, n, *, arms, dim):
        return (rng.normal(size=(n, 1)),)

    def view(self, model, state, X, *, t):
        return Wide(model.mean(state, X))


class Wide(NamedTuple):
    m: np.ndarray

    def scores(self, z):
        return self.m + z[..., None]


class Global(Softmax):
    def draw(self, rng, n, *, arms, dim):
        return (np.random.default_rng().gumbel(size=(n, arms)),)


class Changing(Softmax):
    turn: ClassVar[Any] = itertools.cycle((0.0, 0.6))

    def eps(self, t):
        return next(self.turn)


class Plain(Softmax.__mro__[1]):  # no dataclass: a file cannot hold it
    needs = frozenset({"mean"})
    temperature = 0.5
    draw, view = Softmax.draw, Softmax.view


BAD_POLICIES = [
    ("draw", TwoCalls(), "n draws in turn|is not that of 6 draws"),
    ("draw", NoTuple(), "Return a tuple"),
    (
        "draw",
        Column(),
        r"score each of the 5 arms: scores \(6, 5\), got shape \(6, 6, 5\): draw gave .* shapes \(6, 1\)",
    ),
    ("probabilities", seeing(propensities=drawn_again)(), "two answers"),
    ("probabilities", seeing(propensities=lambda self, mask=None: self.m * np.nan)(), "sum|NaN"),
    ("frequencies", seeing(propensities=hotter)(), r"arm \d was chosen \d+ of 20000 times .* propensities says 0\.\d+"),
    ("logged_propensity", seeing(chosen=lambda self, arm, mask=None: 0.5 + 0.0 * self.m[..., 0])(), "another probab"),
    ("monte_carlo", FewAreGreedy(), "many draws"),
    ("masked_arms", seeing(best=none_masked)(), "not on offer were chosen"),
    ("permuted_arms", seeing(scores=by_place, propensities=place_known)(), "another order have other"),
    ("ties", seeing(best=first)(), "arm 0 was chosen 20000 of 20000"),
    ("logarithms", seeing(log_propensities=halved)(), "logarithms of others"),
    ("lists", seeing(in_turn=by_number)(), "lists of one arm show"),
    ("floor", Changing(), "floor="),
    ("batch", seeing(scores=by_batch)(), "with another arm than alone"),
    ("shapes", seeing(decide=of_numpy)(), "answered with int64"),
    ("purity", Writes(), "choosing changes the state"),
    ("purity", Remembers(), "choosing changes the policy"),
    ("purity", Counts(), "choosing changes seen of the class Counts"),
    ("purity", CountsBeside(), "other scores after some choices, though nothing was learnt"),
    ("seed", Global(), "one seed choose differently"),
    ("save_and_load", Plain(), "TypeError"),
    ("streams", seeing(scores=by_batch)(), "what runs beside it"),
    ("lockstep", seeing(scores=by_rank)(), "a live bandit part"),
]


def found(checks, name):
    with pytest.raises(testing.CheckFailed) as failed:
        next(one for one in checks if one.name == name)()
    assert list(failed.value.failures) == [name]
    return str(failed.value)


@pytest.mark.parametrize(("check", "policy", "says"), BAD_POLICIES)
def test_a_policy_that_breaks_a_rule_is_found(check, policy, says):
    said = found(testing.check_policy.checks(policy), check)
    assert re.search(says, said), said
    assert said.startswith(f"{type(policy).__name__} fails the check {check!r}: ")
    # seen red: each check with `return` as its first line


def test_a_policy_that_keeps_the_rules_passes():
    testing.check_policy(Softmax())
    testing.check_policy(Softmax(), models.GLM(), draws=2000)
    for check in testing.check_policy.checks(Softmax(), seed=3):
        check()


# Models that break a rule


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
    ("purity", InPlace(), "writes into the state"),
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
    ("save_and_load", Rows(), r"state\.rows\.x is float64\(0, 3\) in `init` and .* only in a field named history"),
    ("slots", Deeper(), "slot 1 of Disjoint"),
    ("slots", Nearby(), "rows of zeros: keep a count or a weight"),
    ("lockstep", Mixed(), "state.theta of run 0 of three is not that of run 0 alone"),
    ("lockstep", Shared(), "beside it"),
]


@pytest.mark.parametrize(("check", "model", "says"), BAD_MODELS)
def test_a_model_that_breaks_a_rule_is_found(check, model, says):
    said = found(testing.check_model.checks(model), check)
    assert re.search(says, said), said
    # seen red: each check with `return` as its first line; no `_same_states`; no look at how arrays grow


def test_a_model_that_keeps_the_rules_passes():
    testing.check_model(Mine(0.5))


# Environments that break a rule


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


@pytest.mark.parametrize(("check", "env", "says"), BAD_WORLDS)
def test_an_environment_that_breaks_a_rule_is_found(check, env, says):
    OneRun.kept.clear()
    said = found(testing.check_environment.checks(env), check)
    assert re.search(says, said), said
    # seen red: each check with `return` as its first line


# Estimators that break a rule


def estimator(change, **settings):
    """IPS whose terms are changed: (b, log) -> b."""

    def rows(log, setting):
        made = find("ips")(log, None)
        return dataclasses.replace(made, b=change(made.b, log))

    return ope.Estimator(rows, **{"reads": "shown"} | settings)


def counted(b, log):
    return b * (1.0 if log.s is None else log.s)


BAD_ESTIMATORS = [
    ("finite", estimator(lambda b, log: b * np.nan), {}, "the estimate is nan"),
    ("row_order", estimator(lambda b, log: b * np.arange(len(b))), {}, "rows in another order"),
    ("weights", estimator(counted), {}, "each of them k times"),
    ("clusters", estimator(lambda b, log: b * (1.0 if log.group is None else 1.1)), {}, "every row twice"),
    ("reads", estimator(lambda b, log: b * log.Q.max(axis=1)), {}, "reads='all arms'"),
    ("parts", estimator(lambda b, log: np.minimum(b, np.quantile(b, 0.8))), {}, "sums of three parts"),
    ("purity", estimator(lambda b, log: b + np.random.default_rng().normal(size=b.shape)), {}, "two calls"),
    ("refused", estimator(lambda b, log: b, setting=("c", 0.0, np.inf)), {"setting": 1.0}, "c=inf is taken"),
    ("unbiased", estimator(lambda b, log: 0.9 * b), {"unbiased": True}, "the truth is"),
]


@pytest.mark.parametrize(
    ("check", "part", "options", "says"), BAD_ESTIMATORS, ids=lambda x: x if isinstance(x, str) else ""
)
def test_an_estimator_that_breaks_a_rule_is_found(check, part, options, says):
    said = found(testing.check_estimator.checks(part, **options), check)
    assert re.search(says, said), said
    # seen red: each check with `return` as its first line


def test_an_estimator_that_reads_all_arms_may_say_so():
    part = estimator(lambda b, log: b * log.Q.max(axis=1), reads="all arms")
    testing.check_estimator(part)
    testing.check_estimator(part.rows)  # a bare function is taken to read all arms


# How checks are run


def test_every_check_has_a_part_that_it_finds():
    tried = {
        testing.check_policy: BAD_POLICIES,
        testing.check_model: BAD_MODELS,
        testing.check_environment: BAD_WORLDS,
        testing.check_estimator: BAD_ESTIMATORS,
    }
    for checker, bad in tried.items():
        assert {check for check, *_ in bad} == set(checker.rules)
        assert all(rule.__doc__ for rule in checker.rules.values())


def test_all_failures_are_told_at_once():
    with pytest.raises(testing.CheckFailed) as failed:
        testing.check_policy(seeing(propensities=hotter)())
    assert {"frequencies", "masked_arms"} <= set(failed.value.failures)
    assert "batch" not in failed.value.failures
    assert f"fails {len(failed.value.failures)} checks" in str(failed.value)
    assert isinstance(failed.value, AssertionError)
    again = pickle.loads(pickle.dumps(failed.value))
    assert (str(again), again.failures) == (str(failed.value), failed.value.failures)


def test_a_failure_that_is_expected_must_come():
    of_time = dict.fromkeys(("order", "weights", "update_many"), "it forgets")
    testing.check_model(Forgets(), expected_failed_checks=of_time)
    with pytest.raises(testing.CheckFailed, match=r"expected to fail \(no reason\), and it passes: take it out"):
        testing.check_model(Mine(), expected_failed_checks={"order": "no reason"})  # seen red: an xfail that may pass
    with pytest.raises(LookupError, match="no check 'ordr': did you mean 'order'"):
        testing.check_model(Mine(), expected_failed_checks={"ordr": "no reason"})


def test_what_a_part_raises_is_a_failure_with_its_cause():
    class Raises(Softmax):
        def view(self, model, state, X, *, t):
            raise KeyError("colour")

    with pytest.raises(testing.CheckFailed, match="KeyError: 'colour'") as failed:
        next(c for c in testing.check_policy.checks(Raises()) if c.name == "batch")()
    assert isinstance(failed.value.__cause__, KeyError)


def test_a_method_that_raises_is_named_with_its_promise_and_nothing_else_is_run():
    with pytest.raises(testing.CheckFailed) as failed:
        testing.check_model(OneRequest())
    said = str(failed.value)
    assert list(failed.value.failures) == ["shapes"]  # seen red: no gate
    assert "OneRequest.mean raised ValueError: " in said  # seen red: `_product`, with private names taken too
    assert "It was given X (4, 5, 3). The rule is: All arrays of a state have the leading axes" in said
    assert "What `mean` promises: The score m_i of each arm: X (..., K, d) -> (..., K)." in said
    assert re.search(r"The other \d+ checks are not run before shapes passes", said)


def test_a_gate_that_is_expected_to_fail_stops_nothing():
    with pytest.raises(testing.CheckFailed) as failed:
        testing.check_model(Two(), expected_failed_checks={"shapes": "two arms are enough"})
    assert "lockstep" in failed.value.failures  # seen red: a gate that stops whatever it finds
    with pytest.raises(testing.CheckFailed) as failed:
        testing.check_model(Forgets(), expected_failed_checks={"shapes": "no reason"})
    assert {"shapes", "order"} <= set(failed.value.failures)  # seen red: no look at `expected`


@pytest.mark.parametrize("check", [testing.check_model, lambda kind: testing.check_policy(Softmax(), kind)])
def test_a_class_in_place_of_a_model_is_refused_once(check):
    with pytest.raises(TypeError, match=r"^a model is an instance: pass Mine\(\) for Mine"):
        check(Mine)  # seen red: no look in `Trial`


def test_a_model_inside_a_model_is_known_to_its_file():
    testing.check_model(models.Disjoint(Mine(), 2))  # seen red: only the outer class known


def test_it_works_without_a_test_runner():
    code = """
import sys
for name in ("pytest", "hypothesis", "polars", "sklearn"): sys.modules[name] = None
import dither
assert "dither.testing" not in sys.modules
dither.testing.check_policy(dither.policies.FeaturePerturbation(), draws=500)
dither.testing.check_model(dither.models.Ridge())
dither.testing.check_environment(dither.envs.Linear(dim=2, arms=3), draws=500)
dither.testing.check_estimator("ips")
"""
    path = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_counts_are_compared_without_slack_at_zero_and_one():
    from dither.testing import chance

    assert chance.improbable(np.array([1, 19_999]), 20_000, np.array([0.0, 1.0]), tests=10).all()
    assert not chance.improbable(np.array([0, 20_000]), 20_000, np.array([0.0, 1.0]), tests=10).any()
    rng, p = np.random.default_rng(0), np.array([0.0, 1e-4, 0.2, 0.5, 0.9999, 1.0])
    hits = np.array([rng.binomial(20_000, p) for _ in range(2000)])
    assert not any(chance.improbable(row, 20_000, p, tests=12_000).any() for row in hits)
    assert chance.improbable(np.array([1760]), 20_000, np.array([0.206]), tests=10).all()  # .206 said, .088 drawn
