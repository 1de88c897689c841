"""Where the rows of a question come from: a log of any format, in pieces, with the columns that are needed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from dither import errors
from dither.log import journal, parts, reader, schema
from dither.log.foreign import filled_up, from_columns
from dither.log.formats import FORMATS, Format, typed
from dither.log.logged import Logged

ROWS = 100_000  # of a piece
KINDS = ("exact", "monte_carlo", "estimated")  # of propensities that can be used
ALWAYS = (  # for the estimate and for the checks of the log
    *("id", "arm", "propensity", "propensity_kind", "propensity_se"),
    *("floor", "probabilities", "reward", "weight"),
)
SIZES = ("K", "arms", "probabilities", "features")  # each says how many arms were on offer; the first that is there


class Asks(Protocol):
    """What is asked of a log."""

    @property
    def columns(self) -> set[str]:
        """The columns that it reads, besides those that every log has."""
        ...


class Pieces(NamedTuple):
    """A log in pieces."""

    rows: int  # of all
    each: Iterator[Logged]


@dataclass(frozen=True)
class Source:
    """A log and how to read it.

    path : a file, a folder that `Log` wrote, or one of Parquet parts (in the order of their names)
    format : one of FORMATS
    arm, propensity, reward : the user's names of these columns, where they are others
    kind : of all propensities, where the table has no column propensity_kind; None: exact
    arms : number of arms on offer, where the log does not say it
    options : options of the reader, as they are typed: {"malformed": "leave-out"}
    text : columns of a CSV file that stay as written

    Raises FileNotFoundError, LookupError for another format or option, ValueError where they exclude each other.
    """

    path: Path
    format: str = "dither"
    arm: str | None = None
    propensity: str | None = None
    reward: str | None = None
    kind: str | None = None
    arms: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    text: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise errors.unknown("format", self.format, known=FORMATS)
        if not self.path.exists():
            raise FileNotFoundError(f"no log at {self.path}")
        if self.kind is not None and self.kind not in KINDS:
            raise errors.unknown("kind of propensities", self.kind, known=KINDS)
        if self.kind is not None and (self.written or not self.rules.columns):
            raise ValueError(
                "--kind is for tables; this log says itself of what kind its propensities are: leave it out"
            )
        if self.names and not self.rules.columns:
            raise ValueError(f"--format {self.format} has names of its own: leave out --arm, --propensity and --reward")
        if self.names and self.written:
            raise ValueError(
                f"{self.path} is a folder that Log wrote, with names of its own: leave out --{next(iter(self.names))}"
            )
        if self.arms is not None:
            errors.at_least("arms", self.arms, 1)
            if self.rules.arms is None or self.rules.arms in self.options:
                why = "says itself how many arms were on offer" if self.rules.arms is None else "has --with for it"
                raise ValueError(f"--format {self.format} {why}: leave out --arms")
        self.settings  # noqa: B018  what is wrong with the options is said at once

    @property
    def rules(self) -> Format:
        """Those of the format."""
        return FORMATS[self.format]

    @property
    def settings(self) -> dict[str, Any]:
        """The options as the reader takes them."""
        known = self.rules.options
        for name in self.options:
            if name not in known:
                raise errors.unknown(f"option of --format {self.format}", name, known=known or ("none",))
        made = {name: typed(name, text, known[name].annotation) for name, text in self.options.items()}
        if self.arms is not None and self.rules.arms is not None and self.format != "dither":
            made[self.rules.arms] = self.arms
        return made

    @property
    def names(self) -> dict[str, str]:
        """Our name of a column -> the user's."""
        given = {"arm": self.arm, "propensity": self.propensity, "reward": self.reward}
        return {ours: theirs for ours, theirs in given.items() if theirs is not None and theirs != ours}

    @property
    def written(self) -> bool:
        """Whether `dither.log.Log` wrote it as a folder."""
        return self.path.is_dir() and any(self.path.glob("decisions-*"))

    def pieces(self, question: Asks, *, rows: int = ROWS) -> Pieces:
        """The log in order, with what is asked of it; what is wrong with its form is said before the first piece."""
        columns = question.columns
        if self.format != "dither":
            whole = self.whole(question)
            return Pieces(len(whole), split(whole, rows))
        if self.written:
            found = reader.Rows(journal.held(self.path, "decisions"))
            self._silent(found.columns(SIZES[:3]).lazy())
            return Pieces(found.height, reader.batches(self.path, rows=rows, **self.settings))
        scans = self._scans(columns)
        height = sum(scan.frame.select(schema.polars().len()).collect().item() for scan in scans)
        return Pieces(height, reader.batches(scans, rows=rows, **self.settings))

    def whole(self, question: Asks) -> Logged:
        """All of it in memory."""
        columns = question.columns
        if self.format == "dither":
            return reader.read(self.path if self.written else self._scans(columns), **self.settings)
        if self.format == "table":
            return self._table(columns)
        settings = dict(self.settings)
        if self.rules.features and ("features" in columns or {"cross", "names"} & settings.keys()):
            settings.setdefault("features", True)
        return self.rules.read(self.path, **settings)

    def _table(self, columns: set[str]) -> Logged:
        files = self._files()
        settings: dict[str, Any] = {"kind": self.kind, "text": self.text, **self.settings}
        named = {name: self.names.get(name, name) for name in schema.REQUIRED}
        if "cost" in settings:
            named.pop("reward")
        as_written = {named["arm"], *self.text, *(settings[n] for n in reader.TEXTS if n in settings)}
        scans = [reader.scanned(path, as_written) for path in files]
        for path, scan in zip(files, scans, strict=True):
            present = list(scan.collect_schema())
            if self.kind is not None and "propensity_kind" in present:
                raise _counts(path)
            wanted = [named[n] for n in named]
            wanted += sorted(columns - {*schema.COLUMNS, *present})
            self._lacking(path, [name for name in wanted if name not in present], present)
        if len(files) == 1:
            return from_columns(files[0], **named, **settings)
        return from_columns(schema.polars().concat(scans, how="diagonal_relaxed"), **named, **settings)

    def _files(self) -> list[Path]:
        """Those that hold rows: a CSV file of a header alone has no types either."""
        found = sorted(self.path.glob("*.parquet")) if self.path.is_dir() else [self.path]
        if not found:
            raise ValueError(f"{self.path} holds no Parquet files: there is nothing to evaluate")
        full = [path for path in found if _holds(path)]
        if not full:
            raise ValueError(f"{self.path} holds no rows: there is nothing to evaluate")
        return full

    def _scans(self, columns: set[str]) -> list[reader.Scan]:
        scans = [self._selected(path, columns) for path in self._files()]
        if self.arms is None:
            return scans
        made = []
        for scan in scans:
            about, shown = scan.about, scan.about.get("catalogue")
            if shown is not None and about.get("shown_only"):
                about = about | {"catalogue": list(filled_up(shown, self.arms)), "shown_only": False}
            elif shown is not None:
                raise _says_itself(scan.where, "its catalogue")
            else:
                self._silent(scan.frame)
            made.append(scan._replace(about=about))
        return made

    def _silent(self, frame: Any) -> None:
        """Refuse --arms where every row says how many arms were on offer."""
        if self.arms is None:
            return
        col = schema.polars().col
        for name in SIZES[:3]:
            if name in frame.collect_schema() and not frame.select(col(name).null_count()).collect().item():
                raise _says_itself(str(self.path), f"its column {name!r}")

    def _selected(self, path: Path, columns: set[str]) -> reader.Scan:
        """A lazy frame of what is needed of a file, under our names, in our types."""
        scan = reader.scanned(path, {*reader.TEXTS, *self.text})
        present = list(scan.collect_schema())
        ours = {theirs: ours for ours, theirs in self.names.items()}
        ours |= {name: f"{name} (not named)" for name in present if name in self.names and name not in ours}
        names = [ours.get(name, name) for name in present]
        lacking = [self.names.get(name, name) for name in schema.REQUIRED if name not in names]
        lacking += sorted(name for name in columns if name not in (*names, *schema.COLUMNS))
        self._lacking(path, lacking, present)
        wanted = {*ALWAYS, *columns, *[name for name in SIZES if name in names][:1]}
        scan = scan.rename(ours).select([name for name in names if name in wanted])
        array = schema.polars().Array
        of_arrays = [name for name, kind in scan.collect_schema().items() if isinstance(kind, array)]
        scan = scan.with_columns(schema.polars().col(name).arr.to_list() for name in of_arrays)
        if self.kind is not None:
            if "propensity_kind" in names:
                raise _counts(path)
            scan = scan.with_columns(schema.polars().lit(self.kind).alias("propensity_kind"))
        kind = scan.collect_schema()["arm"]
        if not kind.is_numeric():
            raise ValueError(
                f"column {self.arm or 'arm'!r} of {path} must hold positions from 0, got {kind}: with ids take "
                "--format table"
            )
        return reader.Scan(schema.checked(scan, where=str(path)), reader.about(path), str(path))

    def _lacking(self, path: Path, names: list[str], present: list[str]) -> None:
        """Refuse a file without columns that are needed, with the option that names another."""
        if not names:
            return
        kind = next((name for name in schema.REQUIRED if self.names.get(name, name) == names[0]), None)
        cure = f": name the column that holds it with --{kind}" if kind else ""
        if kind == "propensity":
            cure += ", or estimate it with dither.ope.propensities_from and say --kind estimated (kind='estimated')"
        raise ValueError(f"{path} has no column {names[0]!r}; it has {', '.join(map(repr, present))}{cure}")


def _counts(path: Path) -> ValueError:
    return ValueError(f"{path} has a column 'propensity_kind', which is what counts: leave out --kind")


def _says_itself(where: str, what: str) -> ValueError:
    return ValueError(f"{where} says in {what} how many arms were on offer: leave out --arms")


def _holds(path: Path) -> bool:
    """Whether a file has a row."""
    scan = reader.scanned(path)
    with parts.readable(path):
        return bool(scan.head(1).collect().height)


def split(whole: Logged, rows: int) -> Iterator[Logged]:
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
