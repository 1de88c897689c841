"""What users say of a picture: title, caption, labels, limits and scales, in all pictures alike; and honest axes."""

import json
import re

import numpy as np
import polars as pl
import pytest
from matplotlib.text import Text

from dither import simulate
from dither.envs import Linear
from dither_bench.commands import report
from dither_bench.define import environments, figures
from dither_bench.judge import profiles
from dither_bench.results import Comparison
from dither_bench.show import frames, plots, profile_plots
from dither_bench.show.pictures import PictureLook
from dither_bench.sweeps import searching

WORDS = dict(
    title="My study",
    caption="Ten runs of each.",
    labels={"LinFP": "ours", "LinTS": "theirs"},
    xlabel="users",
    ylabel="loss",
)
LIMITS = dict(xlim=(1, 40), ylim=(0.5, None), xscale="log", yscale="linear")
SMALL = ("--dim", 2, "--arms", 3, "--rounds", 30, "--runs", 3)

AS = ("--caption", "Of ten runs.", "--label", "LinFP=ours", "--xlim", "1,20", "--yscale", "log")


def curves(figure, mean):
    """mean : algorithm -> its regret at the horizon"""
    (panel,) = figure.panels
    return pl.DataFrame(
        [
            {"panel": panel.name, "algorithm": name, "run": run, "round": t, "regret": y * t / panel.rounds + run / 10}
            for name, y in mean.items()
            for run in range(3)
            for t in (1, panel.rounds // 2, panel.rounds)
        ]
    )


def compared(**mean):
    figure = figures.adhoc(environments.describe("linear"), list(mean), rounds=60, runs=3)
    return figure, curves(figure, mean)


def axes(canvas):
    return [ax for ax in canvas.axes if ax.get_visible()]


def swept(low, high):
    env = environments.describe("linear")
    figure = searching(env, ["LinFP:c=0.1|1", "LinTS"], rounds=60, runs=3, tries=None, seed=0)
    return figure, curves(figure, {"LinFP:c=0.1": low, "LinFP:c=1": high, "LinTS": high})


def of_profile(look, **mean):
    figure, rows = compared(**mean)
    scores = profiles.scores(figure, rows)
    return scores, profile_plots.draw(figure, scores, profiles.profile(scores), look)


def over_rounds(look):
    return plots.draw(*compared(LinFP=10.0, LinTS=20.0), look)


def over_settings(look):
    return plots.draw(*swept(10.0, 20.0), look)


def over_ratios(look):
    return of_profile(look, LinFP=10.0, LinTS=20.0)[1]


@pytest.mark.parametrize("picture", [over_rounds, over_settings, over_ratios])
def test_all_pictures_take_the_same_words(picture):
    """Seen red with `suptitle(figure.title)`: a title of "My study" prints "Comparison"."""
    canvas = picture(PictureLook(**WORDS))
    assert canvas.get_suptitle().startswith("My study")
    canvas.draw_without_rendering()
    (caption,) = captions(canvas)
    assert caption.get_window_extent().y0 >= 0
    for ax in axes(canvas):
        assert ax.xaxis.label.get_window_extent().y0 >= canvas.legends[0].get_window_extent().y1
    assert [text.get_text() for text in canvas.legends[0].get_texts()] == ["ours", "theirs"]
    assert {(ax.get_xlabel(), ax.get_ylabel()) for ax in axes(canvas)} == {("users", "loss")}
    bare = picture(PictureLook(title=False))
    assert (bare.get_suptitle(), captions(bare)) == ("", [])
    assert bare.get_figheight() < canvas.get_figheight()


@pytest.mark.parametrize("picture", [over_rounds, over_settings, over_ratios])
def test_all_pictures_take_the_same_limits_and_scales(picture):
    """Seen red without `set_axes`."""
    for ax in axes(picture(PictureLook(**LIMITS))):
        assert ax.get_xlim() == (1, 40)
        assert ax.get_ylim()[0] == 0.5
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")


@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        (dict(title=3), TypeError, "title is a text, True or False"),
        (dict(caption=1), TypeError, "caption is a text"),
        (dict(labels=["ours"]), TypeError, "labels is algorithm -> label"),
        (dict(labels={"LinFP": " "}), ValueError, "the label of LinFP is a text"),
        (dict(xlim=5), TypeError, r"xlim is a pair \(low, high\)"),
        (dict(xlim="5,6"), TypeError, r"xlim is a pair"),
        (dict(ylim=(3, 3)), ValueError, "ylim goes from a number to a larger one"),
        (dict(ylim=(0, float("nan"))), ValueError, "the ends of ylim are finite numbers or None"),
        (dict(xlim=(0, 5), xscale="log"), ValueError, "xlim must lie above 0"),
        (dict(yscale="lin"), LookupError, "linear"),
    ],
)
def test_what_cannot_be_is_refused(given, kind, says):
    with pytest.raises(kind, match=says):
        PictureLook(**given)


