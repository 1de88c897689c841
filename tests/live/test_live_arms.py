"""Arms by id in `Live`: the ledger keeps the catalogue, for all processes, and disjoint slots grow with it."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import sqlalchemy as sa
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import log
from dither.features import Category, Numeric
from dither.live import stock
from dither.log.database import arm_events, sql_tables
from dither.models import adapting

pytestmark = pytest.mark.usefixtures("closing")
ARMS = {"a1": {"topic": "art", "words": 1.0}, "a2": {"topic": "war", "words": 2.0}}
WHO = {"country": "se"}


def features():
    return dither.Features(
        context={"country": ["se", "de"]},
        arm={"topic": Category(["art", "war"], unknown="error"), "words": Numeric(mean=0, scale=1)},
        cross=[("country", "topic")],
    )


def disjoint():
    return dither.Features(context={"age": Numeric(mean=0, scale=1)}, form="disjoint")


def begin(**settings):
    return dither.LinFP(**{"features": features(), "lam": 1.0, "floor": 0.3, "seed": 0} | settings)


def slots(n, **settings):
    return dither.LinFP(**{"features": disjoint(), "disjoint": n, "lam": 1.0, "floor": 0.5, "seed": 0} | settings)


def events(live):
    with live.ledger.database.reading() as connection:
        return arm_events.since(connection).events


def test_the_ledger_keeps_the_arms(shared):
    shop = dither.Catalogue(features(), ARMS)
    with dither.Live(shared, bandit=begin(), catalogue=shop) as live:
        assert live.catalogue is shop
        shop.add("a3", {"topic": "art", "words": 3.0})
        live.catalogue.change("a1", {"words": 9.0})
        shop.retire("a2")
        assert [event[:3] for event in events(live)] == [
            (1, "add", "a1"),
            (2, "add", "a2"),
            (3, "add", "a3"),
            (4, "change", "a1"),
            (5, "retire", "a2"),
        ]
        with pytest.raises(ValueError, match=r"'a2' is retired: leave it out, restore it, or take the `ids` of"):
            live.choose(WHO, ["a1", "a2"])
        state = shop.to_bytes()
    with dither.Live(shared) as again:  # catalogue= is left out
        assert again.catalogue.to_bytes() == state
        assert again.catalogue.ids == ("a1", "a3")
        again.catalogue.restore("a2")
        assert again.choose(WHO, ["a2"]).arm == "a2"
    shop.retire("a3")  # it is the caller's own again
    with dither.Live(shared) as again:
        assert again.catalogue.ids == ("a1", "a2", "a3")
        with again.ledger.database.reading() as connection:
            times = list(connection.scalars(sa.select(sql_tables.arms.c.time).order_by(sql_tables.arms.c.version)))
        assert times == sorted(times)
        assert times[0] > 1.7e15
    # seen red: `detach` left out; `opened` without the events of the ledger


def test_a_catalogue_may_be_given_again_and_with_more(shared):
    dither.Live(shared, bandit=begin(), catalogue=dither.Catalogue(features(), ARMS)).close()
    more = dither.Catalogue(features(), ARMS | {"a3": {"topic": "war", "words": 0.0}})
    with dither.Live(shared, catalogue=more) as live:
        assert len(events(live)) == 3
        live.catalogue.retire("a1")
    with dither.Live(shared, catalogue=dither.Catalogue(features(), ARMS)) as live:
        assert live.catalogue.ids == ("a2", "a3")
    other = dither.Catalogue(features(), {"a1": {"topic": "war", "words": 1.0}})
    before = other.to_bytes()
    with pytest.raises(ValueError, match=r"another catalogue than catalogue=.*`live\.catalogue`, by add"):
        dither.Live(shared, catalogue=other)
    assert other.to_bytes() == before
    wider = dither.Features(context={"country": ["se"]}, arm={"topic": "hashed", "words": "numeric"}, cross="all").fit(
        arms=ARMS
    )
    with pytest.raises(ValueError, match="features"):
        dither.Live(shared, catalogue=dither.Catalogue(wider, ARMS))


def test_other_processes_see_changes(shared):
    one = dither.Live(shared, bandit=begin(), catalogue=dither.Catalogue(features(), ARMS))
    two = dither.Live(shared, refresh_seconds=1e-6)
    one.reward(one.choose(WHO).id, 1.0)
    assert (one.learns, two.learns) == (True, False)
    one.catalogue.add("a3", {"topic": "art", "words": 3.0})
    two.choose(WHO)
    assert two.catalogue.version == 3
    two.catalogue.retire("a1")  # whoever does not learn may change it too
    two.catalogue.add("a4", {"topic": "art", "words": 0.0})
    assert events(one) == list(two.catalogue.events)
    one._next = 0  # its time to look has come
    one.choose(WHO)
    assert one.catalogue.ids == two.catalogue.ids == ("a2", "a3", "a4")
    two.catalogue.retire("a2")
    one.reward(one.choose(WHO, ["a3"]).id, 1.0)  # by the lease that it renews
    assert one.catalogue.version == two.catalogue.version
    two.catalogue.add("a5", {"topic": "art", "words": 0.0})
    with pytest.raises(ValueError, match="'a5' is in the catalogue"):  # seen when it is written, though not before
        one.catalogue.add("a5", {"topic": "war", "words": 0.0})
    assert one.catalogue.to_bytes() == two.catalogue.to_bytes()
    # seen red: `keeping` without the events of others; `look` left out


def test_an_arm_that_is_refused_is_nowhere(home, monkeypatch):
    live = dither.Live(home, bandit=begin(), catalogue=dither.Catalogue(features(), ARMS))
    state = live.catalogue.to_bytes()
    with pytest.raises(ValueError, match="unknown"):
        live.catalogue.add("a3", {"topic": "sport", "words": 1.0})

    def full(*given):
        raise OSError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(arm_events, "put", full)
        with pytest.raises(OSError, match="full"):
            live.catalogue.retire("a1")
    assert live.catalogue.to_bytes() == state
    assert len(events(live)) == 2
    assert live.catalogue.retire("a1") == 3
    with pytest.raises(ValueError, match="which is open: pass a copy"):
        dither.Live(None, bandit=begin(), catalogue=live.catalogue)
    # seen red: `_changing` without `_back_to`


@pytest.mark.parametrize("store", ["all", "shown"])
def test_rows_say_what_the_features_were(home, store):
    live = dither.Live(home, bandit=begin(), catalogue=dither.Catalogue(features(), ARMS), store=store)
    shown = []
    for words in (1.0, 5.0, 7.0):
        if words > 1:
            live.catalogue.change("a1", {"words": words})
        d = live.choose(WHO, ["a2", "a1"])
        live.reward(d.id, words)
        shown.append(live.catalogue.encode(WHO, ["a2", "a1"]))
    batch = live.choose([WHO, {"country": "de"}], ["a1"])
    assert len(batch.id) == 2
    seen = live.read()
    assert seen.frame["catalogue"].to_list() == [2, 3, 4, 4, 4]
    for i, X in enumerate(shown):
        again = live.catalogue.at(seen.frame["catalogue"][i]).encode(WHO, seen.frame["arms"][i].to_list())
        assert_array_equal(again, X)
        if store == "all":
            assert_array_equal(seen.X[i], X)
    assert live.replay().to_bytes() == live.to_bytes()
    plain = begin()
    for i, X in enumerate(shown):
        plain.update(X[seen.a[i]], [1.0, 5.0, 7.0][i])
    assert_array_equal(live.bandit.theta, plain.theta)
    with pytest.raises(ValueError, match="extra must not have the column 'catalogue'"):
        live.choose(WHO, extra={"catalogue": 1})


# Slots that grow


def grown(live):
    fields = sa.select(sql_tables.batches.c.number, sql_tables.batches.c.slots)
    with live.ledger.database.reading() as connection:
        return [tuple(row) for row in connection.execute(fields.order_by(sql_tables.batches.c.number))]


@pytest.mark.parametrize("model", ["LinFP", "GLMFP", "LinTS"])
def test_slots_grow_with_the_catalogue(shared, model):
    def begun():
        return dither.ALGORITHMS[model](features=disjoint(), dim=2, disjoint=2, lam=1.0, floor=0.5, seed=0)

    one = dither.Live(shared, bandit=begun(), catalogue=dither.Catalogue(disjoint(), {"a": None, "b": None}))
    two = dither.Live(shared, refresh_seconds=1e-6, snapshot_batches=1)
    plain = begun()

    def round(live, age, r):
        d = live.choose({"age": age})
        assert live.reward(d.id, r) == "counted"
        one.learn()
        plain.update(disjoint().encode({"age": age}), r, arm=d.place)
        return d

    round(one, 0.5, 1.0)
    one.catalogue.add("c")
    assert one.bandit.slots == 3  # the learner grows at once, in a batch of its own
    plain.grow(3)
    round(one, 1.0, 0.0)
    two.catalogue.add("d")  # by a process that does not learn
    assert one.bandit.slots == 3
    d = two.choose({"age": 1.0}, ["d"])
    assert (d.arm, d.place, two.bandit.slots) == ("d", 3, 4)
    two.reward(d.id, 1.0)
    one.learn()
    plain.grow(4)
    plain.update([1.0, 1.0], 1.0, arm=3)
    for i in range(6):
        round((one, two)[i % 2], 0.1 * i, float(i % 2))
    assert [row[1] for row in grown(one)][:4] == [None, 3, None, 4]
    assert live_bytes(plain) == live_bytes(one.bandit)
    assert one.replay().to_bytes() == one.to_bytes()
    assert [one.replay(n).slots for n in range(5)] == [2, 2, 3, 3, 4]
    one.close()
    two.close()
    with dither.Live(shared, bandit=begun()) as again:  # the bandit as it began
        assert again.bandit.slots == 4
        assert again.to_bytes() == again.replay().to_bytes()
        assert again.choose({"age": 0.0}, ["d"]).place == 3
        arms = again.read().frame["arms"].to_list()
        assert arms[0] == ["a", "b"]
        assert again.ledger.frames()[2]["slots"] == ["a", "b", "c", "d"]
    # seen red: `batch` without `grown`; `follow` without the slots of the noise


def live_bytes(bandit):
    """What a bandit has learnt, without its streams."""
    bandit = dither.from_bytes(bandit.to_bytes())
    bandit.decisions = 0
    bandit.reseed(0)
    return bandit.to_bytes()


def test_a_request_without_a_catalogue_has_the_slots_that_were_learnt(shared):
    """Another process has given the ledger a catalogue, so the bandit has grown since this one decided."""
    with dither.Live(shared, bandit=slots(2), shadow=slots(2), probabilities=True) as old:
        shop = dither.Catalogue(disjoint(), {"a": {}, "b": {}, "c": {}})
        with dither.Live(shared, catalogue=shop):
            old.learn()
            assert old.choose(np.ones(2)).place in range(3)
            assert old.read().matrix("judged").shape == (1, 3)
    # seen red: the request of two slots, decided by a bandit of three


def test_a_catalogue_has_the_slots_that_have_learnt(home):
    """What an arm has taught before there was a catalogue stays with that arm."""
    with dither.Live(home, bandit=slots(2)) as live:
        live.choose(np.ones(2), arms=["x", "y"])
        store = live.ledger
        for ids in ("yx", "x", "ab"):
            shop = dither.Catalogue(disjoint(), {id: {} for id in ids})
            with pytest.raises(ValueError, match=r"are \['x', 'y'\].*A slot keeps its id"):
                stock.opened(store, live._learner, shop)
        assert stock.opened(store, live._learner, None) is None  # nothing changed
        assert stock.opened(store, live._learner, dither.Catalogue(disjoint(), {id: {} for id in "xyz"})).slots == 3
    # seen red: slot 0 becomes that of y


def test_a_model_that_cannot_grow_takes_no_further_arm(home):
    bandit = dither.Bandit(
        dither.models.Disjoint(dither.models.Ridge(), 2), dither.policies.Greedy(), dim=2, features=disjoint()
    )
    live = dither.Live(home, bandit=bandit, catalogue=dither.Catalogue(disjoint(), {"a": None, "b": None}))

    def cannot(model, slots):
        raise TypeError("its slots cannot grow")

    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(adapting, "with_slots", cannot)
        with pytest.raises(TypeError, match="cannot grow"):
            live.catalogue.add("c")
    assert live.catalogue.ids == ("a", "b")
    assert len(events(live)) == 2


def test_a_shadow_grows_too(home):
    live = dither.Live(
        home, bandit=slots(1), shadow=slots(1, seed=3), catalogue=dither.Catalogue(disjoint(), {"a": None})
    )
    live.reward(live.choose({"age": 1.0}).id, 1.0)
    live.catalogue.add("b")
    d = live.choose({"age": 1.0})
    live.reward(d.id, 1.0)
    assert (live.shadow.slots, live.bandit.slots) == (2, 2)
    assert [len(row) for row in live.read().frame["judged"].to_list()] == [1, 2]
    assert_array_equal(live.shadow.theta, live.bandit.theta)
    assert live.replay(of="shadow").to_bytes() == live.to_bytes("shadow")


def test_threads_change_arms_while_others_decide(home):
    live = dither.Live(
        home, bandit=slots(1), catalogue=dither.Catalogue(disjoint(), {"a0": None}), refresh_seconds=1e-3
    )
    failed = []

    def decide():
        try:
            for i in range(15):
                d = live.choose({"age": i / 15})
                assert live.reward(d.id, 1.0) == "counted"
        except BaseException as error:
            failed.append(error)

    def change():
        try:
            for i in range(1, 6):
                live.catalogue.add(f"a{i}")
                live.catalogue.retire(f"a{i - 1}")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for work in (decide, decide, decide, change)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert not any(one.is_alive() for one in threads)
    assert failed == []
    live.learn()
    assert live.bandit.observations == 45
    assert live.bandit.slots == 6
    assert live.to_bytes() == live.replay().to_bytes()
    assert events(live) == list(live.catalogue.events)
    seen = live.read()
    for version, arms, a in zip(seen.frame["catalogue"], seen.frame["arms"].to_list(), seen.a, strict=True):
        then = live.catalogue.at(version)
        assert arms == list(then.ids)
        assert np.all(a < len(arms))


def test_an_export_has_the_slots_and_the_fingerprint(shared, tmp_path):
    live = dither.Live(shared, bandit=slots(2), catalogue=dither.Catalogue(disjoint(), {"a": None, "b": None}))
    for i in range(12):
        if i == 4:
            live.catalogue.add("c")
            live.catalogue.retire("a")  # from now on the second slot is the first arm on offer
        live.reward(live.choose({"age": i / 12}).id, float(i))
    seen = live.read()
    assert seen.encoded_by == disjoint().fingerprint
    places = {id: live.catalogue.slot(id) for id in live.catalogue.everything}
    other = dither.Features(context={"age": Numeric(mean=1, scale=1)}, form="disjoint")
    with pytest.raises(ValueError, match="other Features made the features"):
        log.warm_start(dither.LinFP(features=other, disjoint=3), seen, slots=places)
    live.ledger.export(tmp_path / "folder")
    again = dither.Live(None, bandit=slots(3), catalogue=dither.Catalogue.from_bytes(live.catalogue.to_bytes()))
    assert again.ledger.take_over(tmp_path / "folder") == 12
    again.learn()
    assert_allclose(again.bandit.theta, live.bandit.theta, atol=1e-12)
    warm = slots(3)
    log.warm_start(warm, seen, slots=places)
    assert_allclose(warm.theta, live.bandit.theta, atol=1e-12)
    # seen red: `about` without the slots


def test_a_mask_of_before_is_told_what_to_pass(home):
    live = dither.Live(home, bandit=slots(2), catalogue=dither.Catalogue(disjoint(), {"a": None, "b": None}))
    assert live.choose({"age": 1.0}, mask=[False, True]).arm == "b"
    live.catalogue.add("c")
    with pytest.raises(ValueError, match=r"mask has 2 places, and the catalogue has 3 slots by now: pass arms="):
        live.choose({"age": 1.0}, mask=[False, True])
    batch = live.choose([{"age": 1.0}, {"age": 2.0}], mask=[[False, True, False], [False, False, True]])
    assert batch.arm.tolist() == ["b", "c"]
    with pytest.raises(ValueError, match="dim must be"):
        dither.Live(None, bandit=dither.LinFP(dim=3), catalogue=dither.Catalogue(disjoint(), {"a": None}))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_child_of_a_fork_changes_arms_for_all(shared):
    code = """
import os, sys
import dither
from dither.features import Numeric
f = dither.Features(context={"age": Numeric(mean=0, scale=1)}, form="disjoint")
bandit = dither.LinFP(features=f, disjoint=1, seed=0)
live = dither.Live(sys.argv[1], bandit=bandit, catalogue=dither.Catalogue(f, {"a": None}), refresh_seconds=1e-6)
live.reward(live.choose({"age": 1.0}).id, 1.0)
receive, send = os.pipe()
if os.fork() == 0:
    live.catalogue.add("b")
    d = live.choose({"age": 1.0}, ["b"])
    os.write(send, f"{d.place} {live.reward(d.id, 1.0)} {live.learns}".encode())
    os._exit(0)
os.close(send)
said = os.read(receive, 1000).decode()
os.wait()
live.choose({"age": 1.0})
live.learn()
print(said, live.catalogue.ids, live.bandit.slots, live.bandit.observations)
"""
    path = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1", "PATH": os.environ["PATH"]}
    command = [sys.executable, "-W", "ignore", "-c", code, str(shared)]
    done = subprocess.run(command, env=path, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "1 counted False ('a', 'b') 2 2", done.stderr
