"""What the text of a module says: the hash of its code without docstrings, its imports, and the code it compiles to.

A text is parsed, compiled and written out as a tree. For the modules of the library this takes a second, as long as a
small experiment. So it is done once. What the library's texts say is kept in a file beside what Python has compiled of
them, and is used where a text is the same to the byte. Where Python may write nothing there, each process works it out
anew. The texts of a user are few, and are not kept.
"""

import ast
import contextlib
import functools
import hashlib
import importlib.util
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dither.base import files

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
DIGITS = 32  # hexadecimal digits that tell compiled code from other code
Imports = tuple[tuple[int, str, tuple[str, ...]], ...]  # level, module and names; () for `import module`


class ModuleText(NamedTuple):
    """What the text of a module says."""

    hash: str  # of its code, without docstrings
    imports: Imports
    codes: frozenset[str]  # `short` of all code that is compiled from it


@functools.cache
def read(text: bytes) -> ModuleText:
    """Raises SyntaxError or ValueError for what is no Python."""
    tree = ast.parse(text)
    codes = frozenset(short(text_of(code)) for code in _codes(compile(tree, "", "exec", dont_inherit=True)))
    imports: list[tuple[int, str, tuple[str, ...]]] = []
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            imports += [(0, alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imports.append((node.level, node.module or "", tuple(alias.name for alias in node.names)))
        elif isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ModuleText(digest(ast.dump(tree)), tuple(imports), codes)


class KeptTexts:
    """What the texts of the library say, in a file: module -> the hash of its bytes, and its `ModuleText`."""

    def __init__(self, path: Path | None) -> None:
        self.path, self._new = path, False
        self._texts: dict[str, tuple[str, ModuleText]] = {}
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):  # none, cut, or of another version of this
            content: Any = json.loads(path.read_bytes()) if path else {"python": None}
            if content["python"] == sys.version:
                self._texts = {name: (of, _from_json(*row)) for name, (of, *row) in content["texts"].items()}

    def of(self, module: str, text: bytes) -> ModuleText:
        """Raises as `read`."""
        name = hashlib.sha256(text).hexdigest()
        if self._texts.get(module, ("",))[0] != name:
            self._texts[module], self._new = (name, read(text)), True
        return self._texts[module][1]

    def keep(self) -> None:
        """Write what is new, where that is possible."""
        if not self._new or self.path is None:
            return
        self._new = False
        rows = {
            module: (name, text.hash, text.imports, sorted(text.codes)) for module, (name, text) in self._texts.items()
        }
        content = json.dumps({"python": sys.version, "texts": rows}).encode()
        with contextlib.suppress(OSError):
            files.replace(self.path, lambda file: file.write(content), parents=True)


@functools.cache
def of_library() -> KeptTexts:
    """The one of this process."""
    try:
        beside = None if sys.dont_write_bytecode else Path(importlib.util.cache_from_source(__file__))
    except NotImplementedError:  # this Python keeps nothing that it has compiled
        beside = None
    return KeptTexts(beside and beside.with_suffix(".json"))


def of(text: bytes, *, module: str | None) -> ModuleText:
    """What a text says. module : the name of the library's module that it is of; None: it is of none.

    Raises as `read`.
    """
    return read(text) if module is None else of_library().of(module, text)


def keep() -> None:
    """Let later processes know what this one has worked out of the library's texts."""
    of_library().keep()


def _from_json(digest: str, imports: list[Any], codes: list[str]) -> ModuleText:
    each = tuple((int(level), str(module), tuple(map(str, names))) for level, module, names in imports)
    return ModuleText(str(digest), each, frozenset(map(str, codes)))


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """The tree and all statements in it. Expressions, which are most of a tree, are not looked into."""
    ahead: list[ast.AST] = [tree]
    while ahead:
        node = ahead.pop()
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            ahead += getattr(node, name, ())


def digest(thing: Any) -> str:
    """SHA-256 of the text of a thing, as `repr` gives it."""
    return hashlib.sha256(repr(thing).encode()).hexdigest()


def short(text: str) -> str:
    """The text of compiled code, as a hash."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


@functools.cache
def text_of(compiled: types.CodeType) -> str:
    """What compiled code does, as text, without the lines and the file where it stands."""
    inner = [text_of(one) if isinstance(one, types.CodeType) else _constant(one) for one in compiled.co_consts]
    return repr((compiled.co_code, compiled.co_names, compiled.co_varnames, compiled.co_freevars, inner))


def _constant(value: Any) -> Any:
    """A constant as text; the order of a frozenset differs between processes."""
    return sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)


def _codes(compiled: types.CodeType) -> list[types.CodeType]:
    """The compiled code and all code inside it."""
    inner = [one for one in compiled.co_consts if isinstance(one, types.CodeType)]
    return [compiled, *(code for one in inner for code in _codes(one))]
