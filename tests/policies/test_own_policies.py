"""Policies of one's own whose view chooses by a law, as inverse gap weighting does (Foster, Rakhlin 2020)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dither
from dither import models, testing


def shares(m, gamma, mask):
    """1/(K + γ gap) for each arm on offer but the best, and the rest for the best."""
    on = np.ones(m.shape, dtype=bool) if mask is None else mask & np.ones(m.shape, dtype=bool)
    gap = np.max(np.where(on, m, -np.inf), axis=-1, keepdims=True) - m
    best = on & (gap == 0)
    p = np.where(on & ~best, 1 / (on.sum(axis=-1, keepdims=True) + gamma * np.abs(gap)), 0.0)
    return np.where(best, (1 - p.sum(axis=-1, keepdims=True)) / best.sum(axis=-1, keepdims=True), p)


class Gaps(NamedTuple):
    m: Any
    gamma: float

    def scores(self, v):  # the same for any v: lists by score would be one list
        return np.broadcast_to(self.m, (*np.shape(v), self.m.shape[-1]))

    def best(self, v, *, u, mask=None):
        law = np.cumsum(shares(self.m, self.gamma, mask), axis=-1)
        return np.sum(law / law[..., -1:] <= np.asarray(v)[..., None], axis=-1)


class ExactGaps(Gaps):
    def propensities(self, *, mask=None):
        return shares(self.m, self.gamma, mask)


@dataclass(frozen=True)
class InverseGap:
    gamma: float = 10.0
    exact: bool = True
    needs = frozenset({"mean"})

    def draw(self, rng, n, *, arms, dim):
        return (rng.random(n),)

    def view(self, model, state, X, *, t):
        return (ExactGaps if self.exact else Gaps)(model.mean(state, X), self.gamma)


def bandit(*, exact, monte_carlo=20_000):
    made = dither.Bandit(models.Ridge(1.0), InverseGap(exact=exact), dim=2, seed=0, monte_carlo=monte_carlo)
    made.update(np.eye(2), [0.3, -0.2])
    return made


X = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [-1.0, 0.2]])
MASK = np.array([True, False, True, True])


@pytest.mark.parametrize("mask", [None, MASK])
def test_a_list_of_one_arm_is_drawn_as_its_propensity_says(mask):
    b = bandit(exact=True)
    p = b.propensities(X, mask=mask)
    n = 20_000
    drawn = b.choose_list(np.broadcast_to(X, (n, 4, 2)), k=1, mask=None if mask is None else np.tile(mask, (n, 1)))
    assert set(np.round(drawn.propensity, 12)) <= set(np.round(p, 12))
    assert drawn.propensity_kind == "exact"
    f = np.bincount(drawn.arms[:, 0], minlength=4) / n
    assert np.all(np.abs(f - p) <= 5 * np.sqrt(p * (1 - p) / n))
    # seen red: lists by score where the view has `best`


def test_a_list_takes_the_best_of_what_is_left():
    b = bandit(exact=True, monte_carlo=100)  # what is said of a list of two is a share of draws, and is not read here
    drawn = b.choose_list(np.broadcast_to(X, (20_000, 4, 2)), k=2)
    assert np.all(drawn.arms[:, 0] != drawn.arms[:, 1])
    for first in range(4):
        left = np.arange(4) != first
        rest = drawn.arms[drawn.arms[:, 0] == first, 1]
        p = shares(b.mean(X), 10.0, left)
        f = np.bincount(rest, minlength=4) / len(rest)
        # The same uniform number chooses both places: given the first, the second is no fresh draw.
        assert f[first] == 0
        assert np.all(f[~left] == 0)
        assert np.all((f > 0) <= (p > 0))


@pytest.mark.parametrize("mask", [None, MASK])
def test_monte_carlo_counts_what_the_view_chooses(mask):
    p = bandit(exact=True).propensities(X, mask=mask)
    found, se, kind = bandit(exact=False).propensities(X, mask=mask, draws=40_000, detail=True)
    assert kind == "monte_carlo"
    assert np.all(np.abs(found - p) <= 5 * se)
    assert_allclose(np.sum(found), 1.0)
    d = bandit(exact=False).choose(X, mask=mask)
    assert abs(d.propensity - p[d.arm]) <= 5 * d.propensity_se
    # seen red: `frequencies` by score where the view has `best`


def test_the_public_check_passes_it_and_finds_a_wrong_logarithm_and_a_wrong_list():
    testing.check_policy(InverseGap())

    class Off(ExactGaps):
        def log_propensities(self, *, mask=None):
            with np.errstate(divide="ignore"):
                return np.log(self.propensities(mask=mask)) - 0.5

    class ByScore(ExactGaps):
        def in_turn(self, v, *, u, mask=None):
            order = np.argsort(-np.where(True if mask is None else mask, self.m, -np.inf), axis=-1)
            return np.broadcast_to(order, (*u.shape[:-1], order.shape[-1]))[..., : u.shape[-1]]

    for wrong, check in ((Off, "logarithms"), (ByScore, "lists")):

        class Wrong(InverseGap):
            kind = wrong

            def view(self, model, state, X, *, t):
                return self.kind(model.mean(state, X), self.gamma)

        with pytest.raises(testing.CheckFailed, match=check):
            testing.check_policy(Wrong())
    # seen red: either check left out of the list
