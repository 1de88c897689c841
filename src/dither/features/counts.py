"""How many values were missing or unknown, and in how many texts words cancelled, by field."""

import threading
from collections import Counter
from collections.abc import Sequence

from dither.base import forks


class Counts:
    """Counts that many threads add to. After a fork, the child goes on from what the parent had."""

    def __init__(self) -> None:
        self.missing, self.unknown, self.cancelled = Counter[str](), Counter[str](), Counter[str]()
        self._lock = threading.Lock()
        forks.tell(self)

    def add(self, gaps: Sequence[tuple[str, str, int]]) -> None:
        """Add (what, field, n), where what is "missing", "unknown" or "cancelled"."""
        of = {"missing": self.missing, "unknown": self.unknown, "cancelled": self.cancelled}
        with self._lock:
            for what, name, n in gaps:
                of[what][name] += n

    def _forked(self) -> None:
        """Called in the child of a fork: a lock that no thread of the parent holds."""
        self._lock = threading.Lock()
