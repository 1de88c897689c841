"""A policy that learns, played against a log; and a log with predictions as an environment for `simulate`."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import envs, log, ope
from dither.bandit.bandit import Decision

THETA = np.array([1.0, -0.5])


class Fixed:
    """Shows arm i with probability q_i, and counts what it was taught."""

    def __init__(self, q, seed=99):
        self.q, self.rng, self.learnt = np.asarray(q), np.random.default_rng(seed), []

    def choose(self, X, mask=None):
        return Decision(int(self.rng.choice(len(self.q), p=self.q)), 1.0, "exact", None)

    def update(self, x, r, **more):
        self.learnt.append((*x, r))


def logged(n, p, *, seed=0, ragged=False):
    rng, p = np.random.default_rng(seed), np.asarray(p)
    K = len(p)
    a, X = rng.choice(K, size=n, p=p), rng.normal(size=(n, K, 2))
    mask = np.ones((n, K), dtype=bool)
    mask[:, -1] = (a == K - 1) | (np.arange(n) % 2 == 0) | (not ragged)
    written = log.Log()
    made = written.record(Decision(a, p[a], "exact", None), X=X, mask=mask)
    for i, id in enumerate(made.id):
        written.reward(id, float(a[i] == 0) + X[i, a[i]] @ THETA)
    return written.read()


def test_rejection_keeps_each_arm_as_often_as_the_policy_shows_it():
    p, q, n = np.array([0.2, 0.5, 0.3]), np.array([0.6, 0.1, 0.3]), 8_000
    read = logged(n, p)
    policy = Fixed(q)
    got = ope.replay(policy, read, seed=1)
    T, rows = got.n, got.contributions.rows.places
    assert n == T + sum(got.left_out.values())
    assert abs(T - 0.2 * n) <= 5 * np.sqrt(n * 0.2 * 0.8)  # kept with probability min p
    share = np.bincount(read.a[rows], minlength=3) / T
    assert np.all(abs(share - q) <= 5 * np.sqrt(q * (1 - q) / T))
    assert abs(got.value - 0.6) <= 5 * got.se  # E[r] = q_0
    assert_array_equal(got.contributions.rows.r, read.r[rows])
    assert_array_equal(policy.learnt, np.c_[read.x, read.r][rows])
    # seen red: the coin left out (shares ∝ q p); the coins from the policy's own stream


def test_a_bandit_learns_on_the_rounds_that_are_kept():
    read = logged(1200, [0.25] * 4, ragged=True)
    bandit = dither.LinFP(dim=2, lam=1.0, seed=0)
    got = ope.replay(bandit, read, seed=0)
    rows = got.contributions.rows.places
    assert bandit.observations == got.n > 200
    twin = dither.LinFP(dim=2, lam=1.0, seed=0)
    twin.update(read.x[rows], read.r[rows])
    assert_allclose(bandit.theta, twin.theta, rtol=1e-8)
    assert got.value > read.r.mean() + 5 * got.se  # it has learnt which arms pay
    again = ope.replay(dither.LinFP(dim=2, lam=1.0, seed=0), read, seed=0)
    assert_array_equal(again.contributions.rows.places, rows)


def test_arms_that_are_not_on_offer_are_masked():
    read, seen = logged(50, [0.25] * 4, ragged=True), []

    class Looks(Fixed):
        def choose(self, X, mask=None):
            seen.append(mask)
            return super().choose(X)

    ope.replay(Looks([0.25] * 4), read, seed=0)
    assert_array_equal(seen, read.mask)  # seen red: no mask


def test_slots():
    bandit = dither.LinFP(dim=2, disjoint=3, seed=0, floor=1.0)
    written = log.Log(bandit=bandit)
    for i in range(300):
        d = written.decide([1.0, i % 2])
        written.reward(d.id, float(d.arm))
    replay = envs.Replay(written.read())
    assert (replay.disjoint, replay.arms, replay.dim) == (True, 3, 2)
    slots = dither.LinFP(dim=2, disjoint=3, lam=1.0, seed=5)
    got = ope.replay(slots, written.read(), seed=0)
    assert slots.observations == got.n > 30


def test_with_predictions_it_is_an_environment():
    read = logged(200, [0.5, 0.25, 0.25])
    M = read.X @ THETA
    env = envs.Replay(read, M=M)
    assert isinstance(env, envs.Environment)
    assert (env.arms, env.dim, env.disjoint) == (3, 2, False)
    got = dither.simulate(env, ["LinFP", "Greedy"], runs=2, rounds=500, seed=0)
    uniform = 500 * np.mean(M.max(axis=1) - M.mean(axis=1))
    assert np.all(got.regret[:, :, -1] < 0.5 * uniform)
    rng = np.random.default_rng(0)
    run, X = env.start(rng), np.empty((200, 3, 2))
    rows = env.fill(run, rng, X)
    assert_array_equal(np.sort(rows), np.arange(200))  # one shuffled pass
    assert_array_equal(X, read.X[rows])
    assert_array_equal(env.means(run, X, rows), M[rows])


def test_what_cannot_be_replayed():
    read = logged(20, [0.5, 0.25, 0.25])
    with pytest.raises(ValueError, match="reward of the shown arm alone: give Replay"):
        dither.simulate(envs.Replay(read), ["LinFP"], runs=1, rounds=5)
    for M, words in (
        (np.zeros((20, 2)), r"M must be \(20, 3\)"),
        (np.full((20, 3), np.nan), "finite"),
    ):
        with pytest.raises(ValueError, match=words):
            envs.Replay(read, M=M)
    with pytest.raises(ValueError, match="same number of arms"):
        envs.Replay(logged(20, [0.5, 0.25, 0.25], ragged=True), M=np.zeros((20, 3)))
    for least in (0.0, 1.5, np.nan, 0.3):  # above the least p the answer would lean
        with pytest.raises(ValueError, match="least must"):
            ope.replay(Fixed([0.2, 0.4, 0.4]), read, least=least)
    with pytest.raises(ValueError, match="has its own a, r, p, weight, mask and at"):
        ope.replay(Fixed([0.2, 0.4, 0.4]), read, read.a)
    for name, value in (("reward", None), ("propensity", 0.0), ("propensity", None)):
        rows = read.frame.to_dict(as_series=False)
        rows[name][7] = value
        with pytest.raises(ValueError, match=rf"1 rows have no valid {name} \(rows 7\)"):
            envs.Replay(log.read(rows))
        with pytest.raises(ValueError, match=r"\(1 row: 7\): mend the log"):
            ope.replay(Fixed([0.2, 0.4, 0.4]), log.read(rows))
    with pytest.raises(ValueError, match="a log with rows"):
        envs.Replay(read.filter(np.zeros(20, dtype=bool)))
    assert "20 rows" in repr(envs.Replay(read))


def test_a_larger_constant_keeps_more_rounds():
    read = logged(2000, [0.1, 0.45, 0.45])
    kept = [ope.replay(Fixed([0.2, 0.4, 0.4]), read, least=least, seed=0).n for least in (0.05, None)]
    assert kept[0] < kept[1]
