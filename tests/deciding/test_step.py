"""The compiled step against Python: the same arm, the same streams, and p to 1e-12 or what its corners allow."""

import math

import numpy as np
import pytest
from scipy import stats

import dither
import fifty_digits
from dither import models, noise, policies
from dither.base import compiled
from dither.models import digits
from dither.policies import views
from two_roads import Counting, off, rewound, road, streams

NEAR = 1e-12
LAPLACE = noise.Custom.of(stats.laplace())


def learnt(make, *, rows=40, seed=0, dim=4, arms=6):
    """A bandit that Python has taught."""
    rng, bandit = np.random.default_rng(seed), make(dim)
    with road(None):
        for k in range(rows):
            arm = {} if bandit.slots is None else {"arm": int(rng.integers(arms))}
            bandit.update(rng.standard_normal(dim), float(k % 2), **arm)
    return bandit


def pairs(bandit, requests, **wishes):
    """What both roads decide of each request, with the streams where they then are."""
    step = Counting()
    for X in requests:
        with rewound(bandit), road(None):
            python, after = bandit.choose(X, **wishes), streams(bandit)
        with road(step):
            ours = bandit.choose(X, **wishes)
        assert streams(bandit) == after
        yield X, ours, python
    pairs.took = step.took / max(step.asked, 1)


def compare(bandit, requests, **wishes):
    for X, ours, python in pairs(bandit, requests, **wishes):
        assert ours.arm == python.arm
        assert ours.z == python.z
        assert (ours.propensity_kind, ours.propensity_se) == (python.propensity_kind, python.propensity_se)
        assert (type(ours.arm), type(ours.propensity), type(ours.z)) == (int, float, type(python.z))
        allowed = NEAR + off(bandit, np.asarray(X, dtype=float), ours.arm, wishes.get("mask"))
        assert abs(ours.propensity - python.propensity) <= allowed


@pytest.mark.parametrize("lam", [None, "auto"])
def test_the_problems_of_the_exactness_fuzz(lam):
    took = []
    for seed in range(120):
        given = fifty_digits.problem(seed)
        sigma = {"sigma": "auto"} if lam else {}
        policy = policies.FeaturePerturbation(c=given.c, **sigma)
        with road(None):
            try:
                bandit = fifty_digits.learnt(given, models.Ridge(lam or given.lam), policy, floor=0.1 * (seed % 3 == 0))
            except ValueError as error:
                if "too long" in str(error):
                    continue
                raise
        compare(bandit, [given.rough] * 5)
        took.append(pairs.took)
    assert np.mean(took) > 0.3  # the others have arms that are equal, or nearly so
    # seen red: the interval of the coin's arm by that of the highest; margins that are a trillionth of those


