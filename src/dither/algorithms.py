"""`ALGORITHMS`: one dict, name -> constructor. The CLI, the docs, the tests and the errors' near matches all read it.

A new algorithm is one policy file and one entry here. Presets say where the default, the code that the paper's curves
follow ("as_run") and the method's own paper ("own_paper") differ; what a preset does not name is the policy's default.
"""

import ast
import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from dither import errors, models, policies
from dither.bandit import Bandit

PRESETS = ("default", "as_run", "own_paper")
Given = Mapping[str, Any]
Settings = Given | Callable[[int, Given], Given]  # what a preset sets, or that from (dimension of θ, what was given)


class Labels(dict):
    """Figure name -> the label that the paper's figure gives the algorithm; elsewhere its own name."""

    def __init__(self, name: str, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.name = name

    def __missing__(self, figure: str) -> str:
        return self.name


class Algorithm:
    """A constructor of bandits: `LinFP(dim=5, lam=1e-4, c=1.0, floor=0.0, seed=0)` -> Bandit.

    Settings are the fields of its model and of its policy, and besides
    disjoint : K slots for one shared context, instead of arms with features of their own
    diagonal : keep the diagonal of V alone (d above some thousands)
    preset : "default", "as_run" or "own_paper"; settings that are passed win over it
    seed, floor, monte_carlo : as for `Bandit`
    """

    def __init__(
        self,
        name: str,
        policy: Callable[..., Any],
        *,
        summary: str,
        presets: Mapping[str, Settings] | None = None,
        policy_of: Mapping[str, Callable[..., Any]] | None = None,
        told: tuple[str, ...] = (),
        labels: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.policy, self.summary = name, policy, summary
        self.presets: dict[str, Settings] = {preset: {} for preset in PRESETS} | dict(presets or {})
        self.policy_of = dict(policy_of or {})
        self.told = told
        self.label = Labels(name, labels or {})
        self.__name__ = name
        self.__doc__ = f"{summary}\n\n{inspect.getdoc(type(self))}\n\nIts policy: {inspect.getdoc(policy)}"
        self.__signature__ = _signature(policy)

    def __call__(
        self,
        dim: int | None = None,
        *,
        seed: int | None = None,
        preset: str = "default",
        floor: float = 0.0,
        monte_carlo: int = 0,
        **settings: Any,
    ) -> Bandit:
        """A bandit with these settings."""
        if dim is None:
            raise TypeError(f"{self.name} needs dim, the number of features: {self.name}(dim=5)")
        errors.at_least("dim", dim, 1)
        model, policy = self.configure(dim, preset=preset, **settings)
        return Bandit(model, policy, dim=dim, seed=seed, floor=floor, monte_carlo=monte_carlo)

    def __repr__(self) -> str:
        return f"dither.{self.name}"

    def __reduce__(self) -> tuple[Callable[[str], "Algorithm"], tuple[str]]:
        """By name: the table has the rest."""
        return find, (self.name,)

    def configure(
        self, dim: int, *, preset: str = "default", disjoint: int | None = None, diagonal: bool = False, **settings: Any
    ) -> tuple[Any, Any]:
        """The model and the policy of these settings, for d features."""
        if preset not in self.presets:
            raise errors.unknown("preset", preset, known=self.presets)
        if disjoint is not None:
            errors.at_least("disjoint, the number of slots,", disjoint, 1)
        errors.true_or_false("diagonal", diagonal)
        of_preset = self.presets[preset]
        ambient = dim * (disjoint or 1)
        settings = {**(of_preset(ambient, settings) if callable(of_preset) else of_preset), **settings}
        model_class = models.Diagonal if diagonal else models.Ridge
        policy_class = self.policy_of.get(preset, self.policy)
        of_model, of_policy = _fields(model_class), _fields(policy_class)
        for name, value in settings.items():
            if name not in of_model | of_policy:
                known = [*of_policy, *of_model, "disjoint", "diagonal", "preset"]
                raise errors.unknown(f"setting of {self.name}", name, known=known)
            if isinstance((of_model | of_policy)[name], bool):
                errors.true_or_false(name, value)
        model = model_class(**{k: v for k, v in settings.items() if k in of_model})
        policy = policy_class(**{k: v for k, v in settings.items() if k in of_policy})
        return (model if disjoint is None else models.Disjoint(model, disjoint)), policy

    def knows(self, setting: str, *, preset: str = "default") -> bool:
        """Whether its policy has such a setting."""
        return setting in _fields(self.policy_of.get(preset, self.policy))


def _fields(configuration: Any) -> dict[str, Any]:
    """The names of its settings and their defaults."""
    return {field.name: field.default for field in dataclasses.fields(configuration)}


def _signature(policy: Any) -> inspect.Signature:
    """What help() shows: dim, then every setting with its default."""
    kw = inspect.Parameter.KEYWORD_ONLY
    fields = [*dataclasses.fields(models.Ridge), *dataclasses.fields(policy)]
    parameters = [inspect.Parameter("dim", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=int)]
    parameters += [inspect.Parameter(f.name, kw, default=f.default, annotation=f.type) for f in fields]
    own = dict(disjoint=None, diagonal=False, preset="default", seed=None, floor=0.0, monte_carlo=0)
    parameters += [inspect.Parameter(name, kw, default=value) for name, value in own.items()]
    return inspect.Signature(parameters, return_annotation=Bandit)


def _ancestor(dim: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """The Gram matrix of the code that the curves follow, 1e-4 I + Σ x x'/σ²: that of λ = σ² 1e-4, over σ²."""
    return {"lam": 1e-4 * given.get("sigma", 1.0) ** 2}


_ALL = (
    Algorithm(
        "LinFP",
        policies.FeaturePerturbation,
        summary="Linear feature perturbation (paper, Algorithm C.2).",
        presets={"own_paper": lambda dim, _: {"c": "theory", "lam": float(dim)}},  # Theorem 1: β_t(δ/4T), λ = O(d)
        told=("horizon",),
        labels={"fig3-linear": "GLM-FP (ours)", "h1": "GLM-FP (ours)", "h2": "GLM-FP (ours)", "h3": "LinFP (ours)"},
    ),
    Algorithm(
        "LinTS",
        policies.ThompsonSampling,
        summary="Linear Thompson sampling (Agrawal, Goyal 2013; Abeille, Lazaric 2017).",
        presets={"as_run": _ancestor, "own_paper": {"c": "anytime", "lam": 1.0}},
        told=("horizon",),
    ),
    Algorithm(
        "LinPHE",
        policies.PerturbedHistory,
        summary="Linear perturbed-history exploration (Kveton et al., UAI 2019).",
        presets={"as_run": {"a": 0.5, "inflate": False, "forced": True, "jitter": 1e-6}, "own_paper": {"a": 2.0}},
        policy_of={"as_run": policies.PseudoRewards, "own_paper": policies.PseudoRewards},
    ),
    Algorithm(
        "RandLinUCB",
        policies.RandUCB,
        summary="Randomised LinUCB (Vaswani, Mehrabian, Durand, Kveton 2020).",
        presets={
            "as_run": lambda dim, given: _ancestor(dim, given) | {"S": None, "sigma_again": True},
            "own_paper": {"lam": 1.0},  # one λ, as in β; all else is the default
        },
        told=("horizon",),
    ),
    Algorithm(
        "LinUCB",
        policies.UCB,
        summary="LinUCB, also known as OFUL (Abbasi-Yadkori, Pál, Szepesvári 2011).",
        presets={
            "as_run": lambda dim, given: _ancestor(dim, given) | {"S": None, "sigma_again": True},
            "own_paper": {"radius": "oful", "lam": 1.0},
        },
        told=("horizon",),
    ),
    Algorithm(
        "EpsGreedy",
        policies.EpsGreedy,
        summary="ε-greedy with an annealed ε.",
        presets={"own_paper": {"decay": "text"}},
        told=("horizon",),
        labels=dict.fromkeys(("fig3-linear", "h1", "h2", "h3"), "ε-Greedy"),
    ),
    Algorithm("Greedy", policies.Greedy, summary="No exploration: the arm of the highest mean."),
)

ALGORITHMS: dict[str, Algorithm] = {algorithm.name: algorithm for algorithm in _ALL}


@dataclasses.dataclass(frozen=True)
class Spec:
    """An algorithm with settings, as the command line and the results store write it: "LinFP:c=0.3,preset=as_run"."""

    name: str
    settings: tuple[tuple[str, Any], ...] = ()  # in sorted order
    preset: str = "default"

    @classmethod
    def parse(cls, text: str) -> "Spec":
        """From text; values are Python literals, or else strings."""
        name, _, rest = text.partition(":")
        settings: dict[str, Any] = {}
        for part in filter(None, rest.split(",")):
            key, equals, value = part.partition("=")
            if not equals:
                raise ValueError(f"a setting is written key=value, got {part!r} in {text!r}")
            if key.strip() in settings:
                raise ValueError(f"{key.strip()} is set twice in {text!r}")
            settings[key.strip()] = _literal(value.strip())
        preset = settings.pop("preset", "default")
        algorithm = find(name)
        if preset not in algorithm.presets:
            raise errors.unknown("preset", preset, known=algorithm.presets)
        return cls(name, tuple(sorted(settings.items())), preset)

    def __str__(self) -> str:
        parts = [f"{k}={v}" for k, v in self.settings]
        parts += [f"preset={self.preset}"] if self.preset != "default" else []
        return self.name + (":" + ",".join(parts) if parts else "")

    def told(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Its settings, and of the environment's facts those that the algorithm is told and that are not set."""
        algorithm, given = find(self.name), dict(self.settings)
        known = {k: facts[k] for k in algorithm.told if k in facts and algorithm.knows(k, preset=self.preset)}
        return known | given

    def configure(self, dim: int, *, disjoint: int | None, facts: Mapping[str, Any]) -> tuple[Any, Any]:
        """The model and the policy in an environment of these facts."""
        return find(self.name).configure(dim, preset=self.preset, disjoint=disjoint, **self.told(facts))


def _literal(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def find(name: str) -> Algorithm:
    """The algorithm of that name, or an error with the nearest one."""
    if name not in ALGORITHMS:
        raise errors.unknown("algorithm", name, known=ALGORITHMS)
    return ALGORITHMS[name]
