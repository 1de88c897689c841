"""Late rewards: exact sums over all outcomes of a tiny log, slow Kaplan-Meier, a world whose delays tell the reward."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dither import ope

pytestmark = pytest.mark.filterwarnings("ignore::dither.ope.EvaluationWarning")
H = 3.0  # the horizon
LAW = {  # arm -> [(chance, reward, delay)]: quick small rewards, slow large ones, none, and one after the horizon
    0: [(0.3, 1.0, 0.5), (0.2, 4.0, 2.5), (0.4, 0.0, math.nan), (0.1, 9.0, 3.5)],
    1: [(0.5, 2.0, 1.0), (0.1, 5.0, 3.0), (0.4, 0.0, math.nan)],
}


def value(arm, default=0.0):
    """The mean reward of an arm, of what comes within the horizon."""
    return sum(chance * (r if delay <= H else default) for chance, r, delay in LAW[arm])


def outcomes(decided, p):
    """All logs of these decisions: chance, arms, rewards, times of the rewards."""
    one = [(p[k] * chance, k, r, delay) for k in (0, 1) for chance, r, delay in LAW[k]]
    for rows in itertools.product(one, repeat=len(decided)):
        chance, a, r, delay = (np.array(x) for x in zip(*rows, strict=True))
        yield float(np.prod(chance)), a.astype(int), r, decided + delay


@pytest.mark.parametrize("default", [0.0, 1.5])
@pytest.mark.parametrize("weight", [None, np.array([1.0, 3.0, 2.0])])
def test_arrived_rewards_are_unbiased_over_all_logs(default, weight):
    """seen red: G of ages above d, not at least d; G unweighted; a reward after the horizon counted."""
    decided, p, Q = np.array([0.0, 1.2, 3.4]), np.array([0.4, 0.6]), np.array([0.7, 0.3])
    now = 4.0  # the ages: 4.0, 2.8, 0.6
    total = 0.0
    for chance, a, r, came in outcomes(decided, p):
        made = ope.arrived(r, decided, came, now=now, horizon=H, default=default, weight=weight)
        total += chance * np.average(Q[a] / p[a] * made, weights=weight)
    assert_allclose(total, 0.7 * value(0, default) + 0.3 * value(1, default), rtol=1e-12)


def test_what_is_settled():
    decided, came = np.array([0.0, 0.5, 1.0, 3.9, 0.2]), np.array([2.0, math.nan, 4.0, 4.0, 3.5])
    r = np.array([5.0, 7.0, 8.0, 9.0, 6.0])
    found = ope.settled(r, decided, came, now=4.0, horizon=3.0, default=-1.0)
    assert_array_equal(found, [5.0, -1.0, 8.0, math.nan, -1.0])  # seen red: 8.0, which came when it passed, left out
    days = np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[us]")
    none = np.array(["2026-01-01T06", "NaT"], dtype="datetime64[us]")
    found = ope.settled([2.0, 3.0], days, none, now=np.datetime64("2026-01-02T12"), horizon=86400)
    assert_array_equal(found, [2.0, math.nan])
    found = ope.settled([2.0, 3.0], days, none, now=np.datetime64("2026-01-02T12"), horizon=np.timedelta64(12, "h"))
    assert_array_equal(found, [2.0, 0.0])


def test_a_reward_that_came_after_now_has_not_come():
    found = ope.arrived([1.0, 1.0], [0.0, 3.0], [1.0, 9.0], now=4.0, horizon=2.0)
    assert_allclose(found, [1.0, 0.0])


def slow_kaplan_meier(delay, age, at, weight):
    """Over the ages one after the other: of those at risk, the share that got its reward."""
    left = 1.0
    for t in sorted({d for d, c in zip(delay, age, strict=True) if d <= c and d <= at}):
        risk = sum(s for d, c, s in zip(delay, age, weight, strict=True) if min(d, c) >= t)
        left *= 1 - sum(s for d, c, s in zip(delay, age, weight, strict=True) if d == t and d <= c) / risk
    return 1 - left


@pytest.mark.parametrize("weighted", [False, True])
def test_delays_are_the_slow_product(weighted):
    rng = np.random.default_rng(0)
    n = 60
    decided = np.round(10 * rng.random(n), 1)
    delay = np.where(rng.random(n) < 0.6, np.round(rng.exponential(2.0, n), 1), math.inf)
    weight = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    came = np.where(np.isfinite(delay), decided + delay, math.nan)
    found = ope.delays(decided, came, now=10.0, weight=weight if weighted else None)
    delay, age = came - decided, 10.0 - decided  # as floats of the same operations
    delay = np.where(np.isnan(delay), math.inf, delay)
    for at in (0.0, 0.5, 1.0, 3.0, 8.0, 20.0):
        assert_allclose(found.within(at), slow_kaplan_meier(delay, age, at, weight), atol=1e-12)
    # seen red: those who go at t not at risk at t


def test_arrived_and_delays_agree_on_how_many_come():
    """Of rewards of 1 the mean is the share that comes within the horizon: two estimates of it, near each other."""
    rng = np.random.default_rng(1)
    n = 20_000
    decided = 10 * rng.random(n)
    came = decided + np.where(rng.random(n) < 0.5, rng.exponential(2.0, n), math.nan)
    share = 0.5 * (1 - math.exp(-3 / 2))
    mean = np.mean(ope.arrived(np.ones(n), decided, came, now=10.0, horizon=3.0))
    se = math.sqrt(share / n) * 1.3  # 1/G is at most 1/0.7
    assert abs(mean - share) < 5 * se
    assert abs(float(ope.delays(decided, came, now=10.0).within(3.0)) - share) < 5 * se


def world(seed, n=2000):
    """A log read at t = 10: clicks come within a tenth, purchases worth 5 after 1 to 3, and arm 1 sells more."""
    rng = np.random.default_rng(seed)
    decided, a = np.sort(10 * rng.random(n)), (rng.random(n) < 0.3).astype(int)
    kind = rng.random(n)
    sells = np.array([0.05, 0.15])[a]
    r = np.where(kind < sells, 5.0, np.where(kind < sells + 0.3, 1.0, 0.0))
    came = decided + np.where(r == 5, 1 + 2 * rng.random(n), np.where(r == 1, 0.1 * rng.random(n), math.nan))
    came = np.where(came <= 10, came, math.nan)
    return np.where(np.isnan(came), math.nan, r), decided, came, a, np.where(a == 1, 0.3, 0.7)


def test_late_rewards_in_a_world_that_stands_still():
    """The value of arm 1 is 0.15 × 5 + 0.3 = 1.05. 300 logs: settled and arrived hold it, the two quick ways do not."""
    logs, truth, Q = 300, 1.05, np.tile([0.0, 1.0], (2000, 1))
    found = {"settled": [], "arrived": [], "0": [], "left out": []}
    for seed in range(logs):
        r, decided, came, a, p = world(seed)
        settled = ope.settled(r, decided, came, now=10.0, horizon=3.0)
        found["settled"].append(ope.ips(settled, a, p, Q, mask=np.isfinite(settled)))
        found["arrived"].append(ope.ips(ope.arrived(r, decided, came, now=10.0, horizon=3.0), a, p, Q))
        found["0"].append(ope.ips(np.nan_to_num(r), a, p, Q))
        found["left out"].append(ope.ips(np.nan_to_num(r), a, p, Q, mask=np.isfinite(r)))
    mean = {name: np.mean([e.value for e in es]) for name, es in found.items()}
    se = {name: np.std([e.value for e in es]) / math.sqrt(logs) for name, es in found.items()}
    covered = {name: np.mean([e.interval[0] <= truth <= e.interval[1] for e in es]) for name, es in found.items()}
    for name in ("settled", "arrived"):
        assert abs(mean[name] - truth) < 5 * se[name], name
        assert covered[name] >= 0.95 - 5 * math.sqrt(0.95 * 0.05 / logs), name
    assert mean["0"] < truth - 10 * se["0"]  # purchases on their way count as none
    assert mean["left out"] > truth + 10 * se["left out"]  # of those with a reward only
    width = {name: np.mean([e.interval[1] - e.interval[0] for e in es]) for name, es in found.items()}
    assert width["arrived"] < width["settled"]  # it uses the young rows too


def test_bounds_hold_whatever_is_missing():
    """What is missing is drawn by the reward itself, the worst case. seen red: the ends of one estimate for both."""
    logs, missed, held = 200, 0, 0
    for seed in range(logs):
        rng = np.random.default_rng(seed)
        a = rng.integers(0, 2, 400)
        r = (rng.random(400) < np.where(a == 1, 0.6, 0.3)).astype(float)
        gone = rng.random(400) < np.where(r == 1, 0.3, 0.0)
        seen, Q = np.where(gone, math.nan, r), np.tile([0.0, 1.0], (400, 1))
        found = ope.bounds("ips", seen, a, np.full(400, 0.5), Q, reward_range=(0, 1))
        missed += not found.interval[0] <= 0.6 <= found.interval[1]
        held += found.low.value <= ope.ips(r, a, np.full(400, 0.5), Q).value <= found.high.value
        assert found.missing == gone.sum()
    assert missed / logs <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / logs)
    assert held == logs


@pytest.mark.parametrize("name", ["ips", "snips", "dr", "sndr", "dros"])
def test_bounds_are_the_least_and_the_largest_value(name):
    rng = np.random.default_rng(3)
    r, a, p = rng.random(8), rng.integers(0, 2, 8), np.full(8, 0.5)
    Q, M = np.tile([0.4, 0.6], (8, 1)), rng.random((8, 2))
    r[[1, 4, 6]] = math.nan
    setting = 2.0 if name == "dros" else None
    values = []
    for filled in itertools.product((0.0, 0.5, 1.0), repeat=3):
        full = r.copy()
        full[[1, 4, 6]] = filled
        values.append(ope.contributions(name, full, a, p, Q, M, setting=setting).value())
    found = ope.bounds(name, r, a, p, Q, M, reward_range=(0, 1), setting=setting)
    assert_allclose([found.low.value, found.high.value], [min(values), max(values)], rtol=1e-12)
    assert "3 of 8 rewards are missing" in str(found)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (dict(came=[1.0, 0.5]), "cannot come before its decision; in row 1"),
        (dict(now=0.5), "decided must be a time, and at most now; row 1"),
        (dict(r=[math.nan, 1.0]), "r must be a finite number where a reward came; row 0"),
        (dict(horizon=0), "horizon"),
        (dict(horizon=50.0), "no row is as old as the horizon of 50: the oldest is 4 old"),
        (dict(came=[1.0]), "one number for each decision"),
    ],
)
def test_what_arrived_refuses(changed, message):
    sound = dict(r=[1.0, 1.0], decided=[0.0, 1.0], came=[1.0, math.nan], now=4.0, horizon=2.0)
    given = sound | changed
    with pytest.raises(ValueError, match=message):
        ope.arrived(given["r"], given["decided"], given["came"], now=given["now"], horizon=given["horizon"])


def test_what_bounds_refuses():
    with pytest.raises(ValueError, match="is no bound: rewards go from 0 to 2"):
        ope.bounds("ips", [0.0, 2.0], [0, 1], [0.5, 0.5], np.full((2, 2), 0.5), reward_range=(0, 1))
