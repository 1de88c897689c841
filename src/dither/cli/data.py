"""The command `dither datasets`: list the data sets."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from dither import datasets
from dither.cli import terminal


def list_data(
    folder: Annotated[
        Path | None,
        typer.Option(help="Folder of the original files.", show_default=f"the environment variable {datasets.FOLDER}"),
    ] = None,
) -> None:
    """List the data sets with size, licence and citation, and say where each would come from."""
    here = datasets.located(folder)
    table = terminal.table("Data sets")
    for name in ("name", "rows", "d", "K", "licence"):
        table.add_column(name, justify="right" if name in ("rows", "d", "K") else "left", no_wrap=True)
    table.add_column("from")
    for source in datasets.SOURCES.values():
        d = f"{source.dim}" if source.encoded is None else f"{source.dim}, one-hot {source.encoded}"
        row = (source.name, f"{source.rows:,}", d, str(source.arms), source.licence, _origin(source, here))
        table.add_row(*map(Text, row))
    console = terminal.console()
    console.print(table)
    lines = [f"{source.name}: {source.citation}. {source.url}" for source in datasets.SOURCES.values()]
    named = "none is named now" if here is None else f"now {here}"
    lines.append(f"\nfolder of the originals: --folder or {datasets.FOLDER} names it ({named}); without one, OpenML")
    lines.append(f"preprocessing: {', '.join(datasets.PREPROCESSING)}")
    lines.append("your own table: dither compare LinFP Greedy --data my.csv --target label, or --data openml:ID")
    console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)


def _origin(source: datasets.Source, folder: Path | None) -> str:
    if folder is not None:
        return "the folder" if datasets.present(source, folder) is not None else "not in the folder"
    return f"OpenML {source.openml}"
