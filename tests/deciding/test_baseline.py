"""A baseline arm that is kept within a stated loss. The oracle adds up the history, round by round."""

import copy
import functools
import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import Baseline, log, models, ope, policies

THETA = np.array([0.5, 0.3, 0.7, 0.1, 0.45])
KEEP = Baseline(0, loss=0.3, sigma=0.1)


def begin(baseline=KEEP, policy=None, *, dim=5, **settings):
    settings = {"seed": 0, "monte_carlo": 100} | settings
    return dither.Bandit(
        models.Ridge(1.0), policy or policies.FeaturePerturbation(), dim=dim, baseline=baseline, **settings
    )


def contexts(n, *, K=4, d=5, seed=7):
    return np.random.default_rng(seed).uniform(size=(n, K, d)) / 2


class Slow:
    """All rounds so far, and the demand as the docstring of `baseline` has it, from sums over them."""

    def __init__(self, demand, lam=1.0):
        self.demand, self.lam, self.rounds, self.learnt = demand, lam, [], []

    def safe(self, X, at, values):
        d, demand = X.shape[-1], self.demand
        V, b = self.lam * np.eye(d), np.zeros(d)
        for x, r in self.learnt:
            V, b = V + np.outer(x, x), b + r * x
        theta, logdet = np.linalg.solve(V, b), np.linalg.slogdet(V / self.lam)[1]
        beta = np.sqrt(self.lam) * demand.S + demand.sigma * np.sqrt(2 * np.log(1 / demand.delta) + logdet)
        found = []
        for arm in range(len(X)):
            vector, number = np.zeros(d), 0.0
            for Y, v, shown, base in [*self.rounds, (X, values, arm, at)]:
                if demand.reward is None:  # everything is a sum of features
                    vector += v[shown] * Y[shown] - (1 - demand.loss) * v[base] * Y[base]
                else:  # the rewards of the baseline are numbers, on both sides
                    if shown == base:
                        number += v[base] * demand.reward
                    else:
                        vector += v[shown] * Y[shown]
                    number -= (1 - demand.loss) * v[base] * demand.reward
            surplus = vector @ theta - beta * np.sqrt(vector @ np.linalg.solve(V, vector)) + number
            found.append(arm == at or surplus >= 0)
        return np.array(found)


@pytest.mark.parametrize("reward", [None, 0.4])
@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize("floor", [0.0, 0.2])
def test_against_sums_over_all_rounds(reward, valued, floor):
    demand = Baseline(1, loss=0.2, sigma=0.05, reward=reward, S=0.9)
    b, plain, slow = begin(demand, floor=floor), begin(None, floor=floor), Slow(demand)
    rng, unsafe, bases = np.random.default_rng(0), 0, itertools.cycle([1, 3, 0])
    for X in contexts(60):
        at, on = next(bases), rng.random(4) < 0.8
        on[at] = True
        v = rng.uniform(0.5, 2, size=4) if valued else None
        safe = slow.safe(X, at, np.ones(4) if v is None else v)
        p = plain.propensities(X, mask=on, values=v)
        want = np.where(safe, p, 0.0)
        want[at] += p[~safe].sum()
        assert_allclose(b.propensities(X, mask=on, values=v, baseline=at), want, atol=1e-9)
        before = b.kept
        d = b.choose(X, mask=on, values=v, baseline=at)
        assert_allclose(d.propensity, want[d.arm], atol=1e-9)
        assert b.kept.rounds == before.rounds + 1
        assert b.kept.shown == before.shown + (d.arm == at)
        slow.rounds.append((X, np.ones(4) if v is None else v, d.arm, at))
        slow.learnt.append((X[d.arm], X[d.arm] @ THETA + 0.05 * rng.normal()))
        for one in (b, plain):
            one.update(*slow.learnt[-1])
        unsafe += np.sum(~safe & on)
    assert 10 < unsafe < 120
    assert b.kept.shown < 55
    # seen red: α in place of 1 - α; the baseline's own rounds left out; β without log det; values left out of z


