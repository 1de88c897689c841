"""What the tables say, in sentences."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from dither.algorithms import Spec
from dither.base import errors, parts
from dither.envs import Kappas
from dither_bench.define.panels import Figure, Panel, reference, without_shared
from dither_bench.judge import ratios

SHOWS = {
    "regret": "cumulative regret of the means",
    "realised": "cumulative realised regret, r(best) − r(chosen)",
}
NOTHING = 1e-9  # of a regret
FEW = 5  # runs: with fewer, a standard error of them is a guess
SELECTED = "The lowest of several tried looks better than it is: run it anew with another seed to know its regret."
BANDS = {
    "se": "±1 standard error",
    "quantiles": "the middle half of the runs (quartiles)",
    "median": "the middle half of the runs (quartiles), line: their median,",
}
QUARTILES = ("quantiles", "median")  # the bands whose edges are the quartiles
ONE_RUN = "One run alone decides nothing."


@dataclass(frozen=True)
class Section:
    """A panel at a round: the rows of its tables, and what they say."""

    panel: Panel
    round: int
    rows: list[dict[str, Any]]  # of `tables.values`, each with its row of `tables.differences` as gap, or None
    verdict: str
    of_each: str
    collapsed: str
    not_reproduced: list[str]
    unsettled: list[str]  # what would settle the open values

    @property
    def published(self) -> bool:
        """Whether something is published that stands beside the rows."""
        return any(row["published"] is not None for row in self.rows)

    @property
    def each(self) -> bool:
        """Whether every run is shown."""
        return any(row["each"] for row in self.rows)


def section(
    panel: Panel, t: int, values: pl.DataFrame, differences: pl.DataFrame, *, reference_as: str | None = None
) -> Section:
    """What the tables have of a panel at round t. reference_as : as of `verdict`"""
    here = values.filter(panel=panel.name, round=t)
    of_here = differences.filter(panel=panel.name, round=t)
    gaps = {gap["algorithm"]: gap for gap in of_here.iter_rows(named=True)}
    rows = [row | {"gap": gaps.get(row["algorithm"])} for row in here.iter_rows(named=True)]
    sentence = verdict(panel, t, values, differences, reference_as=reference_as)
    others = not_reproduced(panel, t, values, differences)
    return Section(panel, t, rows, sentence, of_each(here), collapsed(here), others, unsettled(here))


def number(x: float | None, *, signed: bool = False) -> str:
    """Three or four figures, and two below 0.1: rewards may be small. A dash for None.

    What is below `NOTHING` is 0: a difference of equal regrets has the rounding of their sums.
    """
    if x is None:
        return errors.DASH
    x = 0.0 if abs(x) < NOTHING else x
    size = abs(x)
    digits = 0 if size >= 1000 else 1 if size >= 10 else 2 if size >= 0.1 or not x else 1 - math.floor(math.log10(size))
    if digits <= 5:
        return errors.number(x, digits, signed=signed)
    return f"{x:{'+' if signed else ''}.1e}".replace("-", errors.MINUS)


def with_error(row: dict) -> str:
    """A mean and its standard error."""
    return number(row["regret"]) + ("" if row["se"] is None else f" ± {number(row['se'])}")


def collapsed(rows: pl.DataFrame) -> str:
    """A sentence on the runs that have collapsed; empty where none has."""
    runs = [f"{row['algorithm']} {row['each'].count('*')}" for row in rows.iter_rows(named=True) if "*" in row["each"]]
    return f"Collapsed runs (*): {errors.listed(runs)}. Their means say little." if runs else ""


def of_each(rows: pl.DataFrame) -> str:
    """A sentence on the best setting of each algorithm with three settings or more; empty where none has so many."""
    settings: dict[str, list[dict]] = {}
    for row in rows.sort("regret").iter_rows(named=True):
        settings.setdefault(row["algorithm"].partition(":")[0], []).append(row)
    best = [
        f"{of[0]['algorithm']} ({with_error(of[0])}, of {len(of)} tried)" for of in settings.values() if len(of) >= 3
    ]
    return f"Lowest of each algorithm's settings: {errors.listed(best)}. {SELECTED}" if best else ""


def accepted(names: list[str]) -> str:
    """A sentence on the algorithms that have runs of other code; empty for none."""
    return f"Runs of {errors.listed(names)} were made by other code than the rest, and accepted so." if names else ""


def earlier(figure: Figure, whole: Figure, *, shown: bool) -> str:
    """A sentence on what was asked for earlier and not now; empty where there is nothing. shown : in the files too"""
    now = {panel.name: panel.algorithms for panel in figure.panels}
    more = [panel.name for panel in whole.panels if panel.name not in now]
    for panel in whole.panels:
        names = [str(spec) for spec in panel.algorithms if spec not in now.get(panel.name, panel.algorithms)]
        more += [f"{panel.name}: {errors.listed(names)}"] if names else []
    if not more:
        return ""
    what = f"what was asked for earlier in this folder: {'; '.join(more)}."
    return f"The files also hold {what}" if shown else f"The files leave out {what} --with-earlier adds it."


def other_seeds(seed: int, seeds: Iterable[int]) -> str:
    """A sentence on the seeds that the files leave out; empty where there are none."""
    others = [str(other) for other in seeds if other != seed]
    if not others:
        return ""
    which = f"seed{'s' if len(others) > 1 else ''} {errors.listed(others)}"
    return f"The files show seed {seed} alone, which was asked for last. Results of {which} are kept in this folder."


def of_older_code(older: Iterable[str]) -> str:
    """A sentence on earlier panels whose code has changed since; empty where there are none."""
    older = list(older)
    if not older:
        return ""
    return (
        "CAUTION: the code has changed since these were computed, and the files show them beside the new results: "
        f"{errors.listed(older)}. Ask for them again, or take another folder with --out."
    )


def briefly(
    figure: Figure, values: pl.DataFrame, differences: pl.DataFrame
) -> tuple[Figure, pl.DataFrame, pl.DataFrame]:
    """The same figure and tables, where names leave out the settings that all algorithms share."""
    if not figure.shared:
        return figure, values, differences

    def brief(algorithms: tuple[Spec, ...]) -> tuple[Spec, ...]:
        return tuple(without_shared(spec, figure.shared) for spec in algorithms)

    panels = tuple(replace(panel, algorithms=brief(panel.algorithms)) for panel in figure.panels)
    names = {str(spec): str(without_shared(spec, figure.shared)) for spec in figure.algorithms}
    return (
        replace(figure, panels=panels, extra=brief(figure.extra)),
        values.with_columns(pl.col("algorithm").replace(names)),
        differences.with_columns(pl.col("algorithm", "reference").replace(names)),
    )


def shared(figure: Figure) -> str:
    """A sentence with the settings that all algorithms of the figure share."""
    return f"All with {figure.shared.replace(',', ', ')}." if figure.shared else ""


def published(row: dict) -> str:
    """The published value, or its lower bound."""
    return ("> " if row["bound"] else "") + number(row["published"])


def ratio(row: dict) -> str:
    """ours/published with its 95 % interval; a dash where there is none."""
    if row["ratio"] is None:
        return errors.DASH
    return f"{row['ratio']:.2f}" + (
        "" if row["ratio_low"] is None else f" [{_two(row['ratio_low'])}, {_two(row['ratio_high'])}]"
    )


def _two(x: float) -> str:
    return errors.number(x, 2)


def kappas(constants: Kappas | None) -> str:
    """κ* and κ of an environment, and over which runs and rounds they were taken; empty where it has none."""
    if constants is None:
        return ""
    return (
        f"κ* = {constants.star:.3g} ± {constants.se:.1g} (average μ' at the best arm, over the first "
        f"{constants.rounds} rounds of {constants.runs} runs), κ = {constants.least:.3g} (smallest μ' of their arms "
        "for ‖θ‖ ≤ S)"
    )


def verdict(
    panel: Panel, t: int, values: pl.DataFrame, differences: pl.DataFrame, *, reference_as: str | None = None
) -> str:
    """Which algorithm has the lowest regret at round t, and which lie certainly below the reference.

    reference_as : the name of the reference in the tables, where they have other names than the algorithms
    """
    rows = values.filter(panel=panel.name, round=t).sort("regret")
    if rows.is_empty():
        return "No results yet."
    base, best = reference_as or str(reference(panel)), rows["algorithm"][0]
    text = f"Lowest regret at round {t:,}: {best}, {with_error(rows.row(0, named=True))}, of {rows.height} compared."
    if rows.height == 1:
        text = f"Regret at round {t:,}: {best}, {with_error(rows.row(0, named=True))}."
    gaps = differences.filter(panel=panel.name, round=t)
    below = gaps.filter(pl.col("high") < 0).sort("difference")["algorithm"].to_list()
    unclear = gaps.filter((pl.col("low") <= 0) & (pl.col("high") >= 0)).sort("difference")["algorithm"].to_list()
    above = gaps.filter(pl.col("low") > 0)
    of_base = rows.filter(algorithm=base)
    if of_base.is_empty() or gaps.is_empty():
        return text
    if base != best:
        text += f" {base} has {with_error(of_base.row(0, named=True))}."
    if gaps["low"].null_count():
        return f"{text} {ONE_RUN}"
    if below:
        text += f" Below {base} (95 % interval of the paired difference): {errors.listed(below)}."
    if unclear:
        text += f" Not told apart from {base}: {errors.listed(unclear)}."
    if above.height == gaps.height:
        text += f" All others lie above {base} (95 % intervals)."
    elif not above.is_empty():
        text += f" Above it: {errors.listed(above.sort('difference')['algorithm'].to_list())}."
    return text


def not_reproduced(panel: Panel, t: int, values: pl.DataFrame, differences: pl.DataFrame) -> list[str]:
    """A sentence for each value or order published at round t that ours differs from; empty where none does."""
    sentences = [
        f"{row['algorithm']}: {number(row['regret'])} where {published(row)} is published"
        + ("" if row["ratio"] is None else f" (ratio {ratio(row)})")
        + f". {row['note'] or _unexplained(row['runs'])}"
        for row in values.filter(panel=panel.name, round=t, value=ratios.DIFFERS).iter_rows(named=True)
    ]
    sentences += [
        f"{row['algorithm']} against {row['reference']}: {number(row['difference'], signed=True)}, where the published "
        f"difference is {number(row['published'], signed=True)}."
        for row in differences.filter(panel=panel.name, round=t, order="disagrees").iter_rows(named=True)
    ]
    return sentences


def unsettled(rows: pl.DataFrame) -> list[str]:
    """What would settle the values that are open: how many runs, or why no number of them would."""
    needing: list[str] = []
    never: dict[str, list[str]] = {}
    for row in rows.filter(pl.col("value").is_in([ratios.OPEN, ratios.UNSURE])).iter_rows(named=True):
        if row["needs"] is None:
            never.setdefault(_never(row), []).append(row["algorithm"])
        else:
            needing.append(f"{row['algorithm']} {row['needs']:,} ({duration(3600 * row['hours'])})")
    sentences = []
    if needing:
        sentences.append(f"Runs that would settle an open value, and their time on one core: {errors.listed(needing)}.")
    if never:
        reasons = "; ".join(f"{errors.listed(names)} ({why})" for why, names in never.items())
        sentences.append(f"No number of our runs is known to settle: {reasons}.")
    return sentences


def _never(row: dict) -> str:
    """Why no number of runs is known to settle an open value."""
    if row["se"] is None:
        return "one run has no sd"
    if row["bound"]:
        return "ours keeps the lower bound"
    if row["value"] == ratios.UNSURE:
        return "the published error decides"
    return f"the published value is known too roughly beside {_limit(row['ratio'])}"


def _limit(x: float | None) -> str:
    """The limit that a ratio is next to."""
    return errors.number(min(ratios.LIMITS, key=lambda limit: abs(limit - (x or 0.0))), 1)


def _unexplained(runs: int) -> str:
    """What is said of a value that differs, where no note explains it."""
    if runs < FEW:
        return f"{over([runs])} say little: the standard error is a guess too. Take more."
    return "No reason is known."


def setting(env: Mapping[str, Any]) -> str:
    """An environment's settings as a phrase."""
    phrases = [parts.short(env["name"])]
    for name, value in env.items():
        if value is None:
            phrases.append("new arms each round" if name == "contexts" else f"no {name}")
        elif name != "name":
            phrases.append(f"{name} {value:g}" if type(value) is float else f"{name} {value}")
    return ", ".join(phrases)


