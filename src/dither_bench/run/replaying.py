"""Algorithms play a log by replay: the rows in a shuffled order, of which those count whose arm they choose."""

from collections.abc import Callable, Mapping

import numpy as np

from dither import ope
from dither.algorithms import Spec
from dither.bandit.bandit import Bandit
from dither.base import streams
from dither.simulation.simulate import configured
from dither_bench.define.replayed import ReplayedLog


def play(
    env: ReplayedLog,
    specs: Mapping[str, Spec],
    *,
    runs: range,
    rounds: int,
    marks: np.ndarray,
    seed: int,
    tell: Callable[[float], None],
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Name -> cumulative regrets (R, P) of 1 - reward at the marks (P,), twice: a log has no means.

    Every algorithm meets the rows of a run in the same order. tell : called with the share that is done. Raises
    RuntimeError where fewer rows than rounds count.
    """
    lost: dict[str, np.ndarray] = {}
    for i, (name, spec) in enumerate(specs.items()):
        rows = []
        for j, run in enumerate(runs):
            rows.append(_run(env, spec, run=run, rounds=rounds, seed=seed))
            tell((i + (j + 1) / len(runs)) / len(specs))
        lost[name] = np.cumsum(rows, axis=1)[:, marks - 1]
    return {name: (regret, regret) for name, regret in lost.items()}


def _run(env: ReplayedLog, spec: Spec, *, run: int, rounds: int, seed: int) -> np.ndarray:
    """1 - reward of the first rows that count, (T,)."""
    model, policy = configured(spec, env, rounds=rounds)
    order = env.start(streams.stream(seed, run, "instance")).next(len(env.X))
    bandit = Bandit(model, policy, dim=env.dim, seed=int(streams.stream(seed, run, "policy").integers(2**63)))
    p = np.full(len(order), 1 / env.arms)
    counted = ope.replay(bandit, env.X[order], env.y[order], env.r[order], p)
    part = counted.contributions
    reward = np.empty(0) if part is None else part.rows.r[:rounds]
    if len(reward) < rounds:
        raise RuntimeError(f"{len(reward)} rows of {env.name} count for {spec}, and {rounds} rounds were asked for")
    return 1.0 - reward
