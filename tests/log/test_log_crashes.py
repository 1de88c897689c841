"""The decision log when something fails, when two want it at once, and when it is large."""

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import dither
from dither import log
from dither.bandit.bandit import Decision
from dither.base import files
from dither.log import schema, storage
from logs import NOON, filled


def resident():
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# Crashes, and several at once


@pytest.mark.parametrize("part", [1, 1000])  # each row a part, or a record of a journal
@pytest.mark.parametrize("what", ["decide", "reward"])
def test_a_write_that_fails_takes_its_row_back(tmp_path, monkeypatch, what, part):
    monkeypatch.setattr(storage, "PART", part)
    written = filled(tmp_path, n=4, buffer=1)
    X = [[1.0, 0, 0]]
    written.decide(X, id="late", extra={"user": "u"})
    before = {path: path.read_bytes() for path in tmp_path.glob("*-0*")}
    assert len(before) == (9 if part == 1 else 2)

    def full(path, write, **settings):
        with path.with_name(".half.part").open("wb") as file:
            file.write(b"PAR1 half")
        raise OSError("No space left on device")

    def half(handle, data, at):
        if at == before_end:
            return whole(handle, data[: len(data) // 2], at)
        raise OSError("No space left on device")

    whole, before_end = os.pwrite, written._disk["decisions" if what == "decide" else "rewards"]._end
    with monkeypatch.context() as patch:
        patch.setattr(files, "replace", full)
        patch.setattr(os, "pwrite", half)
        with pytest.raises(OSError, match="No space"):
            written.decide(X, id="new", extra={"user": "u"}) if what == "decide" else written.reward("late", 1.0)
    assert before == {path: path.read_bytes() for path in tmp_path.glob("*-0*")}
    assert len(log.read(tmp_path)) == 5
    if what == "decide":
        assert written.decide(X, id="new", extra={"user": "u"}).id == "new"  # once there is room
    else:
        assert written.reward("late", 2.0) == "counted"
    written.close()
    assert len(log.read(tmp_path)) == 5 + (what == "decide")
    # seen red: the row left in the buffer: the id was taken


def test_a_kill_loses_at_most_the_buffer(tmp_path):
    code = """
import sys, os
import dither
from dither import log
written = log.Log(sys.argv[1], bandit=dither.LinFP(dim=2, seed=0), buffer=10)
for i in range(1000):
    d = written.decide([[1, 0], [0, 1]], id=str(i))
    written.reward(d.id, 1.0)
    if i == 57: print("here", flush=True); os.kill(os.getpid(), 9)
"""
    path = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (-signal.SIGKILL, "here"), done.stderr
    read = log.read(tmp_path)
    n = len(read)
    assert 58 - 10 < n <= 58  # fewer than the buffer holds are lost
    assert list(read.id) == [str(i) for i in range(n)]
    assert 58 - 10 <= np.isfinite(read.r).sum() <= 58
    with log.Log(tmp_path, features=False, buffer=10) as written:  # the claim of a dead process does not hold
        written.record(Decision(0, 1.0, "exact", None), arms=["x"], id=str(n))
    assert len(log.read(tmp_path)) == n + 1


def test_one_writer_a_folder_and_any_number_of_readers(tmp_path):
    written = filled(tmp_path, n=10, buffer=5)
    with pytest.raises(ValueError, match="another open log writes into"):
        log.Log(tmp_path)
    one, two = log.batches(tmp_path, rows=4), log.batches(tmp_path, rows=4)
    got = [(next(one), next(two)) for _ in range(3)]
    for a, b in got:
        assert a.frame.equals(b.frame)
    assert [len(a) for a, _ in got] == [4, 4, 2 - 1]  # the last waits in the buffer
    written.close()
    log.Log(tmp_path).close()


def test_a_part_that_is_gone_or_broken_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "PART", 3)
    filled(tmp_path, n=12, buffer=3, rewards=False).close()
    parts = sorted(tmp_path.glob("decisions-*.parquet"))
    assert len(parts) == 4
    content = parts[1].read_bytes()
    parts[1].unlink()
    with pytest.raises(ValueError, match="lacks the decisions from 3 to 5"):
        log.read(tmp_path)
    parts[1].write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="cannot be read as a log"):
        log.read(tmp_path)


