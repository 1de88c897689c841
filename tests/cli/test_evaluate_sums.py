"""What is streamed in pieces is what `dither.ope` says of the whole log in memory."""

import itertools
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import dither as library
from dither import ope
from dither.base.workers import Workers
from dither.log import Log
from dither.log.sources import LogSource
from dither.ope import candidates, partial
from dither.ope.bounded import IntervalSettings
from dither.ope.contributions import NamedEstimator
from dither.ope.judge import judged
from dither.ope.question import Question

ASKED = {  # as written -> the same in memory
    "ips": lambda o: ope.ips(**o),
    "snips": lambda o: ope.snips(**o),
    "clipped_ips:2": lambda o: ope.clipped_ips(**o, clip=2),
    "dm": lambda o: ope.dm(**o),
    "dr": lambda o: ope.dr(**o),
    "sndr": lambda o: ope.sndr(**o),
    "switch_dr:3": lambda o: ope.switch_dr(**o, tau=3),
    "dros:2": lambda o: ope.dros(**o, lam=2),
    "sgdr:0.1": lambda o: ope.sgdr(**o, lam=0.1),
}
WEIGHTED = ("ips", "snips", "clipped_ips:2")
BOUNDS = {"reward_range": (-6.0, 9.0), "weight_max": 25.0}


def ask(*words, estimators=ASKED, **options):
    return Question(
        tuple(candidates.parse(word, draws=100) for word in words),
        tuple(map(NamedEstimator.parse, estimators)),
        **options,
    )


def run(path, question, how=None, *, rows=100_000, jobs=1):
    return judged(LogSource(path).pieces(question.columns, rows=rows).each, question, how, workers=Workers(jobs=jobs))


def in_memory(arrays, name, *, Q=None, **options):
    """The estimate by `dither.ope`, with its warnings left aside."""
    given = {"r": arrays["r"], "a": arrays["a"], "p": arrays["p"], "Q": arrays["Q"] if Q is None else Q, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ope.EvaluationWarning)
        return ASKED[name](given if name in WEIGHTED else given | {"M": arrays["M"]})


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("word", ["column:Q", "column:q,m_policy"])
def test_a_stream_of_pieces_equals_the_log_in_memory(path, arrays, name, word):
    predictions = "M" if word == "column:Q" else "m_shown"
    found = run(path, ask(word, estimators=[name], predictions=predictions), rows=400)
    mine, theirs = found.estimates[found.policies[0], name], in_memory(arrays, name, P=arrays["P"])
    for field in ("value", "se", "interval", "ess", "weight_mean", "weight_max", "weight_test"):
        assert_allclose(getattr(mine, field), getattr(theirs, field), rtol=1e-11, err_msg=field)
    ran = in_memory(arrays, "ips", Q=arrays["P"])
    gap, pair = found.gap(found.policies[0], name), ope.compare(theirs, ran)
    assert_allclose((gap.value, gap.se, *gap.interval), (pair.value, pair.se, *pair.interval), rtol=1e-9, atol=1e-13)
    # seen red: the prediction of the arms not shown without its 1/(1 - q)


@pytest.mark.parametrize(("n", "rows", "jobs"), [(30, 1, 1), (1500, 199, 1), (1500, 401, 2)])
def test_a_piece_is_as_good_as_another(frame, tmp_path, n, rows, jobs):
    frame.head(n).write_parquet(tmp_path / "log.parquet")
    question = ask("uniform", "arm:2", "column:Q", estimators=["dr", "snips"], predictions="M", cluster="user")
    whole = run(tmp_path / "log.parquet", question)
    parts = run(tmp_path / "log.parquet", question, rows=rows, jobs=jobs)
    for key, mine in parts.estimates.items():
        theirs = whole.estimates[key]
        for field in ("value", "se", "interval", "ess", "weight_mean", "weight_max", "drift"):
            assert_allclose(getattr(mine, field), getattr(theirs, field), rtol=1e-11, err_msg=f"{key} {field}")
    for gap in parts.gaps:
        theirs = whole.gap(*gap[:3])
        assert_allclose(gap.difference.se, theirs.se, rtol=1e-11)
        assert_allclose(gap.difference.value, theirs.value, rtol=1e-9, atol=1e-13)
    assert (parts.report.read, parts.report.used) == (whole.report.read, whole.report.used) == (n, n)
    assert parts.checked == n


