"""Checks of environments: rounds that do not depend on how many are asked for, and rewards that have their means."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import mtrand

from dither import models, policies
from dither.base import errors
from dither.envs import base
from dither.simulation.simulate import simulate
from dither.testing import chance
from dither.testing.checking import agree, checker, farthest, require

ROUNDS = 24  # of one run
SAME = dict(rtol=1e-12, atol=1e-12)
OF_RUN = "Keep nothing in the environment: what belongs to a run is what `start` returns"
FROM_RNG = "Draw from the `rng` that the method is given"
CUTS = (1, 3, 8)  # the same rounds asked for in pieces of these sizes, again and again; they divide ROUNDS


class RunRounds(NamedTuple):
    """n rounds of one run."""

    X: np.ndarray  # (n, K, d), or (n, d) with disjoint slots
    mean: np.ndarray  # (n, K)
    mask: np.ndarray | None  # (n, K)  True: on offer; None: all are
    at: base.RoundsOfRun  # what noise and rewards may depend on


@dataclass(frozen=True)
class EnvironmentTrial:
    """An environment and how much of it is tried."""

    env: Any
    draws: int = 20_000  # rewards of one round
    seed: int = 0
    expected: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        errors.at_least("draws", self.draws, 100)

    @property
    def part(self) -> str:
        """How errors call it."""
        return type(self.env).__name__

    def agent(self) -> tuple[Any, Any]:
        """A model and a policy that fit it."""
        model = models.Ridge(1.0)
        return (models.Disjoint(model, self.env.arms) if self.env.disjoint else model), policies.UCB(beta=1.0)

    def begun(self, run: int = 0) -> Any:
        """What is fixed for a run."""
        return self.env.start(np.random.default_rng([self.seed, run]))

    def rounds(
        self, run: Any, rng: np.random.Generator, n: int, *, t: int = 1, offers: np.random.Generator | None = None
    ) -> RunRounds:
        """The n rounds from t on. offers : the stream of the masks; None: one that begins here."""
        X = np.full((n, self.env.dim) if self.env.disjoint else (n, self.env.arms, self.env.dim), np.nan)
        more = base.fill(self.env, run, rng, X, t=t)
        mean, mask = np.asarray(self.env.means(run, X, more), dtype=float), None
        if hasattr(self.env, "offered"):
            mask = np.asarray(self.env.offered(run, offers or np.random.default_rng(4), X, more))
        return RunRounds(X, mean, mask, base.RoundsOfRun(run, X, mean, more, t))

    def paid(self, rng: np.random.Generator, at: base.RoundsOfRun) -> np.ndarray:
        """Rewards (n, K) of these rounds."""
        if hasattr(self.env, "rewards"):
            return np.asarray(base.rewards(self.env, rng, at), dtype=float)
        noise = base.noise(self.env, rng, at)
        return at.mean if noise is None else at.mean + noise

    def draws_of(self, at: base.RoundsOfRun) -> Iterator[np.ndarray]:
        """For each of these rounds: many rewards (n, K) of it."""
        rng = np.random.default_rng(5)
        if base.depends(self.env):
            yield from np.stack([self.paid(rng, at) for _ in range(self.draws)], axis=1)
            return
        for row in at.mean:
            mean = np.broadcast_to(row, (self.draws, self.env.arms)).copy()
            yield self.paid(np.random.default_rng(5), at._replace(mean=mean))


def protocol(case: EnvironmentTrial) -> None:
    """`simulate` runs it: sizes are whole numbers, contexts and means are finite and of the right shapes."""
    env = case.env
    for name in ("arms", "dim"):
        errors.at_least(f"the environment's {name}", getattr(env, name), 1)
    require(
        env.disjoint in (True, False), f"disjoint is {env.disjoint!r}", cure="It is True where arms share a context"
    )
    X, mean, *_ = case.rounds(case.begun(), np.random.default_rng(1), ROUNDS)
    require(
        np.isfinite(X).all(),
        f"fill leaves {int(np.sum(~np.isfinite(X)))} of {X.size} features unset or not finite",
        cure="Write all of `out`, in place: out[:] = ...",
    )
    require(
        mean.shape == (ROUNDS, env.arms) and np.isfinite(mean).all(),
        f"means gives shape {mean.shape}",
        cure=f"It must be ({ROUNDS}, {env.arms}): the expected reward of each arm in each round, finite",
    )
    regret = simulate(env, {"mine": case.agent()}, runs=2, rounds=5, seed=case.seed).regret
    require(
        np.all(np.diff(regret, axis=-1) >= -1e-9),
        f"the regret falls: {np.round(regret[0, 0], 4).tolist()}",
        cure="`means` must give the expected reward of every arm, the best one among them",
    )


def blocks(case: EnvironmentTrial) -> None:
    """n rounds at once are the n rounds one by one: contexts, means, masks, rewards and delays."""
    whole = _answers(case, ROUNDS)
    for size in CUTS:
        for method, in_turn in _answers(case, size).items():
            agree(
                whole[method],
                in_turn,
                f"{method} gives other rounds when {size} are asked for at a time:",
                **SAME,
                cure="Make one kind of draw in each method, with one call for all n rounds. Keep what comes next in "
                "the run that `start` returns. What depends on time depends on the argument t of `fill`",
            )


def runs(case: EnvironmentTrial) -> None:
    """A run comes from its stream alone: begun again it is the same, and another run beside it changes nothing."""
    X, mean, *_ = case.rounds(case.begun(), np.random.default_rng(1), ROUNDS)
    again, other = case.begun(), case.begun(1)
    first, rng = np.random.default_rng(1), np.random.default_rng(7)
    parts = []
    for t in (1, 1 + ROUNDS // 2):
        parts.append(case.rounds(again, first, ROUNDS // 2, t=t))
        case.rounds(other, rng, ROUNDS // 2, t=t)
    for name, whole, pieces in (("contexts", X, [part.X for part in parts]), ("means", mean, [p.mean for p in parts])):
        says = f"the {name} of a run change when another run goes on beside it:"
        agree(np.concatenate(pieces), whole, says, **SAME, cure=OF_RUN)


def means(case: EnvironmentTrial) -> None:
    """`means` draws nothing and writes into nothing."""
    run = case.begun()
    X = np.empty((ROUNDS, case.env.dim) if case.env.disjoint else (ROUNDS, case.env.arms, case.env.dim))
    more = base.fill(case.env, run, np.random.default_rng(1), X, t=1)
    before = X.copy()
    first, second = (np.array(case.env.means(run, X, more), dtype=float) for _ in range(2))
    require(
        np.array_equal(first, second),
        f"means of the same rounds differ when asked twice: {farthest(first, second)}",
        cure="Compute them from the run, X and what `fill` returned; chance belongs into `fill`",
    )
    require(np.array_equal(X, before), "means writes into X", cure="Compute in new arrays")


def rewards(case: EnvironmentTrial) -> None:
    """Rewards have the means that `means` says."""
    at = case.rounds(case.begun(), np.random.default_rng(1), 2).at
    before = at.X.copy(), at.mean.copy()
    n, arms = case.draws, case.env.arms
    allowed = chance.errors_allowed(2 * arms)
    for row, paid in zip(before[1], case.draws_of(at), strict=True):
        require(
            paid.shape == (n, arms) and np.isfinite(paid).all(),
            f"rewards have shape {paid.shape}",
            cure=f"They must be finite, ({n}, {arms}) for {n} rounds",
        )
        se = paid.std(axis=0, ddof=1) / np.sqrt(n)
        # A reward that takes another value in few rounds shows too little spread: one such value more is allowed for.
        off = np.abs(paid.mean(axis=0) - row) > allowed * np.maximum(se, 1e-12) + 20 * np.ptp(paid, axis=0) / n
        k = int(np.argmax(off))
        require(
            not off.any(),
            f"the rewards of arm {k} average {paid[:, k].mean():.4g} ± {se[k]:.2g}, and its mean is {row[k]:.4g}",
            cure="`rewards` must have the expectation `mean`, and `reward_noise` the expectation 0",
        )
    require(
        np.array_equal(at.X, before[0]) and np.array_equal(at.mean, before[1]),
        "the rewards or their noise change the contexts or the means of their rounds",
        cure="Compute in new arrays",
    )


def delays(case: EnvironmentTrial) -> None:
    """Delays are whole numbers of rounds, none below 0."""
    if not hasattr(case.env, "delays"):
        return
    late = np.asarray(case.env.delays(np.random.default_rng(1), ROUNDS))
    require(
        late.shape == (ROUNDS,) and late.dtype.kind in "iu" and late.min() >= 0,
        f"delays gives {late.dtype} of shape {late.shape}, from {late.min()}",
        cure=f"It must be ({ROUNDS},) whole numbers of at least 0: by how many rounds each reward comes late",
    )


def offers(case: EnvironmentTrial) -> None:
    """Masks are True and False for each arm of each round, with an arm on offer in each; asking changes nothing."""
    if not hasattr(case.env, "offered"):
        return
    X, mean, answer, _ = case.rounds(case.begun(), np.random.default_rng(1), ROUNDS)
    mask = np.asarray(answer)
    require(
        mask.shape == mean.shape and mask.dtype == bool,
        f"offered gives {mask.dtype} of shape {mask.shape}",
        cure=f"It must be {mean.shape}, True for the arms on offer",
    )
    empty = ~np.any(mask, axis=-1)
    require(not empty.any(), f"round {int(empty.argmax()) + 1} has no arm on offer", cure="Keep at least one in each")
    run, contexts = case.begun(), X.copy()
    more = base.fill(case.env, run, np.random.default_rng(1), contexts, t=1)
    case.env.offered(run, np.random.default_rng(4), contexts, more)
    again = np.asarray(case.env.means(run, contexts, more), dtype=float)
    require(
        np.array_equal(contexts, X) and np.array_equal(again, mean),
        "offered changes the contexts or the means of its rounds",
        cure="Compute the mask in new arrays, and draw from the `rng` that it is given",
    )


def streams(case: EnvironmentTrial) -> None:
    """In `simulate` a run is the same alone and in a batch, whatever the size of the batch."""
    settings = dict(rounds=30, seed=case.seed, record=range(1, 31))
    agents = {"mine": case.agent()}
    whole = simulate(case.env, agents, runs=4, **settings)  # type: ignore[arg-type]
    alone = simulate(case.env, agents, runs=[3], batch=1, **settings)  # type: ignore[arg-type]
    for name in ("regret", "realised"):
        regret, wanted = getattr(alone, name)[0, 0], getattr(whole, name)[0, 3]
        agree(regret, wanted, f"run 3 alone is not run 3 of 4: {name}", **SAME, cure=OF_RUN)


def global_randomness(case: EnvironmentTrial) -> None:
    """NumPy's global generator is neither used nor moved."""
    before, rounds = mtrand.get_state(), []
    try:
        for start in (1, 2):
            mtrand.seed(start)
            state = repr(mtrand.get_state())
            X, _, _, at = case.rounds(case.begun(), np.random.default_rng(1), 5)
            rounds.append((X, case.paid(np.random.default_rng(2), at)))
            require(repr(mtrand.get_state()) == state, "NumPy's global generator moves", cure=FROM_RNG)
        same = all(np.array_equal(a, b) for a, b in zip(*rounds, strict=True))
        require(same, "rounds depend on np.random.seed", cure=FROM_RNG)
    finally:
        mtrand.set_state(before)


