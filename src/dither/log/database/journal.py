"""The journal of a SQLite file (WAL), and how a commit reaches the disk.

A commit appends to the journal and lets the next writer in. Only then does the call sync the journal, and return. So
writers do not wait for each other's syncs, and one sync serves all that committed before it began, of every thread and
process.

With `synchronous=FULL` SQLite syncs while it keeps all other writers out. With `synchronous=NORMAL`, which a ledger
has, SQLite does what keeps a file whole (sqlite.org/pragma.html#pragma_synchronous): it syncs the journal before it
moves pages into the file, the file before the journal begins anew, and the new beginning of a journal. What it leaves
out is the sync of a commit, which is here. A power cut may take commits that were not synced, the latest ones, never an
earlier one without all later ones, since each frame of a journal has a checksum over those before it. So whatever was
built on a lost commit is lost with it, and neither was answered.
"""

import contextlib
import os
import threading
from pathlib import Path

_sync = getattr(os, "fdatasync", os.fsync)  # the times of the file may come later, its length does not


class Journal:
    """Syncs the journal of one file, for all threads of a process."""

    def __init__(self, file: Path) -> None:
        self._path, self._lock = f"{file}-wal", threading.Lock()
        self.written = 0  # how many commits this process has made
        self._synced = 0  # so many of them are on the disk
        self._failed: OSError | None = None

    def wrote(self) -> int:
        """Say that a commit was made, by whoever holds the lock of the writers; -> its number."""
        self.written += 1
        return self.written

    def wait(self, number: int) -> None:
        """Return when the commit of that number is on the disk.

        Raises OSError where the disk refuses. Then nothing that comes later can be relied on either, since a system
        may forget what it could not write. So every later call raises it too.
        """
        while self._synced < number:
            with self._lock:
                if self._failed is not None:
                    raise self._failed
                if self._synced < number:
                    covers = self.written
                    self.sync()
                    self._synced = covers

    def sync(self) -> None:
        """Sync it now. It is opened for that, and not the file of the database: SQLite holds locks on the file, which a
        process loses when it closes any handle on it (sqlite.org/howtocorrupt.html, 2.2).
        """
        try:
            with contextlib.suppress(FileNotFoundError):  # there is no journal where all of it is in the file
                handle = os.open(self._path, os.O_RDWR)
                try:
                    _sync(handle)
                finally:
                    os.close(handle)
        except OSError as error:
            self._failed = OSError(
                f"the journal {self._path} could not be synced ({error}): the rows of this call are in the ledger, but "
                f"a power cut may take them. Open the ledger again when the disk works, and call again: what is there "
                f"is answered as 'known'"
            )
            raise self._failed from None
