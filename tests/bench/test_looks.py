"""Curves can be told apart in grey and by the colour-blind, and a picture is what its page asks for."""

import itertools
import re

import numpy as np
import polars as pl
import pytest

from dither.algorithms import specs
from dither.base import drawing
from dither_bench.define import figures
from dither_bench.define.figures import FIGURES
from dither_bench.define.panels import Figure, Panel
from dither_bench.show import looks, pictures, plots
from dither_bench.show.pictures import PictureLook

H1 = FIGURES["h1"]


def of(algorithms):
    return Figure("compare", "Comparison", (Panel("p", {"name": "linear"}, 10, algorithms),))


def rows(figure, panels=None):
    """Two runs of every algorithm at two rounds."""
    made = [
        (panel.name, str(spec), run, t, 10.0 * i + t / panel.rounds + run)
        for panel in figure.panels[:panels]
        for i, spec in enumerate(panel.algorithms)
        for run in (0, 1)
        for t in (1, panel.rounds)
    ]
    return pl.DataFrame(made, schema=["panel", "algorithm", "run", "round", "regret"], orient="row")


@pytest.mark.parametrize("figure", [f for f in FIGURES.values() if f.x != "setting"], ids=lambda figure: figure.name)
def test_no_two_curves_need_colour(figure):
    found = looks.looks(figure)
    without = [(look["marker"], look["linestyle"]) for look in found.values()]
    assert len(set(without)) == len(figure.algorithms)
    assert looks.DASHED not in {line for _, line in without}  # that is what is published
    # seen red: the marker by the place of the setting


def test_the_markers_last_for_three_dozen_algorithms():
    many = specs(*(f"LinFP:c={i}" for i in range(36)))
    without = {(look["marker"], look["linestyle"]) for look in looks.looks(of(many)).values()}
    assert len(without) == 36
    assert len(looks.looks(of(specs(*(f"LinFP:c={i}" for i in range(50)))))) == 50


def test_an_algorithm_has_its_colour_and_marker_in_every_figure():
    found = {name: looks.looks(FIGURES[name]) for name in ("fig3-linear", "h1", "h2")}
    for spec in specs("LinFP", "LinTS", "LinUCB", "Greedy"):
        assert found["h1"][spec] == found["h2"][spec] == found["fig3-linear"][spec]


# What dichromats see of linear RGB (Machado, Oliveira, Fernandes 2009, severity 1).
SEEN = {
    "all": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(colour, seen):
    """CIELAB of a colour (D65), as such a reader sees it."""
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.clip(np.array(seen) @ np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4), 0, 1)
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    x, y, z = (np.array(to_xyz) @ linear) / (0.95047, 1.0, 1.08883)
    fx, fy, fz = (np.cbrt(v) if v > (6 / 29) ** 3 else v / (3 * (6 / 29) ** 2) + 4 / 29 for v in (x, y, z))
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])


@pytest.mark.parametrize("reader", SEEN)
def test_the_colours_differ_for_every_reader(reader):
    found = {colour: lab(colour, SEEN[reader]) for colour in drawing.PALETTE}
    for one, other in itertools.combinations(found, 2):
        assert np.linalg.norm(found[one] - found[other]) > 15, (one, other)  # 2.3 is just to be seen
    assert max(L for L, _, _ in found.values()) < 80  # not lost on white paper
    # seen red: "#CC79A7" replaced by "#7A9A8A" (protan, deutan)


def test_published_curves_are_dashed_and_hollow_in_the_look_of_ours():
    picture = plots.draw(H1, rows(H1))
    lines = picture.axes[1].lines
    ours = [line for line in lines if line.get_linestyle() == "-"]
    theirs = [line for line in lines if line.get_linestyle() == "--"]
    assert len(ours) == len(H1.algorithms)
    assert len(theirs) == len(H1.algorithms) - 1  # greedy is not in the paper
    look = {(line.get_color(), line.get_marker()) for line in ours}
    assert {(line.get_color(), line.get_marker()) for line in theirs} < look
    assert {line.get_markerfacecolor() for line in theirs} == {"white"}


