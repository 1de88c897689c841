"""Tables as users have them: arms called None, times that are numbers, numbers with zeros, arms that are lists."""

import json
import math
import sys
import unicodedata
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from dither import log
from dither.base import reading
from dither.log.sources import LogSource

ODD = ["None", "NA", "null", "nan", "N/A", "-", "NaN", "NULL", "?", "A"]


def put(path, text):
    path.write_text(text, encoding="utf-8")
    return path


# --- arms that are called None


@pytest.mark.parametrize("arms", [None, ODD, len(ODD)])
def test_an_arm_that_is_called_none_is_an_arm(tmp_path, arms):
    """Seen red with the words for missing values in the column of the arm: nine of ten rows had no arm."""
    rows = [f"{arm},{i % 2},0.1,{arm}" for i, arm in enumerate(ODD * 4)]
    path = put(tmp_path / "t.csv", "\n".join(["item,click,p,user", *rows]))
    named = dict(arm="item", reward="click", propensity="p", arms=arms)
    source = LogSource(
        path, "table", "item", "p", "click", text=("user",), options={} if arms is None else {"arms": ",".join(ODD)}
    )
    for read in (log.from_columns(path, text=["user"], **named), source.table(set())):
        assert set(read.catalogue) == set(ODD)
        assert_array_equal(np.bincount(read.a), [4] * 10)
        assert [read.catalogue[a] for a in read.a] == ODD * 4
        assert read.column("user").tolist() == ODD * 4
        assert read.usable().report.left_out == {}
    other = log.from_columns(path, **named)
    assert set(other.column("user").tolist()) == {"-", "A", None}  # your own columns have missing values


def test_an_arm_without_a_name(tmp_path):
    """It is refused, or it is an arm where the user says so. Seen red without `fill_null`."""
    path = put(tmp_path / "t.csv", "item,click,p\n" + ",1,0.5\na,0,0.5\n" * 3)
    named = dict(arm="item", reward="click", propensity="p")
    with pytest.raises(ValueError, match=r"arm is missing \(3 rows: 0, 2, 4\)"):
        log.from_columns(path, **named).usable()
    read = log.from_columns(path, arms=["", "a"], **named)
    assert_array_equal(read.usable().a, [0, 1] * 3)


@pytest.mark.parametrize("arms", [None, ["tea", "caf\u00e9"], ["tea", "cafe\u0301"], "offer"])
def test_an_arm_is_one_however_its_accents_were_typed(arms):
    """Seen red without NFC: two arms, or an arm that is not on offer."""
    ids = ["caf\u00e9", "cafe\u0301", "tea"]
    offer = [["tea", unicodedata.normalize("NFD", "caf\u00e9")]] * 3
    frame = pl.DataFrame({"item": ids, "click": [1, 0, 1], "p": [0.5] * 3, "offer": offer})
    read = log.from_columns(frame, arm="item", reward="click", propensity="p", arms=arms)
    assert read.a[0] == read.a[1] != read.a[2]
    assert {id for row in read.arm_ids() for id in row} == {"tea", "caf\u00e9"}


# --- times that are numbers


MOMENTS = [
    datetime(1990, 1, 1, tzinfo=UTC),
    datetime(2022, 4, 20, 20, 16, 41, tzinfo=UTC),
    datetime(2099, 12, 31, tzinfo=UTC),
]


@pytest.mark.parametrize("factor", [1, 10**3, 10**6, 10**9])
@pytest.mark.parametrize("dtype", [pl.Int64, pl.Float64, pl.UInt64, "csv"])
def test_numbers_are_times_since_1970(tmp_path, factor, dtype):
    """Seen red with the types of before: `must hold dates with times, got Int64`."""
    since = [int((moment - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1)) * factor for moment in MOMENTS]
    columns = {"arm": [0, 1, 0], "reward": [1.0] * 3, "propensity": [0.5] * 3}
    if dtype == "csv":
        path = tmp_path / "t.csv"
        pl.DataFrame(columns | {"time": since}).write_csv(path)
        read = log.read(path)
    else:
        read = log.read(pl.DataFrame(columns | {"time": pl.Series(since, dtype=dtype)}))
    assert_array_equal(read.time, np.array([moment.replace(tzinfo=None) for moment in MOMENTS], dtype="datetime64[us]"))


def test_milliseconds_to_the_last_digit():
    """The times of KuaiRand. Seen red with whole seconds."""
    rows = {"arm": [0, 1], "reward": [1, 1], "propensity": [0.5, 0.5]}
    for number, micro in [(1650485801301, 301_000), (1650485801.25, 250_000), (1650485801301123456, 301_123)]:
        read = log.read(pl.DataFrame(rows | {"time": [number, None]}))
        assert read.frame["time"][0] == datetime(2022, 4, 20, 20, 16, 41, micro, tzinfo=UTC)
        assert read.frame["time"][1] is None


@pytest.mark.parametrize("odd", [20220421, 20220421190530, 0, -5, 2**62, 631_151_999, math.inf, 202204211905])
def test_a_number_that_is_no_time_is_named(odd):
    """Days written as numbers are not seconds. Seen red without bounds: 20220421 was a day in August 1970."""
    rows = {"arm": [0, 1], "reward": [1, 1], "propensity": [0.5, 0.5], "time": [type(odd)(1650485801), odd]}
    words = r"column 'time' .* must hold dates with times, or .* from 1990 to 2100, got numbers, such as .* in row 1"
    with pytest.raises(ValueError, match=words):
        log.read(pl.DataFrame(rows))


def test_missing_times_stay_missing():
    rows = {"arm": [0, 1], "reward": [1, 1], "propensity": [0.5, 0.5], "time": [1650485801.0, np.nan]}
    assert log.read(pl.DataFrame(rows)).frame["time"].null_count() == 1


