"""What was asked for in a folder of results: one small JSON file a request, so that a report knows what to show.

Requests add up: panels and algorithms that were asked for one after another stand in one figure. If a panel is asked
for again with other rounds, preset or chance, it replaces the earlier panel. If a figure is asked for with another
seed, it replaces the earlier figure. A request also says from which codes it takes results, so a report shows the same
results.

Several commands may work in one folder at once. So each writes its request again when its results are there, and asks
for the figure of its own seed: it shows what it was asked for, whatever others have asked for meanwhile.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dither.base import files
from dither_bench.define.environments import identity
from dither_bench.define.figures import FIGURES, from_data, to_data
from dither_bench.define.panels import Figure, Panel

FOLDER = "asked"


Codes = Mapping[str, Sequence[str]]  # key of a cell -> the codes whose results are taken; the first of them wins


@dataclass(frozen=True)
class FigureRequest:
    """All that was asked of one figure."""

    figure: Figure
    seed: int
    codes: Codes


def record(out: Path, figure: Figure, *, seed: int, codes: Codes | None = None) -> Path | None:
    """Write down that the figure was asked for. -> the file; None where the same was asked for before"""
    request = {"seed": seed, "figure": to_data(figure), "codes": {k: list(v) for k, v in (codes or {}).items()}}
    text = json.dumps(request, indent=1, ensure_ascii=False)
    name = f"{figure.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.json"
    path = out / FOLDER / name
    new = not path.exists()
    files.replace(path, lambda file: file.write(text.encode()), parents=True)
    return path if new else None


def figures(out: Path, *, only: str | None = None, seed: int | None = None) -> list[FigureRequest]:
    """The figures asked for in the folder, each once; or the one of that name, or what was asked of it with that seed.

    seed=None: the seed with which a figure was asked for last
    """
    newest: dict[str, FigureRequest] = {}
    for path in paths(out):
        try:
            request = json.loads(path.read_text(encoding="utf-8"))
            if only not in (None, request["figure"]["name"]) or seed not in (None, request["seed"]):
                continue
            new = FigureRequest(from_data(request["figure"]), request["seed"], dict(request.get("codes", {})))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is not a request of this program ({error!r}): move it away") from None
        old = newest.get(new.figure.name)
        if old is not None and old.seed == new.seed:
            new = FigureRequest(_joined(old.figure, new.figure), new.seed, {**old.codes, **new.codes})
        newest[new.figure.name] = new
    return [newest[name] for name in sorted(newest, key=_place(FIGURES))]


def paths(out: Path) -> list[Path]:
    """The files of the requests, in the order in which they were written."""
    return sorted((out / FOLDER).glob("[!.]*.json"), key=lambda path: path.stat().st_mtime_ns)


def seeds(out: Path, name: str) -> list[int]:
    """The seeds with which the figure was asked for in the folder."""
    texts = (path.read_text(encoding="utf-8") for path in (out / FOLDER).glob(f"{name}-*.json"))
    requests = map(json.loads, texts)
    return sorted({request["seed"] for request in requests if request["figure"]["name"] == name})


def _joined(old: Figure, new: Figure) -> Figure:
    panels: dict[str, Panel] = {panel.name: panel for panel in old.panels}
    whole = FIGURES.get(new.name, new)
    for panel in new.panels:
        had = panels.get(panel.name, panel)
        specs = panel.algorithms
        if _same(had, panel):
            newest = {spec: spec for spec in had.algorithms + specs}  # of equal ones, where a file lies now
            specs = tuple(sorted(newest.values(), key=_place(whole.algorithms)))
        panels[panel.name] = replace(panel, algorithms=specs)
    order = _place([panel.name for panel in whole.panels])
    varied = tuple(dict.fromkeys(old.varied + new.varied))
    return replace(new, varied=varied, panels=tuple(panels[name] for name in sorted(panels, key=order)))


def _same(one: Panel, other: Panel) -> bool:
    """Whether two panels have the same cells, but for algorithms."""
    kinds = [(identity(panel.env), panel.rounds, panel.preset, panel.chance) for panel in (one, other)]
    return kinds[0] == kinds[1]


def _place(names):
    """A sorting key: the place among the names. What is not among them comes last, in the order it had."""
    places = {name: i for i, name in enumerate(names)}
    return lambda name: places.get(name, len(places))
