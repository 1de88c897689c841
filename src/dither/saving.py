"""A configuration and a state in a file: one `.npz` with the arrays and, as bytes, the JSON of everything else.

Nothing in it is executed: names of configurations are looked up in the table below, arrays are read without pickle,
and every shape is checked against a fresh state. A file is written beside its name and renamed, so it is whole or
absent.
"""

import dataclasses
import json
import lzma
import numbers
import os
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dither import files, models, noise, policies, trees

FORMAT = 1
KNOWN: dict[str, type] = {
    cls.__name__: cls for cls in (getattr(m, n) for m in (models, policies) for n in m.__all__)
} | {cls.__name__: cls for cls in (noise.Gaussian, noise.Ball, noise.Points)}
T = TypeVar("T")
_DAMAGED = (  # what reading a file that was not written by `write` may raise, besides ValueError and LookupError
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, tokenize.TokenError, EOFError, KeyError, IndexError),
    *(TypeError, AttributeError, OverflowError, RecursionError, MemoryError),
)


class WrongModel(ValueError):
    """The file is whole, and the model that was passed to go with it is not the one that it needs."""


def write(path: str | os.PathLike, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write atomically: whoever reads sees the old file or the new one, whole."""
    text = np.frombuffer(json.dumps({"format": FORMAT} | header).encode(), dtype=np.uint8)
    content: dict[str, Any] = {"header": text} | arrays
    files.replace(Path(path), lambda file: np.savez(file, **content))


def read(path: str | os.PathLike, build: Callable[[dict[str, Any], dict[str, np.ndarray]], T]) -> T:
    """What `build` makes of the header and the arrays of a file that `write` wrote.

    Raises FileNotFoundError; ValueError for anything that is not a whole file of this format or that `build` refuses.
    """
    try:
        content = _arrays(path)
        header = json.loads(content.pop("header").tobytes())
        if type(header["format"]) is not int or header["format"] < 1:
            raise ValueError(f"its format is {header['format']!r}")
        if header["format"] > FORMAT:
            raise ValueError(f"its format is {header['format']}, this version reads up to {FORMAT}: upgrade dither")
        built = build(header, content)
        if content:
            raise ValueError(f"it holds {sorted(content)}, which its configuration does not")
    except WrongModel as reason:
        raise WrongModel(f"{path}: {reason}") from None
    except _DAMAGED as reason:
        raise ValueError(f"{path} is not a dither file, or a damaged one: {reason!r}") from None
    except (ValueError, LookupError, NotImplementedError, RuntimeError) as reason:
        raise ValueError(f"{path} is not a dither file, or a damaged one: {reason}") from None
    return built


def _arrays(path: str | os.PathLike) -> dict[str, np.ndarray]:
    with Path(path).open("rb") as file:  # a missing file or a folder says so itself
        try:
            if not zipfile.is_zipfile(file):
                raise ValueError("it is no zip archive")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except OSError as reason:
            raise ValueError(str(reason)) from None


def pack(value: Any) -> Any:
    """A configuration as JSON: a dataclass as its class's name and its fields."""
    if (known := fingerprint(value)) is not None:
        return {"given": known}
    if dataclasses.is_dataclass(value):
        return {"class": type(value).__name__} | {
            f.name: pack(getattr(value, f.name)) for f in dataclasses.fields(value)
        }
    if isinstance(value, tuple):
        return [pack(v) for v in value]
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, numbers.Real):
        return int(value) if isinstance(value, numbers.Integral) else float(value)
    raise TypeError(
        f"a file cannot hold {value!r}: settings must be numbers, texts, tuples or dataclasses (for c a number or a "
        f"named schedule rather than a function)"
    )


def given(value: Any, model: Any, table: dict[str, type]) -> Any:
    """The model that `pack` wrote; where a file holds its fingerprint alone, the model given, if it is that one."""
    known = value.get("given") if isinstance(value, dict) else None
    if known is None and model is not None:
        raise WrongModel("the file holds its model whole: leave model= out")
    if known is None:
        return unpack(value, table)
    if model is None:
        raise WrongModel(f"the model is one that a file cannot hold, {known}: pass it again, load(path, model=...)")
    if (got := fingerprint(model)) != known:
        raise WrongModel(f"model= is not the model that was saved: it is {got}, and {known} was saved")
    return model


def fingerprint(model: Any) -> str | None:
    """What a model says of itself where a file cannot hold it; None where it can."""
    return model.fingerprint() if hasattr(model, "fingerprint") else None


def unpack(value: Any, table: dict[str, type]) -> Any:
    """The configuration that `pack` wrote, of classes in the table alone."""
    if isinstance(value, dict):
        name = value.pop("class")
        if name not in table:
            raise LookupError(f"it holds a {name}, which is not of this library: pass known=({name},) to load")
        return table[name](**{k: unpack(v, table) for k, v in value.items()})
    return tuple(unpack(v, table) for v in value) if isinstance(value, list) else value


def filled(template: Any, content: dict[str, np.ndarray]) -> Any:
    """The template, a state, with its arrays taken out of `content`; a history or buffer may have grown."""
    names = iter(trees.leaves(template, "state"))

    def rule(fresh: np.ndarray) -> np.ndarray:
        name = next(names)
        array, fresh = content.pop(name), np.asarray(fresh)
        grown = (".history." in name or ".buffer." in name) and array.ndim == fresh.ndim
        if (array.shape != fresh.shape and not grown) or array.dtype != fresh.dtype:
            raise ValueError(f"{name} is {array.dtype}{array.shape}, its configuration has {fresh.dtype}{fresh.shape}")
        if array.dtype.kind == "i" and array.size and array.min() < 0:
            raise ValueError(f"{name} counts below 0")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} holds values that are not finite")
        return array

    return trees.map_arrays(rule, template)


def plain(state: Any) -> Any:
    """The state of a bit generator with lists for arrays."""
    if isinstance(state, dict):
        return {k: plain(v) for k, v in state.items()}
    return [int(v) for v in state] if isinstance(state, np.ndarray) else state


def unplain(state: Any) -> Any:
    """The state of a bit generator that `plain` wrote."""
    if isinstance(state, dict):
        return {k: unplain(v) for k, v in state.items()}
    return np.array(state, dtype=np.uint64) if isinstance(state, list) else state
