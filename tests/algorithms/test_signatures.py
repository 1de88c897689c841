"""What type checkers and editors know of the algorithms is what the table says, and what a call takes."""

import ast
import importlib.util
import inspect
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import dither
from dither import links
from dither.algorithms.algorithm import CHANCE, UNSTATED

ROOT = Path(__file__).parents[2]


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def declared():
    """Name -> the arguments of its call, as the stub has them."""
    stub = ast.parse(script("stubs").STUB.read_text(encoding="utf-8"))
    classes = [node for node in stub.body if isinstance(node, ast.ClassDef)]
    return {node.name.removeprefix("_"): node.body[0].args for node in classes}


def test_the_stub_is_that_of_the_table():
    stubs = script("stubs")
    assert stubs.STUB.read_text(encoding="utf-8") == str(stubs.Stub()), "run: make stubs"
    # seen red: an algorithm without its line; a field that was renamed; another value of a closed set


@pytest.mark.parametrize("name", dither.ALGORITHMS)
def test_a_call_takes_what_the_stub_says_and_help_shows_no_other(name):
    algorithm = dither.ALGORITHMS[name]
    arguments = declared()[algorithm.identifier]
    names = {argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)} - {"self"}
    assert set(inspect.signature(algorithm).parameters) <= names
    assert arguments.kwarg is None
    annotated = {argument.arg: ast.unparse(argument.annotation) for argument in arguments.kwonlyargs}
    assert annotated["preset"] == f"Literal[{', '.join(map(repr, algorithm.presets))}]"
    if "link" in annotated:
        assert annotated["link"] == f"Literal[{', '.join(map(repr, links.LINKS))}]"
    for setting in names - {"dim", "model"}:  # seen red: a field of `Regressor` that FP makes itself
        assert any(takes(algorithm, setting, preset, model) for preset in algorithm.presets for model in models(name))


def models(name):
    """What can stand for the model of an algorithm."""
    return [None] if name != "FP" else [None, LinearRegression(), np.mean]


def takes(algorithm, setting, preset, model):
    """Whether a call knows the setting, whatever it says of the value."""
    settings = {"preset": preset} | {setting: object()} | ({} if model is None else {"model": model})
    try:
        algorithm(dim=3, **settings)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        return "no setting of" not in str(error)
    return True


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: dither.LinFP(dim=3, lamb=1), "no setting of LinFP 'lamb': did you mean 'lam'?"),
        (lambda: dither.LinFP(dim=3, dimm=1), "no setting of LinFP 'dimm'"),
        (lambda: dither.GLMFP(dim=3, slover="exact"), "did you mean 'solver'?"),
        (lambda: dither.FP(dither.models.GLM(), dim=3, lamb=1), "no setting of FP on GLM 'lamb'"),
        (lambda: dither.LinPHE(dim=3, inflate=True), "no setting of LinPHE 'inflate'"),  # of another preset's policy
        (lambda: dither.LinFP(dim=3, model=dither.models.Ridge()), "no setting of LinFP 'model'"),
        (lambda: dither.simulate(dither.envs.Linear(dim=2), ["LinFP:lamb=1"], runs=1, rounds=2), "did you mean 'lam'?"),
        (lambda: dither.ALGORITHMS["LinFP"].configure(3, lamb=1.0), "did you mean 'lam'?"),
    ],
)
def test_an_unknown_setting_is_a_type_error_with_the_near_match(call, says):
    with pytest.raises(TypeError) as refused:
        call()
    assert says in str(refused.value)


@pytest.mark.parametrize("call", [lambda: dither.LinFP(dim=3, preset="own"), lambda: dither.GLMFP(dim=3, link="logti")])
def test_an_unknown_value_is_a_lookup_error_as_before(call):
    with pytest.raises(LookupError, match=r"did you mean|one of"):
        call()


def test_where_chance_enters_is_said_once_for_each_policy():
    for algorithm in dither.ALGORITHMS.values():
        assert (algorithm.perturbs, algorithm.propensity) == CHANCE[algorithm.policy]
    ours = dither.Algorithm("Mine", dither.policies.UCB, summary="", source="", propensity="exact")
    assert (ours.perturbs, ours.propensity) == ("none (optimism)", "exact")
    with pytest.raises(ValueError, match=f"'none \\(inverse gaps\\)', '{UNSTATED}'; got 'soul'"):
        dither.Algorithm("Mine", dither.policies.UCB, summary="", source="", perturbs="soul")