MAKERS = {
    "set": lambda d: dither.Bandit(models.Ridge(0.1), policies.FeaturePerturbation(0.7), dim=d, seed=1),
    "auto": lambda d: dither.LinFP(dim=d, seed=1),
    "forgets": lambda d: dither.LinFP(dim=d, seed=1, discount=0.95),
    "logit": lambda d: dither.GLMFP(dim=d, seed=1),
    "slots": lambda d: dither.LinFP(dim=d, seed=1, disjoint=6, preset="paper"),
    "slots, auto": lambda d: dither.LinFP(dim=d, seed=1, disjoint=6),
    "slots, logit": lambda d: dither.GLMFP(dim=d, seed=1, disjoint=6),
    "UCB": lambda d: dither.LinUCB(dim=d, seed=1),
    "OFUL": lambda d: dither.Bandit(models.Ridge(1.0), policies.UCB(radius="oful"), dim=d, seed=1),
    "UCB in slots": lambda d: dither.LinUCB(dim=d, seed=1, disjoint=6),
    "greedy": lambda d: dither.Bandit(models.Ridge(1.0), policies.Greedy(), dim=d, seed=1),
    "half greedy": lambda d: dither.Bandit(models.Ridge(1.0), policies.EpsGreedy(0.5, decay=None), dim=d, seed=1),
    "RandUCB": lambda d: dither.Bandit(models.Ridge(1.0), policies.RandUCB(noise.Gaussian(), beta=2), dim=d, seed=1),
    "ball": lambda d: dither.Bandit(models.Ridge(1.0), policies.FeaturePerturbation(noise=noise.Ball()), dim=d, seed=1),
    "Laplace": lambda d: dither.Bandit(models.Ridge(1.0), policies.FeaturePerturbation(noise=LAPLACE), dim=d, seed=1),
    "schedule": lambda d: dither.Bandit(models.Ridge(1.0), policies.FeaturePerturbation("oful"), dim=d, seed=1),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("rows", [0, 40])
def test_every_kind_that_is_taken(name, rows):
    bandit, rng = learnt(MAKERS[name], rows=rows), np.random.default_rng(7)
    shape = (30, 4) if bandit.slots else (30, 6, 4)
    requests = rng.standard_normal(shape)
    compare(bandit, requests)
    if rows:
        assert pairs.took > 0.9
    bandit.floor = 0.4
    compare(bandit, requests)
    mask = np.array([True, False, True, True, False, True])
    compare(bandit, requests, mask=mask)
    if rows:
        assert pairs.took > 0.9
    compare(bandit, requests[:5], mask=np.arange(6) == 2)
    # seen red: p of another law than the normal, the floor by all arms in place of those on offer


@pytest.mark.parametrize(("arms", "dim"), [(1, 1), (2, 3), (7, 8), (33, 9), (300, 17)])
def test_every_size(arms, dim):
    for make in (MAKERS["set"], MAKERS["auto"]):
        bandit = learnt(make, dim=dim, rows=2 * dim)
        compare(bandit, np.random.default_rng(1).standard_normal((20, arms, dim)))
    # seen red: the rows behind the last four left out


def test_a_choice_still_knows_the_probabilities_of_all_arms():
    bandit, X = learnt(MAKERS["auto"]), np.random.default_rng(3).standard_normal((6, 4))
    step = Counting()
    with road(step):
        choice = bandit.decide(bandit.request(X))
        assert step.took == 1
    p, se, kind = choice.probabilities()
    assert (se, kind) == (None, "exact")
    assert abs(p[choice.arm] - choice.p) < NEAR
    assert abs(p.sum() - 1) < 1e-9


@pytest.mark.parametrize("floor", [0.0, 0.2])
def test_streams_stand_where_python_leaves_them_however_many_decisions_came(floor):
    bandits = [learnt(MAKERS["set"]), learnt(MAKERS["set"])]
    rng = np.random.default_rng(5)
    requests = [
        rng.standard_normal((6, 4)) if i % 50 else np.ones((3, 4)) for i in range(1100)
    ]  # each 50th is Python's
    shown = []
    for bandit, step in zip(bandits, (None, Counting()), strict=True):
        bandit.floor = floor
        with road(step):
            shown.append([bandit.choose(X).arm for X in requests])
    assert shown[0] == shown[1]
    assert 900 < step.took < 1100
    assert streams(bandits[0]) == streams(bandits[1])
    assert bandits[0].to_bytes() == bandits[1].to_bytes()
    # seen red: no uniforms passed over


def test_widths_in_units_of_rewards_are_less_exact_than_those_of_the_factor():
    """σ̂² is 330 times λτ̂² here, so an error of V⁻¹ moves a width by as many times more: two arms may be one line."""
    bandit = learnt(lambda d: dither.LinFP(dim=d, seed=1, lam=0.01))
    lost = bandit.state.lost.copy()
    lost[:2] = (1e-7 / digits.LOST) ** 2, 0.0  # as if rounding had moved V⁻¹ by so much
    bandit.state = bandit.state._replace(lost=lost)
    x = np.random.default_rng(3).standard_normal(4)
    near, far = (np.stack([x, x * (1 + by)]) for by in (2e-5, 2e-3))
    for _, ours, python in pairs(bandit, [near] * 5):
        assert (python.propensity, ours.propensity) == (1.0, 1.0)
    assert pairs.took == 0
    compare(bandit, [far] * 5)
    assert pairs.took == 1
    # seen red: the error of a width that of the factor, p = 0.95


def test_equal_arms_are_left_to_python():
    bandit, step = learnt(MAKERS["set"]), Counting()
    X = np.repeat(np.random.default_rng(3).standard_normal((1, 4)), 5, axis=0)
    with road(step):
        assert bandit.choose(X).propensity == pytest.approx(0.2)
    assert (step.asked, step.took) == (1, 0)


class Mine(policies.FeaturePerturbation):
    """A user's own, which may see or draw otherwise."""


class Saying:
    """A user's own with a part of a name that the library has too, which may mean anything."""

    needs, rule, draw = frozenset({"mean"}), "mine", views.nothing

    def view(self, model, state, X, *, t):
        return views.means(model, state, X)


class OwnRidge(models.Ridge):
    """Likewise."""

    factors = 3


NEVER = {
    "an own policy": lambda d: dither.Bandit(models.Ridge(), Mine(), dim=d, seed=1),
    "an own policy with a rule": lambda d: dither.Bandit(models.Ridge(), Saying(), dim=d, seed=1),
    "an own model": lambda d: dither.Bandit(OwnRidge(), policies.FeaturePerturbation(), dim=d, seed=1),
    "own slots": lambda d: dither.Bandit(models.Disjoint(OwnRidge(), 6), policies.UCB(), dim=d, seed=1),
    "uncoupled": lambda d: dither.LinFP(dim=d, seed=1, coupled=False),
    "vector": lambda d: dither.LinFP(dim=d, seed=1, form="vector"),
    "points": lambda d: dither.Bandit(models.Ridge(), policies.RandUCB(), dim=d, seed=1),
    "another norm": lambda d: dither.Bandit(models.GLM(), policies.UCB(gram=True), dim=d, seed=1),
    "Thompson sampling": lambda d: dither.LinTS(dim=d, seed=1),
    "a diagonal": lambda d: dither.LinFP(dim=d, seed=1, diagonal=True),
}


@pytest.mark.parametrize("name", NEVER)
def test_what_is_never_taken(name):
    bandit, step = learnt(NEVER[name]), Counting()
    with road(step):
        bandit.choose(np.ones(4) if bandit.slots else np.eye(6, 4))
    assert step.asked == 0
    # seen red: what a class inherits counts


@pytest.mark.parametrize("wishes", [{"values": [1, 2, 3]}, {"minimum": [0.1, 0.1, 0.1]}])
def test_demands_that_are_left_to_python(wishes):
    bandit, step = learnt(MAKERS["set"]), Counting()
    with road(step):
        bandit.choose(np.eye(3, 4), **wishes)
    assert step.asked == 0


BAD = {
    "NaN": np.array([[0.0, 1, 2, math.nan]]),
    "infinity": np.array([[0.0, 1, -math.inf, 2]]),
    "too large": np.full((2, 4), 1e300),
    "another width": np.ones((3, 5)),
    "no arm": np.ones((0, 4)),
    "one number": np.float64(3.0),
    "words": np.array([["a", "b", "c", "d"]]),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused_is_refused_alike_and_draws_nothing(name):
    bandit, said = learnt(MAKERS["set"]), []
    before = streams(bandit)
    for step in (None, compiled.STEP):
        with road(step), pytest.raises(ValueError, match=r"X must|X has") as error:
            bandit.choose(BAD[name])
        said.append(str(error.value))
        assert streams(bandit) == before
    assert said[0] == said[1]


@pytest.mark.parametrize(
    "X",
    [
        np.eye(4, dtype=np.float32),
        np.asfortranarray(np.sin(np.arange(20.0)).reshape(5, 4)),
        np.eye(4, dtype=int),
        np.eye(8)[::2, ::2],
    ],
)
def test_other_arrays_are_as_good(X):
    bandit = learnt(MAKERS["set"])
    compare(bandit, [X, X, X.tolist()])
