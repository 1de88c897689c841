"""`dither evaluate` from log to files, and what it says of what cannot be evaluated."""

import base64
import inspect
import re

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import dither as library
from dither.log import Log
from dither.log import sources as source


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """A bandit that learns while it writes its log, as it stands afterwards: the folder and the saved bandit."""
    folder = tmp_path_factory.mktemp("live")
    rng = np.random.default_rng(0)
    theta = np.array([1.0, -0.5, 0.3])
    bandit = library.LinFP(dim=3, lam=1.0, c=1.0, floor=0.2, seed=0)
    with Log(folder / "log", bandit=bandit, probabilities=True) as log:
        for i in range(400):
            X = rng.normal(size=(4, 3))
            shown = log.decide(X, extra={"user": i % 25})
            r = float(X[shown.arm] @ theta + 0.5 * rng.normal())
            log.reward(shown.id, r)
            if i < 200:
                bandit.update(X[shown.arm], r)
    bandit.save(folder / "bandit.npz")
    return folder


def test_from_a_live_bandit_to_table_picture_and_page(dither, live, tmp_path):
    options = ("--policy", "uniform", "--policy", live / "bandit.npz", "--policy", f"greedy:{live / 'bandit.npz'}")
    files = ("--out", tmp_path / "out", "--html", tmp_path / "deep" / "page.html")
    code, out, err = dither("evaluate", live / "log", *options, *files, "--cluster", "user")
    assert (code, err) == (0, ""), err
    text = " ".join(out.split())
    assert "400 rows read, 400 used, 0 left out" in text
    assert "The logging policy's own weights are 1 in all 400 rows that can be checked." in text
    assert "agree within" in text  # the mean of 1/p
    assert "uniform: worse than what ran: " in text
    assert "greedy:bandit: better than what ran: " in text
    wrote = [line.removeprefix("wrote ") for line in out.splitlines() if line.startswith("wrote ")]
    names = ["estimates.parquet", "estimates.csv", "differences.parquet", "differences.csv", "evaluation.png"]
    assert wrote == [str(files[3]), *(str(tmp_path / "out" / name) for name in names)]
    assert (tmp_path / "out" / "evaluation.png").read_bytes().startswith(b"\x89PNG")
    table = pl.read_parquet(tmp_path / "out" / "estimates.parquet")
    assert table["policy"].unique(maintain_order=True).to_list() == ["what ran", "uniform", "bandit", "greedy:bandit"]
    logged = library.log.read(live / "log")
    bandit = library.load(live / "bandit.npz")
    Q = bandit.propensities(logged.X)
    mine = table.filter(policy="bandit", estimator="ips")
    expected = library.ope.ips(logged.r, logged.a, logged.p, Q, P=logged.P, cluster=logged.column("user"))
    assert_allclose(mine["value"][0], expected.value, rtol=1e-12)
    assert_allclose(mine["se"][0], expected.se, rtol=1e-12)
    assert mine["unsupported"][0] == expected.unsupported == 0.0
    assert pl.read_csv(tmp_path / "out" / "differences.csv").height == 3 * 2 + 2 * 2
    # seen red: the arm of the lowest mean for greedy


def test_the_page_stands_alone(dither, live, tmp_path):
    page = tmp_path / "page.html"
    code, _, err = dither("evaluate", live / "log", "--policy", "uniform", "--html", page, "--estimator", "ips")
    assert code == 0, err
    html = page.read_text("utf-8")
    pictures = re.findall(r'<img [^>]*src="data:image/png;base64,([^"]+)"', html)
    assert len(pictures) == html.count("<img") == 1
    assert base64.b64decode(pictures[0]).startswith(b"\x89PNG")
    assert not re.search(r"https?:|<script[^>]* src|<link|@import|url\(|src=\"(?!data:)", html)
    assert "default-src 'none'" in html
    assert "worse than what ran" in html
    assert "dither evaluate" in html
    assert "400 rows read, 400 used" in " ".join(html.split())


def test_what_a_log_names_is_text_in_the_page(dither, frame, tmp_path):
    log = tmp_path / "log.parquet"
    frame.rename({"q": "<b>q</b> & http"}).write_parquet(log)
    code, _, err = dither("evaluate", log, "--policy", "column:<b>q</b> & http", "--html", tmp_path / "page.html")
    assert code == 0, err
    html = (tmp_path / "page.html").read_text("utf-8")
    assert "&lt;b&gt;q&lt;/b&gt; &amp; http" in html
    assert "<b>q" not in html  # seen red: autoescape off


