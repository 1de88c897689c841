"""One rule for the ids of arms, whoever takes them: an id is a text that is not empty, or a whole number."""

import asyncio

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import dither
from dither.features import raw_records
from dither.live import kept_requests, requests

NUMERIC = dither.features.Numeric(mean=0, scale=1)
FEATURES = dither.Features(arm={"age": NUMERIC})
ARMS = {"a1": {"age": 1.0}, "2": {"age": 2.0}, "a3": {"age": 3.0}}


@pytest.fixture
def shop():
    return dither.Catalogue(FEATURES, ARMS)


@pytest.fixture
def live(shop):
    with dither.Live(None, bandit=dither.LinFP(features=FEATURES, seed=0), catalogue=shop) as live:
        yield live


@pytest.mark.parametrize("arms", [[1.0], [None], [True], [""], "a1", b"a1", {"a1"}, []])
def test_what_is_no_id_is_refused_alike(live, shop, arms):
    with pytest.raises(ValueError, match=r"(id|list)") as by_catalogue:
        shop.encode({}, arms)
    with pytest.raises(ValueError, match=r"(id|list)") as by_live:
        live.choose({}, arms)
    assert str(by_live.value) == str(by_catalogue.value)
    assert len(live.ledger) == 0
    # seen red: [1.0]: "add it first", which `add` would refuse


@pytest.mark.parametrize("arms", [["a1", 2], ("a1", "2"), np.array(["a1", "2"]), pd.Series(["a1", "2"])])
def test_lists_of_ids_are_taken_alike(live, shop, arms):
    assert shop.encode({}, arms).shape == (2, 2)
    assert live.choose({}, arms).arm in ("a1", "2")


@pytest.mark.parametrize("typed", ["caf\u00e9", "cafe\u0301"])
def test_a_list_of_texts_has_the_ids_of_the_catalogue(live, typed):
    live.catalogue.add("caf\u00e9", {"age": 0.0})
    d = live.choose({}, [typed, "a1"])
    assert d.arm in ("caf\u00e9", "a1")
    assert live.read().arm_ids() == [["caf\u00e9", "a1"]]
    with pytest.raises(LookupError, match="no arm 'a9'"):
        live.choose({}, [typed, "a9"])
    # seen red: texts that the catalogue has not taken as they are


def test_records_beside_ids_count_in_their_request(live, shop):
    """On every road: the catalogue's `encode` for a plain bandit and a log, `choose` and `achoose` of a live one."""
    brought = {"a3": {"age": 7.0}, 2: None, "a1": {"age": -1.0}}
    X = np.array([[1.0, 7.0], [1.0, 2.0], [1.0, -1.0]])
    assert_array_equal(shop.encode({}, brought), X)
    twin = dither.LinFP(features=FEATURES, seed=0)
    log = dither.log.Log(None, bandit=twin)
    shown = [live.choose({}, brought), asyncio.run(live.achoose({}, arms=brought))]
    by_log = [log.decide(X, arms=brought), log.decide(X, arms=brought)]
    for one, other in zip(shown, by_log, strict=True):
        assert one.arm == ["a3", "2", "a1"][other.arm]
        assert (one.place, one.propensity, one.z) == (other.arm, other.propensity, other.z)
    rows = live.read()
    assert rows.arm_ids() == [["a3", "2", "a1"]] * 2
    assert_array_equal(rows.X, [X, X])
    assert shop.records["a3"] == {"age": 3.0}
    assert_array_equal(shop.encode({}, list(brought)), [[1, 3], [1, 2], [1, 1]])
    with pytest.raises(ValueError, match=r"the record for 'a1' has no field of an arm: 'age'; got \['aeg'\]"):
        live.choose({}, {"a1": {"aeg": 999}})
    assert len(live.ledger) == 2
    # seen red: encoded with the age of the catalogue, without a word


def test_without_a_catalogue_records_come_with_their_ids():
    f = dither.Features(arm={"age": NUMERIC, "id": ["a1", "2"]}, cross=[])
    with dither.Live(None, bandit=dither.LinFP(features=f, seed=0)) as live:
        d = live.choose(None, {"a1": {"age": 5.0}, 2: {"age": 1.0, "id": "a1"}})
        assert d.arm in ("a1", "2")
        assert_array_equal(live.read().X, [[[1, 5, 1, 0], [1, 1, 1, 0]]])
        assert live.read().arm_ids() == [["a1", "2"]]
        call = requests.Call(None, {2: {"age": 5.0}})
        (kept,) = kept_requests.kept(call, requests.read(live.bandit, None, call), None)
        assert raw_records.unpacked(kept).arms == [{"id": "2", "age": 5.0}]
        for odd, words in (({"a1": None}, "arm 'a1' must be a dict"), ({"a1": {"age": 3}, "": {}}, "an id must be")):
            with pytest.raises((TypeError, ValueError), match=words):
                live.choose(None, odd)
        with pytest.raises(ValueError, match="arm 1 has no field 'age'"):
            live.choose(None, {"a1": {"age": 3}, "a2": {}})
        with pytest.raises(ValueError, match=r"arms must be ids where X is given, .*got records: \['a1'\]"):
            live.choose(np.ones((1, 4)), {"a1": {"age": 3}})  # seen red: the record dropped
        assert len(live.ledger) == 1


def test_an_unknown_id_says_what_is_there(live, shop):
    for call in (live.choose, shop.encode):
        with pytest.raises(LookupError, match="no arm 'a4' in the catalogue"):
            call({}, ["a4"])


@pytest.mark.parametrize("arms", [["a1", "a1", "2"], [2, "2"]])
def test_an_id_that_comes_twice_is_refused(live, arms):
    """It would be two arms of one name, each with a probability, and the log would say the half of it."""
    with pytest.raises(ValueError, match="must be different ids"):
        live.choose({}, arms)
    assert len(live.ledger) == 0
    # seen red: 'a1' with half of its probability
