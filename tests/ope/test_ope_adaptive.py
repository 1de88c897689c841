"""Logs of a policy that learns: exact sums over all logs of a tiny world, slow formulas, and what `evaluate` says."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import log as logs
from dither import ope
from dither.ope import bounded
from dither.ope.weighing import weighed

pytestmark = pytest.mark.filterwarnings("ignore::dither.ope.EvaluationWarning")
MU = np.array([[0.2, 0.7], [0.6, 0.5]])  # (contexts, arms): means of rewards 0 and 1
Q = np.array([[0.9, 0.1], [0.3, 0.7]])  # the policy that is judged
VALUE = float(np.mean(np.sum(Q * MU, axis=1)))
T = 3


def learns(history, x):
    """Probabilities of two arms in context x, after (x, a, r) of earlier rounds: towards the arm that paid."""
    score = sum((r - 0.5) * (1 if a == 1 else -1) * (2 if x == y else 1) for y, a, r in history)
    first = 0.05 + 0.9 / (1 + math.exp(1.5 * score))
    return np.array([first, 1 - first])


def all_logs():
    """Every log of T rounds: its probability, x, a, r (T,), and P (T, 2)."""
    for rounds in itertools.product(itertools.product(range(2), range(2), range(2)), repeat=T):
        chance, P = 1.0, []
        for t, (x, a, r) in enumerate(rounds):
            P.append(learns(rounds[:t], x))
            chance *= 0.5 * P[t][a] * (MU[x, a] if r else 1 - MU[x, a])
        x, a, r = np.array(rounds).T
        yield chance, x, a, r.astype(float), np.array(P)


def of_the_past(x, a, r):
    """M (T, 2): the mean of the earlier rewards of each arm, and of one reward of 1/2."""
    M = np.full((T, 2), 0.5)
    for t, k in itertools.product(range(T), range(2)):
        earlier = [0.5, *(r[s] for s in range(t) if a[s] == k)]
        M[t, k] = np.mean(earlier)
    return M


def of_all(x, a, r):
    """The same of all rows but its own: it knows what came later."""
    M = np.full((T, 2), 0.5)
    for t, k in itertools.product(range(T), range(2)):
        M[t, k] = np.mean([0.5, *(r[s] for s in range(T) if a[s] == k and s != t)])
    return M


def over_all_logs(f):
    return sum(chance * f(x, a, r, P) for chance, x, a, r, P in all_logs())


def terms(name, x, a, r, P, M=None):
    return ope.contributions(name, r, a, P[np.arange(T), a], Q[x], M, P=P)


def test_the_chances_of_all_logs_sum_to_1():
    assert_allclose(over_all_logs(lambda *_: 1.0), 1.0, rtol=1e-13)


@pytest.mark.parametrize("name", ["ips", "dr"])
def test_means_are_unbiased_over_all_logs_of_a_learner(name):
    def value(x, a, r, P):
        return terms(name, x, a, r, P, of_the_past(x, a, r)).value()

    assert_allclose(over_all_logs(value), VALUE, rtol=1e-12)


def test_predictions_that_know_the_future_are_biased():
    biased = over_all_logs(lambda x, a, r, P: terms("dr", x, a, r, P, of_all(x, a, r)).value())
    assert abs(biased - VALUE) > 1e-4  # so the test above can fail: seen red with `of_all` there


@pytest.mark.parametrize("name", ["stablevar", "minvar"])
@pytest.mark.parametrize("models", [False, True])
def test_weighted_terms_are_unbiased_over_all_logs(name, models):
    """Σ E[h (D - V)] = 0, as h is of the past. seen red: φ of the row itself in h, without the shift by one row."""

    def lean(x, a, r, P):
        made = terms(name, x, a, r, P, of_the_past(x, a, r) if models else None)
        return float(np.sum(made.u - made.v * VALUE))

    assert_allclose(over_all_logs(lean), 0.0, atol=1e-12)


@pytest.mark.parametrize("how", ["betting", "anytime"])
def test_wealth_has_mean_1_over_all_logs(how):
    """So Ville's inequality holds whatever the policy learnt. seen red: the stake of a row from its own value."""
    most = 1 / 0.05

    def wealth(side):
        def one(x, a, r, P):
            w = Q[x, a] / P[np.arange(T), a]
            if how == "anytime":
                terms, m = (w * r, VALUE) if side else (w * (1 - r), 1 - VALUE)
            else:
                terms, m = (w * r / most, VALUE / most) if side else (1 - w * r / most, 1 - VALUE / most)
            stakes = bounded.stakes(terms, 0.95)
            return float(np.prod(1 + np.minimum(stakes, 0.5 / m) * (terms - m)))

        return one

    for side in (True, False):
        assert_allclose(over_all_logs(wealth(side)), 1.0, rtol=1e-12)


