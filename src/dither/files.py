"""Files that are there whole or not at all.

A file is written as a part beside its name, `.NAME.<16 hex digits>.part`, and then renamed. Its writer holds a lock on
the part, which the system takes back when the process ends, however it ends. So a part whose lock is free was left by
a writer that was killed: the next write in the folder sweeps it. A part that is locked is never touched.
"""

import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # a system where nobody removes a file that is open, which protects a part as well
    fcntl = None  # type: ignore[assignment]

_PART = re.compile(r"\..*\.[0-9a-f]{16}\.part", re.DOTALL)


def replace(path: Path, write: Callable[[IO[bytes]], object], *, parents: bool = False) -> None:
    """Write under a temporary name in the same folder, then rename: whoever reads sees the old file or the new one.

    A kill leaves at most one part, until the next write in the folder; the mode of an older file stays. When this
    returns, the file and its name are on the disk. parents: make the folders that are missing.
    """
    if parents:
        path.parent.mkdir(parents=True, exist_ok=True)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no folder {path.parent} to write {path.name} in")
    _sweep(path.parent)
    part, file = _part(path)
    try:
        with file:
            with contextlib.suppress(FileNotFoundError):
                shutil.copymode(path, part)
            write(file)
            file.flush()
            os.fsync(file.fileno())
            if fcntl:  # under the lock: nobody sweeps the part before it has its name
                os.replace(part, path)
        if not fcntl:
            os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(folder: Path) -> None:
    """Which names the folder has is on the disk when this returns, where the system can say so."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:  # a folder that one may write in and not read
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that syncs no folders
            raise
    finally:
        os.close(handle)


def _part(path: Path) -> tuple[Path, IO[bytes]]:
    """A new part for `path`, open and locked."""
    while True:
        part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        file = part.open("xb")
        if not fcntl:
            return part, file
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:  # else it was swept between its first moment and the lock
            return part, file
        file.close()


def _sweep(folder: Path) -> None:
    """Remove the parts that no living writer holds."""
    with contextlib.suppress(PermissionError), os.scandir(folder) as entries:
        for entry in entries:
            if _PART.fullmatch(entry.name):
                with contextlib.suppress(OSError):  # held, or swept by another
                    _remove(entry.path)


def _remove(part: str) -> None:
    if not fcntl:
        os.unlink(part)
        return
    handle = os.open(part, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(part)
    finally:
        os.close(handle)
