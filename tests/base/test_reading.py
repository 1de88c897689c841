"""Tables in files: one reader for logs and for `compare --data`, whatever comes late in a file, packed or not."""

import bz2
import gzip
import json
import lzma

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from dither import datasets, log
from dither.log import schema

HEAD = "arm,reward,propensity"
PACKERS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def put(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("rows", [99, 100, 5000])
@pytest.mark.parametrize("late", ["19.99", "NA", "1e3", ""])
def test_what_comes_late_is_read(tmp_path, rows, late):
    path = put(tmp_path / "t.csv", "\n".join([f"{HEAD},note"] + ["0,0,0.5,1"] * rows + [f"1,{late},0.5,x7"]))
    for read in (log.read(path), next(log.batches(path)), log.from_columns(path, arm="arm", reward="reward")):
        wanted = np.nan if late in ("NA", "") else float(late)
        assert_array_equal(read.r[-2:], [0, wanted])  # seen red: could not parse `19.99` as i64
        assert_array_equal(read.a[-2:], [0, 1])
        assert read.column("note")[-1] == "x7"


@pytest.mark.parametrize(
    "ids", [("1.10", "1.1"), ("007", "7"), ("1e3", "1000"), ("2024-01-02", "2024-1-2"), ("+1", "1")]
)
def test_ids_are_text_as_written(tmp_path, ids):
    rows = [f"{ids[i % 2]},{ids[i % 2]},{i % 2},0.5" for i in range(10)]
    path = put(tmp_path / "t.csv", "\n".join(["ad,event,reward,propensity", *rows]))
    read = log.from_columns(path, arm="ad", reward="reward", id="event")
    assert set(read.catalogue) == set(ids)  # seen red: two arms became one
    assert set(read.id) == set(ids)
    assert sorted(np.bincount(read.a)) == [5, 5]
    own = log.from_columns(path, arm="ad", reward="reward", text=["event"])
    assert set(own.column("event")) == set(ids)


def test_a_number_with_a_leading_zero_is_a_name(tmp_path):
    path = put(tmp_path / "t.csv", f"{HEAD},zip,hour,price\n0,1,0.5,01234,7,0.5\n1,1,0.5,1234,8,00.25\n")
    read = log.read(path)
    assert read.column("zip").tolist() == ["01234", "1234"]  # seen red: one and the same number
    assert read.column("hour").tolist() == [7, 8]
    assert read.column("price").tolist() == [0.5, 0.25]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{HEAD},x,y\n0,1,0.5,3,4\n1,0,0.5,3\n\n0,1,0.5,3,4\n", 3),
        (f"{HEAD},x,y\n0,1,0.5,3,4\n1,0,0.5,3", 3),  # cut within the last line
        ('arm;reward;propensity;x\n0;1;0.5;"a\nb"\n1;0;0.5\n', 4),
        ("arm reward propensity x\n" + "0 1 0.5 3\n" * 60 + "1 0.5 3\n", 62),  # whose values are in other columns
    ],
)
@pytest.mark.parametrize("suffix", PACKERS)
def test_a_line_with_fewer_values_than_names_is_refused(tmp_path, text, line, suffix):
    """Seen red with nulls in columns of the user's own, and with what stands behind blanks in other columns."""
    path = put(tmp_path / f"t.csv{suffix}", PACKERS[suffix](text.encode()))
    with pytest.raises(
        ValueError, match=rf"line {line} of .* has [34] values, and the line with names has [45]: is the"
    ):
        log.read(path)


def test_empty_values_and_separators_at_the_end_are_no_missing_line_ends(tmp_path):
    """Seen red with `len(row) != len(names)`."""
    path = put(tmp_path / "t.csv", f"{HEAD},x,\n0,1,0.5,\n1,0,0.5,,\n1,0,0.5,3,\n , ,\n")
    assert_array_equal(log.read(path).column("x"), [np.nan, np.nan, 3])


