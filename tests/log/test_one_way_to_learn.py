"""One way to learn from a log: a warm start, a ledger that takes the log over, and a replay of that ledger.

Each teaches a bandit the same, and refuses the same. The oracle is the bandit that learns every reward by hand.
"""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import dither
from dither.log import Log, read, warm_start

N, K, D = 60, 4, 3
IDS = ["d", "c", "b", "a"]


def bandit(slots, **settings):
    return dither.LinFP(dim=D, disjoint=K if slots else None, lam=1.0, seed=0, **settings)


def masks(kind):
    """Which arms are on offer: all, two of four, or one alone now and then."""
    rng = np.random.default_rng(1)
    on = np.ones((N, K), dtype=bool)
    if kind != "all":
        on = (
            rng.permuted(np.arange(K) < 2, axis=0)
            if kind == "none"
            else np.stack([rng.permutation(np.arange(K) < (2 if kind == "two" else 1 + i % 2)) for i in range(N)])
        )
    return on


def filled(folder, slots, kind, *, arms=None, **settings):
    """A log of a bandit, and the one that has learnt its rewards by hand."""
    rng, by_hand = np.random.default_rng(0), bandit(slots)
    with Log(folder, bandit=bandit(slots), buffer=7, **settings) as log:
        for i, on in enumerate(masks(kind)):
            X = rng.normal(size=D if slots else (K, D))
            d = log.decide(X, mask=None if on.all() else on, arms=arms, id=str(i))
            r = float(rng.normal())
            if i % 5 == 0:
                continue  # its reward never comes
            log.reward(d.id, r)
            if slots:
                by_hand.update(X, r, arm=d.arm)
            else:
                by_hand.update(X[d.arm], r)
    return by_hand


def taken_over(folder, place, slots):
    with dither.Live(place, bandit=bandit(slots)) as live:
        live.ledger.take_over(folder)
        live.learn()
        learnt, replayed = live.bandit.theta, live.replay().theta
        assert live.refused == 0
    with dither.Live(place) as live:
        assert_allclose(live.bandit.theta, learnt)
    assert_allclose(replayed, learnt)
    return learnt


@pytest.mark.parametrize("arms", [None, IDS])
@pytest.mark.parametrize("kind", ["all", "two", "one"])
@pytest.mark.parametrize("slots", [False, True])
def test_all_ways_teach_the_same(tmp_path, slots, kind, arms):
    by_hand = filled(tmp_path / "log", slots, kind, arms=arms)
    warm = bandit(slots)
    warm_start(warm, tmp_path / "log", missing="leave out")
    assert_allclose(warm.theta, by_hand.theta, rtol=1e-9, atol=1e-12)
    assert_allclose(taken_over(tmp_path / "log", tmp_path / "a.db", slots), by_hand.theta, rtol=1e-9, atol=1e-12)
    with dither.Live(tmp_path / "a.db") as live:
        live.ledger.export(tmp_path / "days")
    again = bandit(slots)
    warm_start(again, tmp_path / "days", missing="leave out")
    assert_allclose(again.theta, by_hand.theta, rtol=1e-9, atol=1e-12)
    assert_allclose(taken_over(tmp_path / "days", tmp_path / "b.db", slots), by_hand.theta, rtol=1e-9, atol=1e-12)
    # seen red: two of four on offer, 37 of 60 rows in the wrong slot; one on offer, no slot and nothing learnt


def test_slots_keep_their_ids(tmp_path):
    filled(tmp_path / "log", True, "two", arms=IDS)
    with dither.Live(tmp_path / "a.db", bandit=bandit(True)) as live:
        live.ledger.take_over(tmp_path / "log")
        assert live.choose(np.ones(D)).arm in IDS
        assert live.choose(np.ones(D), arms=IDS).arm in IDS
        with pytest.raises(ValueError, match="A slot keeps its id"):
            live.choose(np.ones(D), arms=IDS[::-1])
    # seen red: the ids are not carried over


def test_slots_go_by_id(tmp_path):
    """The ledger has named its slots in another order than the log: what an arm taught goes to that arm."""
    by_hand = filled(tmp_path / "log", True, "two", arms=IDS)
    with dither.Live(tmp_path / "a.db", bandit=bandit(True)) as live:
        live.choose(np.ones(D), arms=IDS[::-1])
        live.ledger.take_over(tmp_path / "log")
        live.learn()
        assert_allclose(live.bandit.theta, by_hand.theta[::-1], rtol=1e-9, atol=1e-12)
    with dither.Live(tmp_path / "b.db", bandit=bandit(True)) as live:
        live.choose(np.ones(D), arms=["d", "c", "b", "other"])
        with pytest.raises(ValueError, match="'a'"):
            live.ledger.take_over(tmp_path / "log")
        assert len(live.read()) == 1


