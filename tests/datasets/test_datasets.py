"""The data sets against published counts, against each other (folder, OpenML's cache), and damaged in every way."""

import gzip
import io
import shutil
import sys
from urllib.error import URLError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import dither
import openml_cache
from dither import datasets, envs
from dither.datasets import openml, originals
from dither.datasets.data_sets import ISOLET, SOURCES
from dither.envs.classification import scaled

COUNTS = {  # rows of each class, as the data sets' own descriptions state them
    "shuttle": [45_586, 50, 171, 8903, 3267, 10, 13],
    "isolet": [300] * 5 + [298] + [300] * 6 + [299] + [300] * 13,
    "mushroom": [4208, 3916],
    "mnist": [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958],
    "fashion-mnist": [7000] * 10,
}


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def closed(*arguments, **settings):
        raise URLError("no network in tests")

    monkeypatch.delenv("DITHER_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets._openml.urlopen", closed)
    monkeypatch.setattr("sklearn.datasets._openml.time.sleep", lambda seconds: None)
    openml._fetch.cache_clear()


@pytest.fixture
def mushroom(data_folder, tmp_path):
    """A folder of one's own with the mushrooms."""
    shutil.copytree(data_folder / "mushroom", tmp_path / "mushroom")
    (tmp_path / "mushroom").chmod(0o755)
    (tmp_path / "mushroom" / "agaricus-lepiota.data").chmod(0o644)
    return tmp_path


# The data


@pytest.mark.parametrize("name", SOURCES)
def test_the_data_are_those_that_were_published(data_folder, name):
    data, source = datasets.load(name, folder=data_folder), SOURCES[name]
    labels, counts = np.unique(data.y, return_counts=True)
    assert counts.tolist() == COUNTS[name]
    assert (data.X.shape, len(labels)) == ((source.rows, source.dim), source.arms)
    assert (len(data.columns), len(set(data.columns))) == (source.dim, source.dim)
    assert data.digest() == source.digest  # by which OpenML's copy is known
    assert (data.licence, data.citation, data.openml) == (source.licence, source.citation, source.openml)
    assert data.origin == str(data_folder / name)
    # seen red: the labels of the test images first


def test_rows_are_those_of_the_files(data_folder, monkeypatch):
    monkeypatch.setenv("DITHER_DATA", str(data_folder))
    text = (data_folder / "shuttle" / "shuttle.trn").read_text().splitlines()
    text += (data_folder / "shuttle" / "shuttle.tst").read_text().splitlines()
    data = datasets.load("shuttle")
    for i in (0, 1, 43_499, 43_500, 57_999):
        assert [*data.X[i].tolist(), int(data.y[i])] == [int(number) for number in text[i].split()]
    mushroom, lines = datasets.load("mushroom"), (data_folder / "mushroom" / "agaricus-lepiota.data").read_text()
    assert ["".join([y, *x]) for y, x in zip(mushroom.y, mushroom.X, strict=True)] == lines.replace(",", "").split()
    raw = gzip.decompress((data_folder / "mnist" / "t10k-images-idx3-ubyte.gz").read_bytes())
    images = datasets.load("mnist")
    assert images.shape == (28, 28)
    assert images.X.dtype == np.uint8
    assert bytes(images.X[60_003]) == raw[16 + 3 * 784 : 16 + 4 * 784]


def test_isolet_as_uci_has_it_is_the_same(data_folder, tmp_path):
    with np.load(data_folder / "isolet" / "isolet_all_int16.npz") as arrays:
        X, y, group = arrays["X_times_10000"], arrays["y"], arrays["group"]
    (tmp_path / "isolet").mkdir()
    text = np.array([f"{x / 1e4:.4f}" for x in range(-10_000, 10_001)])
    text[10_000] = "-0.0000"
    for name, part in zip(ISOLET, (group < 5, group == 5), strict=True):
        rows = zip(text[X[part].astype(int) + 10_000].tolist(), y[part].tolist(), strict=True)
        (tmp_path / "isolet" / name).write_text("".join(f"{', '.join(row)}, {label}.\n" for row, label in rows))
    ours, packed = (datasets.load("isolet", folder=folder) for folder in (tmp_path, data_folder))
    assert_array_equal(ours.X, packed.X)  # and no warning
    assert_array_equal(ours.y, packed.y)
    assert ours.digest() == packed.digest()
    # seen red: 0.0 not added (-0 has other bytes)


