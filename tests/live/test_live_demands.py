"""Minima, budgets and baselines in `Live`: what is logged is what was drawn, and the state of all processes is one."""

import json
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import sqlalchemy as sa
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import Baseline, Budget, ope
from dither.log.database import sql_tables

X = np.eye(4) + 0.2 * np.random.default_rng(1).normal(size=(4, 4))
ARMS = ["a", "b", "c", "d"]
DAY = datetime(2026, 3, 1, tzinfo=UTC)
THETA = np.array([0.5, 0.3, 0.7, 0.2])
pytestmark = pytest.mark.usefixtures("closing")


def begin(**settings):
    return dither.LinFP(**{"dim": 4, "floor": 0.1, "lam": 1.0, "seed": 0, "c": 2.0} | settings)


def shares_agree(seen):
    """Whether arms were shown as often as their logged probabilities say: within 5 standard errors for each id."""
    listed = seen.frame["arms"].to_list()
    for name in ARMS:
        p = np.array([dict(zip(own, P, strict=False)).get(name, 0.0) for own, P in zip(listed, seen.P, strict=True)])
        hit = np.array([own[a] == name for own, a in zip(listed, seen.a, strict=True)])
        assert abs(np.sum(hit - p)) <= 5 * np.sqrt(np.sum(p * (1 - p))) + 1e-9, name


def agrees(seen):
    """Whether nothing in a log speaks against its propensities; rewards may be missing."""
    report = seen.check()
    assert {finding.kind for finding in report.findings} <= {"missing"}
    assert report.inverse.ok is not False
    assert not report.bets.doubted


def ips_agrees(seen, truth):
    """IPS of the uniform choice over what is on offer, against the truth by id."""
    listed = seen.frame["arms"].to_list()
    target = np.where(np.arange(seen.K.max()) < seen.K[:, None], 1 / seen.K[:, None], 0.0)
    want = np.mean([np.mean([truth[name] for name in own]) for own in listed])
    found = ope.ips(seen.r, seen.a, seen.p, target)
    spread = np.std(target[np.arange(len(seen)), seen.a] / seen.p * seen.r) / np.sqrt(len(seen))
    assert abs(found.value - want) <= 5 * spread


# Minima


@pytest.mark.parametrize("probabilities", [False, True])
def test_minima_by_id_are_kept_and_logged(home, probabilities):
    live = dither.Live(home, bandit=begin(), probabilities=probabilities, wait=False)
    rng, least = np.random.default_rng(0), {"b": 0.3, "d": 0.15}
    truth = dict(zip(ARMS, X @ THETA, strict=True))
    for i in range(400):
        on = rng.random(4) < 0.8
        on[2] = True
        d = live.choose(X, arms=ARMS, mask=on, minimum=least)
        assert d.propensity_kind == "exact"
        assert d.propensity >= max(least.get(d.arm, 0), 0.1 / on.sum()) - 1e-12
        if i % 4 == 0:
            live.reward(d.id, truth[d.arm])
        elif i % 4 == 1:
            live.reward(d.id, truth[d.arm] + 0.1 * rng.normal())
    seen = live.read()
    agrees(seen)
    with live.ledger.database.reading() as connection:
        batches = connection.execute(sa.select(sql_tables.decisions.c.batch)).scalars().all()
    for i in (0, 57, 399):
        listed, minimum = seen.frame["arms"][i].to_list(), seen.frame["minimum"][i].to_list()
        assert minimum == [least.get(name, 0.0) for name in listed]
        again = live.replay(batches[i]).propensities(X[[ARMS.index(name) for name in listed]], minimum=minimum)
        assert_allclose(again[seen.a[i]], seen.p[i], rtol=1e-9)
        if probabilities:
            assert_allclose(seen.P[i][: len(listed)], again, rtol=1e-9)
    if probabilities:
        shares_agree(seen)
    # seen red: the column without the mask; probabilities without the minimum


