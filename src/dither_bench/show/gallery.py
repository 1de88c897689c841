"""The gallery: a page with the picture and the table of every figure, ours beside what is published.

The page and the pictures are made from the summaries of a folder (`summaries`), so they can be made again without a
run. A picture carries the digest of what is drawn, since its bytes depend on fonts and on the version of matplotlib.
"""

import hashlib
import json
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from matplotlib.figure import Figure as Canvas

from dither.base import drawing, errors, files, templates
from dither_bench.define.figures import FIGURES
from dither_bench.define.panels import Figure, Panel, reference
from dither_bench.judge import duels, profiles, ratios, tables, words
from dither_bench.show import bake_files, bake_summary, made_elsewhere, plots, profile_plots, summaries
from dither_bench.show.bake_summary import NAME as BAKE
from dither_bench.show.bake_summary import BakeSummary
from dither_bench.show.looks import translations
from dither_bench.show.pictures import PictureLook
from dither_bench.show.summaries import Summary
from dither_bench.theory import catalogue
from dither_bench.theory.part import Measurement

PAGE = "README.md"  # what a folder shows first on most hosts
REASONS = "reasons.toml"  # beside the summaries: figure -> why something was not run; written by who runs
DPI = 80
DIGITS = 6  # of the numbers in a digest
FAR = 3.0  # times the reference's regret: where the profile of a bake-off ends
MANY = 6  # panels at most that are columns of a table
PLACES = ("fig1", "fig2a", *FIGURES)  # the order of the page
VALUES = (ratios.REPRODUCED, ratios.DIFFERS, ratios.OPEN, ratios.UNSURE)
ORDERS = ("agrees", "disagrees", ratios.OPEN)
MARKS = {ratios.REPRODUCED: " =", ratios.DIFFERS: " ≠"}  # behind a value


class TableColumn(NamedTuple):
    """What a table compares: a panel at a round."""

    panel: Panel
    round: int


def write(folder: Path) -> list[Path]:
    """Make the page and the pictures from the summaries in the folder. -> the paths"""
    every, bake = read(folder), read_bake(folder)
    if not every and bake is None:
        raise ValueError(f"{folder} holds no summaries: name the folder of results to make them from")
    parts = illustrations()
    paths = [_picture(part.canvas, folder / f"{part.name}.png", numbers=rows(part)) for part in parts]
    for summary in every:
        canvas = picture(summary)
        paths.append(_picture(canvas, folder / f"{summary.figure.name}.png", digest=digest(canvas)))
    if bake is not None:
        canvas = profile(bake)
        paths.append(_picture(canvas, folder / f"{BAKE}.png", digest=digest(canvas)))
        wins = bake_files.matrix(bake.figure, bake.losses, PictureLook())
        paths.append(_picture(wins, folder / f"{BAKE}-wins.png", numbers=counts(bake)))
    more = {"reasons": reasons(folder), "elsewhere": made_elsewhere.read(folder)}
    return [*paths, files.text(folder / PAGE, page(every, parts, bake=bake, **more))]


def read(folder: Path) -> list[Summary]:
    """The summaries in the folder, in the order of the figures."""
    every = [summaries.read(path) for path in folder.glob("*.json") if path.stem != BAKE]
    return sorted(every, key=lambda summary: PLACES.index(summary.figure.name))


def read_bake(folder: Path) -> BakeSummary | None:
    """The bake-off in the folder; None where it has none."""
    path = folder / f"{BAKE}.json"
    return bake_summary.read(path) if path.exists() else None


def profile(bake: BakeSummary) -> Canvas:
    """The performance profile of a bake-off, from half the reference's regret to `FAR` times it."""
    scores = bake.scores
    rows = profiles.profile(scores, at=np.geomspace(0.5, FAR, profiles.POINTS))
    return profile_plots.draw(bake.figure, scores, rows, PictureLook())


def counts(bake: BakeSummary) -> list[int]:
    """The numbers of the matrix of a bake-off."""
    return [int(count) for count in duels.matrix(bake.losses).ravel()]


def reasons(folder: Path) -> dict[str, str]:
    """Figure -> why something of it was not run."""
    path = folder / REASONS
    return tomllib.loads(path.read_text("utf-8")) if path.exists() else {}


def illustrations() -> list[Measurement]:
    """The paper's illustrations, which are drawn and not measured."""
    return [catalogue.measure(name) for name in catalogue.DRAWN]


def picture(summary: Summary) -> Canvas:
    """The picture of a figure."""
    return plots.of_summary(summary.figure, summary.curves, PictureLook(names="paper"))


def digest(canvas: Canvas) -> str:
    """16 hexadecimal digits of what is drawn: curves and bands with their looks, and all words."""
    drawn: list[Any] = [canvas.get_suptitle(), [text.get_text() for box in canvas.legends for text in box.get_texts()]]
    for ax in canvas.axes:
        drawn.append([ax.get_visible(), ax.get_title(), ax.get_xlabel(), ax.get_ylabel()])
        for line in ax.lines:
            look = (str(line.get_color()), str(line.get_marker()), str(line.get_linestyle()))
            drawn.append([look, _numbers(line.get_xdata()), _numbers(line.get_ydata())])
        drawn += [_numbers(path.vertices) for band in ax.collections for path in band.get_paths()]
    return hashlib.sha256(json.dumps(drawn, ensure_ascii=False).encode()).hexdigest()[:16]


def rows(part: Measurement) -> list[float]:
    """The numbers of an illustration."""
    return [float(row.value) for row in part.rows]


def _numbers(values: Any) -> list[str]:
    return [f"{x:.{DIGITS}g}" for x in np.asarray(values, dtype=float).ravel()]


