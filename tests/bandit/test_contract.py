"""What a model and a policy must be: refused at the door, or they choose, learn and tell; and the least that runs."""

import ast
import dataclasses
import itertools
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.linear_model import LinearRegression

import dither
from dither import models, noise, policies
from dither.deciding import policy as policy_contract
from dither.models import adapting
from dither.models import model as contract
from dither.policies.views import Drawn, Lines

ROOT = Path(__file__).parents[2]
PROBING = [  # what may look for a part
    ROOT / "src/dither" / place for place in ("models/adapting.py", "deciding/policy.py", "deciding/decision.py")
]


class State(NamedTuple):
    total: np.ndarray  # (..., d)
    count: np.ndarray  # (...)


@dataclasses.dataclass(frozen=True)
class Centre:
    """The four things that a model must have, and no more: x by the mean of rewards times features."""

    by: float = 1.0
    abilities = frozenset({"mean"})

    def init(self, dim, *, batch=(), needs=frozenset(), xp=np, device=None):
        return State(np.zeros((*batch, dim)), np.zeros(batch))

    def update(self, state, x, r):
        return State(state.total + self.by * r[..., None] * x, state.count + 1)

    def mean(self, state, X):
        theta = state.total / np.maximum(state.count, 1)[..., None]
        return (X @ theta[..., None])[..., 0]


class Weighed(Centre):
    def update(self, state, x, r, *, weight=None):
        weight = np.ones_like(state.count) if weight is None else weight
        return State(state.total + (weight * r)[..., None] * x, state.count + weight)


@dataclasses.dataclass(frozen=True)
class Softmax:
    temperature: float = 0.2
    needs = frozenset({"mean"})

    def draw(self, rng, n, *, arms, dim):
        return (rng.gumbel(size=(n, arms)),)

    def view(self, model, state, X, *, t):
        m = model.mean(state, X)
        return Drawn(lambda noise: m + self.temperature * noise)


class Exact(Softmax):
    def view(self, model, state, X, *, t):
        s = model.mean(state, X) / self.temperature

        def propensities(mask=None):
            e = np.exp(s - s.max(axis=-1, keepdims=True)) * (1.0 if mask is None else mask)
            return e / e.sum(axis=-1, keepdims=True)

        return Drawn(lambda noise: s + noise, propensities)


def data(n=12, d=3, *, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=n)


def learnt(policy, model=None, **settings):
    b = dither.Bandit(model or Centre(), policy, dim=3, seed=0, **settings)
    X, r = data()
    b.update(X, r)
    return b


# The least that runs


def test_a_least_model_learns_one_by_one_and_at_once():
    (X, r), one, many = data(), dither.Bandit(Centre(), Exact(), dim=3, seed=0), learnt(Exact())
    for x, y in zip(X, r, strict=True):
        one.update(x, y)
    assert_allclose(one.mean(X), X @ (X.T @ r) / 12, rtol=1e-12)
    assert_array_equal(one.mean(X), many.mean(X))
    assert many.observations == 12  # seen red: `update_many` without a default


def test_a_least_policy_draws_what_it_says():
    n, X = 40_000, data(5, seed=1)[0]
    mask = np.array([True, True, False, True, True])
    exact, drawn = learnt(Exact(), floor=0.1), learnt(Softmax(), floor=0.1)
    p = exact.propensities(X, mask=mask)
    assert_allclose(p.sum(), 1)
    assert p[2] == 0
    d = exact.choose(np.broadcast_to(X, (n, 5, 3)), mask=mask)
    assert_allclose(d.propensity, p[d.arm], rtol=1e-12)
    assert d.propensity_kind == "exact"
    for b in (exact, drawn):  # the same law, whether or not the view tells it
        arm = b.choose(np.broadcast_to(X, (n, 5, 3)), mask=mask).arm
        f = np.bincount(arm, minlength=5) / n
        assert np.all(abs(f - p) <= 5 * np.sqrt(p * (1 - p) / n))
    q, se, kind = drawn.propensities(X, mask=mask, draws=n, detail=True)
    assert kind == "monte_carlo"
    assert np.all(abs(q - p) <= 5 * se + 1e-12)
    lists = drawn.list_propensities(X, k=2, mask=mask)
    assert_allclose(lists.membership.sum(), 2)
    assert_allclose(exact.list_propensities(X, k=1, mask=mask, draws=n).membership, p, atol=0.02)
    # seen red: the floor's share twice


