"""A ledger and a file of an earlier version go on with their settings, whatever the defaults are by now.

The folder files/before-paper has both, written by the commit before the preset "paper", when its settings were the
default: `LinFP(dim=3, floor=0.3, seed=0)` met eight requests and learnt six rewards, beside a shadow that was
`LinTS(dim=3, lam=1.0, monte_carlo=50, seed=1)`. ledger.sql is what `sqlite3 l.db .dump` says of the ledger.
"""

import operator
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import dither
from dither.models import Ridge
from dither.policies import FeaturePerturbation, ThompsonSampling

FILES = Path(__file__).parent / "files" / "before-paper"
THETA = [-0.8446439332860256, 0.035024685454905, 0.4358542324720762]
OF_SHADOW = [-0.6845316840729652, 0.05124471752473951, 0.44527503717309636]
X = np.eye(3)
pytestmark = pytest.mark.usefixtures("closing")


def acting(**settings):
    return dither.LinFP(dim=3, floor=0.3, seed=0, **settings)


def judged(**settings):
    return dither.LinTS(dim=3, monte_carlo=50, seed=1, **{"lam": 1.0} | settings)


@pytest.fixture
def home(tmp_path):
    """The ledger of the earlier version."""
    with sqlite3.connect(tmp_path / "l.db") as database:
        database.executescript((FILES / "ledger.sql").read_text(encoding="utf-8"))
    database.close()
    return tmp_path / "l.db"


@pytest.fixture(params=[{}, {"c": 0.5, "lam": 0.25}], ids=["today", "another default"])
def defaults(request, monkeypatch):
    """The default of today, or one that differs from that of the ledger for sure."""
    if request.param:
        for algorithm in (dither.LinFP, dither.LinTS):
            monkeypatch.setitem(algorithm.presets, "default", request.param)
    return request.param


def test_the_call_that_made_a_ledger_opens_it_and_goes_on_with_its_settings(home, defaults):
    with dither.Live(home, bandit=acting(), shadow=judged()) as live:
        assert (live.bandit.model, live.bandit.policy) == (Ridge(1e-4), FeaturePerturbation())
        assert (live.shadow.model, live.shadow.policy) == (Ridge(1.0), ThompsonSampling())
        assert_array_equal(live.bandit.theta, THETA)
        assert_array_equal(live.shadow.theta, OF_SHADOW)
        log = live.read()
        for i, (arms, arm, p) in enumerate(zip(log.X, log.a, log.p, strict=True)):
            assert live.replay(min(i, 6)).propensities(arms)[arm] == p
        d = live.choose(X)
        assert live.reward(d.id, 1.0) == "counted"
        for ability in ("theta", "state.F"):  # what rounding may have done is bounded anew, from the old bound
            assert_array_equal(*(operator.attrgetter(ability)(bandit) for bandit in (live.replay(), live.bandit)))
        theta = live.bandit.theta
    # seen red: without `formerly`, under another default; acting with what was passed; fields that
    # are newer than the ledger compared with nothing
    file = dither.load(FILES / "LinFP.npz")
    file.update(X[d.arm], 1.0)
    assert_array_equal(file.theta, theta)
    with dither.Live(home) as live:
        assert_array_equal(live.bandit.theta, theta)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"c": 0.3}, "policy is"),
        ({"lam": 0.5}, "model is"),
        ({"preset": "own_paper"}, "(model|policy) is"),
        ({"sigma": 2.0}, "policy is"),
    ],
)
def test_what_a_call_names_must_be_that_of_the_ledger(home, defaults, settings, says):
    with pytest.raises(ValueError, match=f"that of another bandit: {says}"):
        dither.Live(home, bandit=acting(**settings))
    with pytest.raises(ValueError, match=f"has another shadow: {says}"):
        dither.Live(home, shadow=judged(**settings))
    # seen red: everything that differs taken for an earlier default


def test_the_preset_that_was_the_default_opens_it_by_its_name(home, defaults):
    with dither.Live(home, bandit=acting(preset="paper"), shadow=judged(preset="paper")) as live:
        assert_array_equal(live.bandit.theta, THETA)
    with dither.Live(home, bandit=acting(lam=1e-4, c=1.0)) as live:  # seen red: the settings of the call left out
        assert_array_equal(live.bandit.theta, THETA)


def test_a_bandit_of_a_model_and_a_policy_names_all_of_its_settings(home, defaults):
    parts = {"dim": 3, "floor": 0.3}
    with pytest.raises(ValueError, match="another bandit: model is"):
        dither.Live(home, bandit=dither.Bandit(Ridge(0.25), FeaturePerturbation(), **parts))
    with dither.Live(home, bandit=dither.Bandit(Ridge(1e-4), FeaturePerturbation(), **parts)) as live:
        assert_array_equal(live.bandit.theta, THETA)


def test_a_new_ledger_has_the_default_of_today(tmp_path, monkeypatch):
    monkeypatch.setitem(dither.LinFP.presets, "default", {"c": 0.5})
    with dither.Live(tmp_path / "new.db", bandit=acting()) as live:
        assert live.bandit.policy.c == 0.5
    with dither.Live(tmp_path / "new.db", bandit=acting()) as live:
        assert live.bandit.policy.c == 0.5
    assert acting(preset="paper").formerly == ()  # seen red: `formerly` of every preset, though it was named
