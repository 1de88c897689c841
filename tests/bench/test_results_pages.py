"""What the pages say of results: lists and tables are made again, and numbers in the text are computed again."""

import importlib
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import integrate, stats

from dither_bench.commands import results_pages
from dither_bench.define import published
from dither_bench.define.figures import FIGURES
from dither_bench.judge import ratios, tables
from dither_bench.show import gallery, said

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def every():
    return said.of(gallery.read(DOCS / "results"))


def text(name):
    return " ".join((ROOT / name).read_text("utf-8").split())


def test_the_pages_are_what_the_summaries_make():
    """Seen red with a verdict changed by hand, and with a digit of a regret in h1.json changed."""
    for path, made in results_pages.pages(DOCS).items():
        assert "<!-- made: " in made
        assert path.read_text("utf-8") == made, "make them again with 'make gallery'"


def test_every_figure_stands_on_the_page_of_results(every):
    """Seen red with Figure H.6 left out, as the list of what was not reproduced once did."""
    page = (DOCS / "results.md").read_text("utf-8")
    assert set(re.findall(r"<!-- made: verdicts ([\w-]+) -->", page)) == set(every)
    missed = page.partition("## What was not reproduced")[2]
    for name, summary in every.items():
        differs = ratios.DIFFERS in set(said.values_of(summary)["value"])
        assert differs == (f"](results/README.md#{name}): " in missed.partition("<!-- end -->")[0]), name
    assert ("Figure H.7: not run" in missed) == ("h7" not in every)


def test_a_place_that_nothing_is_made_for_is_refused(every):
    """Seen red with the page left as it is."""
    with pytest.raises(LookupError, match="verdict"):
        said.fill("<!-- made: verdict h1 -->\n<!-- end -->", every)


# What is made, by hand


@pytest.fixture
def small(every):
    """H.1 at d = 5 and 10 with three algorithms and numbers of the test's own."""
    summary = every["h1"]
    names = ["LinFP", "LinTS", "Greedy"]
    rows = [
        ("d=5", 20000, name, x, 1.0, 100, 10.0, x, "", False)
        for name, x in zip(names, (252.0, 900.0, 5.0), strict=True)
    ]
    rows += [("d=10", 20000, name, 500.0, 1.0, 100, 10.0, 500.0, "", False) for name in names]
    pairs = [("d=5", "LinTS", 648.0, 1.0), ("d=5", "Greedy", -247.0, 1.0)]
    pairs += [("d=10", "LinTS", 0.0, 3.0), ("d=10", "Greedy", 5.0, 1.0)]
    paired = [(panel, 20000, name, "LinFP", x, x - h, x + h, 100) for panel, name, x, h in pairs]
    return {
        "h1": replace(
            summary,
            measured=pl.DataFrame(rows, schema=tables.MEASURED, orient="row"),
            paired=pl.DataFrame(paired, schema=tables.PAIRED, orient="row"),
        )
    }


def test_the_sentences_of_a_figure(small):
    """GLM-FP and LinTS are published as 252 and 310, 395 and 501. Seen red with the panels of another word."""
    lines = list(said.verdicts(small, ["h1"]))
    assert lines == [
        "- **Values** (100 runs): 1 of 4 reproduced (LinTS at d = 10); 1 of 4 differ (LinTS at d = 5); "
        "2 of 4 open since the published error decides (GLM-FP everywhere).",
        "- **Orders**: of 2 published ones 1 agree, 0 disagree, and the errors leave 1 open.",
        "- **Told apart** (100 runs): below GLM-FP: Greedy at d = 5. Not told apart from GLM-FP: LinTS at d = 10. "
        "Above GLM-FP: LinTS at d = 5; Greedy at d = 10.",
    ]
    (row,) = list(said.differing(small, ["h1"]))[2:]
    assert row.startswith("| [h1](results/README.md#h1) | LinTS | `d=5` 2.90 [")
    assert row.endswith("| No reason is known. |")
    assert list(said.total(small, ["h1"])) == [
        "Of 4 published values that are compared, 1 are reproduced, 1 differ and 2 are open. The published "
        "error decides 2 of those that are open."
    ]


