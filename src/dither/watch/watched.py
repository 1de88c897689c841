"""What the pages read: one ledger, opened once, to be read alone."""

import threading
import time
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dither.bandit.bandit import Bandit
from dither.bandit.restoring import from_bytes
from dither.deciding.explain import Explanation
from dither.live.explaining import explained
from dither.live.taught import BEGAN
from dither.log import ArmDays, Ledger
from dither.log.database import keeping, lessons
from dither.watch.desk import AnswerDesk
from dither.watch.judging import Judge

PATIENCE = 0.8  # seconds for which the page of a decision waits for its explanation
AGAIN = 10.0  # what was read is shown for so many times as long as the reading took


class Summed(NamedTuple):
    """The sums of a ledger, and when they were read."""

    days: ArmDays
    at: datetime


class WatchedLedger:
    """A ledger that is looked at."""

    def __init__(self, home: Any, *, show_context: bool, seconds: float) -> None:
        self.show_context, self.seconds = show_context, seconds
        self.ledger = Ledger.to_read(home)
        self.judge = Judge(self.ledger, self.bandit, seconds)
        self._why = AnswerDesk("why")  # apart, as a replay may take long
        self._lock, self._until = threading.Lock(), 0.0
        self._summed: Summed | None = None

    @property
    def where(self) -> str:
        """What is shown of the place."""
        return self.ledger.database.where

    @property
    def name(self) -> str:
        """A short name of the ledger: that of the file or of the database."""
        file = self.ledger.database.file
        return file.stem if file is not None else self.where.rsplit("/", 1)[-1].partition("?")[0] or self.where

    def summed(self) -> Summed:
        """The sums by day and arm. A ledger that is long to read is not read for every page (`AGAIN`)."""
        with self._lock:
            if self._summed is None or time.monotonic() > self._until:
                begun = time.monotonic()
                self._summed = Summed(self.ledger.days(), datetime.now(UTC))
                self._until = time.monotonic() + AGAIN * (time.monotonic() - begun)
            return self._summed

    def bandit(self) -> Bandit:
        """The bandit as its latest snapshot has it. Raises ValueError where the ledger has no bandit."""
        with self.ledger.database.reading() as connection:
            snapshot = lessons.snapshot(connection, after=-1)
            data = keeping.data(connection, BEGAN) if snapshot is None else bytes(snapshot.bytes)
        if data is None:
            raise ValueError("the ledger has no bandit: nobody has opened it with dither.Live(home, bandit=...)")
        return from_bytes(data)

    def why(self, id: str) -> Explanation | None:
        """Why the arm of a decision was shown; None: that is being computed. Raises `desk.Busy`."""
        return self._why.answer(id, lambda: explained(self.ledger, id), wait=PATIENCE)

    def close(self) -> None:
        """Answer no more questions, and close the ledger."""
        self.judge.close()
        self._why.close()
        self.ledger.close()
