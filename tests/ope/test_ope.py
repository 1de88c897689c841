"""Off-policy estimators against hand-computed values, plain loops, and the exact enumeration of a small world."""

import dataclasses
import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from dither import ope

SETTINGS = {"clipped_ips": {"clip": 1.5}, "switch_dr": {"tau": 1.5}, "dros": {"lam": 2.0}, "sgdr": {"lam": 0.3}}
ROWWISE = [name for name, one in ope.ESTIMATORS.items() if one.reads != "past"]  # the others: test_ope_adaptive
PLAIN = ("ips", "snips", "clipped_ips")
HAND = dict(
    r=[1, 0, 0.5, 1],
    a=[0, 1, 1, 2],
    p=[0.5, 0.25, 0.8, 0.1],
    Q=[[0.25, 0.25, 0.5], [0.3, 0.5, 0.2], [0.5, 0.4, 0.1], [0.6, 0.2, 0.2]],
)
M = [[0.8, 0.4, 0.2], [0.6, 0.2, 0.4], [0.5, 0.5, 0.5], [0.1, 0.3, 0.9]]


def call(name, r, a, p, Q, M, **options):
    models = () if name in PLAIN else (M,)
    return getattr(ope, name)(r, a, p, Q, *models, **SETTINGS.get(name, {}), **options)


def log(n, K, seed, floor=0.2):
    """A log with exact propensities: r, a, p, Q, M, P."""
    rng = np.random.default_rng(seed)
    P = floor / K + (1 - floor) * rng.dirichlet(np.ones(K), n)
    a = np.minimum((rng.random(n)[:, None] > np.cumsum(P, axis=1)).sum(axis=1), K - 1)
    return rng.normal(size=n), a, P[np.arange(n), a], rng.dirichlet(np.ones(K), n), rng.normal(size=(n, K)), P


def slowly(name, r, a, p, Q, M):
    """Value and linearised standard error by loops: oracle."""
    n, K = len(r), len(Q[0])
    setting = next(iter(SETTINGS.get(name, {"": 0.0}).values()))
    values, weights, models = [], [], []
    for i in range(n):
        w = Q[i][a[i]] / p[i]
        model = sum(Q[i][k] * M[i][k] for k in range(K))
        left = r[i] - M[i][a[i]]
        used = {
            "clipped_ips": min(w, setting),
            "switch_dr": w if w <= setting else 0.0,
            "dros": setting * w / (w**2 + setting),
            "sgdr": w / (1 - setting + setting * w),
        }.get(name, w)
        weights.append(w)
        models.append(model)
        values.append(
            {"dm": model, "ips": w * r[i], "clipped_ips": used * r[i], "snips": w * r[i]}.get(name, used * left)
        )
    if name in ("snips", "sndr"):
        base = models if name == "sndr" else [0.0] * n
        ratio = sum(values) / sum(weights)
        psi = [base[i] - sum(base) / n + (values[i] - ratio * weights[i]) / (sum(weights) / n) for i in range(n)]
        return sum(base) / n + ratio, math.sqrt(sum(x * x for x in psi)) / n
    if name not in ("dm", "ips", "clipped_ips"):
        values = [v + m for v, m in zip(values, models, strict=True)]
    mean = sum(values) / n
    return mean, math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)


def test_four_rows_by_hand():
    e = ope.ips(**HAND)
    assert_allclose([e.value, e.ess, e.se, e.weight_mean], [0.6875, 2.941176, 0.449247, 1.25], rtol=1e-6)
    assert (e.n, e.weight_max, e.kind, e.left_out) == (4, 2.0, "exact", {})
    assert_allclose(e.interval, [0.6875 - 1.959964 * 0.449247, 0.6875 + 1.959964 * 0.449247], rtol=1e-6)
    s = ope.snips(**HAND)
    assert_allclose([s.value, s.se], [0.55, 0.287837], rtol=2e-6)  # seen red: n - 1 in the linearised error
    assert_allclose(ope.dm(**HAND, M=M).value, 0.39)
    assert_allclose(ope.dr(**HAND, M=M).value, 0.365)
    assert_allclose(ope.switch_dr(**HAND, M=M, tau=1).value, 0.415)
    assert_allclose(ope.switch_dr(**HAND, M=M, tau=0.5).value, 0.415)  # a weight of tau counts; seen red: w < tau
    assert_allclose(ope.clipped_ips(**HAND, clip=1).value, 0.4375)


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.01, math.nan, math.inf])
def test_an_impossible_propensity_is_refused(bad):
    p = [0.5, bad, 0.8, 0.1]
    with pytest.raises(ValueError, match=r"p must lie in \(0, 1\].*row 1 \(1 such row of 4\).*leave_out"):
        ope.ips(HAND["r"], HAND["a"], p, HAND["Q"])
    e = ope.ips(HAND["r"], HAND["a"], p, HAND["Q"], bad="leave_out")
    assert e.left_out == {"p must lie in (0, 1]": 1}
    assert "1 rows left out" in e.notes
    assert_allclose(e.value, (0.5 + 0.25 + 2) / 3)  # seen red: dividing by all rows
    assert ope.faults(HAND["r"], HAND["a"], p, HAND["Q"])["p must lie in (0, 1]"].tolist() == [1]


