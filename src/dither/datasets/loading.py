"""`load`: a data set from a folder of the original files, or from OpenML. Nothing is ever unpickled."""

import os
import warnings
from pathlib import Path

import numpy as np

from dither.base import errors
from dither.datasets import openml, originals
from dither.datasets.dataset import Dataset
from dither.datasets.known import SOURCES, Source, columns

FOLDER = "DITHER_DATA"  # the environment variable


def load(name: str, *, folder: str | Path | None = None, cache: str | Path | None = None) -> Dataset:
    """A data set as published: its rows in the order of the files, training rows first.

    Parameters
    ----------
    name : shuttle, isolet, mushroom, mnist or fashion-mnist
    folder : the folder with the original files, in FOLDER/shuttle/ and so on. None: the folder that the environment
        variable DITHER_DATA names; where it names none, OpenML (extra "experiments": scikit-learn fetches the data and
        keeps them)
    cache : scikit-learn's `data_home`, for OpenML

    Returns a `Dataset`. Warns where the rows from OpenML are not those of the originals. Raises LookupError for another
    name, FileNotFoundError for a missing file, ValueError for a damaged file, OSError without a network.
    """
    errors.among("data set", name, SOURCES)
    source, here = SOURCES[name], located(folder)
    if here is None:
        X, y = _from_openml(source, cache=cache)
        origin = f"OpenML {source.openml}"
    else:
        X, y = originals.read(source, here)
        origin = str(here / name)
    found, wanted = (*X.shape, len(np.unique(y))), (source.rows, source.dim, source.arms)
    if found != wanted or y.shape != X.shape[:1]:
        raise ValueError(
            f"{name} must have {source.rows} rows, {source.dim} columns and {source.arms} classes; {origin} has "
            f"{found[0]}, {found[1]} and {found[2]} (and {len(y)} labels): get it again from {source.url}"
        )
    data = Dataset(
        name,
        X,
        y,
        columns(source),
        source.licence,
        source.citation,
        source.openml,
        source.url,
        origin,
        source.shape,
    )
    checked = here is not None and originals.present(source, here) == tuple(source.files)
    if not checked and data.digest() != source.digest:
        warnings.warn(
            f"{name} from {origin} has other rows than the original files: results need not be comparable",
            UserWarning,
            stacklevel=2,
        )
    return data


def located(folder: str | Path | None) -> Path | None:
    """The folder of the originals: the one that is given, or the one that DITHER_DATA names; None where none is."""
    given = folder if folder is not None else os.environ.get(FOLDER)
    if not given:
        return None
    path = Path(given)
    if not path.is_dir():
        named = "" if folder is not None else f" (of the environment variable {FOLDER})"
        raise FileNotFoundError(f"no folder {path}{named}: name the one that has shuttle/, isolet/ and so on")
    return path


def _from_openml(source: Source, *, cache: str | Path | None) -> tuple[np.ndarray, np.ndarray]:
    """X and y as `originals.read` gives them, but perhaps with the rows in another order."""
    found = openml.fetch(source.openml, cache=cache)
    if found.target is None:
        raise ValueError(f"OpenML {source.openml} states no column of labels: it is not {source.name} any more")
    at = found.columns.index(found.target)
    X = np.delete(found.X, at, axis=1)
    text = {name: np.array([*levels, "?"]) for name, levels in found.levels.items()}

    def words(j: int) -> np.ndarray:
        codes = np.where(np.isnan(found.X[:, j]), -1, found.X[:, j])
        return text[found.columns[j]][codes.astype(np.int64)]

    y = words(at) if found.target in text else found.X[:, at]
    if source.encoded is not None:
        kept = [j for j in range(len(found.columns)) if j != at]
        return np.column_stack([words(j) for j in kept]).astype("U1"), y.astype("U1")
    dtype = {"shuttle": np.int16, "isolet": np.float64}.get(source.name, np.uint8)
    return X.astype(dtype) + dtype(0), np.array([int(float(label)) for label in y.tolist()])
