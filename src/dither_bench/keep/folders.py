"""Folders of results: is every file whole and right, and how do the folders of several machines become one?

A file stands where its content says (`store`): FOLDER/store/<key>/<code>/<first run>-<last run>.parquet. So folders are
merged by copying files, and a file that is there already is the same. Two machines may round differently, as their
processors do. So two results of one run are the same where their regrets agree up to a billionth.
"""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import polars as pl

from dither.base import files
from dither_bench.keep import asked, store
from dither_bench.keep.store import STORE, key_of

TOLERANCE = 1e-9  # of regrets, absolute and relative
REGRETS = store.COLUMNS[2:]


class ResultFile(NamedTuple):
    """A file of results and what it says of itself."""

    path: Path
    place: Path  # below the folder
    about: store.Made

    def says(self, what: str) -> str:
        """Something that early versions did not record."""
        return self.about.get(what) or f"{what} not recorded"


class OfCode(NamedTuple):
    """What one code has made with one seed."""

    code: str
    seed: int
    algorithms: list[str]
    runs: int  # each counted for every cell
    last: str  # when the newest file was made


@dataclass(frozen=True)
class CheckedFolder:
    """What a folder holds, and what is wrong with it."""

    files: int
    cells: int
    codes: tuple[OfCode, ...]  # of each code and seed, the newest first
    unsealed: int  # files without a checksum, which earlier versions wrote
    machines: Counter[str]  # machine and processor -> files
    wrong: tuple[str, ...]  # sentences, each with the path of a file


def check(folder: Path, *, tell: Callable[[int, int], object] = lambda done, total: None) -> CheckedFolder:
    """Read every file of the folder. Raises FileNotFoundError for a folder without results."""
    paths = _paths(folder)
    wrong: list[str] = []
    good: list[ResultFile] = []
    for i, path in enumerate(paths):
        tell(i, len(paths))
        try:
            good.append(_read(path, folder / STORE))
        except ValueError as reason:
            wrong.append(str(reason))
    wrong += _twice(good)
    tell(len(paths), len(paths))
    machines = Counter(f"{file.says('machine')}, {file.says('processor')}" for file in good)
    cells = {file.about["key"] for file in good}
    unsealed = sum("checksum" not in file.about for file in good)
    return CheckedFolder(len(paths), len(cells), tuple(_codes(good)), unsealed, machines, tuple(wrong))


def _codes(every: Iterable[ResultFile]) -> list[OfCode]:
    groups: dict[tuple[str, int], list[store.Made]] = {}
    for file in every:
        groups.setdefault((file.about["code"], file.about["cell"]["seed"]), []).append(file.about)
    of_codes = [
        OfCode(
            code,
            seed,
            sorted({about["cell"]["algorithm"] for about in of}),
            len({(about["key"], run) for about in of for run in about["runs"]}),
            max(about["created"] for about in of),
        )
        for (code, seed), of in groups.items()
    ]
    return sorted(of_codes, key=lambda one: one.last, reverse=True)


@dataclass(frozen=True)
class MergedFolders:
    """How many files were copied, and how many were there already."""

    copied: int
    there: int


def merge(sources: Sequence[Path], into: Path) -> MergedFolders:
    """Copy the results of the sources into a folder, which may be new. Merging twice changes nothing.

    All is looked at before anything is copied. Raises ValueError for files that are not whole, and for a run of which
    two files have other values; it names both.
    """
    every = [_read(path, into / STORE) for path in _paths(into)] if (into / STORE).is_dir() else []
    places, there = {file.place for file in every}, 0
    copies: list[tuple[Path, Path]] = []
    for source in sources:
        for path in _paths(source):
            file = _read(path, source / STORE)
            every.append(file)
            if file.place in places:
                there += 1
            else:
                places.add(file.place)
                copies.append((path, into / STORE / file.place))
    conflicts = list(_twice(every))
    if conflicts:
        more = f"; {len(conflicts) - 1} more" * (len(conflicts) > 1)
        raise ValueError(f"nothing was merged: {conflicts[0]}{more}")
    for path, target in copies:
        _copy(path, target)
    for source in sources:
        for request in asked.paths(source):
            if not (target := into / asked.FOLDER / request.name).exists():
                _copy(request, target)
    return MergedFolders(len(copies), there)


def _copy(path: Path, target: Path) -> None:
    """The file under its final name, whole or not at all, with the time of the original: requests are in its order."""
    about = path.stat()

    def write(file: IO[bytes]) -> None:
        with path.open("rb") as source:
            shutil.copyfileobj(source, file)

    files.replace(target, write, parents=True)
    os.utime(target, ns=(about.st_atime_ns, about.st_mtime_ns))


def _paths(folder: Path) -> list[Path]:
    if not (folder / STORE).is_dir():
        raise FileNotFoundError(f"{folder} is no folder of results: it has no folder {STORE}/")
    return sorted((folder / STORE).rglob("[!.]*.parquet"))


def _read(path: Path, root: Path) -> ResultFile:
    """The file, which is whole and stands in its place below `root`; or ValueError."""
    about, place = store.read_about(path), path.relative_to(root)
    try:
        content, runs = about["cell"], list(map(int, about["runs"]))
        right = Path(about["key"], about["code"], store.name_of(runs))
        key = key_of(content)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise store.foreign(path, f"its metadata lack {error}") from None
    if key != about["key"]:
        raise store.foreign(path, f"its key is {about['key']}, and its cell has {key}")
    if place != right:
        raise store.foreign(path, f"it belongs to {right}")
    rows = store.read_rows(path, about)
    marks = rows["round"].to_numpy()[: len(rows) // len(runs)]
    whole = (
        np.array_equal(rows["run"].to_numpy(), np.repeat(runs, len(marks)))
        and np.array_equal(rows["round"].to_numpy(), np.tile(marks, len(runs)))
        and np.all(np.diff(marks) > 0)
        and len(marks) > 0
        and marks[-1] == content["rounds"]
    )
    if not whole:
        raise store.foreign(path, "it lacks rows")
    if not np.isfinite(rows.select(REGRETS).to_numpy()).all():
        raise store.foreign(path, "a regret is not finite")
    return ResultFile(path, place, about)


def _twice(every: Iterable[ResultFile]) -> Iterator[str]:
    """Sentences about runs of one cell and code that two files have with other values."""
    first: dict[tuple[str, str, int], ResultFile] = {}
    pairs: dict[tuple[Path, Path], tuple[ResultFile, ResultFile, list[int]]] = {}
    for file in every:
        for run in file.about["runs"]:
            other = first.setdefault((file.about["key"], file.about["code"], run), file)
            if other is not file:
                pairs.setdefault((other.path, file.path), (other, file, []))[2].append(run)
    for (a, b), (one, two, runs) in pairs.items():
        both = store.read_rows(a, one.about).join(store.read_rows(b, two.about), on=["run", "round"], suffix="_b")
        both = both.filter(pl.col("run").is_in(runs))
        mine, theirs = both.select(REGRETS).to_numpy(), both.select(f"{name}_b" for name in REGRETS).to_numpy()
        differ = both["run"].to_numpy()[~np.isclose(mine, theirs, rtol=TOLERANCE, atol=TOLERANCE).all(axis=1)]
        if len(differ):
            yield f"run {differ[0]} has other values in {a} than in {b}"
