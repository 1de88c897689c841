"""The example of two live bandits on both databases, and values in `Live`."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dither
from dither import log
from example_scripts import script

trial = script("two_bandits")
pytestmark = pytest.mark.usefixtures("closing")


def test_which_of_30_articles(shared):
    first, second = trial.news(shared, np.random.default_rng(0))
    chance = (0.6 + 2 * 0.05) / 3  # of a click on an article at random
    assert second > chance + 3 * np.sqrt(chance * (1 - chance) / 150)  # seen red: features without the cross
    assert 0 < first < 0.6
    with dither.Live(shared, catalogue=dither.Catalogue(trial.FEATURES, trial.ARTICLES)) as live:
        seen = live.read()
        assert len(seen) == 300
        known = ~np.isnan(seen.r)
        assert known.sum() + sum(1 for _ in live.pending()) == 300 - 6  # u7 was asked 6 times
        assert set(seen.r[known]) == {0.0, 1.0}
        assert live.replay().to_bytes() == live.to_bytes()
        assert seen.check() is not None
        assert live.bandit.observations == known.sum()
    told = {arm for arms in seen.arm_ids() for arm in arms}
    assert told <= set(trial.ARTICLES)


def test_which_of_5_prices(shared):
    earned = trial.prices(shared, np.random.default_rng(0))
    chance = 1 / (1 + np.exp(trial.PRICES / 6 - 2))
    assert earned > np.mean(trial.PRICES * chance)  # more than prices at random
    with dither.Live(shared) as live:
        seen = live.read()
        assert_allclose(seen.matrix("values"), np.tile(trial.PRICES, (300, 1)))


@pytest.mark.parametrize("masked", [False, True])
def test_the_propensity_is_that_of_the_values(masked):
    X, values = np.eye(3), [1.0, 2.0, 4.0]
    mask = [True, False, True] if masked else None
    shadow = dither.LinFP(dim=3, seed=1, c=3.0)
    live = dither.Live(
        None, bandit=dither.LinFP(dim=3, seed=0, floor=0.1), probabilities=True, shadow=shadow, shadow_learns=False
    )
    for r in (0.5, 1.0, 0.2):
        p = live.bandit.propensities(X, mask=mask, values=values)
        d = live.choose(X, arms=["a", "b", "c"], mask=mask, values=values)
        assert_allclose(d.propensity, p[d.place], rtol=1e-9)
        live.reward(d.id, r)
    seen = live.read()
    on = [0, 2] if masked else [0, 1, 2]
    assert seen.frame["values"].to_list() == [[values[i] for i in on]] * 3
    assert_allclose(seen.frame["judged"].to_list()[0], shadow.propensities(X, mask=mask, values=values)[on])
    assert_allclose(seen.frame["probabilities"].to_list()[2], p[on], rtol=1e-9)
    batch = live.choose(np.stack([X, X]), arms=["a", "b", "c"], mask=mask, values=values)
    assert batch.propensity.shape == (2,)
    assert live.read().frame["values"].to_list()[-2:] == [[values[i] for i in on]] * 2
    with pytest.raises(ValueError, match="values must be numbers above 0"):
        live.choose(X, values=[1.0, -1.0, 1.0])
    assert len(live.read()) == 5
    assert isinstance(live.read(), log.Logged)
    # seen red: a shadow without the values; probabilities of the bandit without them
