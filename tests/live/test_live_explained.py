"""`Live.explain`: the moment of a stored decision is made again from the ledger, and what cannot be is said."""

import json
from datetime import UTC, datetime

import numpy as np
import pytest
import sqlalchemy as sa
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import live as lives
from dither.live import past, taught
from dither.log.database import sql_tables

X = np.array([[1.0, 0.2, -0.3], [0.4, 1.0, 0.1], [-0.2, 0.5, 1.0], [0.7, -0.6, 0.5]])
ARMS = ["a", "b", "c", "d"]
pytestmark = pytest.mark.usefixtures("closing")


def begin(name="LinFP", **settings):
    return dither.ALGORITHMS[name](**{"dim": 3, "floor": 0.3, "lam": 1.0, "seed": 0} | settings)


def play(live, n, *, seed=0, x=X, **more):
    """Decisions with rewards; -> each decision, with the means and the widths of the bandit that made it."""
    rng, seen = np.random.default_rng(seed), []
    for _ in range(n):
        d = live.choose(x, **{"arms": ARMS} | more)
        bandit = live.bandit
        seen.append((d, bandit.predict(x), bandit.width(x)))
        live.reward(d.id, float(rng.random() < 0.2 + 0.2 * d.place))
    return seen


def row(live, id, **values):
    """Put other values into the row of a decision."""
    with live.ledger.holding() as connection:
        connection.execute(sa.update(sql_tables.decisions).where(sql_tables.decisions.c.id == id).values(values))


# What is known


@pytest.mark.parametrize("name", ["LinFP", "GLMFP", "LinUCB", "Softmax"])
def test_it_is_the_bandit_as_it_was(home, name):
    live = dither.Live(home, bandit=begin(name), snapshot_batches=4, snapshot_seconds=1e6)
    seen = play(live, 12)
    for i, (d, mean, width) in enumerate(seen):
        e = live.explain(d.id)
        assert_allclose(e.mean, mean, rtol=1e-12)
        assert_allclose(e.width, width, rtol=1e-12)
        assert_allclose(e.propensity[d.place], d.propensity, rtol=1e-9)
        assert_allclose(e.propensity.sum(), 1.0)
        assert (e.ids, e.decision.arm, e.z) == (tuple(ARMS), d.arm, d.z)
        assert e.decision.versions["batch"] == i
        assert e.cause not in ("unknown", "alone")
        if d.z is not None:
            s = e.m + d.z * e.w
            assert (s[d.place] >= s.max() - 1e-9) == (e.cause in ("z", "greedy"))
        described = json.loads(json.dumps(e.to_dict(), allow_nan=False))
        assert (described["id"], described["arm"], described["propensity"]) == (d.id, d.arm, d.propensity)
        assert d.arm in str(e)
    with pytest.raises(LookupError, match="no decision 'nobody'"):
        live.explain("nobody")
    # seen red: the batch after the one that the row names; the first snapshot in place of the nearest


def test_any_process_may_ask_a_ledger_alone(shared):
    with dither.Live(shared, bandit=begin()) as live:
        d, mean, _ = play(live, 5)[-1]
        want = live.explain(d.id).to_dict()
        with dither.log.Ledger(shared) as ledger:
            assert lives.explained(ledger, d.id).to_dict() == want
            assert_allclose(lives.explained(ledger, d.id).mean, mean, rtol=1e-12)


def test_it_starts_from_the_nearest_snapshot(tmp_path, monkeypatch):
    live = dither.Live(tmp_path / "a.db", bandit=begin(), snapshot_batches=5, snapshot_seconds=1e6)
    seen = play(live, 23)
    learnt, whole = [], taught.teach
    monkeypatch.setattr(taught, "teach", lambda bandit, batch: learnt.append(batch.number) or whole(bandit, batch))
    for i, batches in ((22, [21, 22]), (20, []), (19, [16, 17, 18, 19]), (3, [1, 2, 3]), (0, [])):
        learnt.clear()
        e = live.explain(seen[i][0].id)
        assert learnt == batches
        assert_allclose(e.mean, seen[i][1], rtol=1e-12)
    # seen red: a replay from the beginning


