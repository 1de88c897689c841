"""What a generalised linear estimate costs: certified against Newton's method in every round, side by side.

    python benchmarks/glm.py [--dim 40] [--rounds 10000] [--runs 20] [--fixed]

Newton: warm-started and damped, the Hessian anew at each iteration by BLAS's syrk, to 1e-8, all runs in lockstep; its
arms are chosen by the same policy from the same contexts. Also: on the certified run's histories, at log-spaced rounds,
how far θ is from the exact estimate as a fraction of tol, whether the certificate holds, and the probability that
another arm is chosen than with the exact estimate. --fixed: a fixed set of arms (solver="counts") against the linear
model. Ratios of times of one process; set OMP_NUM_THREADS=1.
"""

import argparse
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import array_api_compat.numpy as xp
import numpy as np

import dither
from dither import links, models, policies
from dither.base import arrays


class State(NamedTuple):
    """F as of `models.GLM`, and the rows."""

    F: Any
    theta: Any
    X: Any
    r: Any
    rows: int
    iterations: int


@dataclass(frozen=True)
class Newton:
    """The estimate by warm-started damped Newton in every round."""

    lam: float = 1e-4
    tol: float = 1e-8
    abilities = frozenset({"mean", "width"})
    support = (0.0, 1.0)
    function = links.LINKS["logit"]

    def ambient(self, dim):
        return dim

    def init(self, dim, *, batch=(), needs=frozenset(), xp=xp, device=None):
        F = np.zeros((*batch, dim, dim)) + np.eye(dim) / self.lam**0.5
        return State(F, np.zeros((*batch, dim)), np.zeros((*batch, 256, dim)), np.zeros((*batch, 256)), 0, 0)

    def update(self, state, x, r, *, weight=None, own=True):
        F, theta, X, y, n, count = state
        if n == X.shape[1]:
            X, y = np.concatenate([X, np.zeros_like(X)], axis=1), np.concatenate([y, np.zeros_like(y)], axis=1)
        X[:, n], y[:, n] = x, r
        A, eye = X[:, : n + 1], np.eye(x.shape[-1])
        R, live = F.copy(), np.arange(len(x))
        while live.size:  # the runs that are not done yet
            z = np.stack([A[i] @ theta[i] for i in live])
            e, w = self.function.residual(z, np.ones_like(z), y[live, : n + 1])
            g = np.stack([e[k] @ A[i] for k, i in enumerate(live)]) + self.lam * theta[live]
            H = np.empty((live.size, *eye.shape))
            for k, i in enumerate(live):
                Y = np.sqrt(w[k])[:, None] * A[i]
                np.matmul(Y.T, Y, out=H[k])
            L = np.linalg.cholesky(H + self.lam * eye)
            half = np.linalg.solve(L, g[..., None])
            R[live] = L
            count += live.size
            on = np.linalg.norm(half[..., 0], axis=-1) > self.tol
            step = -np.linalg.solve(L.mT, half)[on, :, 0]
            live = live[on]
            most = np.array([np.abs(A[i] @ s).max() for i, s in zip(live, step, strict=True)])
            theta = theta.copy()
            theta[live] += np.where(most > 0.5, np.log1p(most) / np.maximum(most, 1e-300), 1.0)[:, None] * step
        L = R
        return State(np.linalg.inv(L).mT, theta, X, y, n + 1, count)

    def mean(self, state, X):
        return arrays.dot(X, state.theta)

    def width(self, state, X):
        return arrays.norms(X @ state.F)


@dataclass
class Timed:
    """A model whose updates are timed."""

    model: Any
    spent: list = field(default_factory=lambda: [0.0])
    last: list = field(default_factory=list)

    def __getattr__(self, name):
        return getattr(self.model, name)

    def update(self, *args, **settings):
        start = time.perf_counter()
        state = self.model.update(*args, **settings)
        self.spent[0] += time.perf_counter() - start
        self.last[:] = [state]
        return state


