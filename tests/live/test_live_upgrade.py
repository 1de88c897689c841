"""A ledger that an older dither wrote is brought to the newest tables, with all that it holds."""

import importlib
import json
import sqlite3

import numpy as np
import pytest
import sqlalchemy as sa

import dither
from dither.base import compiled
from dither.log.database import home as homes
from dither.log.database import sql_tables

X = np.eye(3)
pytestmark = pytest.mark.usefixtures("closing", "by_numpy")
OLDER = ["0001", "0003", "0006", "0012"]  # a ledger of each is made, and upgraded


@pytest.fixture
def by_numpy(monkeypatch):
    """NumPy has taught what is copied into older tables, as it did then. Batches without a word of it say the same."""
    monkeypatch.setattr(compiled, "STEP", None)


def begin():
    return dither.LinFP(dim=3, lam=1.0, floor=0.3, seed=0)


def older(where, version, monkeypatch):
    """The tables of an older version, without rows."""

    def migrate(connection):
        config = homes.migrations()
        config.attributes["connection"] = connection
        importlib.import_module("alembic.command").upgrade(config, version)

    with monkeypatch.context() as then:
        then.setattr(homes, "_migrate", migrate)
        then.setattr(homes, "NEWEST", version)
        return homes.Home(where)


def copied(source, target):
    """Put all rows into older tables, as far as they have the columns, and the terms where these had them."""
    with source.reading() as old, target.writing() as new:
        there = sa.inspect(new)
        for table in sql_tables.metadata.sorted_tables:
            if not there.has_table(table.name):
                continue
            names = [column["name"] for column in there.get_columns(table.name)]
            light = sa.table(table.name, *[sa.column(name, table.c[name].type) for name in names])
            new.execute(sa.delete(light))
            rows = [dict(row) for row in old.execute(sa.select(*light.c)).mappings()]
            if rows:
                new.execute(sa.insert(light), rows)
            if target.postgres and there.get_columns(table.name)[0].get("identity"):  # its sequence has not counted
                key = names[0]
                new.exec_driver_sql(f"SELECT setval(pg_get_serial_sequence('{table.name}', '{key}'), 1000)")
        if not there.has_table(sql_tables.changes.name):
            text = old.scalar(sa.select(sql_tables.changes.c.terms))
            kept = {name: value for name, value in json.loads(text).items() if name not in ("support", "reward_range")}
            new.execute(sa.insert(sql_tables.settings).values(name="ledger", value=json.dumps(kept)))


@pytest.mark.parametrize("version", OLDER)
def test_a_ledger_of_an_older_version_goes_on(shared, tmp_path, version, monkeypatch):
    made = dither.Live(tmp_path / "new.db", bandit=begin(), horizon=1e6, snapshot_batches=4, snapshot_seconds=1e6)
    for i in range(10):
        d = made.choose(X, ["a", "b", "c"], extra={"user": f"u{i % 3}"})
        if i < 8:
            made.reward(d.id, float(i))
    waiting = [one.id for one in made.pending()]
    with made.ledger.holding() as connection:  # an older version took parts that nobody learns, and gave them no batch
        connection.exec_driver_sql(
            "INSERT INTO dither_rewards (decision, part, reward, time, standing) "
            "SELECT number, 'click', 1.0, time, 'counted' FROM dither_decisions WHERE id = ?",
            (waiting[0],),
        )
        connection.exec_driver_sql("UPDATE dither_lease SET expires = 0")
    state, before = made.to_bytes(), made.read().frame
    old = older(shared, version, monkeypatch)
    copied(made.ledger.database, old)
    with old.reading() as connection:
        assert connection.exec_driver_sql(f"SELECT version_num FROM {homes.VERSIONS}").scalar() == version
        assert sa.inspect(connection).has_table("dither_changes") == (version >= "0005")
    old.close()
    with dither.Live(shared, bandit=begin(), horizon=1e6) as live:
        assert live.to_bytes() == live.replay().to_bytes() == state
        assert live.read().frame.equals(before)
        live.learn()
        assert live.bandit.observations == 8  # the part has batch 0
        assert live.reward(waiting[1], 3.0) == "counted"
        assert live.bandit.observations == 9
        live.replace_shadow(dither.Greedy(dim=3, seed=1))
        assert live.shadow.observations == live.bandit.observations
        more = live.choose(X, time=0)
        (deadline,) = (one.deadline for one in live.pending() if one.id == more.id)
        assert deadline.timestamp() == 1e6  # the terms are those of before
    # seen red: a migration that leaves the part without a batch


@pytest.mark.parametrize("version", ["0001", "0003"])
def test_a_backup_of_an_older_version_is_migrated_where_it_is_put_in_place(tmp_path, version, monkeypatch):
    """By SQLite's backup API, into the file that is open."""
    live = dither.Live(tmp_path / "a.db", bandit=begin())
    live.reward(live.choose(X).id, 1.0)
    old = older(tmp_path / "old.db", version, monkeypatch)
    copied(live.ledger.database, old)
    old.close()
    live.reward(live.choose(X).id, 2.0)
    with sqlite3.connect(tmp_path / "old.db") as source, sqlite3.connect(tmp_path / "a.db") as target:
        source.backup(target)
    source.close()
    target.close()
    with pytest.raises(OSError, match=r"no (such )?column"):
        live.choose(X)
    live.reward(live.choose(X).id, 0.0)
    live.learn()
    assert live.bandit.observations == 2
    assert live.to_bytes() == live.replay().to_bytes()
    # seen red: migrations that run when a ledger is opened alone


def test_a_snapshot_of_an_older_version_that_knows_no_event_is_none(shared):
    """A worker of before learns on while a newer one has changed the bandit: its snapshots have other settings."""
    live = dither.Live(shared, bandit=begin(), snapshot_batches=3, snapshot_seconds=1e6)
    other = dither.LinFP(dim=3, lam=1.0, floor=0.3, seed=0)
    for i in range(8):
        if i == 4:
            live.change(floor=0.8, author="ops")
        d = live.choose(X)
        live.reward(d.id, float(i))
        other.update(X[d.place], float(i))
    live.close()
    with dither.log.Ledger(shared) as ledger, ledger.holding() as connection:
        kept = sql_tables.snapshots
        connection.execute(sa.update(kept).where(kept.c.batch == live.batch).values(bytes=other.to_bytes(), event=None))
        batches = list(connection.scalars(sa.select(kept.c.batch)))
    assert live.batch in batches
    with dither.Live(shared) as again:
        assert again.bandit.floor == 0.8
        assert again.to_bytes() == again.replay().to_bytes()
        assert again.batch == live.batch
        again.reward(again.choose(X).id, 1.0)
    with dither.Live(shared) as third, third.ledger.database.reading() as connection:
        newest = connection.execute(sa.select(kept.c.event).order_by(kept.c.batch.desc())).scalar()
        assert newest == third.events()[-1].number
    # seen red: the settings of before, and a state that no replay gives