def test_a_snapshot_from_before_a_correction_is_not_used():
    live = dither.Live(None, bandit=begin(), snapshot_batches=2, snapshot_seconds=1e6)
    seen = play(live, 4)
    with live.ledger.holding() as connection:  # snapshots that a later batch corrects, and that are still there
        kept = connection.execute(sa.select(sql_tables.snapshots)).all()
    live.correct(seen[0][0].id, 7.0)
    d, mean, _ = play(live, 1)[0]
    with live.ledger.holding() as connection:
        connection.execute(sa.delete(sql_tables.snapshots))
        connection.execute(sa.insert(sql_tables.snapshots), [one._asdict() for one in kept])
    assert_allclose(live.explain(d.id).mean, mean, rtol=1e-9)
    for one, before, _ in seen:  # they did not know of it
        assert_allclose(live.explain(one.id).mean, before, rtol=1e-12)
    with live.ledger.database.reading() as connection:
        state = past.state(connection, live.batch, {}).taught.bandit
    assert_array_equal(state.theta, live.replay().theta)
    # seen red: the latest snapshot, whatever was corrected since


def test_it_passes_over_events():
    """Settings, a rollback and a shadow that was promoted: each decision with the bandit that it had."""
    live = dither.Live(None, bandit=begin(), shadow=begin("Softmax"), snapshot_batches=2, snapshot_seconds=1e6)
    seen = play(live, 3)
    live.change(c=2.5, floor=0.1)
    seen += play(live, 3, seed=1)
    with live.ledger.database.reading() as connection:
        gone = connection.execute(sa.select(sql_tables.snapshots)).all()
    live.rollback(2)
    seen += play(live, 3, seed=2)
    with live.ledger.holding() as connection:  # of batches that are not learnt any more
        connection.execute(sa.delete(sql_tables.snapshots))
        connection.execute(sa.insert(sql_tables.snapshots), [one._asdict() for one in gone])
    assert_allclose(live.explain(seen[-1][0].id).mean, seen[-1][1], rtol=1e-9)
    live.relearn()
    seen += play(live, 2, seed=3)
    live.promote()
    seen += play(live, 2, seed=4)
    for i, (d, mean, width) in enumerate(seen):
        e = live.explain(d.id)
        assert_allclose(e.mean, mean, rtol=1e-9)
        assert_allclose(e.width, width, rtol=1e-9)
        assert_allclose(e.propensity[d.place], d.propensity, rtol=1e-9)
        assert e.decision.versions["event"] == [None, 1, 2, 3, 4][(i >= 3) + (i >= 6) + (i >= 9) + (i >= 11)]
        assert not [words for words in e.unknown if "learnt" in words]
        batch = e.decision.versions["batch"]
        with live.ledger.database.reading() as connection:
            state = past.state(connection, batch, {}).taught.bandit
        assert_array_equal(state.theta, live.replay(batch).theta)
    # seen red: the course of now in place of that of the batch


def test_features_and_a_catalogue_give_names():
    fields = dither.Features(context={"land": ["AT", "CH"]}, arm={"topic": ["art", "war"]}, cross=[("land", "topic")])
    arms = dither.Catalogue(fields, {"a17": {"topic": "art"}, "a23": {"topic": "war"}, "a5": {"topic": "art"}})
    live = dither.Live(None, bandit=dither.LinFP(features=fields, lam=1.0, seed=0), catalogue=arms)
    for i in range(8):
        d = live.choose({"land": "AT"}, arms=["a17", "a23"])
        live.reward(d.id, float(d.arm == "a23") + i / 10)
    e = live.explain(d.id)
    assert e.parts.names == ("intercept", "land", "topic", "land*topic")
    assert_allclose(e.parts.scores.sum(axis=1), e.mean)
    at = e.chosen.arm
    assert_allclose(e.parts.differences.sum(), e.mean[at] - e.mean[1 - at])
    assert_allclose(e.parts.differences[[0, 1]], 0)  # what both arms have
    versions = e.decision.versions
    assert (versions["catalogue"], versions["features"]) == (3, fields.fingerprint)
    assert versions["dither"] == dither.__version__
    assert str(versions["mark"]) in str(e)


