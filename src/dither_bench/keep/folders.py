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
from dither_bench.keep.cells import key_of
from dither_bench.keep.store import STORE

TOLERANCE = 1e-9  # of regrets, absolute and relative


class File(NamedTuple):
    """A file of results and what it says of itself."""

    path: Path
    place: Path  # below the folder
    about: store.Made

    @property
    def cell(self) -> tuple[str, str]:
        """The key of its cell, and its code."""
        return self.about["key"], self.about["code"]


class OfCode(NamedTuple):
    """What one code has made."""

    code: str
    algorithms: list[str]
    runs: int  # each counted for every cell
    last: str  # when the newest file was made


@dataclass(frozen=True)
class Checked:
    """What a folder holds, and what is wrong with it."""

    files: int
    cells: int
    codes: tuple[OfCode, ...]  # the newest first
    machines: Counter[str]  # machine and processor -> files
    wrong: tuple[str, ...]  # sentences, each with the path of a file


def check(folder: Path, *, tell: Callable[[int, int], object] = lambda done, total: None) -> Checked:
    """Read every file of the folder. Raises FileNotFoundError for a folder without results."""
    paths = _paths(folder)
    wrong: list[str] = []
    good: list[File] = []
    for i, path in enumerate(paths):
        tell(i, len(paths))
        try:
            good.append(_read(path, folder / STORE))
        except ValueError as reason:
            wrong.append(str(reason))
    for mine in _by_cell(good).values():
        wrong += _twice(mine)
    tell(len(paths), len(paths))
    machines = Counter(f"{_said(file, 'machine')}, {_said(file, 'processor')}" for file in good)
    return Checked(len(paths), len({file.about["key"] for file in good}), _codes(good), machines, tuple(wrong))


def _said(file: File, what: str) -> str:
    return file.about.get(what) or f"{what} not recorded"


def _codes(found: Iterable[File]) -> tuple[OfCode, ...]:
    runs: dict[str, set[tuple[str, int]]] = {}
    names: dict[str, set[str]] = {}
    last: dict[str, str] = {}
    for file in found:
        (key, code), about = file.cell, file.about
        runs.setdefault(code, set()).update((key, run) for run in about["runs"])
        names.setdefault(code, set()).add(about["cell"]["algorithm"])
        last[code] = max(last.get(code, ""), about["created"])
    order = sorted(runs, key=lambda code: last[code], reverse=True)
    return tuple(OfCode(code, sorted(names[code]), len(runs[code]), last[code]) for code in order)


@dataclass(frozen=True)
class Merged:
    """How many files were copied, and how many were there already."""

    copied: int
    there: int


def merge(sources: Sequence[Path], into: Path) -> Merged:
    """Copy the results of the sources into a folder, which may be new. Merging twice changes nothing.

    All is looked at before anything is copied. Raises ValueError for files that are not whole, and for a run of which
    two files have other values; it names both.
    """
    new: list[tuple[File, Path]] = []
    held = [_read(path, into / STORE) for path in _paths(into)] if (into / STORE).is_dir() else []
    places, there = {file.place for file in held}, 0
    for source in sources:
        for path in _paths(source):
            file = _read(path, source / STORE)
            held.append(file)
            if file.place in places:
                there += 1
                continue
            places.add(file.place)
            new.append((file, into / STORE / file.place))
    conflicts = [said for mine in _by_cell(held).values() for said in _twice(mine)]
    if conflicts:
        raise ValueError(
            f"nothing was merged: {conflicts[0]}" + (f"; {len(conflicts) - 1} more" * (len(conflicts) > 1))
        )
    for file, target in new:
        _copy(file.path, target)
    for source in sources:
        for request in sorted((source / asked.FOLDER).glob("[!.]*.json"), key=lambda path: path.stat().st_mtime_ns):
            target = into / asked.FOLDER / request.name
            if not target.exists():
                _copy(request, target)
    return Merged(len(new), there)


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


def _read(path: Path, root: Path) -> File:
    """The file, which is whole and stands in its place below `root`; or ValueError."""
    about, place = store.read_about(path), path.relative_to(root)
    try:
        content, runs = about["cell"], list(map(int, about["runs"]))
        name = f"{runs[0]:06d}-{runs[-1]:06d}.parquet"
        right = Path(about["key"], about["code"], name)
        same = key_of(content) == about["key"]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise store.foreign(path, f"its metadata lack {error}") from None
    if not same:
        raise store.foreign(path, f"its key is {about['key']}, and its cell has {key_of(content)}")
    if place != right:
        raise store.foreign(path, f"it belongs to {right}")
    rows = store.read_rows(path)
    marks = rows["round"].to_numpy()[: len(rows) // len(runs)]
    if not (
        np.array_equal(rows["run"].to_numpy(), np.repeat(runs, len(marks)))
        and np.array_equal(rows["round"].to_numpy(), np.tile(marks, len(runs)))
        and np.all(np.diff(marks) > 0)
        and len(marks) > 0
        and marks[-1] == content["rounds"]
    ):
        raise store.foreign(path, "it lacks rows")
    if not np.isfinite(rows.select("regret", "realised").to_numpy()).all():
        raise store.foreign(path, "a regret is not finite")
    return File(path, place, about)


def _by_cell(found: Iterable[File]) -> dict[tuple[str, str], list[File]]:
    groups: dict[tuple[str, str], list[File]] = {}
    for file in found:
        groups.setdefault(file.cell, []).append(file)
    return groups


def _twice(mine: Sequence[File]) -> Iterator[str]:
    """Sentences about runs of one cell and code that two files have with other values."""
    first: dict[int, File] = {}
    pairs: dict[tuple[Path, Path], list[int]] = {}
    for file in mine:
        for run in file.about["runs"]:
            other = first.setdefault(run, file)
            if other is not file:
                pairs.setdefault((other.path, file.path), []).append(run)
    for (a, b), runs in pairs.items():
        both = store.read_rows(a).join(store.read_rows(b), on=["run", "round"], suffix="_b")
        both = both.filter(pl.col("run").is_in(runs))
        far = [
            ~np.isclose(both[name].to_numpy(), both[f"{name}_b"].to_numpy(), rtol=TOLERANCE, atol=TOLERANCE)
            for name in ("regret", "realised")
        ]
        differ = both["run"].to_numpy()[far[0] | far[1]]
        if len(differ):
            yield f"run {differ[0]} has other values in {a} than in {b}"
