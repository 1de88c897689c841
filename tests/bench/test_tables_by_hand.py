import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from dither.algorithms import specs
from dither_bench.define import figures, published
from dither_bench.define.figures import FIGURES
from dither_bench.define.panels import Note
from dither_bench.define.published import End
from dither_bench.judge import tables, words

FIGURE = replace(
    figures.select(
        FIGURES["fig3-linear"], panels=["d=10"], rounds=9, algorithms=["LinFP", "LinTS", "LinUCB", "Greedy"]
    ),
    notes=(Note("a known reason", algorithms=specs("LinUCB"), panels=("d=10",)),),
)
LAST = {  # regret at the horizon, run by run
    "LinFP": [300.0, 310.0, 320.0],
    "LinTS": [500.0, 512.0, 524.0],
    "LinUCB": [290.0, 300.0, 310.0],
    "Greedy": [290.0, 330.0],
}
THEIRS = {"LinFP": End(9, 305.0, 10.0), "LinTS": End(9, 600.0, None), "LinUCB": End(9, 500.0, 10.0)}


@pytest.fixture
def curves(monkeypatch):
    monkeypatch.setattr(published, "last", lambda figure, panel, algorithm: THEIRS.get(str(algorithm)))
    rows = [("d=10", a, run, t, r * t / 9) for a, rs in LAST.items() for run, r in enumerate(rs) for t in (1, 9)]
    return pl.DataFrame(rows, schema=["panel", "algorithm", "run", "round", "regret"], orient="row")


def test_values(curves):
    table = tables.values(FIGURE, curves)
    assert table["algorithm"].to_list() == list(LAST)
    assert table["regret"].to_list() == pytest.approx([310, 512, 300, 310])
    assert table["se"].to_list() == pytest.approx([10 / math.sqrt(3), 12 / math.sqrt(3), 10 / math.sqrt(3), 20])
    assert table["ratio"].to_list()[:3] == pytest.approx([310 / 305, 512 / 600, 0.6])
    assert table["ratio"][3] is None
    assert table["runs"].to_list() == [3, 3, 3, 2]
    assert table["value"].to_list() == ["open", "open", "differs", "-"]
    assert table["note"].to_list() == ["", "", "a known reason", ""]
    # seen red: the population's standard deviation; the note without its panel


def test_differences_are_paired(curves):
    table = tables.differences(FIGURE, curves).rows_by_key("algorithm", named=True, unique=True)
    assert set(table) == {"LinTS", "LinUCB", "Greedy"}
    ts = table["LinTS"]  # 200, 202, 204: mean 202, se 2/√3, t(2 degrees of freedom) = 4.303 from the printed table
    half = 4.303 * 2 / math.sqrt(3)
    assert (ts["difference"], ts["low"], ts["high"]) == pytest.approx((202, 202 - half, 202 + half), rel=1e-4)
    assert (ts["runs"], ts["published"], ts["order"]) == (3, 295.0, "agrees")
    ucb = table["LinUCB"]  # −10 in every run: below for certain, and published above
    assert (ucb["difference"], ucb["low"], ucb["high"], ucb["order"]) == (-10, -10, -10, "disagrees")
    greedy = table["Greedy"]  # −10 and 20 in the two runs that both have
    assert (greedy["difference"], greedy["runs"], greedy["order"]) == (5, 2, "-")
    assert greedy["high"] - 5 == pytest.approx(12.706 * 15, rel=1e-4)
    # seen red: the interval of two unpaired means; the normal quantile for that of t


def test_an_interval_that_holds_zero_decides_nothing(curves):
    theirs = {"LinUCB": [290.0, 340.0, 300.0]}
    changed = curves.with_columns(
        regret=pl.when(algorithm="LinUCB", round=9)
        .then(pl.col("run").replace_strict(dict(enumerate(theirs["LinUCB"])), return_dtype=pl.Float64))
        .otherwise("regret")
    )
    table = tables.differences(FIGURE, changed).rows_by_key("algorithm", named=True, unique=True)
    assert table["LinUCB"]["order"] == "open"
    fewer = tables.differences(FIGURE, curves.filter(~((pl.col("algorithm") == "LinFP") & (pl.col("run") == 2))))
    assert fewer.row(by_predicate=pl.col("algorithm") == "LinTS", named=True)["difference"] == 201  # 200 and 202
    one = tables.differences(FIGURE, curves.filter(run=0)).rows_by_key("algorithm", named=True, unique=True)
    assert (one["LinTS"]["low"], one["LinTS"]["order"]) == (None, "open")


@pytest.mark.parametrize(
    ("low", "high", "published", "error", "word"),
    [
        (1.0, 3.0, 5.0, 0.0, "agrees"),
        (1.0, 3.0, -5.0, 2.0, "disagrees"),
        (1.0, 3.0, -5.0, 2.6, "open"),  # the published order is chance too
        (-1.0, 3.0, 5.0, 0.0, "open"),
        (0.0, 0.0, 5.0, 0.0, "open"),
        (None, None, 5.0, 0.0, "open"),
        (1.0, 3.0, 0.0, 0.0, "open"),
        (1.0, 3.0, None, 0.0, "-"),
    ],
)
def test_an_order_needs_both_sides(low, high, published, error, word):
    """Seen red with the sign of the published difference alone."""
    assert tables._order(low, high, published=published, error=error) == word


