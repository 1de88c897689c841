import numpy as np
import polars as pl
import pytest
from scipy import stats

from dither.algorithms import specs
from dither_bench.commands import robustness
from dither_bench.define import environments
from dither_bench.define.panels import Figure, Panel
from dither_bench.judge import profiles, tables, words
from dither_bench.show import plots, profile_plots
from dither_bench.show.pictures import PictureLook

ENV = environments.describe("linear", dim=3, arms=5)
NAMES = ("LinFP", "LinTS", "Greedy")


def figure(panels=2, algorithms=NAMES):
    found = specs(*algorithms)
    return Figure("f", "F", tuple(Panel(f"p{i}", ENV, 10 * (i + 1), found) for i in range(panels)))


def rows(of, last):
    """Rows of `tables.curves`: the regrets at the horizon by panel and algorithm; half of them halfway."""
    made = [
        (panel.name, name, run, t, x * t / panel.rounds)
        for panel in of.panels
        for name, xs in last[panel.name].items()
        for run, x in xs.items()
        for t in (panel.rounds // 2, panel.rounds)
    ]
    return pl.DataFrame(made, schema=["panel", "algorithm", "run", "round", "regret"], orient="row")


def drawn(of, n, seed=0):
    """Regrets of the runs 0 to n - 1, with the scale of a panel and of an algorithm."""
    rng = np.random.default_rng(seed)
    return {
        panel.name: {
            str(a): dict(enumerate(100**i * (j + 1) * rng.gamma(2, size=n))) for j, a in enumerate(of.algorithms)
        }
        for i, panel in enumerate(of.panels)
    }


def relative(last, name):
    """x of an algorithm by hand: panel -> list."""
    return {panel: [x / np.mean(list(of["LinFP"].values())) for x in of[name].values()] for panel, of in last.items()}


def test_the_profile_is_the_share_of_runs_counted_one_by_one():
    of = figure(3)
    last = drawn(of, 7)
    found = profiles.scores(of, rows(of, last))
    at = np.array([0.0, 0.3, 1.0, 2.5, 100.0])
    made = profiles.profile(found, at)
    for name in NAMES:
        x = [x for values in relative(last, name).values() for x in values]
        by_hand = [sum(value <= tau for value in x) / len(x) for tau in at]
        assert made.filter(algorithm=name)["share"].to_list() == pytest.approx(by_hand, abs=1e-12)
    tie = next(iter(relative(last, "LinTS").values()))[3]
    at_tie = profiles.profile(found, np.array([tie, np.nextafter(tie, 0)])).filter(algorithm="LinTS")["share"]
    assert at_tie[0] - at_tie[1] == pytest.approx(1 / 21)  # ≤ and not <
    # seen red: side="left"; the median of the reference; the mean over all panels as the divisor


def test_the_interquartile_mean_is_the_mean_of_the_middle_half():
    of = figure(2)
    last = drawn(of, 10)
    made = profiles.robust(profiles.scores(of, rows(of, last))).rows_by_key("algorithm", named=True, unique=True)
    for name in NAMES:
        x = np.sort([x for values in relative(last, name).values() for x in values])
        assert made[name]["iqm"] == pytest.approx(x[5:15].mean())
        assert made[name]["iqm"] == pytest.approx(stats.trim_mean(x, 0.25))
        assert made[name]["mean"] == pytest.approx(x.mean())
        assert made[name]["median"] == pytest.approx(np.median(x))
        assert made[name]["tail"] == pytest.approx(np.quantile(x, 0.9))
        assert (made[name]["runs"], made[name]["panels"]) == (10, 2)
    assert made["LinFP"]["mean"] == pytest.approx(1)
    # seen red: the IQM of each panel, then their mean


def test_one_run_that_went_astray_moves_the_mean_alone():
    of = figure(1)
    last = {"p0": {name: dict.fromkeys(range(20), 1.0) for name in NAMES}}
    last["p0"]["LinTS"][3] = 1e6
    made = profiles.robust(profiles.scores(of, rows(of, last))).rows_by_key("algorithm", named=True, unique=True)
    assert made["LinTS"]["iqm"] == made["LinTS"]["median"] == made["LinTS"]["tail"] == 1
    assert made["LinTS"]["mean"] > 5e4


def test_the_band_is_that_of_the_binomial_where_the_divisor_is_certain():
    of, n = figure(1), 40
    rng = np.random.default_rng(1)
    last = {
        "p0": {"LinFP": dict.fromkeys(range(n), 2.0)} | {a: dict(enumerate(rng.gamma(2, size=n))) for a in NAMES[1:]}
    }
    at = np.array([0.5, 1.0, 1.5])
    for row in (
        profiles.profile(profiles.scores(of, rows(of, last)), at).filter(algorithm="LinTS").iter_rows(named=True)
    ):
        wider = np.sqrt(n / (n - 1)) * stats.t(n - 1).ppf(0.975) / stats.norm.ppf(0.975)
        low, high = row["share"] + wider * (stats.binom(n, row["share"]).ppf([0.025, 0.975]) / n - row["share"])
        assert abs(row["low"] - low) <= wider / n + 1e-12  # one step of the share: 1,000 resamples
        assert abs(row["high"] - high) <= wider / n + 1e-12
        assert row["low"] < row["share"] < row["high"]
    # seen red: the standard deviation in place of the quantiles; the same resample each time


def test_runs_are_resampled_within_panels_and_together_for_all_algorithms():
    of, n = figure(2), 12
    last = drawn(of, n)
    for panel in last.values():
        panel["LinTS"] = dict(panel["LinFP"])  # the same run by run
    found = profiles.scores(of, rows(of, last))
    again = found.resampled()
    assert again.shape == (3, profiles.RESAMPLES, 2, n)
    np.testing.assert_array_equal(again[0], again[1])
    np.testing.assert_allclose(again[0].mean(axis=-1), 1)  # the reference over its own mean, drawn anew
    for p, panel in enumerate(last.values()):
        ratios = [panel["Greedy"][run] / panel["LinFP"][run] for run in range(n)]
        gaps = abs(again[2, :, p, :, None] / again[0, :, p, :, None] - np.array(ratios))
        assert gaps.min(axis=-1).max() < 1e-9  # every pair is one run of this panel
    made = profiles.robust(found).rows_by_key("algorithm", named=True, unique=True)
    for name in ("LinFP", "LinTS"):
        assert [made[name][key] for key in ("difference", "difference_low", "difference_high")] == [0, 0, 0]
    assert made["Greedy"]["difference_low"] < made["Greedy"]["difference"] < made["Greedy"]["difference_high"]
    # seen red: a resample of its own for each algorithm; runs drawn over all panels


def test_the_interval_holds_the_truth_as_often_as_it_says():
    """x of LinTS over LinFP, both Gamma(4): of 200 samples of 30 runs, the interval of the IQM holds it in 95 %."""
    of, n, rng = figure(1, ("LinFP", "LinTS")), 30, np.random.default_rng(5)
    law = stats.gamma(4)
    ends = law.ppf([0.25, 0.75])
    truth = 4 * 2 * np.diff(stats.gamma(5).cdf(ends))[0] / 4  # E[x; middle half] = k P(Gamma(k + 1) there)
    held = 0
    for _ in range(200):
        base, x = law.rvs((2, n), random_state=rng)
        panels = of.panels
        found = profiles.ProfileScores(x[None, None], base[None], panels[0].algorithms[1:], ("p0",), ())
        (row,) = profiles.robust(found).iter_rows(named=True)
        held += row["low"] <= truth <= row["high"]
    assert held >= 200 * 0.95 - 5 * np.sqrt(200 * 0.95 * 0.05)  # 174.6: the percentile interval is a little narrow
    # seen red: the reference's mean not drawn anew


@pytest.mark.parametrize("n", [2, 3, 5, 10])
@pytest.mark.parametrize("law", [stats.norm(10, 2), stats.lognorm(0.6)])
def test_few_runs_of_one_law_are_seldom_told_apart(n, law):
    """The difference of two algorithms of one law is 0. Its 95 % interval may miss 0 in one of twenty samples."""
    of, rng, missed = figure(1, ("LinFP", "LinTS")), np.random.default_rng(n), 0
    for _ in range(150):
        base, x = law.rvs((2, n), random_state=rng)
        found = profiles.ProfileScores(x[None, None], base[None], of.panels[0].algorithms[1:], ("p0",), ())
        (row,) = profiles.robust(found).iter_rows(named=True)
        missed += not row["difference_low"] <= 0 <= row["difference_high"]
    most = 0.05 if n > 2 else 0.085  # what two runs allow was measured: 0.07 to 0.08
    assert missed <= 150 * most + 3 * np.sqrt(150 * most * (1 - most))
    # seen red: the quantiles of the resamples as they are, for two, three and five runs


def test_what_panels_have_in_common_is_taken():
    of = figure(2)
    last = drawn(of, 9)
    del last["p1"]["Greedy"]
    for run in (0, 1, 2):
        del last["p0"]["LinTS"][run]
    found = profiles.scores(of, rows(of, last))
    assert [str(a) for a in found.algorithms] == ["LinFP", "LinTS"]
    assert [str(a) for a in found.left_out] == ["Greedy"]
    assert found.of_reference.shape == (2, 6)
    assert found.regret[1, 0].tolist() == pytest.approx([last["p0"]["LinTS"][run] for run in range(3, 9)])
    assert found.regret[1, 1].tolist() == pytest.approx([last["p1"]["LinTS"][run] for run in range(6)])
    said = robustness.sentences(of, found, profiles.robust(found))
    assert said[-1] == "Not in all panels, and so left out: Greedy."


def test_what_has_no_profile_is_refused():
    of = figure(2)
    with pytest.raises(ValueError, match="there are no results of f to make a profile of"):
        profiles.scores(of, rows(of, {"p0": {}, "p1": {}}))
    last = drawn(of, 3)
    last["p1"]["LinFP"] = dict.fromkeys(range(3), 0.0)
    with pytest.raises(profiles.NoProfile, match="LinFP has the mean regret 0 in p1, and a profile divides by it"):
        profiles.scores(of, rows(of, last))
    apart = {"p0": {"LinFP": {0: 1.0}}, "p1": {"LinTS": {0: 1.0}}}
    with pytest.raises(ValueError, match="no algorithm and run in common"):
        profiles.scores(of, rows(of, apart))


def test_one_run_has_no_band():
    of = figure(1)
    found = profiles.scores(of, rows(of, drawn(of, 1)))
    assert profiles.profile(found)["low"].null_count() == 3 * profiles.POINTS
    made = profiles.robust(found)
    assert made["low"].null_count() == made["difference_high"].null_count() == 3
    assert "One run alone decides nothing." in robustness.sentences(of, found, made)
    assert profile_plots.draw(of, found, profiles.profile(found), PictureLook()).axes


def test_the_sentences_follow_the_intervals():
    of = figure(1, ("LinFP", "LinTS", "Greedy", "EpsGreedy"))
    rng = np.random.default_rng(0)
    x = rng.gamma(9, size=30)
    factors = {"LinFP": np.ones(30), "LinTS": np.full(30, 0.5), "Greedy": np.full(30, 2.0)}
    factors["EpsGreedy"] = rng.uniform(0.3, 1.5, size=30)
    last = {"p0": {name: dict(enumerate(x * factor)) for name, factor in factors.items()}}
    found = profiles.scores(of, rows(of, last))
    made = profiles.robust(found)
    unclear = made.row(by_predicate=pl.col("algorithm") == "EpsGreedy", named=True)
    assert unclear["difference"] < 0 < unclear["difference_high"]
    _, said = robustness.sentences(of, found, made)
    assert said.endswith("Below LinFP: LinTS. Above LinFP: Greedy. Not told apart from LinFP: EpsGreedy.")


def test_the_picture_has_a_step_for_each_algorithm():
    of = figure(2)
    found = profiles.scores(of, rows(of, drawn(of, 5)))
    made = profiles.profile(found)
    picture = profile_plots.draw(of, found, made, PictureLook())
    (ax,) = picture.axes
    lines = [line for line in ax.lines if line.get_label() in NAMES]
    assert [line.get_label() for line in lines] == list(NAMES)
    for line in lines:
        assert list(line.get_ydata()) == made.filter(algorithm=line.get_label())["share"].to_list()
        assert line.get_ydata()[-1] == 1
    assert len({(line.get_marker(), line.get_linestyle()) for line in lines}) == 3
    assert ax.get_xlabel() == "τ: regret over the mean regret of LinFP"


def test_the_median_band_has_the_median_as_its_line():
    of = figure(1)
    last = drawn(of, 5)
    made = rows(of, last)
    for band, center in (("median", np.median), ("quantiles", np.mean), ("se", np.mean)):
        (ax,) = (ax for ax in plots.draw(of, made, PictureLook(band=band)).axes if ax.get_visible())
        ends = [line.get_ydata()[-1] for line in ax.lines]
        assert ends == pytest.approx([center(list(last["p0"][name].values())) for name in NAMES])
    assert "line: their median" in words.band("median", [5])
    quartiles = tables.summary(made).filter(round=10, algorithm="Greedy").select("low", "median", "high").row(0)
    assert quartiles == pytest.approx(np.quantile(list(last["p0"]["Greedy"].values()), [0.25, 0.5, 0.75]))
    # seen red: the mean for all bands


def test_reproduce_makes_a_profile_over_its_panels(dither, tmp_path):
    arguments = ("reproduce", "fig3-linear", "--panel", "d=10", "--panel", "d=20", "--rounds", 30, "--runs", 3)
    algorithms = ("--algorithm", "LinFP", "--algorithm", "LinTS")
    code, out, err = dither(*arguments, *algorithms, "--profile", "--band", "median", "--out", tmp_path)
    assert code == 0, err
    names = [f"fig3-linear-{kind}" for kind in ("robust.csv", "profile.csv", "profile.png", "profile.pdf")]
    assert all(f"wrote {tmp_path / name}" in out for name in names)
    text = " ".join(out.split())
    assert "2 panels: regret at the horizon over the mean of LinFP, 3 runs" in text
    assert "IQM: the mean of the middle half of the runs." in text
    table = pl.read_csv(tmp_path / names[0])
    assert table["panels"].to_list() == [2, 2]
    assert table.filter(algorithm="LinFP")["mean"][0] == pytest.approx(1)
    assert not dither(*arguments, *algorithms, "--out", tmp_path / "plain")[0]
    assert not list((tmp_path / "plain").glob("*profile*"))
