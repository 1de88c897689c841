"""Tell objects that belong to one process that they were forked: a bandit has streams, a log has a file.

They are told in the child, before anything else runs there. The parent is not touched. The system runs the hook once a
fork, so the other calls of such an object cost nothing more.
"""

import os
import weakref
from typing import Protocol


class Told(Protocol):
    """An object that must know of a fork."""

    def _forked(self) -> None:
        """Called in the child, before anything else runs there."""


_LIVE: weakref.WeakSet[Told] = weakref.WeakSet()


def tell(one: Told) -> None:
    """From now on `one` is told of every fork, in the child, for as long as it lives."""
    _LIVE.add(one)


def _in_child() -> None:
    for one in list(_LIVE):
        one._forked()


if hasattr(os, "register_at_fork"):  # systems without forks do not have it
    os.register_at_fork(after_in_child=_in_child)