def test_curves_that_leave_their_drawing_are_compared_before(every):
    """By hand from the file of H.5. Seen red with the value at the stored round before, and with curves that stay."""
    lines = list(said.leaving(every, ["h5"]))[2:]
    (row,) = (line for line in lines if line.startswith("| h5 | `d=5` | OFUGLB-e |"))
    drawn = (
        published.rows()
        .filter(figure="h5", panel="d=5", algorithm="OFUGLB-e", clipped=0)
        .sort("round")
        .row(-1, named=True)
    )
    data = json.loads((DOCS / "results" / "h5.json").read_text("utf-8"))["curves"]
    (curve,) = (c for c in data if c["panel"] == "d=5" and c["algorithm"].startswith("OFUGLB-e"))
    after = next(i for i, t in enumerate(curve["round"]) if t >= drawn["round"])
    (a, b), (x, y) = curve["round"][after - 1 : after + 1], curve["mean"][after - 1 : after + 1]
    ours = x + (y - x) * (drawn["round"] - a) / (b - a)
    assert f"| {drawn['round']:,} | {ours:.1f} ± " in row
    assert f" \\| {drawn['regret_mean']:.1f} | {ours / drawn['regret_mean']:.2f} [" in row
    values = every["h5"].measured.height
    assert 0 < len(lines) < values
    clipped = said.values_of(every["h5"]).filter("bound").height
    assert len(lines) == clipped


# Numbers in the text


def test_what_the_readme_says_of_the_digits(every):
    """Seen red with 436."""
    rows = {row["algorithm"]: row for row in every["digits"].measured.iter_rows(named=True)}
    ours, greedy, paper = (f"{rows[name]['regret']:,.0f}" for name in ("LinFP", "Greedy", "LinFP:preset=paper"))
    (panel,) = every["digits"].figure.panels
    assert (
        f"on {panel.rounds:,} [handwritten digits](docs/results/README.md#digits) `LinFP` errs {ours} times, Greedy "
        f'{greedy} times, the paper\'s scale (`preset="paper"`) {paper} times' in text("README.md")
    )


def test_with_fresh_arms_greedy_is_as_good_or_better(every):
    """The README and the pages say so. Seen red with H.1, where the arms stay."""
    fresh = [
        (name, panel.name)
        for name, summary in every.items()
        for panel in summary.figure.panels
        if panel.env.get("name") in ("linear", "logistic", "poisson") and panel.env.get("contexts", None) is None
    ]
    assert len(fresh) >= 14
    better = set()
    for name, panel in fresh:
        rows = every[name].paired.filter(panel=panel).filter(pl.col("algorithm").str.contains("Greedy"))
        rows = rows.filter(~pl.col("algorithm").str.contains("Eps"))
        assert (rows["low"] <= 0).all(), (name, panel)
        better |= {name} if (rows["high"] < 0).any() else set()
    assert "greedy is as good or better" in text("README.md")
    assert "greedy does as well" in text("README.md")


def test_the_readme_says_that_the_networks_were_not_reproduced(every):
    """Seen red with the figure of linear bandits."""
    words = said.values_of(every["fig3-neural"])["value"].to_list()
    assert words.count(ratios.DIFFERS) > words.count(ratios.REPRODUCED) + words.count(ratios.OPEN)
    assert "the paper's figure of networks [was not reproduced]" in text("README.md")


def test_the_rule_is_the_one_of_the_page():
    """Seen red with three combined errors."""
    page = text("docs/results.md")
    low, high = ratios.LIMITS
    level, close = (f"{100 * share:.0f} %" for share in (ratios.LEVEL, ratios.CLOSE))
    assert f"if the {level} interval of ours/published, with the errors of both, lies within {low} to {high}" in page
    assert f"Where {ratios.DECIDES} published errors alone are more than {close} of the published value" in page


def test_the_runs_that_went_astray(every):
    """docs/neural.md. Seen red with 576 to 817, which stood there."""
    rows = every["fig3-neural"].measured.filter(panel="shuttle, unit length")
    rows = {row["algorithm"]: row for row in rows.iter_rows(named=True)}
    greedy = sorted(int(x) for x in rows["DeepGreedy"]["each"].replace("*", "").split())
    page = text("docs/neural.md")
    mean, sd = np.mean(greedy), np.std(greedy, ddof=1)
    assert f"It has {mean:,.0f} errors, with an sd of {sd:.0f}: three of its five runs have {greedy[0]} to" in page
    assert f" to {greedy[2]}, and the other two have {greedy[3]:,} and {greedy[4]:,}." in page
    ucb, ts = (rows[f"{name}:preset=as_run"] for name in ("NeuralUCB", "NeuralTS"))
    assert f"have {ucb['regret']:.0f} and {ts['regret']:.0f}, with an sd of {ucb['sd']:.0f} and {ts['sd']:.0f}." in page


def first(panel, *names):
    rows = published.rows().filter(figure="fig3-logistic", panel=panel, round=1)
    return [row["regret_mean"] for row in rows.iter_rows(named=True) if row["algorithm"] in names]


