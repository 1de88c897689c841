"""Parts of the user's own by name: "mine.py:BGE". Where a test was seen red, it says what was broken."""

import sys

import pytest
from polars.testing import assert_frame_equal

import dither as library
from dither.algorithms import Spec, specs
from dither.base import parts
from dither_bench.define import environments, figures
from dither_bench.judge import tables
from dither_bench.keep import asked
from dither_bench.keep.store import STORE, Store
from dither_bench.run import run

MINE = '''
"""Softmax exploration."""
from dataclasses import dataclass
import numpy as np
import dither
from dither.policies.views import Drawn
from helper import scaled

@dataclass(frozen=True)
class Softmax:
    """Gumbel noise on the means."""
    temperature: float = 0.1
    needs = frozenset({"mean"})

    def draw(self, rng, n, *, arms, dim):
        return (rng.gumbel(size=(n, arms)),)

    def view(self, model, state, X, *, t):
        m = model.mean(state, X)
        return Drawn(lambda noise: m + scaled(self.temperature) * noise)

class Sub(Softmax):
    needs = frozenset({"mean", "gradient_norm"})

class Loose:
    pass

words = dict(summary="On a GLM.", source="none", perturbs="utility", propensity="Monte Carlo")
clicks = dither.Algorithm("Clicks", Softmax, model=dither.models.GLM, told=("horizon",), **words)
five = Softmax(5.0)
'''
HELPER = "def scaled(x):\n    return {factor} * x\n"
WORLD = '''
from dataclasses import dataclass
import numpy as np

@dataclass(frozen=True)
class Drift:
    """Means that are half of those of a linear world."""
    dim: int = 3
    arms: int = 4
    drift: tuple = (0.5, 0.1)
    disjoint = False

    def start(self, rng):
        return rng.normal(size=self.dim)

    def fill(self, run, rng, out):
        out[:] = rng.normal(size=out.shape)

    def means(self, run, X, more):
        return {sign}X @ run * self.drift[0]

    def reward_noise(self, rng, n):
        return rng.standard_normal((n, self.arms))

def bits(dim, arms=4):
    return __import__("dither").envs.Logistic(dim=dim, arms=arms)

def broken(dim=3):
    return object()
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with files of the user's, in which a command runs. What was loaded is forgotten at the end."""
    sys.modules.pop("helper", None)  # of a test elsewhere
    before = {*sys.modules}
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(parts, "_LOADED", {})
    yield write(tmp_path / "project", monkeypatch)
    for name in {*sys.modules} - before:
        if name == "helper" or name.startswith(parts.PREFIX):
            del sys.modules[name]


def write(folder, monkeypatch=None, *, mine=MINE, factor=1.0, sign=""):
    folder.mkdir(exist_ok=True)
    (folder / "mine.py").write_text(mine)
    (folder / "helper.py").write_text(HELPER.format(factor=factor))
    (folder / "world.py").write_text(WORLD.replace("{sign}", sign))
    if monkeypatch is not None:
        monkeypatch.chdir(folder)
    return folder


def figure(*names, env="world.py:Drift", **given):
    return figures.adhoc(environments.describe(env, **given), names or ["mine.py:Softmax", "LinFP"], rounds=30, runs=2)


def rows(out):
    """What a table of the last request shows."""
    (request,) = asked.figures(out)
    found = tables.curves(request.figure, Store(out / STORE), seed=request.seed, codes=request.codes)
    return found.sort("algorithm", "run", "round")


COMPARE = (
    "compare",
    "LinFP",
    "mine.py:Softmax:temperature=0.3",
    "--env",
    "world.py:Drift",
    "--rounds",
    30,
    "--runs",
    2,
)


def test_a_command_compares_stores_resumes_and_reports_them(dither, folder):
    code, out, err = dither(*COMPARE, "--jobs", 2, "--block", 1, "--dim", 4, "--out", "there")
    assert code == 0, err
    assert "mine.py:Softmax:temperature=0.3" in out
    assert "world.py:Drift, dim=4, T=30, round 30" in out
    two = rows(folder / "there")
    assert dither(*COMPARE, "--dim", 4, "--out", "here")[0] == 0
    assert_frame_equal(rows(folder / "here"), two)  # in one process and in two
    assert run.reproduce(asked.figures(folder / "here")[0].figure, out=folder / "here", runs=2) == 0  # resumed
    for name in ("mine.py", "world.py", "helper.py"):
        (folder / name).unlink()
    parts.refresh()
    code, out, err = dither("report", "here", "-o", "report.html")
    assert code == 0, err
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Softmax(temperature=0.3)" in page
    assert "world.py:Drift, dim 4, arms 4, drift [0.5, 0.1]" in page
    assert str(folder) not in page
    assert dither(*COMPARE, "--dim", 4, "--out", "here")[2].startswith("dither: there is no file ")


def test_the_code_of_a_part_is_its_file_and_what_it_imports_beside_it(folder, tmp_path):
    out = tmp_path / "results"
    assert run.reproduce(figure(), out=out, runs=1) == 1
    first = rows(out)
    for edit in ({"factor": 3.0}, {"mine": MINE.replace("noise: m +", "noise: -m +")}):
        write(folder, **edit)
        assert run.reproduce(figure(), out=out, runs=1) == 1
        assert not rows(out).equals(first)
        assert rows(out).filter(algorithm="LinFP").equals(first.filter(algorithm="LinFP"))
    write(folder)
    assert run.reproduce(figure(), out=out, runs=1) == 0  # back: found again
    assert_frame_equal(rows(out), first)
    write(folder, sign="-")
    assert run.reproduce(figure(), out=out, runs=1) == 1
    assert not rows(out).filter(algorithm="LinFP").equals(first.filter(algorithm="LinFP"))  # the world has changed
    # seen red: `fresh` without effect (the old code is run); `fresh` that keeps `helper`


def test_a_file_in_another_folder_is_the_same_if_its_code_is(folder, tmp_path, monkeypatch):
    out = tmp_path / "results"
    run.reproduce(figure(), out=out, runs=1)
    first = rows(out)
    del sys.modules["helper"]
    monkeypatch.setattr(sys, "path", sys.path[:-1])
    write(tmp_path / "moved", monkeypatch)
    for name in ("mine.py", "world.py", "helper.py"):
        (folder / name).unlink()
    assert run.reproduce(figure(), out=out, runs=1) == 0
    assert_frame_equal(rows(out), first)
    (request,) = asked.figures(out)
    assert [spec.origin.source for spec in request.figure.algorithms[:1]] == [str(tmp_path / "moved" / "mine.py")]
    other = write(tmp_path / "other", mine=MINE.replace("from helper import scaled", "scaled = abs"))
    with pytest.raises(ValueError, match=r"two algorithms are called mine.py:Softmax"):
        specs("mine.py:Softmax", f"{other}/mine.py:Softmax")
    assert run.reproduce(figure(f"{other}/mine.py:Softmax"), out=out, runs=1) == 1  # other code under the same name
    # seen red: module names in the fingerprint; the folder in `Cell.content`; `_joined` that keeps the old place


def test_two_files_that_import_other_files_of_one_name_are_refused(folder, tmp_path):
    Spec.parse("mine.py:Softmax")
    write(tmp_path / "other")
    with pytest.raises(
        ImportError, match=r"imports helper, and .*project/helper.py has this name: call .*other/helper"
    ):
        Spec.parse(f"{tmp_path}/other/mine.py:Softmax")
    # seen red: without the comparison in `_beside` (the other folder's helper is used)


def test_an_algorithm_of_a_file_has_its_model_and_is_told(folder):
    spec = Spec.parse("mine.py:clicks:temperature=2,preset=own_paper")
    assert (str(spec), spec.preset) == ("mine.py:clicks:temperature=2,preset=own_paper", "own_paper")
    model, policy = spec.configure(3, disjoint=None, facts={"horizon": 9})
    assert (type(model).__name__, policy.temperature) == ("GLM", 2)
    figures.check(figure("mine.py:clicks", "GLMFP", env="world.py:bits", dim=2))
    assert Spec.read(spec.text) == spec
    assert Spec.read(spec.text).origin == spec.origin
    here = figures.select(figures.find("fig3-linear"), panels=["d=10"], algorithms=["mine.py:Softmax", "LinFP"])
    assert [str(spec) for spec in here.panels[0].algorithms] == ["mine.py:Softmax", "LinFP"]


@pytest.mark.parametrize(
    ("names", "env", "says"),
    [
        (["nine.py:Softmax"], None, "there is no file "),
        (["mine.py:Sofmax"], None, "no part in {folder}/mine.py 'Sofmax': did you mean 'Softmax'?"),
        (["mine.py"], None, "say which part of mine.py: FILE.py:NAME"),
        (["mine.py:C=3"], None, "say which part of mine.py: FILE.py:NAME"),
        (["mine.py:scaled"], None, "mine.py:scaled is no policy; a policy is a frozen dataclass with needs"),
        (["mine.py:Loose"], None, "mine.py:Loose is no policy: it lacks needs, draw, view"),
        (["mine.py:five"], None, "mine.py:five is an instance: name its class, and its settings after it"),
        (["mine.py:Softmax:temp=3"], None, "no setting of mine.py:Softmax 'temp': did you mean 'temperature'?"),
        (["mine.py:Sub"], None, "a policy alone is paired with Ridge: pair it with its model in dither.Algorithm"),
        (["mine.py:Softmax:preset=x"], None, "no preset 'x'"),
        (["wrong.py:A"], None, "{folder}/wrong.py, line 2: ZeroDivisionError: division by zero"),
        (["syntax.py:A"], None, "{folder}/syntax.py, line 1: SyntaxError: '(' was never closed"),
        (["deep.py:A"], None, "{folder}/wrong.py, line 2: ZeroDivisionError: division by zero"),
        (["quits.py:A"], None, "{folder}/quits.py, line 1: SystemExit: 3"),
        (["no.module:A"], None, "no module no.module: run this in the folder that holds it, or write FILE.py:NAME"),
        (["LinFP"], "world.py:Drft", "no part in {folder}/world.py 'Drft': did you mean 'Drift'?"),
        (["LinFP"], "world.py:bits", "world.py:bits needs dim: give it with --with dim=VALUE"),
        (["LinFP"], "world.py:broken", "object is no environment"),
        (["LinFP"], "world.py:np", "world.py:np must be the class of an environment, or a function that makes one"),
        (["LinFP"], "world.py:Drift:dim=3", "settings of an environment are given one by one (--with NAME=VALUE)"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(dither, folder, names, env, says):
    (folder / "wrong.py").write_text("import math\n1 / 0\n")
    (folder / "deep.py").write_text("import wrong\n")
    (folder / "syntax.py").write_text("A = (\n")
    (folder / "quits.py").write_text("raise SystemExit(3)\n")
    code, out, err = dither("compare", *names, *(["--env", env] if env else []), "--rounds", 5, "--runs", 1)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says.format(folder=folder) in err
    assert not (folder / "results").exists()


def test_an_error_while_it_runs_says_where(dither, folder):
    write(folder, mine=MINE.replace("return Drawn(", "raise ValueError('no luck')  # "))
    line = next(i for i, text in enumerate((folder / "mine.py").read_text().splitlines(), 1) if "no luck" in text)
    code, _, err = dither("compare", "mine.py:Softmax", "--rounds", 5, "--runs", 1)
    assert (code, err.splitlines()[-1]) == (
        2,
        f"dither: no luck (mine.py:Softmax in round 1, {folder}/mine.py, line {line})",
    )


def test_an_unknown_setting_of_a_world_is_refused_with_the_nearest(folder):
    with pytest.raises(TypeError, match=r"no setting of the environment world.py:Drift 'drfit': did you mean 'drift'"):
        environments.describe("world.py:Drift", drfit=(1.0,))
    with pytest.raises(TypeError, match=r"a setting of world.py:Drift is a number, a text, None, or a tuple"):
        environments.describe("world.py:Drift", drift=object())


def test_a_part_of_a_package_is_named_by_its_module(folder):
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "worlds.py").write_text(WORLD.replace("{sign}", ""))
    env = environments.describe("package.worlds:Drift", dim=2)
    assert env["name"] == "package.worlds:Drift"
    assert environments.build(env).dim == 2
    del sys.modules["package.worlds"], sys.modules["package"]


@pytest.mark.parametrize(("setting", "known"), [("perturbs", "utility"), ("propensity", "Monte Carlo")])
def test_an_algorithm_says_known_words_alone(folder, setting, known):
    policy = Spec.parse("mine.py:Softmax").algorithm.policy
    words = {"summary": "", "source": "", "perturbs": "feature", "propensity": "exact"}
    library.Algorithm("Mine", policy, **words | {setting: known})
    with pytest.raises(ValueError, match=f"{setting} of Mine.* must be one of .*'{known}'.*; got 'nonsense'"):
        library.Algorithm("Mine", policy, **words | {setting: "nonsense"})
    # seen red: without the call of `one_of`


def test_a_part_that_ends_the_program_is_an_error(dither, tmp_path, monkeypatch):
    # seen red: the command ended without a word, and with exit code 0
    folder = write(tmp_path, monkeypatch, mine=MINE.replace("return Drawn(", "raise SystemExit(0)  # "))
    code, _, err = dither("compare", "mine.py:Softmax", "--dim", 2, "--arms", 3, "--rounds", 5, "--runs", 1)
    assert code == 2
    said = " ".join(err.split())
    assert f"dither: {folder}/mine.py, line" in said
    assert "ended the program by sys.exit(0): raise an error there" in said
