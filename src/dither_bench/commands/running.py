"""Runs a figure in the terminal: what `reproduce` and `compare` do with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from dither.base import parts
from dither.cli import terminal
from dither_bench.commands import render
from dither_bench.define.panels import Figure
from dither_bench.judge import words
from dither_bench.keep import asked, code
from dither_bench.run import run
from dither_bench.show.pictures import PictureLook


def show(figure: Figure, *, seed: int, out: Path, look: PictureLook, earlier: bool = False, **how: Any) -> pl.DataFrame:
    """Compute what is missing; show what was asked, and write it into files.

    look : how the pictures look, and which files are made
    earlier : whether the files also have what was asked of the figure earlier in this folder
    how : runs, jobs, block and accept, as `run.reproduce` takes them
    -> what was shown, as of `tables.values`
    """
    from dither_bench.commands import robustness
    from dither_bench.judge import tables
    from dither_bench.show import outputs  # matplotlib takes a second to import

    console = terminal.console()
    look.called(figure, look.names)  # a label of no algorithm is refused before anything is computed
    with watched(figure.name) as (telling, of_codes):
        run.reproduce(figure, out=out, seed=seed, **telling, **how)
    (whole,) = asked.figures(out, only=figure.name, seed=seed)
    written = outputs.write(whole if earlier else replace(whole, figure=figure), out, look=look)
    values, differences = tables.values(figure, written.curves), tables.differences(figure, written.curves)
    render.results(console, figure, values, differences, seed=seed)
    if look.profile and not written.no_profile:
        robustness.show(console, figure, written.curves)
    terminal.said(console, of_codes)
    terminal.written(console, written.paths)
    sentences = [written.no_profile, words.earlier(figure, whole.figure, shown=earlier)]
    if earlier:
        now = {panel.name for panel in figure.panels}
        before = code.older([p for p in whole.figure.panels if p.name not in now], whole.codes, seed=seed)
        sentences.append(words.of_older_code(before))
    terminal.said(console, filter(None, [*sentences, words.other_seeds(seed, asked.seeds(out, figure.name))]))
    return values


@contextmanager
def watched(name: str) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """What `run.reproduce` tells goes to the terminal.

    Yields the callbacks for it, and the sentences about other code, which it fills
    """
    of_codes: list[str] = []

    def tell_of_codes(sentence: str) -> None:
        of_codes.append(sentence)
        terminal.said(terminal.console(stderr=True), [sentence])  # before it takes its time

    try:
        with terminal.progress(name) as tell:
            yield {"on_progress": tell, "on_other_code": tell_of_codes}, of_codes
    except SystemExit as end:  # else the command would end without a word, and perhaps as if all were well
        where = parts.place(end) or "a part of your own"
        raise ValueError(f"{where} ended the program by sys.exit({end.code!r}): raise an error there") from end
