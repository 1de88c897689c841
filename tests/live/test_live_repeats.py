"""The same request under the same id: it is answered as it was before, by any process; another request is refused."""

import asyncio
import math

import numpy as np
import pytest
import sqlalchemy as sa

import dither
from dither.live import OtherRequest
from dither.log.database import sql_tables

X = np.eye(3)
pytestmark = pytest.mark.usefixtures("closing")
FEATURES = dither.Features(
    context={"country": ["AT", "CH"]}, arm={"topic": ["art", "war"]}, cross=[("country", "topic")]
)
ARMS = {"a17": {"topic": "art"}, "a23": {"topic": "war"}, "a5": {"topic": "art"}}
SEEN = ("id", "arm", "place", "propensity", "propensity_kind", "propensity_se", "z", "fallback")


def begin(**settings):
    return dither.LinFP(**{"dim": 3, "lam": 1.0, "floor": 0.3, "seed": 0} | settings)


def seen(d):
    """What a decision says, to the bit; arrays as lists."""
    values = [getattr(d, name) for name in SEEN]
    return [one.tolist() if isinstance(one, np.ndarray) else one for one in values]


def rows(live):
    with live.ledger.database.reading() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(sql_tables.decisions))


CALLS = {  # one request in each of its forms
    "X": dict(context=X),
    "mask": dict(context=X, mask=[False, True, True]),
    "ids": dict(context=X, arms=["a", "b", "c"]),
    "ids and a mask": dict(context=X, arms=["a", "b", "c"], mask=[False, True, True]),
    "numbers as ids": dict(context=X, arms=[7, 8, 9]),
    "values": dict(context=X, values=[1.0, 2.0, 3.0]),
    "minimum": dict(context=X, minimum=[0.0, 0.5, 0.0]),
    "extra": dict(context=X, extra={"user": "u1"}),
}


@pytest.fixture
def inside():
    """A ledger in memory."""
    return dither.Live(None, bandit=begin())


@pytest.mark.parametrize("form", CALLS)
def test_a_request_is_answered_as_before(inside, form):
    live = inside
    for i in range(5):
        first = live.choose(**CALLS[form], id=f"v{i}", body=f"body {i}")
        again = live.choose(**CALLS[form], id=f"v{i}", body=f"body {i}".encode())
        assert seen(again) == seen(first)
    assert rows(live) == 5
    assert live.reward("v0", 1.0) == "counted"
    # seen red: the position among those on offer, with a mask


def test_by_another_process_and_after_a_restart(shared):
    live = dither.Live(shared, bandit=begin())
    first = live.choose(X, id="v", body="b")
    other = dither.Live(shared)
    assert seen(other.choose(X, id="v", body="b")) == seen(first)
    live.close()
    other.close()
    again = dither.Live(shared)
    for _ in range(20):  # and however much is learnt since
        again.reward(again.choose(X).id, 1.0)
    assert seen(again.choose(X, id="v", body="b")) == seen(first)


def test_another_request_is_refused():
    live = dither.Live(None, bandit=begin())
    live.choose(X, id="v", body="b")
    live.choose(X, id="w")
    for call in (dict(id="v", body="c"), dict(id="v", body=b"c"), dict(id="w", body="b"), dict(id=["v"], body="c")):
        with pytest.raises(OtherRequest, match="given to a decision before, by another request"):
            live.choose(X[None] if isinstance(call["id"], list) else X, **call)
    with pytest.raises(ValueError, match="ids must differ"):
        live.choose(X, id="v")
    with pytest.raises(TypeError, match="bytes or a text"):
        live.choose(X, id="x", body={"a": 1})
    assert rows(live) == 2
    # seen red: rows without a digest taken for the same


def test_without_an_id_nothing_is_known_again():
    live = dither.Live(None, bandit=begin())
    assert live.choose(X, body="b").id != live.choose(X, body="b").id
    assert rows(live) == 2


@pytest.mark.parametrize("arms", [None, ["a23", "a17"], ["a5", "a23", "a17"]])
def test_of_a_catalogue_whose_arms_have_gone_since(tmp_path, arms):
    """The request cannot be made any more, and the answer is there."""
    stock = dither.Catalogue(FEATURES, ARMS)
    live = dither.Live(tmp_path / "a.db", bandit=dither.LinFP(features=FEATURES, floor=0.9, seed=0), catalogue=stock)
    first = [live.choose({"country": "AT"}, arms, id=f"v{i}", body="b") for i in range(8)]
    stock.retire("a17")
    stock.add("a0", {"topic": "war"})
    other = dither.Live(tmp_path / "a.db")
    for i, d in enumerate(first):
        for one in (live, other):
            assert seen(one.choose({"country": "AT"}, arms, id=f"v{i}", body="b")) == seen(d)
    assert len({d.arm for d in first}) > 1
    if arms is not None:
        with pytest.raises(ValueError, match="a17"):
            live.choose({"country": "AT"}, arms, id="new", body="c")


