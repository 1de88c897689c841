"""What a ledger in a file has answered is on the disk, though commits do not wait for each other's syncs."""

import shutil
import sqlite3
import threading
import time

import numpy as np
import pytest

from dither import log
from dither.log.database import journal
from ledgers import decision, features, moment

pytestmark = pytest.mark.usefixtures("closing")


def rewards(file):
    """The rewards that count in a file of a ledger, by id of their decisions; None where there is none yet."""
    with sqlite3.connect(file) as connection:
        found = connection.execute(
            "SELECT d.id, r.reward FROM dither_decisions d LEFT JOIN dither_rewards r ON r.decision = d.number"
        ).fetchall()
    connection.close()
    return dict(found)


@pytest.mark.parametrize("pages", [3, 1000])  # in the journal, before they are moved into the file
def test_a_power_cut_takes_nothing_that_was_answered(tmp_path, monkeypatch, pages):
    """Of what the system holds, the disk has what was there when the last sync began."""
    file, disk = tmp_path / "a.db", tmp_path / "disk"
    whole = journal._sync

    def sync(handle):
        shutil.rmtree(disk, ignore_errors=True)
        disk.mkdir()
        for one in (file, tmp_path / "a.db-wal"):
            shutil.copy(one, disk / one.name)
        whole(handle)

    monkeypatch.setattr(journal, "_sync", sync)
    made = log.Ledger(file)
    with made.holding() as connection:
        made.database.driver(connection).execute(f"PRAGMA wal_autocheckpoint={pages}")
    expected = {}
    for i in range(25):
        made.record(decision(), X=features(i), id=f"d{i}", time=moment(i))
        expected[f"d{i}"] = None
        assert rewards(disk / "a.db") == expected
        if i % 2:
            assert made.reward(f"d{i - 1}", float(i)) == "counted"
            expected[f"d{i - 1}"] = float(i)
            assert rewards(disk / "a.db") == expected
    made.erase(["d0"])
    assert rewards(disk / "a.db") == expected | {"d0": None}
    # seen red: `reach` that returns at once; `reward` without it


def test_one_sync_serves_all_that_committed_before_it_began(tmp_path, monkeypatch):
    made, n = log.Ledger(tmp_path / "a.db"), 12
    begun, covered, late, whole = [], set(), [], journal._sync

    def sync(handle):
        begun.append(1)
        seen, until = set(rewards(tmp_path / "a.db")), time.monotonic() + 10
        while len(begun) == 1 and len(rewards(tmp_path / "a.db")) < n:  # the others can commit meanwhile
            assert time.monotonic() < until, "the others wait for the sync before they commit"
            time.sleep(0.001)
        whole(handle)
        covered.update(seen)

    def call(i):
        made.record(decision(), X=features(i), id=f"d{i}")
        if f"d{i}" not in covered:
            late.append(i)

    monkeypatch.setattr(journal, "_sync", sync)
    threads = [threading.Thread(target=call, args=(i,)) for i in range(n)]
    threads[0].start()
    while not begun:
        time.sleep(0.001)
    for one in threads[1:]:
        one.start()
    for one in threads:
        one.join()
    assert late == []
    assert len(covered) == n
    assert len(begun) == 2
    # seen red: a sync while the turn is held; a sync that says it covers what was committed while it ran


def test_known_waits_for_the_disk_too(tmp_path, monkeypatch):
    """The one that counts may be another process's, which has not synced it yet."""
    careless, careful = log.Ledger(tmp_path / "a.db", wait=False, flush_seconds=1e6), log.Ledger(tmp_path / "a.db")
    careless.record(decision(), X=features(0), id="a")
    careless.reward("a", 1.0)
    synced, whole = [], journal._sync
    monkeypatch.setattr(journal, "_sync", lambda handle: (synced.append(1), whole(handle)))
    assert careful.reward("a", 1.0) == "known"
    assert len(synced) == 1
    # seen red: a transaction that is not counted where it wrote no row


def test_a_disk_that_refuses_a_sync_ends_the_ledger(tmp_path, monkeypatch):
    made = log.Ledger(tmp_path / "a.db")
    made.record(decision(), X=features(0), id="a")

    def broken(handle):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(journal, "_sync", broken)
        with pytest.raises(OSError, match=r"could not be synced.*Input/output error.*in the ledger, but a power cut"):
            made.reward("a", 1.0)
    with pytest.raises(OSError, match="could not be synced"):  # the system may have forgotten what it could not write
        made.record(decision(), X=features(1), id="b")
    again = log.Ledger(tmp_path / "a.db")
    assert again.reward("a", 1.0) == "known"
    assert np.array_equal(again.read().frame["reward"].drop_nulls(), [1.0])
    # seen red: a ledger that goes on after the error
