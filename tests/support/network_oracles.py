"""Networks the slow way: float64, dense Kd-vectors, one round at a time, gradients by the complex step (exact to the
last digits: Im f(θ + ih)/h), Adam as in its paper. Nothing here is the library's.
"""

import numpy as np
from scipy import special

import dither
from dither.base import streams

STEP = 1e-40


class Slow:
    """A network and its training; the weights begin where those of a bandit do."""

    def __init__(self, b):
        self.model, self.d, self.slots = b.model, b.dim, b.slots
        self.theta = np.array(b.theta, dtype=np.float64)
        self.m, self.v, self.s = np.zeros_like(self.theta), np.zeros_like(self.theta), 0
        self.U, self.t, self.seen, self.rows = np.full(len(self.theta), b.model.lam), 1, 0, []
        self.training = streams.stream(b.seed, 0, "training")

    def dense(self, x, arm):
        """The Kd-vector (0; ..; x; ..; 0)."""
        x = np.asarray(x)
        if self.slots is None:
            return x
        full = np.zeros((*x.shape[:-1], self.slots, self.d), x.dtype)
        full[..., arm, :] = x
        return full.reshape(*x.shape[:-1], -1)

    def f(self, theta, x):
        """theta (..., p), x (n, D) or (..., n, D) -> (..., n)."""
        a, at = np.asarray(x), 0
        for i, m in enumerate([*self.model.hidden, 1]):
            n = a.shape[-1]
            W = theta[..., at : at + n * m].reshape(*theta.shape[:-1], n, m)
            z = a @ W + theta[..., None, at + n * m : at + n * m + m]
            at += n * m + m
            a = np.where(z.real > 0, z, 0) if i < len(self.model.hidden) else z
        assert at == theta.shape[-1]
        return a[..., 0]

    def arms(self, X):
        """The dense vectors of all arms: X (K, d), or the context (d,) -> (K, D)."""
        return np.asarray(X) if self.slots is None else np.stack([self.dense(X, k) for k in range(self.slots)])

    def mean(self, X):
        return self.f(self.theta, self.arms(X))

    def gradients(self, x):
        """∂f/∂θ at rows x (n, D): (n, p)."""
        shifted = self.theta + 1j * STEP * np.eye(len(self.theta))
        return self.f(shifted, x).imag.T / STEP

    def slopes(self, X):
        """‖∇_x f‖ over the arm's own d features, (K,)."""
        found = []
        for k, x in enumerate(np.asarray(X) if self.slots is None else [np.asarray(X)] * self.slots):
            moved = self.dense(x + 1j * STEP * np.eye(self.d), k)
            found.append(np.linalg.norm(self.f(self.theta, moved).imag / STEP))
        return np.array(found)

    def bonus(self, X, nu):
        """√(λν Σ g²/U), (K,)."""
        return np.sqrt(self.model.lam * nu * np.sum(self.gradients(self.arms(X)) ** 2 / self.U, axis=1))

    def update(self, x, r, *, arm=None, weight=1.0):
        m, kinds = self.model, int(self.samples) + int(self.model.a > 0)
        z = self.training.standard_normal((1, m.steps, kinds * m.batch))[0] if kinds else None
        self.t += 1
        if weight == 0:  # no observation
            return
        if m.a and m.once:
            r = r + m.a * z[0, -1]
        self.U = self.U + weight * self.gradients(self.dense(np.asarray(x), arm)[None])[0] ** 2
        row, n = (np.asarray(x, dtype=float), arm, r, weight), self.seen
        if m.window is not None and n >= m.window:
            self.rows[n % m.window] = row
        else:
            self.rows.append(row)
        self.seen += 1
        if (n + 1) % m.every == 0:
            for i in range(m.steps):
                self.step(None if z is None else z[i])

    @property
    def samples(self):
        return self.model.window is None or self.model.window > self.model.batch

    def step(self, z):
        m, batch = self.model, self.rows
        if self.samples:
            batch = [self.rows[int(u * len(self.rows))] for u in special.ndtr(z[: m.batch])]
        noise = np.zeros(len(batch))
        if m.a and not m.once:
            noise = m.a * z[-m.batch :][: len(batch)]
        g = self.gradient_of_loss(batch, noise) + m.weight_decay * self.theta
        self.s += 1
        self.m = m.beta1 * self.m + (1 - m.beta1) * g
        self.v = m.beta2 * self.v + (1 - m.beta2) * g * g
        m_hat, v_hat = self.m / (1 - m.beta1**self.s), self.v / (1 - m.beta2**self.s)
        self.theta = self.theta - m.lr * m_hat / (np.sqrt(v_hat) + m.eps)

    def gradient_of_loss(self, batch, noise):
        shifted = self.theta + 1j * STEP * np.eye(len(self.theta))
        total = 0.0
        for (x, arm, r, weight), extra in zip(batch, noise, strict=True):
            y = r + extra
            if self.model.output == "softmax":
                f = self.f(shifted, self.arms(x))  # (p, K)
                e = np.exp(f - f.real.max())
                p = e[:, arm] / e.sum(axis=1)
                loss = -y * np.log(p) - (1 - y) * np.log(1 - p)
            else:
                f = self.f(shifted, self.dense(x, arm)[None])[:, 0]
                loss = (f - y) ** 2 if self.model.output == "identity" else np.log(1 + np.exp(f)) - y * f
            total = total + weight * loss.imag / STEP
        return total / len(batch)


