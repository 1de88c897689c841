import json
import math

import matplotlib.colors
import numpy as np
import polars as pl
import pytest

from dither.algorithms import specs
from dither_bench import sweeps
from dither_bench.define import environments, figures
from dither_bench.judge import choices, sweep_words, tables
from dither_bench.judge.choices import logarithmic, tried
from dither_bench.keep import asked
from dither_bench.keep.store import Store, of_panel
from dither_bench.show import plots
from dither_bench.show.pictures import PictureLook

ENV = environments.describe("linear", dim=3, arms=5, contexts=2)
SMALL = ("--dim", 3, "--arms", 5, "--contexts", 2, "--rounds", 40, "--runs", 3)


def figure(*texts, settings=(), tries=None, rounds=40, runs=3, seed=0):
    return sweeps.searching(ENV, texts, settings, rounds=rounds, runs=runs, tries=tries, seed=seed)


def curves(of, last):
    """Rows of a figure of one panel in which every algorithm ends with these regrets, one a run."""
    (panel,) = of.panels
    rows = [(panel.name, name, run, panel.rounds, x) for name, xs in last.items() for run, x in enumerate(xs)]
    return pl.DataFrame(rows, schema=["panel", "algorithm", "run", "round", "regret"], orient="row")


# What is tried


def test_a_sweep_reaches_every_algorithm_that_has_the_setting_and_leaves_it_open():
    of = figure("LinFP", "LinTS:c=5", "Greedy", "EpsGreedy:epsilon=0.1|0.2", settings=["c=1,2", "lam=1"])
    names = [str(spec) for spec in of.algorithms]
    assert names == [
        "LinFP:c=1,lam=1",
        "LinFP:c=2,lam=1",
        "LinTS:c=5,lam=1",
        "Greedy:lam=1",
        "EpsGreedy:epsilon=0.1,lam=1",
        "EpsGreedy:epsilon=0.2,lam=1",
    ]
    assert (of.name, of.x, set(of.varied)) == ("sweep", "setting", {"c", "lam", "epsilon"})
    # seen red: c of LinTS overwritten


def test_a_setting_that_no_algorithm_has_is_named():
    with pytest.raises(TypeError, match="no setting of LinFP or Greedy 'epsilom'"):
        figure("LinFP", "Greedy", settings=["epsilom=1,2"])
    with pytest.raises(TypeError, match="no setting of LinTS 'sigm': did you mean 'sigma'"):
        figure("LinTS", settings={"sigm": [1, 2]})
    with pytest.raises(ValueError, match="a sweep needs several values"):
        figure("LinTS", "LinFP:c=1")


def test_random_settings_are_the_same_for_both_and_written_down():
    of = figure("LinFP", "LinTS", settings=["c=log:0.01..10"], tries=6, seed=3)
    by = {name: [spec.value("c") for spec in of.algorithms if spec.name == name] for name in ("LinFP", "LinTS")}
    assert by["LinFP"] == by["LinTS"]
    assert len(set(by["LinFP"])) == 6
    assert figures.from_data(json.loads(json.dumps(figures.to_data(of)))) == of
    whole = figure("DeepFP", settings=["batch=2..6"], tries=3)
    assert all(isinstance(spec.value("batch"), int) for spec in whole.algorithms)


def test_groups_are_told_apart_by_what_does_not_vary():
    one, two, three = tried(specs("LinFP:lam=1,c=1|2", "LinFP:lam=2,c=1|2", "Greedy"), ["c"])
    assert [str(of.base) for of in (one, two, three)] == ["LinFP:lam=1", "LinFP:lam=2", "Greedy"]
    assert (one.varied, three.varied) == (("c",), ())
    (all_in_one,) = tried(specs("LinFP:lam=1,c=1|2", "LinFP:lam=2,c=1"))  # nothing said: whatever differs
    assert (set(all_in_one.varied), all_in_one.whole) == ({"c", "lam"}, False)
    (default,) = tried(specs("LinFP", "LinFP:c=0.1"))
    assert default.values == {"c": (0.1, 1.0)}  # what is not set has its default
    (mixed,) = tried(specs("LinTS:c=2|oful|1"))
    assert mixed.values == {"c": (2, "oful", 1)}
    assert mixed.setting(specs("LinTS:c=oful")[0]) == "c = oful"
    (preset,) = tried(specs("LinTS:preset=as_run|own_paper|default"))
    assert preset.values == {"preset": ("as_run", "own_paper", "default")}
    assert [logarithmic(x) for x in ((0.1, 2), (0.1, 1), (0, 100))] == [True, False, False]


