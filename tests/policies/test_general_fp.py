"""The constructor of general FP: what it makes a model of, its place in the table, simulations of its agents."""

import inspect
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDRegressor
from sklearn.preprocessing import StandardScaler

import dither
from dither.algorithms import Spec
from dither.models import GLM, Diagonal, Disjoint, Fixed, Network, Regressor, Ridge
from dither.policies import GeneralFeaturePerturbation as General


def test_it_makes_a_model_of_what_it_is_given():
    def f(X):
        return X[:, 0]

    kinds = [
        (dither.FP(3), Ridge("auto", centre=True)),
        (dither.FP(dim=3, lam=0.2), Ridge(0.2, centre=True)),
        (dither.FP(dim=3, diagonal=True), Diagonal("auto", centre=True)),
        (dither.FP(dim=3, disjoint=2, preset="paper"), Disjoint(Ridge(), 2)),
        (dither.FP(f, dim=3), Fixed(f)),
        (dither.FP(f, dim=3, disjoint=2, encode="index"), Fixed(f, slots=2, encode="index")),
        (dither.FP(model=f, dim=3), Fixed(f)),
        (dither.FP(GLM("log"), dim=3), GLM("log")),
        (dither.FP(GLM(), dim=3, disjoint=2), Disjoint(GLM(), 2)),
        (dither.FP(Network(hidden=5), dim=3, disjoint=4), Network(hidden=5, slots=4)),
        (dither.FP(Disjoint(GLM(), 2), dim=3, disjoint=2), Disjoint(GLM(), 2)),
    ]
    for b, model in kinds:
        assert b.model == model
        assert isinstance(b.policy, General)
    b = dither.FP(SGDRegressor(alpha=0.5), dim=3, seed=7, partial=True, Sigma="spread", floor=0.1, monte_carlo=30)
    assert isinstance(b.model, Regressor)
    assert (b.model.partial, b.model.estimator.alpha, b.policy.Sigma, b.floor, b.seed) == (True, 0.5, "spread", 0.1, 7)
    assert b.choose(np.eye(3)).propensity_kind == "monte_carlo"
    assert dither.FP(LogisticRegression(), dim=3, refit=4, disjoint=5).slots == 5
    own = Regressor(LinearRegression(), first=4)
    assert dither.FP(own, dim=3).model is own


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: dither.FP(LinearRegression(), 3), TypeError, r"the model: FP\(model, dim=5\)"),
        (lambda: dither.FP(LinearRegression()), TypeError, "FP needs dim"),
        (lambda: dither.FP(LinearRegression, dim=3), TypeError, r"pass LinearRegression\(\) for LinearRegression"),
        (lambda: dither.FP(StandardScaler(), dim=3), TypeError, "StandardScaler is no estimator.*lacks predict"),
        (lambda: dither.FP("forest", dim=3), TypeError, "model must be an estimator with fit and predict"),
        (
            lambda: dither.FP(LinearRegression(), dim=3, lam=1.0),
            TypeError,
            "no setting of FP on LinearRegression 'lam'",
        ),
        (lambda: dither.FP(LinearRegression(), dim=3, slots=2), TypeError, "'slots'"),
        (lambda: dither.FP(LinearRegression(), dim=3, sigma="1/t"), TypeError, "did you mean 'Sigma'"),
        (lambda: dither.FP(GLM(), dim=3, lam=1.0), TypeError, "no setting of FP on GLM 'lam'"),
        (lambda: dither.FP(GLM(), dim=3, preset="mine"), LookupError, "no preset 'mine'"),
        (lambda: dither.FP(GLM(), dim=3, diagonal=True), ValueError, "diagonal is for the linear model"),
        (lambda: dither.FP(GLM(), dim=3, disjoint=0), ValueError, "disjoint, the number of slots,"),
        (lambda: dither.FP(Disjoint(GLM(), 2), dim=3, disjoint=3), ValueError, "which has 2 slots"),
    ],
)
def test_what_it_cannot_make_a_model_of_is_refused(call, error, says):
    with pytest.raises(error, match=says):
        call()


@pytest.mark.parametrize("preset", dither.algorithms.PRESETS)
def test_it_stands_in_the_table(preset):
    algorithm = dither.ALGORITHMS["FP"]
    assert algorithm is dither.FP
    b = algorithm(dim=3, seed=0, preset=preset)
    ridge = Ridge("auto", centre=True) if preset == "default" else Ridge()
    assert b.model == ridge
    assert algorithm.needs == ("mean", "mean_at")
    assert Spec.parse(f"FP:Sigma=constant,c=0.2,preset={preset}").configure(3, disjoint=2, facts={}) == (
        Disjoint(ridge, 2),
        General("constant", c=0.2),
    )
    assert list(inspect.signature(dither.FP).parameters)[:2] == ["model", "dim"]
    assert pickle.loads(pickle.dumps(dither.FP)) is dither.FP
    assert "FP(GradientBoostingRegressor(), dim=5" in dither.FP.__doc__


def test_simulations_run_specs_and_models():
    env = dither.envs.Linear(dim=3, arms=5)
    agents = {
        "FP": "FP:c=0.5",
        "own": dither.FP.configure(3, model=LinearRegression(), c=0.5),
        "f": dither.FP.configure(3, model=lambda X: X[:, 0]),
    }
    found = dither.simulate(env, agents, runs=4, rounds=300, seed=0)
    ours = found.regret[:, :, -1].mean(axis=1)
    assert ours[0] < 0.5 * ours[2]
    assert ours[1] < 0.7 * ours[2]
    alone = dither.simulate(env, {"FP": "FP:c=0.5"}, runs=[2], rounds=300, seed=0)
    assert_allclose(alone.regret[0, 0], found.regret[0, 2], rtol=1e-12)


def test_all_slots_of_runs_in_lockstep_move_with_the_spread_of_each():
    rng = np.random.default_rng(0)
    env = dither.envs.Classification(rng.normal(size=(50, 2)) * [1, 9], rng.integers(3, size=50))
    for model in (Fixed(lambda X: X[:, 0] - X[:, 3], slots=3), Network(hidden=4, slots=3)):
        agents = {"FP": (model, General("spread", mask=False))}
        alone, beside = (dither.simulate(env, agents, runs=n, rounds=20, seed=1, batch=3) for n in ([1], 3))
        assert_allclose(alone.regret[0, 0], beside.regret[0, 1])
    # seen red: the spread of run 1 in slot 1 of all