def learner(seed, n=400, floor=0.05):
    """A longer log of the same world: x, a, r, P."""
    rng, paid = np.random.default_rng(seed), np.zeros((2, 2, 2))
    x, a, r, P = np.empty(n, int), np.empty(n, int), np.empty(n), np.empty((n, 2))
    for t in range(n):
        x[t] = rng.integers(2)
        sums, counts = paid[:, x[t]]
        first = float((1 + sums[0]) / (2 + counts[0]) > (1 + sums[1]) / (2 + counts[1]))
        P[t] = (1 - floor) * np.array([first, 1 - first]) + floor / 2
        a[t] = rng.random() > P[t, 0]
        r[t] = rng.random() < MU[x[t], a[t]]
        paid[:, x[t], a[t]] += r[t], 1
    return x, a, r, P


def test_the_estimators_of_the_table_are_adaptive():
    x, a, r, P = learner(0)
    M = np.random.default_rng(1).random((400, 2))
    p = P[np.arange(400), a]
    for name in ("stablevar", "minvar"):
        for models in (None, M):
            made = ope.contributions(name, r, a, p, Q[x], models, P=P)
            other = ope.adaptive(r, a, P, Q[x], models, weights=name)
            found = ope.estimate(made)
            assert (found.value, found.se, found.method) == (other.value, other.se, name)
    shuffled = np.random.default_rng(2).permutation(400)
    made = ope.contributions("stablevar", *(y[shuffled] for y in (r, a, p, Q[x], M)), P=P[shuffled], time=shuffled)
    assert_allclose(made.value(), ope.adaptive(r, a, P, Q[x], M).value, rtol=1e-12)  # seen red: order= unread


def test_constant_allocation_is_stablevar():
    """Hadad et al.: h_t² φ_t = λ_t (1 - Σ_{s<t} h_s² φ_s), λ_t = 1/(1 + T - t), by a loop."""
    x, a, r, P = learner(3)
    made = ope.contributions("stablevar", r, a, P[np.arange(400), a], Q[x], P=P)
    phi, left = made.v**-2, 1.0
    h = np.empty(400)
    for t in range(400):
        share = left / (400 - t)
        h[t], left = math.sqrt(share / phi[t]), left - share
    assert_allclose(h / h[0], made.v / made.v[0], rtol=1e-9)


def slow_anytime(w, y, level):
    """The published sequences, on a grid of m: the least and the largest m that no bet has rejected."""
    need, grid = math.log(2 / (1 - level)), np.linspace(0, 1, 401)[1:-1]
    alive = np.ones(len(grid), dtype=bool)
    for terms, means in ((w * y, grid), (w * (1 - y), 1 - grid)):
        mean, variance = 0.5, 0.25
        total, squares, wealth = 0.5, 0.25, np.zeros(len(grid))
        for t, term in enumerate(terms, start=1):
            stake = math.sqrt(2 * math.log(2 / (1 - level)) / (variance * t * math.log(1 + t)))
            wealth += np.log(1 + np.minimum(stake, 0.5 / means) * (term - means))
            alive &= wealth < need
            total += term
            mean = total / (t + 1)
            squares += (term - mean) ** 2
            variance = squares / (t + 1)
    return (grid[alive].min(), grid[alive].max()) if alive.any() else (math.nan, math.nan)


