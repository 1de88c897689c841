"""What failed beside a call that was answered: told apart, tried again later, and never in the way of a decision.

the answer of a call      what the database has committed, and synced
a trouble                 what then failed: a batch was not learnt, a snapshot not written, a journal not emptied
"""

import logging
import threading
import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime

MOST = 100  # that are kept, the latest
FIRST, LONGEST = 1.0, 60.0  # seconds until something is tried again; each failure doubles them
_log = logging.getLogger("dither.live")


@dataclass(frozen=True)
class Trouble:
    """One thing that failed."""

    time: datetime  # UTC
    what: str  # "learning", "shadow", "snapshot", "sums", "ledger", "looking", "budgets", "fallback" or "erasing"
    words: str  # a sentence: what failed and why, and what happens next


class Troubles:
    """The latest troubles of one ledger in this process."""

    def __init__(self) -> None:
        self._kept: deque[Trouble] = deque(maxlen=MOST)

    def add(self, what: str, words: str, reason: BaseException | None = None) -> None:
        """Keep a trouble, and log a line. reason : what was raised; the log has its traceback at the level DEBUG."""
        self._kept.append(Trouble(datetime.now(UTC), what, words))
        _log.warning("%s: %s", what, words)
        if reason is not None:
            _log.debug("%s", what, exc_info=reason)

    @property
    def latest(self) -> list[Trouble]:
        """Them, the newest last."""
        return list(self._kept)


def in_words(reason: BaseException) -> str:
    """An error in words, on one line."""
    return f"{type(reason).__name__}: {' '.join(str(reason).split())}".rstrip(": ")


class Pause:
    """How long to wait before something that failed is tried again.

    until : the moment from which it may be tried, by time.monotonic(); minus infinity: it has not failed
    """

    def __init__(self) -> None:
        self.until, self._length, self._lock = float("-inf"), FIRST, threading.Lock()

    @property
    def over(self) -> bool:
        """Whether it may be tried."""
        return time.monotonic() >= self.until

    def failed(self) -> float:
        """It has failed; -> seconds until it may be tried again."""
        with self._lock:
            length, self._length = self._length, min(2 * self._length, LONGEST)
            self.until = time.monotonic() + length
            return length

    def passed(self) -> None:
        """It has worked, or may be tried at once."""
        self.until, self._length = float("-inf"), FIRST