def test_of_slots():
    live = dither.Live(None, bandit=begin(disjoint=3))
    for arms, name in ((None, "positions"), (None, "mask")):
        for i in range(4):
            more = dict(mask=[False, True, True]) if name == "mask" else {}
            first = live.choose([1.0, 0.0, 0.0], arms, id=f"{name}{i}", body="b", **more)
            assert seen(live.choose([1.0, 0.0, 0.0], arms, id=f"{name}{i}", body="b", **more)) == seen(first)


@pytest.mark.parametrize("arms", [None, ["a23", "a5"]])
def test_of_a_catalogue_of_slots(arms):
    features = dither.Features(context={"country": ["AT", "CH"]}, form="disjoint")
    stock = dither.Catalogue(features, {"a17": {}, "a23": {}, "a5": {}})
    live = dither.Live(None, bandit=dither.LinFP(features=features, disjoint=3, floor=0.9, seed=0), catalogue=stock)
    first = [live.choose({"country": "AT"}, arms, id=f"v{i}", body="b") for i in range(6)]
    stock.retire("a17")
    assert {d.place for d in first} >= {1, 2}
    for i, d in enumerate(first):
        assert seen(live.choose({"country": "AT"}, arms, id=f"v{i}", body="b")) == seen(d)
    # seen red: the position among the ids that were passed


@pytest.mark.parametrize("where", ["numbers", "monte_carlo"])
def test_of_many_requests(where):
    bandit = begin() if where == "numbers" else dither.LinPHE(dim=3, seed=0, monte_carlo=50)
    live = dither.Live(None, bandit=bandit)
    masks = np.array([[True, True, True], [False, True, True], [True, False, False]])
    call = dict(context=np.stack([X] * 3), mask=masks, id=["u", "v", "w"], body="b")
    first, again = live.choose(**call), live.choose(**call)
    assert seen(again) == seen(first)
    assert rows(live) == 3
    for other in (["u", "v", "x"], ["u", "v"]):
        with pytest.raises(ValueError, match="given to a decision before"):
            live.choose(**call | {"id": other, "context": np.stack([X] * len(other)), "mask": None, "body": "c"})
    assert rows(live) == 3


def test_budgets_are_taken_once():
    live = dither.Live(None, bandit=begin(floor=0.0), budgets={"a": dither.Budget(1)})
    first = live.choose(X, ["a", "b", "c"], values=[9.0, 1.0, 1.0], id="v", body="b")
    spent = live.spent()
    for _ in range(3):
        assert seen(live.choose(X, ["a", "b", "c"], values=[9.0, 1.0, 1.0], id="v", body="b")) == seen(first)
    live.choose(X[:1], ["a"], id="w", body="b") if first.arm != "a" else None
    with pytest.raises(ValueError, match="spent their budgets"):
        live.choose(X[:1], ["a"], id="x", body="b")
    if first.arm != "a":
        assert live.choose(X[:1], ["a"], id="w", body="b").arm == "a"  # which could not be made any more
    assert live.spent()["a"][0] <= 1
    assert spent["a"][0] <= live.spent()["a"][0]


def test_at_the_same_time(shared):
    """One of them is stored, and all have its answer."""
    live, other = dither.Live(shared, bandit=begin()), dither.Live(shared)

    async def calls():
        return await asyncio.gather(*[(live, other)[i % 2].achoose(X, id="v", body="b") for i in range(12)])

    assert len({tuple(seen(d)) for d in asyncio.run(calls())}) == 1
    assert rows(live) == 1


def test_what_was_erased_is_not_answered():
    live = dither.Live(None, bandit=begin())
    live.choose(X, id="v", body="b", extra={"user": "u"})
    live.erase(user="u")
    with live.ledger.database.reading() as connection:
        assert connection.scalar(sa.select(sql_tables.decisions.c.digest)) is None  # which is of a person's data
    with pytest.raises(OtherRequest, match="was erased"):
        live.choose(X, id="v", body="b")


def test_a_propensity_that_is_not_known_stays_unknown():
    live = dither.Live(None, bandit=dither.LinPHE(dim=3, seed=0, monte_carlo=0))
    for _ in range(2):
        d = live.choose(X, id="v", body="b")
        assert (math.isnan(d.propensity), d.propensity_kind, d.fallback) == (True, "none", False)