def test_anytime_is_the_slow_formula():
    for seed in range(3):
        x, a, r, P = learner(seed, n=300)
        p = P[np.arange(300), a]
        rewards = 5 * r - 2
        e = ope.ips(rewards, a, p, Q[x], interval="anytime", reward_range=(-2, 3))
        low, high = slow_anytime(Q[x, a] / p, r, 0.95)
        assert_allclose(
            e.interval, [5 * low - 2, 5 * high - 2], atol=5 / 400
        )  # seen red: bets on 1 - x for the upper end
        summed = ope.estimates(
            ope.sums({"q": ope.contributions("ips", rewards, a, p, Q[x])}, keep=True),
            interval="anytime",
            reward_range=(-2, 3),
        )
        assert_allclose(summed["q"].interval, e.interval, rtol=1e-12)
        _, path = ope.confidence_sequence(e, at=[50, 300], interval="anytime", reward_range=(-2, 3))
        assert_allclose(path[-1], e.interval, rtol=1e-12)
        part = ope.ips(rewards[:50], a[:50], p[:50], Q[x[:50]], interval="anytime", reward_range=(-2, 3))
        assert_allclose(path[0], part.interval, rtol=1e-12)


def test_anytime_holds_at_all_times_on_a_learners_logs():
    """200 logs, looked at 10 times each; at most 5 % may miss at any time. Far narrower than with a bound of 1/floor.

    seen red: λ without its bound ½/m.
    """
    missed, widths, logs = 0, [], 200
    for seed in range(logs):
        x, a, r, P = learner(seed, n=300, floor=0.02)
        best = np.eye(2)[np.argmax(MU, axis=1)][x]
        e = ope.ips(r, a, P[np.arange(300), a], best)
        _, path = ope.confidence_sequence(e, at=10, interval="anytime", reward_range=(0, 1))
        missed += not np.all((path[:, 0] <= 0.65) & (path[:, 1] >= 0.65))  # NaN: every mean is rejected
        _, wide = ope.confidence_sequence(e, at=[300], interval="betting", reward_range=(0, 1), weight_max=100)
        widths.append([path[-1, 1] - path[-1, 0], wide[-1, 1] - wide[-1, 0]])
    assert missed / logs <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / logs)
    narrow, wide = np.nanmean(widths, axis=0)
    assert narrow < 0.7 * wide


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("snips", dict(interval="anytime", reward_range=(0, 1)), "is for the mean of w r: take ips, not snips"),
        ("ips", dict(interval="anytime"), r"pass reward_range=\(low, high\)"),
        ("ips", dict(interval="anytime", reward_range=(0.2, 1)), "is no bound"),
    ],
)
def test_what_anytime_refuses(method, options, message):
    x, a, r, P = learner(0)
    with pytest.raises(ValueError, match=message):
        getattr(ope, method)(r, a, P[np.arange(400), a], Q[x], **options)


def test_a_sequence_without_a_bound_is_for_ips_alone():
    x, a, r, P = learner(0)
    e = ope.dr(r, a, P[np.arange(400), a], Q[x], np.full((400, 2), 0.5))
    with pytest.raises(ValueError, match="take ips, not dr"):  # seen red: bets on terms below 0
        ope.confidence_sequence(e, interval="anytime", reward_range=(0, 1))


def test_what_the_estimators_that_read_the_past_refuse():
    x, a, r, P = learner(0)
    p = P[np.arange(400), a]
    with pytest.raises(ValueError, match="needs its exact probabilities of all arms in every row: pass P="):
        ope.contributions("stablevar", r, a, p, Q[x])
    with pytest.raises(ValueError, match="needs its exact"):
        ope.contributions("stablevar", r, a, p, Q[x], P=P, kind="estimated")
    with pytest.raises(ValueError, match="parts do not add up"):
        dither.testing.check_estimator("stablevar")


def test_an_option_that_does_not_exist_is_refused():
    """By every way to an estimate. seen red: `adaptive` and a confidence sequence left it aside without a word."""
    r, a, P, Q = np.ones(4), np.array([0, 1, 0, 1]), np.full((4, 2), 0.5), np.full((4, 2), 0.5)
    terms = ope.contributions("ips", r, a, P[:, 0], Q)
    for call in (
        lambda **o: ope.adaptive(r, a, P, Q, **o),
        lambda **o: ope.ips(r, a, P[:, 0], Q, **o),
        lambda **o: ope.estimate(terms, **o),
        lambda **o: ope.estimates(ope.sums({"x": terms}), **o),
        lambda **o: ope.confidence_sequence(ope.estimate(terms), interval="asymptotic", **o),
    ):
        with pytest.raises(TypeError, match="no option 'narowest': did you mean 'narrowest'"):
            call(narowest=100)


