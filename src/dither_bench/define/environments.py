"""Environments as plain data: {"name": "linear", "dim": 10, ...}. A new one is one entry of `ENVIRONMENTS`.

One of the user's own has the name "/folder/world.py:Drift". It is a class or a function, and its settings are their
arguments. It is shown and stored without the folder.

The folder in which data lie is no setting. Their content is: a data set is known by its name, and a table by its name
and a checksum of its content. So a changed file has results of its own.
"""

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither import datasets, envs
from dither.base import errors, parts
from dither_bench.define import bake_sets, replayed


def digits(scale: str | None = "unit", intercept: bool | None = None) -> envs.Classification:
    """The handwritten digits that scikit-learn bundles: 1797 rows, 64 features, 10 arms in disjoint slots."""
    X, y = errors.imported("sklearn.datasets", "scikit-learn", extra="experiments").load_digits(return_X_y=True)
    return envs.Classification(X, y, scale=scale, name="digits", intercept=intercept)


def _data_set(name: str) -> Callable[..., envs.Classification]:
    def environment(preprocessing: str = "standard", intercept: bool | None = None) -> envs.Classification:
        return datasets.environment(name, preprocessing, intercept=intercept)

    return environment


def table(
    data: str | None = None,
    target: str | None = None,
    preprocessing: str = "standard",
    missing: str = "refuse",
    checksum: str | None = None,
    intercept: bool | None = None,
) -> envs.Classification:
    """A CSV or Parquet file, or a data set of OpenML by its number (`datasets.table`)."""
    return datasets.table(data, target, preprocessing, missing, checksum, intercept=intercept)


BASES: dict[str, Callable[..., Any]] = {
    "linear": envs.Linear,
    "logistic": envs.Logistic,
    "poisson": envs.Poisson,
    "probit": envs.Probit,
}


@dataclass(frozen=True)
class Wrapped:
    """A kind of environment around another one, with the settings of both; `base` names the one within."""

    kind: Callable[..., Any]

    def __call__(self, base: str, **settings: Any) -> Any:
        """The environment."""
        errors.among("base", base, BASES)
        theirs = {name: settings.pop(name) for name in inspect.signature(envs.Linear).parameters}
        if theirs["noise"] is None:
            del theirs["noise"]
        elif base != "linear":
            raise ValueError(f"noise is a setting of base=linear, and the rewards of {base} are drawn: leave it out")
        return self.kind(BASES[base](**theirs), **{name: _several(name, value) for name, value in settings.items()})

    @property
    def __signature__(self) -> inspect.Signature:
        around = [p for p in inspect.signature(self.kind).parameters.values() if p.name != "env"]
        within = inspect.signature(envs.Linear).parameters | {"noise": _setting("noise", None)}
        every = (_setting("base", "linear"), *around, *within.values())
        return inspect.Signature([_setting(p.name, p.default) for p in every])


def _setting(name: str, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)


def _several(name: str, value: Any) -> Any:
    """The whole numbers in the text "500 1000"; anything else as it is."""
    if not isinstance(value, str):
        return value
    if not all(part.isdecimal() for part in value.split()):
        raise ValueError(f"{name} must be a number, or whole numbers with spaces between them; got {value!r}")
    return tuple(int(part) for part in value.split())


ENVIRONMENTS: dict[str, Callable[..., Any]] = {
    **BASES,
    "masked": Wrapped(envs.Masked),
    "abrupt": Wrapped(envs.Abrupt),
    "rotating": Wrapped(envs.Rotating),
    "walking": Wrapped(envs.Walking),
    "student": Wrapped(envs.StudentNoise),
    "pareto": Wrapped(envs.ParetoNoise),
    "contaminated": Wrapped(envs.ContaminatedNoise),
    "misspecified": Wrapped(envs.Misspecified),
    "clipped": envs.Clipped,
    "digits": digits,
    **{name: _data_set(name) for name in datasets.SOURCES},
    "table": table,
    bake_sets.NAME: bake_sets.bandit,
    replayed.NAME: replayed.log,
}
CLASSES = ("digits", *datasets.SOURCES, "table")  # those with `intercept`, which earlier descriptions do not have
CHECKSUMS: dict[str, Callable[[Any], str | None]] = {  # of what the setting `data` names
    "table": datasets.fingerprint,
    bake_sets.NAME: bake_sets.fingerprint,
    replayed.NAME: replayed.fingerprint,
}
BY_NAME = (bake_sets.NAME, replayed.NAME)  # where a file is known by its name and content, and not by its folder
LOOKED_AT = dict(runs=50, rounds=50)  # what κ* and κ are computed from


