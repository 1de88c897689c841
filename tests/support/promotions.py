"""Processes that decide and reward while their PostgreSQL is killed and its replica promoted, again and again.

Alone: tests/support/promotions.py --rounds 20. In each round processes work on one ledger, by the address of both
servers, and tell through a pipe of every call that has returned. The primary is killed under them, the replica is
promoted, and they go on. Then the ledger is checked: the bandit is that of a replay, each reward counts and is learnt
once, and each decision has the probability that the bandit had after the batch that its row names.

An asynchronous replica may lag. What it lacks of the calls that were answered is lost by PostgreSQL, and counted here.
With --wait the primary waits for the replica (synchronous_commit=remote_apply), and nothing may be lost.
"""

import argparse
import contextlib
import logging
import os
import random
import signal
import time

import numpy as np
import sqlalchemy as sa

import databases
import dither
from dither.live import taught
from dither.log.database import lessons, sql_tables
from places import in_a_child

PROCESSES, CALLS = 2, 40  # calls that are answered before the primary is killed, and after
PATIENCE = 60  # seconds in which a process must be able to go on


def begin():
    return dither.LinFP(dim=3, seed=0, floor=0.1, lam=1.0, c=0.3)


def work(home, out, seed):
    """Decide and reward for ever. A line is written when a call has returned."""
    live = dither.Live(home, lease_seconds=0.3, snapshot_batches=7, refresh_seconds=0.05)
    rng = np.random.default_rng(seed)
    while True:
        with contextlib.suppress(OSError, LookupError):  # the database is away, or has lost the decision
            d = live.choose(rng.normal(size=(4, 3)))
            os.write(out, f"d {d.id}\n".encode())
            r = float(np.round(rng.normal(), 6))
            for _ in range(1 + int(rng.integers(2))):
                said = live.reward(d.id, r)
                os.write(out, f"r {d.id} {r} {said}\n".encode())
            continue
        time.sleep(0.01)


def promoted(pair, home, luck, lag):
    """One round; -> the lines of all processes. lag : whether the replica stops to follow after a while."""
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
    lines = heard(running, luck)
    if lag:
        pair.replica.hold_back()
        lines += heard(running, luck)
    pair.fail_over()
    lines += heard(running, luck)  # they go on
    for child, _ in running:
        os.kill(child, signal.SIGKILL)
    for child, pipe in running:
        lines += pipe.readlines()
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL, "a process ended by itself"
        pipe.close()
    return [line.split() for line in lines if line.endswith("\n")]


def heard(running, luck):
    """What the processes say, so many calls of each."""
    signal.alarm(PATIENCE)
    lines = []
    for _, pipe in running:
        lines += [pipe.readline() for _ in range(luck.randrange(CALLS // 2, CALLS))]
    signal.alarm(0)
    return lines


def check(home, acknowledged, whole):
    """What must be true after a promotion; -> how many calls that were answered the database has lost.

    whole : whether it may have lost none
    """
    live = dither.Live(home, lease_seconds=0.3)
    while not live.learns:  # the killed one's lease ends by itself
        live.learn()
    live.learn()
    decisions, rewards = sql_tables.decisions.c, sql_tables.rewards.c
    with live.ledger.database.reading() as connection:
        rows = connection.execute(
            sa.select(decisions.id, decisions.features, decisions.arm, decisions.propensity, decisions.batch)
        ).all()
        paid = sa.select(decisions.id, rewards.reward, rewards.standing, rewards.batch)
        events = connection.execute(paid.join_from(sql_tables.rewards, sql_tables.decisions)).all()
        stated(live, connection, rows)
    counted = {row.id: row.reward for row in events if row.standing == "counted"}
    assert len(events) == len(counted), "a reward was counted twice, or is in conflict"
    assert all(row.batch is not None for row in events), "a reward was not learnt"
    assert live.bandit.observations == len(counted), "a reward was learnt twice, or not at all"
    assert live.to_bytes() == live.replay().to_bytes(), "the bandit is not that of a replay"
    decided = {line[1] for line in acknowledged if line[0] == "d"}
    rewarded = {line[1]: float(line[2]) for line in acknowledged if line[0] == "r"}
    ids = {row.id for row in rows}
    for id, r in rewarded.items():
        assert counted.get(id, r) == r, "a reward is another one than was answered"
    lost = len(decided - ids) + len(rewarded.keys() - counted.keys())
    assert not (whole and lost), "what was answered is lost"
    live.close()
    return lost


def stated(live, connection, rows):
    """Each decision has the probability of the bandit after the batch that its row names. It learns them in turn."""
    state = taught.Taught(live._learner._first(), {})
    for row in sorted(rows, key=lambda row: row.batch):
        while state.batch < row.batch:
            state.learn(lessons_of(state, connection))
        X = np.frombuffer(row.features, dtype="<f8").reshape(-1, 3)
        p = state.bandit.propensities(X)[row.arm]
        assert abs(p - row.propensity) <= 1e-9, f"decision {row.id} says {row.propensity}, and batch {row.batch} {p}"


def lessons_of(state, connection):
    """The next batch. A decision that names one that there is not is false."""
    assert state.batch < lessons.last(connection), "a decision names a batch that there is not"
    return state.lesson(connection, state.batch + 1, upto=state.batch + 1)


def rounds(n, *, wait, seed=0):
    """n promotions of one ledger; -> how many calls were answered, and how many of them the database has lost."""
    luck, acknowledged, gone = random.Random(seed), [], 0
    pair = databases.Pair("max_connections=100")
    try:
        home = pair.url()
        in_a_child(first, home)
        for i in range(n):
            if wait:
                pair.wait_for_replica()
            lag = not wait and luck.random() < 0.5
            new = promoted(pair, home, luck, lag)
            acknowledged += new
            lost = in_a_child(check, home, acknowledged, wait)
            print(
                f"promotion {i + 1}{' of a replica that lagged' * lag}: {len(new)} calls answered, "
                f"{lost - gone} of them lost by the database, nothing doubled, the state is that of a replay",
                flush=True,
            )
            gone = lost
            pair.mend()
    finally:
        pair.stop()
    return len(acknowledged), gone


def first(home):
    dither.Live(home, bandit=begin()).close()
    return 0


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--wait", action="store_true")
    given = options.parse_args()
    logging.disable(logging.WARNING)  # the database is away for a while, as it is meant to be
    answered, lost = rounds(given.rounds, wait=given.wait)
    print(f"{given.rounds} promotions, {answered} calls answered, {lost} lost by the database")
