"""Figures whose runs are drawn by a counter: what is kept says so, and runs of streams are other runs."""

import dataclasses
import json

import pytest
from numpy.testing import assert_array_equal

import dither
from dither import envs, experiments
from dither_bench.define import environments, figures
from dither_bench.keep import asked, provenance
from dither_bench.keep.store import STORE, Store, of_panel
from dither_bench.run import run
from stored import fabricated

WORLD = {"name": "linear", "dim": 3, "arms": 5}
FIGURE = figures.adhoc(environments.describe(**WORLD), ["LinFP"], rounds=20, runs=3)
COUNTED = figures.drawn_by(FIGURE, chance="counter", device=None)
QUICK = ("--dim", 3, "--arms", 5, "--rounds", 20, "--runs", 3)


def cell(figure):
    return of_panel(figure.panels[0], seed=0)["LinFP"]


def test_runs_by_a_counter_are_kept_apart_from_those_of_streams(tmp_path):
    assert run.reproduce(COUNTED, out=tmp_path) == 1
    assert run.reproduce(COUNTED, out=tmp_path) == 0
    assert run.reproduce(FIGURE, out=tmp_path) == 1
    store = Store(tmp_path / STORE)
    for figure, chance in ((FIGURE, "streams"), (COUNTED, "counter")):
        last = store.read(cell(figure)).filter(round=20)["regret"].to_numpy()
        results = dither.simulate(envs.Linear(dim=3, arms=5), ["LinFP"], rounds=20, runs=3, record=[20], chance=chance)
        assert_array_equal(last, results.regret[0, :, 0])
        assert store.about(cell(figure))[0]["cell"].get("chance", "streams") == chance
    # seen red: a cell without its chance


def test_cells_of_streams_are_those_of_before():
    assert cell(FIGURE).key != cell(COUNTED).key
    assert "chance" not in cell(FIGURE).content()
    data = figures.to_data(FIGURE)
    assert not {"chance", "device"} & data["panels"][0].keys()
    for figure in (FIGURE, COUNTED, figures.drawn_by(FIGURE, chance="counter", device="cpu")):
        assert figures.from_data(json.loads(json.dumps(figures.to_data(figure)))) == figure


def test_a_figure_asked_for_with_other_chance_is_another_figure(tmp_path):
    fabricated(FIGURE, out=tmp_path)
    fabricated(COUNTED, out=tmp_path)
    (request,) = asked.figures(tmp_path)
    assert request.figure.panels[0].chance == "counter"
    assert provenance.of(request, Store(tmp_path / STORE)).chance == ("counter",)


def test_the_device_is_kept_beside_the_runs(tmp_path):
    pytest.importorskip("torch")
    there = figures.drawn_by(FIGURE, chance="counter", device="cpu")
    assert cell(there) == cell(COUNTED)  # the same runs, up to rounding
    run.reproduce(there, out=tmp_path)
    (about,) = Store(tmp_path / STORE).about(cell(there))
    assert about["device"] == "cpu"


def test_compare_passes_it_on():
    kept = experiments.compare(["LinFP"], WORLD, rounds=20, runs=3, chance="counter")
    results = dither.simulate(envs.Linear(dim=3, arms=5), ["LinFP"], rounds=20, runs=3, record=[20], chance="counter")
    assert_array_equal(kept.curves.filter(round=20)["regret"].to_numpy(), results.regret[0, :, 0])
    assert kept.figure.panels[0].chance == "counter"
    assert "chance by counter" in repr(results)


def test_the_commands_say_what_runs_are_drawn_by(dither, tmp_path):
    dither("compare", "LinFP", *QUICK, "--chance", "counter", "--out", tmp_path)
    (request,) = asked.figures(tmp_path)
    assert request.figure.panels[0].chance == "counter"
    dither("report", tmp_path, "-o", tmp_path / "r.html")
    assert "chance by counter" in (tmp_path / "r.html").read_text(encoding="utf-8")
    figure = dataclasses.replace(figures.find("fig3-linear"), runs=1)
    dither(
        *("reproduce", figure.name, "--panel", figure.panels[0].name, "--algorithm", "Greedy", "--rounds", 5),
        *("--runs", 1, "--chance", "counter", "--out", tmp_path),
    )
    (request,) = asked.figures(tmp_path, only=figure.name)
    assert {panel.chance for panel in request.figure.panels} == {"counter"}


def test_what_has_no_such_chance_is_refused():
    with pytest.raises(ValueError, match="chance must be one of 'streams', 'counter'; got 'dice'"):
        figures.drawn_by(FIGURE, chance="dice", device=None)
