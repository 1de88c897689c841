"""The writer and the reader of the decision log: round trips and the ledger of rewards."""

import tempfile
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import log
from dither.bandit.bandit import Decision
from dither.log import reward_rules
from logs import NOON

# What is written is what is read


@st.composite
def decisions(draw):
    """Decisions with ragged arm sets, masks, odd ids, rewards or none."""
    letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")  # what every home of a log can hold
    d, texts = draw(st.integers(1, 3)), st.text(letters, min_size=1, max_size=5)
    number = st.floats(-1e6, 1e6)
    rows = []
    for id in draw(st.lists(texts, min_size=1, max_size=8, unique=True)):
        K = draw(st.integers(1, 4))
        mask = draw(st.none() | st.lists(st.booleans(), min_size=K, max_size=K).filter(any))
        arms = draw(st.none() | st.lists(texts, min_size=K, max_size=K, unique=True))
        X = draw(st.lists(st.lists(number, min_size=d, max_size=d), min_size=K, max_size=K))
        arm = draw(st.sampled_from([i for i in range(K) if mask is None or mask[i]]))
        p = draw(st.floats(0, 1, exclude_min=True))
        rows.append((id, X, mask, arms, arm, p, draw(st.none() | number), draw(texts)))
    return rows, draw(st.integers(1, 9))


@settings(max_examples=30)
@given(decisions())
def test_what_is_written_is_what_is_read(case):
    rows, buffer = case
    with tempfile.TemporaryDirectory() as folder:
        with log.Log(folder, buffer=buffer) as written:
            for id, X, mask, arms, arm, p, r, user in rows:
                made = Decision(arm, p, "monte_carlo", 0.25)
                back = written.record(made, X=X, id=id, time=NOON, mask=mask, arms=arms, extra={"user": user})
                assert (back.id, back.arm, back.propensity) == (id, arm, p)
                if r is not None:
                    assert written.reward(id, r, NOON) == "counted"
        whole = log.read(folder)
        whole.write(Path(folder) / "one.parquet")
        again = log.read(Path(folder) / "one.parquet")
        pieces = list(log.batches(folder, rows=3))
    assert whole.frame.equals(again.frame, null_equal=True)
    assert [x for piece in pieces for x in piece.id] == [row[0] for row in rows] == list(whole.id)
    assert_array_equal(np.concatenate([piece.r for piece in pieces]), whole.r)
    assert_array_equal(np.concatenate([piece.numbers for piece in pieces]), np.arange(len(rows)))
    on = [[i for i in range(len(X)) if mask is None or mask[i]] for _, X, mask, *_ in rows]
    assert_array_equal(whole.K, [len(o) for o in on])
    assert_array_equal(whole.p, [row[5] for row in rows])
    assert_array_equal(whole.r, [np.nan if row[6] is None else row[6] for row in rows])
    certain = [len(o) == 1 and row[5] == 1 for o, row in zip(on, rows, strict=True)]  # one arm, so it is exact
    assert_array_equal(whole.se, np.where(certain, np.nan, 0.25))
    assert list(whole.column("user")) == [row[7] for row in rows]
    assert list(whole.frame["propensity_kind"]) == ["exact" if one else "monte_carlo" for one in certain]
    offered = whole.arm_ids()
    for i, (_, X, _, arms, arm, *_) in enumerate(rows):
        names = arms or [str(j) for j in range(len(X))]
        assert offered[i] == [names[j] for j in on[i]]
        assert offered[i][whole.a[i]] == names[arm]
        assert whole.frame["features"][i].to_list() == [X[j] for j in on[i]]
    # seen red: `arm` as the position in X where a mask hides arms before it; ids in Latin-1


