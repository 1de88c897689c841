"""`Bandit.grow`: slots that are added while the bandit is live."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither.base import trees
from properties import EXCUSED

SLOTTED = [
    name
    for name, algorithm in dither.ALGORITHMS.items()
    if name != "FP"  # whose model is what the user passes
    and "slots" not in EXCUSED.get(name, {})
    and isinstance(algorithm.configure(2, disjoint=3)[0], dither.models.Disjoint)
]


def taught(bandit, rows, slots):
    for x, r, arm in rows:
        if arm < slots:
            bandit.update(x, r, arm=arm)


def rows(n, slots, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) / 2
    return [(x, float(rng.random() < 0.5), int(arm)) for x, arm in zip(X, rng.integers(0, slots, n), strict=True)]


@pytest.mark.parametrize("name", SLOTTED)
def test_a_bandit_that_grew_is_one_that_was_made_with_as_many_slots(name):
    algorithm = dither.ALGORITHMS[name]
    small, large = (algorithm(dim=3, disjoint=k, seed=0, preset="paper") for k in (2, 5))
    before = rows(150, 2)  # longer than the first room for a history
    taught(small, before, 2)
    taught(large, before, 2)
    small.grow(5)
    assert small.slots == small.model.slots == 5
    after = rows(20, 5, seed=1)
    taught(small, after, 5)
    taught(large, after, 5)
    for one, other in zip(trees.leaves(small.state, "s").items(), trees.leaves(large.state, "s").items(), strict=True):
        assert one[0] == other[0]
        assert_array_equal(one[1], other[1])  # seen red: the new slots first
    x = [0.3, -0.2, 0.5]
    if "mean" in small.model.abilities:
        assert_array_equal(small.mean(x), large.mean(x))
    again = dither.from_bytes(small.to_bytes())
    assert again.slots == 5
    assert again.to_bytes() == small.to_bytes()
    small.choose(x)
    p = [bandit.propensities(x, draws=50) for bandit in (small, large)]
    if small.propensities(x, detail=True, draws=2)[2] == "exact":
        assert_array_equal(*p)


@pytest.mark.parametrize("name", SLOTTED)
def test_with_its_own_scale_it_is_the_same_but_for_rounding(name):
    """What all slots share is summed over them, and λ changes the factors of those there are."""
    small, large = (dither.ALGORITHMS[name](dim=3, disjoint=k, seed=0) for k in (2, 5))
    for bandit in (small, large):
        taught(bandit, rows(150, 2), 2)
    small.grow(5)
    for bandit in (small, large):
        taught(bandit, rows(20, 5, seed=1), 5)
    x = [0.3, -0.2, 0.5]
    for ability in {"mean", "width"} & small.model.abilities:
        assert_allclose(getattr(small, ability)(x), getattr(large, ability)(x), rtol=1e-9)
    if small.model.abilities & {"error_width"}:
        assert_allclose([small.lam], [large.lam], rtol=1e-12)
    if getattr(small.policy, "sigma", 1.0) == "auto":
        assert_allclose(small.sigma, large.sigma, rtol=1e-9)
    # seen red: slots that came later without what all slots know


def test_new_slots_have_learnt_nothing_and_old_ones_nothing_new():
    bandit = dither.LinFP(dim=3, disjoint=2, lam=0.5, preset="paper", seed=0)
    taught(bandit, rows(30, 2), 2)
    theta = bandit.theta
    bandit.grow(4)
    assert_array_equal(bandit.theta[:2], theta)
    assert_array_equal(bandit.theta[2:], 0)
    x = np.array([3.0, 0.0, 4.0])
    assert_allclose(bandit.width(x)[2:], 5 / np.sqrt(0.5))
    bandit.grow(4)
    assert bandit.observations == 30


def test_growing_that_is_refused_changes_nothing():
    bandit = dither.LinFP(dim=3, disjoint=4, seed=0)
    before = bandit.to_bytes()
    for slots in (3, 0, 4.5, True, None):
        with pytest.raises(ValueError, match="slots must be a whole number of at least 4"):
            bandit.grow(slots)
    assert bandit.to_bytes() == before
    with pytest.raises(TypeError, match="no disjoint slots: any number of arms can be on offer"):
        dither.LinFP(dim=3, seed=0).grow(5)
    deep = dither.DeepFP(dim=3, disjoint=2, seed=0)
    with pytest.raises(TypeError, match=r"slots of Network cannot grow, only those of models\.Disjoint: .*disjoint=5"):
        deep.grow(5)


def test_ids_come_and_a_bandit_with_slots_follows():
    f = dither.Features(context={"age": dither.features.Numeric(40, 10)}, form="disjoint")
    shop = dither.Catalogue(f, {"a": None, "b": None})
    bandit = dither.LinFP(features=f, disjoint=shop.slots, seed=0)
    x = shop.encode({"age": 30})
    d = bandit.choose(x, mask=shop.mask(slots=bandit.slots))
    bandit.update(x, 1.0, arm=d.arm)
    learnt = copy.deepcopy(bandit.theta)
    shop.add("c")
    shop.retire("a")
    bandit.grow(shop.slots)
    assert_array_equal(bandit.theta[:2], learnt)
    seen = {shop.id(bandit.choose(x, mask=shop.mask(slots=bandit.slots)).arm) for _ in range(200)}
    assert seen == {"b", "c"}
