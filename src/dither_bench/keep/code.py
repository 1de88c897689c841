"""Which code made a result: a fingerprint of all sources that can influence a run of a cell.

A run consists of the environment, the model and the policy as configured, and `simulate`. The fingerprint is made of

    classes, functions   the sources of their modules, and of what these import (`imported`)
    settings             numbers, text, arrays and other things, by value

Other settings make another cell, and not other code. A thing without a source, such as a class typed at a prompt, has
the fingerprint None, and its results are computed anew each time. The versions of NumPy and of other packages are not
part of the fingerprint; they stand in the metadata of the results.
"""

import dataclasses
import functools
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dither.base import parts
from dither.simulation.simulate import configured
from dither_bench.define import environments
from dither_bench.define.panels import Panel
from dither_bench.keep.imported import LIBRARY, NoSource, Sources, methods
from dither_bench.keep.store import Cell, of_panel
from dither_bench.keep.texts import digest, text_of

DIGITS = 16  # hexadecimal digits of a fingerprint
RUNS = "dither.simulation.simulate"  # the module that runs everything


def fingerprints(cells: Iterable[Cell]) -> dict[str, str | None]:
    """Key of a cell -> the fingerprint of the code that would run it now; None where it has none."""
    sources = Sources()
    return {cell.key: _fingerprint(cell, sources) for cell in cells}


def older(panels: Iterable[Panel], codes: Mapping[str, Sequence[str]], *, seed: int) -> list[str]:
    """Which algorithms of which panels have results of other code than they would have now.

    codes : key of a cell -> the codes whose results are shown; the first of them was the newest then. What cannot be
    told, because a file or a data set is gone, is left out.
    """
    changed = []
    for panel in panels:
        cells = of_panel(panel, seed=seed)
        try:
            now = fingerprints(cells.values())
        except (OSError, ImportError, LookupError, TypeError, ValueError, SyntaxError):
            continue
        then = {key: codes[key][0] for key in now if codes.get(key)}
        other = {key for key in then if now[key] not in (None, then[key])}
        changed += [f"{name} in {panel.name}" for name, cell in cells.items() if cell.key in other]
    return changed


def _fingerprint(cell: Cell, sources: Sources) -> str | None:
    env = environments.build(cell.env)
    model, policy = configured(cell.algorithm, env, rounds=cell.rounds)
    return of(environments.find(cell.env["name"]), type(env), model, policy, sources=sources)


def of(*things: Any, sources: Sources | None = None) -> str | None:
    """The fingerprint of objects, classes and functions and of the simulator; None where one of them has no source."""
    modules = {RUNS}
    try:
        texts = [_text(thing, modules, ()) for thing in things]
        hashes = (sources or Sources()).closure(modules)
    except (NoSource, RecursionError):
        return None
    return digest((texts, sorted((parts.label(name), *two) for name, two in hashes.items())))[:DIGITS]


def _text(thing: Any, modules: set[str], inside: tuple[int, ...]) -> Any:
    """What identifies a thing, besides the sources of its modules, which are added to `modules`.

    inside : the ids of the things that this one is a part of, so that a circle ends
    """
    if id(thing) in inside:
        return "itself"
    inside = (*inside, id(thing))

    def each(values: Iterable[Any]) -> list[Any]:
        return [_text(value, modules, inside) for value in values]

    if thing is None or isinstance(thing, (bool, int, float, complex, str, bytes)):
        return (type(thing).__name__, thing)
    if isinstance(thing, (np.ndarray, np.generic)) and thing.dtype != object:
        return (thing.shape, thing.dtype.str, thing.tobytes())
    if isinstance(thing, types.ModuleType):
        modules.add(thing.__name__)
        return thing.__name__
    if isinstance(thing, Mapping):
        return [type(thing).__name__, *each(thing), *each(thing.values())]
    if isinstance(thing, (set, frozenset)):
        return [type(thing).__name__, *sorted(map(repr, each(thing)))]
    if isinstance(thing, (list, tuple)):
        return [type(thing).__name__, *each(thing)]
    if isinstance(thing, type):
        kinds = [kind for kind in thing.__mro__ if kind.__module__ != "builtins"]
        modules.update(kind.__module__ for kind in kinds)
        foreign = [kind for kind in kinds if kind.__module__.partition(".")[0] not in LIBRARY]  # perhaps by a function
        return [thing.__qualname__, *(each(methods(kind)) for kind in foreign)]
    if isinstance(thing, (types.BuiltinFunctionType, np.ufunc)):
        return repr(thing) if isinstance(thing, np.ufunc) else f"{thing.__module__}.{thing.__qualname__}"
    if isinstance(thing, types.MethodType):
        return each((thing.__func__, thing.__self__))
    if isinstance(thing, types.FunctionType):
        if thing.__module__ is None:  # a text that was executed, and no module
            raise NoSource(thing.__qualname__)
        modules.add(thing.__module__)
        closed = [cell.cell_contents for cell in thing.__closure__ or ()]
        return [thing.__qualname__, text_of(thing.__code__), *each((thing.__defaults__, thing.__kwdefaults__, closed))]
    return [*each((type(thing), _held(thing)))]


def _held(thing: Any) -> dict[str, Any]:
    """The content of an object, by name. Raises NoSource where it cannot be told."""
    if dataclasses.is_dataclass(thing):
        return {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)}
    if isinstance(thing, functools.partial):
        return {"func": thing.func, "args": thing.args, "keywords": thing.keywords}
    if hasattr(thing, "get_params"):  # an estimator
        return thing.get_params(deep=False)
    if hasattr(thing, "__dict__"):
        return dict(vars(thing))
    raise NoSource(type(thing).__name__)