def test_one_arm_shown_for_ever():
    r, a, p = [1, 0, 1, 1], [0] * 4, [1.0] * 4
    for estimator, value in ((ope.ips, 0.225), (ope.snips, 0.75)):
        with pytest.warns(ope.SupportWarning, match="missing support: about 0.7 .*floor="):
            e = estimator(r, a, p, [[0.3, 0.7]] * 4)
        assert_allclose([e.value, e.weight_mean, e.unsupported, e.weight_test], [value, 0.3, 0.7, 0], atol=1e-15)
    with pytest.warns(ope.SupportWarning, match="missing support"):
        e = ope.ips(r, a, p, [[0.0, 1.0]] * 4)
    assert (e.value, e.ess, e.weight_mean) == (0.0, 0.0, 0.0)
    with pytest.warns(ope.SupportWarning, match="missing support"):
        e = ope.snips(r, a, p, [[0.0, 1.0]] * 4)
    assert math.isnan(e.value)
    assert math.isnan(e.se)


@pytest.mark.parametrize("name", ROWWISE)
@pytest.mark.parametrize(("n", "K"), [(2, 1), (7, 3), (200, 5)])
def test_estimates_are_those_of_plain_loops(name, n, K):
    r, a, p, Q, M, _ = log(n, K, seed=n)
    e = call(name, r, a, p, Q, M)
    value, se = slowly(name, r.tolist(), a.tolist(), p.tolist(), Q.tolist(), M.tolist())
    assert_allclose([e.value, e.se], [value, se], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["ips", "dr"])
def test_the_mean_over_all_logs_is_the_value(name):
    """All logs of two rows over two contexts, three arms and rewards 0 or 1, each with its probability."""
    mu, P = np.array([[0.2, 0.9, 0.5], [0.7, 0.1, 0.4]]), np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]])
    Q, M = np.array([[0.1, 0.1, 0.8], [0.9, 0.05, 0.05]]), np.array([[0.3, -1.0, 2.0], [5.0, 0.2, 0.1]])
    row = [
        (x, k, r, 0.5 * P[x, k] * (mu[x, k] if r else 1 - mu[x, k]))
        for x, k, r in itertools.product(range(2), range(3), range(2))
    ]
    total, mean, square, variance = 0.0, 0.0, 0.0, 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ope.EvaluationWarning)  # of two rows the weights may be far from 1
        for one, two in itertools.product(row, row):
            x, k, r = (np.array([one[i], two[i]]) for i in range(3))
            e = call(name, r, k, P[x, k], Q[x], M[x])
            chance = one[3] * two[3]
            total, mean = total + chance, mean + chance * e.value
            square, variance = square + chance * e.value**2, variance + chance * e.se**2
    assert_allclose(total, 1)
    assert_allclose(mean, np.mean(np.sum(Q * mu, axis=1)), rtol=1e-13)  # seen red: P of the next row
    assert_allclose(variance, square - mean**2, rtol=1e-12)  # se² is unbiased too


@given(st.integers(0, 10**6), st.floats(-3, 3), st.floats(0.1, 10))
def test_rewards_in_other_units(seed, shift, scale):
    r, a, p, Q, M, _ = log(12, 3, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ope.EvaluationWarning)
        for name in ("snips", "sndr", "switch_dr", "dros"):
            e, f = call(name, r, a, p, Q, M), call(name, scale * r + shift, a, p, Q, scale * M + shift)
            assert_allclose([f.value, f.se], [scale * e.value + shift, scale * e.se], rtol=1e-9, atol=1e-9)


