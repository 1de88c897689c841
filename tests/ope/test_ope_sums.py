"""Sums over parts of a log give what the whole log gives in memory."""

import functools
import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from test_ope import HAND, ROWWISE, SETTINGS, log

from dither import ope


def policies(r, a, p, Q, M, **options):
    """All estimators of Q, and IPS of the uniform policy."""
    made = {
        name: ope.contributions(
            name, r, a, p, Q, M, setting=next(iter(SETTINGS.get(name, {"": None}).values())), **options
        )
        for name in ROWWISE
    }
    return made | {"uniform": ope.contributions("ips", r, a, p, np.full(Q.shape, 1 / Q.shape[1]), **options)}


def by_parts(arrays, cuts, **options):
    parts = [
        ope.sums(policies(*(x[i:j] for x in arrays), **{k: v[i:j] for k, v in options.items()}))
        for i, j in itertools.pairwise(cuts)
    ]
    return functools.reduce(ope.merge, parts)


def agree(found, whole):
    for field in ("value", "se", "ess", "weight_mean", "weight_max", "unsupported", "n"):
        assert_allclose(getattr(found, field), getattr(whole, field), rtol=1e-12, atol=1e-14, err_msg=field)
    assert_allclose(found.interval, whole.interval, rtol=1e-12, atol=1e-13)
    assert (found.method, found.kind) == (whole.method, whole.kind)


@pytest.mark.filterwarnings("ignore::dither.ope.EvaluationWarning")
@pytest.mark.parametrize("how", ["rows", "clusters", "monte carlo", "known support"])
def test_parts_add_up_to_the_whole(how):
    *arrays, P = log(500, 4, seed=11)
    group = np.sort(np.random.default_rng(0).integers(0, 60, 500))
    options = {
        "rows": {},
        "clusters": dict(cluster=group),
        "monte carlo": dict(kind=np.full(500, "monte_carlo"), p_se=np.linspace(0, 0.03, 500)),
        "known support": dict(P=P),
    }[how]
    cuts = [0, *np.searchsorted(group, [1, 5, 40]).tolist(), 500]  # no cluster is cut
    total, whole = by_parts(arrays, cuts, **options), policies(*arrays, **options)
    inside = {name: ope.estimate(made) for name, made in whole.items()}
    for name, found in ope.estimates(total).items():
        agree(found, inside[name])
    for name, found in ope.differences(total, "dr").items():
        paired = ope.compare(inside[name], inside["dr"])
        assert_allclose([found.value, found.se], [paired.value, paired.se], rtol=1e-9, atol=1e-13)
        # seen red: without the cross terms of the errors of p; coefficients of one part


@given(st.integers(0, 10**6), st.lists(st.integers(1, 39), max_size=6))
def test_any_cut_and_any_order(seed, cuts):
    *arrays, _ = log(40, 3, seed)
    cuts = sorted({0, *cuts, 40})
    parts = [ope.sums({"ips": ope.contributions("ips", *(x[i:j] for x in arrays[:4])),
                       "sndr": ope.contributions("sndr", *(x[i:j] for x in arrays))})
             for i, j in itertools.pairwise(cuts)]  # fmt: skip
    one, other = functools.reduce(ope.merge, parts), functools.reduce(ope.merge, parts[::-1])
    for name in ("ips", "sndr"):
        whole = ope.estimate(ope.contributions(name, *arrays[:4], arrays[4] if name == "sndr" else None), warn=False)
        agree(ope.estimates(one, warn=False)[name], whole)
        agree(ope.estimates(other, warn=False)[name], whole)


def test_large_means_do_not_cost_digits():
    r, a, p, Q, M, _ = log(300, 3, seed=1)
    r, M = 1e8 + r, 1e8 + M  # the spread is 1e-8 of the mean
    found = ope.estimates(by_parts((r, a, p, Q, M), [0, 100, 300]), warn=False)["dr"]
    assert_allclose(found.se, ope.dr(r, a, p, Q, M).se, rtol=1e-6)  # seen red: sums of squares about 0


def test_bernstein_from_sums():
    r, a, p, Q, M, _ = log(200, 3, seed=1)
    r, M = np.clip(r, 0, 1), np.clip(M, 0, 1)
    bounds = dict(weight_max=20.0, reward_range=(0, 1))
    made = dict(a=ope.contributions("ips", r, a, p, Q), b=ope.contributions("dr", r, a, p, Q, M))
    found = ope.estimates(ope.sums(made), interval="bernstein", **bounds)
    assert_allclose(found["a"].interval, ope.ips(r, a, p, Q, interval="bernstein", **bounds).interval)
    assert_allclose(found["b"].interval, ope.dr(r, a, p, Q, M, interval="bernstein", **bounds).interval)
    with pytest.raises(ValueError, match="reward_range"):
        ope.estimates(ope.sums(dict(a=ope.contributions("ips", r, a, p, Q))), interval="bernstein")


def test_sums_say_what_does_not_fit():
    made = ope.sums({"new": ope.contributions("ips", **HAND)})
    with pytest.raises(ValueError, match="same policies and estimators"):
        ope.merge(made, ope.sums({"old": ope.contributions("ips", **HAND)}))
    with pytest.raises(ValueError, match="at least one policy"):
        ope.sums({})
    with pytest.raises(LookupError, match="did you mean 'new'"):
        ope.differences(made, "newer")
    with pytest.raises(ValueError, match="need the numbers of the rows"):
        ope.estimates(made, interval="bootstrap")
    with pytest.raises(ValueError, match="keep=True"):
        ope.estimates(made, interval="betting", weight_max=9.0, reward_range=(0, 4))
    with pytest.raises(TypeError, match="no option 'weight_mx': did you mean 'weight_max'"):  # seen red: not looked at
        ope.estimates(made, weight_mx=9.0)
    numbered = ope.sums({"new": ope.contributions("ips", **HAND)}, numbers=np.arange(4))
    with pytest.raises(ValueError, match="blocks are known of one"):
        ope.merge(made, numbered)
    short = {name: part[1:] for name, part in HAND.items()}
    with pytest.raises(ValueError, match=r"same rows.*'b'"):
        ope.sums({"a": ope.contributions("ips", **HAND), "b": ope.contributions("ips", **short)})
    with pytest.raises(ValueError, match="made from rows"):
        ope.compare(*ope.estimates(made).values(), ope.ips(**HAND))


