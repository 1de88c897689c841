"""What fails beside a call: the answer is given, decisions go on, `live.troubles` says it, and later it is mended."""

import logging
import sqlite3
import time
from dataclasses import dataclass

import numpy as np
import pytest
import sqlalchemy as sa

import dither
from dither.live import learner as learners
from dither.log import troubles
from dither.log.database import lessons, sql_tables

X = np.eye(3)
pytestmark = pytest.mark.usefixtures("closing")


def begin(**settings):
    return dither.LinFP(**{"dim": 3, "floor": 0.05, "lam": 1.0, "seed": 0} | settings)


@pytest.fixture
def clock(monkeypatch):
    """Pauses that are over when the test says so, and not before."""
    now = [1000.0]
    monkeypatch.setattr(troubles.time, "monotonic", lambda: now[0])
    return lambda seconds: now.__setitem__(0, now[0] + seconds)


def stands(live):
    """What is said to fail still. Seen red: nothing that says it works again."""
    return [one.what for one in live.status().troubles if one.state == "stands"]


def rows(live):
    with live.ledger.database.reading() as connection:
        return connection.scalar(sa.text("SELECT count(*) FROM dither_decisions"))


# A snapshot for which there is no room


def test_room_for_the_rows_and_not_for_the_snapshot(tmp_path, caplog, monkeypatch):
    caplog.set_level(logging.WARNING, "dither.live")
    monkeypatch.setattr(troubles, "FIRST", 60.0)  # on a slow machine the next try comes before the test has looked
    live = dither.Live(tmp_path / "a.db", bandit=dither.LinFP(dim=200, seed=0, floor=0.1), snapshot_batches=1)
    X, ids = np.random.default_rng(0).normal(size=(2, 200)), []

    def pages(n):
        with live.ledger.holding() as connection:
            live.ledger.database.driver(connection).execute(f"PRAGMA max_page_count={n}").fetchall()

    with live.ledger.database.reading() as connection:
        size = connection.scalar(sa.text("PRAGMA page_count"))
    pages(size + 60)
    for _ in range(8):
        ids.append(live.choose(X).id)
        assert live.reward(ids[-1], 1.0) == "counted"
    assert rows(live) == 8
    assert live.to_bytes() == live.replay().to_bytes()
    assert live.bandit.observations == 8
    assert {one.what for one in live.troubles} == {"snapshot"}
    assert "full" in live.troubles[-1].words
    assert len(live.troubles) == 1  # it is tried again after a pause
    assert [record.name for record in caplog.records] == ["dither.live"] * len(live.troubles)
    pages(1_000_000)
    live._learner._keeping.passed()
    assert stands(live) == ["snapshot"]
    live.reward(live.choose(X).id, 1.0)
    assert stands(live) == []
    with live.ledger.database.reading() as connection:
        assert max(connection.scalars(sa.select(sql_tables.snapshots.c.batch))) == live.batch
    # seen red: `after` whose errors end the calls: 8 of 8 raise, and the rows are there


def test_a_snapshot_that_finds_no_room_at_the_end_is_a_trouble(shared, monkeypatch):
    """Nothing is lost by it, and the next process learns at once.

    Seen red with a `close` that raised, after which the lease was held for an hour.
    """
    live = dither.Live(shared, bandit=begin(), lease_seconds=3600, snapshot_seconds=3600)
    d = live.choose(X)
    live.reward(d.id, 1.0)

    def full(*arguments, **settings):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(lessons, "keep", full)
        live.close()
    assert [one.what for one in live.troubles][-1] == "snapshot"
    again = dither.Live(shared)
    again.learn()
    assert (again.learns, again.bandit.observations) == (True, 1)
    assert again.to_bytes() == again.replay().to_bytes()


# A model that raises