def test_scores_without_chance_are_drawn_as_often_as_asked():
    class Silent(Softmax):
        def draw(self, rng, n, *, arms, dim):
            return ()

        def view(self, model, state, X, *, t):
            return Drawn(lambda: model.mean(state, X))

    b = learnt(Silent())
    X = data(5, seed=1)[0]
    p = b.propensities(X, draws=2500)
    assert_array_equal(p, np.arange(5) == b.mean(X).argmax())  # seen red: one count for each block, p = 0.0012
    assert_array_equal(b.propensities(np.stack([X, X]), draws=50), [p, p])
    assert b.choose_list(X, k=2).arms.tolist() == np.argsort(-b.mean(X))[:2].tolist()


def test_a_least_model_runs_in_lockstep_and_run_7_is_run_7():
    env = dither.envs.Linear(dim=3, arms=4)
    pairs = {"own": (Centre(), Softmax()), "weighed": (Weighed(), Exact()), "fp": "LinFP"}
    many = dither.simulate(env, pairs, runs=9, rounds=40, seed=3)
    one = dither.simulate(env, pairs, runs=[7], rounds=40, seed=3)
    assert_array_equal(many.regret[:, 7], one.regret[:, 0])
    late = dither.simulate(dither.envs.Delayed(env, delay=3), pairs, runs=3, rounds=30, seed=3)
    assert np.isfinite(late.regret).all()
    # seen red: a state without the axis of replications


def test_a_least_model_is_saved_and_loaded(tmp_path):
    b = learnt(Exact(), floor=0.1)
    X = data(4, seed=2)[0]
    b.save(tmp_path / "b.npz")
    twin = dither.load(tmp_path / "b.npz", known=(Centre, Exact))
    assert twin.model == Centre()
    for _ in range(20):
        assert twin.choose(X) == b.choose(X)
        for one in (b, twin):
            one.update(X[0], 0.5)
    assert_array_equal(twin.mean(X), b.mean(X))
    with pytest.raises(ValueError, match="Pass that class too"):
        dither.load(tmp_path / "b.npz")
    # seen red: "damaged", since the model has no `check`


@pytest.mark.parametrize("policy", [Exact(), policies.Greedy(), policies.GeneralFeaturePerturbation()])
def test_a_least_model_stands_in_disjoint_slots(policy):
    rng, single = np.random.default_rng(4), [learnt_empty() for _ in range(3)]
    b = dither.Bandit(models.Disjoint(Weighed(), 3), policy, dim=3, seed=0)
    X, r, arm = rng.normal(size=(9, 3)), rng.normal(size=9), np.arange(9) % 3
    b.update(X[:6], r[:6], arm=arm[:6], weight=2.0)
    b.update(X[6], r[6], arm=arm[6], weight=3.0)
    for x, y, k, weight in zip(X[:7], r[:7], arm[:7], [2.0] * 6 + [3.0], strict=True):
        single[k].update(x, y, weight=weight)
    at = rng.normal(size=(4, 3))
    assert_allclose(b.mean(at), np.stack([one.mean(at) for one in single], axis=1), rtol=1e-12)
    b.choose(at[0])
    assert_allclose(b.propensities(at[0], draws=50).sum(), 1)
    with pytest.raises(TypeError, match=r"Centre takes no weight: leave weight= out"):
        dither.Bandit(models.Disjoint(Centre(), 3), policy, dim=3).update(X[0], r[0], arm=0, weight=2.0)
    # seen red: the weight lost on its way to the slot; the rows of `mean_at` shared by all slots


def learnt_empty():
    return dither.Bandit(Weighed(), policies.Greedy(), dim=3, seed=0)


def test_what_a_least_model_cannot_is_said():
    b = learnt(Exact())
    x = np.ones(3)
    for ask, says in (
        (lambda: b.update(x, 1.0, weight=2.0), r"Centre takes no weight: leave weight= out, or give Centre\.update"),
        (lambda: b.theta, "the state of Centre has no theta"),
        (lambda: b.width(x[None]), r"needs 'width' of its model, which Centre\(by=1\.0\) does not give"),
        (b.refit, "Centre learns every reward as it comes: there is nothing to refit"),
    ):
        with pytest.raises(TypeError, match=says):
            ask()
    before = b.mean(x[None])
    with pytest.raises(ValueError, match="overflow"):
        dither.Bandit(Centre(by=np.inf), Exact(), dim=3).update(x, 1.0)
    assert_array_equal(b.mean(x[None]), before)  # seen red: numbers of a state without theta not looked at


