"""`compare` in Python, and what its results can do. Where a test was seen red, it says what was broken."""

import re
import sys
import threading
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import dither
from dither import envs, policies
from dither.models import Ridge
from dither.policies.views import Drawn
from dither_bench import Results, compare
from dither_bench.keep import code
from dither_bench.run import run


@dataclass(frozen=True)
class Gumbels:
    """Gumbel noise on the means."""

    temperature: float = 0.1
    needs = frozenset({"mean"})

    def draw(self, rng, n, *, arms, dim):
        return (rng.gumbel(size=(n, arms)),)

    def view(self, model, state, X, *, t):
        m = model.mean(state, X)
        return Drawn(lambda noise: m + self.temperature * noise)


@dataclass(frozen=True)
class Locked(Gumbels):
    lock: object = None


WORDS = {"summary": "Of my own.", "source": "none", "perturbs": "utility", "propensity": "Monte Carlo"}
WORLD = {"name": "linear", "dim": 3, "arms": 4}
QUICK = {"rounds": 40, "runs": 3}


def test_the_numbers_are_those_of_simulate():
    found = compare(["LinFP", "Greedy"], WORLD, **QUICK)
    r = dither.simulate(envs.Linear(dim=3, arms=4), ["LinFP", "Greedy"], **QUICK)
    last = r.regret[:, :, -1]
    assert found.values()["regret"].to_list() == pytest.approx(last.mean(axis=1))
    gaps = last[1] - last[0]
    (gap,) = found.differences().iter_rows(named=True)
    assert gap["difference"] == pytest.approx(gaps.mean())
    half = 4.302652729749464 * gaps.std(ddof=1) / np.sqrt(3)  # t of 2 degrees of freedom at 97.5 %
    assert (gap["low"], gap["high"]) == (pytest.approx(gaps.mean() - half), pytest.approx(gaps.mean() + half))
    assert found.summary().filter(algorithm="LinFP")["mean"].to_list() == pytest.approx(r.regret[0].mean(axis=0))
    assert found.to_polars().columns == ["panel", "algorithm", "run", "round", "regret"]
    frame = found.to_pandas()
    assert frame["regret"].tolist() == found.curves["regret"].to_list()
    assert found.plot(log=True).axes[0].get_xscale() == "log"
    lines = repr(found).splitlines()
    assert lines[0] == "linear, dim=3, arms=4, T=40: cumulative regret of the means, seed 0"
    assert lines[2].startswith("  Greedy  ")
    assert lines[2].endswith("against LinFP")
    same = Results.of(r)
    assert same.values()["regret"].to_list() == found.values()["regret"].to_list()


def test_parts_made_in_python_stand_where_names_stand():
    mine = dither.Algorithm("Mine", Gumbels, presets={"default": {"temperature": 0.5}}, **WORDS)
    found = compare([Gumbels, Gumbels(0.3), mine, dither.LinFP, "EpsGreedy:epsilon=0.1|0.2"], WORLD, **QUICK)
    names = ["Gumbels", "Gumbels:temperature=0.3", "Mine", "LinFP", "EpsGreedy:epsilon=0.1", "EpsGreedy:epsilon=0.2"]
    assert found.values()["algorithm"].to_list() == names
    pairs = {"a": (Ridge(), Gumbels()), "b": (Ridge(), Gumbels(0.3)), "c": (Ridge(), Gumbels(0.5)), "d": "LinFP"}
    labelled = compare(pairs, WORLD, **QUICK)
    assert labelled.values()["regret"].to_list() == found.values()["regret"].to_list()[:4]
    own = compare([Gumbels], envs.Linear(dim=3, arms=4), **QUICK)
    assert own.values()["regret"].to_list() == found.values()["regret"].to_list()[:1]
    with pytest.raises(ValueError, match="LinFP is an algorithm of this library: give yours another name"):
        compare([dither.Algorithm("LinFP", Gumbels, **WORDS)], WORLD, **QUICK)
    with pytest.raises(ValueError, match="two algorithms are called Gumbels"):
        compare([Gumbels, dither.Algorithm("Gumbels", policies.Greedy, **WORDS)], WORLD, **QUICK)
    with pytest.raises(TypeError, match="must be a frozen dataclass"):
        compare([type("Loose", (), {name: vars(Gumbels)[name] for name in ("needs", "draw", "view")})], WORLD, **QUICK)
    # seen red: `_differing` that keeps nothing


