"""One library in a process of its own, asked by `peers.py`: the time of a decision with its reward, memory and start.

    python peer_players.py '{"what": "cell", "player": "coba", "K": 10, "d": 10}'    in the environment of the peers

A line of JSON is the answer. The request stands ready in the form that the library takes, before the clock starts:
arrays, lists, dicts or a text. The clock is the processor's, around blocks of rounds. A round is `choose`, which ends
with an arm, and `learn`, which ends when the model has learnt its reward.

Each library is imported by its player, so that a start has that library alone.
"""

import importlib
import json
import random
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

LIMIT = 0.1  # seconds of the processor for a round; a cell that takes longer is stopped
# GiB of address space that a process may have. No limit of processor time: with one, Linux counts that time by ticks.
SPACE = 8
WARM = 20  # rounds before the clock starts
BLOCK, NUMBERS = 50, 50_000  # rounds of a block; numbers that its requests may have, so that they take little memory
LASTS = 0.05  # seconds that a block may take
LEAST, MOST, SECONDS = 5, 40, 0.25  # blocks, and the time after which no further block begins
NOISE = 0.1


class Player:
    """A library as its users call it."""

    joint = True  # one model of the features of arms; or one of the context for each arm

    def prepare(self, rows: list[list[float]]) -> Any:
        """The request in the library's form. rows : K arms of d features, or one context of d."""
        return rows

    def choose(self, request: Any) -> int:
        """The arm to show."""
        raise NotImplementedError

    def learn(self, request: Any, arm: int, reward: float) -> None:
        """The reward of the arm that was shown."""
        raise NotImplementedError

    def history(self, rows: list[list[float]], rewards: list[float]) -> None:
        """A context and a reward for each arm, before the clock starts: disjoint models alone."""
        for arm, (row, reward) in enumerate(zip(rows, rewards, strict=True)):
            self.learn(self.prepare([row]), arm, reward)


class OfDither(Player):
    """LinFP on the features of arms."""

    def __init__(self, K: int, d: int, **settings: Any) -> None:
        self.array = importlib.import_module("numpy").array
        self.bandit = importlib.import_module("dither").LinFP(dim=d, seed=0, **settings)

    def prepare(self, rows: list[list[float]]) -> Any:
        return self.array(rows)

    def choose(self, request: Any) -> int:
        return int(self.bandit.choose(request).arm)

    def learn(self, request: Any, arm: int, reward: float) -> None:
        self.bandit.update(request[arm], reward)


class OfDitherSlots(OfDither):
    """LinFP with a slot for each arm, as `LinFP(dim=d, disjoint=K)` makes it, but with room for the largest cell."""

    joint = False

    def __init__(self, K: int, d: int) -> None:
        self.array, dither = importlib.import_module("numpy").array, importlib.import_module("dither")
        ridge = dither.models.Ridge(lam="auto", centre=True, memory=2**30)
        policy = dither.policies.FeaturePerturbation(sigma="auto")
        self.bandit = dither.Bandit(dither.models.Disjoint(ridge, slots=K), policy, dim=d, seed=0)

    def prepare(self, rows: list[list[float]]) -> Any:
        return self.array(rows[0])

    def learn(self, request: Any, arm: int, reward: float) -> None:
        self.bandit.update(request, reward, arm=arm)


class OfVowpalWabbit(Player):
    """A workspace with action-dependent features. The text is parsed once, for the decision and for its reward."""

    def __init__(self, K: int, d: int) -> None:
        vw = importlib.import_module("vowpalwabbit")
        self.workspace = vw.Workspace("--cb_explore_adf --epsilon 0.05 --quiet")
        self.label, self.arms = vw.LabelType.CONTEXTUAL_BANDIT, range(K)
        self.draw = random.Random(0).choices

    def prepare(self, rows: list[list[float]]) -> str:
        return "\n".join("|a " + " ".join(f"{i}:{value:.6g}" for i, value in enumerate(row)) for row in rows)

    def choose(self, request: str) -> int:
        self.examples = self.workspace.parse(request, self.label)
        p = self.workspace.predict(self.examples)
        (arm,) = self.draw(self.arms, p)
        self.p = p[arm]
        return arm

    def learn(self, request: str, arm: int, reward: float) -> None:
        self.examples[arm].set_label_string(f"0:{-reward}:{self.p}")
        self.workspace.learn(self.examples)
        self.workspace.finish_example(self.examples)


