"""The terms of rewards: settled with the bandit or not at all, changed by events, and the range of a reward."""

import json
import math
from datetime import timedelta

import numpy as np
import pytest
import sqlalchemy as sa

import dither
import livings
from dither import log
from dither.log import terms
from dither.log.database import keeping, sql_tables

X = np.eye(3)
HOUR = 3600
pytestmark = pytest.mark.usefixtures("closing")


class Mine(dither.models.Ridge):
    """A model of a user's, which a file cannot hold unless it is passed again."""


def begin(**settings):
    return dither.GLMFP(dim=3, floor=0.1, seed=0, **settings)


def settled(home):
    """All that a ledger has settled."""
    with log.Ledger(home).database.reading() as connection:
        changes = connection.execute(sa.select(sql_tables.changes.c.terms)).scalars().all()
        arms = connection.scalar(sa.select(sa.func.count()).select_from(sql_tables.arms))
        return changes, keeping.settings(connection), arms


def catalogue():
    return dither.Catalogue(dither.Features(arm={"topic": ["art", "war"]}, intercept=True), {"a": {"topic": "art"}})


def others():
    return dither.Features(arm={"topic": ["art", "sea"]}, intercept=True)


REFUSED = [
    {},
    {"parts": ["a", "b"], "default": 0.0},
    {"bandit": begin(), "default": 2.0},
    {"bandit": begin(), "reward_range": (0, 5)},
    {"bandit": begin(), "shadow": dither.LinFP(dim=4)},
    {"bandit": begin(), "shadow": dither.LinFP(dim=3, baseline=dither.Baseline(0, 0.5, 0.1))},
    {"bandit": begin(), "catalogue": catalogue(), "parts": ["a"]},
    {"bandit": begin(), "budgets": {"a": "many"}},
    {"bandit": dither.LinFP(dim=3, baseline=dither.Baseline(0, 0.5, 0.1)), "store": "shown"},
    {"bandit": dither.Bandit(Mine(), dither.policies.FeaturePerturbation(1.0), dim=3)},
    {"bandit": dither.LinFP(features=others()), "catalogue": catalogue(), "budgets": {"a": dither.Budget(1)}},
]


@pytest.mark.parametrize("more", REFUSED)
def test_an_opening_that_is_refused_settles_nothing(shared, more):
    with pytest.raises((ValueError, TypeError)):
        dither.Live(shared, horizon=HOUR / 2, late="kept", **more)
    live = dither.Live(shared, bandit=begin(), horizon=HOUR, default=1.0, parts=["x", "y"], budgets={"b": dither.Budget(1)})
    assert (live.ledger.horizon, live.ledger.parts) == (timedelta(hours=1), ("x", "y"))
    assert (set(live.budgets), live.catalogue, live.shadow) == ({"b"}, None, None)
    # seen red with terms, bandit, shadow, catalogue and budgets settled in a transaction each


def test_a_refused_opening_of_a_ledger_that_is_there_settles_nothing(shared):
    log.Ledger(shared, horizon=HOUR).close()
    before = settled(shared)
    arms = catalogue()
    for more in (
        {"bandit": begin(), "horizon": 5},
        {"bandit": dither.LinFP(features=arms.features), "catalogue": arms, "budgets": {"a": "many"}},
        {"bandit": begin(), "shadow": dither.LinFP(dim=4), "budgets": {"a": dither.Budget(1)}},
    ):
        with pytest.raises((ValueError, TypeError)):
            dither.Live(shared, **more)
        assert settled(shared) == before
    assert arms.add("b", {"topic": "war"}) == 2  # the catalogue is the caller's own again
