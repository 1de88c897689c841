"""What the tests of the cases of networks share: the names in turn, all that a bandit holds, one that has learnt."""

import numpy as np
import pytest

from network_oracles import NAMES, bandit, learn
from oracles import rows

every = pytest.mark.parametrize("name", NAMES)
arms = pytest.mark.parametrize("slots", [None, 3])
KNOWN = [name for name in NAMES if name != "FTPL"]  # whose probabilities can be known


def everything(b):
    return rows(b), repr(b._training.bit_generator.state)


def after(name, n=10, **settings):
    """A bandit that has learnt a little."""
    b = bandit(name, **settings)
    learn(b, np.random.default_rng(0), n)
    return b