def test_several_logs_are_read_as_one(tmp_path):
    filled(tmp_path / "a", n=6, seed=1).close()
    filled(tmp_path / "b", n=5, seed=2).close()
    both = log.read([tmp_path / "a", tmp_path / "b"])
    assert len(both) == 11
    assert_array_equal(both.check().findings[0].rows, [6, 7, 8, 9, 10])  # the same ids: both logs begin with d0
    pieces = list(log.batches([tmp_path / "a", tmp_path / "b"], rows=4))
    total = sum((piece.check() for piece in pieces[1:]), pieces[0].check())
    assert_array_equal(np.concatenate([f.rows for f in total.findings if f.kind == "duplicate"]), [6, 7, 8, 9, 10])


@pytest.mark.slow
def test_a_hundred_thousand_rows_in_bounded_memory(tmp_path):
    n, B = 100_000, 500
    rng = np.random.default_rng(0)
    X = rng.normal(size=(B, 4, 2))
    made = Decision(np.arange(B) % 4, np.full(B, 0.25), "exact", None)
    written = log.Log(tmp_path, buffer=2000)
    held = []
    for i in range(n // B):
        written.record(made, X=X, id=[f"{i * B + j}" for j in range(B)], time=i)
        for j in range(0, B, 10):
            written.reward(f"{i * B + j}", float(j))
        if i in (79, 199):
            held.append(resident())
    written.close()
    assert (held[1] - held[0]) / (120 * B) < 600  # bytes a decision: the ledger and no more; the row has 64 of features
    rows = 0
    before = resident()
    for piece in log.batches(tmp_path, rows=10_000):
        rows += int(np.isfinite(piece.r).sum())
        assert piece.X.shape == (10_000, 4, 2)
    assert rows == n // 10
    assert resident() - before < 100 * 2**20
    # seen red: rows kept after they were written


def test_times():
    for given_, want in [
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        ("2026-03-01T12:00:00Z", NOON),
        ("2020-11-15T17:09:31.8350000Z", datetime(2020, 11, 15, 17, 9, 31, 835000, tzinfo=UTC)),
        ("2026-03-01T13:00:00+01:00", NOON),
        (datetime(2026, 3, 1, 12), NOON),
    ]:
        assert schema.moment(given_) == want
    assert abs(schema.moment(None) - datetime.now(UTC)) < timedelta(seconds=10)
    for bad in ("x", float("nan"), 1e30, [1]):
        with pytest.raises(ValueError, match="time must be"):
            schema.moment(bad)


def test_threads_share_a_log(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    bandit = dither.LinFP(dim=2, lam=1.0, seed=0, floor=0.1)
    written = log.Log(tmp_path, bandit=bandit, probabilities=True, buffer=50)

    def work(k):
        for i in range(100):
            d = written.decide([[1, 0], [0, 1]], id=f"{k}.{i}")
            written.reward(d.id, 1.0)
            bandit.update([1, 0], 1.0)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
    finally:
        sys.setswitchinterval(interval)
    written.close()
    read = log.read(tmp_path)
    assert len(read) == 400
    assert np.isfinite(read.r).all()
    assert read.check().ok  # each propensity is that of its own probabilities, whatever was learnt in between
    # seen red: the bandit not held between choose and propensities


def test_the_missing_extra_is_named():
    code = "import sys; sys.modules['polars'] = None\nfrom dither import log\nlog.Log()"
    path = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=path, capture_output=True, text=True, check=False)
    assert (
        "this needs polars, which is not installed and comes with dither[log]: run pip install '.[log]' in a checkout"
        in done.stderr
    )
