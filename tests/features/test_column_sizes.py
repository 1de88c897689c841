"""The warning for raw columns of very different sizes: its sizes by loops, when it comes, and what it says."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from dither.features.column_sizes import ColumnSizes


def rows(n, *, seed=0, scales=(1.0, 1.0)):
    return np.random.default_rng(seed).normal(size=(n, len(scales))) * scales


def told(X, columns=None, *, batches=()):
    """The message, and after how many rows it came; None where there is none."""
    sizes = ColumnSizes(X.shape[1])
    for part in np.split(X, np.cumsum(batches)[np.cumsum(batches) < len(X)] if len(batches) else range(1, len(X))):
        words = sizes.learnt(part[0] if len(part) == 1 else part, columns)
        assert sizes.done == (words is not None or sizes.rows == 128)
        if sizes.done:
            return words and (words, sizes.rows)
    return None


def test_it_names_the_columns_and_their_sizes_and_the_cure():
    """Seen red with the columns of both ends in the order of their places."""
    X = rows(200, scales=(1.0, 50_000.0, 0.9, 1.1, 40_000.0, 0.01, 60_000.0, 0.8))
    words, n = told(X, tuple("abcdefgh"))
    assert n == 32
    sizes = {name: np.sqrt(np.mean(X[:32, j] ** 2)) for j, name in enumerate("abcdefgh")}
    order = sorted(sizes, key=sizes.get)
    for name in (*order[:3], *order[-3:]):
        assert f"{name!r} ({sizes[name]:.4g})" in words
    assert words.index(repr(order[-1])) < words.index(repr(order[-2])) < words.index(repr(order[0]))
    assert not any(repr(name) in words for name in order[3:5])
    assert f"up to {sizes[order[-1]] / sizes[order[0]]:.4g} to 1 in the first 32 rows" in words
    assert "'standard'" in words
    assert "lam=" in words
    assert "column 1 (" in told(X[:, :2])[0]
    assert "column 0 (" in told(X[:, :2])[0]


def test_alike_columns_are_not_told():
    """Seen red with the sizes of all entries, where a rare category is small."""
    constant, rare = np.ones((300, 1)), np.zeros((300, 2))
    rare[::31, 0] = rare[:3, 1] = 1  # once in 31 rows; three times, and never again
    assert told(np.hstack([rows(300, scales=(1.0, 5.0, 20.0)), constant, rare])) is None
    assert told(np.hstack([rows(300), np.zeros((300, 3))])) is None  # seen red: a column of zeros has the size 0
    assert told(np.zeros((200, 2))) is None
    assert told(np.ones((200, 1))) is None
    assert told(rows(31, scales=(1.0, 1000.0))) is None


def test_what_varies_later_is_told_at_64_or_128_rows_and_then_never():
    """Seen red without the look at 64 rows."""
    X = rows(400, scales=(1.0, 1.0))
    for first, moment in [(40, 64), (70, 128), (130, None)]:
        Y = X.copy()
        Y[first:, 1] *= 1000
        for batches in ((), (400,), (10, 100, 290), (33,)):
            answer = told(Y, batches=batches)
            assert answer is None if moment is None else answer[1] == moment


@given(st.integers(0, 10**6), st.lists(st.integers(1, 90), min_size=1, max_size=8))
def test_batches_change_nothing(seed, batches):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 4)) * 10 ** rng.uniform(-1, 1, size=4) * (rng.random((200, 4)) < rng.uniform(0, 1, 4))
    one, many = ColumnSizes(4), told(X, batches=batches)
    for n, x in enumerate(X, 1):
        words = one.learnt(x, None)
        entries = [[value for value in X[:n, j] if value != 0] for j in range(4)]
        sizes = [np.sqrt(np.mean(np.square(column))) if len(column) >= 4 else np.nan for column in entries]
        assert_allclose(one.sizes, sizes, rtol=1e-12)
        there = [size for size in sizes if not np.isnan(size)]
        differ = len(there) > 1 and max(there) >= 30 * min(there)
        assert (words is not None) == (n in (32, 64, 128) and differ)
        assert one.done == ((n in (32, 64, 128) and differ) or n == 128)
        if one.done:
            break
    assert (many is not None) == differ
    assert many is None or many[1] == n
