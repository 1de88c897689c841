"""What a log says twice must agree, labels must tell rows apart, and one row has no error."""

import datetime
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from test_ope import HAND, ROWWISE, SETTINGS, M, call, log

from dither import ope

NONE_SHOWN = [[0.0, 0.0, 1.0]] * 3 + [[1.0, 0.0, 0.0]]  # a policy without a row of weight in L1


@pytest.mark.filterwarnings("ignore::dither.ope.EvaluationWarning")
@pytest.mark.parametrize("options", [{}, dict(kind="monte_carlo", p_se=0.01)])
def test_a_policy_without_weight_leaves_the_others_their_error(options):
    made = {
        "x": ope.contributions("ips", **HAND, **options),
        "bad": ope.contributions("snips", **(HAND | dict(Q=NONE_SHOWN)), **options),
        "y": ope.contributions("snips", **HAND, **options),
    }
    found = ope.estimates(ope.sums(made))
    if not options:
        assert_allclose(found["x"].se, 0.449247, rtol=1e-6)  # seen red: 0 × NaN of the other policy
    for name in ("x", "y"):
        assert_allclose(found[name].se, ope.estimate(made[name]).se, rtol=1e-12)
    assert math.isnan(found["bad"].value)
    assert math.isnan(found["bad"].se)
    gaps = ope.differences(ope.sums(made), "x")
    assert_allclose(gaps["y"].se, ope.compare(ope.estimate(made["y"]), ope.estimate(made["x"])).se, rtol=1e-12)
    assert math.isnan(gaps["bad"].se)


NAN, DAY = math.nan, np.datetime64("2024-01-01")


@pytest.mark.parametrize("name", ["cluster", "time"])
@pytest.mark.parametrize(
    "values",
    [
        [1.0, NAN, 2.0, NAN],
        np.array([1.0, NAN, 2.0, NAN]),
        ["a", None, "b", None],
        np.array(["a", None, "b", NAN], dtype=object),
        np.array([DAY, "NaT", DAY, "NaT"], dtype="datetime64[D]"),
        [DAY, np.datetime64("NaT"), DAY, None],
        pd.Series([1, pd.NA, 2, pd.NA], dtype="Int64"),
        pd.Series(["a", None, "b", None]),
    ],
)
def test_missing_labels_are_refused(name, values):  # seen red: taken as one more label, or a bare TypeError
    with pytest.raises(ValueError, match=rf"{name} must not be missing; got .* at row 1 \(2 such rows of 4\).*mask="):
        ope.ips(**HAND, **{name: values})


@pytest.mark.parametrize("name", ["cluster", "time"])
@pytest.mark.parametrize(
    "values", [["1", 1, 2, 3], np.array([1, "1", 2, 3], dtype=object), [True, 1, 2, 3], [b"1", "1", "2", "3"]]
)
def test_labels_of_mixed_types_are_refused(name, values):  # seen red: '1' and 1 became one cluster
    with pytest.raises(ValueError, match=rf"{name} must hold values of one type; got .* at row 1 .* at row 0.*str"):
        ope.ips(**HAND, **{name: values})


def test_labels_that_no_order_tells_apart_are_refused():
    with pytest.raises(ValueError, match="cluster must hold labels that sort"):  # seen red
        ope.ips(**HAND, cluster=[1j, 2j, 3j, 4j])


def test_a_missing_label_in_a_row_not_used_does_no_harm():
    e = ope.ips(**HAND, cluster=[NAN, 1, 1, 2], time=[None, 3, 2, 1], mask=[False, True, True, True])
    assert e.n == 3  # seen red: TypeError
    with pytest.raises(ValueError, match=r"cluster must not be missing; got nan at row 3 \(1 such row of 4\)"):
        ope.ips(**HAND, cluster=[NAN, 1, 1, NAN], mask=[False, True, True, True])


@pytest.mark.parametrize(
    "values", [["a", "b", "b", "c"], [1, 2.5, 2.5, 7], [datetime.date(2024, 1, k) for k in (1, 2, 2, 3)]]
)
def test_labels_of_one_type_are_what_they_were(values):
    assert ope.ips(**HAND, cluster=values).se == ope.ips(**HAND, cluster=[0, 1, 1, 2]).se
    assert ope.ips(**HAND, time=values).drift == ope.ips(**HAND, time=[0, 1, 1, 2]).drift


def test_labels_of_cross_fit_are_checked_too():
    with pytest.raises(ValueError, match="cluster must hold values of one type"):  # seen red: merged
        ope.cross_fit([1.0, 2, 3, 4], [0, 1, 0, 1], np.ones((4, 1)), arms=2, regressor=None, cluster=["1", 1, 2, 3])


ONE = [[1.0], [0], [0.5], [[0.4, 0.6]]]


@pytest.mark.filterwarnings("ignore::dither.ope.EvaluationWarning")
@pytest.mark.parametrize("interval", ["normal", "bootstrap", "bca"])
@pytest.mark.parametrize("name", ROWWISE)
def test_one_row_or_one_cluster_has_no_interval(name, interval):  # seen red: of no width, and 0/0 in the jackknife
    models = [[0.3, 0.6]]
    for e in (
        call(name, *ONE, models, interval=interval),
        call(name, *[np.repeat(x, 3, axis=0) for x in (*ONE, models)], interval=interval, cluster=["u"] * 3),
    ):
        assert math.isfinite(e.value)
        assert np.isnan([e.se, *e.interval]).all()
    part = ope.contributions(name, *ONE, models, setting=next(iter(SETTINGS.get(name, {"": None}).values())))
    assert math.isnan(ope.estimates(ope.sums({"x": part}))["x"].se)


