"""The parts by name, how much each runs by default, and the files that they become."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import polars as pl

from dither.base import drawing, errors, files
from dither_bench.theory import coverage, illustrations, kappas, optimistic, slopes, width
from dither_bench.theory.part import Measurement, Row
from dither_bench.theory.play import Size

MEASURED: dict[str, tuple[Callable[..., Measurement], Size]] = {
    "coverage": (coverage.measure, Size(runs=60, rounds=200)),
    "optimism": (optimistic.measure, Size(runs=40, rounds=300)),
    "width": (width.measure, Size(runs=20, rounds=100, arms=100)),
    "slopes": (slopes.measure, Size(runs=20, rounds=1000)),
    "curvature": (kappas.measure, Size(runs=20, rounds=300)),
}
DRAWN: dict[str, Callable[[int], Measurement]] = {"fig1": illustrations.fig1, "fig2a": illustrations.fig2a}
NAMES = (*MEASURED, *DRAWN)


def check(names: Iterable[str], *, more: int, seed: int) -> tuple[str, ...]:
    """The names in the order of `NAMES`; none stands for all. Raises LookupError or ValueError before anything runs."""
    errors.at_least("more", more, 1)
    errors.at_least("seed", seed, 0)
    chosen = list(names) or list(NAMES)
    for name in chosen:
        errors.among("part of the theory", name, NAMES)
    return tuple(name for name in NAMES if name in chosen)


def measure(name: str, *, seed: int = 0, more: int = 1, size: Size | None = None) -> Measurement:
    """Run one part. `more` multiplies its runs, and `size` stands in place of its default size."""
    if name in DRAWN:
        return DRAWN[name](seed)
    function, usual = MEASURED[name]
    size = size or usual
    return function(size._replace(runs=size.runs * more), seed=seed)


def table(parts: Sequence[Measurement]) -> pl.DataFrame:
    """All rows as a frame with the columns part, setting, quantity, value and theory."""
    schema = dict(zip(Row._fields, [pl.String] * 3 + [pl.Float64] * 2, strict=True))
    return pl.DataFrame([row for part in parts for row in part.rows], schema=schema, orient="row")


def write(parts: Sequence[Measurement], out: Path) -> list[Path]:
    """Write a PNG for each part, the table as CSV and as Parquet, and a page that shows everything. -> the paths."""
    frame = table(parts)
    paths = [drawing.save(part.canvas, out / f"{part.name}.png") for part in parts]
    for name, writer in (("theory.csv", frame.write_csv), ("theory.parquet", frame.write_parquet)):
        files.replace(out / name, writer, parents=True)
        paths.append(out / name)
    return [*paths, files.text(out / "theory.md", page(parts))]


def page(parts: Sequence[Measurement]) -> str:
    """The page, as Markdown: for every part what was found, its picture and its numbers."""
    lines = ["# The paper's analysis, measured", ""]
    for part in parts:
        lines += [f"## {part.title}", "", *(f"- {sentence}" for sentence in part.says), ""]
        lines += [
            f"![{part.name}]({part.name}.png)",
            "",
            "| setting | quantity | value | theory |",
            "|---|---|---:|---:|",
        ]
        for row in part.rows:
            cells = (cell(row.setting), cell(row.quantity), number(row.value), number(row.theory))
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def number(x: float | None) -> str:
    """x to four digits; an empty text for None."""
    return "" if x is None else f"{x:.4g}"


def cell(text: str) -> str:
    """The text with its bars escaped, because a bar would end the cell."""
    return text.replace("|", "\\|")
