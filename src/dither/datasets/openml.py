"""OpenML through scikit-learn's `fetch_openml` and its cache, with the parser that needs no pandas."""

import functools
import warnings
import zlib
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError

import numpy as np

from dither.base import errors


class Fetched(NamedTuple):
    """A table from OpenML."""

    X: np.ndarray  # (N, c) all columns as numbers, a categorical one as the numbers of its levels; NaN where missing
    columns: tuple[str, ...]  # c names
    levels: dict[str, list[str]]  # the levels of the categorical columns
    target: str | None  # the column of labels, where one is stated
    md5: str  # of the ARFF file, as OpenML states it; fetch_openml checks it

    def column(self, j: int, *, missing: str | None = None) -> np.ndarray:
        """Column j, (N,): numbers; or the levels of a categorical one, as texts, with `missing` where it has none."""
        x = self.X[:, j]
        if self.columns[j] not in self.levels:
            return x
        levels = np.array([*self.levels[self.columns[j]], missing], dtype=object)
        return levels[np.where(np.isnan(x), -1, x).astype(np.int64)]


def fetch(number: int, *, cache: str | Path | None = None) -> Fetched:
    """Data set `number` of OpenML. It is kept in memory for the next call.

    cache : scikit-learn's `data_home`; None: its default

    Raises ImportError without scikit-learn, OSError without network or cache, ValueError for data that cannot be used.
    """
    return _fetch(number, None if cache is None else str(cache))


@functools.lru_cache(maxsize=1)  # the parser is slow, and a command asks for the data twice
def _fetch(number: int, cache: str | None) -> Fetched:
    sklearn = errors.imported("sklearn.datasets", "scikit-learn", extra="experiments")
    where = "cache of scikit-learn" if cache is None else f"cache {cache}"
    settings = {"target_column": None, "as_frame": False, "parser": "liac-arff", "n_retries": 1}
    try:
        where = f"cache {Path(sklearn.get_data_home(cache)) / 'openml'}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on retries and files fetched anew: the errors below say it
            table = sklearn.fetch_openml(data_id=number, data_home=cache, **settings)
    except (URLError, TimeoutError) as reason:
        raise OSError(
            f"cannot load OpenML {number}: the {where} does not have all of it, and openml.org does not answer "
            f"({reason}). Try again with a network, or name a folder of the original files (folder=, or DITHER_DATA)"
        ) from None
    except (OSError, EOFError, zlib.error) as reason:
        raise OSError(f"cannot use the {where} for OpenML {number} ({reason}): mend or remove it") from None
    except (ValueError, KeyError) as reason:
        text = "it has columns of free text: pass it as a CSV file" if "STRING" in str(reason) else str(reason)
        raise ValueError(f"cannot use OpenML {number}: {text} ({where})") from None
    X = table.data.toarray() if hasattr(table.data, "toarray") else table.data
    target = table.details.get("default_target_attribute")
    return Fetched(
        np.asarray(X, dtype=np.float64),
        tuple(table.feature_names),
        {name: list(values) for name, values in (table.categories or {}).items()},
        target if target in table.feature_names else None,
        str(table.details.get("md5_checksum", "")),
    )
