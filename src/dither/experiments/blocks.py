"""Blocks: consecutive runs of some algorithms of one panel. They are the unit of all work.

A block is sent to whoever computes it, here or on another machine, and comes back as rows. The command writes them. So
the machines that compute need no folder in common, and a block that was computed twice is still stored once.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import threadpoolctl

from dither.experiments import asked, code, costs, published, words
from dither.experiments.cells import Cell, of_panel
from dither.experiments.environments import build
from dither.experiments.panels import Figure, Panel
from dither.experiments.store import Made, Store, made_here
from dither.parts import refresh
from dither.simulate import configured, recorded, simulate

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


class Rows(NamedTuple):
    """What a block has of one algorithm."""

    regret: np.ndarray  # (R, P)
    realised: np.ndarray  # (R, P)
    model: str  # as it was configured
    policy: str


class Computed(NamedTuple):
    """The results of a block."""

    block: Block
    rounds: np.ndarray  # (P,)
    rows: dict[str, Rows]  # name of an algorithm -> what it did
    made: Made  # where and when


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
            found = wanted[stretch]
            yield Block(panel, found, {cell.key: codes[cell.key] for cell in found.values()}, stretch, size)


def stretches(runs: set[int], *, block: int) -> list[range]:
    """Consecutive runs, cut at every multiple of `block`."""
    found: list[range] = []
    for run in sorted(runs):
        if found and run == found[-1].stop and run % block:
            found[-1] = range(found[-1].start, run + 1)
        else:
            found.append(range(run, run + 1))
    return found


def check_code(block: Block) -> None:
    """Raise ValueError unless the code that would run here is the code that the block was asked of.

    Another process reads the sources later than the command, and another machine may have others.
    """
    refresh()  # it may have loaded the user's files for an earlier command
    for key, found in code.fingerprints(block.cells.values()).items():
        if found is not None and found != block.codes[key][0]:
            names = words.listed(list(block.cells))
            raise ValueError(
                f"a worker has other code of {names} than this command: it was changed while the command ran, or the "
                "worker's machine has another version. Start the command again, with the same code everywhere"
            )


def compute(block: Block, *, tell: Callable[[float], None] = lambda part: None) -> Computed:
    """Simulate a block. `tell` is called with the share that is done."""
    env = build(block.panel.env)
    specs = {name: cell.algorithm for name, cell in block.cells.items()}
    with threadpoolctl.threadpool_limits(1):  # BLAS has one thread: the matrices are small, and sums keep their order
        results = simulate(
            env,
            specs,
            runs=block.runs,
            rounds=block.panel.rounds,
            record=recorded(block.panel.rounds).tolist() + sorted(published.marks(block.panel)),
            seed=next(iter(block.cells.values())).seed,
            on_progress=lambda done, total: tell(done / total),
        )
    rows = {}
    for i, (name, spec) in enumerate(specs.items()):
        model, policy = configured(spec, env, rounds=block.panel.rounds)
        rows[name] = Rows(results.regret[i], results.realised[i], repr(model), repr(policy))
    return Computed(block, results.rounds, rows, made_here())


def keep(store: Store, found: Computed) -> None:
    """Store the results of a block: a file for each algorithm and each `size` runs."""
    block = found.block
    for name, cell in block.cells.items():
        rows = found.rows[name]
        for runs in stretches(set(block.runs), block=block.size):
            here = slice(runs.start - block.runs.start, runs.stop - block.runs.start)
            store.write(
                cell,
                runs,
                code=block.codes[cell.key][0],
                rounds=found.rounds,
                regret=rows.regret[here],
                realised=rows.realised[here],
                made=found.made,
                model=rows.model,
                policy=rows.policy,
            )
