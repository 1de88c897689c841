"""A correction is an event: before it the old reward, after it the new one, for the bandit, the shadow and the log."""

import numpy as np
import pytest
import sqlalchemy as sa
from numpy.testing import assert_allclose

import dither
import livings
from dither import log
from dither.log.database import sql_tables
from ledgers import moment

X = np.eye(3)
pytestmark = pytest.mark.usefixtures("closing")


def begin(lam=1.0, **settings):
    return dither.LinFP(dim=3, lam=lam, floor=0.3, seed=0, centre=False, **settings)


def means(lam, arms, rewards):
    """What ridge regression on one-hot arms says: Σr/(λ + n) of each."""
    return [sum(r for a, r in zip(arms, rewards, strict=True) if a == k) / (lam + arms.count(k)) for k in range(3)]


def same(live):
    for of in ("bandit", "shadow"):
        assert live.to_bytes(of) == live.replay(of=of).to_bytes() == live.replay(live.batch, of=of).to_bytes()


@pytest.mark.parametrize("every", [1, 2, 1000])
def test_a_correction_is_a_batch_of_its_own(home, every):
    live = dither.Live(home, bandit=begin(), shadow=begin(2.0), snapshot_batches=every, snapshot_seconds=1e6)
    shown = [live.choose(X, extra={"user": i}) for i in range(6)]
    arms, rewards = [d.place for d in shown], [float(i) for i in range(6)]
    for d, r in zip(shown, rewards, strict=True):
        live.reward(d.id, r)
    assert live.batch == 6
    before = live.to_bytes()
    assert live.correct(shown[2].id, 10.0, time=moment(5)) == "counted"
    assert live.correct(shown[2].id, 10.0) == "known"
    assert live.batch == 7
    after = [*rewards[:2], 10.0, *rewards[3:]]
    assert_allclose(live.bandit.theta, means(1.0, arms, after))
    assert_allclose(live.shadow.theta, means(2.0, arms, after))
    assert live.bandit.observations == 6
    same(live)
    assert live.replay(6).to_bytes() == before  # it has the old reward
    assert_allclose(live.replay(3).theta, means(1.0, arms[:3], rewards[:3]))
    seen = live.read()
    assert seen.r.tolist() == after
    assert seen.frame["reward_time"][2] == moment(5)
    assert live.reward(shown[2].id, 2.0) == "known"  # a retry of what was answered
    assert live.reward(shown[2].id, 3.0) == "conflict"
    assert live.correct(shown[0].id, -1.0) == "counted"
    assert live.correct(shown[2].id, 2.0) == "counted"  # back again, and another one
    assert live.correct(shown[5].id, 7.0) == "counted"
    live.reward(live.choose(X).id, 0.0)
    same(live)
    assert live.read().r.tolist()[:6] == [-1.0, 1.0, 2.0, 3.0, 4.0, 7.0]
    state = live.to_bytes()
    live.erase([shown[2].id])
    assert live.to_bytes() != state
    assert live.bandit.observations == 6
    same(live)
    # seen red with the old reward in replays from a snapshot; with a correction that is one more observation


