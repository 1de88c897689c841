"""A shadow that raises is set aside: the bandit decides and learns as if there were none, and the cure is told."""

from dataclasses import dataclass

import numpy as np
import pytest

import dither
from dither.log.troubles import in_words

X = np.eye(3)
pytestmark = pytest.mark.usefixtures("closing")


@dataclass(frozen=True)
class Moody(dither.models.Ridge):
    """A model that raises what its class has at the moment: when it learns a reward of 13, or when it is asked."""

    learns = asks = None

    def update(self, state, x, r, *more, **settings):
        if Moody.learns is not None and r == 13.0:
            raise Moody.learns
        return super().update(state, x, r, *more, **settings)

    def update_many(self, state, X, r, *more, **settings):
        if Moody.learns is not None:
            raise ValueError("not together")
        return super().update_many(state, X, r, *more, **settings)

    def mean(self, state, X):
        if Moody.asks is not None:
            raise Moody.asks
        return super().mean(state, X)


@pytest.fixture
def mood():
    """Sets what the model raises when it learns, or when it is asked."""
    yield lambda **what: [setattr(Moody, name, reason) for name, reason in what.items()]
    Moody.learns = Moody.asks = None


def begin(**settings):
    """Its model and policy are those of no shadow here."""
    settings = {"floor": 0.5, "seed": 0} | settings
    return dither.Bandit(dither.models.Diagonal(lam=1.0), dither.policies.Greedy(), dim=3, **settings)


def moody(**settings):
    return dither.Bandit(Moody(lam=1.0), dither.LinFP(dim=3).policy, dim=3, floor=0.1, **{"seed": 5} | settings)


def play(live, rewards):
    """Decisions with these rewards; -> what was shown, how probably, and what became of the rewards."""
    said = []
    for r in rewards:
        d = live.choose(X)
        said.append((d.arm, d.propensity, live.reward(d.id, r)))
    return said


def raises(*_, **__):
    raise RuntimeError("no")


def judged(live):
    """Which decisions have it."""
    frame = live.read().frame
    assert frame["judged"].is_null().to_list() == frame["shadow"].is_null().to_list()
    return frame["judged"].is_not_null().to_list()


def told(live):
    return [one.words for one in live.troubles if one.what == "shadow"]


REWARDS = [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]


@pytest.fixture(scope="module")
def alone():
    """What becomes of these rewards where there is no shadow."""
    with dither.Live(None, bandit=begin()) as live:
        return [play(live, some) for some in REWARDS], live.to_bytes()


LEARNING = ["LinFP", "GLMFP", "Logistic-UCB-2", "GLOC", "DeepFP", "NeuralLinear"]  # one for each class of models
ASKED = ["LinUCB", "Softmax", "NeuralLinearFP"]


@pytest.mark.parametrize(("kind", "fault"), [(k, "learning") for k in LEARNING] + [(k, "asked") for k in ASKED])
def test_whatever_a_shadow_raises_the_bandit_is_as_without_one(monkeypatch, alone, kind, fault):
    live = dither.Live(None, bandit=begin(), shadow=dither.ALGORITHMS[kind](dim=3, seed=7))
    said = [play(live, REWARDS[0])]
    model, policy = type(live.shadow.model), type(live.shadow.policy)
    for owner, name in [(model, "update"), (model, "update_many")] if fault == "learning" else [(policy, "view")]:
        monkeypatch.setattr(owner, name, raises)
    said.append(play(live, REWARDS[1]))
    assert (said, live.to_bytes()) == alone
    assert live.replay().to_bytes() == live.to_bytes()
    assert judged(live) == [True] * 3 + [fault == "learning"] + [False] * 2
    assert len(told(live)) == len(live.troubles) == 1
    assert live.shadow is None
    # seen red: what the shadow raised let the bandit stay at batch 3; `_extra` that asks it without a catch


LEARNT = [("learns", reason) for reason in (MemoryError(), OSError("no"))]


@pytest.mark.parametrize(("what", "reason"), [*LEARNT, ("asks", KeyError("no"))])
def test_it_is_told_with_what_was_raised_and_the_cure(mood, what, reason):
    live = dither.Live(None, bandit=begin(), shadow=moody(), known=(Moody,))
    mood(**{what: reason})
    play(live, [13.0, 0.0, 13.0])
    (words,) = told(live)
    when = "when it learnt batch 1" if what == "learns" else "when it was asked for its probabilities"
    assert words.startswith(f"the shadow is set aside, since it raised {in_words(reason)} {when}. The bandit goes on")
    assert "live.replace_shadow(shadow)" in words
    assert live.bandit.observations == live.batch == 3
    said = f"since it raised {in_words(reason)} {when}"
    assert [one for one in live.status().warnings if said in one] == live.status().warnings
    (trouble,) = live.status().troubles
    assert (trouble.what, trouble.state) == ("shadow", "stands")
    for call in (live.promote, lambda: live.to_bytes("shadow")):
        with pytest.raises(ValueError, match="the shadow is set aside, since it raised") as refused:
            call()
        assert said in str(refused.value)
        assert "replace_shadow" in str(refused.value)
    assert live.events() == []
    mood(**{what: None})
    live.replace_shadow(moody())  # again
    play(live, [13.0])
    assert live.shadow.observations == 4
    assert judged(live)[-1]
    assert live.status().warnings == []
    assert [one.state for one in live.status().troubles] == ["mended"]
    assert live.to_bytes("shadow") == live.replay(of="shadow").to_bytes()
    live.promote()
    assert live.bandit.observations == 4
    # seen red: `take` that tries the same shadow again; a trouble at each decision; `promote` that did not ask


