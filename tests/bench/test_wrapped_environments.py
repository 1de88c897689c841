"""Environments around another one by their names: settings of both, and results that are known again."""

import json

import pytest

from dither import envs
from dither.algorithms import Spec
from dither_bench.define import environments, figures
from dither_bench.keep import code, store

KINDS = {
    "masked": envs.Masked,
    "abrupt": envs.Abrupt,
    "rotating": envs.Rotating,
    "walking": envs.Walking,
    "student": envs.StudentNoise,
    "pareto": envs.ParetoNoise,
    "contaminated": envs.ContaminatedNoise,
    "misspecified": envs.Misspecified,
}


def test_every_kind_has_a_name():
    wrapped = {name for name, made in environments.ENVIRONMENTS.items() if isinstance(made, environments.Wrapped)}
    assert wrapped == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_a_name_makes_what_python_makes(name):
    settings = environments.describe(name, dim=3, arms=4)
    env = environments.build(json.loads(json.dumps(settings)))
    assert env == KINDS[name](envs.Linear(dim=3, arms=4))
    assert environments.outline(settings) == environments.Outline(4, 3, False, env.sigma, 1.0)
    assert environments.kappas(settings, seed=0) is None
    algorithm = Spec.parse("Greedy")
    cell = next(iter(store.of_panel(figures.adhoc(settings, [algorithm], rounds=5, runs=1).panels[0], seed=0).values()))
    (found,) = code.fingerprints([cell]).values()
    assert found is not None  # seen red: a function made by a function, with the signature in its cell


def test_settings_reach_both():
    env = environments.build(
        environments.describe("abrupt", rounds="5 9", base="logistic", dim=3, contexts=2, norm=2.0)
    )
    assert env == envs.Abrupt(envs.Logistic(dim=3, contexts=2, norm=2.0), rounds=(5, 9))
    assert environments.describe("abrupt", rounds=(5, 9)) == environments.describe("abrupt", rounds="5 9")
    assert environments.build(environments.describe("student", noise=2.0, df=4.0)).df == 4.0
    with pytest.raises(ValueError, match="noise is a setting of base=linear"):
        environments.build(environments.describe("masked", base="poisson", noise=1.0))
    with pytest.raises(LookupError, match="did you mean 'logistic'"):
        environments.build(environments.describe("masked", base="logistics"))
    with pytest.raises(TypeError, match="did you mean 'rounds'"):
        environments.describe("abrupt", round=5)


def test_a_comparison_in_a_world_that_changes_is_stored(dither, tmp_path):
    command = ["compare", "LinFP", "Greedy", "--env", "abrupt", "--with", "rounds=10 20", "--dim", "3", "--arms", "4"]
    command += ["--rounds", "30", "--runs", "2", "--out", tmp_path]
    code, out, _ = dither(*command)
    assert code == 0
    assert "abrupt, rounds=10 20, dim=3, arms=4, T=30" in out
    stored = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("*.*")}
    dither(*command)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("*.*")} == stored
    assert stored
