"""The HTML page of an evaluation, one file that needs no other; and the files of `--out`."""

from pathlib import Path

from dither.base import drawing, files
from dither.cli import picture, sheets, template
from dither.ope import verdicts
from dither.ope.candidates import LOGGING
from dither.ope.evaluation import EvaluationNumbers


def html(evaluation: EvaluationNumbers, *, source: str, command: str) -> str:
    """The page. source : the path of the log; command : what was run."""
    return template.page(
        "page.html.jinja",
        filters={
            "estimate": verdicts.estimate,
            "difference": verdicts.difference,
            "named": verdicts.named,
            "by": verdicts.by,
        },
        evaluation=evaluation,
        source=source,
        command=command,
        logging=LOGGING,
        verdicts=verdicts.verdicts(evaluation),
        notes=verdicts.notes(evaluation),
        picture=template.embedded(picture.draw(evaluation)) if evaluation.policies else None,
    )


def tables_and_picture(evaluation: EvaluationNumbers, folder: Path) -> list[Path]:
    """The tables as Parquet and CSV, and the picture, to a folder."""
    frames = {"estimates": sheets.estimates(evaluation), "differences": sheets.differences(evaluation)}
    if evaluation.periods:
        frames["periods"] = sheets.periods(evaluation)
    paths = []
    for name, frame in frames.items():
        for suffix, write in (("parquet", frame.write_parquet), ("csv", frame.write_csv)):
            paths.append(folder / f"{name}.{suffix}")
            files.replace(paths[-1], write, parents=True)
    if evaluation.policies:
        paths.append(drawing.save(picture.draw(evaluation), folder / "evaluation.png"))
    return paths
