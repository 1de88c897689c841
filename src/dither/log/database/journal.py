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

import os
import threading
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

_sync = getattr(os, "fdatasync", os.fsync)  # the times of the file may come later, its length does not


class Removed(OSError):
    """The file or the journal that a connection writes to has no name any more."""


Identity: TypeAlias = tuple[int, int]  # device and number of a file, by which it is known under any name


def identity(path: Any) -> Identity | None:
    """Which file a name leads to now; None: to none."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return None
    return there.st_dev, there.st_ino


class Journal:
    """Syncs the journal of one file, for all threads of a process.

    The journal is open from before the first commit on. The system tells an error of writing to every handle that was
    open when it happened, and to a new handle only if no other has been told. So with a handle for each sync, this
    process would not learn that what it wrote is lost, where another process was told first.

    The handle is of the journal, and not of the database: SQLite holds locks on the database, which a process loses
    when it closes any handle on it (sqlite.org/howtocorrupt.html, 2.2).
    """

    def __init__(self, file: Path) -> None:
        """file : of the database, without links: SQLite has the journal beside the file that a link leads to."""
        self._file, self._path, self._lock = file, f"{file}-wal", threading.Lock()
        self._handle: int | None = None
        self.written = 0  # how many commits this process has made
        self._synced = 0  # so many of them are on the disk
        self._failed: OSError | None = None

    def hold(self, file: Identity | None, now: Identity | None) -> None:
        """Have the journal open. It is called in a transaction that writes, before the commit: then there is a journal,
        and nobody may remove it.

        file : which one the connection has open; now : to which one its name leads

        Raises Removed where the name of the file or of the journal leads to nothing, or to another file than before.
        """
        there = identity(self._path)
        if file != now and there is not None and there == self._held():
            self._left()
        if file != now:
            self._gone(f"the file {self._file} was removed or replaced while the ledger was open")
        if there is None:
            self._gone(
                f"the journal {self._path} was removed or replaced while the ledger was open (or its disk cannot have "
                f"one: WAL needs a local disk)"
            )
        if self._handle is None:
            self._handle = os.open(self._path, os.O_RDWR)
        elif self._held() != there:
            self._gone(f"the journal {self._path} was removed or replaced while the ledger was open")

    def fits(self, file: Identity | None, now: Identity | None) -> None:
        """Raise Removed where a connection that is to be opened would find no file, or the journal of another one.

        file : the last that was open; now : the one to which its name leads
        """
        if now is None:
            self._gone(f"the file {self._file} was removed while the ledger was open")
        if file != now:
            if self._handle is not None and identity(self._path) == self._held():
                self._left()
            self.close()

    def _held(self) -> Identity | None:
        if self._handle is None:
            return None
        there = os.fstat(self._handle)
        return there.st_dev, there.st_ino

    def _gone(self, what: str) -> NoReturn:
        self.close()
        raise Removed(f"{what}: nothing of the call is there. Put the ledger back, with its journal, and call again")

    def _left(self) -> NoReturn:
        """The journal stays open here, so that it is known as long as it is there."""
        raise Removed(
            f"the file {self._file} was replaced while the ledger was open, and {self._path} is still the journal of "
            f"the file before, from which SQLite would take pages: nothing of the call is there. Remove {self._path} "
            f"and {self._file}-shm, and call again"
        )

    def wrote(self) -> int:
        """Say that a commit was made, by whoever holds the lock of the writers; -> its number."""
        self.written += 1
        return self.written

    def wait(self, number: int) -> None:
        """Return when the commit of that number is on the disk. Raises what `sync` raises."""
        if self._failed is not None:
            raise self._failed
        while self._synced < number:
            with self._lock:
                if self._synced < number:
                    self._now()

    def sync(self) -> None:
        """Return when all that this process has committed is on the disk.

        Raises OSError where the disk refuses. Then nothing that comes later can be relied on either, since a system
        may forget what it could not write. So every later call raises it too.
        """
        with self._lock:
            self._now()

    def close(self) -> None:
        """Sync, and let the journal go. Raises OSError where the disk refuses now; it is closed then too."""
        with self._lock:
            try:
                if self._synced < self.written and self._failed is None:
                    self._now()
            finally:
                if self._handle is not None:
                    os.close(self._handle)
                self._handle = None

    def _now(self) -> None:
        if self._failed is not None:
            raise self._failed
        covers = self.written
        if self._handle is not None:  # else nothing was committed since it was closed, which synced
            try:
                _sync(self._handle)
            except OSError as error:
                self._failed = OSError(
                    f"the journal {self._path} could not be synced ({error}): the rows of this call are in the ledger, "
                    f"but a power cut may take them. Open the ledger again when the disk works, and call again: what "
                    f"is there is answered as 'known'"
                )
                raise self._failed from None
        self._synced = covers