@dataclass(frozen=True)
class Moody(dither.models.Ridge):
    """A model that raises for a reward of 13, as long as it has a fault."""

    fault = None

    def update(self, state, x, r, *more, **settings):
        if Moody.fault is not None and r == 13.0:
            raise Moody.fault
        return super().update(state, x, r, *more, **settings)

    def update_many(self, state, X, r, *more, **settings):
        if Moody.fault is not None:
            raise ValueError("not together")
        return super().update_many(state, X, r, *more, **settings)


@pytest.fixture
def fault():
    yield lambda reason: setattr(Moody, "fault", reason)
    Moody.fault = None


def moody(**settings):
    return dither.Bandit(Moody(lam=1.0), dither.LinFP(dim=3).policy, dim=3, floor=0.1, seed=0, **settings)


@pytest.mark.parametrize("reason", [RuntimeError("no"), TypeError("no"), MemoryError(), KeyError("no"), OSError("no")])
def test_a_model_that_raises_stays_at_the_last_good_batch(tmp_path, fault, clock, reason):
    home, load = tmp_path / "a.db", {"known": (Moody,), "snapshot_seconds": 1e6, "refresh_seconds": 1e6}
    live = dither.Live(home, bandit=moody(), shadow=begin(), **load)
    for _ in range(5):
        live.reward(live.choose(X).id, 1.0)
    fault(reason)
    good = live.to_bytes()
    bad = live.choose(X).id
    assert live.reward(bad, 13.0) == "counted"
    assert "batch 6 is not learnt" in live.troubles[-1].words
    assert "the bandit" in live.troubles[-1].words
    for _ in range(3):
        d = live.choose(X)
        assert d.propensity == pytest.approx(live.replay(5).propensities(X)[d.place], abs=1e-12)
        assert live.reward(d.id, 0.5) == "counted"
    assert len(live.troubles) == 1  # it waits before it tries again
    clock(1.5)
    live.reward(live.choose(X).id, 0.5)
    assert len(live.troubles) == 2
    assert live.to_bytes() == good
    again = dither.Live(home, **load)  # a ledger can always be opened
    assert again.batch == 5
    assert again.to_bytes() == good
    assert "batch 6 is not learnt" in again.troubles[-1].words
    again.choose(X)
    with again.ledger.database.reading() as connection:
        assert set(connection.scalars(sa.select(sql_tables.decisions.c.batch).where(sa.text("number > 6")))) == {5}
    again.close()
    assert stands(live) == ["learning"]
    fault(None)
    live.learn()
    assert (live.bandit.observations, stands(live)) == (10, [])
    for of in ("bandit", "shadow"):
        assert live.to_bytes(of) == live.replay(of=of).to_bytes()
    live.close()
    # seen red: `_learn` without `_stay`: half of the batch is learnt twice; `teach` that lets it pass by: every call
    # raises, and so does the opening


def test_a_model_whose_means_raise_keeps_nobody_from_opening(tmp_path, monkeypatch):
    """Rewards still come in. Seen red with `Bandit()` for what a file holds, which asks the model for two means."""
    home = tmp_path / "a.db"
    with dither.Live(home, bandit=moody(), known=(Moody,)) as live:
        d = live.choose(X)

    def raises(self, state, X):
        raise OSError("the service of the features is away")

    with monkeypatch.context() as away:
        away.setattr(Moody, "mean", raises)
        away.setattr(Moody, "lines", raises, raising=False)
        with dither.Live(home, known=(Moody,)) as live:
            assert live.reward(d.id, 1.0) == "counted"
            with pytest.raises(OSError, match="is away"):
                live.choose(X)
            assert rows(live) == 1
        with pytest.raises(OSError, match="is away"):
            moody()
    with dither.Live(home, known=(Moody,)) as live:
        live.choose(X)
        assert live.to_bytes() == live.replay().to_bytes()