def test_the_first_rounds_of_figure_3_middle():
    """docs/differences.md. Seen red with 0.70 for d = 40."""
    page = text("docs/differences.md")
    drawn = [first(f"d={d}", "ε-Greedy", "LogFPL", "RandUCBLog") for d in (10, 20, 40)]
    spans = [f"{min(x):.2f} to {max(x):.2f}" for x in drawn]
    assert f"ε-greedy, LogFPL and RandUCBLog cost {spans[0]}, {spans[1]} and {spans[2]}, each ± 0.05" in page
    assert f"Their first rounds cost {min(map(min, drawn)):.2f} to {max(map(max, drawn)):.2f}" in page
    of_ts = [x for d in (10, 20, 40) for x in first(f"d={d}", "LogTS")]
    zero = [x for d in (10, 20, 40) for x in first(f"d={d}", "GLM-FP", "OFUGLB-e")]
    assert set(zero) == {0.0}
    assert f"costs exactly 0 and that of LogTS {min(of_ts):.2f} to {max(of_ts):.2f}" in page
    cost = [uniform(d) for d in (10, 20, 40)]
    assert f"A uniform choice costs {cost[0]:.2f}, {cost[1]:.2f} and {cost[2]:.2f} at d = 10, 20 and 40" in page


def uniform(d, *, S=4.0, K=100):
    """What a uniform choice among K unit arms loses where the mean is x'θ* cut to [0, 1]."""
    law = stats.beta((d - 1) / 2, (d - 1) / 2)

    def mean(power):
        def density(b):
            return min(max(S * (2 * b - 1), 0.0), 1.0) * power * law.pdf(b) * law.cdf(b) ** (power - 1)

        return integrate.quad(density, 0, 1, points=[0.5, (1 + 1 / S) / 2], limit=200)[0]

    return mean(K) - mean(1)


def test_how_glm_fp_begins_in_figure_3_middle():
    """Seen red with 0.06."""
    rows = published.rows().filter(figure="fig3-logistic", panel="d=10", algorithm="GLM-FP").sort("round")
    start, later = (row for row in rows.head(2).iter_rows(named=True))
    assert (start["round"], start["regret_mean"], later["round"]) == (1, 0.0, 13)
    rate = later["regret_mean"] / (later["round"] - 1)
    assert f"costs 0 in round 1 and {rate:.2f} a round to round {later['round']}" in text("docs/differences.md")


def test_the_errors_of_figure_h3():
    """Seen red with the errors of other algorithms."""
    ends = [
        published.last(FIGURES["h3"], FIGURES["h3"].panel(panel), algorithm=next(
            spec for spec in FIGURES["h3"].algorithms if spec.name == name))
        for panel, name in (("S=1, d=10", "LinUCB"), ("S=1, d=40", "RandLinUCB"))
    ]  # fmt: skip
    spans = " , ".join(f"±{end.se:.0f} of {end.mean:.0f}" for end in ends).replace(" ,", ",")
    assert spans in text("docs/differences.md")


def record(name):
    """What a search found: the words of a setting -> its scores, two decimals each, "all" among them."""
    lines = map(json.loads, (ROOT / "benchmarks" / f"{name}.jsonl").read_text("utf-8").splitlines())
    return {line["name"]: {key: f"{x:.2f}" for key, x in line["score"].items()} for line in lines}


def listed(page, head):
    """The rows of a table of scores: its words without "unit" and what is said after them -> the cells."""
    rows = page.partition(head)[2].partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("| ").split(" | ")] for row in rows]
    return {row[0].removesuffix(", which is described"): row[1:] for row in cells}


def test_the_tables_of_the_searches_are_those_of_their_records():
    """Seen red with a digit of a score changed, and with two rows exchanged."""
    page = (DOCS / "differences.md").read_text("utf-8")
    middle = {name.replace(", unit", ""): x for name, x in record("figure3_middle").items()}
    shown = listed(page, "| setting | score | d=10 | d=20 | d=40 |")
    assert shown == {name: [middle[name][key] for key in ("all", "d=10", "d=20", "d=40")] for name in shown}
    little = record("figures_h1_h3")
    whole = listed(page, "| setting | score | d=10 | d=40 |")
    assert whole == {name: [x[key] for key in ("all", "d=10", "d=40")] for name, x in little.items()}
    for rows in (shown, whole):
        assert [row[0] for row in rows.values()] == sorted(row[0] for row in rows.values())


