"""An algorithm by name: a model class, a policy class and presets, which construct a bandit together."""

import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeVar

from dither import models, policies
from dither.bandit import saving
from dither.bandit.bandit import Bandit
from dither.base import errors
from dither.deciding.baseline import Baseline
from dither.features import Features
from dither.features.encoder import checked

PRESETS = ("default", "paper", "as_run", "own_paper")
FORMER = ("paper",)  # presets that were the default once: ledgers have bandits that were made by them
UNSTATED = "not stated"
OF_BANDIT = ("dim", "seed", "floor", "monte_carlo", "features", "baseline")  # what an algorithm passes on to its bandit
CHANCE: dict[Any, tuple[str, str]] = {  # policy -> where chance enters, and what is known of the choice probabilities
    policies.FeaturePerturbation: ("feature", "exact"),
    policies.Sensitivity: ("feature", "exact"),
    policies.GeneralFeaturePerturbation: ("feature", "Monte Carlo"),
    policies.ThompsonSampling: ("parameter", "Monte Carlo"),
    policies.PerturbedHistory: ("reward", "Monte Carlo"),
    policies.PerturbedRewards: ("reward", "Monte Carlo"),
    policies.PseudoSuccesses: ("reward", "Monte Carlo"),
    policies.LossPerturbation: ("reward (loss)", "Monte Carlo"),
    policies.RandUCB: ("utility", "exact"),
    policies.NeuralTS: ("utility", "exact"),
    policies.Softmax: ("utility", "exact"),
    policies.UCB: ("none (optimism)", "0/1"),
    policies.GLMUCB: ("none (optimism)", "0/1"),
    policies.LogisticUCB2: ("none (optimism)", "0/1"),
    policies.OFUGLB: ("none (optimism)", "0/1"),
    policies.GLOC: ("none (optimism)", "0/1"),
    policies.NeuralUCB: ("none (optimism)", "0/1"),
    policies.Greedy: ("none (greedy)", "0/1"),
    policies.EpsGreedy: ("none (greedy + uniform)", "exact"),
    policies.SquareCB: ("none (inverse gaps)", "exact"),
    policies.PerturbedLeader: ("reward", "none"),
}
PERTURBS, PROPENSITY = ((*dict.fromkeys(words), UNSTATED) for words in zip(*CHANCE.values(), strict=True))
Values = Mapping[str, Any]
T = TypeVar("T")
Preset = Values | Callable[[int, Values], Values]  # settings; or (dimension of θ, what the user set) -> settings


class Labels(dict[str, str]):
    """Figure name -> the label of the algorithm in that figure of the paper. For other figures: its own name."""

    def __init__(self, name: str, labels: Mapping[str, str]) -> None:
        super().__init__(labels)
        self.name = name

    def __missing__(self, figure: str) -> str:
        return self.name


class Recipe(NamedTuple):
    """How an algorithm makes its model."""

    make: Callable[..., Any]  # settings -> model
    settings: dict[str, Any]  # name -> type of the settings that `make` takes
    words: str = ""  # what errors say after the name of the algorithm


