"""`dither.testing`: our own parts pass it, and each check finds a part that breaks its rule."""

import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import Ridge as Penalised

import dither
from bad_estimators import BAD_ESTIMATORS, estimator
from bad_models import BAD_MODELS, Forgets, Mine, OneRequest, Two
from bad_policies import BAD_POLICIES, Softmax, WidthEps, hotter, seeing
from bad_worlds import BAD_WORLDS, OneRun
from dither import envs, models, ope, testing
from properties import ALL, EXCUSED, NETWORKS, brief, exactly, few, integrates
from worlds import WORLDS

# Our own parts


def tried(name):
    """An algorithm's policy on its model, and how much of it is tried."""
    model, policy = dither.ALGORITHMS[name].configure(3, lam=0.5, **exactly(name))
    n = few(model, policy, 5_000 if name in NETWORKS else 20_000)  # policies on networks have few rules of their own
    requests = max(min(few(model, policy, 60), brief(model, policy, 60)), 5)
    rtol = 1e-9 if integrates(model, policy) else 1e-12
    return testing.check_policy.checks(policy, model, draws=n, requests=requests, rtol=rtol)


@pytest.mark.parametrize("check", testing.check_policy.rules)
@pytest.mark.parametrize("name", dither.ALGORITHMS)
def test_every_policy_keeps_the_rules(name, check):
    next(one for one in tried(name) if one.name == check)()


@pytest.mark.parametrize("name", [name for name in dither.ALGORITHMS if "slots" not in EXCUSED.get(name, {})])
def test_every_policy_keeps_the_rules_among_slots(name):
    model, policy = dither.ALGORITHMS[name].configure(3, lam=0.5, disjoint=4, **exactly(name))
    n = few(model, policy, 2_000)
    testing.check_policy(policy, model, draws=n, requests=max(min(few(model, policy, 20), 20), 5))


def f(X):
    return X[:, 0]


_STEP = {"order": EXCUSED["DeepFP"]["order"], "weights": "a weight is one of the loss, in one step"}
MODELS = [  # every class, with the settings that make another model of it; and what it cannot pass
    (models.Ridge(0.5), {}),
    (models.Diagonal(0.5), {}),
    *((models.GLM(link=link, lam=0.5), {}) for link in dither.links.LINKS if link != "identity"),
    (models.GLM(solver="counts"), {}),
    (models.GLM(solver="online"), {}),
    (models.Admissible(lam=0.5, S=4.0), {}),  # wide enough for θ̂: else SciPy's tolerance shows
    *((models.OnlineNewton(link=link, lam=0.5), _STEP) for link in dither.links.LINKS),
    (models.Disjoint(models.Ridge(0.5), 3), {}),
    (models.Disjoint(models.GLM(), 2), {}),
    (models.Network(hidden=(8, 6), dtype="float64"), _STEP),
    (models.Network(hidden=(8, 6), dtype="float64", slots=3), _STEP),
    (models.NeuralLinear(hidden=(8,), dtype="float64"), _STEP),
    (models.Regressor(Penalised(), refit=1), {}),
    (models.Regressor(Penalised(), refit=1, slots=3), {}),
    (models.Fixed(f), {"learning": "it is never trained"}),
    (models.Fixed(f, slots=2), {"learning": "it is never trained"}),
]


@pytest.mark.parametrize("check", testing.check_model.rules)
@pytest.mark.parametrize(("model", "excused"), MODELS, ids=lambda part: re.sub(r" at 0x\w+", "", repr(part))[:60])
def test_every_model_keeps_the_rules(model, excused, check):
    checks = testing.check_model.checks(model, expected_failed_checks=excused)
    next(one for one in checks if one.name == check)()


def test_every_model_is_tried():
    assert {type(model).__name__ for model, _ in MODELS} == set(models.__all__)
    assert {type(model) for model, _ in ALL.values()} <= {type(model) for model, _ in MODELS}


def replayed():
    rng = np.random.default_rng(0)
    log = dither.log.Log()
    X, a = rng.normal(size=(60, 4, 3)), rng.integers(0, 4, 60)
    made = log.record(dither.Decision(a, np.full(60, 0.25), "exact", None), X=X)
    for id in made.id:
        log.reward(id, 1.0)
    return envs.Replay(log.read(), M=rng.normal(size=(60, 4)))