def test_what_is_said_of_the_search_of_figure_3_middle(monkeypatch):
    """Seen red with eight tries, and with 0.31 for the worst of them."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    settings = importlib.import_module("figure3_middle").SETTINGS
    score = {name: x["all"] for name, x in record("figure3_middle").items()}
    page = text("docs/differences.md")

    def centred(mean):
        plain = (s for s in settings if (s.mean, s.contexts, s.norm, s.shape) == (mean, "unit", 4.0, ""))
        return [score[s.name] for s in plain if 1e-4 <= s.lam <= 1]

    cut, logistic = centred("clipped"), centred("logistic")
    assert len(cut) == 9
    assert "Nine tries have it with centred unit contexts, ‖θ*‖ = 4 and λ from 1e-4 to 1" in page
    assert f"They score between {min(cut)} and {max(cut)}" in page
    assert f"The same with a logistic mean score between {min(logistic)} and {max(logistic)}" in page
    assert f"no logistic try is below {min(score[s.name] for s in settings if s.mean == 'logistic')}" in page
    best, second = sorted(settings, key=lambda s: float(score[s.name]))[:2]
    assert (best.mean, best.norm, best.lam, dict(best.more)) == ("clipped", 4.0, 0.1, {})
    assert (second.lam, dict(second.more)) == (1.0, {"preset": "as_run"})


def test_the_notes_of_figure_3_top():
    """FP and RandLinUCB differ by less than the error of their difference. Seen red with d = 20."""
    note = next(note.text for note in FIGURES["fig3-linear"].notes if "In its own figure" in note.text)
    close = []
    for panel in FIGURES["fig3-linear"].panels:
        fp, rand = (
            published.last(FIGURES["fig3-linear"], panel, algorithm=spec)
            for spec in panel.algorithms
            if spec.name in ("LinFP", "RandLinUCB")
        )
        if abs(fp.mean - rand.mean) < np.hypot(fp.se, rand.se):
            close.append(panel.name.replace("=", " = "))
    assert f"at {' and '.join(close)}." in note


def test_the_summaries_have_the_numbers_that_the_tables_show(every):
    """Seen red with the last row of h5.json left out."""
    for name, summary in every.items():
        data = json.loads((DOCS / "results" / f"{name}.json").read_text("utf-8"))
        assert said.values_of(summary).height == len(data["measured"])


def test_the_searches_have_as_many_settings_as_is_said(monkeypatch):
    """Seen red with 41."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    middle, little = importlib.import_module("figure3_middle"), importlib.import_module("figures_h1_h3")
    assert (len(middle.SETTINGS), len(little.VARIANTS)) == (40, 12)
    page, differences = text("docs/results.md"), text("docs/differences.md")
    assert "the best of 40" in page
    assert "the best of 12 variants" in page
    assert "has a list of 40 settings" in differences
    assert "has a list of 12 variants" in differences


def notes(name):
    return " ".join(note.text for note in FIGURES[name].notes)


def test_the_note_of_figure_2b(every):
    """Above the published values where d is small, below where it is large. Seen red with the panels turned around."""
    rows = said.values_of(every["fig2b"]).with_columns(d=pl.col("panel").str.slice(2).cast(pl.Int64)).sort("d")
    for algorithm in ("LinFP", "LinTS"):
        above = (rows.filter(algorithm=algorithm)["ratio"] > 1).to_list()
        assert above == sorted(above, reverse=True)
        assert 2 <= sum(above) <= 13
    assert "above the published values where d is small and below them where it is large" in notes("fig2b")
    drawn = [f"{x:.1f}" for x in rows.filter(d=1)["published"]]
    assert f"({drawn[0]} and {drawn[1]} published)" in notes("fig2b")


def test_the_notes_of_the_networks():
    """Seen red with 9,958."""
    figure = FIGURES["fig3-neural"]
    ends = {
        spec.name: published.last(figure, figure.panel("shuttle"), algorithm=spec) for spec in figure.algorithms[:5]
    }
    fp = ends["DeepFP"]
    assert f"FTPL ends at {ends['FTPL'].mean:.0f}, DeepFP at {fp.mean:.0f} ± {fp.se:.0f}" in notes("fig3-neural")
    rows = published.rows().filter(figure="fig3-neural", panel="mushroom", algorithm="NeuralTS", clipped=0)
    assert f"after round {rows['round'].max():,}" in notes("fig3-neural")


@pytest.mark.parametrize("name", ["h4", "h5"])
def test_the_notes_of_the_logistic_figures(name):
    """Who begins with a regret of exactly 0. Seen red with LogTS among them."""
    rows = published.rows().filter(figure=name, round=1)
    zero = rows.filter(pl.col("algorithm").is_in(["GLM-FP", "OFUGLB-e", "RandUCBLog"]))
    assert zero.height == 9
    assert (zero["regret_mean"] == 0).all()
    assert "GLM-FP, OFUGLB-e and RandUCBLog begin with a regret of exactly 0 in every published panel" in notes(name)


def test_the_passes_over_the_digits(every):
    """Seen red with 2.7."""
    from sklearn.datasets import load_digits

    (panel,) = every["digits"].figure.panels
    passes = panel.rounds / len(load_digits().target)
    assert f"{panel.rounds:,} rounds are {passes:.1f} passes" in notes("digits")