class Algorithm:
    """A constructor of bandits: `LinFP(dim=5, lam=1e-4, c=1.0, floor=0.0, seed=0)` -> Bandit.

    Settings are the fields of its model and of its policy, and these:
    disjoint : K slots for one shared context, instead of arms with features of their own
    diagonal : keep only the diagonal of V (for d above some thousands)
    preset : "default", for decisions on data as they come; "paper", for this library's runs of the paper's figures;
        "as_run", for the code that the paper's curves follow; "own_paper", for the paper of the method itself. Settings
        that are passed win over it
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
        perturbs: str | None = None,
        propensity: str | None = None,
        bound: str = "",
        model: Callable[..., Any] = models.Ridge,
        presets: Mapping[str, Preset] | None = None,
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
        presets : name -> settings that differ from the defaults of the two classes; policy_of : name -> another policy.
            Where "paper" is not among them, it is "default"
        told : facts of a simulated environment that it may know: horizon, sigma, S
        labels : figure of the paper -> what it is called there

        Where perturbs or propensity is None, it is that of the policy in `CHANCE`, or else `UNSTATED`.
        """
        where, how = CHANCE.get(policy, (UNSTATED, UNSTATED))
        self.perturbs, self.propensity = perturbs or where, propensity or how
        errors.one_of(f"perturbs of {name}, which says where chance enters,", self.perturbs, PERTURBS)
        errors.one_of(f"propensity of {name}", self.propensity, PROPENSITY)
        self.name, self.policy, self.summary, self.model = name, policy, summary, model
        self.source, self.bound = source, bound
        self.presets: dict[str, Preset] = {preset: {} for preset in PRESETS} | _with_paper(presets or {})
        self.policy_of = _with_paper(policy_of or {})
        self.told = dict(told) if isinstance(told, Mapping) else dict.fromkeys(told, lambda fact: fact)
        self.label = Labels(name, labels or {})
        saving.know(model, policy, *self.policy_of.values())
        self.__name__ = name
        general = (inspect.getdoc(type(self)) or "").replace("LinFP(", f"{name}(")
        self.__doc__ = f"{summary}\n\n{general}\n\nIts policy: {inspect.getdoc(policy)}"
        self.__signature__ = _signature(model, policy, self.presets)

    def __call__(
        self,
        dim: int | None = None,
        *,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: str = "default",
        seed: int | None = None,
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
        kind: dict[str, Any] = dict(preset=preset, disjoint=disjoint, diagonal=diagonal)
        model, policy = self._configured(dim, settings, of_bandit=OF_BANDIT, **kind)
        more: dict[str, Any] = dict(floor=floor, monte_carlo=monte_carlo, features=features, baseline=baseline)
        bandit = Bandit(model, policy, dim=dim, seed=seed, **more)
        if preset == "default":
            bandit.formerly = tuple(self._formerly(dim, settings, disjoint=disjoint, diagonal=diagonal))
        return bandit

    def _formerly(self, dim: int, settings: dict[str, Any], **kind: Any) -> Iterator[tuple[Any, Any]]:
        """The model and the policy that the same call made when the default was another preset (`FORMER`)."""
        for preset in FORMER:
            if self.presets[preset] != self.presets["default"]:
                with contextlib.suppress(TypeError, ValueError):  # settings that go with today's default alone
                    yield self._configured(dim, settings, preset=preset, **kind)

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
        """The model and the policy of these settings, for d features.

        Raises TypeError for a setting that neither has; LookupError for an unknown preset; ValueError for a value that
        makes no sense.
        """
        return self._configured(dim, settings, preset=preset, disjoint=disjoint, diagonal=diagonal)

    def _configured(
        self,
        dim: int,
        settings: dict[str, Any],
        *,
        preset: str,
        disjoint: int | None,
        diagonal: bool,
        of_bandit: tuple[str, ...] = (),
    ) -> tuple[Any, Any]:
        """`configure`. of_bandit : what the caller takes besides, which may be what a misspelt setting means"""
        errors.among("preset", preset, self.presets)
        errors.at_least("disjoint, the number of slots,", disjoint, 1, or_none=True)
        errors.true_or_false("diagonal", diagonal)
        ambient = dim * (disjoint or 1)
        settings = {**of_preset(self.presets[preset], ambient, settings), **settings}
        recipe = self.recipe(settings, disjoint=disjoint, diagonal=diagonal)
        policy_class = self.policy_of.get(preset, self.policy)
        of_policy = fields(policy_class)
        kinds = recipe.settings | of_policy
        for name, value in settings.items():
            if name not in kinds:
                names = [*of_policy, *recipe.settings, "disjoint", "diagonal", "preset", *of_bandit]
                raise errors.unknown_setting(f"setting of {self.name}{recipe.words}", name, names=names)
            if kinds[name] is bool:
                errors.true_or_false(name, value)
        policy = policy_class(**{k: v for k, v in settings.items() if k in of_policy})
        model = recipe.make(**{k: v for k, v in settings.items() if k in recipe.settings})
        return _slotted(model, disjoint), policy

    def recipe(self, settings: dict[str, Any], *, disjoint: int | None, diagonal: bool) -> Recipe:
        """How the model is made. What the recipe itself uses of the settings is taken out of them."""
        if diagonal and self.model is not models.Ridge:
            raise ValueError(f"diagonal is for linear models alone; {self.name} runs on {self.model.__name__}")
        kind = models.Diagonal if diagonal else self.model
        return Recipe(kind, fields(kind))

    def knows(self, setting: str, *, preset: str = "default") -> bool:
        """Whether its policy or its model has such a setting."""
        return setting in fields(self.policy_of.get(preset, self.policy)) | fields(self.model)


def of_preset(preset: Preset, dim: int, settings: Values) -> Values:
    """The settings of a preset for θ of this dimension, beside those that the user set."""
    return preset(dim, settings) if callable(preset) else preset


def of_any_dim(preset: Preset, settings: Values) -> Values:
    """The same, without those that depend on the dimension."""
    one, two = (of_preset(preset, dim, settings) for dim in (1, 2))
    return {name: value for name, value in one.items() if name in two and two[name] == value}


def _with_paper(presets: Mapping[str, T]) -> dict[str, T]:
    """The presets, of which "paper" is the default where it is not there."""
    paper = {"paper": presets["default"]} if "default" in presets else {}
    return paper | dict(presets)


def fields(configuration: Any) -> dict[str, Any]:
    """The names of the settings of a dataclass, and their types; {} for anything else."""
    of = dataclasses.fields(configuration) if dataclasses.is_dataclass(configuration) else ()
    return {field.name: field.type for field in of}


def defaults(configuration: Any) -> dict[str, Any]:
    """The names of the settings of a dataclass, and their defaults; {} for anything else."""
    of = dataclasses.fields(configuration) if dataclasses.is_dataclass(configuration) else ()
    return {field.name: field.default for field in of}


def _slotted(model: Any, disjoint: int | None) -> Any:
    """The model for K slots: the model with its own slots, if it can have them, or else K copies of it."""
    if disjoint is None:
        return model
    if "slots" not in fields(model):
        return models.Disjoint(model, disjoint)
    if model.slots not in (None, disjoint):
        raise ValueError(f"disjoint={disjoint} and {model}, which has {model.slots} slots: leave one of them out")
    return model if model.slots == disjoint else dataclasses.replace(model, slots=disjoint)


def _signature(model: Any, policy: Any, presets: Mapping[str, Preset]) -> inspect.Signature:
    """What help() shows: dim, then every setting with its default, or its value in the default preset."""
    for kind in (model, policy):
        if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
            raise TypeError(f"an algorithm is made of two dataclasses, of a model and of a policy; got {kind!r}")
    settings = [*dataclasses.fields(model), *dataclasses.fields(policy)]
    names = [*SHARED, *(field.name for field in settings)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            f"{model.__name__} and {policy.__name__} would have two settings of one name, {', '.join(twice)}: call the "
            f"field of yours otherwise ({', '.join(SHARED)} are taken too)"
        )
    values = of_any_dim(presets["default"], {})
    dim, *shared = SHARED.values()
    of_kinds = [
        inspect.Parameter(f.name, dim.KEYWORD_ONLY, default=values.get(f.name, f.default), annotation=f.type)
        for f in settings
    ]
    shared = [p.replace(annotation=Literal[tuple(presets)]) if p.name == "preset" else p for p in shared]
    return inspect.Signature([dim, *of_kinds, *shared], return_annotation=Bandit)


# What every algorithm takes, whatever its model and its policy.
SHARED = dict([*inspect.signature(Algorithm.__call__).parameters.items()][1:-1])
