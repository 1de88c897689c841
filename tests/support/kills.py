"""Processes that decide and reward on one ledger until they are killed. Alone: tests/support/kills.py --rounds 50.

In each round processes are forked. Each opens `Live` on the home, and tells through a pipe of every call that has
returned. They are killed after a random number of calls. Then the ledger must have all that was acknowledged:
decisions, rewards and changes of arms. Each reward counts once, and the bandit and its shadow must be those of a
replay.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
from pathlib import Path

import numpy as np

import dither
from dither.features import Numeric

PROCESSES, CALLS = 2, 60


PLAIN = Numeric(mean=0, scale=1)
FEATURES = dither.Features(arm={"x": PLAIN, "y": PLAIN}, cross=())


def begin():
    return dither.LinFP(features=FEATURES, seed=0, floor=0.1, lam=1.0)


def first(home):
    """A new ledger, with two arms and a shadow."""
    shop = dither.Catalogue(FEATURES, {"a": {"x": 1.0, "y": 0.5}, "b": {"x": 0.25, "y": -1.0}})
    shadow = dither.Softmax(features=FEATURES, seed=1, lam=2.0)
    dither.Live(home, bandit=begin(), catalogue=shop, shadow=shadow).close()


def work(home, out, seed):
    """Decide and reward for ever. A line is written when a call has returned."""
    live = dither.Live(home, bandit=begin(), lease_seconds=0.3, snapshot_batches=7, refresh_seconds=0.05)
    rng = np.random.default_rng(seed)
    while True:
        if rng.random() < 0.2:  # an arm comes, and goes
            id = f"{os.getpid()}-{rng.integers(2**32)}"
            version = live.catalogue.add(id, {"x": float(rng.normal()), "y": 0.0})
            os.write(out, f"a {version} add {id}\n".encode())
            os.write(out, f"a {live.catalogue.retire(id)} retire {id}\n".encode())
        d = live.choose(None)
        os.write(out, f"d {d.id}\n".encode())
        r = float(np.round(rng.normal(), 6))
        for _ in range(1 + int(rng.integers(2))):
            said = live.reward(d.id, r)
            os.write(out, f"r {d.id} {r} {said}\n".encode())


def killed(home, luck):
    """One round; -> the lines of all processes."""
    running = []
    for _ in range(PROCESSES):
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(receive)
                work(home, send, luck.randrange(2**32) + os.getpid())
            finally:
                os._exit(1)
        os.close(send)
        running.append((child, os.fdopen(receive)))
    lines = []
    for child, pipe in running:
        for _ in range(luck.randrange(1, CALLS)):
            lines.append(pipe.readline())
        os.kill(child, signal.SIGKILL)
    for child, pipe in running:
        lines += pipe.readlines()
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL, "a process ended by itself"
        pipe.close()
    return [line.split() for line in lines if line.endswith("\n")]


def check(home, acknowledged):
    """What must be true after a kill; -> how many rewards count."""
    live = dither.Live(home, lease_seconds=0.3)
    while not live.learns:  # the killed one's lease ends by itself
        live.learn()
    decided = {line[1] for line in acknowledged if line[0] == "d"}
    changed = {(int(line[1]), *line[2:]) for line in acknowledged if line[0] == "a"}
    rewarded = {line[1]: float(line[2]) for line in acknowledged if line[0] == "r"}
    with live.ledger.database.reading() as connection:
        ids = {row[0] for row in connection.exec_driver_sql("SELECT id FROM dither_decisions")}
        rows = connection.exec_driver_sql(
            "SELECT d.id, r.reward, r.standing, r.batch FROM dither_rewards r JOIN dither_decisions d "
            "ON d.number = r.decision"
        ).fetchall()
    assert decided <= ids, "a decision that was acknowledged is lost"
    events = live.catalogue.events
    assert changed <= {(event.version, event.what, event.id) for event in events}, "a change of the arms is lost"
    assert [event.version for event in events] == list(range(1, len(events) + 1))
    counted = {row[0]: row[1] for row in rows if row[2] == "counted"}
    assert len(rows) == len(counted), "a reward was counted twice, or is in conflict"
    assert rewarded.items() <= counted.items(), "a reward that was acknowledged is lost"
    said = [line[3] for line in acknowledged if line[0] == "r"]
    assert said.count("counted") == len(rewarded)
    assert set(said) <= {"counted", "known"}
    for of in ("bandit", "shadow"):
        assert live.to_bytes(of) == live.replay(of=of).to_bytes(), f"the {of} is not that of a replay"
    assert live.bandit.observations == len(counted), "a reward was learnt twice, or not at all"
    assert all(row[3] is not None for row in rows)
    live.close()
    return len(counted)


def rounds(home, n, seed=0):
    """n rounds on one home; -> how many rewards count in the end."""
    luck, acknowledged, counted = random.Random(seed), [], 0
    first(home)
    for i in range(n):
        acknowledged += killed(home, luck)
        counted = in_a_child(check, home, acknowledged)
        print(f"round {i + 1}: {len(acknowledged)} calls acknowledged, {counted} rewards count", flush=True)
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
        said = pipe.read()
    if os.waitpid(child, 0)[1]:
        raise SystemExit("the check failed")
    return int(said)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=50)
    options.add_argument("--home")
    given = options.parse_args()
    if given.home:
        rounds(given.home, given.rounds)
        sys.exit()
    import databases

    with tempfile.TemporaryDirectory() as folder:
        rounds(Path(folder) / "ledger.db", given.rounds)
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
