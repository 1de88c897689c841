"""While the store is away, a call with a fallback is answered by it; its row waits, and no reward is dropped."""

import asyncio
import math
import threading

import numpy as np
import pytest
import sqlalchemy as sa

import dither
from dither import ope
from dither.live import OtherRequest
from dither.log.database import home as homes
from dither.log.database import sql_tables

X = np.eye(3)
ARMS = ["a", "b", "c"]
pytestmark = pytest.mark.usefixtures("closing")


def begin(**settings):
    return dither.LinFP(**{"dim": 3, "lam": 1.0, "floor": 0.3, "seed": 0} | settings)


@pytest.fixture
def live(tmp_path):
    return dither.Live(tmp_path / "a.db", bandit=begin())


@pytest.fixture
def away(tmp_path):
    """Puts the file of the ledger away, and back."""
    names = [tmp_path / f"a.db{end}" for end in ("", "-wal", "-shm")]

    def move(gone):
        for name in names:
            here, there = name, name.with_name(f"{name.name}.away")
            source, target = (here, there) if gone else (there, here)
            if source.exists():
                source.rename(target)

    return move


def table(live):
    """Ids and arms of the decisions, in their order."""
    c = sql_tables.decisions.c
    with live.ledger.database.reading() as connection:
        return [(row.id, row.arm) for row in connection.execute(sa.select(c.id, c.arm).order_by(c.number))]


def test_an_outage(live, away):
    first = live.choose(X, ARMS, id="1")
    live.reward("1", 1.0)
    away(True)
    shown = [live.choose(X, ARMS, id=f"f{i}", fallback="b", extra={"user": "u"}) for i in range(3)]
    for d in shown:
        assert (d.arm, d.place, d.fallback, d.propensity_kind, d.z) == ("b", 1, True, "none", None)
        assert math.isnan(d.propensity)
    with pytest.raises(OSError, match="Send it again"):
        live.reward("f0", 1.0)
    with pytest.raises(OSError, match="removed"):
        live.reward("1", 0.5)
    with pytest.raises(OSError, match="removed"):
        live.choose(X, ARMS)
    assert [one.what for one in live.troubles if one.what == "fallback"] == ["fallback"]
    assert live.ledger.database.troubles.stands("fallback")
    away(False)
    newer = live.choose(X, ARMS, id="2")
    assert not live.ledger.database.troubles.stands("fallback")
    assert not newer.fallback
    assert [id for id, _ in table(live)] == ["1", "f0", "f1", "f2", "2"]
    assert live.reward(["f0", "f1"], [1.0, 0.0]) == ["counted"] * 2
    assert live.bandit.observations == 3
    assert live.replay().to_bytes() == live.to_bytes()
    frame = live.read().frame
    assert frame["fallback"].to_list() == [None, True, True, True, None]
    assert frame["propensity"].null_count() == 3
    assert frame["floor"].to_list()[1] is None
    assert frame["user"].to_list()[1:4] == ["u"] * 3
    assert [first.fallback, newer.fallback] == [False] * 2
    # seen red: rows that are written after the newer one; a floor of 0.3 that nothing had


def test_a_wrong_fallback_is_told_while_the_store_is_there(live):
    for fallback in ("d", "", 1, True, ["a"]):
        with pytest.raises(ValueError, match="fallback must be an arm that is on offer, one of a, b and c"):
            live.choose(X, ARMS, fallback=fallback)
    with pytest.raises(ValueError, match="fallback must be an arm"):
        live.choose(X, ARMS, mask=[True, False, True], fallback="b")
    with pytest.raises(ValueError, match="fallback must be an arm"):
        live.choose(X, fallback=3)
    assert table(live) == []
    assert not live.choose(X, fallback=2).fallback
    assert not live.choose(X, ARMS, fallback="b").fallback
    # seen red: without the check where the store is there


def test_bad_input_has_no_fallback(live, away):
    away(True)
    for call in (dict(context=np.eye(4)), dict(context=X, mask=[False] * 3), dict(context=X * math.nan)):
        with pytest.raises(ValueError, match=r"width|mask|finite"):
            live.choose(**call, fallback=0)


def test_without_a_fallback_all_is_as_before(live, away):
    away(True)
    with pytest.raises(OSError, match="removed"):
        live.choose(X)
    away(False)
    assert not live.choose(X).fallback
    assert live.troubles == []