def test_the_logging_policy_judged_by_its_own_log():
    r, a, p, _, M, P = log(50, 4, seed=3)
    for name in ("ips", "snips"):
        e = call(name, r, a, p, P, M, P=P)
        assert_allclose([e.value, e.ess, e.weight_mean, e.weight_max], [r.mean(), 50, 1, 1], rtol=1e-12)
        assert (e.weight_test, e.unsupported) == (1.0, 0.0)


def test_limits_of_the_settings():
    r, a, p, Q, M, _ = log(100, 3, seed=5)
    ips, dr, dm = ope.ips(r, a, p, Q), ope.dr(r, a, p, Q, M), ope.dm(r, a, p, Q, M)
    assert_allclose(ope.clipped_ips(r, a, p, Q, clip=1e6).value, ips.value)
    assert_allclose(ope.switch_dr(r, a, p, Q, M, tau=1e6).value, dr.value)
    assert_allclose(ope.switch_dr(r, a, p, Q, M, tau=0).value, dm.value)
    assert_allclose(ope.dros(r, a, p, Q, M, lam=1e15).value, dr.value)
    assert_allclose(ope.dros(r, a, p, Q, M, lam=0).value, dm.value)
    assert_allclose(ope.sgdr(r, a, p, Q, M, lam=0).value, dr.value)
    assert_allclose(ope.dr(r, a, p, Q, 0 * M).value, ips.value)


def test_slope_takes_the_narrowest_that_agrees_with_all_wider():
    def at(value, half):
        return dataclasses.replace(ope.ips(**HAND), value=value, interval=(value - half, value + half))

    wide, middle, narrow, wrong = at(0.0, 1.0), at(0.5, 0.5), at(1.0, 0.2), at(9.0, 0.1)
    assert ope.slope([narrow, wrong, wide, middle]) is narrow  # whatever their order
    assert ope.slope([wrong, wide]) is wide
    stopped = ope.slope([at(0.0, 1.0), at(3.5, 0.7), at(0.1, 0.1)])  # [-2, 2] and [2.1, 4.9] have no point in common,
    assert stopped.value == 0.0  # and what comes after is not looked at  # seen red: half-widths once instead of twice
    assert ope.slope([at(0.0, 1.0), at(3.5, 0.8), at(2.0, 0.1)]).value == 2.0


def test_a_list_of_settings_is_slopes_choice():
    r, a, p, Q, M, _ = log(300, 4, seed=8)
    clips = [0.5, 1, 2, 1e3]
    one = ope.clipped_ips(r, a, p, Q, clip=clips)
    assert one.value == ope.slope([ope.clipped_ips(r, a, p, Q, clip=c) for c in clips]).value
    assert one.value in [ope.clipped_ips(r, a, p, Q, clip=c).value for c in clips]
    with pytest.raises(ValueError, match="clip must be a number or a sequence"):
        ope.clipped_ips(r, a, p, Q, clip=[])
    with pytest.raises(ValueError, match=r"lam must lie in \[0, 1\]"):
        ope.sgdr(r, a, p, Q, M, lam=2)


def test_paired_differences():
    r, a, p, Q, M, _ = log(400, 4, seed=2)
    rows = ope.contributions("dr", r, a, p, Q, M).b - ope.contributions("ips", r, a, p, Q).b
    d = ope.compare(ope.dr(r, a, p, Q, M), ope.ips(r, a, p, Q))
    assert_allclose([d.value, d.se], [rows.mean(), rows.std(ddof=1) / 20], rtol=1e-12)
    same = ope.compare(ope.ips(r, a, p, Q), ope.ips(r, a, p, Q))
    assert (same.value, same.se, same.interval, same.p_value) == (0.0, 0.0, (0.0, 0.0), 1.0)
    with pytest.raises(ValueError, match="same rows"):
        ope.compare(ope.ips(r, a, p, Q), ope.ips(r[1:], a[1:], p[1:], Q[1:]))