def test_results_know_the_code_that_made_them(monkeypatch):
    found = compare([Gumbels, "LinFP"], WORLD, **QUICK)
    assert found.code["Gumbels"] == (code.of(envs.Linear(dim=3, arms=4), Ridge(), Gumbels()),)
    assert found.code["Gumbels"] != found.code["LinFP"]
    typed = {"__module__": "__main__"}
    monkeypatch.setattr(sys.modules["__main__"], "__file__", None, raising=False)  # as in a notebook
    assert compare([type("Typed", (Gumbels,), typed)], WORLD, **QUICK).code == {"Typed": ()}


def test_what_is_saved_is_loaded(tmp_path):
    found = compare([Gumbels, "LinFP:c=0.3"], WORLD, **QUICK)
    again = Results.load(found.save(tmp_path / "saved"))
    assert_frame_equal(again.curves, found.curves)
    assert (again.figure, again.seed, again.code) == (found.figure, 0, found.code)
    assert (again.versions, repr(again)) == (found.versions, repr(found))
    labelled = compare({"a:b, c": (Ridge(), Gumbels())}, WORLD, **QUICK)
    assert repr(Results.load(labelled.save(tmp_path / "labelled"))) == repr(labelled)
    (tmp_path / "saved" / "results.parquet").write_bytes(b"half")
    with pytest.raises(ValueError, match="saved holds no whole results"):
        Results.load(tmp_path / "saved")
    with pytest.raises(ValueError, match="nowhere must hold results of one figure, and has none"):
        Results.load(tmp_path / "nowhere")
    # seen red: `code` left out of `save`


def test_with_a_folder_what_is_there_is_not_computed_anew(tmp_path, monkeypatch):
    mine = dither.Algorithm("Mine", Gumbels, **WORDS)
    found = compare(["LinFP", mine], envs.Linear(dim=3, arms=4), out=tmp_path / "kept", **QUICK)
    assert_frame_equal(found.values(), compare(["LinFP", mine], WORLD, **QUICK).values())
    assert_frame_equal(Results.load(tmp_path / "kept").curves, found.curves)
    monkeypatch.setattr("dither_bench.run.computing.simulate", None)
    again = compare(["LinFP", mine], WORLD, out=tmp_path / "kept", **QUICK)
    assert (repr(again), again.code) == (repr(found), found.code)
    assert compare([mine], WORLD, out=tmp_path / "kept", **QUICK).values()["algorithm"].to_list() == ["Mine"]
    (request,) = run.asked.figures(tmp_path / "kept")
    assert {str(spec) for spec in request.figure.algorithms} == {"LinFP", "Mine"}
    with pytest.raises(TypeError, match="with out=, algorithms are a list"):
        compare({"a": "LinFP"}, WORLD, out=tmp_path, **QUICK)
    with pytest.raises(TypeError, match="block is for results that are kept"):
        compare(["LinFP"], WORLD, block=3, **QUICK)

    class Local(envs.Linear):
        pass

    with pytest.raises(TypeError, match="Local cannot be made again by a later command: write it as a dataclass"):
        compare(["LinFP"], Local(dim=3), out=tmp_path, **QUICK)
    # seen red: `stored` that shows all that was asked


def test_other_processes_get_what_is_typed_in_a_script(tmp_path, monkeypatch):
    names = {"__module__": "__main__", "__annotations__": {}, "needs": Gumbels.needs}
    typed = dataclass(frozen=True)(type("Typed", (), {**names, "draw": Gumbels.draw, "view": Gumbels.view}))
    typed.temperature = 0.1
    monkeypatch.setattr(sys.modules["__main__"], "Typed", typed, raising=False)
    mine = dither.Algorithm("Mine", typed, **WORDS)
    two = compare([mine, "LinFP"], WORLD, jobs=2, **QUICK)
    assert_frame_equal(two.curves, compare([mine, "LinFP"], WORLD, **QUICK).curves)
    kept = compare([mine, "LinFP"], WORLD, jobs=2, block=2, out=tmp_path, **QUICK)
    assert_frame_equal(kept.values(), two.values())
    with pytest.raises(TypeError, match=r"cannot be sent to other processes \(.*lock.*\): write it in a file and name"):
        compare([Locked(lock=threading.Lock())], WORLD, jobs=2, **QUICK)
    # seen red: an `Algorithm` of the user's pickled by its name


