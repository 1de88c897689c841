"""The terms of rewards: settled with the bandit or not at all, changed by events, and the range of a reward."""

import math
from datetime import timedelta

import numpy as np
import pytest
import sqlalchemy as sa

import dither
import livings
from dither import log
from dither.log.database import keeping, sql_tables

X = np.eye(3)
HOUR = 3600
pytestmark = pytest.mark.usefixtures("closing")


class Mine(dither.models.Ridge):
    """A model of a user's, which a file cannot hold unless it is passed again."""


def begin(**settings):
    return dither.GLMFP(dim=3, floor=0.1, seed=0, **settings)


def settled(home):
    """All that a ledger has settled."""
    with log.Ledger(home).database.reading() as connection:
        changes = connection.execute(sa.select(sql_tables.changes.c.terms)).scalars().all()
        arms = connection.scalar(sa.select(sa.func.count()).select_from(sql_tables.arms))
        return changes, keeping.settings(connection), arms


def catalogue():
    return dither.Catalogue(dither.Features(arm={"topic": ["art", "war"]}, intercept=True), {"a": {"topic": "art"}})


def others():
    return dither.Features(arm={"topic": ["art", "sea"]}, intercept=True)


REFUSED = [
    {},
    {"parts": ["a", "b"], "default": 0.0},
    {"bandit": begin(), "default": 2.0},
    {"bandit": begin(), "reward_range": (0, 5)},
    {"bandit": begin(), "shadow": dither.LinFP(dim=4)},
    {"bandit": begin(), "shadow": dither.LinFP(dim=3, baseline=dither.Baseline(0, 0.5, 0.1))},
    {"bandit": dither.LinFP(dim=4), "catalogue": catalogue(), "parts": ["a"]},
    {"bandit": begin(), "budgets": {"a": "many"}},
    {"bandit": dither.LinFP(dim=3, baseline=dither.Baseline(0, 0.5, 0.1)), "store": "shown"},
    {"bandit": dither.Bandit(Mine(), dither.policies.FeaturePerturbation(1.0), dim=3)},
    {"bandit": dither.LinFP(features=others()), "catalogue": catalogue(), "budgets": {"a": dither.Budget(1)}},
    {"bandit": begin(), "apprentice": lambda X, mask: 0, "explore": 3.0},
    {"bandit": begin(), "apprentice": "first"},
    {"bandit": begin(), "catalogue": "arms"},
]


@pytest.mark.parametrize("more", REFUSED)
def test_an_opening_that_is_refused_settles_nothing(shared, more):
    with pytest.raises((ValueError, TypeError, FileNotFoundError)):
        dither.Live(shared, horizon=HOUR / 2, late="kept", **more)
    live = dither.Live(
        shared, bandit=begin(), horizon=HOUR, default=1.0, parts=["x", "y"], budgets={"b": dither.Budget(1)}
    )
    assert (live.ledger.horizon, live.ledger.parts) == (timedelta(hours=1), ("x", "y"))
    assert (set(live.budgets), live.catalogue, live.shadow) == ({"b"}, None, None)
    # seen red with terms, bandit, shadow, catalogue and budgets settled in a transaction each, and with a rule that was
    # looked at after them


def test_a_refused_opening_of_a_ledger_that_is_there_settles_nothing(shared):
    log.Ledger(shared, horizon=HOUR).close()
    before = settled(shared)
    arms = catalogue()
    for more in (
        {"bandit": begin(), "horizon": 5},
        {"bandit": dither.LinFP(features=arms.features), "catalogue": arms, "budgets": {"a": "many"}},
        {"bandit": begin(), "shadow": dither.LinFP(dim=4), "budgets": {"a": dither.Budget(1)}},
    ):
        with pytest.raises((ValueError, TypeError)):
            dither.Live(shared, **more)
        assert settled(shared) == before
    assert arms.add("b", {"topic": "war"}) == 2  # the catalogue is the caller's own again