def test_several_processes(shared, mood):
    """Each sets it aside where it meets the fault. Who opens the ledger later tries it again, from the first reward."""
    how = {"known": (Moody,), "snapshot_batches": 1, "refresh_seconds": 1e-6}
    one = dither.Live(shared, bandit=begin(), shadow=moody(), **how)
    play(one, [1.0, 0.0])
    follower, other = (dither.Live(shared, learn=learn, **how) for learn in (False, True))
    play(follower, [1.0])
    mood(learns=RuntimeError("no"))
    play(one, [13.0, 1.0, 1.0])
    play(follower, [0.0])
    other.choose(X)
    for live in (one, follower, other):
        assert live.shadow is None
        assert len(told(live)) == 1
        with pytest.raises(ValueError, match="the shadow is set aside"):
            live.promote()
    assert one.replay().to_bytes() == one.to_bytes()
    with pytest.raises(ValueError, match="the shadow is set aside"):
        one.replay(of="shadow")
    with dither.Live(shared, **how) as late:  # the fault is there still
        assert late.shadow is None
        assert len(told(late)) == 1
        play(late, [1.0])
    erased = one.read().frame["id"][0]
    assert one.erase([erased]) == 1  # all is learnt anew, and the shadow is not tried again
    one.learn()
    assert one.bandit.observations == 7
    assert one.correct(one.read().frame["id"][1], 0.5) == "counted"
    assert len(told(one)) == 1
    mood(learns=None)
    with dither.Live(shared, **how) as late:
        assert late.shadow.observations == late.bandit.observations
        assert late.to_bytes("shadow") == late.replay(of="shadow").to_bytes()
        late.choose(X)
        assert judged(late)[-1]
        late.replace_shadow(moody(seed=6))
    for live in (one, follower):
        live.choose(X)
        assert judged(live)[-1]
        assert live.shadow.observations == live.bandit.observations
    # seen red: a snapshot without a shadow read as one with it; a follower that stays behind


@pytest.mark.parametrize("learns", [True, False])
def test_one_that_cannot_be_loaded_keeps_nobody_from_opening(tmp_path, learns):
    """Another process has given it, of a class that this one lacks."""
    home = tmp_path / "a.db"
    live, other = dither.Live(home, bandit=begin()), dither.Live(home, known=(Moody,))
    play(live, [1.0, 0.0])
    other.replace_shadow(moody(), learns=learns)
    play(live, [1.0])
    with dither.Live(home) as again:
        for one in (live, again):
            assert "known=" in told(one)[0]
            assert "when it was loaded" in told(one)[0]
            assert one.shadow is None
            assert one.bandit.observations == 3
    assert other.shadow is not None
    # seen red: `follow` raised, and so did each decision


def test_a_thread_that_learns_beside_the_calls(mood):
    mood(learns=RuntimeError("no"))
    with dither.Live(None, bandit=begin(), shadow=moody(), learn="background", known=(Moody,)) as live:
        play(live, [13.0, 1.0])
        live._background.close()
        live._learner.beside()
        assert live.bandit.observations == 2
        assert len(told(live)) == len(live.troubles) == 1
        assert live.to_bytes() == live.replay().to_bytes()
    # seen red: `_apart` stayed at the batch before


def test_where_decisions_wait_for_each_other_it_is_the_same(mood):
    """With budgets the shadow is asked inside the transaction; with a batch for all requests at once."""
    live = dither.Live(None, bandit=begin(), shadow=moody(), known=(Moody,), budgets={"a": dither.Budget(1)})
    live.choose(X, ["a", "b", "c"])
    mood(asks=ZeroDivisionError("no"))
    d = live.choose(np.stack([X, X]), ["a", "b", "c"])
    assert judged(live) == [True, False, False]
    assert live.reward(list(d.id), [1.0, 0.0]) == ["counted"] * 2
    assert len(told(live)) == len(live.troubles) == 1


def test_a_clock_that_raises(monkeypatch):
    live = dither.Live(None, bandit=begin(), shadow=dither.LinFP(dim=3, half_life=60.0, seed=1))
    live.choose(X)
    monkeypatch.setattr(dither.models.Ridge, "advanced", raises)
    play(live, [1.0])
    assert judged(live) == [True, False]
    assert len(told(live)) == 1


def test_no_earlier_snapshot_brings_it_back(tmp_path, mood):
    how = {"known": (Moody,), "snapshot_batches": 1}
    live = dither.Live(tmp_path / "a.db", bandit=begin(), shadow=moody(), **how)
    play(live, [1.0, 0.0])  # snapshots have it
    other = dither.Live(tmp_path / "a.db", refresh_seconds=1e6, **how)
    mood(learns=RuntimeError("no"))
    play(live, [13.0])
    with pytest.raises(ValueError, match="the shadow is set aside"):
        other.promote()  # which has not looked since
    assert live.correct(live.read().frame["id"][2], 0.5) == "counted"
    assert live.batch == live.bandit.observations + 1 == 4
    assert live.shadow is None
    play(live, [1.0])
    assert judged(live) == [True] * 3 + [False]
    assert len(told(live)) == len(told(other)) == 1
    # seen red: `snapshot` that asks only whether the row has a shadow; a `promote` that knows what it knew before
