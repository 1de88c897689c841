from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from dither.algorithms import specs
from dither.base import drawing, errors
from dither_bench.define import figures
from dither_bench.define.figures import FIGURES
from dither_bench.define.panels import with_shared
from dither_bench.judge import tables, words
from dither_bench.show import plots

CNN = FIGURES["h7"].shared
BOTH_GUESSED = specs("NeuralUCB:preset=as_run", "NeuralTS:preset=as_run")
GUESSED = [str(spec) for spec in BOTH_GUESSED]
FIG3, H6, H7, TUNING = (FIGURES[name] for name in ("fig3-neural", "h6", "h7", "neural-tuning"))


def curves(last, *, early, rounds=20_000, panel="mushroom"):
    """Runs that end at `last` and stood at `early` where the last tenth begins."""
    rows = [
        (panel, name, run, t, x)
        for name in last
        for run in range(len(last[name]))
        for t, x in ((1, 0.0), (18_001, early[name][run]), (rounds, last[name][run]))
    ]
    return pl.DataFrame(rows, schema=["panel", "algorithm", "run", "round", "regret"], orient="row")


LAST = {"DeepFP": [30.0, 20.0, 40.0, 400.0, 25.0], GUESSED[0]: [90.0, 100.0, 95.0, 90.0, 105.0]}
EARLY = {"DeepFP": [28.0, 18.0, 38.0, 300.0, 22.0], GUESSED[0]: [80.0, 80.0, 85.0, 80.0, 95.0]}
SMALL = figures.select(FIG3, panels=["mushroom"], algorithms=["DeepFP", GUESSED[0]])


def test_values_have_the_sd_the_preset_and_every_run():
    table = tables.values(SMALL, curves(LAST, early=EARLY)).rows_by_key("algorithm", named=True, unique=True)
    fp, ucb = table["DeepFP"], table[GUESSED[0]]
    assert (fp["each"], ucb["each"]) == ("30 20 40 400* 25", "90 100 95 90 105")
    assert (fp["preset"], ucb["preset"]) == ("paper", "as_run")
    assert (fp["regret"], fp["median"], ucb["median"]) == (103.0, 30.0, 95.0)
    assert fp["sd"] == pytest.approx(166.2, abs=0.1)  # √(((73² + 83² + 63² + 297² + 78²)/4)
    assert fp["se"] == pytest.approx(fp["sd"] / np.sqrt(5))
    assert (fp["published"], ucb["published"]) == (pytest.approx(88.8), pytest.approx(202.2))
    assert words.with_error(fp) == "103.0 ± 74.3"  # 166.2/√5; seen red: the sd behind the ± of this figure alone
    # seen red: the population's sd; the runs without their order


def test_other_figures_show_no_single_runs():
    whole = replace(SMALL, each=False)
    assert tables.values(whole, curves(LAST, early=EARLY))["each"].to_list() == ["", ""]
    many = {"DeepFP": [30.0] * 21, GUESSED[0]: [9.5] * 20}
    assert tables.values(SMALL, curves(many, early=many))["each"].to_list() == ["", " ".join(["9.5"] * 20)]


@pytest.mark.parametrize(
    ("late", "failed"),
    [
        ([30, 30, 61, 20, 10], [2]),  # more than twice 30
        ([30, 30, 60, 20, 10], []),
        ([2, 2, 20, 3, 2], []),  # chance: not above 20
        ([2, 2, 21, 3, 2], [2]),
        ([0, 0, 0, 500, 700], [3, 4]),
        ([30, 30, 30, 100, 400], [3, 4]),  # the mean is 118
        ([500, 900, 400, 500, 600], []),  # all bad
        ([500, 0], []),  # one of two: no median tells which
        ([500], []),
    ],
)
def test_what_collapsed_means(late, failed):
    assert np.flatnonzero(tables.collapsed(np.array(late, dtype=float))).tolist() == failed
    # seen red: the mean for the median; without the 20


def test_collapse_needs_an_earlier_round_of_all_runs():
    short = curves(LAST, early=EARLY).filter(round=20_000)
    assert tables.values(SMALL, short)["each"][0] == "30 20 40 400 25"


