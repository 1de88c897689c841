"""Parts of the user's own, by the text that says where they are: "mine.py:BGE", or "package.module:BGE".

A file is loaded once in a process, under a module name of its own. So files of one name in two folders do not meet, and
every process gives a file the same name. The folder of a file comes last in `sys.path`: it may import what lies beside
it. What is loaded stays as it is until `fresh` or `refresh` finds that a file was edited.
"""

import ast
import contextlib
import hashlib
import importlib.util
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from dither.base import errors

PREFIX = "own_"  # of the module names of files
PYTHON = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))
INSTALLED = {"site-packages", "dist-packages"}
_FILE = re.compile(r"(.+?\.py):([^\W\d]\w*)(?::(.*))?", re.DOTALL)
_MODULE = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)+):([^\W\d]\w*)(?::(.*))?", re.DOTALL)


@dataclass(frozen=True)
class UserPart:
    """Where a part is."""

    source: str  # the absolute path of a file, or the dotted name of a module
    name: str  # of the part in it

    @property
    def is_file(self) -> bool:
        """Whether the source is a file."""
        return self.source.endswith(".py")

    @property
    def text(self) -> str:
        """The text that finds it again: with the whole path of a file."""
        return f"{self.source}:{self.name}"

    def __str__(self) -> str:
        return f"{Path(self.source).name if self.is_file else self.source}:{self.name}"


class _Loaded(NamedTuple):
    """A file as it was loaded."""

    module: ModuleType
    beside: tuple[str, ...]  # the modules in its folder that it imports, directly or not
    texts: dict[Path, bytes]  # of the file and of those modules


_LOADED: dict[str, _Loaded] = {}  # path -> what was loaded from it


def split(text: str) -> tuple[UserPart, str] | None:
    """The part that a text begins with, and what follows its name after a colon; None where it names no own part."""
    if match := _FILE.fullmatch(text):
        file, name, rest = match.groups()
        return UserPart(str(Path(file).expanduser().resolve()), name), rest or ""
    if match := _MODULE.fullmatch(text):
        module, name, rest = match.groups()
        return UserPart(module, name), rest or ""
    file, colon, name = text.partition(":")
    if colon and file.isidentifier() and Path(f"{file}.py").is_file() and name.partition(":")[0].isidentifier():
        raise ValueError(
            f"no algorithm or environment {text!r}: for a part of the file {file}.py write {file}.py:{name}"
        )
    file, colon, _ = text.partition(".py:")
    if colon or text.endswith(".py"):
        raise ValueError(f"say which part of {file.removesuffix('.py')}.py: FILE.py:NAME, got {text!r}")
    return None


def short(text: str) -> str:
    """The text without the folder of a file; any other text as it is."""
    in_file = split(text)
    return text if in_file is None else ":".join(filter(None, map(str, in_file)))


def find(part: UserPart) -> Any:
    """The part. Raises OSError, ImportError or LookupError that says what is missing, with the nearest name."""
    module = load(part.source)
    if not hasattr(module, part.name):
        what = f"part in {module.__file__ if part.is_file else part.source}"
        names = [name for name, thing in vars(module).items() if _defines(module, name, thing)]
        if not names:
            raise LookupError(f"no {what} {part.name!r}: it defines none")
        raise errors.unknown(what, part.name, names=names)
    return getattr(module, part.name)


def _defines(module: ModuleType, name: str, thing: Any) -> bool:
    """Whether the module defines the thing, as a part may be."""
    algorithm = hasattr(thing, "configure") and not isinstance(thing, type)
    return not name.startswith("_") and (algorithm or getattr(thing, "__module__", None) == module.__name__)


def load(source: str) -> ModuleType:
    """The module of a file or of a dotted name."""
    if not source.endswith(".py"):
        return _imported(source)
    if source not in _LOADED:
        _LOADED[source] = _executed(Path(source))
    return _LOADED[source].module


def fresh(source: str) -> None:
    """Forget the file, and what it imports from its folder, if one of them was edited since it was loaded."""
    loaded = _LOADED.get(source)
    if loaded is not None and any(_text(path) != text for path, text in loaded.texts.items()):
        del _LOADED[source]
        for name in [n for n in sys.modules if n.partition(".")[0] in loaded.beside]:
            del sys.modules[name]
        importlib.invalidate_caches()


def refresh() -> None:
    """`fresh` for all that is loaded."""
    for source in list(_LOADED):
        fresh(source)


