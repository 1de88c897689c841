"""What a `Bandit` is made of: its Monte Carlo propensities, its settings, parts of your own, copies, threads."""

import copy
import inspect
import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize

import dither
import oracles
from bandits import ARMS, learnt
from dither.deciding import decision
from properties import (
    ALL,
    EXCUSED,
    MONTE_CARLO,
    SPENT,
    able,
    ask,
    brief,
    every,
    exact,
    few,
    same_arrays,
    slack,
    uncertainty,
)

# Monte Carlo propensities


@pytest.mark.parametrize("name", sorted(MONTE_CARLO))
def test_a_monte_carlo_propensity_has_its_error(name):
    b = learnt(name, monte_carlo=400)
    n = few(b.model, b.policy, 500)
    p, slip = ask(b, ARMS, draws=100_000), slack(b, np.full(5, 0.5), draws=100_000)[0]
    d = b.choose(ARMS)
    assert d.propensity_kind == "monte_carlo"
    assert type(d.propensity) is float
    assert type(d.propensity_se) is float
    assert abs(d.propensity - p[d.arm]) <= 5 * d.propensity_se + 1 / 400
    d = b.choose(np.broadcast_to(ARMS, (n, 5, 3)))
    assert d.propensity.min() > 0
    assert d.propensity.max() <= 1
    z = (d.propensity - p[d.arm]) / np.sqrt(np.maximum(p[d.arm] * (1 - p[d.arm]), 1e-3) / 400 + slip**2)
    assert np.abs(z).max() < 5.5
    assert abs(z.mean()) < 0.5
    assert learnt(name, monte_carlo=400).choose(ARMS).arm == learnt(name).choose(ARMS).arm  # costs the stream nothing
    assert learnt(name, monte_carlo=3).choose([[1, 2, 3]]).propensity == 1.0


@pytest.mark.parametrize("name", sorted(MONTE_CARLO))
def test_a_detail_is_honest_about_its_error(name):
    b = learnt(name)
    exactly = ask(b, ARMS, draws=200_000)
    p, se, kind = b.propensities(ARMS, draws=1000, detail=True)
    assert kind == "monte_carlo"
    assert np.all(np.abs(p - exactly) <= 5 * np.hypot(se, slack(b, exactly, draws=200_000)))
    assert np.all(se < 0.02)
    assert np.all(se > 0)


@pytest.mark.parametrize("name", sorted(SPENT))
def test_a_decision_whose_chance_is_spent_is_the_best_of_what_is_on_offer(name):
    b, mask = learnt(name, monte_carlo=50), np.array([True, True, True, False, True])
    m = b.mean(ARMS)
    mask[np.argmax(np.where([True, False, False, True, True], m, -np.inf))] = False  # so that 1 or its copy 2 wins
    d = b.choose(np.broadcast_to(ARMS, (2000, 5, 3)), mask=np.broadcast_to(mask, (2000, 5)))
    best = np.flatnonzero(mask & (m == np.max(m[mask])))
    assert oracles.agree(np.bincount(d.arm, minlength=5) / 2000, np.isin(np.arange(5), best) / len(best), n=2000)
    assert d.propensity_kind == "none"
    assert np.isnan(d.propensity).all()
    p, se, kind = b.propensities(ARMS, detail=True)
    assert np.isnan(p).all()
    assert (se, kind) == (None, "none")
    others = {learnt(name, seed=seed).choose(ARMS[[0, 3]]).arm for seed in range(20)}
    assert others == {0, 1}  # what is trained differs from seed to seed
    # seen red: `knowable` True for all policies


# Settings


@every()
def test_help_shows_every_setting(name):
    algorithm = dither.ALGORITHMS[name]
    parameters = inspect.signature(algorithm).parameters
    assert next(iter(parameters)) == ("model" if name == "FP" else "dim")  # FP(model, dim=...) takes any
    assert "dim" in parameters
    assert parameters["lam"].default == ALL[name][0].lam  # seen red: the class's own, for presets that are functions
    assert {"seed", "preset", "floor", "disjoint", "diagonal", "monte_carlo"} <= set(parameters)
    if name in ("LinFP", "LinTS"):
        shown = [parameters[key].default for key in ("lam", "centre", "c", "sigma")]
        assert shown == ["auto", True, 1.0, "auto"]  # seen red: those of the classes, as the preset is a function
    assert algorithm.__doc__.startswith(algorithm.summary)
    assert algorithm.__name__ == algorithm.name == name
    for key, parameter in parameters.items():  # and every setting that it shows it takes
        if key != "dim":
            algorithm(dim=2, **{key: parameter.default})


