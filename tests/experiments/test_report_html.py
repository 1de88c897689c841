import base64
import re
from dataclasses import replace

import pytest

from dither.cli import report
from dither.experiments import asked, figures, run
from dither.experiments.figures import FIGURES
from dither.experiments.panels import Note


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
    pictures = re.findall(r'<img [^>]*src="data:image/png;base64,([^"]+)"', html)
    assert len(pictures) == html.count("<img") == 2
    assert all(base64.b64decode(picture).startswith(b"\x89PNG") for picture in pictures)
    assert not re.search(r"https?://|<script|<link|@import|url\(", html)
    # seen red: a picture by its path


def test_the_report_says_what_was_run(folder, tmp_path):
    html = report.write(folder, tmp_path / "report.html").read_text("utf-8")
    for part in ("Lowest regret at round 30", "FeaturePerturbation(c=1.0", "numpy 2", "Seed 0", "(not in the paper)"):
        assert part in html
    assert "1 &lt; 2 &amp; &lt;b&gt;bold&lt;/b&gt;" in html  # what is put in is text
    assert html.count("<h3>d=") == 4


def test_an_interrupted_figure_is_reported_as_far_as_it_is(tmp_path):
    asked.record(tmp_path, FIGURES["h2"], seed=0)
    with pytest.raises(ValueError, match="no finished results yet"):  # seen red: a page of empty parts
        report.write(tmp_path, tmp_path / "report.html")
    first = figures.select(FIGURES["h2"], panels=["d=10"], rounds=20, algorithms=["Greedy"])
    run.reproduce(first, out=tmp_path, runs=2)
    asked.record(tmp_path, figures.select(FIGURES["h2"], panels=["d=20"], rounds=20, algorithms=["Greedy"]), seed=0)
    html = report.write(tmp_path, tmp_path / "report.html").read_text("utf-8")
    assert html.count("No results yet.") == 2  # d=20 and d=40
