"""A ledger that is exported again and again: only what changed is written, and a reader sees the old log or the new."""

import multiprocessing
import sqlite3
import threading

import numpy as np
import polars as pl
import pytest

import dither
from dither import log
from dither.log import archive, storage
from dither.log.database import fetching
from longer import size

X = np.eye(2)
DAY = 86_400
pytestmark = pytest.mark.usefixtures("closing")


def shown(a=0):
    return dither.Decision(a, 0.5, "exact", None, None)


def filled(home, days=3, each=10, **settings):
    made = log.Ledger(home, **settings)
    for day in range(days):
        for i in range(each):
            made.record(shown(), X=X, id=f"{day}-{i}", time=day * DAY + i, extra={"user": i})
    return made


def written(folder):
    """When each day took its place."""
    return {path.name: path.stat().st_ino for path in storage.days(folder)}


def changed(ledger, folder):
    """The days that an export writes anew; what is read is the ledger."""
    before = written(folder) if folder.exists() else {}
    everything = ledger.export(folder)
    after = written(folder)
    assert sorted(path.name for path in everything) == sorted(after)
    mine, theirs = (
        rows.frame.with_columns(was_erased=pl.Series(rows.erased)).sort("id")
        for rows in (ledger.read(), log.read(folder))
    )
    assert mine.select(sorted(mine.columns)).equals(theirs.select(sorted(mine.columns)))
    return [day for day in after if after[day] != before.get(day)]


def test_an_export_writes_the_days_that_have_changed(home, tmp_path):
    made, folder = filled(home, horizon=DAY * 365, default=0.0), tmp_path / "days"
    assert changed(made, folder) == ["1970-01-01", "1970-01-02", "1970-01-03"]
    assert changed(made, folder) == []
    made.reward("1-3", 1.0)  # a reward that comes later, for an old row
    assert changed(made, folder) == ["1970-01-02"]
    made.reward("1-3", 0.0)  # a conflict is kept
    assert changed(made, folder) == ["1970-01-02"]
    made.record(shown(), X=X, time=DAY * 3 - 1)
    assert changed(made, folder) == ["1970-01-03"]
    made.record(shown(), X=X, time=-1)
    assert changed(made, folder) == ["1969-12-31"]
    made.erase(["0-1", "2-1"])
    assert changed(made, folder) == ["1970-01-01", "1970-01-03"]
    made.erase(["1-3"])
    assert changed(made, folder) == ["1970-01-02"]
    made.change(reward_range=(0, 1))
    assert changed(made, folder) == []
    made.record(shown(), X=X, time=5 * DAY)
    assert changed(made, folder) == ["1970-01-06"]
    (folder / "1970-01-06").rename(tmp_path / "away")
    assert changed(made, folder) == ["1970-01-06"]
    made.expire(DAY * 366 - 1)
    assert changed(made, folder) == ["1969-12-31", "1970-01-01"]


def copied(a, b):
    with sqlite3.connect(a) as here, sqlite3.connect(b) as there:
        here.backup(there)
    here.close()
    there.close()


def test_a_restored_ledger_is_exported_as_it_is_now(tmp_path):
    """Other rows with the same ids, times and counts, on a day that was exported before the backup was put back.

    Seen red with days that were compared by counts and times alone.
    """
    home, backup, folder = tmp_path / "a.db", tmp_path / "b.db", tmp_path / "days"
    made = filled(home)
    made.reward("1-1", 1.0, DAY)
    copied(home, backup)
    for X_then, arm, r, corrected in (
        (X, 0, 1.0, "1-1"),
        (X + 1, 0, 1.0, "1-1"),
        (X, 1, 2.0, "1-1"),
        (X, 1, 2.0, "2-4"),
    ):
        copied(backup, home)
        made.record(shown(arm), X=X_then, id="new", time=DAY)
        made.reward("2-4", r, 2 * DAY)
        made.correct(corrected, 7.0, time=2 * DAY)
        assert changed(made, folder) == ["1970-01-01", "1970-01-02", "1970-01-03"]
        assert changed(made, folder) == []


