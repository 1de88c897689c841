"""Why an arm was shown: what is told against what was really drawn, and what means are made of against quadrature."""

import copy
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import integrate

import dither
import longer
from bandits import learnt
from dither import models, policies
from dither.deciding import causes
from properties import EXACT, exactly

EVIL = "<script>alert('x')</script> & \"co\""
X = np.array([[1.0, 0.2, -0.3], [0.4, 1.0, 0.1], [-0.2, 0.5, 1.0], [0.7, -0.6, 0.5]])
ALL = {name: learnt(name) for name in dither.ALGORITHMS}


def in_slots(name):
    """The same with a slot for each arm."""
    b = dither.ALGORITHMS[name](**{"dim": 3, "lam": 0.5, "seed": 0, "disjoint": 4} | exactly(name))
    b.update(X, np.array([0.2, 1.0, 0.0, 1.0]), arm=np.arange(4))
    return b


SLOTTED = {name: in_slots(name) for name in ("LinFP", "LinTS", "LinUCB", "EpsGreedy", "GLMFP", "Softmax", "DeepFP")}


def decided(b, request):
    """A decision, and the number that its coin threw: the stream is looked at before it is used."""
    ahead = copy.deepcopy(b._ties).random(3)
    return b.decide(request), ahead[1]


def with_floor(b, floor, seed):
    other = copy.deepcopy(b)
    other.floor = floor
    other.reseed(seed)
    return other


