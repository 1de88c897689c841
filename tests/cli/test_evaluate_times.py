"""`evaluate` with times: rewards that are late, the value now, the value by period."""

import math
from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import dither
from dither import ope
from dither.ope.timed import Timed

START, DAY = datetime(2026, 1, 1), 86400.0


def table(seed=0, n=1500, days=10.0):
    """Two arms at random for ten days; a reward comes within three days, or never; arm 1 gets better."""
    rng = np.random.default_rng(seed)
    day, a = np.sort(days * rng.random(n)), rng.integers(0, 2, n)
    got = rng.random(n) < np.where(a == 1, 0.2 + 0.05 * day, 0.4)
    came = np.where(got, day + 3.2 * rng.random(n), math.nan)
    came = np.where(came <= days, came, math.nan)
    frame = pl.DataFrame(
        dict(
            arm=a,
            propensity=np.full(n, 0.5),
            reward=[1.0 if x == x else None for x in came],
            time=[START + timedelta(days=x) for x in day],
            reward_time=[START + timedelta(days=x) if x == x else None for x in came],
            K=np.full(n, 2),
            site=np.where(np.arange(n) % 2, "b", "a"),
        )
    )
    times = frame["time"].to_numpy(), frame["reward_time"].to_numpy()
    return frame, np.where(np.isnan(came), 0.0, 1.0), a, *times


NOW = "2026-01-11T00:00:00"
WHEN = np.datetime64(NOW, "us")
Q = np.tile([0.0, 1.0], (1500, 1))


