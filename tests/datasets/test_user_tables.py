"""Files of users' tables: a first line that is a row, suffixes and packings, and numbers with leading zeros."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from dither import datasets, log

RNG = np.random.default_rng(0)
MAGIC = [f"{x[0]:.4f},{x[1]:.4f},{x[2]:.4f},{'gh'[i % 2]}" for i, x in enumerate(RNG.normal(size=(40, 3)) * 30)]
FRAME = pl.DataFrame({"a": list(range(40)), "b": [i * i % 7 for i in range(40)], "label": ["u", "v"] * 20})


def put(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


ROWS = {  # a first line that is a row
    "magic": MAGIC,
    "negative": [f"{-i},x{i % 3},{'uv'[i % 2]}" for i in range(1, 30)],
    "exponent": [f"{i}e-3,x{i % 3},{'uv'[i % 2]}" for i in range(1, 30)],
    "letters": [f"{'pe'[i % 2]},{'xfk'[i % 3]},{'bcd'[i % 3]}" for i in range(30)],
    "mixed": [f"{(39, 50, 38)[i % 3]},{'ab'[i % 2]},{'<>'[i % 2]}50K" for i in range(30)],
    "ids": [f"row{i},{('red', 'blue')[i % 2]},{('yes', 'no')[i % 2]}" for i in range(30)],
    "ends in numbers": [f"{'ab'[i % 2]},{i % 3},{7 - i % 5}" for i in range(30)],
}
NAMES = {  # names of which some are numbers
    "pixels": "0,1,2,3,label",
    "from 1": "1,2,3,4,label",
    "years": "2019,2020,2021,2022,label",
    "one year": "a,2020,b,c,label",
    "wavelengths": "850.0,852.5,855.0,857.5,label",
    "pixels of which some are left out": "0,1,2,3,5,8,9,label",
    "words": "a,b,c,d,label",
    "y": "a,b,c,d,u",  # the name is one of its values, as y is where values are y and n
}


@pytest.mark.parametrize("case", ROWS)
def test_a_first_line_that_is_a_row_is_refused(tmp_path, case):
    """Seen red where all names had to be numbers: the first row of magic, which ends in g, was lost without a word."""
    path = put(tmp_path / "t.csv", ROWS[case])
    target = ROWS[case][0].rsplit(",", 1)[1]
    with pytest.raises(ValueError, match="put a line with names above it, or the first row is lost"):
        datasets.table(path, target)


@pytest.mark.parametrize("case", NAMES)
def test_names_that_are_numbers_in_equal_steps_are_names(tmp_path, case):
    """Seen red with `any` name that is a number."""
    n = NAMES[case].count(",")
    rows = [",".join([*(f"{i * j % 11}.5" for j in range(1, n + 1)), "uv"[i % 2]]) for i in range(30)]
    path = put(tmp_path / "t.csv", [NAMES[case], *rows])
    env = datasets.table(path, NAMES[case].rsplit(",", 1)[1])
    assert env.arms == 2


def test_two_columns_of_one_name_may_be_a_row(tmp_path):
    path = put(tmp_path / "t.csv", ["B,1,1,2", "R,1,2,2"])
    with pytest.raises(ValueError, match=r"2 columns named '1' in its first line: .* put a line with names above it"):
        datasets.table(path, "B")


def written(path, frame):
    """The frame in the format that the name of the file says."""
    suffixes = path.suffixes
    if suffixes[-1] == ".zst":
        plain = written(path.with_suffix(""), frame)
        path.write_bytes(pa.compress(plain.read_bytes(), codec="zstd", asbytes=True))
    elif suffixes[-1] in (".arrow", ".feather", ".ipc"):
        frame.write_ipc(path, compression="zstd" if suffixes[-1] == ".feather" else "uncompressed")
    elif suffixes[-1] == ".arrows":
        frame.write_ipc_stream(path)
    elif suffixes[-1] == ".jsonl":
        frame.write_ndjson(path)
    elif suffixes[-1] == ".dat":
        path.write_text(frame.write_csv(separator=" ").replace(" ", "   "))
    else:
        frame.write_csv(path)
    return path


FILES = ["t.dat", "t.csv.zst", "t.jsonl.zst", "t.dat.zst", "t.arrow", "t.feather", "t.ipc", "t.arrows", "t.arrow.zst"]


@pytest.mark.parametrize("name", FILES)
def test_files_of_all_suffixes_are_read(tmp_path, name):
    """Seen red with the suffixes of before: `must be a CSV, JSON lines or Parquet file`."""
    env = datasets.table(written(tmp_path / name, FRAME), "label", preprocessing="raw")
    other = datasets.table(written(tmp_path / "t.csv", FRAME), "label", preprocessing="raw")
    assert_array_equal(env.X, other.X)
    assert_array_equal(env.y, other.y)
    rows = FRAME.with_columns(propensity=0.5, reward=pl.col("b") % 2)
    read = log.from_columns(written(tmp_path / f"log-{name}", rows), arm="label", reward="reward")
    assert_array_equal(read.a, [0, 1] * 20)
    assert_array_equal(read.r, rows["reward"].to_numpy())


@pytest.mark.parametrize("name", ["t.csv.zst", "t.jsonl.zst"])
def test_half_a_file_of_zstd_is_refused(tmp_path, name):
    path = written(tmp_path / name, FRAME)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="is packed and cannot be unpacked"):
        datasets.table(path, "label")


def test_a_file_of_keel_says_what_to_do(tmp_path):
    path = put(tmp_path / "magic.dat", ["@relation magic", "@attribute FLength real", "@data", *MAGIC])
    with pytest.raises(ValueError, match=r"begins with '@relation magic', as ARFF and KEEL files do: leave out"):
        datasets.table(path, "label")


def test_numbers_with_leading_zeros_are_blamed_themselves(tmp_path):
    """Seen red with the first of the levels: 300 distinct texts, such as '1900'."""
    rows = [f"{1900 + i if i != 7 else '0005'},{i},{'uv'[i % 2]}" for i in range(300)]
    path = put(tmp_path / "t.csv", ["hourmin,age,label", *rows])
    with pytest.raises(ValueError, match=r"300 names of digits, since '0005' in row 8 has a leading zero: write '5'"):
        datasets.table(path, "label")
    with pytest.raises(ValueError, match="has 300 distinct texts, such as 'x1900'"):
        datasets.table(put(tmp_path / "x.csv", ["hourmin,age,label", *(f"x{row}" for row in rows)]), "label")


def table(path, lines, target="label"):
    return datasets.table(put(path, lines), target, preprocessing="raw")


@pytest.mark.parametrize("first", [2**53, 2**62, 10**25])
def test_labels_that_are_huge_numbers_stay_apart(tmp_path, first):
    """Seen red with a cast to float64: two classes were one arm, without a word."""
    env = table(tmp_path / "t.csv", ["a,b,label", *(f"{i},{i % 7},{first + i % 2}" for i in range(40))])
    assert env.arms == 2
    frame = FRAME.with_columns(label=pl.Series([first + i % 2 for i in range(40)], dtype=pl.Int128))
    frame.write_ndjson(tmp_path / "t.jsonl")
    assert datasets.table(tmp_path / "t.jsonl", "label").arms == 2


def test_huge_numbers_of_ones_own_stay_apart(tmp_path):
    """Seen red with a float for a whole number beyond 64 bits: two users were one."""
    rows = [f"{i % 2},1,0.5,{10**25 + i % 2}" for i in range(10)]
    read = log.read(put(tmp_path / "t.csv", ["arm,reward,propensity,user", *rows]))
    assert len(set(read.column("user").tolist())) == 2


def test_levels_and_labels_are_one_however_their_accents_were_typed(tmp_path):
    """Seen red without NFC: two levels of one word."""
    words = ["caf\u00e9", "cafe\u0301", "tea"]
    env = table(tmp_path / "t.csv", ["a,b,label", *(f"{i},{words[i % 3]},{words[i % 3]}" for i in range(40))])
    assert env.arms == 2
    assert env.X.shape[1] == 3


def test_a_target_of_lists_is_refused_in_a_sentence(tmp_path):
    """Seen red with `one class only, shape: (1,) Series`."""
    path = put(tmp_path / "t.jsonl", ['{"a": 1, "label": ["u"]}', '{"a": 2, "label": ["v"]}'])
    with pytest.raises(ValueError, match=r"column label of .* is a List\(String\): turn it into numbers or text"):
        datasets.table(path, "label")


@pytest.mark.parametrize("value", ["{}%", "${}", "€ {}.50", "{} £", "{}°"])
def test_numbers_with_signs_are_refused(tmp_path, value):
    """Seen red without the rule: each number was a level of its own."""
    lines = ["a,b,label", *(f"{value.format(i)},{i % 7},{'uv'[i % 2]}" for i in range(40))]
    with pytest.raises(
        ValueError, match=r"column a of .* holds numbers with signs, such as .*: write the numbers alone"
    ):
        table(tmp_path / "t.csv", lines)
    few = [line if i == 0 else f"{value.format(i % 4)},{i},{'uv'[i % 2]}" for i, line in enumerate(lines)]
    assert table(tmp_path / "f.csv", few).X.shape[1] == 5  # levels, such as discounts


def test_json_lines_with_a_mark_of_the_order_of_bytes(tmp_path):
    """Seen red with polars' TapeError."""
    path = tmp_path / "t.jsonl"
    FRAME.write_ndjson(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert datasets.table(path, "label").arms == 2
