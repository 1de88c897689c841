"""A request is checked once, and the view that chose answers all that its row needs."""

from collections import Counter

import numpy as np
import pytest

import dither
from dither import models
from dither.deciding import request as requests

X = np.random.default_rng(0).normal(size=(4, 3))


@pytest.fixture
def calls(monkeypatch):
    """How often requests are read, and means and widths computed."""
    counts = Counter()

    def counted(owner, name, called=None):
        rule = getattr(owner, name)

        def count(*arguments, **settings):
            counts[called or name] += 1
            return rule(*arguments, **settings)

        monkeypatch.setattr(owner, name, count)

    counted(requests, "read")
    counted(models.Ridge, "mean")
    counted(models.Ridge, "width")
    counted(models.Ridge, "error_width", "width")
    return counts


@pytest.mark.parametrize(
    ("settings", "asked", "times"),
    [
        ({}, {}, {"read": 1, "mean": 1, "width": 1}),
        ({"floor": 0.2}, {"minimum": [0.1, 0, 0, 0], "values": [1.0, 2, 1, 1]}, {"read": 1, "mean": 1, "width": 1}),
        ({"baseline": dither.Baseline(arm=1, loss=0.2)}, {}, {"read": 1, "mean": 2, "width": 2}),  # of the ellipsoid
    ],
)
def test_a_decision_with_all_its_columns_asks_once(calls, settings, asked, times):
    with dither.Live(None, bandit=dither.LinFP(dim=3, seed=0, **settings), probabilities=True) as live:
        live.choose(X, **asked)
        calls.clear()
        d = live.choose(X, **asked)
        assert calls == times
        row = live.read().frame[-1]
        assert abs(row["probabilities"][0][d.place] - d.propensity) < 1e-15
    # seen red: four readings, five widths


def test_a_log_asks_once(calls):
    log = dither.log.Log(bandit=dither.LinFP(dim=3, seed=0), probabilities=True)
    log.decide(X)
    assert calls == {"read": 1, "mean": 1, "width": 1}
    log = dither.log.Log(bandit=dither.LinFP(dim=3, seed=0, baseline=dither.Baseline(loss=0.2)), probabilities=True)
    calls.clear()
    log.decide(np.stack([X, X]))
    assert calls == {"read": 1, "mean": 4, "width": 4}


def test_a_shadow_judges_the_same_request(calls):
    with dither.Live(None, bandit=dither.LinFP(dim=3, seed=0), shadow=dither.LinUCB(dim=3, seed=0)) as live:
        calls.clear()
        live.choose(X)
        assert calls["read"] == 1
