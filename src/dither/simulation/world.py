"""The environment of R runs at once: what it shows, pays and offers, checked, round after round.

Each run has streams of its own. So run 7 is the same run beside any other runs, and in blocks of any length.
"""

from typing import Any, NamedTuple

import numpy as np

from dither.base import arrays, streams
from dither.base.arrays import Array


class Rounds(NamedTuple):
    """n rounds of R runs: NumPy's arrays, or `moved` to a device."""

    X: Array  # (R, n, K, d), or (R, n, d) with disjoint slots
    mean: Array  # (R, n, K)
    reward: Array  # (R, n, K)
    best: Array  # (R, n)  the highest mean of the arms on offer
    best_reward: Array  # (R, n)  the reward of the arm of the highest mean
    delay: np.ndarray | None  # (R, n)  how many rounds late a reward comes; None: none is late
    mask: Array | None  # (R, n, K)  True: on offer; None: all are


class WorldOfRuns:
    """The environment of R runs, each with streams of its own."""

    def __init__(self, env: Any, runs: np.ndarray, seed: int, *, xp: Any, device: Any) -> None:
        from dither.envs import base  # here, since a live bandit needs no environments

        self.fill, self.rounds_of = base.fill, base.RoundsOfRun
        self.noise_of, self.rewards_of = base.noise, base.rewards
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
        parts = {name: None if part is None else self.array(part) for name, part in rows._asdict().items()}
        return Rounds(**parts | {"delay": rows.delay})

    def advance(self, n: int) -> Rounds:
        """The next n rounds."""
        env, R = self.env, len(self.runs)
        X, mean = np.empty((R, n, *self.shape)), np.empty((R, n, self.arms))
        if not self.done:
            X[:] = np.nan  # shows what `fill` leaves out
        reward, mask = np.empty_like(mean), None
        if hasattr(env, "offered"):
            mask = np.empty(mean.shape, dtype=bool)
        for r, run in enumerate(self.instances):
            more = self.fill(env, run, self.contexts[r], X[r], t=self.done + 1)
            self.finite("fill", X[r], r)
            mean[r] = self.rows("means", env.means(run, X[r], more), r, n)
            reward[r] = self.pay(self.rounds_of(run, X[r], mean[r], more, self.done + 1), r)
            if mask is not None:
                mask[r] = self.offer(env.offered(run, self.offers[r], X[r], more), n)
        self.done += n
        top = np.argmax(mean if mask is None else np.where(mask, mean, -np.inf), axis=-1)[..., None]
        delay = None
        if hasattr(env, "delays"):
            delay = np.stack([np.asarray(env.delays(rng, n)) for rng in self.late])
            if delay.shape != mean.shape[:2] or delay.dtype.kind not in "iu" or delay.min() < 0:
                raise ValueError(f"{type(env).__name__}.delays must return {n} whole numbers of at least 0")
        best, best_reward = (np.take_along_axis(kind, top, axis=-1)[..., 0] for kind in (mean, reward))
        return Rounds(X, mean, reward, best, best_reward, delay, mask)

    def pay(self, at: Any, r: int) -> np.ndarray:
        """The rewards (n, K) of these rounds (`envs.base.RoundsOfRun`) of the r-th of the runs."""
        n = len(at.mean)
        if hasattr(self.env, "rewards"):
            return self.rows("rewards", self.rewards_of(self.env, self.noise[r], at), r, n)
        noise = self.noise_of(self.env, self.noise[r], at)
        return at.mean if noise is None else at.mean + self.rows("reward_noise", noise, r, n)

    def rows(self, method: str, answer: Any, r: int, n: int) -> np.ndarray:
        """What a method of the environment answered in the r-th run. It must be finite and of shape (n, K)."""
        answer = np.asarray(answer)
        if answer.shape != (n, self.arms):
            name = f"{type(self.env).__name__}.{method}"
            raise ValueError(f"{name} must return finite numbers of shape {(n, self.arms)}, got {answer.shape}")
        self.finite(method, answer, r)
        return answer

    def finite(self, method: str, answer: np.ndarray, r: int) -> None:
        """Refuse NaN and infinity in what a method gave for the next rounds (n, ...) of the r-th run."""
        finite = np.isfinite(answer)
        if finite.all():
            return
        first = tuple(np.argwhere(~finite)[0])
        does = "write finite numbers into all of out" if method == "fill" else "return finite numbers"
        raise ValueError(
            f"{type(self.env).__name__}.{method} must {does}, and gives {answer[first]} in round "
            f"{self.done + int(first[0]) + 1} of run {self.runs[r]}"
        )

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