def test_a_catalogue_knows_ids_that_are_not_on_offer():
    number = dither.features.Numeric(mean=0, scale=1)
    f = dither.Features(context={"u": number}, arm={"x": number}, cross=[("u", "x")])
    arms = dither.Catalogue(f, {"a": {"x": 1.0}, "b": {"x": 2.0}, "c": {"x": 3.0}})
    live = dither.Live(None, bandit=dither.LinFP(features=f, seed=0), catalogue=arms)
    d = live.choose({"u": 1.0}, arms=["a", "c"], minimum={"b": 0.9, "c": 1.0})
    assert (d.arm, d.propensity) == ("c", 1.0)
    assert live.read().frame["minimum"][0].to_list() == [0.0, 1.0]
    with pytest.raises(LookupError, match=r"no arm in minimum 'bb': did you mean 'b'\?"):
        live.choose({"u": 1.0}, minimum={"bb": 0.5})
    with pytest.raises(ValueError, match=r"sum to at most 1 over the arms on offer, got 1\.2"):
        live.choose({"u": 1.0}, minimum={"a": 0.6, "b": 0.6})
    assert len(live.ledger) == 1


def test_slots_that_grow_under_budgets():
    """A catalogue of disjoint slots, a model that fades by the clock, and a budget: the slot of a new id is there."""
    f = dither.Features(context={"u": dither.features.Numeric(mean=0, scale=1)}, form="disjoint")
    shop = dither.Catalogue(f, {"a": {}, "b": {}})
    bandit = dither.LinFP(features=f, disjoint=1, seed=0, half_life=30.0, floor=0.1)
    live = dither.Live(None, bandit=bandit, catalogue=shop, budgets={"b": Budget(2, None)})
    shown = []
    for i in range(12):
        if i == 6:
            shop.add("c", {})
        d = live.choose(
            {"u": 1.0}, time=DAY + timedelta(seconds=i), minimum={"b": 0.8} | ({"c": 0.05} if i > 5 else {})
        )
        live.reward(d.id, 0.5)
        shown.append(d.arm)
    assert shown.count("b") == 2
    assert offers(live.read())[-1] == {"a", "c"}
    # seen red: time that passes after the slots have grown


def test_a_shadow_is_judged_with_the_same_minimum():
    live = dither.Live(None, bandit=begin(), shadow=begin(c=0.5, seed=3))
    live.choose(X, arms=ARMS, minimum={"d": 0.5}, values=[1.0, 2.0, 3.0, 4.0])
    want = begin(c=0.5).propensities(X, minimum=[0, 0, 0, 0.5], values=[1, 2, 3, 4])
    assert_allclose(live.read().frame["judged"][0].to_list(), want, rtol=1e-9)


# Budgets


def offers(seen):
    return [set(own) for own in seen.frame["arms"].to_list()]


