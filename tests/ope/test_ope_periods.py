"""The value now, and by period: against estimates of the rows themselves, and in worlds that drift."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from dither import ope

pytestmark = pytest.mark.filterwarnings("ignore::dither.ope.EvaluationWarning")


def drifting(seed, n=1200, slope=0.5, learns=False):
    """Times in [0, 12), two arms, rewards of 0 and 1; the mean of arm 1 rises by `slope` from 0.3: r, t, a, P."""
    rng = np.random.default_rng(seed)
    t = np.sort(12 * rng.random(n))
    share = 0.2 + 0.5 * t / 12 if learns else np.full(n, 0.5)
    P = np.stack([1 - share, share], axis=1)
    a = (rng.random(n) < share).astype(int)
    mean = np.where(a == 1, 0.3 + slope * t / 12, 0.4)
    return (rng.random(n) < mean).astype(float), t, a, P


def test_weights_of_the_recent_past():
    t = np.array([0.0, 1.0, 2.0, 4.0, 4.5])
    assert_allclose(ope.recent(t, half_life=2.0, at=4.0), [0.25, 2**-1.5, 0.5, 1.0, 0.0])  # seen red: 2 for 4.5
    assert_array_equal(ope.recent(t, window=2.5), [0, 0, 0, 1, 1])  # 2.0 is exactly as old: not in it
    assert_allclose(ope.recent(t, half_life=1e-3), [0, 0, 0, 0, 1.0])  # too light to count
    days = np.array(["2026-01-01", "2026-01-02", "2026-01-03"], dtype="datetime64[us]")
    assert_allclose(ope.recent(days, half_life=86400), [0.25, 0.5, 1.0])
    assert_allclose(ope.recent(days, half_life=np.timedelta64(1, "D")), [0.25, 0.5, 1.0])
    assert_allclose(ope.mean_age(t[:4], [1.0, 1, 1, 3]), (4 + 3 + 2 + 0) / 6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "half_life= or window=, one of the two"),
        (dict(half_life=1.0, window=1.0), "one of the two"),
        (dict(half_life=0.0), "half_life must be"),
        (dict(window=-1.0), "window must be"),
    ],
)
def test_what_recent_refuses(given, message):
    with pytest.raises(ValueError, match=message):
        ope.recent([0.0, 1.0], **given)
    with pytest.raises(ValueError, match=r"time must not be missing; it is in row 1"):
        ope.recent([0.0, math.nan], window=1.0)


def test_a_window_is_its_rows():
    r, t, a, P = drifting(0)
    Q, p = np.tile([0.0, 1.0], (1200, 1)), P[np.arange(1200), a]
    near = t > t[-1] - 3.0
    for name in ("ips", "snips"):
        e = getattr(ope, name)(r, a, p, Q, weight=ope.recent(t, window=3.0))
        f = getattr(ope, name)(r[near], a[near], p[near], Q[near])
        assert_allclose([e.value, e.se, e.ess], [f.value, f.se, f.ess], rtol=1e-12)


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("name", ["ips", "snips", "dr"])
def test_the_interval_is_for_the_weighted_mean_of_the_values(name, learns):
    """Given the times, Σ s V(t)/Σ s. 300 logs, with and without a log that learns; and it is not for the value now."""
    logs, held, now = 300, 0, 0
    for seed in range(logs):
        r, t, a, P = drifting(seed, learns=learns)
        Q, p = np.tile([0.0, 1.0], (1200, 1)), P[np.arange(1200), a]
        s = ope.recent(t, half_life=4.0, at=12.0)
        M = () if name != "dr" else (np.full((1200, 2), 0.5),)
        low, high = getattr(ope, name)(r, a, p, Q, *M, weight=s).interval
        held += low <= np.average(0.3 + 0.5 * t / 12, weights=s) <= high
        now += low <= 0.8 <= high
    assert held / logs >= 0.95 - 5 * math.sqrt(0.95 * 0.05 / logs)
    assert now / logs < 0.2  # seen red: weights of 1, which hold the mean of all
    age = ope.mean_age(t, s, at=12.0)
    assert_allclose(np.average(0.3 + 0.5 * t / 12, weights=s) + 0.5 / 12 * age, 0.8, rtol=1e-12)  # the bias, exactly


@pytest.mark.parametrize("name", ["ips", "snips", "dr", "stablevar"])
def test_periods_are_estimates_of_their_rows(name):
    r, t, a, P = drifting(1)
    p, Q, rng = P[np.arange(1200), a], np.tile([0.3, 0.7], (1200, 1)), np.random.default_rng(0)
    M, s, keep = rng.random((1200, 2)), rng.integers(1, 3, 1200).astype(float), rng.random(1200) < 0.9
    made = ope.contributions(name, r, a, p, Q, M, P=P, weight=s, mask=keep)
    found = ope.by_period(ope.estimate(made), np.floor(t / 3))
    assert found.period == (0.0, 1.0, 2.0, 3.0)
    assert found.n.sum() == keep.sum()
    for j in range(4):
        rows = keep & (np.floor(t / 3) == j)
        if name == "stablevar":  # its weights know the rows before, also of earlier periods
            h = made.v[np.floor(t[keep] / 3) == j]
            D = (made.u / made.v)[np.floor(t[keep] / 3) == j]
            assert_allclose(found.value[j], np.average(D, weights=h * s[rows]), rtol=1e-12)
            continue
        e = ope.estimate(ope.contributions(name, *(x[rows] for x in (r, a, p, Q, M)), weight=s[rows]))
        assert_allclose([found.value[j], found.se[j], found.ess[j]], [e.value, e.se, e.ess], rtol=1e-12)
        assert_allclose(found.interval[j], e.interval, rtol=1e-12)
    assert np.all(found.together[:, 0] < found.interval[:, 0])
    pooled = np.average(found.value, weights=found.se**-2)
    x2 = np.sum(((found.value - pooled) / found.se) ** 2)
    assert_allclose(found.p_value, stats.chi2(3).sf(x2), rtol=1e-10)


def test_periods_in_worlds_that_stand_still_and_that_drift():
    """Each interval holds 95 %, all four together 95 %, false alarms of the test 5 %: 400 logs. seen red: J degrees."""
    logs, each, both, alarms, found = 400, 0, 0, 0, 0
    for seed in range(logs):
        for slope in (0.0, 0.5):
            r, t, a, P = drifting(seed, slope=slope, learns=True)
            e = ope.ips(r, a, P[np.arange(1200), a], np.tile([0.0, 1.0], (1200, 1)))
            by = ope.by_period(e, np.floor(t / 3).astype(int))
            if slope:
                found += by.p_value < 0.05
                continue
            inside = [(ends[:, 0] <= 0.3) & (ends[:, 1] >= 0.3) for ends in (by.interval, by.together)]
            each, both, alarms = each + inside[0].mean(), both + inside[1].all(), alarms + (by.p_value < 0.05)
    error = 5 * math.sqrt(0.95 * 0.05 / logs)
    assert abs(each / logs - 0.95) < error
    assert abs(both / logs - 0.95) < error
    assert abs(alarms / logs - 0.05) < error
    assert found / logs > 0.9


def test_what_by_period_refuses():
    r, t, a, P = drifting(0)
    p, Q = P[np.arange(1200), a], np.tile([0.0, 1.0], (1200, 1))
    with pytest.raises(ValueError, match="leave out cluster="):
        ope.by_period(ope.ips(r, a, p, Q, cluster=np.arange(1200) // 2), np.floor(t))
    with pytest.raises(ValueError, match="one label for each row"):
        ope.by_period(ope.ips(r, a, p, Q), np.floor(t[:5]))
    with pytest.raises(ValueError, match="must not be missing"):
        ope.by_period(ope.ips(r, a, p, Q), np.where(t < 1, math.nan, t))
    sums = ope.estimates(ope.sums({"x": ope.contributions("ips", r, a, p, Q)}))["x"]
    with pytest.raises(ValueError, match="made from rows"):
        ope.by_period(sums, np.floor(t))
    assert math.isnan(ope.by_period(ope.ips(r, a, p, Q), np.zeros(1200)).p_value)
