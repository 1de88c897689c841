"""What a round costs on the convolutional network of the paper's appendix, beside a plain loop in torch.

    python benchmarks/convolution.py [--rounds 60] [--arms 10]

The plain loop has the K-channel images, all arms in one forward pass, the last 32 rows in a ring of images that are
placed once, one backward pass a step (and for NeuralUCB one an arm), torch.optim.Adam; once as torch lays images out
and once with memory_format=torch.channels_last. Rounds alternate in one process, medians are compared, and the last
column is the time over that of `dither`. Set OMP_NUM_THREADS=1.
"""

import argparse
import time

import numpy as np
import torch
from torch import nn

import dither

SIDE, BATCH = 28, 32
LAM, NU = 1e-3, 1.0


class Network(nn.Module):
    def __init__(self, arms):
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(arms, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
            *(nn.Linear(64 * (SIDE // 4) ** 2, 128), nn.ReLU(), nn.Linear(128, 1)),
        )

    def forward(self, x):
        return self.layers(x)[:, 0]


class Plain:
    """A loop as one would write it."""

    def __init__(self, arms, *, layout, bonus):
        self.arms, self.layout, self.t = arms, layout, 0
        self.net = Network(arms).to(memory_format=layout)
        self.adam = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        self.images = torch.zeros(BATCH, arms, SIDE, SIDE).contiguous(memory_format=layout)
        self.rewards = torch.zeros(BATCH)
        self.each = torch.arange(arms)
        self.U = [torch.full_like(A, LAM) for A in self.net.parameters()] if bonus else None

    def choose(self, x):
        self.t += 1
        offered = torch.zeros(self.arms, self.arms, SIDE, SIDE).contiguous(memory_format=self.layout)
        offered[self.each, self.each] = torch.from_numpy(x).view(SIDE, SIDE)
        if self.U is None:
            jitter = torch.randn(self.arms, SIDE, SIDE) / self.t**0.5
            offered[self.each, self.each] += jitter
            with torch.no_grad():
                return int(self.net(offered).argmax())
        f, scores, squares = self.net(offered), [], []
        for k in range(self.arms):
            g = torch.autograd.grad(f[k], list(self.net.parameters()), retain_graph=True)
            squares.append([A * A for A in g])
            width = sum(float((A / U).sum()) for A, U in zip(squares[-1], self.U, strict=True))
            scores.append(float(f[k].detach()) + (LAM * NU * width) ** 0.5)
        best = int(np.argmax(scores))
        for U, A in zip(self.U, squares[best], strict=True):
            U += A
        return best

    def update(self, x, r, arm):
        at, n = (self.t - 1) % BATCH, min(self.t, BATCH)
        self.images[at] = 0
        self.images[at, arm] = torch.from_numpy(x).view(SIDE, SIDE)
        self.rewards[at] = r
        self.adam.zero_grad()
        nn.functional.mse_loss(self.net(self.images[:n]), self.rewards[:n]).backward()
        self.adam.step()


class Ours:
    def __init__(self, arms, *, algorithm, **settings):
        model = dither.models.Network(convolutions=(32, 64), hidden=(128,), image=(SIDE, SIDE), slots=arms, lam=LAM)
        self.bandit = dither.Bandit(model, algorithm(**settings), dim=SIDE**2, seed=0)

    def choose(self, x):
        return int(self.bandit.choose(x).arm)

    def update(self, x, r, arm):
        self.bandit.update(x, r, arm=arm)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--arms", type=int, default=10)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.random((given.rounds, SIDE**2), dtype=np.float32)
    y = rng.integers(given.arms, size=given.rounds)
    layouts = {"plain": torch.contiguous_format, "plain, channels last": torch.channels_last}
    policies = {
        "DeepFP": dict(algorithm=dither.policies.GeneralFeaturePerturbation),
        "NeuralUCB": dict(algorithm=dither.policies.NeuralUCB, nu=NU),
    }
    for name, policy in policies.items():
        players = {"dither": Ours(given.arms, **policy)}
        for how, layout in layouts.items():
            players[how] = Plain(given.arms, layout=layout, bonus=name == "NeuralUCB")
        seconds = {how: np.zeros((2, given.rounds)) for how in players}
        for t in range(given.rounds):
            for how, player in players.items():
                start = time.perf_counter()
                arm = player.choose(X[t])
                middle = time.perf_counter()
                player.update(X[t], float(arm == y[t]), arm)
                seconds[how][:, t] = middle - start, time.perf_counter() - middle
        kept = slice(min(BATCH, given.rounds // 2), None)  # rounds with a full window
        medians = {how: 1e3 * np.median(both[:, kept], axis=1) for how, both in seconds.items()}
        for how, (choose, update) in medians.items():
            ratio = (choose + update) / medians["dither"].sum()
            print(f"{name:10} {how:22} choose {choose:6.1f} ms  update {update:6.1f} ms  x {ratio:.2f}")


if __name__ == "__main__":
    main()