def test_images_that_were_unpacked_are_the_same_files(data_folder, tmp_path):
    (tmp_path / "mnist").mkdir()
    for name in SOURCES["mnist"].files:
        content = gzip.decompress((data_folder / "mnist" / name).read_bytes())
        (tmp_path / "mnist" / name.removesuffix(".gz")).write_bytes(content)
    assert datasets.load("mnist", folder=tmp_path).digest() == SOURCES["mnist"].digest


# OpenML


def in_cache(home, data, *, target="class"):
    """The data set as OpenML has it, rows in another order."""
    source = SOURCES[data.name]
    if data.X.dtype.kind == "U":
        levels = {
            name: sorted({*column.tolist(), "z"} - {"?"}) for name, column in zip(data.columns, data.X.T, strict=True)
        }
    else:
        levels = dict.fromkeys(data.columns)
    order = np.random.default_rng(0).permutation(len(data.y))
    rows = [[*map(str, data.X[i].tolist()), str(data.y[i])] for i in order]
    classes = [str(label) for label in np.unique(data.y).tolist()]
    return openml_cache.write(home, source.openml, levels | {target: classes}, rows, target=target)


@pytest.mark.parametrize("name", ["shuttle", "mushroom"])
def test_openml_gives_the_same_bandit(data_folder, tmp_path, name):
    here = datasets.load(name, folder=data_folder)
    in_cache(tmp_path, here)
    there = datasets.load(name, cache=tmp_path)  # and no warning
    assert there.origin == f"OpenML {SOURCES[name].openml}"
    assert (there.X.dtype, there.y.dtype) == (here.X.dtype, here.y.dtype)
    assert not np.array_equal(there.X, here.X)
    one, two = datasets.environment(name, folder=data_folder), datasets.environment(name, cache=tmp_path)
    assert_array_equal(one.X, two.X)
    assert_array_equal(one.y, two.y)
    assert_array_equal(one.labels, two.labels)
    # seen red: rows in the order of the source


def test_other_rows_at_openml_are_warned_of(data_folder, tmp_path):
    data = datasets.load("mushroom", folder=data_folder)
    data.X[5, 2] = "n" if data.X[5, 2] != "n" else "y"
    in_cache(tmp_path, data)
    with pytest.warns(UserWarning, match="mushroom from OpenML 24 has other rows than the original files"):
        datasets.load("mushroom", cache=tmp_path)


def test_another_size_at_openml_is_refused(tmp_path):
    openml_cache.write(tmp_path, 24, {"a": ["x"], "class": ["e", "p"]}, [["x", "e"], ["?", "p"]], target="class")
    with pytest.raises(
        ValueError, match="mushroom must have 8124 rows, 22 columns and 2 classes; OpenML 24 has 2, 1 and 2"
    ):
        datasets.load("mushroom", cache=tmp_path)
    openml_cache.write(tmp_path, 300, {"a": None}, [["1"]], target=None)
    with pytest.raises(ValueError, match="OpenML 300 states no column of labels"):
        datasets.load("isolet", cache=tmp_path)


def test_no_network(tmp_path):
    with pytest.raises(
        OSError, match=r"cannot load OpenML 40685: .*cache .*does not have all of it.*no network.*DITHER_DATA"
    ):
        datasets.load("shuttle", cache=tmp_path)