class OfGittins(Player):
    """The engine in Rust. Its clock is told the number of the round."""

    def __init__(self, K: int, d: int) -> None:
        self.gittins = importlib.import_module("gittins")
        self.state = self.gittins.create(bits=14, horizon=3600.0)
        self.names, self.arms, self.t = [f"x{i}" for i in range(d)], [f"arm{k}" for k in range(K)], 0.0

    def prepare(self, rows: list[list[float]]) -> Any:
        return [(arm, dict(zip(self.names, row, strict=True))) for arm, row in zip(self.arms, rows, strict=True)]

    def choose(self, request: Any) -> int:
        self.t += 1.0
        record = self.gittins.decide(self.state, {}, request, self.t, "salt")
        self.id = record.decision_id
        return int(record.chosen)

    def learn(self, request: Any, arm: int, reward: float) -> None:
        self.gittins.learn(self.state, self.id, reward, self.t)


class OfBayesianBandits(Player):
    """One regressor that all arms share, and Thompson sampling; the features of arms come with the request."""

    def __init__(self, K: int, d: int) -> None:
        bb, self.numpy = importlib.import_module("bayesianbandits"), importlib.import_module("numpy")
        self.agent = bb.LipschitzContextualAgent(
            arms=[bb.Arm(arm, learner=None) for arm in range(K)],
            policy=bb.ThompsonSampling(),
            arm_featurizer=bb.FunctionArmFeaturizer(lambda X, arms: X if len(arms) == X.shape[2] else X[:, :, arms]),
            learner=bb.NormalRegressor(alpha=1.0, beta=1.0),
            random_seed=0,
        )

    def prepare(self, rows: list[list[float]]) -> Any:
        return self.numpy.array(rows).T[None]  # (1, d, K), as a featurizer gives it

    def choose(self, request: Any) -> int:
        return int(self.agent.pull(request)[0])

    def learn(self, request: Any, arm: int, reward: float) -> None:
        self.agent.select_for_update(arm).update(request, self.numpy.array([reward]))


class OfCoba(Player):
    """LinUCB on the features of actions."""

    def __init__(self, K: int, d: int) -> None:
        self.learner = importlib.import_module("coba.learners").LinUCBLearner(features=["a"])

    def choose(self, request: Any) -> int:
        self.action, self.p = self.learner.predict(None, request)
        return int(request.index(self.action))

    def learn(self, request: Any, arm: int, reward: float) -> None:
        self.learner.learn(None, self.action, reward, self.p)


class OfContextualBandits(Player):
    """LinTS, a model for each arm, by the Sherman-Morrison formula."""

    joint = False

    def __init__(self, K: int, d: int) -> None:
        online, self.numpy = importlib.import_module("contextualbandits.online"), importlib.import_module("numpy")
        self.policy = online.LinTS(K, v_sq=0.01, fit_intercept=False, random_state=1)

    def prepare(self, rows: list[list[float]]) -> Any:
        return self.numpy.array(rows)

    def choose(self, request: Any) -> int:
        return int(self.policy.predict(request)[0])

    def learn(self, request: Any, arm: int, reward: float) -> None:
        self.policy.partial_fit(request, self.numpy.array([arm]), self.numpy.array([reward]))

    def history(self, rows: list[list[float]], rewards: list[float]) -> None:
        array = self.numpy.array
        self.policy.partial_fit(array(rows), self.numpy.arange(len(rows)), array(rewards))


class OfMabWiser(Player):
    """LinUCB, a ridge regression for each arm."""

    joint = False

    def __init__(self, K: int, d: int) -> None:
        mab, self.array = importlib.import_module("mabwiser.mab"), importlib.import_module("numpy").array
        self.mab = mab.MAB(arms=list(range(K)), learning_policy=mab.LearningPolicy.LinUCB(alpha=1.0), seed=0)

    def prepare(self, rows: list[list[float]]) -> Any:
        return self.array(rows)

    def choose(self, request: Any) -> int:
        return int(self.mab.predict(request))

    def learn(self, request: Any, arm: int, reward: float) -> None:
        self.mab.partial_fit([arm], [reward], request)

    def history(self, rows: list[list[float]], rewards: list[float]) -> None:
        self.mab.fit(list(range(len(rows))), rewards, self.array(rows))


class OfRiver(Player):
    """LinUCB, a Bayesian regression for each arm."""

    joint = False

    def __init__(self, K: int, d: int) -> None:
        bandit = importlib.import_module("river.bandit")
        self.policy, self.arms = bandit.LinUCBDisjoint(alpha=1.0, beta=1.0, seed=0), list(range(K))
        self.names = [f"x{i}" for i in range(d)]

    def prepare(self, rows: list[list[float]]) -> Any:
        return dict(zip(self.names, rows[0], strict=True))

    def choose(self, request: Any) -> int:
        return int(self.policy.pull(self.arms, context=request))

    def learn(self, request: Any, arm: int, reward: float) -> None:
        self.policy.update(arm, request, reward)


