"""`ope.plan`: the variance by enumeration, the power by simulation of logs, and a first log in place of assumptions."""

import itertools
import math

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import dither
from dither import log, ope
from dither.ope import planning
from longer import size

LOGS = size(800, longer=4000)  # of a simulation: a share of them has the standard error 0.014, or 0.006
OFF = 0.06  # how far the power may be off: by the normal law, by one spread for the rewards of all arms, by chance


def arms_of(kind, K):
    """The arms that two policies show where they differ from the favourite, arm 0; None: what ran."""
    return 1, None if kind == "to what ran" else 2 % K


@pytest.mark.parametrize("kind", planning.KINDS)
@pytest.mark.parametrize("K", [2, 3, 7])
def test_the_variance_is_that_of_all_that_can_happen(kind, K):
    """Both sorts of requests, each arm, and rewards of -1 and 1."""
    one, other = arms_of(kind, K)
    for floor, differs in itertools.product((0.05, 0.4, 1.0), (0.2, 1.0)):
        chance = [1 - floor + floor / K] + [floor / K] * (K - 1)
        mean = square = 0.0
        for (apart, share), arm, r in itertools.product([(1, differs), (0, 1 - differs)], range(K), (-1, 1)):
            w = (arm == one * apart) / chance[arm]
            v = 1 if other is None else (arm == other * apart) / chance[arm]
            mean += share * chance[arm] * 0.5 * (w - v) * r
            square += share * chance[arm] * 0.5 * ((w - v) * r) ** 2
        assert_allclose(planning.of_row(kind, K, floor, differs), square - mean**2, rtol=1e-12)
    # seen red: the weight of what ran left out; 2/q where there are two arms


def test_the_numbers_by_hand():
    plan = ope.plan(difference=0.1, arms=5, spread=0.5, loss=0.3, floors=[0.2, 1], power=0.5, level=0.9)
    z = stats.norm.ppf(0.95)
    n = {
        (0.2, "to what ran"): math.ceil(z**2 * 0.25 * 24 / 0.01),
        (0.2, "to another"): math.ceil(z**2 * 0.25 * 50 / 0.01),
        (1.0, "to what ran"): math.ceil(z**2 * 0.25 * 4 / 0.01),
        (1.0, "to another"): math.ceil(z**2 * 0.25 * 10 / 0.01),
    }
    far = ope.plan(difference=1, arms=5, spread=0.5, floors=[0.2], differs=0.5)
    assert far.decisions(0.2) == math.ceil(30 * (0.5 * 25 + 0.5 / 0.84))  # 30 effective rows, which a verdict needs
    assert {(row.floor, row.kind): row.decisions for row in plan.rows} == n
    for row in plan.rows:
        assert plan.decisions(row.floor, row.kind) == row.decisions
        assert_allclose((row.uniform, row.given_up), (row.decisions * row.floor, row.decisions * row.floor * 0.3))
    with pytest.raises(LookupError, match=r"no plan for floor 0.3 'to what ran': \[0.2, 1.0\]"):
        plan.decisions(0.3)
    half = ope.plan(difference=0.01, arms=5, spread=0.5, floors=[0.2], explained=0.5, differs=0.25, power=0.5)
    z = stats.norm.ppf(0.975)
    assert half.decisions(0.2, "to another") == math.ceil(z**2 * (0.125 * 0.25 * 50 + 0.0003) / 0.0001)
    bare = ope.plan(difference=0.1, arms=5, spread=0.5, floors=[0.2], differs=0.25, power=0.5)
    assert bare.decisions(0.2, "to another") == math.ceil(z**2 * 0.25 * 0.25 * 50 / 0.01)
    assert plan.table().shape == (4, 5)
    assert plan.table()["decisions"].to_list() == list(n.values())
    lines = str(plan).splitlines()
    assert lines[0].split("  ")[-1] == "reward given up"
    assert len({len(line) for line in lines[:5]}) == 1
    assert "0.2" in lines[1]
    assert f"{n[0.2, 'to another']:,}" in lines[2]
    assert "standard deviation 0.5, and a policy that shows another arm in every request" in lines[5]
    assert "not known" in str(half)
    assert "give loss=" in half.says[-1]
    assert "in 25% of the requests" in half.says[0]
    assert plan._repr_html_().count("<tr>") == 5


