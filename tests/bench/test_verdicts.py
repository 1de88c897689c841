"""The verdict on a published value: the interval of ours/published, against a grid, by cases, and by simulation."""

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from dither_bench.define import published
from dither_bench.define.figures import FIGURES
from dither_bench.define.published import End
from dither_bench.judge import ratios, tables, words
from dither_bench.judge.ratios import DIFFERS, OPEN, REPRODUCED, UNSURE, Mean
from dither_bench.plan import costs


def by_grid(ours, end):
    """The ρ of a fine grid that |x - ρ y| <= q √(s_x² + ρ² s_y²) keeps."""
    s_y = end.se * math.sqrt(end.runs / (end.runs - 1))
    a, b = ours.se**2, (ours.value / end.mean * s_y) ** 2
    free = (a + b) ** 2 / (a**2 / (ours.runs - 1) + b**2 / (end.runs - 1))
    rho = np.linspace(-5, 20, 2_500_001)
    error = np.sqrt(ours.se**2 + (rho * s_y) ** 2)
    kept = rho[np.abs(ours.value - rho * end.mean) <= stats.t.ppf(0.975, free) * error]
    return kept.min(), kept.max()


@pytest.mark.parametrize(
    ("ours", "end"),
    [
        (Mean(259.31, 40.484, 20), End(9, 252.051, 35.0)),
        (Mean(389.4, 53.523, 5), End(9, 745.0, 40.0, runs=5)),
        (Mean(-30.0, 4.0, 7), End(9, 50.0, 6.0)),
        (Mean(0.0, 4.0, 7), End(9, 50.0, 6.0)),
        (Mean(57.08, 48.834, 20), End(9, 49.5, 10.0)),
    ],
)
def test_the_interval_is_the_set_that_the_test_keeps(ours, end):
    """Seen red with the normal quantile, and with the sum of squares that the delta method has."""
    assert ratios.interval(ours, end) == pytest.approx(by_grid(ours, end), abs=2e-5)


@pytest.mark.parametrize(
    ("ours", "end", "word"),
    [
        (Mean(100.0, 1.0, 100), End(9, 100.0, 1.0), REPRODUCED),
        (Mean(109.0, 1.0, 100), End(9, 100.0, 1.0), OPEN),  # 9 % off, and noise may have done it
        (Mean(109.0, 0.1, 100), End(9, 100.0, 0.1), REPRODUCED),
        (Mean(115.0, 3.0, 100), End(9, 100.0, 4.0), OPEN),  # three combined errors
        (Mean(125.0, 3.0, 100), End(9, 100.0, 4.0), DIFFERS),
        (Mean(84.9, 0.1, 100), End(9, 100.0, 0.1), DIFFERS),
        (Mean(3204.0, 2327.0, 5), End(9, 745.0, 30.0, runs=5), OPEN),  # 4.3 times as much, and once called "within"
        (Mean(3204.0, 2327.0, 5), End(9, 745.0, 39.0, runs=5), UNSURE),
        (Mean(100.0, 0.1, 100), End(9, 100.0, 5.2), UNSURE),
        (Mean(100.0, 30.0, 20), End(9, 100.0, 5.1), OPEN),  # 1.96 errors are less than 10 %
        (Mean(20.0, 0.1, 100), End(9, 100.0, 15.0), DIFFERS),  # however wide the published error
        (Mean(20.0, 0.1, 100), End(9, 100.0, 60.0), UNSURE),  # which may be 0: no ratio is excluded
        (Mean(100.0, None, 1), End(9, 100.0, 1.0), OPEN),  # one run
        (Mean(500.0, None, 1), End(9, 100.0, 1.0), OPEN),
        (Mean(100.0, 0.0, 20), End(9, 100.0, 0.0), REPRODUCED),  # all runs alike
        (Mean(100.0, 1.0, 20), End(9, 100.0, None), REPRODUCED),  # no bars: the sd of ours, over 100 runs
        (Mean(100.0, 4.4, 20), End(9, 100.0, None), OPEN),
        (Mean(100.0, 4.4, 20), End(9, 100.0, 0.0), REPRODUCED),
        (Mean(0.0, 0.0, 20), End(9, 100.0, 1.0), DIFFERS),
        (Mean(-50.0, 5.0, 20), End(9, 100.0, 1.0), DIFFERS),
        (Mean(0.0, 0.0, 20), End(9, 0.0, 0.0), OPEN),  # no ratio
        (Mean(50.0, 1.0, 20), End(9, -50.0, 1.0), OPEN),
        (Mean(math.nan, 1.0, 20), End(9, 50.0, 1.0), OPEN),
        (Mean(1.2, 0.01, 20), End(9, 0.6, None, off=4.0), OPEN),  # read off an axis of 40,000
        (Mean(42.9, 2.4, 20), End(9, 17.7, None, off=4.0), DIFFERS),
    ],
)
def test_the_word_for_a_value(ours, end, word):
    """Seen red with |gap| <= 10 % or <= 3 combined errors, the rule of before."""
    assert ratios.verdict(ours, end) == word