@pytest.mark.parametrize(
    ("texts", "settings", "says"),
    [
        (("LinFP", "LinTS"), ["c=1,2"], None),
        (("LinFP", "LinTS", "Greedy"), ["c=1,2"], None),  # greedy has nothing that explores
        (("LinFP", "EpsGreedy:epsilon=0.1|0.2"), ["c=1,2"], None),
        (("LinFP", "EpsGreedy"), ["c=1,2"], "got LinFP 2, EpsGreedy 1"),
        (("LinFP:c=1|2|3", "LinTS:c=1|2"), [], "got LinFP 3, LinTS 2"),
        (("LinFP", "LinTS:c=1"), ["c=1,2"], "got LinFP 2, LinTS 1"),
    ],
)
def test_fair_means_as_many_tries(texts, settings, says):
    of = figure(*texts, settings=settings)
    if says is None:
        sweeps.check_fair(of)
    else:
        with pytest.raises(ValueError, match=says):
            sweeps.check_fair(of)
    # seen red: greedy counted


# What is chosen


def test_the_lowest_mean_wins_and_the_others_are_compared_run_by_run():
    of = figure("LinFP:c=1|2|3|4", "Greedy", runs=4)
    rows = curves(
        of,
        {
            "LinFP:c=1": [10.0, 20.0, 30.0, 40.0],
            "LinFP:c=2": [9.0, 19.0, 29.0, 38.0],
            "LinFP:c=3": [9.0, 18.0, 20.0, 80.0],
            "LinFP:c=4": [8.0, 20.0, 29.0, 38.0],
            "Greedy": [1.0, 2.0, 3.0, 4.0],
        },
    )
    fp, greedy = choices.choose(of, of.panels[0], rows)
    assert (str(fp.winner), fp.mean, fp.runs) == ("LinFP:c=2", 23.75, 4)
    assert fp.se == pytest.approx(np.std([9, 19, 29, 38], ddof=1) / 2)
    assert fp.gaps[specs("LinFP:c=1")[0]] == pytest.approx((1.25, 0.45, 2.05), abs=0.01)  # 1.25 ± 3.182·0.5/2
    assert [str(spec) for spec in fp.alike] == ["LinFP:c=3", "LinFP:c=4"]  # the first lies above in every run
    assert [str(spec) for spec in fp.equal] == ["LinFP:c=4"]
    assert (str(greedy.winner), greedy.gaps) == ("Greedy", {})
    # seen red: the median; the intervals of unpaired runs


def test_only_runs_that_all_settings_have_are_compared():
    of = figure("LinFP:c=1|2", runs=4)
    rows = curves(of, {"LinFP:c=1": [10.0, 20.0, 0.0, 0.0], "LinFP:c=2": [9.0, 19.0]})
    (choice,) = choices.choose(of, of.panels[0], rows)
    assert (str(choice.winner), choice.mean, choice.runs) == ("LinFP:c=2", 14.0, 2)
    with pytest.raises(ValueError, match="the settings of LinFP share no run"):
        choices.choose(of, of.panels[0], rows.filter((pl.col("run") == 0) ^ (pl.col("algorithm") == "LinFP:c=2")))
    # seen red: the mean over all runs of each


