"""The experiment about exact propensities: its sums against closed forms, simulation and the bandits themselves."""

import csv
import dataclasses

import numpy as np
import pytest
import typer
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import dither
from dither import models, ope, policies
from dither.ope import synthetic
from dither_bench import exact, exact_report
from dither_bench.commands import study

DRAWS = 20_000
HERE = exact.world()
NEAR = dataclasses.replace(HERE, contexts=8)


@pytest.fixture(scope="module")
def own():
    return exact.loggers(HERE, draws=DRAWS)


def test_fp_matched_earns_what_ts_earns(own):
    made, c = own
    value = {name: HERE.value(P).value for name, P in made.items()}
    assert_allclose(value["FP matched"], value["TS"], atol=1e-3)
    assert c > 1
    assert value["FP"] > value["TS"]


def test_frequencies_are_those_of_the_bandit():
    ts = exact.bandit(NEAR, policies.ThompsonSampling())
    X = NEAR.instance.X
    P = exact.frequencies(ts, X, draws=DRAWS)
    p, se, kind = ts.propensities(X, detail=True, draws=DRAWS)
    assert kind == "monte_carlo"
    assert_allclose(P.sum(axis=1), 1)
    assert np.all(np.abs(P - p) < 5 * np.sqrt(2) * se)  # seen red: a sampled θ̃ without θ̂


def test_a_live_bandit_logs_the_binomial_law():
    """(1 + k)/(1 + n) of `Bandit.choose`, k given the arm shown: mean and variance of Bin(n, p)."""
    n, times = 40, 1500
    ts = dither.Bandit(models.Ridge(1.0), policies.ThompsonSampling(), dim=5, seed=4, monte_carlo=n)
    warm = NEAR.log(synthetic.uniform, exact.WARM)
    ts.update(warm.x, warm.r)
    x = NEAR.instance.X[0]
    P = exact.frequencies(ts, x[None], draws=200_000)[0]
    shown = [ts.choose(x) for _ in range(times)]
    arm = np.array([one.arm for one in shown])
    k = np.array([one.propensity for one in shown]) * (1 + n) - 1
    assert_allclose(k, np.round(k), atol=1e-9)
    common = arm == np.argmax(np.bincount(arm))
    p = P[arm[common][0]]
    count = common.sum()
    assert abs(k[common].mean() - n * p) < 5 * np.sqrt(n * p * (1 - p) / count)
    assert abs(k[common].var() / (n * p * (1 - p)) - 1) < 5 * np.sqrt(2 / count)
    assert abs(common.mean() - p) < 5 * np.sqrt(p * (1 - p) / times)


def test_a_live_bandit_with_a_floor_counts_hits_of_the_whole_policy():
    """The coin of the floor is drawn too: k hits of n, and one more. seen red: the floor added to the policy's own."""
    n, floor = 20, 0.2
    ts = dither.Bandit(models.Ridge(1.0), policies.ThompsonSampling(), dim=5, seed=4, floor=floor, monte_carlo=n)
    shown = {round(ts.choose(NEAR.instance.X[0]).propensity, 12) for _ in range(100)}
    possible = exact.estimate(np.arange(n + 1), rule="smooth", n=n, floor=floor, arms=10)
    assert shown <= set(np.round(possible, 12).tolist())
    assert len(shown) > 3


@pytest.mark.parametrize("case", exact.CASES, ids=lambda case: case.name)
def test_the_bias_of_the_smooth_rule_is_the_closed_form(own, case):
    for given in exact.tables(HERE, case, own[0]).values():
        for n in (1, 10, 100):
            found = exact.expected(given, rule="smooth", n=n, floor=case.floor, rows=100, noise=HERE.noise)
            lost = given.Q * (1 - given.p) ** (n + 1)
            assert_allclose(found["IPS"][0], -np.mean(np.sum(lost * given.mu, axis=1)), atol=1e-12)
            assert_allclose(found["DR"][0], -np.mean(np.sum(lost * (given.mu - given.M), axis=1)), atol=1e-12)
            # seen red: (1 - p)^n
        found = exact.expected(given, rule="exact", n=0, floor=case.floor, rows=100, noise=HERE.noise)
        if np.all(given.Q[given.p == 0] == 0):
            assert_allclose([found[name][0] for name in exact.ESTIMATORS], 0, atol=1e-12)


def test_the_sums_by_enumeration():
    """One context, two arms, n = 2: every outcome by hand."""
    p, Q, M, mu = (np.array([row]) for row in ([0.8, 0.2], [0.3, 0.7], [0.5, 0.1], [1.0, -1.0]))
    given, rows, noise = exact.ContextTables(p, p, Q, M, mu), 7, 0.5
    for name, prediction in (("IPS", np.zeros((1, 2))), ("DR", M)):
        mean = square = 0.0
        base = float((Q * prediction).sum())
        for a in (0, 1):
            q = p[0, a]
            for k, chance in enumerate(((1 - q) ** 2, 2 * q * (1 - q), q * q)):
                w = Q[0, a] * 3 / (1 + k)
                for e in (-noise, noise):  # two points of the same mean and variance
                    phi = base + w * (mu[0, a] + e - prediction[0, a])
                    mean += q * chance * phi / 2
                    square += q * chance * phi**2 / 2
        bias = mean - float((Q * mu).sum())
        found = exact.expected(given, rule="smooth", n=2, floor=0.0, rows=rows, noise=noise)[name]
        assert_allclose(found, [bias, np.sqrt(bias**2 + (square - mean**2) / rows)], rtol=1e-12)