@checker(protocol, blocks, runs, means, rewards, delays, offers, streams, global_randomness)
def check_environment(
    env: Any,
    *,
    draws: int = 20_000,
    seed: int = 0,
    expected_failed_checks: Mapping[str, str] | None = None,
) -> EnvironmentTrial:
    """Check an environment by the protocol of `dither.envs.base`.

    env : the environment, with `arms`, `dim`, `disjoint`, `start`, `fill`, `means`, and `reward_noise` or `rewards`;
        with the round t in `fill`, and `offered` and `delays`, where it has them
    draws : rewards of one round whose average is compared with its mean
    seed : of all that is drawn: a check fails always or never
    expected_failed_checks : name -> why the environment cannot pass; these must fail

    Raises CheckFailed (an AssertionError) that names each rule that is broken, with the numbers and what to do;
    LookupError for a name of no check. `check_environment.checks(...)`, with the same arguments, lists them one by one.
    """
    return EnvironmentTrial(env, draws, seed, dict(expected_failed_checks or {}))


def _answers(case: EnvironmentTrial, size: int) -> dict[str, np.ndarray]:
    """What each method answers about the rounds of one run, asked for so many rounds at a time."""
    env, run = case.env, case.begun()
    rng, noise, late, offers = (np.random.default_rng(i) for i in (1, 2, 3, 4))
    parts = []
    for t in range(1, ROUNDS + 1, size):
        X, mean, mask, at = case.rounds(run, rng, size, t=t, offers=offers)
        part = {"fill": X, "means": mean} | ({} if mask is None else {"offered": mask})
        part["rewards" if hasattr(env, "rewards") else "reward_noise"] = case.paid(noise, at)
        parts.append(part | ({"delays": env.delays(late, size)} if hasattr(env, "delays") else {}))
    return {method: np.concatenate([part[method] for part in parts]) for method in parts[0]}