def test_the_words():
    of = figure("LinFP:c=1|2|3", "LinTS:c=1|2|3", "Greedy", runs=2)
    last = {"LinFP:c=1": [9.0, 10.0], "LinFP:c=2": [9.0, 10.0], "LinFP:c=3": [30.0, 31.5]}
    last |= {f"LinTS:c={c}": [5.0 / c, 8.0 / c] for c in (1, 2, 3)} | {"Greedy": [1.0, 1.0]}
    rows = curves(of, last)
    chosen = tuple(choices.choose(of, of.panels[0], rows))
    found = choices.SettingsSearch(of, 10**9, rows, chosen, {"LinFP:c=9": "it overflows"})
    fresh = figures.adhoc(ENV, found.winners, rounds=40, runs=2)
    values = tables.values(fresh, curves(fresh, {"LinFP:c=1": [12.0, 12.0], "LinTS:c=3": [3.0, 3.0]}))
    fp, ts, greedy, caution, failed = sweep_words.all_of(found, values, seed=0)
    assert fp == (
        "LinFP: c = 1 has the lowest regret of 3 settings tried, 9.50 ± 0.50 on the runs of the search "
        "(seed 1000000000). On fresh runs (seed 0) it has 12.0 ± 0.00. c = 2 has the same regret; the first was taken. "
        "It has the smallest c that was tried: look further there."
    )
    assert "It cannot be told apart from c = 1 and c = 2 (95 % interval" in ts
    assert ts.endswith("It has the largest c that was tried: look further there.")
    assert greedy == "Greedy: one setting, so nothing was chosen; 1.00 ± 0.00 on the runs of the search."
    assert caution == sweep_words.CAUTION
    assert failed == "LinFP:c=9 ended with an error and is left out: it overflows"
    one = choices.choose(of, of.panels[0], rows.filter(run=0))[1]
    assert "One run alone decides nothing." in sweep_words.chosen(one, None, 10**9, 0)
    # seen red: a tie that is not said; the end of the values that is not said


# The two parts


def test_the_search_and_the_report_share_no_run(tmp_path):
    found = sweeps.sweep(["LinFP:c=0.1|1|3", "Greedy"], ENV, rounds=40, runs=3, seed=5, out=tmp_path)
    store = Store(tmp_path / "store")
    cells = {seed: of_panel(found.search.figure.panels[0], seed=seed) for seed in (5, sweeps.search_seed(5))}
    (winner, greedy) = map(str, found.search.winners)
    stored = {seed: {name for name, cell in of.items() if store.runs(cell)} for seed, of in cells.items()}
    assert stored == {5: {winner, greedy}, 10**9 + 5: set(map(str, found.search.figure.algorithms))}
    by_hand = found.search.curves.filter(round=40).group_by("algorithm").agg(pl.col("regret").mean())
    assert winner == by_hand.filter(pl.col("algorithm") != "Greedy").sort("regret")["algorithm"][0]
    assert found.settings.height == 4
    assert found.winners["algorithm"].to_list() == [winner, greedy]
    fresh = store.read(cells[5][winner]).filter(round=40)["regret"].mean()
    assert found.winners["regret"][0] == pytest.approx(fresh)
    assert found.fresh.differences().height == 1
    assert sweep_words.CAUTION in str(found)
    assert {r.figure.name: r.seed for r in asked.figures(tmp_path)} == {"sweep": 10**9 + 5, "compare": 5}
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    again = sweeps.sweep(["LinFP"], ENV, settings={"c": [0.1, 1, 3, 9]}, rounds=40, runs=3, seed=5, out=tmp_path)
    assert files.items() <= {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}.items()  # kept
    assert len(again.search.choices[0].of.specs) == 4
    # seen red: the winner run with the seed of the search


@pytest.fixture
def fragile(monkeypatch):
    """Settings of LinFP with c above 2 fail when they run."""
    from dither_bench.run import computing as run

    whole = run.simulate

    def simulate(env, algorithms, **how):
        for spec in algorithms.values():
            if spec.name == "LinFP" and spec.value("c") > 2:
                raise ValueError(f"the estimate overflows at c={spec.value('c')}")
        return whole(env, algorithms, **how)

    monkeypatch.setattr(run, "simulate", simulate)


def test_a_setting_that_fails_is_left_out_and_said(tmp_path, fragile):
    found = sweeps.sweep(["LinFP:c=1|2|3", "Greedy"], ENV, rounds=20, runs=2, out=tmp_path)
    assert found.search.failed == {"LinFP:c=3": "the estimate overflows at c=3"}
    assert {str(spec) for spec in found.search.winners} <= {"LinFP:c=1", "LinFP:c=2", "Greedy"}
    assert "LinFP:c=3 ended with an error and is left out: the estimate overflows at c=3" in str(found)
    assert found.draw().axes


def test_where_every_setting_fails_the_reasons_are_said(tmp_path, fragile):
    with pytest.raises(ValueError, match=r"no setting of LinFP came to an end.*LinFP:c=3: the estimate.*LinFP:c=4: "):
        sweeps.sweep(["LinFP:c=3|4", "Greedy"], ENV, rounds=20, runs=2, out=tmp_path)
    with pytest.raises(ValueError, match="jobs must be a whole number"):
        sweeps.sweep(["LinFP:c=1|2", "Greedy"], ENV, rounds=20, runs=2, out=tmp_path, jobs=0)
    # seen red: the error of the first setting alone


