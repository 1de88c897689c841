"""Compute what is missing of a figure and store it: blocks of runs, in processes that share the folder.

The algorithms of a panel that miss the same runs are simulated together, so the contexts are drawn once. The store says
which runs are missing. So after an interrupted command, with more runs, with another algorithm or with another block
size, only the missing runs are computed. Runs that other code has stored count as missing, unless they are accepted.
"""

import tempfile
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

from dither import errors, parts
from dither.experiments import asked, code, costs, figures, published, words
from dither.experiments.cells import Cell, of_panel
from dither.experiments.environments import build
from dither.experiments.panels import Figure, Panel
from dither.experiments.store import UNRECORDED, Store
from dither.simulate import configured, recorded, simulate

STORE = "store"  # the folder of the results, below that of the figures
BLOCK = 10  # runs in a file, by default
NAMELESS = "unknown"  # the code of what has no fingerprint begins so: no later command finds its results
AT_ONCE = 5  # so many blocks run in lockstep where the user sets no size: half the time of one by one

Progress = Callable[[float, float], None]  # (work done, work in all), in estimated seconds of one core


@dataclass(frozen=True)
class Block:
    """Consecutive runs of some algorithms of one panel: computed at once, stored `size` in a file."""

    panel: Panel
    cells: dict[str, Cell]
    codes: asked.Codes
    runs: range
    size: int

    @property
    def work(self) -> float:
        """Estimated seconds on one core."""
        algorithms = [cell.algorithm for cell in self.cells.values()]
        return costs.seconds(self.panel, algorithms=algorithms, runs=len(self.runs))


