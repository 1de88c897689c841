"""`learn="background"`: no call takes part in the learning, and what is learnt is the same function of the ledger."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest

import dither
from dither.live import background
from dither.log.database import lessons

pytestmark = pytest.mark.usefixtures("closing")
X = np.eye(3)


def begin(**settings):
    return dither.LinFP(**{"dim": 3, "lam": 1.0, "floor": 0.3, "seed": 0} | settings)


def until(holds):
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_what_is_learnt_is_a_replay(home):
    live = dither.Live(home, bandit=begin(), shadow=begin(lam=2.0), learn="background")
    ids = []
    for i in range(40):
        ids.append(live.choose(X).id)
        assert live.reward(ids[-1], float(i % 2)) == "counted"
    until(lambda: live.bandit.observations == 40)
    assert live.learns
    assert live.batch < 40, "each reward was a batch of its own"
    assert live.to_bytes() == live.replay().to_bytes()
    assert live.to_bytes("shadow") == live.replay(of="shadow").to_bytes()
    assert live.correct(ids[0], 1.0) == "counted"
    assert live.bandit.observations == 40
    assert live.to_bytes() == live.replay().to_bytes()
    live.reward(live.choose(X).id, 1.0)
    live.close()  # learns what waits
    assert not [one for one in threading.enumerate() if one.name == "dither-learning"]
    if home is not None:
        with dither.Live(home, learn=False) as again:
            assert again.bandit.observations == 41
    # seen red: `close` without the last batch


def test_no_call_waits_for_the_model(tmp_path, monkeypatch):
    """The model learns when it is let to. Rewards are stored and answered meanwhile, and are the next batch."""
    live = dither.Live(tmp_path / "a.db", bandit=begin(), learn="background")
    ids = [live.choose(X).id for _ in range(6)]
    teach, free, at_work = live._learner.stands.learn, threading.Event(), threading.Event()

    def slowly(batch):
        at_work.set()
        assert free.wait(60)
        return teach(batch)

    live._learner.stands.learn = slowly
    assert live.reward(ids[0], 1.0) == "counted"
    assert at_work.wait(60)
    assert [live.reward(id, 0.0) for id in ids[1:]] == ["counted"] * 5
    assert live.batch == 0
    free.set()
    until(lambda: live.batch == 2)
    assert live.bandit.observations == 6
    assert live.to_bytes() == live.replay().to_bytes()


def test_a_batch_that_another_thread_has_read_meanwhile_is_learnt_once(tmp_path):
    live = dither.Live(tmp_path / "a.db", bandit=begin(), learn="background")
    live._background.close()
    learner = live._learner
    apart = learner._apart

    def late(batch):
        learner.follow(replay=True)
        apart(batch)

    learner._apart = late
    live.reward(live.choose(X).id, 1.0)
    learner.beside()
    assert (live.batch, live.bandit.observations) == (1, 1)
    assert live.to_bytes() == live.replay().to_bytes()
    # seen red: `_apart` without the look at the number


def test_what_a_model_raises_is_a_trouble_and_the_thread_goes_on(tmp_path):
    live = dither.Live(tmp_path / "a.db", bandit=begin(), learn="background")
    stands, broken = live._learner.stands, [True]
    learn = stands.learn

    def raises(*batch):
        if broken:
            broken.clear()
            stands.torn = True
            raise learning.LearningError("no memory")
        return learn(*batch)

    from dither.live import taught as learning

    stands.learn = raises
    assert live.reward(live.choose(X).id, 1.0) == "counted"
    until(lambda: live.troubles)
    assert live.troubles[0].what == "learning"
    assert "no memory" in live.troubles[0].words
    live.choose(X)
    until(lambda: live.batch == 1)  # after the pause
    assert live.to_bytes() == live.replay().to_bytes()


def test_a_transaction_that_fails_is_a_trouble_and_no_error_of_a_call(tmp_path, monkeypatch):
    live = dither.Live(tmp_path / "a.db", bandit=begin(), learn="background")
    number = lessons.number

    def refuses(*arguments):
        monkeypatch.setattr(lessons, "number", number)
        raise OSError("no room")

    monkeypatch.setattr(lessons, "number", refuses)
    assert live.reward(live.choose(X).id, 1.0) == "counted"
    until(lambda: live.troubles)
    assert "no room" in live.troubles[0].words
    until(lambda: live.batch == 1)
    assert live.to_bytes() == live.replay().to_bytes()


def test_rewards_of_other_processes_are_learnt_too(tmp_path):
    live = dither.Live(tmp_path / "a.db", bandit=begin(), learn="background", refresh_seconds=0.05)
    with dither.Live(tmp_path / "a.db", learn=False) as other:
        other.reward(other.choose(X).id, 1.0)
    until(lambda: live.batch == 1)
    live.close()


def test_the_thread_ends_with_its_live(tmp_path):
    live = dither.Live(tmp_path / "a.db", bandit=begin(), learn="background", refresh_seconds=0.05)
    thread, learner = live._background._thread, weakref.ref(live._learner)
    del live
    end = time.monotonic() + 60
    while thread.is_alive():
        gc.collect()
        assert time.monotonic() < end
    assert learner() is None


def test_learn_is_true_false_or_background():
    for odd in ("beside", "", None, 2):
        with pytest.raises(ValueError, match="learn must be True or False, or 'background', got"):
            dither.Live(None, bandit=begin(), learn=odd)
    assert background.REST < 1