# The door

SLOTS, DIM = 3, 2


def answer(X):
    return X.sum(axis=1)


INNER = [
    models.Ridge(),
    models.Diagonal(),
    *(
        models.GLM(link=link, solver=solver)
        for link in ("logit", "log")
        for solver in ("certified", "counts", "online")
    ),
    models.GLM(link="identity"),
    models.GLM(link="probit", constrain=1.0, ridge=1e-6),
    models.OnlineNewton(),
    models.Admissible(),
    Centre(),
]


def plainly(model):
    """How a test is called: without the place of a function in memory, which differs between processes."""
    return re.sub(r"<function (\w+) at \w+>", r"\1", str(model))


MODELS = [
    *INNER,
    *(models.Disjoint(inner, SLOTS) for inner in INNER),
    *(models.Network(hidden=(3,), slots=slots, a=a) for slots in (None, SLOTS) for a in (0.0, 0.5)),
    models.Network(hidden=(3,), output="softmax", slots=SLOTS),
    *(models.NeuralLinear(hidden=(3,), slots=slots) for slots in (None, SLOTS)),
    models.Regressor(LinearRegression()),
    *(models.Regressor(LinearRegression(), slots=SLOTS, encode=encode) for encode in ("disjoint", "index")),
    *(models.Fixed(answer, slots=slots) for slots in (None, SLOTS)),
]
POLICIES = [
    *(policies.FeaturePerturbation(c=c, horizon=100) for c in (1.0, "oful", "theory")),
    policies.FeaturePerturbation(form="vector", noise=noise.Ball()),
    policies.FeaturePerturbation(coupled=False),
    *(policies.GeneralFeaturePerturbation(mask=mask) for mask in (True, False, (True, False), (True,))),
    policies.GeneralFeaturePerturbation(Sigma="spread", coupled=True),
    policies.Greedy(),
    policies.EpsGreedy(),
    policies.NeuralTS(),
    policies.NeuralUCB(),
    policies.PerturbedLeader(),
    policies.Sensitivity(),
    policies.OFUGLB(),
    *(policies.UCB(radius=radius, gram=True) for radius in ("constant", "oful", "ucb-glm", "ofuglb")),
    policies.GLMUCB(),
    policies.GLOC(),
    policies.LogisticUCB2(),
    *(policies.ThompsonSampling(c=c, horizon=100) for c in (1.0, "anytime", "theory")),
    policies.LossPerturbation(),
    policies.PerturbedRewards(),
    policies.PseudoSuccesses(),
    policies.PerturbedHistory(),
    policies.PseudoRewards(),
    policies.RandUCB(),
    policies.RandUCB(coupled=False),
    policies.RandUCB(law=noise.Gaussian(), radius="oful"),
    policies.Softmax(),
    *(policies.SquareCB(gamma=gamma) for gamma in (10.0, "theory")),
    Softmax(),
]
RUN = {  # how many of the policies above run on a model, so that none is refused that could run
    "Ridge": 26,
    "Centre": 3,
}


def plays(b):
    """Choose, learn and tell, one and many, with masks and lists."""
    rng = np.random.default_rng(0)
    shape, mask = (DIM,) if b.slots else (3, DIM), np.array([True, False, True])
    X = rng.normal(size=(2, *shape))
    for r in (0.0, 1.0):
        d = b.choose(X[0])
        b.update(X[0] if b.slots else X[0, d.arm], r, **({"arm": d.arm} if b.slots else {}))
    D = b.choose(X, mask=mask)
    assert np.all(D.arm != 1)
    b.update(X if b.slots else X[[0, 1], D.arm], np.array([0.0, 1.0]), **({"arm": D.arm} if b.slots else {}))
    p, _, kind = b.propensities(X, mask=mask, draws=10, detail=True)
    assert np.isnan(p).all() if kind == "none" else np.allclose(p.sum(axis=-1), 1) and np.all(p[:, 1] == 0)
    assert b.choose_list(X[0], k=2).propensity_kind in ("none", "exact")
    b.list_propensities(X[0], k=2, draws=10)


@pytest.mark.parametrize("model", MODELS, ids=plainly)
def test_every_pair_is_refused_at_the_door_or_runs(model):
    ran = 0
    for policy in POLICIES:
        try:
            b = dither.Bandit(model, policy, dim=DIM, seed=0)
        except (TypeError, ValueError) as refusal:
            said = str(refusal)
        else:
            said = ""
            plays(b)
            ran += 1
        assert not said or re.search("does not give|mask must say|rewards must lie in", said), said
    assert ran >= 3  # those that need means alone
    assert ran == RUN.get(type(model).__name__, ran)
    # seen red: PseudoRewards that does not name `history`; mask=False on a network without slots


