"""Environments as plain data: {"name": "linear", "dim": 10, ...}. A new one is one entry of `ENVIRONMENTS`."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from dither import envs, errors


def digits(scale: str | None = "unit") -> envs.Classification:
    """The handwritten digits that scikit-learn bundles: 1797 rows, 64 features, 10 arms in disjoint slots."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise errors.missing_extra("scikit-learn", extra="experiments") from None
    X, y = load_digits(return_X_y=True)
    return envs.Classification(X, y, scale=scale, name="digits")


ENVIRONMENTS: dict[str, Callable[..., Any]] = {
    "linear": envs.Linear,
    "logistic": envs.Logistic,
    "poisson": envs.Poisson,
    "probit": envs.Probit,
    "digits": digits,
}
LOOKED_AT = dict(runs=50, rounds=50)  # for κ* and κ


def describe(name: str, **given: Any) -> dict[str, Any]:
    """The environment as data, with every setting that is not given at its default."""
    if name not in ENVIRONMENTS:
        raise errors.unknown("environment", name, known=ENVIRONMENTS)
    defaults = {p.name: p.default for p in inspect.signature(ENVIRONMENTS[name]).parameters.values()}
    for setting in given:
        if setting not in defaults:
            raise errors.unknown(f"setting of the environment {name}", setting, known=defaults)
    return {"name": name} | defaults | given


def build(env: Mapping[str, Any]) -> Any:
    """The environment that the data describes."""
    settings = dict(env)
    return _built(settings.pop("name"), tuple(sorted(settings.items())))


def kappas(env: Mapping[str, Any], *, seed: int) -> envs.Kappas | None:
    """κ* and κ of the environment that the data describes; None for one whose link is not curved."""
    built = build(env)
    return envs.kappas(built, seed=seed, **LOOKED_AT) if hasattr(built, "kappa_star") else None


@functools.lru_cache(maxsize=32)
def _built(name: str, settings: tuple[tuple[str, Any], ...]) -> Any:
    return ENVIRONMENTS[name](**dict(settings))
