"""Objects that belong to one process are told when it forks: a bandit has streams of chance, a log has a file.

They are told in the child, before anything else runs there. A few must know before the fork, such as a database of
which the child may inherit no connection. These are told in the parent too, before the fork and after it. The system
calls the hooks at a fork alone, so the other calls of such an object cost nothing more.
"""

import os
import weakref
from collections.abc import Callable
from typing import Protocol


class OfOneProcess(Protocol):
    """An object that must know of a fork. It may also have `_forking` and `_parent`, called in the parent."""

    def _forked(self) -> None:
        """Called in the child, before anything else runs there."""


_LIVE: weakref.WeakSet[OfOneProcess] = weakref.WeakSet()


def tell(one: OfOneProcess) -> None:
    """From now on `one` is told of every fork, in the child, for as long as it lives."""
    _LIVE.add(one)


def _each(name: str) -> Callable[[], None]:
    def call() -> None:
        for one in list(_LIVE):
            getattr(one, name, _nothing)()

    return call


def _nothing() -> None:
    pass


if hasattr(os, "register_at_fork"):  # systems without forks do not have it
    os.register_at_fork(before=_each("_forking"), after_in_parent=_each("_parent"), after_in_child=_each("_forked"))
