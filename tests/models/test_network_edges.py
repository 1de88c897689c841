"""Inputs at the edge that once stopped a network for good, or were taken for something else."""

import numpy as np
import pytest

import dither
from dither import models
from dither.models.network import copies


@pytest.mark.parametrize("settings", [{}, {"window": None, "batch": 8}, {"window": 64, "batch": 8}, {"every": 3}])
def test_no_row_that_was_learnt_is_refused_later(settings):
    rng = np.random.default_rng(0)
    b = dither.DeepGreedy(dim=2, seed=0, **settings)
    for _ in range(1500):
        big = 9e5 if rng.random() < 0.05 else 1.0
        b.update(rng.uniform(-1, 1, 2) * big, rng.uniform(-1, 1) * big)  # seen red: a gradient too long is refused
    assert np.isfinite(b.mean(np.eye(2))).all()


@pytest.mark.parametrize("row", [([2e6, 0.0], 1.0), ([1.0, 0.0], -2e6)])
def test_what_float32_could_not_learn_is_refused_when_it_comes(row):
    b, twin = (dither.DeepGreedy(dim=2, seed=0, every=5) for _ in range(2))
    with pytest.raises(ValueError, match=r"must lie below 1e\+06 for a network in float32"):
        b.update(*row)
    np.testing.assert_array_equal(b.theta, twin.theta)
    assert b.state.buffer.count == 0
    dither.DeepGreedy(dim=2, seed=0, dtype="float64").update(*row)


@pytest.mark.parametrize("settings", [{"coupled": True}, {"c": 0.0}, {"mask": (False,) * 16}])
def test_copies_that_move_alike_share_what_is_drawn(settings):
    b = dither.DeepFP(dim=16, hidden=(41, 41), seed=36, **settings)
    X, n = np.tile(np.linspace(-1, 1, 16), (9, 1)), 4000
    f = np.bincount([b.choose(X).arm for _ in range(n)], minlength=9) / n
    assert np.all(np.abs(f - 1 / 9) < 5 * np.sqrt(8 / 81 / n))  # seen red: mean_at without copies


def test_copies_with_another_arm_between_their_answers_are_found():
    X = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 0.0], [5.0, 0.0]])
    f = np.array([1.0, 1.0 + 1e-7, 1.0 + 2e-7, 3.0])  # seen red: neighbours alone compared
    np.testing.assert_array_equal(copies.first(X, f), [0, 1, 0, 3])
    assert copies.first(X[[0, 1, 3]], f[[0, 1, 3]]) is None
    both = copies.first(np.stack([X, X[::-1]]), np.stack([f, f[::-1]]))
    np.testing.assert_array_equal(both, [[0, 1, 0, 3], [0, 1, 2, 1]])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"image": (3, 3)}, "image and device are for convolutions"),
        ({"device": "cuda"}, "image and device are for convolutions"),
        ({"lr": 1e39}, "lr must lie in"),
        ({"lam": 1e-40}, "lam must lie in"),
        ({"beta1": 1}, "beta1 must lie in"),
        ({"window": 8}, "window must be at least batch=32"),
    ],
)
def test_settings_that_do_nothing_or_too_much_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        dither.DeepGreedy(dim=9, **settings)


def test_a_network_in_disjoint_slots_is_told_of_its_own():
    with pytest.raises(ValueError, match=r"pass slots=3 to it, models.Network\(slots=...\)"):
        models.Disjoint(models.Network(), 3)
