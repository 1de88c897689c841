"""What the command refuses to guess, and what it says of rounding, of bandits on their own rows, of odd places."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import dither as library
from dither.cli import page, sheets
from dither.log import Log
from dither.log.sources import LogSource
from dither.ope import candidates, judge, verdicts
from dither.ope.contributions import NamedEstimator
from dither.ope.question import Question


def judged(path, *texts, estimators=("snips", "ips"), kind=None, **options):
    question = Question(
        tuple(candidates.parse(t, draws=10) for t in texts), tuple(map(NamedEstimator.parse, estimators)), **options
    )
    return judge.judged(LogSource(path, kind=kind).pieces(question.columns).each, question)


def rounded(n, digits, seed=0):
    """A log of probabilities p in 3 arms, and the same written with few digits."""
    rng = np.random.default_rng(seed)
    P = 0.1 + 0.7 * rng.dirichlet(np.ones(3), n)
    a = (P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=2)
    p = P[np.arange(n), a]
    cut = p.astype(np.float32).astype(float) if digits is None else p.round(digits)
    return pl.DataFrame({"arm": a, "K": np.full(n, 3), "propensity": cut, "q": p, "reward": 5 + rng.random(n)})


@pytest.mark.parametrize(("first", "more"), [(0, ""), (1, "Positions count from 0")])
@pytest.mark.parametrize("policy", ["uniform", "arm:1"])
def test_the_number_of_arms_is_not_guessed(dither, tmp_path, first, more, policy):
    path = tmp_path / "log.parquet"
    frame = pl.DataFrame({"arm": [first, 1, 2] * 40, "propensity": [0.2] * 120, "reward": [0.0, 1.0, 0.5] * 40})
    frame.write_parquet(path)
    code, out, err = dither("evaluate", path, "--policy", policy)
    assert (code, out) == (2, "")
    assert "say how many arms were on offer with --arms; the largest position shown is 2" in err
    assert more in err
    assert ("Positions" in err) == bool(more)
    code, _, err = dither("evaluate", path, "--policy", policy, "--arms", 5, "--out", tmp_path / "out")
    assert code == 0, err
    found = pl.read_csv(tmp_path / "out" / "estimates.csv").filter(policy=policy, estimator="ips")
    if policy == "uniform":
        assert found["value"][0] == pytest.approx(0.5, rel=1e-12)  # w = (1/5)/0.2 = 1
    # seen red: three arms, as the largest position shown is 2


def test_the_probability_of_the_arm_shown_needs_no_number_of_arms(dither, tmp_path):
    frame = rounded(300, 8).drop("K")
    frame.write_parquet(tmp_path / "log.parquet")
    code, _, err = dither("evaluate", tmp_path / "log.parquet", "--policy", "column:q")
    assert (code, err) == (0, "")


def test_a_context_a_row_does_not_say_how_many_arms(dither, tmp_path):
    frame = rounded(60, 8).drop("K").with_columns(features=pl.lit([[1.0, 2.0]]))
    frame.write_parquet(tmp_path / "log.parquet")
    code, _, err = dither("evaluate", tmp_path / "log.parquet", "--policy", "uniform")
    assert (code, "with --arms" in err) == (2, True)
    code, _, err = dither("evaluate", tmp_path / "log.parquet", "--policy", "uniform", "--arms", 3)
    assert code == 0, err
    asked = ("--policy", "uniform", "--model", "ridge", "--arms", 4)
    code, _, err = dither("evaluate", tmp_path / "log.parquet", *asked)
    assert code == 0, err
    # seen red: models of three arms, as the largest position shown is 2; --arms ignored because there are features


@pytest.mark.parametrize("digits", [None, 4, 6])
@pytest.mark.parametrize("estimator", ["snips", "ips", "dr", "dm", "clipped_ips:5"])
def test_what_ran_is_the_same_whatever_the_digits(tmp_path, digits, estimator):
    frame = rounded(3000, digits).with_columns(m_shown=pl.lit(5.4), g=pl.lit(5.3))
    frame.write_parquet(tmp_path / "log.parquet")
    found = judged(tmp_path / "log.parquet", "column:q,g", estimators=[estimator], predictions="m_shown")
    (said,) = verdicts.verdicts(found)
    assert said.word == "same", said.text
    # seen red: "worse than what ran: 0.00000001475", "about 25,000,000 rows", "the weights average 1 and not 1"


def test_rounding_hides_no_real_difference(tmp_path):
    frame = rounded(3000, None)
    better = frame.with_columns(q=pl.col("propensity") * pl.when(pl.col("arm") == 1).then(1.01).otherwise(0.99))
    better.write_parquet(tmp_path / "log.parquet")
    (said,) = verdicts.verdicts(judged(tmp_path / "log.parquet", "column:q"))
    assert said.word != "same"
    # seen red: a `_rounding` of 2 %


def test_a_mean_weight_that_is_not_1_is_never_written_as_1(tmp_path):
    assert verdicts._apart(1.0004) == "1.0004"
    assert verdicts._apart(2.0) == "2"
    assert verdicts._apart(0.99996) == "0.99996"
    # seen red: "the weights average 1 and not 1"


def test_rows_beyond_reach_are_not_counted(tmp_path):
    n = 400
    a = np.arange(n) % 2
    r = np.random.default_rng(0).normal(size=n)
    r -= (r * np.where(a == 1, 1, -1)).mean() * np.where(a == 1, 1, -1) * 0.999
    frame = pl.DataFrame({"arm": a, "K": np.full(n, 2), "propensity": np.full(n, 0.5), "reward": r})
    frame.write_parquet(tmp_path / "log.parquet")
    (said,) = verdicts.verdicts(judged(tmp_path / "log.parquet", "arm:1"))
    assert (said.word, "no number of rows within reach would tell" in said.text) == ("unclear", True)
    # seen red: about 25,000,000 rows


@pytest.mark.parametrize("estimator", ["snips", "ips"])
def test_a_policy_that_no_row_shows_is_not_judged(tmp_path, estimator):
    frame = pl.DataFrame({"arm": [0] * 9, "K": [2] * 9, "propensity": [0.9] * 9, "reward": [1.0, 2.0, 3.0] * 3})
    frame.write_parquet(tmp_path / "log.parquet")
    (said,) = verdicts.verdicts(judged(tmp_path / "log.parquet", "arm:1", estimators=[estimator]))
    assert said.word == "unsupported"
    assert "one row alone" not in said.text
    assert "no row of the log shows what the policy would" in said.text
    # seen red: "worse than what ran" by ips


def test_one_row_and_one_cluster_are_said_for_what_they_are(tmp_path):
    frame = rounded(50, 8).with_columns(q=pl.lit(0.3), user=pl.lit(1))
    frame.head(1).write_parquet(tmp_path / "one.parquet")
    frame.write_parquet(tmp_path / "log.parquet")
    for name, options, reason in (("one", {}, "one row alone"), ("log", {"cluster": "user"}, "one cluster alone")):
        found = judged(tmp_path / f"{name}.parquet", "column:q", estimators=["ips"], **options)
        assert f"{reason} has no interval" in verdicts.verdicts(found)[0].text
    # seen red: "one row alone" for one cluster


@pytest.fixture
def learnt(tmp_path):
    """A log of a bandit, and the bandit."""
    rng = np.random.default_rng(0)
    bandit = library.LinFP(dim=2, lam=1.0, floor=0.2, seed=0)
    with Log(tmp_path / "log", bandit=bandit, probabilities=True) as log:
        for _ in range(80):
            X = rng.normal(size=(3, 2))
            shown = log.decide(X)
            log.reward(shown.id, float(X[shown.arm, 0]))
            bandit.update(X[shown.arm], X[shown.arm, 0])
    bandit.save(tmp_path / "bandit.npz")
    return tmp_path


def test_a_saved_bandit_has_a_note_wherever_it_is_judged(dither, learnt):
    saved = learnt / "bandit.npz"
    narrow = ("--interval", "normal")
    code, out, err = dither("evaluate", learnt / "log", *narrow, *("--policy", saved, "--policy", f"greedy:{saved}"))
    assert (code, err) == (0, "")
    text = " ".join(out.split())
    assert text.count(verdicts.LEARNT) == 2
    assert "logging" not in text.split("Note:")[0]
    found = judged(learnt / "log", str(saved), "uniform")
    assert sheets.estimates(found).filter(policy="bandit")["note"].to_list() == [verdicts.LEARNT] * 2
    assert sheets.estimates(found).filter(policy="uniform")["note"].to_list() == [None] * 2
    html = page.html(found, source="log", command="")
    assert verdicts.LEARNT in html
    assert '<th scope="row">what ran</th>' in html
    # seen red: no note


def test_a_bandit_of_ones_own_class_is_judged_by_a_column(dither, learnt, monkeypatch):
    from dither.bandit import saving

    monkeypatch.delitem(saving.KNOWN, type(library.load(learnt / "bandit.npz").policy).__name__)
    code, _, err = dither("evaluate", learnt / "log", "--policy", learnt / "bandit.npz")
    assert code == 2
    assert "Q = bandit.propensities(X), --policy column:Q" in err
    assert "damaged" not in err
    # seen red: "not a dither file, or a damaged one"


@pytest.mark.parametrize("form", ["dither", "table"])
def test_the_kind_of_propensities_of_a_table(dither, tmp_path, form):
    path = tmp_path / "log.parquet"
    rounded(200, 8).write_parquet(path)
    ask = ("evaluate", path, "--format", form, "--policy", "uniform", "--kind")
    code, out, err = dither(*ask, "estimated")
    assert code == 0, err
    assert "The logged propensities are estimated" in out
    assert "need their propensity_se" in dither(*ask, "monte_carlo")[2]
    assert "no kind of propensities 'estimate': did you mean 'estimated'?" in dither(*ask, "estimate")[2]
    se = pl.read_parquet(path).with_columns(propensity_kind=pl.lit("monte_carlo"), propensity_se=pl.lit(0.05))
    se.write_parquet(path)
    code, out, err = dither(*ask[:-1])
    assert (code, "The logged propensities are monte_carlo" in out) == (0, True), err
    assert "leave out --kind" in dither(*ask, "exact")[2]
    # seen red: a table's own propensity_kind taken for exact


def test_errors_speak_the_language_of_the_command(dither, tmp_path):
    path = tmp_path / "log.csv"
    rounded(20, 8).with_columns(pl.col("reward").replace(pl.col("reward").max(), None)).write_csv(path)
    assert "--missing leave-out or --missing NUMBER" in dither("evaluate", path, "--policy", "uniform")[2]
    rounded(20, 8).drop("propensity").write_csv(path)
    err = dither("evaluate", path, "--policy", "uniform")[2]
    assert "ope.propensities_from" in err
    assert "--kind estimated" in err
    path.write_text("arm,K,propensity,reward\n")
    assert "holds no rows" in dither("evaluate", path, "--policy", "uniform")[2]
    assert "holds no rows" in dither("evaluate", path, "--policy", "uniform", "--format", "table")[2]
    # seen red: missing='leave out'; "must hold positions from 0, got String"


def test_places_that_cannot_be_written_are_refused_before_any_work(dither, tmp_path):
    (tmp_path / "file").write_text("")
    gone = tmp_path / "gone.parquet"  # is not looked at
    for option, place, says in (
        ("--html", tmp_path, "--html must name a file"),
        ("--html", tmp_path / "file" / "page.html", "--html needs a folder"),
        ("--out", tmp_path / "file", "--out needs a folder"),
    ):
        code, out, err = dither("evaluate", gone, "--policy", "uniform", option, place)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert says in err
    # seen red: "Is a directory" after the whole log was read


def test_nothing_but_errors_on_stderr(tmp_path):
    frame = pl.DataFrame({"arm": [0, 1], "K": [2, 2], "propensity": [0.5, 0.5], "reward": [0.0, 0.0]})
    frame.head(1).write_parquet(tmp_path / "log.parquet")
    ask = ["evaluate", str(tmp_path / "log.parquet"), "--policy", "uniform", "--policy", "arm:1", "--interval"]
    for interval in ("normal", "bootstrap"):
        full = [*ask, interval, "--html", str(tmp_path / "page.html"), "--out", str(tmp_path / "out")]
        code = f"import sys; sys.argv = {['dither', *full]!r}; from dither import cli; cli.main()"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