def test_left_out_rows_add_up_and_warnings_name_the_policy():
    parts = [ope.contributions("ips", [1, 2], [0, 0], [1.0, p], [[0.3, 0.7]] * 2, bad="leave_out") for p in (0, 1.0)]
    total = ope.merge(*(ope.sums({"new": part}) for part in parts))
    assert total.left_out == {"p must lie in (0, 1]": 1}
    with pytest.warns(ope.SupportWarning, match="new: missing support"):
        e = ope.estimates(total)["new"]
    assert (e.n, e.left_out) == (3, total.left_out)
    assert e.contributions is None


def test_ten_million_rows_need_no_more_than_a_few():
    """What is kept does not depend on the rows: the size of the sums after 1 and after 100 parts."""
    *arrays, _ = log(50, 3, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        part = ope.sums(policies(*arrays))
    total = functools.reduce(ope.merge, [part] * 100)
    assert total.n == 5000
    assert sum(np.size(x) for x in total) == sum(np.size(x) for x in part)


BOUNDS = dict(weight_max=20.0, reward_range=(0.0, 1.0), row_weight_max=4.0)


def thinned(n=400, seed=2):
    r, a, p, Q, _, _ = log(n, 3, seed)
    s = np.random.default_rng(seed).choice([1.0, 4.0], n)
    return (r > 0).astype(float), a, p, Q, s


@pytest.mark.parametrize("interval", ["normal", "asymptotic", "bootstrap", "bca", "bernstein", "betting"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore::dither.ope.EvaluationWarning")
def test_sums_know_every_interval(interval, weighted):
    r, a, p, Q, s = thinned()
    options = {"weight": s} if weighted else {}

    def part(i, j):
        given = {name: x[i:j] for name, x in options.items()}
        made = ope.contributions("ips", r[i:j], a[i:j], p[i:j], Q[i:j], **given)
        return ope.sums({"new": made}, numbers=np.arange(i, j), keep=True)

    total = functools.reduce(ope.merge, [part(0, 7), part(7, 250), part(250, 400)])
    how = dict(interval=interval, seed=5, resamples=300, **BOUNDS)
    found, whole = ope.estimates(total, **how)["new"], ope.ips(r, a, p, Q, time=np.arange(400), **options, **how)
    assert_allclose(found.interval, whole.interval, rtol=1e-9)
    assert_allclose(found.drift, whole.drift, rtol=1e-9)
    # seen red: the parts of `kept` in another order; blocks without the weights of rows


def test_sums_know_the_exact_interval():
    a = np.arange(400) % 2
    r, p, Q = (np.arange(400) % 7 == 0) * 1.0, np.full(400, 0.5), np.tile([1.0, 0.0], (400, 1))
    parts = [ope.sums({"new": ope.contributions("snips", r[k], a[k], p[k], Q[k])}) for k in (slice(90), slice(90, 400))]
    found = ope.estimates(ope.merge(*parts), interval="clopper_pearson", warn=False)["new"]
    assert_allclose(found.interval, ope.snips(r, a, p, Q, interval="clopper_pearson").interval, rtol=1e-12)
    mixed = ope.sums({"new": ope.contributions("clipped_ips", r, a, p, Q, setting=1.5)})
    with pytest.raises(ValueError, match="is of the value itself: take ips or snips, not clipped_ips"):
        ope.estimates(mixed, interval="clopper_pearson", warn=False)
    # seen red: the interval of clipped weights


@pytest.mark.filterwarnings("ignore::dither.ope.EvaluationWarning")
def test_clusters_that_stand_in_several_parts():
    """Monte Carlo propensities too: their errors are paired in a difference, as in memory. seen red: added up."""
    r, a, p, Q, M, _ = log(300, 3, seed=4)
    user, slip = np.arange(300) % 17, dict(kind=np.full(300, "monte_carlo"), p_se=np.linspace(0, 0.03, 300))

    def made(k, **more):
        given = {name: x[k] for name, x in (slip | more).items()}
        return {"a": ope.contributions("dr", r[k], a[k], p[k], Q[k], M[k], **given),
                "b": ope.contributions("snips", r[k], a[k], p[k], Q[k], **given)}  # fmt: skip

    parts = [ope.sums(made(k), cluster=user[k]) for k in (slice(100), slice(100, 300))]
    found, whole = ope.merge(*parts), {name: ope.estimate(one) for name, one in made(slice(None), cluster=user).items()}
    for name, one in ope.estimates(found).items():
        assert_allclose([one.value, one.se, *one.interval], [whole[name].value, whole[name].se, *whole[name].interval])
    gap, pair = ope.differences(found, "b")["a"], ope.compare(whole["a"], whole["b"])
    assert_allclose([gap.value, gap.se, *gap.interval], [pair.value, pair.se, *pair.interval], rtol=1e-9)
    draws = ope.resample(found, seed=1, times=200)
    drawn = ope.differences(found, "b", draws=draws)["a"].interval
    assert_allclose(drawn, np.quantile(draws[:, 0] - draws[:, 1], [0.025, 0.975]))
