"""The HTML page of an evaluation, one file that needs no other; and the files of `--out`."""

from pathlib import Path
from typing import Any

import polars as pl

from dither.base import drawing, files
from dither.cli import picture, sheets, template
from dither.ope import verdicts
from dither.ope.candidates import LOGGING
from dither.ope.evaluation import EvaluationNumbers


def html(found: EvaluationNumbers, *, log: str, command: str) -> str:
    """The page. log : its name; command : what was run."""
    return template.page(
        "page.html.jinja",
        filters={"estimate": verdicts.estimate, "difference": verdicts.difference, "named": verdicts.named},
        found=found,
        log=log,
        command=command,
        logging=LOGGING,
        verdicts=verdicts.verdicts(found),
        notes=verdicts.notes(found),
        picture=template.embedded(picture.draw(found)) if found.policies else None,
    )


def tables_and_picture(found: EvaluationNumbers, folder: Path) -> list[Path]:
    """The tables as Parquet and CSV, and the picture, to a folder."""
    made: list[Path] = []
    frames = {"estimates": sheets.estimates(found), "differences": sheets.differences(found)}
    if found.periods:
        frames["periods"] = sheets.periods(found)
    for name, frame in frames.items():
        made += [_frame(frame, folder / f"{name}.{suffix}") for suffix in ("parquet", "csv")]
    return [*made, drawing.save(picture.draw(found), folder / "evaluation.png")] if found.policies else made


def _frame(frame: pl.DataFrame, path: Path) -> Path:
    write_to: Any = frame.write_parquet if path.suffix == ".parquet" else frame.write_csv
    files.replace(path, write_to, parents=True)
    return path