@pytest.mark.parametrize("policy", [None, policies.ThompsonSampling(c=2.0), policies.EpsGreedy(0.4, decay=None)])
@pytest.mark.parametrize("least", [None, np.array([0.0, 0.1, 0.2, 0.0])])
def test_what_is_drawn_is_what_is_said(policy, least):
    b, X = begin(policy=policy, floor=0.1), contexts(1)[0]
    rng = np.random.default_rng(0)
    for Y in contexts(14, seed=1):
        d = b.choose(Y)
        b.update(Y[d.arm], Y[d.arm] @ THETA + 0.1 * rng.normal())
    kept, on = b.kept, np.array([True, True, True, False])
    seen = KEEP.look(b.model, b.state, kept, b.request(X, baseline=0))
    surplus = np.sort(seen.surplus[1:3])
    b.kept = kept = kept._replace(g=kept.g - surplus.mean())  # one of the two is safe, the other is not
    p, se, kind = b.propensities(X, mask=on, minimum=least, detail=True, draws=20_000)
    assert np.count_nonzero(p == 0) == 2
    n, shown = 2000 if kind == "exact" else 500, []
    for _ in range(n):
        b.kept = kept
        d = b.choose(X, mask=on, minimum=least)
        assert d.propensity_kind == kind
        if kind == "exact":
            assert_allclose(d.propensity, p[d.arm], rtol=1e-9)
        shown.append(d.arm)
    share = np.bincount(shown, minlength=4) / n
    assert np.all(abs(share - p) <= 5 * (np.sqrt(p * (1 - p) / n) + (0 if se is None else se)))
    b.kept = kept
    with np.errstate(divide="ignore"):
        q = np.exp(b.propensities(X, mask=on, minimum=least, log=True, draws=20_000))
    assert np.all(abs(q - p) <= 1e-12 + (0 if se is None else 8 * se))
    # seen red: the probabilities of what is not safe are dropped, not moved


def test_where_nothing_else_can_be_shown_the_probability_is_1_for_any_policy():
    b = begin(policy=policies.ThompsonSampling(), monte_carlo=0)
    d = b.choose(contexts(1)[0])
    assert (d.arm, d.propensity, d.propensity_kind) == (0, 1.0, "exact")


@pytest.mark.parametrize("policy", [policies.FeaturePerturbation(), policies.ThompsonSampling()])
def test_a_batch_is_its_requests_in_turn(policy):
    a, b = begin(policy=policy), begin(policy=policy)
    rng = np.random.default_rng(0)
    for one in (a, b):
        one.update(contexts(30)[:, 0], contexts(30)[:, 0] @ THETA)
    many, at = contexts(40, seed=2), rng.integers(4, size=40)
    on = rng.random((40, 4)) < 0.7
    on[np.arange(40), at] = True
    batch = a.choose(many, mask=on, baseline=at)
    turn = [b.choose(X, mask=m, baseline=int(i)) for X, m, i in zip(many, on, at, strict=True)]
    assert_array_equal(batch.arm, [d.arm for d in turn])
    assert_array_equal(batch.propensity, [d.propensity for d in turn])
    assert a.to_bytes() == b.to_bytes()
    kinds = {d.propensity_kind for d in turn}
    assert batch.propensity_kind == ("exact" if kinds == {"exact"} else "monte_carlo")
    p = a.propensities(many, mask=on, baseline=at)
    if batch.propensity_kind == "exact":
        each = [a.propensities(X, mask=m, baseline=int(i)) for X, m, i in zip(many, on, at, strict=True)]
        assert_allclose(p, each, rtol=1e-12)


def shortfall(baseline, seed, *, T=100):
    """The least of Σ μ(shown) - (1 - α) Σ μ(baseline) over the rounds of one run."""
    rng = np.random.default_rng(seed)
    theta = np.array([0.8, 0.9, 0.1, 0.2, 0.0])
    b = begin(baseline, dim=5, seed=seed, monte_carlo=0)
    total, least = 0.0, np.inf
    for _ in range(T):
        d = b.choose(np.eye(5))
        b.update(np.eye(5)[d.arm], theta[d.arm] + 0.1 * rng.normal())
        total += theta[d.arm] - 0.9 * theta[0]
        least = min(least, total)
    return least


