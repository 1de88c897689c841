"""Processes that decide and reward on one ledger while it suffers. Alone: kills.py --rounds 50, and with --postgres.

    kills      the processes are killed after a random number of calls
    events     the same, where every second turn changes the bandit
    restores   a backup is put back while they work (places.py says how); then kills
    full       the disk has no more room while they work, and later it has; then kills

In each round processes are forked. Each opens `Live` on the home, and tells through a pipe of every call that has
returned, with the moments when it began and returned. Then the ledger must have all that was acknowledged: decisions,
rewards, changes of arms and events of the bandit (but for those between a backup and its return). Each reward counts
once, the bandit and its shadow must be those of a replay, and each decision has the propensity that the batch which it
knew gives. Events are settings that change, rollbacks, what is learnt again, and a shadow that is promoted.
"""

import argparse
import logging
import os
import random
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import databases
import dither
import replays
from dither.features import Numeric
from places import Address, Disk, File, Served, in_a_child

PROCESSES, CALLS = 2, 60
EVENTS, MANY = 0.15, 0.5  # the share of the turns of a process in which the bandit changes
PATIENCE = 120  # seconds in which a process must be able to go on
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
    return 0


def event(live, rng):
    """An event at random, and what it is told: more often one after which nothing is learnt again."""
    return [
        ("change", {"floor": round(float(rng.uniform(0.01, 0.3)), 9)}),
        ("change", {"floor": round(float(rng.uniform(0.01, 0.3)), 9)}),
        ("change", {"lam": round(float(rng.uniform(1, 5)), 9)}),
        ("rollback", {"batch": max(0, live.batch - int(rng.integers(5)))}),
        ("relearn", {}),
        ("promote", {"keep": True}),
    ][rng.integers(6)]


