"""A set of comparisons in one file of TOML: each is a panel of one figure, so they have one table, picture and report.

rounds = 2000                          # what stands at the top holds for every comparison that does not say it itself
runs = 20                              # of the whole set
algorithms = ["LinFP", "LinTS"]

[[comparison]]
name = "few features"                  # if left out: the environment and its settings
env = "linear"                         # as --env
with = { dim = 5, arms = 20 }          # its settings, as --with
rounds = 500
reference = "LinFP"
"""

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dither.algorithms import grids
from dither.base import errors
from dither_bench.define import environments, figures
from dither_bench.define.panels import Figure

OF_EACH = {"algorithms": list, "env": str, "with": dict, "rounds": int, "reference": str}
AT_TOP = OF_EACH | {"runs": int, "comparison": list}
IN_ONE = OF_EACH | {"name": str}
KINDS = {list: "a list", str: "a text", dict: "a table, as { dim = 5 }", int: "a whole number"}
ROUNDS, RUNS = 2000, 20


def read(path: str | Path, *, rounds: int | None = None, runs: int | None = None) -> Figure:
    """The figure of the comparisons in a file. rounds, runs : in place of those in the file

    Raises OSError where the file cannot be read, and ValueError, TypeError or LookupError, with the file and the place,
    for what is no set of comparisons.
    """
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML: {error}") from None
    _check(content, AT_TOP, f"{path}")
    every = content.get("comparison", [])
    if not every:
        raise ValueError(f"{path} has no comparison: begin each with a line [[comparison]]")
    usual = {name: value for name, value in content.items() if name in OF_EACH}
    wanted = content.get("runs", RUNS) if runs is None else runs
    errors.at_least("runs", wanted, 1)
    parts = []
    for i, one in enumerate(every):
        place = f"{path}, comparison {i + 1}"
        if not isinstance(one, Mapping):
            raise TypeError(f"{place} is {one!r}: begin each with a line [[comparison]]")
        _check(one, IN_ONE, place)
        try:
            parts.append(_figure(usual | dict(one), rounds=rounds, runs=wanted))
        except (ValueError, TypeError, LookupError) as error:
            error.add_note(place)
            raise
    panels = [panel for part in parts for panel in part.panels]
    names = [panel.name for panel in panels]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{path} has two comparisons called {twice[0]!r}: give one a name of its own, as name = '...'")
    return replace(parts[0], panels=tuple(panels), each=any(part.each for part in parts))


def _figure(one: Mapping[str, Any], *, rounds: int | None, runs: int) -> Figure:
    """The figure of one comparison."""
    algorithms = one.get("algorithms", [])
    if odd := [text for text in algorithms if not isinstance(text, str)]:
        raise TypeError(f"algorithms are texts, as 'LinFP:c=0.3'; got {odd[0]!r}")
    if several := [text for text in algorithms if grids.Grid.parse(text).axes]:
        raise ValueError(f"{several[0]} names several settings: list each, or search for the best with dither compare")
    env = environments.describe(one.get("env", "linear"), **one.get("with", {}))
    T = one.get("rounds", ROUNDS) if rounds is None else rounds
    errors.at_least("rounds", T, 1)
    figure = figures.adhoc(env, algorithms, rounds=T, runs=runs, reference=one.get("reference"))
    if "name" not in one:
        return figure
    (panel,) = figure.panels
    return replace(figure, panels=(replace(panel, name=one["name"]),))


def _check(content: Mapping[str, Any], kinds: Mapping[str, type], place: str) -> None:
    """Raise TypeError for a setting that there is none of, or that has another kind of value."""
    for name, value in content.items():
        if name not in kinds:
            raise errors.unknown_setting(f"setting of a set of comparisons ({place})", name, names=kinds)
        if not isinstance(value, kinds[name]) or isinstance(value, bool):
            raise TypeError(f"{place}: {name} is {KINDS[kinds[name]]}; got {value!r}")