@pytest.mark.parametrize("reason", [ZeroDivisionError("no"), FloatingPointError("no"), np.linalg.LinAlgError("no")])
def test_a_judgement_of_the_numbers_is_a_refusal(home, fault, reason):
    live = dither.Live(home, bandit=moody(), known=(Moody,))
    fault(reason)
    ids = [live.choose(X).id for _ in range(4)]
    live.reward(ids, [1.0, 13.0, 0.0, 1.0])
    assert (live.bandit.observations, live.refused, live.troubles) == (3, 1, [])
    assert live.replay().to_bytes() == live.to_bytes()
    # seen red: ArithmeticError among what stops learning


def test_several_rewards_of_which_a_later_one_stops_the_batch(home, fault):
    """The model refuses the batch, learns one reward of it alone, and then raises something else."""
    live = dither.Live(home, bandit=moody(), known=(Moody,))
    ids, state = [live.choose(X).id for _ in range(2)], live.to_bytes()
    fault(RuntimeError("no"))
    assert live.reward(ids, [1.0, 13.0]) == ["counted"] * 2
    assert live.to_bytes() == state
    fault(None)
    live.learn()
    assert live.bandit.observations == 2
    assert live.replay().to_bytes() == live.to_bytes()
    # seen red: `_learn` without `_stay`: one reward of the batch is learnt, and learnt again


# The part of the learner in a transaction


@pytest.mark.parametrize("step", ["check", "renew", "number", "begin"])
@pytest.mark.parametrize("reason", [RuntimeError("no"), MemoryError(), OSError("no")])
def test_a_learner_that_fails_inside_a_transaction_loses_no_row(home, monkeypatch, clock, step, reason):
    live = dither.Live(home, bandit=begin())
    live.reward(live.choose(X, id="a").id, 1.0)
    monkeypatch.setattr(learners, "SWEEP", 0)

    def raises(*_, **__):
        raise reason

    with monkeypatch.context() as patch:
        patch.setattr(lessons, step, raises)
        live._learner._renewed = -1e9 if step == "renew" else live._learner._renewed
        live.choose(X, id="b")
        assert live.reward("b", 2.0) == "counted"
        assert live.reward("a", 1.0) == "known"
    assert rows(live) == 2
    assert [one.what for one in live.troubles] == ["learning"]
    clock(1.5)
    assert stands(live) == ["learning"]
    assert live.reward(live.choose(X).id, 3.0) == "counted"
    assert (live.bandit.observations, stands(live)) == (3, [])
    assert live.to_bytes() == live.replay().to_bytes()
    # seen red: the part of the teacher not blamed on it: the call raises, and nothing of it is there


def test_what_follows_the_commit_of_others_is_told_to_nobody(home, monkeypatch):
    live = dither.Live(home, bandit=begin(), catalogue=None)
    d = live.choose(X)
    for name in ("follow", "keep", "learn"):
        monkeypatch.setattr(live._learner, name, lambda *_, **__: 1 / 0)
    assert live.erase([d.id]) == 1
    assert {one.what for one in live.troubles} == {"learning", "snapshot"}


# A snapshot that cannot be read


