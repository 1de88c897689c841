"""What there is, made from the package's own tables: words for the commands' help, and the page docs/tables.md.

Nothing is listed here by hand. A new entry of a table shows in the help and, after `make tables`, on the page.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from dither import log, models, policies
from dither.algorithms import ALGORITHMS
from dither.ope.contributions import ESTIMATORS, find
from dither.ope.judge import INTERVALS


class Table(NamedTuple):
    """Rows under a title. The first column holds names."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def either(names: Iterable[str]) -> str:
    """Names in a sentence: "a, b or c"."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def estimators() -> str:
    """The estimators as the command line writes them, by whether they need reward predictions."""
    plain, fitted, past = (
        ", ".join(_asked(name) for name in ESTIMATORS if find(name).predicts is one) for one in (False, True, None)
    )
    return f"{plain}; with predictions {fitted}; with or without, on the log of a policy that learnt, {past}"


def intervals() -> str:
    """The names of the intervals."""
    return either(INTERVALS)


def formats() -> str:
    """The formats of logs by name, each with what it is."""
    return "; ".join(f"{name}, {form.words}" for name, form in log.FORMATS.items())


def tables() -> list[Table]:
    """All tables of the package that a user can choose from."""
    from dither.cli.app import COMMANDS  # which knows every command, and imports none
    from dither.experiments.define.environments import ENVIRONMENTS
    from dither.experiments.define.figures import FIGURES

    return [
        algorithms(),
        Table("Policies", ("name", "what"), _classes(policies, [a.policy for a in ALGORITHMS.values()])),
        Table("Models", ("name", "what"), _classes(models, [a.model for a in ALGORITHMS.values()])),
        Table(
            "Environments",
            ("name", "settings", "what"),
            [(name, _settings(kind), _first(kind)) for name, kind in ENVIRONMENTS.items()],
        ),
        Table(
            "Estimators",
            ("name", "as `dither evaluate` takes it", "reads of each row", "needs reward predictions"),
            [
                (
                    name,
                    _asked(name),
                    find(name).reads,
                    {True: "yes", False: "no", None: "if given"}[find(name).predicts],
                )
                for name in ESTIMATORS
            ],
        ),
        Table("Formats of logs", ("name", "what"), [(name, entry.words) for name, entry in log.FORMATS.items()]),
        Table(
            "Figures",
            ("name", "what", "panels", "algorithms"),
            [
                (name, figure.title, str(len(figure.panels)), str(len(figure.algorithms)))
                for name, figure in FIGURES.items()
            ],
        ),
        Table("Commands", ("name", "example"), [(name, entry.example or "") for name, entry in COMMANDS.items()]),
    ]


def algorithms() -> Table:
    """The algorithms by where they are random (paper, Table A.1 and more)."""
    rows = [
        (name, a.bound or "–", a.perturbs, ", ".join(a.needs), a.propensity, a.source) for name, a in ALGORITHMS.items()
    ]
    columns = ("algorithm", "regret bound", "random in", "needs of a model", "propensity", "source")
    return Table("Algorithms", columns, rows)


def page() -> str:
    """docs/tables.md."""
    lines = ["# What there is", "", "Made from the tables of the package by `make tables`; a test compares them."]
    for table in tables():
        lines += ["", f"## {table.title}", "", _row(table.columns), _row("---" for _ in table.columns)]
        lines += [_row(row) for row in table.rows]
    return "\n".join(lines) + "\n"


def _classes(package: Any, used: Iterable[Any]) -> list[tuple[str, str]]:
    """The classes that a package exports, and the others that algorithms use, each with its first sentence."""
    found = {name: getattr(package, name) for name in package.__all__} | {kind.__name__: kind for kind in used}
    return [(name, _first(kind)) for name, kind in sorted(found.items())]


def _asked(estimator: str) -> str:
    """An estimator as the command line takes it: NAME, or NAME:SETTING."""
    setting = find(estimator).setting
    return estimator if setting is None else f"{estimator}:{setting[0].upper()}"


def _settings(kind: Callable[..., Any]) -> str:
    return ", ".join(inspect.signature(kind).parameters)


def _first(thing: Any) -> str:
    """The first sentence of a docstring."""
    return " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    print(page(), end="")
