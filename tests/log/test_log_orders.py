"""One order for the features of a log whose parts say the same names in other orders.

The rule is that of a `Bandit`: the first names are the columns, other orders are put into that order, and rows without
names go by place. `TRUTH` has the features of all rows in the order of `NAMES`; a part may hold them in another order.
"""

import itertools
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import log, ope
from dither.log import schema, storage
from dither.log.sources import LogSource

NAMES = ("good", "bad", "old")
OTHER = ("old", "good", "bad")
N, K = 60, 4
rng = np.random.default_rng(7)
TRUTH = rng.normal(size=(N, K, 3))
ARM = rng.integers(K, size=N)
REWARD = TRUTH[np.arange(N), ARM, 0]  # the value of "good"
START = datetime(2026, 3, 1, tzinfo=UTC)


def decisions(rows, names=NAMES):
    """Some of the rows, as a part of a log has them, with their features in the order of these names."""
    order = [NAMES.index(name) for name in names]
    features = schema.lists("features", [np.ascontiguousarray(x[:, order]) for x in TRUTH[rows]], "rows")
    numbers = np.arange(N)[rows]
    columns = {
        "id": [f"d{i}" for i in numbers],
        "time": [START + timedelta(hours=int(i)) for i in numbers],
        "K": [K] * len(numbers),
        "arm": ARM[rows],
        "propensity": [1 / K] * len(numbers),
        "propensity_kind": ["exact"] * len(numbers),
    }
    return pl.DataFrame(columns, schema_overrides=schema.dtypes(columns)).with_columns(features)


def rewards(rows):
    numbers = np.arange(N)[rows]
    numbered = [(i, f"d{n}", None, REWARD[n], START, False) for i, n in enumerate(numbers)]
    return pl.DataFrame(numbered, schema=schema.dtypes(schema.EVENT), orient="row")


