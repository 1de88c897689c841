"""What draws that were used again leave in a log: repeated z, and arms whose mean weight is not 1."""

import math

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import dither
from dither import log
from dither.log import bets, check

X = np.eye(5)
RATES = np.array([0.3, 0.25, 0.2, 0.12, 0.28])


def served(tmp_path, worker, *, n=3000, seed=0):
    """A learner saves every 10 requests, and a worker that loads decides."""
    rng = np.random.default_rng(seed)
    learner = dither.GLMFP(dim=5, seed=seed, floor=0.1)
    written = log.Log(bandit=learner, features=False)
    for i in range(n):
        if i % 10 == 0:
            learner.save(tmp_path / "b")
            copy = worker(tmp_path / "b")
        d = copy.choose(X)
        r = float(rng.random() < RATES[d.arm])
        written.reward(written.record(d, arms=list("abcde")).id, r)
        learner.update(X[d.arm], r)
    return written.read()


def test_copies_that_repeat_their_draws_are_found(tmp_path):
    read = served(tmp_path, dither.load)
    assert len(np.unique(read.z)) == 10
    found = read.check()
    assert not found.ok
    (finding,) = [f for f in found.findings if f.kind == "draws"]
    assert finding.count == 2990
    assert "seed=None" in str(finding)
    assert len(found.bets.doubted) >= 2  # seen red: passed
    assert "DISAGREE with 1" in str(found)
    assert not read.usable().report.ok
    parts = [piece.check() for piece in log.batches(read.frame, rows=700)]
    total = sum(parts[1:], parts[0])
    assert_allclose(total.bets.sums, found.bets.sums, rtol=1e-9)
    assert not total.ok


def test_copies_with_streams_of_their_own_are_right(tmp_path):
    read = served(tmp_path, lambda path: dither.load(path, seed=None))
    assert len(np.unique(read.z)) == 3000
    assert read.check().ok
    w = (read.a == 3) / read.p
    ips = w * read.r
    assert abs(ips.mean() - RATES[3]) <= 5 * max(ips.std(), 0.5) / math.sqrt(3000)
    assert read.usable().report.ok


def test_a_seed_at_every_restart_is_found():
    """Ten processes one after the other, each with seed=0 and what was learnt before."""
    rng, history, logs = np.random.default_rng(0), [], []
    for _ in range(10):
        bandit = dither.LinFP(dim=5, seed=0, floor=0.1, lam=1.0)
        for i, r in history:
            bandit.update(X[i], r)
        written = log.Log(bandit=bandit)
        for _ in range(20):
            d = written.decide(X)
            history.append((d.arm, float(rng.random() < RATES[d.arm])))
            written.reward(d.id, history[-1][1])
            bandit.update(X[d.arm], history[-1][1])
        logs.append(written.read())
        assert logs[-1].check().ok
    (finding,) = [f for f in log.read(logs).check().findings if f.kind == "draws"]
    assert finding.count == 180


# Repeats


def table(z, law="continuous", **columns):
    n = len(z)
    rows = {"arm": [0] * n, "propensity": [1.0] * n, "reward": [0.0] * n, "z": z, "K": [1] * n}
    return log.read(pl.DataFrame(rows | ({} if law is None else {"z_law": [law] * n}) | columns))


def kinds(read):
    return [f.kind for f in read.check().findings]


def test_a_repeat_is_a_fault_of_a_continuous_law_alone():
    z = [0.1, 0.2, 0.1, None, None, 0.0, 0.0]
    assert kinds(table(z)) == ["draws"]
    assert table(z).check().findings[0].rows.tolist() == [2]  # seen red: rows without a z, or with the 0 of no estimate
    assert not table(z).check().ok
    assert kinds(table(z, "points")) == []
    assert kinds(table(z, None)) == ["law"]
    assert table(z, None).check().ok
    assert kinds(table(z[1:])) == []


@pytest.mark.parametrize(
    ("name", "law"),
    [("LinFP", "continuous"), ("GLMFP", "continuous"), ("RandLinUCB", "points"), ("LinTS", None), ("Greedy", None)],
)
def test_the_kind_of_law_is_logged(name, law):
    bandit = dither.ALGORITHMS[name](dim=5, seed=0)
    written = log.Log(bandit=bandit)
    for _ in range(60):
        written.decide(X)
    read = written.read()
    assert read.frame["z_law"].to_list() == [law] * 60
    assert [f for f in read.check().findings if f.kind in ("draws", "law")] == []
    assert (len(np.unique(read.z)) < 60) == (name == "RandLinUCB" or name in ("LinTS", "Greedy"))


@pytest.mark.parametrize("form", ["scalar", "vector"])
def test_no_estimate_yet_is_no_repeat(form):
    written = log.Log(bandit=dither.LinFP(dim=5, seed=0, form=form))
    for _ in range(20):
        written.decide(X)
    assert [f.kind for f in written.read().check().findings] == ["missing"]


@pytest.mark.parametrize("n", [10, 10**5, 10**6, 10**7, 10**8, 10**9])
def test_what_chance_repeats_is_allowed(n):
    k, expected = check._by_chance(n), n * n / 2**54
    assert stats.poisson.sf(k, expected) <= check.DELTA
    assert k == 0 or stats.poisson.sf(k - 1, expected) > check.DELTA
    assert (k == 0) == (n <= 10**6)


# Weights


