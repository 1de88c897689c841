"""The page docs/tables.md, made from the tables of the package and of the bench.

Nothing is listed here by hand. A new entry of a table shows on the page after `make tables`.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from dither import log, models, policies
from dither.algorithms import ALGORITHMS
from dither.cli import inventory
from dither.cli.app import COMMANDS
from dither.ope.contributions import ESTIMATORS, find
from dither_bench.define.environments import ENVIRONMENTS
from dither_bench.define.figures import FIGURES


def tables() -> list[inventory.Listing]:
    """All tables of the package that a user can choose from."""
    return [
        inventory.algorithms(),
        inventory.Listing("Policies", ("name", "what"), _classes(policies, [a.policy for a in ALGORITHMS.values()])),
        inventory.Listing("Models", ("name", "what"), _classes(models, [a.model for a in ALGORITHMS.values()])),
        inventory.Listing(
            "Environments",
            ("name", "settings", "what"),
            [(name, _settings(kind), _first(kind)) for name, kind in ENVIRONMENTS.items()],
        ),
        inventory.Listing(
            "Estimators",
            ("name", "as `dither evaluate` takes it", "reads of each row", "needs reward predictions"),
            [
                (
                    name,
                    inventory.asked(name),
                    find(name).reads,
                    {True: "yes", False: "no", None: "if given"}[find(name).predicts],
                )
                for name in ESTIMATORS
            ],
        ),
        inventory.Listing(
            "Formats of logs", ("name", "what"), [(name, entry.words) for name, entry in log.FORMATS.items()]
        ),
        inventory.Listing(
            "Figures",
            ("name", "what", "panels", "algorithms"),
            [
                (name, figure.title, str(len(figure.panels)), str(len(figure.algorithms)))
                for name, figure in FIGURES.items()
            ],
        ),
        inventory.Listing(
            "Commands", ("name", "example"), [(name, entry.example or "") for name, entry in COMMANDS.items()]
        ),
    ]


def page() -> str:
    """docs/tables.md."""
    lines = ["# What there is", "", "Made from the tables of the package by `make tables`; a test compares them."]
    for table in tables():
        lines += ["", f"## {table.title}", "", _row(table.columns), _row("---" for _ in table.columns)]
        lines += [_row(row) for row in table.rows]
    return "\n".join(lines) + "\n"


def _classes(package: Any, used: Iterable[Any]) -> list[tuple[str, str]]:
    """The classes that a package exports, and the others that algorithms use, each with its first sentence."""
    kinds = {name: getattr(package, name) for name in package.__all__} | {kind.__name__: kind for kind in used}
    return [(name, _first(kind)) for name, kind in sorted(kinds.items())]


def _settings(kind: Callable[..., Any]) -> str:
    return ", ".join(inspect.signature(kind).parameters)


def _first(thing: Any) -> str:
    """The first sentence of a docstring."""
    return " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    print(page(), end="")