def _picture(canvas: Canvas, path: Path, **carried: Any) -> Path:
    return drawing.save(canvas, path, dpi=DPI, metadata={"Description": json.dumps(carried), "Software": None})


def page(
    every: Sequence[Summary],
    parts: Sequence[Measurement],
    *,
    reasons: dict[str, str],
    elsewhere: dict[str, Any] | None = None,
    bake: BakeSummary | None = None,
) -> str:
    """The page, as Markdown. elsewhere : as of `made_elsewhere.read`"""
    env = templates.environment("dither_bench.show", keep_trailing_newline=True)
    there, said = {summary.figure.name for summary in every}, elsewhere or {}
    ours = {(summary.figure.name, *place) for summary in every for place in summary.code}
    beside = {name: made_elsewhere.sentences(said, name, there=ours) for name in FIGURES}
    return env.get_template("gallery.md.jinja").render(
        parts=parts,
        sections=[_section(summary, reasons) for summary in every],
        bake=bake,
        missing=[(figure, reasons.get(name)) for name, figure in FIGURES.items() if name not in there],
        elsewhere=beside,
    )


def _section(summary: Summary, reasons: dict[str, str]) -> dict[str, Any]:
    """What the template shows of a figure."""
    figure = summary.figure
    values = tables.judged(figure, summary.measured)
    gaps = tables.ordered(figure, summary.paired)
    columns = [
        TableColumn(panel, t) for panel in figure.panels for t in sorted(set(values.filter(panel=panel.name)["round"]))
    ]
    return {
        "figure": figure,
        "setting": words.setting(figure.panels[0].env),
        "shared": words.shared(figure),
        "shows": words.SHOWS[figure.shows],
        "runs": words.spread(values["runs"]),
        "rounds": f"{columns[0].round:,}" if len({t for _, t in columns}) == 1 else "",
        "verdicts": _counts(values["value"], VALUES),
        "orders": _counts(gaps["order"], ORDERS),
        "table": list(_table(figure, values, columns)),
        "sentences": list(_sentences(figure, values, gaps, columns)),
        "lacking": _lacking(figure),
        "reason": reasons.get(figure.name),
        "notes": [note.text for note in figure.notes if not note.algorithms],
        "seed": summary.seed,
        "versions": "; ".join(summary.versions),
        "processor": summary.processor,
        "day": summary.day,
    }


def _counts(verdicts: pl.Series, kinds: Sequence[str]) -> str:
    """How often each kind was found, or a dash where nothing was compared."""
    counts = [int((verdicts == kind).sum()) for kind in kinds]
    return ", ".join(map(str, counts)) if any(counts) else "–"


def _table(figure: Figure, values: pl.DataFrame, columns: list[TableColumn]) -> Iterator[list[str]]:
    """Rows of the table, the heads first: algorithms by panels, or turned where the panels are many."""
    shown = translations(figure, "paper")
    cells = {(row["panel"], row["round"], row["algorithm"]): _cell(row) for row in values.iter_rows(named=True)}
    algorithms = [str(spec) for spec in figure.algorithms]
    many = len({t for _, t in columns}) > 1
    heads = [panel.name + f", round {t:,}" * many for panel, t in columns]
    grid = [[cells.get((c.panel.name, c.round, name), "–") for c in columns] for name in algorithms]
    extra = {str(spec) for spec in figure.extra}
    left = [shown[name] + (" (not in the paper)" if name in extra else "") for name in algorithms]
    if len(columns) > MANY:
        heads, left, grid = left, heads, [list(column) for column in zip(*grid, strict=True)]
    yield ["", *heads]
    yield ["---"] * (len(heads) + 1)
    for head, line in zip(left, grid, strict=True):
        yield [head, *line]


def _cell(row: dict[str, Any]) -> str:
    """Ours ± its standard error, and after a bar what is published; = where it is reproduced, ≠ where it differs."""
    ours = words.with_error(row)
    ours = f"**{ours}**" if row["lowest"] else ours
    if row["published"] is None:
        return ours
    return f"{ours} \\| {words.published(row)}" + MARKS.get(row["value"], "")


def _sentences(
    figure: Figure, values: pl.DataFrame, gaps: pl.DataFrame, columns: list[TableColumn]
) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """For every panel and round: its name, what the numbers say, what was not reproduced, what would settle others."""
    shown = translations(figure, "paper")
    values = values.with_columns(pl.col("algorithm").replace(shown))
    gaps = gaps.with_columns(pl.col("algorithm", "reference").replace(shown))
    for panel, t in columns:
        section = words.section(panel, t, values, gaps, reference_as=shown[str(reference(panel))])
        said = f"{section.verdict} {section.collapsed}".strip()
        yield panel.name, said, section.not_reproduced, section.unsettled


def _lacking(figure: Figure) -> str:
    """What the whole figure has and was not run; empty where all was."""
    lacking = list(summaries.lacking(figure))
    every = {panel.name: [str(spec) for spec in panel.algorithms] for panel in FIGURES[figure.name].panels}
    whole = [f"`{panel}`" for panel, missing in lacking if missing == every[panel]]
    parts = [f"the panels {errors.listed(whole)}" if len(whole) > 1 else f"the panel {whole[0]}"] if whole else []
    shown = translations(FIGURES[figure.name], "paper")
    of: dict[tuple[str, ...], list[str]] = {}
    for panel, missing in lacking:
        if missing != every[panel]:
            of.setdefault(tuple(shown[name] for name in missing), []).append(f"`{panel}`")
    for algorithms, panels in of.items():
        where = "" if len(panels) == len(figure.panels) else f" at {errors.listed(panels)}"
        parts.append(errors.listed(list(algorithms)) + where)
    return "; ".join(parts)
