"""A PostgreSQL server that stops and starts while a ledger is open: what it lost, the bandit has not learnt."""

import numpy as np
import pytest

import databases
import dither

X = np.eye(3)


@pytest.fixture
def server():
    """A server of its own, since it is stopped. It writes by itself every ten seconds, and not in between."""
    if databases.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    made = databases.Server("wal_writer_delay=10s")
    yield made
    made.stop()


def live(url, **settings):
    return dither.Live(url, bandit=dither.LinFP(dim=3, floor=0.1, seed=0), **settings)


@pytest.mark.parametrize("wait", [True, False])
def test_a_server_that_is_killed_takes_what_it_lost_from_the_bandit_too(server, wait):
    url = server.url()
    made = live(url, wait=wait)
    kept = made.choose(X).id
    made.reward(kept, 1.0)
    careful = live(url)
    careful.choose(X)  # waits for the disk, and so for all before it
    careful.close()
    lost = [made.choose(X).id for _ in range(3)]
    assert made.reward(lost, [1.0, 0.0, 1.0]) == ["counted"] * 3
    before = made.bandit.observations
    server.restart()
    for _ in range(3):
        try:
            made.reward(kept, 1.0)
        except OSError:
            continue
    made.learn()
    there = int(np.isfinite(made.read().r).sum())
    assert before == 4
    assert 1 <= there <= 4
    assert made.bandit.observations == there
    if wait:
        assert there == 4
    assert made.reward(made.choose(X).id, 1.0) == "counted"
    assert made.replay().to_bytes() == made.to_bytes()
    made.close()
    # seen red: a bandit that goes on with lessons that no ledger has, and writes them into snapshots


def test_a_live_bandit_closes_where_its_server_is_gone(server):
    made = live(server.url())
    made.reward(made.choose(X).id, 1.0)
    server.halt()
    with pytest.raises(OSError, match="could not be"):
        made.close()
    assert made.ledger.closed
    made.close()
    server.start()
    # seen red: it stayed open, with its connections, and raised again