def find(name: str) -> Callable[..., Any]:
    """What makes the environment of that name: an entry of the table, or a class or function of the user's."""
    in_file = parts.split(name)
    if in_file is None:
        errors.among("environment", name, ENVIRONMENTS)
        return ENVIRONMENTS[name]
    part, rest = in_file
    if rest:
        raise ValueError(f"settings of an environment are given one by one (--with NAME=VALUE), got {rest!r} in {name}")
    kind = parts.find(part)
    if not callable(kind):
        raise TypeError(f"{part} must be the class of an environment, or a function that makes one; got {kind!r}")
    return kind


def describe(name: str, **settings: Any) -> dict[str, Any]:
    """The environment as data: these settings, and the defaults of all others.

    A file of the user's is looked at anew. Defaults in it that are no plain data, such as arrays, are left out.
    """
    in_file, settings = parts.split(name), {setting: _python(value) for setting, value in settings.items()}
    if in_file is not None:
        parts.fresh(in_file[0].source)
    short, usual = parts.short(name), defaults(name)
    for setting in settings:
        if setting not in usual:
            raise errors.unknown_setting(f"setting of the environment {short}", setting, names=usual)
    if lacking := [p for p, default in usual.items() if default is inspect.Parameter.empty and p not in settings]:
        raise ValueError(f"{short} needs {' and '.join(lacking)}: give it with --with {lacking[0]}=VALUE")
    if in_file is None:  # several numbers are text: such settings are keys of tables
        settings = {key: " ".join(map(str, v)) if isinstance(v, (list, tuple)) else v for key, v in settings.items()}
        settings = {"name": name} | usual | settings
        settings = _intercepted(settings) if name in CLASSES else settings
    else:
        if odd := [f"{k}={v!r}" for k, v in settings.items() if not plain(v)]:
            raise TypeError(f"a setting of {short} is a number, a text, None, or a tuple of these; got {odd[0]}")
        if "name" in usual:
            raise ValueError(f"{short} has a setting called name, which its description has too: call it otherwise")
        settings = {"name": in_file[0].text} | {k: v for k, v in usual.items() if plain(v)} | settings
    if settings.get("data") is not None and settings.get("checksum", "") is None:
        settings["checksum"] = CHECKSUMS[name](settings["data"])
    return settings


def standardised(env: Mapping[str, Any]) -> bool:
    """Whether it is a data set with standardised columns, which has an intercept unless it is told to have none."""
    return env["name"] in CLASSES and "standard" in (env.get("preprocessing"), env.get("scale"))


