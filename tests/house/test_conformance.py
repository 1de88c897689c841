"""The conformance suite: every case of it holds here, and the files are what its script writes."""

import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import lockstep
from dither import models, noise, policies
from dither.bandit.bandit import Bandit
from dither.deciding import decision

FOLDER = Path(__file__).parents[2] / "conformance"
FILES = ("linear.json", "generalised.json", "lines.json")
CASES = {name: json.loads((FOLDER / name).read_text(encoding="utf-8"))["cases"] for name in FILES}


def each(*names):
    """Parameters: the cases of these files."""
    return [pytest.param(case, id=f"{name}-{i}") for name in names for i, case in enumerate(CASES[name])]


def model(given):
    return models.Ridge(lam=given["lam"]) if given["kind"] == "linear" else models.GLM(given["link"], lam=given["lam"])


def policy(given):
    kind = given["kind"]
    if kind == "feature_perturbation":
        law = noise.Ball() if given["noise"] == "ball" else noise.Gaussian()
        return policies.FeaturePerturbation(c=given["c"], sigma=given["sigma"], noise=law, coupled=given["coupled"])
    if kind == "rand_ucb":
        return policies.RandUCB(beta=given["beta"], coupled=given["coupled"])
    if kind == "ucb":
        return policies.UCB(beta=given["beta"])
    return policies.EpsGreedy(given["epsilon"], decay=None) if kind == "eps_greedy" else policies.Greedy()


def minus_infinity(values):
    return np.array([-math.inf if v is None else v for v in values])


def shown(view, z, K, mask):
    """The arms that the view shows at z: all that tie, as the uniform number that settles ties goes from 0 to 1."""
    chance = () if z is None else (np.asarray(z),)
    ties = (np.arange(2 * K) + 0.5) / (2 * K)
    return {int(lockstep.choose(view, chance, np.array([u, 0.5, 0.5]), eps=0.0, mask=mask)) for u in ties}


def check(view, case, K, mask):
    for choice in case["choices"]:
        assert shown(view, choice["z"], K, mask) == set(choice["arms"])


@pytest.mark.parametrize("case", each("linear.json", "generalised.json"))
def test_a_history_leads_to_the_same_estimate_arms_and_probabilities(case):
    given = case["model"]
    bandit = Bandit(model(given), policy(case["policy"]), dim=given["dim"], seed=0, floor=case["floor"])
    for x, r in zip(case["history"]["X"], case["history"]["r"], strict=True):
        bandit.update(np.array(x), r)
    X, mask = np.array(case["arms"]["X"]), case["arms"]["mask"]
    mask = None if mask is None else np.array(mask)
    close = 1e-12 if given["kind"] == "linear" else 1e-7  # of a GLM: `tol` of the solver, a share of the widths
    assert_allclose(bandit.model.mean(bandit.state, X), case["means"], rtol=close, atol=close)
    assert_allclose(bandit.model.width(bandit.state, X), case["widths"], rtol=close, atol=close)
    assert_allclose(bandit.propensities(X, mask=mask), case["probabilities"], rtol=10 * close, atol=close)
    check(decision.view(bandit.policy, bandit.model, bandit.state, X, t=bandit.t), case, len(X), mask)


@pytest.mark.parametrize("case", each("lines.json"))
def test_lines_lead_to_the_same_arms_and_probabilities(case):
    law = (noise.Ball() if case["noise"] == "ball" else noise.Gaussian()).marginal(case["dim"])
    view = policies.views.Lines(np.array(case["means"]), np.array(case["widths"]), law=law)
    mask = None if case["mask"] is None else np.array(case["mask"])
    assert_allclose(view.propensities(mask=mask), case["probabilities"], rtol=1e-13, atol=1e-15)
    logs = minus_infinity(case["log_probabilities"])
    assert_allclose(view.log_propensities(mask=mask), logs, rtol=1e-13, atol=1e-14)
    check(view, case, len(case["means"]), mask)


def test_the_files_are_what_the_script_writes():
    found = importlib.util.spec_from_file_location("conformance_make", FOLDER / "make.py")
    make = importlib.util.module_from_spec(found)
    found.loader.exec_module(make)
    with make.mp.workdps(60):
        assert json.loads(json.dumps(make.all_lines())) == CASES["lines.json"]
        first, *_ = (c for c in CASES["generalised.json"] if c["name"] == "feature perturbation; 24 rows")
        again = make.case(
            first["name"],
            model=first["model"],
            policy=first["policy"],
            rows=first["history"]["X"],
            rewards=first["history"]["r"],
            arms=first["arms"]["X"],
            zs=make.ZS,
        )
    assert json.loads(json.dumps(again)) == first


def test_the_suite_has_all_kinds():
    kinds = {case["policy"]["kind"] for name in FILES[:2] for case in CASES[name]}
    assert kinds == {"greedy", "eps_greedy", "ucb", "rand_ucb", "feature_perturbation"}
    for name in FILES:
        for case in CASES[name]:
            assert math.isclose(math.fsum(case["probabilities"]), 1, abs_tol=1e-15 * len(case["probabilities"]))
            assert case["choices"]
