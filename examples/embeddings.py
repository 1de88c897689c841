"""Feature perturbation on frozen embeddings: pixels, or the last hidden layer of a network trained beforehand?

The paper suggests features of ResNet, ViT or BERT (Appendix A). Here the network is small. It learns the first half of
scikit-learn's digits by their labels, and then it is frozen. The bandit meets the second half with these features:

    pixels        the 64 pixels, disjoint slots
    embedding     φ(x) = (φ_1(x), ..., φ_10(x)), the last hidden layer of every slot, as one context; disjoint slots
    five digits   the same, of a network that was trained on the digits 0 to 4 alone
    own           φ_i(x) as the features of arm i: one θ for all arms

All contexts are standardised by the first half. Then each row is scaled to length √d. All algorithms meet the same rows
in the same order, so differences of errors are paired.

    python examples/embeddings.py --runs 10 --rounds 5000
"""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import dither

ON_CONTEXTS = ("LinFP", "LinFP:c=0.1", "Greedy", "DeepFP", "DeepGreedy")
ON_ARMS = ("LinFP", "LinFP:c=0.1", "Greedy")
GLM = ("GLMFP", "GLMFP:c=0.1", "LogGreedy")


@dataclass(frozen=True, eq=False)
class OwnFeatures:
    """Classification whose arms have features of their own: X (N, K, d), y (N,)."""

    X: np.ndarray
    y: np.ndarray
    disjoint = False

    @property
    def arms(self) -> int:
        """K."""
        return int(self.X.shape[1])

    @property
    def dim(self) -> int:
        """d."""
        return int(self.X.shape[2])

    def start(self, rng: np.random.Generator) -> Any:
        """The rows of a run, in the order that `dither.envs.Classification` would have them."""
        return dither.envs.Classification(np.arange(len(self.y))[:, None], self.y).start(rng)

    def fill(self, run: Any, rng: np.random.Generator, out: np.ndarray) -> np.ndarray:
        """The next n rows; their labels."""
        rows = run.next(len(out))
        out[:] = self.X[rows]
        labels: np.ndarray = self.y[rows]
        return labels

    def means(self, run: Any, X: np.ndarray, more: np.ndarray) -> np.ndarray:
        """1 for the right class."""
        return np.asarray(more[:, None] == np.arange(self.arms), dtype=float)

    def reward_noise(self, rng: np.random.Generator, n: int) -> None:
        """None."""


def halves(*, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pixels and labels of the two halves of the digits: X1, y1, X2, y2."""
    X, y = map(np.asarray, load_digits(return_X_y=True))
    order = np.random.default_rng(seed).permutation(len(y))
    first, second = np.array_split(order, 2)
    return X[first], y[first], X[second], y[second]


def scaled(X: np.ndarray, like: np.ndarray) -> np.ndarray:
    """X standardised by the means and sds of `like`, without its constant columns; then each row has length √d."""
    sd = like.std(axis=0)
    Z = (X - like.mean(axis=0))[:, sd > 0] / sd[sd > 0]
    return np.asarray(Z * np.sqrt(Z.shape[1]) / np.linalg.norm(Z, axis=1, keepdims=True))


def pretrained(X: np.ndarray, y: np.ndarray, *, steps: int = 4, seed: int = 0) -> dither.Bandit:
    """A network that has learnt these labels, as rows "arm y was shown and paid 1", under a softmax over the arms."""
    slots = len(np.unique(y))
    network = dither.DeepGreedy(
        dim=X.shape[1], disjoint=slots, output="softmax", hidden=(32, 8), window=None, steps=steps, seed=seed
    )
    network.update(X, np.ones(len(X)), arm=y)
    return network


def embedding(network: dither.Bandit, X: np.ndarray) -> np.ndarray:
    """φ_i(x): (n, K, h), the last hidden layer. Of a network of your own, take what comes before its last layer."""
    return np.asarray(network.model.embedding(network.state, X))


def errors(env: Any, algorithms: Iterable[str], *, runs: int, rounds: int) -> dict[str, np.ndarray]:
    """Errors of each algorithm in each run: {name: (runs,)}."""
    results = dither.simulate(env, list(algorithms), runs=runs, rounds=rounds, seed=0, record=[rounds])
    return dict(zip(results.algorithms, results.regret[:, :, -1], strict=True))


def main(
    *, runs: int = 10, rounds: int = 5000, glm: bool = False, steps: int = 4
) -> tuple[dict[str, dict[str, np.ndarray]], float]:
    """Run all -> {context: {algorithm: errors (runs,)}}, and the accuracy of the network on the second half."""
    X1, y1, X2, y2 = halves()
    P1, P2 = scaled(X1, X1), scaled(X2, X1)
    network, few = pretrained(P1, y1, steps=steps), pretrained(P1[y1 < 5], y1[y1 < 5], steps=steps)
    accuracy = float(np.mean(np.argmax(network.mean(P2), axis=1) == y2))
    contexts = {"pixels": P2}
    for name, net in {"embedding": network, "five digits": few}.items():
        contexts[name] = scaled(embedding(net, P2).reshape(len(P2), -1), embedding(net, P1).reshape(len(P1), -1))
    of_arms = np.concatenate([embedding(network, P2), np.ones((*contexts["pixels"].shape[:1], 10, 1))], axis=2)
    algorithms = GLM if glm else ON_CONTEXTS
    table = {
        name: errors(dither.envs.Classification(X, y2), algorithms, runs=runs, rounds=rounds)
        for name, X in contexts.items()
    }
    table["own"] = errors(OwnFeatures(of_arms, y2), GLM if glm else ON_ARMS, runs=runs, rounds=rounds)
    return table, accuracy


def show(table: dict[str, dict[str, np.ndarray]], accuracy: float, *, runs: int, rounds: int) -> None:
    """Mean ± standard error, and the paired difference from pixels."""
    print(f"accuracy of the frozen network on the second half: {accuracy:.3f}")
    print(f"errors in {rounds} rounds, {runs} runs: mean ± se (difference from pixels ± se)")
    for context, algorithms in table.items():
        for name, e in algorithms.items():
            gap = e - table["pixels"][name]
            print(f"{context:12} {name:12} {_mean(e)}" + ("" if context == "pixels" else f"   ({_mean(gap)})"))


def _mean(e: np.ndarray) -> str:
    return f"{e.mean():8.1f} ± {e.std(ddof=1) / np.sqrt(len(e)):5.1f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--glm", action="store_true", help="the logistic bandits instead (slow: take 1000 rounds)")
    options = vars(parser.parse_args())
    show(*main(**options), runs=options["runs"], rounds=options["rounds"])