@functools.cache
def failed_without(runs):
    """The share of runs without a baseline that fall short of one."""
    return np.mean([shortfall(None, seed) < -1e-9 for seed in range(runs)])


@pytest.mark.parametrize("reward", [None, 0.8])
def test_the_demand_holds_as_often_as_it_says(reward):
    """A share δ = 0.1 of the runs may fail. Without the demand, most do."""
    demand, runs = Baseline(0, loss=0.1, reward=reward, delta=0.1, sigma=0.1, S=1.3), 60
    failed = np.mean([shortfall(demand, seed) < -1e-9 for seed in range(runs)])
    assert failed <= 0.1 + 5 * np.sqrt(0.1 * 0.9 / runs)
    assert failed_without(runs) >= 0.1 + 10 * np.sqrt(0.1 * 0.9 / runs)
    # seen red: β = 0, where the baseline is learnt


def test_it_learns_to_leave_the_baseline():
    b, rng = begin(Baseline(0, loss=0.3, sigma=0.1, S=1.3)), np.random.default_rng(0)
    theta = np.array([0.5, 0.9, 0.1, 0.2, 0.0])
    late = []
    for t in range(1500):
        d = b.choose(np.eye(5))
        b.update(np.eye(5)[d.arm], theta[d.arm] + 0.1 * rng.normal())
        late += [d.arm] if t >= 1200 else []
    assert np.mean(np.array(late) == 1) > 0.9


def test_it_goes_on_from_a_file(tmp_path):
    b, rng = begin(floor=0.1), np.random.default_rng(0)
    for X in contexts(20):
        d = b.choose(X)
        b.update(X[d.arm], X[d.arm] @ THETA)
    b.save(tmp_path / "kept.npz")
    c, X = dither.load(tmp_path / "kept.npz"), contexts(10, seed=int(rng.integers(100)))
    assert c.baseline == b.baseline
    assert [b.choose(one) for one in X] == [c.choose(one) for one in X]
    assert b.to_bytes() == c.to_bytes() == copy.deepcopy(b).to_bytes()
    plain = dither.from_bytes(begin(None).to_bytes())
    assert plain.baseline is None
    assert plain.kept is None


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("rounds.z", np.zeros(4), r"rounds\.z is float64\(4,\)"),
        ("rounds.z", np.full(5, np.nan), "finite"),
        ("rounds.sums", np.array([0.0, 2, 3]), "count 3 of 2 rounds"),
        ("rounds.sums", np.array([0.0, 2.5, 1]), "count 1 of 2.5 rounds"),
        ("rounds.sums", None, "rounds.sums"),
    ],
)
def test_damaged_files_say_so(name, array, words, tmp_path):
    begin().save(tmp_path / "kept.npz")
    with np.load(tmp_path / "kept.npz") as file:
        parts = {key: file[key] for key in file.files if key != name}
    np.savez(tmp_path / "bad.npz", **parts | ({} if array is None else {name: array}))
    with pytest.raises(ValueError, match=f"damaged.*{words}"):
        dither.load(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: dither.GLMFP(dim=2, baseline=KEEP), TypeError, "With a link or a network"),
        (lambda: dither.LinFP(dim=2, disjoint=3, baseline=KEEP), TypeError, "one ellipsoid over all slots"),
        (lambda: dither.LinFP(dim=2, discount=0.9, baseline=KEEP), TypeError, "no confidence ellipsoid around one θ"),
        (
            lambda: dither.LinFP(dim=2, diagonal=True, baseline=KEEP),
            TypeError,
            "needs a linear model of shared features",
        ),
        (lambda: dither.LinFP(dim=2, baseline=0), TypeError, r"must be a dither\.Baseline"),
        (lambda: Baseline(-1), ValueError, "at least 0, got -1"),
        (lambda: Baseline(loss=0.0), ValueError, "loss must be a finite number above 0"),
        (lambda: Baseline(loss=1.5), ValueError, r"loss must lie in \[0, 1\]"),
        (lambda: Baseline(delta=0), ValueError, "delta"),
        (lambda: Baseline(sigma=-1), ValueError, "sigma"),
        (lambda: Baseline(reward=0), ValueError, "the mean reward of the baseline"),
        (lambda: begin(None).choose(np.eye(5), baseline=0), ValueError, "needs a bandit that keeps one"),
        (lambda: begin().choose_list(np.eye(5), k=2), TypeError, "choose_list knows no baseline"),
        (lambda: begin().list_propensities(np.eye(5), k=2), TypeError, "list_propensities knows no baseline"),
        (lambda: begin().explain(np.eye(5)), TypeError, "explain knows no baseline"),
    ],
)
def test_what_has_no_sense_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"baseline": 4}, ValueError, "arm 4 of 4 is not"),
        ({"baseline": -1}, ValueError, "arm -1 of 4 is not"),
        ({"baseline": 1.0}, ValueError, "position of an arm"),
        ({"baseline": "a5"}, TypeError, "an id: a Bandit knows positions alone"),
        ({"mask": [[True] * 4, [False, True, True, True], [True] * 4]}, ValueError, "arm 0 of 4 is not"),
        ({"values": [1.0, 2.0, 0.0, 1.0]}, ValueError, "values"),
    ],
)
def test_a_refused_request_changes_nothing(given, error, words):
    b, X = begin(), contexts(3)
    b.choose(X)
    state = b.to_bytes()
    for call in (b.choose, b.propensities):
        with pytest.raises(error, match=words):
            call(X, **given)
    assert b.to_bytes() == state