def test_so_many_wait_and_no_more(tmp_path, away):
    live = dither.Live(tmp_path / "a.db", bandit=begin(), fallback_rows=3)
    away(True)
    assert live.choose(X, fallback=0).fallback
    assert live.choose(np.stack([X, X]), fallback=1).fallback
    with pytest.raises(OSError, match=r"away|removed"):
        live.choose(X, fallback=0)
    away(False)
    live.flush()
    assert [arm for _, arm in table(live)] == [0, 1, 1]
    with pytest.raises(ValueError, match="fallback_rows must be a whole number"):
        dither.Live(None, bandit=begin(), fallback_rows=-1)
    # seen red: calls counted, and not rows


def test_the_same_request_has_the_same_fallback(live, away):
    away(True)
    first = live.choose(X, ARMS, id="f", body="x", fallback="c")
    assert live.choose(X, ARMS, id="f", body="x", fallback="c") is first
    with pytest.raises(OtherRequest):
        live.choose(X, ARMS, id="f", body="y", fallback="c")
    with pytest.raises(OtherRequest):
        live.choose(X, ARMS, id="f", fallback="c")
    away(False)
    again = live.choose(X, ARMS, id="f", body="x", fallback="c")
    assert (again.arm, again.fallback, again.propensity_kind) == ("c", True, "none")
    live.flush()
    assert len(table(live)) == 1


def test_many_requests(live, away):
    masks = np.array([[True, True, False], [True, True, True]])
    away(True)
    shown = live.choose(np.stack([X, X]), ARMS, mask=masks, fallback="b", id=["u", "v"])
    assert (shown.fallback, shown.arm.tolist(), shown.place.tolist()) == (True, ["b", "b"], [1, 1])
    assert np.isnan(shown.propensity).all()
    away(False)
    assert live.reward(["u", "v"], [1.0, 0.0]) == ["counted"] * 2
    assert table(live) == [("u", 1), ("v", 1)]


def test_slots_and_catalogues(tmp_path, away):
    fields = {"context": {"country": ["AT", "CH"]}, "arm": {"topic": ["art", "war"]}}
    features = dither.Features(**fields, cross=[("country", "topic")])
    stock = dither.Catalogue(features, {"a17": {"topic": "art"}, "a23": {"topic": "war"}})
    live = dither.Live(tmp_path / "a.db", bandit=dither.LinFP(features=features, seed=0), catalogue=stock)
    other = dither.Live(tmp_path / "a.db")
    away(True)
    d = live.choose({"country": "AT"}, id="f", fallback="a23")
    assert (d.arm, d.place) == ("a23", 1)
    away(False)
    other.catalogue.retire("a23")  # before it is stored: it was shown nevertheless
    assert live.reward("f", 1.0) == "counted"
    assert live.read().frame["arms"].to_list() == [["a17", "a23"]]
    assert live.bandit.observations == 1
    slots = dither.Live(None, bandit=begin(disjoint=3))
    slots.choose([1.0, 0.0, 0.0], fallback=2)
    # seen red: made anew alone, so that an arm that has gone loses the row


def test_other_features_come_while_it_waits(tmp_path, away):
    """An arm that has gone loses no row; the row has X of features that are not in force, so it must teach nothing."""
    fields = {"context": {"country": ["AT", "CH"]}, "cross": [("country", "words")]}
    features, others = (
        dither.Features(arm={"words": dither.features.Numeric(mean=0, scale=scale)}, **fields) for scale in (1, 10)
    )
    stock = dither.Catalogue(features, {"a17": {"words": 2}, "a23": {"words": 5}})
    live = dither.Live(
        tmp_path / "a.db", bandit=dither.LinFP(features=features, seed=0), catalogue=stock, store="records"
    )
    other = dither.Live(tmp_path / "a.db")
    away(True)
    live.choose({"country": "AT"}, id="f", fallback="a23")
    away(False)
    other.change(features=others)
    other.catalogue.retire("a23")
    assert live.reward("f", 1.0) == "counted"
    assert live.bandit.observations == 0
    assert table(live) == [("f", 1)]
    assert live.to_bytes() == live.replay().to_bytes()
    # seen red: X of the scale 1 learnt as X of the scale 10


@pytest.fixture
def lost(monkeypatch):
    """Commits that are lost on their way back: as many as it has items."""
    whole, left = homes.Home._ended, []

    def ended(self, connection, error):
        number = whole(self, connection, error)
        if error is None and left:
            left.pop()
            raise OSError("lost in the commit")
        return number

    monkeypatch.setattr(homes.Home, "_ended", ended)
    return left