# Changes


def test_other_terms_hold_from_then_on_in_all_processes(shared):
    one, two = (dither.Live(shared, bandit=begin(), horizon=10, default=0.0) for _ in range(2))
    before = two.choose(X, time=0)
    one.change(horizon=100, default=1.0)
    after = two.choose(X, time=0)  # at once, whatever this process knows
    deadlines = {row.id: row.deadline.timestamp() for row in one.pending()}
    assert deadlines == {before.id: 10, after.id: 100}
    assert two.reward(before.id, 1.0, time=11) == "late"
    assert two.reward(after.id, 1.0, time=11) == "counted"
    last = one.choose(X, time=0)
    assert (one.expire(50), one.expire(100)) == (1, 1)
    seen = one.read().frame
    assert dict(zip(seen["id"], seen["reward"], strict=True)) == {before.id: 0.0, after.id: 1.0, last.id: 1.0}
    two.learn()
    assert two.replay().to_bytes() == two.to_bytes()
    assert two.bandit.observations == 3
    two.ledger.look()
    assert (two.ledger.horizon, two.ledger.default) == (timedelta(seconds=100), 1.0)
    # seen red with the deadline of the terms that the process had read: 10 for both


def test_a_change_is_an_event_with_its_time_and_a_replay_passes_over_it(home):
    live = dither.Live(home, bandit=begin(), horizon=HOUR)
    for r in (1.0, 0.0):
        live.reward(live.choose(X).id, r)
        live.change(horizon=timedelta(minutes=1) if r else None)
    with live.ledger.database.reading() as connection:
        rows = connection.execute(sa.select(sql_tables.changes).order_by(sql_tables.changes.c.number)).all()
        now = live.ledger.database.now(connection)
    assert [row.horizon for row in rows] == [3600_000_000, 60_000_000, None]
    assert sorted(row.time for row in rows) == [row.time for row in rows]
    assert 0 <= now - rows[-1].time < 60e6
    assert live.batch == 2
    assert live.replay().to_bytes() == live.to_bytes()
    live.change(horizon=None)  # as it is: no event
    assert len(settled_of(live)) == 3


def settled_of(live):
    with live.ledger.database.reading() as connection:
        return connection.execute(sa.select(sql_tables.changes.c.terms)).scalars().all()


@pytest.mark.parametrize(
    ("new", "words"),
    [
        ({}, "say what changes"),
        ({"default": 0.0}, "needs a horizon"),
        ({"horizon": 5, "default": 0.5, "late": "counts"}, "late='kept'"),
        ({"horizon": -1}, "horizon must be"),
        ({"late": "never"}, "late"),
        ({"horizon": 5, "default": 2.0}, r"default must lie in reward_range, \[0, 1\]"),
        ({"reward_range": (0, 2)}, r"reward_range must lie in \[0, 1\], the rewards that the bandit can learn"),
        ({"reward_range": (-math.inf, math.inf)}, "reward_range must lie in"),
        ({"reward_range": (1, 0)}, "two numbers, the lower first"),
        ({"reward_range": (0, math.nan)}, "two numbers, the lower first"),
        ({"reward_range": 3}, "two numbers, the lower first"),
        ({"rewards": "last"}, "rewards cannot change, since the rewards that are there"),
        ({"parts": ["a"]}, "parts cannot change, since what was learnt is the sum"),
    ],
)
def test_a_change_that_cannot_be_is_refused_and_changes_nothing(new, words):
    live = dither.Live(None, bandit=begin())
    before = settled_of(live)
    with pytest.raises((ValueError, LookupError), match=words):
        live.change(**new)
    assert settled_of(live) == before


def test_a_misspelt_term_is_a_typeerror_with_the_near_match():
    """Seen red without the look at the names: the term was kept in the ledger, and nothing changed."""
    live = dither.Live(None, bandit=begin())
    before = settled_of(live)
    for called in (live.change, live.ledger.change):
        with pytest.raises(TypeError, match=r"no (term|setting) 'horizn': did you mean 'horizon'"):
            called(horizn=60)
    assert settled_of(live) == before


