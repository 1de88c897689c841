"""`Live`: what a machine of random steps does not reach."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import sqlalchemy as sa
from numpy.testing import assert_allclose, assert_array_equal

import dither
import livings
from dither import live as lives
from dither import log, ope
from dither.live import learner as learners
from dither.live import taught
from dither.log import record
from dither.log.database import lessons, rewarding, sql_tables
from ledgers import decision, moment

X = np.eye(3)
pytestmark = pytest.mark.usefixtures("closing")  # newer Pythons warn of connections that are left open


def begin(**settings):
    return dither.LinFP(**{"dim": 3, "floor": 0.1, "lam": 1.0, "seed": 0} | settings)


def batches(live):
    """The ids that each batch has learnt, in order."""
    rewards, decisions = sql_tables.rewards.c, sql_tables.decisions.c
    fields = sa.select(rewards.batch, decisions.id).join_from(sql_tables.rewards, sql_tables.decisions)
    with live.ledger.database.reading() as connection:
        rows = connection.execute(fields.where(rewards.batch.is_not(None)).order_by(rewards.batch, rewards.seq)).all()
    found = {}
    for batch, id in rows:
        found.setdefault(batch, []).append(id)
    return found


def expire_lease(live):
    with live.ledger.holding() as connection:
        connection.execute(sa.update(sql_tables.lease).values(expires=0))


# One process


def test_it_goes_on_where_it_stood(shared):
    rng = np.random.default_rng(0)
    with dither.Live(shared, bandit=begin()) as live:
        plain = begin()
        for _ in range(10):
            d, want = live.choose(X, arms=["a", "b", "c"]), plain.choose(X)
            assert (d.arm, d.place, d.propensity, d.z) == ("abc"[want.arm], want.arm, want.propensity, want.z)
            r = float(rng.normal())
            assert live.reward(d.id, r) == "counted"
            plain.update(X[d.place], r)
        assert_array_equal(live.bandit.theta, plain.theta)
        pending = live.choose(X).id
        state = live.to_bytes()
    with dither.Live(shared, bandit=begin(seed=5)) as again:  # another seed is no other bandit
        assert again.to_bytes() == state
        assert again.reward(pending, 0.5) == "counted"
        assert again.bandit.observations == 11
    with dither.Live(shared, bandit=begin()) as again:
        assert again.choose(X).z != begin().choose(X).z
    # seen red: a bandit that is opened again and draws what it drew before


def test_what_a_decision_knew_is_stored_with_it(home):
    live = dither.Live(home, bandit=begin())
    knew = {}
    for i in range(6):
        d = live.choose(X)
        knew[d.id] = live.bandit.propensities(X)[d.place]
        if i % 2:
            live.reward(d.id, float(i))
    with live.ledger.database.reading() as connection:
        rows = connection.execute(sa.select(sql_tables.decisions.c.id, sql_tables.decisions.c.batch)).all()
    assert [batch for _, batch in rows] == [0, 0, 1, 1, 2, 2]
    seen = live.read()
    for i, (id, batch) in enumerate(rows):
        P = live.replay(batch).propensities(X)
        assert P[seen.a[i]] == pytest.approx(knew[id], abs=1e-12)
    # seen red: the number of the next batch


@pytest.mark.parametrize("every", [1, 3, 1000])
def test_a_restart_needs_the_last_snapshot_and_what_came_after(shared, every, monkeypatch):
    live = dither.Live(shared, bandit=begin(), snapshot_batches=every, snapshot_seconds=1e6)
    for i in range(7):
        live.reward(live.choose(X).id, float(i))
    state = live.to_bytes()
    live.ledger.close()  # a kill
    learnt = []
    whole = taught.teach
    monkeypatch.setattr(taught, "teach", lambda bandit, batch: learnt.append(batch.number) or whole(bandit, batch))
    again = dither.Live(shared)
    assert again.to_bytes() == state
    assert learnt == {1: [], 3: [7], 1000: [1, 2, 3, 4, 5, 6, 7]}[every]


def test_a_reward_that_the_model_refuses_is_kept_and_never_learnt(home):
    live = dither.Live(home, bandit=dither.GLMFP(dim=3, seed=0, floor=0.1))
    livings.unlimited(live)
    ids = [live.choose(X).id for _ in range(4)]
    assert live.reward(ids, [1.0, 2.0, 0.0, 1.0]) == ["counted"] * 4  # 2 is no click
    assert (live.bandit.observations, live.refused) == (3, 1)
    assert live.replay().to_bytes() == live.to_bytes()
    assert live.reward(live.choose(X).id, 1.0) == "counted"
    assert live.bandit.observations == 4


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda live: live.choose([[np.nan] * 3] * 2), ValueError, "finite"),
        (lambda live: live.choose(np.eye(4)), ValueError, "3"),
        (lambda live: live.choose(X, arms=["a", "b"]), ValueError, "3 different ids"),
        (lambda live: live.choose(X, mask=[False] * 3), ValueError, "on offer"),
        (lambda live: live.choose(X, id="first"), ValueError, "ids must differ"),
        (lambda live: live.reward("nobody", 1.0), LookupError, "no decision"),
        (lambda live: live.reward("first", np.inf), ValueError, "finite"),
    ],
)
def test_what_is_refused_changes_nothing(home, call, error, words):
    live = dither.Live(home, bandit=begin())
    live.choose(X, id="first")
    state = live.to_bytes()
    with pytest.raises(error, match=words):
        call(live)
    assert live.to_bytes() == state
    assert len(live.ledger) == 1
    assert live.reward("first", 1.0) == "counted"


def test_a_ledger_has_one_bandit(shared, tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"none was made: .* begin one with its bandit, dither.Live\(home, band"
    ):
        dither.Live(shared)
    with pytest.raises(FileNotFoundError):  # it is so: nothing was made
        log.Ledger.to_read(shared)
    log.Ledger(shared).close()
    with pytest.raises(ValueError, match=r"has no bandit yet: dither.Live\(home, bandit=...\) gives it one"):
        dither.Live(shared)
    dither.Live(shared, bandit=begin()).close()
    with pytest.raises(ValueError, match=r"another bandit: floor is 0\.1 there and 0\.2"):
        dither.Live(shared, bandit=begin(floor=0.2))
    with pytest.raises(ValueError, match="another bandit: model is"):
        dither.Live(shared, bandit=dither.LinFP(dim=3, lam=2.0, floor=0.1))
    taught = begin()
    taught.update(X[0], 1.0)
    with pytest.raises(ValueError, match="has learnt 1 rewards by itself"):
        dither.Live(shared, bandit=taught)
    with pytest.raises(TypeError, match=r"must be a dither\.Bandit"):
        dither.Live(None, bandit=dither.LinFP)
    with pytest.raises(TypeError, match="a file cannot hold"):
        dither.Live(None, bandit=dither.LinFP(dim=3, c=lambda t: 1 / t))
    with dither.Live(tmp_path / "warm.db", bandit=taught) as warm:
        assert warm.bandit.observations == 1  # what it had learnt is where the ledger begins
        warm.reward(warm.choose(X).id, 1.0)
    with dither.Live(tmp_path / "warm.db") as warm:
        assert warm.bandit.observations == 2


def test_a_batch_of_requests_is_many_decisions(home):
    live = dither.Live(home, bandit=begin())
    many = np.random.default_rng(0).normal(size=(5, 3, 3))
    d = live.choose(many, arms=["a", "b", "c"], extra={"user": list("vwxyz")})
    assert len(set(d.id)) == 5
    assert d.arm.tolist() == ["abc"[i] for i in d.place]
    assert live.reward(list(d.id), [1.0] * 5) == ["counted"] * 5
    plain = begin()
    plain.update(many[np.arange(5), d.place], np.ones(5))
    assert_array_equal(live.bandit.theta, plain.theta)
    assert live.batch == 1
    assert live.read().frame["user"].to_list() == list("vwxyz")


def test_disjoint_slots_keep_their_ids(shared):
    bandit = dither.LinFP(dim=2, disjoint=3, seed=0, floor=0.3)
    with dither.Live(shared, bandit=bandit) as live:
        for i in range(12):
            d = live.choose([1.0, i / 12], arms=["red", "green", "blue"], mask=[True, i % 2 == 0, True])
            assert d.arm == ("red", "green", "blue")[d.place]
            live.reward(d.id, float(i))
        with pytest.raises(ValueError, match="A slot keeps its id"):
            live.choose([1.0, 0.0], arms=["blue", "red", "green"])
        plain = dither.LinFP(dim=2, disjoint=3, seed=0, floor=0.3)
        seen = live.read()
        for i, (arms, a) in enumerate(zip(seen.frame["arms"].to_list(), seen.a, strict=True)):
            plain.update([1.0, i / 12], float(i), arm=["red", "green", "blue"].index(arms[a]))
        assert_allclose(live.bandit.theta, plain.theta, atol=1e-12)
    with dither.Live(shared) as again:
        assert again.choose([1.0, 0.0]).arm in ("red", "green", "blue")
        with pytest.raises(ValueError, match="A slot keeps its id"):
            again.choose([1.0, 0.0], arms=["blue", "red", "green"])


@pytest.mark.parametrize("store", ["all", "shown"])
def test_features_of_the_arm_shown_are_enough_to_learn(home, store):
    live = dither.Live(home, bandit=begin(), store=store)
    d = live.choose(2 * X)
    live.reward(d.id, 1.0)
    assert live.bandit.theta[d.place] == pytest.approx(0.4)  # 2/(1 + 4)
    held = live.read().frame["features"].to_list()
    assert held == ([(2 * X).tolist()] if store == "all" else [None])


def test_a_log_that_is_taken_over_is_learnt(shared, tmp_path):
    bandit = begin()
    with log.Log(tmp_path / "folder", bandit=bandit) as written:
        for i in range(20):
            d = written.decide(X)
            written.reward(d.id, float(i))
            bandit.update(X[d.arm], float(i))
    live = dither.Live(shared, bandit=begin())
    assert live.ledger.take_over(tmp_path / "folder") == 20
    assert live.learn() == 1
    assert_allclose(live.bandit.theta, bandit.theta, rtol=1e-12)


def test_features_and_a_catalogue(home):
    encoder = dither.Features(
        context={"country": ["se", "de"]}, arm={"topic": ["art", "war"]}, cross=[("country", "topic")]
    )
    catalogue = dither.Catalogue(encoder, {"a17": {"topic": "art"}, "a23": {"topic": "war"}, "a5": {"topic": "art"}})
    bandit = dither.Bandit(
        dither.models.Ridge(), dither.policies.Greedy(), dim=encoder.dim, features=encoder, floor=0.2
    )
    live = dither.Live(home, bandit=bandit, catalogue=catalogue)
    d = live.choose({"country": "de"}, arms=["a17", "a23"])
    assert d.arm == ("a17", "a23")[d.place]
    assert live.reward(d.id, 1.0) == "counted"
    want = encoder.encode({"country": "de"}, [{"topic": "art"}, {"topic": "war"}])
    seen = live.read()
    assert_array_equal(seen.X[0], want)
    assert seen.names == encoder.columns
    assert seen.frame["arms"].to_list() == [["a17", "a23"]]
    assert_allclose(live.bandit.mean(want[d.place][None]) > 0.4, True)
    catalogue.retire("a17")
    assert live.choose({"country": "se"}).arm in ("a23", "a5")
    other = dither.Features(context={"country": ["se"]}, arm={"topic": ["art", "war"]}, cross=[("country", "topic")])
    with pytest.raises(ValueError, match=r"the bandit's features are not those of the catalogue"):
        dither.Live(None, bandit=bandit, catalogue=dither.Catalogue(other))
    plain = dither.Live(None, bandit=bandit)
    assert plain.choose({"country": "de"}, [{"topic": "art"}]).arm == 0


def test_erasing_makes_the_bandit_of_the_others(home):
    live = dither.Live(home, bandit=begin(), snapshot_batches=2)
    rng = np.random.default_rng(0)
    for i in range(20):
        d = live.choose(rng.normal(size=(3, 3)), extra={"user": f"u{i % 4}"})
        live.reward(d.id, float(i))
    before = live.to_bytes()
    assert live.erase(user="u2") == 5
    plain, seen = begin(), live.read()
    for i in range(20):
        if i % 4 != 2:
            plain.update(seen.frame["features"].to_list()[i][seen.a[i]], float(i))
    assert live.bandit.observations == 15
    assert_array_equal(live.bandit.theta, plain.theta)
    assert live.to_bytes() == live.replay().to_bytes() != before
    kept = sa.select(sql_tables.snapshots.c.batch)
    with live.ledger.database.reading() as connection:
        assert list(connection.scalars(kept)) == [20]  # those of before are gone, and a new one is written
    # seen red: the snapshots left as they were


# Several processes


def test_one_learns_and_the_others_follow_its_snapshots(shared):
    one = dither.Live(shared, bandit=begin(), snapshot_batches=1)
    two = dither.Live(shared, refresh_seconds=1e-6)
    first = one.choose(X).id
    one.reward(first, 1.0)
    assert (one.learns, two.learns) == (True, False)
    second = two.choose(X)
    assert two.batch == 1
    assert_array_equal(two.bandit.theta, one.bandit.theta)
    assert two.reward(second.id, 2.0) == "counted"
    assert two.batch == 1
    assert one.learn() == 1
    two.choose(X)
    assert two.to_bytes() == one.to_bytes()
    one.close()
    assert two.reward(two.choose(X).id, 3.0) == "counted"
    two.learn()
    assert two.learns
    assert two.bandit.observations == 3


def test_a_process_whose_first_call_is_a_reward_learns_it(shared):
    one = dither.Live(shared, bandit=begin())
    ids = [one.choose(X).id for _ in range(3)]
    one.reward(ids[0], 1.0)
    one.close()
    two = dither.Live(shared)
    two.reward(ids[1], 2.0)
    assert two.learns
    assert two.bandit.observations == 2
    two.erase([ids[0]])
    assert two.bandit.observations == 1
    log.Ledger(shared).erase([ids[1]])
    two.reward(ids[2], 3.0)  # it learns of the erasure when it writes
    assert two.bandit.observations == 1
    assert two.to_bytes() == two.replay().to_bytes()


@pytest.mark.parametrize("first", ["a snapshot", "a reward"])
def test_a_learner_that_slept_through_its_lease_writes_nothing(shared, first):
    one = dither.Live(shared, bandit=begin(), lease_seconds=1e6, snapshot_seconds=1e6)
    one.reward(one.choose(X).id, 1.0)
    two = dither.Live(shared, lease_seconds=1e6)
    expire_lease(two)
    assert two.learn() == 0
    assert (one.learns, two.learns) == (True, True)  # one believes it, as nothing has told it otherwise
    late = one.choose(X).id
    if first == "a snapshot":
        one._learner.keep()
        with one.ledger.database.reading() as connection:
            assert connection.scalar(sa.select(sa.func.max(sql_tables.snapshots.c.fence))) in (None, 2)
        assert not one.learns
    assert one.reward(late, 5.0) == "counted"
    assert not one.learns
    assert one.batch == 1
    assert two.learn() == 1
    assert two.bandit.observations == 2
    with two.ledger.database.reading() as connection:
        assert list(connection.scalars(sa.select(sql_tables.batches.c.fence))) == [1, 2]
    # seen red: `renew` without the fence; `check` without it


@pytest.mark.parametrize("look", [lessons.check, lessons.renew])
def test_who_has_looked_at_its_lease_keeps_it_until_its_transaction_ends(postgres, closing, look):
    """In SQLite a transaction that writes is alone."""
    url, taken = postgres.url(), []
    one, two = log.Ledger(url), log.Ledger(url)
    with one.holding() as connection:
        held = lessons.take(connection, one.database, "one", 1e-6)

    def take():
        with two.holding() as connection:
            taken.append(lessons.take(connection, two.database, "two", 1e6))

    thread = threading.Thread(target=take)
    with one.holding() as connection:
        assert look(connection, one.database, held, 0) is not None
        thread.start()
        waits = sa.text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        until = time.monotonic() + 30
        while not connection.scalar(waits) and not taken and time.monotonic() < until:
            connection.execute(sa.text("SELECT pg_stat_clear_snapshot()"))
        assert not taken
    thread.join()
    assert taken[0].fence == held.fence + 1
    with one.holding() as connection:
        assert look(connection, one.database, held, 0) is None
    # seen red: `check` without FOR UPDATE


def test_a_reward_that_commits_late_is_learnt_in_a_later_batch(postgres, closing, monkeypatch):
    """Its row has a lower number than rows that were learnt before it could be seen."""
    monkeypatch.setattr(learners, "SWEEP", 0)
    url = postgres.url()
    live = dither.Live(url, bandit=begin())
    ids = [live.choose(X, id=f"d{i}").id for i in range(3)]
    slow = log.Ledger(url)
    sent = rewarding.Sent("d0", 1.0, None, record.micros(moment(0)))
    with slow.holding() as connection:
        judge = rewarding.Judge(connection, slow.database, ["d0"])
        assert judge.answer(sent) == "counted"
        rewarding.insert(connection, slow.database, judge.rows)
        assert live.reward(ids[1], 2.0) == "counted"
        assert live.bandit.observations == 1
    assert live.reward(ids[2], 3.0) == "counted"
    assert live.bandit.observations == 3
    assert batches(live) == {1: ["d1"], 2: ["d0", "d2"]}
    assert live.to_bytes() == live.replay().to_bytes()
    # seen red: a learner that takes only the rewards of its own transactions


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_child_of_a_fork_draws_by_itself_and_does_not_learn(shared):
    code = """