# What `evaluate` does with such a log


def frame(seed=0, n=400, **more):
    import polars as pl

    x, a, r, P = learner(seed, n)
    X = [[[1.0, float(c), 0.0], [0.0, 0.0, 1.0 + c]] for c in x.tolist()]
    columns = dict(arm=a, propensity=P[np.arange(n), a], reward=r, probabilities=P.tolist(), features=X)
    return pl.DataFrame(columns | more), x, a, r, P


def test_evaluate_takes_the_estimators_for_logs_that_learnt(tmp_path):
    table, _, a, r, P = frame()
    table.write_parquet(tmp_path / "log.parquet")
    asked = (tmp_path / "log.parquet", ["arm:1", "uniform"], ["stablevar", "minvar", "ips"])
    found = ope.evaluate(*asked)
    one = ope.adaptive(r, a, P, np.tile([0.0, 1.0], (400, 1)))
    assert_allclose(found.estimates["arm:1", "stablevar"].value, one.value, rtol=1e-12)
    assert_allclose(found.estimates["arm:1", "stablevar"].se, one.se, rtol=1e-12)  # the interval is wider
    assert any("normal intervals cover too rarely" in note for note in found.notes())
    steady = [ope.evaluate(*asked, interval="asymptotic")]
    steady.append(ope.evaluate(tmp_path / "log.parquet", ["arm:1"], ["ips"], interval="anytime", reward_range=(0, 1)))
    for one in steady:
        assert not any("changed while it ran" in note for note in one.notes())
    gap = steady[1].estimates["arm:1", "ips"].interval
    direct = ope.ips(r, a, P[np.arange(400), a], np.tile([0.0, 1.0], (400, 1)), interval="anytime", reward_range=(0, 1))
    assert_allclose(gap, direct.interval, rtol=1e-12)


def test_evaluate_fits_models_on_the_past_alone(tmp_path):
    table, _, a, r, P = frame()
    table.write_parquet(tmp_path / "log.parquet")
    from sklearn.linear_model import Ridge

    found = ope.evaluate(tmp_path / "log.parquet", ["arm:1"], ["stablevar", "dr"], model="ridge")
    X = np.array(table["features"].to_list())
    M = ope.cross_fit(r, a, X, arms=2, regressor=Ridge(random_state=0), past=True)
    for name, other in (
        ("stablevar", ope.adaptive(r, a, P, np.tile([0.0, 1.0], (400, 1)), M)),
        ("dr", ope.dr(r, a, P[np.arange(400), a], np.tile([0.0, 1.0], (400, 1)), M)),
    ):
        assert_allclose(found.estimates["arm:1", name].value, other.value, rtol=1e-10)  # seen red: past=False
        assert_allclose(found.estimates["arm:1", name].se, other.se, rtol=1e-10)


def test_evaluate_refuses_what_is_out_of_order_or_lacks_probabilities():
    import polars as pl

    times = pl.datetime_range(
        pl.datetime(2026, 1, 1), pl.datetime(2026, 1, 1) + pl.duration(minutes=399), "1m", eager=True
    )
    ordered = frame(time=times)[0]
    ope.evaluate(ordered, ["uniform"], ["stablevar"])
    with pytest.raises(ValueError, match=r"in order of time; row 1 is earlier than the one before \(399 such rows\)"):
        ope.evaluate(ordered.reverse(), ["uniform"], ["stablevar"])  # seen red: summed as it stood
    with pytest.raises(ValueError, match="exact probabilities of all arms in every row"):
        ope.evaluate(ordered.drop("probabilities"), ["uniform"], ["stablevar"])
    ope.evaluate(ordered.reverse(), ["uniform"], ["ips"])


@pytest.mark.parametrize("held", ["frame", "file", "digests"])
def test_evaluate_names_what_a_learnt_log_needs(held, tmp_path):
    table = frame()[0]
    if held == "digests":
        digests = [logs.record.digest(np.array(row)) for row in table["features"].to_list()]
        table = table.drop("features").with_columns(arm_set=np.array(digests))
    if held == "file":
        table.write_parquet(tmp_path / "log.parquet")
    found = ope.evaluate(tmp_path / "log.parquet" if held == "file" else table, ["uniform"])
    (said,) = [note for note in found.notes() if "changed while it ran" in note]
    assert "--estimator stablevar --interval asymptotic" in said
    assert "--interval anytime" in said
    bare = ope.evaluate(table.drop("probabilities"), ["arm:1"], arms=2)
    (said,) = [note for note in bare.notes() if "changed while it ran" in note]
    assert "stablevar" not in said


