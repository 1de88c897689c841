"""What the checks of policies and of models start from: arms, rewards that a model takes, bandits that have learnt."""

import copy
import functools
import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any

import array_api_compat.numpy
import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dither import envs
from dither.bandit.bandit import Bandit
from dither.bandit.restoring import from_bytes
from dither.base import arrays, errors, trees
from dither.deciding import policy as policy_contract
from dither.deciding.answers import Decision, Decisions
from dither.models import adapting
from dither.models.model import Able, Model, begin
from dither.simulation.simulate import simulate
from dither.simulation.world import WorldOfRuns
from dither.testing.checking import require

ARMS = 5  # of a request, where the model has no slots


@dataclass(frozen=True)
class Trial:
    """A policy on a model, and how much of it is tried."""

    model: Any
    policy: Any
    part: str  # what is checked, for errors
    dim: int = 3
    draws: int = 20_000  # choices of one request
    requests: int = 40  # requests that differ, and rounds
    seed: int = 0
    rtol: float = 1e-9
    classes: tuple[type, ...] = ()  # that a saved bandit holds, besides those of the model and the policy
    env: Any = None
    expected: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        errors.at_least("dim", self.dim, 1)
        errors.at_least("draws", self.draws, 20)
        errors.at_least("requests", self.requests, 5)
        if isinstance(self.model, type) or isinstance(self.policy, type):
            policy_contract.check(self.policy, self.model, dim=self.dim)  # refuses them as `Bandit` does

    def promise(self, method: str) -> str | None:
        """What a method of the model takes and gives, as its contract says."""
        rule = next((vars(kind)[method] for kind in (Model, Able) if method in vars(kind)), None)
        return " ".join(str(inspect.getdoc(rule)).split("\n\n")[0].split()) if callable(rule) else None

    @functools.cached_property
    def whole(self) -> Model:
        """The model with all its parts."""
        return adapting.adapted(self.model)

    @property
    def slots(self) -> int | None:
        """K, where K arms share one context."""
        return self.whole.slots

    @property
    def support(self) -> tuple[float, float]:
        """Between which the model's rewards lie."""
        return self.whole.support

    @property
    def ambient(self) -> int:
        """How many numbers θ has."""
        return self.whole.ambient(self.dim)

    @property
    def K(self) -> int:
        """How many arms a request has."""
        return ARMS if self.slots is None else self.slots

    def rng(self) -> np.random.Generator:
        """A stream for what is asked, the same each time."""
        return np.random.default_rng(self.seed + 1)

    def request(self) -> np.ndarray:
        """One request. Arms 1 and 2 are equal and arm 4 is zero, (5, d); with slots one context (d,)."""
        unit = np.eye(self.dim)
        if self.slots is not None:
            return np.linspace(1.0, 0.5, self.dim)
        first, second = unit[0], unit[1] if self.dim > 1 else -unit[0]
        return np.stack([first, second, second, 0.5 * unit.sum(axis=0), np.zeros(self.dim)])

    def asked(self, n: int) -> np.ndarray:
        """n requests that differ: (n, 5, d), or (n, d)."""
        return self.rng().normal(size=(n, self.dim) if self.slots is not None else (n, ARMS, self.dim))

    def masks(self, n: int) -> np.ndarray:
        """Which arms are on offer in n requests (n, K): one at least."""
        mask = np.random.default_rng(self.seed + 2).random((n, self.K)) < 0.7
        mask[:, 0] = True
        return mask

    def paid(self, real: ArrayLike) -> np.ndarray:
        """Real numbers as rewards that the model takes, in the same order."""
        low, high = self.support
        real = np.asarray(real, dtype=float)
        if high < math.inf:
            return low + (high - low) * special.ndtr(real)
        return real if low == -math.inf else low + np.logaddexp(0, real)

    def bandit(self, *, learnt: bool = True, policy: Any = None, **settings: Any) -> Bandit:
        """A bandit; one that has learnt knows two of the arms of `request`."""
        policy = self.policy if policy is None else policy
        bandit = Bandit(self.model, policy, dim=self.dim, **{"seed": self.seed} | settings)
        if learnt:
            X, r = self.lesson()
            bandit.update(X[:2], r[:2], **self.slot(np.arange(2)))
        return bandit

    def fresh(self, batch: tuple[int, ...] = (), *, needs: frozenset[str] | None = None) -> Any:
        """A first state with these leading axes; each run has chance of its own. needs: None, those of the policy."""

        def rng() -> Any:
            rngs = [np.random.default_rng(i) for i in range(batch[0] if batch else 1)]
            return rngs if batch else rngs[0]

        settings = {"batch": batch, "xp": array_api_compat.numpy, "device": None} if batch else {}
        needs = frozenset(self.policy.needs) if needs is None else needs
        return begin(self.whole, self.dim, needs=needs, rng=rng, **settings)

    def taught(self, state: Any, x: np.ndarray, r: Any, i: Any, rng: np.random.Generator) -> Any:
        """The state after one more observation, in slot i where there are slots, by the model's own `update`."""
        chance = {}
        if self.whole.draw is not None:
            chance["chance"] = tuple(kind[0] for kind in self.whole.draw(rng, 1))
        return self.whole.update(state, x, np.asarray(r), **self.slot(i), **chance)

    def lesson(self) -> tuple[np.ndarray, np.ndarray]:
        """Arms (9, d) and their rewards (9,). The first two are arms 0 and 1 of `request`."""
        rng = self.rng()
        X, r = rng.normal(size=(9, self.dim)), rng.normal(size=9)
        if self.slots is None:
            X[:2] = self.request()[:2]
        r[:2] = -0.8, 0.8
        return X, self.paid(r)

    def slot(self, k: ArrayLike) -> dict[str, Any]:
        """Of observation k: the argument arm= of `update`, where the model has slots, and at= where it has a clock."""
        return ({} if self.slots is None else {"arm": np.asarray(k) % self.slots}) | self.timed(k)

    def timed(self, k: ArrayLike) -> dict[str, Any]:
        """The argument at= of `update` of observation k, where the model has a clock."""
        return {"at": np.asarray(k) * 1.0} if self.whole.half_life is not None else {}

    def again(self, bandit: Bandit) -> Bandit:
        """The bandit out of its file."""
        held = (type(value) for value in vars(self.model).values() if is_dataclass(value))  # as `Disjoint` holds one
        classes = (type(self.model), type(self.policy), *held, *self.classes)
        whole = self.whole.fingerprint() is None
        return from_bytes(bandit.to_bytes(), known=classes, model=None if whole else self.model)

    def world(self) -> Any:
        """An environment whose rewards the model takes."""
        low, high = self.support
        if self.env is not None:
            return self.env
        if self.slots is not None:
            rng = self.rng()
            y = np.arange(12 * self.slots) % self.slots
            return envs.Classification(rng.normal(size=(len(y), self.dim)) + y[:, None], y)
        if low == -math.inf and high == math.inf:
            return envs.Linear(dim=self.dim, arms=ARMS)
        if low <= 0 and high >= 1:
            paying = envs.Logistic if high < math.inf else envs.Poisson
            return paying(dim=self.dim, arms=ARMS, contexts=2)
        raise ValueError(f"no environment of this library pays rewards in [{low:g}, {high:g}]: pass env=")

    def simulated(self, agents: Mapping[str, Any], **settings: Any) -> np.ndarray:
        """The regret (A, R, T) of some agents in that environment."""
        rounds = self.requests
        options = dict(rounds=rounds, seed=self.seed, record=range(1, rounds + 1)) | settings
        return simulate(self.world(), agents, **options).regret  # type: ignore[arg-type]

    def live(self, policy: Any) -> np.ndarray:
        """The regret (T,) of a live bandit that goes through run 0 of the same environment by itself."""
        env, n = self.world(), self.requests
        bandit = Bandit(self.model, policy, dim=env.dim, seed=self.seed)
        rounds = WorldOfRuns(env, np.array([0]), self.seed, xp=array_api_compat.numpy, device=None).advance(n)
        X, mean, reward = rounds.X[0], rounds.mean[0], rounds.reward[0]
        mask = None if rounds.mask is None else rounds.mask[0]
        arms = []
        for t in range(n):
            arm = int(bandit.choose(X[t], mask=None if mask is None else mask[t]).arm)
            bandit.update(X[t] if env.disjoint else X[t, arm], reward[t, arm], **self.slot(arm) | self.timed(t + 1))
            arms.append(arm)
        best = (mean if mask is None else np.where(mask, mean, -np.inf)).max(axis=1)
        return np.cumsum(best - mean[np.arange(n), arms])


