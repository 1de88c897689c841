"""What is stated and drawn, against 50 digits: a few dozen problems of each kind; thousands in `make check-release`."""

import os

import pytest

from fifty_digits import KINDS, check

PROBLEMS = int(os.environ.get("DITHER_ORACLES", "40"))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_stated_is_what_50_digits_say_and_what_is_drawn(kind):
    answers = [check(kind, seed, n=50) for seed in range(PROBLEMS)]
    answers = [answer for answer in answers if answer is not None]
    assert len(answers) > 0.9 * PROBLEMS
    assert [fault for fault, _ in answers if fault] == []
    # Seen red with bounds of rounding that are a thousand times as wide (lines 14)
