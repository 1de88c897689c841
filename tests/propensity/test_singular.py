"""Arms with a z each from a ball: panels for all arms together against panels for each arm, and how many nodes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dither import noise, propensity
from dither.propensity import independent, singular


def arms(seed, K):
    rng = np.random.default_rng(seed)
    m, w = rng.normal(size=K) * rng.choice([0.01, 0.3, 2.0]), rng.uniform(0.1, 1.0, K) * rng.choice([0.1, 1.0])
    if seed % 4 == 1:  # counts of one-hot arms
        w = 1 / np.sqrt(rng.integers(1, 50, K) + 0.01)
    if seed % 4 == 2:  # many ends at one place
        m, w = np.round(m, 1), np.ones(K)
    if seed % 4 == 3:
        m[1], w[1] = m[0], w[0] * (1 + 1e-12)
    return m, w


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 40, 300])
def test_panels_for_all_arms_give_what_panels_for_each_give(d, monkeypatch):
    law = noise.Ball().marginal(d)
    for seed in range(4):
        m, w = arms(seed, 14)
        p = propensity.uncoupled(m, w, law=law)
        with monkeypatch.context() as patched:
            patched.setattr(independent, "MANY", 10**9)
            assert_allclose(p, propensity.uncoupled(m, w, law=law), atol=2e-10)
    # Seen red with the panels of a normal law in 6 dimensions: 6e-7


@pytest.mark.parametrize("d", [2, 5, 6, 8, 30])
@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_arms_take_a_few_panels_each(d, seed):
    m, w = arms(seed, 1000)
    law = noise.Ball().marginal(d)
    low, high = np.max(m + w * law.panels[0]), np.max(m + w * law.panels[-1])
    if law.analytic:
        low = singular.beneath(m, w, law, low, high)
        nodes = 10 * len(independent._even(m, w, law, low, high))
    else:
        nodes = len(singular.nodes(m, w, law, low, high)[0])
    assert nodes < 16 * 4 * 1000
    # Seen red with panels for each arm: up to 350,920 nodes
