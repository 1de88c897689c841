"""A shadow that learns beside the bandit that acts: logged as it was, kept in snapshots, replayed to the same bytes."""

import numpy as np
import polars as pl
import pytest
import sqlalchemy as sa
from numpy.testing import assert_array_equal

import dither
from dither import ope
from dither.log.database import sql_tables

X = np.eye(3)
pytestmark = pytest.mark.usefixtures("closing")


def begin(**settings):
    return dither.LinFP(**{"dim": 3, "floor": 0.3, "lam": 1.0, "seed": 0} | settings)


def other(**settings):
    return dither.Softmax(**{"dim": 3, "lam": 2.0, "seed": 5, "temperature": 0.5} | settings)


def play(live, n, plain=None):
    rng = np.random.default_rng(n)
    for _ in range(n):
        want = None if plain is None else plain.propensities(X).tolist()
        d = live.choose(X, arms=["a", "b", "c"])
        if want is not None:
            assert live.read().frame["judged"].to_list()[-1] == want
        r = [0.9, 0.5, 0.1][d.place] + 0.1 * float(rng.normal())
        live.reward(d.id, r)
        if plain is not None:
            plain.update(X[d.place], r)


def test_it_learns_what_the_bandit_learns(shared):
    plain = other()
    with dither.Live(shared, bandit=begin(), shadow=other(), snapshot_batches=3) as live:
        play(live, 10, plain)
        assert_array_equal(live.shadow.theta, plain.theta)
        state = live.to_bytes("shadow")
        assert live.replay(of="shadow").to_bytes() == state
        half = live.replay(4, of="shadow")
        assert half.observations == 4
        assert live.read().frame["shadow"].to_list() == [1] * 10
    with dither.Live(shared) as again:  # shadow= is left out: the ledger has it
        assert again.to_bytes("shadow") == state
        play(again, 5, plain)
        assert_array_equal(again.shadow.theta, plain.theta)
        seen = again.read()
        assert ope.snips(seen.r, seen.a, seen.p, seen.matrix("judged")).n == 15
    with dither.Live(shared, shadow=other()) as again, pytest.raises(ValueError, match="of must be"):
        again.to_bytes("catalogue")


def test_a_restart_needs_no_batch_before_the_snapshot(shared, monkeypatch):
    from dither.live import taught

    with dither.Live(shared, bandit=begin(), shadow=other(), snapshot_batches=4, snapshot_seconds=1e6) as live:
        play(live, 10)
        state = live.to_bytes(), live.to_bytes("shadow")
        live.ledger.close()  # a kill
    learnt, whole = [], taught.teach
    monkeypatch.setattr(
        taught, "teach", lambda bandit, batch, **whose: learnt.append(batch.number) or whole(bandit, batch)
    )
    again = dither.Live(shared)
    assert (again.to_bytes(), again.to_bytes("shadow")) == state
    assert sorted(learnt) == [9, 9, 10, 10]
    # seen red: a snapshot without the shadow


def test_a_shadow_that_comes_later_learns_what_was(shared):
    live = dither.Live(shared, bandit=begin())
    play(live, 8)
    live.close()
    live = dither.Live(shared, shadow=other())
    plain, seen = other(), live.read()
    for a, r in zip(seen.a, seen.r, strict=True):
        plain.update(X[a], r)
    assert_array_equal(live.shadow.theta, plain.theta)
    live.close()
    with pytest.raises(ValueError, match=r"another shadow: policy is.*replace_shadow"):
        dither.Live(shared, shadow=other(temperature=2.0))
    with pytest.raises(ValueError, match="another shadow: shadow_learns is True there"):
        dither.Live(shared, shadow=other(), shadow_learns=False)


