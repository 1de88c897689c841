"""An algorithm by name: a model class, a policy class and presets, which construct a bandit together."""

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from dither import models
from dither.bandit import saving
from dither.bandit.bandit import Bandit
from dither.base import errors
from dither.deciding.baseline import Baseline
from dither.features import Features
from dither.features.encoder import checked

PRESETS = ("default", "as_run", "own_paper")
UNSTATED = "not stated"
PERTURBS = (  # where chance enters
    *("feature", "parameter", "reward", "reward (loss)", "utility"),
    *("none (optimism)", "none (greedy)", "none (greedy + uniform)", "none (inverse gaps)", UNSTATED),
)
PROPENSITY = ("exact", "Monte Carlo", "0/1", "none", UNSTATED)
Given = Mapping[str, Any]
Settings = Given | Callable[[int, Given], Given]  # what a preset sets; or (dimension of θ, what the user set) -> that


class Labels(dict):
    """Figure name -> the label of the algorithm in that figure of the paper. For other figures: its own name."""

    def __init__(self, name: str, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.name = name

    def __missing__(self, figure: str) -> str:
        return self.name


class Maker(NamedTuple):
    """How an algorithm makes its model."""

    make: Callable[..., Any]  # settings -> model
    settings: dict[str, Any]  # name -> type of the settings that `make` takes
    words: str = ""  # what errors say after the name of the algorithm


class Algorithm:
    """A constructor of bandits: `LinFP(dim=5, lam=1e-4, c=1.0, floor=0.0, seed=0)` -> Bandit.

    Settings are the fields of its model and of its policy, and these:
    disjoint : K slots for one shared context, instead of arms with features of their own
    diagonal : keep only the diagonal of V (for d above some thousands)
    preset : "default", "as_run" or "own_paper"; settings that are passed win over it
    seed, floor, monte_carlo : as for `Bandit`
    features : as for `Bandit`; dim is their number of columns then
    baseline : as for `Bandit`
    """

    def __init__(
        self,
        name: str,
        policy: Callable[..., Any],
        *,
        summary: str,
        source: str,
        perturbs: str,
        propensity: str,
        bound: str = "",
        model: Callable[..., Any] = models.Ridge,
        presets: Mapping[str, Settings] | None = None,
        policy_of: Mapping[str, Callable[..., Any]] | None = None,
        told: Iterable[str] | Mapping[str, Callable[[Any], Any]] = (),
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """An algorithm of this name: the class of a policy on a class of models, and what is known of the pair.

        Parameters
        ----------
        summary, source, bound : texts; bound is the known regret bound, without logarithms
        perturbs : where chance enters, one of `PERTURBS`
        propensity : what is known of the choice probabilities, one of `PROPENSITY`
        presets : name -> settings that differ from the defaults of the two classes; policy_of : name -> another policy
        told : facts of a simulated environment that it may know: horizon, sigma, S
        labels : figure of the paper -> what it is called there
        """
        errors.one_of(f"perturbs of {name}, which says where chance enters,", perturbs, PERTURBS)
        errors.one_of(f"propensity of {name}", propensity, PROPENSITY)
        self.name, self.policy, self.summary, self.model = name, policy, summary, model
        self.source, self.perturbs, self.propensity, self.bound = source, perturbs, propensity, bound
        self.presets: dict[str, Settings] = {preset: {} for preset in PRESETS} | dict(presets or {})
        self.policy_of = dict(policy_of or {})
        self.told = dict(told) if isinstance(told, Mapping) else dict.fromkeys(told, lambda fact: fact)
        self.label = Labels(name, labels or {})
        saving.know(model, policy, *self.policy_of.values())
        self.__name__ = name
        general = (inspect.getdoc(type(self)) or "").replace("LinFP(", f"{name}(")
        self.__doc__ = f"{summary}\n\n{general}\n\nIts policy: {inspect.getdoc(policy)}"
        self.__signature__ = _signature(model, policy, self.presets["default"])

    def __call__(
        self,
        dim: int | None = None,
        *,
        seed: int | None = None,
        preset: str = "default",
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
        **settings: Any,
    ) -> Bandit:
        """A bandit with these settings."""
        if dim is None and features is not None:
            dim = checked(features).dim
        if dim is None:
            raise TypeError(f"{self.name} needs dim, the number of features: {self.name}(dim=5); or features=")
        errors.at_least("dim", dim, 1)
        model, policy = self.configure(dim, preset=preset, **settings)
        more: dict[str, Any] = dict(floor=floor, monte_carlo=monte_carlo, features=features, baseline=baseline)
        return Bandit(model, policy, dim=dim, seed=seed, **more)

    def __repr__(self) -> str:
        return f"dither.{self.identifier}"

    @property
    def identifier(self) -> str:
        """The name as Python can write it: `dither.DeepFPScalar` is "DeepFP-scalar", `dither.OFUGLBe` "OFUGLB-e"."""
        first, *rest = self.name.split("-")
        return first + "".join(part if len(part) == 1 else part[0].upper() + part[1:] for part in rest)

    @property
    def needs(self) -> tuple[str, ...]:
        """What the policy of the default preset asks of a model."""
        return tuple(sorted(self.configure(2)[1].needs))

    def configure(
        self, dim: int, *, preset: str = "default", disjoint: int | None = None, diagonal: bool = False, **settings: Any
    ) -> tuple[Any, Any]:
        """The model and the policy of these settings, for d features."""
        errors.among("preset", preset, self.presets)
        errors.at_least("disjoint, the number of slots,", disjoint, 1, or_none=True)
        errors.true_or_false("diagonal", diagonal)
        of_preset = self.presets[preset]
        ambient = dim * (disjoint or 1)
        settings = {**(of_preset(ambient, settings) if callable(of_preset) else of_preset), **settings}
        maker, settings = self.maker(settings, disjoint=disjoint, diagonal=diagonal)
        policy_class = self.policy_of.get(preset, self.policy)
        of_model, of_policy = maker.settings, fields(policy_class)
        for name, value in settings.items():
            if name not in of_model | of_policy:
                known = [*of_policy, *of_model, "disjoint", "diagonal", "preset"]
                raise errors.unknown(f"setting of {self.name}{maker.words}", name, known=known)
            if (of_model | of_policy)[name] is bool:
                errors.true_or_false(name, value)
        policy = policy_class(**{k: v for k, v in settings.items() if k in of_policy})
        model = maker.make(**{k: v for k, v in settings.items() if k in of_model})
        return _slotted(model, disjoint), policy

    def maker(self, settings: dict[str, Any], *, disjoint: int | None, diagonal: bool) -> tuple[Maker, dict[str, Any]]:
        """What makes the model, and the settings for it and for the policy."""
        if diagonal and self.model is not models.Ridge:
            raise ValueError(f"diagonal is for linear models alone; {self.name} runs on {self.model.__name__}")
        kind = models.Diagonal if diagonal else self.model
        return Maker(kind, fields(kind)), settings

    def knows(self, setting: str, *, preset: str = "default") -> bool:
        """Whether its policy or its model has such a setting."""
        return setting in fields(self.policy_of.get(preset, self.policy)) | fields(self.model)


def fields(configuration: Any) -> dict[str, Any]:
    """The names of the settings of a dataclass, and their types; {} for anything else."""
    known = dataclasses.is_dataclass(configuration)
    return {field.name: field.type for field in dataclasses.fields(configuration)} if known else {}


def _slotted(model: Any, disjoint: int | None) -> Any:
    """The model for K slots: the model with its own slots, if it can have them, or else K copies of it."""
    if disjoint is None:
        return model
    if "slots" not in fields(model):
        return models.Disjoint(model, disjoint)
    if model.slots not in (None, disjoint):
        raise ValueError(f"disjoint={disjoint} and {model}, which has {model.slots} slots: leave one of them out")
    return model if model.slots == disjoint else dataclasses.replace(model, slots=disjoint)


def _signature(model: Any, policy: Any, preset: Settings) -> inspect.Signature:
    """What help() shows: dim, then every setting with its default, or its value in the default preset."""
    kw = inspect.Parameter.KEYWORD_ONLY
    for kind in (model, policy):
        if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
            raise TypeError(f"an algorithm is made of two dataclasses, of a model and of a policy; got {kind!r}")
    own: dict[str, Any] = dict(
        disjoint=None, diagonal=False, preset="default", seed=None, floor=0.0, monte_carlo=0, features=None
    )
    own["baseline"] = None
    taken = [f.name for f in dataclasses.fields(policy)]
    twice = sorted({f.name for f in dataclasses.fields(model)} & {*taken, *own} | {*taken} & {*own})
    if twice:
        raise ValueError(
            f"{model.__name__} and {policy.__name__} would have two settings of one name, {', '.join(twice)}: call the "
            f"field of yours otherwise ({', '.join(['dim', *own])} are taken too)"
        )
    settings = [*dataclasses.fields(model), *dataclasses.fields(policy)]
    parameters = [inspect.Parameter("dim", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=int)]
    set_ = {} if callable(preset) else preset
    parameters += [
        inspect.Parameter(f.name, kw, default=set_.get(f.name, f.default), annotation=f.type) for f in settings
    ]
    parameters += [inspect.Parameter(name, kw, default=value) for name, value in own.items()]
    return inspect.Signature(parameters, return_annotation=Bandit)
