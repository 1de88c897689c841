"""Values that were made elsewhere: they stand beside what is published where ours are missing, and are not counted.

`elsewhere.toml` lies beside the summaries. It says of a panel who made the values, the runs, and the regrets at the
horizon: a mean and its standard error, or each run.
"""

import math
import tomllib
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

from dither.base import errors
from dither_bench.define import published
from dither_bench.define.figures import FIGURES
from dither_bench.define.panels import Figure, without_shared
from dither_bench.judge import words
from dither_bench.show.looks import translations

NAME = "elsewhere.toml"
Place = tuple[str, str, str]  # figure, panel and algorithm


def read(folder: Path) -> dict[str, Any]:
    """What the file says; empty where there is none."""
    path = folder / NAME
    return tomllib.loads(path.read_text("utf-8")) if path.exists() else {}


def sentences(said: dict[str, Any], figure: str, *, there: Set[Place]) -> list[str]:
    """A sentence for each panel of a figure with values where ours are missing. there : what there is of ours"""
    return [
        f"by {panel['by']}: `{panel['panel']}`, {words.over([panel['runs']])}, {errors.listed(values)}."
        for panel in said.get(figure, [])
        if (values := list(_values(FIGURES[figure], panel, there=there)))
    ]


def _values(figure: Figure, panel: dict[str, Any], *, there: Set[Place]) -> Iterator[str]:
    """Each algorithm that ours lack, with its mean, its standard error and what is published."""
    here, shown = figure.panel(panel["panel"]), translations(figure, "paper")
    for spec in here.algorithms:
        name = str(without_shared(spec, figure.shared))
        if name not in panel["regrets"] or (figure.name, here.name, str(spec)) in there:
            continue
        mean, se = _mean(panel["regrets"][name])
        end = published.last(figure, here, algorithm=spec)
        beside = "" if end is None else f" \\| {words.published({'bound': end.bound, 'published': end.mean})}"
        yield f"{shown[str(spec)]} {words.with_error({'regret': mean, 'se': se})}{beside}"


def _mean(regrets: dict[str, Any]) -> tuple[float, float]:
    """A mean and its standard error, of what the file has."""
    if "each" not in regrets:
        return regrets["mean"], regrets["se"]
    runs = regrets["each"]
    mean = sum(runs) / len(runs)
    return mean, math.sqrt(sum((x - mean) ** 2 for x in runs) / (len(runs) - 1) / len(runs))
