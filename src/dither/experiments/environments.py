"""Environments as plain data: {"name": "linear", "dim": 10, ...}. A new one is one entry of `ENVIRONMENTS`.

The folder in which data lie is no setting. Their content is: a data set is known by its name, and a table by its name
and a checksum of its content. So a changed file has results of its own.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dither import datasets, envs, errors


def digits(scale: str | None = "unit") -> envs.Classification:
    """The handwritten digits that scikit-learn bundles: 1797 rows, 64 features, 10 arms in disjoint slots."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise errors.missing_extra("scikit-learn", extra="experiments") from None
    X, y = load_digits(return_X_y=True)
    return envs.Classification(X, y, scale=scale, name="digits")


def _data_set(name: str) -> Callable[..., envs.Classification]:
    def environment(preprocessing: str = "standard") -> envs.Classification:
        return datasets.environment(name, preprocessing)

    return environment


def table(
    data: str | None = None,
    target: str | None = None,
    preprocessing: str = "standard",
    missing: str = "refuse",
    checksum: str | None = None,
) -> envs.Classification:
    """A CSV or Parquet file, or a data set of OpenML by its number (`datasets.table`)."""
    return datasets.table(data, target, preprocessing, missing, checksum)


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

    def __call__(self, base: str, **given: Any) -> Any:
        """The environment."""
        errors.among("base", base, BASES)
        theirs = {name: given.pop(name) for name in inspect.signature(envs.Linear).parameters}
        if theirs["noise"] is None:
            del theirs["noise"]
        elif base != "linear":
            raise ValueError(f"noise is a setting of base=linear, and the rewards of {base} are drawn: leave it out")
        return self.kind(BASES[base](**theirs), **{name: _several(value) for name, value in given.items()})

    @property
    def __signature__(self) -> inspect.Signature:
        own = [p for p in inspect.signature(self.kind).parameters.values() if p.name != "env"]
        within = inspect.signature(envs.Linear).parameters | {"noise": _setting("noise", None)}
        return inspect.Signature(
            [_setting(p.name, p.default) for p in (_setting("base", "linear"), *own, *within.values())]
        )


def _setting(name: str, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)


def _several(value: Any) -> Any:
    """The numbers in the text "500 1000"; anything else as it is."""
    return tuple(int(part) for part in value.split()) if isinstance(value, str) else value


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
}
LOOKED_AT = dict(runs=50, rounds=50)  # what κ* and κ are computed from


def describe(name: str, **given: Any) -> dict[str, Any]:
    """The environment as data: the settings that are given, and the defaults of all others."""
    errors.among("environment", name, ENVIRONMENTS)
    defaults = {p.name: p.default for p in inspect.signature(ENVIRONMENTS[name]).parameters.values()}
    for setting in given:
        errors.among(f"setting of the environment {name}", setting, defaults)
    given = {key: " ".join(map(str, v)) if isinstance(v, (list, tuple)) else v for key, v in given.items()}
    settings = {"name": name} | defaults | given  # several numbers are text: such settings are keys of tables
    if settings.get("data") is not None and settings["checksum"] is None:
        settings["checksum"] = datasets.fingerprint(settings["data"])
    return settings


def build(env: Mapping[str, Any]) -> Any:
    """The environment that the data describes."""
    settings = dict(env)
    return _built(ENVIRONMENTS[settings.pop("name")], tuple(sorted(settings.items())))


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
    if not hasattr(ENVIRONMENTS[env["name"]], "kappa_star"):  # asks the class, so that a report needs no data
        return None
    return envs.kappas(build(env), seed=seed, **LOOKED_AT)


@functools.lru_cache(maxsize=32)
def _built(kind: Callable[..., Any], settings: tuple[tuple[str, Any], ...]) -> Any:
    return kind(**dict(settings))
