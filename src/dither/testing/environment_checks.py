"""Checks of environments: rounds that do not depend on how many are asked for, and rewards that have their means."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import mtrand

from dither import models, policies
from dither.base import errors
from dither.envs import base
from dither.simulation.simulate import simulate
from dither.testing import chance
from dither.testing.checking import checker, close, farthest, require

ROUNDS = 24  # of one run
CUTS = (1, 3, 8)  # the same rounds asked for in pieces of these sizes, again and again


class Rounds(NamedTuple):
    """n rounds of one run."""

    X: np.ndarray  # (n, K, d), or (n, d) with disjoint slots
    mean: np.ndarray  # (n, K)
    mask: np.ndarray | None  # (n, K)  True: on offer; None: all are


@dataclass(frozen=True)
class World:
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
    ) -> Rounds:
        """The n rounds from t on. offers : the stream of the masks; None: one that begins here."""
        X = np.full((n, self.env.dim) if self.env.disjoint else (n, self.env.arms, self.env.dim), np.nan)
        more = base.fill(self.env, run, rng, X, t=t)
        mean, mask = np.asarray(self.env.means(run, X, more), dtype=float), None
        if hasattr(self.env, "offered"):
            mask = np.asarray(self.env.offered(run, offers or np.random.default_rng(4), X, more))
        return Rounds(X, mean, mask)

    def paid(self, rng: np.random.Generator, mean: np.ndarray) -> np.ndarray:
        """Rewards (n, K) of these means."""
        if hasattr(self.env, "rewards"):
            return np.asarray(self.env.rewards(rng, mean), dtype=float)
        noise = self.env.reward_noise(rng, len(mean))
        return mean if noise is None else mean + noise


def protocol(case: World) -> None:
    """`simulate` runs it: sizes are whole numbers, contexts and means are finite and of the right shapes."""
    env = case.env
    for name in ("arms", "dim"):
        errors.at_least(f"the environment's {name}", getattr(env, name), 1)
    require(
        env.disjoint in (True, False), f"disjoint is {env.disjoint!r}", cure="It is True where arms share a context"
    )
    X, mean, _ = case.rounds(case.begun(), np.random.default_rng(1), ROUNDS)
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
    found = simulate(env, {"mine": case.agent()}, runs=2, rounds=5, seed=case.seed)
    require(
        np.all(np.diff(found.regret, axis=-1) >= -1e-9),
        f"the regret falls: {np.round(found.regret[0, 0], 4).tolist()}",
        cure="`means` must give the expected reward of every arm, the best one among them",
    )


def blocks(case: World) -> None:
    """n rounds at once are the n rounds one by one: contexts, means, masks, rewards and delays."""
    env = case.env
    X, mean, mask = case.rounds(case.begun(), np.random.default_rng(1), ROUNDS)
    noise = np.random.default_rng(2)
    reward = case.paid(noise, mean)
    for size in CUTS:
        run, rng, again, offers = case.begun(), *(np.random.default_rng(i) for i in (1, 2, 4))
        parts = [case.rounds(run, rng, size, t=1 + i * size, offers=offers) for i in range(ROUNDS // size)]
        n = size * len(parts)
        pieces = {
            "fill": (X[:n], np.concatenate([part.X for part in parts])),
            "means": (mean[:n], np.concatenate([part.mean for part in parts])),
        }
        if mask is not None:
            pieces["offered"] = (mask[:n], np.concatenate([part.mask for part in parts if part.mask is not None]))
        name = "rewards" if hasattr(env, "rewards") else "reward_noise"
        pieces[name] = (reward[:n], np.concatenate([case.paid(again, part[1]) for part in parts]))
        if hasattr(env, "delays"):
            late = np.random.default_rng(3)
            whole = np.asarray(env.delays(np.random.default_rng(3), n))
            pieces["delays"] = (whole, np.concatenate([env.delays(late, size) for _ in parts]))
        for method, (at_once, in_turn) in pieces.items():
            require(
                close(at_once, in_turn, rtol=1e-12, atol=1e-12),
                f"{method} gives other rounds when {size} are asked for at a time: {farthest(at_once, in_turn)}",
                cure="Make one kind of draw in each method, with one call for all n rounds. Keep what comes next in "
                "the run that `start` returns. What depends on time depends on the argument t of `fill`",
            )


def runs(case: World) -> None:
    """A run comes from its stream alone: begun again it is the same, and another run beside it changes nothing."""
    X, mean, _ = case.rounds(case.begun(), np.random.default_rng(1), ROUNDS)
    again, other = case.begun(), case.begun(1)
    first, rng = np.random.default_rng(1), np.random.default_rng(7)
    parts = []
    for t in (1, 1 + ROUNDS // 2):
        parts.append(case.rounds(again, first, ROUNDS // 2, t=t))
        case.rounds(other, rng, ROUNDS // 2, t=t)
    for name, whole, found in (
        ("contexts", X, np.concatenate([part.X for part in parts])),
        ("means", mean, np.concatenate([part.mean for part in parts])),
    ):
        require(
            close(found, whole, rtol=1e-12, atol=1e-12),
            f"the {name} of a run change when another run goes on beside it: {farthest(found, whole)}",
            cure="Keep nothing in the environment: what belongs to a run is what `start` returns",
        )


def means(case: World) -> None:
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


def rewards(case: World) -> None:
    """Rewards have the means that `means` says."""
    mean = case.rounds(case.begun(), np.random.default_rng(1), 2).mean
    n, arms = case.draws, case.env.arms
    allowed = chance.errors_allowed(2 * arms)
    for row in mean:
        paid = case.paid(np.random.default_rng(5), np.broadcast_to(row, (n, arms)).copy())
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


def delays(case: World) -> None:
    """Delays are whole numbers of rounds, none below 0."""
    if not hasattr(case.env, "delays"):
        return
    found = np.asarray(case.env.delays(np.random.default_rng(1), ROUNDS))
    require(
        found.shape == (ROUNDS,) and found.dtype.kind in "iu" and found.min() >= 0,
        f"delays gives {found.dtype} of shape {found.shape}, from {found.min()}",
        cure=f"It must be ({ROUNDS},) whole numbers of at least 0: by how many rounds each reward comes late",
    )


def offers(case: World) -> None:
    """Masks are True and False for each arm of each round, with an arm on offer in each; asking changes nothing."""
    if not hasattr(case.env, "offered"):
        return
    X, mean, found = case.rounds(case.begun(), np.random.default_rng(1), ROUNDS)
    mask = np.asarray(found)
    require(
        mask.shape == mean.shape and mask.dtype == bool,
        f"offered gives {mask.dtype} of shape {mask.shape}",
        cure=f"It must be {mean.shape}, True for the arms on offer",
    )
    empty = ~np.any(mask, axis=-1)
    require(not empty.any(), f"round {int(empty.argmax()) + 1} has no arm on offer", cure="Keep at least one in each")
    run, given = case.begun(), X.copy()
    more = base.fill(case.env, run, np.random.default_rng(1), given, t=1)
    case.env.offered(run, np.random.default_rng(4), given, more)
    again = np.asarray(case.env.means(run, given, more), dtype=float)
    require(
        np.array_equal(given, X) and np.array_equal(again, mean),
        "offered changes the contexts or the means of its rounds",
        cure="Compute the mask in new arrays, and draw from the `rng` that it is given",
    )


def streams(case: World) -> None:
    """In `simulate` a run is the same alone and in a batch, whatever the size of the batch."""
    settings = dict(rounds=30, seed=case.seed, record=range(1, 31))
    agents = {"mine": case.agent()}
    whole = simulate(case.env, agents, runs=4, **settings)  # type: ignore[arg-type]
    alone = simulate(case.env, agents, runs=[3], batch=1, **settings)  # type: ignore[arg-type]
    for name in ("regret", "realised"):
        found, wanted = getattr(alone, name)[0, 0], getattr(whole, name)[0, 3]
        require(
            close(found, wanted, rtol=1e-12, atol=1e-12),
            f"run 3 alone is not run 3 of 4: {name} {farthest(found, wanted)}",
            cure="Keep nothing in the environment: what belongs to a run is what `start` returns",
        )


def global_randomness(case: World) -> None:
    """NumPy's global generator is neither used nor moved."""
    kept = mtrand.get_state()
    try:
        found = []
        for start in (1, 2):
            mtrand.seed(start)
            before = repr(mtrand.get_state())
            run, rng = case.begun(), np.random.default_rng(1)
            X, mean, _ = case.rounds(run, rng, 5)
            found.append((X, case.paid(np.random.default_rng(2), mean)))
            require(
                repr(mtrand.get_state()) == before,
                "NumPy's global generator moves",
                cure="Draw from the `rng` that the method is given",
            )
        same = all(np.array_equal(a, b) for a, b in zip(*found, strict=True))
        require(same, "rounds depend on np.random.seed", cure="Draw from the `rng` that the method is given")
    finally:
        mtrand.set_state(kept)


@checker(protocol, blocks, runs, means, rewards, delays, offers, streams, global_randomness)
def check_environment(
    env: Any,
    *,
    draws: int = 20_000,
    seed: int = 0,
    expected_failed_checks: Mapping[str, str] | None = None,
) -> World:
    """Check an environment by the protocol of `dither.envs.base`.

    env : the environment, with `arms`, `dim`, `disjoint`, `start`, `fill`, `means`, and `reward_noise` or `rewards`;
        with the round t in `fill`, and `offered` and `delays`, where it has them
    draws : rewards of one round whose average is compared with its mean
    seed : of all that is drawn: a check fails always or never
    expected_failed_checks : name -> why the environment cannot pass; these must fail

    Raises CheckFailed (an AssertionError) that names each rule that is broken, with the numbers and what to do;
    LookupError for a name of no check. `check_environment.checks(...)`, with the same arguments, lists them one by one.
    """
    return World(env, draws, seed, dict(expected_failed_checks or {}))