def test_a_failure_in_the_middle_of_a_batch_changes_nothing(monkeypatch):
    b, looked = begin(), []
    look = Baseline.look

    def failing(self, *arguments, **more):
        looked.append(1)
        if len(looked) == 3:
            raise ValueError("a failure")
        return look(self, *arguments, **more)

    state = b.to_bytes()
    monkeypatch.setattr(Baseline, "look", failing)
    with pytest.raises(ValueError, match="a failure"):
        b.choose(contexts(5))
    assert b.to_bytes() == state
    # seen red: sums, or streams, that stay where they were


@pytest.mark.parametrize("probabilities", [False, True])
def test_a_log_agrees_and_weights_are_unbiased(probabilities):
    """The target is one that the log can judge: half of it the baseline, half uniform over what is safe."""
    b = begin(Baseline(0, loss=0.3, sigma=0.2), floor=0.3)
    written, rng = log.Log(bandit=b, probabilities=probabilities), np.random.default_rng(5)
    weighted, want, unsafe = [], [], 0
    for X in contexts(3000, seed=3):
        seen = b.baseline.look(b.model, b.state, b.kept, b.request(X, baseline=0))
        d = written.decide(X)
        r = float(X[d.arm] @ THETA + 0.1 * rng.normal())
        written.reward(d.id, r)
        b.update(X[d.arm], r)
        q = 0.5 * (np.arange(4) == 0) + 0.5 * seen.safe / seen.safe.sum()
        weighted.append(q[d.arm] / d.propensity * r)
        want.append(q @ X @ THETA)
        unsafe += np.sum(~seen.safe)
    assert unsafe > 30
    seen = written.read()
    assert seen.check().ok
    off = np.array(weighted) - want
    assert abs(off.mean()) <= 5 * off.std() / np.sqrt(len(off))
    assert seen.frame["floor"].max() == 0
    if probabilities:
        assert_allclose(seen.P[np.arange(len(seen)), seen.a], seen.p, rtol=1e-9)
        with pytest.raises(ValueError, match="has other probabilities after it has chosen"):
            written.record(b.choose(X), X=X)
    assert ope.ips(seen.r, seen.a, seen.p, np.eye(4)[np.zeros(len(seen), int)]).value == pytest.approx(
        np.mean(contexts(3000, seed=3)[:, 0] @ THETA), abs=0.02
    )
    # seen red: the floor of the bandit in the log
