"""A ledger in a file: whatever name leads to it, and wherever its processes come from, what it answered is there."""

import os
import subprocess
import sys

import pytest

from dither import log
from dither.log.database import journal
from ledgers import decision, features

pytestmark = pytest.mark.usefixtures("closing")
ENVIRONMENT = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1", "PATH": os.environ["PATH"]}


@pytest.fixture
def synced(monkeypatch):
    """The files that were synced, by their numbers."""
    seen, whole = [], journal._sync
    monkeypatch.setattr(journal, "_sync", lambda handle: (seen.append(os.fstat(handle).st_ino), whole(handle)))
    return seen


def inode(path):
    return os.stat(path).st_ino


def test_the_journal_is_synced_beside_the_file_that_a_link_leads_to(tmp_path, synced):
    (tmp_path / "data").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "data" / "a.db")
    made = log.Ledger(tmp_path / "link.db")
    made.record(decision(), X=features(0), id="a")
    assert synced[-1] == inode(tmp_path / "data" / "a.db-wal")
    assert log.Ledger(tmp_path / "data" / "a.db").reward("a", 1.0) == "counted"
    assert made.reward("a", 1.0) == "known"
    # seen red: the journal beside the link: there is none, and nothing was synced


def test_a_relative_name_is_that_of_the_moment_when_the_ledger_was_opened(tmp_path, monkeypatch, synced):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    made = log.Ledger("a.db")
    monkeypatch.chdir(tmp_path / "elsewhere")
    made.record(decision(), X=features(0), id="a")
    assert synced[-1] == inode(tmp_path / "a.db-wal")
    if (child := os.fork()) == 0:  # it opens connections of its own
        os._exit(0 if made.reward("a", 1.0) == "counted" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert made.reward("a", 1.0) == "known"
    assert os.listdir(tmp_path / "elsewhere") == []
    # seen red: the name as it was given: no sync, and a file of the child in the other folder


@pytest.mark.parametrize("name", ["a?b.db", "100%41.db", "x#y.db", "file:z.db", "ü ☃.db", "a;b&mode=ro.db"])
def test_a_file_may_have_any_name(tmp_path, name):
    with log.Ledger(tmp_path / name) as made:
        made.record(decision(), X=features(0), id="a")
    assert os.listdir(tmp_path) == [name]
    assert log.Ledger(tmp_path / name).reward("a", 1.0) == "counted"
    # seen red: the name as a part of a URL: 100%41.db was 100A.db


def test_the_name_that_sqlite_has_for_memory_is_no_file():
    with pytest.raises(ValueError, match=r"Ledger\(None\)"):
        log.Ledger(":memory:")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
@pytest.mark.parametrize("reading", [False, True])
def test_what_a_child_records_stays_when_its_parent_closes(tmp_path, reading):
    """A child that inherited a connection had no lock, and the parent removed the journal that the child wrote to."""
    code = """
import gc, os, sys, threading
from dither import log
from ledgers import decision
made = log.Ledger(sys.argv[1])
made.record(decision(), id="parent", mask=[True, True])
if sys.argv[2] == "True":  # a thread reads at the moment of the fork
    inside, stop = threading.Event(), threading.Event()
    def read():
        with made.database.reading():
            inside.set()
            stop.wait(0.2)
    thread = threading.Thread(target=read)
    thread.start()
    inside.wait()
closed, told = os.pipe()
if (child := os.fork()) == 0:
    made.record(decision(), id="first", mask=[True, True])
    os.read(closed, 1)
    made.record(decision(), id="second", mask=[True, True])
    os._exit(0)
if sys.argv[2] == "True":
    thread.join()
    gc.collect()
made.close()
os.write(told, b"x")
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "a.db"), str(reading)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["0"], done.stderr
    assert log.Ledger(tmp_path / "a.db").read().id.tolist() == ["parent", "first", "second"]
    # seen red: connections that stay open in a fork, or those of readers alone: "second" was answered, and is lost


def test_a_journal_that_is_removed_is_noticed_before_anything_is_answered(tmp_path):
    made = log.Ledger(tmp_path / "a.db")
    made.record(decision(), X=features(0), id="a")
    os.rename(tmp_path / "a.db-wal", tmp_path / "away")
    with pytest.raises(OSError, match=r"a\.db-wal was removed or replaced.*nothing of the call is there"):
        made.record(decision(), X=features(1), id="b")
    # seen red: a journal that is not there counted as synced


def test_the_journal_is_open_before_the_first_commit_and_stays_open(tmp_path, monkeypatch):
    """The system tells an error of writing to handles that were open then; a later one may not be told."""
    handles, at, whole, commit = [], [], journal._sync, journal.Journal.wrote
    monkeypatch.setattr(journal, "_sync", lambda handle: (handles.append(handle), whole(handle)))
    monkeypatch.setattr(journal.Journal, "wrote", lambda self: (at.append(self._handle), commit(self))[1])
    made = log.Ledger(tmp_path / "a.db")
    for i in range(3):
        made.record(decision(), X=features(i), id=f"d{i}")
    assert len(set(handles)) == 1
    assert at == handles
    # seen red: a handle for each sync


def test_a_timer_that_could_not_sync_is_heard_of(tmp_path, monkeypatch):
    made = log.Ledger(tmp_path / "a.db", wait=False, flush_seconds=1e6)
    made.record(decision(), X=features(0), id="a")

    def broken(handle):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(journal, "_sync", broken)
        with pytest.raises(OSError, match="Input/output error"):
            made.database.sync()
    for call in (lambda: made.reward("a", 1.0), made.flush, made.close):
        with pytest.raises(OSError, match="could not be synced"):
            call()
    # seen red: a second sync, which the system grants, taken for the first