def test_the_same_pieces_give_the_same_bits_with_more_processes(path):
    question = ask("uniform", estimators=["snips"])
    one, two = (run(path, question, rows=500, jobs=jobs) for jobs in (1, 2))
    assert one.estimates == two.estimates
    assert one.gaps == two.gaps


def test_clusters_over_all_pieces_are_those_of_the_log_in_memory(path, arrays):
    found = run(path, ask("column:Q", estimators=["ips", "snips"], cluster="user"), rows=101)
    users = {"cluster": arrays["user"]}
    ran = in_memory(arrays, "ips", Q=arrays["P"], **users)
    for name in ("ips", "snips"):
        theirs = in_memory(arrays, name, **users)
        assert_allclose(found.estimates["Q", name].se, theirs.se, rtol=1e-12)
        assert_allclose(found.gap("Q", name).se, ope.compare(theirs, ran).se, rtol=1e-12)
        assert found.estimates["Q", name].se > run(path, ask("column:Q", estimators=[name])).estimates["Q", name].se
    assert found.clusters == 60
    # seen red: clusters that are joined by their place and not by their label


@pytest.mark.parametrize("how", ["bootstrap", "bernstein", "betting"])
@pytest.mark.parametrize("name", ["ips", "dr"])
def test_intervals_are_those_of_the_log_in_memory(path, arrays, how, name):
    bounds = {} if how == "bootstrap" else BOUNDS
    question = ask("column:Q", estimators=[name], predictions="M")
    found = run(path, question, IntervalSettings(how, 0.9, seed=5, **bounds), rows=377)
    options = {"seed": 5} if how == "bootstrap" else bounds
    theirs = in_memory(arrays, name, interval=how, level=0.9, **options)
    assert_allclose(found.estimates["Q", name].interval, theirs.interval, rtol=1e-9)
    low, high = found.logging.interval
    assert low < arrays["r"].mean() < high
    # seen red: the pieces of `betting` in another order


def test_the_bootstrap_of_a_difference_is_paired(path):
    found = run(path, ask("column:Q", estimators=["ips"]), IntervalSettings("bootstrap", seed=0))
    gap = found.gap("Q", "ips")
    low, high = gap.interval
    assert high - low == pytest.approx(2 * 1.96 * gap.se, rel=0.08)  # 2,000 resamples: 4 % each way, twice
    # seen red: both drawn by themselves


def test_monte_carlo_propensities_widen_the_interval(frame, arrays, tmp_path):
    p, rng = arrays["p"], np.random.default_rng(3)
    drawn = rng.random(len(p)) < 0.5
    se = np.where(drawn, 0.3 * p, 0.0)
    kinds = np.where(drawn, "monte_carlo", "exact")
    log = frame.drop("probabilities").with_columns(
        pl.Series("propensity_kind", kinds), pl.Series("propensity_se", np.where(drawn, se, None).tolist(), pl.Float64)
    )
    log.write_parquet(tmp_path / "log.parquet")
    found = run(tmp_path / "log.parquet", ask("column:Q", estimators=["ips", "snips", "dr"], predictions="M"), rows=400)
    exact = run(tmp_path / "log.parquet", ask("column:Q", estimators=["ips"]))
    assert exact.kinds["logging"] == {"exact", "monte_carlo"}
    for name in ("ips", "snips", "dr"):
        theirs = in_memory(arrays, name, kind=kinds.astype(object), p_se=se)
        assert_allclose(found.estimates["Q", name].se, theirs.se, rtol=1e-12)
        plain = in_memory(arrays, name)
        assert found.estimates["Q", name].se > plain.se
    # seen red: the errors of p left out of the sums


