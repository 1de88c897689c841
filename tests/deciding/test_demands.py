"""Least probabilities of single arms: what is drawn is what is said, and what is said is what was demanded."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import log, models, ope, policies
from dither.deciding import ranking
from dither.deciding.demands import Demands

X = np.eye(5) + 0.3 * np.random.default_rng(4).normal(size=(5, 5))
LEAST = np.array([0.0, 0.15, 0.02, 0.3, 0.0])


def taught(policy=None, *, seed=0, **settings):
    b = dither.Bandit(models.Ridge(1.0), policy or policies.FeaturePerturbation(), dim=5, seed=seed, **settings)
    rng = np.random.default_rng(3)
    arm = rng.integers(5, size=40)
    b.update(np.eye(5)[arm], arm / 5 + 0.3 * rng.normal(size=40))
    return b


def by_hand(p, least, floor, own, on):
    """p of the policy without any uniform share; one arm after the other, as the page says it."""
    n = sum(on)
    M = [max(least[i], floor / n) if on[i] else 0.0 for i in range(len(p))]
    q = [own / n + (1 - own) * p[i] if on[i] else 0.0 for i in range(len(p))]
    return [M[i] + (1 - sum(M)) * q[i] for i in range(len(p))]


POLICIES = [
    policies.FeaturePerturbation(c=2.0),
    policies.FeaturePerturbation(c=2.0, coupled=False),
    policies.ThompsonSampling(c=2.0),
    policies.EpsGreedy(0.3, decay=None),
    policies.Softmax(0.3),
    policies.UCB(beta=0.1),
    policies.PerturbedHistory(),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("floor", [0.0, 0.2])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("valued", [False, True])
def test_what_is_drawn_is_what_is_said_and_what_was_demanded(policy, floor, masked, valued):
    n = 2000 if getattr(policy, "coupled", True) is False else 20_000  # integrals take long
    b = taught(policy, floor=floor, monte_carlo=200)
    on = np.array([True, True, False, True, True]) if masked else np.ones(5, bool)
    more = {"mask": on, "values": np.array([1.0, 2, 3, 1, 1]) if valued else None}
    p, se, kind = b.propensities(X, minimum=LEAST, detail=True, draws=n, **more)
    assert np.all(p[on] >= np.maximum(LEAST, floor / on.sum())[on] - 1e-12)
    assert not p[~on].any()
    assert_allclose(p.sum(), 1.0, rtol=1e-12)
    alone = taught(policies.Greedy() if isinstance(policy, policies.EpsGreedy) else policy, monte_carlo=200)
    q, own_se, own_kind = alone.propensities(X, detail=True, draws=n, **more)
    own = policy.eps(b.t) if hasattr(policy, "eps") else 0.0
    want = by_hand(q, LEAST, floor, own, on)
    assert kind == own_kind
    assert np.all(abs(p - want) <= 1e-12 + (0 if se is None else 5 * np.hypot(se, own_se)))
    many = n if kind == "exact" else 300
    made = b.choose(np.broadcast_to(X, (many, 5, 5)), minimum=LEAST, **more)
    share = np.bincount(made.arm, minlength=5) / many
    assert np.all(abs(share - p) <= 5 * (np.sqrt(p * (1 - p) / many) + (0 if se is None else se)))
    assert made.propensity_kind == kind
    if kind == "exact":
        assert_allclose(made.propensity, p[made.arm], rtol=1e-9)
        one = b.choose(X, minimum=LEAST, **more)
        assert_allclose(one.propensity, p[one.arm], rtol=1e-9)
        assert_allclose(b.propensities(X, minimum=LEAST, log=True, **more)[p > 0], np.log(p[p > 0]), rtol=1e-9)
    else:
        # 1/p̂ is not unbiased, p̂ nearly is: the arm shown counts as one more draw
        off = made.propensity - p[made.arm]
        assert abs(off.mean()) <= 5 * off.std() / np.sqrt(many) + 5 * se.max() + 2 / 201
    # seen red: f/n + m in place of the larger one; the own share of ε-greedy left out; shares of 0.9 E in `drawn`


def test_the_order_of_the_floor_and_the_minimum():
    """Each keeps what it promises: floor/n of all arms, and the minimum of single ones."""
    b = taught(policies.UCB(beta=0.0), floor=0.4)
    p = b.propensities(X, minimum=[0.3, 0.05, 0, 0, 0])
    best = int(np.argmax(b.mean(X)))
    want = np.array([0.3, 0.08, 0.08, 0.08, 0.08])
    want[best] += 1 - want.sum()
    assert_allclose(p, want, rtol=1e-12)


@pytest.mark.parametrize("policy", POLICIES[:2] + POLICIES[3:6], ids=lambda policy: type(policy).__name__)
def test_a_minimum_of_nothing_is_the_floor_alone(policy):
    b = taught(policy, floor=0.3)
    assert_allclose(b.propensities(X, minimum=np.zeros(5)), b.propensities(X), rtol=1e-12)


def test_slots_and_a_minimum_for_each_request():
    b = dither.LinFP(dim=2, disjoint=3, seed=0, lam=1.0)
    b.update(np.ones((3, 2)), [1.0, 0.0, 0.5], arm=[0, 1, 2])
    x, least = np.array([[1.0, 0.5], [0.2, 1.0]]), np.array([[0.2, 0.3, 0.0], [0.0, 0.0, 1.0]])
    p = b.propensities(x, minimum=least)
    assert_allclose(p, least + (1 - least.sum(1, keepdims=True)) * b.propensities(x), rtol=1e-12)
    made = b.choose(np.repeat(x, 5000, axis=0), minimum=np.repeat(least, 5000, axis=0))
    assert set(made.arm[5000:]) == {2}
    share = np.bincount(made.arm[:5000], minlength=3) / 5000
    assert np.all(abs(share - p[0]) <= 5 * np.sqrt(p[0] * (1 - p[0]) / 5000))
    rows = [
        b.choose(one, minimum=m) for one, m in zip(np.repeat(x, 3, axis=0), np.repeat(least, 3, axis=0), strict=True)
    ]
    assert [one.propensity_kind for one in rows] == ["exact"] * 6


def test_n_requests_at_once_are_n_in_turn():
    a, b = taught(floor=0.1), taught(floor=0.1)
    many = np.random.default_rng(0).normal(size=(50, 5, 5))
    at_once, in_turn = a.choose(many, minimum=LEAST), [b.choose(one, minimum=LEAST) for one in many]
    assert_array_equal(at_once.arm, [one.arm for one in in_turn])
    assert_allclose(at_once.propensity, [one.propensity for one in in_turn], rtol=1e-9)
    assert_array_equal(at_once.z, [one.z for one in in_turn])


def outright(E):
    """Shares E of one request."""
    return Demands(E.shape, None, 0.0, E)


@settings(max_examples=60)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=6), st.floats(0, 1), st.integers(0, 63), st.integers(0, 5))
def test_demands_against_a_grid_of_uniforms(shares, total, safe, arm):
    """The arm shown is a function of two uniforms: on a grid of them, shares are areas."""
    K, shares = len(shares), np.array(shares)
    E = total * shares / shares.sum() if shares.sum() > 1e-9 else np.zeros(K)
    arm, at = arm % K, (arm + 1) % K
    safe = np.array([bool(safe >> i & 1) or i == at for i in range(K)])
    grid = (np.arange(400) + 0.5) / 400
    u = np.stack([np.zeros(160_000), *(part.ravel() for part in np.meshgrid(grid, grid))], axis=-1)
    own = np.arange(K) == arm
    for demands in (outright(E), outright(E)._replace(safe=safe, baseline=np.asarray(at))):
        shown = demands.drawn(np.full(len(u), arm), u)
        assert_allclose(np.bincount(shown, minlength=K) / len(u), demands.of(own.astype(float)), atol=0.006)
        assert demands.possible[shown].all()
        p = np.array([0.5, 0.5, *[0.0] * (K - 2)])
        with np.errstate(divide="ignore"):
            assert_allclose(np.exp(demands.of_logs(np.log(p))), demands.of(p), rtol=1e-9, atol=1e-300)
        assert demands.floor <= K * demands.of(p).min() + 1e-12


@given(st.floats(1e-300, 1))
def test_the_last_uniform_shows_an_arm_that_has_a_share(total):
    E, last = np.array([total / 3, total - total / 3, 0.0]), np.nextafter(1, 0)
    assert outright(E).drawn(np.asarray(2), np.array([0, 0.0, last])) == 1
    # seen red: `<` in place of `<=`


@pytest.mark.parametrize(
    ("minimum", "words"),
    [
        ([0.1, 0.2], r"minimum must have shape \(5,\)"),
        ([0, 0, -0.1, 0, 0], r"from 0 to 1, got -0\.1 for arm 2"),
        ([0, np.nan, 0, 0, 0], "got nan for arm 1"),
        ([0.5, 0.6, 0, 0, 0], r"sum to at most 1 over the arms on offer, got 1\.1"),
        ([0.9, 0, 0, 0, 0], r"minimum and floor=0\.2 together ask for 1\.06 of the choices"),
        ("abcde", "minimum must hold real numbers"),
    ],
)
def test_minima_without_sense_are_refused_and_nothing_is_drawn(minimum, words):
    a, b = taught(floor=0.2), taught(floor=0.2)
    for call in (a.choose, a.propensities):
        with pytest.raises(ValueError, match=words):
            call(X, minimum=minimum)
    assert [a.choose(X) for _ in range(5)] == [b.choose(X) for _ in range(5)]


def test_what_is_not_on_offer_gives_its_minimum_up():
    p = taught().propensities(X, mask=[1, 0, 1, 1, 1], minimum=[0.1, 0.95, 0.1, 0.1, 0.1])
    assert p[1] == 0
    assert p[[0, 2, 3, 4]].min() >= 0.1
    assert_allclose(p.sum(), 1)


def test_lists_have_no_minimum():
    with pytest.raises(TypeError, match="minimum"):
        taught().choose_list(X, k=2, minimum=LEAST)


def test_outright_of_a_batch():
    on = np.array([[True, True, True], [True, False, True]])
    E = Demands((2, 3), on, 0.65).with_minimum(np.zeros((2, 3)), floor=0.3, share=0.5).outright
    assert_allclose(E, [[0.65 / 3] * 3, [0.325, 0, 0.325]])


@pytest.mark.parametrize("probabilities", [False, True])
def test_a_log_with_minima_agrees_and_weights_are_unbiased(probabilities):
    b = taught(floor=0.1)
    written = log.Log(bandit=b, probabilities=probabilities)
    rng, truth = np.random.default_rng(5), np.array([0.1, 0.4, 0.2, 0.9, 0.5])
    for i in range(4000):
        on = rng.random(5) < 0.8
        on[4] = True
        more = {"probabilities": b.propensities(X, mask=on, minimum=LEAST)} if probabilities else {}
        d = written.record(b.choose(X, mask=on, minimum=LEAST), X=X, mask=on, **more)
        written.reward(d.id, float(rng.random() < truth[d.arm]))
        if i % 50 == 0:
            b.update(X[d.arm], truth[d.arm])
    seen = written.read()
    assert seen.check().ok
    K = seen.K.max()
    target = np.where(np.arange(K) < seen.K[:, None], 1 / seen.K[:, None], 0.0)  # uniform over what is on offer
    on = np.array([[str(i) in arms for i in range(5)] for arms in seen.frame["arms"].to_list()])
    want = np.mean((on * truth).sum(1) / on.sum(1))
    w = target[np.arange(len(seen)), seen.a] * seen.r / seen.p
    assert abs(w.mean() - want) <= 5 * w.std() / np.sqrt(len(w))
    assert_allclose(ope.ips(seen.r, seen.a, seen.p, target).value, w.mean(), rtol=1e-9)
    # seen red: the propensity of the policy in place of that of the mixture


def test_a_list_is_refused_what_it_cannot_keep_before_anything_is_drawn():
    bandit = dither.LinFP(dim=3, seed=0, floor=0.1)
    kept = dither.LinFP(dim=3, seed=0, baseline=dither.Baseline(0, loss=0.3, sigma=0.1))
    X = np.eye(3)
    for one, request, error, words in (
        (bandit, bandit.request(X), ValueError, r"\.batched\(\)"),
        (bandit, bandit.request(X[None], minimum=[0.9, 0.0, 0.0]), ValueError, r"leave minimum= out"),
        (bandit, bandit.request(X[None], mask=[[True, False, False]]), ValueError, "k must be at most 1"),
        (kept, kept.request(X[None]), TypeError, "a list knows no baseline"),
    ):
        before = one.to_bytes()
        with pytest.raises(error, match=words):
            one.decide(request, ranking.RankedList(2))
        assert one.to_bytes() == before
    # seen red: one arm for a list of two; 0.9 asked, and the arm on half of the lists
