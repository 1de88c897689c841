"""What a result is, and the store of results.

A result is a run of a cell = (environment, horizon, algorithm with settings and preset, seed, chance). A cell is known
by its content and not by its place in a figure. So results stay valid when a figure gets longer or is reordered, and
two figures that share a cell share its results. The store has append-only Parquet files, one for a block of runs of a
cell by one code.

    FOLDER/<key of the cell>/<code>/<first run>-<last run>.parquet
    code       the fingerprint of the code that made the runs (module `code`)
    columns    run, round, regret (of the means), realised; both regrets are cumulative
    metadata   "dither": JSON with the cell, the code, the runs, the model and policy as configured, `made_here`, and a
               checksum of the rows

A file is written under a temporary name and renamed, so a kill loses at most the block in progress. The path of a file
says everything that its rows depend on. So if processes share a folder, one replaces a file of another only by the same
rows. Results of other code stay in their own folders: a user who goes back to that code finds them again. Earlier
versions did not record the code. Their files lie directly in the folder of the cell, and their code is UNRECORDED.
"""

import functools
import hashlib
import io
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dither import _version
from dither.algorithms import Spec
from dither.base import files
from dither_bench.define.environments import identity
from dither_bench.define.panels import Panel, as_in

STORE = "store"  # the folder of the results, below that of the figures
METADATA = "dither"
Made = dict[str, Any]  # where and when results were made: `made_here`
COLUMNS = ("run", "round", "regret", "realised")
UNRECORDED = ""
IN_CELLS = {"paper": "default", "default": "default-2"}  # "paper" was the default once, and is stored as such


@dataclass(frozen=True)
class Cell:
    """One algorithm in one setting, over all runs."""

    env: Mapping[str, Any]  # as of `environments.describe`
    rounds: int
    algorithm: Spec
    seed: int
    chance: str = "streams"  # what the runs are drawn by, as `simulate` takes it

    def content(self) -> dict[str, Any]:
        """All that identifies it, as JSON holds it."""
        return {
            "env": identity(self.env),
            "rounds": self.rounds,
            "algorithm": self.algorithm.name,
            "settings": dict(self.algorithm.settings),
            "preset": _preset(self.algorithm),
            "seed": self.seed,
            **({} if self.chance == "streams" else {"chance": self.chance}),  # earlier versions had streams alone
        }

    @property
    def key(self) -> str:
        """16 hexadecimal digits of the hash of the content."""
        return key_of(self.content())


