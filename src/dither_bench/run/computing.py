"""A block is computed by whoever has it, and stored by the command that asked.

Ours are simulated in lockstep. Another library plays the same rounds in its interpreter, and a log is replayed.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl

from dither.algorithms import Spec
from dither.base import errors
from dither.base.parts import refresh
from dither.simulation.simulate import configured, recorded, simulate
from dither_bench.define import published
from dither_bench.define.environments import build
from dither_bench.define.others import OtherLibrary
from dither_bench.define.replayed import ReplayedLog
from dither_bench.keep import code
from dither_bench.keep.store import Made, Store, made_here
from dither_bench.plan.plan import Block, stretches
from dither_bench.run import elsewhere, replaying


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
    """Play a block. `tell` is called with the share that is done."""
    env, rounds = build(block.panel.env), block.panel.rounds
    specs = {name: cell.algorithm for name, cell in block.cells.items()}
    marks = np.union1d(recorded(rounds), sorted(published.marks(block.panel))).astype(np.int64)
    how: Any = dict(runs=block.runs, rounds=rounds, seed=next(iter(block.cells.values())).seed)
    with threadpoolctl.threadpool_limits(1):  # BLAS has one thread: the matrices are small, and sums keep their order
        drawn: Any = dict(chance=block.panel.chance, device=block.panel.device)
        of_specs = regrets(env, specs, marks=marks, tell=tell, **drawn, **how)
    rows = {}
    for name, spec in specs.items():
        (regret, realised), (model, policy) = of_specs[name], configured(spec, env, rounds=rounds)
        rows[name] = OfAlgorithm(regret, realised, repr(model), repr(policy))
    return Computed(block, marks, rows, made_here())


def regrets(
    env: Any,
    agents: Mapping[str, Any],
    *,
    runs: range,
    rounds: int,
    marks: np.ndarray,
    seed: int,
    jobs: int = 1,
    chance: str = "streams",
    device: str | None = None,
    tell: Callable[[float], None] = lambda part: None,
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Label -> cumulative regrets (R, P) of the means and of the rewards at the marks (P,).

    agents : label -> a spec or (model, policy), as `simulate` takes them; of a log that is replayed, specs alone
    chance, device : as `simulate` takes them; a log that is replayed has neither, and other libraries have no device
    """
    how: Any = dict(runs=runs, rounds=rounds, seed=seed)
    if isinstance(env, ReplayedLog):
        return replaying.play(env, agents, marks=marks, tell=tell, **how)
    specs = {label: what for label, what in agents.items() if isinstance(what, Spec)}
    there = {label: spec for label, spec in specs.items() if isinstance(spec.origin, OtherLibrary)}
    here = {label: what for label, what in agents.items() if label not in there}
    share = len(here) / len(agents)
    of_agents: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    if here:
        told: Any = dict(record=marks.tolist(), jobs=jobs, on_progress=lambda done, total: tell(share * done / total))
        results = simulate(env, here, chance=chance, device=device, **told, **how)
        of_agents |= dict(zip(here, zip(results.regret, results.realised, strict=True), strict=True))
    if there:
        told = dict(chance=chance, tell=lambda part: tell(share + (1 - share) * part))
        of_agents |= elsewhere.play(env, there, marks=marks, **told, **how)
    return of_agents


def keep(store: Store, computed: Computed) -> None:
    """Store the results of a block: a file for each algorithm and each `size` runs."""
    block = computed.block
    for name, cell in block.cells.items():
        rows = computed.rows[name]
        how: Any = dict(code=block.codes[cell.key][0], origin=computed.origin, model=rows.model, policy=rows.policy)
        if block.panel.device is not None:
            how["device"] = block.panel.device
        for runs in stretches(set(block.runs), block=block.size):
            here = slice(runs.start - block.runs.start, runs.stop - block.runs.start)
            regrets: Any = dict(regret=rows.regret[here], realised=rows.realised[here])
            store.write(cell, runs, rounds=computed.rounds, **regrets, **how)
