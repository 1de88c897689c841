"""The modules that a module imports, and hashes of their sources. `code` uses them to tell results of other code apart.

The modules of this library and those in a folder of the user's are read. Installed packages and Python itself are not.
A comment or a docstring does not change a hash. No module is imported in order to read it. What a text says, `texts`
works out.
"""

import importlib.util
import inspect
import sys
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dither.base import parts
from dither_bench.keep import texts
from dither_bench.keep.texts import ModuleText, digest, short, text_of

LIBRARY = ("dither", "dither_bench")  # the packages of this distribution
# These cannot change a run. What `algorithms` makes, a model and a policy as configured, is looked at instead.
BESIDE = ("dither.algorithms", "dither.base.drawing", "dither.cli", "dither.experiments", "dither_bench")


class NoSource(Exception):
    """Something that takes part in a run has no source that can be read."""


class Sources:
    """The sources as they are now. Each is read once: make new `Sources` to look again."""

    def __init__(self) -> None:
        self._paths: dict[str, Path | None] = {}
        self._modules: dict[str, tuple[tuple[str, str], list[str]]] = {}

    def closure(self, modules: Iterable[str]) -> dict[str, tuple[str, str]]:
        """The hashes by name of these modules and of all modules that they import, directly or not, and that are read.

        Raises NoSource where one of them has no source.
        """
        hashes: dict[str, tuple[str, str]] = {}
        ahead = list(modules)
        while ahead:
            name = ahead.pop()
            if name not in hashes:
                if name not in self._modules:
                    self._modules[name] = self._look(name)
                hashes[name], imports = self._modules[name]
                ahead += imports
        texts.keep()
        return hashes

    def _look(self, name: str) -> tuple[tuple[str, str], list[str]]:
        """The hashes of a module: of its file and, where other code was loaded from it, of that code, or else ''.

        With them, the modules that it imports at any place, of those that are read.
        """
        path = self._path(name)
        if path is None:
            raise NoSource(name)
        try:
            text = texts.of(path.read_bytes(), module=name if name.partition(".")[0] in LIBRARY else None)
        except (SyntaxError, ValueError, OSError):
            raise NoSource(name) from None
        loaded = sorted(text_of(function.__code__) for function in _functions(sys.modules.get(name)))
        other = [code for code in loaded if short(code) not in text.codes]
        imports = dict.fromkeys(self._imported(name, text, is_package=path.name == "__init__.py"))
        return (text.hash, digest(other) if other else ""), [module for module in imports if self._read(module)]

    def _read(self, name: str) -> bool:
        if name.partition(".")[0] in LIBRARY:
            return not f"{name}.".startswith(tuple(f"{beside}." for beside in BESIDE))
        path = self._path(name)
        return path is not None and not parts.installed(path)

    def _path(self, name: str) -> Path | None:
        """The source file of a module; None: it has none, or there is no such module."""
        if name not in self._paths:
            self._paths[name] = self._find(name)
        return self._paths[name]

    def _find(self, name: str) -> Path | None:
        package, _, last = name.rpartition(".")
        if name in sys.modules:
            file = getattr(sys.modules[name], "__file__", None)
            path = _source(Path(file)) if file else None
            foreign = name == "__main__" and path is not None and parts.installed(path)  # the process was started by it
            return None if foreign else path
        if package:
            parent = self._path(package)
            if parent is None or parent.name != "__init__.py":
                return None
            return _source(parent.parent / f"{last}.py") or _source(parent.parent / last / "__init__.py")
        try:
            spec = importlib.util.find_spec(name)  # of a name without a dot: this imports nothing
        except (ImportError, ValueError):
            return None
        return _source(Path(spec.origin)) if spec and spec.origin else None

    def _imported(self, name: str, text: ModuleText, *, is_package: bool) -> Iterator[str]:
        here = name.split(".")[: None if is_package else -1]
        for level, module, names in text.imports:
            above = here[: len(here) - level + 1] if level else []
            base = ".".join([*above, *filter(None, [module])])
            inner = [f"{base}.{name}" for name in names]
            for one in (one if self._path(one) is not None else base for one in inner) if names else [base]:
                yield from self._whole(one)

    def _whole(self, name: str) -> Iterator[str]:
        """The module. For a package of the library all modules in it: it may look a name up only when that is used."""
        yield name
        path = self._path(name)
        if path is not None and path.name == "__init__.py" and name.partition(".")[0] in LIBRARY:
            for inner in sorted(path.parent.rglob("*.py")):
                steps = inner.relative_to(path.parent).with_suffix("").parts
                module = ".".join((name, *(step for step in steps if step != "__init__")))
                if self._path(module) is not None:  # a script in a folder that is no package is no module
                    yield module


def _source(path: Path) -> Path | None:
    """The path, if it is that of a source file."""
    path = path.resolve()
    return path if path.suffix == ".py" and path.is_file() else None


def _functions(module: types.ModuleType | None) -> Iterator[types.FunctionType]:
    """The functions and methods that were defined in a loaded module, without those that a decorator generated."""
    for value in list(vars(module).values()) if module else []:
        if getattr(value, "__module__", None) == getattr(module, "__name__", None):
            yield from methods(value) if isinstance(value, type) else filter(None, [function(value)])


def methods(kind: type) -> list[types.FunctionType]:
    """The functions that were written in a class, without those that a decorator such as `dataclass` generated."""
    inner = filter(None, map(function, vars(kind).values()))
    return [one for one in inner if one.__module__ == kind.__module__]


def function(value: Any) -> types.FunctionType | None:
    """The function under a method, a property or a decorator; None for a generated one, and for anything else."""
    value = getattr(value, "__func__", None) or getattr(value, "fget", None) or getattr(value, "func", None) or value
    value = inspect.unwrap(value) if callable(value) else value
    return value if isinstance(value, types.FunctionType) and value.__code__.co_filename != "<string>" else None
