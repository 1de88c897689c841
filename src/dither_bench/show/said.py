"""What the pages of results say of a figure, in sentences that are made from its summary.

A page has places for them: between `<!-- made: NAME -->` and `<!-- end -->` stands what is made here, and `fill` makes
it again. What a figure is, and why something may be so, is written by hand around them, without a number.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from dither.base import errors
from dither_bench.define import published
from dither_bench.define.figures import FIGURES
from dither_bench.define.panels import Figure, reference
from dither_bench.define.published import End
from dither_bench.judge import ratios, tables, words
from dither_bench.judge.ratios import Mean
from dither_bench.show import summaries
from dither_bench.show.looks import translations
from dither_bench.show.summaries import Summary

PLACE = re.compile(r"(<!-- made: ([\w:., -]+?) -->\n).*?(<!-- end -->)", re.DOTALL)
RELATIONS = {"below": "Below {}", "open": "Not told apart from {}", "above": "Above {}"}


def fill(text: str, every: Mapping[str, Summary]) -> str:
    """The page with its places filled. Raises LookupError for a place that nothing is made for."""

    def lines_of(match: re.Match[str]) -> str:
        kind, _, names = match[2].partition(" ")
        errors.among("kind of sentences", kind, MAKERS)
        lines = MAKERS[kind](every, names.split())
        return match[1] + "\n".join(lines) + "\n" + match[3]

    return PLACE.sub(lines_of, text)


def values_of(summary: Summary) -> pl.DataFrame:
    """The values of a figure, with the names of the paper's legends."""
    return _named(summary.figure, tables.judged(summary.figure, summary.measured))


def gaps_of(summary: Summary) -> pl.DataFrame:
    """The paired differences of a figure, with the names of the paper's legends."""
    return _named(summary.figure, tables.ordered(summary.figure, summary.paired))


def _named(figure: Figure, rows: pl.DataFrame) -> pl.DataFrame:
    columns = [name for name in ("algorithm", "reference") if name in rows.columns]
    return rows.with_columns(pl.col(*columns).replace(translations(figure, "paper")))


def verdicts(every: Mapping[str, Summary], names: Sequence[str]) -> Iterator[str]:
    """Lines on the values, the orders and the differences of figures."""
    for name in names:
        summary = every[name]
        values, gaps = values_of(summary), gaps_of(summary)
        head = "" if len(names) == 1 else f"`{name}`: "
        runs = words.over(values["runs"].to_list())
        counted = values.filter(pl.col("value").is_in(_WORDS))
        if not counted.is_empty():
            yield f"- {head}**Values** ({runs}): {_values(summary.figure, counted)}."
        elif not values["published"].is_null().all():
            yield f"- {head}**Values** ({runs}) are not compared."
        if orders := _orders(summary.figure, gaps):
            yield f"- {head}**Orders**: {orders}."
        yield f"- {head}**Told apart** ({runs}): {_relations(summary.figure, gaps)}."


_WORDS = (ratios.REPRODUCED, ratios.DIFFERS, ratios.OPEN, ratios.UNSURE)
_HEADS = {ratios.REPRODUCED: "reproduced", ratios.DIFFERS: "differ", ratios.OPEN: "open"}
_HEADS |= {ratios.UNSURE: "open since the published error decides"}


def _values(figure: Figure, values: pl.DataFrame) -> str:
    parts = []
    for word in _WORDS:
        rows = values.filter(value=word)
        if not rows.is_empty():
            parts.append(f"{rows.height} of {values.height} {_HEADS[word]} ({_places(figure, rows, of=values)})")
    return "; ".join(parts)


def _orders(figure: Figure, gaps: pl.DataFrame) -> str:
    """How many orders agree; which do not. Empty where none is published."""
    theirs = gaps.filter(pl.col("order") != "-")
    if theirs.is_empty():
        return ""
    count = Counter(theirs["order"])
    agree, disagree = count["agrees"], count["disagrees"]
    text = f"of {theirs.height} published ones {agree} agree, {disagree} disagree, and the errors leave"
    against = theirs.filter(order="disagrees")
    of = "" if against.is_empty() else f". Those that disagree: {_places(figure, against, of=theirs)}"
    return f"{text} {count[ratios.OPEN]} open{of}"


