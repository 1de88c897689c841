"""`dither.ope.evaluate`: from a log to verdicts in one call; refusals name options as their reader writes them."""

import pickle
import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import dither as library
from dither import log, ope
from dither.base import errors


def quietly(call, *given, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ope.EvaluationWarning)
        return call(*given, **options)


def test_one_call_says_what_the_command_says(dither, path, tmp_path):
    options = dict(predictions="M", cluster="user", interval="bootstrap", seed=3)
    found = ope.evaluate(path, ["uniform", "column:Q"], ["dr", "snips"], **options)
    typed = [word for name, value in options.items() for word in (f"--{name}", value)]
    ask = ("--policy", "uniform", "--policy", "column:Q", "--estimator", "dr", "--estimator", "snips")
    code, out, err = dither("evaluate", path, *ask, *typed, "--out", tmp_path / "out")
    assert (code, err) == (0, "")
    table = pl.read_parquet(tmp_path / "out" / "estimates.parquet")
    assert table["low"].to_list() == [e.interval[0] for e in found.estimates.values()]
    assert table["se"].to_list() == [e.se for e in found.estimates.values()]
    assert all(said.text in " ".join(out.split()) for said in found.verdicts())
    assert all(note in " ".join(out.split()) for note in found.notes())
    # seen red: the seed of the command left out


@pytest.mark.parametrize("form", ["file", "frame", "in memory"])
def test_policies_may_be_arrays(path, arrays, form):
    given = {"file": path, "frame": pl.read_parquet(path), "in memory": log.read(path)}[form]
    rows = np.arange(len(arrays["a"]))
    q = arrays["Q"][rows, arrays["a"]]
    found = ope.evaluate(given, {"new": arrays["Q"], "shown": q, "third": "arm:2"}, ["snips"])
    assert found.policies == ("new", "shown", "third")
    theirs = quietly(ope.snips, arrays["r"], arrays["a"], arrays["p"], arrays["Q"], P=arrays["P"])
    for name in ("new", "shown"):
        assert_allclose(found.estimates[name, "snips"].interval, theirs.interval, rtol=1e-11)
    assert ope.evaluate(given, [arrays["Q"]]).policies == ("policy 1",)


def test_rows_of_arrays_are_those_of_the_whole_log(path, arrays, monkeypatch):
    whole = ope.evaluate(path, {"new": arrays["Q"]}).estimates["new", "ips"]
    monkeypatch.setattr(log.sources, "ROWS", 400)
    pieces = ope.evaluate(path, {"new": arrays["Q"]}).estimates["new", "ips"]
    assert_allclose([pieces.value, pieces.se], [whole.value, whole.se], rtol=1e-12)
    # seen red: the first rows of Q for every piece


def test_a_bandit_is_judged_as_it_stands(tmp_path):
    rng, bandit = np.random.default_rng(0), library.LinFP(dim=2, lam=1.0, floor=0.3, seed=0)
    with log.Log(tmp_path / "log", bandit=bandit) as written:
        for _ in range(200):
            X = rng.normal(size=(3, 2))
            shown = written.decide(X)
            written.reward(shown.id, float(X[shown.arm, 0]))
    bandit.update(*(lambda read: (read.x, read.r))(log.read(tmp_path / "log")))
    found = ope.evaluate(tmp_path / "log", {"learnt": bandit})
    read = log.read(tmp_path / "log")
    theirs = quietly(ope.ips, read.r, read.a, read.p, bandit.propensities(read.X))
    assert_allclose(found.estimates["learnt", "ips"].value, theirs.value, rtol=1e-12)
    assert found.saved == ("learnt",)  # and has the note that it may have learnt from these rows
    # seen red: no note


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (np.ones((3, 4)) / 4, "must be .n, K. or .n,., with a row for each row of the log"),
        (np.ones((1500, 3)) / 3, "must have a column for each of 4 arms"),
        (np.ones((1500, 4)), r"must hold probabilities of all arms on offer.*row 0 does not \(1500 such rows\)"),
        (np.full(1500, 1.5), r"must hold probabilities in \[0, 1\]"),
        ("unifrom", "did you mean 'uniform'"),
    ],
)
def test_policies_that_make_no_sense_are_refused(path, policy, says):
    with pytest.raises((ValueError, LookupError), match=says):
        ope.evaluate(path, {"new": policy})


@pytest.mark.parametrize(
    ("options", "python", "command"),
    [
        (dict(estimators=["dr"]), "predictions=COLUMN, or model=", "--predictions COLUMN, or --model to make them"),
        (dict(interval="betting"), "reward_range=(low, high)", "--reward-range LOW HIGH"),
        (
            dict(predictions="M", model="ridge"),
            "give predictions= or model=",
            "give --predictions or --model, not both",
        ),
        (dict(kind="exact", format="dsjson"), "leave out kind=", "leave out --kind"),
        (dict(arms=3, format="dsjson"), "leave out arms=", "leave out --arms"),
        (dict(arms=3), "how many arms were on offer: leave out arms=", "leave out --arms"),
    ],
)
def test_refusals_speak_the_language_of_who_asks(dither, path, options, python, command):
    with pytest.raises(errors.Refused) as refused:
        ope.evaluate(path, **options)
    assert python in str(refused.value)
    typed = [("--estimator", "dr") if name == "estimators" else (f"--{name}", value) for name, value in options.items()]
    code, _, err = dither("evaluate", path, "--policy", "uniform", *(word for pair in typed for word in pair))
    assert (code, command in err) == (2, True), err
    # seen red: an `Option` written as Python does on the command line


def test_a_refusal_travels_between_processes():
    parts = ("take ", errors.Option("missing", "leave out"), " or ", errors.Option("arms"))
    again = pickle.loads(pickle.dumps(errors.Refused(*parts)))
    assert str(again) == "take missing='leave out' or arms="
    assert again.args == parts  # seen red: a message in place of the parts


def test_names_of_columns_are_for_files(path):
    with pytest.raises(ValueError, match="reward= is for files"):
        ope.evaluate(log.read(path), reward="clicks")
    with pytest.raises(ValueError, match="must not be called 'logging'"):  # seen red: taken for what ran
        ope.evaluate(path, {"logging": "uniform"})
    with pytest.raises(ValueError, match=r"policies must be a list.*write \['uniform'\]"):
        ope.evaluate(path, "uniform")