def test_days_that_the_ledger_has_not_are_left_alone(tmp_path):
    """A folder of another ledger, or of a later moment, would be read as if it were one log.

    Seen red with the days of both in one folder.
    """
    folder = tmp_path / "days"
    made = filled(None)
    changed(made, folder)
    before = written(folder)
    with pytest.raises(ValueError, match=r"has '1970-01-02', '1970-01-03', and the ledger has no decision of these"):
        filled(None, days=1).export(folder)
    assert written(folder) == before
    other = filled(None)
    assert changed(other, folder) == ["1970-01-01", "1970-01-02", "1970-01-03"]


def read_on(folder, begun, end, out):
    """Read until it is over, and once more; what was read, or the error. All begin when each has read once."""
    seen, over = set(), False
    while not over:
        over = end.is_set()
        try:
            rows = log.read(folder)
            seen.add((len(rows), float(np.nansum(rows.r))))
        except Exception as error:
            seen.add(repr(error))
        if begun is not None:
            begun.wait(60)
            begun = None
    out.put(seen)


def test_who_reads_sees_the_old_log_or_the_new(tmp_path):
    folder, context = tmp_path / "days", multiprocessing.get_context("spawn")
    made = filled(None, days=4)
    made.export(folder)
    begun, end, out = context.Barrier(3), context.Event(), context.Queue()
    readers = [context.Process(target=read_on, args=(folder, begun, end, out), daemon=True) for _ in range(2)]
    for reader in readers:
        reader.start()
    begun.wait(60)
    allowed, rewards = {(40, 0.0)}, 0
    for n in range(size(12, longer=40)):
        for day in range(4):
            made.record(shown(), X=X, id=f"n{n}-{day}", time=day * DAY + 100 + n)
            made.reward(f"n{n}-{day}", 1.0)
            rewards += 1
        made.export(folder)
        allowed.add((40 + rewards, float(rewards)))
    end.set()
    for _ in readers:
        seen = out.get(timeout=60)
        assert seen <= allowed, seen - allowed
        assert len(seen) > 1
    for reader in readers:
        reader.join()


def test_an_export_that_was_killed_is_told_of_and_mended_by_the_next(tmp_path, monkeypatch):
    folder, made = tmp_path / "days", filled(None)
    made.export(folder)
    for day in range(3):
        made.reward(f"{day}-0", 1.0)
    real = storage.put_edition

    def killed(where, edition):
        if not edition.busy:
            raise KeyboardInterrupt
        real(where, edition)

    with monkeypatch.context() as then:
        then.setattr(storage, "put_edition", killed)
        with pytest.raises(KeyboardInterrupt):
            made.export(folder)
    monkeypatch.setattr(storage, "PATIENCE", 0.01)
    for call in (
        log.read,
        lambda where: list(log.batches(where)),
        log.Ledger(None).take_over,
        lambda w: log.read(w / "1970-01-01"),
    ):
        with pytest.raises(ValueError, match="was interrupted, so days of it may be missing: export again"):
            call(folder)
    made.export(folder)
    assert np.nansum(log.read(folder).r) == 3.0
    assert not list(folder.glob(".*.old"))


def test_batches_of_a_log_that_is_exported_meanwhile_end_with_an_error(tmp_path):
    folder, made = tmp_path / "days", filled(None)
    made.export(folder)
    pieces = log.batches(folder, rows=10)
    assert len(next(pieces)) == 10
    made.reward("2-0", 1.0)
    made.export(folder)
    with pytest.raises(ValueError, match="was exported again while it was read: read it again"):
        list(pieces)


def test_one_export_at_a_time(tmp_path, monkeypatch):
    folder, made = tmp_path / "days", filled(None)
    write, begun, go = archive._write, threading.Event(), threading.Event()

    def slowly(*arguments):
        begun.set()
        go.wait(30)
        return write(*arguments)

    monkeypatch.setattr(archive, "_write", slowly)
    thread = threading.Thread(target=made.export, args=(folder,))
    thread.start()
    begun.wait(30)
    try:
        with pytest.raises(ValueError, match="writes into"):
            made.export(folder)
    finally:
        go.set()
        thread.join()
    assert len(log.read(folder)) == 30


# Spans of time


