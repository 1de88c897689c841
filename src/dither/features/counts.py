"""How many values were missing or unknown, by field."""

import threading
from collections import Counter
from collections.abc import Sequence

from dither.base import forks


class Counts:
    """Counts that many threads add to. After a fork, the child goes on from what the parent had."""

    def __init__(self) -> None:
        self.missing, self.unknown = Counter[str](), Counter[str]()
        self._lock = threading.Lock()
        forks.tell(self)

    def add(self, gaps: Sequence[tuple[str, str, int]]) -> None:
        """Add (rule, field, n), where the rule is "missing" or "unknown"."""
        with self._lock:
            for rule, name, n in gaps:
                (self.missing if rule == "missing" else self.unknown)[name] += n

    def _forked(self) -> None:
        """Called in the child of a fork: a lock that no thread of the parent holds."""
        self._lock = threading.Lock()
