"""Calls of `Live` that are awaited: many in one transaction, and no loop waits for a database."""

import asyncio
import os
import threading

import numpy as np
import pytest

import dither
from dither.live import awaiting
from dither.log.database import journal

pytestmark = pytest.mark.usefixtures("closing")
X = np.eye(3)


def begin(**settings):
    return dither.LinFP(**{"dim": 3, "lam": 1.0, "floor": 0.3, "seed": 0} | settings)


def transactions(live):
    """Counts the transactions of a ledger from now on."""
    begun, writing = [], live.ledger.database.writing

    def counted(**settings):
        begun.append(threading.get_ident())
        return writing(**settings)

    live.ledger.database.writing = counted
    return begun


def test_a_hundred_calls_on_one_loop(home):
    live = dither.Live(home, bandit=begin())

    async def visit(i):
        d = await live.achoose(X, ["a", "b", "c"], extra={"user": i})
        return d, await live.areward(d.id, float(i % 2))

    async def all_of_them():
        return await asyncio.gather(*[visit(i) for i in range(100)])

    begun = transactions(live)
    said = asyncio.run(all_of_them())
    assert len({d.id for d, _ in said}) == len(live.ledger) == 100
    assert {answer for _, answer in said} == {"counted"}
    assert all(d.arm == "abc"[d.place] for d, _ in said)
    assert threading.get_ident() not in begun
    assert len(begun) < 100  # of two hundred calls
    live.learn()
    assert live.bandit.observations == 100
    assert live.to_bytes() == live.replay().to_bytes()
    rows = live.read()
    assert {(d.id, d.propensity) for d, _ in said} == set(zip(rows.frame["id"], rows.p, strict=True))
    assert sorted(rows.frame["user"]) == list(range(100))


def test_lists_and_batches_are_answered_as_by_choose_and_reward(home):
    live = dither.Live(home, bandit=begin())

    async def calls():
        many = await live.achoose(np.stack([X] * 4))
        none = await live.achoose(np.empty((0, 3, 3)))
        return many, none, await live.areward(list(many.id), [1.0, 0.0, 1.0, 0.0]), await live.areward([], [])

    many, none, said, nothing = asyncio.run(calls())
    assert (len(many.id), len(none.id)) == (4, 0)
    assert (said, nothing) == (["counted"] * 4, [])
    assert live.bandit.observations == 4


def test_budgets_hold_for_calls_at_once(home):
    live = dither.Live(home, bandit=begin(floor=0.0), budgets={"a": dither.Budget(3)})

    async def calls():
        asked = [live.achoose(X, ["a", "b", "c"], values=[9.0, 1.0, 1.0]) for _ in range(20)]
        return await asyncio.gather(*asked)

    shown = asyncio.run(calls())
    assert len({d.id for d in shown}) == 20
    assert sum(d.arm == "a" for d in shown) == live.spent()["a"][0] <= 3


def test_an_error_reaches_the_one_who_waits(home):
    live = dither.Live(home, bandit=begin())

    async def calls():
        d = await live.achoose(X, id="mine")
        asked = [
            live.achoose(X, id="mine"),
            live.achoose(np.eye(4)),
            live.achoose(X, costs=[1.0, 1.0, 1.0]),
            live.areward("nobody", 1.0),
            live.areward(d.id, np.nan),
            live.achoose(X, id="other"),
            live.areward(d.id, 1.0),
        ]
        return await asyncio.gather(*asked, return_exceptions=True)

    twice, width, costs, unknown, odd, other, said = asyncio.run(calls())
    assert isinstance(twice, ValueError)
    assert "was given to a decision before" in str(twice)
    assert isinstance(width, ValueError)
    assert "width" in str(width)
    assert isinstance(costs, ValueError)
    assert "costs= needs budgets" in str(costs)
    assert isinstance(unknown, LookupError)
    assert isinstance(odd, ValueError)
    assert (other.id, said, len(live.ledger)) == ("other", "counted", 2)
    live.close()
    with pytest.raises(ValueError, match="is closed"):
        asyncio.run(live.achoose(X))


def held(monkeypatch):
    """A disk that takes its time: -> what says that a sync has begun, and what lets it end."""
    begun, free, whole = threading.Event(), threading.Event(), journal._sync

    def sync(handle):
        begun.set()
        assert free.wait(60)
        whole(handle)

    monkeypatch.setattr(journal, "_sync", sync)
    return begun, free


async def until(event):
    while not event.is_set():
        await asyncio.sleep(0.001)


def test_a_loop_goes_on_while_the_disk_is_at_work(tmp_path, monkeypatch):
    live = dither.Live(tmp_path / "a.db", bandit=begin())
    begun, free = held(monkeypatch)

    async def calls():
        first = asyncio.ensure_future(live.achoose(X))
        await until(begun)  # the loop runs, or this would never be seen
        await asyncio.sleep(0.01)
        assert not first.done(), "answered before the disk had it"
        free.set()
        return await first

    assert asyncio.run(calls()).id in live.read().frame["id"]
    # seen red: `choose` called in the loop; a committer that does not wait for the sync


