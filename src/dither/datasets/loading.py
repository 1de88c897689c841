"""`load`: a data set from a folder of the original files, or from OpenML. Nothing is ever unpickled."""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from dither.base import errors
from dither.datasets import openml, originals
from dither.datasets.data_sets import MISSING, SOURCES, Source, columns
from dither.datasets.dataset import Dataset

FOLDER = "DITHER_DATA"  # the environment variable
OF_SOURCE = ("name", "licence", "citation", "openml", "url", "shape")  # what a data set says as its source does


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
    arms = len(np.unique(y))
    if (*X.shape, arms) != (source.rows, source.dim, source.arms) or y.shape != X.shape[:1]:
        raise ValueError(
            f"{name} must have {source.rows} rows, {source.dim} columns and {source.arms} classes; {origin} has "
            f"{X.shape[0]}, {X.shape[1]} and {arms} (and {len(y)} labels): get it again from {source.url}"
        )
    facts: dict[str, Any] = {field: getattr(source, field) for field in OF_SOURCE}
    data = Dataset(X=X, y=y, columns=columns(source), origin=origin, **facts)
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
    path = Path(os.environ.get(FOLDER, "") if folder is None else folder)
    if path == Path():
        return None
    if not path.is_dir():
        named = "" if folder is not None else f" (of the environment variable {FOLDER})"
        raise FileNotFoundError(f"no folder {path}{named}: name the one that has shuttle/, isolet/ and so on")
    return path


def _from_openml(source: Source, *, cache: str | Path | None) -> tuple[np.ndarray, np.ndarray]:
    """X and y as `originals.read` gives them, but perhaps with the rows in another order."""
    table = openml.fetch(source.openml, cache=cache)
    if table.target is None:
        raise ValueError(f"OpenML {source.openml} states no column of labels: it is not {source.name} any more")
    at = table.columns.index(table.target)
    y = table.column(at, missing=MISSING)
    if source.encoded is not None:
        parts = [table.column(j, missing=MISSING) for j in range(len(table.columns)) if j != at]
        return np.column_stack(parts).astype("U1"), y.astype("U1")
    dtype = {"shuttle": np.int16, "isolet": np.float64}.get(source.name, np.uint8)
    X = np.delete(table.X, at, axis=1).astype(dtype)
    return X + dtype(0), np.array([int(float(label)) for label in y.tolist()])
