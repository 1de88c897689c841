"""Where a model comes in: a class of a user's that does not stand on `Model` gets the defaults, and faults are said.

This is the only place that looks whether a model has a part. `faults` says what is wrong with one before anything is
done with it, `adapted` gives it all parts, `look` asks a user's model once.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from dither.models.model import PAGE, Model

REQUIRED = ("abilities", "init", "update", "mean")
PARTS = tuple(name for name in vars(Model) if not name.startswith("_"))


class Adapted(Model):
    """A model of a user's class. It has the parts that the class has, and those of `Model` in place of the others.

    A policy of the user's finds here whatever else the model has. `isinstance` and errors take it for the user's class.
    """

    init: Any = None  # as `update` and `mean`, the model's own, in every instance
    update: Any = None
    mean: Any = None

    def __init__(self, model: Any) -> None:
        vars(self).update({part: getattr(model, part) for part in PARTS if hasattr(model, part)}, _original=model)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __repr__(self) -> str:
        return repr(self._original)

    def __reduce__(self) -> tuple[Any, ...]:
        return adapted, (self._original,)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._original)


def adapted(model: object) -> Model:
    """The model with all parts. A model that stands on `Model` has them, and is returned as it is."""
    kind: Any = type(model)
    return model if isinstance(model, Model) else _kind(kind)(model)


def original(model: Any) -> Any:
    """The model as the user made it."""
    return model._original if isinstance(model, Adapted) else model


@functools.lru_cache(maxsize=64)
def _kind(kind: type) -> type[Adapted]:
    """`Adapted` under the name of a user's class, which errors say."""
    return type(kind.__name__, (Adapted,), {"__module__": kind.__module__})


def is_model(thing: Any) -> bool:
    """Whether it has what tells a model from an estimator or a function."""
    return hasattr(thing, "abilities") and hasattr(thing, "init")


def of_user(model: Any) -> bool:
    """Whether a model is of a class outside this library, whose answers no test of ours has seen."""
    return type(model).__module__.partition(".")[0] != "dither"


def faults(model: Any) -> list[str]:
    """What keeps `model` from being one, each in words; [] where nothing does."""
    if isinstance(model, type):
        return [f"a model is an instance: pass {model.__name__}() for {model.__name__}"]
    name = type(model).__name__
    lacking = [part for part in REQUIRED if not hasattr(model, part)]
    wrong = [f"{name} is no model: it lacks {', '.join(lacking)}"] if lacking else []
    if not isinstance(getattr(model, "abilities", frozenset()), (frozenset, set)):
        wrong.append(
            f'{name}.abilities must be a frozenset of names, as in frozenset({{"mean"}}); got {model.abilities!r}'
        )
    claimed = sorted(ability for ability in abilities(model) if not hasattr(model, ability))
    if claimed:
        wrong.append(f"{name} says that it has {', '.join(claimed)}, and has no method of that name")
    return wrong


def abilities(model: Any) -> frozenset[str]:
    """The abilities that a model names; none where `faults` says that these are no names."""
    names = getattr(model, "abilities", None)
    return frozenset(names) if isinstance(names, (frozenset, set)) else frozenset()


def unnamed(model: Any, abilities: list[str]) -> list[str]:
    """Those of the abilities for which the model has a method, though it does not name them."""
    return [name for name in abilities if callable(getattr(model, name, None))]


def with_slots(model: Model, slots: int) -> Model:
    """The model with more slots. Raises TypeError for one whose slots cannot grow."""
    if model.grown is None:
        raise TypeError(
            f"the slots of {type(model).__name__} cannot grow, only those of models.Disjoint: make a bandit with "
            f"disjoint={slots}, and learn again from the log"
        )
    return adapted(dataclasses.replace(original(model), slots=slots))


def fingerprint(thing: Any) -> str | None:
    """What a file says of a thing that it cannot hold; None for what is no model, and where a file holds all of it."""
    return adapted(thing).fingerprint() if is_model(thing) else None


def weighs(model: Model) -> None:
    """Refuse a weight, with TypeError, where the signature of `update` has none."""
    if not takes(model.update, "weight"):
        name = type(model).__name__
        raise TypeError(f"{name} takes no weight: leave weight= out, or give {name}.update the argument ({PAGE})")


def takes(rule: Callable[..., Any], name: str) -> bool:
    """Whether a method or a function has an argument of this name, or takes any."""
    return _takes(getattr(rule, "__func__", rule), name)


@functools.cache
def _takes(rule: Callable[..., Any], name: str) -> bool:
    parameters = inspect.signature(rule).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def look(model: Model, state: Any, *, dim: int) -> None:
    """Refuse a model of the user's whose first state, means or widths have a wrong form. Two arms are asked about.

    Raises TypeError for a wrong type or shape; ValueError for what is not finite, and for a negative width.
    """
    kind = type(model).__name__
    if not (isinstance(state, tuple) and hasattr(state, "_fields")):
        raise TypeError(f"{kind}.init must return a NamedTuple of arrays, got {type(state).__name__} ({PAGE})")
    X = np.linspace(0.5, 1.0, 2 * dim).reshape(2, dim)
    X, shape = (X, (2,)) if model.slots is None else (X[0], (model.slots,))
    rules: dict[str, Any] = {"mean": model.mean, "width": getattr(model, "width", None)}
    for name in [name for name in rules if name in model.abilities]:
        answer = rules[name](state, X)
        if getattr(answer, "shape", None) != shape:
            got = answer.shape if isinstance(answer, np.ndarray) else type(answer).__name__
            raise TypeError(
                f"{kind}.{name} must return an array of a number for each arm: {shape} for X of shape {X.shape}, got "
                f"{got} ({PAGE})"
            )
        if not np.isfinite(answer).all():
            raise ValueError(
                f"{kind}.{name} must return finite numbers, before the first reward too; got {answer}: divide by no "
                f"count that is 0 ({PAGE})"
            )
        if name == "width" and np.any(answer < 0):
            raise ValueError(f"{kind}.width must not be negative, got {answer} ({PAGE})")
