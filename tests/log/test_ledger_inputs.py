"""What is given to a ledger by mistake: it is refused at the door, in one line, and spoils nothing for others."""

import json
import math
import threading
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import dither
from dither import log
from dither.log import reward_rules
from dither.log.database.committing import Committer
from ledgers import decision, features

pytestmark = pytest.mark.usefixtures("closing")
X = np.eye(3)


def live(home=None, **settings):
    return dither.Live(home, **{"bandit": dither.LinFP(dim=3, floor=0.1, seed=0)} | settings)


@pytest.mark.parametrize(
    ("id", "words"),
    [
        ("a\x00b", "NUL"),
        ("\ud800", "surrogate"),
        ("x" * 1001, "at most 1000 bytes, got 1001"),
        ("☃" * 334, "at most 1000 bytes, got 1002"),
        (["a"], "a text or a number"),
        (float("nan"), "a text or a number"),
    ],
)
def test_an_id_is_one_that_every_home_can_hold(home, id, words):
    made = log.Ledger(home)
    for call in (
        lambda: made.record(decision(), X=features(0), id=id),
        lambda: made.record(decision(), X=features(0), arms=[id, "b"]),
        lambda: made.reward([id], [1.0]),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    long = "☃" * 333
    made.record(decision(), X=features(0), id=long)
    assert made.reward(long, 1.0) == "counted"
    # seen red: PostgreSQL refused NUL, and with it the calls of other threads; half of a pair did so everywhere


def test_rewards_may_be_scalars_and_arrays_of_numpy(home):
    made = log.Ledger(home)
    for i in range(5):
        made.record(decision(), X=features(i), id=f"d{i}")
    assert made.reward(np.array(["d0", "d1"]), np.array([1.0, 0.0])) == ["counted", "counted"]
    assert made.reward("d2", np.bool_(True)) == "counted"
    assert made.reward("d3", np.array(0.5)) == "counted"
    assert made.reward("d2", 1) == "known"
    for wrong in (1.1e70, -1e71, np.float64(1e308), 10**80):
        with pytest.raises(ValueError, match=r"between -1e\+70 and 1e\+70.*'d4'"):
            made.reward("d4", wrong)
    for wrong in (10**400, np.array([1.0]), np.nan, np.complex128(1), None, "1"):
        with pytest.raises(ValueError, match="finite number"):
            made.reward("d4", wrong)
    with pytest.raises(ValueError, match="one reward for each id"):
        made.reward(["d4"], 1.0)
    assert made.read().r[:4].tolist() == [1.0, 0.0, 1.0, 0.5]
    # seen red: a click of NumPy's True was refused, and 10**400 was an OverflowError; 1e71 counted as 1e70 in the sums


@pytest.mark.parametrize(
    "time",
    [
        datetime.max.replace(tzinfo=timezone(-timedelta(hours=12))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=12))),
    ],
)
def test_a_time_beyond_the_calendar_is_refused(time):
    made = log.Ledger(None)
    with pytest.raises(ValueError, match="time must be"):
        made.record(decision(), X=features(0), time=time)


def test_a_horizon_beyond_the_calendar_ends_with_it(home):
    made = log.Ledger(home, horizon=9e10)
    made.record(decision(), X=features(0), id="a", time=datetime(9000, 1, 1, tzinfo=UTC))
    assert [one.deadline.year for one in made.pending()] == [9999]
    for far in (1e12, timedelta.max):
        with pytest.raises(ValueError, match="horizon must be at most"):
            log.Ledger(None, horizon=far)
    # seen red: the list of what is pending was an OverflowError from then on


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"__decision": 1}, "own column '__decision'"),
        ({"": 1}, "texts that are not empty"),
        ({1: 2}, "texts that are not empty"),
        ("abc", "must be a dict"),
        ({"u": "\ud800"}, "surrogate"),
        ({"u": ["a", "\udfff"]}, "surrogate"),
        ({"u": {}}, "extra must hold"),
        ({"u": b"x"}, "extra must hold"),
        ({"t": 1, "u": [b"x"]}, r"extra must hold .* got u=\[b'x'\]"),
        ({"t": 1, "u": np.array({"a": 1}, dtype=object)}, "got u={'a': 1}"),
        ({"t": 1, "u": np.array(1 + 2j)}, r"got u=\(1\+2j\)"),
    ],
)
def test_columns_that_no_log_could_be_read_with_are_refused(home, tmp_path, extra, words):
    made = log.Ledger(home)
    made.record(decision(), X=features(0), id="a", extra={"u": "😀 \\ud800"})
    with pytest.raises(ValueError, match=words):
        made.record(decision(), X=features(1), id="b", extra=extra)
    made.export(tmp_path / "days")
    assert log.read(tmp_path / "days").column("u").tolist() == ["😀 \\ud800"]
    # seen red: one such row, and nothing could be read or exported any more


