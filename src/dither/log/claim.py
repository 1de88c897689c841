"""The lock that a writer holds on the folder of its log. The system takes it back when the process ends, in any way."""

import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]


class Claim:
    """A folder, for one writer."""

    def __init__(self, folder: Path) -> None:
        """Raises ValueError where another open log has the folder."""
        self._handle: int | None = None
        if not fcntl:
            return
        handle = os.open(folder / ".writer", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise ValueError(f"another open log writes into {folder}: close it, or give each writer a folder") from None
        self._handle = handle

    def release(self) -> None:
        """Let another writer have the folder, though a fork may hold a copy of the handle."""
        if self._handle is not None:
            fcntl.flock(self._handle, fcntl.LOCK_UN)
        self.let_go()

    def let_go(self) -> None:
        """In the child of a fork: close the copy, which would keep the lock after its owner has ended."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
