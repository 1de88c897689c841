import re
from dataclasses import replace
from html import unescape

import pytest

from dither_bench.commands import report
from dither_bench.define import figures
from dither_bench.define.figures import FIGURES
from dither_bench.define.panels import Note
from dither_bench.keep import asked, store
from dither_bench.run import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    small = figures.select(FIGURES["fig3-linear"], panels=["d=10", "d=20"], rounds=30, algorithms=["LinFP", "Greedy"])
    run.reproduce(replace(small, notes=(Note("1 < 2 & <b>bold</b>"),)), out=out, runs=2)
    fig2b = figures.select(FIGURES["fig2b"], panels=["d=2", "d=3"], rounds=30)
    run.reproduce(fig2b, out=out, runs=2)
    return out


def test_the_report_stands_alone(folder, tmp_path):
    html = report.write(folder, tmp_path / "deep" / "report.html").read_text("utf-8")
    assert not re.search(r"<script[^>]* src=", html)
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", html, flags=re.DOTALL)
    assert sum("plotly.js v" in script[:100] for script in scripts) == 1  # once, for all figures
    page = re.sub(r"<script[^>]*>.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"https?://|<link|@import|url\(|src=", page)
    assert "default-src 'none'" in page
    # seen red: the script of a delivery network


def test_the_report_says_what_was_run(folder, tmp_path):
    html = report.write(folder, tmp_path / "report.html").read_text("utf-8")
    for part in (
        "Lowest regret at round 30",
        "FeaturePerturbation(c=1.0",
        "numpy 2",
        "Seed 0",
        "(not in the paper)",
        store.processor(),
    ):
        assert part in html
    assert "1 &lt; 2 &amp; &lt;b&gt;bold&lt;/b&gt;" in html  # what is put in is text
    assert html.count("<h3>d=") == 4
    assert html.count("is the standard error of the mean") == 1


def test_an_interrupted_figure_is_reported_as_far_as_it_is(tmp_path):
    asked.record(tmp_path, FIGURES["h2"], seed=0)
    with pytest.raises(ValueError, match="no finished results yet"):  # seen red: a page of empty parts
        report.write(tmp_path, tmp_path / "report.html")
    first = figures.select(FIGURES["h2"], panels=["d=10"], rounds=20, algorithms=["Greedy"])
    run.reproduce(first, out=tmp_path, runs=2)
    asked.record(tmp_path, figures.select(FIGURES["h2"], panels=["d=20"], rounds=20, algorithms=["Greedy"]), seed=0)
    html = report.write(tmp_path, tmp_path / "report.html").read_text("utf-8")
    assert html.count("No results yet.") == 2  # d=20 and d=40


def test_a_sweep_is_reported_with_the_sentences_of_its_command(dither, tmp_path):
    small = ("--dim", 2, "--arms", 3, "--rounds", 30, "--runs", 3, "--seed", 5, "--out", tmp_path / "r")
    code, out, err = dither("compare", "LinFP:c=0.1|1|10", "Greedy", *small)
    assert code == 0, err
    said = " ".join(out[out.index("What the search found") :].split()).removeprefix("What the search found ")
    assert "On fresh runs (seed 5) it has" in said
    assert dither("report", tmp_path / "r", "-o", tmp_path / "r.html")[0] == 0
    page = re.sub(r"<[^>]*>", " ", (tmp_path / "r.html").read_text("utf-8"))
    assert said in unescape(" ".join(page.split()))
    # seen red: `section` without the requests beside it
