"""Through PgBouncer in transaction mode: after each transaction the connection may be another client's."""

import threading
import time

import numpy as np
import pytest
import sqlalchemy as sa

import dither
from dither import log

X = np.eye(3)
pytestmark = pytest.mark.usefixtures("closing")


def live(url, **settings):
    return dither.Live(url, bandit=dither.LinFP(dim=3, floor=0.1, lam=1.0, seed=0), **settings)


def test_more_clients_than_connections(pooler):
    """Reads, writes and lessons of four clients on two connections. Seen red with `prepare_threshold=5`, the driver's
    default: 'prepared statement "_pg3_0" already exists'."""
    url, counted, errors = pooler.url(), [], []
    clients = [live(url, wait=i > 0, refresh_seconds=0.05) for i in range(4)]

    def work(one):
        try:
            for i in range(30):
                d = one.choose(X, extra={"user": i})
                counted.append(one.reward(d.id, 1.0))
                if i % 10 == 0:
                    assert len(one.read()) >= 1
                    list(one.pending(3))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(one,)) for one in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert counted == ["counted"] * 120
    assert clients[0].erase(user=7) == 4
    for one in clients:
        one.learn()
    (learner,) = [one for one in clients if one.learns]
    assert learner.bandit.observations == 116
    assert learner.to_bytes() == learner.replay().to_bytes()
    assert len(log.Ledger(url)) == 120


def test_prepared_statements_are_refused_with_the_cure(pooler):
    """Seen red with ProgrammingError, of SQLAlchemy."""
    url = pooler.url() + "&prepare_threshold=1"

    def use():
        clients = [live(url) for _ in range(4)]
        for _ in range(10):
            for one in clients:
                one.reward(one.choose(X).id, 1.0)

    with pytest.raises(OSError, match=r"leave prepare_threshold= out of the URL"):
        use()


def test_nothing_is_left_in_a_session_that_others_use(pooler):
    """Seen red with SET for the session of a process that does not wait: others did not wait either."""
    url = pooler.url()
    for _ in range(3):
        with live(url, wait=False) as one:
            one.reward(one.choose(X).id, 1.0)
            with one.ledger.holding() as connection:
                assert connection.scalar(sa.text("SHOW synchronous_commit")) == "off"
    for _ in range(3):
        with log.Ledger(url) as other:
            with other.holding() as connection:
                names = ("synchronous_commit", "transaction_isolation", "transaction_read_only")
                shown = [connection.scalar(sa.text(f"SHOW {name}")) for name in names]
            assert shown == ["on", "read committed", "off"]
            with other.database.reading() as connection:
                assert connection.scalar(sa.text("SHOW transaction_isolation")) == "repeatable read"
                assert connection.scalar(sa.text("SHOW transaction_read_only")) == "on"


def test_a_connection_that_the_pooler_has_closed(pooler):
    """It closes idle clients. Seen red with a writer that is not looked at: 'client_idle_timeout'."""
    url = pooler.url()
    one, two = live(url), live(url)
    one.reward(one.choose(X).id, 1.0)
    two.reward(two.choose(X).id, 1.0)
    until = time.monotonic() + 30
    while one.ledger.database._alive(one.ledger.database.driver(one.ledger.database._writer)):
        assert time.monotonic() < until
        time.sleep(0.2)
    assert one.reward(one.choose(X).id, 1.0) == "counted"
    assert two.reward(two.choose(X).id, 1.0) == "counted"
    assert one.to_bytes() == one.replay().to_bytes()