@pytest.mark.filterwarnings("ignore::dither.ope.EvaluationWarning")
@pytest.mark.parametrize("interval", ["normal", "bootstrap"])
def test_one_row_of_an_adaptive_log_has_no_interval(interval):
    e = ope.adaptive([1.0], [0], [[0.5, 0.5]], [[0.4, 0.6]], interval=interval)
    assert np.isnan([e.se, *e.interval]).all()  # seen red: 0


@pytest.mark.filterwarnings("ignore::dither.ope.EvaluationWarning")
@pytest.mark.parametrize("interval", ["bootstrap", "bca"])
def test_no_weight_has_no_resampled_interval(interval):
    e = ope.snips(**(HAND | dict(Q=NONE_SHOWN)), interval=interval)
    assert np.isnan([e.value, *e.interval]).all()  # seen red: the quantile of no value


def test_probabilities_that_contradict_p_are_refused():
    r, a, p, Q, _, P = log(50, 3, seed=2)
    assert ope.ips(r, a, p, Q, P=P * (1 + 5e-7)).value == ope.ips(r, a, p, Q).value
    assert ope.ips(r, a, p, Q, P=P.astype(np.float32)).n == 50
    wrong = P.copy()
    wrong[[7, 9], a[[7, 9]]] *= 1 + 3e-6
    with pytest.raises(ValueError, match=r"P and p must agree.*got \[.*\] at row 7 \(2 such rows of 50\)"):
        ope.ips(r, a, p, Q, P=wrong)  # seen red: accepted
    e = ope.ips(r, a, p, Q, P=wrong, bad="leave_out")
    assert (e.n, list(e.left_out.values())) == (48, [2])
    kind = np.where(np.isin(np.arange(50), [7, 9]), "estimated", "exact")
    assert ope.ips(r, a, p, Q, P=wrong, kind=kind).n == 50  # p may have been raised to a least value


@pytest.mark.parametrize("name", ROWWISE)
def test_propensities_may_be_passed_as_p(name):
    r, a, p, Q, M, P = log(50, 3, seed=2)
    made = ope.Propensities(p, P, "estimated", 0)
    e, f = call(name, r, a, made, Q, M), call(name, r, a, p, Q, M)
    assert (e.value, e.se, e.kind) == (f.value, f.se, "estimated")  # seen red: "p must be a rectangular array"
    assert call(name, r, a, made, Q, M, kind="exact").kind == "exact"
    assert ope.faults(r, a, made, Q) == {}


def test_estimated_propensities_in_the_others():
    r, a, p, Q, _, P = log(50, 3, seed=2)
    made = ope.Propensities(p, P, "estimated", 0)
    with pytest.raises(ValueError, match=r"adaptive needs exact .*'estimated'"):
        ope.adaptive(r, a, made, Q)

    class First:
        def choose(self, X):
            return type("Shown", (), {"arm": 0})

        def update(self, x, r):
            pass

    e, f = (ope.replay(First(), np.ones((50, 3, 1)), a, r, one, seed=0) for one in (made, p))
    assert (e.value, e.kind, f.kind) == (f.value, "estimated", "exact")  # seen red: TypeError


def test_what_a_difference_prints():
    d = ope.compare(ope.ips(**HAND), ope.dr(**HAND, M=M))
    low, high = d.interval
    assert str(d) == (
        f"difference {d.value:.6g} ± {d.se:.2g}, 95% normal interval [{low:.6g}, {high:.6g}]; "
        f"P = {d.p_value:.2g} of 'no difference', 4 rows"
    )  # seen red: the bare dataclass; "of none"


def test_one_row_warns_of_nothing_but_the_log():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ope.EvaluationWarning)
        assert math.isnan(ope.compare(ope.snips(*ONE), ope.ips(*ONE)).se)


@pytest.mark.parametrize("weights", ["stablevar", "minvar"])
def test_adaptive_weights_of_rounds_without_support_are_finite(weights):
    """Twenty rounds that could not show the arm. seen red: 0^(-1/2), and NaN for all."""
    P = np.array([[1.0, 0.0]] * 20 + [[0.5, 0.5]] * 80)
    a = np.r_[np.zeros(20, dtype=int), np.arange(80) % 2]
    with pytest.warns(ope.SupportWarning):
        found = ope.adaptive(np.ones(100), a, P, np.array([[0.0, 1.0]] * 100), weights=weights)
    assert np.isfinite([found.value, found.se]).all()


def test_betting_says_so_where_it_refuses_every_mean():
    """Rewards that jump from 0 to 1 have no constant mean. seen red: the whole range, as of a log that says nothing."""
    r, a, p, Q = np.repeat([0.0, 1.0], 1000), np.zeros(2000, dtype=int), np.ones(2000), np.ones((2000, 1))
    found = ope.ips(r, a, p, Q, interval="betting", weight_max=1, reward_range=(0, 1))
    assert np.isnan(found.interval).all()
