"""The tie rule, and one result on every array library: NumPy, read-only NumPy, array_api_strict, torch."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
import lockstep
from dither.base import arrays
from dither.deciding import decision
from dither.models import Diagonal, Disjoint, Ridge
from dither.models import model as contract
from libraries import LIBRARIES
from longer import size
from properties import NETWORKS, bounded, brief, every_preset, presets, same_arrays


def refused(lib, name):
    """Whether a model keeps its state in NumPy's arrays alone."""
    return name in NETWORKS and lib.name in ("strict", "torch")


# The tie rule


def test_ties_are_shared_equally(lib):
    s, n = np.array([3.0, 1.0, 3.0, 3.0 * (1 - 1e-14), 2.0, 3.0 * (1 - 1e-9)]), 3000
    u = np.random.default_rng(0).random(n)
    arm = lib.back(arrays.argmax(lib.array(np.broadcast_to(s, (n, 6))), u=lib.array(u)))
    assert_array_equal(arm, np.array([0, 2, 3])[np.floor(3 * u).astype(int)])
    assert_allclose(lib.back(arrays.share(lib.array(s))), [1 / 3, 0, 1 / 3, 1 / 3, 0, 0])
    # seen red: the first of tied arms; the tolerance 0


@pytest.mark.parametrize("u", [0.0, 0.5, 1 - 2**-53])
@pytest.mark.parametrize("K", [1, 2, 3, 5, 6, 7, 49, 1000])
def test_every_uniform_names_an_arm(lib, u, K):
    arm = int(arrays.argmax(lib.array(np.full((1, K), 0.1)), u=lib.array([u]))[0])
    assert arm == min(int(u * K), K - 1)


def test_the_tolerance_is_relative_to_the_request(lib):
    scale = np.array([[1e-30], [1.0], [1e30]])
    s = scale * np.array([[1.0, 1.0 - 2e-13, 1.0 - 5e-12]])
    assert_allclose(lib.back(arrays.share(lib.array(s))), np.tile([0.5, 0.5, 0.0], (3, 1)))
    assert_allclose(lib.back(arrays.share(lib.array(np.zeros((2, 4))))), 0.25)


def test_a_mask_rules_arms_out_of_ties(lib):
    s, mask = (
        np.array([[2.0, 2.0, 2.0, 1.0], [5.0, 1.0, 0.0, 1.0]]),
        np.array([[False, True, True, True], [False, True, True, True]]),
    )
    assert_allclose(lib.back(arrays.share(lib.array(s), mask=lib.array(mask))), [[0, 0.5, 0.5, 0], [0, 0.5, 0, 0.5]])
    for u, expected in ((0.0, [1, 1]), (0.99, [2, 3])):
        arm = arrays.argmax(lib.array(s), u=lib.array([u, u]), mask=lib.array(mask))
        assert_array_equal(lib.back(arm), expected)


@pytest.mark.parametrize("batch", [(), (1,), (4,), (2, 3)])
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_pick_and_replace_are_indexing(lib, batch, rank):
    rng, K = np.random.default_rng(0), 5
    A, i = rng.normal(size=(*batch, K, *(2, 3)[:rank])), rng.integers(K, size=batch)
    value = rng.normal(size=(*batch, *(2, 3)[:rank]))
    expected, replaced = np.empty(value.shape), A.copy()
    for row in np.ndindex(batch):
        expected[row] = A[row][i[row]]
        replaced[row][i[row]] = value[row]
    there = lib.array(A)
    assert_array_equal(lib.back(arrays.pick(there, lib.array(i), rank=rank)), expected)
    assert_array_equal(lib.back(arrays.replace(there, lib.array(i), lib.array(value), rank=rank)), replaced)
    assert_array_equal(lib.back(there), A)  # a copy


# Models, policies and the simulator


