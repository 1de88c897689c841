"""FP, feature perturbation in any class of functions (paper, Algorithm C.1): `FP(model, dim=5)` with your own model.

FP(dim=5)                                 least squares in the linear class: `models.Ridge`
FP(GradientBoostingRegressor(), dim=5)    a scikit-learn estimator, refitted: `models.Regressor`
FP(SGDRegressor(), dim=5, partial=True)   or learning as rewards come
FP(f, dim=5)                              a function X (n, d) -> (n,), never trained: `models.Fixed`
FP(models.GLM(link="log"), dim=5)         a model of this library
"""

import functools
import inspect
import numbers
from typing import Any

from dither import policies
from dither.algorithms.algorithm import Algorithm, Recipe, Values, fields
from dither.bandit.bandit import Bandit
from dither.models import adapting
from dither.models.regressor import Fixed, Regressor


class General(Algorithm):
    """A constructor of bandits: `FP(GradientBoostingRegressor(), dim=5, Sigma="spread", refit=100, seed=0)` -> Bandit.

    model : a scikit-learn estimator, a function X (n, d) -> (n,), or a model of `dither.models`; None: `models.Ridge`

    Settings are the fields of the policy, and those of `models.Regressor` for an estimator, of `models.Fixed` for a
    function, or of `models.Ridge` where no model is given. And these:
    disjoint : K slots for one shared context, instead of arms with features of their own
    seed, floor, monte_carlo : as for `Bandit`
    """

    def __call__(self, *args: Any, **settings: Any) -> Bandit:
        """A bandit with these settings: FP(model, dim=5, ...), or FP(5) as other algorithms are called."""
        if len(args) > 1:
            raise TypeError(f"{self.name} takes one argument without a name, the model: {self.name}(model, dim=5)")
        if args and isinstance(args[0], numbers.Integral):
            settings.setdefault("dim", args[0])
        elif args:
            settings.setdefault("model", args[0])
        _instance(settings.get("model"))  # before the error that asks for dim
        return super().__call__(settings.pop("dim", None), **settings)

    def recipe(self, settings: dict[str, Any], *, disjoint: int | None, diagonal: bool) -> Recipe:
        """How a model is made of `model=`, which is taken out of the settings."""
        model = settings.pop("model", None)
        if model is None:
            return super().recipe(settings, disjoint=disjoint, diagonal=diagonal)
        if diagonal:
            raise ValueError("diagonal is for the linear model that stands where none is given: leave it or model out")
        kind, words = _kind(model), f" on {type(model).__name__}"
        if kind is None:
            return Recipe(lambda: model, {}, words)
        # `model=` and `disjoint=` stand for these
        of_kind = {k: v for k, v in fields(kind).items() if k not in ("estimator", "function", "slots")}
        return Recipe(functools.partial(kind, model, slots=disjoint), of_kind, words)


def _instance(model: Any) -> None:
    """Refuse a class."""
    if isinstance(model, type):
        raise TypeError(f"a model is an instance: pass {model.__name__}() for {model.__name__}")


def _kind(estimator: Any) -> Any:
    """The class that makes a model of what stands for it; None where it is a model already."""
    _instance(estimator)
    if adapting.is_model(estimator):
        return None
    if hasattr(estimator, "predict") or hasattr(estimator, "fit"):
        return Regressor  # it says what an estimator lacks
    if callable(estimator):
        return Fixed
    raise TypeError(
        f"model must be an estimator with fit and predict, a function X (n, d) -> (n,), or a model of dither.models; "
        f"got {estimator!r}"
    )


def _signature(algorithm: Algorithm) -> inspect.Signature:
    """What help() shows: the model, then as others do."""
    first = inspect.Parameter("model", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=Any)
    rest = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in algorithm.__signature__.parameters.values()]
    return inspect.Signature([first, *rest], return_annotation=Bandit)


def _of_ridge(dim: int, settings: Values) -> Values:
    """The default: as for other linear algorithms, where no model is given."""
    return {"lam": "auto", "centre": True} if settings.get("model") is None else {}


FP = General(
    "FP",
    policies.GeneralFeaturePerturbation,
    summary="Feature perturbation in any class of functions (paper, Algorithm C.1), on a model of your own.",
    source="Yi, Oh 2025",
    presets={"default": _of_ridge, "paper": {}},
)
FP.__signature__ = _signature(FP)
