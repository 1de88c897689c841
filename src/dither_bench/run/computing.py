"""A block is computed: simulated by whoever has it, and stored by the command that asked."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl

from dither.base import errors
from dither.base.parts import refresh
from dither.simulation.simulate import configured, recorded, simulate
from dither_bench.define import published
from dither_bench.define.environments import build
from dither_bench.keep import code
from dither_bench.keep.store import Made, Store, made_here
from dither_bench.plan.plan import Block, stretches


class OfAlgorithm(NamedTuple):
    """What a block has of one algorithm."""

    regret: np.ndarray  # (R, P)
    realised: np.ndarray  # (R, P)
    model: str  # as it was configured
    policy: str


class Computed(NamedTuple):
    """The results of a block."""

    block: Block
    rounds: np.ndarray  # (P,)
    rows: dict[str, OfAlgorithm]  # name of an algorithm -> what it did
    origin: Made  # where and when


def check_code(block: Block) -> None:
    """Raise ValueError unless the code that would run here is the code that the block was asked of.

    Another process reads the sources later than the command, and another machine may have others.
    """
    refresh()  # it may have loaded the user's files for an earlier command
    here = code.fingerprints(block.cells.values())
    if any(here[key] not in (None, codes[0]) for key, codes in block.codes.items()):
        names = errors.listed(list(block.cells))
        raise ValueError(
            f"a worker has other code of {names} than this command: it was changed while the command ran, or the "
            "worker's machine has another version. Start the command again, with the same code everywhere"
        )


def compute(block: Block, *, tell: Callable[[float], None] = lambda part: None) -> Computed:
    """Simulate a block. `tell` is called with the share that is done."""
    env, rounds = build(block.panel.env), block.panel.rounds
    specs = {name: cell.algorithm for name, cell in block.cells.items()}
    with threadpoolctl.threadpool_limits(1):  # BLAS has one thread: the matrices are small, and sums keep their order
        results = simulate(
            env,
            specs,
            runs=block.runs,
            rounds=rounds,
            record=recorded(rounds).tolist() + sorted(published.marks(block.panel)),
            seed=next(iter(block.cells.values())).seed,
            on_progress=lambda done, total: tell(done / total),
        )
    rows = {}
    for i, (name, spec) in enumerate(specs.items()):
        model, policy = configured(spec, env, rounds=rounds)
        rows[name] = OfAlgorithm(results.regret[i], results.realised[i], repr(model), repr(policy))
    return Computed(block, results.rounds, rows, made_here())


def keep(store: Store, computed: Computed) -> None:
    """Store the results of a block: a file for each algorithm and each `size` runs."""
    block = computed.block
    for name, cell in block.cells.items():
        rows = computed.rows[name]
        how: Any = dict(code=block.codes[cell.key][0], origin=computed.origin, model=rows.model, policy=rows.policy)
        for runs in stretches(set(block.runs), block=block.size):
            here = slice(runs.start - block.runs.start, runs.stop - block.runs.start)
            regrets: Any = dict(regret=rows.regret[here], realised=rows.realised[here])
            store.write(cell, runs, rounds=computed.rounds, **regrets, **how)
