"""Whether the ledger can be reached, asked of it at most once a second: who asks needs no token."""

import asyncio
import time

import sqlalchemy as sa

from dither.live import Live

KEPT = 1.0  # seconds


class Readiness:
    """Of one `Live`."""

    def __init__(self, live: Live) -> None:
        self._live, self._there, self._at, self._looks = live, False, float("-inf"), False

    async def now(self) -> bool:
        """Whether it could be reached a moment ago. While one request looks, others hear what was last seen."""
        if not self._looks and time.monotonic() - self._at >= KEPT:
            self._looks = True
            try:
                self._there = await asyncio.to_thread(self._look)  # long calls may fill the threads of Starlette
            finally:
                self._looks, self._at = False, time.monotonic()
        return self._there

    def _look(self) -> bool:
        try:
            self._live.ledger.committer.begun()
            with self._live.ledger.database.reading() as connection:
                connection.execute(sa.text("SELECT 1"))
        except (OSError, ValueError):  # it is away, or closed
            return False
        return True
