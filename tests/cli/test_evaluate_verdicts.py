"""The verdict on constructed logs whose truth is known, and the numbers that it is made of."""

import math

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from dither.log.sources import LogSource
from dither.ope import candidates, verdicts
from dither.ope.bounded import IntervalSettings
from dither.ope.contributions import NamedEstimator
from dither.ope.judge import judged
from dither.ope.question import Question


def log(tmp_path, a, r, p, K=2, **columns):
    path = tmp_path / "log.parquet"
    pl.DataFrame({"arm": a, "reward": r, "propensity": p, "K": np.full(len(a), K), **columns}).write_parquet(path)
    return path


def coin(n, *, lift, seed=0):
    """Two arms shown by a fair coin; the second earns `lift` more: arm:1 beats what ran by lift/2."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    return a, 0.5 + lift * a + 0.1 * rng.normal(size=n), np.full(n, 0.5)


def judge(path, *texts, estimators=("snips",), how=None, **options):
    question = Question(
        tuple(candidates.parse(t, draws=10) for t in texts), tuple(map(NamedEstimator.parse, estimators)), **options
    )
    found = judged(LogSource(path).pieces(question.columns).each, question, how)
    return found, verdicts.verdicts(found)


@pytest.mark.parametrize("estimator", ["snips", "ips"])
def test_better_and_worse(tmp_path, estimator):
    path = log(tmp_path, *coin(4000, lift=0.2))
    found, (good, bad) = judge(path, "arm:1", "arm:0", estimators=[estimator])
    assert (good.word, bad.word) == ("better", "worse")
    for policy, truth in (("arm:1", 0.1), ("arm:0", -0.1)):
        gap = found.gap(policy, estimator)
        assert abs(gap.value - truth) < 5 * gap.se
    size = verdicts.number(found.gap("arm:1", estimator).value, np.diff(found.gap("arm:1", estimator).interval)[0])
    assert good.text.startswith(f"better than what ran: {size} [0.")
    assert good.text.endswith(f"more reward a decision (by {estimator}).")
    assert "less reward a decision" in bad.text
    assert "−" not in bad.text  # a loss is a size, not a negative number
    # seen red: the interval of a loss with its ends as they are


def test_not_told_apart_names_the_rows_that_would_be_needed(tmp_path):
    path = log(tmp_path, *coin(400, lift=0.002))
    found, (said,) = judge(path, "arm:1")
    gap = found.gap("arm:1", "snips")
    width = gap.interval[1] - gap.interval[0]
    rows = int(said.text.split("about ")[1].split(" rows")[0].replace(",", ""))
    assert said.word == "unclear"
    assert said.text.startswith("cannot be told apart from what ran: ")
    assert rows == pytest.approx(400 * (width / (abs(gap.value) / 2)) ** 2, rel=0.1)  # rounded up to two figures
    # and that many rows do: an interval of n rows is as wide as 1/√n of that of one
    assert width * math.sqrt(400 / rows) <= abs(gap.value) / 2
    # seen red: an interval as wide as the difference


def test_no_support_is_said_whatever_the_estimates(tmp_path):
    n = 200
    r = np.random.default_rng(0).random(n)
    path = log(tmp_path, np.zeros(n, int), r, np.ones(n), q=np.full(n, 0.3))
    found, (said, none) = judge(path, "column:q", "arm:1", estimators=["snips", "ips"])
    assert (said.word, none.word) == ("unsupported", "unsupported")
    assert said.text.startswith("not supported by this log: 0.7 of what it would show")
    assert "floor=" in said.text
    assert_allclose(found.estimates["q", "ips"].value, 0.3 * r.mean())
    assert_allclose(found.estimates["q", "snips"].value, r.mean())
    assert math.isnan(found.estimates["arm:1", "snips"].value)
    assert found.estimates["arm:1", "ips"].value == 0.0
    # seen red: the verdict by the interval alone


def test_logged_probabilities_tell_what_is_not_supported(tmp_path):
    rng = np.random.default_rng(0)
    a, r = rng.integers(0, 2, 300), rng.random(300)
    path = log(tmp_path, a, r, np.full(300, 0.5), K=3, probabilities=[[0.5, 0.5, 0.0]] * 300)
    found, (said,) = judge(path, "uniform")
    assert found.has_P["uniform"]
    assert found.estimates["uniform", "snips"].unsupported == pytest.approx(1 / 3)
    assert said.text.startswith("not supported by this log: 0.33 of what")
    # seen red: the mean weight asked alone


def test_weights_above_1_accuse_the_propensities(tmp_path):
    a, r, p = coin(2000, lift=0.2)
    path = log(tmp_path, a, r, p / 2)
    _, (said,) = judge(path, "uniform")
    assert said.word == "unsupported"
    assert "the weights average 2 and not 1, so the logged propensities" in said.text


def test_few_effective_rows_are_no_verdict(tmp_path):
    rng = np.random.default_rng(0)
    n = 5000
    a = (rng.random(n) < 0.002).astype(int)
    path = log(tmp_path, a, rng.random(n) + a, np.where(a == 1, 0.002, 0.998))
    found, (said,) = judge(path, "arm:1")
    assert 0 < found.estimates["arm:1", "snips"].ess < 30
    assert said.word == "unsupported"
    assert f"only {a.sum()} of 5,000 rows" in said.text


def test_what_ran_itself_is_the_same(tmp_path):
    a, r, p = coin(500, lift=0.2)
    found, (said,) = judge(log(tmp_path, a, r, p, q=p), "column:q", estimators=["ips"])
    assert said.word == "same"
    assert found.gap("q", "ips").value == 0.0


def test_dm_is_judged_without_weights(tmp_path):
    n = 100
    path = log(tmp_path, np.zeros(n, int), np.zeros(n), np.ones(n), M=[[0.0, 1.0]] * n)
    _, (said,) = judge(path, "arm:1", estimators=["dm"], predictions="M")
    assert said.word == "better"


def test_the_interval_covers_the_truth_as_often_as_it_says(tmp_path):
    """The paired difference, 95 %, over 80 logs: five standard errors are 12 %."""
    hits = 0
    for seed in range(80):
        path = log(tmp_path, *coin(300, lift=0.05, seed=seed))
        found, _ = judge(path, "arm:1", how=IntervalSettings(level=0.95))
        low, high = found.gap("arm:1", "snips").interval
        hits += low <= 0.025 <= high
    assert abs(hits / 80 - 0.95) < 5 * math.sqrt(0.95 * 0.05 / 80)


@pytest.mark.parametrize(
    ("x", "width", "text"),
    [
        (0.12341, 0.02, "0.1234"),
        (-0.5, 0.3, "−0.500"),
        (1234.56, 40.0, "1,234.6"),
        (1234.56, 400.0, "1,235"),
        (-1e-9, 0.1, "0.000"),
        (2.5, None, "2.5"),
        (math.nan, 1.0, "–"),
        (0.5, math.inf, "0.5"),
    ],
)
def test_numbers(x, width, text):
    assert verdicts.number(x, width) == text
