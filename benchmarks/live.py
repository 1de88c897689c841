"""`Live` beside a bandit without a ledger: ratios in one process, and what four processes do on one file.

    python benchmarks/live.py                    ratios, four processes on one file
    python benchmarks/live.py --sync-ms 5        four processes alone, where each sync takes at least 5 ms
    python benchmarks/live.py --million          only a million decisions: memory while they are pending, time to read

K = 50 arms, d = 32. Ratios are of processor time, since machines are shared; what waits for the disk is real time. "no
wait" is wait=False, where a commit does not wait for the disk. "shown" stores the features of the arm shown alone, as
one does where the arms are known by id. "together" is 100 requests in one call, as group commit has them of threads.
"awaited" is one thread with an event loop and many tasks, each of which awaits `achoose` and `areward`.
"""

import argparse
import asyncio
import multiprocessing
import resource
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import dither
from dither.log import Ledger
from dither.log.database import journal

K, D, ROUNDS = 50, 32, 1500


def bandit():
    return dither.LinFP(dim=D, seed=0, floor=0.05)


def each(call, n=ROUNDS, clock=time.process_time):
    """Seconds of one call, the best of three stretches."""
    best = float("inf")
    for _ in range(3):
        begin = clock()
        for _ in range(n // 3):
            call()
        best = min(best, (clock() - begin) / (n // 3))
    return best


def ratios(folder):
    rng = np.random.default_rng(0)
    X, plain = rng.normal(size=(K, D)), bandit()
    many = np.broadcast_to(X, (100, K, D))
    choose, update = each(lambda: plain.choose(X)), each(lambda: plain.update(X[3], 0.5))
    print(f"choose {choose * 1e6:.0f} µs, update {update * 1e6:.0f} µs, without a ledger")
    for store in ("shown", "all"):
        live = dither.Live(Path(folder) / f"{store}.db", bandit=bandit(), wait=False, store=store)
        ids, groups = [], []
        said("choose", store, each(lambda live=live, ids=ids: ids.append(live.choose(X).id)), choose)
        said("reward", store, each(lambda live=live, ids=ids: live.reward(ids.pop(), 0.5)), update)
        each_of_100 = each(lambda live=live, groups=groups: groups.append(list(live.choose(many).id)), 30) / 100
        said("choose together", store, each_of_100, choose)
        each_of_100 = each(lambda live=live, groups=groups: live.reward(groups.pop(), [0.5] * 100), 30) / 100
        said("reward together", store, each_of_100, update)
        live.close()
    live, ids = dither.Live(Path(folder) / "disk.db", bandit=bandit(), store="shown"), []
    chosen = each(lambda: ids.append(live.choose(X).id), 90, time.perf_counter)
    rewarded = each(lambda: live.reward(ids.pop(), 0.5), 90, time.perf_counter)
    print(f"one call that waits for the disk: choose {chosen * 1e3:.1f} ms, reward {rewarded * 1e3:.1f} ms")
    live.close()


def said(what, store, seconds, plain):
    print(f"no wait, {store}: {what} {seconds * 1e6:.0f} µs, {seconds / plain:.1f} times")


def worker(path, number, setting, sync, ready, done):
    threads, tasks, rounds, wait = setting
    if sync:
        slow(sync)
    live = dither.Live(path, refresh_seconds=1.0, store="shown", wait=wait)
    X = np.random.default_rng(number).normal(size=(10, 8))
    live.reward(live.choose(X).id, 0.5)

    def work():
        for _ in range(rounds):
            live.reward(live.choose(X).id, 0.5)

    async def awaited():
        async def task():
            for _ in range(rounds):
                await live.areward((await live.achoose(X)).id, 0.5)

        await asyncio.gather(*[task() for _ in range(tasks)])

    running = [threading.Thread(target=work if not tasks else lambda: asyncio.run(awaited())) for _ in range(threads)]
    ready.wait()
    begin, used = time.perf_counter(), time.process_time()
    for one in running:
        one.start()
    for one in running:
        one.join()
    done.put((begin, time.perf_counter(), time.process_time() - used))
    live.close()


def slow(seconds):
    """Let a sync take at least so long, as on another disk."""
    whole = journal._sync

    def sync(handle):
        end = time.perf_counter() + seconds
        whole(handle)
        time.sleep(max(end - time.perf_counter(), 0))

    journal._sync = sync


def processes(folder, sync):
    waits = [(1, 0, 500 if not sync else 100, True), (1, 64, 20, True), (8, 0, 125, True), (32, 0, 40, True)]
    for number, setting in enumerate([*waits, (1, 0, 1000, False)]):
        threads, tasks, rounds, wait = setting
        path = Path(folder) / f"shared-{number}.db"
        dither.Live(path, bandit=dither.LinFP(dim=8, seed=0, floor=0.05)).close()
        context = multiprocessing.get_context("spawn")
        ready, done = context.Barrier(4), context.Queue()
        running = [context.Process(target=worker, args=(path, i, setting, sync, ready, done)) for i in range(4)]
        for one in running:
            one.start()
        told = [done.get() for _ in running]
        for one in running:
            one.join()
        n = 4 * threads * rounds * max(tasks, 1)
        with Ledger(path) as ledger:
            assert len(ledger) == n + 4, "a decision is missing"
        took = max(end for _, end, _ in told) - min(begin for begin, _, _ in told)
        used = sum(used for _, _, used in told) / n
        words = (
            f"{threads} threads each, " + f"{tasks} tasks awaited, " * bool(tasks) + ("durable" if wait else "no wait")
        )
        print(
            f"four processes, {words}: {n / took:.0f} decisions with rewards a second, "
            f"{used * 1e6:.0f} µs of the processor each",
            flush=True,
        )


def million(folder, n=1_000_000):
    path = Path(folder) / "million.db"
    live = dither.Live(path, bandit=dither.LinFP(dim=4, seed=0, floor=0.05), wait=False, horizon=3600)
    X, begin = np.random.default_rng(0).normal(size=(1000, 5, 4)), time.perf_counter()
    for i in range(n // 1000):
        live.choose(X, extra={"user": [f"u{j % 97}" for j in range(i, i + 1000)]})
    print(f"{n} decisions written in {time.perf_counter() - begin:.0f} s, {path.stat().st_size / 2**20:.0f} MiB")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory with {n} pending: {peak:.2f} GiB")
    begin = time.perf_counter()
    listed = sum(1 for _ in live.pending())
    print(f"{listed} pending listed in {time.perf_counter() - begin:.1f} s")
    with live.ledger.holding() as connection:
        connection.exec_driver_sql(
            "INSERT INTO dither_rewards (decision, part, reward, time, standing) "
            "SELECT number, '', 0.5, time, 'counted' FROM dither_decisions"
        )
    begin, used, before = time.perf_counter(), time.process_time(), resource.getrusage(resource.RUSAGE_SELF)
    seen = live.read()
    took, used, after = (
        time.perf_counter() - begin,
        time.process_time() - used,
        resource.getrusage(resource.RUSAGE_SELF),
    )
    print(
        f"{len(seen)} decisions with features {seen.frame['features'].list.len()[0]} × 4 read in {took:.1f} s, ", end=""
    )
    print(
        f"{used:.1f} s of the processor; it waited by itself {after.ru_nvcsw - before.ru_nvcsw} times, and was ", end=""
    )
    print(f"taken off the processor {after.ru_nivcsw - before.ru_nivcsw} times")
    live.ledger.close()


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--million", action="store_true")
    options.add_argument("--sync-ms", type=float, default=0.0)
    options.add_argument("--folder")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        if given.million:
            million(folder)
        elif given.sync_ms:
            processes(folder, given.sync_ms / 1e3)
        else:
            ratios(folder)
            processes(folder, 0.0)
