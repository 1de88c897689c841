"""A half_life in `Live`, in a warm start and in a replay of a log: all by the times that the log has."""

from datetime import timedelta

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import log, ope
from ledgers import moment

X = np.eye(3)
HOUR = 3600.0
START = moment(0).timestamp()
pytestmark = pytest.mark.usefixtures("closing")


def begin(name="LinFP", **settings):
    return dither.ALGORITHMS[name](**{"dim": 3, "floor": 0.2, "lam": 1.0, "seed": 0, "half_life": HOUR} | settings)


@pytest.mark.parametrize("name", ["LinFP", "GLMFP", "LinTS"])
def test_live_is_a_bandit_that_is_updated_by_hand_with_the_same_times(home, name):
    live, plain = dither.Live(home, bandit=begin(name)), begin(name)
    waiting = []
    for i in range(12):
        at = 700.0 * i
        plain_now = dither.from_bytes(plain.to_bytes())
        plain_now.advance(START + at)
        want = plain_now.propensities(X, draws=20)
        d = live.choose(X, time=moment(at))
        if plain_now.propensities(X, detail=True, draws=2)[2] == "exact":
            assert d.propensity == pytest.approx(want[d.place], rel=1e-12)
        waiting.append((d, START + at))
        if i % 3:  # the reward of an earlier decision: it counts for less by its age
            d, at = waiting.pop(0)
            r = float(i % 2)
            live.reward(d.id, r, time=moment(800.0 * i))
            plain.update(X[d.place], r, at=at)
    assert_array_equal(live._learner.stands.bandit.theta, plain.theta)
    assert_array_equal(live._learner.stands.bandit.width(X), plain.width(X))
    assert live.replay().to_bytes() == live.to_bytes()
    ids = [waiting[0][0].id, waiting[1][0].id]
    live.reward(ids, [1.0, 0.0])
    plain.update(np.stack([X[one.place] for one, _ in waiting[:2]]), [1.0, 0.0], at=[at for _, at in waiting[:2]])
    assert_array_equal(live._learner.stands.bandit.theta, plain.theta)
    # seen red: the time of the reward; `choose` without `advance`


def test_what_was_learnt_fades_to_the_moment_of_a_decision(home):
    live = dither.Live(home, bandit=begin("Softmax", floor=0.0), probabilities=True)
    d = live.choose(X, time=moment(0))
    live.reward(d.id, 5.0)
    soon = live.choose(X, time=moment(1))
    later = live.choose(X, time=moment(20 * HOUR))
    again = live.choose(X, time=moment(1))  # a later decision leaves nothing behind
    P = live.read().P
    assert P[1][d.place] > 0.8
    assert_allclose(P[2], 1 / 3, atol=0.01)
    assert_array_equal(P[3], P[1])
    for i, (one, at) in enumerate([(soon, 1), (later, 20 * HOUR), (again, 1)]):
        then = live.replay(1)
        then.advance(START + at)
        assert_array_equal(then.propensities(X), P[i + 1])
        assert P[i + 1][one.place] == pytest.approx(one.propensity, rel=1e-12)


def test_slots_and_a_shadow_with_a_clock(shared):
    live = dither.Live(shared, bandit=begin(dim=2, disjoint=2), shadow=begin(dim=2, disjoint=2, half_life=60.0))
    plain, other = begin(dim=2, disjoint=2), begin(dim=2, disjoint=2, half_life=60.0)
    for i in range(8):
        d = live.choose([1.0, i / 8], time=moment(90 * i))
        live.reward(d.id, float(i))
        for one in (plain, other):
            one.update([1.0, i / 8], float(i), arm=d.place, at=START + 90 * i)
    live.close()
    with dither.Live(shared) as again:
        assert_array_equal(again._learner.stands.bandit.theta, plain.theta)
        assert_array_equal(again._learner.stands.shadow.theta, other.theta)
        assert again.replay(of="shadow").to_bytes() == again.to_bytes("shadow")
        again.choose([1.0, 0.0], time=moment(10_000))
        other.advance(START + 10_000)
        assert again.read().matrix("judged")[-1].tolist() == other.propensities([1.0, 0.0]).tolist()


def written(folder, n=60):
    """A log with rewards, and its rows: x, r, and the time in seconds."""
    bandit, rng = begin(half_life=None, floor=1.0), np.random.default_rng(0)
    rows = []
    with log.Log(folder, bandit=bandit) as out:
        for _ in range(n):
            Z = rng.normal(size=(3, 3))
            at = moment(0) + timedelta(microseconds=int(rng.integers(0, 10**11)))
            d = out.decide(Z, time=at)
            r = float(Z[d.arm, 0] + 0.1 * rng.normal())
            out.reward(d.id, r)
            rows.append((Z, d.arm, r, at.timestamp()))
    return log.read(folder), rows


def test_a_warm_start_passes_the_times(tmp_path):
    seen, rows = written(tmp_path / "log")
    warm, plain = begin(), begin()
    assert log.warm_start(warm, seen).used == 60
    plain.update(np.stack([Z[a] for Z, a, _, _ in rows]), [r for *_, r, _ in rows], at=[at for *_, at in rows])
    assert_array_equal(warm.theta, plain.theta)
    assert_array_equal(seen.seconds, [at for *_, at in rows])
    without = {"arm": seen.a, "reward": seen.r, "features": seen.X}
    with pytest.raises(ValueError, match="'time'"):
        log.warm_start(begin(), without)
    timed = without | {"time": [moment(i) for i in range(59)] + [None]}
    with pytest.raises(ValueError, match=r"row 59 has no time.*log the column `time`"):
        log.warm_start(begin(), timed)
    # seen red: the times of a chunk in another order


def test_a_replay_passes_the_times(tmp_path):
    seen, rows = written(tmp_path / "log")
    got, by_hand = begin(seed=4), begin(seed=4)
    found = ope.replay(got, seen, seed=0)
    used, p = [], np.full(60, 1 / 3)
    for i, (Z, a, r, at) in enumerate(rows):
        by_hand.advance(at)
        if by_hand.choose(Z).arm == a:
            by_hand.update(Z[a], r, at=at)
            used.append(i)
    assert found.n == len(used)
    assert_array_equal(got.theta, by_hand.theta)
    arrays = [np.stack([Z for Z, *_ in rows]), [a for _, a, *_ in rows], [r for *_, r, _ in rows], p]
    third = begin(seed=4)
    assert ope.replay(third, *arrays, at=seen.seconds, seed=0).n == len(used)
    assert_array_equal(third.theta, got.theta)
    with pytest.raises(TypeError, match="pass at="):
        ope.replay(begin(), *arrays)
    with pytest.raises(TypeError, match="at is for a bandit whose model has a half_life"):
        ope.replay(begin(half_life=None), *arrays, at=seen.seconds)
    with pytest.raises(ValueError, match="leave them out"):
        ope.replay(begin(), seen, at=seen.seconds)
    # seen red: `replay` without `advance`


def test_settings_with_a_half_life_can_be_chosen_from_a_log(tmp_path):
    seen, _ = written(tmp_path / "log", n=400)
    found = ope.tune(seen, ["LinFP:half_life=100000|1000,lam=1,sigma=1"], floor=0.3)
    assert len(found.tried) == 2
    best = found.best.configure(3, disjoint=None, facts={})[0]
    assert best.half_life == 100_000.0  # nothing changes in this world, so to forget is to lose
    assert found.bandit.model.half_life in (100_000.0, 1000.0)