@pytest.mark.parametrize("damage", ["zeros", "short", "newer"])
@pytest.mark.parametrize("which", ["latest", "all"])
def test_an_unreadable_snapshot_is_passed_over(shared, damage, which):
    with dither.Live(shared, bandit=begin(), snapshot_batches=2, snapshot_seconds=1e6) as live:
        for i in range(9):
            live.reward(live.choose(X).id, float(i))
        state = live.to_bytes()
    table = sql_tables.snapshots
    live = dither.Live(shared)
    with live.ledger.holding() as connection:
        kept = connection.execute(sa.select(table.c.batch, table.c.bytes).order_by(table.c.batch)).all()
        for batch, data in kept if which == "all" else kept[-1:]:
            bad = {"zeros": bytes(len(data)), "short": data[: len(data) // 2]}.get(
                damage, data.replace(b'"format": ', b'"format": 9')
            )
            assert bad != data
            connection.execute(sa.update(table).where(table.c.batch == batch).values(bytes=bad))
    live.ledger.close()
    again = dither.Live(shared)
    assert again.to_bytes() == state == again.replay().to_bytes()
    said = [one for one in again.troubles if one.what == "snapshot"]
    assert len(said) == (len(kept) if which == "all" else 1)
    assert f"batch {kept[-1].batch} cannot be read" in said[0].words
    assert stands(again) == []  # another one was taken
    follower = dither.Live(shared, learn=False)
    assert follower.to_bytes() == state
    # seen red: the latest alone, and its error ends the opening


# The clock


def test_a_lease_from_a_clock_that_was_ahead_is_not_valid(tmp_path, monkeypatch):
    home, day = tmp_path / "a.db", 24 * 3600 * 10**9
    real = time.time_ns
    with monkeypatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: real() + day)
        dead = dither.Live(home, bandit=begin(), lease_seconds=30.0)
        dead.learn()
        assert dead.learns
        dead.ledger.close()  # a kill
    live = dither.Live(home, lease_seconds=10.0)
    live.reward(live.choose(X).id, 1.0)
    assert live.learns
    assert live.batch == 1
    # seen red: `expires` compared with now alone


@pytest.mark.parametrize(("left", "taken"), [(29.0, False), (31.0, True)])
def test_a_lease_is_as_long_as_its_holder_says(tmp_path, left, taken):
    """And not as long as that of who looks."""
    holder = dither.Live(tmp_path / "a.db", bandit=begin(), lease_seconds=30.0)
    holder.learn()
    with holder.ledger.holding() as connection:
        ends = holder.ledger.database.now(connection) + int(left * 1e6)
        connection.execute(sa.update(sql_tables.lease).values(expires=ends))
    other = dither.Live(tmp_path / "a.db", lease_seconds=1.0)
    other.learn()
    assert other.learns is taken
    # seen red: the length of who looks: it takes a lease that holds


# Erasing beside a reader


def bytes_of(home):
    """Of the file and its journal."""
    return b"".join(path.read_bytes() for path in home.parent.glob(f"{home.name}*") if not path.name.endswith("-shm"))


def test_what_a_reader_keeps_in_the_journal_is_erased_when_it_is_gone(tmp_path, clock):
    home, secret = tmp_path / "a.db", "a secret that nobody else has"
    live = dither.Live(home, bandit=begin())
    for _ in range(10):
        live.choose(X, extra={"user": secret})
    reader = sqlite3.connect(home)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM dither_decisions").fetchall()
    assert live.erase(user=secret) == 10
    assert [one.what for one in live.troubles] == ["erasing"]
    assert "still in the journal" in live.troubles[-1].words
    assert secret.encode() in bytes_of(home)
    reader.close()
    clock(1.5)
    assert stands(live) == ["erasing"]
    live.choose(X)
    assert secret.encode() not in bytes_of(home)
    assert stands(live) == []
    # seen red: nothing that comes back to it; no word of it


def test_what_a_killed_process_could_not_erase_is_erased_at_the_next_opening(tmp_path):
    home, secret = tmp_path / "a.db", "a secret that nobody else has"
    live, keeper = dither.Live(home, bandit=begin()), dither.Live(home)
    live.choose(X, extra={"user": secret})
    reader = sqlite3.connect(home)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM dither_decisions").fetchall()
    live.erase(user=secret)
    live.ledger.database._unwiped = False  # a kill
    reader.close()
    assert secret.encode() in bytes_of(home)
    with dither.Live(home):
        assert secret.encode() not in bytes_of(home)
    keeper.close()
    # seen red: an opening that does not look


def test_without_readers_nothing_is_left_and_nothing_is_said(tmp_path):
    home, secret = tmp_path / "a.db", "a secret that nobody else has"
    live = dither.Live(home, bandit=begin())
    live.choose(X, extra={"user": secret})
    assert live.erase(user=secret) == 1
    assert secret.encode() not in bytes_of(home)
    assert live.troubles == []