def by_hand(seen, budgets):
    """Which arms a slow reader of the log would put on offer, row after row."""
    spent, found = {}, []
    for time, listed, a, cost in zip(
        seen.frame["time"].to_list(), seen.frame["arms"].to_list(), seen.a, seen.frame["cost"].to_list(), strict=True
    ):
        seconds = (time - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
        found.append(
            {
                name
                for name in ARMS
                if all(
                    spent.get((name, long, int(seconds // long)), 0.0) + cost <= most * (1 + 1e-9)
                    for most, long in budgets.get(name, ())
                )
            }
        )
        for _, long in budgets.get(listed[a], ()):
            key = listed[a], long, int(seconds // long)
            spent[key] = spent.get(key, 0.0) + cost
    return found


@pytest.mark.parametrize("batch", [None, 5])
def test_budgets_mask_what_is_spent(home, batch):
    budgets = {"c": Budget(3, "day"), "a": (Budget(2, "hour"), Budget(3.5, 7200)), "b": Budget(20, None)}
    live = dither.Live(home, bandit=begin(), budgets=budgets, probabilities=True, wait=False)
    rng = np.random.default_rng(0)
    for i in range(60):
        at, cost = DAY + timedelta(minutes=17 * i), float(rng.choice([0.5, 1.0]))
        extra = {"cost": cost if batch is None else [cost] * batch}
        many = X if batch is None else np.broadcast_to(X, (batch, 4, 4))
        d = live.choose(many, arms=ARMS, time=at, costs=[cost] * 4, extra=extra)
        if i % 3 == 0:
            live.reward(*((d.id, 1.0) if batch is None else (list(d.id), [1.0] * batch)))
    seen = live.read()
    assert offers(seen) == by_hand(seen, {"c": [(3, 86400)], "a": [(2, 3600), (3.5, 7200)], "b": [(20, 10**12)]})
    assert min(len(own) for own in offers(seen)) == 1
    agrees(seen)
    shares_agree(seen)
    last = [t for t, own in zip(seen.frame["time"].to_list(), offers(seen), strict=True)][-1]
    spent = live.spent(last)
    assert all(s <= b.most for name, own in live.budgets.items() for s, b in zip(spent[name], own, strict=True))
    assert live.replay().to_bytes() == live.to_bytes()
    assert seen.frame["time"][0] == DAY
    # seen red: a cost of 1 whatever it is; amounts that are not written


@pytest.mark.parametrize("kind", ["bandit", "rule", "slots"])
def test_a_batch_under_budgets_is_its_requests_in_turn(kind):
    rng, answers = np.random.default_rng(0), []
    many = rng.normal(size=(20, 4)) if kind == "slots" else rng.normal(size=(20, 4, 4))
    for whole in (True, False):
        bandit = begin(disjoint=4) if kind == "slots" else begin()
        rule = {"apprentice": lambda X, mask: 0 if mask is None or mask[0] else 3, "explore": 0.3}
        live = dither.Live(
            None, bandit=bandit, budgets={"a": Budget(4), "c": Budget(2)}, **(rule if kind == "rule" else {})
        )
        if kind == "rule":
            live._decider.rule._rng = np.random.default_rng(7)
        given = {"user": list(range(20)), "values": rng.uniform(1, 2, size=(20, 4)) * 0 + 1.5}
        if whole and kind != "rule":
            d = live.choose(many, arms=ARMS, values=given["values"], extra={"user": given["user"]}, time=DAY)
            answers.append(
                (d.arm.tolist(), d.propensity.tolist(), live.read().frame["user"].to_list(), offers(live.read()))
            )
        else:
            made = [
                live.choose(x, arms=ARMS, values=v, extra={"user": u}, time=DAY)
                for x, v, u in zip(many, given["values"], given["user"], strict=True)
            ]
            answers.append(
                (
                    [one.arm for one in made],
                    [one.propensity for one in made],
                    live.read().frame["user"].to_list(),
                    offers(live.read()),
                )
            )
    assert answers[0] == answers[1]
    assert sum(arm == "a" for arm in answers[0][0]) == 4


def test_days_are_those_of_utc():
    live = dither.Live(None, bandit=begin(floor=0.0), budgets={"a": Budget(1, "day")})
    for at, on in (
        ("2026-03-01T23:59:59.999999+00:00", True),
        ("2026-03-01T23:59:59.999999+00:00", False),
        ("2026-03-02T00:30:00+01:00", False),
        ("2026-03-02T00:00:00+00:00", True),
        ("2026-03-01T12:00:00+00:00", False),  # a late row finds its own day
    ):
        d = live.choose(X, arms=ARMS, minimum={"a": 1.0}, time=at)
        assert (d.arm == "a") == on
    # seen red: the time of now


def test_all_budgets_spent_is_an_error_that_names_them(home):
    live = dither.Live(home, bandit=begin(), budgets={name: Budget(1, None) for name in "bc"})
    on = [False, True, True, False]
    assert {live.choose(X, arms=ARMS, mask=on).arm for _ in range(2)} == {"b", "c"}
    state, rows = live.spent(), len(live.ledger)
    with pytest.raises(ValueError, match=r"all arms on offer have spent their budgets: .* raise one of b and c"):
        live.choose(X, arms=ARMS, mask=on)
    with pytest.raises(ValueError, match="all arms on offer"):  # the whole batch, or nothing
        live.choose(np.broadcast_to(X, (2, 4, 4)), arms=ARMS, mask=[[True] * 4, on])
    assert (live.spent(), len(live.ledger)) == (state, rows)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"costs": [1, 1, -1, 1]}, ValueError, "costs must be numbers of at least 0, got -1 for arm 2"),
        ({"costs": [1, 1]}, ValueError, "costs must have shape"),
        ({"extra": {"x1": {1}}}, ValueError, "extra must hold"),
        ({"id": "first"}, ValueError, "id 'first' was given to a decision before"),
        ({"baseline": "a"}, ValueError, "needs a bandit that keeps one"),
        ({"mask": [False] * 4}, ValueError, "on offer"),
        ({"extra": {"minimum": 1}, "minimum": {"a": 0.1}}, ValueError, "the column 'minimum', which the ledger writes"),
    ],
)
def test_what_is_refused_spends_nothing(home, given, error, words):
    live = dither.Live(home, bandit=begin(), budgets={name: Budget(10) for name in ARMS})
    live.choose(X, arms=ARMS, id="first")
    before = live.spent()
    with pytest.raises(error, match=words):
        live.choose(X, arms=ARMS, **given)
    assert live.spent() == before
    assert len(live.ledger) == 1
    # seen red: what is spent is written before the rows are made


def test_a_refused_request_leaves_those_beside_it(shared):
    """Threads share a transaction. An id that is there twice makes the ledger take each request by itself."""
    live = dither.Live(shared, bandit=begin(), budgets={"a": Budget(30)})
    live.choose(X, arms=ARMS, id="same")
    refused = []

    def work(i):
        for j in range(20):
            try:
                live.choose(X, arms=ARMS, minimum={"a": 0.5}, id="same" if j % 5 == i else None)
            except ValueError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 16
    assert all("'same' was given to a decision before" in one for one in refused)
    seen = live.read()
    assert len(seen) == 1 + 80 - 16
    arms = [own[a] for own, a in zip(seen.frame["arms"].to_list(), seen.a, strict=True)]
    assert live.spent()["a"] == (float(arms.count("a")),)


def test_the_ledger_keeps_its_budgets(shared):
    with dither.Live(shared, bandit=begin(), budgets={"a": Budget(2, None)}) as live:
        while live.choose(X, arms=ARMS).arm != "a":
            pass
    with dither.Live(shared) as live:
        assert live.budgets == {"a": (Budget(2, None),)}
        assert live.spent() == {"a": (1.0,)}
    with dither.Live(shared, budgets={"a": Budget(1, None)}) as live:
        assert "a" not in {live.choose(X, arms=ARMS).arm for _ in range(20)}
    with dither.Live(shared, budgets={}) as live:
        assert live.budgets == {}
        with pytest.raises(ValueError, match="costs= needs budgets"):
            live.choose(X, arms=ARMS, costs=[1] * 4)


def test_erased_decisions_still_count(home):
    live = dither.Live(home, bandit=begin(), budgets={"a": Budget(1, None)})
    while live.choose(X, arms=ARMS, extra={"user": "u7"}).arm != "a":
        pass
    live.erase(user="u7")
    assert live.spent() == {"a": (1.0,)}
    assert "a" not in {live.choose(X, arms=ARMS).arm for _ in range(20)}


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Budget(0), ValueError, "most, of a budget"),
        (lambda: Budget(1, "week"), LookupError, "no period 'week'"),
        (lambda: Budget(1, 0), ValueError, "period, in seconds"),
        (lambda: dither.Live(None, bandit=begin(), budgets={"a": 5}), TypeError, r"arm 'a' must be a dither\.Budget"),
        (lambda: dither.Live(None, bandit=begin(), budgets=[Budget(1)]), TypeError, "which arm has which budget"),
        (
            lambda: dither.Live(None, bandit=begin(), budgets={"a": [Budget(1), Budget(2, 86400)]}),
            ValueError,
            "two budgets for one period",
        ),
    ],
)
def test_budgets_without_sense_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


