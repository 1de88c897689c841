"""The journal of a log: few files however small the buffer, whatever is torn; forks; slots that keep their ids."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

import dither as library
from dither import log
from dither.bandit.bandit import Decision
from dither.log import storage
from logs import filled

ENV = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}


def write(folder, n, *, first=0, buffer=1, close=True, **settings):
    """n decisions and a reward for each but every third."""
    written = log.Log(folder, buffer=buffer, **settings)
    for i in range(first, first + n):
        d = written.record(Decision(i % 2, 0.5, "exact", None, i / 7), X=[[i, 0.1], [2, 3]], id=str(i), extra={"n": i})
        if i % 3:
            written.reward(d.id, i / 3)
    if close:
        written.close()
    return written


def asked(folder, n):
    """What n decisions of `write` left is all there, in order."""
    read = log.read(folder)
    i = np.arange(n)
    assert list(read.id) == [str(k) for k in i]
    assert_array_equal(read.r, np.where(i % 3, i / 3, np.nan))
    assert_array_equal(read.z, i / 7)
    assert_array_equal(read.X[:, 0, 0], i)
    assert_array_equal(read.column("n"), i)


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != ".writer")


@pytest.mark.parametrize("buffer", [1, 3, 20, 1000])
def test_a_small_buffer_makes_few_files_and_the_log_is_the_same(tmp_path, monkeypatch, buffer):
    monkeypatch.setattr(storage, "PART", 20)
    written = write(tmp_path, 90, buffer=buffer, close=False)
    assert len(names(tmp_path)) <= 2 * (90 // 20 + 1)  # seen red: two files a decision
    if buffer == 1:
        asked(tmp_path, 90)  # all of it before the log is closed
        assert [name.split("-")[0] for name in names(tmp_path)].count("decisions") == 5
    written.close()
    asked(tmp_path, 90)
    assert all(name.endswith(".parquet") for name in names(tmp_path))
    write(tmp_path, 15, first=90, buffer=buffer)
    asked(tmp_path, 105)
    total = [piece.frame for piece in log.batches(tmp_path, rows=7)]
    assert pl.concat(total).equals(log.read(tmp_path).frame)


def test_each_row_is_on_the_disk_before_the_call_returns(tmp_path):
    code = """
import os, sys
from dither import log
from dither import Decision
written = log.Log(sys.argv[1], buffer=1)
for i in range(58):
    d = written.record(Decision(i % 2, 0.5, "exact", None, i / 7), X=[[i, 0.1], [2, 3]], id=str(i), extra={"n": i})
    if i % 3: written.reward(d.id, i / 3)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=ENV, check=False)
    assert done.returncode == -signal.SIGKILL
    asked(tmp_path, 58)
    assert len(names(tmp_path)) == 2
    write(tmp_path, 5, first=58)
    asked(tmp_path, 63)


def test_what_is_torn_is_dropped_and_nothing_before_it(tmp_path):
    """A kill anywhere in the middle of a write: the rows before it are there, and the log goes on."""
    written = write(tmp_path, 4, close=False)
    (path,) = tmp_path.glob("decisions-*.journal")
    whole, ends = path.read_bytes(), []
    at = 0
    while at < len(whole):
        at += 16 + int.from_bytes(whole[at + 4 : at + 12], "little")
        ends.append(at)
    assert ends[-1] == len(whole)
    assert len(ends) == 4
    for cut in [*range(0, len(whole), 61), *ends, *(end + k for end in ends for k in (-1, 1, 11, 12, 13)), len(whole)]:
        path.write_bytes(whole[:cut])
        found = storage.folder_rows(tmp_path, "decisions")
        assert found.rows == sum(end <= cut for end in ends)
        end = min(end for end in [*ends, len(whole)] if end >= min(cut, len(whole)))
        padded = whole[:cut].ljust(end, b"\0")  # as a file system may leave it after the power went
        path.write_bytes(padded)
        assert storage.folder_rows(tmp_path, "decisions").rows == found.rows + (padded == whole[:end] and cut < end)
    path.write_bytes(whole[: ends[2] + 20])
    written._forked()  # its process is gone
    write(tmp_path, 2, first=3)
    asked(tmp_path, 5)
    # seen red: a record read without its checksum