@pytest.mark.parametrize("way", ["warm start", "take over"])
def test_what_cannot_be_learnt_is_refused_on_every_way(tmp_path, way):
    def learn(one, folder):
        if way == "warm start":
            warm_start(one, folder, missing=0)
            return
        with dither.Live(None, bandit=one) as live:
            before = len(live.ledger)
            try:
                live.ledger.take_over(folder)
            finally:
                assert len(live.ledger) == before or live.refused == 0

    filled(tmp_path / "slots", True, "all")
    with pytest.raises(ValueError, match="one context a row"):
        learn(bandit(False), tmp_path / "slots")
    filled(tmp_path / "arms", False, "all")
    with pytest.raises(ValueError, match="width"):
        learn(dither.LinFP(dim=D + 1, seed=0), tmp_path / "arms")
    numeric = dither.features.Numeric
    of_log, of_bandit = (dither.Features(arm={"u": numeric(mean=0, scale=scale)}) for scale in (1, 2))
    with Log(tmp_path / "features", bandit=dither.LinFP(features=of_log, seed=0), buffer=1) as log:
        log.reward(
            log.decide(of_log.encode([{"u": 1.0}], [{}])[0] if False else of_log.encode({}, [{"u": 1.0}]), id="a").id,
            1.0,
        )
    with pytest.raises(ValueError, match="other Features"):
        learn(dither.LinFP(features=of_bandit, seed=0), tmp_path / "features")
    # seen red: learnt, in other units


def test_an_id_that_comes_again_in_a_later_chunk_is_refused_whatever_form_the_log_has(tmp_path):
    features = [[[1.0, 0.0, 0.0]]] * 3
    frame = pl.DataFrame({"id": ["a", "b", "a"], "arm": [0] * 3, "reward": [1.0] * 3, "features": features})
    rows = read(frame, require=("arm",))
    rows.write(tmp_path / "log.parquet")
    for log in (frame, rows, tmp_path / "log.parquet"):
        learner = bandit(False)
        with pytest.raises(ValueError, match="id came before"):
            warm_start(learner, log, chunk=1)
        assert learner.observations == 2
    # seen red: a log in memory, whose chunks did not know the ids of those before


def test_a_ledger_of_slots_may_hold_rows_with_features_of_each_arm(tmp_path):
    """Each row gives the features that it has: the context, or those of the arm shown."""
    arms, learner = ["a", "b", "c"], dither.LinFP(dim=D, disjoint=3, lam=1.0, seed=0)
    rng, X = np.random.default_rng(0), np.ones((21, D))
    with Log(tmp_path / "log", bandit=bandit(False)) as log:
        for i in range(20):
            offer = rng.normal(size=(3, D))
            d = log.decide(offer, arms=arms, id=str(i))
            log.reward(d.id, 1.0)
            X[i + 1] = offer[d.arm]
    with dither.Live(tmp_path / "a.db", bandit=learner) as live:
        live.reward(live.choose(X[0], arms=arms).id, 1.0)
        live.ledger.take_over(tmp_path / "log")
        live.learn()
        rows = live.read()
        assert_allclose(rows.x, X)
        assert not rows.slots
        warm = dither.LinFP(dim=D, disjoint=3, lam=1.0, seed=0)
        warm_start(warm, rows)
        assert_allclose(warm.theta, live.bandit.theta, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="one context a row"):
        warm_start(bandit(False), rows)
    with pytest.raises(ValueError, match="1 rows of features for 3 arms"):
        rows.X  # noqa: B018
    # seen red: x of 61 rows for 21 decisions, and lessons of other rows
    with pytest.raises(ValueError, match="features of their own, and the bandit has 3 disjoint slots"):
        Log(tmp_path / "log", bandit=dither.LinFP(dim=D, disjoint=3, seed=0))
    # seen red: the folder took both