@pytest.mark.parametrize(("width", "inches"), [("column", 3.25), ("text", 5.5), ("7", 7.0), (4.5, 4.5)])
def test_a_picture_is_as_wide_as_asked(tmp_path, width, inches):
    picture = plots.draw(H1, rows(H1), PictureLook(width=width, title=False))
    assert picture.get_figwidth() == inches
    path = drawing.save(picture, tmp_path / "h1.pdf")
    (box,) = re.findall(rb"/MediaBox \[ ?0 0 ([\d.]+) ", path.read_bytes())
    assert float(box) == pytest.approx(72 * inches)
    picture.draw_without_rendering()
    legend = picture.legends[0].get_window_extent()
    assert 0 <= legend.x0 < legend.x1 <= picture.bbox.x1
    labels = [ax.yaxis.label.get_window_extent() for ax in picture.axes if ax.get_ylabel()]
    assert all(0 <= box.y0 < box.y1 <= picture.bbox.y1 for box in labels)
    # seen red: the y label in one line (at 4.5)


def test_a_title_is_baked_in_only_where_it_is_wanted():
    bare, titled = (plots.draw(H1, rows(H1), PictureLook(width="text", title=wanted)) for wanted in (False, True))
    assert bare._suptitle is None
    assert bare.legends[0].get_title().get_text() == ""
    assert titled._suptitle.get_text() == H1.title
    assert titled.legends[0].get_title().get_text().startswith("band: ±1 standard error over 2 runs; dashed")


def test_long_names_of_panels_are_set_in_lines():
    name = "table, data=/a/long/folder/measurements-of-may.csv, target=clicked, preprocessing=paper, T=2000"
    panels = tuple(Panel(name + i, {"name": "linear"}, 10, specs("LinFP", "Greedy")) for i in "ab")
    figure = Figure("compare", "Comparison", panels)
    picture = plots.draw(figure, rows(figure))
    picture.draw_without_rendering()
    (_, right), (left, _) = ((ax.title.get_window_extent().x0, ax.title.get_window_extent().x1) for ax in picture.axes)
    assert right < left  # they do not overprint
    assert all(ax.title.get_window_extent().x0 >= 0 for ax in picture.axes)
    assert picture.axes[1].title.get_window_extent().x1 <= picture.bbox.x1
    # seen red: the titles in one line


def test_a_number_of_features_is_whole():
    figure = figures.select(FIGURES["fig2b"], panels=["d=2", "d=3", "d=4"])
    (ax,) = plots.draw(figure, rows(figure)).axes
    assert all(tick == int(tick) for tick in ax.get_xticks())  # seen red: without `integer` (2.25, 2.5)


def test_letters_stay_letters_in_vector_files(tmp_path):
    picture = plots.draw(H1, rows(H1, panels=1), PictureLook(title=False, names="paper"))
    svg = drawing.save(picture, tmp_path / "h1.svg").read_text("utf-8")
    assert ">ε-Greedy</text>" in svg
    pdf = drawing.save(picture, tmp_path / "h1.pdf").read_bytes()
    assert b"/Type3" not in pdf.replace(b" ", b"")  # Type 3 fonts are refused by many journals
    assert b"/FontFile2" in pdf
    # seen red: without svg.fonttype; pdf.fonttype 3


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"width": "colum"},
            "width must be a number of inches, column (3.25 inches) or text (5.5 inches); got 'colum'",
        ),
        ({"width": "1"}, "width, in inches, must lie in [2, 50]"),
        ({"names": "papers"}, "no kind of names 'papers': did you mean 'paper'?"),
        ({"formats": ("pngs",)}, "no format 'pngs': did you mean 'png'?"),
        ({"formats": ()}, "formats names at least one of png, pdf, svg, pgf"),
        ({"formats": ("svg",), "latex": True}, "LaTeX includes no svg: add pdf, pgf or png to the formats"),
        ({"band": "sd"}, "no band 'sd'"),
    ],
)
def test_a_look_that_makes_no_sense_is_refused(given, says):
    with pytest.raises((ValueError, LookupError), match=re.escape(says)):
        pictures.PictureLook(**given)


def test_only_a_picture_with_metadata_is_written_with_it(tmp_path):
    class Written:
        def savefig(self, file, **how):
            self.how = how

    written = Written()
    drawing.save(written, tmp_path / "a.pgf")
    assert written.how == {"format": "pgf", "dpi": 160}  # pgf takes no metadata, not even None
    drawing.save(written, tmp_path / "a.png", dpi=80, metadata={"Description": "x"})
    assert written.how == {"format": "png", "dpi": 80, "metadata": {"Description": "x"}}
    # seen red: metadata=None always


def test_pgf_needs_tex(monkeypatch):
    monkeypatch.setattr(pictures.shutil, "which", lambda name: None)
    with pytest.raises(ValueError, match="pgf is measured by xelatex, which is not installed"):
        pictures.PictureLook(formats=("pgf",))
    assert pictures.formats("pdf, png,pdf") == ("pdf", "png")
