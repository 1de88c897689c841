"""`dither compare --data`: tables of all kinds against rows worked out by hand, and everything that is no table."""

import json
import os
import sys
from urllib.error import URLError

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import openml_cache
from dither import datasets
from dither.datasets import openml
from dither_bench.define import environments, figures
from dither_bench.keep.store import of_panel
from dither_bench.run import run

QUICK = ("--rounds", 20, "--runs", 2)
MIXED = """age,job,member,score,label
30,"a, b",true,1.5,yes
40,c,false,-2,no
50,"a, b",true,0,maybe
60,d,false,1e2,yes
"""
BY_HAND = [  # age, job "a, b", c, d, member, score
    [30, 1, 0, 0, 1, 1.5],
    [40, 0, 1, 0, 0, -2],
    [50, 1, 0, 0, 1, 0],
    [60, 0, 0, 1, 0, 100],
]


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def closed(*arguments, **settings):
        raise URLError("no network in tests")

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", closed)
    monkeypatch.setattr("sklearn.datasets._openml.time.sleep", lambda seconds: None)
    openml._fetch.cache_clear()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# What a table becomes


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("comma.csv", MIXED),
        ("windows.csv", MIXED.replace("\n", "\r\n")),
        ("bom.csv", b"\xef\xbb\xbf" + MIXED.encode()),
        ("semicolon.csv", MIXED.replace('"a, b"', "#").replace(",", ";").replace("#", "a, b")),
        ("tab.tsv", MIXED.replace('"a, b"', "#").replace(",", "\t").replace("#", "a, b")),
        ("bar.txt", MIXED.replace('"a, b"', "#").replace(",", " | ").replace("#", "a, b")),
        ("quoted.csv", MIXED.replace("30", '"30"').replace("yes", '" yes"')),
        ("no-end.csv", MIXED.rstrip("\n")),
        ("blank-lines.csv", MIXED.replace("\n", "\n\n")),
    ],
)
def test_a_csv_file_by_hand(here, name, text):
    env = datasets.table(put(here / name, text), "label", "raw")
    assert_array_equal(env.X, BY_HAND)
    assert env.labels[env.y].tolist() == ["yes", "no", "maybe", "yes"]
    assert (env.arms, env.dim, env.disjoint) == (3, 6, True)
    # seen red: text that is not stripped; blank lines as rows


def test_the_names_of_columns(here):
    put(here / "a.csv", b"\xef\xbb\xbf" + b"label, x\nu,1\nv,2\n")
    assert datasets.table("a.csv", "label", "raw").labels.tolist() == ["u", "v"]
    put(here / "a.csv", '"a, b;c;d", label\n1,u\n2,v\n')
    assert_array_equal(datasets.table("a.csv", "label", "raw").X, [[1], [2]])
    # seen red: the BOM as part of a name; separators within quotes counted


def test_a_parquet_file_by_hand(here):
    frame = pl.DataFrame(
        {
            "age": pl.Series([30, 40, 50, 60], dtype=pl.UInt8),
            "job": pl.Series(["a, b", "c", "a, b", "d"], dtype=pl.Categorical),
            "member": [True, False, True, False],
            "score": pl.Series([1.5, -2, 0, 100], dtype=pl.Float32),
            "label": [7, 5, 6, 7],
        }
    )
    frame.write_parquet(here / "a.parquet")
    env = datasets.table("a.parquet", "label", "raw")
    assert_array_equal(env.X, BY_HAND)
    assert_array_equal(env.labels, [5, 6, 7])
    assert_array_equal(env.y, [2, 0, 1, 2])
    yes = datasets.table("a.parquet", "member", "raw")
    assert yes.labels.tolist() == ["false", "true"]
    frame.with_columns(when=pl.Series([1, 2, 3, 4]).cast(pl.Date)).write_parquet(here / "b.parquet")
    with pytest.raises(
        ValueError, match=r"column when of b.parquet is a Date: turn it into numbers or text, or remove"
    ):
        datasets.table("b.parquet", "label")


def test_labels_that_are_numbers_stand_in_their_order(here):
    put(here / "a.csv", "x,label\n1,10\n2,9\n3,-1\n4,10\n")
    assert datasets.table("a.csv", "label").labels.tolist() == [-1, 9, 10]
    put(here / "a.csv", "x,label\n1,10\n2,9\n3,0.5\n")
    assert datasets.table("a.csv", "label").labels.tolist() == [0.5, 9, 10]
    # seen red: labels as text, 10 before 9


