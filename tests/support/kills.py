"""Processes that decide and reward on one ledger while it suffers. Alone: tests/support/kills.py --rounds 50.

    kills      the processes are killed after a random number of calls
    restores   a backup is put back while they work, by SQLite's backup API or in place of the file; then kills
    full       the disk has no more room while they work, and later it has; then kills

In each round processes are forked. Each opens `Live` on the home, and tells through a pipe of every call that has
returned, with the moments when it began and returned. Then the ledger must have all that was acknowledged: decisions,
rewards and changes of arms (but for those between a backup and its return). Each reward counts once, the bandit and its
shadow must be those of a replay, and each decision has the propensity that the batch which it knew gives.
"""

import argparse
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import dither
from dither.features import Numeric

PROCESSES, CALLS = 2, 60
ROOM = 300_000  # bytes that are left on a disk before it is full
SETTINGS = {"lease_seconds": 0.3, "snapshot_batches": 7, "refresh_seconds": 0.05}
PLAIN = Numeric(mean=0, scale=1)
FEATURES = dither.Features(arm={"x": PLAIN, "y": PLAIN}, cross=())


def begin():
    return dither.LinFP(features=FEATURES, seed=0, floor=0.1, lam=1.0)


def first(home):
    """A new ledger, with two arms and a shadow."""
    shop = dither.Catalogue(FEATURES, {"a": {"x": 1.0, "y": 0.5}, "b": {"x": 0.25, "y": -1.0}})
    shadow = dither.Softmax(features=FEATURES, seed=1, lam=2.0)
    dither.Live(home, bandit=begin(), catalogue=shop, shadow=shadow).close()


def work(home, out, seed, limit=None):
    """Decide and reward for ever. A line is written when a call has returned.

    limit : bytes that a file may have, until five calls were refused for it; None: it has any
    """
    rng, refused = np.random.default_rng(seed), 0
    live = None
    if limit is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    def call(kind, method, *arguments, **settings):
        before = time.monotonic()
        answer = method(*arguments, **settings)
        return answer, lambda words: os.write(out, f"{kind} {before} {time.monotonic()} {words}\n".encode())

    while True:
        try:
            live = live or dither.Live(home, bandit=begin(), **SETTINGS)
            if rng.random() < 0.2:  # an arm comes, and goes
                id = f"{os.getpid()}-{rng.integers(2**32)}"
                version, tell = call("a", live.catalogue.add, id, {"x": float(rng.normal()), "y": 0.0})
                tell(f"{version} add {id}")
                version, tell = call("a", live.catalogue.retire, id)
                tell(f"{version} retire {id}")
            d, tell = call("d", live.choose, None, extra={"pad": "x" * int(rng.integers(4000))})
            tell(d.id)
            r = float(np.round(rng.normal(), 6))
            for _ in range(1 + int(rng.integers(2))):
                answer, tell = call("r", live.reward, d.id, r)
                tell(f"{d.id} {r} {answer}")
        except (OSError, LookupError, ValueError) as reason:  # refused: it is not acknowledged
            refused += 1
            os.write(out, f"x {time.monotonic()} {time.monotonic()} {type(reason).__name__}\n".encode())
            if limit is not None and refused == 5:
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class Crew:
    """Processes at work, and the lines that they have written."""

    def __init__(self, home, luck, limit=None):
        self.lines, self._running = [], []
        for _ in range(PROCESSES):
            receive, send = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    os.close(receive)
                    work(home, send, luck.randrange(2**32) + os.getpid(), limit)
                except BaseException:
                    import traceback

                    traceback.print_exc()
                finally:
                    os._exit(1)
            os.close(send)
            self._running.append((child, os.fdopen(receive)))

    def go_on(self, calls):
        """Wait until each has returned from so many calls."""
        for _, pipe in self._running:
            self.lines += [pipe.readline() for _ in range(calls)]
            assert self.lines[-1] or not calls, "a process ended by itself"

    def kill(self):
        """-> the lines of all of them, as lists of words."""
        for child, _ in self._running:
            os.kill(child, signal.SIGKILL)
        for child, pipe in self._running:
            self.lines += pipe.readlines()
            assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL, "a process ended by itself"
            pipe.close()
        return [line.split() for line in self.lines if line.endswith("\n")]


