"""Raw columns of very different sizes, where λ follows the rule: who is told, and when."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import dither
from dither.features import ColumnSizeWarning, Standard

SIZES = [1.0, 20_000.0, 0.5]
pytestmark = pytest.mark.usefixtures("closing")


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * SIZES
    return X, X @ [0.1, 1e-5, 0.3] + 0.1 * rng.normal(size=n)


def begin(**settings):
    return dither.LinFP(**{"dim": 3, "lam": "auto", "floor": 0.2, "seed": 0} | settings)


@pytest.fixture
def silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def told(bandit, X, r, **more):
    """After how many rows the bandit says something, one row at a time; the rest is silent."""
    at = []
    for n, (x, reward) in enumerate(zip(X, r, strict=True), 1):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            bandit.update(x, reward, **more)
        at += [n] * len(caught)
        assert all(each.category is ColumnSizeWarning and each.filename == __file__ for each in caught)
    return at


@pytest.mark.parametrize("slots", [None, 2])
def test_a_bandit_says_it_once_and_learns_the_same(slots):
    """Seen red with a warning at each moment, and with one for a λ that is stated."""
    X, r = rows(300)
    more = {} if slots is None else {"arm": 1}
    bandit, quiet = begin(disjoint=slots), begin(disjoint=slots)
    quiet._sizes = None
    assert told(bandit, X, r, **more) == [32]
    assert told(quiet, X, r, **more) == []
    assert bandit.to_bytes() == quiet.to_bytes()
    assert told(begin(disjoint=slots, lam=1.0), X, r, **more) == []
    assert told(begin(disjoint=slots), X / SIZES, r, **more) == []
    with pytest.warns(ColumnSizeWarning, match=r"column 1 \(.*\), but column 2 \("):
        begin(disjoint=slots).update(X, r, **{name: np.full(300, arm) for name, arm in more.items()})


def test_columns_are_named_where_they_have_names():
    """Seen red with places for all."""
    X, r = rows(40)
    with pytest.warns(ColumnSizeWarning, match=r"'income' \(.*\), but 'share' \("):
        begin().update(pd.DataFrame(X, columns=["age", "income", "share"]), r)


def test_a_filter_that_makes_an_error_of_it_leaves_the_bandit_as_it_was(silent):
    """Seen red with a warning after the new state."""
    X, r = rows(40)
    bandit = begin()
    bandit.update(X[:31], r[:31])
    state = bandit.to_bytes()
    with pytest.raises(ColumnSizeWarning):
        bandit.update(X[31], r[31])
    assert bandit.to_bytes() == state
    bandit.update(X[31:], r[31:])
    plain = begin()
    with pytest.raises(ColumnSizeWarning):
        plain.update(X, r)
    plain.update(X[:31], r[:31])
    plain.update(X[31:], r[31:])
    assert bandit.to_bytes() == plain.to_bytes()


def test_features_and_files_are_silent(silent, tmp_path):
    """Seen red with a look at what is loaded."""
    X, r = rows(200)
    f = dither.Features(context={"a": Standard(0, 1), "b": Standard(0, 1e-3), "c": Standard(0, 1)}, form="disjoint")
    encoded = f.encode([dict(zip("abc", x, strict=True)) for x in X])
    begin(dim=f.dim, features=f, disjoint=2).update(encoded, r, arm=np.zeros(200, dtype=int))
    bandit = begin()
    bandit.update(X[:10], r[:10])
    bandit.save(tmp_path / "b.npz")
    for again in (dither.load(tmp_path / "b.npz"), dither.from_bytes(begin().to_bytes())):
        again.update(X, r)
    for copied in (copy.deepcopy(bandit), pickle.loads(pickle.dumps(bandit))):
        with pytest.raises(ColumnSizeWarning):
            copied.update(X, r)
    dither.simulate(dither.envs.Classification(X, r > 0), ["Greedy:lam=auto"], runs=2, rounds=200)


def test_a_ledger_says_it_once_where_rows_are_new(shared):
    """Not where they are replayed. Seen red with a look at every batch that is learnt."""
    X, r = rows(120)

    def play(live, part):
        at = []
        for n in part:
            d = live.choose(X[n : n + 2])
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                live.reward(d.id, r[n + d.place])
            at += [n] * len(caught)
            assert all(each.category is ColumnSizeWarning and each.filename == __file__ for each in caught)
        return at

    with dither.Live(shared, bandit=begin()) as live:
        assert play(live, range(60)) == [31]
        state = live.to_bytes()
        assert live.replay().to_bytes() == state
    with dither.Live(shared) as again:
        assert again.to_bytes() == state
        assert play(again, range(60, 118)) == []


def test_a_ledger_that_is_opened_again_is_not_looked_at(shared):
    """Seen red with a count that begins anew."""
    X, r = rows(200)

    def play(live, part):
        for n in part:
            d = live.choose(X[n : n + 2])
            live.reward(d.id, r[n + d.place])

    with dither.Live(shared, bandit=begin()) as live:
        play(live, range(20))
    with dither.Live(shared) as live:
        play(live, range(20, 190))


def test_the_sizes_are_of_what_is_learnt():
    """By loops. Seen red with the sum of squares in the place of their mean."""
    X, r = rows(32)
    bandit = begin()
    bandit.choose(X * [1e9, 1, 1])
    with pytest.warns(ColumnSizeWarning) as caught:
        bandit.update(X, r)
    for j in (1, 2):
        assert f"column {j} ({np.sqrt(sum(x[j] ** 2 for x in X) / 32):.4g})" in str(caught[0].message)
