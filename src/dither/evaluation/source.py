"""Where the rows come from: any log that `dither.log` reads, in pieces, with the columns that the question needs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dither import errors, log
from dither.evaluation.question import Question
from dither.log import parts, reader, schema

FORMATS = {
    "dither": "a decision log, or a table whose column arm holds positions: streamed",
    "table": "any table whose column arm holds ids: in memory",
    "obd": "columns of the Open Bandit Dataset: in memory",
    "dsjson": "Vowpal Wabbit's --dsjson: in memory",
    "dat": "Vowpal Wabbit's text with cb labels: in memory",
}
ROWS = 100_000  # of a piece
KINDS = ("exact", "monte_carlo", "estimated")  # of propensities that can be used
ALWAYS = (  # for the estimate and for the checks of the log
    *("id", "arm", "propensity", "propensity_kind", "propensity_se"),
    *("floor", "probabilities", "reward", "weight"),
)
SIZES = ("K", "arms", "probabilities", "features")  # each says how many arms were on offer; the first that is there


class Pieces(NamedTuple):
    """A log in pieces."""

    rows: int  # of all
    each: Iterator[log.Logged]


@dataclass(frozen=True)
class Source:
    """A log and how to read it.

    path : a Parquet or CSV file, a folder that `Log` wrote, or one of Parquet parts (in the order of their names)
    format : one of FORMATS
    arm, propensity, reward : the user's names of these columns, where they are others
    kind : of all propensities, where the table has no column propensity_kind; None: exact

    Raises FileNotFoundError, LookupError for another format, ValueError where names and format exclude each other.
    """

    path: Path
    format: str = "dither"
    arm: str | None = None
    propensity: str | None = None
    reward: str | None = None
    kind: str | None = None

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise errors.unknown("format", self.format, known=FORMATS)
        if not self.path.exists():
            raise FileNotFoundError(f"no log at {self.path}")
        if self.kind is not None and self.kind not in KINDS:
            raise errors.unknown("kind of propensities", self.kind, known=KINDS)
        if self.kind is not None and (self.written or self.format not in ("dither", "table")):
            raise ValueError(
                "--kind is for tables; this log says itself of what kind its propensities are: leave it out"
            )
        if self.names and self.format not in ("dither", "table"):
            raise ValueError(f"--format {self.format} has names of its own: leave out --arm, --propensity and --reward")
        if self.names and self.written:
            raise ValueError(
                f"{self.path} is a folder that Log wrote, with names of its own: leave out --{next(iter(self.names))}"
            )

    @property
    def names(self) -> dict[str, str]:
        """Our name of a column -> the user's."""
        given = {"arm": self.arm, "propensity": self.propensity, "reward": self.reward}
        return {ours: theirs for ours, theirs in given.items() if theirs is not None and theirs != ours}

    @property
    def written(self) -> bool:
        """Whether `dither.log.Log` wrote it as a folder."""
        return self.path.is_dir() and any(self.path.glob("decisions-*.parquet"))

    def pieces(self, question: Question, *, rows: int = ROWS) -> Pieces:
        """The log in order; what is wrong with its form is said before the first piece."""
        if self.written and self.format == "dither":
            found = schema.polars().scan_parquet(self.path / "decisions-*.parquet")
            height = found.select(schema.polars().len()).collect().item()
            return Pieces(height, log.batches(self.path, rows=rows))
        if self.format != "dither":
            whole = self.whole(question)
            return Pieces(len(whole), split(whole, rows))
        frames = [self._selected(path, question) for path in self._files()]
        height = sum(frame.select(schema.polars().len()).collect().item() for frame in frames)
        return Pieces(height, log.batches(frames, rows=rows))

    def whole(self, question: Question) -> log.Logged:
        """All of it in memory."""
        if self.format == "obd":
            return log.open_bandit(self.path)
        if self.format == "dsjson":
            return log.dsjson(self.path)
        if self.format == "dat":
            return log.vw_text(self.path)
        if self.written:
            return log.read(self.path)
        frames = [self._selected(path, question) for path in self._files()]
        if self.format == "dither":
            return log.read(frames)
        table = schema.polars().concat(frames, how="diagonal_relaxed")
        known = ("arms", "features", "propensity_kind", "propensity_se")
        lists = {name: name for name in known if name in table.collect_schema()}
        return log.from_columns(table, arm="arm", reward="reward", propensity="propensity", **lists)

    def _files(self) -> list[Path]:
        """Those that hold rows: a CSV file of a header alone has no types either."""
        found = sorted(self.path.glob("*.parquet")) if self.path.is_dir() else [self.path]
        if not found:
            raise ValueError(f"{self.path} holds no Parquet files: there is nothing to evaluate")
        full = [path for path in found if _holds(path)]
        if not full:
            raise ValueError(f"{self.path} holds no rows: there is nothing to evaluate")
        return full

    def _selected(self, path: Path, question: Question) -> Any:
        """A lazy frame of what is needed of a file, under our names, in our types."""
        scan = reader.scanned(path)
        present = list(scan.collect_schema())
        ours = {theirs: ours for ours, theirs in self.names.items()}
        ours |= {name: f"{name} (not named)" for name in present if name in self.names and name not in ours}
        names = [ours.get(name, name) for name in present]
        lacking = [self.names.get(name, name) for name in schema.REQUIRED if name not in names]
        lacking += sorted(name for name in question.columns if name not in (*names, *schema.COLUMNS))
        if lacking:
            kind = next((name for name in schema.REQUIRED if self.names.get(name, name) == lacking[0]), None)
            cure = f": name the column that holds it with --{kind}" if kind else ""
            if kind == "propensity":
                cure += ", or estimate it with dither.ope.propensities_from and say --kind estimated (kind='estimated')"
            raise ValueError(f"{path} has no column {lacking[0]!r}; it has {', '.join(map(repr, present))}{cure}")
        wanted = {*ALWAYS, *question.columns, *[name for name in SIZES if name in names][:1]}
        scan = scan.rename(ours).select([name for name in names if name in wanted])
        array = schema.polars().Array
        of_arrays = [name for name, kind in scan.collect_schema().items() if isinstance(kind, array)]
        scan = scan.with_columns(schema.polars().col(name).arr.to_list() for name in of_arrays)
        if self.kind is not None:
            if "propensity_kind" in names:
                raise ValueError(f"{path} has a column 'propensity_kind', which is what counts: leave out --kind")
            scan = scan.with_columns(schema.polars().lit(self.kind).alias("propensity_kind"))
        if self.format == "table":
            return scan
        kind = scan.collect_schema()["arm"]
        if not kind.is_integer():
            raise ValueError(
                f"column {self.arm or 'arm'!r} of {path} must hold positions from 0, got {kind}: with ids take "
                "--format table"
            )
        return schema.checked(scan, where=str(path))


def _holds(path: Path) -> bool:
    """Whether a file has a row."""
    scan = reader.scanned(path)
    with parts.readable(path):
        return bool(scan.head(1).collect().height)


def split(whole: log.Logged, rows: int) -> Iterator[log.Logged]:
    """A log in memory, in pieces that know their numbers and which ids came before."""
    repeats = np.zeros(len(whole), dtype=bool)
    if "id" in whole.frame.columns:
        ids = whole.frame["id"]
        repeats = (~ids.is_first_distinct() & ids.is_not_null()).to_numpy()
    numbers = whole.numbers
    for at in range(0, len(whole), rows):
        now = slice(at, at + rows)
        frame = whole.frame.slice(at, rows)
        yield replace(whole, frame=frame, first=whole.first, repeats=repeats[now], rows=numbers[now])