WORKER = """
import sys, json
import numpy as np
import dither
home, number, n, keeps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "baseline"
X = np.array(json.loads(sys.argv[5]))
rng = np.random.default_rng(number)
with dither.Live(home, probabilities=True, refresh_seconds=0.05, snapshot_batches=5) as live:
    print("ready", flush=True)
    sys.stdin.readline()
    for i in range(n):
        d = live.choose(X if i % 10 else np.broadcast_to(X, (3, 4, 4)), arms=["a", "b", "c", "d"])
        for id, place in zip(*([[d.id], [d.place]] if i % 10 else [d.id, d.place])):
            if keeps:
                live.reward(id, float(X[place] @ [0.5, 0.3, 0.7, 0.2] + 0.1 * rng.normal()))
            elif rng.random() < 0.3:
                live.reward(id, float(rng.random() < [0.9, 0.5, 0.5, 0.2][place]))
"""


def race(home, n, kind, processes=2):
    """Processes that decide at the same time."""
    command = [sys.executable, "-c", WORKER, str(home)]
    given = [str(n), kind, json.dumps(X.tolist())]
    running = [
        subprocess.Popen([*command, str(i), *given], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for i in range(processes)
    ]
    for one in running:
        assert one.stdout.readline() == "ready\n"
    for one in running:
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in running:
        one.communicate(timeout=240)
        assert one.returncode == 0


def test_racing_processes_never_overspend(shared):
    budgets = {"a": Budget(40, None), "b": Budget(25, None), "c": Budget(60, None)}
    with dither.Live(shared, bandit=begin(), budgets=budgets):
        pass
    race(shared, 100, "budgets")
    with dither.Live(shared) as live:
        seen = live.read()
        listed = seen.frame["arms"].to_list()
        arms = [own[a] for own, a in zip(listed, seen.a, strict=True)]
        assert len(seen) == 2 * (90 + 10 * 3)
        for name, budget in (("a", 40), ("b", 25), ("c", 60)):
            assert arms.count(name) <= budget
            assert live.spent()[name] == (float(arms.count(name)),)
        left = {"a": 40, "b": 25, "c": 60}
        for own, arm in zip(listed, arms, strict=True):  # each row was decided from what the rows before it had left
            assert set(own) == {"d", *(name for name, n in left.items() if n)}
            left[arm] = left.get(arm, 0) - 1
        agrees(seen)
        shares_agree(seen)
        assert live.replay().to_bytes() == live.to_bytes()
    # seen red: without the lock, on PostgreSQL; a mask that is read before the transaction


def test_weights_from_a_log_with_budgets_and_minima_are_unbiased():
    budgets = {"c": Budget(6, "hour"), "a": Budget(3, "hour")}
    live = dither.Live(None, bandit=begin(), budgets=budgets)
    rng, truth = np.random.default_rng(2), {"a": 0.1, "b": 0.4, "c": 0.9, "d": 0.6}
    for i in range(1200):
        d = live.choose(X, arms=ARMS, minimum={"b": 0.2}, time=DAY + timedelta(minutes=2 * i))
        live.reward(d.id, float(rng.random() < truth[d.arm]))
    seen = live.read()
    assert seen.check().ok
    assert {len(own) for own in offers(seen)} == {2, 3, 4}
    ips_agrees(seen, truth)
    # seen red: all four arms in the place of those that were left


# Baselines

KEEP = Baseline("a", loss=0.3, sigma=0.1)


def kept_by_hand(live, baseline):
    """What the rounds of the table add up to, in its order, and which arms were safe in each of them."""
    fields = [sql_tables.decisions.c[name] for name in ("arm", "batch", "features", "extra", "propensity", "K")]
    with live.ledger.database.reading() as connection:
        rows = connection.execute(sa.select(*fields).order_by(sql_tables.decisions.c.number)).all()
    z = np.zeros(4)
    for row in rows:
        extra = json.loads(row.extra)
        Y, at = np.frombuffer(row.features).reshape(row.K, 4), extra["baseline"]
        bandit = live.replay(row.batch)
        V = np.linalg.inv(bandit.state.F @ bandit.state.F.T)
        beta = baseline.S + baseline.sigma * np.sqrt(2 * np.log(1 / baseline.delta) + np.linalg.slogdet(V)[1])
        safe = []
        for x in Y:
            c = z + x - (1 - baseline.loss) * Y[at]
            safe.append(bool(c @ bandit.theta - beta * np.sqrt(c @ np.linalg.solve(V, c)) >= 0))
        safe[at] = True
        p = np.where(safe, plain(bandit).propensities(Y), 0.0)
        p[at] = 1 - p.sum() + p[at]
        yield row, extra, safe, p
        z = z + (baseline.loss * Y[at] if row.arm == at else Y[row.arm] - (1 - baseline.loss) * Y[at])


def plain(bandit):
    """The same bandit without its baseline."""
    made = dither.Bandit(bandit.model, bandit.policy, dim=4, floor=bandit.floor)
    made.follow(bandit)
    return made


def check_baseline(live, baseline=KEEP):
    unsafe = 0
    for row, extra, safe, p in kept_by_hand(live, baseline):
        assert extra["safe"] == safe
        assert_allclose(row.propensity, p[row.arm], rtol=1e-7)
        unsafe += safe.count(False)
    assert unsafe > 5
    assert live.replay().to_bytes() == live.to_bytes()
    assert dither.from_bytes(live.to_bytes()).kept.rounds == len(live.ledger)


def test_a_baseline_is_kept_and_logged(home):
    live = dither.Live(home, bandit=begin(baseline=KEEP), probabilities=True, wait=False)
    rng = np.random.default_rng(0)
    for i in range(60):
        on = rng.random(4) < 0.8
        on[:2] = True
        at = "a" if i % 3 else "b"
        many, mask = (X, on) if i % 7 else (np.broadcast_to(X, (3, 4, 4)), np.broadcast_to(on, (3, 4)))
        d = live.choose(many, arms=ARMS, mask=mask, baseline=at)
        for id, place in zip([d.id], [d.place], strict=True) if i % 7 else zip(d.id, d.place, strict=True):
            live.reward(id, float(X[place] @ THETA + 0.1 * rng.normal()))
    check_baseline(live)
    seen = live.read()
    agrees(seen)
    shares_agree(seen)
    unsafe = np.array([not all(safe) for safe in seen.frame["safe"].to_list()])
    assert_allclose(seen.frame["floor"].to_numpy(), np.where(unsafe, 0.0, 0.1), atol=1e-15)
    # seen red: the floor of the bandit where an arm is not safe; rounds that are read before the transaction


def test_a_baseline_goes_on_after_a_restart_and_an_erasure(shared):
    rng = np.random.default_rng(0)

    def rounds(live, n, user):
        for _ in range(n):
            d = live.choose(X, arms=ARMS, extra={"user": user})
            live.reward(d.id, float(X[d.place] @ THETA + 0.1 * rng.normal()))

    with dither.Live(shared, bandit=begin(baseline=KEEP)) as live:
        rounds(live, 15, "u1")
        state = live.to_bytes()
    with dither.Live(shared) as live:
        assert live.to_bytes() == state
        rounds(live, 10, "u2")
        check_baseline(live)
        before = dither.from_bytes(live.to_bytes()).kept
        live.erase(user="u1")
        kept = dither.from_bytes(live.to_bytes()).kept
        assert (before.rounds, kept.rounds) == (25, 10)
        assert live.replay().to_bytes() == live.to_bytes()
        rounds(live, 3, "u3")
        assert live.replay().to_bytes() == live.to_bytes()
    with pytest.raises(ValueError, match="another bandit: baseline is"):
        dither.Live(shared, bandit=begin(baseline=Baseline("a", loss=0.2)))
    # seen red: sums of an earlier erasure that are used on


def test_a_bandit_that_has_rounds_behind_it_begins_with_them():
    bandit = begin(baseline=Baseline(0, loss=0.3, sigma=0.1))
    for _ in range(10):
        bandit.update(X[bandit.choose(X).arm], 0.5)
    warm = dither.from_bytes(bandit.to_bytes())
    live = dither.Live(None, bandit=bandit)
    for _ in range(5):
        assert live.choose(X).place == warm.choose(X).arm
    assert live.replay().to_bytes() == live.to_bytes()
    assert dither.from_bytes(live.to_bytes()).kept.rounds == 15


def test_racing_processes_keep_one_baseline(shared):
    with dither.Live(shared, bandit=begin(baseline=KEEP), probabilities=True):
        pass
    race(shared, 50, "baseline")
    with dither.Live(shared) as live:
        check_baseline(live)
        seen = live.read()
        assert len(seen) == 2 * (45 + 5 * 3)
        agrees(seen)
        shares_agree(seen)
    # seen red: without the lock, on PostgreSQL


def test_a_baseline_and_budgets_and_minima_and_values_together(home):
    live = dither.Live(
        home, bandit=begin(baseline=KEEP), budgets={"c": Budget(6, None)}, probabilities=True, wait=False
    )
    rng, values = np.random.default_rng(0), [1.0, 1.2, 0.9, 1.1]
    for i in range(80):
        d = live.choose(X, arms=ARMS, values=values, minimum={"c": 0.3, "d": 0.1})
        if i % 2:
            live.reward(d.id, float(X[d.place] @ THETA + 0.1 * rng.normal()))
    seen = live.read()
    arms = [own[a] for own, a in zip(seen.frame["arms"].to_list(), seen.a, strict=True)]
    assert arms.count("c") == 6
    agrees(seen)
    shares_agree(seen)
    assert live.replay().to_bytes() == live.to_bytes()
    assert_array_equal(seen.frame["values"].list.len().to_numpy(), seen.K)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"store": "shown"}, "needs store='all'"),
        ({"apprentice": lambda X, mask: 0}, "a rule acts here"),
        ({"shadow": begin(baseline=KEEP)}, "judged and does not act keeps no baseline"),
    ],
)
def test_where_a_baseline_has_no_sense(settings, words):
    with pytest.raises(ValueError, match=words):
        dither.Live(None, bandit=begin(baseline=KEEP), **settings)