def test_slots_are_those_of_the_moment():
    fields = dither.Features(context={"age": dither.features.Numeric(mean=0.0, scale=1.0)}, form="disjoint")
    arms = dither.Catalogue(fields, {"a": {}, "b": {}, "c": {}})
    bandit = dither.RandLinUCB(features=fields, disjoint=1, preset="paper", seed=0, floor=0.3)  # its β has K d in it
    live = dither.Live(None, bandit=bandit, catalogue=arms)
    seen = []
    for i in range(9):
        if i == 5:
            arms.add("d")
            arms.retire("b")
        d = live.choose({"age": i / 9}, arms=None if i % 2 else ["c", "a"])
        mean = live.bandit.predict(fields.encode({"age": i / 9}))
        bandit = live.bandit
        beta = bandit.policy.rule(bandit.model, bandit.state, t=bandit.t, d=bandit.dim).by
        seen.append((d, dict(zip(arms.everything, mean, strict=False)), beta))
        live.reward(d.id, float(d.place))
    for i, (d, mean, beta) in enumerate(seen):
        e = live.explain(d.id)
        assert_allclose(e.w, beta * e.width, rtol=1e-9)
        assert set(e.ids) == ({"a", "c"} if i % 2 == 0 else {"a", "b", "c"} if i < 5 else {"a", "c", "d"})
        assert_allclose(e.mean, [mean[arm] for arm in e.ids], atol=1e-12)
        assert e.name(e.chosen.arm) == d.arm
        assert_allclose(e.propensity[e.chosen.arm], d.propensity, rtol=1e-9)
        assert_allclose(e.parts.scores.sum(axis=1), e.mean, atol=1e-12)
        assert e.cause not in ("unknown",)
    plain = dither.Live(None, bandit=begin(disjoint=4))
    v, mask, x = np.array([1.0, 9.0, 3.0, 2.0]), np.array([True, False, True, True]), np.array([1.0, 0.5, 0.2])
    for i in range(6):
        d = plain.choose(x, ARMS, mask=mask, values=v, minimum=[0.0, 0.0, 0.2, 0.1])
        e = plain.explain(d.id)
        assert_allclose(e.mean, (v * plain.bandit.predict(x))[mask], rtol=1e-12)
        assert_allclose(e.propensity[e.chosen.arm], d.propensity, rtol=1e-9)
        plain.reward(d.id, float(i))
    # seen red: as many slots as there are now; values by the place among the arms on offer


def test_values_minima_masks_and_batches():
    live = dither.Live(None, bandit=begin("GLMFP"))
    values, minimum = {"a": 1.0, "b": 5.0, "c": 2.0, "d": 1.0}, {"a": 0.1, "c": 0.2}
    play(live, 6)
    for mask in (None, [True, False, True, True]):
        v = [values[arm] for arm in ARMS]
        d = live.choose(X, ARMS, mask=mask, values=v, minimum=minimum)
        e = live.explain(d.id)
        on = np.ones(4, bool) if mask is None else np.array(mask)
        assert_allclose(e.mean, (v * live.bandit.predict(X))[on], rtol=1e-12)
        want = live.bandit.propensities(X, mask=mask, values=v, minimum=[0.1, 0.0, 0.2, 0.0])[on]
        assert_allclose(e.propensity, want, atol=1e-12)
        assert e.decision.arm == d.arm
        assert {one["arm"]: one["value"] for one in e.to_dict()["arms"]}[d.arm] == values[d.arm]
    many = live.choose(np.stack([X, X[::-1]]), ARMS)
    for i, id in enumerate(many.id):
        e = live.explain(id)
        assert_allclose(e.mean, live.bandit.predict(X)[:: (-1) ** i], rtol=1e-12)
        assert e.name(e.chosen.arm) == many.arm[i]
    # seen red: minima and values by the positions of all arms