def reproduce(
    figure: Figure,
    *,
    out: str | Path,
    runs: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    block: int | None = None,
    accept: bool = False,
    on_progress: Progress | None = None,
    on_other_code: Callable[[str], None] | None = None,
) -> int:
    """Make the store in `out` hold these runs (None: the figure's number). -> how many blocks had to be computed

    `figures.select` narrows a figure to some panels, algorithms or rounds. `block` runs are computed at once and stored
    in one file (None: 10 in a file, up to 50 at once). `jobs` processes share the blocks. Stored runs that other code
    made are computed anew, or with accept=True taken as they are. `on_other_code` is told which, at the start.
    """
    runs = figure.runs if runs is None else runs
    size = BLOCK if block is None else block
    for name, value, least in (("runs", runs, 1), ("seed", seed, 0), ("jobs", jobs, 1), ("block", size, 1)):
        errors.at_least(name, value, least)
    parts.refresh()
    figures.check(figure)
    out = Path(out)
    store = Store(out / STORE)
    now = code.fingerprints(cell for panel in figure.panels for cell in of_panel(panel, seed=seed).values())
    codes = {key: [found or f"{NAMELESS}-{uuid.uuid4().hex[:8]}"] for key, found in now.items()}
    others = _others(figure, store, codes, runs=runs, seed=seed)
    if accept:
        codes = {key: [*own, *others[key]] for key, own in codes.items()}
    if on_other_code is not None:
        for sentence in _of_codes(figure, now, others, seed=seed, accept=accept):
            on_other_code(sentence)
    asked.record(out, figure, seed=seed, codes=codes)
    at_once = size * (1 if block is not None else min(AT_ONCE, -(-runs // (jobs * size))))
    blocks = list(missing(figure, store, codes, runs=runs, seed=seed, block=at_once, size=size))
    total = sum(b.work for b in blocks)

    def tell(done: float) -> None:
        if on_progress is not None:
            on_progress(done, total)

    tell(0.0)
    (_in_turn if jobs == 1 else _in_parallel)(store, blocks, tell=tell, jobs=jobs)
    return len(blocks)


def _others(figure: Figure, store: Store, codes: asked.Codes, *, runs: int, seed: int) -> dict[str, list[str]]:
    """Key of a cell -> other codes that have stored runs which this code lacks; the newest code comes first."""
    found = {}
    for panel in figure.panels:
        for cell in of_panel(panel, seed=seed).values():
            lacking = set(range(runs)) - store.runs(cell, codes[cell.key])
            other = [name for name in store.codes(cell) if name not in codes[cell.key]] if lacking else []
            found[cell.key] = [name for name in other if lacking & store.runs(cell, [name])]
    return found


def _of_codes(
    figure: Figure, now: dict[str, str | None], others: dict[str, list[str]], *, seed: int, accept: bool
) -> Iterator[str]:
    """Sentences about runs that other code has stored, and about algorithms without a source."""
    named = {cell.key: name for panel in figure.panels for name, cell in of_panel(panel, seed=seed).items()}

    def of(keys: Iterable[str]) -> str:
        return words.listed(list(dict.fromkeys(named[key] for key in keys)))

    if accept and any(others.values()):
        yield f"Stored runs of {of(filter(others.get, others))} were made by other code than this, and are accepted."
    nameless = [key for key, found in now.items() if found is None]
    if nameless:
        yield f"The source of {of(nameless)} cannot be looked at: {'new' if accept else 'all'} runs are computed anew."
    changed = [key for key, names in others.items() if names and now[key] is not None and not accept]
    recorded = [key for key in changed if others[key] != [UNRECORDED]]
    for keys, why in (
        (recorded, "were made by other code than this"),
        ([key for key in changed if key not in recorded], "do not say which code made them"),
    ):
        if keys:
            yield f"Stored runs of {of(keys)} {why}: they are computed anew (--accept-other-code would take them)."


def missing(
    figure: Figure, store: Store, codes: asked.Codes, *, runs: int, seed: int, block: int, size: int
) -> Iterator[Block]:
    """The runs of these codes that the store lacks, in blocks of at most `block` runs, `size` of them in a file."""
    for panel in figure.panels:
        cells = of_panel(panel, seed=seed)
        wanted: dict[range, dict[str, Cell]] = {}
        for name, cell in cells.items():
            for stretch in stretches(set(range(runs)) - store.runs(cell, codes[cell.key]), block=block):
                wanted.setdefault(stretch, {})[name] = cell
        for stretch in sorted(wanted, key=lambda r: (r.start, r.stop)):
            yield Block(panel, wanted[stretch], codes, stretch, size)


def stretches(runs: set[int], *, block: int) -> list[range]:
    """Consecutive runs, cut at every multiple of `block`."""
    found: list[range] = []
    for run in sorted(runs):
        if found and run == found[-1].stop and run % block:
            found[-1] = range(found[-1].start, run + 1)
        else:
            found.append(range(run, run + 1))
    return found


def _in_turn(store: Store, blocks: list[Block], *, tell: Callable[[float], None], jobs: int) -> None:
    before = 0.0
    for block in blocks:
        _compute(store, block, tell=_shifted(tell, before, block.work))
        before += block.work


def _shifted(tell: Callable[[float], None], before: float, work: float) -> Callable[[float], None]:
    return lambda part: tell(before + part * work)


def _in_parallel(store: Store, blocks: list[Block], *, tell: Callable[[float], None], jobs: int) -> None:
    try:
        import joblib
    except ImportError:
        raise errors.missing_extra("joblib", extra="experiments") from None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        # A number for each block: the share that is done, which the process that computes the block writes.
        meter = Path(scratch) / "meter"
        np.zeros(max(len(blocks), 1)).tofile(meter)
        work = np.array([block.work for block in blocks])
        with (
            _Watch(lambda: tell(float(work @ np.fromfile(meter)[: len(work)]))),
            joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1),
        ):
            parallel = joblib.Parallel(return_as="generator_unordered")
            for _ in parallel(joblib.delayed(_metered)(store, b, meter=meter, i=i) for i, b in enumerate(blocks)):
                pass


class _Watch:
    """Calls a function from a thread every 0.3 s, and once at the end."""

    def __init__(self, look: Callable[[], None], *, every: float = 0.3) -> None:
        self.look, self.every, self.stop = look, every, threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self.stop.wait(self.every):
            self.look()

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *error: Any) -> None:
        self.stop.set()
        self.thread.join()
        self.look()


def _metered(store: Store, block: Block, *, meter: Path, i: int) -> None:
    """`_compute` in another process. It has read the sources later than the command, so they are compared."""
    parts.refresh()  # it may have loaded them for an earlier command
    for key, found in code.fingerprints(block.cells.values()).items():
        if found is not None and found != block.codes[key][0]:
            names = words.listed(list(block.cells))
            raise ValueError(f"the code of {names} was changed while the command ran: start it again")
    done = np.memmap(meter, dtype=np.float64, mode="r+")

    def tell(part: float) -> None:
        done[i] = part

    _compute(store, block, tell=tell)


def _compute(store: Store, block: Block, *, tell: Callable[[float], None]) -> None:
    """Simulate a block and store it: a file for each algorithm and each `size` runs."""
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
    for i, cell in enumerate(block.cells.values()):
        model, policy = configured(cell.algorithm, env, rounds=block.panel.rounds)
        for runs in stretches(set(block.runs), block=block.size):
            rows = slice(runs.start - block.runs.start, runs.stop - block.runs.start)
            store.write(
                cell,
                runs,
                code=block.codes[cell.key][0],
                rounds=results.rounds,
                regret=results.regret[i, rows],
                realised=results.realised[i, rows],
                model=repr(model),
                policy=repr(policy),
            )
