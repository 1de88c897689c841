"""The lockstep simulator: R runs of any policies in any environment as batched array operations; no I/O.

All policies see the same contexts and the same reward noise (common random numbers). A stream belongs to
(seed, run, purpose). So run 7 is the same in every batch, in every number of processes, and beside any other policies.
`regret` is of the means. `realised` is r(best) - r(chosen), where each arm has noise of its own; the paper's figures
show this one.
"""

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dither import arrays, decision, errors, parts, streams, trees, workers
from dither.algorithms import Algorithm, Spec
from dither.arrays import Array
from dither.models import model as contract

CHUNK = 2**23  # bytes of contexts drawn at once: few calls for each run, and they stay in the cache
BATCH = 50  # the most runs in lockstep, by default: with more, a run costs no less
STATES = 50_000  # the most entries of F in all runs in lockstep, by default: they stay in the cache
MEMORY = 4 * 10**8  # the most bytes of the states in lockstep, by default: a model may keep its history
DRAWN = 2**21  # numbers of chance drawn at once for all runs of an algorithm
BATCH_THERE, CHUNK_THERE, MEMORY_THERE = 4096, 2**28, 4 * 10**9  # the same for a device, where runs are many at once
FIRST = 32  # how many rounds of rewards are checked before anything runs

Algorithms = Sequence[Any] | Mapping[str, Any]  # as `simulate` says


@dataclass(frozen=True)
class Results:
    """What `simulate` returns. A algorithms, R runs, P recorded rounds."""

    algorithms: tuple[str, ...]  # (A,) names or labels
    runs: np.ndarray  # (R,) run numbers
    rounds: np.ndarray  # (P,) recorded rounds, from 1 to T
    regret: np.ndarray  # (A, R, P) cumulative, of the means
    realised: np.ndarray  # (A, R, P) cumulative, of the rewards
    seed: int

    def __repr__(self) -> str:
        names = ", ".join(self.algorithms)
        return f"Results({names}; {len(self.runs)} runs of {self.rounds[-1]} rounds, seed {self.seed})"

    def table(self, *, realised: bool = False) -> Any:
        """A polars frame with columns algorithm, run, round, regret; and realised if asked (extra "experiments")."""
        try:
            import polars
        except ImportError:
            raise errors.missing_extra("polars", extra="experiments") from None
        A, R, P = self.regret.shape
        columns = {
            "algorithm": np.repeat(np.array(self.algorithms), R * P),
            "run": np.tile(np.repeat(self.runs, P), A),
            "round": np.tile(self.rounds, A * R),
            "regret": self.regret.reshape(-1),
        }
        return polars.DataFrame(columns | ({"realised": self.realised.reshape(-1)} if realised else {}))


