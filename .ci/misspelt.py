"""Lines that type checkers must refuse, each marked, and lines that they must take. `.ci/check_types.py` reads it."""

import numpy as np

import dither
from dither import LinFP, experiments, models

print(dither.Bandti)  # refused
dither.LinFP(dim=5, lamb=3)  # refused
dither.LinFP(dimm=5)  # refused
dither.GLMFP(dim=3, solver="onlien")  # refused
dither.GLMFP(dim=3, link="logti")  # refused
dither.LinFP(dim=3, preset="own_papre")  # refused
dither.LinUCB(dim=3, radius="ofull")  # refused
dither.EpsGreedy(dim=3, decay="halve")  # refused
dither.UCBGLM(dim=3, c=1.0)  # refused
dither.FP(3, refit="doubled")  # refused
models.GLM(solver="onlien")  # refused
experiments.comapre(["LinFP"])  # refused


def scale(t: int) -> float:
    """A schedule."""
    return 1 / t


algorithm: dither.Algorithm = dither.LinFP
bandits: list[dither.Bandit] = [
    dither.LinFP(5, c="theory", seed=0),
    LinFP(dim=3, disjoint=4, preset="own_paper", horizon=100),
    LinFP(dim=3, c=scale, floor=0.1),
    dither.FP(5, Sigma="spread"),
    dither.FP(np.mean, dim=5, encode="index"),
    dither.LinPHE(dim=3, preset="as_run", jitter=1e-6, a=2),
    dither.OFUGLBe(dim=3, lam=1.0),
    dither.DeepFPScalar(dim=3, hidden=(4, 4), dtype="float64"),
    dither.ALGORITHMS["LinFP"](dim=3, lam=1.0),
    algorithm(dim=3, monte_carlo=100),
]