def test_the_words():
    made = curves(LAST, early=EARLY)
    values, differences = tables.values(SMALL, made), tables.differences(SMALL, made)
    assert words.collapsed(values) == "Collapsed runs (*): DeepFP 1. Their means say little."
    assert words.collapsed(values.filter(algorithm=GUESSED[0])) == words.of_each(values) == ""
    text = words.verdict(SMALL.panels[0], 20_000, values, differences)
    assert "NeuralUCB:preset=as_run, 96.0 ± 2.92, of 2 compared. DeepFP has 103.0 ± 74.3." in text
    rows = [{"algorithm": f"{a}:c={c}", "regret": 10.0 * c, "se": 1.0} for a in ("A", "B") for c in (3, 1, 2)]
    rows += [{"algorithm": f"C:c={c}", "regret": 5.0, "se": 1.0} for c in (1, 2)]
    best = "A:c=1 (10.0 ± 1.00, of 3 tried) and B:c=1 (10.0 ± 1.00, of 3 tried)"
    assert words.of_each(pl.DataFrame(rows)) == f"Lowest of each algorithm's settings: {best}. {words.SELECTED}"
    assert errors.listed(list("abcdefghij")).endswith("i and j")
    assert errors.listed(list("abcdefghijk")) == "a, b, c, d, e, f, g, h and 3 more"


def test_in_brief():
    names = [f"DeepFP:{CNN}", str(with_shared(BOTH_GUESSED[0], CNN))]
    figure = figures.select(H7, panels=["fashion-mnist"], algorithms=names)
    made = curves(
        dict(zip(names, LAST.values(), strict=True)),
        early=dict(zip(names, EARLY.values(), strict=True)),
        panel="fashion-mnist",
    )
    brief, values, differences = words.briefly(figure, tables.values(figure, made), tables.differences(figure, made))
    assert brief.panels[0].algorithms == specs("DeepFP", GUESSED[0])
    assert values["algorithm"].to_list() == ["DeepFP", GUESSED[0]]
    assert differences.select("algorithm", "reference").row(0) == (GUESSED[0], "DeepFP")
    assert words.shared(figure) == "All with convolutions=32x64, hidden=128, image=28x28."
    assert words.briefly(SMALL, values, differences)[0] is SMALL
    picture = plots.draw(figure, made)
    assert [text.get_text() for text in picture.legends[0].get_texts()] == ["DeepFP", GUESSED[0]]


# Pictures


def test_the_search_is_drawn_against_its_values():
    names = ["DeepFP:c=1.0", "DeepFP:c=0.1", "DeepFP:c=3.0", "FTPL:a=0.1", "FTPL:a=1.0", "DeepGreedy"]
    figure = figures.select(TUNING, panels=["mushroom"], algorithms=names)
    last = {name: [10.0 * i, 10.0 * i + 2] for i, name in enumerate(names)}
    rows = [("mushroom", a, run, 5000, x) for a in names for run, x in enumerate(last[a])]
    made = pl.DataFrame(rows, schema=["panel", "algorithm", "run", "round", "regret"], orient="row")
    picture = plots.draw(figure, made)
    of_c, of_a = (ax for ax in picture.axes if ax.get_visible())
    for ax, name, line, lowest in (
        (of_c, "c", ([0.1, 1, 3], [11, 1, 21]), ([1], [1])),
        (of_a, "a", ([0.1, 1], [31, 41]), ([0.1], [31])),
    ):
        lines = [(list(line.get_xdata()), list(line.get_ydata())) for line in ax.lines]
        assert lines == [line, lowest, ([0, 1], [51, 51])]  # the last is that of greedy
        assert (ax.get_xlabel(), ax.get_xscale()) == (name, "log" if name == "c" else "linear")
        assert ax.get_ylim() == of_c.get_ylim()
    labels = [text.get_text() for text in picture.legends[0].get_texts()]
    assert labels == ["DeepFP", "FTPL", "DeepGreedy"]
    # seen red: the values in the order of the figure


@pytest.mark.parametrize("figure", [FIG3, H6, H7, TUNING], ids=lambda figure: figure.name)
def test_the_legend_fits(figure):
    rows = [(p.name, str(a), 0, t, float(t)) for p in figure.panels[:1] for a in p.algorithms for t in (1, p.rounds)]
    picture = plots.draw(
        figure, pl.DataFrame(rows, schema=["panel", "algorithm", "run", "round", "regret"], orient="row")
    )
    drawing.png(picture)
    box = picture.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= picture.bbox.x1
    # seen red: always four columns
