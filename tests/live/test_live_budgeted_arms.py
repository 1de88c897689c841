"""Arms of budgets that are not there: refused where arms are known, told where they are known as they come."""

import numpy as np
import pytest

import dither
from dither import Budget
from dither.live import budgeted_arms

X = np.eye(3)
ARMS = ["a17", "b23", "c5"]
pytestmark = pytest.mark.usefixtures("closing")


def begin(**settings):
    return dither.LinFP(**{"dim": 3, "lam": 1.0, "floor": 0.3, "seed": 0} | settings)


def shop():
    features = dither.Features(
        context={"country": ["AT", "CH"]}, arm={"topic": ["art", "war"]}, cross=[("country", "topic")]
    )
    arms = {id: {"topic": "art"} for id in ARMS}
    return {"bandit": dither.LinFP(features=features, seed=0), "catalogue": dither.Catalogue(features, arms)}


def test_an_arm_that_the_catalogue_has_not_is_refused(tmp_path):
    home = tmp_path / "a.db"
    with pytest.raises(LookupError, match=r"'a71', and the ledger has no arm of this id. Did you mean 'a17'\?"):
        dither.Live(home, **shop(), budgets={"b23": Budget(1), "a71": Budget(1)})
    with dither.Live(home, **shop(), budgets={"b23": Budget(1)}) as live:
        for budgets in ({"a71": Budget(1)}, {"b23": Budget(2), "zzz": Budget(1)}):
            with pytest.raises(LookupError, match=r"add the arm first") as refused:
                live.change(budgets=budgets, floor=0.5)
            assert live.events() == []
            assert live.budgets == {"b23": (Budget(1),)}
        assert "There are 'a17', 'b23' and 'c5'" in str(refused.value)
        live.catalogue.retire("a17")  # it may come back
        live.change(budgets={"a17": Budget(1)})
        assert set(live.budgets) == {"a17"}
    with dither.Live(None, **shop() | {"catalogue": dither.Catalogue(shop()["catalogue"].features)}) as live:
        live.change(budgets={"a71": Budget(1)})  # nothing is known of arms yet
    # seen red: taken, as all texts were


def test_an_arm_that_is_none_of_the_slots_is_refused():
    live = dither.Live(None, bandit=begin(disjoint=3))
    live.change(budgets={"a17": Budget(1)})  # the first request says what the slots are
    live.choose([1.0, 0.0, 0.0], arms=ARMS)
    with pytest.raises(LookupError, match="Did you mean 'b23'"):
        live.change(budgets={"b32": Budget(1)})
    live.change(budgets={"c5": Budget(1)})


@pytest.mark.parametrize(("id", "near"), [("a71", "Did you mean 'a17'?"), ("zzz", "There are 'a17', 'b23' and 'c5'.")])
def test_an_arm_that_never_comes_is_told_once(monkeypatch, id, near):
    monkeypatch.setattr(budgeted_arms, "PATIENCE", 10)
    live = dither.Live(None, bandit=begin(), budgets={id: Budget(1), "b23": Budget(1, None)})
    for decisions, many in ((4, None), (5, None), (1, 1), (10, 1)):
        live.choose(np.stack([X] * decisions), ARMS)
        words = [one.words for one in live.troubles if one.what == "budgets"]
        assert len(words) == (many or 0)
    assert words[0].startswith(f"this process has decided 10 times, and of its budgets {id!r} was on offer in none")
    assert near in words[0]
    assert "live.change(budgets=" in words[0]
    assert len(live.status().warnings) == 1
    live.change(budgets={id: Budget(2)})
    for _ in range(2):
        live.choose(np.stack([X] * 9), ARMS)
    assert len(live.troubles) == 2
    # seen red: counted by calls; told by each decision; told of b23, which was on offer


def test_no_budgets_any_more(tmp_path):
    live, other = (dither.Live(tmp_path / "a.db", bandit=begin()) for _ in range(2))
    live.change(budgets={"a17": Budget(1, None)})
    for _ in range(8):
        other.choose(X, ARMS)
    assert other.spent() == {"a17": (1.0,)}
    live.change(budgets=None, author="ann")
    assert live.budgets == {}
    other.choose(X, ARMS)
    assert other.budgets == {}
    event = live.events()[-1]
    assert event.details["settings"] == {"budgets": {}}
    assert event.details["before"] == {"budgets": {"a17": [[1, None]]}}
    live.change(budgets=None)  # there are none
    assert live.events()[-1] == event
    with dither.Live(tmp_path / "a.db", budgets={"b23": Budget(1)}):
        pass
    with dither.Live(tmp_path / "a.db", budgets=None) as again:  # at an opening: those that the ledger has
        assert set(again.budgets) == {"b23"}
    # seen red: None was no change
