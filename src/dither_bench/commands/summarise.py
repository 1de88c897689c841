"""The command `dither gallery`: sum up a folder of results, and make the page of all summaries."""

import platform
from pathlib import Path
from typing import Annotated

import typer

from dither.cli import terminal


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
    from dither_bench.show import gallery, summaries

    console, paths = terminal.console(), []
    if results is not None:
        requests = [request for request in asked.figures(results) if request.figure.name in FIGURES]
        if not requests:
            raise ValueError(f"{results} holds no figures: make some with 'dither reproduce NAME --out {results}'")
        for request in requests:
            here = processor or platform.processor() or platform.machine()
            summary = summaries.of_request(request, Store(results / STORE), processor=here)
            if summary is not None:
                paths.append(summaries.write(summary, out))
    terminal.written(console, [*paths, *gallery.write(out)])