def killed(home, luck, acknowledged):
    """One round; -> all that must be there."""
    crew = Crew(home, luck)
    crew.go_on(luck.randrange(1, CALLS))
    return acknowledged + crew.kill()


def backup(source, target):
    with sqlite3.connect(source, timeout=60) as here, sqlite3.connect(target, timeout=60) as there:
        here.backup(there)
    here.close()
    there.close()
    return 0


def swap(copy, home):
    """The file is another one, and has no journal."""
    shutil.copy(copy, f"{home}.new")
    for end in ("-wal", "-shm"):
        Path(f"{home}{end}").unlink(missing_ok=True)
    os.replace(f"{home}.new", home)
    return 0


def restored(home, luck, acknowledged):
    """One round: what was acknowledged between the backup and its return need not be there."""
    copy = Path(f"{home}.copy")
    copy.unlink(missing_ok=True)
    crew = Crew(home, luck)
    crew.go_on(luck.randrange(1, CALLS))
    taken = time.monotonic()
    in_a_child(backup, home, copy)
    crew.go_on(luck.randrange(1, CALLS))
    in_a_child(*(backup, copy, home) if luck.random() < 0.5 else (swap, copy, home))
    back = time.monotonic()
    crew.go_on(luck.randrange(CALLS, 2 * CALLS))
    lines = crew.kill()
    return acknowledged + [line for line in lines if float(line[2]) < taken or float(line[1]) > back]


def filled(home, luck, acknowledged):
    """One round: no file may grow by more than some bytes, until calls were refused; or, where the home is on a disk
    that this process has mounted, the disk has no more room."""
    place = Path(home).parent
    if not place.is_mount():
        size = max(path.stat().st_size for path in place.glob(f"{Path(home).name}*"))
        crew = Crew(home, luck, limit=size + luck.randrange(ROOM))
    else:
        used = sum(path.stat().st_size for path in place.glob("*"))
        resize(place, used + luck.randrange(ROOM))
        crew = Crew(home, luck)
    refused = 0
    while refused < 5:
        before = len(crew.lines)
        crew.go_on(1)
        refused += sum(line.startswith("x ") for line in crew.lines[before:])
    if place.is_mount():
        resize(place, 1 << 30)
    crew.go_on(luck.randrange(CALLS, 2 * CALLS))
    return acknowledged + crew.kill()


def resize(place, size):
    subprocess.run(["mount", "-o", f"remount,size={size}", place], check=True)


def check(home, acknowledged):
    """What must be true after a round; -> how many rewards count."""
    live = dither.Live(home, lease_seconds=0.3)
    while not live.learns:  # the killed one's lease ends by itself
        live.learn()
    decided = {line[3] for line in acknowledged if line[0] == "d"}
    changed = {(int(line[3]), *line[4:]) for line in acknowledged if line[0] == "a"}
    rewarded = {line[3]: float(line[4]) for line in acknowledged if line[0] == "r"}
    with live.ledger.database.reading() as connection:
        ids = [row[0] for row in connection.exec_driver_sql("SELECT id FROM dither_decisions")]
        rows = connection.exec_driver_sql(
            "SELECT d.id, r.reward, r.standing, r.batch FROM dither_rewards r JOIN dither_decisions d "
            "ON d.number = r.decision"
        ).fetchall()
    assert len(ids) == len(set(ids)), "a decision is there twice"
    assert decided <= set(ids), "a decision that was acknowledged is lost"
    events = live.catalogue.events
    assert changed <= {(event.version, event.what, event.id) for event in events}, "a change of the arms is lost"
    assert [event.version for event in events] == list(range(1, len(events) + 1))
    counted = {row[0]: row[1] for row in rows if row[2] == "counted"}
    assert len(rows) == len(counted), "a reward was counted twice, or is in conflict"
    assert rewarded.items() <= counted.items(), "a reward that was acknowledged is lost"
    answers = [tuple(line[3:]) for line in acknowledged if line[0] == "r"]
    assert {answer for _, _, answer in answers} <= {"counted", "known"}
    first_answers = [answer for answer in answers if answer[2] == "counted"]
    assert len(first_answers) == len(set(first_answers)), "a reward was answered 'counted' twice"
    for of in ("bandit", "shadow"):
        assert live.to_bytes(of) == live.replay(of=of).to_bytes(), f"the {of} is not that of a replay"
    assert live.bandit.observations == len(counted), "a reward was learnt twice, or not at all"
    assert all(row[3] is not None for row in rows)
    knew_what_they_say(live)
    live.close()
    return len(counted)