def timed(model, env, *, runs, rounds):
    """Seconds in all, seconds in updates, the last state."""
    own = Timed(model)
    start = time.perf_counter()
    dither.simulate(
        env, {"FP": (own, policies.FeaturePerturbation())}, runs=runs, rounds=rounds, batch=runs, record=[1]
    )
    return time.perf_counter() - start, own.spent[0], own.last[0]


def exactness(*, dim: int, rounds: int, runs: int = 4, looks: int = 12) -> None:
    """The certified estimate against the exact one of the same history, at log-spaced rounds beyond 1,000."""
    model, exact = models.GLM(), models.GLM(solver="exact")
    env, rng = dither.envs.Logistic(dim=dim, norm=4.0), np.random.default_rng(0)
    theta = rng.standard_normal((runs, dim))
    theta *= 4 / np.linalg.norm(theta, axis=1, keepdims=True)
    state, marks = model.init(dim, batch=(runs,)), set(np.geomspace(1001, rounds, looks).astype(int))
    share, broken, other = [], 0, []
    for t in range(1, rounds + 1):
        X = unit(rng, (runs, env.arms, dim))
        z = rng.standard_normal(runs)
        arm = np.argmax(model.mean(state, X) + z[:, None] * model.width(state, X), axis=-1)
        x = X[np.arange(runs), arm]
        r = (rng.random(runs) < model.function.mu(np.vecdot(x, theta))).astype(float)
        state = model.update(state, x, r, own=True)
        if t not in marks:
            continue
        rows, count = state.history, int(state.history.rows[0])
        truth = exact.update_many(exact.init(dim, batch=(runs,)), rows.X[:, :count], rows.total[:, :count])
        back = np.linalg.solve(truth.F, (state.theta - truth.theta)[..., None])[..., 0]  # of length ‖θ - θ̂‖ in Ĥ's norm
        distance = np.linalg.norm(back, axis=-1)
        share.append(distance / model.tol)
        broken += int((distance > model.bound(state)[:, 0] + 1e-8).sum())
        X, z = unit(rng, (2000, runs, env.arms, dim)), rng.standard_normal((2000, runs, 1))
        chosen = [np.argmax(model.mean(s, X) + z * model.width(s, X), axis=-1) for s in (state, truth)]
        other.append((chosen[0] != chosen[1]).mean())
    print(
        f"d={dim}: after {rounds} rounds of {runs} runs θ was at most {np.max(share):.2f} tol from the exact estimate; "
        f"the certificate was broken {broken} times in {runs * len(share)}; another arm was chosen than with the exact "
        f"estimate with probability {np.mean(other):.1e}, at most {np.max(other):.1e}"
    )


def unit(rng: np.random.Generator, shape: tuple) -> np.ndarray:
    """Features of length 1."""
    X = rng.standard_normal(shape)
    return X / np.sqrt(np.vecdot(X, X))[..., None]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dim", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--fixed", action="store_true")
    given = parser.parse_args()
    size = dict(runs=given.runs, rounds=given.rounds)
    if given.fixed:
        env = dither.envs.Logistic(dim=given.dim, norm=4.0, contexts=1)
        pairs = {"counts": models.GLM(solver="counts"), "linear": models.Ridge()}
    else:
        env = dither.envs.Logistic(dim=given.dim, norm=4.0)
        pairs = {"certified": models.GLM(), "newton": Newton()}
    found = {name: timed(model, env, **size) for name, model in pairs.items()}
    for name, (total, spent, _) in found.items():
        print(f"{name}: {total / given.runs:.3f} s a run in all, {spent / given.runs:.3f} s in updates")
    (all1, own1, state), (all2, own2, last) = found.values()
    if given.fixed:
        print(f"a step takes {all1 / all2:.2f} times that of the linear model, an update {own1 / own2:.2f} times")
        return
    passes, iterations = models.GLM().passes(state).mean(), last.iterations / given.runs
    print(f"passes over the history a run {passes:.0f}; Newton's iterations a run {iterations:.0f}")
    exactness(dim=given.dim, rounds=given.rounds)
    print(f"Newton takes {own2 / own1:.1f} times as long in updates, {all2 / all1:.1f} times in all")


if __name__ == "__main__":
    main()
