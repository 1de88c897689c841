"""What is there of some figures, what is missing, and who computes which part of it.

A block is the unit of all work: consecutive runs of some algorithms of one panel. It is sent to whoever computes it,
here or on another machine, and comes back as rows. The command writes them. So the machines that compute need no folder
in common, and a block that was computed twice is still stored once.

Several machines may share the figures without talking (`Shard`): all runs stand in one row, figure by figure and panel
by panel, and each machine has a part of the row that costs about the same. The row does not depend on what is stored.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dither.base import errors
from dither.base.parts import refresh
from dither_bench.define import figures
from dither_bench.define.panels import Figure, Panel
from dither_bench.keep import asked, code
from dither_bench.keep.store import STORE, UNRECORDED, Cell, Store, of_panel
from dither_bench.plan import costs

BLOCK = 10  # runs in a file, by default
NAMELESS = "unknown"  # the code of what has no fingerprint begins so: no later command finds its results
AT_ONCE = 5  # so many blocks run in lockstep where the user sets no size: half the time of one by one


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


@dataclass(frozen=True)
class Shard:
    """Part `number` of `of` parts, counted from 1."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """The shard that a text such as 2/4 names. Raises ValueError for another text."""
        number, _, of = text.partition("/")
        if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise ValueError(f"a shard is K/N with K from 1 to N, such as 2/4 for the second of four; got {text!r}")
        return cls(int(number), int(of))


@dataclass(frozen=True)
class FigurePlan:
    """One figure: what was asked of it, what is stored, and the blocks that are missing."""

    figure: Figure
    seed: int
    codes: asked.Codes
    there: int  # runs that are stored, each counted for every algorithm of its panel
    blocks: tuple[Block, ...]
    of_codes: tuple[str, ...]  # sentences about runs that other code has stored

    @property
    def lacking(self) -> int:
        """Runs to compute, counted as `there`."""
        return sum(block.counted for block in self.blocks)


def of_figures(
    chosen: Iterable[Figure],
    *,
    out: Path,
    runs: int | None = None,
    seed: int = 0,
    block: int | None = None,
    jobs: int = 1,
    accept: bool = False,
    shard: Shard | None = None,
) -> list[FigurePlan]:
    """What these figures need, in the order in which they are given. Nothing is computed or written.

    See `run.reproduce` for the arguments. Raises what `figures.check` raises, and ValueError for numbers below the
    least.
    """
    chosen, size = list(chosen), BLOCK if block is None else block
    wanted = {figure.name: figure.runs if runs is None else runs for figure in chosen}
    numbers = [("seed", seed, 0), ("jobs", jobs, 1), ("block", size, 1), *(("runs", n, 1) for n in wanted.values())]
    for name, value, least in numbers:
        errors.at_least(name, value, least)
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"results are kept in a folder, and {out} is a file: name a folder, as --out results")
    refresh()
    for figure in chosen:
        figures.check(figure)
    shares = _shares(chosen, wanted, size=size, shard=shard or Shard())
    parts = []
    for figure in chosen:
        n = wanted[figure.name]
        at_once = size * (1 if block is not None else min(AT_ONCE, -(-n // (jobs * size))))
        sizes = {"block": at_once, "size": size}
        parts.append(_part(figure, Store(out / STORE), shares[figure.name], seed=seed, accept=accept, **sizes))
    return parts


def _part(figure: Figure, store: Store, runs: Runs, *, seed: int, accept: bool, block: int, size: int) -> FigurePlan:
    now = code.fingerprints(cell for panel in figure.panels for cell in of_panel(panel, seed=seed).values())
    codes = {key: [code_now or f"{NAMELESS}-{uuid.uuid4().hex[:8]}"] for key, code_now in now.items()}
    others = _others(figure, store, codes, runs=runs, seed=seed)
    if accept:
        codes = {key: [*names, *others[key]] for key, names in codes.items()}
    blocks = tuple(missing(figure, store, codes, runs=runs, seed=seed, block=block, size=size))
    asked_for = sum(len(panel.algorithms) * len(runs[panel.name]) for panel in figure.panels)
    there = asked_for - sum(block.counted for block in blocks)
    sentences = tuple(_of_codes(figure, now, others, seed=seed, accept=accept))
    return FigurePlan(figure, seed, codes, there, blocks, sentences)


def _shares(chosen: list[Figure], wanted: dict[str, int], *, size: int, shard: Shard) -> dict[str, Runs]:
    """Name of a figure -> the runs of each panel that the shard has.

    The row of all runs is cut between files, where the estimated cost of what came before passes k/N of the whole.
    """
    row, total = [], 0.0
    shares: dict[str, Runs] = {figure.name: {panel.name: set() for panel in figure.panels} for figure in chosen}
    for figure in chosen:
        for panel in figure.panels:
            for first in range(0, wanted[figure.name], size):
                runs = range(first, min(first + size, wanted[figure.name]))
                cost = costs.seconds(panel, algorithms=panel.algorithms, runs=len(runs))
                row.append((shares[figure.name][panel.name], runs, total + cost / 2))
                total += cost
    for share, runs, middle in row:
        if int(shard.of * middle / total) == shard.number - 1:
            share.update(runs)
    return shares


def _others(figure: Figure, store: Store, codes: asked.Codes, *, runs: Runs, seed: int) -> dict[str, list[str]]:
    """Key of a cell -> other codes that have stored runs which this code lacks; the newest code comes first."""
    others = {}
    for panel in figure.panels:
        for cell in of_panel(panel, seed=seed).values():
            lacking = runs[panel.name] - store.runs(cell, codes[cell.key])
            names = [name for name in store.codes(cell) if name not in codes[cell.key]] if lacking else []
            others[cell.key] = [name for name in names if lacking & store.runs(cell, [name])]
    return others


def _of_codes(
    figure: Figure, now: dict[str, str | None], others: dict[str, list[str]], *, seed: int, accept: bool
) -> Iterator[str]:
    """Sentences about runs that other code has stored, and about algorithms without a source."""
    named = {cell.key: name for panel in figure.panels for name, cell in of_panel(panel, seed=seed).items()}

    def of(keys: Iterable[str]) -> str:
        return errors.listed(list(dict.fromkeys(named[key] for key in keys)))

    if accept and any(others.values()):
        yield f"Stored runs of {of(filter(others.get, others))} were made by other code than this, and are accepted."
    nameless = [key for key, code_now in now.items() if code_now is None]
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
