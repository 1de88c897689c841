"""A configuration and a state in a file: one `.npz` with the arrays and, as bytes, the JSON of everything else.

docs/live.md describes the file. A change that older files do not survive raises FORMAT by one, and puts into
`UPGRADES` what makes the new form of the old one. Files of every format since 2 are kept in the tests.

Nothing in it is executed: names of configurations are looked up in the table below, arrays are read without pickle,
and every shape is checked against a fresh state. A file is written beside its name and renamed, so it is whole or
absent. Members are stored as they are, so none is longer than the file: what is compressed is refused unread.
"""

import dataclasses
import io
import json
import numbers
import os
import tokenize
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from dither import _version, models, noise, policies
from dither.base import files, trees
from dither.deciding import baseline
from dither.models import adapting, digits

FORMAT = 4  # 2: states carry what rounding has done to them; 3: column by column; 4: in a GLM too
LATER = ("mass", "unread")  # arrays that older files lack, which mean what a fresh state has
BOUNDS = ("bound",)  # arrays that may be infinite: nothing is certain of what they bound
LIBRARY = "dither"
KNOWN: dict[str, type] = {  # the classes that a file may name; `know` adds those of algorithms
    name: cls
    for module in (models, policies, noise, baseline)
    for name, cls in vars(module).items()
    if isinstance(cls, type) and dataclasses.is_dataclass(cls)
}
T = TypeVar("T")
_MAGIC = b"PK\x03\x04"  # how a zip archive begins
_DAMAGED = (  # what may be raised, besides ValueError, where a file was not written by `write`
    *(zipfile.BadZipFile, tokenize.TokenError, EOFError, LookupError, NotImplementedError, RuntimeError),
    *(TypeError, AttributeError, OverflowError, RecursionError, MemoryError),
)


class WrongModel(ValueError):
    """The file is whole, and the model that was passed to go with it is not the one that it needs."""


class UnknownClass(ValueError):
    """The file is whole, and it holds a class, `name`, that is not of this library and was not passed."""

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


def know(*classes: Any) -> None:
    """Let files hold these classes, as an algorithm is made of them."""
    KNOWN.update((_name(cls), cls) for cls in classes if isinstance(cls, type))


def table(known: Iterable[type]) -> dict[str, type]:
    """The classes that a file may hold, with these, which go by their name alone, whatever module they are in."""
    if isinstance(known, type) or not all(isinstance(cls, type) for cls in known):
        raise TypeError(f"known must hold classes, as in known=(Mine,); got {known!r}")
    return KNOWN | {f":{cls.__name__}": cls for cls in known}


def defaults(name: Any) -> dict[str, Any]:
    """The fields of a class of this library, as `pack` has their defaults: an older file lacks those that are newer."""
    cls = KNOWN.get(name) if isinstance(name, str) else None
    of = dataclasses.fields(cls) if cls is not None and _of_library(cls) and dataclasses.is_dataclass(cls) else ()
    return {f.name: pack(f.default) for f in of if f.default is not dataclasses.MISSING}


def _name(cls: type) -> str:
    """What a file calls a class: NAME if it is of this library, else MODULE:NAME, as two modules may have one name."""
    return cls.__name__ if _of_library(cls) else f"{cls.__module__}:{cls.__name__}"


def _find(name: str, known: Mapping[str, type]) -> type | None:
    """The class of that name in a `table`; None where there is none."""
    alone = name.rpartition(":")[2]
    return known.get(name) if name == alone and name in known else known.get(f":{alone}", known.get(name))


def _of_library(cls: type | None) -> bool:
    return cls is not None and cls.__module__.partition(".")[0] == LIBRARY


