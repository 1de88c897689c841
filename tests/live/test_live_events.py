"""Settings that change, a shadow that is promoted, a rollback: events that a replay meets as batches."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dither

X = np.eye(3)
pytestmark = pytest.mark.usefixtures("closing")


def begin(**settings):
    return dither.LinFP(**{"dim": 3, "floor": 0.1, "lam": 1.0, "seed": 0} | settings)


def play(live, n, seed=0):
    rng = np.random.default_rng([n, seed])
    for _ in range(n):
        live.reward(live.choose(X).id, float(np.round(rng.normal(), 3)))


def true(*lives):
    """What was learnt is that of a replay, and each row has the propensity of the bandit that it names."""
    for live in lives:
        assert live.to_bytes() == live.replay(live.batch).to_bytes()
        if live.shadow is not None:
            assert live.to_bytes("shadow") == live.replay(live.batch, of="shadow").to_bytes()
    for row in lives[0].read().frame.to_dicts():
        then = lives[0].replay(row["learnt"])
        p = then.propensities(np.array(row["features"]))[row["arm"]]
        assert_allclose(row["propensity"], p, rtol=0, atol=1e-15)
        assert (row["floor"], row["policy"]) == (then.floor, f"{then.policy} on {then.model}")


def test_a_setting_that_changes_how_it_decides_keeps_what_was_learnt(shared):
    one, two = dither.Live(shared, bandit=begin(), snapshot_batches=3), dither.Live(shared)
    play(one, 5)
    before = one.bandit.theta
    two.change(c=3.0, floor=0.2, author="eve")
    one.choose(X), two.choose(X)
    assert one.read().frame["learnt"].to_list() == [0, 1, 2, 3, 4, 6, 6]
    for live in (one, two):
        assert (live.bandit.policy.c, live.bandit.floor, live.bandit.observations) == (3.0, 0.2, 5)
        assert_allclose(live.bandit.theta, before)
    (event,) = two.events()
    assert (event.number, event.batch, event.author, event.what) == (1, 6, "eve", "change")
    assert event.details["settings"] == {"c": 3.0, "floor": 0.2}
    assert event.details["before"] == {"c": 1.0, "floor": 0.1}
    play(one, 3)
    true(one, two)