def test_time_has_faded_it():
    live = dither.Live(None, bandit=begin(half_life=3600.0))
    at = [datetime(2026, 3, 1, i, tzinfo=UTC) for i in (0, 1, 5, 9)]
    seen = []
    for time in at:
        d = live.choose(X, ARMS, time=time)
        seen.append((d, live.bandit.width(X)))
        live.reward(d.id, 1.0)
    for d, width in seen:
        e = live.explain(d.id)
        assert_allclose(e.width, width, rtol=1e-12)
        assert_allclose(e.propensity[d.place], d.propensity, rtol=1e-9)
    # seen red: without `advance`


def test_a_baseline_and_a_budget():
    keep = dither.Baseline(arm="b", loss=0.05, sigma=0.1, S=1.3)
    live = dither.Live(None, bandit=begin(floor=0.1, baseline=keep), budgets={"c": dither.Budget(1, None)})
    found = {}
    for _ in range(15):
        d = live.choose(X, ARMS)
        live.reward(d.id, 0.5)
        e = live.explain(d.id)
        assert_allclose(e.propensity[e.chosen.arm], d.propensity, rtol=1e-9)
        found.setdefault(e.cause, e)
        spent = [words for words in e.unknown if "had spent its budget" in words]
        assert bool(spent) == ("c" not in e.ids)
    assert found["baseline"].decision.arm == "b"
    assert "in place of what was not safe" in found["baseline"].why


def test_a_shadow_stands_beside():
    other = dither.Softmax(dim=3, lam=1.0, temperature=0.2)
    live = dither.Live(None, bandit=begin(), shadow=other)
    play(live, 3)
    d = live.choose(X, ARMS)
    e = live.explain(d.id)
    assert_allclose(e.judged, live.shadow.propensities(X), rtol=1e-12)
    assert e.decision.versions["shadow"] == 1
    assert e.to_dict()["arms"][0]["judged"] == e.judged[e.chosen.arm]


def test_a_rule_that_acts():
    live = dither.Live(None, bandit=begin(), apprentice=lambda X, mask: 1, explore=0.4)
    for _ in range(20):
        d = live.choose(X, ARMS)
        live.reward(d.id, 1.0)
        e = live.explain(d.id)
        assert e.cause == "rule"
        assert (d.arm == "b") == (e.chosen.coin < 1)
        if d.arm == "b":
            assert_allclose(e.propensity, [0.1, 0.7, 0.1, 0.1])
            assert_allclose(e.chosen.coin, 0.1 / 0.7)
        else:
            assert e.unknown == ("which arm the rule gave",)
            assert_array_equal(np.isnan(e.propensity), np.array(ARMS) != d.arm)
        assert_allclose(e.judged, live.replay(e.decision.versions["batch"]).propensities(X), atol=1e-12)
    assert "Means and widths are those of the bandit" in str(e)


def test_a_fallback():
    live = dither.Live(None, bandit=begin())
    play(live, 2)
    d = play(live, 1)[-1][0]
    row(live, d.id, propensity=None, propensity_kind="none", z=None, floor=None, extra='{"fallback": true}')
    e = live.explain(d.id)
    assert e.cause == "fallback"
    assert "nothing was drawn" in e.why
    assert np.isnan(e.propensity).all()
    assert_allclose(e.mean, live.replay(2).predict(X))
    assert e.unknown == ()
    json.dumps(e.to_dict(), allow_nan=False)


# What is not


def test_what_the_ledger_does_not_say():
    live = dither.Live(None, bandit=begin("LinTS", monte_carlo=50), store="shown")
    d = play(live, 3)[-1][0]
    e = live.explain(d.id)
    assert "the features of the other arms" in e.unknown[0]
    assert_array_equal(np.isnan(e.mean), np.array(ARMS) != d.arm)
    assert_allclose(e.mean[d.place], live.replay(2).predict(X)[d.place])
    assert e.propensity[d.place] == d.propensity
    assert (e.cause, e.chosen.coin) == ("unknown", None)  # an estimate tells of no coin
    json.dumps(e.to_dict(), allow_nan=False)