def part(folder, first, rows, names):
    """A part with rows in the order of these names; None: without names, in the order of `NAMES`."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {"rewards": "sum", "names": None if names is None else list(names)}
    storage.add_part(folder, "decisions", first, decisions(rows, names or NAMES), about)


def journal(folder):
    folder.mkdir(parents=True, exist_ok=True)
    return storage.FolderAppender(folder, "decisions", storage.folder_rows(folder, "decisions"))


def enter(rows_of, rows, names):
    rows_of.add(decisions(rows, names or NAMES), {"rewards": "sum", "names": None if names is None else list(names)})


def paid(folder, rows=slice(0, N)):
    storage.add_part(folder, "rewards", 0, rewards(rows), {"rewards": "sum"})
    return folder


def in_parts(folder, orders):
    """A folder of parts, a third of the rows each, in these orders."""
    for i, names in enumerate(orders):
        part(folder, 20 * i, slice(20 * i, 20 * i + 20), names)
    return paid(folder)


def in_journals(folder, orders):
    """The same as records of one journal."""
    rows_of = journal(folder)
    for i, names in enumerate(orders):
        enter(rows_of, slice(20 * i, 20 * i + 20), names)
    rows_of.let_go()
    return paid(folder)


def in_both(folder, orders):
    """The first third as a part, the rest in a journal."""
    part(folder, 0, slice(0, 20), orders[0])
    rows_of = journal(folder)
    for i, names in enumerate(orders[1:], 1):
        enter(rows_of, slice(20 * i, 20 * i + 20), names)
    rows_of.let_go()
    return paid(folder)


def compacted(folder, orders):
    """A journal that has become a part."""
    rows_of = journal(folder)
    for i, names in enumerate(orders):
        enter(rows_of, slice(20 * i, 20 * i + 20), names)
    rows_of.compact()
    return paid(folder)


def continued(folder, orders):
    """A journal that a writer left behind becomes a part of the next writer, who adds the last third."""
    rows_of = journal(folder)
    for i, names in enumerate(orders[:2]):
        enter(rows_of, slice(20 * i, 20 * i + 20), names)
    rows_of.let_go()
    rows_of = journal(folder)
    enter(rows_of, slice(40, 60), orders[2])
    rows_of.let_go()
    return paid(folder)


def in_days(folder, orders):
    """A folder for each day, as `Ledger.export` writes them."""
    for i, names in enumerate(orders):
        day = folder / f"2026-03-0{i + 1}"
        part(day, 0, slice(20 * i, 20 * i + 20), names)
        paid(day, slice(20 * i, 20 * i + 20))
    return folder


def in_files(folder, orders):
    """Single files, as `Logged.write` writes them."""
    for i, names in enumerate(orders):
        rows = slice(20 * i, 20 * i + 20)
        frame = decisions(rows, names).with_columns(reward=pl.Series(REWARD[rows]))
        log.Logged(frame, names=tuple(names)).write(folder / f"{i}.parquet")
    return [folder / f"{i}.parquet" for i in range(3)]


FOLDERS = [in_parts, in_journals, in_both, compacted, continued]
SEVERAL = [in_days, in_files]
MIXED = [(NAMES, OTHER, NAMES), (OTHER, NAMES, OTHER), (NAMES, NAMES, OTHER)]


def truth(names):
    """The features of all rows in the order of these names."""
    return TRUTH[..., [NAMES.index(name) for name in names]]


def told_right(logged, rows=slice(0, N)):
    """Whether all views of the features are in the order that `names` tells."""
    X = truth(logged.names)[rows]
    assert_array_equal(logged.X, X)
    assert_array_equal(logged.x, X[np.arange(len(X)), ARM[rows]])
    assert_array_equal(logged.r, REWARD[rows])


@pytest.mark.parametrize("orders", MIXED)
@pytest.mark.parametrize("write", [*FOLDERS, *SEVERAL])
def test_every_row_has_its_features_in_the_order_that_names_tells(write, orders, tmp_path):
    source = write(tmp_path, orders)
    whole = log.read(source)
    assert set(whole.names) == set(NAMES)
    if write in FOLDERS:
        assert whole.names == orders[0]  # the first names are the columns, as for a bandit
    told_right(whole)
    # seen red: without `ordered` in `storage.FolderDecisions.slice` (parts), in `storage._read` (journals)
    at = 0
    for piece in log.batches(source, rows=7):
        assert piece.names == whole.names
        told_right(piece, slice(at, at + len(piece)))
        at += len(piece)
    assert at == N
    streamed = list(LogSource(tmp_path).pieces({"features"}, rows=11).each)  # as `dither evaluate` reads it
    assert_array_equal(np.concatenate([piece.X for piece in streamed]), truth(streamed[0].names))


@pytest.mark.parametrize("write", FOLDERS)
def test_rows_without_names_go_by_place_beside_rows_with_names(write, tmp_path):
    for i, orders in enumerate(set(itertools.permutations([None, OTHER, OTHER]))):
        places = truth(OTHER).copy()
        for j, names in enumerate(orders):
            if names is None:
                places[20 * j : 20 * j + 20] = TRUTH[20 * j : 20 * j + 20]  # as they are
        logged = log.read(write(tmp_path / str(i), orders))
        assert logged.names == OTHER
        assert_array_equal(logged.X, places)


def test_a_day_without_names_goes_by_place_too(tmp_path):
    source = in_days(tmp_path, [None, OTHER, NAMES])
    whole, pieces = log.read(source), list(log.batches(source, rows=15))
    order = [whole.names.index(name) for name in OTHER]  # what stands at a place is called as in the first named day
    assert_array_equal(whole.X[:20][..., order], TRUTH[:20])
    assert_array_equal(whole.X[20:], truth(whole.names)[20:])
    assert_array_equal(np.concatenate([piece.X for piece in pieces]), whole.X)
    # seen red: refused, "the features of ... have names and those of ... have none"
    with pytest.raises(ValueError, match=r"have names and those of .* have none"):
        log.read([tmp_path / "2026-03-01", tmp_path / "2026-03-02"])  # named one by one they are logs of their own


@pytest.mark.parametrize("write", FOLDERS)
def test_other_names_are_refused_with_the_rule_the_names_and_the_cure(write, tmp_path):
    other = ("old", "new", "bad")
    about = {"rewards": "sum", "names": list(other)}
    write(tmp_path, [NAMES, OTHER, NAMES])
    rows_of = journal(tmp_path)
    rows_of.add(decisions(slice(0, 5)), about)
    rows_of.let_go()
    for read in (log.read, lambda source: list(log.batches(source, rows=10))):
        with pytest.raises(ValueError, match=r"must have the same names.*'good', 'new' differ.*folder of its own"):
            read(tmp_path)


def test_rows_without_names_must_be_as_wide_as_the_names(tmp_path):
    part(tmp_path / "log", 0, slice(0, 20), OTHER)
    wide = decisions(slice(20, 40)).with_columns(schema.lists("features", [np.ones((K, 4)) for _ in range(20)], "rows"))
    storage.add_part(tmp_path / "log", "decisions", 20, wide, {"rewards": "sum", "names": None})
    paid(tmp_path / "log")
    with pytest.raises(ValueError, match="row 20 has features of another width than 3"):
        log.read(tmp_path / "log").x  # noqa: B018  a property that raises
    named = pl.Series("features", [[[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0, 4.0]]])
    with pytest.raises(ValueError, match=r"rows of 4 features cannot have the 3 names"):
        schema.placed(named, NAMES, OTHER)


@pytest.mark.parametrize("write", [in_parts, in_both, in_days])
def test_bandits_and_estimates_learn_by_name(write, tmp_path):
    source = write(tmp_path, [NAMES, OTHER, NAMES])
    fresh = dither.LinFP(dim=3, lam=1e-6, seed=0)
    log.warm_start(fresh, source, chunk=25)
    wanted = [float(name == "good") for name in fresh.columns]
    assert_allclose(fresh.theta, wanted, atol=1e-5)  # seen red: [.4, .3, .2]
    before = dither.LinFP(dim=3, lam=1e-6, seed=0)
    before.update(pl.DataFrame({"bad": [0.0], "old": [0.0], "good": [0.0]}), [0.0])
    log.warm_start(before, source)
    assert_allclose(before.theta, [0, 0, 1], atol=1e-5)
    model = ope.evaluate(source, ["uniform", "arm:1"], ["dm"], model="ridge")
    plain = decisions(slice(0, N)).with_columns(reward=pl.Series(REWARD))
    wanted = ope.evaluate(log.read(plain), ["uniform", "arm:1"], ["dm"], model="ridge")
    for one, other in zip(model.estimates.values(), wanted.estimates.values(), strict=True):
        assert_allclose(one.value, other.value, rtol=1e-9)


def test_two_runs_that_saw_the_columns_in_other_orders_make_one_log(tmp_path):
    for i, names in enumerate([("good", "bad"), ("bad", "good")]):
        bandit = dither.LinFP(dim=2, seed=i)
        with log.Log(tmp_path, bandit=bandit) as rows:
            for j in range(100):
                drawn = np.random.default_rng([i, j]).normal(size=(2, 3))
                frame = pl.DataFrame(dict(zip(names, drawn, strict=True)))
                recorded = rows.decide(frame, id=f"{i} {j}")
                rows.reward(recorded.id, frame["good"][recorded.arm])
    fresh = dither.LinFP(dim=2, lam=1e-6, seed=0)
    log.warm_start(fresh, tmp_path)
    assert fresh.columns == ("good", "bad")
    assert_allclose(fresh.theta, [1, 0], atol=1e-6)  # seen red: [.5, .5]