HOLES = "a,job,b,label\n1,x,1,u\n?,y,2,v\n3,,4,u\n8,x,NA,v\n"


@pytest.mark.parametrize(
    ("settings", "X", "y"),
    [  # a, job "(missing)" (imputed), x, y, b
        (dict(missing="impute"), [[1, 0, 1, 0, 1], [4, 0, 0, 1, 2], [3, 1, 0, 0, 4], [8, 0, 1, 0, 7 / 3]], "uvuv"),
        (dict(missing="drop"), [[1, 1]], "u"),
        (dict(preprocessing="paper"), [[1, 1, 0, 1], [-1, 0, 1, 2], [3, 0, 0, 4], [8, 1, 0, -1]], "uvuv"),
    ],
)
def test_missing_values_by_hand(here, settings, X, y):
    rows = HOLES + ("5,x,3,v\n" if settings.get("missing") == "drop" else "")
    X, y = (X, y) if len(y) > 1 else ([[1, 1, 1], [5, 1, 3]], "uv")
    env = datasets.table(put(here / "a.csv", rows), "label", **{"preprocessing": "raw"} | settings)
    X = np.array(X, dtype=float)
    if settings.get("preprocessing") == "paper":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    assert_allclose(env.X, X, rtol=1e-15)
    assert "".join(env.labels[env.y]) == y
    # seen red: the mean of all columns; `?` as a level


