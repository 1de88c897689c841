"""The lockstep simulator: R runs of any policies in any environment as batched array operations; no I/O.

All policies see the same contexts and the same reward noise (common random numbers). A stream belongs to
(seed, run, purpose). So run 7 is the same in every batch, in every number of processes, and beside any other policies.
`regret` is of the means. `realised` is r(best) - r(chosen), where each arm has noise of its own; the paper's figures
show this one.
"""

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.algorithms import Algorithm, Spec
from dither.base import arrays, errors, parts, streams, workers
from dither.deciding import policy as policy_contract
from dither.models import adapting
from dither.models.model import Model, begin
from dither.simulation import draws
from dither.simulation.crew import Agent, Team, in_cache, teams
from dither.simulation.world import WorldOfRuns

CHUNK = 2**23  # bytes of contexts drawn at once: few calls for each run, and they stay in the cache
MEMORY = 4 * 10**8  # the most bytes of the states in lockstep, by default: a model may keep its history
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
    chance: str = "streams"

    def __repr__(self) -> str:
        names, by = ", ".join(self.algorithms), "" if self.chance == "streams" else f", chance by {self.chance}"
        return f"Results({names}; {len(self.runs)} runs of {self.rounds[-1]} rounds, seed {self.seed}{by})"

    def table(self, *, realised: bool = False) -> Any:
        """A polars frame with columns algorithm, run, round, regret; and realised if asked (extra "experiments")."""
        polars = errors.imported("polars", "polars", extra="experiments")
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
    chance: str = "streams",
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
    device : None for NumPy; "cpu", "cuda" for torch tensors there (docs/speed.md)
    chance : "streams", a NumPy stream for each run and purpose; "counter", numbers computed from seed, run, purpose and
        round, on the device (docs/speed.md, "Chance by a counter"): other runs, of the same law
    xp : any other array API namespace, for tests
    on_progress : called with (rounds done, rounds in all), counted over runs

    Raises ValueError, LookupError or TypeError for settings that make no sense, before anything runs.
    """
    errors.at_least("rounds", rounds, 1)
    draws.check(chance)
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
    for model, policy in agents.values():
        policy_contract.check(policy, model, dim=env.dim)
    agents = {label: (_placed(model, device), policy) for label, (model, policy) in agents.items()}
    for model, policy in agents.values():
        if model.slots != (env.arms if env.disjoint else None):
            kind = f"{env.arms} disjoint slots" if env.disjoint else "arms with features of their own"
            raise ValueError(f"the environment has {kind}, which {model} does not fit")
        if adapting.of_user(model):
            start = functools.partial(streams.stream, seed, 0, "weights")
            adapting.look(model, begin(model, env.dim, needs=policy.needs, rng=start), dim=env.dim)
    models = [model for model, _ in agents.values()]
    check_rewards(env, models, seed=seed, run=int(numbers[0]), chance=chance)
    if batch is None:
        batch = _batch(env, models, rounds=rounds, there=device is not None)
    marks = recorded(rounds) if record is None else np.unique(_whole("record", list(record)))
    if marks.size == 0 or marks[0] < 1 or marks[-1] > rounds:
        raise ValueError(f"record must name rounds from 1 to {rounds}, got {marks}")
    shares = np.array_split(numbers, min(len(numbers), max(jobs, -(-len(numbers) // batch))))
    contest = Contest(env, agents, rounds, seed, marks, arrays.backend(device) if xp is None else xp, device, chance)
    pieces = _pieces(contest, shares, jobs=jobs, on_progress=on_progress)
    regret, realised = (np.concatenate(kind, axis=1) for kind in zip(*pieces, strict=True))
    return Results(tuple(agents), numbers, marks, regret, realised, seed, chance)


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


def _placed(model: Any, device: str | None) -> Model:
    """The model with all its parts, as it computes on a device."""
    model = adapting.adapted(model)
    return model if device is None or model.placed is None else adapting.adapted(model.placed(device))


def _batch(env: Any, models: list[Any], *, rounds: int, there: bool) -> int:
    """As many runs in lockstep as are quickest and as memory holds. there : on a device."""
    quick = BATCH_THERE if there else in_cache(env)
    size = sum(model.bytes(env.dim, rounds) for model in models) + (_world_bytes(env) if there else 0)
    kept = models if not there else [model for model in models if model.placed is not None]  # in NumPy's arrays
    quick = int(min([quick, *(model.together(env.dim) for model in kept)]))
    return max(1, min(quick, int((MEMORY_THERE if there else MEMORY) // size) if size else quick))


def _world_bytes(env: Any) -> int:
    """The bytes of one round of one run, and of the arm sets that are fixed for it: features and four rows of K."""
    width = env.dim if env.disjoint else env.arms * env.dim
    return 8 * (width * (1 + (getattr(env, "contexts", None) or 0)) + 4 * env.arms)


def check_rewards(env: Any, models: Iterable[Any], *, seed: int = 0, run: int = 0, chance: str = "streams") -> None:
    """Refuse models whose `support` does not hold the rewards of the run's first rounds."""
    bounded = [model for model in map(adapting.adapted, models) if not _holds(model, -math.inf, math.inf)]
    if bounded:
        world = WorldOfRuns(env, np.array([run]), seed, xp=arrays.backend(None), device=None, chance=chance)
        _refuse(env, bounded, world.advance(FIRST).reward)