def test_evaluate_is_silent_where_it_cannot_know(tmp_path):
    """seen red: p compared between arms of one offer, and between offers."""
    table, x, a, _, _ = frame()
    fixed = np.array([[0.3, 0.7], [0.6, 0.4]])[x]  # differs between contexts and arms, and never changes
    steady = table.drop("probabilities", "propensity").with_columns(propensity=fixed[np.arange(400), a])
    unique = frame(features=[[[float(i), 1.0], [1.0, 0.0]] for i in range(400)])[0]
    for quiet in (steady, table.drop("features"), unique):
        found = ope.evaluate(quiet, ["arm:1"], arms=2)
        assert not any("changed while it ran" in note for note in found.notes())
        assert found.changes.rows == 0


def test_weights_of_the_past_do_not_know_the_future():
    x, a, r, P = learner(5)
    made = ope.contributions("stablevar", r, a, P[np.arange(400), a], Q[x], P=P)
    later = P.copy()
    later[200:] = later[200:, ::-1]
    other = ope.contributions("stablevar", r, a, later[np.arange(400), a], Q[x], P=later)
    assert_array_equal(made.v[:201], other.v[:201])
    assert np.any(made.v[201:] != other.v[201:])
    assert_array_equal(weighed(made.rows, made.u, "stablevar"), made.v)


def test_the_rows_that_probabilities_promise():
    x, a, _, P = learner(0)
    p = P[np.arange(400), a]
    promised = ope.expected_rows(P, Q[x])
    squares = [sum(P[i, k] * (Q[x[i], k] / P[i, k]) ** 2 for k in range(2)) for i in range(400)]  # E[w²] by the sum
    assert_allclose(promised, 400**2 / sum(squares), rtol=1e-12)
    assert_allclose(ope.expected_rows(P, P), 400, rtol=1e-12)
    s = np.random.default_rng(0).random(400)
    assert_allclose(ope.expected_rows(P, P, weight=s), s.sum() ** 2 / (s @ s), rtol=1e-12)
    drawn = np.mean([np.mean(np.take_along_axis(Q[x] / P, b[:, None], 1) ** 2) for b in _draws(P, 2000)])
    assert abs(drawn - 400 / promised) < 0.1 * drawn
    assert ope.ips(np.ones(400), a, p, Q[x], P=P).ess != promised
    with pytest.raises(ValueError, match=r"P and Q must be \(n, K\)"):
        ope.expected_rows(P, Q)


def _draws(P, times):
    rng = np.random.default_rng(1)
    return ((rng.random(len(P)) > P[:, 0]).astype(int) for _ in range(times))


def test_a_verdict_needs_the_rows_that_probabilities_promise():
    """A rare arm that did not come: 360 effective rows are seen, and 3 were promised. seen red: `ess` alone."""
    import polars as pl

    rng, n = np.random.default_rng(0), 400
    x = np.arange(n) % 2
    P = np.where(x[:, None] == 0, [0.5, 0.5], [0.999, 0.001])
    a = np.where(x == 0, rng.integers(0, 2, n), 0)
    r = (rng.random(n) < 0.3).astype(float)
    table = pl.DataFrame(dict(arm=a, propensity=P[np.arange(n), a], reward=r, probabilities=P.tolist()))
    even = np.full((n, 2), 0.5)
    found = ope.evaluate(table, {"even": even}, ["ips"])
    assert found.estimates["even", "ips"].ess > 300
    assert_allclose(found.expected["even"], ope.expected_rows(P, even), rtol=1e-12)
    (said,) = found.verdicts()
    assert said.word == "unsupported"
    near = ope.evaluate(table, {"near": 0.99 * P + 0.01 * even}, ["ips"])
    assert near.verdicts()[0].word != "unsupported"
    bare = ope.evaluate(table.drop("probabilities"), {"shown": np.full(n, 0.5)}, ["ips"], arms=2)
    assert math.isnan(bare.expected["shown"])