def a_world(n, *, K, floor, rate, d, differs, explained, rng):
    """Logs of n rows: whether the policies differ, the arm and its p, the reward, and what a model predicts of it."""
    p, q = 1 - floor + floor / K, floor / K
    apart, u = rng.random((LOGS, n)) < differs, rng.random((LOGS, n))
    a = np.where(u < p, 0, 1 + np.minimum((u - p) / q, K - 2).astype(int))
    better = np.where(apart & (a == 1), d / differs, 0.0)
    if not explained:
        r = (rng.random((LOGS, n)) < rate + better).astype(float)
        return apart, a, np.where(a == 0, p, q), r, np.zeros((LOGS, n))
    spread = math.sqrt(rate * (1 - rate))
    base = rng.normal(size=(LOGS, n)) * spread * math.sqrt(explained)
    r = base + better + rng.normal(size=(LOGS, n)) * spread * math.sqrt(1 - explained)
    return apart, a, np.where(a == 0, p, q), r, base


def told(kind, n, *, K, floor, rate, d, differs, explained, seed=0):
    """The share of logs whose interval of the difference is above 0; and the difference and its se in the first log."""
    d = d / (1 - floor / K) if kind == "to what ran" else d  # what ran shows the better arm too, by its floor
    apart, a, p, r, base = a_world(
        n, K=K, floor=floor, rate=rate, d=d, differs=differs, explained=explained, rng=np.random.default_rng(seed)
    )
    values, psi = [], []
    for arm in arms_of(kind, K):
        w = np.ones_like(p) if arm is None else (a == arm * apart) / p
        if explained and arm is not None:
            good = np.where(apart & (arm == 1), d / differs, 0.0)  # what the model predicts for the policy, beside base
            shown = base + np.where(apart & (a == 1), d / differs, 0.0)
            terms = base + good + w * (r - shown)
            values.append(terms.mean(1))
            psi.append(terms - values[-1][:, None])
        else:
            values.append((w * r).sum(1) / w.sum(1))
            psi.append(w * (r - values[-1][:, None]) / w.mean(1)[:, None])
    gap, se = values[0] - values[1], (psi[0] - psi[1]).std(1) / math.sqrt(n)
    return float(np.mean(gap > stats.norm.ppf(0.975) * se)), gap[0], se[0], (apart[0], a[0], p[0], r[0])


CASES = [
    dict(K=4, floor=0.4, rate=0.4, d=0.15, differs=1.0, explained=0.0),
    dict(K=3, floor=0.5, rate=0.4, d=0.08, differs=0.4, explained=0.0),
    dict(K=4, floor=1.0, rate=0.3, d=0.1, differs=1.0, explained=0.0),
    dict(K=4, floor=0.4, rate=0.5, d=0.1, differs=0.5, explained=0.6),
]


@pytest.mark.parametrize("kind", planning.KINDS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"K={case['K']},floor={case['floor']:g}")
def test_so_many_decisions_have_the_stated_power(case, kind):
    """Of simulated logs, whose estimates are those of `ope`."""
    K, d = case["K"], case["d"]
    more = dict(arms=K, rate=case["rate"], differs=case["differs"], explained=case["explained"])
    n = ope.plan(difference=d, floors=[case["floor"]], **more).decisions(case["floor"], kind)
    share, gap, se, (apart, a, p, r) = told(kind, n, **case)
    assert abs(share - 0.8) < OFF
    if case["explained"]:
        return
    estimates = []
    for arm in arms_of(kind, K):
        Q = np.zeros((n, K))
        Q[np.arange(n), 0 if arm is None else arm * apart] = 1
        if arm is None:
            Q = np.full((n, K), case["floor"] / K)
            Q[:, 0] += 1 - case["floor"]
        estimates.append(ope.snips(r, a, p, Q))
    found = ope.compare(*estimates)
    assert_allclose((found.value, found.se), (gap, se), rtol=1e-6)
    # seen red: two thirds of the rows; the variance by p where it is by q; the mean square in the place of the spread