# The picture


def visible(picture):
    return [ax for ax in picture.axes if ax.get_visible()]


def test_two_settings_are_a_map_with_the_values_in_it():
    of = figure("LinFP:c=1|2|3,lam=0.1|1", "Greedy", runs=1)
    means = {str(spec): [10.0 * spec.value("c") + spec.value("lam")] for spec in of.algorithms if spec.name == "LinFP"}
    picture = plots.draw(of, curves(of, means | {"Greedy": [7.0]}))
    (ax,) = visible(picture)
    (image,) = ax.images
    by_hand = np.array([[10 * c + lam for c in (1, 2, 3)] for lam in (0.1, 1)])
    np.testing.assert_array_equal(np.asarray(image.get_array()), by_hand)
    assert [text.get_text() for text in ax.texts] == [f"{x:.1f}" for x in by_hand.ravel()]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("c", "lam", "LinFP")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2", "3"]
    (frame,) = ax.patches
    assert frame.get_xy() == (-0.5, -0.5)  # round the lowest
    assert "Greedy: 7.00" in picture.get_supxlabel()
    # seen red: the map transposed


def test_the_words_in_a_map_can_be_read():
    of = figure("LinFP:c=1|2|3,lam=0.1|1|2", runs=1)
    means = {str(spec): [3.0 ** (spec.value("c") + spec.value("lam"))] for spec in of.algorithms}
    (ax,) = visible(plots.draw(of, curves(of, means)))
    (image,) = ax.images
    for text, value in zip(ax.texts, np.asarray(image.get_array()).ravel(), strict=True):
        ground, ink = (luminance(color) for color in (image.to_rgba(value), text.get_color()))
        light, dark = max(ground, ink) + 0.05, min(ground, ink) + 0.05
        assert light / dark >= 4.5  # what WCAG asks of text
    # seen red: white on the light half


def luminance(color):
    """Relative luminance of a colour, as WCAG 2 has it."""
    rgb = np.array(matplotlib.colors.to_rgb(color))
    return float(np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722])


def test_more_settings_show_the_best_of_each_value():
    of = figure("LinFP:c=1|2,lam=0.1|1,sigma=1|2", runs=1)
    means = {str(spec): [math.prod(dict(spec.settings).values())] for spec in of.algorithms}
    axes = visible(plots.draw(of, curves(of, means)))
    assert [ax.get_xlabel() for ax in axes] == ["c", "lam", "sigma"]
    for ax, best in zip(axes, ([0.1, 0.2], [0.1, 1.0], [0.1, 0.2]), strict=True):
        dots, line, _ = ax.lines
        assert len(dots.get_xdata()) == 8
        np.testing.assert_allclose(line.get_ydata(), best)
    # seen red: the mean of each value


def test_drawn_settings_are_dots_and_every_value_has_its_place():
    of = figure("LinFP", settings=["c=log:0.01..10", "lam=log:1e-4..1"], tries=5, runs=1)
    rows = curves(of, {str(spec): [float(i)] for i, spec in enumerate(of.algorithms)})
    axes = visible(plots.draw(of, rows, PictureLook(log=True)))
    for ax, name in zip(axes, ("c", "lam"), strict=True):
        dots, ring = ax.lines
        assert list(dots.get_xdata()) == [spec.value(name) for spec in of.algorithms]
        assert (list(ring.get_xdata()), ax.get_yscale()) == ([of.algorithms[0].value(name)], "log")


def test_words_and_numbers_share_an_axis_in_their_order():
    of = figure("LinTS:c=oful|2|0.5", "LinFP:c=0.5|1", runs=1)
    rows = curves(of, {str(spec): [float(i)] for i, spec in enumerate(of.algorithms)})
    (ax,) = visible(plots.draw(of, rows))
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.5", "1", "2", "oful"]
    lines = [(list(line.get_xdata()), list(line.get_ydata())) for line in ax.lines[::2]]
    assert lines == [([0, 2, 3], [2, 1, 0]), ([0, 1], [3, 4])]


# The command