def test_simulate_and_algorithms_refuse_at_the_same_door():
    env = dither.envs.Logistic(dim=DIM, arms=3)
    with pytest.raises(TypeError, match=r"PseudoRewards needs 'history' of its model, which GLM\(link='logit'"):
        dither.simulate(env, {"x": (models.GLM(), policies.PseudoRewards())}, runs=1, rounds=5)
    with pytest.raises(ValueError, match="mask must say for each of 2 features if it moves, got 1 entries"):
        dither.simulate(
            env, {"x": (models.Ridge(), policies.GeneralFeaturePerturbation(mask=(True,)))}, runs=1, rounds=5
        )
    with pytest.raises(TypeError, match="needs 'history'"):
        dither.Bandit(models.GLM(), policies.PseudoRewards(), dim=2)
    with pytest.raises(ValueError, match="rewards must lie in"):
        dither.LogPHE(dim=2, link="log")
    # seen red: `simulate` without `decision.check`


class Old:
    """A policy that draws nothing, and does not say so."""

    needs = frozenset({"mean", "width", "logdet"})

    def view(self, model, state, X, *, t):
        return model.mean(state, X)


class Poor:
    abilities = frozenset({"mean", "width"})

    def mean(self, state, X):
        return X[..., 0]


def test_all_that_is_missing_is_said_at_once():
    with pytest.raises(TypeError) as refusal:
        dither.Bandit(Poor(), Old(), dim=2)
    said = str(refusal.value)
    for part in (
        "Old is no policy: it lacks draw",
        "Poor is no model: it lacks init, update",
        "Poor says that it has width, and has no method of that name",
        "Old needs 'logdet' of its model, which Poor does not give",
        "docs/adding-a-policy.md and docs/adding-a-model.md",
    ):
        assert part in said, part  # seen red: the first fault alone
    assert all((ROOT / page).exists() for page in (contract.PAGE, policy_contract.PAGE))


@pytest.mark.parametrize(
    ("model", "policy", "says"),
    [
        (models.Ridge, Softmax(), r"a model is an instance: pass Ridge\(\) for Ridge"),
        (models.Ridge(), Softmax, r"a policy is an instance: pass Softmax\(\) for Softmax"),
        (models.Ridge(), object(), "object is no policy: it lacks needs, draw, view"),
        (LinearRegression(), Softmax(), "LinearRegression is no model: it lacks abilities, init, update, mean"),
        (models.Ridge(), type("Loose", (Softmax,), {"needs": "mean"})(), r"Loose\.needs must be a frozenset of names"),
        (
            type("Loose", (Centre,), {"abilities": "mean"})(),
            Softmax(),
            r"Loose\.abilities must be a frozenset of names",
        ),
    ],
)
def test_what_is_no_model_or_no_policy_is_refused(model, policy, says):
    with pytest.raises(TypeError, match=says):
        dither.Bandit(model, policy, dim=2)  # seen red: a class taken for a model


@pytest.mark.parametrize("part", ["eps", "refuse", "asks", "spent"])
def test_a_setting_under_a_name_that_is_taken_is_refused(part):
    mine = type("Mine", (Softmax,), {part: 0.1})()
    says = rf"`{part}` of a policy (is its method|says) .*; Mine has 0\.1 there: call the setting `"
    with pytest.raises(TypeError, match=says):
        dither.Bandit(models.Ridge(), mine, dim=2)  # seen red: 'float' object is not callable
    with pytest.raises(TypeError, match=says):
        dither.simulate(dither.envs.Linear(dim=2, arms=3), {"mine": (models.Ridge(), mine)}, runs=1, rounds=5)


def test_simulate_refuses_lines_whose_law_is_none():
    class Unwrapped(Softmax):
        needs = frozenset({"mean", "width"})
        law = stats.laplace()

        def draw(self, rng, n, *, arms, dim):
            return (rng.laplace(size=n),)

        def view(self, model, state, X, *, t):
            return Lines(model.mean(state, X), model.width(state, X), law=self.law)

    class OfBall(Unwrapped):
        law = noise.Ball()

    for policy, says in (
        (Unwrapped(), r"Custom\.of\(stats\.laplace"),
        (OfBall(), r"as its marginal\(dim\) gives it, and got Ball"),
    ):
        with pytest.raises(TypeError, match=says):  # seen red: no attribute 'symmetric'
            dither.simulate(dither.envs.Linear(dim=2, arms=3), {"mine": (models.Ridge(), policy)}, runs=2, rounds=5)