def band(kind: str, runs: list[int]) -> str:
    """What the shaded band of a plot is."""
    return f"band: {BANDS[kind]} over {over(runs)}"


def spread(numbers: Iterable[int]) -> str:
    """ "10", or "5 to 10" where the numbers differ."""
    least, *others = sorted(set(numbers))
    return f"{least} to {others[-1]}" if others else f"{least}"


def over(runs: list[int]) -> str:
    """How many runs: "10 runs", or "5 to 10 runs" where the numbers differ."""
    return f"{spread(runs)} run{'s' if max(runs) > 1 else ''}"


def short(configuration: str) -> str:
    """The text of a configuration, where long tuples of numbers are cut short."""
    return re.sub(r"\(([-+\d.e]+), (?:[-+\d.e]+, ){3,}([-+\d.e]+)\)", r"(\1, …, \2)", configuration)


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, roughly."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}" if seconds >= 10 * size else f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def interval(gap: dict) -> str:
    """A paired difference with its interval."""
    return number(gap["difference"], signed=True) + between(gap["low"], gap["high"], signed=True)


def between(low: float | None, high: float | None, *, signed: bool = False) -> str:
    """The ends of an interval; empty where it has none."""
    return "" if low is None else f" [{number(low, signed=signed)}, {number(high, signed=signed)}]"