@pytest.mark.parametrize("check", testing.check_environment.rules)
@pytest.mark.parametrize("world", [*WORLDS, "replay"])
def test_every_environment_keeps_the_rules(world, check):
    checks = testing.check_environment.checks(replayed() if world == "replay" else WORLDS[world])
    next(one for one in checks if one.name == check)()


def test_every_environment_is_tried():
    tried = {type(env).__name__ for env in WORLDS.values()} | {"Replay"}
    assert tried == set(envs.__all__) - {"Environment", "Kappas", "Replayed", "kappas"}


SETTINGS = {"clipped_ips": 2.0, "switch_dr": 1.5, "dros": 3.0, "sgdr": 0.4}
BIASED = {  # where its setting, or a prediction that is wrong, makes it so
    "dm": "the predictions are wrong",
    **dict.fromkeys(SETTINGS, "weights are cut off or shrunk"),
}


@pytest.mark.parametrize("check", testing.check_estimator.rules)
@pytest.mark.parametrize("name", [name for name, one in ope.ESTIMATORS.items() if one.reads != "past"])
def test_every_estimator_keeps_the_rules(name, check):
    excused = {"unbiased": BIASED[name]} if name in BIASED else {}
    checks = testing.check_estimator.checks(
        name, setting=SETTINGS.get(name), unbiased=True, expected_failed_checks=excused
    )
    next(one for one in checks if one.name == check)()


# Parts that break a rule


def found(checks, name):
    with pytest.raises(testing.CheckFailed) as failed:
        next(one for one in checks if one.name == name)()
    assert list(failed.value.failures) == [name]
    return str(failed.value)


@pytest.mark.parametrize(("check", "policy", "says"), BAD_POLICIES)
def test_a_policy_that_breaks_a_rule_is_found(check, policy, says):
    said = found(testing.check_policy.checks(policy), check)
    assert re.search(says, said), said
    assert said.startswith(f"{type(policy).__name__} fails the check {check!r}: ")
    # seen red: each check with `return` as its first line


def test_a_policy_that_keeps_the_rules_passes():
    testing.check_policy(Softmax())
    testing.check_policy(Softmax(), models.GLM(), draws=2000)
    for check in testing.check_policy.checks(Softmax(), seed=3):
        check()


@pytest.mark.parametrize(("check", "model", "says"), BAD_MODELS)
def test_a_model_that_breaks_a_rule_is_found(check, model, says):
    said = found(testing.check_model.checks(model), check)
    assert re.search(says, said), said
    # seen red: each check with `return` as its first line; no `_same_states`; no look at how arrays grow


def test_a_model_that_keeps_the_rules_passes():
    testing.check_model(Mine(0.5))


@pytest.mark.parametrize(("check", "env", "says"), BAD_WORLDS)
def test_an_environment_that_breaks_a_rule_is_found(check, env, says):
    OneRun.kept.clear()
    said = found(testing.check_environment.checks(env), check)
    assert re.search(says, said), said
    # seen red: each check with `return` as its first line


@pytest.mark.parametrize(
    ("check", "part", "options", "says"), BAD_ESTIMATORS, ids=lambda x: x if isinstance(x, str) else ""
)
def test_an_estimator_that_breaks_a_rule_is_found(check, part, options, says):
    said = found(testing.check_estimator.checks(part, **options), check)
    assert re.search(says, said), said
    # seen red: each check with `return` as its first line


def test_an_estimator_that_reads_all_arms_may_say_so():
    part = estimator(lambda b, log: b * log.Q.max(axis=1), reads="all arms")
    testing.check_estimator(part)
    testing.check_estimator(part.rows)  # a bare function is taken to read all arms


# How checks are run


def test_every_check_has_a_part_that_it_finds():
    tried = {
        testing.check_policy: BAD_POLICIES,
        testing.check_model: BAD_MODELS,
        testing.check_environment: BAD_WORLDS,
        testing.check_estimator: BAD_ESTIMATORS,
    }
    for checker, bad in tried.items():
        assert {check for check, *_ in bad} == set(checker.rules)
        assert all(rule.__doc__ for rule in checker.rules.values())


def test_all_failures_are_told_at_once():
    with pytest.raises(testing.CheckFailed) as failed:
        testing.check_policy(seeing(propensities=hotter)())
    assert {"frequencies", "masked_arms"} <= set(failed.value.failures)
    assert "batch" not in failed.value.failures
    assert f"fails {len(failed.value.failures)} checks" in str(failed.value)
    assert isinstance(failed.value, AssertionError)
    again = pickle.loads(pickle.dumps(failed.value))
    assert (str(again), again.failures) == (str(failed.value), failed.value.failures)


