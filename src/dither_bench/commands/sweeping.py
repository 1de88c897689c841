"""A sweep in the terminal: what `compare` does where several settings of an algorithm are to be tried."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from rich.table import Table

from dither.algorithms import Spec
from dither.cli import terminal
from dither_bench import sweeps
from dither_bench.commands import running
from dither_bench.commands.options import Trying
from dither_bench.define import figures
from dither_bench.judge import sweep_words, tables, words
from dither_bench.judge.choices import BestSetting, SettingsSearch
from dither_bench.keep import asked
from dither_bench.show import outputs
from dither_bench.show.pictures import PictureLook


def show(
    env: Mapping[str, Any],
    algorithms: Iterable[Any],
    trying: Trying,
    *,
    rounds: int,
    runs: int,
    seed: int,
    out: Path,
    look: PictureLook,
    earlier: bool = False,
    reference: str | None = None,
    **how: Any,
) -> None:
    """Search; show every setting; run the best of each algorithm anew and show them; say what was found.

    how : jobs, block and accept, as `run.reproduce` takes them
    """
    size: dict[str, Any] = dict(rounds=rounds, runs=runs)
    tries: dict[str, Any] = dict(tries=trying.tries, fair=trying.fair)
    figure = sweeps.searching(env, algorithms, trying.sweep or (), seed=seed, **tries, **size)
    console = terminal.console()
    with running.watched(figure.name) as (telling, of_codes):
        search = sweeps.search(figure, out=out, seed=seed, runs=runs, **telling, **how)
    (whole,) = asked.figures(out, only=figure.name, seed=search.seed)
    quiet = replace(look, profile=False)  # settings of one algorithm are no rivals
    written = outputs.write(replace(whole, figure=figure), out, look=quiet)
    terminal.headed(console, figure.title, f"{words.SHOWS[figure.shows]}, mean ± standard error")
    console.print(_every(search, tables.values(figure, search.curves)))
    terminal.said(console, of_codes)
    terminal.written(console, written.paths)
    fresh = figures.adhoc(env, search.winners, reference=reference, **size)
    look = replace(look, labels=look.known_in(fresh))
    winners = running.show(fresh, seed=seed, out=out, look=look, earlier=earlier, runs=runs, **how)
    terminal.headed(console, "What the search found")
    terminal.said(console, sweep_words.all_of(search, winners, seed=seed))


def _every(search: SettingsSearch, values: pl.DataFrame) -> Table:
    """Every setting on the runs of the search, and how far it lies above the best of its algorithm."""
    (panel,) = search.figure.panels
    table = terminal.table(f"{panel.name}, round {panel.rounds:,}: the search, seed {search.seed}")
    for name in ("algorithm", "regret", "median", "runs", "above the lowest of its algorithm [95 %]"):
        table.add_column(name, justify="left" if name == "algorithm" else "right", no_wrap=True)
    rows = {row["algorithm"]: row for row in values.iter_rows(named=True)}
    for choice in search.choices:
        for spec in choice.of.specs:
            row = rows.get(str(spec))
            if row is None:
                table.add_row(str(spec), "ended with an error", *[""] * 3)
                continue
            cells = (words.with_error(row), words.number(row["median"]), str(row["runs"]))
            table.add_row(str(spec), *cells, _above(choice, spec))
    return table


def _above(choice: BestSetting, spec: Spec) -> str:
    if not choice.gaps:
        return "–"
    if spec not in choice.gaps:
        return "lowest"
    mean, low, high = choice.gaps[spec]
    return words.interval({"difference": mean, "low": low, "high": high})
