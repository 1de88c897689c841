"""Sums by day and arm are those of the rows that `read` gives, added up by hand."""

from datetime import timedelta

import numpy as np
import pytest
import sqlalchemy as sa

import dither
from dither import log
from dither.bandit.bandit import Decision
from dither.log.database import days, erasing, keeping, lessons, sql_tables
from dither.log.database import home as homes
from ledgers import features, moment
from sums_by_hand import by_hand, same

DAYS = ("2026-03-01T23:59:59.999999", "2026-03-02T00:00:00", "1969-12-31T23:59:59")


def filled(home, **terms):
    """A ledger with rows of every kind."""
    ledger, rng = log.Ledger(home, **terms), np.random.default_rng(0)
    for n in range(40):
        K = 1 + n % 4
        arm, floor = int(rng.integers(K)), [None, 0.2, 1.0][n % 3]
        P = rng.dirichlet(np.ones(K))
        p = 1 / K if floor == 1 else 1.0 if n % 5 == 0 else float(P[arm])
        kind = "none" if n % 11 == 10 else "exact"
        ledger.record(
            Decision(arm, p if kind == "exact" else float("nan"), kind, None, None),
            X=features(n, K=K),
            id=n,
            time=DAYS[n % 3],
            arms=None if n % 4 == 0 else [f"a{k}" for k in rng.permutation(6)[:K]],
            probabilities=P if n % 2 and p == float(P[arm]) else None,
            floor=floor,
            extra={"user": n % 7},
        )
    for n in range(0, 40, 2):
        ledger.reward(n, float(rng.normal()), DAYS[1])
    ledger.reward(2, 7.0)  # a conflict
    return ledger


@pytest.mark.parametrize("rule", ["sum", "last", "list"])
def test_sums_are_those_of_the_rows(home, rule):
    ledger = filled(home, rewards=rule)
    ledger.correct(4, 2.5)
    for part, r, at in (("x", 1.0, DAYS[1]), ("y", 2.0, DAYS[0]), ("z", 3.0, DAYS[1])):
        ledger.reward(1, r, at, part=part)
    same(ledger.days(), by_hand(ledger))
    assert ledger.erase(user=3) > 0
    same(ledger.days(), by_hand(ledger))
    total = ledger.days().total()
    assert (total.decisions, total.erased, total.conflicts, total.corrections) == (40, 6, 1, 1)
    ledger.close()


def kept(ledger, most=1000):
    """Add what is new to the sums that are kept."""
    with ledger.holding() as connection:
        return days.keep(connection, ledger.database, most=most)


def only_kept(ledger):
    """The sums that are kept, without what a reader adds."""
    with ledger.database.reading() as connection:
        return {key: (tuple(one.counts), tuple(one.sums)) for key, one in days._kept(connection, []).items()}


def test_sums_that_are_kept_in_pieces_are_those_of_the_rows(home):
    ledger = filled(home)
    more = True
    while more:
        more = kept(ledger, most=7)
        same(ledger.days(), by_hand(ledger))
    ledger.correct(4, 2.5)
    ledger.reward(1, 1.0)
    ledger.erase([8, 9])  # one with a reward, and one without
    same(ledger.days(), by_hand(ledger))
    kept(ledger)
    seen = {(row.day, row.arm): row for row in ledger.days().rows}
    assert len(only_kept(ledger)) == len(seen)
    same(ledger.days(), by_hand(ledger))
    ledger.close()


def test_what_an_older_dither_has_erased_is_added_up_anew(home):
    """It may be open beside this one, and knows nothing of the sums. Seen red: the erased reward stayed."""
    ledger = filled(home)
    kept(ledger)
    with ledger.holding() as connection:
        erasing._blank(connection, [3], 1)
        lessons.changed(connection, erased=1)
    same(ledger.days(), by_hand(ledger))
    kept(ledger)
    assert len(only_kept(ledger)) == len(ledger.days().rows)
    same(ledger.days(), by_hand(ledger))
    ledger.close()


def test_what_is_taken_out_leaves_no_trace(home):
    """Seen red without what rounding has left: 1e17 and then 0.1 leaves 0."""
    with log.Ledger(home) as ledger:
        for n, r in enumerate((1e17, 0.1)):
            ledger.record(Decision(0, 0.5, "exact", None, None), X=features(n), id=n, time=DAYS[1])
            ledger.reward(n, r)
        kept(ledger)
        ledger.erase([0])
        kept(ledger)
        assert ledger.days().total().reward == 0.1


