"""FP, feature perturbation in any class of functions (paper, Algorithm C.1): `FP(model, dim=5)` with your own model.

FP(dim=5)                                 least squares in the linear class: `models.Ridge`
FP(GradientBoostingRegressor(), dim=5)    a scikit-learn estimator, refitted: `models.Regressor`
FP(SGDRegressor(), dim=5, partial=True)   or learning as rewards come
FP(f, dim=5)                              a function X (n, d) -> (n,), never trained: `models.Fixed`
FP(models.GLM(link="log"), dim=5)         a model of this library
"""

import dataclasses
import inspect
import numbers
from typing import Any

from dither import errors, models, policies
from dither.algorithms.algorithm import Algorithm
from dither.bandit import Bandit
from dither.models import model as contract
from dither.models.regressor import Fixed, Regressor


class General(Algorithm):
    """A constructor of bandits: `FP(GradientBoostingRegressor(), dim=5, Sigma="spread", refit=100, seed=0)` -> Bandit.

    model : a scikit-learn estimator, a function X (n, d) -> (n,), or a model of `dither.models`; None: `models.Ridge`

    Settings are the fields of the policy, of `models.Regressor` for an estimator, of `models.Fixed` for a function and
    of `models.Ridge` where no model is given, and besides
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
        _check_instance(settings.get("model"))
        return super().__call__(settings.pop("dim", None), **settings)

    def configure(
        self, dim: int, *, preset: str = "default", disjoint: int | None = None, diagonal: bool = False, **settings: Any
    ) -> tuple[Any, Any]:
        """The model and the policy of these settings, for d features."""
        given = settings.pop("model", None)
        if preset not in self.presets:
            raise errors.unknown("preset", preset, known=self.presets)
        if disjoint is not None:
            errors.at_least("disjoint, the number of slots,", disjoint, 1)
        errors.true_or_false("diagonal", diagonal)
        if diagonal and given is not None:
            raise ValueError("diagonal is for the linear model that stands where none is given: leave it or model out")
        kind = _kind(given, diagonal=diagonal)
        of_policy = _names(self.policy)
        of_model = [name for name in (_names(kind) if kind else []) if name not in ("estimator", "function", "slots")]
        for name in settings:
            if name not in (*of_model, *of_policy):
                what = "" if given is None else f" on {type(given).__name__}"
                raise errors.unknown(
                    f"setting of {self.name}{what}", name, known=[*of_policy, *of_model, "disjoint", "preset"]
                )
        policy = self.policy(**{k: v for k, v in settings.items() if k in of_policy})
        own = {k: v for k, v in settings.items() if k in of_model}
        if kind is None:
            return _slotted(given, disjoint), policy
        return (_slotted(kind(**own), disjoint) if given is None else kind(given, slots=disjoint, **own)), policy


def _check_instance(given: Any) -> None:
    """Refuse a class."""
    if isinstance(given, type):
        raise TypeError(f"a model is an instance: pass {given.__name__}() for {given.__name__}")


def _kind(given: Any, *, diagonal: bool) -> Any:
    """The class of models that makes one of what is given; None where it is one."""
    if given is None:
        return models.Diagonal if diagonal else models.Ridge
    _check_instance(given)
    if contract.is_model(given):
        return None
    if hasattr(given, "predict") or hasattr(given, "fit"):
        return Regressor  # which says what it lacks
    if callable(given):
        return Fixed
    raise TypeError(
        f"model must be an estimator with fit and predict, a function X (n, d) -> (n,), or a model of dither.models; "
        f"got {given!r}"
    )


def _slotted(model: Any, disjoint: int | None) -> Any:
    """The model for K slots."""
    if disjoint is None:
        return model
    has = contract.slots(model)
    if has is not None:
        if has != disjoint:
            raise ValueError(f"disjoint={disjoint} and {model}, which has {has} slots: leave one of them out")
        return model
    if "slots" in _names(model):
        return dataclasses.replace(model, slots=disjoint)
    return models.Disjoint(model, disjoint)


def _names(configuration: Any) -> list[str]:
    """Its settings."""
    return (
        [field.name for field in dataclasses.fields(configuration)] if dataclasses.is_dataclass(configuration) else []
    )


def _signature(algorithm: Algorithm) -> inspect.Signature:
    """What help() shows: the model, then as others do."""
    first = inspect.Parameter("model", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=Any)
    rest = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in algorithm.__signature__.parameters.values()]
    return inspect.Signature([first, *rest], return_annotation=Bandit)


FP = General(
    "FP",
    policies.GeneralFeaturePerturbation,
    summary="Feature perturbation in any class of functions (paper, Algorithm C.1), on a model of your own.",
    source="Yi, Oh 2025",
    perturbs="feature",
    propensity="Monte Carlo",
)
FP.__signature__ = _signature(FP)