def test_a_damaged_cache(data_folder, tmp_path):
    path = in_cache(tmp_path, datasets.load("mushroom", folder=data_folder))
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(OSError, match=r"OpenML 24.*no network"):  # the damaged file was thrown away
        datasets.load("mushroom", cache=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot use the cache .*file.* mend or remove it"):
        datasets.load("mushroom", cache=tmp_path / "file")


def test_without_scikit_learn(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r"scikit-learn.*dither\[experiments\]"):
        datasets.load("shuttle", cache=tmp_path)


# Folders


def test_an_unknown_name():
    with pytest.raises(LookupError, match="no data set 'mushrooms': did you mean 'mushroom'"):
        datasets.load("mushrooms")


def test_a_folder_that_is_not_there(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere: name the one that has shuttle/"):
        datasets.load("shuttle", folder=tmp_path / "nowhere")
    monkeypatch.setenv("DITHER_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="of the environment variable DITHER_DATA"):
        datasets.load("shuttle")


@pytest.mark.parametrize("name", SOURCES)
def test_a_missing_file_is_named_with_all_that_is_needed(tmp_path, name):
    with pytest.raises(FileNotFoundError) as error:
        datasets.load(name, folder=tmp_path)
    says, source = str(error.value), SOURCES[name]
    assert says.startswith(f"no file {tmp_path / name / next(iter(source.files))}")
    assert all(part in says for part in (*source.files, source.url, f"OpenML {source.openml}", "DITHER_DATA"))


def test_another_content_is_refused(mushroom):
    path = mushroom / "mushroom" / "agaricus-lepiota.data"
    path.write_text(path.read_text().replace("p,x,s,n,t", "e,x,s,n,t", 1))
    wanted = SOURCES["mushroom"].files[path.name]
    with pytest.raises(
        ValueError,
        match=rf"agaricus-lepiota.data is damaged .*SHA-256 [0-9a-f]{{64}}, expected {wanted}.*get it again from",
    ):
        datasets.load("mushroom", folder=mushroom)
    # seen red: no comparison of checksums


@pytest.mark.parametrize("cut", [0, 5, 3000])
def test_a_truncated_download_is_refused(data_folder, tmp_path, cut):
    (tmp_path / "mnist").mkdir()
    for name in SOURCES["mnist"].files:
        (tmp_path / "mnist" / name).write_bytes((data_folder / "mnist" / name).read_bytes())
    path = tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ValueError, match=r"t10k-labels-idx1-ubyte.gz is damaged or not the original"):
        datasets.load("mnist", folder=tmp_path)


def test_nothing_is_unpickled():
    file = io.BytesIO()
    np.savez(file, X_times_10000=np.array([{}], dtype=object), y=np.zeros(1))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        originals.READERS["isolet"]({"isolet_all_int16.npz": file.getvalue()})


@pytest.mark.parametrize("text", ["1 2 3\n1 2\n", "", "a b c\n", "é"])
def test_a_table_that_is_none(tmp_path, text):
    for name in ISOLET:
        (tmp_path / "isolet").mkdir(exist_ok=True)
        (tmp_path / "isolet" / name).write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"isolet is damaged or not the original|isolet must have 7797 rows"):
        datasets.load("isolet", folder=tmp_path)


# Preprocessing


def test_mushroom_is_one_hot_without_the_question_mark(data_folder):
    data, env = datasets.load("mushroom", folder=data_folder), datasets.environment("mushroom", "raw", data_folder)
    seen = {(j, level) for row in data.X[::1].tolist() for j, level in enumerate(row)}
    assert (env.dim, env.arms) == (len(seen) - 1, 2) == (116, 2)
    assert np.unique(env.X).tolist() == [0, 1]
    assert np.bincount(env.X.sum(axis=1).astype(int))[21:].tolist() == [
        2480,
        8124 - 2480,
    ]  # stalk-root is unknown of 2480
    columns = [(j, level) for j, level in sorted(seen) if level != "?"]
    slow = [[float(row[j] == level) for j, level in columns] for row in data.X[data.order()][::500].tolist()]
    assert_array_equal(env.X[::500], slow)
    # seen red: `?` as a level


@pytest.mark.parametrize("preprocessing", datasets.PREPROCESSING)
def test_pipelines(data_folder, preprocessing):
    data, env = (
        datasets.load("shuttle", folder=data_folder),
        datasets.environment("shuttle", preprocessing, data_folder),
    )
    X = data.X[data.order()].astype(float)
    assert env.X.dtype == np.float64
    assert_array_equal(env.labels[env.y], data.y[data.order()])
    if preprocessing == "standard":
        assert_allclose(env.X[:, :-1], (X - X.mean(axis=0)) / X.std(axis=0), rtol=1e-9, atol=1e-12)
        assert_array_equal(env.X[:, -1], np.ones(len(X)))
        without = datasets.environment("shuttle", preprocessing, data_folder, intercept=False)
        assert_array_equal(without.X, env.X[:, :-1])
    elif preprocessing == "raw":
        assert_array_equal(env.X, X)
    else:
        assert_allclose(env.X, X / np.sqrt((X**2).sum(axis=1, keepdims=True)), rtol=1e-14)


def test_images_are_float32(data_folder):
    raw = datasets.environment("mnist", "raw", data_folder)
    assert raw.X.dtype == np.float32
    assert (raw.dim, raw.X.min(), raw.X.max()) == (784, 0, 1)
    out = np.empty((5, 784))
    run = raw.start(np.random.default_rng(0))
    labels = raw.fill(run, None, out)
    assert_array_equal(out, raw.X[run.order[:5]].astype(float))
    assert_array_equal(labels, raw.y[run.order[:5]])
    standard = datasets.environment("mnist", "standard", data_folder)
    X = datasets.load("mnist", folder=data_folder).X
    assert np.count_nonzero(X[:60_000].any(axis=0)) == 717  # as is known of the training images
    assert standard.X.dtype == np.float32
    assert standard.dim == np.count_nonzero(X.any(axis=0)) + 1  # and the intercept
    assert_allclose(standard.X[:, :-1:50].mean(axis=0, dtype=float), 0, atol=1e-6)


def test_an_unknown_preprocessing(data_folder):
    with pytest.raises(LookupError, match="no preprocessing 'units': did you mean 'unit'"):
        datasets.environment("shuttle", "units", data_folder)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from("ab")), min_size=1, max_size=12),
    st.randoms(),
)
def test_the_order_depends_on_the_rows_alone(rows, random):
    def data(rows):
        X = np.array([row[:2] for row in rows], dtype=np.int16)
        return datasets.Dataset("x", X, np.array([row[2] for row in rows]), ("a", "b"), "", "", 0, "", "")

    def ordered(rows):
        found = data(rows)
        order = found.order()
        assert sorted(order.tolist()) == list(range(len(rows)))
        return found.X[order].tolist(), found.y[order].tolist()

    other = random.sample(rows, len(rows))
    assert ordered(rows) == ordered(other)
    assert data(rows).digest() == data(other).digest()
    changed = [(*rows[0][:2], "c"), *rows[1:]]
    assert data(rows).digest() != data(changed).digest()
    # seen red: rows alike in X left in the order they came in


