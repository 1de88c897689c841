"""Algorithms with the same model are learnt in one call, and each has the regret that it has alone, to the bit."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import dither
from dither import envs, models, policies
from longer import size

module = sys.modules["dither.simulation.simulate"]
LOGISTIC, LINEAR, FIXED = envs.Logistic(dim=3, arms=6), envs.Linear(dim=3, arms=6), envs.Logistic(3, 6, contexts=1)


def of(model):
    """Three policies, one of which asks for statistics of its own where the model has them."""
    kinds = {"fp": policies.FeaturePerturbation(), "greedy": policies.Greedy(), "ts": policies.ThompsonSampling()}
    return {name: (model, policy) for name, policy in kinds.items()}


@pytest.mark.parametrize(
    ("env", "algorithms"),
    [
        (LINEAR, ["LinFP", "LinTS", "LinUCB", "RandLinUCB", "LinPHE"]),
        (LINEAR, of(models.Ridge(lam=1.0))),
        (LOGISTIC, ["GLMFP", "LogTS", "RandUCBLog", "UCB-GLM", "LogGreedy"]),
        (LOGISTIC, of(models.GLM(solver="exact", ridge=0.1))),
        (FIXED, ["GLMFP:solver=counts", "LogTS:solver=counts", "RandUCBLog:solver=counts", "LogPHE:solver=counts"]),
        (FIXED, ["OFUGLB-e:solver=counts", "GLMFP:solver=counts", "UCB-GLM:solver=counts"]),
    ],
    ids=lambda what: type(what).__name__,
)
def test_beside_others_of_its_model_an_algorithm_is_as_it_is_alone(env, algorithms):
    how = dict(runs=3, rounds=size(40, longer=80), seed=5)
    together = dither.simulate(env, algorithms, **how)
    for i, name in enumerate(together.algorithms):
        alone = dither.simulate(env, {name: algorithms[name]} if isinstance(algorithms, dict) else [name], **how)
        assert_array_equal(together.regret[i], alone.regret[0])  # seen red: the views of the agents in another order
        assert_array_equal(together.realised[i], alone.realised[0])


@pytest.fixture
def sizes(monkeypatch):
    """How many agents each team has."""
    found = []
    rule = module.teams

    def told(crew, world):
        teams = rule(crew, world)
        found.extend(len(team) for team in teams)
        return teams

    monkeypatch.setattr(module, "teams", told)
    return found


@pytest.mark.parametrize(
    ("env", "algorithms", "runs", "expected"),
    [
        (LOGISTIC, ["GLMFP", "LogTS", "LogGreedy"], 2, [3]),
        (LOGISTIC, ["GLMFP", "LogTS:lam=1", "LogGreedy"], 2, [2, 1]),  # another model
        (LOGISTIC, ["GLMFP", "UCB-GLM", "LogGreedy"], 2, [2, 1]),  # another statistic
        (LOGISTIC, ["GLMFP", "LogTS", "LogGreedy"], 20, [2, 1]),  # more runs than are in lockstep by default
        (envs.Logistic(dim=60, arms=6), ["GLMFP", "LogTS", "LogGreedy"], 6, [2, 1]),  # larger states
        (envs.Delayed(LOGISTIC, delay=2), ["GLMFP", "LogTS"], 2, [1, 1]),
        (LINEAR, ["DeepFP", "DeepFP:c=2"], 2, [1, 1]),  # chance of its own
    ],
)
def test_who_learns_together(sizes, env, algorithms, runs, expected):
    dither.simulate(env, algorithms, runs=runs, rounds=2, batch=runs)
    assert sizes == expected


def test_other_libraries_and_fitted_estimators_learn_alone(sizes):
    array_api = pytest.importorskip("array_api_strict")
    dither.simulate(LINEAR, ["LinFP", "LinTS"], runs=2, rounds=3, xp=array_api)
    fitted = models.Regressor(pytest.importorskip("sklearn.linear_model").Ridge(), refit=1)
    dither.simulate(LINEAR, {"a": (fitted, policies.Greedy()), "b": (fitted, policies.Greedy())}, runs=2, rounds=3)
    assert set(sizes) == {1}  # seen red: without `Model.together`


def test_a_refusal_for_one_is_a_refusal():
    """The rewards of a team are refused as those of one agent are."""
    with pytest.raises(ValueError, match="rewards must lie in"):
        dither.simulate(LINEAR, ["GLMFP", "LogTS"], runs=2, rounds=3)


def test_a_team_is_learnt_in_one_call(monkeypatch):
    calls, rule = [], models.GLM.update

    def told(self, state, x, r, **settings):
        calls.append(np.shape(r))
        return rule(self, state, x, r, **settings)

    monkeypatch.setattr(models.GLM, "update", told)
    dither.simulate(LOGISTIC, ["GLMFP", "LogTS", "LogGreedy"], runs=2, rounds=4)
    assert calls == [(6,)] * 4
