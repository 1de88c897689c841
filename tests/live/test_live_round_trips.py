"""How often a call waits for a server of PostgreSQL, and that a decision which is stored in one step is whole."""

import numpy as np
import pytest
import sqlalchemy as sa

import dither
from dither import log
from dither.log.database import sql_tables
from ledgers import decision, features
from round_trips import answers, driver

pytestmark = pytest.mark.usefixtures("closing")
X = np.eye(3)


def begin(**settings):
    return dither.LinFP(**{"dim": 3, "lam": 1.0, "floor": 0.3, "seed": 0} | settings)


@pytest.mark.parametrize("wait", [True, False])
def test_a_decision_is_one_round_trip(postgres, wait):
    live = dither.Live(postgres.url(), bandit=begin(), learn=False, wait=wait, refresh_seconds=1e6)
    live.choose(X)
    with answers(live) as number:
        d = live.choose(X, ["a", "b", "c"], extra={"user": "u1"})
    assert number == [1]
    assert not driver(live).autocommit
    row = live.read().frame.row(1, named=True)
    assert (row["id"], row["propensity"], row["user"]) == (d.id, d.propensity, "u1")
    with pytest.raises(ValueError, match="was given to a decision before"):
        live.choose(X, id=d.id)
    assert not driver(live).autocommit if live.ledger.database._writer is not None else True
    assert live.reward(d.id, 1.0) == "counted"


def test_a_decision_alone_is_made_again_where_the_ledger_has_changed(postgres):
    url = postgres.url()
    live = dither.Live(url, bandit=begin(), shadow=begin(lam=2.0), learn=False, refresh_seconds=1e6)
    live.choose(X)
    with dither.Live(url) as other:
        other.replace_shadow(None)
    d = live.choose(X)
    frame = live.read().frame
    assert list(frame["id"])[1:] == [d.id]
    assert frame["judged"].to_list()[1] is None
    # seen red: a row that is stored whatever the marks are


def test_without_waiting_the_setting_is_that_of_one_transaction(postgres):
    live = dither.Live(postgres.url(), bandit=begin(), learn=False, wait=False, refresh_seconds=1e6)
    live.choose(X)
    with live.ledger.database.reading() as connection:
        assert connection.scalar(sa.text("SHOW synchronous_commit")) == "on"
        assert connection.scalar(sa.select(sa.func.count()).select_from(sql_tables.decisions)) == 1


@pytest.mark.parametrize("wait", [True, False])
def test_a_reward_of_a_process_that_does_not_learn_is_one_round_trip(postgres, wait):
    url = postgres.url()
    live = dither.Live(url, bandit=begin(), learn=False, wait=wait, horizon=3600, refresh_seconds=1e6)
    first, d = live.choose(X), live.choose(X)
    live.reward(first.id, 1.0)  # from here on it knows the terms
    with answers(live) as number:
        assert live.reward(d.id, 0.5) == "counted"
    assert number == [1]
    assert not driver(live).autocommit
    assert live.read().r.tolist() == [1.0, 0.5]
    with dither.Live(url) as learner:
        learner.learn()
        assert learner.bandit.observations == 2
        assert learner.to_bytes() == learner.replay().to_bytes()


def test_all_other_rewards_are_judged_by_the_rules(postgres):
    """As in a file, where there is one road."""
    answered = []
    for home in (postgres.url(), None):
        live = dither.Live(home, bandit=begin(), learn=False, horizon=3600, reward_range=(0, 1), refresh_seconds=1e6)
        ids = [live.choose(X, time="2026-03-01T12:00").id for _ in range(5)]
        said = [live.reward(ids[0], 1.0, "2026-03-01T12:01")]
        live.change(reward_range=(0, 5), horizon=7200)
        wide = live.choose(X, time="2026-03-01T12:00").id
        calls = [(ids[1], 1.0, 1), (ids[1], 1.0, 1), (ids[1], 0.5, 1), (ids[2], 1.0, 61), (ids[0], 1.0, 61)]
        calls += [(wide, 4.0, 119), (ids[3], 4.0, 1), ("nobody", 1.0, 1), (ids[3], 0.5, 2)]
        for id, r, minutes in calls:
            try:
                said.append(live.reward(id, r, f"2026-03-01T{12 + minutes // 60}:{minutes % 60:02}"))
            except (ValueError, LookupError) as error:
                said.append(type(error))
        live.erase([ids[4]])
        with pytest.raises(LookupError, match="was erased"):
            live.reward(ids[4], 1.0)
        frame = live.read().frame
        answered.append((said, frame["reward"].to_list(), frame["rewards"].to_list()))
    assert answered[0] == answered[1]
    assert answered[0][0] == [
        *("counted", "counted", "known", "conflict", "late", "known", "counted"),
        *(ValueError, LookupError, "counted"),
    ]
    # seen red: without the comparison of the terms; without the deadline; without the look for other rewards


def test_a_sum_of_parts_is_judged_as_a_sum(postgres):
    """The range of a reward is that of the sum, so a reward with others beside it is no plain case."""
    for home in (postgres.url(), None):
        made = log.Ledger(home, reward_range=(0, 1))
        for id in ("a", "b"):
            made.record(decision(), X=features(0), id=id)
        assert made.reward("a", 0.5) == "counted"
        assert made.reward("b", 0.8, part="first") == "counted"
        with pytest.raises(ValueError, match="the sum of its parts so far"):
            made.reward("b", 0.7)
        assert made.reward("b", 0.2) == "counted"
    # seen red: without the look for other rewards
