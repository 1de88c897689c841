"""`dither evaluate` on every format: what its reader takes, the command takes, and nothing is dropped."""

import inspect
import json
import re

import numpy as np
import polars as pl
import pytest

import dither as library
from dither import log
from dither.log.sources import FORMATS, LogSource


def row(out, policy, estimator):
    """value and mean weight of a line of the table."""
    line = next(line for line in out.splitlines() if line.split()[:2] == [policy, estimator])
    numbers = [float(x) for x in re.findall(r"-?\d+\.?\d*", line[line.index(estimator) :])]
    return numbers[0], numbers[-2]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("arm,reward,propensity\n" + "a,1,0.2\nb,0,0.2\n" * 20)
    return path


def test_the_number_of_arms_of_a_table(dither, table):
    code, out, err = dither("evaluate", table, "--format", "table", "--arms", 5, "--policy", "uniform")
    assert (code, err) == (0, "")
    assert row(out, "uniform", "ips") == (0.5, 1.0)  # seen red: 1.25 with a mean weight of 2.5
    code, _, err = dither("evaluate", table, "--format", "table", "--arms", 1, "--policy", "uniform")
    assert (code, "arms must be at least 2" in err) == (2, True)


def test_columns_of_the_users_own_stay_the_users(dither, table):
    pl.read_csv(table).with_columns(pl.lit(9).alias("K"), pl.lit("u").alias("id")).write_csv(table)
    code, out, err = dither("evaluate", table, "--format", "table", "--arms", 5, "--policy", "uniform")
    assert (code, err) == (0, "")
    assert row(out, "uniform", "ips") == (0.5, 1.0)  # seen red: K = 9
    pl.read_csv(table).with_columns(pl.Series("id", range(40)) % 4, pl.lit(0.5).alias("w")).write_csv(table)
    more = ("--policy", "column:w", "--cluster", "id")
    code, out, err = dither("evaluate", table, "--format", "table", "--arms", 2, *more)
    assert (code, err) == (0, "")
    assert "4 clusters" in out
    code, _, err = dither("evaluate", table, "--format", "table", "--policy", "uniform", "--with", "id=id")
    assert (code, "id came before" in err) == (2, True)


def test_a_catalogue_stays_with_the_file(dither, tmp_path):
    shown = {"c": ["green", "red"] * 20, "r": [1.0, 0.0] * 20, "p": [0.5] * 40}
    log.from_columns(shown, arm="c", reward="r", propensity="p").write(tmp_path / "g.parquet")
    code, out, err = dither("evaluate", tmp_path / "g.parquet", "--policy", "arm:green")
    assert (code, err) == (0, "")  # seen red: no arm 'green': one of 0, 1
    assert row(out, "arm:green", "ips")[0] == 1
    _, out, _ = dither("evaluate", tmp_path / "g.parquet", "--policy", "uniform", "--arms", 4)
    assert row(out, "uniform", "ips") == (0.25, 0.5)
    code, _, err = dither("evaluate", tmp_path / "g.parquet", "--policy", "uniform", "--arms", 1)
    assert (code, "arms must be at least 2" in err) == (2, True)
    log.from_columns(shown, arm="c", reward="r", propensity="p", arms=["red", "green"]).write(tmp_path / "k.parquet")
    code, _, err = dither("evaluate", tmp_path / "k.parquet", "--policy", "uniform", "--arms", 4)
    assert (code, "how many arms were on offer: leave out --arms" in err) == (2, True)  # seen red: ignored


@pytest.fixture
def lines(tmp_path):
    """A log of --dsjson, with one line that is none, and a bandit that learnt from the others."""
    rng, made = np.random.default_rng(0), []
    for i in range(60):
        a = int(rng.integers(2))
        label = {"_label_cost": -float(a), "_label_probability": 0.5, "_label_Action": a + 1, "_labelIndex": a}
        actions = [{"red": 1}, {"blue": 1 + i % 3 / 10}]
        made.append(json.dumps(label | {"a": [1, 2], "p": [0.5, 0.5], "c": {"u": i % 2, "_multi": actions}}))
    path = tmp_path / "v.dsjson"
    path.write_text("\n".join(made))
    monday = log.dsjson(path, features=True)
    bandit = library.LinFP(dim=3, lam=1.0, seed=0)
    log.warm_start(bandit, monday)
    bandit.save(tmp_path / "b.npz")
    path.write_text("\n".join([*made, "{oops"]))
    return path


def test_options_of_a_format(dither, lines):
    ask = ("evaluate", lines, "--format", "dsjson", "--policy", "arm:2")
    code, _, err = dither(*ask)
    assert (code, "--with malformed=leave-out" in err) == (2, True)
    for value in ("malformed=leave-out", "malformed='leave out'"):  # the cure as the error writes it
        code, out, err = dither(*ask, "--with", value)
        assert (code, err, "left out: 1 (malformed)" in out) == (0, "", True)
        assert row(out, "arm:2", "snips")[0] == 1
    for more, words in [
        (("--with", "nonsense=1"), "no option of --format dsjson 'nonsense'"),
        (("--with", "malformed"), "write --with NAME=VALUE"),
        (("--with", "most=few"), "option most must be a whole number"),
        (("--with", "features=perhaps"), "option features must be true or false"),
        (("--with", "most=3", "--with", "most=4"), "given twice"),
        (("--arms", 2), "says itself how many arms were on offer: leave out --arms"),
        (("--arm", "x"), "leave out --arm"),
    ]:
        code, _, err = dither(*ask, *more)
        assert (code, words in err) == (2, True), err  # seen red: dropped


