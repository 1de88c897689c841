"""A database that refuses: what was answered stays, nothing else is there, the error names the cure, and it goes on."""

import os
import subprocess
import threading
import time

import numpy as np
import pytest
import sqlalchemy as sa

import dither
from dither import log
from dither.log.database import committing, refusals
from dither.log.database import home as homes
from ledgers import decision, features

pytestmark = pytest.mark.usefixtures("closing")
X = np.eye(3)


def counts(url):
    """Rewards that count, by id."""
    with homes.Home(url).reading() as connection:
        text = (
            "SELECT d.id, r.reward FROM dither_rewards r JOIN dither_decisions d ON d.number = r.decision ORDER BY seq"
        )
        return [tuple(row) for row in connection.execute(sa.text(text))]


def crossing(url):
    """A connection that holds decision b, and will wait for a; it is not the one that a deadlock ends."""
    import psycopg

    connection = psycopg.connect(url)
    connection.execute("SET deadlock_timeout = '1h'")
    connection.execute("SELECT 1 FROM dither_decisions WHERE id = 'b' FOR UPDATE")
    return connection


def test_a_deadlock_is_tried_again(postgres, monkeypatch):
    url = postgres.url()
    live = dither.Live(url, bandit=dither.LinFP(dim=3, lam=1.0, seed=0))
    for id in ("a", "b"):
        live.choose(X, id=id)
    tries, whole = [], committing.Committer._transaction
    monkeypatch.setattr(committing.Committer, "_transaction", lambda self, *r: (tries.append(1), whole(self, *r))[1])
    other, said = crossing(url), []
    thread = threading.Thread(target=lambda: said.append(live.reward(["a", "b"], [1.0, 2.0])))
    thread.start()
    watch = homes.Home(url)
    until = time.monotonic() + 30
    while time.monotonic() < until:  # until the reward waits for b
        with watch.reading() as connection:
            if connection.scalar(sa.text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")):
                break
    other.execute("SELECT 1 FROM dither_decisions WHERE id = 'a' FOR UPDATE")  # returns when the reward has been ended
    other.rollback()
    other.close()
    thread.join()
    assert said == [["counted", "counted"]]
    assert len(tries) == 2
    assert counts(url) == [("a", 1.0), ("b", 2.0)]
    assert live.bandit.observations == 2
    assert live.to_bytes() == live.replay().to_bytes()
    # seen red: one try: OSError


def test_what_always_crosses_is_refused(postgres, monkeypatch):
    url = postgres.url()
    live = dither.Live(url, bandit=dither.LinFP(dim=3, lam=1.0, seed=0))
    live.choose(X, id="a")
    live.reward(live.choose(X, id="b").id, 1.0)
    before, tries = live.to_bytes(), []

    def crossed(connection, *_):
        tries.append(1)
        connection.execute(sa.text("DO $$ BEGIN RAISE EXCEPTION USING errcode = '40001'; END $$"))

    with monkeypatch.context() as patch:
        patch.setattr(committing.rewarding, "insert", crossed)
        with pytest.raises(OSError, match=r"another transaction stood in the way.*nothing of the call.*Call again"):
            live.reward("a", 5.0)
    assert len(tries) == committing.TRIES
    assert live.to_bytes() == before
    assert counts(url) == [("b", 1.0)]
    assert live.reward("a", 5.0) == "counted"
    assert live.to_bytes() == live.replay().to_bytes() != before
    # seen red: a retry without end


def test_writes_are_read_committed_whatever_the_server_says(postgres):
    made = log.Ledger(postgres.url().replace("&options=", "&options=-cdefault_transaction_isolation%3Dserializable%20"))
    with made.holding() as connection:
        assert connection.scalar(sa.text("SHOW transaction_isolation")) == "read committed"
    # seen red: a connection that takes what the server has


@pytest.fixture
def small(postgres, tmp_path):
    """A home in PostgreSQL whose tables have 6 MiB of disk, and what gives them more."""
    import psycopg

    place = tmp_path / "small"
    place.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=6m,mode=0700", "tmpfs", str(place)]
    if os.getuid() or subprocess.run(mounted, capture_output=True, check=False).returncode:
        pytest.skip("a small disk needs the right to mount one")
    try:
        if os.getuid() == 0:
            subprocess.run(["chown", "postgres", place], check=True)
            for one in list(place.parents)[:-2]:  # the server must reach it
                one.chmod(one.stat().st_mode | 0o011)
        url = postgres.url()
        name = "small_" + url.rpartition("ledger_")[2]
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE TABLESPACE {name} LOCATION '{place}'")
        yield (
            f"{url}%20-cdefault_tablespace%3D{name}",
            lambda: subprocess.run(["mount", "-o", "remount,size=200m", place], check=True),
        )
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {url.rpartition('%3D')[2]} CASCADE")
            connection.execute(f"DROP TABLESPACE {name}")
    finally:
        subprocess.run(["umount", place], check=True)


def filled(live, d, mend):
    """Fill the disk, see the error, give room; what was answered is there, and it goes on."""
    rng, answered, rewarded = np.random.default_rng(0), [], {}

    def fill():
        for i in range(5000):
            live.choose(rng.normal(size=(40, d)), id=f"d{i}")
            answered.append(f"d{i}")
            if i % 2:
                live.reward(f"d{i}", float(i))
                rewarded[f"d{i}"] = float(i)

    with pytest.raises(OSError, match=r"could not be written.*nothing of the call.*with room, and call again"):
        fill()
    assert 2 <= len(answered) < 5000
    assert [row["id"] for row in live.read().frame.iter_rows(named=True)] == answered
    before = live.to_bytes()
    assert before == live.replay().to_bytes()
    assert live.bandit.observations == len(rewarded)
    mend()
    assert live.choose(rng.normal(size=(40, d)), id=f"d{len(answered)}").id == f"d{len(answered)}"
    assert live.reward(answered[0], 0.5) == "counted"
    frame = live.read().frame.drop_nulls("reward")
    assert dict(zip(frame["id"], frame["reward"], strict=True)) == rewarded | {answered[0]: 0.5}
    assert live.to_bytes() == live.replay().to_bytes() != before
    live.close()


def test_a_full_disk_of_postgres_takes_nothing_that_was_answered(small):
    url, mend = small
    filled(dither.Live(url, bandit=dither.LinFP(dim=30, lam=1.0, seed=0)), 30, mend)


@pytest.mark.parametrize("kind", [None, "file"])
def test_a_full_file_takes_nothing_that_was_answered(tmp_path, kind):
    live = dither.Live(kind and tmp_path / "a.db", bandit=dither.LinFP(dim=30, lam=1.0, seed=0))

    def pages(n):
        with live.ledger.holding() as connection:
            live.ledger.database.driver(connection).execute(f"PRAGMA max_page_count={n}").fetchall()

    pages(200)
    filled(live, 30, lambda: pages(1_000_000))


def test_a_disk_that_is_full_where_the_file_lives(tmp_path):
    """Also the journal has no room then."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)]
    if os.getuid() or subprocess.run(mounted, capture_output=True, check=False).returncode:
        pytest.skip("a small disk needs the right to mount one")
    try:
        live = dither.Live(place / "a.db", bandit=dither.LinFP(dim=30, lam=1.0, seed=0))
        filled(live, 30, lambda: subprocess.run(["mount", "-o", "remount,size=200m", place], check=True))
        made = log.Ledger(place / "a.db")
        made.record(decision(), X=features(0), id="later")
        made.close()
    finally:
        subprocess.run(["umount", place], check=True)


def test_what_is_committed_is_not_tried_again(tmp_path, monkeypatch):
    """Where the snapshot that follows the commit crosses another transaction, the rows are there already."""
    live = dither.Live(tmp_path / "a.db", bandit=dither.LinFP(dim=3, lam=1.0, seed=0))
    live.choose(X, id="a")

    def crossed():
        raise refusals.Crossed("crossed")

    with monkeypatch.context() as patch:
        patch.setattr(live._learner, "after", crossed)
        live._learner.due = 0.0  # it takes part in the next transaction
        live.choose(X, id="b")
    assert "crossed" in live.troubles[-1].words
    assert live.read().frame["id"].to_list() == ["a", "b"]
    # seen red: what follows the commit inside the tries: "id 'b' was given to a decision before"
