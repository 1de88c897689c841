"""Write src/dither/algorithms/signatures.pyi: the algorithms of the table, each with the settings that it takes.

It is what type checkers and editors know of `dither.LinFP(`: a misspelt algorithm or setting is an error there. The
table and the fields of models and policies are what is checked against at run time, so the stub is made of them.

    python .ci/stubs.py            writes it, as `make stubs` does; a test in tests/algorithms compares it
"""

import collections.abc
import dataclasses
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import dither
from dither import models
from dither.algorithms.algorithm import Algorithm
from dither.algorithms.fp import General

STUB = Path(__file__).parents[1] / "src" / "dither" / "algorithms" / "signatures.pyi"
HEAD = '''\
"""The algorithms of the table, each with its settings. Made of the table by `make stubs`: do not edit."""

# mypy: disable-error-code="override"
# An algorithm takes the settings of its own model and policy, and `Algorithm` those of any.

'''
STAND_FOR = ("estimator", "function", "slots")  # fields for which FP's `model` and `disjoint` stand
UNION = (typing.Union, types.UnionType)


class Stub:
    """The text of the stub, and the modules of the classes that it names."""

    def __init__(self) -> None:
        self.modules: dict[str, set[str]] = {}

    def __str__(self) -> str:
        body = "\n".join(map(self.algorithm, dither.ALGORITHMS.values()))
        lines = [f"from {module} import {', '.join(sorted(names))}\n" for module, names in sorted(self.modules.items())]
        ours = [line for line in lines if line.startswith("from dither")]
        imports = "".join(line for line in lines if line not in ours) + "\n" + "".join(ours)
        public = sorted((a.identifier for a in dither.ALGORITHMS.values()), key=lambda name: (not name.isupper(), name))
        names = "".join(f"    {quoted(name)},\n" for name in public)
        return f"{HEAD}{imports}\n__all__: list[str] = [\n{names}]\n\n{body}"

    def algorithm(self, algorithm: Algorithm) -> str:
        """The class of one algorithm, and its name."""
        first, *others = (
            f"{name}: {self.union(each)}{default}" for name, (each, default) in parameters(algorithm).items()
        )
        lines = "".join(f"        {line},\n" for line in ("self", first, "*", *others))
        name, parts = algorithm.identifier, f"{algorithm.policy.__name__}` and `{algorithm.model.__name__}"
        return (
            f"class _{name}({self.name(type(algorithm))}):\n"
            f"    def __call__(\n{lines}    ) -> {self.name(dither.Bandit)}:\n"
            f'        """{algorithm.summary}\n\n        Its settings are those of `{parts}`.\n        """\n\n'
            f"{name}: _{name}\n"
        )

    def union(self, kinds: list[Any]) -> str:
        """Any of these types; None comes last."""
        return " | ".join(sorted(map(self.text, kinds), key="None".__eq__))

    def text(self, kind: Any) -> str:
        """An annotation as Python writes it."""
        origin, parts = typing.get_origin(kind), typing.get_args(kind)
        if origin in UNION:
            return self.union(list(parts))
        if origin is Literal:
            return f"{self.name(Literal)}[{', '.join(map(quoted, parts))}]"
        if origin is collections.abc.Callable:
            inputs, output = parts
            return f"{self.name(origin)}[[{', '.join(map(self.text, inputs))}], {self.text(output)}]"
        if origin is not None:
            return f"{self.name(origin)}[{', '.join(map(self.text, parts))}]"
        return {None: "None", type(None): "None", ...: "..."}.get(kind) or self.name(kind)

    def name(self, kind: Any) -> str:
        """The name of a class, which is imported where it must be."""
        if kind.__module__ != "builtins":
            self.modules.setdefault(kind.__module__, set()).add(kind.__name__)
        return kind.__name__


def settings(algorithm: Algorithm) -> Iterator[tuple[str, Any, Any]]:
    """Name, type and default of what it takes, also with another model or policy that it may have."""
    for name, parameter in algorithm.__signature__.parameters.items():
        yield name, parameter.annotation, parameter.default
    of_model = (models.Regressor, models.Fixed) if isinstance(algorithm, General) else ()
    diagonal = (models.Diagonal,) if algorithm.model is models.Ridge else ()
    for kind in (*diagonal, *of_model, *algorithm.policy_of.values()):
        for field in dataclasses.fields(kind):
            if not (kind in of_model and field.name in STAND_FOR):
                yield field.name, field.type, field.default


def parameters(algorithm: Algorithm) -> dict[str, tuple[list[Any], str]]:
    """Setting -> the types that it may have, and its default as it is written."""
    kinds: dict[str, tuple[list[Any], str]] = {}
    for name, kind, default in settings(algorithm):
        plain = isinstance(default, (int, float, str, type(None)))
        each, _ = kinds.setdefault(name, ([], f" = {quoted(default) if plain else '...'}"))
        parts = typing.get_args(kind) if typing.get_origin(kind) in UNION else (kind,)
        each += [part for part in parts if part not in each]
    return kinds


def quoted(value: Any) -> str:
    """A plain value as this code base writes it."""
    return f'"{value}"' if isinstance(value, str) else repr(value)


if __name__ == "__main__":
    STUB.write_text(str(Stub()), encoding="utf-8")