def test_another_process_goes_on_from_the_corrected_state(shared):
    one = dither.Live(shared, bandit=begin(), snapshot_batches=2, snapshot_seconds=1e6, refresh_seconds=1e-6)
    ids = [one.choose(X).id for _ in range(7)]
    for i, id in enumerate(ids):
        one.reward(id, float(i))
    two = dither.Live(shared, refresh_seconds=1e-6)
    assert two.correct(ids[1], -5.0) == "counted"  # it does not learn: the other one does
    assert two.batch <= one.batch == 7
    one.learn()
    assert one.batch == 8
    assert one.bandit.observations == 7
    one.ledger.close()  # a kill
    three = dither.Live(shared, lease_seconds=1e-6)
    assert three.replay().to_bytes() == three.to_bytes()
    assert three.read().r.tolist() == [0.0, -5.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    two.choose(X)
    assert three.replay(two.batch).to_bytes() == two.to_bytes()


def test_a_correction_of_a_part_makes_the_sum_anew(home):
    live = dither.Live(home, bandit=begin(), parts=["sale", "refund"], horizon=10, reward_range=(0, 100))
    first, second = (live.choose(X, time=0).id for _ in range(2))
    live.reward([first, second], [50.0, 20.0], 1, part="sale")
    assert live.correct(first, 60.0, part="sale") == "counted"  # before the sum is complete
    assert live.bandit.observations == 0
    live.reward(first, -10.0, 2, part="refund")
    assert live.replay().to_bytes() == live.to_bytes()
    assert live.read().r.tolist() == [50.0, 20.0]
    for words, r, part in (
        ("none to correct", -5.0, None),
        ("must be one of", 1.0, "tax"),
        ("sum of its parts", -61.0, "refund"),
    ):
        with pytest.raises(ValueError, match=words):
            live.correct(first, r, part=part)
    assert live.correct(first, -20.0, part="refund") == "counted"
    live.expire(11)
    assert live.correct(second, 0.0, part="sale") == "counted"
    assert live.read().r.tolist() == [40.0, 0.0]
    assert live.bandit.observations == 2
    shown = dict(zip([first, second], live.read().a.tolist(), strict=True))
    assert_allclose(live.bandit.theta, means(1.0, [shown[first], shown[second]], [40.0, 0.0]))
    assert live.replay().to_bytes() == live.to_bytes()
    events = sql_tables.rewards.c
    with live.ledger.database.reading() as connection:
        batches = connection.execute(sa.select(events.part, events.standing, events.batch)).all()
    assert all((batch == 0) == bool(part) for part, _, batch in batches)


def test_a_default_and_a_late_click_can_be_corrected(home):
    live = dither.Live(home, bandit=dither.GLMFP(dim=3, floor=0.3, seed=0), horizon=10, default=0.0)
    d = live.choose(X, time=0)
    with pytest.raises(ValueError, match="has no reward that counts, so there is none to correct: reward"):
        live.correct(d.id, 1.0)
    live.expire(11)
    assert live.reward(d.id, 1.0, 12) == "late"
    assert live.correct(d.id, 1.0, time=12) == "counted"
    assert live.read().r.tolist() == [1.0]
    assert live.bandit.observations == 1
    assert live.replay().to_bytes() == live.to_bytes()
    assert live.replay(1).theta[d.place] < 0 < live.replay(2).theta[d.place]
    with pytest.raises(ValueError, match="reward_range"):
        live.correct(d.id, 7.0)
    with pytest.raises(LookupError, match="no decision 'nobody'"):
        live.correct("nobody", 1.0)
    with pytest.raises(ValueError, match="would never be learnt"):
        live.correct(d.id, 1.0, part="click")
    live.erase([d.id])
    with pytest.raises(LookupError, match="was erased"):
        live.correct(d.id, 0.0)


def test_a_reward_out_of_range_of_an_older_ledger_can_be_corrected(shared):
    """What made the true reward a conflict."""
    live = dither.Live(shared, bandit=dither.GLMFP(dim=3, floor=0.3, seed=0))
    livings.unlimited(live)
    d = live.choose(X)
    live.reward(d.id, 7.0)
    live.close()
    live = dither.Live(shared)
    assert live.correct(d.id, 1.0) == "counted"
    assert live.bandit.observations == 1
    assert live.read().r.tolist() == [1.0]
    assert live.replay().to_bytes() == live.to_bytes()


@pytest.mark.parametrize("rule", ["sum", "last", "list"])
def test_a_corrected_ledger_is_exported_and_taken_over_as_it_counts(tmp_path, rule):
    made = log.Ledger(None, rewards=rule)
    for id in ("a", "b"):
        made.record(dither.Decision(0, 0.5, "exact", None, None), X=X, id=id, time=1)
        made.reward(id, 7.0, time=2)
        made.reward(id, 3.0, part="tip", time=1)
    made.correct("a", 1.0, time=5)
    made.correct("b", 4.0, part="tip", time=6)
    made.correct("b", 5.0, part="tip", time=7)
    assert made.reward("a", 1.0) == "known"
    made.export(tmp_path / "days")
    other = log.Ledger(None, rewards=rule)
    other.take_over(tmp_path / "days")
    wanted = {"sum": [4.0, 12.0], "last": [1.0, 5.0], "list": [[3.0, 1.0], [7.0, 5.0]]}[rule]
    for rows in (made.read(), log.read(tmp_path / "days"), other.read()):
        assert rows.frame["reward_list" if rule == "list" else "reward"].to_list() == wanted
        assert [at.timestamp() for at in rows.frame["reward_time"]] == [5.0, 7.0]


def test_a_part_that_nobody_learns_is_refused_by_every_process(home):
    """A ledger of a bandit without parts, whose rewards a plain `Ledger` sends, and which may be older than this rule.

    Seen red with the question asked in `Live` alone.
    """
    live = dither.Live(home, bandit=dither.GLMFP(dim=3, floor=0.3, seed=0))
    d = live.choose(X)
    for one in (live, live.ledger):
        with pytest.raises(ValueError, match=r"so part='click' would never be learnt"):
            one.reward(d.id, 1.0, part="click")
    assert live.reward(d.id, 1.0) == "counted"
    assert live.bandit.observations == 1


@pytest.mark.parametrize("parts", [None, ["a", "b"]])
def test_what_counts_in_an_export_counts_where_it_is_taken_over(home, tmp_path, parts):
    """Corrections and defaults have times after the horizon; a reward after `expire` may have one before it.

    Seen red with rewards that were judged anew: those that had been corrected counted, and the late one.
    """
    settings = {"bandit": dither.LinFP(dim=3, floor=0.3, seed=0), "horizon": 10, "default": 0.0, "parts": parts}
    live = dither.Live(home, **settings)
    ids = [live.choose(X, id=f"{i}", time=0).id for i in range(5)]
    for part in parts or [None]:
        live.reward(ids[:2], [1.0, 1.0], 5, part=part)
    live.correct("0", 0.25, time=50, part=parts and "a")
    live.expire(60)
    assert live.reward("2", 1.0, 5, part=parts and "a") == "late"
    live.correct("3", 0.5, time=70)
    live.ledger.export(tmp_path / "days")
    other = dither.Live(None, **settings)
    assert other.ledger.take_over(tmp_path / "days") == 5
    other.learn()
    other.expire(80)
    for rows in (other.read(), log.read(tmp_path / "days")):
        assert dict(zip(rows.id, rows.r, strict=True)) == dict(zip(live.read().id, live.read().r, strict=True))
    assert other.bandit.observations == live.bandit.observations == 5
    assert_allclose(other.bandit.theta, live.bandit.theta, rtol=1e-12)
