"""Simulations on a device: the streams of NumPy, and arrays that never leave the device by mistake.

No test needs a GPU. torch on the CPU goes the same way as torch on a GPU. And array_api_strict has devices that refuse
to meet, so that an array made on the wrong one is found.
"""

import itertools

import array_api_strict
import numpy as np
import pytest
from numpy.testing import assert_allclose

import dither
from dither import models, policies
from dither.base import arrays
from longer import size
from worlds import DIGITS, ENV, GLMS, LINEAR, LOGISTIC, WORLDS

FEW = ["LinFP", "LinTS", "EpsGreedy"]


def torch_cpu(env, names, **settings):
    pytest.importorskip("torch")
    return dither.simulate(env, names, **settings, device="cpu")


# Many runs at once


@pytest.mark.parametrize(
    ("env", "names", "rounds"), [(ENV, LINEAR, 4), (LOGISTIC, ["GLMFP"], 3)], ids=["linear", "glm"]
)
def test_many_runs_are_those_of_numpy(env, names, rounds):
    runs, settings = size(500, longer=2000), dict(rounds=rounds, seed=3, record=range(1, rounds + 1))
    there = torch_cpu(env, names, runs=runs, **settings)
    here = dither.simulate(env, names, runs=runs, **settings)
    assert_allclose(there.regret, here.regret, rtol=1e-9, atol=1e-9)
    assert_allclose(there.realised, here.realised, rtol=1e-9, atol=1e-9)
    alone = torch_cpu(env, names, runs=[7, runs - 1], **settings)  # run 7 is run 7
    assert_allclose(alone.regret, there.regret[:, [7, runs - 1]], rtol=1e-9, atol=1e-9)
    # seen red: one stream for all runs of a batch


@pytest.mark.parametrize(
    ("env", "names"), [(ENV, FEW), (LOGISTIC, ["GLMFP:solver=online", "LogTS:solver=online"])], ids=["linear", "glm"]
)
def test_other_runs_have_the_same_law(env, names):
    runs = 400
    settings = dict(runs=runs, rounds=6, record=[6])
    there = torch_cpu(env, names, seed=1, **settings).regret[..., 0]
    here = dither.simulate(env, names, seed=2, **settings).regret[..., 0]
    se = np.hypot(there.std(axis=1), here.std(axis=1)) / np.sqrt(runs)
    assert np.all(np.abs(there.mean(axis=1) - here.mean(axis=1)) < 5 * se)
    # seen red: rewards of the device without their noise


def test_a_device_takes_as_many_runs_at_once_as_memory_holds(monkeypatch):
    pytest.importorskip("torch")
    sizes = []
    inner = dither.simulate.__globals__["_lockstep"]
    monkeypatch.setitem(
        dither.simulate.__globals__,
        "_lockstep",
        lambda contest, runs, tell: sizes.append(len(runs)) or inner(contest, runs, tell),
    )
    dither.simulate(ENV, ["Greedy"], rounds=1, runs=1500, device="cpu")
    assert sizes == [1500]
    sizes.clear()
    dither.simulate(ENV, ["Greedy"], rounds=1, runs=120)
    assert sizes == [40, 40, 40]
    monkeypatch.setitem(dither.simulate.__globals__, "MEMORY_THERE", 10 * (models.GLM().bytes(3, 2) + 8 * (15 + 20)))
    sizes.clear()
    dither.simulate(LOGISTIC, ["GLMFP"], runs=30, rounds=2, device="cpu")
    assert sizes == [10, 10, 10]


# What else is told to a device


@pytest.mark.parametrize("world", ["masked", "walking", "misspecified", "all at once", "few on offer", "random delay"])
def test_every_kind_of_world_runs_there(world):
    settings = dict(runs=4, rounds=40, seed=3)
    here = dither.simulate(WORLDS[world], FEW, **settings)
    there = torch_cpu(WORLDS[world], FEW, **settings)
    assert_allclose(there.regret, here.regret, rtol=1e-9, atol=1e-9)
    assert_allclose(there.realised, here.realised, rtol=1e-9, atol=1e-9)


STRICT = array_api_strict.Device("device1")
PLACES = {
    **{name: (ENV, name, 12) for name in (*LINEAR, "LinFP:form='vector'", "LinFP:coupled=False", "LinFP:c='oful'")},
    **{name: (LOGISTIC, name, 6) for name in GLMS},
    **{f"GLMFP:solver={solver}": (LOGISTIC, f"GLMFP:solver={solver}", 6) for solver in ("exact", "counts", "online")},
    **{f"{name} among slots": (DIGITS, name, 12) for name in ("LinFP", "LinTS", "EpsGreedy", "RandLinUCB")},
    **{f"{name} with masks": (WORLDS["masked"], name, 12) for name in LINEAR},
    "late": (WORLDS["random delay"], "LinFP", 12),
}