@given(
    rows=st.lists(
        st.tuples(
            st.floats(-1e6, 1e6).map(lambda x: x + 0.0),
            st.sampled_from(["red", "green", 'a "quoted", one', "ü;ö"]),
            st.booleans(),
            st.sampled_from("xyz"),
        ),
        min_size=2,
        max_size=8,
    ),
    separator=st.sampled_from(",;\t|"),
)
def test_any_table_is_read_as_it_was_written(rows, separator, tmp_path_factory):
    names = ["number", "text", "flag", "label"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    path = tmp_path_factory.getbasetemp() / "any.csv"
    frame.write_csv(path, separator=separator)
    levels = sorted({row[1] for row in rows})
    slow = [[row[0], *[float(row[1] == level) for level in levels], float(row[2])] for row in rows]
    if len({row[3] for row in rows}) == 1:
        with pytest.raises(ValueError, match="one class only"):
            datasets.table(path, "label", "raw")
    elif len({tuple(row) for row in slow}) == 1:
        with pytest.raises(ValueError, match="constant"):
            datasets.table(path, "label", "raw")
    else:
        env = datasets.table(path, "label", "raw")
        assert env.X.tolist() == slow
        assert env.labels[env.y].tolist() == [row[3] for row in rows]


# What is refused


def many(n, value="{i}"):
    return "x,text,label\n" + "".join(f"{i},{value.format(i=i)},{'ab'[i % 2]}\n" for i in range(n))


NUMBERS = "".join(f"{i / 4},{'ab'[i % 2]}\n" for i in range(24))
REFUSED = {
    "nowhere.csv": (None, "no file nowhere.csv"),
    "empty.csv": ("", "empty.csv is empty"),
    "header.csv": ("a,label\n", "header.csv has a header and no rows"),
    "one-row.csv": ("a,label\n1,x\n", "has one class only, 'x'"),
    "one-class.csv": ("a,label\n1,x\n2,x\n", "has one class only, 'x'"),
    "twice.csv": ("label,a,label\n1,2,3\n1,3,4\n", "twice.csv has 2 columns named 'label'"),
    "near.csv": ("a,labels\n1,x\n2,y\n", "no column of near.csv 'label': did you mean 'labels'?"),
    "alone.csv": ("label\nx\ny\n", "one column only"),
    "unnamed.csv": (",a,label\n1,2,x\n3,4,y\n", "column 1 of unnamed.csv has no name"),
    "no-header.csv": ("1,2,3\n4,5,6\n", "the first line of no-header.csv holds numbers"),
    "ragged.csv": ("a,b,label\n1,2,x\n1,2,3,y\n", "line 3 of ragged.csv has 4 values, and the line with names has 3"),
    "holes.csv": ("a,b,label\n1,,x\n,,y\n3,1,x\n", "3 values are missing in holes.csv (a: 1, b: 2): pass --missing"),
    "blank.csv": ("a,b,label\n1,,x\n2,,y\n", "no value at all in b"),
    "no-label.csv": ("a,label\n1,x\n2,\n3,y\n", "1 labels are missing in label"),
    "constant.csv": ("a,b,label\n1,u,x\n1,u,y\n", "every column of constant.csv besides the target is constant"),
    "infinite.csv": ("a,b,label\n1,2,x\n2,inf,y\n", "column b of infinite.csv has inf in row 2 (1 such values)"),
    "decimal.csv": ("a;label\n1,5;x\n2,5;y\n", "column a of decimal.csv holds numbers with commas, such as '1,5'"),
    "levels.csv": (many(150, "name {i}"), "column text of levels.csv has 150 distinct texts, such as 'name 0'"),
    "stray.csv": (
        f"x,label\n{NUMBERS}oops,a\n",
        "column x of stray.csv holds numbers but for 1 of 25 values, such as 'oops' in row 25: correct them",
    ),
    "thousands.csv": (f'x,label\n"1,000",a\n{NUMBERS}', "but for 1 of 25 values, such as '1,000' in row 1"),
    "stray-label.csv": (
        "x,label\n" + "".join(f"{i % 3},{i}\n" for i in range(60)) + "1,?!\n\n2,\n",
        "column label of stray-label.csv holds numbers but for 1 of 61 values, such as '?!' in row 61",
    ),
    "latin1.csv": (
        "a,label\n1,x\n2,ä\n".encode("latin-1"),
        "must be text in UTF-8, and it holds the byte 0xe4 in line 3",
    ),
    "binary.csv": (b"\x00\xff\xfe" * 50, "must be text in UTF-8, and it holds zero bytes"),
    "false.parquet": ("a,label\n1,x\n", "cannot read false.parquet as a table"),
    "a.xlsx": ("PK", "a.xlsx must be a CSV"),
    "openml:abc": (None, "OpenML data sets are numbered"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_tables_are_one_line_and_leave_nothing(dither, here, name):
    text, says = REFUSED[name]
    if text is not None:
        put(here / name, text)
    code, out, err = dither("compare", "LinFP", "--data", name, "--target", "label", *QUICK)
    assert (code, out) == (2, "")
    assert err.startswith("dither: ")
    assert says in err
    assert err.count("\n") == 1
    assert [path.name for path in here.iterdir()] == ([name] if text is not None else [])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--data", "a.csv"), "name the column of labels (target=, or --target): a.csv has x, text, label"),
        (
            ("--data", "a.csv", "--target", "x"),
            "the target x of a.csv has 60 distinct numbers: it looks like a regress",
        ),
        (
            ("--data", "a.csv", "--target", "label", "--missing", "imput"),
            "missing values 'imput': did you mean 'impute'",
        ),
        (("--data", "a.csv", "--target", "label", "--preprocessing", "paper2"), "did you mean 'paper'?"),
        (("--data", "a.csv", "--target", "label", "--env", "linear"), "leave out --env linear"),
        (("--data", "a.csv", "--target", "label", "--dim", 3), "no setting of the environment table 'dim'"),
        (("--env", "table"), "name the table"),
        (("--target", "label"), "no setting of the environment linear 'target'"),
        (("--env", "shuttle", "--target", "label"), "no setting of the environment shuttle 'target'"),
        (("--data", "openml:9"), "cannot load OpenML 9"),
        (("--data", "9"), "cannot load OpenML 9"),
    ],
)
def test_bad_settings_are_one_line_and_leave_nothing(dither, here, monkeypatch, arguments, says):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(here / "cache"))
    (here / "cache").mkdir()
    put(here / "a.csv", many(60, "t"))
    code, out, err = dither("compare", "LinFP", *arguments, *QUICK)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in here.iterdir()) == ["a.csv", "cache"]


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        ([*range(38), "two", "three"], None),  # 5 %
        ([*range(37), "two", "three", "four"], 40),  # more
        ([*range(20), "two"], None),
        ([*range(19), "two"] * 2, 20),  # 20 distinct values, 5 % of them: levels
        ([*range(10), "two", *range(10)] * 2, 11),
        ([*range(38), "", "", "", "two", "three"], None),  # of those that are present
        ([*range(37), "two", "three", "four", *[""] * 30], 41),
        ([*range(20)] * 10 + ["two", "three", "four"], None),  # of the values, not of the distinct ones
    ],
)
def test_numbers_but_for_a_few_words_are_no_text(here, values, levels):
    put(here / "a.csv", "x,y,label\n" + "".join(f"{value},1.5,{'ab'[i % 2]}\n" for i, value in enumerate(values)))
    if levels is None:
        row = values.index("two") + 1
        with pytest.raises(
            ValueError, match=rf"column x of a.csv holds numbers but for .* such as 'two' in row {row}: "
        ):
            datasets.table("a.csv", "label")
    else:
        assert datasets.table("a.csv", "label", "raw", "impute").X.shape == (len(values), levels + 1)
    # seen red: without the rule; distinct values for values; missing ones counted; the row of the first number