@pytest.mark.parametrize("early", [True, False])
def test_to_cancel_leaves_a_whole_decision_or_none(tmp_path, monkeypatch, early):
    """Early: the thread is busy, so nothing of it has begun."""
    live = dither.Live(tmp_path / "a.db", bandit=begin())
    begun, free = held(monkeypatch)

    async def calls():
        busy = [asyncio.ensure_future(live.achoose(X, id="0"))]
        await until(begun)
        busy += [asyncio.ensure_future(live.achoose(X, id=str(i))) for i in range(1, 10)]
        await asyncio.sleep(0)
        assert len(live._desk._waiting) == 9
        mine = busy[-1] if early else busy[0]
        mine.cancel()
        with pytest.raises(asyncio.CancelledError):
            await mine
        free.set()
        await asyncio.gather(*[one for one in busy if one is not mine])
        return await live.areward("1", 1.0)

    assert asyncio.run(calls()) == "counted"
    ids = set(live.read().frame["id"])
    assert ids == {str(i) for i in range(9 if early else 10)}
    assert live.reward("0", 0.0) == "counted"
    assert live.to_bytes() == live.replay().to_bytes()
    # seen red: those that were cancelled answered too


def test_a_loop_that_has_ended_is_not_missed(tmp_path, monkeypatch):
    live = dither.Live(tmp_path / "a.db", bandit=begin())
    begun, free = held(monkeypatch)

    async def leaves():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(live.achoose(X, id="left"), 0.05)

    asyncio.run(leaves())
    assert begun.wait(60)
    free.set()
    assert asyncio.run(live.areward("left", 1.0)) == "counted"
    assert asyncio.run(live.areward("left", 1.0)) == "known"


def test_a_ledger_that_changes_meanwhile_is_asked_again(tmp_path):
    live = dither.Live(tmp_path / "a.db", bandit=begin(), shadow=begin(lam=2.0))
    other = dither.Live(tmp_path / "a.db")
    other.replace_shadow(None)  # which this process has not heard of

    async def calls():
        return await asyncio.gather(*[live.achoose(X) for _ in range(10)])

    shown = asyncio.run(calls())
    rows = live.read().frame
    assert set(rows["id"]) == {d.id for d in shown}
    assert "judged" not in rows.columns or rows["judged"].is_null().all()
    # seen red: `Stale` given as an answer


def test_a_child_has_a_thread_of_its_own(tmp_path):
    live = dither.Live(tmp_path / "a.db", bandit=begin())
    asyncio.run(live.achoose(X, id="parent"))
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(live.achoose(X, id="child"))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert set(live.read().frame["id"]) == {"parent", "child"}
    # seen red: a child that believes in the thread of its parent (it waits for ever)


def test_one_who_leaves_takes_no_answer_from_the_others():
    """All that is asked while the thread is busy is answered together."""
    groups, gates = [], [threading.Event(), threading.Event()]

    def answered(asked):
        groups.append(asked)
        assert gates["late" in asked].wait(60)
        return [one.upper() for one in asked]

    desk = awaiting.Desk(answered)

    async def calls():
        first = asyncio.ensure_future(desk.ask("first"))
        while not groups:
            await asyncio.sleep(0.001)
        late = [asyncio.ensure_future(desk.ask(one)) for one in ("gone", "late", "stays")]
        await asyncio.sleep(0)
        gates[0].set()
        while "late" not in groups[-1]:
            await asyncio.sleep(0.001)
        late[0].cancel()
        gates[1].set()
        return await asyncio.gather(*late[1:], first)

    assert asyncio.run(calls())[:2] == ["LATE", "STAYS"]
    assert groups[-1] == ["gone", "late", "stays"]
    # seen red: an answer that is given to who has left, which raises


def test_calls_that_come_quickly_are_taken_together(monkeypatch):
    """A batch waits a little for more, where calls come while one is answered. Who is alone waits for nobody."""
    groups, pauses, gate = [], [], threading.Event()

    def answered(asked):
        groups.append(asked)
        assert gate.wait(60)
        return asked

    def sleep(seconds):
        pauses.append(seconds)
        asyncio.run_coroutine_threadsafe(more(), loop).result(60)  # what comes meanwhile

    async def more():
        rest.append(asyncio.ensure_future(desk.ask("later")))
        await asyncio.sleep(0)

    async def calls():
        nonlocal loop
        loop = asyncio.get_running_loop()
        gate.set()
        await desk.ask("alone")
        await desk.ask("alone again")
        assert not pauses
        gate.clear()
        first = asyncio.ensure_future(desk.ask("first"))
        while len(groups) < 3:
            await asyncio.sleep(0.001)
        second = asyncio.ensure_future(desk.ask("second"))
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(first, second)
        await asyncio.gather(*rest)

    loop, rest, desk = None, [], awaiting.Desk(answered)
    monkeypatch.setattr(awaiting, "APART", 60.0)
    monkeypatch.setattr(awaiting.time, "sleep", sleep)
    asyncio.run(calls())
    assert groups == [["alone"], ["alone again"], ["first"], ["second", "later"]]
    assert len(pauses) == 1
    assert 0 < pauses[0] < 60
    # seen red: no pause; a pause of who is alone