def test_a_baseline_must_be_among_the_arms():
    live = dither.Live(None, bandit=begin(baseline=KEEP))
    with pytest.raises(ValueError, match="the baseline 'a' must be among the arms of every request"):
        live.choose(X, arms=list("wxyz"))
    with pytest.raises(ValueError, match="must be on offer in every request"):
        live.choose(X, arms=ARMS, mask=[False, True, True, True])
    with pytest.raises(ValueError, match="a rule that acts has no minima"):
        dither.Live(None, bandit=begin(), apprentice=lambda X, mask: 0).choose(X, minimum=[0.1] * 4)
    assert len(live.ledger) == 0


@pytest.mark.parametrize("learn", [True, False])
def test_threads_of_one_process_share_their_turn(home, learn):
    """Decisions inside transactions, rewards, and looks for snapshots, from many threads: no thread waits for ever."""
    live = dither.Live(
        home, bandit=begin(baseline=KEEP), budgets={"c": Budget(20, None)}, refresh_seconds=1e-6, learn=learn
    )
    failed = []

    def work(i):
        try:
            for _ in range(15):
                d = live.choose(X, arms=ARMS)
                live.reward(d.id, float(X[d.place] @ THETA))
                live.to_bytes()
        except Exception as error:  # told below
            failed.append(error)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads)
    assert not failed
    assert not learn or live.replay().to_bytes() == live.to_bytes()
    assert len(live.ledger) == 60
    # seen red: `follow` that takes the bandit before the turn, with a ledger in memory


@pytest.mark.parametrize(
    "settings",
    [
        {"bandit": begin(), "budgets": {"a": Budget(3)}},
        {"bandit": begin(baseline=Baseline("a", 0.5))},
        {"bandit": begin(baseline=Baseline("a", 0.5, 0.1)), "budgets": {"b": Budget(3)}},
    ],
)
def test_a_batch_without_requests_is_no_decision(settings):
    """Seen red with IndexError, where the first of the choices was asked for its z."""
    live = dither.Live(None, **settings)
    shown = live.choose(np.empty((0, 4, 4)), arms=ARMS)
    assert (shown.id, shown.arm.tolist(), shown.propensity.tolist()) == ((), [], [])
    assert len(live.ledger) == 0
    assert live.to_bytes() == live.replay().to_bytes()
    assert live.choose(X, arms=ARMS).arm in ARMS
