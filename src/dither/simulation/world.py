"""The environment of R runs at once: what it shows, pays and offers, checked, round after round.

Each run has chance of its own. So run 7 is the same run beside any other runs, and in blocks of any length. An
environment plays one run at a time. With chance="counter", one in lockstep (`envs.base`) plays all of them at once, on
the device.
"""

from typing import Any, NamedTuple

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array
from dither.simulation.draws import ChanceOfRuns


class Rounds(NamedTuple):
    """n rounds of R runs: NumPy's arrays, or those of a device."""

    X: Array  # (R, n, K, d), or (R, n, d) with disjoint slots
    mean: Array  # (R, n, K)
    reward: Array  # (R, n, K)
    best: Array  # (R, n)  the highest mean of the arms on offer
    best_reward: Array  # (R, n)  the reward of the arm of the highest mean
    delay: np.ndarray | None  # (R, n)  how many rounds late a reward comes; None: none is late
    mask: Array | None  # (R, n, K)  True: on offer; None: all are


class WorldOfRuns:
    """The environment of R runs, each with chance of its own."""

    def __init__(self, env: Any, runs: np.ndarray, seed: int, *, xp: Any, device: Any, chance: str = "streams") -> None:
        from dither.envs import base  # here, since a live bandit needs no environments

        self.fill, self.rounds_of = base.fill, base.RoundsOfRun
        self.noise_of, self.rewards_of = base.noise, base.rewards
        self.env, self.runs, self.seed, self.xp, self.device = env, runs, seed, xp, device
        self.arms, self.dim, self.disjoint = env.arms, env.dim, env.disjoint
        self.shape = (env.dim,) if env.disjoint else (env.arms, env.dim)
        self.width, self.done = int(np.prod(self.shape)), 0  # rounds
        self.chance = ChanceOfRuns(chance, seed, runs, xp=xp, device=device)
        self.together = chance == "counter" and base.in_lockstep(env)  # whether the environment plays all runs at once
        self.places: list[Any] = [...] if self.together else list(range(len(runs)))  # in arrays (R, ...)
        self.instances = [env.start(rng) for rng in self._rngs("instance")]
        self.contexts, self.noise, self.late, self.offers = (
            self._rngs(purpose) for purpose in ("contexts", "noise", "delay", "offered")
        )

    def _rngs(self, purpose: str) -> list[Any]:
        """A generator of each run, or one of all runs."""
        return self.chance.drawing(purpose, together=self.together).rngs

    def streams(self, purpose: str) -> list[np.random.Generator]:
        """A NumPy stream for each run."""
        return self.chance.streams(purpose)

    def moved(self, rows: Rounds, *, home: bool) -> Rounds:
        """The rounds in the library and on the device of this simulation, or in NumPy's arrays: home."""
        move = arrays.numpy if home else self.array
        parts = {name: part if part is None or name == "delay" else move(part) for name, part in rows._asdict().items()}
        return Rounds(**parts)

    def advance(self, n: int) -> Rounds:
        """The next n rounds."""
        env, R = self.env, len(self.runs)
        xp, device = (self.xp, self.device) if self.together else (arrays.NUMPY, None)
        X = xp.empty((R, n, *self.shape), dtype=xp.float64, device=device)
        mean, reward = (xp.empty((R, n, self.arms), dtype=xp.float64, device=device) for _ in range(2))
        if not self.done:
            X[...] = xp.nan  # shows what `fill` leaves out
        mask = xp.empty(mean.shape, dtype=xp.bool, device=device) if hasattr(env, "offered") else None
        for i, (r, run) in enumerate(zip(self.places, self.instances, strict=True)):
            more = self.fill(env, run, self.contexts[i], X[r], t=self.done + 1)
            self.finite("fill", X[r], r)
            mean[r] = self.rows("means", env.means(run, X[r], more), r, n)
            reward[r] = self.pay(self.rounds_of(run, X[r], mean[r], more, self.done + 1), r)
            if mask is not None:
                mask[r] = self.offer(env.offered(run, self.offers[i], X[r], more), mask[r].shape)
        delay = self.delays(n) if hasattr(env, "delays") else None
        self.done += n
        top = xp.argmax(mean if mask is None else xp.where(mask, mean, -xp.inf), axis=-1)
        best, best_reward = (arrays.pick(kind, top, rank=0) for kind in (mean, reward))
        return Rounds(X, mean, reward, best, best_reward, delay, mask)

    def delays(self, n: int) -> np.ndarray:
        """How late the rewards of the next n rounds come, (R, n)."""
        late = [arrays.numpy(self.env.delays(rng, n)) for rng in self.late]
        shape = (len(self.runs), n)
        delay = np.broadcast_to(late[0], shape) if self.together else np.stack(late)
        if delay.shape != shape or delay.dtype.kind not in "iu" or delay.min() < 0:
            raise ValueError(f"{type(self.env).__name__}.delays must return {n} whole numbers of at least 0")
        return delay

    def pay(self, at: Any, r: Any) -> Array:
        """The rewards (n, K) of these rounds (`envs.base.RoundsOfRun`) of the r-th of the runs, or of all runs."""
        rng, n = self.noise[0 if self.together else r], at.mean.shape[-2]
        if hasattr(self.env, "rewards"):
            return self.rows("rewards", self.rewards_of(self.env, rng, at), r, n)
        noise = self.noise_of(self.env, rng, at)
        return at.mean if noise is None else at.mean + self.rows("reward_noise", noise, r, n)

    def rows(self, method: str, answer: Any, r: Any, n: int) -> Array:
        """What a method of the environment answered in the r-th run, or in all: finite, and (n, K) of each."""
        answer = answer if self.together else np.asarray(answer)
        shape = (*((len(self.runs),) if self.together else ()), n, self.arms)
        if tuple(answer.shape) != shape:
            name = f"{type(self.env).__name__}.{method}"
            raise ValueError(f"{name} must return finite numbers of shape {shape}, got {tuple(answer.shape)}")
        self.finite(method, answer, r)
        return answer

    def finite(self, method: str, answer: Array, r: Any) -> None:
        """Refuse NaN and infinity in what a method gave for the next rounds (n, ...) of the r-th run, or of all."""
        xp = arrays.namespace(answer)
        if bool(xp.all(xp.isfinite(answer))):
            return
        answer = arrays.numpy(answer)
        first = tuple(np.argwhere(~np.isfinite(answer))[0].tolist())
        row, run = first[int(self.together)], first[0] if self.together else r
        does = "write finite numbers into all of out" if method == "fill" else "return finite numbers"
        raise ValueError(
            f"{type(self.env).__name__}.{method} must {does}, and gives {answer[first]} in round "
            f"{self.done + row + 1} of run {self.runs[run]}"
        )

    def offer(self, answer: Any, shape: tuple[int, ...]) -> Array:
        """Which arms the environment says are on offer, (n, K): True and False, and no round without an arm."""
        answer, name = answer if self.together else np.asarray(answer), f"{type(self.env).__name__}.offered"
        xp = arrays.namespace(answer)
        if tuple(answer.shape) != tuple(shape) or answer.dtype != xp.bool:
            raise ValueError(
                f"{name} must return True and False of shape {tuple(shape)}, got {answer.dtype} of "
                f"{tuple(answer.shape)}"
            )
        if not bool(xp.all(xp.any(answer, axis=-1))):
            raise ValueError(f"{name} must offer at least one arm in each round, and offers none in some: keep one")
        return answer

    def array(self, x: Array) -> Array:
        """In the library and on the device of this simulation."""
        return x if self.xp is arrays.backend(None) else self.xp.asarray(x, device=self.device)
