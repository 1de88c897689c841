"""Settings chosen from a log: apart rows for each step, the truth of a known world, and honest words."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import dither as library
from dither import log, ope
from dither.algorithms.spec import Spec
from dither.ope import tuning
from dither.ope.synthetic import ScoreSoftmax, World
from longer import size

WORLD = World(dim=3, arms=4, contexts=50, norm=1.0, noise=0.3)
LOGGER = ScoreSoftmax(np.zeros(3), 1.0)  # shows every arm equally often


def a_log(n=2000, *, run=0, world=WORLD, **columns):
    """A log of the world, in memory."""
    rows = pl.DataFrame(list(world.log(LOGGER, n, run=run).rows()))
    return log.read(rows.with_columns(**columns) if columns else rows)


GRID = ["LinFP:c=0.1|1|10,lam=1", "Greedy"]


def test_every_step_has_rows_of_its_own():
    """Rewards of one part are changed, and only what that part may change does."""
    first = ope.tune(a_log(1000), GRID)
    n = np.arange(1000)

    def changed(part):
        reward = pl.when(pl.Series(part)).then(pl.col("reward") + 3.0).otherwise(pl.col("reward"))
        return ope.tune(a_log(1000, reward=reward), GRID)

    last = changed(n >= 750)
    assert last.rows == first.rows == (500, 250, 250)
    assert [one.estimate.value for one in last.tried] == [one.estimate.value for one in first.tried]
    assert last.chosen == first.chosen
    assert last.value.value > first.value.value + 1
    middle = changed((n >= 500) & (n < 750))
    assert all(a.estimate.value > b.estimate.value + 1 for a, b in zip(middle.tried, first.tried, strict=True))
    assert middle.gain.n == 250
    # seen red: the winner is judged on the rows that chose it; the last rows teach too


def test_the_numbers_are_those_of_the_estimators():
    whole = a_log(1000)
    found = ope.tune(whole, GRID, floor=0.1, learn=0.4, choose=0.4)
    cut = [whole.filter((np.arange(1000) >= a) & (np.arange(1000) < b)) for a, b in ((0, 400), (400, 800), (800, 1000))]
    for one in found.tried:
        setting = dict(one.spec.settings)
        made = library.ALGORITHMS[one.spec.name](dim=3, seed=5, floor=0.1, **setting)
        made.update(cut[0].x, cut[0].r)
        rows, Q = cut[1], made.propensities(cut[1].X)
        e = ope.dr(rows.r, rows.a, rows.p, Q, made.predict(rows.X))
        assert_allclose([one.estimate.value, one.estimate.se], [e.value, e.se], rtol=1e-9)
        assert_allclose(one.explores, np.mean(1 / np.sum(Q**2, axis=1)), rtol=1e-9)
    best = max(found.tried, key=lambda one: one.estimate.value)
    assert found.best == best.spec
    made = library.ALGORITHMS[found.chosen.name](dim=3, seed=5, floor=0.1, **dict(found.chosen.settings))
    for part in cut[:2]:
        made.update(part.x, part.r)
    rows = cut[2]
    e = ope.dr(rows.r, rows.a, rows.p, made.propensities(rows.X), made.predict(rows.X))
    assert_allclose([found.value.value, *found.value.interval], [e.value, *e.interval], rtol=1e-6)
    assert_allclose(found.gain.value, e.value - rows.r.mean(), rtol=1e-6)
    assert_allclose(found.bandit.theta, made.theta, rtol=1e-8)


def test_all_pairs_are_held_at_once():
    found = ope.tune(a_log(1000), GRID)
    assert found.tried[0].gap.level == pytest.approx(1 - 0.05 / 6)  # four settings: six pairs
    assert found.tried[0].estimate.level == 0.95


def test_of_those_that_lose_little_the_one_that_explores_most_is_chosen():
    whole = a_log(4000)
    found = ope.tune(whole, GRID, loss=10.0)  # nothing loses so much
    assert found.chosen == max(found.tried, key=lambda one: one.explores).spec
    assert str(found.chosen) == "LinFP:c=10,lam=1"
    strict = ope.tune(whole, GRID, loss=0.0)
    assert strict.chosen == strict.best  # no paired interval lies above 0 but that of the best with itself
    assert strict.best in strict.tied
    # seen red: gap_high in place of gap_low


def test_a_winner_that_cannot_be_told_is_said():
    found = ope.tune(a_log(200), ["LinFP:c=0.9|1|1.1"])
    assert len(found.tied) == 3
    assert "cannot tell it apart from" in str(found)
    poor = ope.tune(a_log(6000), ["Greedy", "LinFP:c=1000"])
    assert poor.tied == (poor.best,)
    assert str(poor.best) == "Greedy"
    assert "above all others by more than the error" in str(poor)
    assert "what exploring teaches" in str(poor).lower()


def test_the_report_covers_the_truth():
    """The 95 % interval of the chosen one holds its true value in as many logs as it says, within five errors."""
    held, runs = 0, size(30, longer=100)
    for run in range(runs):
        found = ope.tune(a_log(400, run=run), ["LinFP:c=0.1|0.3|1|3|10,lam=1"])
        true, (low, high) = WORLD.value(found.bandit).value, found.value.interval
        held += low <= true <= high
    assert held / runs > 0.95 - 5 * np.sqrt(0.95 * 0.05 / runs)


def test_what_the_log_does_not_show_is_not_judged():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2, 2))
    X[:, 1] = X[:, 0] + [0.0, 1.0]
    frame = pl.DataFrame(
        {
            "arm": np.zeros(600, dtype=int),  # arm 0 was always shown
            "propensity": np.full(600, 0.999),
            "reward": -X[:, 0, 1] + 0.1 * rng.normal(size=600),
            "features": X.tolist(),
        }
    )
    frame = frame.with_columns(reward=pl.Series(X[:, 0, 1]))  # the other arm looks better, and nobody saw it
    found = ope.tune(log.read(frame), ["Greedy", "LinFP:c=0.1"])
    assert all(one.unsupported for one in found.tried)
    assert "log with a floor" in str(found)


def test_a_setting_that_no_row_shows_is_not_judged():
    found = ope.tune(a_log(200), ["Greedy", "LinFP:c=1000,lam=1"], floor=0.3)  # 50 rows choose
    greedy, wide = found.tried
    assert greedy.estimate.ess < 30 < wide.estimate.ess
    assert "carry the estimate" in greedy.unsupported
    assert not wide.unsupported
    assert found.best == found.chosen == wide.spec
    assert "It is the only one that the log can judge." in str(found)
    # seen red: a test of the mean weight alone, which a few rows always pass; "above all others", where none was judged


def test_the_last_rows_may_show_too_little_as_well():
    found = ope.tune(a_log(60), ["Greedy", "LinFP:c=0.1,lam=1"], learn=0.4, choose=0.55)
    assert found.value.ess < 0.3 * found.rows[2] or found.value.weight_max == 0
    assert "not supported by this log: " in str(found)
    # seen red: "better", from three rows


@pytest.mark.parametrize("usual", [0.0, 1.0])
def test_rewards_that_never_differ_choose_nothing(usual):
    """The same reward in all rows: another may come, and the intervals hold for it, as those of `dither evaluate`."""
    n, rng = 400, np.random.default_rng(0)
    rows = {
        "arm": rng.integers(4, size=n),
        "propensity": np.full(n, 0.25),
        "features": rng.normal(size=(n, 4, 3)).tolist(),
    }
    whole = log.read(pl.DataFrame(rows | {"reward": np.full(n, usual)}))
    found = ope.tune(whole, ["LinFP:lam=1,sigma=1", "Greedy"], floor=0.3, estimator="ips")
    for one in found.tried:
        low, high = one.estimate.interval
        assert high - low > 0.01
        assert one.spec == found.best or one.unsupported or one.gap.interval[0] < -0.01
    assert found.gain.interval[0] < -0.01
    assert f"Few rewards of the rows that chose differ from {usual:g}" in str(found)
    # seen red: [0, 0], and "for sure lose at most 0" of a setting that shows other arms


def test_a_setting_that_ends_with_an_error_is_left_out():
    whole = a_log(400)  # rewards that a logit link cannot have
    found = ope.tune(whole, ["GLMFP:lam=1", "LinFP:c=0.5|1", "Greedy"])
    assert [str(one.spec) for one in found.tried] == ["LinFP:c=0.5", "LinFP:c=1", "Greedy"]
    assert list(found.failed) == ["GLMFP:lam=1"]
    assert "GLMFP:lam=1 is left out, since it ended with an error: r must lie in [0, 1]" in str(found)
    assert found.tried[0].gap.level == pytest.approx(1 - 0.05 / 3)  # of three settings
    with pytest.raises(ValueError, match="r must lie in"):
        ope.tune(whole, ["GLMFP:lam=1|2"])
    # seen red: the error of one setting ended the whole


def test_slots_and_monte_carlo():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 2))
    a = rng.integers(3, size=400)
    theta = np.array([[1.0, 0], [0, 1], [-1, -1]])
    frame = pl.DataFrame(
        {
            "arm": a, "propensity": np.full(400, 1 / 3), "K": np.full(400, 3),
            "reward": np.sum(theta[a] * x, axis=1) + 0.1 * rng.normal(size=400), "features": x[:, None].tolist(),
        }
    )  # fmt: skip
    found = ope.tune(log.read(frame), ["LinTS:c=0.1|1,lam=1", "Greedy"], slots=3, draws=50)
    assert found.bandit.slots == 3
    assert found.gain.interval[0] > 0
    assert {one.estimate.kind for one in found.tried} == {"exact"}  # of the propensities that were logged


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"algorithms": ["LinFP"]}, "at least two settings, as in .* got LinFP"),
        ({"algorithms": "LinFP:c=1|2"}, "algorithms must be a list"),
        ({"estimator": "dm"}, "'dm'"),
        ({"learn": 0.9, "choose": 0.2}, r"learn and choose must leave rows that report, got 0.9 \+ 0.2"),
        ({"learn": 0.0}, "learn"),
        ({"loss": -1.0}, "loss"),
        ({"level": 1.0}, "level"),
        ({"algorithms": ["LinFP:c=0.1..1"]}, "is a range"),
        ({"algorithms": ["LinFP:q=1|2"]}, "'q'"),
    ],
)
def test_what_makes_no_sense_is_refused(given, words):
    with pytest.raises((ValueError, LookupError, TypeError), match=words):
        ope.tune(a_log(50), **({"algorithms": GRID} | given))


def test_a_log_that_is_too_short():
    with pytest.raises(ValueError, match="a log of 5 rows cannot be cut"):
        ope.tune(a_log(5), GRID)


def test_the_command(tmp_path, dither):
    a_log(600).write(tmp_path / "log.parquet")
    path, saved = tmp_path / "log.parquet", tmp_path / "b.npz"
    code, out, _ = dither("tune", path, *GRID, "--floor", "0.1", "--save", saved, "--save-tied")
    found = ope.tune(a_log(600), GRID, floor=0.1)
    assert code == 0
    assert f"Chosen: {found.chosen}." in out
    assert f"{found.value.value:.4g}" in out
    for one in found.tried:
        assert str(one.spec) in out
    assert_allclose(library.load(saved).theta, found.bandit.theta)
    code, _, err = dither("tune", path, *GRID, "--save", tmp_path / "nowhere" / "b.npz")
    assert code == 2
    assert "no folder" in err
    code, _, err = dither("tune", "linear", *GRID)
    assert code == 2
    assert "dither compare --env linear" in err
    table = tmp_path / "table.parquet"
    rows = pl.read_parquet(path).rename({"reward": "click", "propensity": "p"})
    rows.with_columns(click=pl.when(pl.int_range(600) < 5).then(None).otherwise("click")).write_parquet(table)
    code, _, err = dither("tune", table, *GRID)
    assert "name the column that holds it with --reward" in err
    named = ("--propensity", "p", "--reward", "click")
    code, _, err = dither("tune", table, *GRID, *named)
    assert "ask for --missing leave-out" in err
    code, out, err = dither("tune", table, *GRID, *named, "--missing", "leave-out")
    assert code == 0, err
    # seen red: the folder that is missing told after all the work; options as Python has them
    code, _, err = dither("tune", path, "LinFP")
    assert code == 2
    assert "at least two settings" in err


def test_estimators_are_those_that_need_no_setting():
    for name in tuning.ESTIMATORS:
        assert ope.tune(a_log(300), GRID, estimator=name).value.method == name


# What is kept where nothing can be told apart


def of_a_bandit(n=800, *, c=1.0, learn=False, name="LinFP", seed=0):
    """A log of a bandit with lam=1 and this c, whose rewards do not depend on what it shows."""
    rng = np.random.default_rng(seed)
    bandit = getattr(library, name)(dim=3, seed=seed, floor=0.7, c=c, lam=1.0)
    with log.Log(None, bandit=bandit) as rows:
        for X in rng.normal(size=(n, 4, 3)):
            d = rows.decide(X)
            rows.reward(d.id, r := float(rng.random() < 0.5))
            if learn:
                bandit.update(X[d.arm], r)
        return rows.read()


@pytest.mark.parametrize("c", [0.3, 1.0, 3.0])
def test_what_ran_is_kept_where_nothing_is_told_apart(c):
    """Whatever has the highest estimate. Seen red with the setting that explores most of those that lose little."""
    found = ope.tune(of_a_bandit(c=c), ["LinFP:c=0.3|1|3,lam=1", "Greedy"], floor=0.3)
    assert not found.told
    assert len(found.tied) == 4
    assert str(found.chosen) == str(found.ran) == f"LinFP:c={c:g},lam=1"
    assert found.bandit.policy.c == c
    assert f"Chosen: {found.chosen}. No two settings can be told apart, and it is what ran." in str(found)


def test_else_the_nearest_to_the_defaults_of_the_same_kind_is_kept():
    """Seen red with the first of all."""
    rows = of_a_bandit(c=2.0)
    near = ope.tune(rows, ["Greedy:lam=1", "LinFP:c=0.1|0.7|30,lam=1"], floor=0.3)
    assert near.ran is None
    assert str(near.chosen) == "LinFP:c=0.7,lam=1"
    assert "of what was tried it is nearest to what ran" in str(near)
    silent = log.read(rows.frame.drop("policy", "learnt"))
    first = ope.tune(silent, ["LinFP:c=1|30,lam=5", "Greedy:lam=1"], floor=0.3)
    assert str(first.chosen) == "LinFP:c=1,lam=5"


def test_a_loss_that_is_given_chooses_as_it_says():
    """Seen red with what ran kept against what a user says that exploring may cost."""
    found = ope.tune(of_a_bandit(c=0.3), ["LinFP:c=0.3|1|3,lam=1"], floor=0.3, loss=10.0)
    assert found.told
    assert found.chosen == max(found.tried, key=lambda one: one.explores).spec


def test_the_rows_that_would_be_needed():
    """n (W/2δ)², which is (z sd/δ)² for normal intervals. Seen red with W in place of W/2."""
    from scipy import special

    rows = of_a_bandit(c=1.0, n=2000)
    found = ope.tune(rows, ["LinFP:c=0.3|1|3,lam=1"], floor=0.3)
    assert not found.told
    n, z = found.rows[1], special.ndtri(1 - 0.05 / 3 / 2)
    sd = max(one.gap.se for one in found.tried) * np.sqrt(n)
    assert_allclose(found.rows_needed, (z * sd / found.loss) ** 2, rtol=1e-9)
    assert "rows that choose would be needed, not 500." in str(found)
    assert tuning.rows_needed(10, 0.5, 0.0) == np.inf


def test_so_many_rows_tell_the_difference_they_promise():
    """Four times the rows halve the width, as the formula for the rows that are needed says."""
    grid = ["LinFP:c=0.3|1|3,lam=1"]
    few = ope.tune(of_a_bandit(c=1.0, n=1000), grid, floor=0.3, learn=0.2, choose=0.4)
    more = ope.tune(of_a_bandit(c=1.0, n=4000, seed=1), grid, floor=0.3, learn=0.2, choose=0.4)
    widths = [max(one.gap.interval[1] - one.gap.interval[0] for one in found.tried) for found in (few, more)]
    assert 1.6 < widths[0] / widths[1] < 2.5  # four times the rows, half the width


def test_the_log_of_a_policy_that_learnt_has_anytime_intervals():
    """With the range of the link, and the narrow ones beside them. Seen red with `dr` and normal ones."""
    rows = of_a_bandit(learn=True, name="GLMFP", n=400)
    found = ope.tune(rows, ["GLMFP:c=0.3|1,lam=1", "LogGreedy"], floor=0.3)
    assert found.value.method == "ips"
    assert found.value.interval_method == found.gain.interval_method == "anytime"
    assert {one.gap.interval_method for one in found.tried if one.spec != found.best} == {"anytime"}
    last = rows.filter(np.arange(400) >= 300)
    Q = found.bandit.propensities(last.X)
    safe = ope.ips(last.r, last.a, last.p, Q, interval="anytime", reward_range=(0, 1))
    assert_allclose(found.value.interval, safe.interval, rtol=1e-9)
    assert found.narrow[0].method == "dr"
    assert "anytime ones of ips, which hold there. By DR with normal ones" in str(found)
    plain = ope.tune(rows, ["GLMFP:c=0.3|1,lam=1"], floor=0.3, estimator="dr")
    assert plain.value.interval_method == "normal"
    assert "On such a log these intervals cover too rarely" in str(plain)


def test_where_no_range_is_known_tune_asks_for_it():
    """Seen red with normal intervals instead."""
    rows = of_a_bandit(learn=True, n=200)
    with pytest.raises(ValueError, match=r"say it with reward_range=\(low, high\), or take estimator='dr'"):
        ope.tune(rows, ["LinFP:c=0.3|1,lam=1"], floor=0.3)
    assert ope.tune(rows, ["LinFP:c=0.3|1,lam=1"], floor=0.3, reward_range=(0, 1)).value.method == "ips"


def test_the_command_saves_nothing_that_was_not_told_apart(tmp_path, dither):
    """Unless it is asked to. Seen red with the bandit saved all the same."""
    of_a_bandit(c=1.0).write(tmp_path / "log.parquet")
    asked = ("tune", tmp_path / "log.parquet", "LinFP:c=0.3|1|3,lam=1", "--floor", "0.3", "--save", tmp_path / "b.npz")
    code, out, _ = dither(*asked)
    assert code == 0
    assert "Nothing is saved" in out
    assert not (tmp_path / "b.npz").exists()
    code, out, _ = dither(*asked, "--save-tied")
    assert code == 0
    assert library.load(tmp_path / "b.npz").policy.c == 1.0


@pytest.mark.parametrize("setting", ["disjoint=2", "dim=3"])
def test_what_the_log_says_is_no_setting(setting):
    """Seen red with `configure() got multiple values for keyword argument`."""
    with pytest.raises(
        ValueError, match=rf"{setting[:-1]} is no setting of 'LinFP:{setting}': the environment says it"
    ):
        Spec.parse(f"LinFP:{setting}")
