"""What the commands about a ledger take alike: which one, who changes it, and NAME=VALUE."""

from collections.abc import Iterable
from typing import Annotated, TypeAlias

import typer

Home: TypeAlias = Annotated[str, typer.Argument(metavar="HOME", help="SQLite file of a ledger, or its PostgreSQL URL.")]
Author: TypeAlias = Annotated[
    str | None, typer.Option(help="Who says so, for the event.", show_default="the user of this process")
]


def pair(text: str, form: str) -> tuple[str, str]:
    """A name and its value. form : how it is typed, for errors

    Raises ValueError where one of them is missing.
    """
    name, mark, value = text.partition("=")
    if not mark or not value or not name.strip():
        raise ValueError(f"write {form}, got {text!r}")
    return name.strip(), value


def pairs(texts: Iterable[str], form: str) -> dict[str, str]:
    """Names and their values. Raises ValueError for what `pair` refuses, and for a name that comes twice."""
    values: dict[str, str] = {}
    for name, value in (pair(text, form) for text in texts):
        if name in values:
            raise ValueError(f"{name} is given twice: write {form} once for each name")
        values[name] = value
    return values