def simulate(
    env: Any,
    algorithms: Algorithms,
    *,
    runs: int | Iterable[int] = 100,
    rounds: int = 20_000,
    seed: int | None = 0,
    record: Iterable[int] | None = None,
    batch: int | None = None,
    jobs: int = 1,
    device: str | None = None,
    xp: Any = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Results:
    """Run algorithms side by side.

    Parameters
    ----------
    env : an environment (`dither.envs`, or your own: `dither.envs.base`)
    algorithms : names ("LinFP", "LinFP:c=0.3,preset=as_run", "mine.py:BGE:C=0.3"), or algorithms or policies of your
        own (`Spec.of`); or a dict of label -> such a thing or (model, policy)
    runs : how many, or which run numbers
    rounds : the horizon T; it is told to the algorithms whose formulas need it
    seed : a whole number; None draws one and records it in the result
    record : rounds at which to record the regret (None: `recorded(T)`)
    batch : runs in lockstep (None: as many as are quickest; it changes no result)
    jobs : processes that share the runs (needs joblib, of the extra "experiments")
    device : None for NumPy; "cpu", "cuda" for torch tensors there (docs/devices.md)
    xp : any other array API namespace, for tests
    on_progress : called with (rounds done, rounds in all), counted over runs

    Raises ValueError, LookupError or TypeError for settings that make no sense, before anything runs.
    """
    errors.at_least("rounds", rounds, 1)
    check_environment(env)
    errors.at_least("batch", batch, 1, or_none=True)
    errors.at_least("jobs", jobs, 1)
    if not isinstance(runs, Iterable):
        errors.at_least("runs", runs, 1)
        runs = range(runs)
    numbers = _whole("runs", sorted(set(runs)))
    if numbers.size == 0 or numbers[0] < 0:
        raise ValueError(f"runs must name at least one run, and none below 0; got {numbers}")
    seed = streams.entropy(seed)
    agents = {
        label: configured(what, env, rounds=rounds) if isinstance(what, Spec) else what
        for label, what in entries(algorithms).items()
    }
    if device is not None:
        agents = {label: (contract.placed(model, device), policy) for label, (model, policy) in agents.items()}
    for model, policy in agents.values():
        decision.check(policy, model, dim=env.dim)
        if contract.slots(model) != (env.arms if env.disjoint else None):
            kind = f"{env.arms} disjoint slots" if env.disjoint else "arms with features of their own"
            raise ValueError(f"the environment has {kind}, which {model} does not fit")
        if contract.of_user(model):
            start = functools.partial(streams.stream, seed, 0, "weights")
            first = contract.begin(model, env.dim, needs=policy.needs, rng=start)
            contract.look(model, first, dim=env.dim)
    models = [model for model, _ in agents.values()]
    check_rewards(env, models, seed=seed, run=int(numbers[0]))
    if batch is None:
        batch = _batch(env, models, rounds=rounds, there=device is not None)
    marks = recorded(rounds) if record is None else np.unique(_whole("record", list(record)))
    if marks.size == 0 or marks[0] < 1 or marks[-1] > rounds:
        raise ValueError(f"record must name rounds from 1 to {rounds}, got {marks}")
    shares = np.array_split(numbers, min(len(numbers), max(jobs, -(-len(numbers) // batch))))
    settings = dict(
        rounds=rounds, seed=seed, marks=marks, xp=arrays.backend(device) if xp is None else xp, device=device
    )
    done = _Count(len(numbers) * rounds, on_progress)
    if jobs == 1:
        pieces = [_lockstep(env, agents, share, done=done, **settings) for share in shares]
    else:
        pieces = _parallel(env, agents, shares, jobs=jobs, done=done, **settings)
    regret, realised = (np.concatenate(kind, axis=1) for kind in zip(*pieces, strict=True))
    return Results(tuple(agents), numbers, marks, regret, realised, seed)


def check_environment(env: Any) -> None:
    """Refuse what is no environment."""
    if isinstance(env, type):
        raise TypeError(f"an environment is an instance: pass {env.__name__}() for {env.__name__}")
    names = ("arms", "dim", "disjoint", "start", "fill", "means")
    lacking = [name for name in names if not hasattr(env, name)]
    if not hasattr(env, "rewards") and not hasattr(env, "reward_noise"):
        lacking.append("reward_noise or rewards")
    if lacking:
        raise TypeError(f"{type(env).__name__} is no environment (dither.envs.base): it lacks {', '.join(lacking)}")
    errors.at_least("the environment's dim", env.dim, 1)
    errors.at_least("the environment's arms", env.arms, 1)


def _batch(env: Any, models: list[Any], *, rounds: int, there: bool) -> int:
    """As many runs in lockstep as are quickest and as memory holds. there : on a device."""
    quick = BATCH_THERE if there else min(BATCH, max(8, STATES // (env.dim**2 * (env.arms if env.disjoint else 1))))
    size = sum(contract.bytes_of(model, env.dim, rounds) for model in models)
    kept = models if not there else [model for model in models if contract.at_home(model)]
    quick = int(min([quick, *(contract.together(model, env.dim) for model in kept)]))
    return max(1, min(quick, int((MEMORY_THERE if there else MEMORY) // size) if size else quick))


def check_rewards(env: Any, models: Iterable[Any], *, seed: int = 0, run: int = 0) -> None:
    """Refuse models whose `support` does not hold the rewards of the run's first rounds."""
    bounded = [model for model in models if not _holds(model, -math.inf, math.inf)]
    if bounded:
        world = World(env, np.array([run]), seed, xp=arrays.backend(None), device=None)
        _refuse(env, bounded, world.advance(FIRST).reward)


def _holds(model: Any, low: float, high: float) -> bool:
    """Whether the model takes all rewards from low to high."""
    least, most = contract.support(model)
    return least <= low and high <= most


def _refuse(env: Any, models: Iterable[Any], reward: np.ndarray) -> None:
    low, high = float(reward.min()), float(reward.max())
    for model in models:
        if not _holds(model, low, high):
            least, most = contract.support(model)
            wrong = low if low < least else high
            raise ValueError(
                f"rewards must lie in [{least:g}, {most:g}] for {model}, and {env} pays {wrong:.4g}: take an "
                "environment with such rewards, or a model for these (another link=; the Lin algorithms take any)"
            )


def _whole(name: str, values: list) -> np.ndarray:
    for value in values:
        errors.at_least(f"each of {name}", value, 0)
    return np.array(values, dtype=np.int64)


def entries(algorithms: Algorithms) -> dict[str, Spec | tuple[Any, Any]]:
    """Label -> what to run."""
    if isinstance(algorithms, str):
        raise ValueError(
            f"algorithms must be a list of names or a dict, got the text {algorithms!r}: pass [{algorithms!r}]"
        )
    if isinstance(algorithms, Mapping):
        found = {label: _entry(label, what) for label, what in algorithms.items()}
    else:
        listed = [_entry(str(what), what) for what in algorithms]
        found = {str(spec): spec for spec in listed}
        if len(found) < len(listed):
            raise ValueError(f"algorithms must differ, got {[*map(str, listed)]}; in a dict they may have labels")
    if not found:
        raise ValueError("algorithms must name at least one algorithm")
    return found


def _entry(label: str, what: Any) -> Spec | tuple[Any, Any]:
    if isinstance(what, tuple) and len(what) == 2:
        return what
    if not isinstance(what, (str, Spec, Algorithm)) and not (hasattr(what, "draw") and hasattr(what, "view")):
        raise TypeError(
            f"{label!r} must be a name such as 'LinFP:c=0.3', an algorithm or a policy, or (model, policy) in a dict; "
            f"got {what!r}"
        )
    return Spec.of(what)


def configured(spec: Spec, env: Any, *, rounds: int) -> tuple[Any, Any]:
    """The model and the policy as they are run in this environment, with what the algorithm is told of it."""
    facts = {"horizon": rounds} | {k: getattr(env, k) for k in ("sigma", "S") if hasattr(env, k)}
    return spec.configure(env.dim, disjoint=env.arms if env.disjoint else None, facts=facts)


def recorded(T: int) -> np.ndarray:
    """About 200 rounds from 1 to T, spaced evenly in log t, with those of the published curves (1 + k T/40) and T."""
    even = 1 + np.arange(40) * T // 40
    return np.unique(np.r_[np.geomspace(1, T, 180).round().astype(np.int64), even, T])


class _Count:
    """Tells a progress callback how many rounds are done."""

    def __init__(self, total: int, tell: Callable[[int, int], None] | None) -> None:
        self.done, self.total, self.tell = 0, total, tell

    def add(self, n: int) -> None:
        self.done += n
        if self.tell is not None:
            self.tell(self.done, self.total)


def _parallel(env: Any, agents: dict, shares: list, *, jobs: int, done: _Count, **settings: Any) -> list:
    send = workers.delayed(_there)
    calls = [send(parts.Travel(), env, agents, runs, done=None, **settings) for runs in shares]
    found = []
    for runs, piece in zip(shares, workers.Workers(jobs=jobs).results(calls, ordered=True), strict=True):
        found.append(piece)
        done.add(len(runs) * settings["rounds"])
    return found


def _there(arrived: parts.Travel, *what: Any, **settings: Any) -> tuple[np.ndarray, np.ndarray]:
    """`_lockstep` in another process, where the user's files are loaded first."""
    return _lockstep(*what, **settings)


def _lockstep(
    env: Any,
    agents: dict,
    runs: np.ndarray,
    *,
    rounds: int,
    seed: int,
    marks: np.ndarray,
    xp: Any,
    device: Any,
    done: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Cumulative regrets (A, R, P) of the means and of the rewards, for these runs at once."""
    bounded = [model for model, _ in agents.values() if not _holds(model, -math.inf, math.inf)]
    world = World(env, runs, seed, xp=xp, device=device)
    crew = [_Agent(model, policy, world) for model, policy in agents.values()]
    regret, realised = (np.zeros((len(crew), len(runs), len(marks))) for _ in range(2))
    chunk = CHUNK if device is None else CHUNK_THERE
    n = max(1, min(rounds, chunk // (8 * world.width * len(runs)), 256))
    mark, t = 0, 0
    while t < rounds:
        ahead = min(n, rounds - t)
        rows = world.advance(ahead)
        if bounded:
            _refuse(env, bounded, rows.reward)
        kinds = {home: rows if home else world.moved(rows) for home in {agent.home for agent in crew}}
        for agent in crew:
            agent.prepare(ahead)
        for i in range(ahead):
            t += 1
            scenes = {home: kind.at(i) for home, kind in kinds.items()}
            for agent in crew:
                agent.step(t, i, scenes[agent.home])
            if t == marks[mark]:
                for a, agent in enumerate(crew):
                    regret[a, :, mark], realised[a, :, mark] = agent.totals()
                mark = min(mark + 1, len(marks) - 1)
        if done is not None:
            done.add(ahead * len(runs))
    return regret, realised


class Rounds(NamedTuple):
    """n rounds of R runs; or one round of them, without the axis of n. NumPy's arrays, or `moved` to a device."""

    X: Array  # (R, n, K, d), or (R, n, d) with disjoint slots
    mean: Array  # (R, n, K)
    reward: Array  # (R, n, K)
    best: Array  # (R, n)  the highest mean of the arms on offer
    best_reward: Array  # (R, n)  the reward of the arm of the highest mean
    delay: np.ndarray | None  # (R, n)  how many rounds late a reward comes; None: none is late
    mask: Array | None  # (R, n, K)  True: on offer; None: all are

    def at(self, i: int) -> "Rounds":
        """Round i alone."""
        return Rounds(*(None if part is None else part[:, i, ...] for part in self))


class World:
    """The environment of R runs, each with streams of its own."""

    def __init__(self, env: Any, runs: np.ndarray, seed: int, *, xp: Any, device: Any) -> None:
        from dither.envs import base  # here, since a live bandit needs no environments

        self.fill = base.fill
        self.env, self.runs, self.seed, self.xp, self.device = env, runs, seed, xp, device
        self.arms, self.dim, self.disjoint = env.arms, env.dim, env.disjoint
        self.shape = (env.dim,) if env.disjoint else (env.arms, env.dim)
        self.width, self.done = int(np.prod(self.shape)), 0  # rounds
        self.instances = [env.start(streams.stream(seed, int(run), "instance")) for run in runs]
        self.contexts, self.noise, self.late, self.offers = (
            self.streams(purpose) for purpose in ("contexts", "noise", "delay", "offered")
        )

    def streams(self, purpose: str) -> list[np.random.Generator]:
        """One stream a run."""
        return [streams.stream(self.seed, int(run), purpose) for run in self.runs]

    def moved(self, rows: Rounds) -> Rounds:
        """The rounds in the library and on the device of this simulation."""
        moved = {name: None if part is None else self.array(part) for name, part in rows._asdict().items()}
        return Rounds(**moved | {"delay": rows.delay})

    def advance(self, n: int) -> Rounds:
        """The next n rounds."""
        env, R = self.env, len(self.runs)
        X, mean = np.empty((R, n, *self.shape)), np.empty((R, n, self.arms))
        if not self.done:
            X[:] = np.nan  # shows what `fill` leaves out; done once, it costs little
        reward, mask = np.empty_like(mean), None
        if hasattr(env, "offered"):
            mask = np.empty(mean.shape, dtype=bool)
        for r, run in enumerate(self.instances):
            more = self.fill(env, run, self.contexts[r], X[r], t=self.done + 1)
            mean[r] = self.rows("means", env.means(run, X[r], more), n)
            reward[r] = self.pay(self.noise[r], mean[r])
            if mask is not None:
                mask[r] = self.offer(env.offered(run, self.offers[r], X[r], more), n)
        if not self.done and not np.isfinite(X).all():
            raise ValueError(f"{type(env).__name__}.fill must fill out {X.shape[1:]} with finite numbers, and did not")
        self.done += n
        top = np.argmax(mean if mask is None else np.where(mask, mean, -np.inf), axis=-1)[..., None]
        delay = None
        if hasattr(env, "delays"):
            delay = np.stack([np.asarray(env.delays(rng, n)) for rng in self.late])
            if delay.shape != mean.shape[:2] or delay.dtype.kind not in "iu" or delay.min() < 0:
                raise ValueError(f"{type(env).__name__}.delays must return {n} whole numbers of at least 0")
        best, best_reward = (np.take_along_axis(kind, top, axis=-1)[..., 0] for kind in (mean, reward))
        return Rounds(X, mean, reward, best, best_reward, delay, mask)

    def pay(self, rng: np.random.Generator, mean: np.ndarray) -> np.ndarray:
        """The rewards (n, K) of these means."""
        n = len(mean)
        if hasattr(self.env, "rewards"):
            return self.rows("rewards", self.env.rewards(rng, mean), n)
        noise = self.env.reward_noise(rng, n)
        return mean if noise is None else mean + self.rows("reward_noise", noise, n)

    def rows(self, method: str, answer: Any, n: int) -> np.ndarray:
        """What a method of the environment answered. It must be finite and of shape (n, K)."""
        answer = np.asarray(answer)
        name = f"{type(self.env).__name__}.{method}"
        if answer.shape != (n, self.arms):
            raise ValueError(f"{name} must return finite numbers of shape {(n, self.arms)}, got {answer.shape}")
        if not np.isfinite(answer).all():
            raise ValueError(f"{name} must return finite numbers, and some are not: does fill write all of out?")
        return answer

    def offer(self, answer: Any, n: int) -> np.ndarray:
        """Which arms the environment says are on offer, (n, K): True and False, and no round without an arm."""
        answer, name = np.asarray(answer), f"{type(self.env).__name__}.offered"
        if answer.shape != (n, self.arms) or answer.dtype != bool:
            raise ValueError(
                f"{name} must return True and False of shape {(n, self.arms)}, got {answer.dtype} of {answer.shape}"
            )
        if not answer.any(axis=-1).all():
            raise ValueError(f"{name} must offer at least one arm in each round, and offers none in some: keep one")
        return answer

    def array(self, x: np.ndarray) -> Array:
        """In the library and on the device of this simulation."""
        return x if self.xp is arrays.backend(None) else self.xp.asarray(x, device=self.device)


class _Agent:
    """One algorithm in R runs."""

    def __init__(self, model: Any, policy: Any, world: World) -> None:
        self.model, self.policy, self.world = model, policy, world
        self.home = world.device is not None and contract.at_home(model)  # its arrays are NumPy's
        R, numpy = len(world.runs), arrays.backend(None)
        settings = dict(batch=(R,), xp=numpy if self.home else world.xp, device=None if self.home else world.device)
        self.state = contract.begin(
            model, world.dim, needs=policy.needs, rng=lambda: world.streams("weights"), **settings
        )
        self.training_rngs = world.streams("training") if contract.draws(model) else []
        self.rngs, self.tie_rngs = world.streams("policy"), world.streams("ties")
        self.regret = self.realised = self.array(np.zeros(R))
        self.block = 1  # rounds whose chance is drawn at once; the first shows how many fit
        self.late: dict[int, list] = {}  # round -> what is learnt at its end

    def array(self, x: np.ndarray) -> Array:
        """In the library of its state, on its device."""
        return x if self.home else self.world.array(x)

    def prepare(self, n: int) -> None:
        """n rounds are to come."""
        self.ahead, self.first, self.last = n, 0, 0

    def draw(self, i: int) -> None:
        """Draw the chance of round i and of as many after it as memory allows."""
        n = min(self.ahead - i, self.block)
        self.first, self.last = i, i + n
        dim = contract.ambient(self.model, self.world.dim)
        drawn = [decision.draw(self.policy, rng, n, arms=self.world.arms, dim=dim) for rng in self.rngs]
        self.chance = tuple(self.array(np.stack(kind)) for kind in zip(*drawn, strict=True))
        taught = [self.model.draw(rng, n) for rng in self.training_rngs]
        self.training = tuple(np.stack(kind) for kind in zip(*taught, strict=True))
        self.u = self.array(np.stack([rng.random((n, decision.UNIFORMS)) for rng in self.tie_rngs]))
        size = sum(math.prod(kind.shape) for kind in (*self.chance, *self.training, self.u))
        self.block = max(1, int(DRAWN // (size / n)))

    def step(self, t: int, i: int, scene: Rounds) -> None:
        """Choose, pay, learn."""
        if i >= self.last:
            self.draw(i)
        j = i - self.first
        view = decision.view(self.policy, self.model, self.state, scene.X, t=t)
        chance = tuple(kind[:, j, ...] for kind in self.chance)
        if t == 1:
            decision.look(self.policy, view, chance, arms=self.world.arms)
        arm = decision.choose(view, chance, self.u[:, j, :], eps=decision.eps(self.policy, t), mask=scene.mask)
        r = arrays.pick(scene.reward, arm, rank=0)
        self.regret = self.regret + (scene.best - arrays.pick(scene.mean, arm, rank=0))
        self.realised = self.realised + (scene.best_reward - r)
        x = scene.X if self.world.disjoint else arrays.pick(scene.X, arm, rank=1)
        slot: dict[str, Any] = {"arm": arm} if self.world.disjoint else {}
        if contract.clocked(self.model):
            slot["at"] = self.array(np.full(len(self.rngs), float(t)))  # the round is the time
        if self.training_rngs:
            slot["chance"] = tuple(kind[:, j, ...] for kind in self.training)
        if scene.delay is None:
            self.state = self.model.update(self.state, x, r, **slot, **contract.given_up(self.model))
            return
        for delay in np.unique(scene.delay):
            self.late.setdefault(t + int(delay), []).append((x, r, slot, scene.delay == delay))
        for x, r, slot, arrived in self.late.pop(t, []):
            new = self.model.update(self.state, x, r, **slot)
            self.state = new if arrived.all() else trees.choose(self.array(arrived), new, self.state)

    def totals(self) -> tuple[np.ndarray, np.ndarray]:
        """Cumulative regrets so far, (R,) each."""
        return arrays.numpy(self.regret), arrays.numpy(self.realised)