def rows(P, a, **columns):
    P, n = np.asarray(P), len(a)
    p = P[np.arange(n), a]
    return log.read(pl.DataFrame({"arm": a, "propensity": p, "reward": np.zeros(n), "K": [P.shape[1]] * n} | columns))


@pytest.mark.parametrize("seed", range(5))
def test_a_bet_is_fair_in_each_row(seed):
    """The mean over what is shown of what one row does to the wealth: 1, or at most 1 where π may be 0."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(4, 0.3))[None] * 0.92 + 0.02
    J = len(bets.ABOVE)
    for logged in ({"floor": [0.08]}, {"probabilities": P.tolist()}, {}):
        factor = [np.exp(bets.each_arm(rows(P, np.array([a]), **logged)).sums[:, 2:]) for a in range(4)]
        mean = np.tensordot(P[0], factor, axes=1)
        assert_allclose(mean[:, J:], 1, atol=3e-6 / 0.02)
        assert_allclose(mean[:, :J], 1, atol=2e-6)
        assert np.all(mean[:, :J] <= 1)
        assert bool(np.ptp(np.stack(factor)[:, :, J:])) == bool(logged)  # without a floor nobody bets that π > 0
    P = np.array([[0.5, 0.0, 0.5, 0.0]])
    factor = [np.exp(bets.each_arm(rows(P, np.array([a]))).sums[:, 2 : 2 + J]) for a in (0, 2)]
    assert np.all(np.mean(factor, axis=0) <= 1)
    # seen red: the row that is shown as w, not w - 1


def test_a_log_without_fault_is_not_accused():
    """Heavy tails: one arm of 30 with 0.05/30, hardly ever shown. 300 logs, each at most once in 10,000."""
    rng, accused, total = np.random.default_rng(0), 0, bets.EachArm()
    for _ in range(300):
        best = rng.integers(30, size=200)
        P = np.full((200, 30), 0.05 / 30)
        P[np.arange(200), best] += 0.95
        a = np.where(rng.random(200) < 0.05, rng.integers(30, size=200), best)
        found = bets.each_arm(rows(P, a, floor=np.full(200, 0.05)))
        accused += bool(found.doubted)
        total = total.merge(found)
    assert accused == 0
    assert total.doubted == []
    assert total.sums[:, 0].tolist() == [60_000] * 30


@pytest.mark.parametrize("logged", ["floor", "probabilities", "nothing"])
def test_arms_that_are_shown_too_often_or_too_rarely_are_named(logged):
    rng, n = np.random.default_rng(0), 3000
    P = np.tile([0.5, 0.3, 0.1, 0.1], (n, 1))
    a = rng.choice(4, p=[0.56, 0.3, 0.1, 0.04], size=n)
    more = {"floor": {"floor": np.full(n, 0.4)}, "probabilities": {"probabilities": P.tolist()}}.get(logged, {})
    names = np.array(["w", "x", "y", "z"])
    read = rows(P, a, arms=[names.tolist()] * n, **more)
    found = " ".join(bets.each_arm(read).doubted)
    assert "arm 'w' was shown more often" in found
    assert ("arm 'z' was shown less often" in found) == (logged != "nothing")
    assert "'x'" not in found
    assert "'y'" not in found
    order = np.argsort(rng.random((n, 4)), axis=1)  # in any order, by id
    turned = {"arms": names[order].tolist(), "probabilities": np.take_along_axis(P, order, 1).tolist()}
    other = rows(np.take_along_axis(P, order, 1), np.argmax(order == a[:, None], axis=1), **turned)
    own = bets.each_arm(rows(P, a, arms=[names.tolist()] * n, probabilities=P.tolist()))
    assert_allclose(bets.each_arm(other).sums, own.sums, rtol=1e-9)  # seen red: by position
    mixed = read.frame.with_columns(pl.when(pl.int_range(pl.len()) < 10).then(None).otherwise("arms").alias("arms"))
    sums = bets.each_arm(log.read(mixed))
    assert sorted(sums.arms) == ["0", "1", "2", "3", "w", "x", "y", "z"]
    assert sums.sums[:, 0].sum() == 4 * n


def test_blocks_of_rows_add_up(monkeypatch):
    rng, n = np.random.default_rng(0), 100
    P = rng.dirichlet(np.ones(4), size=n)
    a = np.array([rng.choice(4, p=row) for row in P])
    read = rows(P, a, probabilities=P.tolist())
    whole = bets.each_arm(read)
    monkeypatch.setattr(bets, "CELLS", 10)
    assert_allclose(bets.each_arm(read).sums, whole.sums, rtol=1e-9, atol=1e-9)


def test_what_was_left_out_by_its_outcome_is_not_tested():
    P = np.full((4, 2), 0.5)
    read = rows(P, np.array([0, 0, 1, 1]))
    assert bets.each_arm(read).arms == ("0", "1")
    assert bets.each_arm(read.filter(np.array([True, True, False, False]))).arms == ()
    assert bets.each_arm(rows(P, np.array([0, 0, 1, 1]), weight=[1.0, 10.0, 1.0, 1.0])).arms == ()
    assert bets.each_arm(rows(P, np.array([0, 0, 1, 1]), propensity_kind=["estimated"] * 4)).arms == ()
    assert "not checkable" in str(bets.each_arm(rows(P, np.array([0, 0, 1, 1]), propensity_kind=["none"] * 4)))
    used = read.usable()
    assert used.usable().report.bets.arms == ("0", "1")