@pytest.mark.parametrize("rows", [1, 50_000])  # fetched together
def test_a_column_that_changes_its_type_can_be_read_and_exported(home, tmp_path, monkeypatch, rows):
    from dither.log.database import fetching

    monkeypatch.setattr(fetching, "ROWS", rows)
    made, given = log.Ledger(home), [[1, 2], None, 3, "a", [4.5], True]
    for i, own in enumerate(given):
        made.record(decision(), X=features(i), extra={"u": own, "v": 1 if i % 2 else "one"})
    made.export(tmp_path / "days")
    for frame in (made.read().frame, log.read(tmp_path / "days").frame):
        assert frame["u"][0] == json.dumps(given[0])
        assert frame["u"][4] == json.dumps(given[4])
        assert frame["u"][1] is None
        assert frame["u"][3] == "a"
        assert frame["v"].to_list() == ["one", "1"] * 3
    # seen red: "cannot write 'Object' datatype"; in pieces, no common type


def test_erase_asks_for_what_it_is_to_find(home):
    made = log.Ledger(home)
    seen = datetime(2026, 1, 1, tzinfo=UTC)
    for i, own in enumerate([{"user": np.int64(7)}, {"user": seen}, {"other": 1}, {"user": None}]):
        made.record(decision(), X=features(i), id=f"d{i}", extra=own)
    for call, error, words in (
        (lambda: made.erase(user=None), ValueError, "all decisions without a value"),
        (lambda: made.erase(id="d0"), ValueError, "none of your own"),
        (lambda: made.erase("d0"), TypeError, r"erase\(\['d0'\]\)"),
        (lambda: made.erase(user=object()), ValueError, "texts, numbers"),
    ):
        with pytest.raises(error, match=words):
            call()
    assert made.erase(user=np.int64(7)) == made.erase(user=seen) == 1
    assert made.erase(["d0", "d3", "d9"]) == 1
    # seen red: user=None took all decisions that had other columns; "d0" was the ids 'd' and '0'


def test_a_sum_that_is_too_large_is_kept_and_never_learnt(monkeypatch):
    """An older dither took such rewards."""
    monkeypatch.setattr(reward_rules, "LARGEST", math.inf)
    made = live(parts=["a", "b"], horizon=10)
    first, second = made.choose(X, time=0).id, made.choose(X, time=0).id
    assert made.reward([first, second], [1e308, 1.0], 1, part="a") == ["counted", "counted"]
    assert made.reward([first, second], [1e308, 1.0], 1, part="b") == ["counted", "counted"]
    assert (made.bandit.observations, made.refused) == (1, 1)
    assert made.replay().to_bytes() == made.to_bytes()
    total = made.ledger.days().total()
    assert (total.reward, total.rewarded) == (1e77 + 2.0, 2)  # which sums can hold, with its square
    # seen red: an OverflowError, for all threads that wrote at the same time


def test_a_row_that_the_database_refuses_leaves_other_calls_alone(home, monkeypatch):
    """Of several calls in one transaction each has its own error."""
    made, whole = log.Ledger(home), Committer._insert

    def enter(self, connection, rows):
        if any(row[0] == "bad" for one in rows for row in one.rows):
            raise OverflowError("too large")
        whole(self, connection, rows)

    monkeypatch.setattr(Committer, "_insert", enter)
    failed, threads = {}, []

    def call(id):
        try:
            made.record(decision(), X=features(0), id=id)
        except OverflowError as error:
            failed[id] = error

    with made.turn:  # so that all of them wait, and are written together
        for id in ("a", "bad", "b"):
            threads.append(threading.Thread(target=call, args=(id,)))
            threads[-1].start()
        while len(made.committer._queue) < 3:
            pass
    for one in threads:
        one.join()
    assert list(failed) == ["bad"]
    assert sorted(made.read().id) == ["a", "b"]
    # seen red: one error for all three


@pytest.mark.parametrize("place", [True, np.True_, np.array([1]), 1.0, None, 5, -1])
def test_a_rule_gives_a_position(place):
    made = live(apprentice=lambda X, mask: place)
    with pytest.raises(ValueError, match="position of an arm on offer"):
        made.choose(X)
    assert len(made.ledger) == 0
    # seen red: True was arm 1


def test_a_rule_cannot_change_what_is_stored():
    def rule(X, mask):
        X[0, 0] = 99
        return 0

    own, made = np.eye(3), live(apprentice=rule)
    with pytest.raises(ValueError, match="read-only"):
        made.choose(own)
    assert own[0, 0] == 1
    assert len(made.ledger) == 0