def test_a_missing_pandas_is_named(monkeypatch):
    found = compare(["Greedy"], WORLD, rounds=2, runs=1)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="this needs pandas, which is not installed: install it with pip"):
        found.to_pandas()
    assert isinstance(found.to_polars(), pl.DataFrame)


LABELS = [
    *("FP: c=0.30", "FP:c=0.30", "b=1, a=2: mine", "z: b=1, a=2", "lr=1e-3"),
    *("x\ny", "<b>", "λ = 1", "p:x='1'", "mine.py"),
]


@pytest.mark.parametrize("label", LABELS)
def test_every_label_has_its_row(label, tmp_path):
    # seen red: `Spec.shown` reads settings in a label that it then writes otherwise; the row was missing
    world = envs.Linear(dim=2, arms=3)
    found = compare({label: "LinFP", "other": "Greedy"}, world, rounds=5, runs=2)
    alone = dither.simulate(world, ["LinFP"], rounds=5, runs=2).regret[0, :, -1]
    for results in (found, Results.load(found.save(tmp_path))):
        rows = results.values()
        assert rows["algorithm"].to_list() == [label, "other"]
        assert rows["regret"][0] == alone.mean()
        assert results.differences()["reference"].to_list() == [label]


@pytest.mark.parametrize(
    ("rivals", "says"),
    [
        ({"FP:c=1": "LinFP", "FP:c=1.0": "Greedy"}, "'FP:c=1' and 'FP:c=1.0' name the same settings"),
        ({"": "LinFP"}, "the label '' would stand as ''"),
        ({"old/mine.py:P": "LinFP"}, "would stand as 'mine.py:P'"),
        ({1: "LinFP"}, "the label of an algorithm is a text, got 1"),
    ],
)
def test_labels_that_tables_would_lose_are_refused_before_anything_runs(rivals, says, monkeypatch):
    # seen red: nothing asks whether labels differ; after `save` and `load` one of "FP:c=1" and "FP:c=1.0" was gone
    monkeypatch.setattr("dither_bench.comparing.simulate", lambda *what, **how: pytest.fail("it ran"))
    with pytest.raises((ValueError, TypeError), match=re.escape(says)):
        compare(rivals, envs.Linear(dim=2, arms=3), rounds=5, runs=2)


def test_numbers_of_numpy_are_numbers(tmp_path):
    # seen red: "Object of type int64 is not JSON serializable", from a loop over np.arange
    world, own = {"name": "linear", "dim": np.int64(2), "arms": np.int32(3)}, Gumbels(np.float32(0.5))
    found = compare([own, "LinFP"], world, rounds=5, runs=2, out=tmp_path)
    same = compare([Gumbels(0.5), "LinFP"], {"name": "linear", "dim": 2, "arms": 3}, rounds=5, runs=2, out=tmp_path)
    assert found.figure == same.figure
    assert found.values().equals(same.values())


@pytest.mark.parametrize(
    ("algorithms", "env", "how", "says"),
    [
        ([Gumbels(np.array([1.0, 2.0]))], "linear", {}, "a setting of Gumbels cannot be part of its name"),
        ([Gumbels([1.0, 2.0])], "linear", {"out": "kept"}, "a setting of Gumbels cannot be part of its name"),
        ([Gumbels(Ridge())], "linear", {"out": "kept"}, "a setting of Gumbels is a number, a text"),
        (["LinFP"], None, {}, "NoneType is no environment"),
        (["LinFP"], {"name": "masked", "share": "abc"}, {}, "share must be a number, or whole numbers"),
        (["LinFP"], {"name": "abrupt", "rounds": "20 -3"}, {}, "rounds must be a number, or whole numbers"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_our_words(algorithms, env, how, says, tmp_path, monkeypatch):
    # seen red: unhashable type, no attribute 'dim', not JSON serializable, invalid literal for int()
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, TypeError), match=re.escape(says)):
        compare(algorithms, env, rounds=5, runs=2, **how)
    assert not list(tmp_path.iterdir())