def test_ten_pieces_and_two_processes(dither, path, tmp_path, monkeypatch):
    options = ("--policy", "uniform", "--policy", "column:Q", "--predictions", "M", "--out")
    code, one, err = dither("evaluate", path, *options, tmp_path / "one")
    assert (code, err) == (0, "")
    monkeypatch.setattr(source, "ROWS", 150)
    code, two, err = dither("evaluate", path, *options, tmp_path / "two", "--jobs", 2)
    assert (code, err) == (0, "")  # a bar is for terminals. seen red: a bar in a file
    assert one.split("wrote")[0] == two.split("wrote")[0]
    tables = [pl.read_parquet(tmp_path / name / "estimates.parquet") for name in ("one", "two")]
    numbers = ("value", "se", "low", "high", "ess", "weight_mean", "weight_max")
    for name in numbers:
        assert_allclose(*(table[name].to_numpy() for table in tables), rtol=1e-11)


@pytest.mark.parametrize("suffix", ["csv", "folder"])
def test_other_forms_of_the_same_log(dither, frame, path, tmp_path, suffix):
    flat = frame.select("id", "arm", "K", "propensity", "reward", "q", "m_shown", "m_policy")
    if suffix == "csv":
        log = tmp_path / "log.csv"
        flat.write_csv(log)
    else:
        log = tmp_path / "parts"
        log.mkdir()
        for i, part in enumerate(flat.iter_slices(444)):
            part.write_parquet(log / f"part-{i}.parquet")
    asked = ("--policy", "column:q,m_policy", "--predictions", "m_shown", "--estimator", "dr", "--estimator", "ips")
    wrote = {}
    for name, where in (("this", log), ("that", path)):
        code, _, err = dither("evaluate", where, *asked, "--out", tmp_path / name)
        assert code == 0, err
        wrote[name] = pl.read_parquet(tmp_path / name / "estimates.parquet")
    assert wrote["this"]["value"].to_list() == pytest.approx(wrote["that"]["value"].to_list(), rel=1e-13)


def test_a_table_of_ones_own_names_and_ids(dither, tmp_path):
    table = pl.DataFrame(
        {
            "item": ["red", "blue", "red", "green"],
            "chance": [0.5, 0.25, 0.5, 0.25],
            "clicked": [True, False, True, True],
            "propensity": ["not", "of", "this", "table"],
        }
    )
    table.write_csv(tmp_path / "log.csv")
    names = ("--format", "table", "--arm", "item", "--propensity", "chance", "--reward", "clicked")
    code, _, err = dither("evaluate", tmp_path / "log.csv", *names, "--policy", "arm:red", "--out", tmp_path / "out")
    assert code == 0, err
    found = pl.read_csv(tmp_path / "out" / "estimates.csv").filter(policy="arm:red")
    assert found.filter(estimator="ips")["value"][0] == (2 + 2) / 4
    assert found.filter(estimator="snips")["value"][0] == 1.0
    code, _, err = dither("evaluate", tmp_path / "log.csv", *names, "--policy", "arm:rad")
    assert "no arm 'rad': did you mean 'red'?" in err


def test_vowpal_wabbit_and_the_open_bandit_dataset(dither, tmp_path):
    (tmp_path / "log.dat").write_text("1:-1:0.5 | a\n2:0:0.25 | a\n2:-2:0.5 | b\n")
    code, out, err = dither(
        "evaluate", tmp_path / "log.dat", "--format", "dat", "--policy", "arm:2", "--policy", "uniform"
    )
    assert code == 0, err
    assert "3 rows read, 3 used" in out
    pl.DataFrame(
        {"item_id": [3, 1], "click": [1, 0], "propensity_score": [0.5, 0.5], "timestamp": ["2026-01-01"] * 2}
    ).write_csv(tmp_path / "obd.csv")
    code, out, err = dither("evaluate", tmp_path / "obd.csv", "--format", "obd", "--policy", "arm:3")
    assert code == 0, err
    assert "1.0" in out