def leaves(state: Any) -> dict[str, np.ndarray]:
    """Copies of the arrays of a state, by name."""
    return {name: np.array(arrays.numpy(array)) for name, array in trees.leaves(state, "state").items()}


def differing(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> str | None:
    """The name of an array of two states that is not the same to the bit; None where all are."""
    if one.keys() != other.keys():
        return ", ".join(sorted(one.keys() ^ other.keys()))
    for name, a in one.items():
        b = other[name]
        if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes():
            return name
    return None


def alike(a: Bandit, b: Bandit, says: str, *, cure: str) -> None:
    """Fail where two bandits do not know the same, to the bit; what is said ends with an array that differs."""
    changed = differing(leaves(a.state), leaves(b.state))
    require(changed is None, f"{says} ({changed})", cure=cure)


def read_only(array: np.ndarray) -> np.ndarray:
    """A copy that nobody can write to."""
    copied = np.array(array)
    copied.flags.writeable = False
    return copied


def same(a: Decision | Decisions, b: Decision | Decisions) -> bool:
    """Whether two decisions are one, to the bit."""
    return all(
        np.array_equal(np.asarray(x), np.asarray(y), equal_nan=True)
        for x, y in ((a.arm, b.arm), (a.propensity, b.propensity))
    )


def configured(part: Any) -> None:
    """Fail for a class that is no dataclass: its settings are not known, so it cannot be compared or saved."""
    kind = type(part)
    require(
        kind.__repr__ is not object.__repr__,
        f"{kind.__name__} does not say what its settings are",
        cure="Write @dataclass(frozen=True) above the class: its fields are its settings",
    )


def twin(part: Any) -> Any:
    """A copy of a configuration, to see whether it was changed; None where it cannot be copied."""
    try:
        return copy.deepcopy(part)
    except Exception:  # what holds a lock, a generator, ...: then it is not compared
        return None
