"""What processes count, and what fails in them, is in the ledger: for whoever reads it, in another process, later."""

import contextlib
import json
import os
import sqlite3
import threading
from collections import Counter
from datetime import timedelta

import numpy as np
import pytest
import sqlalchemy as sa
from prometheus_client.parser import text_string_to_metric_families

import dither as package
from dither import log
from dither.live import status
from dither.log import tallies
from dither.log.database import days, sql_tables, tallying
from dither.log.database.home import Home
from ledgers import moment
from livings import unlimited

X = np.eye(3)
NOW = moment(43_200)
DAY = 86_400


@pytest.fixture(autouse=True)
def clock(monkeypatch, closing):
    """All clocks stand, and no thread writes, unless a test says so: counts wait."""
    monkeypatch.setattr(tallies, "PAUSE", 1e6)
    now = [NOW]

    class Clock(tallies.datetime):
        @classmethod
        def now(cls, zone=None):
            return now[0]

    monkeypatch.setattr(tallies, "datetime", Clock)
    monkeypatch.setattr(log.troubles, "datetime", Clock)
    monkeypatch.setattr(Home, "now", lambda self, connection: round(now[0].timestamp() * 1e6))

    def move(**by):
        now[0] += timedelta(**by)

    return move


def fields():
    context, arm = {"country": ["AT", "CH"]}, {"topic": ["art", "war"]}
    return package.Features(context=context, arm=arm, cross="all")


def begin(home, **settings):
    bandit = package.LinFP(features=fields(), lam=1.0, floor=0.1, seed=0)
    return package.Live(home, bandit=bandit, **settings)


def choose(live, country="AT"):
    return live.choose({"country": country}, arms=[{"topic": "art"}, {"topic": "war"}])


def written(live):
    live.ledger.database.tallies.write()


def seen_by_another(home):
    """The status of a ledger, as another process has it, which may only read."""
    with log.Ledger.to_read(home) as ledger:
        return status.of(ledger)


def rows(live):
    with live.ledger.database.reading() as connection:
        return connection.execute(sa.select(sql_tables.counts_by_day)).all()


def test_what_several_processes_have_counted_is_told_to_all(shared, clock):
    """The oracle counts what was passed. Seen red: each process wrote what the other had, and more were less."""
    rng, wanted = np.random.default_rng(0), Counter()
    lives = [begin(shared), package.Live(shared)]
    for day in range(3):
        for n in range(6):
            country = ["AT", "DE", "FR"][rng.integers(3)]
            choose(lives[n % 2], country=country)
            wanted[day] += country != "AT"
            if n % 4 == 0:
                written(lives[n % 2])
        for live in lives:  # with what it has not written, and then without
            assert live.status().unknown["country"] >= wanted.total() - 6
            written(live)
        assert lives[0].status().unknown == {"country": wanted.total()}
        clock(days=1)
    seen = seen_by_another(shared)
    assert [(one.day, one.kind, one.name, one.n) for one in seen.counted] == [
        ((NOW + timedelta(day)).date(), "unknown", "country", n) for day, n in sorted(wanted.items())
    ]
    with log.Ledger.to_read(shared) as ledger:
        later = status.of(ledger, since="2026-03-02")
    assert later.unknown == {"country": wanted[1] + wanted[2]}
    assert all(one.here is None for one in (seen, later))
    for live in lives:
        live.close()


@pytest.mark.filterwarnings("ignore::dither.features.MisspeltWarning")
def test_fields_that_are_misspelt_are_counted_by_their_right_names():
    features = package.Features(
        context={"hour_of": [1, 2]}, arm={"topic": ["art", "war"]}, cross="all", absent="missing"
    )
    with package.Live(None, bandit=package.LinFP(features=features, lam=1.0, floor=0.1)) as live:
        for _ in range(2):
            live.choose({"hourOf": 3}, arms=[{"topic": "art"}, {"topic": "war"}])
        features.tell([("hour_of", "hourOf")], "context")  # no request of this ledger
        seen = live.status()
        assert (seen.misspelt, seen.unknown) == ({"hour_of": 2}, {"hour_of": 2})
        assert "hourOf" not in json.dumps(seen.to_dict())


def test_features_of_two_bandits_are_counted_by_the_ledger_that_was_asked():
    """Seen red with the counts of the features, which are one object."""
    shared = fields()
    one, other = (package.Live(None, bandit=package.LinFP(features=shared, lam=1.0, floor=0.1)) for _ in range(2))
    for n, live in enumerate((one, other, other)):
        choose(live, country=f"of {n}")
    assert (one.status().unknown, other.status().unknown) == ({"country": 1}, {"country": 2})
    one.close()
    other.close()


