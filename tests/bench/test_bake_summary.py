"""A bake-off in the gallery: its summary, its table, its pictures. Each test says what was broken to see it red."""

import json
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from dither.cli import app
from dither_bench import bakeoff
from dither_bench.judge import duels
from dither_bench.keep import asked
from dither_bench.keep.store import STORE, Store
from dither_bench.run import run
from dither_bench.show import bake_summary, gallery

FOLDER = Path(__file__).parents[2] / "docs" / "results"
NAMES = ["LinFP:c=0.3", "Greedy", "EpsGreedy"]
SIZE = dict(rounds=60, shuffles=3)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Three algorithms on two sets, and one of them on a third."""
    out = tmp_path_factory.mktemp("results")
    run.reproduce(bakeoff.baking(NAMES, ["iris", "diabetes"], **SIZE), out=out)
    return out


def of(results):
    (request,) = asked.figures(results)
    return bake_summary.of_request(request, Store(results / STORE), processor="a slide rule")


def test_a_summary_gives_the_losses_back(results, tmp_path):
    """Seen red with two digits, and with sets in another order than their losses."""
    summary, losses = of(results), bakeoff.play(NAMES, ["iris", "diabetes"], **SIZE)
    again = bake_summary.read(bake_summary.write(summary, tmp_path))
    assert_allclose(again.losses.loss, losses.loss, rtol=1e-4)
    assert again.losses.sets == losses.sets
    assert again.losses.algorithms == losses.algorithms
    assert (again.base, again.processor, again.seed) == ("LinFP:c=0.3", "a slide rule", 0)
    assert all(again.code[name] for name in NAMES)
    np.testing.assert_array_equal(duels.matrix(again.losses), duels.matrix(losses))


def test_the_scores_are_regrets(results):
    """As `profiles.scores` makes them of the curves. Seen red with losses in the place of regrets."""
    from dither_bench.judge import profiles
    from dither_bench.results import Comparison

    figure = bakeoff.baking(NAMES, ["iris", "diabetes"], **SIZE)
    wanted = profiles.scores(figure, Comparison.stored(results, figure, seed=0).curves)
    scores = of(results).scores
    assert_allclose(scores.regret, wanted.regret, rtol=1e-9)
    assert_allclose(scores.of_reference, wanted.of_reference, rtol=1e-9)


def test_the_command_makes_the_page_and_the_pictures(results, tmp_path):
    """Seen red with the figures of the paper alone."""
    words = ["gallery", str(results), "--out", str(tmp_path), "--processor", "a slide rule"]
    assert CliRunner().invoke(app.build("gallery"), words, catch_exceptions=False).exit_code == 0
    page = (tmp_path / gallery.PAGE).read_text("utf-8")
    assert "## bakeoff" in page
    assert all(f"| `{name}` |" in page for name in NAMES)
    assert {path.name for path in tmp_path.glob("bakeoff*")} == {"bakeoff.json", "bakeoff.png", "bakeoff-wins.png"}


def test_what_is_no_summary(tmp_path):
    """Seen red with the errors as they come."""
    (tmp_path / "bakeoff.json").write_text('{"sets": []}')
    with pytest.raises(ValueError, match="is no bake-off"):
        gallery.read_bake(tmp_path)


def test_an_algorithm_that_lacks_a_set_is_left_out(tmp_path):
    """Seen red with all algorithms of the request: nothing would be left."""
    run.reproduce(bakeoff.baking(NAMES[:1], ["iris", "wine"], rounds=20, shuffles=1), out=tmp_path)
    run.reproduce(bakeoff.baking(NAMES[1:2], ["iris"], rounds=20, shuffles=1), out=tmp_path)
    assert of(tmp_path).losses.algorithms == ("LinFP:c=0.3",)


committed = pytest.mark.skipif(not (FOLDER / "bakeoff.json").exists(), reason="no bake-off is committed")


@committed
def test_the_committed_pictures_are_what_the_summary_makes():
    """Seen red with a loss changed in bakeoff.json."""
    bake = gallery.read_bake(FOLDER)
    carried = {name: json.loads(PIL.Image.open(FOLDER / f"{name}.png").text["Description"]) for name in PICTURES}
    assert carried == {
        "bakeoff": {"digest": gallery.digest(gallery.profile(bake))},
        "bakeoff-wins": {"numbers": gallery.counts(bake)},
    }


PICTURES = ("bakeoff", "bakeoff-wins")