@pytest.mark.parametrize(
    ("ours", "word"),
    [
        (Mean(5000.0, 1.0, 20), OPEN),
        (Mean(95.0, 0.1, 20), OPEN),
        (Mean(89.0, 4.0, 20), OPEN),
        (Mean(80.0, 4.0, 20), DIFFERS),
        (Mean(80.0, None, 1), OPEN),
    ],
)
def test_a_lower_bound_is_never_reproduced(ours, word):
    """Seen red with the bound taken for a value."""
    assert ratios.verdict(ours, End(9, 100.0, None, True)) == word
    assert ratios.needed(ours, End(9, 100.0, None, True)) == (1232 if ours == Mean(89.0, 4.0, 20) else None)


@pytest.mark.parametrize(
    ("ours", "end"),
    [
        (Mean(312.69, 25.451, 20), End(9, 310.185, 12.0)),
        (Mean(1198.1, 52.336, 20), End(9, 1037.8, None)),
        (Mean(1047.2, 273.7, 5), End(9, 1313.6, 28.0, runs=5)),
        (Mean(61.402, 20.782, 20), End(9, 37.9, 2.6)),
    ],
)
def test_as_many_runs_as_are_said_settle_it(ours, end):
    """The least number that does, by trying each. Seen red with the number that the coarse steps come to."""
    error = end.se if end.se is not None else ours.se * math.sqrt(20 / 100 * 99 / 100)
    sd = ours.se * math.sqrt(ours.runs)
    told = end._replace(se=error)
    words = {n: ratios.verdict(Mean(ours.value, sd / math.sqrt(n), n), told) for n in range(ours.runs, 3000)}
    assert ratios.needed(ours, end) == next(n for n, word in words.items() if word in (REPRODUCED, DIFFERS))


@pytest.mark.parametrize(
    ("ours", "end"),
    [
        (Mean(100.0, 0.1, 100), End(9, 100.0, 5.2)),  # the published error decides
        (Mean(109.9, 5.0, 100), End(9, 100.0, 1.0)),  # so near the limit that it reaches over
        (Mean(100.0, None, 1), End(9, 100.0, 1.0)),
        (Mean(100.0, 1.0, 100), End(9, 100.0, 1.0)),  # settled
    ],
)
def test_where_no_number_of_runs_is_said(ours, end):
    """Seen red with the largest number that is tried as the answer."""
    assert ratios.needed(ours, end) is None


def coverage(rng, draw, *, ours, theirs, repeats=4000):
    """The share of intervals that hold the true ratio, 1."""
    held = 0
    for _ in range(repeats):
        x, y = draw(ours), draw(theirs)
        mean = Mean(x.mean(), x.std(ddof=1) / math.sqrt(ours), ours)
        low, high = ratios.interval(mean, End(9, y.mean(), y.std() / math.sqrt(theirs), runs=theirs))
        held += low <= 1 <= high
    return held / repeats


@pytest.mark.parametrize(("ours", "theirs"), [(5, 5), (5, 10), (20, 100), (100, 100)])
def test_the_interval_holds_the_ratio_as_often_as_it_says(ours, theirs):
    """Five standard errors of 4,000 repeats are 1.7 %. Seen red with 1.96 errors: 91 % of five runs beside five."""
    rng, off = np.random.default_rng(0), 5 * math.sqrt(0.95 * 0.05 / 4000)
    assert coverage(rng, lambda n: rng.normal(1, 0.3, n), ours=ours, theirs=theirs) > 0.95 - off


