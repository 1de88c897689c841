"""What the tests of a property over all algorithms share: what an algorithm is excused from, rewards that its model
takes, how much may be asked of it, and how nearly two bandits must agree.

All of it is read from the model and the policy. `EXCUSED` has the only names; who is in it must fail.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special

import dither
import longer
from dither.deciding import decision
from dither.models import model as contract
from oracles import arrays_of

_ONE_HISTORY = "reads the history, of which each slot has one of its own"
_OF_TRAINING = {  # what no model that is trained step by step can have
    "order": "each step trains on what is there when it is taken",
    "zero arm": "an arm of zeros moves the biases",
}
_WIDE = "its radius is tens to hundreds of widths: uniform in effect for so few rounds"
EXCUSED = {  # algorithm -> property -> why it does not have it
    "OFUGLB": {"slots": _ONE_HISTORY},
    "OFUGLB-e": {"beats uniform choice": _WIDE},
    "GLM-UCB": {"beats uniform choice": _WIDE, "beats uniform choice among slots": _WIDE},
    "LogFPL": {"slots": _ONE_HISTORY},
    "LogPHE": {"slots": _ONE_HISTORY},
    "EVILL": {"slots": _ONE_HISTORY},
    "Logistic-UCB-2": {
        "slots": _ONE_HISTORY,
        "zero arm": "its λ grows with the number of rounds",
        "beats uniform choice": _WIDE,
    },
    "GLOC": {
        "order": "each step begins where the last one ended",
        "beats uniform choice": _WIDE,
        "beats uniform choice among slots": _WIDE,
    },
}
ALL = {name: algorithm.configure(2) for name, algorithm in dither.ALGORITHMS.items()}  # -> model, policy
NETWORKS = [name for name, (model, _) in ALL.items() if model.draw is not None]  # whose training is chance


def exact(model, policy):
    """Whether the probabilities are known: a view of three arms, or of one context, says so."""
    slots = model.slots
    state = contract.begin(model, 2, needs=policy.needs, rng=lambda: np.random.default_rng(0))
    X = np.ones((3, 2)) if slots is None else np.ones(2)
    return decision.exact(decision.view(policy, model, state, X, t=1))


EXACT = [name for name, pair in ALL.items() if exact(*pair)]
MONTE_CARLO = {name for name, algorithm in dither.ALGORITHMS.items() if algorithm.propensity == "Monte Carlo"}
SPENT = {name for name, (_, policy) in ALL.items() if not decision.knowable(policy)}
for _name in NETWORKS:
    EXCUSED.setdefault(_name, {}).update(_OF_TRAINING)
for _name in SPENT:
    EXCUSED.setdefault(_name, {})["propensities"] = "its chance is spent in training, so none is known"


def every(of=None, *, names=dither.ALGORITHMS):
    """One test for each algorithm; those that are excused from the property `of` must refuse it, or fail."""

    def case(name):
        reason = EXCUSED.get(name, {}).get(of)
        refused = pytest.mark.xfail(reason=reason, raises=(TypeError, AssertionError), strict=True)
        return pytest.param(name, marks=refused if reason else ())

    return pytest.mark.parametrize("name", [case(name) for name in names])


def presets(name, dim, *, of=dither.algorithms.PRESETS):
    """Those presets of an algorithm that make another model or policy than the ones before, for this dimension."""
    made = []
    for preset in of:
        pair = dither.ALGORITHMS[name].configure(dim, preset=preset)
        if longer.LONG or pair not in made:
            made.append(pair)
            yield preset


def every_preset(dim):
    """One test for each algorithm and preset."""
    return pytest.mark.parametrize(("name", "preset"), [(n, p) for n in dither.ALGORITHMS for p in presets(n, dim)])


def able(of, names=dither.ALGORITHMS):
    """The algorithms that have a property, where one test runs many side by side."""
    return [name for name in names if of not in EXCUSED.get(name, {})]


def bounded(name):
    """Whether an algorithm's model takes rewards in [0, 1] alone."""
    return np.isfinite(ALL[name][0].support).all()


