"""What goes wrong on the way: own parts that fail, Ctrl-C, and requests that come to nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import longer
from dither_bench.keep import asked
from dither_bench.keep.store import STORE

MINE = """
import os
import time
from dataclasses import dataclass
from pathlib import Path

from dither.policies.views import plain


@dataclass(frozen=True)
class P:
    needs = frozenset({"mean", "width"})

    def draw(self, rng, n, *, arms, dim):
        return ()

    def view(self, model, state, X, *, t):
        FAULT
        return plain(model.mean(state, X))
"""
SMALL = ("--dim", 2, "--arms", 3, "--rounds", 30, "--runs", 4, "--block", 1, "--out", "r")


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Writes mine.py with a line of its own in each round."""
    monkeypatch.chdir(tmp_path)

    def write(fault):
        (tmp_path / "mine.py").write_text(MINE.replace("FAULT", fault))

    return write


FAULTS = {"nothing_of_this_name": "NameError: name 'nothing_of_this_name' is not", "{}['key']": "KeyError: 'key'"}


def one_line_with_its_place(fault, code, err):
    (line,) = [line for line in err.splitlines() if line.startswith("dither:")]
    assert code == 2
    assert line.startswith(f"dither: {FAULTS[fault]}")
    assert line.endswith("mine.py, line 18)")
    assert "Traceback" not in err


@pytest.mark.parametrize("fault", FAULTS)
def test_an_error_in_an_own_part_is_one_line_with_its_place(dither, mine, fault):
    mine(f"assert t < 3 or {fault}")
    code, _, err = dither("compare", "LinFP", "mine.py:P", *SMALL)
    one_line_with_its_place(fault, code, err)
    # seen red: `main` for the five kinds of errors alone; a KeyError told by its words alone


def test_a_mistake_of_the_program_keeps_its_traceback(dither, mine, monkeypatch):
    def broken(*given, **more):
        raise NameError("of the program")

    monkeypatch.setattr("dither_bench.define.figures.adhoc", broken)
    mine("pass")
    with pytest.raises(NameError, match="of the program"):
        dither("compare", "LinFP", "mine.py:P", *SMALL)
    # seen red: `_line` without the place


def requests(folder):
    return [str(spec) for request in asked.figures(folder) for spec in request.figure.algorithms]


def test_a_request_that_came_to_nothing_is_forgotten(dither, mine, tmp_path):
    assert dither("compare", "LinFP", "LinTS", *SMALL)[0] == 0
    mine("1 / 0")
    assert dither("compare", "LinUCB", "mine.py:P", *SMALL)[0] == 2
    assert requests(tmp_path / "r") == ["LinFP", "LinTS"]
    mine("pass")
    assert dither("compare", "LinUCB", "mine.py:P", *SMALL)[0] == 0
    assert sorted(requests(tmp_path / "r")) == ["LinFP", "LinTS", "LinUCB", "mine.py:P"]
    # seen red: `_asked` without `unlink`


def test_a_request_of_which_something_is_kept_stays(dither, mine, tmp_path):
    mine("assert not list(Path('r').rglob('*.parquet')), 'enough'")  # the second block fails
    code, _, err = dither("compare", "LinFP", "mine.py:P", *SMALL)
    assert (code, "AssertionError: enough" in err) == (2, True)
    assert requests(tmp_path / "r") == ["LinFP", "mine.py:P"]
    assert dither("compare", "LinFP", "mine.py:P", *SMALL)[0] == 2  # asked again, and nothing new: it was there before
    assert requests(tmp_path / "r") == ["LinFP", "mine.py:P"]
    # seen red: `_asked` without a look into the store


def test_files_hold_what_was_asked_now_unless_more_is_asked_for(dither, mine, tmp_path):
    run = ("--dim", 2, "--arms", 3, "--rounds", 30, "--runs", 2, "--out", "r", "--latex", "--format", "pdf")
    table, values = tmp_path / "r" / "compare-table.tex", tmp_path / "r" / "compare.csv"
    assert dither("compare", "LinFP", "LinTS", *run)[0] == 0
    assert dither("compare", "LinFP", "LinUCB", *run, "--norm", 2)[0] == 0
    out = " ".join(dither("compare", "LinFP", "LinUCB", *run)[1].split())
    assert "The files leave out what was asked for earlier in this folder: " in out
    assert "--with-earlier adds it" in out
    for path in (table, values):
        text = path.read_text()
        assert "LinUCB" in text
        assert "LinTS" not in text
        assert "norm" not in text
    out = " ".join(dither("compare", "LinFP", "LinUCB", *run, "--with-earlier")[1].split())
    assert "The files also hold what was asked for earlier in this folder: " in out
    for path in (table, values):
        assert "LinTS" in path.read_text()
        assert "norm=2" in path.read_text()
    # seen red: `outputs.write(whole)`


