"""Which questions SQLite answers by an index, as it says itself: what is asked often must not read all decisions."""

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