def test_a_commit_that_was_lost_on_its_way_back(live, lost):
    """The row is there, of another arm, and its caller was shown the fallback: the row says so then."""
    lost.append(1)
    d = live.choose(X, ARMS, mask=[True, True, False], id="f", body="x", fallback="b")
    assert d.fallback
    kept = table(live)
    assert [id for id, _ in kept] == ["f"]
    live.flush()
    assert table(live) == [("f", 1)]
    row = live.read().frame.row(0, named=True)
    assert (row["propensity"], row["propensity_kind"], row["fallback"], row["z"]) == (None, "none", True, None)
    assert live.reward("f", 1.0) == "counted"
    assert live.choose(X, ARMS, mask=[True, True, False], id="f", body="x", fallback="b").arm == "b"
    assert not any("not stored" in one.words for one in live.troubles)


COSTS = {"a": 2.5, "b": 1.0, "c": 0.5}


@pytest.mark.parametrize(("batch", "costs"), [(None, None), (None, [2.5, 1.0, 0.5]), (3, COSTS)])
def test_a_row_that_a_fallback_replaces_has_spent_nothing(shared, lost, batch, costs):
    budgets = {arm: [dither.Budget(20, "day"), dither.Budget(30, None)] for arm in ARMS}
    live = dither.Live(shared, bandit=begin(), budgets=budgets)
    price = dict.fromkeys(ARMS, 1.0) if costs is None else COSTS
    want = dict.fromkeys(ARMS, 0.0)
    for i in range(6):
        if i % 2:
            lost.append(1)
        ids = f"f{i}" if batch is None else [f"f{i}-{j}" for j in range(batch)]
        d = live.choose(X if batch is None else np.stack([X] * batch), ARMS, id=ids, costs=costs, fallback="b")
        assert d.fallback is bool(i % 2)
        for arm in [] if d.fallback else np.atleast_1d(d.arm):
            want[arm] += price[arm]
        live.flush()
        assert live.spent() == {arm: (spent, spent) for arm, spent in want.items()}
    # seen red: what the lost decision had spent was spent; each row 1, whatever it costs


def test_a_fallback_that_replaces_itself_gives_nothing_back(live, lost):
    live.change(budgets={arm: dither.Budget(5) for arm in ARMS})
    for _ in range(3):
        live.choose(X, ARMS)
    spent = live.spent()
    lost.extend([1, 1])  # the decision, and the fallback in its place
    assert live.choose(X, ARMS, id="f", fallback="b").fallback
    with pytest.raises(OSError, match="lost"):
        live.flush()
    live.flush()
    assert live.spent() == spent
    assert [arm for id, arm in table(live) if id == "f"] == [1]
    # seen red: the fallback was given back too


def test_a_row_that_a_fallback_replaces_is_no_round(tmp_path, lost):
    keep = dither.Baseline("a", 0.5, 0.1)
    live = dither.Live(tmp_path / "a.db", bandit=begin(baseline=keep, floor=0.0))
    for i in range(4):
        if i == 2:
            lost.append(1)
        assert live.choose(X, ARMS, id=f"f{i}", fallback="b").fallback is (i == 2)
        live.flush()
    with live.ledger.database.reading() as connection:
        want = live._turns.recount(connection)
    assert (want.rounds, live._turns.rounds().rounds) == (3, 3)
    # seen red: 4 rounds


def test_bad_costs_have_no_fallback(tmp_path, away):
    live = dither.Live(tmp_path / "a.db", bandit=begin(), budgets={"a": dither.Budget(1)})
    away(True)
    with pytest.raises(ValueError, match="costs must be numbers of at least 0"):
        live.choose(X, ARMS, costs=[-1.0, 1.0, 1.0], fallback="b")


def test_what_waits_is_neither_explained_nor_corrected(live, away):
    live.choose(X, ARMS, id="1")
    away(True)
    live.choose(X, ARMS, id="f", fallback="b")
    live.choose(X, ARMS, id=7, fallback="b")
    said = "decision '{}' is a fallback, shown while the store was away, and is not stored yet: {}"
    for id in ("f", 7):
        with pytest.raises(OSError, match=said.format(id, "it cannot be explained until then. Ask again")):
            live.explain(id)
        with pytest.raises(OSError, match=said.format(id, "nothing of the correction is there. Send it again")):
            live.correct(id, 1.0)
    away(False)
    assert live.explain("f").decision.arm == "b"
    assert live.reward("f", 1.0) == "counted"
    assert live.correct("f", 0.5) == "counted"
    with pytest.raises(LookupError, match="other"):
        live.explain("other")
    # seen red: LookupError, as of an id that no decision has