@settings(max_examples=longer.size(150, longer=2000))
@given(
    name=st.sampled_from(list(dither.ALGORITHMS)),
    floor=st.sampled_from([0.0, 0.4, 1.0]),
    on=st.sampled_from([None, [True, True, False, True], [False, False, True, False]]),
    values=st.sampled_from([None, [1.0, 3.0, 0.5, 1.0]]),
    minimum=st.sampled_from([None, [0.0, 0.3, 0.0, 0.1]]),
    slotted=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_what_is_told_is_what_was_drawn(name, floor, on, values, minimum, slotted, seed):
    slotted = slotted and name in SLOTTED
    b, x = with_floor((SLOTTED if slotted else ALL)[name], floor, seed), X[0] if slotted else X
    if minimum is not None and floor == 1.0:
        minimum = None
    try:
        request = b.request(x, on, values=values, minimum=minimum)
        choice, threw = decided(b, request)
    except TypeError:  # a policy that weighs no values
        request = b.request(x, on, minimum=minimum)
        choice, threw = decided(b, request)
    z = choice.z if np.ndim(choice.z) == 0 else None
    e = b.account(request, arm=choice.arm, z=z)
    offered = np.ones(4, bool) if on is None else np.array(on)
    demands = choice.demands
    fell = threw < (demands.uniform if demands.outright is None else demands.outright.sum())
    assert e.cause in causes.CAUSES
    assert e.cause not in ("unknown", "rule")
    assert (e.cause == "alone") == (offered.sum() == 1)
    if e.cause in causes.COINS or e.chosen.coin == 1:
        assert fell
    if e.chosen.coin == 0:
        assert not fell
    means = b.predict(x) if "predict" in b.model.abilities else b.mean(x)
    means = np.where(offered, means if request.values is None else means * request.values, -np.inf)
    if e.cause == "greedy":
        assert means[choice.arm] >= means.max() - 1e-9
    elif e.cause in ("z", "bonus", "draw"):
        assert means[choice.arm] < means.max()
    if e.cause == "z":
        s = e.m + z * e.w
        s = s if e.law is not None else request.values * b.model.function.mu(s)
        assert s[choice.arm] >= np.max(s[offered]) - 1e-9
        assert ("by z times the widths" in e.why) == (e.law is not None)
    if name in EXACT and choice.kind == "exact":
        assert_allclose(e.propensity[choice.arm], choice.p, rtol=1e-9)
        assert_allclose(np.nansum(e.propensity), 1.0)
    if e.parts is not None and e.parts.differences is not None:
        a, against = e.parts.arm, e.parts.against
        assert a == choice.arm
        assert means[against] == np.max(np.delete(means, a))
        assert_allclose(e.parts.differences.sum() + e.parts.of_values, means[a] - means[against], atol=1e-9)
    described = json.loads(json.dumps(e.to_dict(), allow_nan=False))
    if e.parts is not None and e.parts.against is not None:
        of = {one["place"]: one["score"] for one in described["arms"] if "score" in one}
        assert of.keys() == {e.parts.arm, e.parts.against}
        assert_allclose(list(of[choice.arm].values()), e.parts.scores[choice.arm])
    assert str(e)


@pytest.mark.parametrize(
    ("policy", "known"),
    [
        (policies.FeaturePerturbation(c=2.0), True),
        (policies.EpsGreedy(0.3, decay=None), True),
        (policies.Softmax(0.5), False),
        (policies.FeaturePerturbation(c=2.0, coupled=False), False),
    ],
    ids=["z", "greedy", "softmax", "apart"],
)
@pytest.mark.parametrize("minimum", [None, [0.0, 0.3, 0.0, 0.1]])
def test_coins_are_as_frequent_as_they_are_told(policy, known, minimum):
    """Σ P(a coin chose | what is known) is the number of coins that fell, but for five standard errors."""
    b = dither.Bandit(models.Ridge(1.0), policy, dim=3, seed=1, floor=0.25)
    b.update(X, np.array([1.0, 0.5, 0.2, 0.1]))
    told, fallen = [], 0
    for _ in range(longer.size(250, longer=5000)):
        request = b.request(X, minimum=minimum)
        choice, threw = decided(b, request)
        e = b.account(request, arm=choice.arm, z=choice.z if known else None)
        told.append(e.chosen.coin)
        fallen += threw < (choice.demands.uniform if minimum is None else choice.demands.outright.sum())
    told = np.array(told)
    assert abs(told.sum() - fallen) <= 5 * np.sqrt(np.sum(told * (1 - told))) + 1e-9
    assert fallen > 0.2 * len(told)
    # seen red: without (1 - ΣE); the shares of all arms in place of the tied ones


@pytest.mark.parametrize("minimum", [None, [0.0, 0.6, 0.0, 0.0]])
def test_whose_coin_it_was(minimum):
    def cause(policy, floor, arm):
        b = dither.Bandit(models.Ridge(1.0), policy, dim=3, seed=1, floor=floor)
        b.update(X, np.array([1.0, 0.1, 0.2, 0.1]))
        return b.account(b.request(X, minimum=minimum), arm=arm, z=0.0).cause

    greedy, own = policies.FeaturePerturbation(), policies.EpsGreedy(0.3, decay=None)
    assert [cause(greedy, 0.2, arm) for arm in (0, 2)] == ["greedy", "floor"]
    assert cause(greedy, 0.2, 1) == ("floor" if minimum is None else "minimum")
    assert cause(own, 0.0, 2) == "uniform"
    assert cause(own, 0.2, 2) == "uniform"
    assert cause(greedy, 0.0, 2) == "unknown"  # what can never have been
    # seen red: "floor" where the policy has a share of its own


def test_a_baseline_in_place_of_what_was_not_safe():
    keep = dither.Baseline(arm=1, loss=0.3, sigma=0.05, S=0.6)
    b = dither.Bandit(models.Ridge(1.0), policies.FeaturePerturbation(c=3.0), dim=3, seed=1, floor=0.4, baseline=keep)
    found, told, fallen = set(), [], 0
    for i in range(120):
        request = b.request(X)
        choice, threw = decided(b, request)
        safe, fell = choice.demands.safe, threw < 0.4
        e = b.account(request, arm=choice.arm, z=choice.z, safe=safe)
        assert_allclose(e.propensity[choice.arm], choice.p, rtol=1e-9)
        best = int(np.argmax(e.m + choice.z * e.w))
        by_coin = sum(0.4 / 4 for j in range(4) if (j if safe[j] else 1) == choice.arm)
        by_policy = 0.6 * ((best if safe[best] else 1) == choice.arm)
        if safe.sum() == 1:
            assert e.cause == "baseline"
        else:
            assert_allclose(e.chosen.coin, by_coin / (by_coin + by_policy), rtol=1e-12)
            told.append(e.chosen.coin)
            fallen += fell
            kind = "z" if choice.arm == best else "coin" if choice.arm != 1 or safe[best] else "baseline"
            assert e.cause in {"z": ("greedy", "z"), "coin": ("floor", "baseline"), "baseline": ("baseline",)}[kind]
            found.add((kind, e.cause, bool(fell)))
        b.update(X[choice.arm], 0.5 + 0.01 * (i % 3))
    told = np.array(told)
    assert abs(told.sum() - fallen) <= 5 * np.sqrt(np.sum(told * (1 - told))) + 1e-9
    assert ("baseline", "baseline", False) in found
    assert {("coin", "floor", True), ("coin", "baseline", True)} & found
    # seen red: the share of the coins that the arm alone has; `greedy` for a baseline that the policy would not show


@pytest.mark.parametrize("link", ["identity", "logit", "log", "probit"])
@pytest.mark.parametrize("values", [None, [1.0, 3.0, 0.5, 2.0]])
def test_differences_are_integrals_along_the_way(link, values):
    """∫ v(t) μ'(m(t)) dm_g for scores, and ∫ μ dv for values, on the two straight ways round, halved."""
    model = models.Ridge(1.0) if link == "identity" else models.GLM(link=link, lam=0.5)
    b = dither.Bandit(model, policies.FeaturePerturbation(), dim=3, seed=0)
    b.update(X, np.array([1.0, 0.0, 1.0, 0.0]))
    request = b.request(X, values=values)
    e = b.account(request, arm=2, z=0.3)
    made_of, mu = e.parts, b.model.function.mu
    a, against = 2, made_of.against
    v = np.ones(4) if values is None else np.array(values)
    m, step = b.mean(X), 1e-5

    def slope(t):
        at = m[against] + t * (m[a] - m[against])
        return (mu(at + step) - mu(at - step)) / (2 * step)

    mean_slope = integrate.quad(slope, 0, 1, epsabs=1e-12)[0]
    for g, name in enumerate(made_of.names):
        without = X.copy()
        without[:, g] = 0.0
        assert_allclose(made_of.scores[:, g], m - b.mean(without), atol=1e-12)
        want = (v[a] + v[against]) / 2 * mean_slope * (made_of.scores[a, g] - made_of.scores[against, g])
        assert_allclose(made_of.differences[g], want, atol=1e-8)
        assert name == f"x[{g}]"
    assert_allclose(made_of.of_values, (mu(m[a]) + mu(m[against])) / 2 * (v[a] - v[against]), atol=1e-12)
    assert_allclose(e.mean, v * mu(m))


def test_fields_stand_together_and_texts_are_escaped():
    features = dither.Features(
        context={"land": ["AT", EVIL]},
        arm={"topic": ["art", "war"], "age": dither.features.Numeric(mean=0.0, scale=1.0)},
        cross=[("land", "topic")],
    )
    b = dither.LinFP(features=features, seed=0, floor=0.1)
    arms = [{"topic": "art", "age": 1.0}, {"topic": "war", "age": 2.0}]
    X = features.encode({"land": EVIL}, arms)
    for _ in range(3):
        b.update(X, np.array([1.0, 0.0]))
    e = b.account(b.request(X)._replace(ids=(EVIL, "b")), arm=0, z=0.1)
    assert e.parts.names == ("intercept", "land", "topic", "age", "land*topic")
    assert_allclose(e.parts.scores.sum(axis=1), b.mean(X))
    place = [features.terms.index(name) for name in e.parts.names]
    assert [features.columns[j].partition("=")[0] for j in place[:3]] == ["intercept", "land", "topic"]
    html = e._repr_html_()
    assert "<script" not in html
    assert "&lt;script" in html
    assert f"What tells {EVIL} from b" in str(e)
    hybrid = dither.Features(
        context={"land": ["AT"]},
        arm={"age": dither.features.Numeric(mean=0.0, scale=1.0)},
        cross=(),
        form="hybrid",
        slots=2,
    )
    assert hybrid.terms == ("intercept", "land", "age", *("slot*intercept", "slot*land") * 2)


def test_an_explanation_of_a_bandit_has_its_parts_too():
    b = dither.LinFP(dim=3, seed=0)
    b.update(X, np.array([1.0, 0.0, 1.0, 0.0]))
    mask = [True, False, True, True]
    e = b.explain(X, 0.3, mask=mask)
    assert e.chosen is None
    assert (e.why, e.cause) == ("", None)
    assert np.isnan(e.mean[1])
    assert np.isnan(e.parts.scores[1]).all()
    assert e.parts.against != 1
    assert [one["place"] for one in e.to_dict()["arms"]] != [0, 1, 2, 3]
    assert len(e.to_dict()["arms"]) == 3
    assert b.explain(X[:1], 0.3).to_dict()["parts"] is None
