"""Play exported rounds with another library, in the interpreter that has it: NumPy and that library are all it needs.

    python others_runner.py ROUNDS.npz REQUEST.json ARMS.npz
    python others_runner.py --version MODULE PACKAGE

ROUNDS   X (R, T, d), whose last column is 1, and reward (R, T, K), of R shuffles of T rounds
REQUEST  {"players": [{"library": "vw", "settings": {...}}, ...], "seed": 0, "runs": [0, 1, ...]}
ARMS     arms (A, R, T), what each of the A players showed. The output has a line "done total" after each shuffle

A player sees x, shows an arm, and is told the reward of that arm alone.
"""

import importlib
import importlib.metadata
import itertools
import json
import sys
from typing import Any, Protocol

import numpy as np

RATES = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0)  # that a tuned Vowpal Wabbit tries
TYPES = ("mtr", "dr")
BY_REGRESSION = ("squarecb", "regcb")  # explorations that know the first type alone


class Player(Protocol):
    """A policy that learns."""

    def choose(self, x: np.ndarray) -> int:
        """The arm to show in this context (d,)."""

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        """The reward of the arm that was shown."""


class OfVowpalWabbit:
    """A workspace that explores over K arms; its costs are what a reward lacks of the largest."""

    def __init__(self, arms: int, top: float, rng: np.random.Generator, **settings: Any) -> None:
        vw = importlib.import_module("vowpalwabbit")
        kinds = {
            "greedy": "--epsilon 0",
            "epsilon": f"--epsilon {settings['epsilon']}",
            "bag": f"--bag {settings['size']}",
            "cover": f"--cover {settings['size']}",
            "squarecb": "--squarecb",
            "regcb": "--regcb",
        }
        words = f"--cb_explore_adf --quiet -q sa {_of(kinds, settings['explore'])} --cb_type {settings['cb_type']}"
        seed = rng.integers(2**31 - 1)
        self.workspace = vw.Workspace(f"{words} --learning_rate {settings['learning_rate']} --random_seed {seed}")
        self.arms, self.top, self.rng = arms, top, rng
        self.p = np.ones(arms) / arms

    def choose(self, x: np.ndarray) -> int:
        """Drawn from the probabilities of the workspace."""
        self.p = np.asarray(self.workspace.predict(self._lines(x)), dtype=np.float64)
        return int(self.rng.choice(self.arms, p=self.p / self.p.sum()))

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        """The arm's cost and its probability."""
        self.workspace.learn(self._lines(x, arm, f"0:{self.top - reward}:{self.p[arm]} "))

    def _lines(self, x: np.ndarray, arm: int = -1, label: str = "") -> list[str]:
        """The context without its 1, which a workspace adds itself, and the arms."""
        shared = " ".join(f"{i}:{value:.6g}" for i, value in enumerate(x[:-1].tolist()))
        return [f"shared |s {shared}", *(f"{label if k == arm else ''}|a arm{k}" for k in range(self.arms))]


class OfContextualBandits:
    """LinUCB or LinTS, learnt row by row."""

    def __init__(self, arms: int, top: float, rng: np.random.Generator, **settings: Any) -> None:
        online = importlib.import_module("contextualbandits.online")
        shared = dict(lambda_=settings["lam"], fit_intercept=False, random_state=int(rng.integers(2**31 - 1)))
        kinds = {
            "linucb": lambda: online.LinUCB(arms, alpha=settings["alpha"], **shared),
            "lints": lambda: online.LinTS(arms, v_sq=settings["v_sq"], **shared),
        }
        self.policy = _of(kinds, settings["explore"])()
        self.arms, self.rng, self.fitted = arms, rng, False

    def choose(self, x: np.ndarray) -> int:
        """Uniform before the first row."""
        return int(self.policy.predict(x[None])[0]) if self.fitted else int(self.rng.integers(self.arms))

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        """One row."""
        self.policy.partial_fit(x[None], np.array([arm]), np.array([reward]))
        self.fitted = True


class OfCoba:
    """A linear learner over interactions of the context and the arm, which is a row of the unit matrix."""

    def __init__(self, arms: int, top: float, rng: np.random.Generator, **settings: Any) -> None:
        learners = importlib.import_module("coba.learners")
        seed = int(rng.integers(2**31 - 1))
        kinds = {
            "linucb": lambda: learners.LinUCBLearner(alpha=settings["alpha"], features=["a", "ax"], seed=seed),
            "lints": lambda: learners.LinTSLearner(v=settings["v"], features=["a", "ax"], seed=seed),
        }
        self.learner, self.p = _of(kinds, settings["explore"])(), 1.0
        self.actions = [tuple(float(i == k) for i in range(arms)) for k in range(arms)]

    def choose(self, x: np.ndarray) -> int:
        """What the learner predicts. The context goes without its 1, since the arm stands alone as well."""
        action, self.p = self.learner.predict(x[:-1].tolist(), self.actions)
        return self.actions.index(action)

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        """One interaction."""
        self.learner.learn(x[:-1].tolist(), self.actions[arm], reward, self.p)