def test_an_id_that_another_decision_has_is_told(live, away):
    live.choose(X, ARMS, id="f")
    before = table(live)
    away(True)
    assert live.choose(X, ARMS, id="f", fallback="b").fallback
    away(False)
    live.flush()
    assert table(live) == before
    assert "'f' is not stored" in live.troubles[-1].words
    # seen red: the row of the other decision replaced


def test_they_are_stored_beside_the_calls(live, away):
    """No call with a fallback waits for a store that is away."""
    away(True)
    live.choose(X, fallback=0)
    away(False)
    assert live.choose(X, fallback=0).fallback  # before its time
    live._fallbacks._pause.passed()
    assert live.choose(X, fallback=0).fallback
    for thread in threading.enumerate():
        if thread.name == "dither-fallbacks":
            thread.join()
    assert not live.choose(X, fallback=0).fallback
    assert len(table(live)) == 4


def test_calls_at_once(live, away):
    away(True)

    async def calls():
        return await asyncio.gather(*[live.achoose(X, fallback=i % 3, id=f"f{i}") for i in range(30)])

    shown = asyncio.run(calls())
    assert all(d.fallback for d in shown)
    away(False)
    live.flush()
    assert dict(table(live)) == {f"f{i}": i % 3 for i in range(30)}


def test_the_end_of_the_process(tmp_path, away):
    live = dither.Live(tmp_path / "a.db", bandit=begin())
    away(True)
    live.choose(X, fallback=0)
    away(False)
    live.close()
    with dither.Live(tmp_path / "a.db") as live:
        assert len(table(live)) == 1
        away(True)
        live.choose(X, fallback=0)
        live._fallbacks.close()
        assert "1 fallbacks that were shown are not stored, and lost" in live.troubles[-1].words
        away(False)


def test_budgets_and_shadows(tmp_path, away):
    """Nothing was drawn, so nothing is judged, and no budget is asked."""
    live = dither.Live(tmp_path / "a.db", bandit=begin(), budgets={"a": dither.Budget(1)}, shadow=begin(lam=2.0))
    away(True)
    for _ in range(3):
        assert live.choose(X, ARMS, fallback="a").arm == "a"
    away(False)
    live.choose(X, ARMS)
    assert live.read().frame["judged"].null_count() == 3


def test_no_estimate_has_them(live, away):
    for i in range(60):
        live.reward(live.choose(X, ARMS).id, float(i % 2))
    plain = ope.evaluate(live.read(), {"uniform": "uniform"}, estimators=["ips"], interval="normal")
    away(True)
    ids = [live.choose(X, ARMS, fallback="b").id for _ in range(5)]
    away(False)
    live.reward(ids, [1.0] * 5)
    log = live.read()
    assert log.fallen.sum() == 5
    assert "was away" in str(log.check())
    assert "cannot be used" not in str(log.check())
    assert log.usable().report.left_out == {"the store was away, and a fallback was shown, which nothing had drawn": 5}
    judged = ope.evaluate(log, {"uniform": "uniform"}, estimators=["ips"], interval="normal")
    assert judged.estimates["uniform", "ips"].value == plain.estimates["uniform", "ips"].value
    # seen red: "propensities of kind 'none' cannot be used"


def test_a_row_in_whose_place_a_fallback_comes_is_in_no_sum(live, away):
    moment = "2026-11-30T12:00:00"
    live.choose(X, ARMS, id="v", body="q", fallback="c", time=moment)  # committed, and its answer was lost
    live._learner.sum()
    away(True)
    live.choose(X, ARMS, id="v", body="q", fallback="c", time=moment)
    away(False)
    live.choose(X, ARMS, time=moment)
    live.flush()
    shown = live.read().frame["arms"].list.get(0).len()
    assert sum(one.decisions for one in live.ledger.days().rows) == shown == 2
    assert sum(one.usable for one in live.ledger.days().rows) == 1
    # seen red: the sums kept the row that nobody had seen


@pytest.mark.parametrize("name", ["fallback", "values", "minimum", "judged", "shadow", "safe", "baseline", "catalogue"])
def test_columns_that_the_ledger_writes_are_no_users(name):
    live = dither.Live(None, bandit=begin())
    with pytest.raises(ValueError, match=f"must not have the column '{name}', which the ledger writes"):
        live.choose(X, ARMS, extra={name: True})
    assert len(live.ledger) == 0
    # seen red: taken where the call itself did not write it