def test_a_view_without_scores_is_named():
    class Blind(Softmax):
        def view(self, model, state, X, *, t):
            return model.mean(state, X)

    with pytest.raises(TypeError, match=r"a view must have scores\(\*chance\), and ndarray has not"):
        dither.Bandit(models.Ridge(), Blind(), dim=2).choose(np.eye(2))  # seen red: AttributeError of ndarray


def test_slots_are_for_models_that_can_have_them():
    with pytest.raises(ValueError, match="Network has slots of its own"):
        models.Disjoint(models.Network(), 3)
    with pytest.raises(TypeError, match=r"LinearRegression is no model.*docs/adding-a-model\.md"):
        models.Disjoint(LinearRegression(), 3)
    chancy = type("Chancy", (Centre,), {"draw": lambda self, rng, n: ()})
    with pytest.raises(ValueError, match="Chancy has chance of its own"):
        models.Disjoint(chancy(), 3)  # seen red: accepted


# The contract is written in one place


def stubs(protocol):
    return {name for name in (*vars(protocol), *protocol.__annotations__) if not name.startswith("_")}


@pytest.mark.parametrize("model", MODELS, ids=plainly)
def test_an_ability_is_a_method_of_that_name_and_is_written_down(model):
    assert not adapting.faults(model)
    assert model.abilities <= stubs(contract.Able) | {"mean"}
    assert {policy.needs <= stubs(contract.Able) | {"mean"} for policy in POLICIES} == {True}
    # seen red: "moments" for `spread`


def test_the_page_has_every_ability_and_every_part():
    page = (ROOT / contract.PAGE).read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)(?:\([^`]*\))?`", "\n".join(re.findall(r"^\| (.*?) \|", page, re.MULTILINE))))
    assert stubs(contract.Able) | {"mean"} | set(adapting.PARTS) - set(adapting.REQUIRED) == named
    page = (ROOT / policy_contract.PAGE).read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)", "\n".join(re.findall(r"^\| (.*?) \|", page, re.MULTILINE))))
    assert stubs(policy_contract.Answers) | stubs(policy_contract.Settings) <= named
    # seen red: an ability under another name


def subject(node):
    """The last name of what is probed: `model` of self.model."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def test_nobody_else_looks_what_a_policy_or_a_model_has():
    found = []
    for path in (ROOT / "src" / "dither").rglob("*.py"):
        if path in PROBING:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("hasattr", "getattr") and node.args:
                named = subject(node.args[0])
                if re.fullmatch(r"(own_?|inner_?|the_?)?(model|policy|view|bandit)s?", named):
                    found.append(f"{path.name}:{node.lineno} {named}")
    assert not found  # seen red: getattr(self.model, "heaviest", 1) in `disjoint.py`


def test_the_page_of_abilities_is_true():
    """The last column of the table against the models."""
    of = {
        "linear": [models.Ridge(), models.Diagonal()],
        "GLM": [models.GLM()],
        "NeuralLinear": [models.NeuralLinear()],
        "Network": [models.Network(hidden=(3,))],
        "Regressor": [models.Regressor(LinearRegression())],
        "Fixed": [models.Fixed(answer)],
    }
    page = (ROOT / contract.PAGE).read_text(encoding="utf-8").split("## What else")[0]
    rows = re.findall(r"^\| (.*?) \| .* \| (.*?) \|$", page, re.MULTILINE)[1:]
    for first, last in rows:
        names, words = re.findall(r"`(\w+)", first), set(re.findall(r"\w+", last))
        if len(names) > 1 or not words & set(of) or "(" in last or "all" in words:
            continue
        for kind, some in of.items():
            for model in some:
                assert (names[0] in model.abilities) == (kind in words), (names[0], kind)
    # seen red: `spread` left out of those of `Fixed`


def test_every_model_and_policy_of_the_library_is_tried():
    assert {type(model) for model in MODELS} >= {getattr(models, name) for name in models.__all__}
    assert {type(policy) for policy in POLICIES} >= {getattr(policies, name) for name in policies.__all__}
    assert len(list(itertools.product(MODELS, POLICIES))) > 900  # seen red: `Diagonal` not among them