def test_labels_are_those_of_the_figures():
    assert dither.ALGORITHMS["LinFP"].label["fig3-linear"] == "GLM-FP (ours)"
    assert dither.ALGORITHMS["LinFP"].label["h3"] == "LinFP (ours)"
    assert dither.ALGORITHMS["EpsGreedy"].label["h1"] == "ε-Greedy"
    assert dither.ALGORITHMS["LinTS"].label["anything"] == "LinTS"


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"dim": 0}, "dim"),
        ({"dim": 2.5}, "dim"),
        ({"dim": True}, "dim"),
        ({"floor": -0.1}, "floor"),
        ({"floor": 1.1}, "floor"),
        ({"floor": np.nan}, "floor"),
        ({"monte_carlo": -1}, "monte_carlo"),
        ({"disjoint": 0}, "slots"),
        ({"lam": 0}, "lam"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, word):
    with pytest.raises(ValueError, match=word):
        dither.LinFP(**{"dim": 2} | settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"lam": np.float32(0.5)},
        {"lam": np.int64(2)},
        {"c": np.float64(0.5)},
        {"c": np.float32(0.5)},
        {"floor": np.float32(0.25)},
        {"dim": np.int64(2)},
        {"disjoint": np.int64(3)},
        {"seed": np.int64(3)},
        {"horizon": np.int64(100)},
        {"monte_carlo": np.int64(3)},
    ],
    ids=str,
)
def test_numbers_of_numpy_are_numbers(settings, tmp_path):
    b = dither.LinFP(**{"dim": 2, "seed": 0} | settings)
    b.save(tmp_path / "b")
    plain = dither.LinFP(**{"dim": 2, "seed": 0} | {k: v.item() for k, v in settings.items()})
    X = [1.0, 2.0] if "disjoint" in settings else np.eye(2)
    assert [b.choose(X).arm for _ in range(20)] == [plain.choose(X).arm for _ in range(20)]


def test_a_bandit_of_your_own_parts_is_saved_and_loaded(tmp_path):
    b = dither.Bandit(Mine(2.0), dither.policies.Greedy(), dim=2, seed=0)
    b.update([1, 0], 1.0)
    b.save(tmp_path / "b")
    with pytest.raises(ValueError, match=r"holds a Mine.*known=\(Mine,\)") as refused:
        dither.load(tmp_path / "b")
    assert "damaged" not in str(refused.value)  # seen red: told that the file is
    c = dither.load(tmp_path / "b", known=(Mine,))
    assert_array_equal(c.theta, b.theta)


class Mine(dither.models.Ridge):
    pass


class Broken(dither.models.Ridge):
    fault = None

    def check(self, state):
        if self.fault is not None:
            raise self.fault


@pytest.mark.parametrize("fault", [AttributeError("no colour"), KeyError("colour"), ValueError("no such colour")])
def test_an_error_of_a_class_of_your_own_is_not_taken_for_damage(tmp_path, monkeypatch, fault):
    b = dither.Bandit(Broken(2.0), dither.policies.Greedy(), dim=2, seed=0)
    b.save(tmp_path / "b")
    assert dither.load(tmp_path / "b", known=(Broken,)).model == b.model
    monkeypatch.setattr(Broken, "fault", fault)
    with pytest.raises(type(fault)) as raised:
        dither.load(tmp_path / "b", known=(Broken,))
    assert raised.value is fault  # seen red: "a damaged file"
    (tmp_path / "b").write_bytes((tmp_path / "b").read_bytes()[:300])
    with pytest.raises(ValueError, match="not a dither file"):
        dither.load(tmp_path / "b", known=(Broken,))


@every()
def test_threads_share_one_bandit(name):
    b = dither.ALGORITHMS[name](dim=2, lam=1.0, seed=0)
    n = brief(b.model, b.policy, 50)

    def work():
        for _ in range(n):
            b.choose(np.eye(2))
            b.update([1, 0], 1.0)
            b.propensities(np.eye(2), draws=10)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (b.decisions, b.observations) == (4 * n, 4 * n)
    if name not in able("order"):  # whatever thread came first, all that was learnt is 4n times the same
        twin = dither.ALGORITHMS[name](dim=2, lam=1.0, seed=0)
        for _ in range(4 * n):
            twin.update([1, 0], 1.0)
        same_arrays(b.state, twin.state)
        return
    link, ridge = b.model.function, getattr(b.model, "rho", b.model.lam)  # 4n (μ(θ) - 1) + ridge θ = 0
    root = optimize.brentq(lambda v: 4 * n * (float(link.mu(np.float64(v))) - 1) + ridge * v, 0, 1e8, xtol=1e-14)
    root = min(root, *(getattr(b.model, setting, None) or np.inf for setting in ("constrain", "S")))
    assert_allclose(b.theta, [root, 0], rtol=1e-12, atol=uncertainty(b)[0] * np.linalg.norm(b.state.F))