def _relations(figure: Figure, gaps: pl.DataFrame) -> str:
    """Which algorithms lie below the reference, which above, and which cannot be told apart from it."""
    if gaps["low"].is_null().all():
        return words.ONE_RUN.removesuffix(".").lower()
    base = errors.listed(list(dict.fromkeys(translations(figure, "paper")[str(reference(p))] for p in figure.panels)))
    signs = {
        "below": pl.col("high") < 0,
        "open": (pl.col("low") <= 0) & (pl.col("high") >= 0),
        "above": pl.col("low") > 0,
    }
    parts = []
    for relation, sign in signs.items():
        rows = gaps.filter(sign)
        if not rows.is_empty():
            parts.append(f"{RELATIONS[relation].format(base)}: {_places(figure, rows, of=gaps)}")
    text = ". ".join(parts)
    return text[0].lower() + text[1:]


def _places(figure: Figure, rows: pl.DataFrame, *, of: pl.DataFrame) -> str:
    """Algorithms with the panels of these rows; "everywhere" where these are all that `of` has of one."""
    where: dict[str, list[str]] = {}
    many = of.select("panel", "round").unique().height > of["panel"].n_unique()
    for row in rows.iter_rows(named=True):
        place = f"{row['panel']} at round {row['round']:,}" if many else row["panel"]
        where.setdefault(row["algorithm"], []).append(place)
    whole = Counter(of["algorithm"])
    groups: dict[str, list[str]] = {}
    for name, panels in where.items():
        groups.setdefault("everywhere" if len(panels) == whole[name] > 1 else _panels(panels), []).append(name)
    if of["panel"].n_unique() == 1 and not many:
        return errors.listed([name for names in groups.values() for name in names])
    return "; ".join(f"{errors.listed(names)} {panels}" for panels, names in groups.items())


def _panels(panels: Sequence[str]) -> str:
    """ "at d = 5, 10 and 20" for d=5, d=10, d=20; else the names."""
    if all(re.fullmatch(r"d=\d+", panel) for panel in panels):
        return f"at d = {errors.listed([panel[2:] for panel in panels])}"
    return f"in {errors.listed([f'`{panel}`' for panel in panels])}"


def differing(every: Mapping[str, Summary], names: Sequence[str]) -> Iterator[str]:
    """A table: a row for each algorithm of a figure whose values differ, with its ratios and the reasons."""
    yield "| figure | algorithm | ours/published | reason |"
    yield "| --- | --- | --- | --- |"
    for name in names or every:
        rows = values_of(every[name]).filter(value=ratios.DIFFERS)
        for algorithm in dict.fromkeys(rows["algorithm"]):
            mine = rows.filter(algorithm=algorithm)
            reasons = " ".join(dict.fromkeys(note or "No reason is known." for note in mine["note"]))
            where = "; ".join(f"`{row['panel']}` {_ratio(row)}" for row in mine.iter_rows(named=True))
            yield f"| [{name}](results/README.md#{name}) | {algorithm} | {where} | {reasons} |"


def _ratio(row: dict) -> str:
    """The ratio; of a lower bound what it is at most."""
    return f"below {row['regret'] / row['published']:.2f}" if row["bound"] else words.ratio(row)


def beside(every: Mapping[str, Summary], names: Sequence[str]) -> Iterator[str]:
    """A table of figures: a row for each algorithm, a column for each panel: ours | published, the ratio, the word."""
    for name in names:
        summary = every[name]
        values = values_of(summary)
        values = values.filter(pl.col("published").is_not_null())
        columns = list(dict.fromkeys(values.select("panel", "round").iter_rows()))
        yield "| | " + " | ".join(f"{panel}, round {t:,}" for panel, t in columns) + " |"
        yield "| --- " * (len(columns) + 1) + "|"
        for algorithm in dict.fromkeys(values["algorithm"]):
            cells = (values.filter(algorithm=algorithm, panel=panel, round=t).to_dicts() for panel, t in columns)
            yield f"| {algorithm} | " + " | ".join(_beside(rows[0]) if rows else errors.DASH for rows in cells) + " |"