class Travel:
    """First among what is sent to another process: the files that are loaded here are then loaded there."""

    def __init__(self, sources: tuple[str, ...] | None = None) -> None:
        self.sources = tuple(_LOADED) if sources is None else sources

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self.sources,)


def _arrived(sources: tuple[str, ...]) -> Travel:
    for source in sources:
        fresh(source)
        load(source)
    return Travel(sources)


def label(module: str) -> str:
    """The name of a module; for a file of the user's, its own name without what tells its folder."""
    return module.removeprefix(PREFIX).rpartition("_")[0] if module.startswith(PREFIX) else module


def installed(path: Path) -> bool:
    """Whether a source file belongs to an installed package or to Python itself."""
    return bool(INSTALLED & set(path.parts)) or any(map(path.is_relative_to, PYTHON))


def place(error: BaseException) -> str:
    """Where in the user's own files an error was raised: "mine.py, line 3"; "" where it was in none of them."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{error.filename}, line {error.lineno}"
    files = {str(path) for loaded in _LOADED.values() for path in loaded.texts}
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    there = re.findall(r'File "(.+?)", line (\d+)', str(error.__cause__))  # as another process tells it
    in_files = [f"{file}, line {line}" for file, line in [*frames, *there] if file in files]
    return in_files[-1] if in_files else ""


def _executed(path: Path) -> _Loaded:
    text = _text(path)
    if text is None:
        raise FileNotFoundError(f"there is no file {path}")
    _reach(path.parent)
    name = f"{PREFIX}{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    loaded = _LOADED[str(path)] = _Loaded(module, (), {path: text})  # for `place`
    sys.modules[name] = module
    try:
        code = compile(text, str(path), "exec", dont_inherit=True)
        beside = _beside(path)
        loaded = _LOADED[str(path)] = _Loaded(module, tuple(beside), {path: text} | _texts(beside.values()))
        with _uncached():
            exec(code, module.__dict__)  # not by the loader, whose cache of compiled code may be a second old
    except (Exception, SystemExit) as error:
        where = place(error) or str(path)
        del _LOADED[str(path)], sys.modules[name]
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise ImportError(f"{where}: {type(error).__name__}: {reason}") from error
    return loaded


@contextlib.contextmanager
def _uncached() -> Iterator[None]:
    """What is imported meanwhile leaves no compiled code: it would stand for a file edited within the same second."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _imported(name: str) -> ModuleType:
    _reach(Path.cwd())
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            cure = "run this in the folder that holds it, or write FILE.py:NAME"
            raise ImportError(f"no module {name}: {cure}") from None
        frames = [f for f in traceback.extract_tb(error.__traceback__) if not installed(Path(f.filename))]
        at = f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else name
        raise ImportError(f"{place(error) or at}: {type(error).__name__}: {error}") from error


def _reach(folder: Path) -> None:
    """Let what lies in the folder be imported; what is installed comes before it."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _beside(path: Path) -> dict[str, Path]:
    """Name -> file of the modules in the folder of a file that it imports, directly or not.

    Raises ImportError where another folder's module of such a name is loaded.
    """
    beside: dict[str, Path] = {}
    ahead = [path]
    while ahead:
        for name in _names(ahead.pop()):
            inner = next(filter(Path.is_file, (path.parent / f"{name}.py", path.parent / name / "__init__.py")), None)
            if inner is None or name in beside or name == path.stem:
                continue
            taken = _taken(name)
            if taken is not None and taken != inner:
                if installed(taken):
                    continue
                raise ImportError(f"{path} imports {name}, and {taken} has this name: call {inner} otherwise")
            beside[name] = inner
            ahead += [inner] if inner.name != "__init__.py" else sorted(inner.parent.rglob("*.py"))
    return beside


def _taken(name: str) -> Path | None:
    """The file that an import of this name would give now."""
    if name in sys.modules:
        file = getattr(sys.modules[name], "__file__", None)
    else:
        spec = importlib.util.find_spec(name)
        file = spec.origin if spec else None
    return Path(file).resolve() if file else None


def _names(path: Path) -> Iterator[str]:
    """The first names of the modules that a file imports, at any place."""
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


def _texts(paths: Any) -> dict[Path, bytes]:
    files = (inner for path in paths for inner in (path.parent.rglob("*.py") if path.name == "__init__.py" else [path]))
    return {file: file.read_bytes() for file in files}


def _text(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
