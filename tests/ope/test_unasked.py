"""What is taken where nobody asks, on the log of a policy that learns: anytime intervals of ips and its differences."""

import dataclasses
import math

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from test_ope_adaptive import MU, all_logs, learner

from dither import GLMFP, Live, ope
from dither import log as logs
from dither.ope import bounded

pytestmark = pytest.mark.filterwarnings("ignore::dither.ope.EvaluationWarning")
NEW = np.array([[0.9, 0.1], [0.3, 0.7]])
OTHER = np.array([[0.5, 0.5], [0.0, 1.0]])


def conditional(x, P, table):
    """The conditional mean of each row's reward under a policy, given the past and the context, (T,)."""
    shown = P if table is None else table[x]
    return np.sum(shown * MU[x], axis=1)


def pair(x, a, r, P, one, other, side):
    """The terms of a difference, and what each must be on average."""
    w, w0 = (np.ones(len(a)) if Q is None else Q[x, a] / P[np.arange(len(a)), a] for Q in (one, other))
    terms = (w * r + w0 * (1 - r)) / 2 if side else (w0 * r + w * (1 - r)) / 2
    gap = conditional(x, P, one) - conditional(x, P, other)
    return terms, (1 + np.mean(gap) * (1 if side else -1)) / 2


@pytest.mark.parametrize(("one", "other"), [(NEW, None), (NEW, OTHER), (None, OTHER)])
@pytest.mark.parametrize("side", [True, False])
def test_wealth_at_the_wandering_average_is_at_most_1(one, other, side):
    """Over all logs of a learner, whose value moves with what it has learnt: so Ville's inequality holds.

    Seen red with a stake of its own for each row.
    """
    total = 0.0
    for chance, x, a, r, P in all_logs():
        terms, m = pair(x, a, r, P, one, other, side)
        total += chance * math.exp(bounded.Wealth.of(terms, None).log(m))
    assert 0.9 < total <= 1 + 1e-12


def test_wealth_is_the_slow_formula():
    """Seen red with a stake of its own for each row."""
    rng = np.random.default_rng(0)
    x, g = rng.exponential(2.0, 40), rng.uniform(0.2, 1.0, 40)
    for weights in (None, g):
        each = np.ones(40) if weights is None else weights
        for m in (0.0, 0.3, 1.0):
            total = 0.0
            for stake in bounded.STAKES:
                wealth, sums, count = 1.0, 0.5, 1.0
                for value, one in zip(x, each, strict=True):
                    centre = min(sums / count, 1.0)
                    wealth *= (1 + stake * one * (value - centre)) * math.exp(stake * one * (centre - m))
                    sums, count = sums + one * value, count + one
                total += wealth / len(bounded.STAKES)
            assert_allclose(bounded.Wealth.of(x, weights).log(m), math.log(total), rtol=1e-9)


def test_the_interval_and_the_p_value_of_a_difference_agree():
    """The interval at level 1 - P has 0 at an end. Seen red with one side's wealth alone."""
    x, a, r, P = learner(3, 1000, floor=0.3)
    w = np.eye(2)[1 - np.argmax(MU, axis=1)][x, a] / P[np.arange(len(a)), a]  # the worst arm of each context
    terms = (w * r, w), (r, np.ones(len(r)))
    _, p = bounded.difference(*terms, None, (0.0, 1.0), 0.95, more=0.0)
    assert 1e-5 < p < 0.9
    ends, _ = bounded.difference(*terms, None, (0.0, 1.0), 1 - p, more=0.0)
    assert min(abs(end) for end in ends) < 1e-9
    wider, _ = bounded.difference(*terms, None, (0.0, 1.0), 1 - p, more=0.1)
    assert_allclose(wider, (ends[0] - 0.1, ends[1] + 0.1))
    scaled, again = bounded.difference(
        ((2 * r - 1) * w, w), (2 * r - 1, np.ones(len(r))), None, (-1.0, 1.0), 0.95, more=0.0
    )
    assert_allclose(again, p)
    assert_allclose(scaled, 2 * np.array(bounded.difference(*terms, None, (0.0, 1.0), 0.95, more=0.0)[0]))


def test_nothing_differs_from_itself():
    """What is common to both cancels. Of two values apart the interval would be ±0.2."""
    x, a, r, P = learner(1)
    w = NEW[x, a] / P[np.arange(len(a)), a]
    (low, high), p = bounded.difference((w * r, w), (w * r, w), None, (0.0, 1.0), 0.95, more=0.0)
    even, _ = bounded.difference((r, np.ones(400)), (r, np.ones(400)), None, (0.0, 1.0), 0.95, more=0.0)
    assert low < 0 < high
    assert p == 1
    assert even[0] == -even[1]
    assert even[1] < 0.04


