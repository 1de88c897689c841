"""How many runs, rounds or examples a test takes: few in CI, more in `make check-release`, which sets DITHER_LONG.

The few are enough for what a test has found when it was seen red. More of them see smaller errors.
"""

import os

LONG = bool(os.environ.get("DITHER_LONG"))


def size(few, *, longer):
    """The first number, or the second where the tests may take long."""
    return longer if LONG else few