@pytest.mark.parametrize("name", ROWWISE)
def test_clusters_are_one_row_each(name):
    """Rows doubled and clustered by origin say no more than the rows; clusters of one row change nothing."""
    r, a, p, Q, M, _ = log(40, 3, seed=4)
    once = call(name, r, a, p, Q, M)
    alone = call(name, r, a, p, Q, M, cluster=[f"u{i}" for i in range(40)])
    assert_allclose([alone.value, alone.se], [once.value, once.se], rtol=1e-12)
    two = [np.concatenate([x, x]) for x in (r, a, p, Q, M)]
    twice = call(name, *two, cluster=np.tile(np.arange(40), 2))
    assert_allclose([twice.value, twice.se], [once.value, once.se], rtol=1e-12)  # seen red: divisor rows - 1


def test_monte_carlo_propensities_widen_by_the_delta_method():
    r, a, p, Q, M, _ = log(60, 3, seed=6)
    p_se = np.linspace(0, 0.05, 60)
    for name in set(ROWWISE) - {"dm", "switch_dr"}:
        plain = call(name, r, a, p, Q, M)
        wide = call(name, r, a, p, Q, M, kind="monte_carlo", p_se=p_se)
        slopes = []  # ∂V̂/∂p_i by central differences: oracle
        for i in range(60):
            h = np.zeros(60)
            h[i] = 1e-6
            up, down = (call(name, r, a, p + sign * h, Q, M).value for sign in (1, -1))
            slopes.append((up - down) / 2e-6)
        extra = np.sum((np.array(slopes) * p_se) ** 2)
        assert_allclose(wide.se**2, plain.se**2 + extra, rtol=1e-6, err_msg=name)
        assert wide.value == plain.value
        assert wide.kind == "monte_carlo"
    d = ope.compare(call("ips", r, a, p, Q, M, p_se=p_se), call("ips", r, a, p, Q, M, p_se=p_se))
    assert d.se == 0  # the same error in both


def test_kinds_of_propensity():
    with pytest.raises(ValueError, match=r"kind 'none' at row 2 \(1 of 4 rows\).*propensities_from"):
        ope.ips(**HAND, kind=["exact", "exact", "none", "exact"])
    with pytest.raises(ValueError, match="kind 'none' at row 0"):
        ope.ips(**HAND, kind="none")
    with pytest.raises(ValueError, match="needs p_se="):
        ope.ips(**HAND, kind="monte_carlo")
    with pytest.raises(LookupError, match="did you mean 'exact'"):
        ope.ips(**HAND, kind="exakt")
    with pytest.raises(ValueError, match=r"p_se must be finite and not negative, got -1\.0 at row 3"):
        ope.ips(**HAND, kind="monte_carlo", p_se=[0, 0, 0, -1.0])
    e = ope.ips(**HAND, kind=["exact", "monte_carlo", "estimated", "exact"], p_se=[math.nan, 0.1, 0.0, math.nan])
    assert e.kind == "estimated"
    assert any("estimated" in note for note in e.notes)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (dict(a=[0, 1, 3, 2]), "a must be a whole number from 0 to 2; got 3.0 at row 2"),
        (dict(a=[0, 1, 0.5, -1]), r"a must be a whole number .* at row 2 \(2 such rows of 4\)"),
        (dict(r=[1, math.nan, 0, 0]), "r must be finite .* row 1"),
        (dict(Q=[[0.5, 0.5, 0.5]] * 4), "Q must hold probabilities that sum to 1 .* row 0"),
        (dict(Q=[[1.5, -0.5, 0]] * 4), "Q must hold probabilities"),
        (dict(Q=[[math.nan, 0.5, 0.5]] * 4), "Q must hold probabilities"),
        (dict(Q=[0.3, 0.3, 0.4]), r"Q must be \(n, K\)"),
        (dict(p=[0.5, 0.5]), r"p must have shape \(4,\).*got \(2,\)"),
        (dict(p=[0.5, 0.25, 0.8, 1e-120]), "q/p must be below 1e100; got 1e-120 at row 3"),
        (dict(mask=[True, False]), "mask must be 4 booleans"),
        (dict(mask=[False] * 4), "no row is left of 4; 4: mask"),
        (dict(bad="drop"), "bad must be 'refuse' or 'leave_out'"),
        (dict(P=[[0.0, 0.5, 0.5]] * 4), "P must hold probabilities, above 0 for the arm shown"),
        (dict(cluster=[1, 2]), "cluster must have shape"),
        (dict(time=[1, 2]), "time must have shape"),
        (dict(level=1.0), "level must lie in"),
    ],
)
def test_bad_logs_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        ope.ips(**{**HAND, **changed})