class OfBayesianBandits:
    """A regressor for each arm."""

    def __init__(self, arms: int, top: float, rng: np.random.Generator, **settings: Any) -> None:
        bb = importlib.import_module("bayesianbandits")
        regressors = {"nig": bb.NormalInverseGammaRegressor, "empirical": bb.EmpiricalBayesNormalRegressor}
        policies = {
            "thompson": lambda: bb.ThompsonSampling(),
            "ucb": lambda: bb.UpperConfidenceBound(settings["alpha"]),
            "epsilon": lambda: bb.EpsilonGreedy(settings["epsilon"]),
        }
        regressor, policy = _of(regressors, settings["regressor"]), _of(policies, settings["explore"])()
        every = [bb.Arm(k, learner=regressor()) for k in range(arms)]
        self.agent = bb.ContextualAgent(every, policy, random_seed=int(rng.integers(2**31 - 1)))

    def choose(self, x: np.ndarray) -> int:
        """The arm that is pulled."""
        return int(self.agent.pull(x[None])[0])

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        """The reward of the arm that was pulled last."""
        self.agent.select_for_update(arm).update(x[None], np.array([reward]))


class OfMabWiser:
    """A ridge regression for each arm."""

    def __init__(self, arms: int, top: float, rng: np.random.Generator, **settings: Any) -> None:
        mab = importlib.import_module("mabwiser.mab")
        kinds = {
            "linucb": lambda: mab.LearningPolicy.LinUCB(alpha=settings["alpha"], l2_lambda=settings["lam"]),
            "lints": lambda: mab.LearningPolicy.LinTS(alpha=settings["alpha"], l2_lambda=settings["lam"]),
            "lingreedy": lambda: mab.LearningPolicy.LinGreedy(epsilon=settings["epsilon"], l2_lambda=settings["lam"]),
        }
        policy, seed = _of(kinds, settings["explore"])(), int(rng.integers(2**31 - 1))
        self.mab = mab.MAB(arms=list(range(arms)), learning_policy=policy, seed=seed)
        self.arms, self.rng, self.fitted = arms, rng, False

    def choose(self, x: np.ndarray) -> int:
        """Uniform before the first row."""
        return int(self.mab.predict(x[None])) if self.fitted else int(self.rng.integers(self.arms))

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        """One row."""
        (self.mab.partial_fit if self.fitted else self.mab.fit)([arm], [reward], x[None])
        self.fitted = True


PLAYERS: dict[str, Any] = {
    "vw": OfVowpalWabbit,
    "contextualbandits": OfContextualBandits,
    "coba": OfCoba,
    "bayesianbandits": OfBayesianBandits,
    "mabwiser": OfMabWiser,
}


def _of(kinds: dict[str, Any], name: str) -> Any:
    if name not in kinds:
        raise LookupError(f"no {name!r} here: one of {', '.join(kinds)}")
    return kinds[name]


def play(player: Player, X: np.ndarray, reward: np.ndarray) -> np.ndarray:
    """One pass over X (T, d), reward (T, K). -> the arms shown (T,)"""
    arms = np.empty(len(X), dtype=np.int32)
    for t, (x, row) in enumerate(zip(X, reward, strict=True)):
        arms[t] = player.choose(x)
        player.learn(x, int(arms[t]), float(row[arms[t]]))
    return arms


def arms_of(request: dict[str, Any], X: np.ndarray, reward: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The arms (T,) that a player shows in one shuffle; one that is tuned looks at another order of the rows first."""
    settings, kind = dict(request["settings"]), PLAYERS[request["library"]]
    size: dict[str, Any] = {"arms": reward.shape[1], "top": float(reward.max())}
    if settings.pop("tuned", False):
        rows = rng.permutation(len(X))

        def total(rate: float, cb_type: str) -> float:
            tried = kind(rng=rng, **size, **settings | {"learning_rate": rate, "cb_type": cb_type})
            arms = play(tried, X[rows], reward[rows])
            return float(reward[rows][np.arange(len(rows)), arms].sum())

        types = TYPES[:1] if settings["explore"] in BY_REGRESSION else TYPES
        rate, cb_type = max(itertools.product(RATES, types), key=lambda pair: total(*pair))
        settings |= {"learning_rate": rate, "cb_type": cb_type}
    return play(kind(rng=rng, **size, **settings), X, reward)


def version(module: str, package: str) -> str:
    """The version of the package, once its module was imported."""
    importlib.import_module(module)
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def main(words: list[str]) -> None:
    """Do what the command line says."""
    if words[0] == "--version":
        print(json.dumps(version(*words[1:])))
        return
    with open(words[1], encoding="utf-8") as file:
        request = json.load(file)
    with np.load(words[0]) as rounds:
        X, reward = rounds["X"], rounds["reward"]
    players, runs = request["players"], request["runs"]
    arms = np.empty((len(players), *X.shape[:2]), dtype=np.int32)
    for i, (a, r) in enumerate(itertools.product(range(len(players)), range(len(runs)))):
        rng = np.random.default_rng([request["seed"], runs[r]])
        arms[a, r] = arms_of(players[a], X[r], reward[r], rng)
        print(i + 1, arms.shape[0] * arms.shape[1], flush=True)
    np.savez(words[2], arms=arms)


if __name__ == "__main__":
    main(sys.argv[1:])
