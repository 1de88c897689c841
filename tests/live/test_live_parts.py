"""Rewards in parts: a decision is learnt once, when all parts have come or when its horizon has passed."""

import math

import numpy as np
import pytest
import sqlalchemy as sa

import dither
from dither import log
from dither.log.database import sql_tables
from ledgers import moment

X = np.eye(3)
PARTS = ["click", "sale"]
pytestmark = pytest.mark.usefixtures("closing")


def begin():
    return dither.LinFP(dim=3, lam=1.0, floor=0.3, seed=0)


def learnt(live):
    """Sum of r over what was learnt, by arm; how many rewards."""
    theta, V = live.bandit.theta, np.linalg.inv(np.diag(live.bandit.width(X) ** 2))
    return np.round(V @ theta, 9).tolist(), live.bandit.observations


def test_the_sum_is_learnt_once_it_is_complete(home):
    live = dither.Live(home, bandit=begin(), parts=PARTS)
    d = live.choose(X)
    want = [0.0, 0.0, 0.0]
    assert live.reward(d.id, 0.1, part="click") == "counted"
    assert learnt(live) == (want, 0)
    assert [one.id for one in live.pending()] == [d.id]
    assert live.reward(d.id, 0.1, part="click") == "known"
    assert live.reward(d.id, 0.2, part="click") == "conflict"
    assert live.reward(d.id, 20.2, part="sale") == "counted"
    want[d.place] = 20.3
    assert learnt(live) == (want, 1)
    assert list(live.pending()) == []
    assert live.reward(d.id, 20.2, part="sale") == "known"
    assert learnt(live) == (want, 1)
    both = [live.choose(X), live.choose(X)]
    live.reward([one.id for one in both], [1.0, 2.0], part="sale")
    live.reward([one.id for one in both], [0.5, 0.0], part="click")
    assert live.bandit.observations == 3
    assert live.replay().to_bytes() == live.to_bytes()
    seen = live.read()
    assert seen.r.tolist() == [math.fsum([0.1, 20.2]), 1.5, 2.0]
    assert seen.frame["rewards"].to_list() == [2, 2, 2]
    assert live.ledger.frames()[1].height == 7  # six parts and a conflict: a sum is no event of its own
    # seen red: each part learnt by itself; `events` with the sums


def test_the_horizon_completes_what_is_there(home):
    live = dither.Live(home, bandit=begin(), parts=PARTS, horizon=60, default=-1.0)
    some, none, full, late = (live.choose(X, time=moment(i)) for i in range(4))
    live.reward(some.id, 3.0, time=moment(5), part="click")
    for part in PARTS:
        live.reward(full.id, 1.0, time=moment(5), part=part)
    assert live.reward(late.id, 1.0, time=moment(100), part="sale") == "late"
    assert [one.id for one in live.pending()] == [some.id, none.id, late.id]
    assert live.expire(moment(90)) == 2  # those without any reward
    want = np.zeros(3)
    for d, r in ((some, 3.0), (none, -1.0), (full, 2.0), (late, -1.0)):
        want[d.place] += r
    assert learnt(live) == (want.tolist(), 4)
    assert live.reward(some.id, 20.0, time=moment(6), part="sale") == "late"  # it is closed: the sum stands
    assert live.expire(moment(200)) == 0
    assert live.bandit.observations == 4
    assert live.replay().to_bytes() == live.to_bytes()
    assert live.read().r.tolist() == [3.0, -1.0, 2.0, -1.0]
    assert list(live.pending()) == []
    live.erase([some.id])
    want[some.place] -= 3.0
    assert learnt(live) == (want.tolist(), 3)
    # seen red: `expire` without the sums; a default for what has parts


def test_late_parts_that_count_complete_a_decision_later(home):
    live = dither.Live(home, bandit=begin(), parts=PARTS, horizon=60, late="counts")
    d = live.choose(X, time=moment(0))
    live.reward(d.id, 3.0, time=moment(5), part="click")
    assert live.expire(moment(90)) == 0
    assert live.bandit.observations == 0
    assert live.reward(d.id, 4.0, time=moment(100), part="sale") == "counted"
    assert live.bandit.observations == 1
    assert live.bandit.theta[d.place] == pytest.approx(3.5)


