"""What only the runs can tell of a figure, in one small text file: enough to draw it and to make its tables again.

    NAME.json   a line for each algorithm of a panel
    curves      mean, se and quartiles over the runs, at up to 60 rounds
    measured    the regret where the published curves end, and at the horizon  (`tables.measured`)
    paired      differences to the reference, over the same runs               (`tables.paired`)

Numbers have five digits. What is published, the notes and the verdicts are not in it: the package has them, and a page
made from a summary has those of today. A summary also says which code made the runs, with which versions, and where.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dither.algorithms import specs
from dither.base import errors, files
from dither_bench.define import published
from dither_bench.define.figures import FIGURES, PAPER
from dither_bench.define.panels import Figure, Panel
from dither_bench.judge import tables
from dither_bench.keep import provenance
from dither_bench.keep.asked import FigureRequest
from dither_bench.keep.store import Store

ROUNDS = 60  # of a curve, besides those where it is compared
DIGITS = 5  # of a number
_CURVES: dict[str, Any] = {"panel": pl.String, "algorithm": pl.String, "round": pl.Int64}
_CURVES |= dict.fromkeys(("mean", "se", "low", "high"), pl.Float64) | {"runs": pl.Int64}


@dataclass(frozen=True)
class Summary:
    """One figure as it was run; the figure has the panels and algorithms that have results."""

    figure: Figure
    seed: int
    curves: pl.DataFrame  # as of `tables.summary`
    measured: pl.DataFrame
    paired: pl.DataFrame
    code: Mapping[tuple[str, str], tuple[str, ...]]  # panel and algorithm -> fingerprints of the code that ran it
    versions: tuple[str, ...]
    processor: str
    day: str  # the day of the newest run


def of_request(request: FigureRequest, store: Store, *, processor: str) -> Summary | None:
    """The summary of what is stored of a figure; None where nothing is."""
    figure = request.figure
    curves = tables.curves(figure, store, seed=request.seed, codes=request.codes)
    if curves.is_empty():
        return None
    figure = _narrowed(figure, set(curves.select("panel", "algorithm").unique().iter_rows()))
    origin = provenance.of(replace(request, figure=figure), store)
    return Summary(
        figure,
        request.seed,
        _thinned(figure, tables.summary(curves)),
        tables.measured(figure, curves),
        tables.paired(figure, curves),
        origin.codes,
        origin.versions,
        processor,
        origin.created[1].partition(" ")[0] if origin.created else "",
    )


def joined(new: Summary, old: Summary) -> tuple[Summary, list[str]]:
    """The new one with the panels of the old one that it lacks or has less of, and a sentence on each of the latter.

    It has less of a panel where it lacks an algorithm, or has fewer runs of one. Another seed replaces all.
    """
    if old.seed != new.seed:
        return new, []
    there = {panel.name for panel in new.figure.panels}
    less = [panel.name for panel in old.figure.panels if panel.name in there and _less(new, old, panel.name)]
    kept = [panel.name for panel in old.figure.panels if panel.name not in there or panel.name in less]
    taken = [panel for panel in new.figure.panels if panel.name not in less]
    order = [panel.name for panel in FIGURES[new.figure.name].panels]
    of_both = [*taken, *(panel for panel in old.figure.panels if panel.name in kept)]

    def both(name: str) -> pl.DataFrame:
        earlier = getattr(old, name)
        later = getattr(new, name).cast(dict(earlier.schema)).select(earlier.columns)
        in_kept = pl.col("panel").is_in(kept)
        return pl.concat([later.filter(~in_kept), earlier.filter(in_kept)])

    words = f"keeps its earlier summary, which has more runs or algorithms: remove {new.figure.name}.json to leave it"
    summary = Summary(
        replace(new.figure, panels=tuple(sorted(of_both, key=lambda panel: order.index(panel.name)))),
        new.seed,
        both("curves"),
        both("measured"),
        both("paired"),
        {place: of for place, of in new.code.items() if place[0] not in kept}
        | {place: of for place, of in old.code.items() if place[0] in kept},
        tuple(dict.fromkeys(old.versions + new.versions)) if kept else new.versions,
        "; ".join(dict.fromkeys((old.processor, new.processor))) if kept else new.processor,
        max(old.day, new.day) if taken else old.day,
    )
    return summary, [f"{new.figure.name}: the panel {name} {words}." for name in less]


def _less(new: Summary, old: Summary, panel: str) -> bool:
    """Whether the new one lacks an algorithm of the panel, or has fewer runs of one."""
    runs = {row["algorithm"]: row["runs"] for row in new.measured.filter(panel=panel).iter_rows(named=True)}
    rows = old.measured.filter(panel=panel).iter_rows(named=True)
    return any(runs.get(row["algorithm"], 0) < row["runs"] for row in rows)


def with_earlier(summary: Summary, folder: Path) -> tuple[Summary, list[str]]:
    """As of `joined`, with the earlier one in the folder; the summary alone where there is none that holds today."""
    try:
        return joined(summary, read(folder / f"{summary.figure.name}.json"))
    except (FileNotFoundError, ValueError):  # there is none, or its panels have other settings by now
        return summary, []


def write(summary: Summary, folder: Path) -> Path:
    """Write it as NAME.json."""
    figure = summary.figure
    head = {"figure": figure.name} | {name: getattr(summary, name) for name in ("seed", "versions", "processor")}
    head["made"] = summary.day
    panels = [
        {"panel": panel.name, "rounds": panel.rounds, "env": dict(panel.env)}
        | ({} if panel.preset == PAPER else {"preset": panel.preset})
        | {"code": _codes(summary, panel)}
        for panel in figure.panels
    ]
    curves = summary.curves.group_by("panel", "algorithm", "runs", maintain_order=True).agg(pl.all())
    frames = {"curves": curves, "measured": summary.measured, "paired": summary.paired}
    parts = {"panels": panels} | {name: frame.to_dicts() for name, frame in frames.items()}
    lines = [f"{json.dumps(k)}: {_line(v)}" for k, v in head.items()]
    lines += [f"{json.dumps(k)}: [\n" + ",\n".join(map(_line, rows)) + "\n]" for k, rows in parts.items()]
    return files.text(folder / f"{figure.name}.json", "{\n" + ",\n".join(lines) + "\n}\n")


def read(path: Path) -> Summary:
    """The summary in a file. Raises ValueError where it is none, or where its figure has other settings by now."""
    try:
        data = json.loads(path.read_text("utf-8"))
        name, panels = data["figure"], {panel["panel"]: panel for panel in data["panels"]}
        curves = pl.concat([_curve(line) for line in data["curves"]])
        measured = pl.DataFrame(data["measured"], schema=tables.MEASURED, orient="row")
        paired = pl.DataFrame(data["paired"], schema=tables.PAIRED, orient="row")
        more = (tuple(data["versions"]), data["processor"], data["made"])
    except (ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        raise ValueError(f"{path} is no summary of a figure ({error!r}): make it anew with 'dither gallery'") from None
    errors.among("figure", name, FIGURES)
    whole = {panel.name: panel for panel in FIGURES[name].panels}
    for one, panel in panels.items():
        here = whole.get(one)
        how = None if here is None else (here.rounds, here.preset)
        if here is None or how != (panel["rounds"], panel.get("preset", PAPER)) or not _within(panel["env"], here.env):
            raise ValueError(
                f"{path}: the panel {one} was run with other settings than {name} has now: run it again, and then "
                f"'dither gallery'"
            )
    chosen = tuple(replace(whole[one], algorithms=specs(*panel["code"])) for one, panel in panels.items())
    code = {(one, a): tuple(codes) for one, panel in panels.items() for a, codes in panel["code"].items()}
    figure = replace(FIGURES[name], panels=chosen)
    return Summary(figure, data["seed"], curves, measured, paired, code, *more)


def _within(env: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether the other environment has all of these settings."""
    return env.items() <= dict(other).items()


