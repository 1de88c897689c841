"""models.Regressor in a file: the estimator is passed again, and it must be the one that was saved."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import dither
from dither.models import Fixed, Regressor
from regressors import Spy, bandit, data, same, taught

# In a file


@pytest.mark.parametrize(
    ("make", "settings", "binary"),
    [
        (lambda: RandomForestRegressor(3), {}, False),
        (lambda: RandomForestRegressor(3, random_state=1), {"refit": "request"}, False),
        (lambda: GradientBoostingRegressor(n_estimators=3), {"refit": 7}, False),
        (lambda: SGDRegressor(), {"partial": True}, False),
        (lambda: SGDRegressor(), {"partial": True, "refit": "request"}, False),
        (lambda: SGDRegressor(), {"partial": True, "refit": 3, "slots": 2, "encode": "index"}, False),
        (lambda: LogisticRegression(), {"slots": 2}, True),
        (lambda: SGDClassifier(loss="log_loss"), {"partial": True}, True),
        (lambda: LinearRegression().fit(np.eye(3), [1, 2, 3]), {"trained": True, "first": 200}, False),
    ],
    ids=lambda v: "",
)
def test_a_file_and_the_estimator_again_go_on_as_if_nothing_had_happened(tmp_path, make, settings, binary):
    X, r, arm = data(150, K=settings.get("slots"), binary=binary)
    b = bandit(Regressor(make(), **settings), monte_carlo=20)
    for first, last in [(0, 1), (1, 20), (20, 21), (21, 60)]:
        b.update(X[first:last], r[first:last], **({} if arm is None else {"arm": arm[first:last]}))
        if settings.get("refit") == "request" and last > 20:
            b.refit()
    b.save(tmp_path / "bandit")
    with np.load(tmp_path / "bandit", allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)
    again = dither.load(tmp_path / "bandit", model=Regressor(make(), **settings))
    same(b, again)
    for c in (b, again):
        taught(c, X[60:], r[60:], None if arm is None else arm[60:])  # and beyond the rows that it had room for
    same(b, again)
    # seen red: partial_fit replayed in one piece; seeds drawn anew


def test_a_file_wants_the_same_estimator(tmp_path):
    X, r, _ = data(10)
    taught(bandit(Regressor(SGDRegressor(alpha=0.1), partial=True)), X, r).save(tmp_path / "b")
    with pytest.raises(ValueError, match=r"one that a file cannot hold, Regressor.*SGDRegressor.*pass it again"):
        dither.load(tmp_path / "b")
    for other in (
        Regressor(SGDRegressor(alpha=0.2), partial=True),
        Regressor(SGDRegressor(alpha=0.1)),
        Regressor(SGDRegressor(alpha=0.1), partial=True, first=2),
        dither.models.Ridge(),
    ):
        with pytest.raises(ValueError, match="model= is not the model that was saved"):
            dither.load(tmp_path / "b", model=other)
    trained = [Regressor(LinearRegression().fit(np.eye(3), [1, 2, 3 + i]), trained=True, first=99) for i in range(2)]
    bandit(trained[0]).save(tmp_path / "t")
    with pytest.raises(ValueError, match="is not the model that was saved"):
        dither.load(tmp_path / "t", model=trained[1])


def test_a_fingerprint_is_the_same_in_another_process():
    nested = make_pipeline(StandardScaler(), RandomForestRegressor(3))
    text = Regressor(nested).fingerprint()
    assert " at 0x" not in text
    assert text == Regressor(pickle.loads(pickle.dumps(nested))).fingerprint()
    assert "randomforestregressor__n_estimators=3" in text
    assert " at 0x" not in Regressor(Spy()).fingerprint() + Fixed(lambda X: X[:, 0]).fingerprint()


@pytest.mark.parametrize("spoil", ["seen", "key", "count", "weight"])
def test_a_state_that_no_data_lead_to_is_refused(spoil):
    X, r, _ = data(10)
    b = taught(bandit(Regressor(Spy())), X, r)
    bad = {
        "seen": lambda s: s._replace(seen=np.array(5)),
        "key": lambda s: s._replace(key=np.array(-1)),
        "count": lambda s: s._replace(buffer=s.buffer._replace(count=np.array(10_000))),
        "weight": lambda s: s._replace(buffer=s.buffer._replace(weight=s.buffer.weight - 1)),
    }[spoil](b.state)
    b.model.check(b.state)
    with pytest.raises(ValueError, match="its "):
        b.model.check(bad)


def test_copies_go_on_alike():
    X, r, _ = data(20)
    b = taught(bandit(Regressor(SGDRegressor(), partial=True)), X, r)
    twins = [copy.deepcopy(b), pickle.loads(pickle.dumps(b))]
    for c in (b, *twins):
        taught(c, X, r)
    for c in twins:
        same(copy.deepcopy(b), c)


@pytest.mark.parametrize(
    "make",
    [
        lambda: DecisionTreeRegressor(random_state=0),
        lambda: DecisionTreeClassifier(random_state=0),
        lambda: RandomForestRegressor(3, random_state=0),
        lambda: GradientBoostingRegressor(n_estimators=3, random_state=0),
        lambda: HistGradientBoostingRegressor(max_iter=3, random_state=0),
        lambda: KNeighborsRegressor(3),
        lambda: make_pipeline(StandardScaler(), LinearRegression()),
    ],
    ids=lambda make: type(make()).__name__,
)
@pytest.mark.parametrize("unit", [1.0, 1000.0])
def test_an_estimator_that_learnt_other_data_is_another(tmp_path, make, unit):
    X, r, _ = data(60)
    binary = hasattr(make(), "predict_proba")
    X = unit * (X + 2)
    r = (r > 0).astype(float) if binary else r
    changed = np.where(np.arange(60) % 9 == 0, 1 - r, r)
    first, again, other = make().fit(X, r), make().fit(X, r), make().fit(X, changed)
    b = bandit(Regressor(first, trained=True, first=99))
    b.save(tmp_path / "b")
    for same_one in (again, pickle.loads(pickle.dumps(first)), copy.deepcopy(first)):
        assert_array_equal(
            dither.load(tmp_path / "b", model=Regressor(same_one, trained=True, first=99)).mean(X), b.mean(X)
        )
    with pytest.raises(ValueError, match="is not the model that was saved"):
        dither.load(tmp_path / "b", model=Regressor(other, trained=True, first=99))
    if not binary:
        c = dither.FP(first.predict, dim=3, seed=0)
        c.save(tmp_path / "c")
        with pytest.raises(ValueError, match="is not the model that was saved"):
            dither.load(tmp_path / "c", model=Fixed(other.predict))
    # seen red: a hash of attributes alone (trees, forests, neighbours and pipelines keep theirs out of sight)


def test_last_digits_that_differ_between_machines_make_no_other_estimator():
    X, r, _ = data(60)
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(X, r)
    text = Regressor(model, trained=True).fingerprint()
    model[-1].coef_ *= 1 + 1e-14
    assert Regressor(model, trained=True).fingerprint() == text
    model[-1].coef_ *= 1 + 1e-3
    assert Regressor(model, trained=True).fingerprint() != text


class Slotted:
    __slots__ = ("rate", "sum_")

    def __init__(self, rate=0.5):
        self.rate = rate

    def fit(self, X, y):
        self.sum_ = self.rate * y.sum()

    def predict(self, X):
        return X[:, 0] * self.sum_


def test_estimators_with_slots_can_be_saved(tmp_path):
    X, r, _ = data(12)
    b = taught(bandit(Regressor(Slotted())), X, r)
    b.save(tmp_path / "b")
    same(dither.load(tmp_path / "b", model=Regressor(Slotted())), b)
    with pytest.raises(ValueError, match="is not the model that was saved"):
        dither.load(tmp_path / "b", model=Regressor(Slotted(0.25)))
    trained = [Slotted(), Slotted()]
    for k, one in enumerate(trained):
        one.fit(X, r + k)
    assert len({Regressor(one, trained=True).fingerprint() for one in trained}) == 2
    # seen red: vars(), which is a TypeError for them


def test_a_file_leaves_out_what_was_left_out(tmp_path):
    X, r, _ = data(40)
    X[5] = 1e39
    b = taught(bandit(Regressor(DecisionTreeRegressor())), X[:7], r[:7])
    with pytest.raises(ValueError, match="number 5 of those kept"):
        b.update(X[7], r[7])
    b.save(tmp_path / "b")
    again, twin = dither.load(tmp_path / "b", model=Regressor(DecisionTreeRegressor())), copy.deepcopy(b)
    for c in (b, again, twin):
        taught(c, X[7:], r[7:])
    same(copy.deepcopy(b), twin)
    same(b, again)
    # seen red: rows left out in the new buffer alone, which is thrown away
