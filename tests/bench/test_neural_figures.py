import csv
import json
import re
from collections import Counter
from importlib import resources

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither import models
from dither.algorithms import ALGORITHMS, Spec, specs
from dither.models.network.layout import layout
from dither_bench.commands import report
from dither_bench.define import figures, published
from dither_bench.define.environments import Outline, outline
from dither_bench.define.figures import FIGURES
from dither_bench.define.panels import with_shared, without_shared
from dither_bench.judge import tables
from dither_bench.keep import asked
from dither_bench.keep.store import of_panel
from dither_bench.plan import costs

PAPER = specs("DeepFP", "DeepEpsGreedy", "NeuralUCB", "NeuralTS", "FTPL")
GUESSED = specs("NeuralUCB:preset=as_run", "NeuralTS:preset=as_run")
CNN = FIGURES["h7"].shared
FIG3, H6, H7, TUNING = (FIGURES[name] for name in ("fig3-neural", "h6", "h7", "neural-tuning"))
LEGEND = {  # as in the legend of Figure 3
    "DeepFP": "DeepFP",
    "DeepEpsGreedy": "deep ε-Greedy",
    "NeuralUCB": "NeuralUCB",
    "NeuralTS": "NeuralTS",
    "FTPL": "FTPL",
}
TINY = ("reproduce", "fig3-neural", "--rounds", 60, "--runs", 2, "--algorithm", "DeepFP", "--algorithm", "DeepGreedy")


@pytest.fixture
def data(data_folder, monkeypatch):
    monkeypatch.setenv("DITHER_DATA", str(data_folder))


# The figures as data


def test_the_settings_are_the_papers():
    assert [(p.name, p.env["name"], p.env["preprocessing"]) for p in FIG3.panels] == [
        ("shuttle", "shuttle", "standard"),
        ("isolet", "isolet", "standard"),
        ("mushroom", "mushroom", "standard"),
        ("shuttle, unit length", "shuttle", "paper"),
        ("isolet, unit length", "isolet", "paper"),
        ("mushroom, unit length", "mushroom", "paper"),
    ]
    assert {(f.runs, p.rounds) for f in (FIG3, H6) for p in f.panels} == {(5, 20_000)}
    assert [(p.name, p.rounds) for p in H7.panels] == [("mnist", 50_000), ("fashion-mnist", 20_000)]
    for figure, hidden, filters in ((FIG3, (50, 50), ()), (H6, (100,), ()), (H7, (128,), (32, 64))):
        for spec in figure.algorithms:
            net = costs.network(spec)
            assert (costs._widths(net["hidden"]), costs._widths(net["convolutions"])) == (hidden, filters)
            assert (net["batch"], net["window"], net["lr"], net["steps"], net["every"]) == (32, 32, 0.001, 1, 1)
    assert [spec.name for spec in H7.algorithms] == [spec.name for spec in FIG3.algorithms]
    # seen red: "DeepFP:hidden=50x50" in h6


def test_the_search_gives_every_algorithm_five_values():
    counts = Counter(spec.name for spec in TUNING.algorithms)
    assert counts.pop("DeepGreedy") == 1
    assert set(counts) == {*LEGEND, "DeepFP-scalar"}
    assert set(counts.values()) == {5}
    assert len(TUNING.algorithms) == len({cell.key for cell in of_panel(TUNING.panels[0], seed=0).values()})
    assert (TUNING.runs, {p.rounds for p in TUNING.panels}) == (3, {5000})
    assert "--seed 1000" in " ".join(note.text for note in TUNING.notes)


def test_they_can_be_run(data):
    for figure in (FIG3, H6, TUNING, figures.select(FIG3, panels=["shuttle, unit length"])):
        figures.check(figures.select(figure, panels=[p.name for p in figure.panels if p.env["name"] != "isolet"]))


def test_the_two_preprocessings_are_two_results():
    keys = [cell.key for figure in (FIG3, H6) for p in figure.panels for cell in of_panel(p, seed=0).values()]
    assert len(set(keys)) == len(keys) == 2 * 6 * 8