def test_rows_and_sums_have_one_difference():
    """Seen red with the terms of one policy for both."""
    x, a, r, P = learner(2)
    p, how = P[np.arange(len(a)), a], {"interval": "anytime", "reward_range": (0, 1)}
    made = {name: ope.contributions("ips", r, a, p, Q[x]) for name, Q in (("new", NEW), ("other", OTHER))}
    direct = ope.compare(*(ope.estimate(one) for one in made.values()), **how)
    parts = [
        ope.sums(
            {n: ope.contributions("ips", r[s], a[s], p[s], Q[x[s]]) for n, Q in (("new", NEW), ("other", OTHER))},
            keep=True,
        )
        for s in (slice(0, 150), slice(150, 400))
    ]
    gap = ope.differences(ope.merge(*parts), "other", **how)["new"]
    assert_allclose((gap.value, *gap.interval, gap.p_value), (direct.value, *direct.interval, direct.p_value))
    assert direct.interval_method == "anytime"
    assert "95% anytime interval" in str(direct)
    with pytest.raises(ValueError, match="reward_range="):
        ope.compare(*(ope.estimate(one) for one in made.values()), interval="anytime")
    snips = ope.estimate(ope.contributions("snips", r, a, p, NEW[x]))
    with pytest.raises(ValueError, match="take ips, not snips"):
        ope.compare(snips, ope.estimate(made["new"]), **how)
    with pytest.raises(LookupError, match="interval of a difference"):
        ope.compare(*(ope.estimate(one) for one in made.values()), interval="betting")


# What `evaluate` gives without options