# --- numbers with leading zeros


def hours(tmp_path, odd="0005"):
    rows = [f"{'ab'[i % 2]},{i % 2},0.5,{1900 + i if i != 7 else odd}" for i in range(20)]
    return put(tmp_path / "t.csv", "\n".join(["item,reward,propensity,hourmin", *rows]))


def test_a_column_that_is_asked_for_as_numbers_is_numbers(tmp_path):
    """Seen red with the rule for names alone: features must hold real numbers, got dtype object with '1900'."""
    path = hours(tmp_path)
    source = LogSource(path, "table", "item", options={"features": "hourmin"})
    for read in (log.from_columns(path, arm="item", reward="reward", features=["hourmin"]), source.table(set())):
        assert read.x[:, 0].tolist() == [1900 + i if i != 7 else 5 for i in range(20)]
    own = log.from_columns(path, arm="item", reward="reward")
    assert own.column("hourmin").tolist()[6:8] == ["1906", "0005"]  # a name, where it is not asked for
    paid = put(tmp_path / "p.csv", "item,paid,p\na,05,0.5\nb,7,0.5\n")
    assert log.from_columns(paid, arm="item", reward="paid", propensity="p").r.tolist() == [5, 7]


def test_the_value_that_is_no_number_is_named(tmp_path):
    """Seen red with the first value of the column: it blamed '1900'."""
    path = hours(tmp_path, odd="00h5")
    with pytest.raises(
        ValueError, match=r"column 'hourmin' must hold real numbers .* got text, such as '00h5' in row 7"
    ):
        log.from_columns(path, arm="item", reward="reward", features=["hourmin"])


# --- arms that are lists


@pytest.mark.parametrize("arm", [["a", "b"], {"id": 1}, [1], b"\xff"])
def test_an_arm_that_is_a_list_is_refused_in_a_sentence(arm):
    """Seen red with polars' `cannot cast List type`."""
    frame = pl.DataFrame({"item": [arm, arm], "reward": [1, 0], "propensity": [0.5, 0.5]})
    with pytest.raises(ValueError, match=r"the column of the arm must hold one id a row, got \w+.*, such as"):
        log.from_columns(frame, arm="item", reward="reward")


def test_offers_that_are_lists_of_lists_are_refused_in_a_sentence(tmp_path):
    """Seen red with polars' `cannot cast List type`."""
    path = tmp_path / "t.jsonl"
    row = json.dumps({"item": "a", "offer": [["a"], ["b"]], "reward": 1, "propensity": 0.5})
    put(path, f"{row}\n{row}\n")
    with pytest.raises(ValueError, match=r"arms must name a column of lists of ids, got List\(List\(String\)\)"):
        log.from_columns(path, arm="item", reward="reward", arms="offer")


@pytest.mark.parametrize("id", [1e300, 2.0**60, np.inf, 0.5])
def test_ids_that_are_huge_or_no_whole_numbers(id):
    """Seen red with a cast to Int64: polars' `conversion failed`."""
    read = log.from_columns({"item": [id, 1.0, np.nan], "r": [1, 1, 1]}, arm="item", reward="r")
    assert len(read.catalogue) == 2
    assert read.a[2] == -1


@pytest.mark.parametrize("position", [2**70, 1e300, 1e19])
def test_a_position_that_is_huge_is_refused_in_a_sentence(position):
    """Seen red with polars' `conversion from i128 to i64 failed`."""
    dtype = pl.Int128 if isinstance(position, int) else pl.Float64
    frame = pl.DataFrame({"arm": pl.Series([0, position], dtype=dtype), "reward": [1, 1], "propensity": [0.5, 0.5]})
    with pytest.raises(ValueError, match=r"column 'arm' .* must hold whole numbers, got .* in row 1"):
        log.read(frame)


@pytest.mark.parametrize(("ids", "arms"), [([True, False], [False, True]), ([1.0, 2.0], [2.0, 1.0]), ([1, 2], [2, 1])])
def test_ids_on_offer_have_the_type_of_the_ids_shown(ids, arms):
    """Seen red with `str`: 'True' was not among 'true' and 'false', nor '1.0' among '1' and '2'."""
    read = log.from_columns(pl.DataFrame({"item": ids, "r": [1, 1]}), arm="item", reward="r", arms=arms)
    assert read.a.tolist() == [1, 0]


def test_a_pandas_column_of_several_types_is_named():
    """Seen red with polars' `'int' object is not an instance of 'str'`."""
    frame = pd.DataFrame({"item": ["a", 3], "reward": [1, 0]})
    with pytest.raises(ValueError, match=r"column 'item' of the pandas frame has values of several types \(int, str\)"):
        log.from_columns(frame, arm="item", reward="reward")


# --- what is missing here


def test_pandas_without_pyarrow_names_the_extra(monkeypatch):
    """Seen red with polars' own ImportError, which says nothing of dither."""
    frame = pd.DataFrame({"arm": [0, 1], "reward": [1, 0], "propensity": [0.5, 0.5], "who": ["x", "y"]})

    def from_pandas(frame):
        raise ModuleNotFoundError("pyarrow is required for converting a pandas dataframe to Polars")

    monkeypatch.setattr(pl, "from_pandas", from_pandas)
    with pytest.raises(ImportError, match=r"pyarrow.* dither\[frames\]"):
        log.read(frame)


def test_zstd_without_a_library_for_it_names_the_extra(tmp_path, monkeypatch):
    """Seen red with `must be a CSV file` for every .zst."""
    path = tmp_path / "t.csv.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + b"\0" * 20)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "compression", None)
    monkeypatch.setattr(reading.sys, "version_info", (3, 13))
    with pytest.raises(ValueError, match=r"packed with zstd, .*dither\[frames\]"):
        log.read(path)