def test_a_ledger_that_is_opened_with_other_terms_names_the_way_to_change_them(shared):
    live = dither.Live(shared, bandit=begin(), horizon=HOUR)
    live.change(horizon=60)
    for again in ({}, {"horizon": 60}, {"horizon": timedelta(minutes=1), "reward_range": (0, 1)}):
        dither.Live(shared, **again).close()
    for name, other in (("horizon", HOUR), ("late", "counts"), ("reward_range", (0, 0.5))):
        with pytest.raises(ValueError, match=rf"{name}=.* `change\({name}=\.\.\.\)`"):
            dither.Live(shared, **{name: other})
    with pytest.raises(ValueError, match="parts=None, not"):
        dither.Live(shared, parts=["a"])


# The range of a reward


@pytest.mark.parametrize(
    ("bandit", "passed", "span"),
    [
        (lambda: begin(), None, (0, 1)),
        (lambda: dither.GLMFP(dim=3, link="log"), None, (0, math.inf)),
        (lambda: dither.LinFP(dim=3), None, None),
        (lambda: dither.GLMFP(dim=3, link="probit"), None, (0, 1)),
        (lambda: dither.LinFP(dim=3, disjoint=2), (-1, 1), (-1, 1)),
        (lambda: begin(), (0.25, 0.5), (0.25, 0.5)),
        (lambda: dither.GLMFP(dim=3, link="log"), (1, math.inf), (1, math.inf)),
    ],
)
def test_a_reward_out_of_range_is_refused_before_it_is_stored(tmp_path, bandit, passed, span):
    live = dither.Live(None, bandit=bandit(), reward_range=passed)
    assert live.ledger.reward_range == span
    request = np.ones(3) if live.bandit.slots else X
    ids = [live.choose(request).id for _ in range(3)]
    low, high = span or (-math.inf, math.inf)
    inside = low if math.isfinite(low) else 7.0
    for outside in (low - 0.5, high + 0.5) if span else ():
        if math.isfinite(outside):
            with pytest.raises(ValueError, match=r"reward must lie in reward_range, .* for decision .*; got .*change"):
                live.reward(ids[0], outside)
            with pytest.raises(ValueError, match="reward_range"):
                live.reward(ids, [inside, inside, outside])
    assert np.isnan(live.read().r).all()
    assert live.reward(ids, [inside] * 3) == ["counted"] * 3
    assert (live.bandit.observations, live.refused) == (3, 0)
    assert live.read().reward_range == span
    live.ledger.export(tmp_path / "days")
    assert log.read(tmp_path / "days").reward_range == span
    live.read().write(tmp_path / "all.parquet")
    assert log.read([tmp_path / "days", tmp_path / "all.parquet"]).reward_range == span
    assert log.read(tmp_path / "days", rewards="last").reward_range is None  # it is that of the sum
    # seen red with 7 for a click: 'counted', never learnt, and the true 1 a 'conflict'


def test_the_range_of_parts_is_that_of_the_sum_so_far(home):
    live = dither.Live(home, bandit=dither.LinFP(dim=3), parts=["sale", "refund"], reward_range=(0, 100))
    first, second = live.choose(X).id, live.choose(X).id
    assert live.reward([first, second], [100.0, 30.0], part="sale") == ["counted"] * 2
    with pytest.raises(ValueError, match=r"got -30.5, the sum of its parts so far -0.5"):
        live.reward([first, second], [-30.5, -30.5], part="refund")
    assert live.reward([first, second], [-30.0, -30.0], part="refund") == ["counted"] * 2
    third = live.choose(X).id
    with pytest.raises(ValueError, match=r"got -1.0\."):  # it would be the reward where no sale comes
        live.reward(third, -1.0, part="refund")
    assert live.read().r.tolist()[:2] == [70.0, 0.0]
    assert live.bandit.observations == 2