def test_damage_before_the_end_is_an_error(tmp_path):
    written = write(tmp_path, 4, close=False)
    (path,) = tmp_path.glob("decisions-*.journal")
    whole = bytearray(path.read_bytes())
    for at in (1, 9, 14, 200):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(ValueError, match="cannot be read as a log: it is damaged at byte"):
            log.read(tmp_path)
    path.write_bytes(whole)
    written.close()
    asked(tmp_path, 4)


def test_a_kill_between_a_part_and_the_removal_of_its_journal_doubles_nothing(tmp_path, monkeypatch):
    written = write(tmp_path, 9, close=False)
    journals = {path: path.read_bytes() for path in tmp_path.glob("*.journal")}
    written.close()
    assert not list(tmp_path.glob("*.journal"))
    for path, data in journals.items():
        path.write_bytes(data)
    asked(tmp_path, 9)  # seen red: 18 rows, where journals are taken whatever the parts hold
    write(tmp_path, 2, first=9)
    asked(tmp_path, 11)
    assert not list(tmp_path.glob("*.journal"))


def test_a_part_whose_journal_goes_on_without_it_is_missed(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "PART", 4)
    written = write(tmp_path, 6, close=False)
    (part,) = tmp_path.glob("decisions-*.parquet")
    part.rename(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="lacks the decisions from 0 to 3"):
        log.read(tmp_path)
    (tmp_path / "elsewhere").rename(part)
    written.close()


def test_a_failed_part_keeps_the_journal(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "PART", 4)
    written = write(tmp_path, 4, close=False)

    def full(*args):
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "add_part", full)
        with pytest.raises(OSError, match="No space"):
            written.record(Decision(0, 0.5, "exact", None), X=[[4, 0.1], [2, 3]], id="4", extra={"n": 4})
        assert len(written) == 4
        asked(tmp_path, 4)
    d = written.record(Decision(0, 0.5, "exact", None, 4 / 7), X=[[4, 0.1], [2, 3]], id="4", extra={"n": 4})
    written.reward(d.id, 4 / 3)
    asked(tmp_path, 5)
    written.close()
    asked(tmp_path, 5)


def test_readers_see_a_beginning_of_what_is_written(tmp_path, monkeypatch):
    """While parts are made of journals, a reader never misses a row between two that it has."""
    monkeypatch.setattr(storage, "PART", 3)
    stop, seen, failures = threading.Event(), [], []

    def look():
        try:
            while not stop.is_set():
                if any(tmp_path.glob("decisions-*")):
                    rows = storage.folder_rows(tmp_path, "decisions").rows
                    ids = list(log.read(tmp_path).id) if rows else []
                    assert ids == [str(i) for i in range(len(ids))]
                    assert len(ids) >= rows >= (seen[-1] if seen else 0)
                    seen.append(rows)
        except BaseException as failure:
            failures.append(failure)

    reader = threading.Thread(target=look)
    reader.start()
    write(tmp_path, 120)
    stop.set()
    reader.join()
    assert not failures
    assert seen
    assert len(set(seen)) > 3


def test_columns_that_grow_and_columns_that_cannot(tmp_path):
    written = log.Log(tmp_path, features=False, buffer=1)
    made = Decision(0, 1.0, "exact", None)
    for i, value in enumerate([None, 1, 2.5, None]):
        written.record(made, arms=["a"], id=str(i), extra={"v": value})
    with pytest.raises(ValueError, match="two types"):
        written.record(made, arms=["a"], id="x", extra={"v": [1, 2]})
    written.record(made, arms=["a"], id="x", extra={"v": 7})
    written.close()
    assert log.read(tmp_path).frame["v"].to_list() == [None, 1.0, 2.5, None, 7.0]


