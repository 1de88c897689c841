"""One file, one line: a module of one's own adds one of each part to its table, and each is found everywhere.

The module is written to a folder, imported once, and its lines are taken back afterwards.
"""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dither as library
from dither import log, ope, testing
from dither.algorithms import Algorithm, Spec
from dither.bandit import saving
from dither.simulation.simulate import configured
from dither_bench.commands import tables_page
from dither_bench.define import environments, figures

ROOT = Path(__file__).parents[2]
PARTS = '''
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dither.base import arrays


class Seen(NamedTuple):
    m: Any
    temperature: float

    def scores(self, noise):
        return self.m + self.temperature * noise


@dataclass(frozen=True)
class Softmax:
    """Gumbel noise on the means. More of it here."""

    temperature: float = 0.1
    needs = frozenset({"mean"})

    def draw(self, rng, n, *, arms, dim):
        return (rng.gumbel(size=(n, arms)),)

    def view(self, model, state, X, *, t):
        return Seen(model.mean(state, X), self.temperature)


class State(NamedTuple):
    theta: Any


@dataclass(frozen=True)
class Gradient:
    """Least squares by one step of the gradient for each reward."""

    step: float = 0.1
    abilities = frozenset({"mean"})

    def init(self, dim, *, batch=(), needs=frozenset(), xp=np, device=None):
        return State(xp.zeros((*batch, dim)))

    def update(self, state, x, r):
        left = r - arrays.inner(x, state.theta)
        return State(state.theta + self.step * left[..., None] * x)

    def mean(self, state, X):
        return arrays.dot(X, state.theta)


@dataclass(frozen=True)
class Ramp:
    """Rewards that rise with the first feature."""

    arms: int = 4
    dim: int = 3
    slope: float = 1.0
    disjoint = False

    def start(self, rng):
        return None

    def fill(self, run, rng, out):
        out[:] = rng.standard_normal(out.shape)

    def means(self, run, X, more):
        return self.slope * X[..., 0]

    def reward_noise(self, rng, n):
        return rng.standard_normal((n, self.arms))


def halved(rows, setting):
    """Half of what IPS adds."""
    import dataclasses

    from dither.ope.contributions import find

    made = find("ips")(rows, None)
    return dataclasses.replace(made, b=made.b / 2)


def spaced(path):
    """A log of lines "arm propensity reward"."""
    import polars as pl

    from dither import log

    names = {name: name for name in ("arm", "propensity", "reward")}
    frame = pl.read_csv(path, separator=" ", has_header=False, new_columns=list(names))
    return log.from_columns(frame.with_columns(pl.col("arm").cast(str)), **names)
'''
LINES = """
import dither
from dither.algorithms import ALGORITHMS, Algorithm, specs
from dither_bench.define.environments import ENVIRONMENTS, describe
from dither_bench.define.figures import FIGURES
from dither_bench.define.panels import Figure, Panel
from dither.log import FORMATS
from dither.ope import ESTIMATORS, Estimator
from parts_of_mine import Gradient, Ramp, Softmax, halved, spaced

ALGORITHMS["Soft-max"] = Algorithm(
    "Soft-max", Softmax, summary="Softmax exploration.", source="this test", perturbs="utility",
    propensity="Monte Carlo", model=Gradient,
)
ENVIRONMENTS["ramp"] = Ramp
FIGURES["hill"] = Figure("hill", "A hill", (Panel("d=3", describe("ramp"), 20, specs("Soft-max", "LinFP")),), runs=2)
ESTIMATORS["halved"] = Estimator(halved, "shown")
FORMATS["spaced"] = type(FORMATS["obd"])(spaced, "lines of three numbers")
"""
TABLES = (library.ALGORITHMS, environments.ENVIRONMENTS, figures.FIGURES, ope.ESTIMATORS, log.FORMATS, saving.KNOWN)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a module of parts and a module of one line for each."""
    here = tmp_path_factory.mktemp("mine")
    (here / "parts_of_mine.py").write_text(PARTS)
    (here / "mine.py").write_text(LINES)
    return here


@pytest.fixture(scope="module", autouse=True)
def mine(folder):
    """The parts, while they stand in the tables."""
    before = [dict(table) for table in TABLES]
    sys.path.insert(0, str(folder))
    importlib.import_module("mine")
    yield importlib.import_module("parts_of_mine")
    sys.path.remove(str(folder))
    for table, old in zip(TABLES, before, strict=True):
        table.clear()
        table.update(old)
    for name in ("mine", "parts_of_mine"):
        del sys.modules[name]


def test_the_parts_are_sound(mine):
    testing.check_policy(mine.Softmax(), mine.Gradient(), draws=2000)
    testing.check_model(mine.Gradient(), expected_failed_checks={"order": "each step starts where the last one ended"})
    testing.check_environment(mine.Ramp())
    testing.check_estimator("halved")


def test_an_algorithm_has_a_constructor_a_name_and_a_near_match(mine):
    bandit = library.SoftMax(dim=3, temperature=0.3, step=0.2, seed=0)
    assert (bandit.model, bandit.policy) == (mine.Gradient(0.2), mine.Softmax(0.3))
    assert "SoftMax" in dir(library)
    with pytest.raises(LookupError, match="did you mean 'Soft-max'"):
        Spec.parse("Sotf-max")
    with pytest.raises(TypeError, match="did you mean 'temperature'"):
        library.SoftMax(dim=3, temprature=0.3)
    found = library.simulate(mine.Ramp(), ["Soft-max:temperature=0.3", "LinFP"], runs=2, rounds=50)
    assert found.algorithms == ("Soft-max:temperature=0.3", "LinFP")
    # seen red: `__getattr__` of `dither` without the table; `__dir__` of names at import


def test_what_an_algorithm_is_made_of_is_saved_and_loaded(tmp_path):
    bandit = library.SoftMax(dim=3, seed=0)
    bandit.update([1.0, 0.0, 2.0], 1.0)
    bandit.save(tmp_path / "b")
    again = library.load(tmp_path / "b")
    assert (again.model, again.policy) == (bandit.model, bandit.policy)
    assert [again.choose(np.eye(3)).arm for _ in range(20)] == [bandit.choose(np.eye(3)).arm for _ in range(20)]
    # seen red: `Algorithm` without `saving.know`


def test_classes_of_one_name_are_told_apart(mine, tmp_path):
    class Ridge(library.models.Ridge):
        pass

    class Softmax(mine.Softmax):
        pass

    for policy in (Softmax, mine.Softmax):  # the later of one name
        Algorithm("Other", policy, summary="", source="", perturbs="not stated", propensity="not stated", model=Ridge)
    library.Bandit(Ridge(), Softmax(), dim=2, seed=0).save(tmp_path / "own")
    library.Bandit(library.models.Ridge(), mine.Softmax(), dim=2, seed=0).save(tmp_path / "theirs")
    own, theirs = (library.load(tmp_path / name) for name in ("own", "theirs"))
    assert (type(own.model), type(own.policy)) == (Ridge, Softmax)
    assert (type(theirs.model), type(theirs.policy)) == (library.models.Ridge, mine.Softmax)
    again = library.load(tmp_path / "theirs", known=(Softmax, Ridge))
    assert (type(again.model), type(again.policy)) == (library.models.Ridge, Softmax)  # what is passed wins
    # seen red: classes by their name alone


def test_what_one_s_own_class_raises_is_not_taken_for_damage(mine, tmp_path, monkeypatch):
    library.SoftMax(dim=3, seed=0).save(tmp_path / "b")
    monkeypatch.setattr(mine.Gradient, "check", lambda self, state: self.colour, raising=False)
    with pytest.raises(AttributeError, match="colour"):
        library.load(tmp_path / "b")  # seen red: "a damaged file", as known= was not passed


def test_an_unknown_class_has_a_name(mine, tmp_path, monkeypatch):
    library.SoftMax(dim=3, seed=0).save(tmp_path / "b")
    monkeypatch.delitem(saving.KNOWN, "parts_of_mine:Softmax")
    with pytest.raises(saving.UnknownClass, match="holds a Softmax") as refused:
        library.load(tmp_path / "b")
    assert refused.value.name == "Softmax"
    assert "damaged" not in str(refused.value)


def test_it_is_compared_in_an_environment_of_one_s_own(dither, tmp_path):
    options = ("--env", "ramp", "--arms", 5, "--with", "slope=2", "--rounds", 30, "--runs", 2, "--out", tmp_path)
    code, out, err = dither("compare", "Soft-max:temperature=0.3", "LinFP", *options)
    assert code == 0, err
    assert "Soft-max:temperature=0.3" in out
    assert "ramp, arms=5, slope=2, T=30" in out
    assert set(pl.read_csv(tmp_path / "compare.csv")["algorithm"]) == {"Soft-max:temperature=0.3", "LinFP"}
    for wrong, says in (
        (("--with", "slop=2"), "did you mean 'slope'"),
        (("--with", "arms=3"), "arms is given twice"),
        (("--with", "slope"), "key=value"),
    ):
        code, _, err = dither("compare", "LinFP", "--env", "ramp", "--arms", 5, *wrong, "--out", tmp_path / "no")
        assert code == 2
        assert says in err
    assert not (tmp_path / "no").exists()
    code, _, err = dither("compare", "LinFP", "--env", "rmp", "--out", tmp_path / "no")
    assert "did you mean 'ramp'" in err


def test_a_figure_is_listed_found_and_reproduced(dither, tmp_path):
    code, out, err = dither("figures")
    assert code == 0, err
    assert "hill" in out
    code, out, err = dither("reproduce", "hill", "--out", tmp_path)
    assert code == 0, err
    assert (tmp_path / "hill.png").exists()
    assert "did you mean 'hill'" in dither("reproduce", "hil", "--out", tmp_path)[2]
    (asked,) = (json.loads(path.read_text()) for path in (tmp_path / "asked").iterdir())
    assert asked["figure"]["panels"][0]["algorithms"] == ["Soft-max", "LinFP"]


def test_an_estimator_and_a_format_are_taken_by_the_command(dither, tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{a} 0.5 {float(rng.random() < 0.3 + 0.4 * a)}" for a in rng.integers(0, 2, 300)]
    (tmp_path / "log.txt").write_text("\n".join(rows))
    given = (tmp_path / "log.txt", "--format", "spaced", "--policy", "uniform", "--out", tmp_path)
    code, _, err = dither("evaluate", *given, "--estimator", "halved", "--estimator", "ips")
    assert code == 0, err
    table = pl.read_csv(tmp_path / "estimates.csv").filter(policy="uniform")
    value = dict(table.select("estimator", "value").iter_rows())
    assert value["halved"] == pytest.approx(value["ips"] / 2)
    assert "did you mean 'halved'" in dither("evaluate", *given, "--estimator", "halvd")[2]
    assert "did you mean 'spaced'" in dither("evaluate", given[0], "--format", "spacd", "--policy", "uniform")[2]


def test_the_help_and_the_tables_name_all_of_them(folder):
    code = "import sys; import mine; from dither import cli; sys.argv = ['dither', *sys.argv[1:]]; cli.main()"
    path = {"PYTHONPATH": ":".join([str(folder), *sys.path]), "COLUMNS": "200", "PATH": ""}

    def helped(*words):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], env=path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    evaluate = helped("evaluate", "--help")
    assert "halved" in evaluate
    assert "spaced" in evaluate
    assert "ramp" in helped("compare", "--help")
    assert "Soft-max" in helped("figures", "--table")
    page = tables_page.page()
    for row in (
        "| Soft-max |",
        "| Softmax | Gumbel noise",
        "| Gradient | Least",
        "| ramp | arms, dim, slope |",
        "| halved |",
    ):
        assert f"\n{row}" in page
    assert "\n| spaced | lines of three numbers |" in page
    assert "\n| hill | A hill | 1 | 2 |" in page


def test_a_simulation_tells_it_the_same_as_a_constructor(mine):
    model, policy = configured(Spec.parse("Soft-max:step=0.5"), mine.Ramp(), rounds=10)
    assert (model, policy) == (mine.Gradient(0.5), mine.Softmax())