@pytest.mark.parametrize("model", ["ridge", "gbm"])
def test_predictions_are_made_where_there_are_none(dither, live, tmp_path, model):
    options = ("--policy", "uniform", "--model", model, "--out", tmp_path, "--estimator", "dr", "--estimator", "ips")
    code, _, err = dither("evaluate", live / "log", *options)
    assert code == 0, err
    se = pl.read_csv(tmp_path / "estimates.csv").filter(policy="uniform")["se"].to_list()
    assert se[0] < 0.8 * se[1]  # rewards are nearly linear in the features: dr is the more precise
    # seen red: predictions of the rows in another order


def test_rows_are_left_out_only_when_asked_and_counted(dither, frame, tmp_path, monkeypatch):
    monkeypatch.setattr(source, "ROWS", 500)
    r = frame["reward"].to_list()
    r[3] = r[7] = None
    p = frame["propensity"].to_list()
    p[11] = 0.0
    bad = frame.with_columns(
        pl.Series("reward", r), pl.Series("propensity", p), pl.Series("id", ["x", "x", *frame["id"][2:]])
    )
    bad.write_parquet(tmp_path / "log.parquet")
    ask = ("evaluate", tmp_path / "log.parquet", "--policy", "uniform")
    code, out, err = dither(*ask)
    assert (code, out) == (2, "")
    assert "propensity is 0, of an arm that was shown (1 row: 11)" in err
    code, _, err = dither(*ask, "--invalid", "leave-out")
    assert (code, "id came before (1 row: 1)" in err) == (2, True)
    code, _, err = dither(*ask, "--invalid", "leave-out", "--duplicates", "leave-out")
    assert (code, "3, 7" in err) == (2, True)
    every = ("--invalid", "leave-out", "--duplicates", "leave-out", "--missing")
    code, out, err = dither(*ask, *every, "leave-out")
    assert code == 0, err
    assert "1500 rows read, 1496 used, 4 left out" in out
    assert all(f"left out: {count}" in out for count in (1, 2))
    code, out, _ = dither(*ask, *every, "0.5", "--out", tmp_path / "out")
    assert "1500 rows read, 1498 used, 2 left out" in out
    assert "2 missing rewards filled in" in out
    kept = [0.5 if x is None else x for i, x in enumerate(r) if i not in (1, 11)]
    found = pl.read_csv(tmp_path / "out" / "estimates.csv")
    assert found["value"][0] == pytest.approx(np.mean(kept), rel=1e-12)
    # seen red: the report of the last piece alone