def test_another_shadow_in_its_place(shared):
    one = dither.Live(shared, bandit=begin(), shadow=other(), snapshot_batches=1)
    two = dither.Live(shared, refresh_seconds=1e-6)
    play(one, 6)
    two.replace_shadow(begin(seed=7, c=2.0))
    three = dither.Live(shared)  # the last snapshot has the shadow of before
    assert three.to_bytes("shadow") == three.replay(of="shadow").to_bytes()
    assert three.shadow.policy == begin(c=2.0).policy
    three.close()
    play(one, 3)  # the first decision sees the new one
    play(two, 2)
    assert one.read().frame["shadow"].to_list() == [1] * 6 + [2] * 5
    one.learn()
    two.choose(X)
    for live in (one, two):
        assert live.shadow.policy == begin(c=2.0).policy
        assert live.to_bytes("shadow") == live.replay(live.batch, of="shadow").to_bytes()
    assert one.shadow.observations == one.bandit.observations == 11
    one.replace_shadow(None)
    assert one.shadow is None
    one.choose(X)
    assert one.read().frame["judged"].to_list()[-1] is None
    two.choose(X)
    assert two.shadow is None
    with pytest.raises(ValueError, match="no shadow"):
        one.to_bytes("shadow")
    with pytest.raises(ValueError, match=r"dim=3.*dim=2"):
        one.replace_shadow(dither.LinFP(dim=2))
    with pytest.raises(TypeError, match="shadow must be"):
        dither.Live(None, bandit=begin(), shadow=dither.LinFP)
    # seen red: a shadow out of a snapshot that has another one; `_notice` without the shadow


def test_erasing_teaches_the_shadow_anew(home):
    live = dither.Live(home, bandit=begin(), shadow=other(), snapshot_batches=2)
    for i in range(9):
        d = live.choose(X, extra={"user": f"u{i % 3}"})
        live.reward(d.id, float(i))
    assert live.erase(user="u1") == 3
    assert live.shadow.observations == 6
    assert live.replay(of="shadow").to_bytes() == live.to_bytes("shadow")
    plain, seen = other(), live.read()
    for i in range(9):
        if i % 3 != 1:
            plain.update(X[seen.a[i]], float(i))
    assert_array_equal(live.shadow.theta, plain.theta)
    # seen red: `follow` that keeps the shadow of before


def test_one_that_does_not_learn_stays_as_it_is(shared):
    first = other()
    first.update(X[1], 3.0)
    with dither.Live(shared, bandit=begin(), shadow=first, shadow_learns=False) as live:
        play(live, 5)
        judged = live.read().matrix("judged")
        assert_array_equal(judged, np.tile(first.propensities(X), (5, 1)))
        assert live.shadow.observations == 1
        with live.ledger.database.reading() as connection:
            assert list(connection.scalars(sa.select(sql_tables.snapshots.c.shadow))) in ([], [None])
    with dither.Live(shared) as again:
        assert again.shadow.observations == 1
        assert again.replay(of="shadow").to_bytes() == again.to_bytes("shadow")


def test_a_model_that_draws_learns_to_the_same_bytes(home):
    live = dither.Live(home, bandit=begin(), shadow=dither.DeepFP(dim=3, seed=3))
    play(live, 4)
    assert live.replay(of="shadow").to_bytes() == live.to_bytes("shadow")
    assert live.replay().to_bytes() == live.to_bytes()


def named(columns, **settings):
    """A bandit that has seen these names once."""
    one = dither.LinFP(dim=2, lam=1.0, seed=0, **settings)
    one.choose(pl.DataFrame(np.eye(2), schema=columns))
    return one


@pytest.mark.parametrize("columns", [["bad", "good"], ["x", "y"]])
def test_a_shadow_with_names_in_another_order_is_refused(home, columns):
    with pytest.raises(ValueError, match=r"features \['good', 'bad'\], in this order, and the shadow has"):
        dither.Live(home, bandit=named(["good", "bad"]), shadow=named(columns))
    with dither.Live(home, bandit=named(["good", "bad"])) as live:
        with pytest.raises(ValueError, match=r"features \['good', 'bad'\], in this order, and the shadow has"):
            live.replace_shadow(named(columns))
        assert live.shadow is None
        live.replace_shadow(named(["good", "bad"]))
        assert live.shadow.columns == ("good", "bad")
    # seen red: judged, and taught, by place


@pytest.mark.parametrize("late", [False, True])
def test_the_names_of_a_shadow_are_those_of_a_ledger_without_names(home, late):
    shadow = named(["bad", "good"])
    for x in np.random.default_rng(0).normal(size=(20, 2)):
        shadow.update(x, x[1])  # it goes for "good"
    with dither.Live(home, bandit=dither.LinFP(dim=2, floor=0.5, seed=1), shadow=None if late else shadow) as live:
        if late:
            live.replace_shadow(shadow)
        X = pl.DataFrame({"good": [1.0, 0.0], "bad": [0.0, 1.0]})
        want = live.shadow.propensities(X)
        live.choose(X)
        assert live.bandit.columns == live.read().names == ("bad", "good")
        assert_array_equal(live.read().matrix("judged")[0], want)
        assert want[0] > 0.9
    # seen red: judged by place