def test_rules_for_rewards_are_in_the_journal_too(tmp_path):
    written = log.Log(tmp_path, features=False, buffer=1, rewards="last")
    written.record(Decision(0, 1.0, "exact", None), arms=["a"], id="i")
    written.reward("i", 1.0, 5, part="a")
    written.reward("i", 2.0, 3, part="b")
    assert log.read(tmp_path).r.tolist() == [1.0]
    written.close()
    assert log.read(tmp_path).r.tolist() == [1.0]


def test_the_command_reads_a_log_that_is_being_written(tmp_path, dither):
    written = filled(tmp_path / "log", n=30, buffer=1, probabilities=True)
    assert list(tmp_path.glob("log/*.journal"))
    code, out, err = dither("evaluate", tmp_path / "log", "--policy", "uniform", "--interval", "normal")
    assert (code, err) == (0, "")
    assert "30" in out
    written.close()
    whole = dither("evaluate", tmp_path / "log", "--policy", "uniform", "--interval", "normal")[1]
    assert whole == out  # seen red: no log in that folder


# Forks


def test_a_fork_is_refused_and_what_its_parent_recorded_is_not_lost(tmp_path):
    code = """
import os, sys
import dither
from dither import log
where, buffer = sys.argv[1], int(sys.argv[2])
bandit = dither.LinFP(dim=2, seed=0)
X = [[1, 0], [0, 1]]
if buffer > 1: early = os.fork()  # before polars is in use
else: early = None
if early == 0:
    with log.Log(where + "-child", bandit=bandit, buffer=buffer) as own:
        for i in range(5): own.reward(own.decide(X, id=f"c{i}").id, 1.0)
        own.flush()
    os._exit(0)
with log.Log(where, bandit=bandit, buffer=buffer) as written:
    for i in range(3): written.reward(written.decide(X, id=f"b{i}").id, 1.0)
    pid = os.fork()
    if pid == 0:
        said = set()
        for call in (lambda: written.decide(X), lambda: written.record(bandit.choose(X), X=X), written.flush,
                     lambda: written.reward("b0", 2.0), written.read):
            try: call()
            except ValueError as error: said.add(str(error))
        written.close()
        try: log.Log(where + "-late", bandit=bandit); used = "free"
        except RuntimeError as error: used = str(error)
        print(len(said), *said, used, flush=True)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    if early: assert os.waitpid(early, 0)[1] == 0
    for i in range(5): written.reward(written.decide(X, id=f"p{i}").id, 1.0)
    written.flush()
"""
    for buffer in (1, 100):
        where = tmp_path / str(buffer)
        done = subprocess.run(
            [sys.executable, "-c", code, str(where), str(buffer)], env=ENV, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("1 ")
        assert "this is a fork of it" in done.stdout
        assert "a folder of its own" in done.stdout
        assert list(log.read(where).id) == ["b0", "b1", "b2", "p0", "p1", "p2", "p3", "p4"]
        if buffer == 1:
            assert "get_context('spawn')" in done.stdout  # seen red: waits for ever, for the threads of polars
            continue
        assert done.stdout.endswith(" free\n")
        both = log.read([where, f"{where}-child"])
        assert len(both) == 13
        assert np.isfinite(both.r).all()
        assert len(np.unique(both.z)) == 13  # the child drew from streams of its own
        assert both.check().ok
    # seen red: the folder held five, of whoever came last


def test_a_folder_is_free_when_its_owner_has_closed_it_though_a_fork_lives_on(tmp_path):
    code = """
import os, sys
from dither import log
written = log.Log(sys.argv[1])
go, gone = os.pipe()
pid = os.fork()
if pid == 0:
    os.close(gone); os.read(go, 1); os._exit(0)
os.close(go)
written.close()
log.Log(sys.argv[1]).close()
print("free")
os.close(gone); os.waitpid(pid, 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=ENV, capture_output=True, text=True, check=False
    )
    assert done.stdout == "free\n", done.stderr


def test_a_folder_is_free_when_its_owner_was_killed_though_a_fork_lives_on(tmp_path):
    code = """
import os, sys
from dither import log
written = log.Log(sys.argv[1])
pid = os.fork()
if pid == 0:
    print(os.getpid(), flush=True); sys.stdin.readline(); os._exit(0)
os.waitpid(pid, 0)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        child = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
        os.kill(child, 0)  # it lives
        log.Log(tmp_path).close()  # seen red: the child keeps the lock of its parent
        parent.stdin.close()


# Slots


def colours(folder, **settings):
    bandit = library.LinFP(dim=2, disjoint=3, seed=0)
    return log.Log(folder, bandit=bandit, **settings)


@pytest.mark.parametrize("buffer", [1, 1000])
def test_a_slot_keeps_its_id(tmp_path, buffer):
    x, names = [1.0, 0.5], ["red", "green", "blue"]
    written = colours(tmp_path, buffer=buffer)
    written.decide(x, id="0", arms=names, mask=[True, False, True])
    with pytest.raises(ValueError, match=r"slot 0 is 'red' in this log, and arms= calls it 'blue'"):
        written.decide(x, id="1", arms=["blue", "red", "green"])
    assert len(written) == 1
    written.decide(x, id="1", arms=np.array(names))
    written.decide(x, id="2")  # by the ids that the slots have. seen red: ids '0', '1', '2' beside the names
    written.decide([x, x], id=["3", "4"], arms=tuple(names))
    written.close()
    again = colours(tmp_path, buffer=buffer)
    with pytest.raises(ValueError, match=r"slot 1 is 'green' in this log, and arms= calls it 'teal'"):
        again.decide(x, arms=["red", "teal", "blue"])  # seen red: forgotten when the folder was opened again
    again.decide(x, id="5")
    again.close()
    assert log.read(tmp_path).frame["arms"].to_list() == [["red", "blue"], *[names] * 5]


def test_slots_without_names_have_their_positions(tmp_path):
    written, x = colours(None), [1.0, 0.5]
    written.decide(x)
    with pytest.raises(ValueError, match="slot 0 is '0' in this log, and arms= calls it 'red'"):
        written.decide(x, arms=["red", "green", "blue"])
    written.decide(x, arms=[0, 1, 2])
    assert len(written) == 2


def test_a_refused_decision_names_no_slots(tmp_path, monkeypatch):
    written, x = colours(None), [1.0, 0.5]
    with pytest.raises(ValueError, match="extra"):
        written.decide(x, arms=["red", "green", "blue"], extra={"arm": 1})
    written.decide(x, arms=["blue", "red", "green"])
    full = colours(tmp_path, buffer=1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: os.close(-1))
        with pytest.raises(OSError, match="Bad file"):
            full.decide(x, arms=["red", "green", "blue"])
    full.decide(x, arms=["blue", "red", "green"])  # seen red: named by what was taken back
    full.close()
    with pytest.raises(ValueError, match="3 different ids"):
        written.decide(x, arms=["blue", "red"])


def test_another_number_of_slots_is_another_log(tmp_path):
    colours(tmp_path).close()
    with colours(tmp_path) as written:
        written.decide([1.0, 0.5])
    for bandit in (library.LinFP(dim=2, disjoint=4, seed=0), library.LinFP(dim=2, seed=0)):
        with pytest.raises(ValueError, match=r"of 3 disjoint slots, and the bandit has (4|none)"):
            log.Log(tmp_path, bandit=bandit)
    log.Log(tmp_path).close()


def test_arms_that_are_no_slots_come_and_go():
    written = log.Log(bandit=library.LinFP(dim=2, seed=0))
    written.decide([[1, 0], [0, 1]], arms=["a", "b"])
    written.decide([[1, 0], [0, 1], [1, 1]], arms=["c", "a", "b"])
    assert len(written) == 2
