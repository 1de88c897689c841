"""What the tests of `Bandit` share: arms with a copy and a zero, and a bandit that has learnt two of them."""

import numpy as np

import dither
from properties import exactly

ARMS = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0.5, 0.5, 1], [0, 0, 0]])  # 1 and 2 tie and can win; 4 is zero


def learnt(name, **settings):
    settings = {"lam": 0.5, "seed": 0} | exactly(name) | settings
    b = dither.ALGORITHMS[name](dim=3, **settings)
    b.update(ARMS[:2], np.array([0.2, 1.0]))
    return b
