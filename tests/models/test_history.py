"""Rows that equal features share, against a dictionary."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from dither.models import history

arms = st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 40))  # many share their first feature
rows = st.lists(st.tuples(arms, arms, st.integers(-3, 3)), min_size=1, max_size=60)


@given(rows, st.booleans())
def test_equal_features_share_a_row(rows, own):
    """Two runs at once. Seen red: the first feature taken for all of them; a row with the sums of another."""
    state = history.init(np.zeros((2, 3)))
    truth = [{}, {}]
    for *x, r in rows:
        state = history.append(state, np.array(x, float), np.array([r, 2 * r], float), None, distinct=True, own=own)
        for known, own_x, own_r in zip(truth, x, (r, 2 * r), strict=True):
            count, total = known.get(own_x, (0, 0))
            known[own_x] = (count + 1, total + own_r)
    for i, known in enumerate(truth):
        n = int(state.rows[i])
        assert n == len(known)
        assert [tuple(x) for x in state.X[i, :n]] == list(known)  # in the order of their first observation
        assert_array_equal(np.stack([state.count[i, :n], state.total[i, :n]], axis=1), list(known.values()))
        assert not state.count[i, n:].any()


def test_rows_beyond_the_buffer_make_it_larger():
    state = history.init(np.zeros(2))
    for k in range(2 * history.PAD):
        state = history.append(state, np.array([1.0, k]), np.array(1.0), None, distinct=True, own=True)
    state = history.append(state, np.array([1.0, 0.0]), np.array(1.0), None, distinct=True, own=True)
    assert int(state.rows) == 2 * history.PAD
    assert_array_equal(state.count[:3], [2.0, 1.0, 1.0])
