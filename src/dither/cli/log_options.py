"""The options of `evaluate` and `tune` that say which log is read and how, and what they mean as they are typed."""

import functools
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from dither.cli import inventory
from dither.cli.ledger_options import pairs

Given = functools.partial(typer.Option, show_default=False)  # an option without a default of its own
RULES = {"error": "error", "leave-out": "leave out"}  # as typed -> as `Logged.usable` takes it
LogPath = Annotated[
    str,
    typer.Argument(
        metavar="LOG", help="Parquet or CSV file, a folder of Parquet parts; or a ledger: its file, or its URL."
    ),
]


@dataclass(frozen=True)
class LogReading:
    """How a log is read."""

    format: Annotated[str, typer.Option(help=f"{inventory.formats()}.")] = "dither"
    option: Annotated[
        list[str] | None,
        Given(
            "--with",
            metavar="NAME=VALUE",
            help="An option of the format, as its reader in dither.log takes it: malformed=leave-out, cost=original, "
            "K=10, features=age,hour, id=event; may be repeated.",
        ),
    ] = None
    arm: Annotated[str | None, Given(help="Column of the arm shown, if not arm.")] = None
    propensity: Annotated[str | None, Given(help="Column of its probability, if not propensity.")] = None
    reward: Annotated[str | None, Given(help="Column of the reward, if not reward.")] = None
    kind: Annotated[
        str | None,
        typer.Option(
            help="Kind of the propensities, for a table without propensity_kind: exact, monte_carlo or estimated.",
            show_default="exact",
        ),
    ] = None
    arms: Annotated[int | None, Given(help="Number of arms, where the log does not say it.")] = None
    missing: Annotated[
        str, typer.Option(help="Rows without a reward: error, leave-out, or the number to take for it.")
    ] = "error"
    invalid: Annotated[str, typer.Option(help="Rows with impossible values: error or leave-out.")] = "error"
    duplicates: Annotated[str, typer.Option(help="Rows with the id of an earlier row: error or leave-out.")] = "error"

    @property
    def source(self) -> dict[str, Any]:
        """The settings of a `dither.log.sources.LogSource`."""
        settings = pairs(self.option or [], "--with NAME=VALUE")
        names = ("format", "arm", "propensity", "reward", "kind", "arms")
        return {name: getattr(self, name) for name in names} | {"options": settings}

    @property
    def usable(self) -> dict[str, Any]:
        """The arguments of `Logged.usable`."""
        words, text = {**RULES, "bounds": "bounds"}, self.missing
        try:
            number: str | float = words[text] if text in words else float(text)
        except ValueError:
            listed = ", ".join(RULES)
            raise ValueError(
                f"--missing must be {listed} or a finite number, or bounds; got {self.missing!r}"
            ) from None
        rules = {"invalid": self.invalid, "duplicates": self.duplicates}
        for name, text in rules.items():
            if text not in RULES:
                raise ValueError(f"--{name} must be {' or '.join(RULES)}, got {text!r}")
        return {"missing": number} | {name: RULES[text] for name, text in rules.items()}