@pytest.fixture
def path(tmp_path):
    table()[0].write_parquet(tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


def test_settled_rewards(path):
    _, r, a, decided, came = table()
    found = ope.evaluate(path, ["arm:1"], ["ips"], horizon="3d", now=NOW, missing=0)
    settled = ope.settled(r, decided, came, now=WHEN, horizon=3 * DAY)
    e = ope.ips(settled, a, np.full(1500, 0.5), Q, mask=np.isfinite(settled))
    assert_allclose([found.estimates["arm:1", "ips"].value, found.estimates["arm:1", "ips"].se], [e.value, e.se])
    young = int(np.isnan(settled).sum())
    assert found.report.left_out == {"the horizon has not passed": young}
    assert (found.report.read, found.report.used) == (1500, 1500 - young)
    assert young > 300  # seen red: the rows stayed, with the number for missing


@pytest.mark.parametrize("recent", [{}, dict(half_life="2d")])
def test_weighted_rewards(path, recent):
    _, r, a, decided, came = table()
    found = ope.evaluate(
        path, ["arm:1"], ["ips", "snips"], horizon=timedelta(days=3), now=NOW, missing=0, late="weighted", **recent
    )
    s = ope.recent(decided, half_life=2 * DAY) if recent else None
    made = ope.arrived(r, decided, came, now=WHEN, horizon=3 * DAY, weight=s)
    for name in ("ips", "snips"):
        e = getattr(ope, name)(made, a, np.full(1500, 0.5), Q, weight=s)
        one = found.estimates["arm:1", name]
        assert_allclose([one.value, one.se], [e.value, e.se], rtol=1e-10)  # seen red: G without the weights
    assert any("right where the world stands still" in note for note in found.notes())


@pytest.mark.parametrize("asked", [dict(half_life="36h"), dict(window="2d"), dict(window=2 * DAY, at="2026-01-06")])
def test_the_value_now(path, asked):
    _, r, a, decided, _ = table()
    found = ope.evaluate(path, ["arm:1"], ["ips"], missing=0, **asked)
    at = np.datetime64(asked["at"]) if "at" in asked else None
    how = dict(half_life=1.5 * DAY) if "half_life" in asked else dict(window=2 * DAY)
    e = ope.ips(r, a, np.full(1500, 0.5), Q, weight=ope.recent(decided, at=at, **how))
    one = found.estimates["arm:1", "ips"]
    assert_allclose([one.value, one.se, one.ess], [e.value, e.se, e.ess], rtol=1e-10)
    assert one.n == e.n
    assert any("the intervals are for these" in note for note in found.notes())


def test_the_value_by_period(path):
    _, r, a, decided, _ = table()
    found = ope.evaluate(path, ["arm:1", "uniform"], ["ips"], missing=0, by="day")
    e = ope.ips(r, a, np.full(1500, 0.5), Q)
    by = ope.by_period(e, decided.astype("datetime64[D]").astype(str))
    assert tuple(found.periods) == by.period
    ones = [one.estimates["arm:1", "ips"] for one in found.periods.values()]
    assert_allclose([one.value for one in ones], by.value, rtol=1e-10)
    assert_allclose(found.changed("arm:1", "ips"), by.p_value, rtol=1e-8)
    assert by.p_value < 0.01
    assert any(note.startswith("arm:1: the value is not the same in all 10 periods") for note in found.notes())
    sites = ope.evaluate(path, ["arm:1"], ["ips"], missing=0, by="site")
    assert list(sites.periods) == ["a", "b"]
    assert any("may be the same in all 2 periods" in note for note in sites.notes())
    assert sites.periods["a"].estimates["arm:1", "ips"].n == 750


@pytest.mark.parametrize(
    ("by", "labels"),
    [
        ("week", ["2025-12-29", "2025-12-29", "2026-01-05"]),  # seen red: weeks that begin on a Thursday
        ("day", ["2026-01-01", "2026-01-04", "2026-01-05"]),
        ("month", ["2026-01"] * 3),
        ("hour", ["2026-01-01T06", "2026-01-04T23", "2026-01-05T00"]),
    ],
)
def test_periods_begin_where_calendars_say(by, labels):
    times = [datetime(2026, 1, 1, 6), datetime(2026, 1, 4, 23, 59), datetime(2026, 1, 5)]
    frame = pl.DataFrame(dict(arm=[0, 1, 0], propensity=[0.5] * 3, reward=[1.0, 0.0, 1.0], time=times, K=[2, 2, 2]))
    assert Timed(by=by).labels(dither.log.read(frame)).tolist() == labels


def test_the_command(path, request, tmp_path):
    run = request.getfixturevalue("dither")
    common = ("evaluate", path, "--policy", "arm:1", "--estimator", "ips", "--missing", "0")
    code, out, _ = run(*common, "--by", "week", "--window", "9d")
    assert code == 0
    assert "Value by week" in out
    assert "means over the last 9 d" in out
    code, out, _ = run(*common, "--by", "site", "--out", tmp_path / "made", "--html", tmp_path / "page.html")
    assert code == 0
    kept = pl.read_parquet(tmp_path / "made" / "periods.parquet")
    found = ope.evaluate(path, ["arm:1"], ["ips"], missing=0, by="site")
    assert kept.filter(pl.col("period") == "b", pl.col("policy") == "arm:1")["value"].to_list() == [
        found.periods["b"].estimates["arm:1", "ips"].value
    ]
    assert "<h2>By site</h2>" in (tmp_path / "page.html").read_text()
    code, out, _ = run(*common, "--horizon", "3d", "--now", NOW)
    assert code == 0
    assert "the horizon has not passed" in out
    code, _, err = run(*common, "--late", "weighted")
    assert code == 2
    assert "--late is for late rewards: give --horizon 7d too" in err


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (dict(horizon="3d"), "say what a reward counts that does not come: missing=NUMBER"),
        (dict(horizon="3 months", missing=0), "horizon must be seconds, or a number with one of s, min, h, d, w"),
        (dict(horizon=-1, missing=0), "horizon must be"),
        (dict(late="soon"), "soon"),
        (dict(late="weighted"), "is for late rewards: give horizon="),
        (dict(now=NOW), "is for late rewards: give horizon="),
        (dict(at=NOW), "needs half_life="),
        (dict(half_life=1, window=1), "not both"),
        (dict(half_life=1, interval="betting", reward_range=(0, 1), weight_max=2), "takes the value to be the same"),
        (
            dict(horizon=9, missing=0, late="weighted", interval="anytime", reward_range=(0, 1)),
            "needs rewards as they came: take late='settled'",
        ),
        (dict(horizon=9, missing=0, late="weighted", estimators=["stablevar"]), "reads the past needs rewards as they"),
    ],
)
def test_what_is_refused(path, asked, message):
    with pytest.raises((ValueError, LookupError), match=message):
        ope.evaluate(path, ["arm:1"], **(dict(estimators=["ips"]) | asked))


def test_columns_that_are_missing():
    frame = table()[0]
    none = frame.with_columns(reward_time=pl.lit(None, dtype=pl.Datetime("us")))
    with pytest.raises(ValueError, match="the column 'time' must say of every row"):
        ope.evaluate(frame.drop("time"), ["arm:1"], missing=0, window="1d")
    with pytest.raises(ValueError, match="needs the column 'reward_time'"):
        ope.evaluate(frame.drop("reward_time"), ["arm:1"], missing=0, horizon="1d")
    with pytest.raises(ValueError, match="a reward must say when it came; row"):
        ope.evaluate(none, ["arm:1"], missing=0, horizon="1d", now=NOW)
    with pytest.raises(ValueError, match="has no column"):
        ope.evaluate(frame, ["arm:1"], missing=0, by="nothing")