@pytest.mark.parametrize("names", [None, ["a", "b", "c"]])
def test_slots_that_come_later_have_their_positions_as_ids(tmp_path, names):
    """Of a bandit that grows while it logs, and of one with more slots than the log that its ledger took over."""
    x, rng = np.ones(D), np.random.default_rng(0)
    grown = dither.LinFP(dim=D, disjoint=3, lam=1.0, floor=1.0, seed=0)
    by_hand, folder = bandit(True), tmp_path / "log"
    with Log(None, bandit=grown) as log, Log(folder, bandit=dither.LinFP(dim=D, disjoint=3, seed=0)) as small:
        small.decide(x, arms=names)
        log.decide(x, arms=names, id="first")
        grown.grow(4)
        for i in range(40):
            X, r = rng.normal(size=D), float(rng.normal())
            d = log.decide(X, id=str(i))
            log.reward(d.id, r)
            by_hand.update(X, r, arm=d.arm)
        rows, warm = log.read().usable(missing="leave out"), bandit(True)
    warm_start(warm, rows)
    assert_allclose(warm.theta, by_hand.theta, rtol=1e-9, atol=1e-12)
    assert rows.arm_ids()[-1] == [*(names or "012"), "3"]
    with dither.Live(tmp_path / "a.db", bandit=bandit(True, floor=1.0)) as live:
        live.ledger.take_over(folder)
        shown = [live.choose(x) for _ in range(40)]
        assert {str(one.arm) for one in shown} == {*(names or "012"), "3"}
        live.reward([one.id for one in shown], np.arange(40.0))
        live.learn()
        rows, warm = live.read().usable(missing="leave out"), bandit(True)
        warm_start(warm, rows)
        assert_allclose(warm.theta, live.bandit.theta, rtol=1e-9, atol=1e-12)
    # seen red: rows with ids of three arms, of which the fourth was shown; IndexError


@pytest.mark.parametrize("names", [["a", "3", "c"], list("abcde")])
def test_ids_that_do_not_fit_the_slots_are_refused_before_anything_is_stored(tmp_path, names):
    with Log(tmp_path / "log", bandit=dither.LinFP(dim=D, disjoint=len(names), seed=0)) as log:
        log.decide(np.ones(D), arms=names)
    with dither.Live(tmp_path / "a.db", bandit=bandit(True)) as live:
        with pytest.raises(ValueError, match="'3' is the id of slot 1" if len(names) == 3 else "of 5 disjoint slots"):
            live.ledger.take_over(tmp_path / "log")
        assert len(live.ledger) == 0


def test_a_second_log_must_say_which_slots_its_names_are(tmp_path):
    """The slots of two logs may have another order, and what they teach goes to the arm, not to the position."""
    first, second, slots = tmp_path / "one", tmp_path / "two", {id: slot for slot, id in enumerate(IDS)}
    by_hand, warm = filled(first, True, "two", arms=IDS), bandit(True)
    filled(second, True, "two", arms=IDS[::-1])
    warm_start(warm, first, missing="leave out", chunk=7)
    for log in (second, read(second)):
        with pytest.raises(ValueError, match="give slots="):
            warm_start(warm, log, missing="leave out")
    assert_allclose(warm.theta, by_hand.theta, rtol=1e-9, atol=1e-12)
    # seen red: learnt by position, 'a' as if it were 'd'
    warm_start(warm, second, missing="leave out", slots=slots)
    fresh = bandit(True)
    warm_start(fresh, second, missing="leave out", slots=slots)
    warm_start(fresh, first, missing="leave out", slots=slots)
    assert_allclose(warm.theta, fresh.theta, rtol=1e-9, atol=1e-12)


def named(columns):
    """A bandit that has seen these names once."""
    one = dither.LinFP(dim=2, lam=1.0, seed=0)
    one.choose(pl.DataFrame(np.zeros((2, 2)), schema=columns))
    return one


def test_a_bandit_that_comes_after_the_log_has_the_names_of_the_log(tmp_path):
    """The ledger took the log over before it had a bandit. What "good" taught must not go to "bad"."""
    rng = np.random.default_rng(0)
    with Log(tmp_path / "log", bandit=named(["bad", "good"])) as log:
        for i in range(20):
            d = log.decide(X := pl.DataFrame(rng.normal(size=(3, 2)), schema=["bad", "good"]), id=str(i))
            log.reward(d.id, X["good"][int(d.arm)])
    with dither.log.Ledger(tmp_path / "a.db") as ledger:
        ledger.take_over(tmp_path / "log")
        ledger.export(tmp_path / "days")
    for columns in (["good", "bad"], ["x", "y"]):
        with pytest.raises(ValueError, match=r"\['bad', 'good'\], in this order.*export"):
            dither.Live(tmp_path / "a.db", bandit=named(columns))
    with dither.Live(tmp_path / "a.db", bandit=named(["bad", "good"])) as live:  # nothing changed
        live.learn()
        want = live.bandit.theta
    with dither.Live(tmp_path / "b.db", bandit=named(["good", "bad"])) as live:  # the cure
        live.ledger.take_over(tmp_path / "days")
        live.learn()
        assert_allclose(live.bandit.theta, want[::-1])
    # seen red: learnt by place