def lacking(figure: Figure) -> Iterator[tuple[str, list[str]]]:
    """Panel, and the algorithms that the whole figure has there and this one lacks."""
    there = {(panel.name, str(spec)) for panel in figure.panels for spec in panel.algorithms}
    for panel in FIGURES[figure.name].panels:
        missing = [str(spec) for spec in panel.algorithms if (panel.name, str(spec)) not in there]
        if missing:
            yield panel.name, missing


def _codes(summary: Summary, panel: Panel) -> dict[str, tuple[str, ...]]:
    return {name: summary.code[panel.name, name] for name in map(str, panel.algorithms)}


def _curve(line: Mapping[str, Any]) -> pl.DataFrame:
    """One line of the curves as rows: what is no list is the same in all of them."""
    return pl.DataFrame({name: line[name] for name in _CURVES}, schema=_CURVES, strict=False)


def _narrowed(figure: Figure, there: set[tuple[str, str]]) -> Figure:
    """The figure with the panels and algorithms that are there."""
    panels = (
        replace(panel, algorithms=tuple(spec for spec in panel.algorithms if (panel.name, str(spec)) in there))
        for panel in figure.panels
    )
    return replace(figure, panels=tuple(panel for panel in panels if panel.algorithms))


def _thinned(figure: Figure, rows: pl.DataFrame) -> pl.DataFrame:
    """At most `ROUNDS` rounds of each panel, spread evenly over those recorded, and those where it is compared.

    Where the horizontal axis is not the round, the horizon alone.
    """
    frames = []
    for panel in figure.panels:
        mine = rows.filter(panel=panel.name)
        recorded, ends = mine["round"].unique().sort().to_numpy(), published.ends(figure, panel)
        rounds = _spread(recorded) if figure.x == "round" else np.array([panel.rounds])
        frames.append(mine.filter(pl.col("round").is_in(np.union1d(rounds, ends).tolist())))
    return pl.concat(frames)


def _spread(recorded: np.ndarray) -> np.ndarray:
    """Of the recorded rounds (P,), every k-th, and those next to even steps."""
    half = ROUNDS // 2
    even = np.searchsorted(recorded, np.linspace(recorded[0], recorded[-1], half))
    return np.union1d(recorded[np.linspace(0, len(recorded) - 1, half).round().astype(int)], recorded[even])


def _line(value: Any) -> str:
    return json.dumps(_short(value), ensure_ascii=False)


def _short(value: Any) -> Any:
    """The value with numbers of `DIGITS` digits."""
    if isinstance(value, Mapping):
        return {k: _short(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_short(v) for v in value]
    if isinstance(value, float):
        x = float(f"{value:.{DIGITS}g}")
        return int(x) if x.is_integer() else x
    return value
