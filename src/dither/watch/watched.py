"""What the pages read: one ledger, opened once, to be read alone."""

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from dither.bandit.bandit import Bandit
from dither.deciding.explain import Explanation
from dither.live import past, status
from dither.live.explaining import explained
from dither.live.status import Status
from dither.log import Ledger
from dither.log.database import lessons
from dither.watch.desk import AnswerDesk
from dither.watch.judging import PolicyJudge

PATIENCE = 0.8  # seconds for which a page waits for what is read or computed for it
AGAIN = 10.0  # what was read is shown for so many times as long as the reading took


class StillReading(Exception):
    """All decisions are added up for the first time."""


class WatchedLedger:
    """A ledger that is looked at."""

    def __init__(self, home: Any, *, show_context: bool, seconds: float) -> None:
        self.show_context, self.seconds = show_context, seconds
        self.ledger = Ledger.to_read(home)
        self.judge = PolicyJudge(self.ledger, self.bandit, seconds)
        self._why = AnswerDesk("why")  # apart, as a replay may take long
        self._lock, self._until = threading.Lock(), 0.0
        self._seen: Status | None = None
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="dither-status")
        self._reading: Future[None] | None = None

    @property
    def where(self) -> str:
        """What is shown of the place."""
        return self.ledger.database.where

    @property
    def name(self) -> str:
        """A short name of the ledger: that of the file or of the database."""
        file = self.ledger.database.file
        return file.stem if file is not None else self.where.rsplit("/", 1)[-1].partition("?")[0] or self.where

    def status(self) -> Status:
        """How the ledger stands. One that is long to read is not read for every page (`AGAIN`).

        Where it is being read, it is as it was before. Raises StillReading where it has never been read.
        """
        with self._lock:
            if self._reading is None and (self._seen is None or time.monotonic() > self._until):
                self._reading = self._reader.submit(self._read)
            reading = self._reading
        if reading is not None:
            try:
                reading.result(timeout=PATIENCE)
            except TimeoutError:
                if reading.done():
                    raise
        if self._seen is None:
            raise StillReading
        return self._seen

    def _read(self) -> None:
        begun = time.monotonic()
        try:
            self._seen = status.of(self.ledger)
            self._until = time.monotonic() + AGAIN * (time.monotonic() - begun)
        finally:
            with self._lock:
                self._reading = None

    def bandit(self) -> Bandit:
        """The bandit as it is now. Raises ValueError where the ledger has none."""
        with self.ledger.database.reading() as connection:
            return past.state(connection, lessons.last(connection), {}).taught.bandit

    def why(self, id: str) -> Explanation | None:
        """Why the arm of a decision was shown; None: that is being computed. Raises `desk.Busy`."""
        return self._why.answer(id, lambda: explained(self.ledger, id), wait=PATIENCE)

    def close(self) -> None:
        """Answer no more questions, and close the ledger."""
        self.judge.close()
        self._why.close()
        self._reader.shutdown(wait=True, cancel_futures=True)
        self.ledger.close()