def test_labels_name_algorithms_each_once():
    """Seen red with labels that are passed over where they are mistyped."""
    figure, rows = compared(LinFP=10.0, LinTS=20.0)
    with pytest.raises(LookupError, match="LinTS"):
        plots.draw(figure, rows, PictureLook(labels={"LinTs": "theirs"}))
    with pytest.raises(ValueError, match="two algorithms of the picture would be called 'LinTS'"):
        plots.draw(figure, rows, PictureLook(labels={"LinFP": "LinTS"}))
    with pytest.raises(ValueError, match="ylim must lie above 0"):
        plots.draw(figure, rows, PictureLook(log=True, ylim=(0, 5)))
    assert frames.labels(["LinFP:c=0.3=ours"]) == {"LinFP:c=0.3": "ours"}
    assert frames.limits("1,") == (1.0, None)
    for text in ("5", "a,b"):
        with pytest.raises(ValueError, match="limits are written LOW,HIGH"):
            frames.limits(text)


def captions(canvas):
    return canvas.findobj(lambda it: isinstance(it, Text) and it.get_text() == "Ten runs of each.")


def broken(ax):
    return [child for child in ax.get_children() if child.get_gid() == "broken"]


def test_a_sweep_has_its_own_scale_and_says_where_it_has_no_0():
    """Seen red with `set_ylim(0, ...)`: two settings of 1,000 and 1,010 are one line."""
    (ax,) = axes(plots.draw(*swept(1000.0, 1010.0)))
    low, high = ax.get_ylim()
    assert 990 < low < 1000 < 1010 < high < 1020
    assert len(broken(ax)) == 1
    (ax,) = axes(plots.draw(*swept(10.0, 1000.0)))
    assert ax.get_ylim()[0] == 0
    assert broken(ax) == []


def test_a_profile_shows_where_its_runs_are():
    """Seen red with the axis from 0: runs between 0.9 and 1.1 fill a tenth of it."""
    scores, canvas = of_profile(PictureLook(), LinFP=100.0, LinTS=103.0)
    (ax,) = axes(canvas)
    low, high = ax.get_xlim()
    x = scores.relative
    assert low < x.min() <= x.max() < high
    assert high - low < 1.2 * (x.max() - x.min())
    assert ax.get_ylim() == (0, 1)
    tau = profiles.taus(x)
    assert tau[0] < x.min() < x.max() == tau[-1]
    assert np.diff(tau).max() < 0.01 * (x.max() - x.min())


def test_python_has_the_title_that_is_given():
    found = Comparison.of(simulate(Linear(arms=3, dim=2), ["LinFP"], runs=2, rounds=9))
    assert found.plot(title="My study").get_suptitle() == "My study"
    assert found.plot().get_suptitle() == "Comparison"


def test_commands_take_them_and_the_files_have_them(dither, tmp_path):
    words = (
        "--title",
        "My study",
        "--caption",
        "Of ten runs.",
        "--label",
        "LinFP=ours",
        "--xlim",
        "1,20",
        "--yscale",
        "log",
    )
    code, _, err = dither("compare", "LinFP", "LinTS", *SMALL, "--out", tmp_path, "--latex", *words)
    assert code == 0, err
    assert "Of ten runs." in (tmp_path / "compare-figure.tex").read_text("utf-8")
    assert "My study" in (tmp_path / "compare-table.tex").read_text("utf-8")
    assert set(pl.read_csv(tmp_path / "compare-curves.csv")["name"]) == {"ours", "LinTS"}
    before = sorted(tmp_path.rglob("*"))
    code, _, err = dither("compare", "LinFP", "LinTS", "LinUCB", *SMALL, "--out", tmp_path, "--label", "LinTs=theirs")
    assert (code, "LinTS" in err) == (2, True)  # before anything is computed
    assert sorted(tmp_path.rglob("*")) == before
    assert dither("compare", "LinFP", *SMALL, "--out", tmp_path, "--title", "x", "--no-title")[0] == 2


def test_a_report_has_them_too(dither, tmp_path):
    """Seen red without `ends` and `scales` in the numbers of the page."""
    assert dither("compare", "LinFP", "LinTS", *SMALL, "--out", tmp_path)[0] == 0
    page = tmp_path / "r.html"
    words = (
        "--title",
        "My <study>",
        "--caption",
        "Of ten runs.",
        "--label",
        "LinFP=ours",
        "--xlim",
        "1,20",
        "--yscale",
        "log",
    )
    code, _, err = dither("report", tmp_path, "-o", page, *words)
    assert code == 0, err
    text = page.read_text("utf-8")
    assert "<h1>My &lt;study&gt;</h1>" in text
    assert "Of ten runs." in text
    (data,) = map(json.loads, re.findall(r'<script type="application/json">(.*?)</script>', text))
    assert [curve["name"] for curve in data["curves"]] == ["ours", "LinTS"]
    assert (data["ends"], data["scales"]) == ({"x": [1, 20], "y": None}, {"x": None, "y": "log"})
    with pytest.raises(LookupError, match="LinFP"):
        report.write(tmp_path, page, labels={"LinFp": "ours"})


def test_a_search_labels_what_it_knows(dither, tmp_path):
    code, _, err = dither("compare", "LinFP:c=0.1|1", "LinTS", *SMALL, "--out", tmp_path, "--label", "LinFP=ours")
    assert code == 0, err
    assert "ours" in set(pl.read_csv(tmp_path / "compare-curves.csv")["name"])
