"""The committed gallery is what its summaries make, and a summary is what the runs say."""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import PIL.Image
import polars as pl
import pytest

from dither.algorithms import specs
from dither_bench.define import figures
from dither_bench.define.figures import FIGURES
from dither_bench.judge import tables, words
from dither_bench.keep import asked, code
from dither_bench.keep.store import STORE, Store, of_panel
from dither_bench.run import run
from dither_bench.show import gallery, made_elsewhere, plots, summaries

FOLDER = Path(__file__).parents[2] / "docs" / "results"
CURE = "make it again with 'make gallery'"
COMMITTED = [path.stem for path in sorted(FOLDER.glob("*.json")) if path.stem in FIGURES]


@pytest.fixture(scope="module")
def committed():
    return gallery.read(FOLDER)


def test_the_page_is_what_the_summaries_make(committed):
    bake = gallery.read_bake(FOLDER)
    beside = {"reasons": gallery.reasons(FOLDER), "elsewhere": made_elsewhere.read(FOLDER)}
    made = gallery.page(committed, gallery.illustrations(), bake=bake, **beside)
    assert made == (FOLDER / gallery.PAGE).read_text("utf-8"), CURE
    # seen red: a digit of a regret in h1.json changed


@pytest.mark.parametrize("name", COMMITTED)
def test_a_picture_is_what_its_summary_makes(name):
    summary = summaries.read(FOLDER / f"{name}.json")
    carried = json.loads(PIL.Image.open(FOLDER / f"{name}.png").text["Description"])
    assert carried == {"digest": gallery.digest(gallery.picture(summary))}, CURE
    # seen red: another marker in `looks`; a digit of a curve in h1.json changed


def test_the_illustrations_are_those_of_today():
    for part in gallery.illustrations():
        carried = json.loads(PIL.Image.open(FOLDER / f"{part.name}.png").text["Description"])
        assert carried["numbers"] == pytest.approx(gallery.rows(part), rel=1e-6), CURE


def test_the_results_say_what_the_gallery_has():
    page = (FOLDER.parent / "results.md").read_text("utf-8")
    assert "±" not in page  # numbers stand in the gallery alone, so that no two pages differ
    linked = set(re.findall(r"results/README.md#([\w-]+)", page))
    assert set(COMMITTED) <= linked
    # seen red: "287 ± 8"


def test_the_gallery_is_small():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 4_000_000
    assert {path.suffix for path in FOLDER.iterdir()} == {".json", ".png", ".md", ".toml"}  # no raw runs


def test_what_was_not_run_has_a_reason(committed):
    reasons = gallery.reasons(FOLDER)
    there = {summary.figure.name for summary in committed}
    lacking = {summary.figure.name for summary in committed if list(summaries.lacking(summary.figure))}
    assert lacking | (set(FIGURES) - there) == set(reasons)  # none for what was run, either
    page = (FOLDER / gallery.PAGE).read_text("utf-8")
    assert all(" ".join(reason.split()) in page for reason in reasons.values())


def test_the_summaries_agree_with_themselves(committed):
    for summary in committed:
        joined = summary.measured.join(summary.curves, on=["panel", "algorithm", "round"], suffix="_of_curve")
        assert joined.height == summary.measured.height
        for ours, of_curve in (("regret", "mean"), ("se", "se_of_curve"), ("runs", "runs_of_curve")):
            assert joined[ours].to_list() == joined[of_curve].to_list()
        assert (summary.curves["low"] <= summary.curves["high"]).all()
        assert all(re.fullmatch(r"[0-9a-f]{16}", one) for of in summary.code.values() for one in of)
        assert summary.processor


