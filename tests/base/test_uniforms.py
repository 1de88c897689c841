"""Uniforms that are passed over: what comes after them is what comes after draws that somebody looked at."""

import copy
import pickle

import numpy as np
import pytest

from dither.base import streams


def pair():
    return streams.Uniforms(streams.stream(3, 0, "ties")), streams.stream(3, 0, "ties")


@pytest.mark.parametrize("passed", [[], [3], [3] * 5, [streams.MANY - 1], [streams.MANY], [streams.MANY + 2, 1], [0]])
def test_what_follows_is_what_follows_draws(passed):
    ours, plain = pair()
    for n in passed:
        ours.pass_over(n)
        plain.random(n)
    copies = copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))
    assert repr(ours.bit_generator.state) == repr(plain.bit_generator.state)
    ours.pass_over(3)
    plain.random(3)
    expected = plain.random((2, 3))
    np.testing.assert_array_equal(ours.random((2, 3)), expected)
    for other in copies:
        other.pass_over(3)
        np.testing.assert_array_equal(other.random((2, 3)), expected)
    # seen red: what is passed over drawn twice


def test_a_state_that_is_set_is_where_the_stream_stands():
    ours, plain = pair()
    ours.pass_over(3)
    ours.bit_generator.state = plain.bit_generator.state  # as of a file
    assert ours.random(1) == plain.random(1)
    # seen red: what was passed over before drawn after it
