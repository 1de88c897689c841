"""Files that are there whole or not at all.

A file is written as a part in the same folder, `.NAME.<16 hex digits>.part`, and then renamed. The writer holds a lock
on the part. The system takes the lock back when the process ends, in whatever way it ends. So a part whose lock is free
was left by a writer that was killed, and the next write in the folder removes it. A locked part is never touched.
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
except ImportError:  # on such a system an open file cannot be removed, which protects a part as well
    fcntl = None  # type: ignore[assignment]

_PART = re.compile(r"\..*\.[0-9a-f]{16}\.part", re.DOTALL)


def inside(path: Path) -> None:
    """Raise FileNotFoundError where the folder of a file to be written is missing, IsADirectoryError for a folder."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no folder {path.parent} to write {path.name} in")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it")


def replace(path: Path, write: Callable[[IO[bytes]], object], *, parents: bool = False) -> None:
    """Write under a temporary name in the same folder, then rename: a reader sees the old file or the new one, whole.

    A kill leaves at most one part, which the next write in the folder removes. The mode of an older file stays. When
    this returns, the file and its name are on the disk.
    parents : make the folders that are missing

    A link stays, and the file that it names is written.

    Raises FileNotFoundError where the folder is missing.
    """
    path = path.resolve() if path.is_symlink() else path  # a rename would put the file in place of the link
    if parents:
        path.parent.mkdir(parents=True, exist_ok=True)
    inside(path)
    _sweep(path.parent)
    part, file = _part(path)
    try:
        with file:
            with contextlib.suppress(FileNotFoundError):
                shutil.copymode(path, part)
            write(file)
            file.flush()
            os.fsync(file.fileno())
            if fcntl:  # under the lock, so that nobody removes the part before it has its name
                os.replace(part, path)
        if not fcntl:
            os.replace(part, path)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename is None:  # as where the disk is full
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
    sync(path.parent)


def text(path: Path, content: str) -> Path:
    """Write a text as UTF-8, whole or not at all, in a folder that is made where it is missing; return the path."""
    replace(path, lambda file: file.write(content.encode()), parents=True)
    return path


def sync(folder: Path) -> None:
    """Return when the names in the folder are on the disk, where the system can do that."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:  # one may write in the folder, and not read it
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # which says that the file system syncs no folders
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
        if os.fstat(file.fileno()).st_nlink:  # 0: another writer removed it before it was locked
            return part, file
        file.close()


def _sweep(folder: Path) -> None:
    """Remove the parts that no living writer holds."""
    with contextlib.suppress(PermissionError), os.scandir(folder) as entries:
        for entry in entries:
            if _PART.fullmatch(entry.name):
                with contextlib.suppress(OSError):  # its writer lives, or another has removed it
                    _remove(entry.path)


def _remove(part: str) -> None:
    """Remove a part. Raises OSError where its writer lives."""
    if not fcntl:
        os.unlink(part)
        return
    handle = os.open(part, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(part)
    finally:
        os.close(handle)