# From runs to a summary


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    small = figures.select(FIGURES["h1"], panels=["d=5"], algorithms=["LinFP", "LinTS", "Greedy", "LinFP:c=0.3"])
    whole = FIGURES["h1"].panel("d=5")
    run.reproduce(replace(small, panels=(replace(small.panels[0], rounds=whole.rounds // 100),)), out=out, runs=3)
    return out


@pytest.fixture
def horizon(monkeypatch):
    """The figure h1 with a short horizon."""
    panels = tuple(replace(panel, rounds=panel.rounds // 100) for panel in FIGURES["h1"].panels)
    monkeypatch.setitem(FIGURES, "h1", replace(FIGURES["h1"], panels=panels))


def of(results):
    (request,) = asked.figures(results)
    found = summaries.of_request(request, Store(results / STORE), processor="a slide rule")
    return request, found


def test_a_summary_gives_the_tables_of_the_runs(results, horizon, tmp_path):
    request, found = of(results)
    again = summaries.read(summaries.write(found, tmp_path))
    curves = tables.curves(request.figure, Store(results / STORE), seed=0, codes=request.codes)
    for made, whole in (
        (tables.judged(again.figure, again.measured), tables.values(request.figure, curves)),
        (tables.ordered(again.figure, again.paired), tables.differences(request.figure, curves)),
    ):
        assert made.columns == whole.columns
        for column, kind in whole.schema.items():
            floats = kind.is_float() and not whole[column].has_nulls()
            expected = whole[column].to_list()
            assert made[column].to_list() == (pytest.approx(expected, rel=1e-4) if floats else expected), column
    assert again.figure.panels == request.figure.panels
    assert len(plots.of_summary(again.figure, again.curves).axes[0].lines) >= 4
    # seen red: differences to another algorithm than in the tables; four digits


def test_whole_numbers_stay_numbers(results, horizon, tmp_path):
    _, found = of(results)
    first = pl.col("round") == 1
    curves = found.curves.with_columns(low=pl.when(first).then(7.0).otherwise(7.25), se=pl.when(first).then(None))
    again = summaries.read(summaries.write(replace(found, curves=curves), tmp_path))
    assert set(again.curves["low"]) == {7.0, 7.25}
    assert again.curves["se"].null_count() == again.curves.height
    assert dict(again.curves.schema) == summaries._CURVES
    # seen red: the kind of a column guessed from its first number


def test_a_summary_says_who_made_it(results, horizon, tmp_path):
    request, found = of(results)
    again = summaries.read(summaries.write(found, tmp_path))
    (panel,) = request.figure.panels
    cells = of_panel(panel, seed=0)
    now = code.fingerprints(cells.values())
    assert again.code == {("d=5", name): (now[cell.key],) for name, cell in cells.items()}
    assert again.processor == "a slide rule"
    assert again.seed == 0
    assert "numpy" in again.versions[0]


def test_a_summary_keeps_few_rounds_and_those_that_are_compared(results, horizon):
    _, found = of(results)
    for _, mine in found.curves.group_by("algorithm"):
        rounds = set(mine["round"])
        assert 40 <= len(rounds) <= 62
        assert {1, 200} <= rounds
    # seen red: every recorded round


def test_a_summary_of_other_settings_is_refused(results, horizon, tmp_path, monkeypatch):
    path = summaries.write(of(results)[1], tmp_path)
    panels = tuple(replace(panel, env={**panel.env, "noise": 2.0}) for panel in FIGURES["h1"].panels)
    monkeypatch.setitem(FIGURES, "h1", replace(FIGURES["h1"], panels=panels))
    with pytest.raises(ValueError, match="the panel d=5 was run with other settings than h1 has now: run it again"):
        summaries.read(path)
    path.write_text("{}", "utf-8")
    with pytest.raises(ValueError, match="is no summary of a figure"):
        summaries.read(path)


def test_a_summary_says_the_preset_where_it_is_not_the_papers(results, horizon, tmp_path, monkeypatch):
    made = of(results)[1]
    path = summaries.write(made, tmp_path)
    assert "preset" not in path.read_text("utf-8")  # what was written before panels had one is the paper's
    panels = tuple(replace(panel, preset="default") for panel in FIGURES["h1"].panels)
    monkeypatch.setitem(FIGURES, "h1", replace(FIGURES["h1"], panels=panels))
    with pytest.raises(ValueError, match="was run with other settings"):
        summaries.read(path)
    panels = tuple(replace(panel, preset="default") for panel in made.figure.panels)
    path = summaries.write(replace(made, figure=replace(made.figure, panels=panels)), tmp_path)
    assert {panel.preset for panel in summaries.read(path).figure.panels} == {"default"}
    # seen red: the preset left out of what is compared; not written


def test_what_is_lacking_is_said(results, horizon, tmp_path):
    _, found = of(results)
    page = gallery.page([found], [], reasons={"h1": "It takes a day.", "h4": "It takes two."})
    assert (
        "**Not run here: the panels `d=10` and `d=20`; ε-Greedy, LinUCB, LinPHE, RandLinUCB, "
        "LinPHE (as run), LinUCB (as run) and RandLinUCB (as run)" in page
    )
    assert "It takes a day." in page
    assert "- `h4` (Figure H.4: logistic bandits, one fixed set of arms, ‖θ*‖ = 1). It takes two." in page


def test_the_table_of_many_panels_is_turned():
    few, many = (figures.select(FIGURES["fig2b"], panels=[f"d={d}" for d in range(2, n)]) for n in (4, 12))
    for figure, head in ((few, ["", "d=2", "d=3"]), (many, ["", "LinFP", "LinTS"])):
        rows = [(p.name, str(a), r, p.rounds, 5.0 + r) for p in figure.panels for a in p.algorithms for r in (0, 1)]
        made = pl.DataFrame(rows, schema=["panel", "algorithm", "run", "round", "regret"], orient="row")
        values = tables.values(figure, made)
        table = list(gallery._table(figure, values, [gallery.TableColumn(p, p.rounds) for p in figure.panels]))
        assert table[0] == head
        assert len({len(row) for row in table}) == 1
    assert table[2][0] == "d=2"
    assert table[2][1] == "5.50 ± 0.50 \\| 1,038 ≠"


def test_names_in_sentences_are_those_of_the_table():
    figure = FIGURES["fig2b"]
    values = pl.DataFrame({"panel": ["p"] * 2, "round": [5] * 2, "algorithm": ["A", "B"], "regret": [1.0, 2.0]})
    values = values.with_columns(se=pl.lit(0.1))
    gaps = pl.DataFrame({"panel": ["p"], "round": [5], "algorithm": ["B"], "difference": [1.0], "low": [0.5]})
    panel = replace(figure.panels[0], name="p", algorithms=specs("LinFP", "LinTS"))
    said = words.verdict(panel, 5, values, gaps.with_columns(high=pl.lit(1.5)), reference_as="A")
    assert said == "Lowest regret at round 5: A, 1.00 ± 0.10, of 2 compared. All others lie above A (95 % intervals)."


def test_the_command(dither, results, horizon, tmp_path):
    code, out, err = dither("gallery", results, "-o", tmp_path, "--processor", "an abacus")
    assert code == 0, err
    wrote = [line.rpartition("/")[2] for line in out.splitlines()]
    assert wrote == ["h1.json", "fig1.png", "fig2a.png", "h1.png", "README.md"]
    page = (tmp_path / "README.md").read_text("utf-8")
    assert "an abacus" in page
    assert dither("gallery", "-o", tmp_path)[0] == 0  # from the summaries alone
    assert (tmp_path / "README.md").read_text("utf-8") == page
    (tmp_path / "reasons.toml").write_text('h1 = "No time."', "utf-8")
    dither("gallery", "-o", tmp_path)
    assert "No time." in (tmp_path / "README.md").read_text("utf-8")


def changed(summary, panel, *, regret, **more):
    """The summary as of another panel, with other regrets."""
    (of,) = summary.figure.panels
    frames = {name: getattr(summary, name).with_columns(panel=pl.lit(panel.name)) for name in ("curves", "paired")}
    frames["measured"] = summary.measured.with_columns(panel=pl.lit(panel.name), regret=pl.lit(regret))
    figure = replace(summary.figure, panels=(replace(panel, algorithms=of.algorithms),))
    codes = {(panel.name, name): of_one for (_, name), of_one in summary.code.items()}
    return replace(summary, figure=figure, code=codes, **frames, **more)


def test_panels_that_were_not_run_again_stay(results, horizon, tmp_path):
    """Seen red with the new summary in place of the old one; with panels of another seed among them."""
    first = of(results)[1]
    d10 = changed(first, FIGURES["h1"].panel("d=10"), regret=7.0, processor="an abacus", day="2999-01-01")
    summaries.write(summaries.with_earlier(d10, tmp_path)[0], tmp_path)
    path = summaries.write(summaries.with_earlier(first, tmp_path)[0], tmp_path)
    both = summaries.read(path)
    assert [panel.name for panel in both.figure.panels] == ["d=5", "d=10"]
    assert set(both.measured.filter(panel="d=10")["regret"]) == {7.0}
    assert both.measured.filter(panel="d=5").equals(summaries.read(summaries.write(first, tmp_path / "a")).measured)
    assert (both.processor, both.day) == ("an abacus; a slide rule", "2999-01-01")
    assert set(both.code) == set(first.code) | set(d10.code)
    again, said = summaries.with_earlier(changed(first, FIGURES["h1"].panel("d=5"), regret=9.0), tmp_path)
    assert said == []
    assert set(again.measured.filter(panel="d=5")["regret"]) == {9.0}
    assert set(again.measured["panel"]) == {"d=5", "d=10"}
    assert summaries.with_earlier(replace(first, seed=7), tmp_path)[0].figure == first.figure


def test_a_panel_that_is_half_run_does_not_replace_a_whole_one(results, horizon, tmp_path):
    """Fewer runs, or fewer algorithms. Seen red with each of the two looked at alone."""
    first = of(results)[1]
    summaries.write(first, tmp_path)
    fewer = replace(first, measured=first.measured.with_columns(runs=pl.lit(2), regret=pl.lit(9.0)))
    lacking = replace(
        first, measured=first.measured.filter(pl.col("algorithm") != "LinTS").with_columns(regret=pl.lit(9.0))
    )
    for half in (fewer, lacking):
        whole, (said,) = summaries.with_earlier(half, tmp_path)
        assert 9.0 not in set(whole.measured["regret"])
        assert set(whole.measured["algorithm"]) == set(first.measured["algorithm"])
        assert said.startswith("h1: the panel d=5 keeps its earlier summary, which has more runs or algorithms")


def test_what_was_made_elsewhere_is_mentioned_where_ours_is_missing(results, horizon):
    """Seen red with all that the file has; with the panel named as ours when one algorithm of it is."""
    said = {"h1": [{"panel": "d=5", "runs": 2, "by": "an abacus", "regrets": {
        "LinFP": {"mean": 1.0, "se": 2.0}, "LinUCB": {"each": [3.0, 5.0]}}}]}  # fmt: skip
    page = gallery.page([of(results)[1]], [], reasons={}, elsewhere=said)
    assert "**Made elsewhere** and not counted, by an abacus: `d=5`, 2 runs, LinUCB 4.00 ± 1.00 \\| > 728.0." in page
    assert page.count("ade elsewhere") == 1
    alone = gallery.page([], [], reasons={}, elsewhere=said)
    assert "GLM-FP 1.00 ± 2.00" in alone


def test_a_gallery_of_nothing_is_refused(dither, tmp_path):
    code, _, err = dither("gallery", "-o", tmp_path)
    assert (code, err) == (2, f"dither: {tmp_path} holds no summaries: name the folder of results to make them from\n")
    code, _, err = dither("gallery", tmp_path, "-o", tmp_path / "out")
    assert code == 2
    assert "holds no figures: make some with 'dither reproduce NAME" in err
    assert not (tmp_path / "out").exists()


def test_the_reasons_are_a_table():
    assert all(isinstance(said, str) for said in tomllib.loads((FOLDER / "reasons.toml").read_text("utf-8")).values())
