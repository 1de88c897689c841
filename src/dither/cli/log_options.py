"""The options of `evaluate` and `tune` that say which log is read and how, and what they mean as they are typed."""

import functools
from pathlib import Path
from typing import Annotated, Any

import typer

from dither.cli import inventory

Given = functools.partial(typer.Option, show_default=False)  # an option without a default of its own
RULES = {"error": "error", "leave-out": "leave out"}  # as typed -> as `Logged.usable` takes it

LogPath = Annotated[Path, typer.Argument(metavar="LOG", help="Parquet or CSV file, or a folder of Parquet parts.")]
Format = Annotated[str, typer.Option(help=f"{inventory.formats()}.")]
With = Annotated[
    list[str] | None,
    Given(
        "--with",
        metavar="NAME=VALUE",
        help="An option of the format, as its reader in dither.log takes it: malformed=leave-out, cost=original, "
        "K=10, features=age,hour, id=event; may be repeated.",
    ),
]
Arm = Annotated[str | None, Given(help="Column of the arm shown, if not arm.")]
Propensity = Annotated[str | None, Given(help="Column of its probability, if not propensity.")]
Reward = Annotated[str | None, Given(help="Column of the reward, if not reward.")]
Kind = Annotated[
    str | None,
    typer.Option(
        help="Kind of the propensities, for a table without propensity_kind: exact, monte_carlo or estimated.",
        show_default="exact",
    ),
]
Arms = Annotated[int | None, Given(help="Number of arms, where the log does not say it.")]
Invalid = Annotated[str, typer.Option(help="Rows with impossible values: error or leave-out.")]
Duplicates = Annotated[str, typer.Option(help="Rows with the id of an earlier row: error or leave-out.")]


def settings(texts: list[str] | None) -> dict[str, str]:
    """What --with says."""
    values: dict[str, str] = {}
    for text in texts or []:
        name, mark, value = text.partition("=")
        if not mark or not value or not name.strip():
            raise ValueError(f"write --with NAME=VALUE, got {text!r}")
        if name.strip() in values:
            raise ValueError(f"the option {name.strip()} is given twice with --with")
        values[name.strip()] = value
    return values


def usable(missing: str, **rules: str) -> dict[str, Any]:
    """What --missing, --invalid and --duplicates say, as `Logged.usable` takes it."""
    try:
        number = missing if missing == "bounds" else RULES[missing] if missing in RULES else float(missing)
    except ValueError:
        words = ", ".join(RULES)
        raise ValueError(f"--missing must be {words} or a finite number, or bounds; got {missing!r}") from None
    for name, text in rules.items():
        if text not in RULES:
            raise ValueError(f"--{name} must be {' or '.join(RULES)}, got {text!r}")
    return {"missing": number} | {name: RULES[text] for name, text in rules.items()}