def test_both_preprocessings_stand_beside_the_published_curve():
    with resources.files("dither_bench.define").joinpath("published.csv").open(encoding="utf-8") as file:
        drawn = [row for row in csv.DictReader(file) if row["figure"] == "fig3-neural"]
    assert len(drawn) == 596
    for panel in FIG3.panels:
        for spec in (*PAPER, *GUESSED):
            theirs = {
                int(row["round"]): (float(row["regret_mean"]), row["clipped"] == "1")
                for row in drawn
                if (row["panel"], row["algorithm"]) == (panel.env["name"], LEGEND[spec.name])
            }
            found = published.curve(FIG3, panel, algorithm=spec)
            assert {t: (mean, bound) for t, mean, bound in found.select("round", "mean", "bound").iter_rows()} == theirs
            assert found["se"].null_count() == 0
            assert max(theirs) == 20_000
        assert published.curve(FIG3, panel, algorithm=Spec("DeepGreedy")).is_empty()
        assert published.ends(FIG3, panel) == [20_000]
    for figure in (H6, H7, TUNING):
        assert all(published.ends(figure, panel) == [panel.rounds] for panel in figure.panels)
    # seen red: the panel's own name instead of `drawn` (nothing for unit length)


def test_some_ends_as_they_are_read_off():
    end = {
        (panel.name, str(spec)): published.last(FIG3, panel, algorithm=spec)
        for panel in FIG3.panels
        for spec in FIG3.algorithms
    }
    assert end["shuttle", "FTPL"].mean == pytest.approx(696, abs=1)
    assert end["shuttle", "DeepFP"][1:3] == pytest.approx((725, 55), abs=1)  # mean ± standard error
    assert end["isolet, unit length", "DeepFP"].mean == pytest.approx(3696, abs=1)
    assert end["mushroom", "DeepFP"].mean == pytest.approx(89, abs=0.5)
    assert [key for key, of in end.items() if of is not None and of.bound] == [
        (panel, name) for panel in ("mushroom", "mushroom, unit length") for name in ("NeuralTS", str(GUESSED[1]))
    ]


def test_every_difference_from_the_paper_has_what_is_known_of_it():
    for panel in FIG3.panels:
        for spec in (*PAPER, *GUESSED):
            assert sum(note.explains(panel.name, spec) for note in FIG3.notes) == 1
            why = tables._why(FIG3, panel, algorithm=spec)
            assert ("λ and ν" in why) == spec.name.startswith("Neural")
            assert ("ε" in why) == spec.name.startswith("DeepEps")


def test_requests_of_before_can_be_read(tmp_path):
    data = figures.to_data(FIG3)
    for part in (data, *data["panels"]):
        for key in ("each", "shared", "drawn"):
            part.pop(key, None)
    old = figures.from_data(data)
    assert (old.each, old.shared, {p.drawn for p in old.panels}) == (False, "", {""})
    asked.record(tmp_path, FIG3, seed=0)
    path = next((tmp_path / asked.FOLDER).iterdir())
    path.write_text(json.dumps({"seed": 0, "figure": data}), encoding="utf-8")
    assert asked.figures(tmp_path) == [asked.FigureRequest(old, 0, {})]


# Settings that all share


@given(
    st.sampled_from(["DeepFP", "NeuralUCB", "NeuralTS", "FTPL", "DeepEpsGreedy", "DeepGreedy"]),
    st.sampled_from(["", "preset=as_run", "lr=0.01", "lr=0.01,preset=own_paper", "batch=8"]),
    st.sampled_from(["", "hidden=100", CNN, "hidden=50x50,steps=2"]),
)
def test_shared_settings_come_and_go(base, settings, shared):
    spec = Spec.parse(f"{base}:{settings}")
    full = with_shared(spec, shared)
    assert Spec.parse(str(full)) == full
    assert without_shared(full, shared) == spec
    assert with_shared(full, shared) == full
    assert dict(full.settings) == dict(Spec.parse(f"{base}:{shared}").settings) | dict(spec.settings)
    # seen red: the shared settings over the algorithm's own


def test_what_an_algorithm_sets_itself_wins():
    deep, linear, last = specs("DeepFP:hidden=7,c=2", "LinFP", "NeuralLinear")
    assert str(with_shared(deep, "hidden=100")) == str(without_shared(deep, "hidden=100")) == "DeepFP:c=2,hidden=7"
    assert with_shared(linear, "hidden=100") == linear  # it has no layers
    assert with_shared(last, CNN) == last  # nor it convolutions
    chosen = figures.select(H7, panels=["mnist"], algorithms=["DeepFP", "DeepGreedy", "LinFP"])
    assert chosen.algorithms == specs(f"DeepFP:{CNN}", f"DeepGreedy:{CNN}", "LinFP")
    assert figures.select(FIG3, algorithms=["DeepFP"]).algorithms == specs("DeepFP")
    # seen red: `select` without the shared settings (a perceptron in Figure H.7)


# What it costs