def work(home, out, seed, limit=None, events=EVENTS):
    """Decide and reward for ever. A line is written when a call has returned.

    limit : bytes that a file may have, until five calls were refused for it; None: it has any
    events : the share of turns in which the bandit changes
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
            if (luck := rng.random()) < events:  # the bandit changes
                what, given = event(live, rng)
                _, tell = call("e", getattr(live, what), author=f"{os.getpid()}-{luck}", **given)
                tell(f"{what} {os.getpid()}-{luck}")
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
            time.sleep(0.01)


class Crew:
    """Processes at work, and the lines that they have written."""

    def __init__(self, home, luck, limit=None, events=EVENTS):
        self.lines, self._running = [], []
        for _ in range(PROCESSES):
            receive, send = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    os.close(receive)
                    work(home, send, luck.randrange(2**32) + os.getpid(), limit, events)
                except BaseException:
                    import traceback

                    traceback.print_exc()
                finally:
                    os._exit(1)
            os.close(send)
            self._running.append((child, os.fdopen(receive)))

    def go_on(self, calls):
        """Wait until each has been answered so many calls."""
        for _, pipe in self._running:
            answered = 0
            while answered < calls:
                answered += not self._next(pipe).startswith("x ")

    def fail(self, calls):
        """Wait until so many calls were refused."""
        refused = 0
        while refused < calls:
            refused += sum(self._next(pipe).startswith("x ") for _, pipe in self._running)

    def _next(self, pipe):
        signal.alarm(PATIENCE)
        line = pipe.readline()
        signal.alarm(0)
        assert line, "a process ended by itself"
        self.lines.append(line)
        return line

    def kill(self):
        """-> the lines of all of them, as lists of words."""
        for child, _ in self._running:
            os.kill(child, signal.SIGKILL)
        for child, pipe in self._running:
            self.lines += pipe.readlines()
            assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL, "a process ended by itself"
            pipe.close()
        return [line.split() for line in self.lines if line.endswith("\n")]


def killed(place, luck, acknowledged):
    """One round; -> all that must be there."""
    crew = Crew(place.home, luck)
    crew.go_on(luck.randrange(1, CALLS))
    return acknowledged + crew.kill()


def changed(place, luck, acknowledged):
    """One round: the bandit changes again and again."""
    crew = Crew(place.home, luck, events=MANY)
    crew.go_on(luck.randrange(1, CALLS))
    return acknowledged + crew.kill()


def restored(place, luck, acknowledged):
    """One round: what was acknowledged between the backup and its return need not be there."""
    crew = Crew(place.home, luck)
    crew.go_on(luck.randrange(1, CALLS))
    taken = time.monotonic()
    place.back_up(luck)
    crew.go_on(luck.randrange(1, CALLS))
    place.put_back(luck)
    back = time.monotonic()
    crew.go_on(luck.randrange(CALLS, 2 * CALLS))
    lines = crew.kill()
    return acknowledged + [line for line in lines if float(line[2]) < taken or float(line[1]) > back]


def filled(place, luck, acknowledged):
    """One round: there is no more room until calls were refused."""
    crew = Crew(place.home, luck, limit=place.fill(luck))
    crew.fail(5)
    place.make_room()
    crew.go_on(luck.randrange(CALLS, 2 * CALLS))
    return acknowledged + crew.kill()


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
    told = {(line[3], line[4]) for line in acknowledged if line[0] == "e" and line[3] != "relearn"}  # of nothing
    happened = live.events()
    assert told <= {(one.what, one.author) for one in happened}, "an event that was acknowledged is lost"
    assert [one.number for one in happened] == list(range(1, len(happened) + 1))
    assert len({one.author for one in happened}) == len(happened), "an event is there twice"
    live.relearn(author=f"check {len(happened)}")
    for of in ("bandit", "shadow"):
        assert live.to_bytes(of) == live.replay(of=of).to_bytes(), f"the {of} is not that of a replay"
    assert live.bandit.observations == len(counted), "a reward was learnt twice, or not at all"
    assert all(row[3] is not None for row in rows)
    knew_what_they_say(live)
    live.close()
    return len(counted)


def knew_what_they_say(live):
    """Each decision has the propensity of the bandit after the batch that its row names."""
    with live.ledger.database.reading() as connection:
        batches = dict(connection.exec_driver_sql("SELECT id, batch FROM dither_decisions").fetchall())
    rows = live.read().frame.select("id", "features", "arm", "propensity", "floor").to_dicts()
    rows.sort(key=lambda row: batches[row["id"]])
    for row, bandit in zip(rows, replays.bandits(live, [batches[row["id"]] for row in rows]), strict=True):
        p = bandit.propensities(np.array(row["features"]))[row["arm"]]
        same = abs(p - row["propensity"]) < 1e-9 and bandit.floor == row["floor"]
        assert same, f"{row['id']} did not know batch {batches[row['id']]}"


ROUNDS = {"kills": killed, "events": changed, "restores": restored, "full": filled}


def rounds(place, n, what="kills", seed=0):
    """n rounds of one kind in one place; -> how many rewards count in the end."""
    luck, acknowledged, counted = random.Random(seed), [], 0
    in_a_child(first, place.home)
    for i in range(n):
        acknowledged = ROUNDS[what](place, luck, acknowledged)
        counted = in_a_child(check, place.home, acknowledged)
        refused = sum(line[0] == "x" for line in acknowledged)
        words = f"{len(acknowledged) - refused} calls acknowledged, {refused} refused, {counted} rewards count"
        print(f"{what}{place.said}, round {i + 1}: {words}", flush=True)
    return counted


def on_files(given):
    """Rounds on SQLite: full disks on a disk of its own, where there may be one, else with a limit on files."""
    with tempfile.TemporaryDirectory() as folder:
        rounds(File(Path(folder) / "ledger.db"), given.rounds)
    with tempfile.TemporaryDirectory() as folder:
        rounds(File(Path(folder) / "ledger.db"), given.events, "events")
    with tempfile.TemporaryDirectory() as folder:
        rounds(File(Path(folder) / "ledger.db"), given.restores, "restores")
    with tempfile.TemporaryDirectory() as folder:
        disk = Disk(folder)
        print("a disk of its own" if disk.mounted else "a limit on the size of files", flush=True)
        try:
            rounds(File(Path(folder) / "ledger.db", disk if disk.mounted else None), given.full, "full")
        finally:
            disk.unmount()


def on_servers(given):
    """Rounds on PostgreSQL, each kind on a server of its own. Only a disk of its own can be full."""
    for what, n in (
        ("kills", given.rounds),
        ("events", given.events),
        ("restores", given.restores),
        ("full", given.full),
    ):
        place = Served(small=what == "full")
        try:
            if place.small or what != "full":
                rounds(place, n, what)
            else:
                print("no disk can be mounted: none was full")
        finally:
            place.stop()


def on_a_pooler(given):
    """Kills of processes that reach PostgreSQL by PgBouncer."""
    server = databases.Server()
    pooler = databases.Pooler(server, "default_pool_size = 2")
    try:
        rounds(Address(pooler.url()), given.rounds)
    finally:
        pooler.stop()
        server.stop()


def give_up(*_):
    raise TimeoutError(f"no call returned in {PATIENCE} seconds")


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=50, help="kills")
    options.add_argument("--events", type=int, default=0, help="kills where the bandit changes all the time")
    options.add_argument("--restores", type=int, default=0, help="backups that are put back")
    options.add_argument("--full", type=int, default=0, help="full disks")
    where = options.add_mutually_exclusive_group()
    where.add_argument("--postgres", action="store_true", help="on a PostgreSQL server, not on SQLite")
    where.add_argument("--pooler", action="store_true", help="kills, on a PostgreSQL server behind PgBouncer")
    where.add_argument("--home", help="rounds of one kind (--what), there")
    options.add_argument("--what", choices=ROUNDS, default="kills")
    given = options.parse_args()
    signal.signal(signal.SIGALRM, give_up)
    logging.disable(logging.WARNING)  # the ledger is away for a while, as it is meant to be
    if given.home:
        rounds((Address if "://" in given.home else File)(given.home), given.rounds, given.what)
    elif (given.postgres or given.pooler) and databases.programs() is None:
        sys.exit("no PostgreSQL")
    else:
        (on_servers if given.postgres else on_a_pooler if given.pooler else on_files)(given)
