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
    scores = profiles.scores(figure, curves)
    rows = profiles.robust(scores)
    console.print(_table(figure, scores, rows))
    terminal.said(console, sentences(figure, scores, rows))


def sentences(figure: Figure, scores: profiles.ProfileScores, rows: pl.DataFrame) -> list[str]:
    """What the table is of, which algorithms are told apart from the reference, and which are left out."""
    base = profile_plots.base(figure)
    others = rows.filter(pl.col("algorithm") != base)
    lines = [f"1 is the mean regret of {base} in each panel. IQM: the mean of the middle half of the runs."]
    if rows["low"].null_count():
        lines.append(words.ONE_RUN)
    elif others.height:
        groups = {
            f"Below {base}": pl.col("difference_high") < 0,
            f"Above {base}": pl.col("difference_low") > 0,
            f"Not told apart from {base}": (pl.col("difference_low") <= 0) & (pl.col("difference_high") >= 0),
        }
        named = {text: others.filter(chosen).sort("iqm")["algorithm"].to_list() for text, chosen in groups.items()}
        verdicts = "".join(f" {text}: {errors.listed(names)}." for text, names in named.items() if names)
        lines.append(f"By the IQM (95 % interval of the difference, by bootstrap of the runs):{verdicts}")
    if scores.left_out:
        lines.append(f"Not in all panels, and so left out: {errors.listed(list(map(str, scores.left_out)))}.")
    return lines


def _table(figure: Figure, scores: profiles.ProfileScores, rows: pl.DataFrame) -> Table:
    where, runs = profile_plots.where(scores), words.over([scores.runs])
    table = terminal.table(f"{where}: regret at the horizon over the mean of {profile_plots.base(figure)}, {runs}")
    for name in ("algorithm", "IQM [95 %]", "mean", "median", "90 % quantile"):
        table.add_column(name, justify="left" if name == "algorithm" else "right", no_wrap=True)
    for row in rows.sort("iqm", maintain_order=True).iter_rows(named=True):
        cells = (words.number(row[name]) for name in ("mean", "median", "tail"))
        table.add_row(row["algorithm"], words.number(row["iqm"]) + words.between(row["low"], row["high"]), *cells)
    return table
