"""The commands about folders of results: `results check`, `results merge` and `gallery`."""

import platform
from pathlib import Path
from typing import Annotated

import typer

from dither.base import errors
from dither.cli import terminal
from dither_bench.keep import folders
from dither_bench.keep.store import UNRECORDED


def check(folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of results.")]) -> None:
    """Read every file of a folder of results: is it whole, unaltered, in its place, and no run there twice?"""
    console = terminal.console()
    with terminal.progress("check") as tell:
        checked = folders.check(folder, tell=tell)
    table = terminal.table(f"{folder}: {checked.files:,} files, {checked.cells:,} cells")
    table.add_column("code")
    table.add_column("seed", justify="right")
    table.add_column("runs", justify="right")
    table.add_column("last made")
    table.add_column("of")
    for code, seed, algorithms, runs, last in checked.codes:
        name = code if code != UNRECORDED else "not recorded"
        table.add_row(name, str(seed), f"{runs:,}", last[:16], errors.listed(algorithms))
    console.print(table)
    terminal.said(console, (f"{files:,} files from {machine}" for machine, files in checked.machines.most_common()))
    if checked.unsealed:
        few = f"{checked.unsealed:,} of {checked.files:,} files have no checksum, since an earlier version wrote them"
        terminal.said(console, [f"{few}: whether their numbers were altered cannot be told."])
    terminal.said(console, checked.wrong)
    if checked.wrong:
        terminal.said(console, [f"Not right: {len(checked.wrong):,} of {checked.files:,} files."])
        raise typer.Exit(1)
    terminal.said(console, ["Every file is whole and in its place. No run is there twice with other values."])


def merge(
    places: Annotated[
        list[Path],
        typer.Argument(metavar="FROM... INTO", help="Folders of results, and last the folder that gets all of them."),
    ],
) -> None:
    """Copy folders of results into one. Nothing is copied if a run has other values in two of them."""
    *sources, into = places
    if not sources:
        raise ValueError(f"name at least two folders: those to take from, and last the one to merge into; got {into}")
    merged = folders.merge(sources, into)
    sentence = f"{into}: {merged.copied:,} files copied, {merged.there:,} were there already."
    terminal.said(terminal.console(), [sentence])


def gallery(
    results: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            help="Folder of results. Without it, the page is made of the summaries alone.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of summaries, pictures and page.")] = Path("gallery"),
    processor: Annotated[
        str | None, typer.Option(help="What made the results, for the page.", show_default="as this machine says")
    ] = None,
) -> None:
    """Sum up results in small text files, and make a page with the picture and the table of each figure from them."""
    from dither_bench.define.figures import FIGURES
    from dither_bench.keep import asked  # matplotlib takes a second to import
    from dither_bench.keep.store import STORE, Store
    from dither_bench.show import bake_summary, gallery, summaries

    console, paths = terminal.console(), []
    if results is not None:
        shown = (*FIGURES, bake_summary.NAME)
        requests = [request for request in asked.figures(results) if request.figure.name in shown]
        if not requests:
            raise ValueError(f"{results} holds no figures: make some with 'dither reproduce NAME --out {results}'")
        for request in requests:
            here = processor or platform.processor() or platform.machine()
            if request.figure.name == bake_summary.NAME:
                of_bake = bake_summary.of_request(request, Store(results / STORE), processor=here)
                paths.append(bake_summary.write(of_bake, out))
                continue
            summary = summaries.of_request(request, Store(results / STORE), processor=here)
            if summary is not None:
                whole, sentences = summaries.with_earlier(summary, out)
                terminal.said(console, sentences)
                paths.append(summaries.write(whole, out))
    terminal.written(console, [*paths, *gallery.write(out)])