def _columnwise(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Format 2 had what rounding has done in traces of V: `digits.of_traces`."""
    for name, F in list(arrays.items()):
        lost = arrays.get(f"{name.removesuffix('F')}lost") if name.rpartition(".")[2] == "F" else None
        if lost is not None and lost.shape == (*F.shape[:-2], 6):
            arrays[f"{name.removesuffix('F')}lost"] = digits.of_traces(lost, F)


_FORMER = ".".join(("lazy", "trace"))  # the end of a name in format 3 that no class has any more


def _diagonals(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Format 3 had traces of H and H⁻¹ in the states of a `GLM`, where format 4 has diagonals."""
    for name in [name for name in arrays if name.endswith(_FORMER)]:
        part = name.removesuffix(_FORMER)
        F = arrays.get(f"{part}G", arrays.get(f"{part}F"))
        if F is not None and F.ndim == arrays[name].ndim + 2:
            del arrays[name]
            inverse, diagonal = digits.diagonals(F)
            arrays |= {f"{part}lazy.{what}": one for what, one in (("inverse", inverse), ("diagonal", diagonal))}


UPGRADES: dict[int, Callable[[dict[str, Any], dict[str, np.ndarray]], None]] = {  # n -> turns format n into n + 1
    2: _columnwise,
    3: _diagonals,
}


@dataclasses.dataclass(frozen=True)
class Content:
    """What a file holds, whole, before anything is made of it."""

    where: str  # what the file is called in errors
    header: dict[str, Any]
    arrays: dict[str, np.ndarray]

    def build(
        self,
        rule: Callable[[dict[str, Any], dict[str, np.ndarray]], T],
        *,
        known: Mapping[str, type] = KNOWN,
        of_user: bool = False,
    ) -> T:
        """What `rule` makes of the header and the arrays. It must take all arrays out.

        known : the classes that the file may hold, a `table`
        of_user : an object of the user's takes part

        Raises ValueError for what `rule` refuses. An error of a user's own class is passed on as it is, because it is
        no sign of a damaged file.
        """
        classes = [_find(name, known) for name in _classes(self.header)]
        of_user = of_user or not all(_of_library(cls) for cls in classes if cls is not None)
        try:
            built = rule(self.header, self.arrays)
            if self.arrays:
                raise ValueError(f"it holds {sorted(self.arrays)}, which its configuration does not")
        except UnknownClass as reason:
            raise UnknownClass(
                f"{self.where} is not a dither file that can be read alone: {reason}", reason.name
            ) from None
        except WrongModel as reason:
            raise WrongModel(f"{self.where}: {reason}") from None
        except (ValueError, *_DAMAGED) as reason:
            if of_user:
                reason.add_note(f"while the bandit in {self.where} was made again")
                raise
            by, own_version = self.header.get("version"), _version.__version__
            other = "" if by == own_version else f", or of another version (by dither {by}, and this is {own_version})"
            raise _refused(self.where, f"It is damaged{other}", reason) from None
        return built


def _classes(value: Any) -> set[str]:
    """The names of all classes in what `pack` wrote. There is no recursion, so no depth of nesting is too deep."""
    names: set[str] = set()
    rest = [value]
    while rest:
        part = rest.pop()
        if isinstance(part, dict):
            name = part.get("class")
            names |= {name} if isinstance(name, str) else set()
            rest += part.values()
        elif isinstance(part, list):
            rest += part
    return names


def write(path: str | os.PathLike, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write atomically: whoever reads sees the old file or the new one, whole."""
    files.replace(Path(path), lambda file: _write(file, header, arrays))


def to_bytes(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """What `write` writes."""
    file = io.BytesIO()
    _write(file, header, arrays)
    return file.getvalue()


def _write(file: IO[bytes], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    about = {"format": FORMAT, "version": _version.__version__}
    text = np.frombuffer(json.dumps(about | header).encode(), dtype=np.uint8)
    content: dict[str, Any] = {"header": text} | arrays
    np.savez(file, **content)


def read(path: str | os.PathLike) -> Content:
    """The content of a file that `write` wrote.

    Raises FileNotFoundError; ValueError for anything that is not a whole file of this format.
    """
    with Path(path).open("rb") as file:  # a missing file or a folder says so itself
        return _read(file, str(path))


def from_bytes(data: bytes) -> Content:
    """The content of the bytes that `to_bytes` gave. Raises ValueError as `read` does."""
    return _read(io.BytesIO(data), f"what was passed ({len(data)} bytes)")


def _read(file: IO[bytes], where: str) -> Content:
    start = file.read(len(_MAGIC))
    if not _MAGIC.startswith(start):
        raise _refused(where, "It is a foreign file", f"it begins with {start!r}, and a dither file is a zip archive")
    if not start:
        raise _refused(where, "It is empty")
    if not zipfile.is_zipfile(file):
        raise _refused(where, "It is cut off", "the list of its parts, which stands at the end, is missing")
    try:
        arrays = _arrays(file)
        if "header" not in arrays:
            held = ", ".join(sorted(arrays)[:3]) or "nothing"
            raise _refused(where, "It is a foreign file", f"a zip archive of {held}, without a header")
        header = json.loads(arrays.pop("header").tobytes())
        if not isinstance(header, dict) or "format" not in header:
            raise _refused(where, "It is a foreign file", "its header names no format")
        number = header["format"]
        if type(number) is not int or number < 1:
            raise ValueError(f"its format is {number!r}")
    except Unreadable:
        raise
    except (ValueError, OSError, *_DAMAGED) as reason:
        raise _refused(where, "It is damaged", reason) from None
    by = f" by dither {header['version']}" if isinstance(header.get("version"), str) else ""
    if number > FORMAT:
        newer = f"it was written{by} in format {number}, and dither {_version.__version__} reads up to {FORMAT}"
        raise _refused(where, "It is of a newer version", f"{newer}: upgrade dither")
    for format in range(number, FORMAT):
        if format not in UPGRADES:
            older = f"it was written{by} in format {number}, of a development version"
            raise _refused(where, "It is of too old a version", f"{older}: learn again from the log")
        try:
            UPGRADES[format](header, arrays)
        except (ValueError, *_DAMAGED) as reason:
            raise _refused(where, "It is damaged", reason) from None
    return Content(where, header, arrays)


class Unreadable(ValueError):
    """A file that cannot be read, for a reason that is told."""


def _refused(where: str, which: str, reason: Exception | str = "") -> Unreadable:
    plain = isinstance(reason, (str, ValueError, OSError, LookupError, NotImplementedError, RuntimeError))
    odd = isinstance(reason, (KeyError, IndexError, RecursionError)) or not plain
    told = repr(reason) if odd else str(reason)
    return Unreadable(f"{where} is not a dither file that this version can read. {which}{told and ': '}{told}")


def _arrays(file: IO[bytes]) -> dict[str, np.ndarray]:
    """The arrays by name. An array is read only when its length is known to be true and no longer than the file."""
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        names = [member.filename.removesuffix(".npy") for member in members]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"it holds {twice[0]!r} twice")
        packed = [name for name, m in zip(names, members, strict=True) if m.compress_type != zipfile.ZIP_STORED]
        if packed:
            raise ValueError(f"its member {packed[0]!r} is compressed, which save never does")
        if sum(member.file_size for member in members) > size:
            raise ValueError(f"its members are {sum(m.file_size for m in members)} bytes long in a file of {size}")
        return {name: _array(archive, member) for name, member in zip(names, members, strict=True)}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    form = np.lib.format
    with archive.open(member) as file:
        if form.read_magic(file) != (1, 0):
            raise ValueError(f"its member {member.filename!r} is not of a kind that save writes")
        shape, _, dtype = form.read_array_header_1_0(file)
        long = member.file_size - file.tell()
    claimed = dtype.itemsize
    for n in shape:
        claimed *= n
    if dtype.hasobject or claimed != long:  # an array is allocated as its header says, before it is read
        raise ValueError(f"its member {member.filename!r} says {dtype}{shape}, and is {long} bytes long")
    with archive.open(member) as file:
        return form.read_array(file, allow_pickle=False)


def pack(value: Any) -> Any:
    """A configuration as JSON: a dataclass as its class's name and its fields."""
    if (fingerprint := adapting.fingerprint(value)) is not None:
        return {"given": fingerprint}
    if dataclasses.is_dataclass(value):
        return {"class": _name(type(value))} | {f.name: pack(getattr(value, f.name)) for f in dataclasses.fields(value)}
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


def model_of(value: Any, model: Any, known: Mapping[str, type]) -> Any:
    """The model that `pack` wrote. Where a file has only its fingerprint: the model passed, if that is its own."""
    saved = value.get("given") if isinstance(value, dict) else None
    if saved is None and model is not None:
        raise WrongModel("the file holds its model whole: leave model= out")
    if saved is None:
        return unpack(value, known)
    if model is None:
        raise WrongModel(f"the model is one that a file cannot hold, {saved}: pass it again, load(path, model=...)")
    if (got := adapting.fingerprint(model)) != saved:
        raise WrongModel(f"model= is not the model that was saved: it is {got}, and {saved} was saved")
    return model


def unpack(value: Any, known: Mapping[str, type]) -> Any:
    """The configuration that `pack` wrote, of classes in the `table` alone."""
    if isinstance(value, dict):
        name = value.pop("class")
        if not isinstance(name, str):
            raise LookupError(f"it holds a {name!r}, which is no class")
        cls, alone = _find(name, known), name.rpartition(":")[2]
        if cls is None and alone.isidentifier():
            raise UnknownClass(
                f"it holds a {alone}, which is not of this library. Pass that class too: load(path, known=({alone},))",
                alone,
            )
        if cls is None:
            raise LookupError(f"it holds a {name!r}, which is no class")
        return cls(**{k: unpack(v, known) for k, v in value.items()})
    return tuple(unpack(v, known) for v in value) if isinstance(value, list) else value


def fits(template: Any, content: Mapping[str, np.ndarray], *, model: Any) -> None:
    """Refuse to write arrays that `filled` could not put back into the template, the first state of the model."""
    for name, fresh in trees.leaves(template, "state").items():
        array, fresh = content[name], np.asarray(fresh)
        if not same_form(name, array, fresh):
            raise ValueError(
                f"{name} of {type(model).__name__} is {array.dtype}{array.shape}, and init makes {fresh.dtype}"
                f"{fresh.shape}: a file could not be read. Keep what grows in a field named history or buffer"
            )


def same_form(name: str, array: np.ndarray, fresh: np.ndarray) -> bool:
    """Whether an array can stand where the first state has `fresh`; a history or a buffer may have grown."""
    grows = any(part in ("history", "buffer") for part in name.split(".")) and array.ndim == fresh.ndim
    return array.dtype == fresh.dtype and (array.shape == fresh.shape or grows)


def filled(template: Any, content: dict[str, np.ndarray]) -> Any:
    """The template, a state, with its arrays taken out of `content`; a history or buffer may have grown."""
    names = iter(trees.leaves(template, "state"))

    def rule(fresh: np.ndarray) -> np.ndarray:
        name = next(names)
        fresh = np.asarray(fresh)
        array = content.pop(name, fresh) if name.rpartition(".")[2] in LATER else content.pop(name)
        if not same_form(name, array, fresh):
            raise ValueError(f"{name} is {array.dtype}{array.shape}, its configuration has {fresh.dtype}{fresh.shape}")
        if array.dtype.kind == "i" and array.size and array.min() < 0:
            raise ValueError(f"{name} counts below 0")
        unbounded = array == np.inf if name.rpartition(".")[2] in BOUNDS else False
        if array.dtype.kind == "f" and not (np.isfinite(array) | unbounded).all():
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