@pytest.mark.parametrize(
    ("end", "base", "gap"),
    [
        (End(9, 5.0, None), End(9, 3.0, None), 2.0),
        (End(9, 5.0, None, True), End(9, 3.0, None), 2.0),  # at least 2
        (End(9, 2.0, None, True), End(9, 3.0, None), None),
        (End(9, 5.0, None), End(9, 3.0, None, True), None),  # at most 2
        (End(9, 2.0, None), End(9, 3.0, None, True), -1.0),
        (End(9, 5.0, None, True), End(9, 3.0, None, True), None),
        (None, End(9, 3.0, None), None),
    ],
)
def test_what_bounds_say_of_an_order(end, base, gap):
    assert tables._gap(end, base) == gap
    # seen red: the difference of bounds as that of values


def test_the_lowest_is_marked_where_it_is_told_apart(curves):
    def lowest(found):
        return tables.values(FIGURE, found).filter("lowest")["algorithm"].to_list()

    assert lowest(curves) == []  # LinUCB is below LinFP for certain, and not told apart from Greedy: 0 and 30
    without = curves.filter(pl.col("algorithm") != "Greedy")
    assert lowest(without) == ["LinUCB"]
    assert lowest(without.filter(run=0)) == []  # one run decides nothing
    assert lowest(curves.filter(algorithm="LinUCB")) == []  # below nothing
    # seen red: the lowest mean; a comparison with the reference alone


def test_curves_that_end_early_are_met_where_they_end(curves, monkeypatch):
    ends = {"LinFP": End(1, 30.0, 1.0), "LinTS": End(1, 70.0, None, True)}
    monkeypatch.setattr(published, "last", lambda figure, panel, algorithm: ends.get(str(algorithm)))
    figure = replace(FIGURE, compares="order")
    values, differences = tables.values(figure, curves), tables.differences(figure, curves)
    assert values["round"].to_list() == [1] * 4 + [9] * 4
    early = values.filter(round=1)
    assert early["published"].to_list() == [30.0, 70.0, None, None]
    assert early["regret"].to_list() == pytest.approx([310 / 9, 512 / 9, 300 / 9, 310 / 9])
    assert [words.published(row) for row in early.iter_rows(named=True)] == ["30.0", "> 70.0", "–", "–"]
    assert early["ratio"].to_list() == [pytest.approx(310 / 270), None, None, None]
    assert early["value"].to_list() == ["order only", "order only", "-", "-"]
    assert values.filter(round=9)["published"].null_count() == 4
    assert values.filter(round=9)["regret"].to_list() == pytest.approx([310, 512, 300, 310])
    orders = {(t, a): order for t, a, order in differences.select("round", "algorithm", "order").iter_rows()}
    assert orders[1, "LinTS"] == "agrees"
    assert orders[9, "LinTS"] == orders[1, "LinUCB"] == "-"
    assert differences.filter(round=1, algorithm="LinTS")["difference"].item() == pytest.approx(202 / 9)
    assert "at round 1: LinUCB" in words.verdict(figure.panels[0], 1, values, differences)
    assert words.not_reproduced(figure.panels[0], 1, values, differences) == []
    # seen red: ours at the horizon beside the published end; a verdict on values in a figure that compares orders


def test_the_bands(curves):
    row = tables.summary(curves).row(by_predicate=(pl.col("algorithm") == "LinTS") & (pl.col("round") == 9), named=True)
    assert (row["mean"], row["low"], row["high"], row["runs"]) == (512, 506, 518, 3)
    assert row["se"] == pytest.approx(12 / math.sqrt(3))


def test_the_words(curves):
    values, differences = tables.values(FIGURE, curves), tables.differences(FIGURE, curves)
    text = words.verdict(FIGURE.panels[0], 9, values, differences)
    assert "Lowest regret at round 9: LinUCB, 300.0 ± 5.77, of 4 compared." in text
    assert "Below LinFP (95 % interval of the paired difference): LinUCB." in text
    assert "Not told apart from LinFP: Greedy." in text
    assert "Above it: LinTS." in text
    missed = words.not_reproduced(FIGURE.panels[0], 9, values, differences)
    assert [sentence.split(":")[0] for sentence in missed] == ["LinUCB", "LinUCB against LinFP"]
    assert missed[0] == "LinUCB: 300.0 where 500.0 is published (ratio 0.60 [0.56, 0.64]). a known reason"
    values = values.with_columns(note=pl.lit(""))
    missed = words.not_reproduced(FIGURE.panels[0], 9, values, differences)
    assert missed[0].endswith("3 runs say little: the standard error is a guess too. Take more.")
    missed = words.not_reproduced(FIGURE.panels[0], 9, values.with_columns(runs=pl.lit(words.FEW)), differences)
    assert missed[0].endswith("No reason is known.")


def test_numbers_and_durations():
    assert [words.number(x) for x in (None, 0.1234, 12.34, 34460.2, -0.5)] == ["–", "0.12", "12.3", "34,460", "−0.50"]
    small = [words.number(x, signed=True) for x in (0.0999, -0.0123, 0.00456, 1.23e-4, -1.23e-5, 1e-12, -1e-12, 0.0)]
    assert small == ["+0.100", "−0.012", "+0.0046", "+0.00012", "−1.2e−05", "+0.00", "+0.00", "+0.00"]
    # seen red: two decimals for all of them, so that a world of small rewards has 0.00 ± 0.00 in every row
    assert [words.duration(s) for s in (5, 90, 7200, 36000)] == ["5 s", "1.5 min", "2.0 h", "10 h"]


def test_a_constant_has_an_interval_of_no_length():
    assert tables.interval(np.full(4, 2.5)) == (2.5, 2.5, 2.5)


def test_long_rows_of_numbers_are_cut():
    assert words.short("A(b=1.0, c=(0.0, 1e-05, 2, 3, -4.5), d=(1, 2))") == "A(b=1.0, c=(0.0, …, -4.5), d=(1, 2))"
