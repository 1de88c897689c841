"""Files that are there whole or not at all."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO


def replace(path: Path, write: Callable[[IO[bytes]], object], *, parents: bool = False) -> None:
    """Write under a temporary name in the same folder, then rename: whoever reads sees the old file or the new one.

    A kill leaves at most a .part file; the mode of an older file stays. parents: make the folders that are missing.
    """
    if parents:
        path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no folder {path.parent} to write {path.name} in")
    try:
        with part.open("xb") as file:
            with contextlib.suppress(FileNotFoundError):
                shutil.copymode(path, part)
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
