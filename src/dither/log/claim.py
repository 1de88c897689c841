"""The lock that a writer holds on the folder of its log. The system frees it when the process ends, however it ends."""

import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]


class Claim:
    """The lock of one writer on one folder."""

    def __init__(self, folder: Path | None) -> None:
        """folder : None needs no lock, and has none. Raises ValueError where another open log has the folder."""
        self._handle: int | None = None
        if folder is None or not fcntl:
            return
        handle = os.open(folder / ".writer", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise ValueError(f"another open log writes into {folder}: close it, or give each writer a folder") from None
        self._handle = handle

    def release(self) -> None:
        """Let another writer have the folder, even where a fork still holds a copy of the handle."""
        if self._handle is not None:
            fcntl.flock(self._handle, fcntl.LOCK_UN)
        self.let_go()

    def let_go(self) -> None:
        """In the child of a fork: close its copy of the handle, which would keep the lock after the parent ends."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
