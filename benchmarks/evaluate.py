"""`dither evaluate` over a log of 10 million rows: time, on the wall and of all processors, and peak memory.

    plain   uniform and column:q by IPS, SNIPS and clipped IPS      columns id, arm, K, propensity, reward, q
    dr      column:q,m_policy by DR, SNDR, SNIPS                    besides m_shown, m_policy
    lists   column:Q by DR, SNIPS, with lists of K = 10 Q and M     1 million rows: lists cost what they weigh

    python benchmarks/evaluate.py [--rows 10000000] [--folder /tmp/evaluate] [--jobs 2]

Each case is a process of its own; the log is made first and deleted afterwards. Target: a minute, 2 GiB.
"""

import argparse
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl

K, PART = 10, 1_000_000
CASES = {
    "plain": "--policy uniform --policy column:q --estimator snips --estimator ips --estimator clipped_ips:5",
    "dr": "--policy column:q,m_policy --predictions m_shown --estimator dr --estimator sndr --estimator snips",
    "lists": "--policy column:Q --predictions M --estimator dr --estimator snips",
}


def part(start: int, rows: int, *, lists: bool) -> pl.DataFrame:
    """Rows of a log: a softmax policy, rewards 0 and 1, a new policy that is a tempered one, and noisy predictions."""
    rng = np.random.default_rng(start)
    score = rng.standard_normal((rows, K))
    P, Q = (np.exp(score * t) / np.exp(score * t).sum(axis=1, keepdims=True) for t in (0.5, 1.0))
    P = 0.1 / K + 0.9 * P
    a = np.minimum((P.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1), K - 1)
    mean = 1 / (1 + np.exp(-score))
    M = mean + 0.1 * rng.standard_normal((rows, K))
    at = np.arange(rows)
    columns = {
        "id": pl.Series(np.arange(start, start + rows)).cast(pl.String),
        "arm": a,
        "K": np.full(rows, K),
        "propensity": P[at, a],
        "reward": (rng.random(rows) < mean[at, a]).astype(np.float64),
        "q": Q[at, a],
        "m_shown": M[at, a],
        "m_policy": np.einsum("ij,ij->i", Q, M),
    }
    if lists:
        columns |= {"Q": pl.Series(Q).arr.to_list(), "M": pl.Series(M).arr.to_list()}
    return pl.DataFrame(columns)


def make(folder: Path, rows: int, *, lists: bool) -> float:
    """The log as parts in a folder; its size in GB."""
    folder.mkdir(parents=True)
    for start in range(0, rows, PART):
        part(start, min(PART, rows - start), lists=lists).write_parquet(folder / f"part-{start:09d}.parquet")
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e9


def resident(pid: int) -> int:
    """Bytes of a process and its descendants (Linux): the proportional set size, so that shared pages count once."""
    total = 0
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # it ended meanwhile
        return total
    return total + sum(resident(int(child)) for child in children)


def run(arguments: list[str]) -> tuple[float, float, float]:
    """Seconds of the wall and of all processors, and peak GiB, of a command."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(
        [sys.executable, "-c", "from dither.cli import main; main()", *arguments], stdout=subprocess.DEVNULL
    )
    peak, done = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.5):
            peak = max(peak, resident(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    code = process.wait()
    done.set()
    watcher.join()
    if code:
        raise SystemExit(f"it failed: {code}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, cpu, peak / 2**30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/evaluate"))
    parser.add_argument("--jobs", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--case", nargs="*", choices=CASES, default=list(CASES))
    asked = parser.parse_args()
    for lists in (False, True):
        names = [name for name in asked.case if (name == "lists") == lists]
        if not names:
            continue
        folder, rows = asked.folder / ("lists" if lists else "plain"), asked.rows // 10 if lists else asked.rows
        try:
            size = make(folder, rows, lists=lists)
            for name in names:
                for jobs in asked.jobs:
                    seconds, cpu, peak = run(["evaluate", str(folder), *CASES[name].split(), "--jobs", str(jobs)])
                    print(
                        f"{name:6} {rows:,} rows ({size:.2f} GB), {jobs} jobs: {seconds:.1f} s, "
                        f"{cpu:.1f} s of processor, {cpu / rows * 1e9:.0f} ns a row, peak {peak:.2f} GiB",
                        flush=True,
                    )
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
