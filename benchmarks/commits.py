"""What SQLite itself takes for the rows of a ledger: the ceiling of `benchmarks/live.py`.

    python benchmarks/commits.py                 a transaction alone, and four processes on one file
    python benchmarks/commits.py --folder /data  on the disk of that folder

It uses `sqlite3` and nothing else: the same tables, BEGIN IMMEDIATE, one decision, COMMIT; then the same for its
reward. "FULL" is synchronous=FULL, where SQLite syncs the journal while it keeps other writers out. "after" is what a
ledger does: it syncs by itself after the commit. The time of the processor is that of all four processes.
"""

import argparse
import multiprocessing
import os
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from dither.log import Ledger
from dither.log.record import new_id

DECISION = (
    "INSERT INTO dither_decisions (id, time, K, width, arm, propensity, propensity_kind, floor, z, z_law, policy, "
    "version, x, batch, closed) VALUES (?, ?, 50, ?, 3, 0.3, 'exact', 0.05, 0.7, 'continuous', 'FP', '0.1', ?, 5, 0)"
)
FIND = "SELECT number, deadline, closed, erased, x, slot FROM dither_decisions WHERE id = ?"
REWARD = (
    "INSERT INTO dither_rewards (decision, part, reward, time, standing, batch) VALUES (?, '', 0.5, ?, 'counted', ?)"
)


class Bare:
    """One connection."""

    def __init__(self, path, sync, d):
        self.connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        for pragma in ("journal_mode=WAL", f"synchronous={'FULL' if sync == 'FULL' else 'NORMAL'}", "foreign_keys=ON"):
            self.connection.execute(f"PRAGMA {pragma}").fetchall()
        self.journal, self.after = f"{path}-wal", sync == "after"
        self.x, self.d = np.random.default_rng(0).normal(size=d).tobytes(), d

    def commit(self):
        self.connection.execute("COMMIT")
        if self.after:
            handle = os.open(self.journal, os.O_RDWR)
            os.fdatasync(handle)
            os.close(handle)

    def decide(self):
        id = new_id()
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute(DECISION, (id, time.time_ns() // 1000, self.d, self.x))
        self.commit()
        return id

    def reward(self, id, batch=1):
        self.connection.execute("BEGIN IMMEDIATE")
        number = self.connection.execute(FIND, (id,)).fetchone()[0]
        self.connection.execute(REWARD, (number, time.time_ns() // 1000, batch))
        self.commit()


def alone(folder, sync, rounds, clock):
    """Seconds of a decision and of a reward, medians."""
    path = Path(folder) / f"alone-{sync}.db"
    Ledger(path).close()
    bare, ids, took = Bare(path, sync, 32), [], ([], [])
    for _ in range(rounds):
        begin = clock()
        ids.append(bare.decide())
        took[0].append(clock() - begin)
    for i, id in enumerate(ids):
        begin = clock()
        bare.reward(id, i)
        took[1].append(clock() - begin)
    return [statistics.median(one) for one in took]


def work(path, sync, rounds, ready, done):
    bare = Bare(path, sync, 8)
    ready.wait()
    begin, used = time.perf_counter(), time.process_time()
    for i in range(rounds):
        bare.reward(bare.decide(), i)
    done.put((begin, time.perf_counter(), time.process_time() - used))


def four(folder, sync, rounds):
    path = Path(folder) / f"four-{sync}.db"
    Ledger(path).close()
    context = multiprocessing.get_context("spawn")
    ready, done = context.Barrier(4), context.Queue()
    running = [context.Process(target=work, args=(path, sync, rounds, ready, done)) for _ in range(4)]
    for one in running:
        one.start()
    told = [done.get() for _ in running]
    for one in running:
        one.join()
    took = max(end for _, end, _ in told) - min(begin for begin, _, _ in told)
    used = sum(used for _, _, used in told) / (4 * rounds)
    print(f"four processes, {sync}: {4 * rounds / took:.0f} decisions with rewards a second, {used * 1e6:.0f} µs each")


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--folder")
    options.add_argument("--rounds", type=int, default=400)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        decision, reward = alone(folder, "NORMAL", 3000, time.process_time)
        print(
            f"one transaction, no wait: decision {decision * 1e6:.0f} µs, reward {reward * 1e6:.0f} µs of the processor"
        )
        decision, reward = alone(folder, "FULL", given.rounds, time.perf_counter)
        print(
            f"one transaction on the disk: decision {decision * 1e3:.2f} ms, reward {reward * 1e3:.2f} ms by the clock"
        )
        for sync in ("FULL", "after", "NORMAL"):
            four(folder, sync, given.rounds)
