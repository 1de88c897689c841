"""How long blocks take here: the estimates of `costs`, set right by short real runs on whoever will compute them.

A kind of cell is an algorithm with its solver and preset in a kind of environment. One cell of each kind, the one of
the fewest features, runs as it will run later, and stops after a small share of the time that the kind will take.
`costs` says how the time depends on the number of features and on the round. So

    ratio = (seconds between two looks) / (the same by `costs`)

The algorithms of a block that have the same model are learnt together, which takes less for each. So as many copies of
the cell run as the block has algorithms with that model, and each took its share of the time.

The looks are after the first rounds, in which things are loaded and set up. A kind that takes little time is not worth
a measurement: `costs` alone estimates it. The time is processor time: other programs on the machine do not count.
"""

import collections
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl

from dither.base import arrays
from dither.base.workers import Workers, delayed
from dither.simulation.simulate import configured, simulate
from dither.simulation.world import WorldOfRuns
from dither_bench.define.environments import Outline, build, outline
from dither_bench.keep.store import Cell
from dither_bench.plan import costs
from dither_bench.plan.plan import Block

WORTH = 2.0  # estimated seconds of all cells of a kind, from which on it is measured
SHARE, LEAST, MOST = 0.02, 0.25, 2.0  # it is looked at for this share of them, but so many seconds at least and at most
DRAWN = 64  # rounds whose contexts are drawn to see how long that takes

Kind = tuple[Any, ...]


class Probe(NamedTuple):
    """What is run to measure a kind."""

    kind: Kind
    cell: Cell
    runs: int
    copies: int  # algorithms of its block with the same model
    enough: float = LEAST  # seconds from the first look to the last


@dataclass(frozen=True)
class Speeds:
    """The ratios of kinds, of the drawing of contexts too; 1 for a kind that was not measured."""

    ratios: dict[Kind, float] = field(default_factory=dict)

    def seconds(self, block: Block) -> float:
        """About how many seconds the block takes on one core."""
        env, n = outline(block.panel.env), 1e-6 * len(block.runs)
        total = self.ratios.get(_drawing(block.panel.env), 1.0) * costs.drawing(env, rounds=block.panel.rounds)
        for cell in block.cells.values():
            cost = costs.microseconds(env, cell.algorithm, rounds=block.panel.rounds)
            total += self.ratios.get(kind(cell), 1.0) * cost
        return n * total


def kind(cell: Cell) -> Kind:
    """What cells of the same ratio have in common: all but sizes, seed and settings that are broken numbers."""
    words = tuple((name, value) for name, value in cell.algorithm.settings if not isinstance(value, float))
    return (*_drawing(cell.env), cell.algorithm.name, cell.algorithm.preset, words)


def _drawing(env: Mapping[str, Any]) -> Kind:
    return env["name"], env.get("contexts") is not None


def measure(blocks: Iterable[Block], workers: Workers, *, tell: Callable[[float, float], object]) -> Speeds:
    """The speeds of those who will compute these blocks. `tell` is called with the kinds done and all of them."""
    probes = list(_probes(blocks))
    tell(0, len(probes))
    ratios: dict[Kind, float] = {}
    looks = map(_look, probes) if workers.alone else workers.results(delayed(_look)(probe) for probe in probes)
    for i, (name, drawing, ratio) in enumerate(looks):
        ratios[name] = ratio
        ratios[name[:2]] = drawing
        tell(i + 1, len(probes))
    return Speeds(ratios)


def _probes(blocks: Iterable[Block]) -> Iterable[Probe]:
    """A cell of each kind that is worth it."""
    work: dict[Kind, float] = {}
    least: dict[Kind, Probe] = {}
    for block in blocks:
        env = outline(block.panel.env)
        models = {name: _model(cell, env) for name, cell in block.cells.items()}
        together = collections.Counter(models.values())
        for key, cell in block.cells.items():
            name, n = kind(cell), len(block.runs)
            seconds = 1e-6 * n * costs.microseconds(env, cell.algorithm, rounds=cell.rounds)
            work[name] = work.get(name, 0.0) + seconds
            if name not in least or env.dim < outline(least[name].cell.env).dim:
                least[name] = Probe(name, cell, n, together[models[key]])
    return [
        least[name]._replace(enough=min(max(SHARE * work[name], LEAST), MOST)) for name in work if work[name] >= WORTH
    ]


def _model(cell: Cell, env: Outline) -> str:
    """The model of a cell, in words: equal ones are learnt together."""
    return repr(configured(cell.algorithm, env, rounds=cell.rounds)[0])


class _Enough(Exception):
    """Ends a simulation."""


def _look(probe: Probe) -> tuple[Kind, float, float]:
    """The kind, the ratio of the drawing of its contexts, and its own ratio."""
    cell, runs = probe.cell, probe.runs
    env, sizes = build(cell.env), outline(cell.env)
    looks: list[tuple[int, float]] = []

    def look(done: int, total: int) -> None:
        looks.append((done // runs, time.process_time()))
        if len(looks) > 1 and looks[-1][1] - looks[0][1] > probe.enough:
            raise _Enough

    def by_costs(rounds: int) -> float:
        return costs.microseconds(sizes, cell.algorithm, rounds=rounds)

    with threadpoolctl.threadpool_limits(1):
        drawing = _draw(env, runs, cell.seed)  # microseconds of a round of one run
        with contextlib.suppress(_Enough):
            copies = {str(k): cell.algorithm for k in range(probe.copies)}
            simulate(env, copies, runs=runs, rounds=cell.rounds, seed=cell.seed, on_progress=look)
    (first, start), (last, end) = looks[(len(looks) - 1) // 2], looks[-1]  # later rounds are like those to come
    share = drawing / costs.drawing(sizes, rounds=1)
    if last == first:  # all rounds passed before the second look
        return probe.kind, share, 1.0
    beside = 1e6 * (end - start) / runs - drawing * (last - first)
    return probe.kind, share, max(beside, 0.0) / probe.copies / (by_costs(last) - by_costs(first))


def _draw(env: Any, runs: int, seed: int) -> float:
    """Microseconds that it takes to draw a round of one run."""
    world = WorldOfRuns(env, np.arange(runs), seed, xp=arrays.backend(None), device=None)
    world.advance(DRAWN)
    start = time.process_time()
    world.advance(DRAWN)
    return 1e6 * (time.process_time() - start) / (DRAWN * runs)