def test_blanks_missing_values_and_blank_lines(tmp_path):
    path = put(tmp_path / "t.csv", f"id, {HEAD} \n7   , 1,0.5 ,0.25\n\n' x', 0,NA,nan\n,,null,\n  \n")
    read = log.read(path)
    assert read.id.tolist() == ["7", "' x'", None][: len(read)]  # seen red: '7   '
    assert_array_equal(read.a, [1, 0])  # seen red: a row of arm -1 for each blank line
    assert_array_equal(read.r, [0.5, np.nan])
    assert_array_equal(read.p, [0.25, np.nan])
    twice = put(tmp_path / "twice.csv", f"{HEAD},reward\n0,1,0.5,2\n")
    for reader in (log.read, lambda path: log.from_columns(path, arm="arm", reward="reward")):
        with pytest.raises(ValueError, match="2 columns named 'reward'"):  # seen red: the first of the two was read
            reader(twice)


@pytest.mark.parametrize("packed", PACKERS)
@pytest.mark.parametrize("form", ["a.csv", "a.tsv", "a.txt", "a.data", "a.jsonl", "a.ndjson", "a.parquet", "a.pq"])
def test_one_reader_of_all_forms(tmp_path, form, packed):
    rows = [{"arm": i % 3, "reward": i / 8, "propensity": 0.5, "label": "ab"[i % 2]} for i in range(300)]
    path = tmp_path / f"{form}{packed}"
    frame, kind = pl.DataFrame(rows), form.partition(".")[2]
    if kind in ("parquet", "pq"):
        frame.write_parquet(path)
        text = path.read_bytes()
    elif kind in ("jsonl", "ndjson"):
        text = "\n".join(map(json.dumps, rows)).encode()
    else:
        text = frame.write_csv(separator={"tsv": "\t", "txt": ";", "data": "|"}.get(kind, ",")).encode()
    put(path, PACKERS[packed](text))
    for read in (log.read(path), next(log.batches(path, rows=1000))):
        assert_array_equal(read.r, frame["reward"])  # seen red: an error about Parquet's magic number
        assert_array_equal(read.a, frame["arm"])
    env = datasets.table(path, "label", "raw")
    assert_array_equal(env.X, frame.drop("label").to_numpy())
    assert env.labels.tolist() == ["a", "b"]


def test_files_that_are_no_tables(tmp_path):
    with pytest.raises(ValueError, match=r"must be a CSV .* JSON lines .* Parquet"):
        log.read(put(tmp_path / "a.xlsx", b"PK\x03\x04"))
    whole = gzip.compress(f"{HEAD}\n0,1,0.5\n".encode() * 100)
    for reader in (log.read, lambda path: datasets.table(path, "arm")):
        with pytest.raises(ValueError, match=r"is packed and cannot be unpacked .* is the file whole"):
            reader(put(tmp_path / "a.csv.gz", whole[:-9]))


def test_a_value_that_is_no_number_is_named(tmp_path):
    path = put(tmp_path / "a.csv", f"{HEAD}\n0,1,0.5\n1,much,0.5\n")
    with pytest.raises(
        ValueError, match=r"column 'reward' of .* must hold numbers, got String, such as 'much' in row 1"
    ):
        log.read(path)


def test_times_of_a_csv_file(tmp_path):
    texts = ["2019-11-24 00:00:13.004101+00:00", "2026-02-03T04:05:06.7890000Z", "2020-01-01", "2020-01-01 10:20+0100"]
    rows = "".join(f"0,1,0.5,{text}\n" for text in texts)
    read = log.read(put(tmp_path / "a.csv", f"{HEAD},time\n{rows}"))
    wanted = ["2019-11-24T00:00:13.004101", "2026-02-03T04:05:06.789", "2020-01-01T00:00:00", "2020-01-01T09:20:00"]
    assert_array_equal(read.time, np.array(wanted, dtype="datetime64[us]"))
    with pytest.raises(
        ValueError, match=r"'time' of .* must hold dates with times, .*got text, such as 'soon' in row 1"
    ):
        log.read(put(tmp_path / "b.csv", f"{HEAD},time\n0,1,0.5,2020-01-01\n0,1,0.5,soon\n"))


