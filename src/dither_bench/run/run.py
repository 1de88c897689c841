"""Compute what is missing of figures and store it: blocks of runs, here, in other processes or on a cluster.

The algorithms of a panel that miss the same runs are simulated together, so the contexts are drawn once. The store says
which runs are missing. So after an interrupted command, with more runs, with another algorithm or with another block
size, only the missing runs are computed. Runs that other code has stored count as missing, unless they are accepted.

Whoever computes a block returns its results, and this process alone writes them. Finished blocks are written at once.
"""

import functools
import platform
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from pathlib import Path

import numpy as np

from dither.base import workers as where
from dither.base.workers import Workers
from dither_bench.define.panels import Figure
from dither_bench.keep import asked
from dither_bench.keep.store import STORE, Store, of_panel
from dither_bench.plan import plan
from dither_bench.plan.plan import Block, FigurePlan, Shard
from dither_bench.run import computing
from dither_bench.run.computing import Computed

EVERY = 0.3  # seconds between two looks at what other processes have done
MANY = 10_000  # workers that a cluster is taken to have: each file of results is then a block

Progress = Callable[[float, float], object]  # (work done, work in all), in estimated seconds of one core
Told = Callable[[str, float, float], object]  # the same of one figure, after its name


def reproduce(
    figure: Figure,
    *,
    out: str | Path,
    runs: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    block: int | None = None,
    accept: bool = False,
    backend: str = "loky",
    cluster: str | None = None,
    shard: Shard | None = None,
    on_progress: Progress = lambda done, total: None,
    on_other_code: Callable[[str], object] = lambda sentence: None,
) -> int:
    """Make the store in `out` hold these runs (None: the figure's number). -> how many blocks had to be computed

    `figures.select` narrows a figure to some panels, algorithms or rounds. `block` runs are computed at once and stored
    in one file (None: 10 in a file, up to 50 at once). `jobs` processes share the blocks, or the workers of `backend`
    at the address `cluster` (`dither.base.workers.Workers`). Stored runs that other code made are computed anew, or
    with accept=True taken as they are. `on_other_code` is told which, at the start. `shard` is the part of the runs
    that this call is about.
    """
    workers, out = Workers(backend, jobs, cluster), Path(out)
    parts = plan.of_figures(
        [figure], out=out, runs=runs, seed=seed, jobs=blocks_for(workers), block=block, accept=accept, shard=shard
    )
    for sentence in parts[0].of_codes:
        on_other_code(sentence)

    def tell(figure: str, done: float, total: float) -> None:
        on_progress(done, total)

    return compute(parts, out=out, workers=workers, on_progress=tell)


def blocks_for(workers: Workers) -> int:
    """Among how many the runs are divided. How many a cluster has is not known, and may change."""
    return workers.jobs if workers.cluster is None else MANY


def compute(
    parts: Sequence[FigurePlan],
    *,
    out: Path,
    workers: Workers,
    seconds: plan.Seconds = plan.seconds,
    on_progress: Told = lambda figure, done, total: None,
) -> int:
    """Compute and store the blocks of all parts. -> how many there were

    Several workers begin with the blocks that take longest, so that none of these is left for the end.
    """
    store = Store(out / STORE)
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(_asked(out, part, store))
        return _compute(parts, store, workers, seconds, on_progress)


@contextmanager
def _asked(out: Path, part: FigurePlan, store: Store) -> Iterator[None]:
    """The figure is asked for. If nothing of it is stored at the end, because of an error, it was not asked for."""
    new = asked.record(out, part.figure, seed=part.seed, codes=part.codes)
    try:
        yield
    except BaseException:
        cells = (cell for panel in part.figure.panels for cell in of_panel(panel, seed=part.seed).values())
        if new is not None and not any(store.runs(cell, part.codes[cell.key]) for cell in cells):
            new.unlink(missing_ok=True)
        raise
    if part.blocks:  # again: another command may have asked for the same figure with another seed or other code
        asked.record(out, part.figure, seed=part.seed, codes=part.codes)


def _compute(
    parts: Sequence[FigurePlan], store: Store, workers: Workers, seconds: plan.Seconds, on_progress: Told
) -> int:
    todo = [(part.figure.name, block, seconds(block)) for part in parts for block in part.blocks]
    if not workers.alone:
        todo.sort(key=lambda item: -item[2])
    missing = [block for _, block, _ in todo]
    meter = _Meter([part.figure.name for part in parts], [(name, cost) for name, _, cost in todo], on_progress)
    meter.tell()
    if not missing:  # no cluster is asked for nothing
        return 0
    with closing((_in_turn if workers.alone else _elsewhere)(missing, meter, workers)) as results:
        for done in results:
            computing.keep(store, done)
    return len(missing)


def _in_turn(missing: list[Block], meter: "_Meter", workers: Workers) -> Generator[Computed]:
    def telling(i: int) -> Callable[[float], None]:
        return lambda share: meter.set(i, share)

    for i, block in enumerate(missing):
        yield computing.compute(block, tell=telling(i))


def _elsewhere(missing: list[Block], meter: "_Meter", workers: Workers) -> Generator[Computed]:
    """The results as they come. Processes of this machine say how far they are; from others a block comes whole."""
    with meter.shared() if workers.backend == "loky" else nullcontext() as file:
        calls = (where.delayed(_metered)(block, i, file) for i, block in enumerate(missing))
        for i, done in workers.results(calls):
            meter.set(i, 1.0)
            yield done


def _metered(block: Block, i: int, file: Path | None) -> tuple[int, Computed]:
    """`computing.compute` at a worker, which writes the share that is done into the i-th number of the file."""
    shares = np.zeros(i + 1) if file is None else np.memmap(file, dtype=np.float64, mode="r+")
    try:
        computing.check_code(block)
        return i, computing.compute(block, tell=functools.partial(shares.__setitem__, i))
    except Exception as error:
        if file is None:  # perhaps on another machine
            lacks = isinstance(error, (OSError, ImportError))
            needs = ", which needs the same files in the same places and the same packages as this command" * lacks
            error.add_note(f"at the worker {platform.node()}{needs}")
        raise


class _Meter:
    """The share of each block that is done, and how it is told."""

    def __init__(self, figures: list[str], blocks: list[tuple[str, float]], tell: Told) -> None:
        self.costs = np.array([cost for _, cost in blocks])
        self.of = {figure: np.array([name == figure for name, _ in blocks], dtype=bool) for figure in figures}
        self.shares, self.on_progress = np.zeros(len(blocks)), tell

    def set(self, i: int, share: float) -> None:
        """The i-th block has come so far."""
        self.shares[i] = share
        self.tell()

    def tell(self) -> None:
        """Say of each figure how much is done."""
        for figure, its in self.of.items():
            self.on_progress(
                figure, float(self.costs[its] @ self.shares[: len(its)][its]), float(np.sum(self.costs[its]))
            )

    @contextmanager
    def shared(self) -> Iterator[Path]:
        """Keep the shares in a file, which other processes write too; tell them every `EVERY` seconds."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            file = Path(scratch) / "meter"
            self.shares = np.memmap(file, dtype=np.float64, mode="w+", shape=(max(len(self.shares), 1),))
            stop = threading.Event()
            watch = threading.Thread(target=self._watch, args=(stop,), daemon=True)
            watch.start()
            try:
                yield file
            finally:
                stop.set()
                watch.join()
                self.tell()
            self.shares = np.array(self.shares)

    def _watch(self, stop: threading.Event) -> None:
        while not stop.wait(EVERY):
            self.tell()