def test_a_thousand_names_are_no_classes(here):
    put(here / "a.csv", "x,label\n" + "".join(f"{i},n{i}\n" for i in range(1001)))
    with pytest.raises(ValueError, match=r"1,001 classes in 1,001 rows: it looks like an identifier"):
        datasets.table("a.csv", "label")


@pytest.mark.parametrize("package", ["polars", "sklearn.datasets"])
def test_missing_packages_are_named(here, monkeypatch, package):
    put(here / "a.csv", many(4))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"dither\[experiments\]"):
        datasets.table("a.csv" if package == "polars" else "openml:1", "label")


# What a result is known by


def classes(n, *, turn=0):
    rng = np.random.default_rng(0)
    y = (np.arange(n) + turn) % 3
    X = np.eye(3)[y] + 0.1 * rng.normal(size=(n, 3))
    return "a,b,c,label\n" + "".join(",".join(map(str, [*x, f"kind {k}"])) + "\n" for x, k in zip(X, y, strict=True))


def test_compare_a_table(dither, here):
    put(here / "my.csv", classes(30))
    code, _, err = dither(
        "compare", "LinFP", "Greedy", "--data", "my.csv", "--target", "label", "--rounds", 90, *QUICK[2:]
    )
    assert code == 0, err
    table = pl.read_csv(here / "results" / "compare.csv")
    assert table["algorithm"].to_list() == ["LinFP", "Greedy"]
    assert table["panel"][0].startswith("table, data=my.csv, target=label, checksum=")
    (here / "my.csv").unlink()
    environments._built.cache_clear()
    assert dither("report", "results", "-o", "report.html")[0] == 0  # a report needs results alone
    # seen red: `kappas` building the environment


def test_tables_have_an_intercept_and_what_was_stored_before_has_none(here):
    """Seen red with the default of a function in the place of what an old description meant."""
    put(here / "my.csv", classes(30))
    table = dict(data="my.csv", target="label", checksum=datasets.fingerprint("my.csv"))
    before = {"name": "table", **table, "preprocessing": "standard", "missing": "refuse"}
    for settings, intercept in [({}, True), ({"intercept": True}, True), ({"intercept": False}, False)]:
        env = environments.describe("table", **table, **settings)
        assert env == before | ({"intercept": True} if intercept else {})
        X = environments.build(env).X
        assert X.shape[1] == 3 + intercept
        assert_array_equal(X[:, 3:], 1)
        name = figures.adhoc(env, ["Greedy"], rounds=20, runs=2).panels[0].name
        assert name.endswith("T=20" if intercept else "intercept=False, T=20")
    assert_array_equal(environments.build(before).X, X)
    for name, setting in [("table", "preprocessing"), ("digits", "scale"), ("shuttle", "preprocessing")]:
        more = table if name == "table" else {}
        env = environments.describe(name, **more, **{setting: "unit"})
        assert "intercept" not in env
        assert environments.described(env | {"intercept": False}) == env
        assert environments.described(env | {"intercept": True}) == env | {"intercept": True}
        panel = figures.adhoc(env, ["Greedy"], rounds=20, runs=2).panels[0].name
        assert "intercept" not in panel
    with pytest.raises(ValueError, match="intercept must be True or False, got 3"):
        environments.describe("shuttle", intercept=3)


def test_figures_of_data_sets_are_the_cells_that_they_always_were():
    """Their content has no word of an intercept, which would be another key. Seen red without `intercept = false`."""
    every = [panel for figure in figures.FIGURES.values() for panel in figure.panels]
    panels = [panel for panel in every if panel.env["name"] in datasets.SOURCES]
    assert len(panels) == 18
    for panel in panels:
        assert panel.env == {"name": panel.env["name"], "preprocessing": panel.env["preprocessing"]}
    assert of_panel(figures.find("fig3-neural").panel("shuttle"), seed=0)["DeepFP"].key == "02eb8c04c1ce5133"


def test_changed_data_have_results_of_their_own(here):
    def computed(preprocessing="standard"):
        env = environments.describe("table", data="my.csv", target="label", preprocessing=preprocessing)
        figure = figures.adhoc(env, ["Greedy"], rounds=20, runs=2)
        return run.reproduce(figure, out=here / "out"), env["checksum"]

    put(here / "my.csv", classes(30))
    new, first = computed()
    assert new == 1
    os.utime(here / "my.csv", (0, 0))
    assert computed() == (0, first)
    assert computed("unit") == (1, first)
    put(here / "my.csv", classes(30, turn=1))
    new, second = computed()
    assert new == 1
    assert first != second
    put(here / "my.csv", classes(30))
    assert computed() == (0, first)
    # seen red: the checksum left out of the description