def key_of(content: Mapping[str, Any]) -> str:
    """The key of the cell that has this content."""
    text = json.dumps(_canonical(content), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def of_panel(panel: Panel, *, seed: int) -> dict[str, Cell]:
    """The names of the panel's algorithms and their cells, which have the preset of the panel."""
    how: Any = dict(seed=seed, chance=panel.chance)
    return {str(spec): Cell(panel.env, panel.rounds, as_in(panel, spec), **how) for spec in panel.algorithms}


def _preset(spec: Spec) -> str:
    """Its preset as cells have it, so that what earlier versions stored is found again."""
    return IN_CELLS.get(spec.preset, spec.preset) if spec.built_in else spec.preset


def _canonical(value: Any) -> Any:
    """The value with 1 in place of 1.0: equal settings are one cell, however they were written."""
    if isinstance(value, Mapping):
        return {k: _canonical(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Store:
    """The results in one folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def codes(self, cell: Cell) -> list[str]:
        """The codes that have stored runs of the cell. The code of the newest file comes first."""
        folder = self.folder / cell.key
        names = {UNRECORDED, *(inner.name for inner in folder.glob("[!.]*") if inner.is_dir())}
        newest = {code: max((about["created"] for _, about in self._files(cell, code)), default="") for code in names}
        return sorted(filter(newest.get, names), key=lambda code: (newest[code], code), reverse=True)

    def runs(self, cell: Cell, codes: Sequence[str] | None = None) -> set[int]:
        """The runs of the cell that are stored for these codes; None: for the newest code."""
        return {run for about in self.about(cell, codes) for run in about["runs"]}

    def read(self, cell: Cell, codes: Sequence[str] | None = None) -> pl.DataFrame:
        """All rows that are stored for the cell and these codes, each run once; None: for the newest code.

        A run that several of these codes have is taken from the first of them.
        """
        taken: set[int] = set()
        frames = [pl.DataFrame(schema=dict.fromkeys(COLUMNS[:2], pl.Int64) | dict.fromkeys(COLUMNS[2:], pl.Float64))]
        for path, about in self._of(cell, codes):
            new = set(about["runs"]) - taken
            if new:
                frames.append(read_rows(path, about).filter(pl.col("run").is_in(sorted(new))))
                taken |= new
        return pl.concat(frames)

    def about(self, cell: Cell, codes: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """The metadata of each file: cell, code, runs, model, policy, and what `made_here` says."""
        return [about for _, about in self._of(cell, codes)]

    def write(
        self,
        cell: Cell,
        runs: range,
        *,
        code: str,
        rounds: np.ndarray,
        regret: np.ndarray,
        realised: np.ndarray,
        origin: Made | None = None,
        **more: str,
    ) -> Path:
        """Add consecutive runs of this code: rounds (P,), regret and realised (R, P); `more` goes into the metadata.

        origin : what `made_here` says where the runs were made; None: they were made here, now
        """
        frame = pl.DataFrame(
            {
                "run": np.repeat(np.array(runs, dtype=np.int64), len(rounds)),
                "round": np.tile(rounds.astype(np.int64), len(runs)),
                "regret": regret.reshape(-1),
                "realised": realised.reshape(-1),
            }
        )
        about = {"key": cell.key, "cell": cell.content(), "code": code, "runs": list(runs)} | more
        about |= made_here() if origin is None else origin
        about["checksum"] = checksum(about, frame)
        path = self.folder / cell.key / code / name_of(runs)
        content = parquet(frame, metadata={METADATA: json.dumps(about)})
        files.replace(path, lambda file: file.write(content), parents=True)
        return path

    def _of(self, cell: Cell, codes: Sequence[str] | None) -> Iterator[tuple[Path, dict[str, Any]]]:
        for code in self.codes(cell)[:1] if codes is None else codes:
            yield from self._files(cell, code)

    def _files(self, cell: Cell, code: str) -> Iterator[tuple[Path, dict[str, Any]]]:
        for path in sorted((self.folder / cell.key / code).glob("[!.]*.parquet")):
            about = read_about(path)
            if about.get("key") != cell.key:
                raise foreign(path, f"it holds the cell {about.get('key')}")
            if about["code"] != code:
                raise foreign(path, f"it holds results of the code {about['code']}")
            yield path, about


def name_of(runs: Sequence[int]) -> str:
    """The name of the file of consecutive runs."""
    return f"{runs[0]:06d}-{runs[-1]:06d}.parquet"


def parquet(frame: pl.DataFrame, **more: Any) -> bytes:
    """The frame as the bytes of a file. Python writes them, so a full disk is an OSError, and not one of polars."""
    content = io.BytesIO()
    frame.write_parquet(content, **more)
    return content.getvalue()


def read_about(path: Path) -> dict[str, Any]:
    """The metadata of a file. Raises ValueError for a file that is not of a store."""
    try:
        return {"code": UNRECORDED} | json.loads(pl.read_parquet_metadata(path)[METADATA])
    except (pl.exceptions.PolarsError, OSError, KeyError, ValueError, TypeError) as error:
        raise foreign(path, error) from None


def read_rows(path: Path, about: Mapping[str, Any]) -> pl.DataFrame:
    """The rows of a file with these metadata. Raises ValueError for a file that is cut, altered, or lacks a column.

    Earlier versions wrote no checksum: such a file is taken as it is.
    """
    try:
        rows = pl.read_parquet(path).select(COLUMNS)
        if about.get("checksum") not in (None, checksum(about, rows)):
            raise foreign(path, "its rows are not those that were written: their checksum is another one")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise foreign(path, error) from None
    return rows


def checksum(about: Mapping[str, Any], rows: pl.DataFrame) -> str:
    """SHA-256 of the rows, and of the cell, the code and the runs that they are of: 64 hexadecimal digits."""
    text = json.dumps([about[name] for name in ("key", "code", "runs")])
    digest = hashlib.sha256(text.encode())
    for name, kind in zip(COLUMNS, ("<i8", "<i8", "<f8", "<f8"), strict=True):
        digest.update(rows[name].to_numpy().astype(kind).tobytes())
    return digest.hexdigest()


def foreign(path: Path, why: object) -> ValueError:
    """The error of a file that is not as the store writes it."""
    return ValueError(f"{path} is not a whole file of this store ({why}): move it away, and its runs are made anew")


def made_here() -> Made:
    """The versions, the machine, its processor and the time: each file of results says them."""
    return {
        "versions": versions(),
        "machine": platform.node(),
        "processor": processor(),
        "created": datetime.now(UTC).isoformat(timespec="microseconds"),
    }


@functools.cache
def processor() -> str:
    """The processor's name, such as "Intel(R) Xeon(R) CPU @ 2.20GHz", or its kind where the system does not say it."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """The versions of the packages that the numbers may depend on."""
    return {"dither": _version.__version__, "numpy": np.__version__, "python": platform.python_version()}