def exactly(name):
    """The settings in which a model computes in float64, if it has others: a batch is a loop to 1e-12, not 1e-6.

    And in which a network is narrow: what holds for every network holds for it, and draws are cheap.
    """
    model = ALL[name][0]
    return {setting: value for setting, value in (("dtype", "float64"), ("hidden", (8, 6))) if hasattr(model, setting)}


def integrates(model, policy):
    """Whether each probability is an integral: exact, and every arm has a z of its own."""
    if not exact(model, policy) or "refit" in policy.needs:
        return False
    chance = policy.draw(np.random.default_rng(0), 1, arms=3, dim=2)
    return bool(chance) and chance[0].shape == (1, 3)


def paid(model, r):
    """Real numbers as rewards in the support of the model, in the same order."""
    low, high = model.support
    if high < np.inf:
        return low + (high - low) * special.ndtr(r)
    return r if low == -np.inf else low + np.logaddexp(0, r)


def few(model, policy, n):
    """n draws, or fewer where every one reads the history: a refit each, or for a 0/1 policy a problem for each arm;
    and where every one is asked for its probability, an integral.
    """
    if integrates(model, policy):
        return max(n // 40, 20)
    if "refit" not in policy.needs:
        return n
    return max(n // 200, 20) if exact(model, policy) else n // 10


def brief(model, policy, n):
    """n rounds, or fewer where a round reads the history once, for every draw, or for every arm; where it is a step of
    training or an integral.
    """
    if model.draw is not None:
        return -(-n // (5 if integrates(model, policy) else 3))
    if "bound" not in model.abilities:
        return n
    return -(-n // (3 if "refit" not in policy.needs else 10 if exact(model, policy) else 5))


def ask(b, X, *, draws=10_000, **settings):
    """The propensities, from fewer draws where `few` says so."""
    return b.propensities(X, draws=few(b.model, b.policy, draws), **settings)


def slack(b, p, draws=10_000):
    """The standard error of what `ask` answers."""
    if exact(b.model, b.policy):
        return np.zeros_like(p)
    n = few(b.model, b.policy, draws)
    return np.sqrt(np.maximum(p * (1 - p), 1 / n) / n)


def shares(b, X, *, mask=None, n=20_000):
    """How often each arm is chosen, and of how many times."""
    X, n = np.asarray(X, dtype=float), few(b.model, b.policy, n)
    K = X.shape[0] if b.slots is None else b.slots
    return np.bincount(b.choose(np.broadcast_to(X, (n, *X.shape)), mask=mask).arm, minlength=K) / n, n


def same_arrays(a, b, **tolerance):
    """Two states, however they are nested, hold the same arrays by name (NumPy's tolerances; none: bit for bit)."""
    a, b = arrays_of(a, "state"), arrays_of(b, "state")
    assert a.keys() == b.keys()
    for name in a:
        assert_allclose(a[name], b[name], **{"rtol": 0, "atol": 0} | tolerance, err_msg=name)


def known(b, X):
    """All that a bandit answers about the arms X, by name."""
    return {name: getattr(b, name)(X) for name in ("mean", "predict", "width") if name in b.model.abilities}


def uncertainty(b):
    """E and the bound on |log eigenvalues| of a bandit's estimate, as it certifies them; 0 where it is closed."""
    return b.bound if "bound" in b.model.abilities else np.zeros(2)


def agree(a, b, X, *, rtol=1e-10, atol=0.0):
    """Two bandits know the same: to rtol, and as nearly as their certificates say where θ̂ is found by iteration."""
    E, spread = uncertainty(a) + uncertainty(b)
    if "width" in a.model.abilities:
        assert_allclose(b.width(X), a.width(X), rtol=rtol + np.expm1(spread / 2), atol=atol)
    if E:
        gap = np.linalg.norm(np.linalg.solve(a.state.F, b.theta - a.theta))
        assert gap <= np.exp(spread) * E + 1e-9 * np.linalg.norm(np.linalg.solve(a.state.F, a.theta))
    else:
        assert_allclose(b.theta, a.theta, rtol=rtol, atol=atol)