@pytest.mark.parametrize(
    ("change", "arguments", "says"),
    [
        (lambda f: f.drop("propensity"), (), "has no column 'propensity'; it has 'id', 'arm', 'K'"),
        (lambda f: f.drop("arm", "reward"), (), "has no column 'arm'; it has 'id', 'K'"),
        (lambda f: f.head(0), (), "holds no rows"),
        (lambda f: f.with_columns(reward=pl.lit("much")), (), "column 'reward' of"),
        (lambda f: f.with_columns(arm=pl.lit("red")), (), "must hold positions from 0"),
        (lambda f: f.with_columns(propensity=pl.lit(0.0)), (), "propensity is 0"),
        (lambda f: f.with_columns(propensity_kind=pl.lit("none")), (), "kind 'none'"),
        (lambda f: f.with_columns(arm=pl.lit(9)), (), "arm is not among those on offer"),
        (lambda f: f.drop("K", "probabilities", "Q", "M"), ("--arms", 0), "arms must be a whole number of at least 1"),
        (lambda f: f, ("--policy", "unifrm"), "no policy 'unifrm': did you mean 'uniform'?"),
        (lambda f: f, ("--policy", "uniform"), "policies must have different names; 'uniform' is there 2 times"),
        (lambda f: f, ("--policy", "column:z"), "has no column 'z'"),
        (lambda f: f, ("--policy", "column:id"), "column 'id' must hold a number in each row"),
        (lambda f: f, ("--policy", "column:M"), "column 'M' must hold probabilities of all arms on offer"),
        (lambda f: f, ("--policy", "column:m_shown"), "column 'm_shown' must hold probabilities in [0, 1]"),
        (lambda f: f, ("--policy", "arm:7"), "arm '7' was not on offer in row 0 (1500 such rows"),
        (lambda f: f, ("--policy", "arm:red"), "write a position, such as arm:0"),
        (lambda f: f, ("--policy", "gone.npz"), "gone.npz"),
        (lambda f: f, ("--estimator", "ipps"), "no estimator 'ipps': did you mean 'ips'?"),
        (
            lambda f: f,
            ("--estimator", "clipped_ips"),
            "the estimator clipped_ips needs its clip: write clipped_ips:NUMBER",
        ),
        (lambda f: f, ("--estimator", "dros:-1"), "lam must lie in"),
        (lambda f: f, ("--estimator", "ips:3"), "the estimator ips has no setting"),
        (lambda f: f, ("--estimator", "dr"), "dr needs reward predictions: --predictions COLUMN"),
        (
            lambda f: f,
            ("--estimator", "dr", "--predictions", "m_shown"),
            "so uniform needs its own prediction in each row",
        ),
        (lambda f: f, ("--predictions", "gone"), "has no column 'gone'"),
        (lambda f: f, ("--predictions", "M", "--model", "ridge"), "give --predictions or --model, not both"),
        (lambda f: f, ("--model", "rigde"), "no column 'features'"),
        (lambda f: f, ("--interval", "nromal"), "no interval 'nromal': did you mean 'normal'?"),
        (lambda f: f, ("--interval", "betting"), "--reward-range LOW HIGH"),
        (
            lambda f: f,
            ("--interval", "bernstein", "--reward-range", -9, 9, "--estimator", "ips"),
            "--weight-max, such as",
        ),
        (
            lambda f: f,
            ("--interval", "bernstein", "--reward-range", 0, 1, "--weight-max", 99, "--estimator", "ips"),
            "is no bound",
        ),
        (lambda f: f, ("--interval", "betting", "--reward-range", -9, 9, "--weight-max", 99), "snips is a ratio"),
        (lambda f: f, ("--level", 95), "level must lie in"),
        (lambda f: f, ("--cluster", "usr"), "has no column 'usr'"),
        (lambda f: f, ("--jobs", 0), "jobs must be a whole number of at least 1"),
        (lambda f: f, ("--missing", "drop"), "--missing must be error, leave-out or a finite number"),
        (lambda f: f, ("--format", "csv"), "no format 'csv'"),
        (lambda f: f, ("--format", "obd", "--arm", "x"), "leave out --arm"),
        (lambda f: f, ("--reward", "clicks"), "has no column 'clicks'"),
    ],
)
def test_what_cannot_be_evaluated_is_one_line_and_leaves_nothing(dither, frame, tmp_path, change, arguments, says):
    change(frame).write_parquet(tmp_path / "log.parquet")
    files = ("--out", tmp_path / "out", "--html", tmp_path / "page.html")
    code, out, err = dither("evaluate", tmp_path / "log.parquet", "--policy", "uniform", *arguments, *files)
    assert (code, out) == (2, "")
    assert says in err
    assert err.startswith("dither: ")
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["log.parquet"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no log at"),
        (b"", "is empty"),
        (b"PAR1 but no more", "cannot be read"),
        (b"\xff\xfe\x00", "cannot be read"),
    ],
)
def test_what_is_no_log_is_said(dither, tmp_path, content, says):
    if content is not None:
        (tmp_path / "log.parquet").write_bytes(content)
    code, out, err = dither("evaluate", tmp_path / "log.parquet", "--policy", "uniform")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err


def test_no_policy_is_an_error_that_names_one(dither, path):
    code, _, err = dither("evaluate", path)
    assert code == 2
    assert "give at least one --policy" in err


def test_the_logging_policy_alone(dither, path, arrays):
    code, out, err = dither("evaluate", path, "--policy", "logging")
    assert code == 0, err
    assert f"{arrays['r'].mean():.3f}" in out


@pytest.mark.parametrize(
    "name", ["log", "format", "option", "arm", "propensity", "reward", "kind", "arms", "invalid", "duplicates"]
)
def test_what_evaluate_and_tune_both_ask_of_a_log_is_declared_once(name):
    from dither.cli import evaluate, tuning

    one, other = (inspect.signature(command).parameters[name] for command in (evaluate.evaluate, tuning.tune))
    assert one.annotation is other.annotation
    assert one.default == other.default
    # seen red: --kind written out in both


def test_help_names_everything_that_can_be_written(dither):
    from dither.ope import ESTIMATORS, candidates, judge

    code, out, _ = dither("evaluate", "--help")
    text = re.sub(r"[│\s]+", " ", out)
    assert code == 0
    assert "Example: dither evaluate" in text
    assert all(name in text for name in (*candidates.PREFIXES, *judge.INTERVALS, *source.FORMATS, *ESTIMATORS))
