"""What a log must not do in silence: lose an arm, rename a propensity, guess the number of arms."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

import dither
from dither import log, ope
from dither.bandit.bandit import Decision
from dither.log import foreign, schema
from properties import EXACT

TABLE = {"item": ["b", "a", "b"], "paid": [1.0, 0.0, 0.5], "q": [0.5, 0.25, 0.8]}
NAMED = {"arm": "item", "reward": "paid", "propensity": "q"}


# Kinds of propensities


def test_a_table_that_says_the_kind_is_believed():
    said = TABLE | {"propensity_kind": ["monte_carlo", "estimated", "none"], "propensity_se": [0.1, 0.2, None]}
    read = log.from_columns(said, **NAMED)
    assert list(read.kinds) == said["propensity_kind"]  # seen red: 'exact' written over it
    assert_array_equal(read.se, [0.1, 0.2, np.nan])
    with pytest.raises(ValueError, match="kind 'none' cannot be used"):
        read.usable()
    assert log.from_columns(said, kind="estimated", **NAMED).kind == "estimated"  # the caller knows better
    theirs = TABLE | {"how": ["monte_carlo"] * 3, "sd": [0.1, 0.2, 0.3]}
    named = log.from_columns(theirs, propensity_kind="how", propensity_se="sd", **NAMED)
    assert (named.kind, named.se.tolist()) == ("monte_carlo", [0.1, 0.2, 0.3])
    assert log.from_columns(TABLE, **NAMED).kind == "exact"


def test_a_column_called_propensity_is_the_propensity():
    said = TABLE | {"propensity": [0.1, 0.2, 0.3]}
    read = log.from_columns(said, arm="item", reward="paid")
    assert_array_equal(read.p, [0.1, 0.2, 0.3])  # seen red: nulls written over it
    assert read.kind == "exact"
    assert_array_equal(log.from_columns(said, **NAMED).p, TABLE["q"])


@pytest.mark.parametrize("kind", ["sure", "Exact", "", 1])
def test_a_kind_is_one_of_four(kind):
    with pytest.raises(ValueError, match="kind must be one of exact, monte_carlo, estimated, none: got"):
        log.from_columns(TABLE, kind=kind, **NAMED)  # seen red: taken as it came


def test_a_kind_is_said_once_and_of_something():
    with pytest.raises(ValueError, match="without propensity_kind="):
        log.from_columns(TABLE | {"how": ["exact"] * 3}, kind="exact", propensity_kind="how", **NAMED)
    with pytest.raises(ValueError, match="kind='exact' needs propensity="):  # seen red: 'none' in its place
        log.from_columns(TABLE, arm="item", reward="paid", kind="exact")
    assert log.from_columns(TABLE, arm="item", reward="paid", kind="none").kind == "none"


# The warm start


def test_one_context_a_row_needs_a_model_for_each_arm(tmp_path):
    rows = {"arm": [0, 1, 2], "reward": [1.0, 0.0, 2.0], "propensity": [0.5] * 3, "features": [[[1.0, 2.0]]] * 3}
    read = log.read(rows)
    read.write(tmp_path / "log.parquet")
    plain = dither.LinFP(dim=2, seed=0)
    for source in (read, tmp_path / "log.parquet", log.read(rows | {"K": [3] * 3})):
        for weights in (None, "ips"):
            with pytest.raises(ValueError, match="needs a bandit with disjoint=K"):
                log.warm_start(plain, source, weights=weights, chunk=1)
    assert plain.observations == 0  # seen red: three rows learnt as if of one arm
    assert log.warm_start(dither.LinFP(dim=2, disjoint=3, seed=0), read).used == 3
    assert log.warm_start(plain, log.read(rows | {"arm": [0] * 3})).used == 3  # the only arm


# The writer


@pytest.mark.parametrize("kind", [log.Log, log.Ledger])
def test_lists_are_no_decisions(kind):
    bandit = dither.LinFP(dim=2, seed=0)
    written = kind(None)
    with pytest.raises(TypeError, match="single decisions, of choose, and not lists"):  # seen red: AttributeError
        written.record(bandit.choose_list(np.eye(2), k=1), X=np.eye(2))
    assert len(written) == 0


@pytest.mark.parametrize("disjoint", [None, 3])
def test_an_empty_batch_is_no_row(disjoint):
    bandit = dither.LinFP(dim=2, disjoint=disjoint, seed=0)
    written = log.Log(bandit=bandit, lines=True, probabilities=True)
    made = written.decide(np.empty((0, 2) if disjoint else (0, 3, 2)), extra={"user": []})
    assert (made.id, np.shape(made.arm), len(written)) == ((), (0,), 0)  # seen red: IndexError
    written.decide([1.0, 0.0] if disjoint else np.eye(2))
    assert len(written.read()) == 1


@pytest.mark.parametrize("name", EXACT)
def test_the_probabilities_that_are_recorded_are_those_of_the_decision(name):
    bandit = dither.ALGORITHMS[name](dim=2, seed=0, floor=0.2)
    bandit.update(np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([1.0, 0, 1]))
    written = log.Log(bandit=bandit, probabilities=True)
    X = np.array([[1.0, 0.2], [0.3, 1], [0.5, 0.5]])
    for batch in (X, np.stack([X, X[::-1]])):
        written.decide(batch)
    written.decide(X, mask=[True, False, True])
    assert len(written) == 4


def test_another_X_than_that_of_the_decision_shows_in_its_probabilities():
    bandit = dither.LinFP(dim=2, lam=1.0, seed=0)
    bandit.update(np.eye(2), np.array([1.0, 0.3]))
    X = np.array([[1.0, 0.0], [0.4, 1.0], [0.6, 0.6]])
    made = bandit.choose(X)
    written = log.Log(bandit=bandit, probabilities=True)
    with pytest.raises(ValueError, match="X must be that of the decision, recorded before the bandit learns more"):
        written.record(made, X=np.roll(X, 1, axis=0))
    assert len(written) == 0  # seen red: recorded, with a propensity that its probabilities contradict
    written.record(made, X=X)
    bandit.update(X[made.arm], 0.0)
    with pytest.raises(ValueError, match="before the bandit learns more"):
        written.record(made, X=X)
    with pytest.raises(ValueError, match="not on offer"):
        written.record(Decision(7, 0.5, "exact", None), X=X)


# How many arms there were


def test_a_log_says_whether_it_knows_its_arms(tmp_path):
    rows = {"arm": [1, 2, 1], "reward": [0.0] * 3, "propensity": [0.5] * 3}
    guessed = log.read(rows)
    assert not guessed.known_arms
    text = str(guessed.check())
    assert "number of arms not logged: at least 3" in text  # seen red: nothing was said
    assert "position 0 never occurs, the least is 1" in text
    assert guessed.check().ok
    assert "at least 3" in str(guessed.usable().report)
    from_0 = log.read(rows | {"arm": [0, 2, None]})
    assert not from_0.known_arms
    assert "never occurs" not in str(from_0.check())
    for more in ({"K": [3] * 3}, {"arms": [list("abc")] * 3}, {"probabilities": [[0.2, 0.3, 0.5]] * 3}):
        known = log.read(rows | more)
        assert known.known_arms
        assert "not logged" not in str(known.check())
    assert not log.read(rows | {"K": [3, None, 3]}).known_arms
    parts = [part.check() for part in log.batches(rows | {"arm": [0, 2, 1]}, rows=1)]
    total = parts[0] + parts[1] + parts[2]
    assert [f.text for f in total.findings] == ["number of arms not logged: at least 3"]
    shown = log.from_columns(TABLE, **NAMED)
    shown.write(tmp_path / "log.parquet")
    for read in (shown, log.read(tmp_path / "log.parquet"), shown.filter(np.array([True, False, True]))):
        assert not read.known_arms
        assert "at least 2" in str(read.check())
        assert "never occurs" not in str(read.check())
    told = log.from_columns(TABLE, arms=["a", "b", "c"], **NAMED)
    told.write(tmp_path / "log.parquet")
    assert told.known_arms
    assert log.read(tmp_path / "log.parquet").known_arms
    assert_array_equal(log.read(told.frame).K, [3] * 3)  # seen red: 2, as the catalogue is not in the frame


def test_ids_that_were_given_stay_with_the_frame(tmp_path, monkeypatch):
    read = log.from_columns(TABLE, arms=["b", "a", "c"], **NAMED)
    read.frame.write_parquet(tmp_path / "plain.parquet")
    again = log.read(tmp_path / "plain.parquet")
    assert again.arm_ids() == [["b", "a", "c"]] * 3  # seen red: '0', '1'
    assert_array_equal(again.a, [0, 1, 0])
    monkeypatch.setattr(foreign, "LISTED", 8)
    short = log.from_columns(TABLE, arms=["b", "a", "c"], **NAMED)
    assert "arms" not in short.frame.columns
    assert short.arm_ids() == read.arm_ids()


def test_by_arm_takes_each_arm_once():
    read = log.from_columns(TABLE, arms=["a", "b"], **NAMED)
    with pytest.raises(ValueError, match="'b' comes more than once"):  # seen red: two columns, one of them empty
        read.by_arm(["b", "a", "b"])


def test_an_arm_that_is_missing_is_not_one_that_is_unknown():
    read = log.from_columns(TABLE | {"item": ["b", None, "z"]}, arms=["a", "b"], **NAMED)
    listed = log.from_columns(TABLE | {"item": ["b", None, "z"], "menu": [["a", "b"]] * 3}, arms="menu", **NAMED)
    for one in (read, listed):
        found = {f.text: f.rows.tolist() for f in one.check().findings}
        assert found == {"arm is missing": [1], "arm is not among those on offer": [2]}  # seen red: both in the latter


# Frames and files


@pytest.mark.parametrize("settings", [{}, {"lines": True, "probabilities": True}])
def test_through_pandas_and_back(settings):
    bandit = dither.LinFP(dim=2, seed=0, floor=0.1)
    written = log.Log(bandit=bandit, **settings)
    for _ in range(3):
        written.reward(written.decide(np.eye(2)).id, 1.0)
    used = written.read().usable()
    again = log.read(used.frame.to_pandas())  # seen red: column 'arms' must hold lists, got String
    assert again.frame.select(used.frame.columns).equals(used.frame, null_equal=True)
    assert len(again.usable()) == 3
    texts = pd.DataFrame({"arm": [0], "reward": [1.0], "propensity": [1.0], "note": [None], "user": ["u"]})
    assert log.read(texts).frame["note"].dtype == pl.String  # columns of the user's own stay


def test_errors_name_the_file_and_the_users_column(tmp_path):
    path = tmp_path / "t.csv"
    pl.DataFrame(TABLE | {"paid": ["1", "much", "0"]}).write_csv(path)
    for source in (path, pl.scan_csv(path), pl.scan_csv(path).rename({"q": "p"}).rename({"p": "q"})):
        words = rf"column 'reward' \(your 'paid'\) of {re.escape(str(path))} must hold numbers"
        with pytest.raises(ValueError, match=words):  # seen red: of the LazyFrame
            log.from_columns(source, **NAMED)
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))} has no column 'arm'"):
            log.read(source)
    with pytest.raises(ValueError, match="the LazyFrame has no column 'arm'"):
        log.read(pl.LazyFrame(TABLE))


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_fields_that_are_separated_otherwise(mark, tmp_path):
    path = tmp_path / "t.csv"
    pl.DataFrame(TABLE).write_csv(path, separator=mark)
    read = log.from_columns(path, **NAMED)  # seen red: no column 'item'
    assert (read.r.tolist(), read.p.tolist()) == (TABLE["paid"], TABLE["q"])
    one = pl.read_csv(path, separator="\\")
    words = re.escape(f"separated by {mark!r}: pass polars.read_csv(path, separator={mark!r})")
    with pytest.raises(ValueError, match=words):
        log.from_columns(one, **NAMED)
    assert schema.separated(["a;b", "c"]) == schema.separated(["a"]) == ""


# Without propensities: the path of docs/log.md


def test_a_table_without_propensities_gets_estimated_ones():
    rng = np.random.default_rng(0)
    age = rng.random(600)
    red = rng.random(600) < 0.2 + 0.6 * age
    table = pl.DataFrame({"item": np.where(red, "red", "green"), "paid": rng.random(600), "age": age})
    read = log.from_columns(table, arm="item", reward="paid", arms=["green", "red"], features=["age"])
    made = ope.propensities_from(read.a, read.x, arms=2, classifier=LogisticRegression(C=10.0), seed=0)
    more = table.with_columns(pl.Series("p", made.p), pl.Series("P", made.P.tolist()))
    again = log.from_columns(
        more, arm="item", reward="paid", propensity="p", kind="estimated", probabilities="P", arms=["green", "red"]
    )
    used = again.usable()
    assert used.kind == "estimated"
    assert_allclose(used.P[:, 1], 0.2 + 0.6 * age, atol=0.15)
    assert_allclose(used.p, used.P[np.arange(600), used.a])


# The user's own columns


def test_only_what_was_named_is_the_logs(tmp_path):
    own = {
        "K": [9, 9, 9],
        "id": ["u", "u", "u"],
        "floor": [3.0, 4.0, 5.0],
        "weight": [70.0, 80.0, 90.0],
        "z": [1.0] * 3,
    }
    own |= {"m": ["x"] * 3, "w": [1, 2, 3], "version": [1, 2, 3], "time": ["noon"] * 3, "arm": [5, 6, 7]}
    for source in (TABLE | own, pl.DataFrame(TABLE | own)):
        read = log.from_columns(source, **NAMED)
        assert_array_equal(read.K, [2, 2, 2])  # seen red: 9
        assert np.isnan(read.floor).all()
        assert np.isnan(read.z).all()
        assert {f.kind for f in read.check().findings} == {"arms"}  # seen red: all but the first visit "came before"
        for name, values in own.items():
            assert read.column(name).tolist() == values
    assert "weight (yours)" in read.frame.columns
    read.write(tmp_path / "t.parquet")
    assert log.read(tmp_path / "t.parquet").column("weight").tolist() == own["weight"]
    assert len(log.from_columns(TABLE | own, id="id", **NAMED).check().findings[0].rows) == 2
    assert log.from_columns(TABLE | own, floor="floor", **NAMED).floor.tolist() == own["floor"]


def test_a_number_of_arms_of_which_some_were_never_shown():
    for ids, number, catalogue in [
        (["b", "a", "b"], 3, ("a", "b", "(never shown 1)")),
        ([3, 0, 3], 4, ("0", "1", "2", "3")),
        ([3, 1, 3], 3, ("1", "2", "3")),
    ]:
        read = log.from_columns(TABLE | {"item": ids}, arms=number, **NAMED)
        assert read.catalogue == catalogue
        assert read.known_arms
        assert [read.catalogue[a] for a in read.a] == [str(one) for one in ids]
    with pytest.raises(ValueError, match="arms must be at least 2, as so many arms were shown; got 1"):
        log.from_columns(TABLE, arms=1, **NAMED)


# What a writer takes


@pytest.mark.parametrize("p", [np.nan, 0.0, -0.1, 1.2])
def test_a_propensity_that_cannot_be_is_not_recorded(p):
    written = log.Log()
    with pytest.raises(ValueError, match=r"must lie in \(0, 1\], got"):  # seen red: recorded
        written.record(Decision(0, p, "exact", None), X=np.eye(2))
    with pytest.raises(ValueError, match=r"got .* \(request 1\)"):
        written.record(Decision(np.array([0, 1]), np.array([0.5, p]), "exact", None), X=np.stack([np.eye(2)] * 2))
    assert len(written) == 0
    written.record(Decision(0, np.nan, "none", None), X=np.eye(2))


@pytest.mark.parametrize("id", ["5", 5, np.int64(5), 2**70])
def test_ids_follow_one_rule_for_decisions_and_rewards(id):
    written = log.Log(bandit=dither.LinFP(dim=2, seed=0))
    written.decide(np.eye(2), id=id)
    for same in (id, str(id)):
        assert written.reward(same, 1.0) in ("counted", "known")  # seen red: no decision 5
    assert_array_equal(written.read().r, [1])
    with pytest.raises(LookupError):
        written.reward(6, 1.0)
    with pytest.raises(ValueError, match="id must be"):
        written.decide(np.eye(2), id=np.nan)


def test_rows_and_requests_are_named():
    bandit = dither.LinFP(dim=2, seed=0)
    with pytest.raises(ValueError, match=r"got nan at row 1 \(1 such"):  # seen red: column 1
        bandit.update(np.eye(2), [1.0, np.nan])
    with pytest.raises(ValueError, match="at row 1"):
        bandit.update(np.eye(2), [1.0, 1.0], weight=[1.0, np.inf])
    X = np.stack([np.eye(2)] * 3)
    mask = np.array([[True, True], [False, False], [False, False]])
    with pytest.raises(ValueError, match=r"no arm on offer in request 1 \(2 such\)"):  # seen red: no place
        bandit.choose(X, mask=mask)
    with pytest.raises(ValueError, match="no arm on offer: at least one"):
        bandit.choose(np.eye(2), mask=[False, False])


def test_an_empty_list_of_probabilities():
    read = log.read({"arm": [0], "reward": [1.0], "propensity": [0.5], "probabilities": [[]]})
    assert [f.text for f in read.check().findings if f.refused] == ["no arm was on offer"]  # seen red: IndexError


def test_arms_too_rare_to_estimate_their_propensities():
    x = np.random.default_rng(0).random((21, 1))
    a = np.array([0, 1] * 10 + [2])
    made = ope.propensities_from(a, x, arms=3, classifier=LogisticRegression(), seed=0)
    words = r"it is 0 at row 20 \(1 such rows\): arm 2 is so rare \(shown in 1 of 21 rows\).*clip="
    with pytest.raises(ValueError, match=words):  # seen red: "mend the log, or pass bad='leave_out'"
        ope.ips(np.ones(21), a, made, np.full((21, 3), 1 / 3))
    got = ope.ips(np.ones(21), a, made, np.tile([0.5, 0.5, 0.0], (21, 1)), mask=a < 2)
    assert got.n == 20
    words = "a shows arm 1 alone in the rows that a fold learns from, and LogisticRegression needs two arms"
    with pytest.raises(ValueError, match=words):  # seen red: the classifier's own words
        ope.propensities_from([1] * 21, x, arms=3, classifier=LogisticRegression(), seed=0)


def test_a_log_is_no_file_and_no_folder_of_days(tmp_path):
    (tmp_path / "log.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"a log is a folder, and .* is a file: name another place"):
        log.Log(tmp_path / "log.txt")
    (tmp_path / "days" / "2026-03-01").mkdir(parents=True)
    with pytest.raises(ValueError, match="days that a ledger exported: write the log into another folder"):
        log.Log(tmp_path / "days")
    assert [path.name for path in (tmp_path / "days").iterdir()] == ["2026-03-01"]
    # seen red: decisions beside the days, which no reader of the days finds


@pytest.mark.parametrize("home", ["memory", "folder", "ledger"])
def test_every_home_has_one_rule_for_parts_and_for_rules_of_rewards(home, tmp_path):
    bandit, X = dither.LinFP(dim=2, seed=0), np.eye(2)
    written = log.Ledger(None) if home == "ledger" else log.Log(tmp_path / "log" if home == "folder" else None)
    with written:
        id = written.record(bandit.choose(X), X=X).id
        for part in ("", "a\0", "\ud800", 5, b"a"):
            with pytest.raises(ValueError, match=r"part must (be|have|not)"):
                written.reward(id, 1.0, part=part)
        assert written.reward(id, 1.0, part="click") == "counted"
        with pytest.raises(LookupError, match=r"rule for rewards 'summ'.*did you mean 'sum'"):
            written.read(rewards="summ")
        assert written.read(rewards="sum").r.tolist() == [1.0]
    # seen red: a folder took b"a", which no file can hold; a log in memory was read by a rule that there is not


# A decision that was made elsewhere


@pytest.mark.parametrize("arm", [0, "a"])
def test_the_baseline_of_a_decision_is_not_asked_for_again(arm):
    bandit, X = dither.LinFP(dim=3, seed=0, baseline=dither.Baseline(arm=arm, loss=0.5)), np.eye(3)
    written = log.Log(bandit=bandit, lines=True)
    written.record(bandit.choose(X, baseline=2, mask=[0, 1, 1]), X=X, mask=[0, 1, 1])
    read = written.read()
    assert (read.p[0], read.K[0], read.floor[0], read.a[0]) == (1.0, 2, 0.0, 1)
    # seen red: "the baseline must be on offer", and a TypeError for an id


def test_a_batch_with_a_baseline_has_lines():
    bandit, X = dither.LinFP(dim=3, seed=0, baseline=dither.Baseline(arm=0, loss=0.5)), np.stack([np.eye(3)] * 2)
    bandit.update(np.eye(3), [1.0, 2.0, 3.0])
    written = log.Log(bandit=bandit, lines=True)
    written.decide(X)
    assert_allclose(written.read().matrix("m"), bandit.mean(X))
    assert_allclose(written.read().matrix("w"), bandit.width(X))
    # seen red: "lines=True needs the bandit"


def test_a_bandit_that_is_asked_for_probabilities_needs_x():
    bandit = dither.LinFP(dim=3, seed=0)
    written = log.Log(bandit=bandit, features=False, probabilities=True)
    with pytest.raises(ValueError, match="X must be given where the bandit is asked"):  # seen red: an error of matmul
        written.record(bandit.choose(np.eye(3)), mask=[1, 1, 1])
    written.record(bandit.choose(np.eye(3)), probabilities=np.full(3, 1 / 3))
    assert len(written) == 1
