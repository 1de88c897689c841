"""Residuals of a model that learns: false alarms as stated, changes that are found, and a state that JSON holds."""

import json
import math

import numpy as np
import pytest

from dither.drift import ResidualAlarm, residuals
from dither.drift.alarm import threshold
from dither.drift.residuals import FIRST, WatchedResiduals
from longer import size


def watched(about, values, predicted, v=0.0):
    """All of them in turn; the place of each is its number."""
    seen = WatchedResiduals()
    for i, (r, m) in enumerate(zip(values, predicted, strict=True)):
        seen.see(about, float(r), float(m), v, i)
    return seen


def judged(seen):
    """How many values could give an alarm."""
    return seen.n - FIRST * (len(seen.alarms) + (seen.since >= FIRST)) - (seen.since < FIRST) * seen.since


@pytest.mark.parametrize("shift", [0.5, 1.0])
def test_false_alarms_of_normal_residuals_come_at_the_stated_rate(shift):
    """The sd is that of some hundred values, so the rate is a little above the stated one."""
    rng, n = np.random.default_rng(0), size(60_000, longer=1_000_000)
    values = 3.0 + 2.0 * rng.normal(size=n)
    about = ResidualAlarm(rate=0.003, shift=shift)
    seen = watched(about, values, np.full(n, 1.0))  # a bias that stays is no change
    expected = about.rate * judged(seen)
    assert seen.law in ("normal", None)
    assert abs(len(seen.alarms) - 1.15 * expected) < 5 * math.sqrt(expected) + 0.15 * expected
    # seen red: with the charts of a mean that is not taken out; with λ z - λ²


def test_false_alarms_of_clicks_are_at_most_the_stated_ones():
    rng, n = np.random.default_rng(1), size(60_000, longer=1_000_000)
    p = rng.choice([0.005, 0.02, 0.3, 0.9], size=n)
    about = ResidualAlarm(rate=0.005)
    seen = watched(about, rng.random(n) < p, p)
    assert seen.law in ("bernoulli", None)
    expected = about.rate * judged(seen)
    assert 0.3 * expected < len(seen.alarms) < expected + 3 * math.sqrt(expected)
    # seen red: with the law "normal", 3 times as many as stated


@pytest.mark.parametrize(
    ("law", "before", "after"), [("normal", 0.0, 1.0), ("bernoulli", 0.1, 0.25), ("bernoulli", 0.25, 0.1)]
)
def test_a_change_is_found_and_dated(law, before, after):
    found = []
    for run in range(20):
        rng = np.random.default_rng(run)
        noise = rng.normal(size=2500) if law == "normal" else rng.random(2500)
        level = np.where(np.arange(2500) < 1500, before, after)
        values = level + noise if law == "normal" else noise < level
        seen = watched(ResidualAlarm(rate=1e-6), values, np.full(2500, before))
        assert len(seen.alarms) == 1
        found.append(seen.alarms[0])
        assert (found[-1].difference > 0) == (after > before)
        assert found[-1].place - found[-1].began + 1 == found[-1].rewards
    late = np.array([one.place - 1500 for one in found])
    off = np.array([one.began - 1500 for one in found])
    assert (late > 0).all()
    assert late.mean() < (60 if law == "normal" else 250)
    assert abs(np.median(off)) <= (5 if law == "normal" else 40)


def test_what_the_model_is_not_sure_of_is_not_watched():
    seen = WatchedResiduals()
    for v in (0.1, math.nan, 0.05):
        seen.see(ResidualAlarm(), 1.0, 0.0, v, 0)
    seen.see(ResidualAlarm(), math.nan, 0.0, 0.0, 0)
    assert (seen.n, seen.unsure) == (1, 3)


def test_charts_are_those_of_the_formula(monkeypatch):
    monkeypatch.setattr(residuals, "FIRST", 20)
    rng = np.random.default_rng(2)
    e, v, λ = rng.normal(size=300) + np.linspace(0, 1, 300), 0.03, 0.7
    about = ResidualAlarm(rate=1e-3, shift=λ)
    seen, h = WatchedResiduals(), threshold(2 / 1e-3, λ)
    up, begun = 0.0, 0
    for i in range(300):
        told = seen.see(about, float(e[i]), 0.0, v, i)
        past = e[begun:i]
        if len(past) < 20:
            continue
        sd = math.sqrt(((past - past.mean()) ** 2).sum() / (1 + v) / (len(past) - 1))  # nearly: means move on the way
        z = (e[i] - past.mean()) / (sd * math.sqrt(1 + v + 1 / len(past)))
        up = max(0.0, up + λ * z - λ**2 / 2)
        if told is None:
            assert pytest.approx(up, abs=1e-9) == seen.charts[0].S
        else:
            assert up >= h
            up, begun = 0.0, i + 1
    assert seen.alarms


def test_a_value_that_is_no_click_ends_the_law_of_clicks():
    seen = watched(ResidualAlarm(), [0.0, 1.0] * 300 + [0.5], [0.5] * 601)
    assert seen.law == "bernoulli"  # a value between is judged too
    seen.see(ResidualAlarm(), 3.0, 0.5, 0.0, 601)
    assert (seen.law, seen.since, seen.n) == ("normal", 1, 602)


def test_json_holds_the_state_to_the_bit():
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.normal(size=800), 2 + rng.normal(size=700)])
    about, seen = ResidualAlarm(), WatchedResiduals()
    for i, r in enumerate(values):
        seen.see(about, float(r), 0.0, 0.01, [i / 7, i])
        if i % 100 == 0:
            seen = WatchedResiduals.of_description(json.loads(json.dumps(seen.described())))
    whole = WatchedResiduals()
    for i, r in enumerate(values):
        whole.see(about, float(r), 0.0, 0.01, [i / 7, i])
    assert seen == whole
    assert seen.alarms


def test_settings_that_make_no_sense():
    for wrong in ({"rate": 0}, {"rate": 0.2}, {"shift": 3}, {"law": "bounded"}):
        with pytest.raises((ValueError, LookupError), match=next(iter(wrong))):
            ResidualAlarm(**wrong)