def test_features_are_read_where_they_are_asked_for(dither, lines):
    bandit = lines.parent / "b.npz"
    leave = ("--with", "malformed=leave-out")
    code, out, err = dither("evaluate", lines, "--format", "dsjson", "--policy", bandit, *leave)
    assert (code, err) == (0, "")  # seen red: the log has no column 'features'
    read = log.dsjson(lines, features=True, malformed="leave out")
    Q = library.load(bandit).propensities(read.X)
    q = Q[np.arange(60), read.a]
    assert row(out, "b", "snips")[0] == pytest.approx(np.sum(q * read.r) / q.sum(), abs=2e-3)
    code, out, err = dither("evaluate", lines, "--format", "dsjson", "--policy", "uniform", "--model", "ridge", *leave)
    assert (code, err) == (0, "")
    other = ("--with", "names=red,green,blue,u")
    code, _, err = dither("evaluate", lines, "--format", "dsjson", "--policy", bandit, *leave, *other)
    assert (code, "other features than the bandit learnt: 'green' differ" in err) == (2, True)


def test_the_number_of_actions_of_a_text(dither, tmp_path):
    path = tmp_path / "cb.dat"
    path.write_text("".join(f"{1 + i % 2}:{-(i % 2)}:0.25 | x:{i % 5}\n" for i in range(40)))
    for option in (("--arms", 4), ("--with", "K=4")):
        _, out, _ = dither("evaluate", path, "--format", "dat", "--policy", "uniform", *option)
        assert row(out, "uniform", "ips") == (0.5, 1.0)  # seen red: 1.0, of two arms
    code, _, err = dither("evaluate", path, "--format", "dat", "--policy", "uniform", "--with", "K=4", "--arms", 4)
    assert (code, "has --with for it: leave out --arms" in err) == (2, True)


def test_ids_of_clusters_are_text(dither, tmp_path):
    path = tmp_path / "t.csv"
    users = ["1.10", "1.1", "007", "7"]
    path.write_text(
        "arm,reward,propensity,K,user\n" + "".join(f"{i % 2},{i % 3},0.5,2,{users[i % 4]}\n" for i in range(80))
    )
    _, out, _ = dither("evaluate", path, "--policy", "uniform", "--cluster", "user")
    assert "4 clusters" in out  # seen red: 2


def test_the_table_of_formats_is_that_of_the_readers():
    readers = {"dither": log.read, "table": log.from_columns, "obd": log.open_bandit, "dsjson": log.dsjson}
    readers |= {
        "dat": log.vw_text,
        "criteo": log.criteo,
        "yahoo": log.yahoo,
        "kuairand": log.kuairand,
        "coba": log.coba,
    }
    assert {name: one.read for name, one in FORMATS.items()} == readers
    spoken = {"arm", "propensity", "reward", "kind", "require"}  # the command has options of its own for these
    for name, reader in readers.items():
        known = {n for n, p in inspect.signature(reader).parameters.items() if p.kind is p.KEYWORD_ONLY}
        assert known - set(FORMATS[name].options) <= spoken


def test_a_source_is_checked_before_it_is_read(tmp_path):
    (tmp_path / "x.dsjson").write_text("")
    with pytest.raises(LookupError, match="no option of --format dsjson 'skip': did you mean 'skipped'"):
        LogSource(tmp_path / "x.dsjson", "dsjson", options={"skip": "keep"})


@pytest.mark.parametrize("form", ["caf\u00e9", "cafe\u0301"])
def test_an_arm_is_found_however_its_accent_was_typed(dither, tmp_path, form):
    """Seen red: `no arm 'café': did you mean 'café'?`, and that it was on offer in no row."""
    path, rows = tmp_path / "t.csv", "".join(f"{('b', form)[i % 2]},{i % 2},0.5\n" for i in range(40))
    path.write_text("arm,reward,propensity\n" + rows, encoding="utf-8")
    for typed in ("caf\u00e9", "cafe\u0301"):
        for more in ((), ("--with", f"arms=b,{typed}")):
            code, out, _ = dither("evaluate", path, "--format", "table", "--policy", f"arm:{typed}", *more)
            assert code == 0
            assert row(out, f"arm:{typed}", "snips")[0] == 1.0


def test_ids_of_very_many_digits(dither, tmp_path):
    """Seen red with `Exceeds the limit (4300 digits) for integer string conversion`."""
    path, ids = tmp_path / "t.csv", ("9" * 5000, "1")
    path.write_text("arm,reward,propensity\n" + "".join(f"{ids[i % 2]},{i % 2},0.5\n" for i in range(40)))
    assert dither("evaluate", path, "--format", "table", "--policy", "arm:1")[0] == 0


def test_lines_without_features_need_none(dither, tmp_path):
    """Seen red with `holds no features: pass --with features=False`, though no policy asked for one."""
    path = tmp_path / "cb.dat"
    path.write_text("".join(f"{1 + i % 2}:{-(i % 2)}:0.5 |\n" for i in range(40)))
    code, out, err = dither("evaluate", path, "--format", "dat", "--policy", "uniform")
    assert (code, err, row(out, "uniform", "snips")[0]) == (0, "", 0.5)
    code, _, err = dither("evaluate", path, "--format", "dat", "--policy", "uniform", "--with", "features=true")
    assert (code, "holds no features: pass --with features=False" in err) == (2, True)
