"""The alarm of a ledger: a part of what was learnt, so it survives restarts, and a replay gives the same."""

import logging

import numpy as np
import pytest
import sqlalchemy as sa

import dither
from dither import log
from dither.drift import ResidualAlarm, residuals
from dither.live import status
from dither.log.database import sql_tables
from ledgers import moment

pytestmark = pytest.mark.usefixtures("closing")
X = np.eye(2)
OFTEN = ResidualAlarm(rate=1e-3, shift=1.0)


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Few values say what residuals are like."""
    monkeypatch.setattr(residuals, "FIRST", 40)


def opened(home, **settings):
    return dither.Live(home, bandit=dither.LinFP(dim=2, lam=1.0, floor=0.5, seed=0), **settings)


def lived(live, first, last, *, shift=0.0, seed=0):
    """Decisions with rewards, one batch each; the time of decision n is n minutes."""
    rng = np.random.default_rng([seed, first])
    for n in range(first, last):
        d = live.choose(X, id=n, time=moment(60 * n))
        live.reward(d.id, [0.3, 0.7][d.place] + shift + 0.1 * rng.normal(), moment(60 * n))


def text(live):
    return live._learner.stands.watch.held()


def test_a_change_is_told_and_is_a_function_of_the_ledger(home, caplog):
    live = opened(home, alarm=OFTEN)
    lived(live, 0, 150)
    assert live.alarms == []
    with caplog.at_level(logging.WARNING, "dither.live"):
        lived(live, 150, 170, shift=0.5)
    (alarm,) = live.alarms
    assert moment(60 * 150) < alarm.time < moment(60 * 160)
    assert abs((alarm.began - moment(60 * 150)).total_seconds()) <= 180
    assert alarm.batch > alarm.began_batch
    assert 0.2 < alarm.difference < 0.7
    assert [one.getMessage() for one in caplog.records] == [f"alarm: {alarm}"]
    assert "above what was predicted" in str(alarm)
    replayed = live._learner.replay().watch
    assert (replayed.held(), replayed.alarms) == (text(live), [alarm])
    assert live._learner.replay(alarm.batch - 1).watch.alarms == []
    seen = live.status(limits=status.WarningLimits(recent=1e10))
    assert (seen.alarms, seen.exit_code) == ((alarm,), 1)
    assert str(alarm) in seen.text()
    assert live.status().exit_code == 0  # it is long ago
    if home is not None:
        live._learner.keep()
        with log.Ledger.to_read(home) as ledger:
            assert status.of(ledger).alarms == (alarm,)
            assert "dither_alarms 1.0" in status.of(ledger).prometheus()
        before = text(live)
        live.close()
        with opened(home) as again:
            assert text(again) == before
            lived(again, 170, 175, shift=0.5)
            assert again._learner.replay().watch.held() == text(again)
    # seen red: the state left out of snapshots; watched after the batch was learnt


def test_whoever_learns_watches(shared):
    first, second = opened(shared), opened(shared)
    lived(first, 0, 60)
    second._learner.close()
    waits = first.choose(X)
    with opened(shared, alarm=True):  # the others hear of it
        pass
    first.reward(waits.id, 0.5)  # by its own transaction
    lived(first, 61, 70)
    facts = first._learner.stands.watch
    assert (facts.facts.settings, facts.facts.after, facts.seen.n) == (ResidualAlarm(), 60, 10)
    first._learner.keep()
    first._learner.close()
    lived(second, 70, 75)
    assert second.learns
    assert second._learner.stands.watch.seen.n == 15
    assert second._learner.replay().watch.held() == text(second)
    first.close()
    second.close()


def test_a_snapshot_without_what_was_seen_is_passed_over(shared):
    """An older dither, which is open beside this one, writes such. Seen red: the alarm began anew there."""
    live = opened(shared, alarm=True)
    lived(live, 0, 30)
    before = text(live)
    live.close()
    with log.Ledger(shared) as ledger, ledger.holding() as connection:
        connection.execute(sa.update(sql_tables.snapshots).values(alarm=None))
    with opened(shared) as again:
        assert text(again) == before


def test_other_settings_hold_from_the_next_batch(home):
    live = opened(home, alarm=True)
    lived(live, 0, 30)
    if home is not None:
        live.close()
        with opened(home, alarm=True) as live:  # the same: it goes on
            assert live._learner.stands.watch.seen.n == 30 - live._learner.stands.watch.seen.unsure
        with opened(home, alarm=OFTEN) as live:
            assert live._learner.stands.watch.seen.n == 0
            lived(live, 30, 35)
            seen = live._learner.stands.watch.seen
            assert seen.n + seen.unsure == 5
            assert live._learner.replay().watch.held() == text(live)
        with opened(home, alarm=False) as live:
            lived(live, 35, 37)
            assert (text(live), live.alarms, live.status().watched) == (None, [], None)


def test_corrections_erasures_and_rollbacks_are_followed(home):
    live = opened(home, alarm=OFTEN)
    lived(live, 0, 60)
    live.correct(20, 0.9)
    assert live._learner.replay().watch.held() == text(live)
    live.erase([30])
    assert live._learner.replay().watch.held() == text(live)
    lived(live, 60, 100)
    lived(live, 100, 110, shift=5.0)
    assert live.alarms
    live.rollback(100)
    assert live.alarms == []  # what was rolled back takes them with it
    lived(live, 110, 112)
    assert live._learner.replay().watch.held() == text(live)
    live.close()


def test_slots_and_links():
    bandit = dither.GLMFP(dim=2, lam=1.0, disjoint=2, floor=0.5, seed=0)
    with dither.Live(None, bandit=bandit, alarm=OFTEN) as live:
        rng = np.random.default_rng(0)
        for _ in range(150):
            live.reward(live.choose(rng.normal(size=2)).id, float(rng.random() < 0.3))
        seen = live._learner.stands.watch.seen
        assert seen.n > 60
        assert (seen.law, seen.alarms) == ("bernoulli", [])


def test_what_cannot_be_watched():
    with pytest.raises(ValueError, match="no widths"):
        dither.Live(None, bandit=dither.DeepGreedy(dim=2, seed=0), alarm=True)
    with pytest.raises(TypeError, match="alarm must be"):
        opened(None, alarm=0.01)


def test_a_bandit_without_widths_cannot_take_the_place_of_one_that_is_watched():
    live = dither.Live(None, bandit=dither.LinFP(dim=3, lam=1.0, seed=0), alarm=True)
    X = np.eye(3)
    for _ in range(3):
        live.reward(live.choose(X).id, 1.0)
    with pytest.raises(ValueError, match=r"no widths: end the alarm first"):
        live.change(bandit=dither.DeepFP(dim=3, seed=0))
    live.replace_shadow(dither.DeepFP(dim=3, seed=0))
    with pytest.raises(ValueError, match=r"no widths: end the alarm first"):
        live.promote()
    live.reward(live.choose(X).id, 1.0)
    assert live.bandit.observations == 4
    # seen red: accepted, and nothing learnt any more


def test_the_alarm_of_a_promoted_shadow_is_that_of_a_replay(tmp_path):
    home, rng, X = tmp_path / "a.db", np.random.default_rng(0), np.eye(3)
    shadow = dither.LinFP(dim=3, lam=5.0, seed=1)
    live = dither.Live(home, bandit=dither.LinFP(dim=3, lam=1.0, seed=0), shadow=shadow, alarm=True)
    for n in range(300):
        d = live.choose(X)
        live.reward(d.id, float(rng.normal() * 0.1 + (n > 150)))
    live.promote()
    live.reward(live.choose(X).id, 1.0)
    with dither.Live(home, learn=False) as other:
        assert len(live.alarms) == len(other.alarms)
        then = live._learner.replay(live.batch)
        assert live._learner.stands.watch.held() == then.watch.held() == other._learner.stands.watch.held()
    # seen red: what the alarm had seen of the bandit before
