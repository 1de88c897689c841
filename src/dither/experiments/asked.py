"""What was asked for in a folder of results: one small JSON file a request, so that a report knows what to show.

Requests add up: panels and algorithms asked for one after another stand in one figure. A panel that was asked for
again in another setting (other rounds), or a figure with another seed, replaces the earlier one.
"""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from dither import files
from dither.experiments.figures import FIGURES, from_data, to_data
from dither.experiments.panels import Figure, Panel

FOLDER = "asked"


def record(out: Path, figure: Figure, *, seed: int) -> None:
    """Remember that the figure was asked for."""
    text = json.dumps({"seed": seed, "figure": to_data(figure)}, indent=1, ensure_ascii=False)
    name = f"{figure.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.json"
    files.replace(out / FOLDER / name, lambda file: file.write(text.encode()), parents=True)


def figures(out: Path) -> list[tuple[Figure, int]]:
    """The figures asked for in the folder, each once, with its seed."""
    found: dict[str, tuple[Figure, int]] = {}
    for path in sorted((out / FOLDER).glob("[!.]*.json"), key=lambda path: path.stat().st_mtime_ns):
        try:
            request = json.loads(path.read_text(encoding="utf-8"))
            figure, seed = from_data(request["figure"]), request["seed"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is not a request of this program ({error!r}): move it away") from None
        before = found.get(figure.name)
        found[figure.name] = (_joined(before[0], figure) if before and before[1] == seed else figure, seed)
    return [found[name] for name in sorted(found, key=_place(FIGURES))]


def _joined(old: Figure, new: Figure) -> Figure:
    panels: dict[str, Panel] = {panel.name: panel for panel in old.panels}
    known = FIGURES.get(new.name, new)
    for panel in new.panels:
        had = panels.get(panel.name, panel)
        names = panel.algorithms
        if (had.env, had.rounds) == (panel.env, panel.rounds):
            names = tuple(sorted(dict.fromkeys(had.algorithms + names), key=_place(known.algorithms)))
        panels[panel.name] = replace(panel, algorithms=names)
    order = _place([panel.name for panel in known.panels])
    return replace(new, panels=tuple(panels[name] for name in sorted(panels, key=order)))


def _place(known):
    """A sorting key: the place in `known`, and what is not in it last (sorting is stable)."""
    places = {name: i for i, name in enumerate(known)}
    return lambda name: places.get(name, len(places))
