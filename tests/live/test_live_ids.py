"""One rule for the ids of arms, whoever takes them: an id is a text that is not empty, or a whole number."""

import numpy as np
import pandas as pd
import pytest

import dither

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


def test_records_beside_ids_are_not_dropped(live, shop):
    """The catalogue has the records. Those of one request would be dropped, so they are refused with the cure."""
    for call in (live.choose, shop.encode):
        with pytest.raises(ValueError, match=r"arms must be a list of ids.*change.*arms=\['a1'\]"):
            call({}, {"a1": {"age": 999}})
    assert len(live.ledger) == 0
    # seen red: encoded with the age of the catalogue, without a word


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