class Chooser:
    """What a policy of that name chooses on a slow network, from its own copy of the streams of the bandit."""

    def __init__(self, b, name):
        self.slow, self.name, self.policy = Slow(b), name, b.policy
        self.chance, self.ties = (streams.stream(b.seed, 0, purpose) for purpose in ("policy", "ties"))

    def choose(self, X):
        """(arm, scores)."""
        slow, K = self.slow, self.slow.slots or len(X)
        u = self.ties.random((1, 3))[0]
        s = getattr(self, self.name.lower().replace("-", "_"))(X, K)
        best = np.flatnonzero(s >= s.max() - 1e-12 * np.abs(s).max())  # a dead network ties all arms: they share
        arm = int(best[int(u[0] * len(best))])
        if self.name == "DeepEpsGreedy" and u[1] < self.policy.epsilon * np.sqrt(self.policy.horizon / slow.t) / 2:
            arm = int(u[2] * K)
        return arm, s

    def deepfp(self, X, K):
        slow = self.slow
        zeta = self.chance.standard_normal((1, K, slow.d), dtype=np.float32)[0]
        X = np.broadcast_to(X, (K, slow.d)) + zeta / np.sqrt(slow.t)
        return np.array([slow.f(slow.theta, slow.dense(x, k)[None])[0] for k, x in enumerate(X)])

    def deepfp_scalar(self, X, K):
        z = self.chance.standard_normal((1, K))[0]
        return self.slow.mean(X) + z * self.policy.c * self.slow.slopes(X) / np.sqrt(self.slow.t)

    def deepgreedy(self, X, K):
        return self.slow.mean(X)

    deepepsgreedy = ftpl = deepgreedy

    def neuralucb(self, X, K):
        return self.slow.mean(X) + self.slow.bonus(X, self.policy.nu)

    def neuralts(self, X, K):
        z = self.chance.standard_normal((1, K))[0]
        return self.slow.mean(X) + z * self.slow.bonus(X, self.policy.nu)


NAMES = ["DeepFP", "DeepFP-scalar", "DeepEpsGreedy", "DeepGreedy", "NeuralUCB", "NeuralTS", "FTPL"]
SETTINGS = {  # such that choices depend on all that the policy has, and noise decides some of them
    "DeepFP": {},
    "DeepFP-scalar": {},
    "DeepEpsGreedy": dict(epsilon=0.3, horizon=60),
    "DeepGreedy": {},
    "NeuralUCB": dict(lam=0.1, nu=1.0),
    "NeuralTS": dict(lam=0.1, nu=1.0),
    "FTPL": dict(a=0.5),
}
SMALL = dict(hidden=(5, 4), lr=0.02, window=6, batch=6)


def bandit(name, *, dim=3, slots=None, seed=0, floor=0.0, monte_carlo=0, **settings):
    """A small bandit of that name."""
    return dither.ALGORITHMS[name](
        dim, disjoint=slots, seed=seed, floor=floor, monte_carlo=monte_carlo, **SMALL | SETTINGS[name] | settings
    )


def context(rng, b, K=4):
    return rng.normal(size=b.dim if b.slots else (K, b.dim))


def reward(rng, x, arm, *, bounded=False):
    r = np.tanh(x[0] - x[1] if len(x) > 1 else x[0]) * (1 if arm is None else arm - 1) + 0.1 * rng.normal()
    return float(special.ndtr(r)) if bounded else r


def learn(b, rng, n, *, K=4, weight=False):
    """n rounds: arms and propensities."""
    answers, bounded = [], np.isfinite(b.model.support).all()
    for _ in range(n):
        X = context(rng, b, K)
        d = b.choose(X)
        x, arm = (X, d.arm) if b.slots else (X[d.arm], None)
        w = float(rng.integers(0, 3)) if weight else None
        b.update(x, reward(rng, x, arm, bounded=bounded), arm=arm, weight=w)
        answers.append((d.arm, float(d.propensity).hex()))
    return answers
