"""What must change in the child of a fork: whatever is one process's alone is told there.

The parent notices nothing, and a call of what is told costs nothing: the system's hook runs once a fork.
"""

import os
import weakref
from typing import Protocol


class Told(Protocol):
    """Of whatever must know."""

    def _forked(self) -> None:
        """Called in the child, before anything else runs there."""


_LIVE: weakref.WeakSet[Told] = weakref.WeakSet()


def tell(one: Told) -> None:
    """From now on `one` is told of every fork, in the child, as long as it lives."""
    _LIVE.add(one)


def _in_child() -> None:
    for one in list(_LIVE):
        one._forked()


if hasattr(os, "register_at_fork"):  # not where there are no forks
    os.register_at_fork(after_in_child=_in_child)