def test_data_that_change_under_way_are_refused(here):
    put(here / "my.csv", classes(31))
    env = environments.describe("table", data="my.csv", target="label")
    put(here / "my.csv", classes(33))
    with pytest.raises(ValueError, match=r"my.csv has changed: its checksum is \w{16} and not \w{16}"):
        environments.build(env)


def test_compare_any_table_of_openml(dither, here, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(here / "cache"))
    columns = {"size": None, "colour": ["red", "blue", "never"], "kind": ["k1", "k2"]}
    rows = [["1.5", "red", "k1"], ["2", "blue", "k2"], ["-3", "red", "k2"], ["4", "?", "k1"]]
    openml_cache.write(here / "cache", 77, columns, rows, target="kind")
    code, _, err = dither("compare", "LinFP", "--data", "openml:77", *QUICK)
    assert (code, "1 values are missing in openml:77 (colour: 1)" in err) == (2, True)
    code, out, err = dither("compare", "LinFP", "--data", "openml:77", "--missing", "impute", *QUICK)
    assert code == 0, err
    assert "table, data=openml:77, missing=impute, checksum=" in " ".join(out.split())
    env = datasets.table("77", None, "raw", "impute")  # (missing), blue, red after size
    assert_array_equal(env.X, [[1.5, 0, 0, 1], [2, 0, 1, 0], [-3, 0, 0, 1], [4, 1, 0, 0]])
    assert env.labels[env.y].tolist() == ["k1", "k2", "k2", "k1"]
    other = datasets.table("77", "colour", "raw", "drop")
    assert other.labels.tolist() == ["blue", "red"]
    assert_array_equal(other.X, [[1.5, 1, 0], [2, 0, 1], [-3, 0, 1]])


# The data sets


def test_compare_on_a_data_set(dither, here, data_folder, monkeypatch):
    monkeypatch.setenv("DITHER_DATA", str(data_folder))
    code, out, err = dither("compare", "LinFP", "Greedy", "--env", "mushroom", "--preprocessing", "unit", *QUICK)
    assert code == 0, err
    assert "mushroom, preprocessing=unit, T=20, round 20" in " ".join(out.split())
    asked = json.loads(next((here / "results" / "asked").glob("*.json")).read_text())
    assert asked["figure"]["panels"][0]["env"] == {"name": "mushroom", "preprocessing": "unit"}  # not where it lies
    monkeypatch.setenv("DITHER_DATA", str(here))
    code, out, err = dither("compare", "LinFP", "--env", "isolet", *QUICK, "--out", "other")
    assert (code, out, err.count("\n"), (here / "other").exists()) == (2, "", 1, False)
    assert f"no file {here / 'isolet' / 'isolet_all_int16.npz'}" in err


def test_the_size_of_a_data_set_is_known_without_it(monkeypatch):
    monkeypatch.setenv("DITHER_DATA", "/nowhere")
    found = environments.outline(environments.describe("mushroom"))
    assert (found.arms, found.dim, found.disjoint) == (2, 116, True)
    found = environments.outline(environments.describe("logistic", dim=7, norm=2.0))
    assert (found.arms, found.dim, found.disjoint, found.S) == (100, 7, False, 2.0)


def test_datasets_lists_all(dither, here, monkeypatch):
    monkeypatch.delenv("DITHER_DATA", raising=False)
    code, out, err = dither("datasets")
    assert code == 0, err
    for source in datasets.SOURCES.values():
        line = next(line for line in out.splitlines() if line.split()[:2] == [source.name, f"{source.rows:,}"])
        assert source.licence in line
        assert line.rstrip().endswith(f"OpenML {source.openml}")
        assert f"{source.name}: {source.citation}. {source.url}\n" in out
    (here / "mushroom").mkdir()
    put(here / "mushroom" / "agaricus-lepiota.data", "")
    text = " ".join(dither("datasets", "--folder", here)[1].split())
    assert "mushroom 8,124 22, one-hot 116 2 CC BY 4.0 the folder" in text
    assert text.count("not in the folder") == 4
    assert str(here) in text
    assert dither("datasets", "--folder", "nowhere")[2].startswith("dither: no folder nowhere")