def hears_ctrl_c():
    """In a process that begins: hear Ctrl-C as at a terminal, though these tests may run where it is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


MANY = (*SMALL[:-5], 12, *SMALL[-4:])  # runs of a block each: more than wait in the queue of two processes


def interrupted(tmp_path, *, when, jobs=2):
    """Ctrl-C, as a terminal sends it to all processes, once `when` holds -> (exit code, stdout, stderr)."""
    command = [sys.executable, "-m", "dither", "compare", "LinFP", "mine.py:P", *map(str, MANY), "--jobs", str(jobs)]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environ, start_new_session=True, preexec_fn=hears_ctrl_c, **pipes
    )
    end = time.monotonic() + 120
    while not when() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    while living(process.pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert not living(process.pid)
    return process.returncode, out, err


def living(group):
    """The processes of a group that live; nobody may have asked yet how a dead one ended."""
    about = (path.read_text().rpartition(")")[2].split() for path in Path("/proc").glob("[0-9]*/stat") if path.exists())
    return [fields for fields in about if int(fields[2]) == group and fields[0] not in "ZX"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("finished", "jobs"),
    longer.size([(False, 1), (True, 2)], longer=[(False, 1), (False, 2), (True, 1), (True, 2)]),
)
def test_ctrl_c_says_what_is_kept_and_nothing_else(dither, mine, tmp_path, finished, jobs):
    began = "LOCK = os.open('began', os.O_CREAT) or 1"
    mine(f"{began}; time.sleep(60 * (not {finished} or bool(list(Path('r').rglob('*.parquet')))))")
    code, out, err = interrupted(
        tmp_path,
        when=lambda: any((tmp_path / "r" / STORE).rglob("[!.]*.parquet") if finished else tmp_path.glob("began")),
        jobs=jobs,
    )
    assert code == 130
    assert "Error" not in err
    assert "Traceback" not in err
    if finished:
        assert "of results are kept in r; run the same command again to go on" in out or "is kept in r" in out
        assert requests(tmp_path / "r") == ["LinFP", "mine.py:P"]
    else:
        assert "interrupted: no block was finished, so nothing is kept" in out
        assert requests(tmp_path / "r") == []
    mine("pass")
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "r" / STORE).rglob("[!.]*.parquet")}
    assert dither("compare", "LinFP", "mine.py:P", *MANY, "--accept-other-code")[0] == 0
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "r" / STORE).rglob("[!.]*.parquet")}
    assert kept.items() <= files.items()
    assert len(files) == 24  # of two algorithms
    # seen red: one sentence for both; `_asked` without `unlink`. Seen red with joblib's own way to end processes, which
    # prints a KeyError where calls wait behind its queue, and with SIGINT heard by processes that begin


@pytest.mark.slow
def test_an_error_with_many_blocks_to_come_is_one_line(mine, tmp_path):
    """Seen red with all blocks sent at once: the thread of loky ends with a KeyError."""
    fault, *_ = FAULTS
    mine(f"assert t < 3 or {fault}")
    code, _, err = interrupted(tmp_path, when=lambda: False)
    one_line_with_its_place(fault, code, err)


def test_processes_do_not_hear_ctrl_c_and_this_one_does(tmp_path):
    ignores = """
import signal
def ignores():
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
"""
    (tmp_path / "signals.py").write_text(ignores)  # a file that is imported at once
    code = """
from signals import ignores
from dither.base.workers import Workers, delayed
print(*Workers(jobs=2).results([delayed(ignores)() for _ in range(4)]), ignores())
"""
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(tmp_path), *sys.path]))}
    how = dict(env=environ, capture_output=True, text=True, check=True, preexec_fn=hears_ctrl_c)
    done = subprocess.run([sys.executable, "-c", code], **how)
    assert done.stdout.split() == ["True"] * 4 + ["False"]
    # seen red: `deaf` left out; `before` not set again; the trackers of resources started within


@pytest.mark.parametrize(
    ("algorithm", "says"),
    [
        ("mine:P", "for a part of the file mine.py write mine.py:P"),
        ("yours:P", "a setting is written key=value, got 'P' in 'yours:P'; a part of your own is FILE.py:NAME"),
        ("LinFP:c=1..a", "a range goes from a number to a number, as 0.1..10 or log:0.1..10; got '1..a'"),
        ("LinFP:c=log:b..3", "a range goes from a number to a number, as 0.1..10 or log:0.1..10; got 'log:b..3'"),
    ],
)
def test_what_is_mistyped_is_told_with_a_cure(dither, mine, algorithm, says):
    mine("pass")
    code, _, err = dither("compare", "LinFP", algorithm, *SMALL)
    assert code == 2
    assert says in err


def test_a_file_is_no_folder_of_results(dither, mine):
    mine("pass")
    code, _, err = dither("compare", "LinFP", "LinTS", *SMALL[:-1], "mine.py")
    assert code == 2
    assert "results are kept in a folder, and mine.py is a file" in err
    # seen red: the operating system's words


def test_the_reference_of_a_comparison_can_be_chosen(dither, tmp_path):
    run = ("--dim", 2, "--arms", 3, "--rounds", 30, "--runs", 3, "--out", tmp_path / "r")
    code, out, err = dither("compare", "LinFP", "LinTS:c=0.5", "Greedy", *run, "--reference", "LinTS")
    assert code == 0, err
    rows = pl.read_csv(tmp_path / "r" / "compare-differences.csv")
    ends = dict(pl.read_csv(tmp_path / "r" / "compare.csv").select("algorithm", "regret").iter_rows())
    assert rows["reference"].to_list() == ["LinTS:c=0.5"] * 2
    gaps = dict(rows.select("algorithm", "difference").iter_rows())
    assert gaps == pytest.approx({name: ends[name] - ends["LinTS:c=0.5"] for name in ("LinFP", "Greedy")})
    (line,) = [line for line in out.splitlines() if line.strip().startswith("LinTS:c=0.5 ")]
    assert "reference" in line
    assert dither("report", tmp_path / "r", "-o", tmp_path / "r.html")[0] == 0
    assert "difference to LinTS:c=0.5" in (tmp_path / "r.html").read_text("utf-8")
    code, _, err = dither("compare", "LinFP", "LinTS", *run, "--reference", "LinUCB")
    assert (code, "no algorithm of the comparison 'LinUCB'" in err) == (2, True)
    code, _, err = dither("compare", "LinFP", "LinTS:c=1", "LinTS:c=2", *run, "--reference", "LinTS")
    assert (code, "LinTS names several of" in err) == (2, True)
    # seen red: the first feature perturbation whatever is chosen