def test_the_largest_rewards_are_added_exactly(shared):
    """Also where a decision has several of them, and is shown hardly ever. Seen red with what was cut at 1e70."""
    with log.Ledger(shared) as ledger:
        for n, p in enumerate((0.5, 1e-60)):
            ledger.record(Decision(0, p, "exact", None, None), X=features(n), id=n, time=DAYS[1])
            for part in "ab":
                ledger.reward(n, 1e70, part=part)
        ledger.reward(1, -1e70, part="c")
        for _ in range(2):
            total = ledger.days().total()
            assert (total.reward, total.reward_squared) == (2e70 + 1e70, 2e70**2 + 1e70**2)
            assert total.weighted_reward == pytest.approx(1e130, rel=1e-15)
            assert total.squared_weighted_reward == pytest.approx(1e190, rel=1e-15)
            assert total.weighted_reward_squared == pytest.approx(1e260, rel=1e-15)
            kept(ledger)


def test_days_of_a_span(home):
    ledger = filled(home)
    for _ in range(2):
        rows = ledger.days().rows
        some = ledger.days(since="2026-03-01T12:00", until="2026-03-01T13:00").rows  # the day of both
        assert some == tuple(row for row in rows if str(row.day) == "2026-03-01")
        assert ledger.days(since="2026-03-02").rows == tuple(row for row in rows if str(row.day) == "2026-03-02")
        assert ledger.days(until="1970-01-01").rows == tuple(row for row in rows if row.day.year == 1969)
        kept(ledger, most=20)
    ledger.close()


def insert(connection, id):
    """A decision, in a transaction that is open."""
    row = {"closed": False, "K": 2, "arm": 0, "propensity": 0.5}
    row |= {"id": id, "time": 0, "propensity_kind": "exact"}
    connection.execute(sa.insert(sql_tables.decisions).values(row))


def test_a_row_that_commits_late_is_added_once(postgres, closing):
    """Seen red with the highest number alone: the late row was never added."""
    ledger = log.Ledger(postgres.url())
    with log.Ledger(postgres.url()):  # another one, which the numbers of this one do not touch
        pass
    late = [ledger.database._engine.connect() for _ in range(3)]
    for n, connection in enumerate(late):
        insert(connection, f"late{n}")
    insert_now = sa.insert(sql_tables.rewards)
    with ledger.database.writing() as connection:
        insert(connection, "there")
    kept(ledger)
    same(ledger.days(), by_hand(ledger))
    late[1].commit()
    same(ledger.days(), by_hand(ledger))
    kept(ledger)
    late[0].rollback()
    late[2].commit()
    number = dict(decision=2, part="", reward=1.0, time=0, standing="counted")
    with ledger.database._engine.connect() as connection:
        connection.execute(insert_now.values(number))
        ledger.reward("there", 1.0)
        kept(ledger)
        same(ledger.days(), by_hand(ledger))
        connection.commit()
    for connection in late:
        connection.close()
    same(ledger.days(), by_hand(ledger))
    kept(ledger)
    same(ledger.days(), by_hand(ledger))
    assert only_kept(ledger).keys() == {(0, "0"), (0, "1")}
    assert ledger.days().total().rewarded == 2
    ledger.close()


def test_many_gaps_are_forgotten_while_nobody_writes(postgres, closing, monkeypatch):
    monkeypatch.setattr(days, "GAPS", 3)
    ledger = log.Ledger(postgres.url())
    for n in range(6):
        with ledger.database._engine.connect() as connection:
            insert(connection, f"lost{n}")
            connection.rollback()
        with ledger.database.writing() as connection:
            insert(connection, f"there{n}")
    kept(ledger)
    with ledger.database.reading() as connection:
        assert len(days._summed(connection).decisions.gaps) == 6
    kept(ledger)
    with ledger.database.reading() as connection:
        assert days._summed(connection).decisions == days.Numbers(12)
    same(ledger.days(), by_hand(ledger))
    ledger.close()


