"""A replica takes the place of its primary while processes are open. What it lacks must be forgotten by them."""

import numpy as np
import pytest
import sqlalchemy as sa
from numpy.testing import assert_allclose

import databases
import dither
from dither.log.database import sql_tables

pytestmark = pytest.mark.usefixtures("closing")


@pytest.fixture(scope="module")
def servers():
    if databases.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    made = databases.Pair("fsync=off")
    yield made
    made.stop()


@pytest.fixture
def pair(servers):
    """A primary and its replica, both of them running."""
    yield servers
    servers.mend()


def begin():
    return dither.LinFP(dim=3, floor=0.1, lam=1.0, c=0.3, seed=0)


def rounds(live, n, rng, kept=None):
    """So many decisions with their rewards; -> the ids. Each reward is a batch of its own where the process learns."""
    ids = []
    for _ in range(n):
        X = rng.normal(size=(4, 3))
        d = live.choose(X)
        assert live.reward(d.id, float(X[d.arm, 0] + rng.normal())) == "counted"
        ids.append(d.id)
    return ids


def stated(live):
    """Each decision has the probability that the bandit had after the batch that its row names."""
    with live.ledger.database.reading() as connection:
        batches = dict(connection.execute(sa.select(sql_tables.decisions.c.id, sql_tables.decisions.c.batch)).all())
    states = {batch: live.replay(batch) for batch in set(batches.values())}
    for row in live.read().frame.select("id", "features", "arm", "propensity").iter_rows(named=True):
        p = states[batches[row["id"]]].propensities(np.array(row["features"]))
        assert_allclose(row["propensity"], p[row["arm"]], rtol=1e-9, err_msg=row["id"])


def agrees(live):
    """The bandit is that of a replay, and each reward that counts is learnt once."""
    live.learn()
    assert live.to_bytes() == live.replay().to_bytes()
    assert live.bandit.observations == np.isfinite(live.read().r).sum()


def expired(live):
    """The lease ends, as its holder was another process."""
    with live.ledger.holding() as connection:
        connection.execute(sa.update(sql_tables.lease).values(expires=0))


@pytest.mark.parametrize("more", [0, 15, 25])
def test_what_the_replica_lacks_is_forgotten(pair, more):
    """Another process goes on first, with as many batches as the ones that were lost, or not.

    Seen red with states that are compared by the number of their last batch alone.
    """
    url, rng = pair.url(), np.random.default_rng(0)
    ahead = dither.Live(url, bandit=begin(), snapshot_batches=7)
    rounds(ahead, 20, rng)
    pair.replica.catch_up(pair.primary)
    pair.replica.hold_back()
    rounds(ahead, 15, rng)
    follower = dither.Live(url, learn=False, refresh_seconds=1e-6)
    assert ahead.batch == follower.batch == 35
    pair.fail_over()
    other = dither.Live(url)
    expired(other)
    other.learn()
    rounds(other, more, rng)
    assert other.batch == 20 + more
    agrees(other)
    for live in (follower, ahead):
        d = live.choose(rng.normal(size=(4, 3)))
        live.reward(d.id, 1.0)
    expired(other)
    ahead.learn()
    rounds(ahead, 3, rng)
    agrees(ahead)
    stated(ahead)
    follower.choose(np.eye(3))
    assert follower.to_bytes() == follower.replay(follower.batch).to_bytes()
    ahead.close()
    with dither.Live(url) as again:
        assert again.to_bytes() == again.replay().to_bytes()


def test_arms_shadow_and_erasures_that_the_replica_lacks(pair):
    """Seen red with numbers of changes that were compared alone: other changes have the same numbers."""
    url, rng = pair.url(), np.random.default_rng(1)
    features = dither.Features(arm={"x": "numeric", "y": "numeric"}, cross=())
    arms = {name: {"x": float(i), "y": float(rng.normal())} for i, name in enumerate("abc")}
    features = features.fit(arms=arms)
    ahead = dither.Live(
        url,
        bandit=dither.LinFP(features=features, floor=0.1, lam=1.0, seed=0),
        catalogue=dither.Catalogue(features, arms),
    )

    def go(live, n):
        for _ in range(n):
            d = live.choose(extra={"user": d_user(rng)})
            live.reward(d.id, float(rng.normal()))

    def d_user(rng):
        return int(rng.integers(3))

    go(ahead, 10)
    pair.replica.catch_up(pair.primary)
    pair.replica.hold_back()
    ahead.catalogue.add("lost", {"x": 9.0, "y": 9.0})
    ahead.erase(user=0)
    ahead.replace_shadow(dither.Greedy(features=features, seed=1))
    go(ahead, 5)
    pair.fail_over()
    other = dither.Live(url)
    expired(other)
    other.catalogue.add("new", {"x": -9.0, "y": -9.0})
    other.erase(user=1)
    other.replace_shadow(dither.Softmax(features=features, seed=1))
    go(other, 8)
    expired(other)
    ahead.learn()
    go(ahead, 3)
    agrees(ahead)
    assert set(ahead.catalogue.records) == set(other.catalogue.records) == {"a", "b", "c", "new"}
    assert ahead.to_bytes("shadow") == ahead.replay(of="shadow").to_bytes()
    assert isinstance(ahead.shadow.policy, type(dither.Softmax(features=features).policy))


def test_a_replica_is_read_and_not_written(pair):
    """Seen red with FeatureNotSupported, of SQLAlchemy: 'cannot set transaction read-write mode during recovery'."""
    url, rng = pair.url(), np.random.default_rng(2)
    with dither.Live(url, bandit=begin()) as live:
        rounds(live, 3, rng)
        pair.replica.catch_up(pair.primary)
        alone = url.replace("read-write", "any").replace(f"{pair.primary.folder},{pair.replica.folder}", "")
        alone = pair.replica.address() + "&options=" + alone.partition("options=")[2]
        with dither.log.Ledger(alone) as ledger:
            assert len(ledger.read()) == 3
            with pytest.raises(PermissionError, match="a database that is no replica"):
                ledger.reward("a", 1.0)
            assert len(ledger) == 3
        with pytest.raises(PermissionError, match="a database that is no replica"):
            dither.Live(alone)
    pair.fail_over()


def test_a_replica_that_is_waited_for_has_all_that_was_answered(pair):
    """Seen red without the two settings."""
    url, rng = pair.url(), np.random.default_rng(3)
    pair.wait_for_replica()
    live = dither.Live(url, bandit=begin())
    ids = rounds(live, 20, rng)
    before = live.to_bytes()
    pair.fail_over()
    assert live.read().frame["id"].to_list() == ids
    assert live.to_bytes() == live.replay().to_bytes() == before
    rounds(live, 3, rng)
    agrees(live)
