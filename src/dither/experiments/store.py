"""The store of results: append-only Parquet files, one for a block of runs of a cell.

    FOLDER/<key of the cell>/<first run>-<last run>.parquet
    columns    run, round, regret (of the means), realised; cumulative
    metadata   "dither": JSON with the cell, the runs, the model and policy as configured, versions and time

A file is written under a temporary name and renamed, so a kill loses at most the block in progress. Its name says all
that its rows depend on, so processes that share a folder replace a file only by the same rows.
"""

import json
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dither import _version, files
from dither.experiments.cells import Cell

METADATA = "dither"
COLUMNS = ("run", "round", "regret", "realised")


class Store:
    """The results in one folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def runs(self, cell: Cell) -> set[int]:
        """The runs of the cell that are stored."""
        return {run for _, about in self._files(cell) for run in about["runs"]}

    def read(self, cell: Cell) -> pl.DataFrame:
        """All that is stored of the cell, each run once."""
        seen: set[int] = set()
        frames = [pl.DataFrame(schema=dict.fromkeys(COLUMNS[:2], pl.Int64) | dict.fromkeys(COLUMNS[2:], pl.Float64))]
        for path, about in self._files(cell):
            new = set(about["runs"]) - seen
            if new:
                frames.append(_rows(path).filter(pl.col("run").is_in(sorted(new))))
                seen |= new
        return pl.concat(frames)

    def about(self, cell: Cell) -> list[dict[str, Any]]:
        """What each file says of itself: cell, runs, model, policy, versions, created."""
        return [about for _, about in self._files(cell)]

    def write(
        self, cell: Cell, runs: range, *, rounds: np.ndarray, regret: np.ndarray, realised: np.ndarray, **more: str
    ) -> Path:
        """Add consecutive runs: rounds (P,), regret and realised (R, P); `more` goes into the metadata."""
        frame = pl.DataFrame(
            {
                "run": np.repeat(np.array(runs, dtype=np.int64), len(rounds)),
                "round": np.tile(rounds.astype(np.int64), len(runs)),
                "regret": regret.reshape(-1),
                "realised": realised.reshape(-1),
            }
        )
        about = {"key": cell.key, "cell": cell.content(), "runs": list(runs)} | more
        about |= {"versions": versions(), "created": datetime.now(UTC).isoformat(timespec="seconds")}
        path = self.folder / cell.key / f"{runs[0]:06d}-{runs[-1]:06d}.parquet"
        files.replace(
            path, lambda file: frame.write_parquet(file, metadata={METADATA: json.dumps(about)}), parents=True
        )
        return path

    def _files(self, cell: Cell) -> Iterator[tuple[Path, dict[str, Any]]]:
        for path in sorted((self.folder / cell.key).glob("[!.]*.parquet")):
            try:
                about = json.loads(pl.read_parquet_metadata(path)[METADATA])
            except (pl.exceptions.PolarsError, OSError, KeyError, ValueError) as error:
                raise _foreign(path, error) from None
            if about.get("key") != cell.key:
                raise _foreign(path, f"it holds the cell {about.get('key')}")
            yield path, about


def versions() -> dict[str, str]:
    """Of what the numbers may depend on."""
    return {"dither": _version.__version__, "numpy": np.__version__, "python": platform.python_version()}


def _rows(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path).select(COLUMNS)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _foreign(path, error) from None


def _foreign(path: Path, why: object) -> ValueError:
    return ValueError(f"{path} is not a whole file of this store ({why}): move it away, and its runs are made anew")