@pytest.mark.parametrize("place", PLACES)
def test_no_array_is_made_on_another_device(place, monkeypatch):
    env, name, rounds = PLACES[place]
    back = arrays.numpy
    monkeypatch.setattr(
        arrays,
        "numpy",
        lambda x: back(
            x.to_device(array_api_strict.Device("CPU_DEVICE"))
            if hasattr(x, "to_device") and not isinstance(x, np.ndarray)
            else x
        ),
    )
    here = dither.simulate(env, [name], runs=3, rounds=rounds, seed=0)
    there = dither.simulate(env, [name], runs=3, rounds=rounds, seed=0, xp=array_api_strict, device=STRICT)
    assert_allclose(there.regret, here.regret, rtol=1e-9, atol=1e-9)
    # seen red: `arrays.pick` with an arange of the default device


# Networks, and what has no place there


def layers(torch):
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))


def test_a_module_runs_on_the_device_beside_linear_models():
    torch = pytest.importorskip("torch")
    network = models.Network(module=layers(torch), dtype="float64")
    agents = {"module": (network, policies.EpsGreedy()), "LinFP": "LinFP"}
    settings = dict(runs=3, rounds=20, seed=0, record=range(1, 21))
    here, there = dither.simulate(ENV, agents, **settings), dither.simulate(ENV, agents, **settings, device="cpu")
    assert_allclose(there.regret, here.regret, rtol=1e-9, atol=1e-9)
    assert models.Network(module=layers(torch)).placed("meta").device == "meta"
    # seen red: contexts of the device given to the module's state


DEEP = ["DeepFP", "DeepFP:Sigma=spread,coupled=True", "DeepFP-scalar", "DeepEpsGreedy", "DeepGreedy", "NeuralUCB"]
DEEP += ["NeuralTS", "FTPL", "FTPL:preset=own_paper", "NeuralLinear:refresh=7", "NeuralLinearFP:refresh=7,lam=1e-9"]
DEEP += ["NeuralLinear:preset=own_paper,refresh=20,every=10,steps=2"]


LATE = ("DeepFP:every=2", "NeuralLinear:refresh=7")
DEEP_THERE = [*itertools.product(DEEP, ("arms", "slots")), *itertools.product(LATE, ("random delay", "masked"))]


@pytest.mark.parametrize(("name", "world"), DEEP_THERE)
def test_every_network_by_name_has_the_regret_of_numpy(name, world):
    env = {"arms": ENV, "slots": DIGITS}.get(world) or WORLDS[world]
    name += ("," if ":" in name else ":") + "dtype=float64,hidden=10x8"
    settings = dict(rounds=30, seed=3, record=range(1, 31))
    here, there = dither.simulate(env, [name], runs=3, **settings), torch_cpu(env, [name], runs=3, **settings)
    assert_allclose(there.regret, here.regret, rtol=1e-9, atol=1e-9)
    assert_allclose(there.realised, here.realised, rtol=1e-9, atol=1e-9)
    alone = torch_cpu(env, [name], runs=[2], **settings)  # run 2 is run 2
    assert_allclose(alone.regret, there.regret[:, 2:], rtol=1e-9, atol=1e-9)
    # seen red: the rows of another run; a regression that is not made anew


def test_a_jitter_of_all_slots_runs_there_too():
    settings = dict(runs=3, rounds=20, seed=0, record=range(1, 21))
    name = "DeepFP:mask=False,dtype=float64"
    here, there = dither.simulate(DIGITS, [name], **settings), torch_cpu(DIGITS, [name], **settings)
    assert_allclose(there.regret, here.regret, rtol=1e-9, atol=1e-9)


def test_the_convolutions_of_the_paper_run_there():
    """Figure H.7 as the bench defines it, small: images in slots, all its algorithms."""
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    images = dither.envs.Classification(rng.random((60, 64)), rng.integers(0, 3, 60))
    shared = "convolutions=2x3,hidden=5,image=8x8,dtype=float64"
    names = [f"{name}:{shared}" for name in ("DeepFP", "DeepEpsGreedy", "NeuralUCB", "NeuralTS", "FTPL")]
    settings = dict(runs=2, rounds=15, seed=0, record=range(1, 16))
    here, there = dither.simulate(images, names, **settings), torch_cpu(images, names, **settings)
    assert_allclose(there.regret, here.regret, rtol=1e-9, atol=1e-9)


def test_networks_share_the_memory_of_a_device(monkeypatch):
    pytest.importorskip("torch")
    sizes, where = [], dither.simulate.__globals__
    inner = where["_lockstep"]
    monkeypatch.setitem(where, "_lockstep", lambda c, runs, tell: sizes.append(len(runs)) or inner(c, runs, tell))
    one = models.Network(hidden=(50, 50)).placed("cpu").bytes(ENV.dim, 2)
    monkeypatch.setitem(where, "MEMORY_THERE", 5 * one - 1)  # contexts count too
    dither.simulate(ENV, ["DeepGreedy"], runs=12, rounds=2, device="cpu")
    assert sizes == [4, 4, 4]


def test_a_device_that_is_not_here_is_refused_before_anything_runs():
    torch = pytest.importorskip("torch")
    wrong = ["abacus"] + ([] if torch.cuda.is_available() else ["cuda"])
    for device in wrong:
        with pytest.raises(ValueError, match=f"device must be one that torch has here.*'{device}'"):
            dither.simulate(ENV, ["LinFP"], runs=1, rounds=2, device=device)
