"""A ledger knows what computed where each batch was taught, and a replay by another arithmetic says so."""

import numpy as np
import pytest
import sqlalchemy as sa

import dither
from dither import live as lives
from dither.base import compiled
from dither.log.database import sql_tables

X = np.eye(3)
pytestmark = pytest.mark.usefixtures("closing")


class Idle:
    """A step that leaves everything to Python."""

    VERSION, CLONE = 7, "elsewhere"

    def __getattr__(self, name):
        return lambda *arguments: None


OTHER = Idle()


def begin(**settings):
    return dither.LinFP(**{"dim": 3, "floor": 0.1, "lam": 1.0, "seed": 0} | settings)


def arithmetics(live):
    with live.ledger.database.reading() as connection:
        return list(connection.scalars(sa.select(sql_tables.batches.c.arithmetic).order_by(sa.text("number"))))


def rewarded(live, n=1):
    for _ in range(n):
        live.reward(live.choose(X).id, 1.0)


def test_each_batch_says_what_taught_it_and_a_replay_which_were_taught_otherwise(shared, monkeypatch):
    monkeypatch.setattr(compiled, "STEP", None)
    live = dither.Live(shared, bandit=begin())
    rewarded(live, 2)
    assert live.replay().to_bytes() == live.to_bytes()  # without a word
    monkeypatch.setattr(compiled, "STEP", OTHER)
    rewarded(live, 1)
    monkeypatch.setattr(compiled, "STEP", None)
    rewarded(live, 1)
    assert arithmetics(live) == ["numpy", "numpy", "compiled 7 elsewhere", "numpy"]
    with pytest.warns(lives.RoundingWarning, match=r"^NumPy computes here, and .* has taught batch 3:") as warned:
        live.replay()
    assert warned[0].filename == __file__
    live.replay(2)  # before it
    monkeypatch.setattr(compiled, "STEP", OTHER)
    with pytest.warns(lives.RoundingWarning, match=r"taught 3 of the batches 1 to 4: .* with DITHER_COMPILED=0$"):
        live.replay(of="bandit")
    # seen red: a learner that records nothing; all batches, whatever `batch` says