def test_a_decision_keeps_the_range_that_it_was_stored_under(home):
    live = dither.Live(home, bandit=dither.LinFP(dim=3), reward_range=(0, 1))
    before = live.choose(X).id
    live.change(reward_range=(0, 10))
    after = live.choose(X).id
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        live.reward([after, before], [5.0, 5.0])
    assert live.reward([after, before], [5.0, 0.5]) == ["counted"] * 2
    assert live.read().reward_range == (0, 10)
    live.change(reward_range=None)  # what the bandit can learn
    assert live.ledger.reward_range is None
    assert live.reward(live.choose(X).id, 1e6) == "counted"
    assert live.read().reward_range is None


def test_rows_of_an_older_ledger_stay_as_they_are(shared, tmp_path):
    live = dither.Live(shared, bandit=begin())
    livings.unlimited(live)
    ids = [live.choose(X).id for _ in range(3)]
    assert live.reward(ids[:2], [7.0, 1.0]) == ["counted"] * 2
    live.ledger.export(tmp_path / "days")
    live.close()
    live = dither.Live(shared)  # from now on the ledger knows what its bandit can learn
    assert live.reward(ids[0], 7.0) == "known"
    with pytest.raises(ValueError, match="reward_range"):
        live.reward(ids[2], 7.0)
    assert live.reward(ids[2], 0.0) == "counted"
    assert live.bandit.observations == 2
    assert live.read().r.tolist() == [7.0, 1.0, 0.0]
    other = dither.Live(None, bandit=begin())
    other.ledger.take_over(tmp_path / "days")
    other.learn()
    assert (other.bandit.observations, other.refused) == (1, 1)


def test_a_ledger_that_gets_a_bandit_later_has_its_range(shared):
    plain = log.Ledger(shared, horizon=10, default=0.5)
    d = plain.record(dither.LinFP(dim=3).choose(X), X=X)
    with dither.Live(shared, bandit=begin()):
        pass
    with pytest.raises(ValueError, match="reward_range"):
        plain.reward(d.id, 2.0)  # in a process that had it open
    plain.look()
    assert plain.reward_range == (0, 1)
    with pytest.raises(ValueError, match="default must lie"):
        log.Ledger(None, horizon=10, default=0.5, reward_range=(1, 2))


def rows_of(home, dim, part=None):
    """A ledger of a plain process: one decision and its reward."""
    made, bandit, rows = log.Ledger(home), dither.LinFP(dim=dim, seed=0), np.eye(dim)
    made.reward(made.record(bandit.choose(rows), X=rows).id, 1.0, part=part)
    return made


@pytest.mark.parametrize(
    ("dim", "part", "settings", "words"),
    [
        (4, None, {}, "width 4, and the bandit has dim=3: pass a bandit with dim=4"),
        (3, None, {"disjoint": 3}, "has no slot, and the bandit has disjoint=3.*`export`, `take_over`"),
        (3, "click", {}, r"would never learn the parts 'click'.*parts=\['click'\]"),
    ],
)
def test_rows_that_a_new_bandit_cannot_learn_are_refused_as_a_whole(shared, tmp_path, dim, part, settings, words):
    """Of a ledger that a plain process began. The cure that the error names teaches them.

    Seen red with rows that were refused one by one, and a part of which nothing was said.
    """
    made = rows_of(shared, dim, part)
    before = settled(shared)
    with pytest.raises(ValueError, match=words):
        dither.Live(shared, bandit=begin(**settings))
    assert settled(shared) == before
    if dim == 4:
        live = dither.Live(shared, bandit=dither.LinFP(dim=4))
    else:
        live = dither.Live(None, bandit=begin(**settings), parts=None if part is None else [part])
        made.export(tmp_path / "days")
        live.ledger.take_over(tmp_path / "days")
    live.learn()
    assert (live.bandit.observations, live.refused) == (1, 0)