def test_a_learner_keeps_the_sums(home):
    """Beside its calls, and all of them when it closes."""
    live = dither.Live(home, bandit=dither.LinFP(dim=3, floor=0.1, seed=0))
    live._learner.sum_seconds = live._learner._sums_due = 0
    for n in range(3):
        live.reward(live.choose(np.eye(3)).id, float(n))
    assert sum(counts[0] for counts, _ in only_kept(live.ledger).values()) == 3
    live._learner.sum_seconds = live._learner._sums_due = 1e9
    live.reward(live.choose(np.eye(3)).id, 1.0)
    assert sum(counts[0] for counts, _ in only_kept(live.ledger).values()) == 3
    same(live.ledger.days(), by_hand(live.ledger))
    if home is not None:
        live.close()
        with log.Ledger.to_read(home) as ledger:
            assert sum(counts[0] for counts, _ in only_kept(ledger).values()) == 4


# Hours


NOW = moment(1800)  # by the clock of the database
HOUR = 3600  # seconds


@pytest.fixture
def stopped(monkeypatch):
    """The clock of the database stands."""
    monkeypatch.setattr(homes.Home, "now", lambda self, connection: int(NOW.timestamp()) * 10**6)


def recent(home):
    """A ledger whose decisions are so many hours old, each second one with a reward."""
    ledger, rng = log.Ledger(home), np.random.default_rng(0)
    for n, ago in enumerate((0, 0.25, 0.5, 1, 30, 47, 60, 90)):
        P = rng.dirichlet(np.ones(3))
        d = Decision(n % 3, float(P[n % 3]), "exact", None, 0.2)
        ledger.record(d, X=features(n, K=3), id=n, time=moment(1800 - HOUR * ago), probabilities=P)
        if n % 2:
            ledger.reward(n, float(rng.normal()))
    return ledger


def read_hours(ledger):
    with ledger.database.reading() as connection:
        return days.sums(connection, ledger.database).hours


def hours_by_hand(ledger):
    """Of the hour of now and of the 47 before it."""
    return {key: cell for key, cell in by_hand(ledger, hours=True).items() if key[0] > NOW - timedelta(hours=48)}


def test_hours_are_those_of_the_rows_whether_or_not_they_are_kept(home, stopped):
    """Seen red: rewards that came after their decision was in the sums were missing in its hour."""
    ledger = recent(home)
    same(read_hours(ledger), hours_by_hand(ledger))
    assert len(read_hours(ledger).rows) == 4
    more = True
    while more:
        more = kept(ledger, most=2)
        same(read_hours(ledger), hours_by_hand(ledger))
    ledger.correct(1, 2.5)
    ledger.reward(0, 1.0)
    ledger.erase([2, 3])
    same(read_hours(ledger), hours_by_hand(ledger))
    kept(ledger)
    same(read_hours(ledger), hours_by_hand(ledger))
    same(ledger.days(), by_hand(ledger))
    with ledger.database.reading() as connection:
        oldest = connection.scalar(sa.select(sa.func.min(sql_tables.hours.c.hour)))
    assert oldest == moment(-60 * HOUR).timestamp() // HOUR  # the one of 90 hours ago is not kept
    ledger.close()


def test_hours_that_an_older_dither_has_not_kept_begin_anew(stopped):
    """It keeps days alone. What is whole is told, and nothing else; seen red: hours without what it had added."""
    ledger = recent(None)
    kept(ledger)
    with ledger.holding() as connection:
        stood = keeping.settings(connection)[days.SETTING]
        keeping.put(connection, days.SETTING, [[stood[0][0] + 1, []], *stood[1:]])
    assert read_hours(ledger) is None
    with ledger.holding() as connection:
        keeping.put(connection, days.SETTING, stood)
        connection.execute(sa.delete(sql_tables.settings).where(sql_tables.settings.c.name == days.OF_HOURS))
    assert read_hours(ledger) is None
    kept(ledger)
    assert read_hours(ledger).rows == ()
    for ahead in (0, 1, 2):
        ledger.record(Decision(0, 0.5, "exact", None, None), X=features(9), time=moment(HOUR * ahead))
    for _ in range(2):
        wanted = {key: cell for key, cell in hours_by_hand(ledger).items() if key[0] >= moment(HOUR)}
        assert len(wanted) == 2
        same(read_hours(ledger), wanted)
        kept(ledger)
    ledger.close()
