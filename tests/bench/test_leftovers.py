"""Small things that were said wrongly, or not at all."""

import pytest

from dither import envs, experiments
from dither_bench.define import environments

SMALL = ("--dim", 3, "--arms", 4, "--rounds", 20, "--runs", 2)
INNER = envs.Linear(dim=3, arms=4, norm=2.0)
WRAPPED = [
    envs.Masked(INNER),
    envs.Masked(INNER, 0.25),
    envs.Abrupt(INNER, rounds=(5, 10)),
    envs.Masked(envs.Logistic(dim=3, arms=4)),
    envs.StudentNoise(INNER),
]


@pytest.mark.parametrize("unit", ["3", "yes", "2.5", "none"])
def test_a_setting_that_is_true_or_false_is_nothing_else(dither, tmp_path, unit):
    code, _, err = dither("compare", "LinFP", "Greedy", *SMALL, "--with", f"unit={unit}", "--out", tmp_path)
    assert code == 2
    assert "unit must be True or False" in err
    for kind in (envs.Linear, envs.Logistic):
        with pytest.raises(ValueError, match="unit must be True or False, got 3"):
            kind(unit=3)
    # seen red: 3 was taken as true, and named another panel


@pytest.mark.parametrize("settings", [[("c", [1, 2])], "c=1,2", 5, [1]])
def test_settings_of_a_sweep_in_another_form(tmp_path, settings):
    with pytest.raises(ValueError, match="settings must be a dict such as"):
        experiments.sweep(["LinFP"], INNER, settings=settings, rounds=20, runs=2, out=tmp_path)
    # seen red: AttributeError: 'tuple' object has no attribute 'partition'


@pytest.mark.parametrize(
    "option", [("--panel", "x"), ("--rounds", 5), ("--runs", 3), ("--algorithm", "LinFP"), ("--profile",)]
)
def test_options_of_panels_are_refused_where_there_are_none(dither, tmp_path, option):
    code, _, err = dither("reproduce", "fig1", *option, "--out", tmp_path)
    assert code == 2
    assert f"fig1 shows the analysis and has no panels of algorithms: leave out {option[0]}" in err
    assert not list(tmp_path.iterdir())
    # seen red: the option was dropped


def test_a_profile_that_cannot_be_is_said_and_all_else_is_there(dither, tmp_path):
    code, out, err = dither("compare", "LinFP", "Greedy", *SMALL, "--arms", 1, "--profile", "--out", tmp_path)
    assert code == 0, err
    assert "No profile: LinFP has the mean regret 0" in " ".join(out.split())
    assert (tmp_path / "compare.csv").exists()
    assert not list(tmp_path.glob("*profile*"))
    # seen red: an error after all runs, and no table


@pytest.mark.parametrize("env", WRAPPED, ids=lambda env: type(env).__name__)
def test_an_environment_around_another_one_is_described_and_made_again(env):
    assert environments.build(environments.of(env)) == env
    # seen red: "a setting of masked.py:Masked is a number, ..."


def test_what_cannot_be_described_says_what_can(tmp_path):
    with pytest.raises(TypeError, match=r"masked can be described around linear, .*; got one around student"):
        experiments.compare(["LinFP", "Greedy"], envs.Masked(envs.StudentNoise(INNER)), rounds=20, runs=2, out=tmp_path)


def test_a_reference_of_ones_own_choice(dither, tmp_path):
    some = ("fig3-linear", "--panel", "d=10", "--rounds", 20, "--runs", 2, "--out", tmp_path)
    code, out, err = dither("reproduce", *some, "--reference", "LinTS")
    assert code == 0, err
    assert "from LinTS" in " ".join(out.split()) or "than LinTS" in " ".join(out.split())
    code, _, err = dither("reproduce", *some, "--reference", "LinTSS")
    assert code == 2
    assert "no algorithm of the comparison 'LinTSS': did you mean 'LinTS'?" in err
    found = experiments.sweep(
        ["LinFP:c=1|2", "LinTS"], INNER, reference="LinTS", rounds=20, runs=2, out=tmp_path / "sweep"
    )
    assert found.fresh.differences()["reference"].unique().to_list() == ["LinTS"]
