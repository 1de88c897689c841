"""Other libraries play in an interpreter of their own: here a stub of one does. Each test says how it was seen red."""

import os
import sys
import types
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from dither.base import arrays
from dither.simulation.world import WorldOfRuns
from dither_bench import bakeoff
from dither_bench.define import bake_sets, figures, others
from dither_bench.define.environments import build, describe
from dither_bench.run import others_runner, run

STUB = """
class LearningPolicy:
    LinUCB = LinTS = LinGreedy = dict

class MAB:
    'Stays with an arm while it is right, and else takes the next one; it begins with the arm that was shown first.'
    def __init__(self, arms, learning_policy, seed):
        self.arms, self.now = arms, None
        if learning_policy.get("alpha") == 13.0:
            raise ValueError("no alpha of 13")
    def fit(self, decisions, rewards, contexts):
        assert len(contexts) == len(decisions) == len(rewards) == 1
        self.now = decisions[0] if rewards[0] == 1 else (decisions[0] + 1) % len(self.arms)
    partial_fit = fit
    def predict(self, contexts):
        return self.now
"""


@pytest.fixture
def stub(tmp_path, monkeypatch):
    """A folder with a module mabwiser.mab, which the interpreter of the tests finds, of version 1.0."""
    others.version_of.cache_clear()
    package = tmp_path / "stub" / "mabwiser"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "mab.py").write_text(STUB)
    versioned(package.parent, "1.0")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package.parent), os.environ.get("PYTHONPATH", "")]))
    yield package.parent
    others.version_of.cache_clear()


def versioned(folder, version):
    about = folder / "mabwiser.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: mabwiser\nVersion: {version}\n")


def test_it_plays_the_same_rounds(stub):
    """Its errors are those of staying and moving on the shuffles that ours see. Seen red with the rounds of run 0."""
    some = bakeoff.play(["Greedy", *others.others(["mabwiser:lam=2"])], ["iris"], rounds=50, shuffles=3, seed=4)
    assert some.algorithms == ("Greedy", "mabwiser:lam=2")
    env = build(describe("bakeoff", data="iris"))
    world = WorldOfRuns(env, np.arange(3), 4, xp=arrays.backend(None), device=None)
    labels = world.advance(50).mean.argmax(axis=-1)
    for r in range(3):
        rng = np.random.default_rng([4, r])
        rng.integers(2**31 - 1)  # the seed of the library
        arm, errors = int(rng.integers(3)), 0
        for label in labels[r]:
            errors += arm != label
            arm = arm if arm == label else (arm + 1) % 3
        assert round(some.loss[0, r, 1] * 50) == errors


def test_it_is_kept_and_resumed(stub, tmp_path):
    """Beside ours, in one store; another version of the library is other code. Seen red without the version."""
    specs = ["Greedy", *others.others(["mabwiser"])]
    figure = bakeoff.baking(specs, ["iris"], shuffles=2, rounds=20)
    assert run.reproduce(figure, out=tmp_path / "out") == 1
    assert run.reproduce(figure, out=tmp_path / "out") == 0
    kept = bakeoff.play(specs, ["iris"], shuffles=2, rounds=20, out=tmp_path / "out")
    assert kept.algorithms == ("Greedy", "mabwiser", "mabwiser:explore=lints", "mabwiser:epsilon=0,explore=lingreedy")
    np.testing.assert_array_equal(kept.loss[:, :, 1], kept.loss[:, :, 2])
    versioned(stub, "2.0")
    others.version_of.cache_clear()
    assert run.reproduce(figure, out=tmp_path / "out") == 1


def test_an_absent_library_is_named_with_its_cure(tmp_path):
    """Seen red without the check before anything runs."""
    with pytest.raises(ImportError, match=r"has no coba .*python -m venv others; others/bin/pip install numpy coba"):
        run.reproduce(bakeoff.baking(others.others(["coba"]), ["iris"], shuffles=1), out=tmp_path)
    with pytest.raises(ImportError, match="no Python that answers"):
        run.reproduce(bakeoff.baking(others.others(["coba"], python="/no/python"), ["iris"]), out=tmp_path)
    assert not list(tmp_path.rglob("*.parquet"))