def _intercepted(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings, with `intercept` only where there is one: so what had none has the key that it always had."""
    wanted = settings.pop("intercept")
    if wanted is None:
        wanted = standardised(settings)
    errors.true_or_false("intercept", wanted)
    return settings | ({"intercept": True} if wanted else {})


def defaults(name: str) -> dict[str, Any]:
    """The settings of the environment, and their defaults; `inspect.Parameter.empty` for one that has none."""
    every = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {p.name: p.default for p in inspect.signature(find(name)).parameters.values() if p.kind not in every}


def _python(value: Any) -> Any:
    """The value with numbers of Python in the place of NumPy's, which JSON does not hold."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(_python, value))
    return value.item() if isinstance(value, np.generic) else value


def plain(value: Any) -> bool:
    """Whether a value is a number, a text, None, or a tuple or list of these: JSON holds it, and a name can say it."""
    if isinstance(value, (tuple, list)):
        return all(map(plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def of(env: Any) -> dict[str, Any]:
    """An environment that was made in Python, as data.

    Raises TypeError for one that a later command could not make again.
    """
    kind = type(env)
    kinds = {of.kind if isinstance(of, Wrapped) else of: name for name, of in ENVIRONMENTS.items()}
    name = kinds.get(kind)
    if name is not None and isinstance(ENVIRONMENTS[name], Wrapped):
        return _around(name, env)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if name is None and file and kind.__module__ != "__main__" and kind.__qualname__ == kind.__name__:
        name = f"{file}:{kind.__name__}"
    if name is None or not dataclasses.is_dataclass(env):
        raise TypeError(
            f"{kind.__name__} cannot be made again by a later command: write it as a dataclass in a file and name it, "
            "as in env='world.py:Drift', or leave out= out"
        )
    return describe(name, **_settings(env))


def _settings(env: Any) -> dict[str, Any]:
    """The settings with which a dataclass was made."""
    return {field.name: getattr(env, field.name) for field in dataclasses.fields(env) if field.init}


def _around(name: str, env: Any) -> dict[str, Any]:
    """An environment around another one, as data: the settings of both, of those that differ from the defaults."""
    within = of(env.env)
    if within["name"] not in BASES:
        raise TypeError(f"{name} can be described around {errors.listed(list(BASES))}; got one around {within['name']}")
    settings = _settings(env)
    settings.pop("env")
    return describe(name, base=within.pop("name"), **within, **settings)


def called(env: Any) -> dict[str, Any]:
    """What an environment that was made in Python is called, with the settings that are plain data."""
    fields = dataclasses.fields(env) if dataclasses.is_dataclass(env) else ()
    settings = {field.name: getattr(env, field.name) for field in fields}
    return {"name": type(env).__name__} | {name: value for name, value in settings.items() if plain(value)}


def identity(env: Mapping[str, Any]) -> dict[str, Any]:
    """What tells it from other environments: all but the folder of a file of the user's, or of a bake-off's set."""
    name = {"name": parts.short(env["name"])}
    return dict(env) | name | ({"data": bake_sets.called(env["data"])} if env["name"] in BY_NAME else {})


def described(env: Any) -> dict[str, Any]:
    """The environment as data, from its name, from a dict of its name and settings, or from itself (`of`)."""
    if isinstance(env, str):
        return describe(env)
    if isinstance(env, Mapping) and "name" not in env:
        raise ValueError(f"an environment as a dict has the key 'name', as in {{'name': 'linear'}}; got {dict(env)}")
    return describe(**env) if isinstance(env, Mapping) else of(env)


def build(env: Mapping[str, Any]) -> Any:
    """The environment that the data describes."""
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in env.items() if k != "name"}  # JSON has lists
    if env["name"] in CLASSES:
        settings = {"intercept": False} | settings
    return _built(find(env["name"]), tuple(sorted(settings.items())))


@dataclass(frozen=True)
class Outline:
    """What `costs` needs to know of an environment."""

    arms: int
    dim: int
    disjoint: bool
    sigma: float = 1.0
    S: float = 1.0
    fixed: bool = False  # the arms come from a few fixed sets, so that their rows repeat


def outline(env: Mapping[str, Any]) -> Outline:
    """The size of an environment. A data set is not loaded: its size is that of the published one."""
    source = datasets.SOURCES.get(env["name"])
    if source is not None:
        return Outline(source.arms, source.encoded or source.dim, disjoint=True)
    built = build(env)
    sigma, S, fixed = getattr(built, "sigma", 1.0), getattr(built, "S", 1.0), env.get("contexts") is not None
    return Outline(built.arms, built.dim, built.disjoint, sigma, S, fixed)


def kappas(env: Mapping[str, Any], *, seed: int) -> envs.Kappas | None:
    """κ* and κ of the environment that the data describes; None where the link is not curved."""
    if not hasattr(ENVIRONMENTS.get(env["name"]), "kappa_star"):  # asks the class, so that a report needs no data
        return None
    return envs.kappas(build(env), seed=seed, **LOOKED_AT)


@functools.lru_cache(maxsize=32)
def _built(kind: Callable[..., Any], settings: tuple[tuple[str, Any], ...]) -> Any:
    return kind(**dict(settings))