import os, sys
import numpy as np
import dither
live = dither.Live(sys.argv[1], bandit=dither.LinFP(dim=3, floor=0.1, lam=1.0, seed=0), snapshot_batches=1)
X = np.eye(3)
live.reward(live.choose(X).id, 1.0)
receive, send = os.pipe()
if os.fork() == 0:
    d = live.choose(X)
    said = live.reward(d.id, 2.0)
    same = live.to_bytes() == live.replay(live.batch).to_bytes()
    os.write(send, f"{d.z} {said} {live.learns} {same} {live.bandit.observations}".encode())
    os._exit(0)
os.close(send)
z, said, learns, same, n = os.read(receive, 1000).decode().split()
os.wait()
assert float(z) != live.choose(X).z
print(said, learns, same, n, live.learns, live.learn(), live.bandit.observations)
"""
    path = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1", "PATH": os.environ["PATH"]}
    command = [sys.executable, "-W", "ignore", "-c", code, str(shared)]
    done = subprocess.run(command, env=path, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["counted", "False", "True", "1", "True", "1", "2"], done.stderr


def test_threads_decide_and_reward_at_once(home):
    live = dither.Live(home, bandit=begin())
    failed = []

    def work():
        try:
            for _ in range(20):
                d = live.choose(X)
                assert live.reward(d.id, 1.0) == "counted"
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failed == []
    live.learn()
    assert live.bandit.observations == 80
    assert live.to_bytes() == live.replay().to_bytes()
    assert sorted(id for ids in batches(live).values() for id in ids) == sorted(live.read().frame["id"])


# Judged before it acts


def test_a_shadow_that_does_not_learn_is_logged_and_judged(home):
    other = dither.Greedy(dim=3, seed=3)
    other.update(X[0], 5.0)
    live = dither.Live(home, bandit=begin(floor=1.0), shadow=other, shadow_learns=False)
    for i in range(60):
        d = live.choose(X, mask=[True, True, i % 3 != 0])
        live.reward(d.id, float(d.place == 0) + 0.001 * i)
    seen = live.read()
    for i in range(60):
        mask = [True, True, i % 3 != 0]
        assert_array_equal(seen.matrix("judged")[i][: sum(mask)], other.propensities(X, mask=mask)[mask])
    got = ope.snips(seen.r, seen.a, seen.p, seen.matrix("judged")[:, : seen.K.max()])
    assert got.value > 0.9
    assert seen.frame["policy"][0].startswith("FeaturePerturbation")
    with pytest.raises(ValueError, match=r"dim=3.*dim=2"):
        dither.Live(None, bandit=begin(), shadow=dither.LinFP(dim=2))
    with pytest.raises(ValueError, match="give one of them"):
        dither.Live(None, bandit=begin(), shadow=other, apprentice=lambda X, mask: 0)


def test_an_apprentice_learns_while_the_rule_acts(home):
    live = dither.Live(home, bandit=begin(), apprentice=lambda X, mask: 1, explore=0.3)
    rng = np.random.default_rng(0)
    shown = []
    for _ in range(400):
        d = live.choose(X, arms=["a", "b", "c"])
        assert (d.propensity, d.propensity_kind) == (pytest.approx(0.8 if d.place == 1 else 0.1), "exact")
        shown.append(d.place)
        live.reward(d.id, [0.9, 0.5, 0.1][d.place] + 0.1 * rng.normal())
    share = np.bincount(shown, minlength=3) / 400
    assert np.all(abs(share - [0.1, 0.8, 0.1]) < 5 * np.sqrt([0.09 / 400, 0.16 / 400, 0.09 / 400]))
    seen = live.read()
    assert seen.check().ok
    assert_array_equal(seen.floor, 0.3)
    rule, judged = seen.r.mean(), ope.snips(seen.r, seen.a, seen.p, seen.matrix("judged"))
    assert judged.value > rule + 3 * judged.se
    assert live.bandit.propensities(X)[0] > 0.9
    with pytest.raises(ValueError, match=r"explore= is for a rule, apprentice=.*floor="):
        dither.Live(None, bandit=begin(), explore=0.2)  # seen red: no choice is explored, and nobody says so
    wrong = dither.Live(None, bandit=begin(), apprentice=lambda X, mask: 7)
    with pytest.raises(ValueError, match=r"position of an arm on offer, one of \[0, 1, 2\]; got 7"):
        wrong.choose(X)
    assert len(wrong.ledger) == 0


def test_names(home):
    assert dither.Live is lives.Live
    live = dither.Live(home, bandit=begin())
    assert isinstance(live.choose(X), lives.Shown)
    assert "Live(" in repr(live)
    assert live.ledger.record(decision(), X=X).id
    live.close()
    live.close()
    live._next = 0.0  # it is time to look for what other processes have changed
    with pytest.raises(ValueError, match="is closed: open it again"):
        live.choose(X)
    # seen red: the look of a closed one, which ends with an error of the database in memory


def test_the_decision_in_place_of_its_id_is_refused(home):
    live = dither.Live(home, bandit=begin())
    d = live.choose(X)
    for given in (d, [d]):
        with pytest.raises(TypeError, match="pass its field id"):
            live.reward(given, [1.0] if isinstance(given, list) else 1.0)
    assert live.reward(d.id, 1.0) == "counted"
    # seen red: "no decision "Shown(...)" in this log"
