"""Runs, with everything that was known before each round. The streams and the rounds are those of `simulate`."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dither import envs, links, models, policies
from dither.base import arrays
from dither.deciding import decision
from dither.deciding.demands import Demands
from dither.deciding.one_arm import ONE
from dither.simulation.world import World

CHUNK = 64  # rounds drawn at once
NORMS = {"linear": 1.0, "logistic": 2.0}  # S of the bandits that are measured


class Size(NamedTuple):
    """How much is run: R runs of T rounds, with K arms of d features."""

    runs: int
    rounds: int
    arms: int = 20
    dim: int = 5


class PlayedRound(NamedTuple):
    """One round of R runs."""

    t: int
    X: np.ndarray  # (R, K, d)
    eta: np.ndarray  # (R, K)  x'θ*
    state: Any  # of the model, before the reward
    chance: tuple[np.ndarray, ...]  # what the policy drew, (R, ...) each
    arm: np.ndarray  # (R,)
    x: np.ndarray  # (R, d)
    r: np.ndarray  # (R,)
    theta: np.ndarray  # (R, d)  θ*


class Setting(NamedTuple):
    """An environment, its link, and the estimate that the policy uses."""

    name: str
    env: Any
    link: links.Link
    model: Any


def setting(name: str, size: Size, *, S: float, lam: float = 1e-4, contexts: int | None = None) -> Setting:
    """The bandit called "linear" or "logistic" with ‖θ*‖ = S, and its ridge estimate with λ = `lam`."""
    shape: dict[str, Any] = dict(dim=size.dim, arms=size.arms, contexts=contexts, norm=S)
    if name == "linear":
        return Setting(name, envs.Linear(**shape), links.find("identity"), models.Ridge(lam))
    model = models.GLM(link="logit", lam=lam, solver="certified" if contexts is None else "counts")
    return Setting(name, envs.Logistic(**shape), links.find("logit"), model)


def play(env: Any, model: Any, policy: Any, *, size: Size, seed: int) -> Iterator[PlayedRound]:
    """The rounds in turn. The model learns a reward after its round was taken from the iterator."""
    world = World(env, np.arange(size.runs), seed, xp=arrays.backend(None), device=None)
    theta = np.stack([run.theta for run in world.instances])
    chances, ties = world.streams("policy"), world.streams("ties")
    state = model.init(env.dim, batch=(size.runs,), needs=policy.needs)
    done = 0
    while done < size.rounds:
        n = min(CHUNK, size.rounds - done)
        rounds = world.advance(n)
        drawn = [decision.draw(policy, rng, n, arms=env.arms, dim=env.dim) for rng in chances]
        chance = tuple(np.stack(kind) for kind in zip(*drawn, strict=True))
        u = np.stack([rng.random((n, decision.UNIFORMS)) for rng in ties])
        for k in range(n):
            here, mine = rounds.X[:, k], tuple(kind[:, k] for kind in chance)
            t = done + k + 1
            view = policy.view(model, state, here, t=t)
            demands = Demands((size.runs, env.arms), None, decision.share(policy, t))
            arm = ONE.shown(view, mine, u[:, k], demands)
            x, r = arrays.pick(here, arm, rank=1), arrays.pick(rounds.reward[:, k], arm, rank=0)
            yield PlayedRound(t, here, arrays.dot(here, theta), state, mine, arm, x, r, theta)
            state = model.update(state, x, r)
        done += n


def fp(c: Any = 1.0) -> policies.FeaturePerturbation:
    """Feature perturbation with c_t = c."""
    return policies.FeaturePerturbation(c=c)
