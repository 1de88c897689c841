"""The numbers that the page draws are those of the tables. Each test says what was broken to see it red."""

import json
import math
from dataclasses import replace

import pytest

from dither.base.drawing import DARK, PALETTE
from dither_bench.define import figures, published
from dither_bench.define.figures import FIGURES
from dither_bench.judge import tables
from dither_bench.keep.store import STORE, Store
from dither_bench.show import interactive
from dither_bench.show.pictures import PictureLook
from stored import fabricated


def sketched(figure, out, **more):
    """-> (the curves, what the page gets of them)"""
    fabricated(figure, out=out)
    curves = tables.curves(figure, Store(out / STORE), seed=0, codes={})
    return curves, interactive.sketch(figure, curves, PictureLook(**more))


def test_a_panel_holds_what_its_table_holds(tmp_path):
    figure = figures.select(FIGURES["h1"], panels=["d=5", "d=20"])  # some published curves end in a lower bound
    curves, sketch = sketched(figure, tmp_path)
    assert [panel["name"] for panel in sketch["panels"]] == ["d=5", "d=20"]
    for panel, drawn in zip(figure.panels, sketch["panels"], strict=True):
        assert len(drawn["curves"]) == len(figure.algorithms) == len(sketch["curves"])
        for row in tables.values(figure, curves).filter(panel=panel.name, round=panel.rounds).iter_rows(named=True):
            (i,) = [i for i, curve in enumerate(sketch["curves"]) if curve["name"] == row["algorithm"]]
            (curve,) = [curve for curve in drawn["curves"] if curve["curve"] == i]
            at = drawn["x"].index(panel.rounds)
            assert curve["mean"][at] == pytest.approx(row["regret"], rel=1e-4)
            assert curve["se"][at] == pytest.approx(row["se"], rel=1e-2)
            assert len(curve["mean"]) == len(curve["se"]) == len(drawn["x"])
            (spec,) = [spec for spec in panel.algorithms if str(spec) == row["algorithm"]]
            paper = published.curve(figure, panel, algorithm=spec).filter(bound=False)
            assert curve.get("published", {"x": []})["x"] == paper["round"].to_list()
    # seen red: the numbers of another curve; lower bounds as points of the published curve


def test_a_figure_over_d_has_one_panel_and_a_marker_at_every_point(tmp_path):
    figure = figures.select(FIGURES["fig2b"], panels=["d=2", "d=5"])
    _, sketch = sketched(figure, tmp_path)
    (panel,) = sketch["panels"]
    assert (sketch["x"], panel["x"]) == ("d", [2, 5])
    assert all(curve["symbol"] for curve in sketch["curves"])
    assert panel["curves"][0]["published"]["mean"] == [
        pytest.approx(published.last(figure, p, algorithm=figure.algorithms[0]).mean, rel=1e-4) for p in figure.panels
    ]


def test_an_algorithm_without_results_in_one_panel_is_left_out_there(tmp_path):
    both = figures.select(FIGURES["h2"], panels=["d=10", "d=20"], rounds=50, algorithms=["LinFP", "Greedy"])
    first, second = both.panels
    figure = replace(both, panels=(first, replace(second, algorithms=second.algorithms[1:])))
    _, sketch = sketched(figure, tmp_path)
    assert [[curve["curve"] for curve in panel["curves"]] for panel in sketch["panels"]] == [[0, 1], [1]]
    assert not sketch["published"]  # another horizon is another experiment
    # seen red: places of the panel in place of those of the figure


def test_quartiles_are_the_band_where_they_are_asked_for(tmp_path):
    figure = figures.select(FIGURES["h2"], panels=["d=10"], rounds=50, algorithms=["LinFP", "Greedy"])
    curves, sketch = sketched(figure, tmp_path, band="quantiles")
    rows = tables.summary(curves).filter(algorithm="LinFP").sort("round")
    (curve, _) = sketch["panels"][0]["curves"]
    assert curve["low"] == pytest.approx(rows["low"].to_list(), rel=1e-3)
    assert curve["high"] == pytest.approx(rows["high"].to_list(), rel=1e-3)
    (curve, _) = interactive.sketch(figure, curves, PictureLook(band="median"))["panels"][0]["curves"]
    assert curve["mean"] == pytest.approx(rows["median"].to_list(), rel=1e-4)
    assert set(curve["se"]) == {None}  # seen red: the standard error of the mean beside a median


def test_a_sweep_is_a_picture_and_no_number_is_nan(tmp_path):
    figure = figures.select(FIGURES["h2"], panels=["d=10"], rounds=50, algorithms=["LinFP:c=0.1", "LinFP:c=1"])
    fabricated(figure, out=tmp_path, runs=1)  # which has no standard error
    curves = tables.curves(figure, Store(tmp_path / STORE), seed=0, codes={})
    assert interactive.sketch(replace(figure, x="setting"), curves) is None
    sketch = interactive.sketch(figure, curves)
    assert json.loads(json.dumps(sketch, allow_nan=False)) == sketch
    assert set(sketch["panels"][0]["curves"][0]["se"]) == {None}
    assert interactive._short(math.nan, 3) is None  # seen red: NaN, which is no JSON


def test_colours_can_be_seen_on_their_paper():
    def light(color):  # relative luminance, as WCAG defines it
        parts = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    paper = light("#14171a")  # of shell.css
    assert len(set(DARK)) == len(DARK) == len(PALETTE)
    assert all((light(color) + 0.05) / (paper + 0.05) > 4.5 for color in DARK)  # seen red: PALETTE itself