def test_the_interval_on_skewed_runs():
    """The sd is twice the mean. Seen red with the interval of the logarithm: 84 % of five runs beside five."""
    rng = np.random.default_rng(0)
    assert coverage(rng, lambda n: rng.gamma(0.25, 4.0, n), ours=5, theirs=5) > 0.95
    assert 0.89 < coverage(rng, lambda n: rng.gamma(0.25, 4.0, n), ours=20, theirs=100) < 0.93


def test_the_ends_of_published_curves_say_how_sure_they_are():
    """Seen red with 100 runs behind the networks; with the height of a panel of Figure 2b, which is a point."""
    ends = {
        name: published.last(FIGURES[name], FIGURES[name].panels[0], algorithm=FIGURES[name].algorithms[0])
        for name in ("fig2b", "fig3-linear", "fig3-neural", "h6", "h7", "h3-inferred")
    }
    assert {name: end.runs for name, end in ends.items()} == {
        "fig2b": 100, "fig3-linear": 100, "fig3-neural": 5, "h6": 5, "h7": 10, "h3-inferred": 100}  # fmt: skip
    assert ends["fig2b"].off == pytest.approx(3.77, abs=0.01)
    assert ends["fig2b"].se is None
    assert 0 < ends["fig3-linear"].off < 0.2


@pytest.mark.parametrize("name", ["h3", "h4", "h5", "h6", "h7"])
def test_no_panel_is_without_its_published_curves(name):
    """Seen red with the curves of one panel of each left out."""
    figure = FIGURES[name]
    for panel in figure.panels:
        for spec in panel.algorithms:
            assert (published.last(figure, panel, algorithm=spec) is None) == (spec in figure.extra), (panel.name, spec)


OPEN_VALUES = [  # algorithm, regret, se, ratio, bound, value, needs, hours
    ("LinTS", 312.7, 25.4, 1.01, False, OPEN, 760, 0.0625),
    ("RandLinUCB", 280.5, 25.1, 1.0, False, OPEN, 212, 0.01),
    ("LinFP", 259.3, 40.5, 1.03, False, UNSURE, None, None),
    ("LinUCB", 1109.6, 30.4, None, True, OPEN, None, None),
    ("LinPHE", 1752.7, 725.2, None, True, OPEN, None, None),
    ("EpsGreedy", 90.1, 1.0, 0.91, False, OPEN, None, None),
    ("Softmax", 90.1, None, 0.91, False, OPEN, None, None),
    ("Greedy", 90.1, 1.0, 0.5, False, DIFFERS, None, None),
]


def test_what_would_settle_an_open_value_is_said():
    """Seen red with the reason of a value that needs runs, and with a value that differs among them."""
    columns = ["algorithm", "regret", "se", "ratio", "bound", "value", "needs", "hours"]
    rows = pl.DataFrame(OPEN_VALUES, schema=columns, orient="row")
    assert words.unsettled(rows) == [
        "Runs that would settle an open value, and their time on one core: LinTS 760 (3.8 min) and RandLinUCB 212 "
        "(36 s).",
        "No number of our runs is known to settle: LinFP (the published error decides); LinUCB and LinPHE (ours keeps "
        "the lower bound); EpsGreedy (the published value is known too roughly beside 0.9); Softmax (one run has no "
        "sd).",
    ]
    assert words.unsettled(rows.filter(value=DIFFERS)) == []


def test_the_hours_are_those_of_the_estimate():
    """Seen red with the hours of one run."""
    figure = FIGURES["h1"]
    panel, spec = figure.panels[0], figure.algorithms[3]
    row = [(panel.name, panel.rounds, str(spec), 312.69, 25.451, 20, 113.8, 300.0, "", False)]
    (made,) = tables.judged(figure, pl.DataFrame(row, schema=tables.MEASURED, orient="row")).to_dicts()
    assert made["needs"] == ratios.needed(Mean(312.69, 25.451, 20), published.last(figure, panel, algorithm=spec))
    assert made["hours"] == pytest.approx(costs.seconds(panel, algorithms=[spec], runs=made["needs"]) / 3600)
    assert (made["value"], made["ratio_low"] < 0.9 < 1.1 < made["ratio_high"]) == (OPEN, True)