def test_who_is_excused_exists():
    assert set(EXCUSED) <= set(dither.ALGORITHMS)
    asked = {"slots", "beats uniform choice", "beats uniform choice among slots", "order", "zero arm", "propensities"}
    assert {of for properties in EXCUSED.values() for of in properties} == asked


@every()
def test_the_table_says_which_probabilities_there_are(name):
    b = dither.ALGORITHMS[name](dim=3, seed=0)
    kind = dither.ALGORITHMS[name].propensity
    assert exact(b.model, b.policy) == (kind not in ("Monte Carlo", "none"))
    assert decision.knowable(b.policy) == (kind != "none")
    if kind == "0/1":
        b.update(ARMS[:2], [0.2, 1.0])
        p = b.propensities(ARMS)
        assert len(np.unique(p[p > 0])) == 1  # one arm, or those that tie with it


def test_the_mode_of_a_saved_file_stays(tmp_path):
    path = tmp_path / "b.dither"
    b = dither.LinFP(dim=2, seed=0)
    b.save(path)
    path.chmod(0o640)
    b.save(path)
    assert path.stat().st_mode & 0o777 == 0o640  # seen red: a temporary file that only its owner may read
    assert [p.name for p in tmp_path.iterdir()] == ["b.dither"]


def test_a_policy_whose_draw_is_no_tuple_is_refused():
    class Bare(dither.policies.FeaturePerturbation):
        def draw(self, rng, n, *, arms, dim):
            return rng.standard_normal(n)

    bandit = dither.Bandit(dither.models.Ridge(), Bare(), dim=2, seed=0)
    for call in (lambda: bandit.choose(np.eye(2)), lambda: bandit.choose(np.ones((3, 2, 2)))):
        with pytest.raises(TypeError, match="tuple"):  # seen red: the array taken for the tuple
            call()


@pytest.mark.parametrize("policy", [object(), dither.policies.Greedy])
def test_what_is_no_policy_is_refused_at_once(policy):
    with pytest.raises(TypeError, match="policy"):
        dither.Bandit(dither.models.Ridge(), policy, dim=2)


def test_a_row_of_a_frame_with_a_boolean_column_is_an_arm():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"price": [1.0, 2.0], "new": [True, False]})
    bandit = dither.LinFP(dim=2, seed=0)
    bandit.update(frame.iloc[bandit.choose(frame).arm], 1.0)
    with pytest.raises(ValueError, match="'cheap'"):
        bandit.choose(pd.DataFrame({"price": ["cheap", 1.0], "new": [1, 0]}))


def test_copies_and_pickles_go_on_apart():
    import pickle

    a = dither.LinFP(dim=2, seed=0)
    a.update([1.0, 2.0], 1.0)
    X = np.array([[1.0, 0.0], [0.0, 1.0]])
    others = [copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))]
    for other in others:
        [other.choose(X) for _ in range(7)]
    fresh = [copy.deepcopy(a) for _ in range(2)]
    assert [a.choose(X) for _ in range(9)] == [fresh[0].choose(X) for _ in range(9)]  # seen red: shared streams
    assert pickle.loads(pickle.dumps(dither.LinFP)) is dither.LinFP


def test_the_floor_is_kept_to_the_bit():
    for floor in (0.07, 0.08, 0.09, 0.1, 0.11):
        bandit = dither.LinFP(dim=2, lam=1.0, floor=floor, seed=0)
        bandit.update([1, 0], 1)
        assert bandit.propensities([[1e6, 0], [-1e6, 0]]).min() >= floor / 2  # seen red: 1 - (1 - own)(1 - floor)


@pytest.mark.parametrize("c", [lambda t: -1.0, lambda t: float("nan")])
def test_a_schedule_that_gives_no_scale_is_refused(c):
    with pytest.raises(ValueError, match=r"c\(1\)"):
        dither.LinFP(dim=2, c=c, seed=0).choose(np.eye(2))


def test_what_is_certain_has_no_standard_error():
    p, se, kind = dither.LinTS(dim=2, seed=0).propensities(np.eye(2), mask=[True, False], detail=True)
    assert (p.tolist(), se, kind) == ([1.0, 0.0], None, "exact")


def test_a_decision_whose_draws_all_agree_is_not_certain():
    bandit = dither.LinTS(dim=2, lam=1.0, monte_carlo=20, seed=0)
    for _ in range(200):
        bandit.update([1.0, 0.0], 1.0)
    d = bandit.choose([[1.0, 0.0], [-1.0, 0.0]])
    assert d.propensity == 1.0
    assert d.propensity_se > 0.01


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"coupled": "false"}, "True or False"), ({"diagonal": "false"}, "True or False"), ({"noise": "ball"}, "Ball")],
)
def test_texts_are_not_taken_for_settings(settings, words):
    with pytest.raises(ValueError, match=words):
        dither.LinFP(dim=2, **settings)