KINDS: dict[str, Any] = {
    "dither": OfDither,
    "dither, scale set": lambda K, d: OfDither(K, d, sigma=1.0, lam=1.0),
    "dither, slots": OfDitherSlots,
    "gittins": OfGittins,
    "Vowpal Wabbit": OfVowpalWabbit,
    "bayesianbandits": OfBayesianBandits,
    "coba": OfCoba,
    "contextualbandits": OfContextualBandits,
    "mabwiser": OfMabWiser,
    "river": OfRiver,
}


class Problem:
    """Rewards that are linear in features of length 1; the same rounds for every player of one kind."""

    def __init__(self, K: int, d: int, joint: bool, seed: int = 0) -> None:
        self.numpy = importlib.import_module("numpy")
        self.rng, self.shape = self.numpy.random.default_rng([seed, K, d]), (K if joint else 1, d)
        self.theta = self._unit((1 if joint else K, d))

    def _unit(self, shape: tuple[int, int]) -> Any:
        X = self.rng.normal(size=shape)
        return X / self.numpy.linalg.norm(X, axis=1, keepdims=True)

    def round(self) -> tuple[list[list[float]], list[float], Any]:
        """The rows of a request, the reward of every arm, and its mean (K,)."""
        X = self._unit(self.shape)
        means = (X @ self.theta.T).ravel()
        return X.tolist(), (means + NOISE * self.rng.normal(size=means.shape)).tolist(), means

    def history(self, K: int) -> tuple[list[list[float]], list[float]]:
        """A context and a reward for each of K arms."""
        X = self._unit((K, self.shape[1]))
        means = (X * self.theta).sum(axis=1)
        return X.tolist(), (means + NOISE * self.rng.normal(size=K)).tolist()


def block(player: Player, problem: Problem, rounds: int) -> float:
    """Seconds of the processor a round."""
    ready = [(player.prepare(rows), rewards) for rows, rewards, _ in (problem.round() for _ in range(rounds))]
    start = time.process_time()
    for request, rewards in ready:
        arm = player.choose(request)
        player.learn(request, arm, rewards[arm])
    return (time.process_time() - start) / rounds


def ready(name: str, K: int, d: int, seed: int = 0) -> tuple[Player, Problem]:
    """A player, and its problem; a disjoint one has learnt one reward of each arm."""
    player: Player = KINDS[name](K, d)
    problem = Problem(K, d, player.joint, seed)
    if not player.joint:
        player.history(*problem.history(K))
    return player, problem


def cell(name: str, K: int, d: int) -> dict[str, Any]:
    """Microseconds a round, and the peak of memory; or that a round takes longer than LIMIT."""
    player, problem = ready(name, K, d)
    first = statistics.median(block(player, problem, 1) for _ in range(3))
    if first > LIMIT:
        return {"over": f"{LIMIT * 1000:.0f} ms", "memory": memory()}
    rounds = max(1, min(BLOCK, NUMBERS // (K * d if player.joint else d), int(LASTS / max(first, 1e-6))))
    for _ in range(max(1, min(WARM, int(SECONDS / max(first, 1e-6))) // rounds)):
        block(player, problem, rounds)
    times: list[float] = []
    while len(times) < LEAST or (len(times) < MOST and sum(times) * rounds < SECONDS):
        times.append(block(player, problem, rounds))
    return {"us": statistics.median(times) * 1e6, "blocks": len(times), "rounds": rounds, "memory": memory()}


def check(name: str, K: int, d: int, rounds: int = 500) -> dict[str, Any]:
    """The regret of the rounds over that of uniform choices: a player that learns is far below 1."""
    player, problem = ready(name, K, d, seed=1)
    regret = uniform = 0.0
    for _ in range(rounds):
        rows, rewards, means = problem.round()
        request = player.prepare(rows)
        arm = player.choose(request)
        player.learn(request, arm, rewards[arm])
        regret += float(means.max() - means[arm])
        uniform += float(means.max() - means.mean())
    return {"share": regret / uniform}


def start(name: str, K: int, d: int) -> dict[str, Any]:
    """Seconds of the processor from the start of Python to the first arm, and the memory there. NumPy is not asked."""
    draw = random.Random(0).gauss
    player: Player = KINDS[name](K, d)
    rows = [[draw(0, 1) for _ in range(d)] for _ in range(K)]
    if not player.joint:
        player.history(rows, [0.0] * K)
    player.choose(player.prepare(rows if player.joint else rows[:1]))
    return {"seconds": time.process_time(), "memory": memory()}


def memory() -> float:
    """The peak of this process in MB. (What `resource` says may be that of the process which started this one.)"""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1000


def main(words: list[str]) -> None:
    request = json.loads(words[0])
    resource.setrlimit(resource.RLIMIT_AS, (SPACE * 2**30, SPACE * 2**30))
    try:
        answer = {"cell": cell, "check": check, "start": start}[request["what"]](
            request["player"], request["K"], request["d"]
        )
    except MemoryError:
        answer = {"over": f"{SPACE} GiB"}
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