def test_arms_of_a_catalogue_are_counted_when_they_come():
    catalogue = package.Catalogue(fields(), {"a": {"topic": "art"}})
    with package.Live(None, bandit=package.LinFP(features=fields(), floor=0.1), catalogue=catalogue) as live:
        live.catalogue.add("b", {"topic": "of nobody"})
        assert live.status().unknown == {"topic": 1}


def test_no_value_of_anybody_is_kept(tmp_path):
    home = tmp_path / "a.db"
    with begin(home) as live:
        choose(live, country="a secret land")
    data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"a secret land" not in data
    assert seen_by_another(home).unknown == {"country": 1}


# Refused rewards


def refusing(home, **settings):
    bandit = package.GLMFP(dim=3, lam=1.0, floor=0.3, seed=0)
    live = package.Live(home, bandit=bandit, **settings)
    unlimited(live)  # so that the model refuses, and not the ledger
    return live


def refused_by_hand(live):
    """Of all rewards that a model of clicks cannot have."""
    with live.ledger.database.reading() as connection:
        return sum(not 0 <= r <= 1 for r in connection.scalars(sa.select(sql_tables.rewards.c.reward)))


def test_each_refused_reward_is_counted_once_whoever_learns_it_again(shared):
    """Seen red with what each process has refused: a replay counts all of them again."""
    live = refusing(shared, snapshot_seconds=1e6)
    for r in (1.0, 7.0, 0.0, -1.0, 8.0):
        live.reward(live.choose(X).id, r)
    assert live.status().refused == refused_by_hand(live) == 3
    assert live.status().refused == 3
    written(live)
    live._learner.stands.torn = True
    live._learner.follow(replay=True)  # all is learnt again
    assert live.refused > 3
    other = package.Live(shared, learn=False)
    for one in (live, other):
        written(one)
        assert one.status().refused == 3
    with live.ledger.holding() as connection:
        connection.execute(sa.update(sql_tables.lease).values(expires=0))
    live._learner._lease = None
    third = package.Live(shared)
    unlimited(third)
    third.reward(third.choose(X).id, 9.0)
    third.close()
    assert seen_by_another(shared).refused == refused_by_hand(live) == 4
    other.close()
    live.close()


def test_a_commit_of_which_nobody_knows_is_counted_once(shared, monkeypatch):
    """It was there, and its answer was lost. Seen red with an increment."""
    live = begin(shared)
    counts = live.ledger.database.tallies
    choose(live, country="DE")
    counts.refuse({3: 2})
    put = counts.put

    def lost(connection, database, new):
        put(connection, database, new)
        database.driver(connection).commit()
        raise OSError("the connection was lost")

    with monkeypatch.context() as patch:
        patch.setattr(counts, "put", lost)
        with pytest.raises(OSError, match="was lost"):
            written(live)
    for _ in range(2):
        written(live)
        assert (live.status().unknown, live.status().refused) == ({"country": 1}, 2)
    assert len(rows(live)) == 2
    live.close()


# What cannot be written, and what must not be


def test_counts_wait_while_they_cannot_be_written(monkeypatch, caplog):
    """No call hears of it, and it is no trouble. Seen red with a failure that is counted: it never ended."""
    live = begin(None)

    def full(*_):
        raise OSError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(live.ledger.database.tallies, "put", full)
        choose(live, country="DE")
        patch.setattr(live.ledger.database.tallies._closed, "wait", lambda seconds: False)
        assert live.ledger.database.tallies.beat() == 0.0
        choose(live, country="FR")
        assert live.troubles == []
        assert live.status().unknown == {"country": 2}
    assert live.ledger.database.tallies.beat() is None
    assert [row.n for row in rows(live)] == [2]
    live.close()


def test_decisions_cost_no_transaction_more():
    """Counts are written beside them. Seen red: a transaction for each."""
    live = begin(None, refresh_seconds=1e6)
    begun, home = [], live.ledger.database
    whole = home._begun
    home._begun = lambda alone: begun.append(1) or whole(alone)
    for _ in range(5):
        choose(live, country="DE")
    assert len(begun) == 5
    assert rows(live) == []
    written(live)
    assert len(begun) == 6
    written(live)
    assert len(begun) == 6
    home._begun = whole
    live.close()


