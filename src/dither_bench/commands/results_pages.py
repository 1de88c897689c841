"""The sentences and tables of docs/results.md and other pages that are made from the summaries in docs/results.

`python -m dither_bench.commands.results_pages` makes them again; a test compares.
"""

from collections.abc import Mapping
from pathlib import Path

from dither.base import files
from dither_bench.show import gallery, said
from dither_bench.show.summaries import Summary

PAGES = ("results.md", "differences.md", "neural.md")


def pages(docs: Path) -> Mapping[Path, str]:
    """Each page with what is made of the summaries there."""
    every: Mapping[str, Summary] = said.of(gallery.read(docs / "results"))
    return {docs / name: said.fill((docs / name).read_text("utf-8"), every) for name in PAGES}


if __name__ == "__main__":
    for path, text in pages(Path("docs")).items():
        files.text(path, text)