@pytest.mark.parametrize(
    ("since", "until", "rows"),
    [
        (None, None, 30),
        (DAY, None, 20),
        (None, DAY, 10),
        (DAY + 3, 2 * DAY + 1, 8),
        ("1970-01-02", "1970-01-03T00:00:05", 15),
        (DAY + 3.5, DAY + 3.6, 0),
        (10 * DAY, None, 0),
    ],
)
def test_a_span_of_time_is_read_with_all_rewards_of_its_decisions(home, tmp_path, since, until, rows):
    made = filled(home)
    for day in range(3):
        made.reward(f"{day}-4", day + 1.0, time=50 * DAY)
    made.export(tmp_path / "days")
    whole = made.read()
    whole.write(tmp_path / "all.parquet")
    at = whole.seconds
    low, high = (
        d if d is None or isinstance(d, (int, float)) else {"1970-01-02": DAY}.get(d, 2 * DAY + 5)
        for d in (since, until)
    )
    inside = (at >= (-np.inf if low is None else low)) & (at < (np.inf if high is None else high))
    assert inside.sum() == rows
    wanted = whole.filter(inside).frame
    for read in (
        made.read,
        lambda **span: log.read(tmp_path / "days", **span),
        lambda **span: log.read(tmp_path / "all.parquet", **span),
    ):
        if not rows:
            with pytest.raises(ValueError, match="no decisions in this span of time"):
                read(since=since, until=until)
            continue
        frame = read(since=since, until=until).frame
        assert frame.select(sorted(wanted.columns)).equals(wanted.select(sorted(wanted.columns)))


def test_a_span_begins_before_it_ends():
    with pytest.raises(ValueError, match="since must be before until"):
        filled(None).read(since=5, until=5)
    with pytest.raises(ValueError, match="time must be"):
        filled(None).read(since="yesterday")


def test_other_days_are_not_opened(tmp_path, monkeypatch):
    filled(None).export(tmp_path)
    (path,) = (tmp_path / "1970-01-01").glob("decisions-*")
    path.write_bytes(b"not a file of a log")
    assert len(log.read(tmp_path, since=DAY)) == 20
    with pytest.raises(ValueError, match="cannot be read as a log"):
        log.read(tmp_path, since=0)


def test_a_span_costs_what_its_rows_cost(shared, tmp_path, monkeypatch):
    """Rows that leave the database, and the way that it takes to them; of 60 days two are wanted."""
    made = filled(shared, days=60, each=5)
    made.reward([f"{day}-0" for day in range(60)], [1.0] * 60, time=70 * DAY)
    fetched, asked, whole = [], [], fetching.rows

    def counted(connection, home, statement):
        asked.append(home.text(statement))
        for part in whole(connection, home, statement):
            fetched.append(len(part))
            yield part

    monkeypatch.setattr(fetching, "rows", counted)
    assert len(made.read(since=10 * DAY, until=12 * DAY)) == 10
    assert sum(fetched) == 12
    if not made.database.postgres:
        with made.database.reading() as connection:
            for statement in asked:
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}").all()
                assert any("dither_decisions USING" in row[-1] and "INDEX dither_times" in row[-1] for row in plan), (
                    plan
                )
                assert not any(row[-1].startswith("SCAN") for row in plan), plan
    made.export(tmp_path / "days")
    made.record(shown(), X=X, time=11 * DAY)
    del fetched[:]
    made.export(tmp_path / "days")
    assert sum(fetched) == 6 + 1  # of one day


# After an outage


def test_rewards_that_waited_in_a_queue_are_not_zeros(home):
    """A click at 6 waits in a queue until 100. The horizon is 10."""
    made = log.Ledger(home, horizon=10, default=0.0)
    for id, at in (("a", 0), ("b", 0), ("c", 1)):
        made.record(shown(), X=X, id=id, time=at)
    queue = [("a", 1.0, 6), ("c", 1.0, 11)]
    assert made.expire(100, before=5) == 0  # nothing is known of what came after 5
    for id, r, came in queue[:1]:
        assert made.reward(id, r, time=came) == "counted"
    assert made.expire(100, before=6) == 0
    assert made.expire(100, before=10) == 0  # at 10 a reward may still come that is not late
    assert made.expire(100, before=10.5) == 1
    for id, r, came in queue[1:]:
        assert made.reward(id, r, time=came) == "counted"
    assert made.expire(5, before=100) == 0  # a time ahead of now closes what has passed by now
    assert made.expire(100, before=100) == 0
    assert made.read().r.tolist() == [1.0, 0.0, 1.0]