@pytest.mark.parametrize("slots", [None, 4])
@pytest.mark.parametrize("hidden", [(100,), (50, 50)])
def test_the_weights_are_those_of_the_network(monkeypatch, slots, hidden):
    monkeypatch.setattr(costs, "CALLS", 0.0)
    monkeypatch.setattr(costs, "PRODUCT", 0.0)
    monkeypatch.setattr(costs, "WEIGHT", 1.0)
    name = f"DeepFP:hidden={'x'.join(map(str, hidden))}"
    found = costs.microseconds(Outline(arms=4, dim=9, disjoint=slots is not None), Spec.parse(name), rounds=1)
    assert found == layout(9, slots, hidden).size
    less = Spec.parse(name + ",every=4,steps=2")
    assert costs.microseconds(Outline(4, 9, slots is not None), less, rounds=1) == found / 2


def test_the_weights_of_the_convolutions_by_hand(monkeypatch):
    monkeypatch.setattr(costs, "CALLS", 0.0)
    monkeypatch.setattr(costs, "WEIGHT", 0.0)
    monkeypatch.setattr(costs, "PRODUCT", 1.0)
    one = 784 * 9 * 32 + 196 * 9 * 32 * 64 + 64 * 7 * 7 * 128 + 128  # products for one image in one slot
    spec = Spec.parse(f"DeepFP:{CNN}")
    assert costs.microseconds(outline(H7.panels[0].env), spec, rounds=1) == one * (10 + 3 * 32)


def test_the_catalogue_builds_no_network_and_reads_no_data(dither, monkeypatch):
    def built(*arguments):
        raise AssertionError("the catalogue needs neither torch nor data")

    monkeypatch.setattr(models.Network, "__post_init__", built)
    monkeypatch.setattr("dither.datasets.environment", built)
    code, out, err = dither("figures")
    assert code == 0, err
    assert all(figure.name in out for figure in (FIG3, H6, H7, TUNING))
    assert "All with hidden=100" in out
    assert "NeuralTS, 5 settings" in out
    # seen red: `seconds` with `build` and `configured`


# The command line


def test_reproduce(dither, data, tmp_path):
    code, out, err = dither(*TINY, "--panel", "mushroom", "--panel", "mushroom, unit length", "--out", tmp_path)
    assert code == 0, err
    table = pl.read_csv(tmp_path / "fig3-neural.csv")
    assert table.select("panel", "algorithm").rows() == [
        (panel, name) for panel in ("mushroom", "mushroom, unit length") for name in ("DeepFP", "DeepGreedy")
    ]
    ends = {}
    for row in table.iter_rows(named=True):
        runs = [float(x) for x in row["each"].split()]
        assert (len(runs), row["regret"]) == (2, pytest.approx(np.mean(runs)))
        assert row["sd"] == pytest.approx(np.std(runs, ddof=1))
        ends[row["panel"], row["algorithm"]] = runs
    assert ends["mushroom", "DeepFP"] != ends["mushroom, unit length", "DeepFP"]
    for text in ("mean ± standard error", " ours ", " sd ", "each run", "ε-greedy is told the horizon"):
        assert text in " ".join(out.split())
    assert re.search(r"DeepFP +paper", out)
    html = report.write(tmp_path, tmp_path / "report.html").read_text("utf-8")
    for text in (
        "Every run",
        "the number behind ± is the standard error of the mean",
        'ours ± <abbr title="standard error of the mean over the runs">se</abbr>',
        ">sd</abbr></th>",
        "<td>paper</td>",
        "preprocessing paper",
    ):
        assert text in html


def test_reproduce_the_convolutions(dither, data, tmp_path):
    pytest.importorskip("torch")
    settings = ("--panel", "mnist", "--rounds", 3, "--runs", 1, "--algorithm", "DeepGreedy", "--out", tmp_path)
    code, out, err = dither("reproduce", "h7", *settings)
    assert code == 0, err
    assert pl.read_csv(tmp_path / "h7.csv")["algorithm"].to_list() == [f"DeepGreedy:{CNN}"]
    assert " DeepGreedy " in out
    html = report.write(tmp_path, tmp_path / "report.html").read_text("utf-8")
    assert 'DeepGreedy <span class="soft">(not in the paper)</span></th>' in html
    assert all("All with convolutions=32x64, hidden=128, image=28x28." in page for page in (out, html))
    # seen red: the whole name in the report


def test_compare_shows_every_run_of_networks(dither, tmp_path):
    settings = ("--dim", 3, "--arms", 4, "--rounds", 20, "--runs", 2, "--out", tmp_path)
    code, out, err = dither("compare", "DeepFP", "LinFP", *settings)
    assert code == 0, err
    assert "each run" in out
    assert "each run" not in dither("compare", "LinFP", *settings[:-1], tmp_path / "linear")[1]
    assert {ALGORITHMS[name].model for name in ("DeepFP", "LinFP")} == {models.Network, models.Ridge}