def test_names_that_do_not_exist():
    with pytest.raises(TypeError, match="no option 'cluster_by': did you mean 'cluster'"):
        ope.ips(**HAND, cluster_by=[1, 2, 3, 4])
    with pytest.raises(LookupError, match="did you mean 'bootstrap'"):
        ope.ips(**HAND, interval="bootstrapped")
    with pytest.raises(LookupError, match="did you mean 'snips'"):
        ope.contributions("snip", **HAND)
    with pytest.raises(ValueError, match=r"dr needs M.*cross_fit"):
        ope.contributions("dr", **HAND)


def test_rows_left_out_are_counted_by_reason():
    r, a, p, Q, M, _ = log(30, 3, seed=9)
    keep = np.arange(30) >= 4
    masked, cut = ope.dr(r, a, p, Q, M, mask=keep), ope.dr(r[4:], a[4:], p[4:], Q[4:], M[4:])
    assert (masked.value, masked.se, masked.n, masked.left_out) == (cut.value, cut.se, 26, {"mask": 4})
    r[5], p[6], p[2] = math.nan, 0.0, 0.0  # row 2 is masked: it counts once
    both = ope.dr(r, a, p, Q, M, mask=keep, bad="leave_out", cluster=np.arange(30) % 7, time=np.arange(30))
    assert both.n == 24
    assert sorted(both.left_out.values()) == [1, 1, 4]


def test_inputs_stay_untouched_and_may_be_lists_or_read_only():
    arrays = [np.array(x) for x in log(20, 3, seed=1)[:5]]
    for x in arrays:
        x.setflags(write=False)
    for name in ROWWISE:
        assert call(name, *arrays).value == call(name, *[x.tolist() for x in arrays]).value


def test_support_by_the_logging_probabilities():
    n = 400
    P, Q = np.tile([0.5, 0.5, 0.0], (n, 1)), np.tile([0.5, 0.25, 0.25], (n, 1))
    a = np.arange(n) % 2
    with pytest.warns(ope.SupportWarning, match="about 0.25 .*by P"):
        e = ope.ips(np.ones(n), a, P[np.arange(n), a], Q, P=P)
    assert e.unsupported == 0.25
    with pytest.warns(ope.SupportWarning, match="do not average 1: 2 "):
        ope.ips(np.ones(n), a, np.full(n, 0.25), np.tile([0.5, 0.5], (n, 1)))


def test_heavy_weights_warn_and_name_the_cure():
    n = 1000
    p = np.full(n, 0.9)
    p[:5] = 0.0005  # five rows of weight 200
    a = np.zeros(n, dtype=int)
    a[5:] = 1
    Q = np.full((n, 2), [0.1, 0.9])
    with pytest.warns(ope.WeightWarning, match=r"clipped_ips.*floor="):
        e = ope.ips(np.ones(n), a, p, Q)
    assert e.ess < 30


def test_drift_is_tested_over_time_alone():
    rng = np.random.default_rng(0)
    n, p, Q = 500, np.full(500, 0.5), np.full((500, 2), 0.5)
    a, noise = rng.integers(0, 2, n), rng.normal(size=n)
    steady = ope.ips(noise, a, p, Q, time=np.arange(n))
    assert steady.drift > 0.01
    assert math.isnan(ope.ips(noise, a, p, Q).drift)
    shuffled = rng.permutation(n)
    r = noise + (np.arange(n) > 250)
    with pytest.warns(ope.DriftWarning, match="mask="):
        e = ope.ips(r[shuffled], a, p, Q, time=shuffled)
    assert e.drift < 1e-10


def test_the_drift_test_keeps_its_level():
    n, logs, rng = 400, 2000, np.random.default_rng(1)
    from dither.ope.contributions import cusum

    x = rng.normal(size=(logs, n))
    p = np.array([cusum(row - row.mean()) for row in x])
    rate = np.mean(p < 0.05)
    assert 0.02 < rate < 0.05 + 5 * math.sqrt(0.05 * 0.95 / logs)  # a path seen at n points: a little below


def test_what_an_estimate_prints():
    text = str(ope.ips(**HAND))
    assert "ips 0.6875 ± 0.45" in text
    assert "4 rows, 2.9 effective, mean weight 1.25" in text
