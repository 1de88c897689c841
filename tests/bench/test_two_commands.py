"""Two commands in one folder at the same time: each shows its own results. Each test says how it was seen red."""

import polars as pl
import pytest

from dither import experiments
from dither_bench.define import figures
from dither_bench.define.environments import describe
from dither_bench.run import computing, run

SMALL = ("LinFP", "Greedy", "--dim", 2, "--arms", 3, "--rounds", 30, "--runs", 4)
WORLD = describe("linear", dim=2, arms=3)
MINE = """
from dataclasses import dataclass

from dither.policies.views import Lines


@dataclass(frozen=True)
class P:
    needs = frozenset({"mean", "width"})

    def draw(self, rng, n, *, arms, dim):
        return (rng.standard_normal(n),)

    def view(self, model, state, X, *, t):
        return Lines(model.mean(state, X), SCALE * model.width(state, X))
"""


@pytest.fixture
def meanwhile(monkeypatch):
    """What is given runs when the first block is kept, as another command would."""
    keep = computing.keep

    def let(other):
        waiting = [other]

        def keeps(store, found):
            keep(store, found)
            if waiting:
                waiting.pop()()

        monkeypatch.setattr(computing, "keep", keeps)

    return let


def asked_for(*algorithms, seed, out):
    def command():
        figure = figures.adhoc(WORLD, algorithms, rounds=30, runs=2)
        run.reproduce(figure, out=out, runs=2, seed=seed)

    return command


def shown(out):
    """The lines of the table, and the sentences about seeds, but for paths and the progress."""
    return [line for line in out.splitlines() if line and not line.startswith("wrote")]


def test_another_seed(dither, tmp_path, meanwhile):
    # seen red: the request of any seed is taken, and is not written again at the end; the two runs of seed 1 were shown
    # as those of seed 0
    meanwhile(asked_for("LinFP", "Greedy", seed=1, out=tmp_path / "both"))
    code, out, err = dither("compare", *SMALL, "--out", tmp_path / "both")
    assert code == 0, err
    code, alone, err = dither("compare", *SMALL, "--out", tmp_path / "alone")
    assert code == 0, err
    said = "The files show seed 0 alone, which was asked for last. Results of seed 1 are kept in this folder."
    assert said in " ".join(out.split())
    assert shown(out)[: len(shown(alone))] == shown(alone)
    for name in ("compare.csv", "compare-differences.csv", "compare-curves.csv"):
        assert (tmp_path / "both" / name).read_text() == (tmp_path / "alone" / name).read_text()


def test_another_seed_of_a_sweep(dither, tmp_path, meanwhile):
    # seen red: `sweeping.show` asks for the request of any seed
    sweep = ("LinFP:c=0.1|1", "--dim", 2, "--arms", 3, "--rounds", 30, "--runs", 4)

    def other():
        experiments.sweep(["LinFP:c=0.1|1"], WORLD, rounds=30, runs=2, seed=5, out=tmp_path / "both")

    meanwhile(other)
    assert dither("compare", *sweep, "--out", tmp_path / "both")[0] == 0
    assert dither("compare", *sweep, "--out", tmp_path / "alone")[0] == 0
    for name in ("sweep.csv", "sweep-curves.csv", "compare.csv"):
        assert (tmp_path / "both" / name).read_text() == (tmp_path / "alone" / name).read_text()


def test_another_code(tmp_path, meanwhile, monkeypatch):
    # seen red: the request is not written again at the end; the two runs of the edited policy were returned
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.py"
    file.write_text(MINE.replace("SCALE", "1.0"))
    again = asked_for("mine.py:P", seed=0, out=tmp_path / "both")

    def edited():
        file.write_text(MINE.replace("SCALE", "20.0"))
        again()

    def compared(out):
        return experiments.compare(["LinFP", "mine.py:P"], WORLD, rounds=30, runs=4, out=out)

    alone = compared("alone")
    meanwhile(edited)
    found = compared("both")
    assert found.curves.filter(pl.col("algorithm") == "mine.py:P").equals(
        alone.curves.filter(pl.col("algorithm") == "mine.py:P")
    )
    assert found.code == alone.code


def test_a_report_shows_what_ended_last(tmp_path, meanwhile):
    # seen red: the request is not written again at the end
    meanwhile(asked_for("LinFP", seed=1, out=tmp_path))
    asked_for("LinFP", seed=0, out=tmp_path)()
    assert experiments.Results.load(tmp_path).seed == 0