def knew_what_they_say(live):
    """Each decision has the propensity of the bandit after the batch that its row names."""
    taught = live._learner.replay(0)
    with live.ledger.database.reading() as connection:
        batches = dict(connection.exec_driver_sql("SELECT id, batch FROM dither_decisions").fetchall())
    rows = live.read().frame.select("id", "features", "arm", "propensity").to_dicts()
    rows.sort(key=lambda row: batches[row["id"]])
    with live.ledger.database.reading() as connection:
        for row in rows:
            while taught.batch < batches[row["id"]]:
                number = taught.batch + 1
                taught.learn(taught.lesson(connection, number, upto=number))
            p = taught.bandit.propensities(np.array(row["features"]))[row["arm"]]
            assert abs(p - row["propensity"]) < 1e-9, f"{row['id']} did not know batch {batches[row['id']]}"


ROUNDS = {"kills": killed, "restores": restored, "full": filled}


def rounds(home, n, what="kills", seed=0):
    """n rounds of one kind on one home; -> how many rewards count in the end."""
    luck, acknowledged, counted = random.Random(seed), [], 0
    first(home)
    for i in range(n):
        acknowledged = ROUNDS[what](home, luck, acknowledged)
        counted = in_a_child(check, home, acknowledged)
        refused = sum(line[0] == "x" for line in acknowledged)
        words = f"{len(acknowledged) - refused} calls acknowledged, {refused} refused, {counted} rewards count"
        print(f"{what}, round {i + 1}: {words}", flush=True)
    return counted


def in_a_child(call, *arguments):
    """Call in a fork, so that this process has no connection that its next forks would share; -> the answer."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(send, str(call(*arguments)).encode())
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
    os.close(send)
    with os.fdopen(receive) as pipe:
        answer = pipe.read()
    if os.waitpid(child, 0)[1]:
        raise SystemExit("the check failed")
    return int(answer)


def on_a_small_disk(n):
    """Rounds on a disk of its own, where this process may mount one; else with a limit on the size of files."""
    with tempfile.TemporaryDirectory() as folder:
        mounted = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", folder]
        small = os.getuid() == 0 and subprocess.run(mounted, capture_output=True, check=False).returncode == 0
        print("a disk of its own" if small else "a limit on the size of files", flush=True)
        try:
            rounds(Path(folder) / "ledger.db", n, "full")
        finally:
            if small:
                subprocess.run(["umount", folder], check=True)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=50, help="kills on each database")
    options.add_argument("--restores", type=int, default=0, help="backups that are put back, on SQLite")
    options.add_argument("--full", type=int, default=0, help="full disks, on SQLite")
    options.add_argument("--what", choices=ROUNDS, default="kills", help="the kind of the rounds, with --home")
    options.add_argument("--home")
    given = options.parse_args()
    if given.home:
        rounds(given.home, given.rounds, given.what)
        sys.exit()
    import databases

    with tempfile.TemporaryDirectory() as folder:
        rounds(Path(folder) / "ledger.db", given.rounds)
    with tempfile.TemporaryDirectory() as folder:
        rounds(Path(folder) / "ledger.db", given.restores, "restores")
    on_a_small_disk(given.full)
    if databases.programs() is None:
        sys.exit("no PostgreSQL: the kills were on SQLite alone")
    server = databases.Server()
    try:
        rounds(server.url(), given.rounds)
        pooler = databases.Pooler(server, "default_pool_size = 2")
        try:
            rounds(pooler.url(), given.rounds)
        finally:
            pooler.stop()
    finally:
        server.stop()
