"""The parts by name, how much each runs by default, and the files that they become."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import polars as pl

from dither.base import drawing, errors, files
from dither_bench.theory import coverage, illustrations, kappas, optimistic, slopes, width
from dither_bench.theory.part import Part
from dither_bench.theory.play import Size

MEASURED: dict[str, tuple[Callable[..., Part], Size]] = {
    "coverage": (coverage.measure, Size(runs=60, rounds=200)),
    "optimism": (optimistic.measure, Size(runs=40, rounds=300)),
    "width": (width.measure, Size(runs=20, rounds=100, arms=100)),
    "slopes": (slopes.measure, Size(runs=20, rounds=1000)),
    "curvature": (kappas.measure, Size(runs=20, rounds=300)),
}
DRAWN: dict[str, Callable[[int], Part]] = {"fig1": illustrations.fig1, "fig2a": illustrations.fig2a}
NAMES = (*MEASURED, *DRAWN)


def check(names: Iterable[str], *, more: int, seed: int) -> tuple[str, ...]:
    """The names in the order of `NAMES`; none stands for all. Raises LookupError or ValueError before anything runs."""
    errors.at_least("more", more, 1)
    errors.at_least("seed", seed, 0)
    chosen = list(names) or list(NAMES)
    for name in chosen:
        errors.among("part of the theory", name, NAMES)
    return tuple(name for name in NAMES if name in chosen)


def measure(name: str, *, seed: int = 0, more: int = 1, size: Size | None = None) -> Part:
    """Run one part. `more` multiplies its runs, and `size` stands in place of its default size."""
    if name in DRAWN:
        return DRAWN[name](seed)
    function, usual = MEASURED[name]
    size = size or usual
    return function(size._replace(runs=size.runs * more), seed=seed)


def table(parts: Sequence[Part]) -> pl.DataFrame:
    """All rows as a frame with the columns part, setting, quantity, value and theory."""
    schema = {"part": pl.String, "setting": pl.String, "quantity": pl.String, "value": pl.Float64, "theory": pl.Float64}
    rows = [(r.part, r.setting, r.quantity, float(r.value), r.theory) for part in parts for r in part.rows]
    return pl.DataFrame(rows, schema=schema, orient="row")


def write(parts: Sequence[Part], out: Path) -> list[Path]:
    """Write a PNG for each part, the table as CSV and as Parquet, and a page that shows everything. -> the paths."""
    frame = table(parts)
    written = [drawing.save(part.canvas, out / f"{part.name}.png") for part in parts]
    for path, writer in ((out / "theory.csv", frame.write_csv), (out / "theory.parquet", frame.write_parquet)):
        files.replace(path, writer, parents=True)
        written.append(path)
    text = page(parts)
    files.replace(out / "theory.md", lambda file: file.write(text.encode()), parents=True)
    return [*written, out / "theory.md"]


def page(parts: Sequence[Part]) -> str:
    """The page, as Markdown: for every part what was found, its picture and its numbers."""
    lines = ["# The paper's analysis, measured", ""]
    for part in parts:
        lines += [
            f"## {part.title}",
            "",
            *(f"- {sentence}" for sentence in part.says),
            "",
            f"![{part.name}]({part.name}.png)",
            "",
        ]
        lines += ["| setting | quantity | value | theory |", "|---|---|---:|---:|"]
        lines += [
            f"| {cell(row.setting)} | {cell(row.quantity)} | {number(row.value)} | {number(row.theory)} |"
            for row in part.rows
        ]
        lines.append("")
    return "\n".join(lines)


def number(x: float | None) -> str:
    """x to four digits; an empty text for None."""
    return "" if x is None else f"{x:.4g}"


def cell(text: str) -> str:
    """The text with its bars escaped, because a bar would end the cell."""
    return text.replace("|", "\\|")
