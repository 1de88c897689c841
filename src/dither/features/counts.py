"""How many values were missing or unknown, and in how many texts words cancelled, by field.

Whoever encodes may hear of it, too: features may be those of several bandits, and each of their ledgers counts its own.
"""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from dither.base import forks

Gaps: TypeAlias = Sequence[tuple[str, str, int]]  # (what, field, n)
_HEARS = threading.local()  # `by`: who hears of what this thread encodes


class Counts:
    """Counts that many threads add to. After a fork, the child goes on from what the parent had."""

    def __init__(self) -> None:
        self.missing, self.unknown, self.cancelled = Counter[str](), Counter[str](), Counter[str]()
        self.misspelt = Counter[str]()
        self._lock = threading.Lock()
        forks.tell(self)

    def add(self, gaps: Gaps) -> None:
        """Add (what, field, n), where what is the name of one of them."""
        with self._lock:
            for what, name, n in gaps:
                getattr(self, what)[name] += n
        if (by := getattr(_HEARS, "by", None)) is not None:
            by(gaps)

    def _forked(self) -> None:
        """Called in the child of a fork: a lock that no thread of the parent holds."""
        self._lock = threading.Lock()


@contextlib.contextmanager
def heard(by: Callable[[Gaps], None]) -> Iterator[None]:
    """A block in which somebody hears of all that this thread adds to any counts."""
    before = getattr(_HEARS, "by", None)
    _HEARS.by = by
    try:
        yield
    finally:
        _HEARS.by = before