def test_a_bandit_that_comes_after_the_log_has_its_features(tmp_path):
    numeric = dither.features.Numeric
    of_log, of_bandit = (dither.Features(arm={"u": numeric(mean=0, scale=scale)}) for scale in (1, 2))
    with Log(tmp_path / "log", bandit=dither.LinFP(features=of_log, seed=0)) as log:
        log.reward(log.decide(of_log.encode({}, [{"u": 1.0}]), id="a").id, 1.0)
    with dither.log.Ledger(tmp_path / "a.db") as ledger:
        ledger.take_over(tmp_path / "log")
    with pytest.raises(ValueError, match="other Features"):
        dither.Live(tmp_path / "a.db", bandit=dither.LinFP(features=of_bandit, seed=0))
    with dither.Live(tmp_path / "a.db", bandit=dither.LinFP(features=of_log, seed=0)) as live:
        live.learn()
        assert live.bandit.observations == 1
    # seen red: learnt, in other units


def test_a_bandit_that_comes_after_the_log_has_its_slots(tmp_path):
    filled(tmp_path / "log", True, "two", arms=IDS)
    with dither.log.Ledger(tmp_path / "a.db") as ledger:
        ledger.take_over(tmp_path / "log")
    for disjoint in (None, K - 1, K + 1):
        with pytest.raises(ValueError, match="are of 4 disjoint slots"):
            dither.Live(tmp_path / "a.db", bandit=dither.LinFP(dim=D, disjoint=disjoint, seed=0))
    with dither.Live(tmp_path / "a.db", bandit=bandit(True)) as live:
        assert live.choose(np.ones(D)).arm in IDS
    # seen red: three slots grow to four, a bandit without slots refuses every reward without a word


def test_a_log_of_more_slots_than_the_bandit_has_is_refused(tmp_path):
    filled(tmp_path / "log", True, "two")
    with dither.Live(tmp_path / "a.db", bandit=dither.LinFP(dim=D, disjoint=K - 1, seed=0)) as live:
        with pytest.raises(ValueError, match="are of 4 disjoint slots, and the bandit of the ledger has 3"):
            live.ledger.take_over(tmp_path / "log")
        assert (len(live.ledger), live.ledger.slot_ids(None)) == (0, None)
    # seen red: the bandit grows to four slots, without a catalogue


def test_a_log_of_fewer_slots_leaves_the_others_their_positions(tmp_path):
    filled(tmp_path / "log", True, "two", arms=IDS)
    with dither.Live(None, bandit=dither.LinFP(dim=D, disjoint=K + 1, seed=0)) as live:
        live.ledger.take_over(tmp_path / "log")
        mask = np.arange(K + 1) == K
        assert live.choose(np.ones(D), mask=mask).arm == "4"
    # seen red: IndexError, as four ids were there for five slots


def test_live_says_that_its_rows_are_contexts_as_a_log_does(tmp_path):
    """One arm is on offer in every row, so that a context looks like the features of that arm."""
    rng = np.random.default_rng(0)
    with dither.Live(tmp_path / "a.db", bandit=bandit(True)) as live:
        for i in range(8):
            d = live.choose(rng.normal(size=D), mask=np.arange(K) == i % K)
            assert (d.arm, d.place) == (i % K, i % K)
            live.reward(d.id, 1.0)
        rows, learnt = live.read(), live.bandit.theta
        assert (rows.slots, rows.slot_ids, rows.X.shape) == (True, ("0", "1", "2", "3"), (8, D))
        with pytest.raises(ValueError, match="A slot keeps its id"):
            live.choose(np.ones(D), arms=IDS)
        live.ledger.export(tmp_path / "days")
    with pytest.raises(ValueError, match="one context a row"):
        warm_start(bandit(False), rows)
    for log in (rows, tmp_path / "days"):
        warm = bandit(True)
        warm_start(warm, log)
        assert_allclose(warm.theta, learnt)
    # seen red: learnt by a bandit without slots, without a word
