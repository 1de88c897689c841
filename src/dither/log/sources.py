"""Reads a log of any format, in pieces, with the columns that a question needs.

FORMATS[name].read(path, **options)        in Python
--format NAME --with OPTION=VALUE          on the command line; the options are those of the reader

A new format is a reader and one line in FORMATS.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dither.base import errors
from dither.base.errors import Option, Refused
from dither.log import reader, record, schema, storage
from dither.log.check import came_before
from dither.log.coba_results import coba
from dither.log.criteo_text import criteo
from dither.log.foreign import filled_up, from_columns, open_bandit
from dither.log.kuairand_table import kuairand
from dither.log.lines import NoFeatures
from dither.log.logged import Logged
from dither.log.reader import Pieces
from dither.log.vw_json import dsjson
from dither.log.vw_text import vw_text
from dither.log.yahoo_today import yahoo

ROWS = 100_000  # of a piece
ALWAYS = (  # columns that are read for every estimate and for the checks of the log
    *("id", "arm", "propensity", "propensity_kind", "propensity_se"),
    *("floor", "probabilities", "reward", "weight", "was_erased", "values"),
)
# columns that fill the memory, and are read of a ledger where they are needed
LARGE = {"features", "arm_set", "m", "w"}
# settings of a source that say what a table does not
OF_TABLES = ("format", "arm", "propensity", "reward", "kind", "arms")
SPAN = {"since", "until"}  # options of a reader that leave out the decisions of other times, so it must see them all
SIZES = ("K", "arms", "probabilities", "features")  # each says how many arms were on offer; the first one there counts


@dataclass(frozen=True)
class LogSource:
    """A log and how to read it.

    path : a file, a folder that `Log` wrote, a folder of days that `Ledger.export` wrote, or a folder of Parquet parts
        (read in the order of their names); or a ledger, its file or its URL, which is read whole, at one moment
    format : one of FORMATS
    arm, propensity, reward : the names of these columns in the file, where they have other names
    kind : the kind of all propensities, where the table has no column propensity_kind; None: exact
    arms : number of arms on offer, where the log does not say it
    options : options of the reader, as they are typed: {"malformed": "leave-out"}
    text : columns of a CSV file that stay as written

    Raises FileNotFoundError; LookupError for an unknown format or option; ValueError for settings that exclude each
    other.
    """

    path: Any
    format: str = "dither"
    arm: str | None = None
    propensity: str | None = None
    reward: str | None = None
    kind: str | None = None
    arms: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    text: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        errors.among("format", self.format, FORMATS)
        if self.ledger:
            other = [name for name in OF_TABLES if getattr(self, name) != getattr(LogSource, name)]
            if other:
                raise Refused("a ledger says this itself of every decision: leave out ", Option(other[0]))
            self.settings  # noqa: B018  as below
            return
        object.__setattr__(self, "path", reader.no_database(self.path))
        if not self.path.exists():
            raise FileNotFoundError(f"no log at {self.path}")
        rules, format = self.rules, Option("format", self.format)
        if self.kind is not None:
            errors.among("kind of propensities", self.kind, schema.USABLE)
            if self.written or not rules.columns:
                raise Refused("this log says itself of what kind its propensities are: leave out ", Option("kind"))
        if self.names:
            name = Option(next(iter(self.names)))
            if not rules.columns:
                raise Refused("the columns of ", format, " have names: leave out ", name)
            if self.written:
                raise Refused(f"{self.path} is a folder that Log wrote, with names of its own: leave out ", name)
        if self.arms is not None:
            errors.at_least("arms", self.arms, 1)
            if rules.arms is None:
                raise Refused(format, " says itself how many arms were on offer: leave out ", Option("arms"))
            if rules.arms in self.options:
                raise Refused(format, " has ", Option("options"), " for it: leave out ", Option("arms"))
        self.settings  # noqa: B018  raises at once what is wrong with the options

    @property
    def ledger(self) -> bool:
        """Whether it is a ledger, and no file of a log."""
        return reader.is_ledger(self.path)

    @property
    def rules(self) -> "Format":
        """What the format needs and allows."""
        return FORMATS[self.format]

    @property
    def settings(self) -> dict[str, Any]:
        """The options as the reader takes them."""
        options = self.rules.options
        for name in self.options:
            if name not in options:
                raise errors.unknown(f"option of --format {self.format}", name, names=options or ("none",))
        settings = {name: typed(name, text, options[name].annotation) for name, text in self.options.items()}
        if self.arms is not None and self.rules.arms in options:
            settings[self.rules.arms] = self.arms
        return settings

    @property
    def names(self) -> dict[str, str]:
        """Our name of a column -> its name in the file, where the two differ."""
        names = {"arm": self.arm, "propensity": self.propensity, "reward": self.reward}
        return {ours: theirs for ours, theirs in names.items() if theirs is not None and theirs != ours}

    @property
    def written(self) -> bool:
        """Whether the log is a folder that `dither.log.Log` wrote, or folders of days that a ledger exported."""
        return self.path.is_dir() and (any(self.path.glob("decisions-*")) or bool(storage.days(self.path)))

    def pieces(self, columns: set[str], *, rows: int = ROWS) -> Pieces:
        """The log in order, with these columns besides `ALWAYS`. What is wrong with its form is raised at once."""
        spans = SPAN & self.options.keys()
        if self.ledger or spans or not self.rules.streamed:
            whole = self.whole(columns | ({"time"} if spans else set()))
            return Pieces(len(whole), split(whole, rows))
        if self.written and self.arms is not None:
            for folder in storage.days(self.path) or [self.path]:
                self._silent(storage.FolderDecisions(folder).columns(SIZES[:3]).lazy())
        return reader.pieces(self._log(columns), rows=rows, **self.settings)

    def whole(self, columns: set[str]) -> Logged:
        """The whole log in memory, with these columns besides `ALWAYS`."""
        if self.ledger:
            return self._of_ledger(columns)
        if self.rules.whole is not None:
            return self.rules.whole(self, columns)
        settings = self.settings
        if not self.rules.features or "features" in settings:
            return self.rules.read(self.path, **settings)
        needed = bool({"cross", "names"} & settings.keys())
        try:
            return self.rules.read(self.path, features=needed or "features" in columns, **settings)
        except NoFeatures:  # they would have been used, as to see whether the policy learnt; they are not needed
            if needed:
                raise
            return self.rules.read(self.path, **settings)

    def _of_ledger(self, columns: set[str]) -> Logged:
        """The rows of a ledger, as `Ledger.export` writes them. Large columns that are not needed are null.

        What was on offer tells whether the policy learnt, where rows do not say it.
        """
        from dither.log.database import fetching
        from dither.log.ledger import Ledger

        span = record.span(self.settings.get("since"), self.settings.get("until"))
        which, rewards, leave = fetching.within(span), self.settings.get("rewards"), LARGE - columns
        with Ledger.to_read(self.path) as ledger:
            logged = ledger.logged(which, rewards=rewards, leave=leave)
            if logged.frame["learnt"].null_count():
                logged = ledger.logged(which, rewards=rewards)
        return logged

    def decisions(self, columns: set[str]) -> Logged:
        """A decision log in memory."""
        return reader.read(self._log(columns), **self.settings)

    def table(self, columns: set[str]) -> Logged:
        """A table with ids of arms."""
        files = self._files()
        settings: dict[str, Any] = {"kind": self.kind, **self.settings}
        settings["text"] = (*self.text, *_several(settings.get("text", ())))
        named = {name: self.names.get(name, name) for name in schema.REQUIRED}
        if "cost" in settings:
            named.pop("reward")
        as_written = [settings[name] for name in reader.TEXTS if name in settings]
        names = {named["arm"], *settings["text"]}
        numbers = {*named.values(), settings.get("cost", ""), *_several(settings.get("features", ()))} - {named["arm"]}
        scans = [reader.scanned(path, as_written, names=names, numbers=numbers) for path in files]
        for path, scan in zip(files, scans, strict=True):
            present = list(scan.collect_schema())
            self._says_kind(path, present)
            wanted = [*named.values(), *sorted(columns - {*schema.COLUMNS, *present})]
            self._lacking(path, [name for name in wanted if name not in present], present)
        table = files[0] if len(files) == 1 else schema.polars().concat(scans, how="diagonal_relaxed")
        return from_columns(table, **named, **settings)

    def _log(self, columns: set[str]) -> Any:
        """What `reader` reads: the folder, or a `reader.Scan` of each file."""
        return self.path if self.written else [self._scan(path, columns) for path in self._files()]

    def _files(self) -> list[Path]:
        """The files that hold rows. A CSV file with a header alone is left out: its columns have no types."""
        files = sorted(self.path.glob("*.parquet")) if self.path.is_dir() else [self.path]
        if not files:
            raise ValueError(f"{self.path} holds no Parquet files: there is nothing to evaluate")
        full = [path for path in files if _holds(path)]
        if not full:
            raise ValueError(f"{self.path} holds no rows: there is nothing to evaluate")
        return full

    def _scan(self, path: Path, columns: set[str]) -> reader.Scan:
        """A lazy frame of the columns that are needed of a file, with our names and types."""
        numbers = [self.names.get(name, name) for name in ("reward", "propensity")]
        pl, scan = schema.polars(), reader.scanned(path, reader.TEXTS, names=self.text, numbers=numbers)
        present = list(scan.collect_schema())
        ours = {theirs: ours for ours, theirs in self.names.items()}
        ours |= {name: f"{name} (not named)" for name in present if name in self.names and name not in ours}
        names = [ours.get(name, name) for name in present]
        lacking = [self.names.get(name, name) for name in schema.REQUIRED if name not in names]
        lacking += sorted(name for name in columns if name not in (*names, *schema.COLUMNS))
        self._lacking(path, lacking, present)
        wanted = {*ALWAYS, *columns, *[name for name in SIZES if name in names][:1]}
        scan = scan.rename(ours).select([name for name in names if name in wanted])
        arrays = [name for name, dtype in scan.collect_schema().items() if isinstance(dtype, pl.Array)]
        scan = scan.with_columns(pl.col(name).arr.to_list() for name in arrays)
        if self.kind is not None:
            self._says_kind(path, names)
            scan = scan.with_columns(pl.lit(self.kind).alias("propensity_kind"))
        dtype = scan.collect_schema()["arm"]
        if not dtype.is_numeric():
            raise Refused(
                f"column {self.arm or 'arm'!r} of {path} must hold positions from 0, got {dtype}: with ids take ",
                Option("format", "table"),
            )
        about = reader.about(path)
        if self.arms is not None and about.get("catalogue") is None:
            self._silent(scan)
        elif self.arms is not None and about.get("shown_only"):
            about |= {"catalogue": list(filled_up(about["catalogue"], self.arms)), "shown_only": False}
        elif self.arms is not None:
            raise _says_arms(path, "its catalogue")
        return reader.Scan(scan, about, str(path))

    def _silent(self, frame: Any) -> None:
        """Refuse arms= if every row says how many arms were on offer."""
        names = [name for name in SIZES[:3] if name in frame.collect_schema()]
        nulls = frame.select(schema.polars().col(names).null_count()).collect()
        for name in names:
            if nulls[name].item() == 0:
                raise _says_arms(self.path, f"its column {name!r}")

    def _says_kind(self, path: Path, present: list[str]) -> None:
        """Refuse kind= if a column says the kind."""
        if self.kind is not None and "propensity_kind" in present:
            raise Refused(f"{path} has a column 'propensity_kind', which is what counts: leave out ", Option("kind"))

    def _lacking(self, path: Path, names: list[str], present: list[str]) -> None:
        """Refuse a file that lacks columns; the error says which option names another column."""
        if not names:
            return
        parts: list[Any] = [f"{path} has no column {names[0]!r}; it has {', '.join(map(repr, present))}"]
        name = next((name for name in schema.REQUIRED if self.names.get(name, name) == names[0]), None)
        if name is not None:
            parts += [": name the column that holds it with ", Option(name)]
        if name == "propensity":
            parts += [", or estimate it with dither.ope.propensities_from and say ", Option("kind", "estimated")]
        raise Refused(*parts)


def _several(names: Any) -> list[str]:
    """Names of columns, of which a user may give one as it is."""
    return [names] if isinstance(names, str) else list(names)


def _says_arms(where: Path, what: str) -> Refused:
    return Refused(f"{where} says in {what} how many arms were on offer: leave out ", Option("arms"))


def _holds(path: Path) -> bool:
    """Whether a file has a row."""
    scan = reader.scanned(path)
    with storage.readable(path):
        return bool(scan.head(1).collect().height)


def split(whole: Logged, rows: int) -> Iterator[Logged]:
    """A log in memory, in pieces. Each piece knows the numbers of its rows and which ids came before.

    Pieces of a log of which nothing was left out are such logs too.
    """
    repeats = came_before(whole)
    for at in range(0, len(whole), rows):
        now = slice(at, at + rows)
        where: dict[str, Any] = {"first": whole.first + at} if whole.rows is None else {"rows": whole.rows[now]}
        yield replace(whole, frame=whole.frame.slice(at, rows), repeats=repeats[now], **where)


@dataclass(frozen=True)
class Format:
    """A format of logs: its reader, and what else a `LogSource` must know of it."""

    read: Callable[..., Logged]
    words: str  # what the format is, for help texts
    columns: bool = False  # whether arm=, propensity=, reward= and kind= of a source name columns
    arms: str | None = None  # the option that takes a number of arms; None: the log says the number
    features: bool = False  # whether the reader reads features only with features=True
    hidden: tuple[str, ...] = ()  # options of the reader that a source does not offer
    whole: Callable[[LogSource, set[str]], Logged] | None = None  # None: `read`, with the options
    streamed: bool = False  # whether one piece at a time is in memory

    @property
    def options(self) -> dict[str, inspect.Parameter]:
        """The options of a source, by name."""
        parameters = inspect.signature(self.read).parameters
        hidden = (*self.hidden, *(("arm", "propensity", "reward", "kind") if self.columns else ()))
        options = {n: one for n, one in parameters.items() if one.kind is one.KEYWORD_ONLY and n not in hidden}
        if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
            taken = ("arm", "reward", "propensity", "K", *options)
            column = inspect.Parameter("column", inspect.Parameter.KEYWORD_ONLY, annotation=str)
            options |= {name: column for name in schema.COLUMNS if name not in taken}
        return options


FORMATS = {
    "dither": Format(
        *(reader.read, "a decision log, or a table whose column arm holds positions: streamed", True, "arms"),
        hidden=("require",),
        whole=LogSource.decisions,
        streamed=True,
    ),
    "table": Format(
        *(from_columns, "any table whose column arm holds ids: in memory", True, "arms"), whole=LogSource.table
    ),
    "obd": Format(open_bandit, "columns of the Open Bandit Dataset: in memory", arms="arms"),
    "dsjson": Format(dsjson, "Vowpal Wabbit's --dsjson: in memory", features=True),
    "dat": Format(vw_text, "Vowpal Wabbit's text with cb labels: in memory", arms="K", features=True),
    "criteo": Format(criteo, "Criteo's counterfactual text (|l, |p, |f): in memory", features=True),
    "yahoo": Format(yahoo, "Yahoo's Today module, R6A and R6B: in memory", features=True),
    "kuairand": Format(kuairand, "the rows of KuaiRand that were drawn at random: in memory", arms="arms"),
    "coba": Format(coba, "coba's results, one JSON array a line: in memory", arms="arms", features=True),
}


def typed(name: str, text: str, annotation: Any) -> Any:
    """The text that was typed, as a value of the type that the option has."""
    types = getattr(annotation, "__args__", (annotation,))
    text = text.strip().strip("'\"")
    if bool in types:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"option {name} must be true or false, got {text!r}")
        return text.lower() == "true"
    for number, word in ((int, "a whole number"), (float, "a number")):
        if number in types and str not in types:
            try:
                return number(text)
            except ValueError:
                raise ValueError(f"option {name} must be {word}, got {text!r}") from None
    lists = any(getattr(one, "__origin__", None) is not None for one in types)
    if lists and ("," in text or str not in types):
        return [part.strip() for part in text.split(",")]
    return text.replace("leave-out", "leave out")