@pytest.mark.parametrize("case", exact.CASES, ids=lambda case: case.name)
def test_the_simulation_agrees_with_the_sums(own, case):
    count = 200
    found = exact.lines(case, own[0], here=HERE, count=count, rows=100, draws=(10, 100))
    assert len(found) == 3 * 2 * (1 + 2 * (4 if case.floor else 3))
    for line in found:
        if case.name == "bolder" and line.logger == "FP":
            continue  # weights without bound: no normal law within any reach
        if line.rule in ("exact", "smooth") or (line.rule in exact.FLOORED and line.draws == 100):
            assert abs(line.bias - line.expected_bias) < 5 * line.bias_se, line  # seen red: k drawn from `own`
            assert abs(line.rmse - line.expected_rmse) < 5 * line.rmse_se, line
        assert (line.left_out > 0) <= (line.rule == "left out")


def test_the_estimates_are_those_of_ope(own):
    case = exact.CASES[2]
    given = exact.tables(HERE, case, own[0])["TS"]
    log = exact.logs(HERE, given, count=2, rows=80)
    p = exact.shown(given, log, rule="smooth", n=100, floor=0.1, rng=np.random.default_rng(0))
    for i in range(2):
        Q, M = given.Q[log.context[i]], given.M[log.context[i]]
        made = {
            "IPS": ope.contributions("ips", log.r[i], log.a[i], p[i], Q),
            "DR": ope.contributions("dr", log.r[i], log.a[i], p[i], Q, M),
        }
        for name, rows in made.items():
            own_value, own_se = (part[i] for part in exact.judge(given, log, p, estimator=name))
            theirs = ope.estimate(rows, warn=False)
            assert_allclose([own_value, own_se], [theirs.value, theirs.se], rtol=1e-12)


def test_rows_left_out_are_left_out_of_everything():
    given = exact.ContextTables(
        *(np.array([row]) for row in ([0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [0.0, 0.0], [1.0, 1.0]))
    )
    log = exact.Logs(np.zeros((1, 4), dtype=int), np.array([[0, 1, 0, 1]]), np.array([[1.0, 2.0, 3.0, 4.0]]))
    value, se = exact.judge(given, log, np.array([[0.5, 0.0, 0.5, 0.25]]), estimator="IPS")
    assert_allclose(value, (1 + 3 + 8) / 3)
    assert_allclose(se, np.std([1, 3, 8], ddof=1) / np.sqrt(3))


@pytest.mark.parametrize(
    ("rule", "k", "p"),
    [("smooth", 0, 1 / 11), ("smooth", 10, 1.0), ("left out", 0, 0.0), ("guarded", 0, 1e-6), ("guarded", 3, 0.3)],
)
def test_rules(rule, k, p):
    assert_allclose(exact.estimate(np.array(k), rule=rule, n=10, floor=0.0, arms=4), p)
    assert_allclose(exact.estimate(np.array(0), rule="floor known", n=10, floor=0.2, arms=4), 0.05)
    assert_allclose(exact.estimate(np.array(10), rule="floor known", n=10, floor=0.2, arms=4), 0.85)


def test_the_break_even_is_between_the_costs_that_bracket_it():
    made = [exact_report.Cost(10, 5, n, 1.0, kernel) for n, kernel in ((0, 1.0), (10, 0.5), (100, 2.0))]
    assert_allclose(exact_report.even(made, (10, 5)), np.sqrt(1000))
    assert np.isnan(exact_report.even(made[:2], (10, 5)))


def test_the_command_writes_all(tmp_path, monkeypatch):
    monkeypatch.setattr(exact, "world", lambda seed: NEAR)
    app = typer.Typer()
    app.command()(study.exact)
    words = ["--logs", "3", "--rows", "40", "--draws", "500", "--repeats", "1", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    out = tmp_path / "out"
    assert (out / "exact.png").read_bytes().startswith(b"\x89PNG")
    page = (out / "exact.md").read_text(encoding="utf-8")
    assert page.count("| FP | **exact** |") == 3
    assert page.splitlines()[0] in done.output
    with (out / "exact.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["case"] for row in rows} == {"greedy", "bolder", "other"}
    assert {row["logger"] for row in rows} == set(exact.LOGGERS)
    with pytest.raises(ValueError, match="logs must be"):
        exact.lines(exact.CASES[0], {}, here=HERE, count=1)


def test_a_world_without_end_is_refused():
    with pytest.raises(ValueError, match="finitely many contexts"):
        exact.loggers(dataclasses.replace(HERE, contexts=None))
