"""An erased row is left out of every estimate and counted. It is never a reward of 0, whatever a missing one counts."""

import numpy as np
import polars as pl
import pytest

import dither as lib
from dither import log, ope

X = np.eye(2)
pytestmark = pytest.mark.usefixtures("closing")


@pytest.fixture
def ledger(home):
    """200 decisions of ten people, by halves and without learning; every second one has a click; four have left."""
    made = log.Ledger(home)
    rng = np.random.default_rng(0)
    for i in range(200):
        a = int(rng.integers(2))
        shown = lib.Decision(a, 0.5, "exact", None, None)
        made.record(shown, X=X, id=f"d{i}", time=i, floor=1.0, extra={"user": i % 10}, probabilities=[0.5, 0.5])
        if i % 10 in (0, 1, 3, 4, 8):
            made.reward(f"d{i}", 1.0, time=i + 1)
    for user in range(4):
        made.erase(user=user)
    return made


def places(ledger, folder):
    """The log on each road: of the database, of an export, of one file, in two files, and taken over."""
    whole = ledger.read()
    ledger.export(folder / "days")
    whole.write(folder / "all.parquet")
    half = np.arange(200) < 100
    whole.filter(half).write(folder / "one.parquet")
    whole.filter(~half).write(folder / "two.parquet")
    other = log.Ledger(None)
    other.take_over(folder / "days")
    two = [folder / "one.parquet", folder / "two.parquet"]
    read = {"days": log.read(folder / "days"), "all": log.read(folder / "all.parquet"), "two": log.read(two)}
    return {"ledger": whole, "again": other.read(), **read}


def test_an_erased_row_is_left_out_and_counted_on_every_road(ledger, tmp_path):
    for name, rows in places(ledger, tmp_path).items():
        assert rows.erased.tolist() == [i % 10 < 4 for i in range(200)], name
        for missing in (0, 0.0, "leave out"):
            used = rows.usable(missing=missing)
            assert used.report.left_out["the decision was erased"] == 80, name
            assert used.report.read == 200
            assert not used.erased.any()
        used = rows.usable(missing=0)
        assert (len(used), used.report.filled) == (120, 80)
        assert used.r.mean() == 40 / 120  # 40 of 200 with zeros for those who left
        with pytest.raises(ValueError, match=r"no reward came \(80 rows"):
            rows.usable()
        assert [f.count for f in rows.check().findings if f.kind == "erased"] == [80]
        student = lib.LinFP(dim=2)
        assert log.warm_start(student, rows, missing=0).used == 120
    # seen red with an erased row as one without a reward: the mean is 0.2


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"jobs": 2},
        {"estimators": ["dr"], "model": "ridge"},
        {"missing": "bounds", "reward_range": (0, 1)},
        {"horizon": 50.0},
    ],
)
def test_verdicts_leave_erased_rows_out(ledger, tmp_path, more):
    ledger.export(tmp_path / "days")
    clean = ledger.read()
    clean = clean.filter(~clean.erased)
    clean.write(tmp_path / "clean.parquet")
    asked = {"policies": ["uniform", "arm:0"], "estimators": ["ips", "snips"], "missing": 0} | more
    one, two = (ope.evaluate(tmp_path / name, **asked) for name in ("days", "clean.parquet"))
    assert one.report.left_out["the decision was erased"] == 80
    for key, estimate in two.estimates.items():
        assert one.estimates[key].value == pytest.approx(estimate.value, rel=1e-12)
        assert one.estimates[key].interval == pytest.approx(estimate.interval, rel=1e-12)


def test_the_command_says_how_many_were_erased(ledger, tmp_path, dither):
    ledger.export(tmp_path / "days")
    code, out, _ = dither("evaluate", tmp_path / "days", "--missing", "0", "--policy", "uniform")
    assert code == 0
    assert "80" in out
    assert "erased" in out


def test_what_was_erased_stays_erased_where_it_is_taken_over(ledger, tmp_path):
    ledger.export(tmp_path / "days")
    other = log.Ledger(None, horizon=10, default=0.0)
    assert other.take_over(tmp_path / "days") == 200
    assert all(int(one.id[1:]) % 10 >= 4 for one in other.pending())
    assert other.expire(1e6) == 80
    assert other.read().usable(missing=0).r.mean() == 40 / 120
    for id in ("d0", "d1"):
        with pytest.raises(LookupError, match="was erased"):
            other.reward(id, 1.0)
    day = tmp_path / "days" / "1970-01-01"
    with log.Log(day) as folder:
        with pytest.raises(LookupError, match="was erased"):
            folder.reward("d2", 1.0)
        assert folder.reward("d5", 1.0) == "counted"


def test_a_column_of_an_older_ledger_may_have_its_name(home):
    made = log.Ledger(home)
    made.record(lib.Decision(0, 0.5, "exact", None, None), X=X, extra={"mine": 3})
    with made.holding() as connection:
        connection.exec_driver_sql("UPDATE dither_decisions SET extra = '{\"was_erased\": 3}'")
    assert made.read().frame["was_erased (yours)"].to_list() == [3]
    assert not made.read().erased.any()


def test_a_flag_may_be_a_number_or_a_text_of_a_csv_file(tmp_path):
    frame = pl.DataFrame({"arm": [0, 1, 0], "reward": [1.0, None, 0.0], "propensity": [0.5] * 3, "K": [2] * 3})
    for flags in ([False, True, None], [0, 1, 0]):
        rows = frame.with_columns(was_erased=pl.Series(flags))
        rows.write_csv(tmp_path / "a.csv")
        for source in (rows, tmp_path / "a.csv"):
            assert log.read(source).usable(missing=0).r.tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match="must hold true or false"):
        log.read(frame.with_columns(was_erased=pl.Series(["a", "b", "c"])))


def test_a_name_is_one_however_its_accents_were_typed():
    composed, apart = "Jos\u00e9", "Jose\u0301"
    live = lib.Live(None, bandit=lib.LinFP(dim=2, seed=0))
    for user in (composed, apart, "Jos"):
        live.choose(np.eye(2), extra={"user": user})
    assert live.erase(user=apart) == 2
    # seen red: 1
