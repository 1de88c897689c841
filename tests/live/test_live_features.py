"""Other features for a running bandit. The oracle: a plain bandit that learns all rewards from the records."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dither
from dither.features import Hashed, Numeric, Standard

pytestmark = pytest.mark.usefixtures("closing")
COUNTRIES, TOPICS = ["se", "de"], ["art", "war"]


def first(**settings):
    return dither.Features(
        **{
            "context": {"country": COUNTRIES},
            "arm": {"topic": TOPICS, "words": Numeric(mean=0, scale=1)},
            "cross": [("country", "topic")],
        }
        | settings
    )


def second():
    """A field more on both sides, another scale, a country more."""
    return first(
        context={"country": [*COUNTRIES, "fr"], "age": Standard(mean=40, scale=10)},
        arm={"topic": TOPICS, "words": Numeric(mean=1, scale=2), "by": Hashed(width=4)},
        cross=[("country", "topic"), ("age", "topic")],
    )


def begin(features, **settings):
    return dither.LinFP(**{"features": features, "lam": 1.0, "floor": 0.3, "seed": 0} | settings)


def request(rng):
    who = {"country": str(rng.choice(COUNTRIES)), "age": int(rng.integers(20, 60)), "user": f"u{rng.integers(9)}"}
    arms = [{"topic": t, "words": float(np.round(rng.normal(), 2)), "by": f"b{rng.integers(5)}"} for t in TOPICS]
    return who, arms


def play(live, n, seed=0, *, rewarded=True):
    """n decisions; -> (id, context, arms, place, reward) of each."""
    rng, made = np.random.default_rng([n, seed]), []
    for _ in range(n):
        who, arms = request(rng)
        d = live.choose(who, arms)
        r = float(np.round(rng.normal(), 3))
        if rewarded:
            live.reward(d.id, r)
        made.append((d.id, who, arms, d.place, r))
    return made


def taught(bandit, made, *batches):
    """The oracle: each decision in a batch of its own, then batches of several."""
    for batch in [*([one] for one in made), *batches]:
        x = np.stack([bandit.features.encode(who, arms)[place] for _, who, arms, place, _ in batch])
        r = np.array([one[-1] for one in batch])
        bandit.update(x if len(r) > 1 else x[0], r if len(r) > 1 else r[0])
    return bandit


def true(*lives):
    """What was learnt is that of a replay, and each row has the propensity of the bandit that it names."""
    for live in lives:
        assert live.to_bytes() == live.replay(live.batch).to_bytes()
    rows = lives[0].read(features="then").frame
    for row in rows.to_dicts():
        then = lives[0].replay(row["learnt"])
        p = then.propensities(np.array(row["features"]))[row["arm"]]
        assert_allclose(row["propensity"], p, rtol=0, atol=1e-14)


def test_what_was_learnt_is_learnt_again_from_the_records(shared):
    one = dither.Live(shared, bandit=begin(first()), store="records", snapshot_batches=3)
    two = dither.Live(shared, learn=False, store="records")
    made, both = play(one, 6), play(two, 2)
    one.learn()  # both at once
    late = play(one, 2, 1, rewarded=False)
    two.change(features=second(), author="eve")
    event = two.events()[-1]
    assert (event.what, event.author, event.details["rows"]) == (
        "features",
        "eve",
        {"learnt again": 8, "carried over": 0, "left out": 0},
    )
    assert "age" in event.details["new columns"]
    assert event.details["columns that went"] == []
    for live in (one, two):
        d = live.choose(*request(np.random.default_rng(3)))
        assert live.bandit.features == second()
        assert live.read(since="2000-01-01").frame["learnt"][-1] == event.batch
    for id, *_, r in late:
        two.reward(id, r)
    one.learn()
    batches = [made, both, late]
    assert one.to_bytes() == taught(begin(second()), *batches).to_bytes()
    batches += [[one] for one in play(one, 3, 2)]
    assert one.to_bytes() == taught(begin(second()), *batches).to_bytes()
    assert one.replay(5).to_bytes() == taught(begin(first()), made[:5]).to_bytes()
    assert d.propensity > 0
    true(one, two)
    one.close(), two.close()
    with dither.Live(shared) as again:  # from a snapshot, and by the bandit of now
        assert again.to_bytes() == taught(begin(second()), *batches).to_bytes()
    with dither.Live(shared, bandit=begin(second())) as again:
        assert again.bandit.features == second()
