"""Bad logs are refused or flagged with row numbers; nothing leaves silently. The receipt, and the warm start."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import log
from dither.log import check


def table(p=(0.5, 0.25, 0.8, 0.1), **columns):
    n = len(p)
    return pl.DataFrame({"arm": [0, 1, 1, 2][:n], "propensity": list(p), "reward": [1.0, 0, 0.5, 1][:n]} | columns)


def drawn(n, *, seed=0, K=4, least=0.02):
    """A log of n independent rows: P (n, K), shown arms drawn from it, p."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(K, 0.5), size=n) * (1 - K * least) + least
    a = np.array([rng.choice(K, p=row / row.sum()) for row in P])
    return P, a, P[np.arange(n), a], rng.normal(size=n)


def frame(P, a, p, r, **columns):
    return log.read(pl.DataFrame({"arm": a, "propensity": p, "reward": r, "probabilities": P.tolist()} | columns))


# Propensities, arms, kinds, duplicates, rewards: one test, one row of each kind of fault

FAULTS = {
    "zero": (dict(p=[0.5, 0.0, 0.8, 0.1]), "propensity is 0, of an arm that was shown", [1]),
    "nan": (dict(p=[0.5, math.nan, 0.8, math.nan]), "propensity is NaN or null", [1, 3]),
    "null": (dict(p=[0.5, 0.25, None, 0.1]), "propensity is NaN or null", [2]),
    "negative": (dict(p=[-0.5, 0.25, 0.8, 0.1]), "propensity is negative", [0]),
    "above 1": (dict(p=[0.5, 0.25, 1.1, 0.1]), "propensity is above 1", [2]),
    "infinite p": (dict(p=[0.5, 0.25, math.inf, 0.1]), "propensity is above 1", [2]),
    "percent": (dict(p=[50.0, 25.0, 80.0, 10.0]), "propensity is above 1", [0, 1, 2, 3]),
    "none": (dict(propensity_kind=["exact", "none", "none", "exact"]), "kind 'none' cannot be used", [1, 2]),
    "kind": (dict(propensity_kind=["exact", "sure", "exact", "exact"]), "must be one of exact, monte_carlo", [1]),
    "se": (dict(propensity_se=[0.1, None, -0.1, 0.0]), "propensity_se is negative", [2]),
    "arm": (dict(K=[3, 1, 3, 2]), "arm is not among those on offer", [1, 3]),
    "unknown arm": (dict(arm=[0, -2, -1, 2], K=[3] * 4), "arm is not among those on offer", [1, 2]),
    "missing arm": (dict(arm=[0, None, 1, 2], K=[3] * 4), "arm is missing", [1]),
    "no arm": (dict(K=[3, 3, 0, 3]), "no arm was on offer", [2]),
    "reward": (dict(reward=[1.0, -math.inf, 0.5, 1.0]), "reward is infinite", [1]),
    "duplicate": (dict(id=["a", "b", "a", "a"]), "id came before", [2, 3]),
    "missing": (dict(reward=[1.0, None, 0.5, math.nan]), "no reward came", [1, 3]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_refused_by_row_and_left_out_when_asked(fault):
    columns, words, rows = FAULTS[fault]
    read = log.read(table(**columns))
    found = [f for f in read.check().findings if f.refused]
    assert len(found) == 1
    assert words in found[0].text
    assert_array_equal(found[0].rows, rows)
    assert not read.check().ok
    with pytest.raises(ValueError, match=f"{len(rows)} rows?: {rows[0]}") as refused:
        read.usable()
    assert words in str(refused.value)
    argument = {"duplicate": "duplicates", "missing": "missing"}.get(fault, "invalid")
    assert f"{argument}='leave out'" in str(refused.value)
    if len(rows) == 4:
        assert len(read.usable(invalid="leave out")) == 0
        return
    used = read.usable(**{argument: "leave out"})
    assert_array_equal(used.numbers, [i for i in range(4) if i not in rows])
    assert (used.report.read, used.report.used) == (4, 4 - len(rows))
    assert used.report.left_out == {found[0].text: len(rows)}
    assert "4 rows read" in str(used.report)
    assert f"left out: {len(rows)}" in str(used.report)
    pieces = [piece.usable(**{argument: "leave out"}).report for piece in log.batches(table(**columns), rows=3)]
    total = pieces[0] + pieces[1]
    assert (total.read, total.used, total.left_out) == (4, 4 - len(rows), used.report.left_out)
    assert log.read(table()).usable().report.left_out == {}
    # seen red: p <= 0 as one with NaN; a duplicate looked for in its own batch alone


def test_a_missing_reward_is_what_was_asked_for():
    read = log.read(table(reward=[1.0, None, 0.5, math.nan]))
    used = read.usable(missing=-1)
    assert_array_equal(used.r, [1, -1, 0.5, -1])
    assert used.report.filled == 2
    assert "2 missing rewards filled in" in str(used.report)
    assert np.isnan(read.r).sum() == 2  # the log itself stays
    for wrong in ("drop", math.nan, None):
        with pytest.raises(ValueError, match="missing must be"):
            read.usable(missing=wrong)
    for name in ("invalid", "duplicates"):
        with pytest.raises(ValueError, match=f"{name} must be"):
            read.usable(**{name: "drop"})


def test_a_row_is_counted_once_and_reports_add_up():
    read = log.read(table(p=[0.0, 0.25, 0.8, 0.1], reward=[None, None, 0.5, 1.0], id=["a", "a", "b", "b"]))
    used = read.usable(missing="leave out", invalid="leave out", duplicates="leave out")
    assert_array_equal(used.numbers, [2])
    assert sum(used.report.left_out.values()) == 3
    again = used.usable()
    piece = next(log.batches(read.frame)).usable(missing="leave out", invalid="leave out", duplicates="leave out")
    assert piece.check().ok  # seen red: what came before in the log, by the rows before some were left out
    assert (again.report.read, again.report.used, sum(again.report.left_out.values())) == (4, 1, 3)


def test_a_probability_above_1_by_rounding_is_no_fault():
    assert log.read(table(p=[1 + 1e-7, 0.25, 0.8, 0.1])).check().ok


# Columns, types, files


def test_a_missing_column_is_named_and_those_present_are_listed(tmp_path):
    path = tmp_path / "log.parquet"
    table().drop("propensity").with_columns(context=1).write_parquet(path)
    with pytest.raises(ValueError, match=r"log.parquet has no column 'propensity'; it has 'arm', 'reward', 'context'"):
        log.read(path)
    with pytest.raises(ValueError, match="no column 'propensity'"):
        log.batches(path)  # before the first batch is asked for
    assert len(log.read(path, require=("arm", "reward"))) == 4


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("propensity", ["high"] * 4),
        ("reward", ["1"] * 4),
        ("arm", ["a"] * 4),
        ("arm", [0.5] * 4),
        ("time", [1.5] * 4),
        ("probabilities", [0.1] * 4),
        ("features", [[1.0]] * 4),
        ("arms", [[[1]]] * 4),
        ("id", [1.5] * 4),
    ],
)
def test_a_column_of_the_wrong_type_is_named(name, values):
    with pytest.raises(ValueError, match=f"column '{name}' of the DataFrame must hold"):
        log.read(table(**{name: values}))