def test_the_thread_writes_and_ends(monkeypatch):
    monkeypatch.setattr(tallies, "PAUSE", 0.0)
    live = begin(None)
    choose(live, country="DE")
    thread = live.ledger.database.tallies._thread
    if thread is not None:
        thread.join()
    assert [row.n for row in rows(live)] == [1]
    assert live.ledger.database.tallies._thread is None
    live.close()


def test_what_threads_count_while_it_is_written_is_all_there(monkeypatch):
    """Seen red: what came between the reading and the writing was taken for written."""
    monkeypatch.setattr(tallies, "PAUSE", 0.0)
    live = begin(None)
    counts, put = live.ledger.database.tallies, live.ledger.database.tallies.put
    ready = threading.Barrier(4)

    def meanwhile(connection, home, new):
        put(connection, home, new)
        counts.of_features([("unknown", "country", 1)])

    def work():
        ready.wait()
        for _ in range(100):
            counts.of_features([("unknown", "country", 1)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    while (writing := counts._thread) is not None:
        writing.join()
    assert [row.n for row in rows(live)] == [400]
    monkeypatch.setattr(tallies, "PAUSE", 1e6)
    counts.put = meanwhile
    counts.of_features([("unknown", "country", 1)])
    counts.write()
    assert ([row.n for row in rows(live)], live.status().unknown) == ([401], {"country": 402})
    counts.put = put
    written(live)
    assert [row.n for row in rows(live)] == [402]
    live.close()


def test_a_ledger_that_is_only_read_is_not_written_to(tmp_path):
    home = tmp_path / "a.db"
    with begin(home) as live:
        choose(live)
    os.chmod(home, 0o444)
    before = home.read_bytes()
    with log.Ledger.to_read(home) as ledger:
        ledger.database.troubles.add("erasing", "it failed")
        assert ledger.database.tallies._thread is None
        assert status.of(ledger).warnings == [f"trouble with erasing for 0 seconds, once, in {host(ledger)}: it failed"]
    assert home.read_bytes() == before


def host(ledger):
    return ledger.database.tallies.host


def test_the_child_of_a_fork_counts_what_is_its_own(tmp_path):
    home = tmp_path / "a.db"
    live = begin(home)
    choose(live, country="DE")
    live.ledger.database.troubles.add("snapshot", "it failed")
    child = os.fork()
    if not child:
        try:
            choose(live, country="FR")
            written(live)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    seen = seen_by_another(home)
    assert (seen.unknown, seen.troubles) == ({"country": 1}, ())
    live.close()
    assert seen_by_another(home).unknown == {"country": 2}
    # seen red: the counts of the parent, written by both


def test_rows_of_days_that_are_past_become_one(shared, clock):
    lives = [begin(shared), package.Live(shared)]
    for _ in range(2):
        for live in lives:
            choose(live, country="DE")
            written(live)
        clock(days=1)
    assert len(rows(lives[0])) == 4
    clock(days=1.5)
    choose(lives[0], country="DE")
    written(lives[0])
    assert Counter(row.process == "" for row in rows(lives[0])) == {True: 2, False: 1}
    written(lives[1])
    assert lives[1].status().unknown == {"country": 5}
    assert [one.n for one in lives[1].status().counted] == [2, 2, 1]
    for live in lives:
        live.close()


# Troubles


def metrics(seen):
    families = text_string_to_metric_families(seen.prometheus())
    return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


def test_a_trouble_stands_for_all_until_it_is_mended(tmp_path, clock):
    shared = tmp_path / "a.db"
    live = begin(shared)
    fails = [True]

    def step():
        if fails[0]:
            raise OSError("no room on the disk")

    live._learner.attempt("snapshot", step)
    clock(minutes=3)
    live._learner.attempt("snapshot", step)
    written(live)
    seen = seen_by_another(shared)
    (one,) = seen.troubles
    assert (one.what, one.state, one.times, one.first, one.ended) == ("snapshot", "stands", 2, NOW, None)
    assert (seen.exit_code, seen.failures) == (1, {"snapshot": 2})
    assert seen.warnings == [f"trouble with snapshot for 3 minutes, 2 times, in {host(live.ledger)}: {one.words}"]
    assert "no room on the disk" in seen.text()
    assert metrics(seen)[("dither_standing_troubles",)] == 1
    assert metrics(seen)["dither_troubles_total", "snapshot"] == 2
    began = metrics(seen)["dither_trouble_begin_timestamp_seconds", host(live.ledger), "snapshot"]
    assert began == NOW.timestamp()
    clock(minutes=2)
    fails[0] = False
    live._learner.attempt("snapshot", step)
    written(live)
    seen = seen_by_another(shared)
    (one,) = seen.troubles
    assert (one.state, one.times, one.ended) == ("mended", 2, NOW + timedelta(minutes=5))
    assert (seen.exit_code, seen.warnings, metrics(seen)[("dither_standing_troubles",)]) == (0, [], 0)
    assert "12:05:00 UTC, 2 times" in seen.text()
    fails[0] = True
    live._learner.attempt("snapshot", step)
    assert [(one.state, one.times) for one in live.status().troubles] == [("stands", 1)]
    live.close()
    assert seen_by_another(shared).exit_code == 0  # its process has ended


def test_a_trouble_whose_process_is_gone_is_no_warning(tmp_path, clock):
    """It says every ten seconds that it stands. Seen red: a kill, and it stood for ever."""
    shared = tmp_path / "a.db"
    live = begin(shared)
    live.ledger.database.troubles.add("sums", "it failed")
    assert live.ledger.database.tallies.beat() == tallies.BEAT
    for _ in range(10):
        clock(seconds=tallies.BEAT)
        assert live.ledger.database.tallies.beat() == tallies.BEAT
    heard = NOW + timedelta(seconds=100)
    clock(seconds=tallies.GONE)
    assert seen_by_another(shared).exit_code == 1
    clock(seconds=1)
    seen = seen_by_another(shared)
    assert [(one.state, one.ended) for one in seen.troubles] == [("gone", heard)]
    assert seen.exit_code == 0
    assert live.ledger.database.tallies.beat() == tallies.BEAT  # it was asleep
    assert seen_by_another(shared).exit_code == 1
    live.close()


def test_what_another_process_does_now_is_no_trouble_here():
    live = package.Live(None, bandit=package.LinFP(dim=3, lam=1.0, seed=0))
    live.reward(live.choose(X).id, 1.0)
    for what in ("snapshot", "sums", "learning"):
        live.ledger.database.troubles.add(what, "it failed")
    assert len(live.status().warnings) == 3
    live._learner._lease = None
    live._learner.after()
    assert live.status().warnings == []
    live.close()


def test_an_erasure_takes_the_words_of_troubles():
    """The error of a model of one's own may quote what it was given."""
    live = begin(None)
    d = choose(live)
    live.ledger.database.troubles.add("learning", "it failed (KeyError: 'anna')")
    written(live)
    live.erase([d.id])
    live.ledger.database.tallies.beat()
    (one,) = live.status().troubles
    assert (one.words, one.times) == (tallying.ERASED, 1)
    live.close()
    # seen red: words that are written again with each beat


def test_words_that_no_database_takes_are_written(shared):
    with begin(shared) as live:
        live.ledger.database.troubles.add("learning", "\x00 and \ud800" + "x" * 5000)
        written(live)
        (one,) = live.status().troubles
        assert one.words == ("\\u0000 and \\ud800" + "x" * 5000)[: tallying.LONGEST]


def test_what_is_written_while_a_status_is_read_is_told(tmp_path, monkeypatch):
    with begin(tmp_path / "a.db") as live:
        counted, read = live.ledger.database.tallies, days.sums

        def sums(connection, home):
            found = read(connection, home)  # the status reads this moment from now on
            counted.write()
            return found

        monkeypatch.setattr(days, "sums", sums)
        counted.troubles.add("learning", "it failed")
        choose(live, "DE")
        seen = live.status()
        assert ([one.words for one in seen.troubles], seen.unknown) == (["it failed"], {"country": 1})
    # seen red: what is unwritten asked for after the reading began


def test_a_backup_that_is_put_back_goes_on_with_what_this_process_has_counted(tmp_path):
    """Its decisions are gone, and the values that nobody knew came all the same."""
    home, copy = tmp_path / "a.db", tmp_path / "copy.db"
    live = begin(home)
    for n in range(4):
        choose(live, "DE")
        if n < 3:
            written(live)
        if n == 1:
            copy_of(home, copy)
    copy_of(copy, home)
    assert (len(live.ledger), live.status().unknown) == (2, {"country": 4})
    written(live)
    assert seen_by_another(home).unknown == {"country": 4}
    live.close()


def copy_of(source, target):
    with contextlib.closing(sqlite3.connect(source)) as one, contextlib.closing(sqlite3.connect(target)) as other:
        one.backup(other)