def test_a_first_log_says_what_is_not_given():
    rng = np.random.default_rng(0)
    n, K, floor = 4000, 4, 0.4
    p, q = 1 - floor + floor / K, floor / K
    a = np.where(rng.random(n) < 1 - floor, 0, rng.integers(0, K, n))
    r = (rng.random(n) < np.where(a == 0, 0.5, 0.2)).astype(float)
    frame = pl.DataFrame(
        {"id": [f"d{i}" for i in range(n)], "arm": a, "K": [K] * n, "propensity": np.where(a == 0, p, q), "reward": r}
    )
    logged = log.read(frame.with_columns(floor=pl.lit(floor)))
    plan = ope.plan(logged, difference=0.05)
    assert (plan.arms, plan.mean, plan.spread) == (K, r.mean(), r.std())
    assert abs(plan.loss - (0.5 - 0.275)) < 0.04
    given = ope.plan(difference=0.05, arms=K, spread=r.std(), loss=plan.loss)
    assert plan.rows == given.rows
    assert ope.plan(logged, difference=0.05, arms=9, rate=0.5, loss=1.0).rows == (
        ope.plan(difference=0.05, arms=9, rate=0.5, loss=1.0).rows
    )
    assert ope.plan(log.read(frame), difference=0.05).loss < plan.loss  # of what ran, whose floor is not known
    with pytest.raises(ValueError, match="the log has no rows"):
        ope.plan(logged.filter(np.zeros(n, dtype=bool)), difference=0.05)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (dict(difference=0), "difference must be a finite number above 0, got 0"),
        (dict(arms=1), "arms must be a whole number of at least 2"),
        (dict(arms=None), "arms must be a whole number of at least 2"),
        (dict(rate=None), "spread of the rewards is not known: give rate= .of clicks., spread=, or a log"),
        (dict(spread=1.0), "rate is of rewards of 0 or 1, which says their spread: give one of the two"),
        (dict(rate=1), "rate must lie between 0 and 1, got 1"),
        (dict(power=1), "power must lie between 0 and 1"),
        (dict(level=95), r"level must lie in \[0, 1\], got 95"),
        (dict(floors=[0.1, 0]), "floors must be above 0, got 0: without it nothing is told apart"),
        (dict(floors=[]), "floors must be at least one share"),
        (dict(floors=[1.5]), r"floors must lie in \[0, 1\], got 1.5"),
        (dict(differs=0), "differs must be above 0"),
        (dict(explained=2), "explained must lie in"),
        (dict(rate=None, spread=math.inf), "spread must be a finite number above 0"),
    ],
)
def test_what_no_plan_can_be_made_of(given, words):
    with pytest.raises(ValueError, match=words):
        ope.plan(**dict(difference=0.01, arms=5, rate=0.1) | given)


def test_the_command(tmp_path):
    from typer.testing import CliRunner

    from dither.cli import app

    ask = lambda *words: CliRunner().invoke(app.build("plan"), ["plan", *words])  # noqa: E731
    done = ask("--rate", "0.05", "--arms", "10", "--difference", "0.01", "--floor", "0.1", "--loss", "0.02")
    assert done.exit_code == 0, done.output
    n = ope.plan(difference=0.01, arms=10, rate=0.05, floors=[0.1]).decisions(0.1)
    text = " ".join(done.output.split())
    assert f"to what ran 0.1 {n:,} {n * 0.1:,.0f} {n * 0.002:.3g} " in text
    assert "20% of the mean 0.05," in text
    bandit = dither.LinFP(dim=2, floor=0.5, seed=0)
    with log.Log(tmp_path / "log", bandit=bandit) as writer:
        for i in range(50):
            writer.reward(writer.decide(np.eye(3, 2)).id, float(i % 2))
    done = ask("--from", str(tmp_path / "log"), "--difference", "0.1")
    assert done.exit_code == 0, done.output
    assert "3 arms, rewards with the standard deviation 0.5," in " ".join(done.output.split())
    done = ask("--rate", "0.05", "--arms", "10", "--difference", "0.01")
    assert "is not known: give --loss, or a log." in " ".join(done.output.split())  # seen red: "give loss="
    done = ask("--arms", "10", "--difference", "0.01")
    assert str(done.exception) == "spread of the rewards is not known: give --rate (of clicks), --spread, or a log"
