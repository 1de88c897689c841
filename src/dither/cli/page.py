"""The HTML page of an evaluation: one file that needs nothing beside it; and the files of `--out`."""

import base64
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import polars as pl

from dither import _version, drawing, files
from dither.cli import picture, sheets
from dither.ope import verdicts
from dither.ope.candidates import LOGGING
from dither.ope.judge import Evaluation


def html(found: Evaluation, *, log: str, command: str) -> str:
    """The page. log : its name; command : what was run."""
    env = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    env.filters |= {"estimate": verdicts.estimate, "difference": verdicts.difference, "named": verdicts.named}
    template = env.from_string(resources.files("dither.cli").joinpath("page.html.jinja").read_text("utf-8"))
    return template.render(
        found=found,
        log=log,
        command=command,
        logging=LOGGING,
        verdicts=verdicts.verdicts(found),
        notes=verdicts.notes(found),
        picture=base64.b64encode(drawing.png(picture.draw(found))).decode() if found.policies else None,
        version=_version.__version__,
        now=datetime.now(UTC),
    )


def write(path: Path, text: str) -> Path:
    """The page to a file."""
    files.replace(path, lambda file: file.write(text.encode()), parents=True)
    return path


def tables_and_picture(found: Evaluation, folder: Path) -> list[Path]:
    """Both tables as Parquet and CSV, and the picture, to a folder."""
    made: list[Path] = []
    for name, frame in (("estimates", sheets.estimates(found)), ("differences", sheets.differences(found))):
        made += [_frame(frame, folder / f"{name}.{suffix}") for suffix in ("parquet", "csv")]
    return [*made, drawing.save(picture.draw(found), folder / "evaluation.png")] if found.policies else made


def _frame(frame: pl.DataFrame, path: Path) -> Path:
    write_to: Any = frame.write_parquet if path.suffix == ".parquet" else frame.write_csv
    files.replace(path, write_to, parents=True)
    return path
