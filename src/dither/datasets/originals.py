"""The original files in a folder, FOLDER/shuttle/shuttle.trn and so on: read, checked and turned into (X, y)."""

import gzip
import hashlib
import io
import zipfile
import zlib
from pathlib import Path

import numpy as np

from dither.datasets.data_sets import ISOLET, ISOLET_PACKED, Source

Arrays = tuple[np.ndarray, np.ndarray]


def present(source: Source, folder: Path) -> tuple[str, ...] | None:
    """The names of the files of the data set in the folder; None where one is missing."""
    for names in (tuple(source.files), *source.accepts):
        if all((folder / source.name / name).is_file() for name in names):
            return names
    return None


def read(source: Source, folder: Path) -> Arrays:
    """X (N, d) and y (N,), with the training rows first.

    Raises FileNotFoundError for a missing file, ValueError for a file that is damaged or is not the original.
    """
    names = present(source, folder)
    if names is None:
        here = folder / source.name
        missing = [name for name in source.files if not (here / name).is_file()]
        other = "".join(f", or {' and '.join(names)}" for names in source.accepts)
        raise FileNotFoundError(
            f"no file {here / missing[0]}: {source.name} needs {', '.join(source.files)} in {here}{other}. Get them "
            f"from {source.url}; or leave out the folder (and DITHER_DATA), and they come from OpenML {source.openml}"
        )
    contents = {name: _content(source, folder / source.name / name) for name in names}
    try:
        return READERS[source.name](contents)
    except (ValueError, KeyError, IndexError, zipfile.BadZipFile) as reason:
        raise _damaged(source, folder / source.name, reason) from None


def _content(source: Source, path: Path) -> bytes:
    """The bytes of a file, unpacked. Raises ValueError where their SHA-256 is not that of the original."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as reason:
            raise _damaged(source, path, reason) from None
    wanted = source.files.get(path.name) or source.files.get(f"{path.name}.gz")
    sha = hashlib.sha256(content).hexdigest()
    if wanted not in (None, sha):
        unpacked = " unpacked" if path.suffix == ".gz" else ""
        raise _damaged(source, path, f"SHA-256{unpacked} {sha}, expected {wanted}")
    return content


def _damaged(source: Source, path: Path, reason: object) -> ValueError:
    return ValueError(
        f"{path} is damaged or not the original ({reason}): get it again from {source.url}, or leave out the folder "
        f"(and DITHER_DATA) to load OpenML {source.openml}"
    )


def _shuttle(contents: dict[str, bytes]) -> Arrays:
    table = np.concatenate([_table(text, dtype=np.int64) for text in contents.values()])
    return table[:, :-1].astype(np.int16), table[:, -1]


def _isolet(contents: dict[str, bytes]) -> Arrays:
    if ISOLET_PACKED in contents:
        with np.load(io.BytesIO(contents[ISOLET_PACKED]), allow_pickle=False) as arrays:
            return arrays["X_times_10000"] / 10_000, arrays["y"].astype(np.int64)
    table = np.concatenate([_table(contents[name], dtype=np.float64, delimiter=",") for name in ISOLET])
    return table[:, :-1] + 0.0, table[:, -1].astype(np.int64)  # + 0.0 turns the -0 of the file into 0


def _mushroom(contents: dict[str, bytes]) -> Arrays:
    (text,) = contents.values()
    rows = np.array([line.split(",") for line in text.decode("ascii").split()], dtype="U1")
    return rows[:, 1:].copy(), rows[:, 0].copy()


def _images(contents: dict[str, bytes]) -> Arrays:
    parts = list(contents.values())
    X = np.concatenate([_idx(part, ndim=3) for part in parts[::2]])
    return X.reshape(len(X), -1), np.concatenate([_idx(part, ndim=1) for part in parts[1::2]]).astype(np.int64)


READERS = {
    "shuttle": _shuttle,
    "isolet": _isolet,
    "mushroom": _mushroom,
    "mnist": _images,
    "fashion-mnist": _images,
}


def _table(text: bytes, *, dtype: type, delimiter: str | None = None) -> np.ndarray:
    """The numbers of a text, one row a line; a line may end in a point."""
    lines = [line.rstrip().rstrip(".") for line in text.decode("ascii").splitlines()]
    if not any(lines):
        raise ValueError("it is empty")
    return np.loadtxt(lines, dtype=dtype, delimiter=delimiter, ndmin=2)


def _idx(content: bytes, *, ndim: int) -> np.ndarray:
    """An array of bytes in the IDX format: 0, 0, 8, ndim, then the lengths as big-endian int32, then the numbers."""
    if content[:4] != bytes([0, 0, 8, ndim]):
        raise ValueError(f"no IDX file of {ndim} axes of bytes: it begins with {content[:4].hex(' ')}")
    lengths = np.frombuffer(content, dtype=">i4", count=ndim, offset=4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * ndim).reshape(lengths.tolist())