def test_a_failure_that_is_expected_must_come():
    of_time = dict.fromkeys(("order", "weights", "update_many"), "it forgets")
    testing.check_model(Forgets(), expected_failed_checks=of_time)
    with pytest.raises(testing.CheckFailed, match=r"expected to fail \(no reason\), and it passes: take it out"):
        testing.check_model(Mine(), expected_failed_checks={"order": "no reason"})  # seen red: an xfail that may pass
    with pytest.raises(LookupError, match="no check 'ordr': did you mean 'order'"):
        testing.check_model(Mine(), expected_failed_checks={"ordr": "no reason"})


def test_what_a_part_raises_is_a_failure_with_its_cause():
    class Raises(Softmax):
        def view(self, model, state, X, *, t):
            raise KeyError("colour")

    with pytest.raises(testing.CheckFailed, match="KeyError: 'colour'") as failed:
        next(c for c in testing.check_policy.checks(Raises()) if c.name == "batch")()
    assert isinstance(failed.value.__cause__, KeyError)


def test_a_method_that_raises_is_named_with_its_promise_and_nothing_else_is_run():
    with pytest.raises(testing.CheckFailed) as failed:
        testing.check_model(OneRequest())
    said = str(failed.value)
    assert list(failed.value.failures) == ["shapes"]  # seen red: no gate
    assert "OneRequest.mean raised ValueError: " in said  # seen red: `_product`, with private names taken too
    assert "It was given X (4, 5, 3). The rule is: All arrays of a state have the leading axes" in said
    assert "What `mean` promises: The score m_i of each arm: X (..., K, d) -> (..., K)." in said
    assert re.search(r"The other \d+ checks are not run before shapes passes", said)


def test_a_policy_that_cannot_draw_is_told_so_once():
    with pytest.raises(testing.CheckFailed) as failed:
        testing.check_policy(WidthEps())
    assert list(failed.value.failures) == ["draw"]  # seen red: no gate, 17 lines of one mistake
    assert re.search(r"The other \d+ checks are not run before draw passes", str(failed.value))


def test_a_gate_that_is_expected_to_fail_stops_nothing():
    with pytest.raises(testing.CheckFailed) as failed:
        testing.check_model(Two(), expected_failed_checks={"shapes": "two arms are enough"})
    assert "lockstep" in failed.value.failures  # seen red: a gate that stops whatever it finds
    with pytest.raises(testing.CheckFailed) as failed:
        testing.check_model(Forgets(), expected_failed_checks={"shapes": "no reason"})
    assert {"shapes", "order"} <= set(failed.value.failures)  # seen red: no look at `expected`


@pytest.mark.parametrize("check", [testing.check_model, lambda kind: testing.check_policy(Softmax(), kind)])
def test_a_class_in_place_of_a_model_is_refused_once(check):
    with pytest.raises(TypeError, match=r"^a model is an instance: pass Mine\(\) for Mine"):
        check(Mine)  # seen red: no look in `Trial`


def test_a_model_inside_a_model_is_known_to_its_file():
    testing.check_model(models.Disjoint(Mine(), 2))  # seen red: only the outer class known


def test_it_works_without_a_test_runner():
    code = """
import sys
for name in ("pytest", "hypothesis", "polars", "sklearn"): sys.modules[name] = None
import dither
assert "dither.testing" not in sys.modules
dither.testing.check_policy(dither.policies.FeaturePerturbation(), draws=500)
dither.testing.check_model(dither.models.Ridge())
dither.testing.check_environment(dither.envs.Linear(dim=2, arms=3), draws=500)
dither.testing.check_estimator("ips")
"""
    path = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_counts_are_compared_without_slack_at_zero_and_one():
    from dither.testing import chance

    assert chance.improbable(np.array([1, 19_999]), 20_000, np.array([0.0, 1.0]), tests=10).all()
    assert not chance.improbable(np.array([0, 20_000]), 20_000, np.array([0.0, 1.0]), tests=10).any()
    rng, p = np.random.default_rng(0), np.array([0.0, 1e-4, 0.2, 0.5, 0.9999, 1.0])
    hits = np.array([rng.binomial(20_000, p) for _ in range(2000)])
    assert not any(chance.improbable(row, 20_000, p, tests=12_000).any() for row in hits)
    assert chance.improbable(np.array([1760]), 20_000, np.array([0.206]), tests=10).all()  # .206 said, .088 drawn
