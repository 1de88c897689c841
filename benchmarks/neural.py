"""Neural bandits against a plain but fair torch loop, and a live bandit against its network's bare arithmetic.

    simulate    a round of a run, alone and with twenty in lockstep, over the plain loop: vectorised forward over the
                Kd-vectors, torch.optim.Adam, one backward pass an arm for NeuralUCB, denormals flushed, no needless
                copies (targets, alone | twenty: shuttle 5 | 15 times as quick, NeuralUCB 10 | 25; mushroom 5 | 10;
                isolet 3, NeuralUCB 30)
    decision    choose + update of a live DeepFP, K = 100, d = 64, 2 x 50 units, over the forward pass of the arms and
                the forward and backward pass of the batch by the same arithmetic and by torch (target: at most 1.5)

Data of the same shape as the sets, made up: speed does not depend on what is in them. Processor seconds, one thread;
medians over repeats that time both sides in turn. Needs torch.
"""

import sys
import time

import numpy as np
import torch

import dither
from dither.models.network import adam, perceptron
from dither.models.network.layout import layout

SETS = {"shuttle": (9, 7), "mushroom": (116, 2), "isolet": (617, 26)}  # d, K
ROUNDS = {"shuttle": 600, "mushroom": 600, "isolet": 200}


def data(name: str, *, rows: int = 2000):
    d, K = SETS[name]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, d))
    return X, np.argmax(X @ rng.normal(size=(d, K)), axis=1)


def plain(X, y, *, arms: int, algorithm: str, rounds: int, seed: int = 0) -> None:
    """One run as one would write it with torch."""
    torch.manual_seed(seed)
    d, B = X.shape[1], 32
    net = torch.nn.Sequential(
        torch.nn.Linear(arms * d, 50),
        torch.nn.ReLU(),
        torch.nn.Linear(50, 50),
        torch.nn.ReLU(),
        torch.nn.Linear(50, 1),
    )
    params = list(net.parameters())
    optimiser = torch.optim.Adam(params, lr=1e-3)
    U = [torch.full_like(p, 1e-5) for p in params]
    X, each = torch.tensor(X, dtype=torch.float32), torch.arange(arms)
    full, window, rewards = torch.zeros(arms, arms, d), torch.zeros(B, arms * d), torch.zeros(B)
    for t in range(1, rounds + 1):
        x = X[(t - 1) % len(X)]
        full[each, each] = x + torch.randn(arms, d) / t**0.5 if algorithm == "DeepFP" else x
        rows = full.view(arms, -1)
        if algorithm == "NeuralUCB":
            f, s, gradients = net(rows)[:, 0], torch.empty(arms), []
            for k in range(arms):
                g = torch.autograd.grad(f[k], params, retain_graph=True)
                s[k] = f[k].detach() + torch.sqrt(1e-10 * sum((a * a / u).sum() for a, u in zip(g, U, strict=True)))
                gradients.append(g)
            a = int(s.argmax())
            for u, g in zip(U, gradients[a], strict=True):
                u += g * g
        else:
            with torch.no_grad():
                a = int(net(rows)[:, 0].argmax())
        i, n = (t - 1) % B, min(t, B)
        window[i].zero_()
        window[i, a * d : (a + 1) * d] = x
        rewards[i] = float(a == y[(t - 1) % len(X)])
        optimiser.zero_grad()
        torch.nn.functional.mse_loss(net(window[:n])[:, 0], rewards[:n]).backward()
        optimiser.step()


def seconds(call) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def simulated(name: str, algorithm: str, *, runs: int, repeats: int = 5) -> None:
    (X, y), (_, K), rounds = data(name), SETS[name], ROUNDS[name]
    env = dither.envs.Classification(X, y)

    def ours() -> None:
        dither.simulate(env, [algorithm], runs=runs, rounds=rounds)

    few = max(rounds // 10, 6) if algorithm == "NeuralUCB" else rounds

    def theirs() -> None:
        plain(X, y, arms=K, algorithm=algorithm, rounds=few)

    ours(), theirs()
    pairs = np.array([(seconds(ours) / rounds / runs, seconds(theirs) / few) for _ in range(repeats)])
    us, them = np.median(pairs, axis=0) * 1e6
    ratio = float(np.median(pairs[:, 1] / pairs[:, 0]))
    each = f"{name:9} {algorithm:12} R={runs:2}: {us:7.0f} µs a round of a run"
    print(f"{each}, torch {them:7.0f}, {ratio:5.1f} times as quick", flush=True)


def decision(*, K: int = 100, d: int = 64, rounds: int = 300, repeats: int = 7) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(K, d))
    bandit = dither.DeepFP(dim=d, seed=0)

    def ours() -> None:
        for _ in range(rounds):
            shown = bandit.choose(X)
            bandit.update(X[shown.arm], 1.0)

    net = layout(d, None, (50, 50))
    theta = net.initial(rng).astype(np.float32)
    m, v, A, B, r = np.zeros_like(theta), np.zeros_like(theta), X.astype("f4"), X[:32].astype("f4"), np.ones(32, "f4")

    def bare() -> None:
        for _ in range(rounds):
            perceptron.forward(net, theta, A)
            _, g = perceptron.gradient(net, theta, B, None, lambda f: (f - r) * np.float32(1 / 16))
            adam.step(theta, m, v, g, s=100, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8)

    module = torch.nn.Sequential(
        torch.nn.Linear(d, 50), torch.nn.ReLU(), torch.nn.Linear(50, 50), torch.nn.ReLU(), torch.nn.Linear(50, 1)
    )
    arms, batch, paid = torch.from_numpy(A), torch.from_numpy(B), torch.from_numpy(r)

    def by_torch() -> None:
        for _ in range(rounds):
            with torch.no_grad():
                module(arms)
            module.zero_grad()
            torch.nn.functional.mse_loss(module(batch)[:, 0], paid).backward()

    ours(), bare(), by_torch()
    times = np.array([(seconds(ours), seconds(bare), seconds(by_torch)) for _ in range(repeats)]) / rounds * 1e6
    for i, name in ((1, "with Adam's step, by the same arithmetic"), (2, "by torch, without a step")):
        us, them = np.median(times[:, 0]), np.median(times[:, i])
        print(f"decision  K={K} d={d}: {us:.0f} µs, the passes {name} {them:.0f}, ratio {us / them:.2f}")


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    for name in names or SETS:
        for algorithm in ("DeepFP", "DeepGreedy", "NeuralUCB"):
            for runs in (1,) if name == "isolet" else (1, 20):
                simulated(name, algorithm, runs=runs)
    decision()


if __name__ == "__main__":
    main(sys.argv[1:])