def test_views_of_ragged_rows():
    written = log.Log()
    written.record(Decision(1, 0.25, "exact", None), X=[[1, 2], [3, 4], [5, 6]], probabilities=[0.5, 0.25, 0.25])
    written.record(Decision(0, 1.0, "exact", None), X=[[7, 8]], probabilities=[1])
    read = written.read()
    assert_array_equal(read.X, [[[1, 2], [3, 4], [5, 6]], [[7, 8], [0, 0], [0, 0]]])
    assert_array_equal(read.x, [[3, 4], [7, 8]])
    assert_array_equal(read.mask, [[True, True, True], [True, False, False]])
    assert_array_equal(read.P, [[0.5, 0.25, 0.25], [1, 0, 0]])
    assert_array_equal(read.a, [1, 0])
    by = read.by_arm()
    assert by.arms == ("0", "1", "2")
    assert_array_equal(by.mask, read.mask)
    by = read.by_arm(["2", "1", "0"])
    assert_array_equal(by.P, [[0.25, 0.25, 0.5], [0, 0, 1]])
    assert_array_equal(by.a, [1, 2])
    with pytest.raises(ValueError, match="it lacks '2'"):
        read.by_arm(["0", "1"])
    frame = read.frame.with_columns(pl.Series("M", [[1.0, 2.0, 3.0], [4.0]]), pl.Series("bad", [[1.0], [4.0]]))
    more = log.read(frame)
    assert_array_equal(more.matrix("M"), [[1, 2, 3], [4, 0, 0]])
    with pytest.raises(ValueError, match="row 0 has 1 numbers in 'bad' for 3 arms"):
        more.matrix("bad")
    with pytest.raises(ValueError, match="no column 'Q'; it has 'id', 'time'"):
        more.matrix("Q")
    # seen red: x taken at `a` without the offset of the row


def test_numbers_are_sorted_as_numbers_in_a_catalogue():
    written = log.Log(features=False)
    written.record(Decision(0, 1.0, "exact", None), arms=["10", "9", "b"])
    assert written.read().by_arm().arms == ("9", "10", "b")