def _holds(model: Any, low: float, high: float) -> bool:
    """Whether the model takes all rewards from low to high."""
    least, most = model.support
    return least <= low and high <= most


def _refuse(env: Any, models: Iterable[Any], reward: np.ndarray) -> None:
    xp = arrays.namespace(reward)
    low, high = float(xp.min(reward)), float(xp.max(reward))
    for model in models:
        if not _holds(model, low, high):
            least, most = model.support
            wrong = low if low < least else high
            raise ValueError(
                f"rewards must lie in [{least:g}, {most:g}] for {model}, and {env} pays {wrong:.4g}: take an "
                "environment with such rewards, or a model for these (another link=; the Lin algorithms take any)"
            )


def _whole(name: str, values: list[int]) -> np.ndarray:
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
        labelled = {label: _entry(label, what) for label, what in algorithms.items()}
    else:
        specs = [_entry(str(what), what) for what in algorithms]
        labelled = {str(spec): spec for spec in specs}
        if len(labelled) < len(specs):
            raise ValueError(f"algorithms must differ, got {[*map(str, specs)]}; in a dict they may have labels")
    if not labelled:
        raise ValueError("algorithms must name at least one algorithm")
    return labelled


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


@dataclass(frozen=True)
class Contest:
    """What all runs of a simulation have in common."""

    env: Any
    agents: dict[str, tuple[Any, Any]]  # label -> model and policy
    rounds: int
    seed: int
    marks: np.ndarray  # (P,) rounds at which the regret is recorded
    xp: Any
    device: str | None
    chance: str


def _pieces(
    contest: Contest, shares: list[np.ndarray], *, jobs: int, on_progress: Callable[[int, int], None] | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """What `_lockstep` gives for each share of the runs: here, or in so many processes."""
    done, total = 0, sum(map(len, shares)) * contest.rounds

    def tell(more: int) -> None:
        nonlocal done
        done += more
        if on_progress is not None:
            on_progress(done, total)

    if jobs == 1:
        yield from (_lockstep(contest, share, tell) for share in shares)
        return
    calls = [workers.delayed(_there)(parts.Travel(), contest, share) for share in shares]
    for share, piece in zip(shares, workers.Workers(jobs=jobs).results(calls, ordered=True), strict=True):
        tell(len(share) * contest.rounds)
        yield piece


def _there(arrived: parts.Travel, contest: Contest, runs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`_lockstep` in another process, where the user's files are loaded first."""
    return _lockstep(contest, runs, lambda more: None)


def _lockstep(contest: Contest, runs: np.ndarray, tell: Callable[[int], None]) -> tuple[np.ndarray, np.ndarray]:
    """Cumulative regrets (A, R, P) of the means and of the rewards, for these runs at once.

    tell : called with the number of rounds that were played since the last call
    """
    env, agents, rounds, marks, device = contest.env, contest.agents, contest.rounds, contest.marks, contest.device
    bounded = [model for model, _ in agents.values() if not _holds(model, -math.inf, math.inf)]
    world = WorldOfRuns(env, runs, contest.seed, xp=contest.xp, device=device, chance=contest.chance)
    crew = [Agent(label, model, policy, world) for label, (model, policy) in agents.items()]
    playing = [Team(team) for team in teams(crew, world)]
    regret, realised = (np.zeros((len(crew), len(runs), len(marks))) for _ in range(2))
    chunk = CHUNK if device is None else CHUNK_THERE
    n = max(1, min(rounds, chunk // (8 * world.width * len(runs)), 256))
    t = 0
    while t < rounds:
        ahead = min(n, rounds - t)
        rows = world.advance(ahead)
        if bounded:
            _refuse(env, bounded, rows.reward)
        kinds = {home: world.moved(rows, home=home) for home in {agent.home for agent in crew}}
        for agent in crew:
            agent.prepare(ahead)
        for i in range(ahead):
            for team in playing:
                team.step(t + i + 1, i, kinds[team.home])
        due = (marks > t) & (marks <= t + ahead)
        for a, agent in enumerate(crew):
            sums = agent.sums(kinds[agent.home])
            regret[a][:, due], realised[a][:, due] = (arrays.numpy(kind)[:, marks[due] - t - 1] for kind in sums)
        t += ahead
        tell(ahead * len(runs))
    return regret, realised