def table(seed=0, *, learnt=True, model="GLM(link='logit')", n=400):
    """The log of a bandit that learns, as `Log` writes it."""
    x, a, r, P = learner(seed, n)
    columns = dict(arm=a, K=np.full(n, 2), propensity=P[np.arange(n), a], reward=r, user=np.arange(n) // 2)
    mark = np.arange(n) if learnt else np.zeros(n, dtype=int)
    more = dict(learnt=mark, policy=[f"EpsGreedy(eps=0.05) on {model}"] * n)
    return pl.DataFrame(columns | more), x, a, r, P


@pytest.mark.parametrize("held", ["frame", "file"])
def test_what_holds_is_given_and_the_narrow_one_beside_it(tmp_path, held):
    """Seen red with `normal` for the log of a policy that learnt."""
    frame, _, a, r, P = table()
    frame.write_parquet(tmp_path / "log.parquet")
    source = frame if held == "frame" else tmp_path / "log.parquet"
    found = ope.evaluate(source, ["arm:1", "uniform"])
    p, how = P[np.arange(400), a], {"interval": "anytime", "reward_range": (0, 1)}
    Q = {"arm:1": np.tile([0.0, 1.0], (400, 1)), "uniform": np.full((400, 2), 0.5)}
    assert found.estimators == ("ips", "snips")
    for name, table_ in Q.items():
        safe = ope.ips(r, a, p, table_, **how)
        assert_array_equal(found.estimates[name, "ips"].interval, safe.interval)
        ran = ope.estimate(ope.contributions("ips", r, 0 * a, np.ones(400), np.ones((400, 1))))
        gap = ope.compare(safe, ran, **how)
        assert_allclose(found.gap(name, "ips").interval, gap.interval, rtol=1e-9)
        narrow = ope.snips(r, a, p, table_)
        assert_allclose(found.estimates[name, "snips"].interval, narrow.interval)
        assert found.estimates[name, "snips"].interval_method == "normal"
    against = ope.compare(*(ope.ips(r, a, p, Q[name]) for name in ("uniform", "arm:1")), **how)
    assert_allclose(found.gap("uniform", "ips", "arm:1").interval, against.interval, rtol=1e-9)
    (said,) = [note for note in found.notes() if "learnt while it wrote" in note]
    assert "anytime intervals, for rewards from 0 to 1" in said
    assert "The normal ones of snips beside them are narrower, and cover too rarely there" in said


def test_a_policy_that_did_not_learn_has_normal_intervals():
    """Seen red with one number in `learnt` taken for two."""
    found = ope.evaluate(table(learnt=False)[0], ["arm:1"])
    assert found.estimators == ("snips", "ips")
    assert found.estimates["arm:1", "ips"].interval_method.startswith("normal")
    assert not any("learnt while" in note for note in found.notes())


def test_what_a_user_chooses_stands():
    """And the note says what would hold. Seen red with the choice of a user passed over."""
    frame = table()[0]
    normal = ope.evaluate(frame, ["arm:1"], interval="normal")
    assert normal.estimators == ("snips", "ips")
    chosen = ope.evaluate(frame, ["arm:1"], ["snips"])
    assert chosen.estimates["arm:1", "snips"].interval_method.startswith("normal")
    first = ope.evaluate(frame, ["arm:1"], ["ips"])
    assert first.estimates["arm:1", "ips"].interval_method.startswith("normal")
    for one in (normal, chosen, first):
        assert any("--interval anytime" in note for note in one.notes())
    users = ope.evaluate(frame, ["arm:1"], cluster="user")
    assert users.estimates["arm:1", "ips"].interval_method.startswith("normal")
    assert any("cover too rarely" in note for note in users.notes())


def test_where_no_range_is_known_it_is_asked_for(dither, tmp_path):
    """In one sentence that names the option. Seen red with normal intervals for all."""
    frame = table(model="Ridge(reward_range=None)")[0]
    with pytest.raises(ValueError, match=r"say it with reward_range=\(low, high\), or take interval='normal'"):
        ope.evaluate(frame, ["arm:1"])
    wide = ope.evaluate(frame, ["arm:1"], reward_range=(-1, 2))
    assert wide.estimates["arm:1", "ips"].interval_method == "anytime"
    told = ope.evaluate(table(model="Ridge(reward_range=(0.0, 2.0))")[0], ["arm:1"])
    assert told.how.reward_range == (0.0, 2.0)
    rows = logs.read(frame)
    mine = ope.evaluate(dataclasses.replace(rows, reward_range=(0.0, 3.0)), ["arm:1"])
    assert mine.how.reward_range == (0.0, 3.0)
    over = ope.evaluate(dataclasses.replace(rows, reward_range=(0.0, 3.0)), ["arm:1"], reward_range=(0, 1))
    assert over.how.reward_range == (0, 1)
    frame.write_parquet(tmp_path / "log.parquet")
    code, _, said = dither("evaluate", tmp_path / "log.parquet", "--policy", "arm:1")
    said = " ".join(said.split())
    assert code == 2
    assert "--reward-range LOW HIGH" in said
    assert "--interval normal" in said


def test_a_live_home_is_judged_without_options(tmp_path):
    """The rewards of a logistic link lie between 0 and 1. Seen red with the range of the log left out."""
    rng = np.random.default_rng(0)
    with Live(tmp_path / "home.db", bandit=GLMFP(dim=2, floor=0.2, seed=0)) as home:
        for X in rng.normal(size=(300, 3, 2)):
            d = home.choose(X)
            home.reward(d.id, float(rng.random() < 0.5))
        found = ope.evaluate(home.read(), ["uniform"])
    assert found.estimates["uniform", "ips"].interval_method == "anytime"
    assert found.estimates["logging", "mean"].interval_method == "anytime"
    assert found.gap("uniform", "ips").interval_method == "anytime"


def test_coverage_on_a_learners_logs():
    """Values and differences of two policies and of what ran, in 200 logs: at least 95 %, to five standard errors.

    Seen red with normal intervals.
    """
    names, hits = ("value", "gap", "ran"), []
    for seed in range(200):
        x, a, r, P = learner(1000 + seed, n=200)
        p, one = P[np.arange(200), a], np.tile([1.0, 0.0], (200, 1))
        how = {"interval": "anytime", "reward_range": (0, 1)}
        e = ope.ips(r, a, p, one, **how)
        ran = ope.estimate(ope.contributions("ips", r, 0 * a, np.ones(200), np.ones((200, 1))))
        mean = float(np.mean(np.sum(P * MU[x], axis=1)))
        value = float(np.mean(MU[:, 0]))
        gap = ope.compare(e, ran, **how).interval
        base = bounded.wandering(r, np.ones(200), None, (0.0, 1.0), 0.95, more=0.0)
        hits.append(
            [e.interval[0] <= value <= e.interval[1], gap[0] <= value - mean <= gap[1], base[0] <= mean <= base[1]]
        )
    share = np.mean(hits, axis=0)
    assert np.all(share >= 0.95 - 5 * math.sqrt(0.05 * 0.95 / 200)), dict(zip(names, share, strict=True))


def test_a_foreign_table_whose_policy_changed_is_not_refused():
    """Its rows alone tell it, and it may have seen more than the log has. With a range, what holds is given.

    Seen red with a refusal of every log that changed.
    """
    frame, x, *_ = table()
    features = [[[1.0, float(c)], [0.0, 1.0 + c]] for c in x.tolist()]
    foreign = frame.drop("learnt", "policy").with_columns(features=pl.Series(features))
    found = ope.evaluate(foreign, ["arm:1"])
    assert found.changes.rows > 0
    assert found.estimators == ("snips", "ips")
    assert any("changed while it ran" in note for note in found.notes())
    safe = ope.evaluate(foreign, ["arm:1"], reward_range=(0, 1))
    assert safe.estimates["arm:1", "ips"].interval_method == "anytime"
