"""Which questions the databases answer by an index, as they say themselves: what is asked often must not read all.

SQLite says it of any table. PostgreSQL reads a small table whole, whatever is asked; so it is asked of a larger one.
"""

import contextlib
import sqlite3

import numpy as np
import pytest
import sqlalchemy as sa

import dither
from dither.live import status


@contextlib.contextmanager
def asked():
    """The statements that are run in the block, each with its parameters."""
    statements = []

    def noted(connection, cursor, statement, parameters, context, executemany):
        statements.append((statement, parameters))

    sa.event.listen(sa.Engine, "before_cursor_execute", noted)
    try:
        yield statements
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", noted)


def scans(path, statements):
    """How SQLite would read all decisions or rewards for them; those that end at a limit read a few."""
    connection = sqlite3.connect(path)
    plans = [
        row[3]
        for statement, parameters in statements
        if statement.lstrip().startswith(("SELECT", "UPDATE")) and "LIMIT" not in statement
        for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
    ]
    connection.close()
    assert plans
    return [plan for plan in plans if plan.startswith("SCAN") and ("decisions" in plan or "rewards" in plan)]


@pytest.fixture
def home(tmp_path):
    path = tmp_path / "ledger.db"
    with dither.Live(path, bandit=dither.LinFP(dim=2, floor=0.1), horizon=60, default=0.0) as live:
        for _ in range(3):
            live.choose(np.eye(2), time="2026-01-01")
    return path


def test_how_a_ledger_stands_is_said_by_indexes(home):
    with dither.log.Ledger.to_read(home) as ledger, asked() as statements:
        seen = status.of(ledger)
    assert (seen.overdue, seen.pending) == (3, 0)
    assert scans(home, statements) == []
    # seen red: `~closed`, which SQLite does not know to be the NOT of the index


def test_what_is_overdue_is_closed_by_an_index(home):
    with dither.log.Ledger(home) as ledger, asked() as statements:
        assert ledger.expire() == 3
    assert scans(home, statements) == []
    # seen red: likewise


def test_a_batch_is_learnt_by_indexes_in_postgresql(postgres):
    """Also where nothing was counted yet: PostgreSQL does that once a minute."""
    live = dither.Live(postgres.url(), bandit=dither.LinFP(dim=2, floor=0.1), learn="background")
    live._background.close()  # it is called here
    for _ in range(3):
        live.reward(live.choose(np.ones((500, 2, 2))).id, np.ones(500))
        live._learner.beside()
    live.reward(live.choose(np.ones((20, 2, 2))).id, np.ones(20))
    with asked() as statements:
        live._learner.beside()
    assert live.bandit.observations == 1520
    about = [(text, values) for text, values in statements if "dither_rewards_1" in text and text.startswith("SELECT")]
    assert len(about) == 2  # whether a lesson is corrected, and the lessons
    with live.ledger.database.reading() as connection:
        plans = [connection.exec_driver_sql(f"EXPLAIN {text}", values).scalars().all() for text, values in about]
    live.close()
    assert not [line for plan in plans for line in plan if "Seq Scan" in line]
    # seen red: the first row of a decision by NOT EXISTS, of which it makes a join that reads all rewards for each row