# Classification


def test_features_are_not_copied_and_float32_stays():
    for dtype in (np.float32, np.float64):
        X = np.random.default_rng(0).normal(size=(50, 3)).astype(dtype)
        env = envs.Classification(X, np.arange(50) % 2)
        assert env.X is X
    assert envs.Classification(X.astype(np.int8), np.arange(50) % 2).X.dtype == np.float64
    # seen red: float32 through `inputs.numbers`


@pytest.mark.parametrize("scale", ["standard", "unit"])
def test_blocks_and_dtypes_do_not_change_what_scaling_gives(scale, monkeypatch):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(101, 7)) * 10.0 ** rng.integers(-3, 4, size=7)).astype(np.float32)
    X[:, 2] = 0.1
    whole = scaled(X.astype(np.float64), scale)
    if scale == "standard":
        wide = np.delete(X.astype(np.float64), 2, axis=1)
        slow = (wide - wide.mean(axis=0)) / wide.std(axis=0)
    else:
        slow = [row / np.linalg.norm(row) for row in X.astype(np.float64)]
    assert_allclose(whole, slow, rtol=1e-10)
    monkeypatch.setattr("dither.envs.classification.NUMBERS_AT_ONCE", 64)
    assert_allclose(scaled(X.astype(np.float64), scale), whole, rtol=1e-13)
    slim = envs.Classification(X, np.arange(101) % 2, scale=scale, intercept=False).X
    assert slim.dtype == np.float32
    assert_allclose(slim, whole, rtol=1e-6)
    assert whole.shape[1] == (6 if scale == "standard" else 7)
    with pytest.raises(ValueError, match="got inf at row 90, column 1"):
        envs.Classification(
            np.where(np.arange(101)[:, None] + np.arange(7) == 91, np.inf, X)[:, :2], np.arange(101) % 2
        )
    # seen red: the mean of each block instead of all rows


def test_columns_that_hardly_vary_are_scaled_all_the_same():
    X = np.array([[0.0], [1e-170], [0.0], [1e-170]])
    assert_allclose(scaled(X, "standard"), [[-1], [1], [-1], [1]])
    # seen red: squares of the deviations themselves, sd = 0


@pytest.mark.parametrize("y", [[0.0, np.nan, 1.0], ["a", None, "b"], np.array(["a", np.nan, "b"], dtype=object)])
def test_labels_must_be_known(y):
    with pytest.raises(ValueError, match=r"y must hold a label for each row, got (nan|None) at row 1 \(1 such rows\)"):
        envs.Classification(np.eye(3), y)


def test_more_rounds_than_rows_pass_again(data_folder):
    env = datasets.environment("mushroom", "unit", data_folder)
    rows = env.start(np.random.default_rng(1)).next(3 * 8124).reshape(3, 8124)
    assert_array_equal(np.sort(rows, axis=1), np.tile(np.arange(8124), (3, 1)))
    small = envs.Classification(np.eye(4), ["a", "b", "a", "b"])
    r = dither.simulate(small, ["Greedy"], runs=2, rounds=60, record=range(1, 61))
    assert np.all(np.diff(r.regret[0], axis=-1)[:, 30:] == 0)  # four rows are learnt after some passes
