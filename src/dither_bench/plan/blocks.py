"""Blocks: consecutive runs of some algorithms of one panel. They are the unit of all work.

A block is sent to whoever computes it, here or on another machine, and comes back as rows. The command writes them. So
the machines that compute need no folder in common, and a block that was computed twice is still stored once.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dither_bench.define.panels import Figure, Panel
from dither_bench.keep import asked
from dither_bench.keep.cells import Cell, of_panel
from dither_bench.keep.store import Store
from dither_bench.plan import costs

Runs = Mapping[str, set[int]]  # name of a panel -> its runs


@dataclass(frozen=True)
class Block:
    """Consecutive runs of some algorithms of one panel: computed at once, stored `size` in a file."""

    panel: Panel
    cells: dict[str, Cell]
    codes: asked.Codes
    runs: range
    size: int

    @property
    def counted(self) -> int:
        """Its runs, each counted for every algorithm."""
        return len(self.runs) * len(self.cells)


Seconds = Callable[[Block], float]  # estimated seconds of a block on one core


def seconds(block: Block) -> float:
    """The estimate of module `costs`, which knows the sizes alone."""
    algorithms = [cell.algorithm for cell in block.cells.values()]
    return costs.seconds(block.panel, algorithms=algorithms, runs=len(block.runs))


def missing(
    figure: Figure, store: Store, codes: asked.Codes, *, runs: Runs, seed: int, block: int, size: int
) -> Iterator[Block]:
    """Those of the runs by these codes that the store lacks, in blocks of at most `block`, `size` of them in a file."""
    for panel in figure.panels:
        cells = of_panel(panel, seed=seed)
        wanted: dict[range, dict[str, Cell]] = {}
        for name, cell in cells.items():
            for stretch in stretches(runs[panel.name] - store.runs(cell, codes[cell.key]), block=block):
                wanted.setdefault(stretch, {})[name] = cell
        for stretch in sorted(wanted, key=lambda r: (r.start, r.stop)):
            here = wanted[stretch]
            yield Block(panel, here, {cell.key: codes[cell.key] for cell in here.values()}, stretch, size)


def stretches(runs: set[int], *, block: int) -> list[range]:
    """Consecutive runs, cut at every multiple of `block`."""
    ranges: list[range] = []
    for run in sorted(runs):
        if ranges and run == ranges[-1].stop and run % block:
            ranges[-1] = range(ranges[-1].start, run + 1)
        else:
            ranges.append(range(run, run + 1))
    return ranges