@pytest.mark.parametrize("batch", [False, True])
def test_decide_is_choose_and_a_row(batch):
    bandit, twin = (dither.LinFP(dim=2, lam=1.0, seed=4, floor=0.2) for _ in range(2))
    bandit.update([1, 0], 1.0), twin.update([1, 0], 1.0)
    written = log.Log(bandit=bandit, lines=True, probabilities=True, arm_set=True, preset="paper")
    X = np.array([[1.0, 0], [0, 1], [1, 1]])
    mask = np.array([True, False, True])
    X, mask = (np.broadcast_to(a, (5, *a.shape)) if batch else a for a in (X, mask))
    extra = {"user": list("abcde") if batch else "a"}
    made, plain = written.decide(X, mask=mask, extra=extra), twin.choose(X, mask=mask)
    assert_array_equal(made.arm, plain.arm)
    assert_array_equal(made.propensity, plain.propensity)
    read = written.read()
    n = 5 if batch else 1
    assert len(read) == n
    assert list(read.id) == list(made.id if batch else [made.id])
    assert_array_equal(read.a, np.atleast_1d(plain.arm) // 2)  # arm 1 is not on offer
    assert_array_equal(read.P, np.atleast_2d(twin.propensities(X, mask=mask))[:, [0, 2]])
    assert_allclose(read.P[np.arange(n), read.a], read.p, rtol=1e-12)
    assert_array_equal(read.matrix("m"), np.atleast_2d(twin.mean(X))[:, [0, 2]])
    assert_array_equal(read.matrix("w"), np.atleast_2d(twin.width(X))[:, [0, 2]])
    row = read.frame.row(0, named=True)
    assert row["policy"] == f"{bandit.policy} on {bandit.model}"
    assert (row["preset"], row["version"], row["floor"]) == ("paper", dither.__version__, 0.2)
    assert row["arms"] == ["0", "2"]
    assert len(row["arm_set"]) == 32
    assert read.frame["arm_set"].n_unique() == 1
    assert_array_equal(read.z, np.atleast_1d(plain.z))
    # seen red: the batch's ids in one row; m of all arms


def test_the_floor_of_a_row_holds_the_policys_own_uniform_choices():
    bandit = dither.EpsGreedy(dim=2, seed=0, floor=0.1)
    bandit.update([1, 0], 1.0)
    eps = bandit.policy.eps(bandit.t)
    written = log.Log(bandit=bandit)
    written.decide([[1, 0], [0, 1]])
    assert written.read().floor == pytest.approx(eps + 0.1 * (1 - eps))
    for X, rest in ((None, {"mask": [1, 1]}), (np.eye(2), {}), (np.eye(2), {"floor": 0.25})):
        written = log.Log(bandit=bandit, features=X is not None)
        written.record(bandit.choose(np.eye(2)), X=X, **rest)
        assert written.read().floor == pytest.approx(rest.get("floor", eps + 0.1 * (1 - eps)))  # seen red: 0.1


def test_disjoint_slots_have_one_context():
    bandit = dither.LinFP(dim=2, disjoint=3, seed=0)
    written = log.Log(bandit=bandit, lines=True, probabilities=True)
    for i in range(4):
        written.decide([1.0, i], mask=[True, False, True])
    read = written.read()
    assert read.slots
    assert_array_equal(read.X, [[1, 0], [1, 1], [1, 2], [1, 3]])
    assert_array_equal(read.x, read.X)
    assert_array_equal(read.K, [2] * 4)
    assert read.arm_ids() == [["0", "2"]] * 4


def test_a_refused_decision_leaves_no_row_and_no_id():
    bandit = dither.LinFP(dim=2, seed=0)
    written = log.Log(bandit=bandit)
    X = [[1, 0], [0, 1]]
    written.decide(X, id="a")
    wrong = [
        (dict(X=X, id="a"), ValueError, "id 'a' was given to a decision before"),
        (dict(X=[[1, 0, 0]], id="b"), ValueError, "width 2"),
        (dict(X=[[1, np.nan]], id="b"), ValueError, "row 0, column 1"),
        (dict(X=X, id="b", extra={"reward": 1}), ValueError, "own column 'reward'"),
        (dict(X=X, id="b", extra={"user": 1}), ValueError, "columns of the first decision"),
        (dict(X=X, id="b", arms=["x"]), ValueError, "2 different ids"),
        (dict(X=X, id="b", arms=["x", "x"]), ValueError, "2 different ids"),
        (dict(X=X, id=""), ValueError, "not empty"),
        (dict(X=X, id="b", time="noon"), ValueError, "ISO 8601"),
        (dict(X=[X, X], id=["b", "b"]), ValueError, "id 'b' was given"),
        (dict(X=[X, X], id=["b"]), ValueError, "2 texts"),
    ]
    for settings_, kind, words in wrong:
        with pytest.raises(kind, match=words):
            written.decide(**settings_)
        assert len(written) == 1
    for arm, mask in ((2, None), (-1, None), (1, [True, False])):
        with pytest.raises(ValueError, match=f"arm {arm} is not on offer"):
            written.record(Decision(arm, 1.0, "exact", None), X=X, mask=mask)
    written.decide(X, id="b")
    assert len(written.read()) == 2
    with pytest.raises(ValueError, match="decide needs a bandit"):
        log.Log().decide(X)
    with pytest.raises(ValueError, match="lines=True needs the bandit"):
        log.Log(lines=True).record(Decision(0, 1.0, "exact", None), X=X)
    for bad in ({"buffer": 0}, {"features": "yes"}):
        with pytest.raises(ValueError, match="must"):
            log.Log(**bad)
    with pytest.raises(LookupError, match="did you mean 'sum'"):
        log.Log(rewards="sums")
    # seen red: the rows of a batch that came before its second "b" kept


# Rewards


def slow_ledger(events, how):
    """The reward of one decision from its (value, time, part) in order of arrival, as the docs say it."""
    parts = {}
    for value, time, part in events:
        parts.setdefault(part, (value, time))
    if not parts:
        return None
    if how == "sum":
        return sum(value for value, _ in parts.values())
    if how == "last":
        return max(enumerate(parts.values()), key=lambda item: (item[1][1], item[0]))[1][0]
    return [value for value, _ in parts.values()]


class Rewards(RuleBasedStateMachine):
    """Decisions and rewards in any order, late, twice, in conflict, for no one, with the log closed and opened."""

    @initialize(how=st.sampled_from(reward_rules.RULES), buffer=st.integers(1, 4))
    def start(self, how, buffer):
        self.folder = tempfile.TemporaryDirectory()
        self.how, self.buffer, self.received = how, buffer, {}
        self.open()
        self.decide()

    def open(self):
        self.log = log.Log(self.folder.name, features=False, rewards=self.how, buffer=self.buffer)

    @rule()
    def decision(self):
        self.decide()

    def decide(self):
        id = f"n°{len(self.received)}"
        self.log.record(Decision(0, 0.5, "exact", None), arms=["x", "y"], id=id)
        self.received[id] = []

    @rule(burst=st.lists(st.tuples(*map(st.sampled_from, ([0, 1], [0.0, 1.0, -2.5], range(4), "ab"))), min_size=3))
    def rewards(self, burst):
        for number, value, time, part in burst:
            if number < len(self.received):
                self.reward(f"n°{number}", value, time, part)

    def reward(self, id, value, time, part):
        before = [v for v, _, p in self.received[id] if p == part]
        answer = "counted" if not before else "known" if before[0] == value else "conflict"
        assert self.log.reward(id, value, time, part=part) == answer
        self.received[id].append((value, time, part))

    @rule(value=st.sampled_from([np.nan, np.inf, "1", None, 1j]))
    def refused(self, value):
        with pytest.raises(LookupError, match="no decision 'nobody'"):
            self.log.reward("nobody", 1.0)
        if self.received:
            with pytest.raises(ValueError, match="finite number"):
                self.log.reward(next(iter(self.received)), value)

    @rule()
    def close_and_open(self):
        self.log.close()
        with pytest.raises(ValueError, match="is closed"):
            self.log.reward("nobody", 1.0)
        self.open()

    @invariant()
    def the_log_is_what_was_received(self):
        if not getattr(self, "received", None):
            return
        frame = self.log.read().frame
        assert frame["id"].to_list() == list(self.received)
        name = "reward_list" if self.how == "list" else "reward"
        for row, events in zip(frame.iter_rows(named=True), self.received.values(), strict=True):
            assert row[name] == slow_ledger(events, self.how)
            assert row["rewards"] == len({part for *_, part in events})

    def teardown(self):
        if hasattr(self, "log"):
            self.log.close()
            self.folder.cleanup()


TestRewards = Rewards.TestCase


TestRewards.settings = settings(max_examples=20, stateful_step_count=8)


# seen red: a conflict that counts; "last" by arrival alone; paid parts forgotten when the folder is opened again


def test_a_reward_counts_once(tmp_path):
    with log.Log(tmp_path, features=False) as written:
        written.record(Decision(0, 0.5, "exact", None), arms=["x"], id="a")
        written.record(Decision(0, 0.5, "exact", None), arms=["x"], id="b")
        assert [written.reward("a", 1), written.reward("a", 1.0), written.reward("a", 0)] == [
            "counted",
            "known",
            "conflict",
        ]
    events = pl.concat([pl.read_parquet(path) for path in sorted(tmp_path.glob("rewards-*.parquet"))])
    assert events["conflict"].to_list() == [False, True]  # kept, and not counted
    with log.Log(tmp_path, features=False) as written:  # a restart later
        assert written.reward("a", 1) == "known"
        assert written.reward("b", 0) == "counted"
        with pytest.raises(ValueError, match="id 'a' was given"):
            written.record(Decision(0, 0.5, "exact", None), arms=["x"], id="a")
    read = log.read(tmp_path)
    assert_array_equal(read.r, [1, 0])
    assert_array_equal(read.frame["rewards"], [1, 1])


def test_lists_of_rewards_are_made_one_number_when_asked(tmp_path):
    with log.Log(tmp_path, features=False, rewards="list") as written:
        written.record(Decision(0, 0.5, "exact", None), arms=["x"], id="a")
        written.reward("a", 1.0, NOON, part="click")
        written.reward("a", 20.0, NOON - timedelta(days=1), part="sale")
    assert log.read(tmp_path).frame["reward_list"].to_list() == [[1.0, 20.0]]
    assert np.isnan(log.read(tmp_path).r).all()
    assert log.read(tmp_path, rewards="sum").r == 21
    assert log.read(tmp_path, rewards="last").r == 1
    assert next(log.batches(tmp_path, rewards="sum")).r == 21
    assert log.read(tmp_path).time[0] > np.datetime64("2026-01-01")
    with pytest.raises(LookupError, match="no rule for rewards 'max'"):
        log.read(tmp_path, rewards="max")