def test_an_error_over_there_is_told(stub):
    """Seen red without the exit code: the arms would be missing."""
    with pytest.raises(RuntimeError, match=r"mabwiser in .*: ValueError: no alpha of 13"):
        bakeoff.play(others.others(["mabwiser:alpha=13.0"]), ["iris"], rounds=5, shuffles=1)


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("mabwizer", LookupError, "did you mean 'mabwiser'"),
        ("mabwiser:alfa=1", TypeError, "did you mean 'alpha'"),
        ("mabvizer:alpha=1", LookupError, "did you mean 'mabwiser'"),
    ],
)
def test_unknown_names(text, error, match, stub):
    """Seen red with names as they come."""
    with pytest.raises(error, match=match):
        bakeoff.play(others.others([text]), ["iris"], rounds=5, shuffles=1)


def test_arms_with_features_of_their_own_are_refused(stub):
    """Seen red without the check: the runner's error about shapes."""
    figure = figures.adhoc(describe("linear"), others.others(["mabwiser:lam=1"]), rounds=5, runs=1)
    with pytest.raises(ValueError, match="plays data sets alone"):
        figures.check(figure)


def test_names_of_libraries():
    """A library alone is its usual settings; with settings it is one. Seen red with commas inside settings cut."""
    texts = [str(spec) for spec in others.others(["coba", "mabwiser:alpha=2,lam=3", "vw-tuned"])]
    assert texts == [
        "coba",
        "coba:explore=lints",
        "mabwiser:alpha=2,lam=3",
        "vw:explore=greedy,tuned=True",
        "vw:explore=squarecb,tuned=True",
    ]


class Workspace:
    """A stub of Vowpal Wabbit's: it remembers its words and what it is taught."""

    every: ClassVar[list] = []

    def __init__(self, words):
        self.words, self.taught = words, []
        Workspace.every.append(self)

    def predict(self, lines):
        return [0.25, 0.75]

    def learn(self, lines):
        self.taught.append(lines)


def test_costs_and_probabilities_of_vowpal_wabbit(monkeypatch):
    """The cost is what the reward lacks of the largest; the context goes without its 1. Seen red with cost = reward."""
    Workspace.every.clear()
    monkeypatch.setitem(sys.modules, "vowpalwabbit", types.SimpleNamespace(Workspace=Workspace))
    settings = {"explore": "cover", "size": 4, "epsilon": 0.1, "cb_type": "mtr", "learning_rate": 0.5}
    player = others_runner.OfVowpalWabbit(2, 1.0, np.random.default_rng(0), **settings)
    x = np.array([0.5, -2.0, 1.0])
    arm = player.choose(x)
    player.learn(x, arm, 0.0)
    (workspace,) = Workspace.every
    assert {"--cb_explore_adf", "--cover", "4"} <= set(workspace.words.split())
    wanted = ["shared |s 0:0.5 1:-2", "|a arm0", "|a arm1"]
    wanted[1 + arm] = f"0:1.0:{[0.25, 0.75][arm]} " + wanted[1 + arm]
    assert workspace.taught == [wanted]


def test_a_tuned_player_takes_the_best_rate(monkeypatch):
    """It looks at every rate on another order of the rows, and plays with the best. Seen red with the worst."""

    class Rated:
        def __init__(self, arms, top, rng, *, learning_rate, cb_type, explore):
            self.right = (learning_rate, cb_type) == (5.0, "dr")

        def choose(self, x):
            return int(x[0]) if self.right else 1 - int(x[0])

        def learn(self, x, arm, reward):
            pass

    monkeypatch.setitem(others_runner.PLAYERS, "vw", Rated)
    labels = np.array([0, 1, 1, 0, 1])
    X, reward = labels[:, None].astype(float), np.eye(2)[labels]
    request = {"library": "vw", "settings": {"tuned": True, "explore": "greedy"}}
    assert others_runner.arms_of(request, X, reward, np.random.default_rng(0)).tolist() == labels.tolist()
    by_regression = {"library": "vw", "settings": {"tuned": True, "explore": "squarecb"}}
    assert others_runner.arms_of(by_regression, X, reward, np.random.default_rng(0)).tolist() == (1 - labels).tolist()


def test_the_runner_needs_numpy_and_the_library_alone():
    """Seen red with an import of dither in it."""
    text = Path(others_runner.__file__).read_text("utf-8")
    names = {line.split()[1].partition(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))}
    assert names - set(sys.stdlib_module_names) == {"numpy"}


if INTERPRETER := os.environ.get("DITHER_OTHERS"):  # one that has them all; nothing is installed for it by itself

    @pytest.mark.parametrize("name", others.USUAL)
    def test_the_libraries_themselves(name):
        """They beat uniform play on iris. Seen red with the rewards of the arms turned round."""
        some = bakeoff.play(others.others([name], python=INTERPRETER), ["iris"], shuffles=1)
        assert some.mean.min() < 0.9 * bake_sets.facts(bake_sets.bandit("iris")).random
