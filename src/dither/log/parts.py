"""The files of a log: a folder of Parquet parts, each whole or absent, and single Parquet files.

FOLDER/decisions-<number of the first>-<number of the last>.parquet     `schema.DECISION` and the user's own columns
FOLDER/rewards-<number of the first>-<number of the last>.parquet       `schema.EVENT`, one row for each received
metadata    "dither": JSON; how several rewards of a decision count, the catalogue of arms
"""

import json
import re
from pathlib import Path
from typing import Any

from dither import files
from dither.log import schema

METADATA = "dither"
_NAME = re.compile(r"(decisions|rewards)-(\d{12})-(\d{12})\.parquet")


def write(path: Any, frame: Any, about: dict[str, Any]) -> None:
    """A frame to one Parquet file, under a temporary name that is then renamed."""
    metadata = {METADATA: json.dumps(about)}
    files.replace(Path(path), lambda file: frame.write_parquet(file, metadata=metadata), parents=True)


def add(folder: Path, what: str, first: int, frame: Any, about: dict[str, Any]) -> None:
    """The next part of decisions or rewards."""
    write(folder / f"{what}-{first:012d}-{first + frame.height - 1:012d}.parquet", frame, about)


def listed(folder: Path, what: str) -> list[tuple[int, int, Path]]:
    """The parts in order: number of the first row, number after the last, path.

    Raises ValueError where a part is missing between others: rows would be lost in silence.
    """
    found = [(match, path) for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))]
    parts = sorted((int(m[2]), int(m[3]) + 1, path) for m, path in found if m[1] == what)
    at = 0
    for first, after, _ in parts:
        if first != at:
            raise ValueError(f"{folder} lacks the {what} from {at} to {first - 1}: put the missing parts back")
        at = after
    return parts


def about(path: Path) -> dict[str, Any]:
    """What a file says of itself; {} where dither did not write it."""
    pl = schema.polars()
    with readable(path):
        metadata = pl.read_parquet_metadata(path)
    try:
        found = json.loads(metadata.get(METADATA, "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


class readable:
    """Turns what polars raises over a file into a plain ValueError."""

    def __init__(self, path: Any) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        pl = schema.polars()
        if isinstance(error, FileNotFoundError):
            raise FileNotFoundError(f"no log at {self.path}") from None
        if isinstance(error, (pl.exceptions.PolarsError, OSError, UnicodeError)):
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ValueError(
                f"{self.path} cannot be read as a log ({reason}): is the file whole, and of that format?"
            ) from None