def test_a_coin_is_known_without_the_other_arms():
    live = dither.Live(None, bandit=begin(floor=0.5, c=0.01), store="shown")
    causes = set()
    for d, _, _ in play(live, 30):
        e = live.explain(d.id)
        coin = d.propensity <= 0.125 * (1 + 1e-9)
        assert e.cause == ("floor" if coin else "unknown")
        assert_allclose(e.chosen.coin, 1.0 if coin else 0.125 / d.propensity)
        causes.add(e.cause)
        live.erase([d.id])
        e = live.explain(d.id)  # of which the probability and the floor are left
        assert (e.cause, e.chosen.coin) == (("uniform", 1.0) if coin else ("unknown", None))
    assert causes == {"floor", "unknown"}


def test_decisions_from_before_z_was_stored():
    live = dither.Live(None, bandit=begin())
    d, mean, _ = play(live, 4)[-1]
    row(live, d.id, z=None)
    e = live.explain(d.id)
    assert "what FeaturePerturbation drew, which is not kept" in e.unknown
    assert_allclose(e.mean, mean)
    assert_allclose(e.propensity[d.place], d.propensity, rtol=1e-9)
    assert e.z is None
    assert 0 < e.chosen.coin <= 1


def test_what_was_erased():
    live = dither.Live(None, bandit=begin())
    first, *others, last = [d for d, _, _ in play(live, 6)]
    live.erase([first.id])
    e = live.explain(first.id)
    assert e.unknown == ("what it was decided from, as its data was erased",)
    assert (e.ids, e.decision.arm, e.propensity[first.place]) == (tuple(ARMS), first.arm, first.propensity)
    assert np.isnan(e.mean).all()
    e = live.explain(last.id)
    assert "rewards that were erased since" in e.unknown[-1]
    assert e.cause == "unknown"
    assert_allclose(e.mean, live.replay(5).predict(X))  # without them
    new = live.choose(X, ARMS)
    assert live.explain(new.id).unknown == ()  # it never knew them
    assert others
    drawn = dither.Live(None, bandit=begin("LinTS"))  # whose probabilities tell nothing of the state
    first, last = (play(drawn, 2)[i][0] for i in (0, 1))
    drawn.erase([first.id])
    for id, knew in ((last.id, True), (drawn.choose(X, ARMS).id, False)):
        assert any("erased since" in words for words in drawn.explain(id).unknown) == knew
    # seen red: without the time of the erasure


def test_a_row_of_another_ledger_is_not_explained_by_this_one(tmp_path):
    with dither.Live(tmp_path / "a.db", bandit=begin()) as first:
        ids = [d.id for d, _, _ in play(first, 8)]
        first.ledger.export(tmp_path / "log")
    live = dither.Live(tmp_path / "b.db", bandit=begin(c=3.0))
    live.ledger.take_over(tmp_path / "log")
    live.learn()
    for i, id in enumerate(ids):
        e = live.explain(id)
        assert e.decision.id == id
        assert np.isnan(e.mean).all() == bool(e.unknown)
        if i > 0:  # batch 1 of this ledger has learnt all of them
            words = "after batch 1 of this ledger it gives the arm" if i == 1 else "no batch"
            assert words in e.unknown[0]
    # seen red: the state of this ledger's batch of that number


class Mine(dither.models.Ridge):
    """A class of the user's."""


def test_a_class_that_is_not_passed(tmp_path):
    bandit = dither.Bandit(Mine(1.0), dither.policies.FeaturePerturbation(), dim=3, seed=0)
    with dither.Live(tmp_path / "a.db", bandit=bandit, known=(Mine,)) as live:
        d = play(live, 2)[-1][0]
        assert live.explain(d.id).unknown == ()
        e = lives.explained(live.ledger, d.id)
        assert "known=" in e.unknown[0]
        assert e.propensity[d.place] == d.propensity
        assert lives.explained(live.ledger, d.id, known=(Mine,)).to_dict() == live.explain(d.id).to_dict()


def test_a_batch_that_is_not_there():
    live = dither.Live(None, bandit=begin())
    d = play(live, 2)[-1][0]
    row(live, d.id, batch=70)
    assert "no batch 70" in live.explain(d.id).unknown[0]
    row(live, d.id, batch=None)
    assert "names no batch" in live.explain(d.id).unknown[0]