def _beside(row: dict) -> str:
    ratio = "" if row["ratio"] is None else f", ratio {words.ratio(row)}"
    return f"{words.with_error(row)} \\| {words.published(row)}{ratio}: {row['value'].partition(':')[0]}"


def leaving(every: Mapping[str, Summary], names: Sequence[str]) -> Iterator[str]:
    """A table of the published curves that leave their drawing: ours | published at the last round that can be read."""
    yield "| figure | panel | algorithm | round | ours \\| published | ratio |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name in names or every:
        for panel, algorithm, ours, end in _readable(every[name]):
            low, high = ratios.interval(ours, end)
            row = {"regret": ours.value, "se": ours.se, "ratio": ours.value / end.mean}
            row |= {"ratio_low": low if math.isfinite(low) else None, "ratio_high": high}
            both = f"{words.with_error(row)} \\| {words.number(end.mean)}"
            word = ratios.verdict(ours, end).partition(":")[0]
            yield f"| {name} | `{panel}` | {algorithm} | {end.round:,} | {both} | {words.ratio(row)}: {word} |"


def _readable(summary: Summary) -> Iterator[tuple[str, str, Mean, End]]:
    """Panel, algorithm, ours and theirs, where a published curve leaves its drawing. Ours lies between two rounds."""
    figure = summary.figure
    shown = translations(figure, "paper")
    for panel in figure.panels if figure.compares == "values" else ():
        for spec in panel.algorithms:
            last = published.last(figure, panel, algorithm=spec)
            mine = summary.curves.filter(panel=panel.name, algorithm=str(spec)).sort("round")
            if last is None or not last.bound or mine.is_empty():
                continue
            t, mean, se, _ = published.curve(figure, panel, algorithm=spec).filter(bound=False).row(-1)
            value, error = (float(np.interp(t, mine["round"], mine[column])) for column in ("mean", "se"))
            ours = Mean(value, error, int(mine["runs"][-1]))
            yield panel.name, shown[str(spec)], ours, End(t, mean, se, runs=last.runs, off=last.off)


def total(every: Mapping[str, Summary], names: Sequence[str]) -> Iterator[str]:
    """A sentence on all values of these figures; of all where none is named."""
    values = [values_of(every[name])["value"] for name in names or every]
    count = Counter(word for column in values for word in column if word in _WORDS)
    decided = count[ratios.UNSURE]
    yield (
        f"Of {sum(count.values())} published values that are compared, {count[ratios.REPRODUCED]} are reproduced, "
        f"{count[ratios.DIFFERS]} differ and {count[ratios.OPEN] + decided} are open. The published error decides "
        f"{decided} of those that are open."
    )


def missing(every: Mapping[str, Summary], names: Sequence[str]) -> Iterator[str]:
    """What has a value that differs, by the number of those; and what was not run."""
    for name, summary in every.items():
        values = values_of(summary)
        counted = values.filter(pl.col("value").is_in(_WORDS))
        differ = counted.filter(value=ratios.DIFFERS)
        if not differ.is_empty():
            those = errors.listed(list(dict.fromkeys(differ["algorithm"])))
            counts = f"{differ.height} of {counted.height} values differ"
            yield f"- [{_short(summary.figure)}](results/README.md#{name}): {counts} ({those})."
        lacking = [panel for panel, _ in summaries.lacking(summary.figure) if panel not in set(values["panel"])]
        if lacking:
            yield f"- {_short(summary.figure)}: {errors.listed([f'`{panel}`' for panel in lacking])} not run."
    for name, figure in FIGURES.items():
        if name not in every and name.startswith(("fig", "h")):
            yield f"- {_short(figure)}: not run."


def _short(figure: Figure) -> str:
    """Figure H.6 of "Figure H.6: networks of one hidden layer"."""
    return figure.title.partition(":")[0]


MAKERS = {"verdicts": verdicts, "differing": differing, "beside": beside, "leaving": leaving, "total": total}
MAKERS |= {"missing": missing}


def of(every: Iterable[Summary]) -> dict[str, Summary]:
    """The summaries by the names of their figures."""
    return {summary.figure.name: summary for summary in every}
