"""Contextual bandits by feature perturbation (Yi, Oh, NeurIPS 2025), with the exact probability of every choice."""

from dither import envs, models, noise, policies, theory
from dither._version import __version__
from dither.algorithms import ALGORITHMS
from dither.bandit import Bandit, Decision, load
from dither.simulate import Results, simulate

LinFP = ALGORITHMS["LinFP"]
LinTS = ALGORITHMS["LinTS"]
LinPHE = ALGORITHMS["LinPHE"]
RandLinUCB = ALGORITHMS["RandLinUCB"]
LinUCB = ALGORITHMS["LinUCB"]
EpsGreedy = ALGORITHMS["EpsGreedy"]
Greedy = ALGORITHMS["Greedy"]


__all__ = [
    "ALGORITHMS",
    "Bandit",
    "Decision",
    "EpsGreedy",
    "Greedy",
    "LinFP",
    "LinPHE",
    "LinTS",
    "LinUCB",
    "RandLinUCB",
    "Results",
    "__version__",
    "envs",
    "load",
    "models",
    "noise",
    "policies",
    "simulate",
    "theory",
]
