"""λ by the rule: a function of the rows in order, against a sum over copies of rows; in units of the features."""

import numpy as np
import pytest

from dither.models import penalty


def by_hand(X, copies):
    """λ after rows X (n, d) that each come so many times, written row by row."""
    rows = [x for x, n in zip(X, copies, strict=True) for _ in range(n)]
    lam = next((x @ x / len(x) for x in rows if x @ x > 0), 1.0)
    for h in (1, 2, 4, 8, 16, 32, 64, 128):
        if h <= len(rows) and (mean := np.mean([x @ x for x in rows[:h]])) > 0:
            lam = mean / X.shape[-1]
    return lam


@pytest.mark.parametrize("n", [1, 2, 3, 5, 64, 127, 128, 129, 300])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_rule_is_the_mean_of_the_first_rows(n, weighted):
    """Seen red with `of_step` without what lies beyond the step, and with h <= count left open."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3)) * np.exp(rng.normal(size=(n, 1)))
    copies = rng.integers(0, 4, size=n) if weighted else np.ones(n, int)
    weight = copies.astype(float) if weighted else None
    all_at_once = penalty.advanced(penalty.init(X[0]), X, weight)
    assert float(all_at_once.lam) == pytest.approx(by_hand(X, copies), rel=1e-12)


@pytest.mark.parametrize("zeros", [0, 1, 3, 130])
def test_batches_do_not_matter(zeros):
    """Seen red with the mean of each batch in place of that of the rows so far."""
    rng = np.random.default_rng(zeros)
    X = np.concatenate([np.zeros((zeros, 2)), rng.normal(size=(200, 2))])
    at_once, in_turn = penalty.init(X[0]), penalty.init(X[0])
    for part in np.split(X, [1, 2, 7, 60, 150]):
        in_turn = penalty.advanced(in_turn, part)
    at_once = penalty.advanced(at_once, X)
    np.testing.assert_allclose(np.array(in_turn), np.array(at_once), rtol=1e-12)
    assert float(at_once.lam) == pytest.approx(by_hand(X, np.ones(len(X), int)), rel=1e-12)


def test_runs_side_by_side_are_runs_alone():
    """Seen red with one count for all runs."""
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(4, 40, 2)), rng.integers(0, 3, size=(4, 40)).astype(float)
    both = penalty.advanced(penalty.init(X[:, 0]), X, weight)
    for k in range(4):
        alone = penalty.advanced(penalty.init(X[k, 0]), X[k], weight[k])
        np.testing.assert_allclose([part[k] for part in both], np.array(alone), rtol=1e-12)


def test_after_128_rows_it_stays():
    """Seen red without `done`."""
    rng = np.random.default_rng(1)
    begun = penalty.advanced(penalty.init(np.zeros(2)), rng.normal(size=(128, 2)))
    later = penalty.advanced(begun, 100 * rng.normal(size=(500, 2)))
    assert later is begun


@pytest.mark.parametrize("value", ["automatic", 0.0, -1.0, np.nan, 1e-200, True])
def test_what_is_no_penalty_is_refused(value):
    """Seen red with a check that takes every text."""
    with pytest.raises((ValueError, TypeError), match="lam"):
        penalty.check("lam", value)