def test_positions_that_pandas_wrote_as_floats(tmp_path):
    path = put(tmp_path / "a.csv", f"{HEAD}\n0.0,1,0.5\n2.0,1,0.5\n,1,0.5\n")
    assert_array_equal(log.read(path).a, [0, 2, -1])
    assert_array_equal(log.read({"arm": [0.0, np.nan], "reward": [1.0, 0.0], "propensity": [0.5, 0.5]}).a, [0, -1])
    with pytest.raises(ValueError, match=r"column 'arm' .* must hold whole numbers, got Float64"):
        log.read(put(tmp_path / "b.csv", f"{HEAD}\n0.5,1,0.5\n"))  # seen red: a cast, which makes it arm 0


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("separator", [",", " "])
def test_lines_that_end_as_on_the_first_macs(tmp_path, packed, separator):
    """Seen red with `The length of the new names list (3) should be equal to the original column length`."""
    text = f"{HEAD}\n0,1,0.5\n1,0,0.25\n".replace(",", separator).replace("\n", "\r")
    read = log.read(put(tmp_path / f"t.csv{packed}", PACKERS[packed](text.encode())))
    assert_array_equal((read.a, read.r, read.p), ([0, 1], [1, 0], [0.5, 0.25]))


@pytest.mark.parametrize(
    ("late", "encoding", "words"),
    [
        (False, "latin-1", "it holds the byte 0xe9 in line 2"),
        (True, "latin-1", "it holds the byte 0xe9 in line 9002"),
        (False, "utf-16", "it holds zero bytes, as UTF-16 has them"),
        (False, "utf-16-le", "it holds zero bytes, as UTF-16 has them"),
    ],
)
def test_another_encoding_is_said(tmp_path, late, encoding, words):
    """Seen red with the errors of before: `invalid utf-8 sequence`, or a column that is called 'a\\x00r\\x00m\\x00'."""
    text = f"{HEAD},who\n" + "0,1,0.5,x\n" * 9000 * late + "0,1,0.5,Ren\u00e9\n"
    path = put(tmp_path / "t.csv", text.encode(encoding))
    for reader in (log.read, lambda path: datasets.table(path, "arm")):
        with pytest.raises(ValueError, match=f"must be text in UTF-8, and {words}: save it as UTF-8"):
            reader(path)


@pytest.mark.parametrize("separator", [",", ";", " "])
def test_a_line_with_too_many_values_is_named(tmp_path, separator):
    """Seen red with `found more fields than defined in 'Schema'`, without the line."""
    rows = f"{HEAD}\n" + "0,1,0.5\n" * 60
    cases = [(f"{rows}0,1,0.5,9\n", 62, 4)] + [(f"# of May\n{rows}", 2, 3)] * (separator == ",")
    for text, number, values in cases:
        path = put(tmp_path / "t.csv", text.replace(",", separator))
        for reader in (log.read, lambda path: datasets.table(path, "arm")):
            with pytest.raises(ValueError, match=f"line {number} of .* has {values} values, and the line with names"):
                reader(path)


def test_a_first_line_of_any_length(tmp_path):
    """Seen red where the names were looked for in the first 64 kB alone: `The length of the new names list`."""
    names = [f"gene{i:05d}" for i in range(8_000)]
    path = put(tmp_path / "t.csv", ",".join([HEAD, *names]) + "\n" + ",".join(["0,1,0.5", *["2"] * 8_000]))
    assert log.read(path).column(names[-1]).tolist() == [2]


def test_a_zone_of_hours_alone(tmp_path):
    """PostgreSQL writes it so. Seen red: it was no time."""
    texts = ["2020-09-13 12:26:40+02", "2020-09-13 12:26-05", "2020-09-13T12:26:40.5+00"]
    rows = "".join(f"0,1,0.5,{text}\n" for text in texts)
    read = log.read(put(tmp_path / "a.csv", f"{HEAD},time\n{rows}"))
    wanted = ["2020-09-13T10:26:40", "2020-09-13T17:26:00", "2020-09-13T12:26:40.5"]
    assert_array_equal(read.time, np.array(wanted, dtype="datetime64[us]"))


def test_seconds_since_1970_as_text():
    """As a command has them (`--at 1600000000`). Seen red: `must be ... seconds since 1970, got '1600000000'`."""
    assert schema.moment("1600000000") == schema.moment(1_600_000_000) == schema.moment("2020-09-13T12:26:40Z")
    with pytest.raises(ValueError, match="time must be a datetime"):
        schema.moment("16000")
