"""The modules that a module imports, and hashes of their sources. `code` uses them to tell results of other code apart.

The modules of this library and those in a folder of the user's are read. Installed packages and Python itself are not.
A comment or a docstring does not change a hash. No module is imported in order to read it.
"""

import ast
import hashlib
import importlib.util
import inspect
import sys
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dither.base import parts

LIBRARY = ("dither", "dither_bench")  # the packages of this distribution
# These cannot change a run. What `algorithms` makes, a model and a policy as configured, is looked at instead.
BESIDE = ("dither.algorithms", "dither.base.drawing", "dither.cli", "dither.experiments", "dither_bench")


class NoSource(Exception):
    """Something that takes part in a run has no source that can be read."""


class Sources:
    """The sources as they are now. Each is read once: make new `Sources` to look again."""

    def __init__(self) -> None:
        self._paths: dict[str, Path | None] = {}
        self._trees: dict[str, ast.Module] = {}
        self._imports: dict[str, tuple[str, ...]] = {}
        self._hashes: dict[str, tuple[str, str]] = {}

    def closure(self, modules: Iterable[str]) -> dict[str, tuple[str, str]]:
        """The hashes by name of these modules and of all modules that they import, directly or not, and that are read.

        Raises NoSource where one of them has no source.
        """
        found: dict[str, tuple[str, str]] = {}
        ahead = list(modules)
        while ahead:
            name = ahead.pop()
            if name not in found:
                found[name] = self._hash(name)
                ahead += [other for other in self._imported(name) if self._looked_at(other)]
        return found

    def _looked_at(self, name: str) -> bool:
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

    def _tree(self, name: str) -> ast.Module:
        if name not in self._trees:
            path = self._path(name)
            if path is None:
                raise NoSource(name)
            try:
                self._trees[name] = ast.parse(path.read_bytes())
            except (SyntaxError, ValueError, OSError):
                raise NoSource(name) from None
        return self._trees[name]

    def _hash(self, name: str) -> tuple[str, str]:
        """The hash of the module's file. Where other code was loaded from it, the hash of that code too, or else ''."""
        if name not in self._hashes:
            tree = self._tree(name)
            compiled = {repr(code(inner)) for inner in _codes(compile(tree, name, "exec", dont_inherit=True))}
            loaded = sorted(repr(code(function.__code__)) for function in _functions(sys.modules.get(name)))
            other = [text for text in loaded if text not in compiled]
            self._hashes[name] = (digest(ast.dump(_without_docstrings(tree))), digest(other) if other else "")
        return self._hashes[name]

    def _imported(self, name: str) -> tuple[str, ...]:
        """The modules that it imports, at any place."""
        if name not in self._imports:
            self._imports[name] = tuple(dict.fromkeys(self._names(name)))
        return self._imports[name]

    def _names(self, name: str) -> Iterator[str]:
        path = self._path(name)
        here = name.split(".") if path is not None and path.name == "__init__.py" else name.split(".")[:-1]
        for node in ast.walk(self._tree(name)):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from self._whole(alias.name)
            elif isinstance(node, ast.ImportFrom):
                above = here[: len(here) - node.level + 1] if node.level else []
                base = ".".join([*above, *filter(None, [node.module])])
                for alias in node.names:
                    inner = f"{base}.{alias.name}"
                    yield from self._whole(inner if self._path(inner) is not None else base)

    def _whole(self, name: str) -> Iterator[str]:
        """The module. For a package of the library all modules in it: it may look a name up only when that is used."""
        yield name
        path = self._path(name)
        if path is not None and path.name == "__init__.py" and name.partition(".")[0] in LIBRARY:
            for inner in sorted(path.parent.rglob("*.py")):
                parts = inner.relative_to(path.parent).with_suffix("").parts
                module = ".".join((name, *(part for part in parts if part != "__init__")))
                if self._path(module) is not None:  # a script in a folder that is no package is no module
                    yield module


def digest(thing: Any) -> str:
    """SHA-256 of the text of a thing, as `repr` gives it."""
    return hashlib.sha256(repr(thing).encode()).hexdigest()


def code(compiled: types.CodeType) -> tuple[Any, ...]:
    """What compiled code does, without the lines and the file where it stands."""
    inner = [code(c) if isinstance(c, types.CodeType) else _constant(c) for c in compiled.co_consts]
    return (compiled.co_code.hex(), compiled.co_names, compiled.co_varnames, compiled.co_freevars, inner)


def _constant(value: Any) -> Any:
    """A constant as text; the order of a frozenset differs between processes."""
    return sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)


def _source(path: Path) -> Path | None:
    """The path, if it is that of a source file."""
    path = path.resolve()
    return path if path.suffix == ".py" and path.is_file() else None


def _codes(compiled: types.CodeType) -> Iterator[types.CodeType]:
    """The compiled code and all code inside it."""
    yield compiled
    for inner in compiled.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _codes(inner)


def _functions(module: types.ModuleType | None) -> Iterator[types.FunctionType]:
    """The functions and methods that were defined in a loaded module, without those that a decorator generated."""
    for value in list(vars(module).values()) if module else []:
        if getattr(value, "__module__", None) == getattr(module, "__name__", None):
            yield from methods(value) if isinstance(value, type) else filter(None, [function(value)])


def methods(kind: type) -> Iterator[types.FunctionType]:
    """The functions that were written in a class, without those that a decorator such as `dataclass` generated."""
    for value in vars(kind).values():
        found = function(value)
        if found is not None and found.__module__ == kind.__module__:
            yield found


def function(value: Any) -> types.FunctionType | None:
    """The function under a method, a property or a decorator; None for a generated one, and for anything else."""
    value = getattr(value, "__func__", None) or getattr(value, "fget", None) or getattr(value, "func", None) or value
    value = inspect.unwrap(value) if callable(value) else value
    return value if isinstance(value, types.FunctionType) and value.__code__.co_filename != "<string>" else None


def _without_docstrings(tree: ast.Module) -> ast.Module:
    """The tree itself, after its docstrings have been removed."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (
            ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:]
    return tree