@pytest.mark.parametrize("make", [library.LinTS, library.LinFP, library.EpsGreedy])
@pytest.mark.parametrize("disjoint", [None, 3])
def test_a_saved_bandit_is_asked_on_the_logged_features(tmp_path, make, disjoint):
    rng = np.random.default_rng(2)
    shape = (3, 2) if disjoint is None else (2,)
    bandit = make(dim=2, lam=1.0, seed=4, **({} if disjoint is None else {"disjoint": disjoint}))
    with Log(tmp_path / "log", bandit=library.LinFP(dim=2, lam=1.0, floor=0.5, seed=1, disjoint=disjoint)) as log:
        for _ in range(60):
            x = rng.normal(size=shape)
            shown = log.decide(x)
            log.reward(shown.id, rng.normal())
            given = {} if disjoint is None else {"arm": shown.arm}
            bandit.update(x[shown.arm] if disjoint is None else x, rng.normal(), **given)
    bandit.save(tmp_path / "b.npz")
    question = ask(f"{tmp_path / 'b.npz'}", estimators=["ips", "snips"])
    jobs = 2 if make is library.LinFP and disjoint is None else 1  # of processes: the bandit travels
    one, two = (run(tmp_path / "log", question, rows=rows, jobs=jobs) for rows in (13, 60))
    logged = library.log.read(tmp_path / "log")
    Q = bandit.propensities(logged.X, draws=20_000)
    expected = np.mean(Q[np.arange(60), logged.a] / logged.p * logged.r)
    assert_allclose(one.estimates["b", "ips"].value, two.estimates["b", "ips"].value, rtol=1e-12)
    drawn = make is library.LinTS
    assert one.kinds["b"] == {"monte_carlo" if drawn else "exact"}
    size = np.sqrt(np.sum((logged.r / logged.p) ** 2) * 0.25 / 100) / 60 if drawn else 1e-12
    assert abs(one.estimates["b", "ips"].value - expected) < 5 * size
    # seen red: the chance of a row by its place in the piece


@given(cuts=st.lists(st.integers(1, 29_999), max_size=4, unique=True), seed=st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_blocks_of_parts_are_blocks_of_the_whole(cuts, seed):
    rng = np.random.default_rng(seed)
    row = np.flatnonzero(rng.random(30_000) < 0.3)  # rows that were left out leave gaps
    r, ones = rng.normal(size=len(row)), np.ones(len(row))
    made = ope.contributions("snips", r, np.zeros(len(row)), ones, ones[:, None])

    def part(keep):
        kept = ope.contributions("snips", r[keep], np.zeros(keep.sum()), ones[keep], ones[keep][:, None])
        return partial.blocks([kept], row[keep])

    edges = [0, *sorted(cuts), 30_000]
    parts = [part(keep) for low, high in itertools.pairwise(edges) if (keep := (row >= low) & (row < high)).any()]
    total = parts[0]
    for other in parts[1:]:
        total = partial.merge_groups(total, other)
    whole = partial.blocks([made], row)
    assert whole.width == total.width == 4
    assert len(whole.n) <= partial.BLOCKS
    assert np.array_equal(whole.label, total.label)
    assert np.array_equal(whole.n, total.n)
    assert_allclose(whole.T, total.T, atol=1e-12)
    # seen red: blocks of a part left at the width that they had


def test_a_bootstrap_of_blocks_is_that_of_rows_where_rows_are_independent():
    rng = np.random.default_rng(1)
    n = 60_000
    w, r = rng.exponential(size=n), rng.normal(2.0, 1.0, n)
    row = np.arange(n)
    p = np.full(n, 1e-3)
    made = ope.contributions("snips", r, np.zeros(n), p, np.column_stack([w * p, 1 - w * p]))
    found = partial.blocks([made], row)
    draws = partial.resampled(found, 0, times=400)[:, 0]
    exact = np.sqrt(np.sum((w * (r - np.average(r, weights=w))) ** 2)) / w.sum()
    assert found.width == 8
    assert abs(draws.std() / exact - 1) < 5 * np.sqrt(1 / 800 + 1 / (2 * 7_500))
    assert abs(draws.mean() - np.average(r, weights=w)) < 5 * exact / np.sqrt(400)