def test_compare_with_a_sweep(dither, tmp_path):
    arguments = ("compare", "LinFP", "LinTS", "Greedy", "--sweep", "c=0.1,1,3", "--fair", *SMALL)
    code, out, err = dither(*arguments, "--out", tmp_path)
    assert code == 0, err
    made = {path.name for path in tmp_path.iterdir() if path.is_file()}
    kinds = (".csv", "-differences.csv", "-curves.csv", ".png", ".pdf")
    assert made == {name + kind for name in ("sweep", "compare") for kind in kinds}
    assert pl.read_csv(tmp_path / "sweep.csv").height == 7
    assert pl.read_csv(tmp_path / "compare.csv").height == 3
    text = " ".join(out.split())
    assert "LinFP: c = " in text
    assert "has the lowest regret of 3 settings tried" in text
    assert sweep_words.CAUTION in text
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    assert dither(*arguments, "--jobs", 2, "--out", tmp_path)[0] == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")} == before
    code, out, err = dither("report", tmp_path, "-o", tmp_path / "report.html")
    assert code == 0, err
    assert "these runs choose, and are not to be reported" in (tmp_path / "report.html").read_text("utf-8")


def test_jobs_change_nothing(dither, tmp_path):
    tables_made = []
    for jobs in (1, 2):
        arguments = ("compare", "LinFP", "--sweep", "c=log:0.1..3", "--tries", 3, *SMALL, "--jobs", jobs)
        code, _, err = dither(*arguments, "--out", tmp_path / str(jobs))
        assert code == 0, err
        tables_made.append((tmp_path / str(jobs) / "sweep.csv").read_bytes())
    assert tables_made[0] == tables_made[1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("LinFP", "--sweep", "cc=1,2"), "no setting of LinFP 'cc'"),
        (("LinFP:cc=1|2",), "no setting of LinFP 'cc'"),
        (("LinFP", "--sweep", "c"), "a sweep is written setting=value,value"),
        (("LinFP", "--sweep", "c=0.1..2"), "c=0.1..2 is a range: say how many values to draw of it (--tries 20"),
        (("LinFP", "--sweep", "c=1,2", "--sweep", "c=3"), "c is set twice"),
        (("LinFP", "--sweep", "lam=-1,1"), "lam must be a finite number above 0, got -1"),
        (("LinFP", "--sweep", "c=1,2", "--tries", 3), "only 2 different settings of LinFP were found"),
        (("LinFP", "--tries", 3), "a sweep needs several values"),
        (("LinFP", "--fair"), "a sweep needs several values"),
        (("LinFP", "EpsGreedy", "--sweep", "c=1,2", "--fair"), "a fair comparison tries as many settings"),
        (("LinFP", "--sweep", "c=1,2", "--runs", 0), "runs must be"),
        (("LinFP", "--sweep", "c=1,2", "--band", "s"), "no band 's'"),
    ],
)
def test_bad_sweeps_are_one_line_and_leave_nothing(dither, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    code, out, err = dither("compare", *arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert err.startswith("dither: ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_one_value_is_no_choice(dither, tmp_path):
    code, out, err = dither("compare", "LinFP", "--sweep", "c=2", *SMALL, "--out", tmp_path)
    assert code == 0, err
    text = " ".join(out.split())
    assert "LinFP:c=2: one setting, so nothing was chosen" in text
    assert sweep_words.CAUTION not in text


def test_a_later_sweep_adds_to_the_picture(dither, tmp_path):
    for values in ("c=0.1,1", "lam=1,2"):
        assert dither("compare", "LinFP", "--sweep", values, *SMALL, "--out", tmp_path)[0] == 0
    (whole,) = asked.figures(tmp_path, only="sweep")
    assert whole.figure.varied == ("c", "lam")
    assert len(whole.figure.algorithms) == 4


OWN = """
from dataclasses import dataclass

from dither import policies

@dataclass(frozen=True)
class Mine(policies.EpsGreedy):
    C: float = 0.5
"""


def test_an_algorithm_of_ones_own_is_swept(dither, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    code, out, err = dither("compare", "mine.py:Mine", "LinFP", "--sweep", "C=0.5,2", *SMALL, "--out", "results")
    assert code == 0, err
    names = pl.read_csv(tmp_path / "results" / "sweep.csv")["algorithm"].to_list()
    assert names == ["mine.py:Mine:C=0.5", "mine.py:Mine:C=2", "LinFP"]
    text = " ".join(out.split())
    assert "C = 0.5 has the lowest regret of 2 settings tried" in text  # C does nothing, and the first is taken
    assert "C = 2 has the same regret; the first was taken." in text
