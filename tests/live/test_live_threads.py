"""One `Live` and many threads, or tasks of asyncio: nothing is lost, and a replay is the same."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sqlalchemy as sa

import dither
from dither.features import Numeric
from dither.log.database import arm_events, sql_tables

pytestmark = pytest.mark.usefixtures("closing")
DECIDERS, ROUNDS = 4, 12


def features():
    return dither.Features(context={"age": Numeric(mean=0, scale=1)}, form="disjoint")


def begin(**settings):
    return dither.LinFP(**{"features": features(), "disjoint": 1, "lam": 1.0, "floor": 0.5, "seed": 0} | settings)


def events(live):
    """The rewards that count, by the id of their decision: how many parts, and the batches."""
    rewards, decisions = sql_tables.rewards.c, sql_tables.decisions.c
    fields = sa.select(decisions.id, rewards.part, rewards.standing, rewards.batch, decisions.erased)
    with live.ledger.database.reading() as connection:
        rows = connection.execute(fields.join_from(sql_tables.rewards, sql_tables.decisions)).all()
    return [tuple(row) for row in rows]


def test_eight_threads_do_all_at_once(home):
    shop = dither.Catalogue(features(), {"a0": None})
    live = dither.Live(
        home,
        bandit=begin(half_life=3600.0),
        catalogue=shop,
        shadow=begin(lam=2.0, half_life=3600.0),
        parts=["click", "sale"],
        horizon=3600,
        refresh_seconds=1e-3,
        snapshot_batches=5,
    )
    failed, decided, answered, erased = [], [], [], set()
    running = threading.Semaphore(0)

    def decide(who):
        for i in range(ROUNDS):
            d = live.choose({"age": i / ROUNDS}, extra={"user": f"u{who}"})
            decided.append(d.id)
            said = [live.reward(d.id, 1.0, part=part) for part in (["click", "sale"] if i % 3 else ["sale"])]
            answered.append((d.id, said))
        running.release()

    def until_done(call):
        def work(_):
            while running._value < DECIDERS:
                call()
                time.sleep(0.005)  # so that the others have their turn

        return work

    def erase():
        done = [id for id, _ in answered if id not in erased][:1]
        erased.update(done)
        live.erase(done)

    def change():
        n = shop.slots
        if n < 6:
            shop.add(f"a{n}")
            shop.retire(f"a{n - 1}")

    def guarded(work, who):
        try:
            work(who)
        except BaseException as error:
            failed.append(error)
            running.release(DECIDERS)

    jobs = [decide] * DECIDERS + [until_done(call) for call in (live.learn, lambda: live.expire(0), erase, change)]
    threads = [threading.Thread(target=guarded, args=(work, i), daemon=True) for i, work in enumerate(jobs)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(120)
    assert failed == []
    assert not any(one.is_alive() for one in threads), "threads wait for each other"
    live.learn()

    found = events(live)
    assert len(decided) == len(set(decided)) == len(live.ledger) == DECIDERS * ROUNDS
    assert {id for id, said in answered if set(said) == {"counted"}} == set(decided)
    counted = [(id, part) for id, part, standing, _, _ in found if standing == "counted"]
    assert sorted(counted) == sorted((id, part) for id, said in answered for part in ["sale", "click"][: len(said)])
    whole = [(id, batch, gone) for id, _, standing, batch, gone in found if standing == "whole"]
    assert sorted(id for id, *_ in whole) == sorted(id for id, said in answered if len(said) == 2)
    assert all(batch for _, batch, _ in whole)
    left = [id for id, _, gone in whole if gone is None]
    assert live.bandit.observations == live.shadow.observations == len(left) == len({*left} - erased)
    assert live.to_bytes() == live.replay().to_bytes()
    assert live.to_bytes("shadow") == live.replay(of="shadow").to_bytes()
    assert live.bandit.slots == shop.slots
    with live.ledger.database.reading() as connection:
        assert arm_events.since(connection).events == list(shop.events)
    # seen red: a part that is learnt by itself


def test_tasks_of_asyncio_share_one(home):
    """Each call waits for the disk, so it runs in a thread: `await asyncio.to_thread(live.choose, X)`."""
    X = np.eye(3)
    live = dither.Live(home, bandit=dither.LinFP(dim=3, lam=1.0, floor=0.3, seed=0))

    async def visit(i):
        d = await asyncio.to_thread(live.choose, X, ["a", "b", "c"], extra={"user": i})
        await asyncio.sleep(0)
        return d.id, await asyncio.to_thread(live.reward, d.id, float(i % 2))

    async def all_of_them():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(8))
        return await asyncio.gather(*[visit(i) for i in range(60)])

    said = asyncio.run(all_of_them())
    assert len({id for id, _ in said}) == 60
    assert {answer for _, answer in said} == {"counted"}
    live.learn()
    assert live.bandit.observations == 60
    assert live.to_bytes() == live.replay().to_bytes()
    assert sorted(live.read().frame["user"]) == list(range(60))


def test_the_first_names_of_slots_do_not_wait_for_a_learner(home):
    """Who asks the ledger for the names must not hold the bandit, since the learner needs it to show what it learnt."""
    bandit = dither.LinFP(dim=2, disjoint=2, lam=1.0, seed=0)
    live = dither.Live(home, bandit=bandit, refresh_seconds=1e6)  # a look at the ledger waits for the turn by itself
    decider, shown = live._decider, []
    asked = threading.Event()
    named = decider._slot_ids

    def slow(names):
        asked.set()
        return named(names)

    decider._slot_ids = slow
    with live.ledger.turn:  # a learner is at work
        other = threading.Thread(target=lambda: shown.append(live.choose([1.0, 0.0], ["a", "b"])), daemon=True)
        other.start()
        assert asked.wait(30)
        free = decider.bandit._lock.acquire(timeout=30)
        assert free, "the bandit is locked while the ledger is asked for the names"
        decider.bandit._lock.release()
    other.join(60)
    assert not other.is_alive()
    assert live.reward(shown[0].id, 1.0) == "counted"
    # seen red: `_named` called in the lock of the bandit
