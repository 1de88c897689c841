"""What all commands share: the console, the progress bar, and the lines at the end."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

WIDTH = 124  # characters


def console(*, stderr: bool = False) -> Console:
    """The console for results, on stdout or stderr. It is at least as wide as a table."""
    here = _plain(stderr=stderr)
    return here if here.width >= WIDTH else _plain(stderr=stderr, width=WIDTH)


def _plain(**how: Any) -> Console:
    """A console that prints names as they are: `mine.py:boot:a=1` has no emoji, and `x[red]` no colour."""
    return Console(emoji=False, markup=False, **how)


@contextmanager
def progress(what: str) -> Iterator[Callable[[float, float], None]]:
    """A progress bar on stderr, with the time that is left."""
    with progresses([what]) as tell:
        yield lambda done, total: tell(what, done, total)


@contextmanager
def progresses(names: Sequence[str]) -> Iterator[Callable[[str, float, float], None]]:
    """A progress bar for each name, and one for all of them together where there are several.

    Yields what is called with a name, the work done and the work in all.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with ExitStack() as stack:
        bars = Progress(*columns, console=_plain(stderr=True))
        tasks = {name: bars.add_task(name, total=None) for name in names}
        whole = bars.add_task("all", total=None) if len(names) > 1 else None
        come: dict[str, tuple[float, float]] = {}

        def tell(name: str, done: float, total: float) -> None:
            if not bars.live.is_started:  # the bars start late, so that an error about bad settings comes before them
                stack.enter_context(bars)
            bars.update(tasks[name], completed=done if total else 1, total=total or 1)
            come[name] = done, total
            if whole is not None:
                done, total = (sum(part) for part in zip(*come.values(), strict=True))
                bars.update(whole, completed=done if total else 1, total=total or 1)

        yield tell


def table(title: str | None = None, *, texts: Iterable[str] = (), numbers: Iterable[str] = ()) -> Table:
    """A table without rows yet, in the style that all commands share: columns of texts, then columns of numbers."""
    sheet = Table(title=title, title_justify="left", caption_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in texts:
        sheet.add_column(name, no_wrap=True)
    for name in numbers:
        sheet.add_column(Text(name), justify="right", no_wrap=True)
    return sheet


def said(console: Console, sentences: Iterable[str]) -> None:
    """Print each sentence on a line of its own; a long one takes more."""
    for sentence in sentences:
        console.print(sentence, highlight=False, markup=False)


def written(console: Console, paths: list[Path]) -> None:
    """Print the path of every file that was written, a line each."""
    for path in paths:
        console.print(f"wrote {path}", highlight=False, soft_wrap=True)


INTERRUPTED = 130  # the exit code of what Ctrl-C has ended


@contextmanager
def interruptible(store: Path | None = None) -> Iterator[None]:
    """Ctrl-C ends the command, with a word on what is kept of it in the folder of the store; None: it keeps nothing."""
    before = 0 if store is None else _files(store)
    try:
        yield
    except KeyboardInterrupt:
        said = "" if store is None else f": {_kept(store, before)}"
        console(stderr=store is None).print(f"interrupted{said}", soft_wrap=True, highlight=False)
        raise typer.Exit(INTERRUPTED) from None


def _kept(store: Path, before: int) -> str:
    """What the folder of the store has, which had so many files before."""
    new = _files(store) - before
    many, again = new or before, "run the same command again to go on"
    files = f"{many} {'new ' * bool(new)}file{'s' * (many > 1)} of results {'are' if many > 1 else 'is'}"
    if new:
        return f"{files} kept in {store.parent}; {again}"
    if before:
        return f"nothing new was finished, and {files} kept in {store.parent} from before; {again}"
    return "no block was finished, so nothing is kept; a smaller --block is finished sooner, and costs more a run"


def _files(store: Path) -> int:
    return sum(1 for _ in store.rglob("[!.]*.parquet"))


def headed(console: Console, title: str, *lines: str) -> None:
    """Print a title, and lines below it."""
    console.print()
    console.print(title, style="bold", highlight=False)
    for line in lines:
        console.print(line, highlight=False)