def test_any_process_sends_a_part(shared):
    one = dither.Live(shared, bandit=begin(), parts=PARTS)
    two, three = dither.Live(shared), log.Ledger(shared)
    assert two.ledger.parts == three.parts == ("click", "sale")
    ids = [one.choose(X).id for _ in range(3)]
    two.reward(ids[0], 1.0, part="click")
    one.reward(ids[0], 2.0, part="sale")
    assert one.bandit.observations == 1
    one.reward(ids[1], 1.0, part="click")
    three.reward(ids[1], 2.0, part="sale")
    assert one.learn() == 1
    assert one.bandit.observations == 2
    assert one.replay().to_bytes() == one.to_bytes()
    with pytest.raises(ValueError, match="has parts="):
        dither.Live(shared, parts=["click"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda live: live.reward("first", 1.0), "part must be one of 'click', 'sale', which make a reward; got None"),
        (lambda live: live.reward("first", 1.0, part="view"), "got 'view'"),
        (lambda live: live.reward("first", 1.0, part=""), "not empty"),
        (lambda live: dither.Live(None, bandit=begin(), parts="click"), "parts must be different texts"),
        (lambda live: dither.Live(None, bandit=begin(), parts=["a", "a"]), "parts must be different texts"),
        (lambda live: dither.Live(None, bandit=begin(), parts=[]), "parts must be different texts"),
        (lambda live: log.Ledger(None, parts=["a"], rewards="last"), "parts= needs rewards='sum', not 'last'"),
    ],
)
def test_what_is_refused(call, words):
    live = dither.Live(None, bandit=begin(), parts=PARTS)
    live.choose(X, id="first")
    with pytest.raises(ValueError, match=words):
        call(live)
    with live.ledger.database.reading() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(sql_tables.rewards)) == 0


def test_parts_that_nobody_told_of_are_refused(home):
    """Seen red with the rule in `Live.reward` alone: the ledger counted them, and they were never learnt."""
    live = dither.Live(home, bandit=begin())
    d = live.choose(X)
    for reward in (live.reward, live.ledger.reward):
        with pytest.raises(ValueError, match="has no parts, so part='click' would never be learnt"):
            reward(d.id, 1.0, part="click")
    assert live.reward(d.id, 1.0) == "counted"
    assert live.read().r.tolist() == [1.0]
    assert live.bandit.observations == 1


def test_parts_of_a_folder_are_taken_over(shared, tmp_path):
    with log.Log(tmp_path / "folder", bandit=begin()) as out:
        for i in range(4):
            d = out.decide(X)
            out.reward(d.id, 1.0, part="click")
            if i % 2:
                out.reward(d.id, float(i), part="sale")
    live = dither.Live(shared, bandit=begin(), parts=PARTS)
    assert live.ledger.take_over(tmp_path / "folder") == 4
    live.learn()
    assert live.bandit.observations == 2
    assert live.read().r.tolist() == [1.0, 2.0, 1.0, 4.0]


@pytest.mark.parametrize(("parts", "words"), [(None, "'click', 'sale'"), (["click", "visit"], "'sale'")])
def test_parts_that_would_never_be_learnt_are_not_taken_over(home, tmp_path, parts, words):
    with log.Log(tmp_path / "folder", bandit=begin()) as out:
        d = out.decide(X)
        out.reward(d.id, 1.0, part="click")
        out.reward(d.id, 2.0, part="sale")
    live = dither.Live(home, bandit=begin(), parts=parts)
    with pytest.raises(ValueError, match=rf"parts {words} of.*parts=\['click', 'sale'\]"):
        live.ledger.take_over(tmp_path / "folder")
    assert len(live.ledger) == 0
    assert log.Ledger(None).take_over(tmp_path / "folder") == 1  # where nobody learns, parts have any names
    # seen red: taken over, no reward learnt and none refused
