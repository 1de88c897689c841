"""How often the confidence sets of GLOC and of Logistic-UCB-2 hold θ* in all rounds at once, and how wide they are.

    python benchmarks/confidence.py [--runs 2000] [--rounds 300] [--delta 0.05]

Each algorithm plays logistic bandits of d features, ‖θ*‖ = S and 5 unit arms anew in each round; δ is 1/T with T = 1/δ.
The share of a run is the largest distance of θ* from the centre, in radii, over its rounds. For Logistic-UCB-2 the
distance is ‖g(θ*) - g(θ̂)‖ and the radius γ; "bonus" is the largest share of its bonus that an arm needed.

Set OMP_NUM_THREADS=1.
"""

import argparse

import numpy as np

import dither
from dither import theory
from dither.models.admissible import LOGIT

CASES = [(2, 1.0), (5, 1.0), (5, 3.0)]


def unit(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Unit vectors along the last axis."""
    X = rng.normal(size=shape)
    return X / np.linalg.norm(X, axis=-1, keepdims=True)


def gloc(model, state, truth: np.ndarray, *, t: int, delta: float) -> np.ndarray:
    """‖θ* - θ̄‖_{V̄}/√β of each run."""
    off = np.linalg.solve(state.ridge.F, (truth - state.theta)[..., None])[..., 0]
    return np.linalg.norm(off, axis=-1) / model.radius(state, delta=delta)[:, 0]


def logistic_ucb2(model, state, truth: np.ndarray, *, t: int, delta: float) -> np.ndarray:
    """‖g(θ*) - g(θ̂)‖/γ of each run, in the norm of H⁻¹(θ*)."""
    X, count, d = state.history.X, state.history.count, truth.shape[-1]
    lam = model.lam or d * max(1.0, np.log(t))
    mu, slope = LOGIT.slopes(np.vecdot(X, truth[:, None]))
    moved = count * (mu - LOGIT.mu(np.vecdot(X, state.estimate[:, None])))
    off = (moved[:, None] @ X)[:, 0] + lam * (truth - state.estimate)
    H = (X.mT * (count * slope)[:, None]) @ X + lam * np.eye(d)
    away = np.sqrt(np.vecdot(off, np.linalg.solve(H, off[..., None])[..., 0]))
    return away / theory.logistic_ucb2_gamma(t, d=d, lam=lam, S=model.S, delta=delta)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--delta", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    for name, share in {"GLOC": gloc, "Logistic-UCB-2": logistic_ucb2}.items():
        for d, S in CASES:
            rng, runs = np.random.default_rng(asked.seed), asked.runs
            model, policy = dither.ALGORITHMS[name].configure(d, S=S, horizon=round(1 / asked.delta))
            state, truth = model.init(d, batch=(runs,), needs=policy.needs), S * unit(rng, runs, d)
            worst, bonus = np.zeros(runs), np.zeros(runs)
            for t in range(1, asked.rounds + 1):
                X = unit(rng, runs, 5, d)
                scores = policy.view(model, state, X, t=t).scores()
                worst = np.maximum(worst, share(model, state, truth, t=t, delta=asked.delta))
                true, said = np.vecdot(X, truth[:, None]), model.mean(state, X)
                if name == "Logistic-UCB-2":
                    true, said = LOGIT.mu(true), LOGIT.mu(said)
                bonus = np.maximum(bonus, np.max((true - said) / (scores - said), axis=-1))
                x = X[np.arange(runs), np.argmax(scores, axis=-1)]
                r = (rng.random(runs) < LOGIT.mu(np.vecdot(x, truth))).astype(float)
                state = model.update(state, x, r)
            held = np.mean(worst <= 1)
            error = max(np.sqrt(held * (1 - held) / runs), 1 / runs)
            median, high = np.quantile(worst, [0.5, 1])
            print(
                f"{name:14s} d={d} S={S:g}: holds in {held:.2%} ± {error:.2%} of {runs} runs of {asked.rounds} rounds, "
                f"nominal {1 - asked.delta:.0%}; share {median:.2f} (median), {high:.2f} (largest); "
                f"bonus {np.median(bonus):.3f}"
            )


if __name__ == "__main__":
    main()