def test_settings_of_live_that_could_never_work_are_refused():
    for name in ("lease_seconds", "snapshot_seconds", "refresh_seconds", "flush_seconds"):
        with pytest.raises(ValueError, match=f"{name} must be at most"):
            live(**{name: 1e300})
    made = live()
    made.reward(made.choose(X).id, 1.0)
    with pytest.raises(TypeError, match=r"shadow must be a dither\.Bandit"):
        made.replace_shadow(5)
    for batch, words in ((-1, "at least 0"), (1.5, "whole number"), (2, "no batch 2")):
        with pytest.raises(ValueError, match=words):
            made.replay(batch)
    made.close()
    with pytest.raises(ValueError, match="is closed"):
        made.replay()
    # seen red: with 1e300 seconds of lease no reward was ever taken; replay(2) was replay()


@pytest.mark.parametrize("at", ["before", "within", "after"])
def test_an_interrupt_while_a_reward_is_learnt_loses_nothing(home, monkeypatch, at):
    """Between the commit and the lesson, in the lesson, and between the lesson and its number."""
    made, ids = live(home), []
    for _ in range(3):
        ids.append(made.choose(X).id)
    made.reward(ids[0], 1.0)
    stands, whole = made._learner.stands, type(made._learner.stands.bandit).update

    def interrupted(self, *arguments, **named):
        if at == "within":
            whole(self, *arguments, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if at == "after":
            learn = type(stands).learn
            patch.setattr(type(stands), "learn", lambda self, batch: (learn(self, batch), _interrupt())[0])
        else:
            patch.setattr(type(stands.bandit), "update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            made.reward(ids[1], 1.0)
    assert made.reward(ids[1], 1.0) == "known"
    assert made.reward(ids[2], 0.0) == "counted"
    assert made.bandit.observations == 3
    assert made.replay().to_bytes() == made.to_bytes()
    # seen red: the next batch had the same number, so no reward was taken any more; learnt twice


def _interrupt():
    raise KeyboardInterrupt


def test_an_interrupt_of_the_thread_that_writes_is_an_error_for_the_others(monkeypatch):
    made, heard, whole = log.Ledger(None), [], Committer._insert
    begun = threading.Event()

    def enter(self, connection, rows):
        if len(rows) == 2:
            raise KeyboardInterrupt
        whole(self, connection, rows)

    def call(id):
        begun.set()
        try:
            made.record(decision(), X=features(0), id=id)
        except BaseException as error:
            heard.append(type(error))

    monkeypatch.setattr(Committer, "_insert", enter)
    with made.turn:
        threads = [threading.Thread(target=call, args=(id,)) for id in "ab"]
        for one in threads:
            one.start()
        while len(made.committer._queue) < 2:
            pass
    for one in threads:
        one.join()
    assert sorted(heard, key=str) == sorted([KeyboardInterrupt, OSError], key=str)
    made.record(decision(), X=features(0), id="a")
    # seen red: KeyboardInterrupt in a thread that nobody interrupted


ARMS, NARROW, SLOTS = {"dim": 3}, {"dim": 2}, {"dim": 3, "disjoint": 3}


@pytest.mark.parametrize(
    ("own", "theirs", "refused"),
    [
        (ARMS, NARROW, "x must have width 3"),
        (NARROW, ARMS, "x must have width 2"),
        (ARMS, SLOTS, "one context a row"),
        (SLOTS, ARMS, None),  # the features of the arm shown are its context, as in a warm start
    ],
)
def test_a_log_of_another_bandit_is_taken_over_where_a_warm_start_learns_it(tmp_path, own, theirs, refused):
    own, theirs = (dither.LinFP(**settings, seed=0, floor=0.1) for settings in (own, theirs))

    def request(bandit):
        return np.ones(bandit.dim) if bandit.slots else np.eye(3)[:, : bandit.dim]

    donor, made = dither.Live(None, bandit=theirs), dither.Live(None, bandit=own)
    donor.reward([donor.choose(request(theirs)).id for _ in range(4)], [1.0, 0.0, 1.0, 0.0])
    donor.ledger.export(tmp_path / "days")
    learner = dither.from_bytes(own.to_bytes())
    if refused is None:
        assert made.ledger.take_over(tmp_path / "days") == 4
        made.learn()
        log.warm_start(learner, tmp_path / "days")
        assert_array_equal(made.bandit.theta, learner.theta)
    else:
        with pytest.raises(ValueError, match=refused):
            made.ledger.take_over(tmp_path / "days")
        with pytest.raises(ValueError, match=refused):
            log.warm_start(learner, tmp_path / "days")
        assert len(made.ledger) == 0
    assert made.refused == 0
    assert made.reward(made.choose(request(own)).id, 1.0) == "counted"
    made.learn()
    assert made.bandit.observations == learner.observations + 1
    assert made.replay().to_bytes() == made.to_bytes()
    # seen red: "cannot reshape array", in every transaction from then on; a log entered of which nothing was learnt


def test_ids_of_arms_are_a_list_of_texts_that_every_home_can_hold():
    fields = dither.Features(arm={"k": ["p", "q"]})
    shop = live(bandit=dither.LinFP(features=fields, floor=0.1), catalogue=dither.Catalogue(fields, {"a": {"k": "p"}}))
    for wrong, words in (("a\x00b", "NUL"), ("\ud800", "surrogate"), ("x" * 1001, "at most 1000 bytes")):
        with pytest.raises(ValueError, match=words):
            shop.catalogue.add(wrong, {"k": "q"})
    assert shop.catalogue.ids == ("a",)
    with pytest.raises(ValueError, match=r"arms=\['a'\]"):
        shop.choose({}, arms="a")
    with pytest.raises(ValueError, match="an id must be a text that is not empty, or a whole number"):
        shop.choose({}, arms=[None])
    with pytest.raises(ValueError, match="arms must be a list of ids"):
        live().choose(X, arms="abc")
    # seen red: "abc" was the arms 'a', 'b' and 'c'; NUL in a catalogue of a file, and no such arm in PostgreSQL


@pytest.mark.parametrize("part", ["", "a\x00", "\ud800", "x" * 1001, 5, ["a"], b"a"])
def test_a_part_is_a_text_that_every_home_can_hold(home, part):
    made = log.Ledger(home)
    made.record(decision(), X=features(0), id="a")
    with pytest.raises(ValueError, match=r"part must (be|have|not)"):
        made.reward("a", 1.0, part=part)
    with pytest.raises(ValueError, match="part"):
        log.Ledger(None, parts=[part, "b"])
    assert made.reward("a", 1.0, part="click") == "counted"
    # seen red: part=5 was counted once, and then the id was "given to a decision before"


def test_parts_are_a_list():
    with pytest.raises(ValueError, match="parts must be different texts"):
        log.Ledger(None, parts=5)


MISSING = [math.nan, math.inf, -math.inf, np.float64("inf"), np.float32("nan"), np.array(math.nan), np.ma.masked]
MISSING += [np.ma.masked_array(7, mask=True)]


def test_what_is_missing_is_kept_as_missing_and_erases_nobody(home):
    made = log.Ledger(home)
    for i, value in enumerate([*MISSING, np.array(7), np.float32(0.5), None]):
        made.record(decision(), X=features(i), id=str(i), extra={"u": value})
    assert made.read().frame["u"].to_list() == [None] * len(MISSING) + [7.0, 0.5, None]
    for value in [*MISSING, None]:
        with pytest.raises(
            ValueError, match=r"(?s)u=.* would erase all decisions without a value of 'u'.*erase their ids"
        ):
            made.erase(u=value)
    assert made.erase(u=np.array(7)) == 1
    assert made.erase(u="inf") == 0
    # seen red: 0 decisions, as if nobody had such a value; an array of NaN kept as NaN


def test_a_masked_reward_is_no_reward(home):
    made = log.Ledger(home)
    for id in ("a", "b"):
        made.record(decision(), X=features(0), id=id)
    for ids, r in (
        ("a", np.ma.masked),
        ("a", np.ma.masked_array(7.0, mask=True)),
        (["b", "a"], np.ma.masked_array([1.0, 2.0], mask=[0, 1])),
    ):
        with pytest.raises(ValueError, match=r"(?s)reward must be a finite number, got .* for decision 'a'"):
            made.reward(ids, r)
    assert made.read().frame["reward"].to_list() == [None, None]
    assert made.reward("a", np.array(1.0)) == "counted"
    # seen red: counted as 0, or as what is behind the mask


@pytest.mark.parametrize("budgets", [None, {"a": dither.Budget(9)}])
def test_an_array_without_axes_is_neither_an_id_nor_many(budgets):
    one = live(budgets=budgets)
    for ids in (np.array(7), np.array("a"), np.ma.masked):
        for context in (X, np.stack([X, X])):
            with pytest.raises(ValueError, match="id must be a text or a number, got"):
                one.choose(context, ["a", "b", "c"], id=ids, body="x")
    with pytest.raises(ValueError, match="minimum of arm 'b' is masked: fill it in first"):
        one.choose(X, ["a", "b", "c"], minimum={"a": 0.1, "b": np.ma.masked})
    assert len(one.ledger) == 0
    # seen red: TypeError of an iteration over a 0-d array; a warning, and then that NaN is no probability