def test_files_that_are_no_logs(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no log at .*nothing.parquet"):
        log.read(tmp_path / "nothing.parquet")
    with pytest.raises(ValueError, match="holds no rows"):
        log.read(table().head(0))
    with pytest.raises(ValueError, match="holds no rows"):
        log.batches(table().head(0))
    with pytest.raises(ValueError, match="no decisions-"):
        log.read(tmp_path)
    for content in (b"", b"PAR1 or not", b"PAR1" + bytes(100) + b"PAR1"):
        (tmp_path / "bad.parquet").write_bytes(content)
        with pytest.raises(ValueError, match=r"bad.parquet (cannot be read|is empty)"):
            log.read(tmp_path / "bad.parquet")
    with pytest.raises(TypeError, match="a log is a path or a frame"):
        log.read(3)
    with pytest.raises(ValueError, match="at least one"):
        log.read([])


def test_any_frame_is_read_alike(tmp_path):
    plain = table(id=["a", "b", "c", "d"])
    plain.write_csv(tmp_path / "log.csv")
    plain.write_parquet(tmp_path / "log.parquet")
    arrow = pa.table(plain.to_dict(as_series=False))
    sources = [plain, plain.lazy(), arrow, pd.DataFrame(plain.to_dict(as_series=False)), tmp_path / "log.csv"]
    for source in [*sources, str(tmp_path / "log.parquet"), log.read(plain), plain.to_dict(as_series=False)]:
        read = log.read(source)
        assert_array_equal(read.p, [0.5, 0.25, 0.8, 0.1])
        assert_array_equal(read.a, [0, 1, 1, 2])
        assert list(read.id) == ["a", "b", "c", "d"]
    small = plain.with_columns(pl.col("propensity").cast(pl.Float32), pl.col("arm").cast(pl.UInt8))
    assert log.read(small).a.dtype == np.int64
    assert log.read(small).p.dtype == np.float64


# 1/p against the number of arms


def test_the_mean_of_the_inverse_agrees_with_the_arms_that_could_be_chosen():
    P, a, p, r = drawn(2000)
    found = frame(P, a, p, r).check()
    assert found.ok
    assert found.inverse.ok is True
    assert_allclose(found.inverse.inverse, np.sum(1 / p), rtol=1e-12)
    assert_allclose(found.inverse.variance, np.sum(1 / P) - 16 * 2000, rtol=1e-12)
    assert found.inverse.support == 4 * 2000
    assert abs(found.inverse.inverse - 8000) <= 5 * math.sqrt(found.inverse.variance)
    assert "agree" in str(found)
    # seen red: the variance with S where S² belongs


@pytest.mark.parametrize("wrong", ["one", "uniform", "other", "mean"])
def test_propensities_of_something_else_disagree(wrong):
    P, a, p, r = drawn(3000, least=0.05)
    rng = np.random.default_rng(1)
    p = {
        "one": np.ones_like(p),
        "uniform": P[np.arange(3000), rng.integers(4, size=3000)],
        "other": P[np.arange(3000), (a + 1) % 4],
        "mean": np.clip(2 * p, 0, 1),
    }[wrong]
    found = frame(P, a, p, r).check()
    assert not found.ok
    assert found.inverse.ok is False
    assert "DISAGREE" in str(found)
    doubted = [f for f in found.findings if f.kind == "weights"]
    assert "the policy's own weights are not 1" in doubted[0].text
    if wrong != "uniform":
        assert len(doubted[0].rows) > 2000


@given(st.integers(0, 10**6))
def test_a_log_without_fault_is_not_accused(seed):
    """The bound is that of Freedman's inequality: at most one log in 10,000 fails."""
    rng = np.random.default_rng(seed)
    n, K = int(rng.integers(1, 60)), int(rng.integers(1, 6))
    P = rng.dirichlet(np.full(K, 0.1), size=n)  # many far below LEAST
    a = (rng.random((n, 1)) > np.cumsum(P, axis=1)).sum(axis=1).clip(0, K - 1)
    p = P[np.arange(n), a]
    if np.all(p > 0):
        assert frame(P, a, p, np.zeros(n)).check().inverse.ok


def test_with_a_floor_alone_and_with_neither():
    rng = np.random.default_rng(0)
    n, K, f = 5000, 5, 0.5
    best = rng.random(n) >= f
    a = np.where(best, 0, rng.integers(K, size=n))
    p = np.where(a == 0, 1 - f + f / K, f / K)
    rows = {"arm": a, "propensity": p, "reward": np.zeros(n), "K": np.full(n, K)}
    with_floor = log.read(rows | {"floor": np.full(n, f)}).check()
    assert with_floor.inverse.ok is True
    assert_allclose(with_floor.inverse.largest, K / f)
    assert with_floor.ok
    wrong = log.read(rows | {"floor": np.full(n, f), "propensity": np.full(n, 0.6)}).check()
    assert wrong.inverse.ok is False
    below = log.read(rows | {"floor": np.full(n, 0.6)}).check()
    assert [f.kind for f in below.findings] == ["floor"]
    assert_array_equal(below.findings[0].rows, np.flatnonzero(a > 0))
    for more in ({}, {"floor": np.zeros(n)}, {"floor": np.full(n, f), "propensity_kind": ["monte_carlo"] * n}):
        found = log.read(rows | more).check()
        assert found.inverse.ok is None
        assert "not checkable" in str(found)
        assert found.ok


def test_the_test_of_the_inverse_adds_up_over_batches():
    P, a, p, r = drawn(1000)
    whole = frame(P, a, p, r)
    parts = [piece.check() for piece in log.batches(whole.frame, rows=300)]
    total = parts[0] + parts[1] + parts[2] + parts[3]
    assert_allclose(total.inverse, whole.check().inverse, rtol=1e-12)
    assert isinstance(total.inverse, check.Inverse)
    assert total.read == 1000


def test_a_log_by_the_writer_passes_its_own_check():
    bandit = dither.LinFP(dim=3, seed=0, floor=0.2)
    written = log.Log(bandit=bandit, probabilities=True)
    rng = np.random.default_rng(0)
    for _ in range(400):
        X = rng.normal(size=(rng.integers(1, 6), 3))
        d = written.decide(X)
        written.reward(d.id, X[d.arm, 0])
        bandit.update(X[d.arm], X[d.arm, 0])
    used = written.read().usable()
    assert used.check().ok
    assert used.report.inverse.ok
    own = used.P[np.arange(400), used.a] / used.p  # evaluating the logging policy itself: weights all 1
    assert_allclose(own, 1, rtol=1e-12)


# The receipt


def test_the_receipt_says_the_least_exposure_of_each_arm():
    rows = {
        "arm": [0, 1, 0],
        "propensity": [0.7, 0.1, 0.5],
        "reward": [0.0] * 3,
        "arms": [["x", "y", "z"], ["x", "y", "z"], ["y", "x"]],
        "probabilities": [[0.7, 0.2, 0.1], [0.3, 0.1, 0.6], [0.5, 0.5]],
    }
    got = log.receipt(log.read(rows), floor=0.3)
    assert [(e.arm, e.offers, e.shown) for e in got.arms] == [("x", 3, 1), ("y", 3, 2), ("z", 2, 0)]
    assert_allclose([e.least for e in got.arms], [0.3, 0.1, 0.1])
    assert_allclose([e.floor for e in got.arms], [0.9, 0.3, 0.3])
    assert got.holds
    assert "floor 0.3 for every arm on offer: proved" in str(got)
    assert got.table()["arm"].to_list() == ["x", "y", "z"]
    assert not log.receipt(log.read(rows), floor=0.31).holds
    assert "NOT kept" in str(log.receipt(log.read(rows), floor=0.31))
    assert log.receipt(log.read(rows)).holds is None
    no = log.receipt(log.read({k: v for k, v in rows.items() if k != "probabilities"}), floor=0.3)
    assert [e.least for e in no.arms] == [None] * 3
    assert no.holds is None
    assert "no proof" in str(no)
    by_floor = log.receipt(log.read(rows | {"floor": [0.3] * 3, "propensity_kind": ["monte_carlo"] * 3}), floor=0.3)
    assert_allclose([e.least for e in by_floor.arms], [0.1, 0.1, 0.1])  # an estimate proves nothing, the floor does
    assert by_floor.holds
    # seen red: the shown arms' rows alone; Monte Carlo probabilities taken as proof


def test_a_bandits_floor_is_proved_from_its_log():
    bandit = dither.LinFP(dim=2, seed=0, floor=0.25)
    written = log.Log(bandit=bandit, probabilities=True)
    for i in range(60):
        X = [[1, 0], [0, 1], [1, 1], [0.1, 0]][: 2 + i % 3]
        d = written.decide(X)
        bandit.update(X[d.arm], float(d.arm == 0))
    got = log.receipt(written.read(), floor=0.25)
    assert got.holds
    assert sum(e.shown for e in got.arms) == 60
    assert [e.offers for e in got.arms] == [60, 60, 40, 20]


# The warm start


@pytest.mark.parametrize("weights", [None, "ips"])
def test_a_warm_start_is_the_updates_in_order(weights, tmp_path):
    source = dither.LinFP(dim=3, seed=0, floor=0.3)
    rng = np.random.default_rng(0)
    one, two = dither.LinFP(dim=3, seed=1), dither.LinFP(dim=3, seed=1)
    with log.Log(tmp_path, bandit=source, buffer=50) as written:
        for i in range(120):
            X = rng.normal(size=(rng.integers(1, 6), 3))
            d = written.decide(X)
            if i % 4:
                r = X[d.arm, 0] + rng.normal()
                written.reward(d.id, r)
                one.update(X[d.arm], r, weight=1 / d.propensity if weights else None)
    with pytest.raises(ValueError, match="no reward came"):
        log.warm_start(two, tmp_path)
    assert two.observations == 0
    learnt = log.warm_start(two, tmp_path, weights=weights, missing="leave out", chunk=32)
    assert learnt == (120, 90, {"no reward came": 30})
    assert_allclose(two.theta, one.theta, rtol=1e-8)
    assert_allclose(two.width(np.eye(3)), one.width(np.eye(3)), rtol=1e-8)
    assert two.observations == one.observations
    memory = dither.LinFP(dim=3, seed=1)
    assert log.warm_start(memory, log.read(tmp_path), weights=weights, missing="leave out", chunk=7) == learnt
    assert_allclose(memory.theta, one.theta, rtol=1e-8)
    with pytest.raises(ValueError, match="weights must be"):
        log.warm_start(two, tmp_path, weights="dr")


def test_a_warm_start_needs_no_propensities_without_weights():
    rows = {
        "arm": [0, 1],
        "reward": [1.0, 0.0],
        "features": [[[1.0, 0.0], [0, 1]]] * 2,
        "propensity_kind": ["none"] * 2,
    }
    bandit = dither.LinFP(dim=2, lam=1.0, seed=0)
    assert log.warm_start(bandit, pl.DataFrame(rows)).used == 2
    assert_allclose(bandit.theta, [0.5, 0])


def test_slots_by_name():
    rows = {
        "arm": [1, 0],
        "reward": [1.0, 3.0],
        "propensity": [0.5, 0.5],
        "features": [[[2.0]], [[2.0]]],
        "arms": [["news", "sport"], ["art", "news"]],
    }
    read = log.read(rows)
    bandit = dither.LinFP(dim=1, disjoint=3, lam=1.0, seed=0, preset="paper")
    with pytest.raises(ValueError, match=r"arms have names, such as 'sport'"):
        log.warm_start(bandit, read)
    with pytest.raises(ValueError, match="it lacks 'art'"):
        log.warm_start(bandit, read, slots={"news": 0, "sport": 1})
    log.warm_start(bandit, read, slots={"news": 0, "sport": 1, "art": 2})
    assert_allclose(bandit.theta, [[0], [0.4], [1.2]])  # 2 r / (λ + 4)


def test_probabilities_rounded_to_either_side_of_the_least_agree(tmp_path):
    """0.1/100 in float32 is above 1e-3, in float64 below. seen red: p decides for itself."""
    rng, K, n = np.random.default_rng(0), 100, 4000
    least = (1 - 0.9) / K
    P = np.full((n, K), least)
    P[:, 0] = 1 - least * (K - 1)
    a = np.where(rng.random(n) < P[0, 0], 0, rng.integers(1, K, n))
    frame = pl.DataFrame(
        {
            "arm": a,
            "propensity": P[np.arange(n), a].astype(np.float32).astype(float),
            "probabilities": P.tolist(),
            "reward": np.ones(n),
        }
    )
    assert log.read(frame).check().ok