def turns(lib, rounds):
    """How many rounds: array_api_strict refuses at once what is not in the standard, and is ten times slower."""
    return size(-(-rounds // 3), longer=rounds) if lib.name == "strict" else rounds


FINDING = {"lam": "auto", "centre": True, "reward_range": (-1.0, 1.0)}  # units of rewards and features


@pytest.mark.parametrize(
    "model",
    [
        Ridge(0.3),
        Diagonal(0.3),
        Disjoint(Ridge(0.3), 4),
        Ridge("auto"),
        Ridge(**FINDING, discount=0.9),
        Disjoint(Ridge(**FINDING), 4),
        Disjoint(Ridge("auto", centre=True, window=7), 4),
        Disjoint(Diagonal(**FINDING), 4),
    ],
)
@pytest.mark.parametrize("batch", [(), (3,)])
def test_models_reach_the_same_state(lib, model, batch):
    rng, d, disjoint = np.random.default_rng(0), 3, isinstance(model, Disjoint)
    needs = model.abilities
    ours = model.init(d, batch=batch, needs=needs)
    theirs = model.init(d, batch=batch, needs=needs, xp=lib.xp)
    for _ in range(10):
        x, r, weight = rng.normal(size=(*batch, d)), rng.normal(size=batch), rng.uniform(size=batch)
        x[..., -1] = 1.0
        arm = rng.integers(4, size=batch)
        there = {"arm": lib.array(arm)} if disjoint else {}
        ours = model.update(ours, x, r, weight=weight, **({"arm": arm} if disjoint else {}))
        theirs = model.update(theirs, lib.array(x), lib.array(r), weight=lib.array(weight), **there)
    if not (disjoint and batch):
        X, R, arm = rng.normal(size=(*batch, 6, d)), rng.normal(size=(*batch, 6)), rng.integers(4, size=6)
        X[..., -1] = 1.0
        ours = model.update_many(ours, X, R, **({"arm": arm} if disjoint else {}))
        theirs = model.update_many(theirs, lib.array(X), lib.array(R), **({"arm": lib.array(arm)} if disjoint else {}))
    at = rng.normal(size=(*batch, d) if disjoint else (*batch, 5, d))
    eta = rng.normal(size=(*batch, 2 * model.ambient(d)))
    for answer in (model.mean, model.width):
        assert_allclose(lib.back(answer(theirs, lib.array(at))), answer(ours, at), rtol=1e-9, atol=1e-12)
    if getattr(model, "model", model).lam == "auto":
        draws = rng.normal(size=(*batch, 3 * model.ambient(d)))
        found, ours_found = model.error_width(theirs, lib.array(at)).w, model.error_width(ours, at).w
        assert_allclose(lib.back(found), ours_found, rtol=1e-9, atol=1e-12)
        assert lib.back(model.error_sample(theirs, lib.array(draws))).shape == model.error_sample(ours, draws).shape
        assert_allclose(np.asarray(model.noise_sd(theirs), dtype=float), model.noise_sd(ours), rtol=1e-9)
    half = eta[..., : model.ambient(d)]
    assert_allclose(lib.back(model.sample(theirs, lib.array(half))), model.sample(ours, half), rtol=1e-9, atol=1e-9)
    found = lib.back(model.perturb(theirs, lib.array(eta)))  # the factor of the Gram matrix is free up to a rotation
    assert found.shape == model.perturb(ours, eta).shape
    assert_allclose(lib.back(model.logdet(theirs)), model.logdet(ours), rtol=1e-9)
    assert_allclose(lib.back(model.lipschitz(theirs, 2.0)), model.lipschitz(ours, 2.0), rtol=1e-9)


@pytest.mark.parametrize("lib", size(["read-only", "strict", "torch"], longer=LIBRARIES), indirect=True)
@every_preset(3)
def test_policies_make_the_same_choices(lib, name, preset):
    rng, d, K, R = np.random.default_rng(1), 3, 6, 4
    model, policy = dither.ALGORITHMS[name].configure(d, preset=preset)
    T = brief(model, policy, turns(lib, 24))

    def begun(**settings):
        return contract.begin(
            model,
            d,
            batch=(R,),
            needs=policy.needs,
            rng=lambda: [np.random.default_rng(i) for i in range(R)],
            **settings,
        )

    if refused(lib, name):
        with pytest.raises(TypeError, match="NumPy arrays"):
            begun(xp=lib.xp)
        return
    ours, theirs = begun(), begun(xp=lib.xp)
    for t in range(1, T + 1):
        X, u = rng.normal(size=(R, K, d)), rng.random((R, decision.UNIFORMS))
        chance = policy.draw(rng, R, arms=K, dim=model.ambient(d))
        a = lockstep.choose(decision.view(policy, model, ours, X, t=t), chance, u, eps=decision.share(policy, t))
        b = lockstep.choose(
            decision.view(policy, model, theirs, lib.array(X), t=t),
            tuple(map(lib.array, chance)),
            lib.array(u),
            eps=decision.share(policy, t),
        )
        assert_array_equal(lib.back(b), a)
        x, r = np.take_along_axis(X, a[:, None, None], axis=1)[:, 0], rng.random(R)
        taught = model.draw(rng, R) if name in NETWORKS else ()
        ours = model.update(ours, x, r, **({"chance": taught} if taught else {}))
        there = {"chance": tuple(map(lib.array, taught))} if taught else {}
        theirs = model.update(theirs, lib.array(x), lib.array(r), **there)
    if name in NETWORKS:
        same_arrays(theirs, ours)
        return
    certified = "bound" in model.abilities
    E = model.bound(ours)[..., :1] * np.linalg.norm(ours.F, axis=(-2, -1))[:, None] if certified else 0.0
    assert np.all(np.abs(lib.back(theirs.theta) - ours.theta) <= 1e-9 * np.abs(ours.theta) + 1e-11 + 2 * E)


SETTINGS = [
    *(f"{name}:preset={p}" for name in dither.ALGORITHMS for p in presets(name, 3, of=("default", "own_paper"))),
    "LinFP:form='vector'",
    "LinFP:coupled=False",
    "LinFP:c='oful'",
    "RandLinUCB:radius='oful'",
    "GLMFP:form='vector',link='probit'",
    "GLMFP:coupled=False,solver='online'",
    "GLMFP:c='theory',constrain=2.0,solver='exact'",
    "LogTS:min_derivative=0.25",
]


OTHERS = pytest.mark.parametrize("lib", ["strict", "torch"], indirect=True)  # a simulation on NumPy is itself


def simulated(algorithm, rounds, xp=None):
    """Three short runs."""
    name = algorithm.partition(":")[0]
    env = dither.envs.Linear(dim=3, arms=5)
    if bounded(name):
        env, rounds = dither.envs.Logistic(dim=3, arms=5), brief(*dither.ALGORITHMS[name].configure(3), rounds)
    return dither.simulate(env, [algorithm], runs=3, rounds=rounds, seed=0, xp=xp)


@OTHERS
@pytest.mark.parametrize("algorithm", SETTINGS)
def test_simulations_are_the_same(lib, algorithm):
    name = algorithm.partition(":")[0]
    if refused(lib, name):
        with pytest.raises(TypeError, match="NumPy arrays"):
            simulated(algorithm, 40, lib.xp)
        return
    ours, theirs = (simulated(algorithm, turns(lib, 40), xp) for xp in (None, lib.xp))
    assert_allclose(theirs.regret, ours.regret, rtol=1e-9, atol=1e-9)
    assert_allclose(theirs.realised, ours.realised, rtol=1e-9, atol=1e-9)


@OTHERS
@pytest.mark.parametrize("env", ["classification", "delayed", "delayed slots"])
def test_other_environments_are_the_same(lib, env):
    rng = np.random.default_rng(0)
    slots = dither.envs.Classification(rng.normal(size=(40, 3)), rng.integers(3, size=40))
    env = {
        "classification": slots,
        "delayed": dither.envs.Delayed(dither.envs.Linear(dim=3, arms=5), mean=3.0),
        "delayed slots": dither.envs.Delayed(slots, delay=2),
    }[env]
    for names, rounds in ((["LinFP", "LinTS", "LinPHE"], turns(lib, 40)), (["GLMFP"], turns(lib, 10))):
        if names == ["GLMFP"] and not env.disjoint:  # the labels of a data set are 0 and 1
            continue
        ours = dither.simulate(env, names, runs=3, rounds=rounds, seed=0)
        theirs = dither.simulate(env, names, runs=3, rounds=rounds, seed=0, xp=lib.xp)
        assert_allclose(theirs.regret, ours.regret, rtol=1e-9, atol=1e-9)


def test_a_device_is_one_argument():
    pytest.importorskip("torch")
    env = dither.envs.Linear(dim=3, arms=5)
    ours = dither.simulate(env, ["LinFP", "LinTS"], runs=3, rounds=40, seed=0)
    theirs = dither.simulate(env, ["LinFP", "LinTS"], runs=3, rounds=40, seed=0, device="cpu")
    assert_allclose(theirs.regret, ours.regret, rtol=1e-9, atol=1e-9)
