"""Interquartile means in the terminal: what `--profile` shows beside the tables."""

import polars as pl
from rich.console import Console
from rich.table import Table

from dither.base import errors
from dither.cli import terminal
from dither_bench.define.panels import Figure
from dither_bench.judge import profiles, words
from dither_bench.show import profile_plots


def show(console: Console, figure: Figure, curves: pl.DataFrame) -> None:
    """The table of the algorithms, and what it says."""
    found = profiles.scores(figure, curves)
    rows = profiles.robust(found)
    console.print(_table(figure, found, rows))
    terminal.said(console, sentences(figure, found, rows))


def sentences(figure: Figure, found: profiles.Scores, rows: pl.DataFrame) -> list[str]:
    """What the table is of, which algorithms are told apart from the reference, and which are left out."""
    base = profile_plots.base(figure)
    others = rows.filter(pl.col("algorithm") != base)
    said = [f"1 is the mean regret of {base} in each panel. IQM: the mean of the middle half of the runs."]
    if rows["low"].null_count():
        said.append("One run alone decides nothing.")
    elif others.height:
        groups = {
            f"Below {base}": pl.col("difference_high") < 0,
            f"Above {base}": pl.col("difference_low") > 0,
            f"Not told apart from {base}": (pl.col("difference_low") <= 0) & (pl.col("difference_high") >= 0),
        }
        named = {text: others.filter(chosen).sort("iqm")["algorithm"].to_list() for text, chosen in groups.items()}
        said.append("By the IQM (95 % interval of the difference, by bootstrap of the runs):")
        said[-1] += "".join(f" {text}: {errors.listed(names)}." for text, names in named.items() if names)
    if found.left_out:
        said.append(f"Not in all panels, and so left out: {errors.listed(list(map(str, found.left_out)))}.")
    return said


def _table(figure: Figure, found: profiles.Scores, rows: pl.DataFrame) -> Table:
    panels, runs = len(found.panels), found.of_reference.shape[-1]
    where = found.panels[0] if panels == 1 else f"{panels} panels"
    table = terminal.table(
        f"{where}: regret at the horizon over the mean of {profile_plots.base(figure)}, {words.over([runs])}"
    )
    for name in ("algorithm", "IQM [95 %]", "mean", "median", "90 % quantile"):
        table.add_column(name, justify="left" if name == "algorithm" else "right", no_wrap=True)
    for row in rows.sort("iqm", maintain_order=True).iter_rows(named=True):
        ends = "" if row["low"] is None else f" [{words.number(row['low'])}, {words.number(row['high'])}]"
        cells = (words.number(row[name]) for name in ("mean", "median", "tail"))
        table.add_row(row["algorithm"], words.number(row["iqm"]) + ends, *cells)
    return table
