"""Policies: where the randomness enters. One file a family, after the paper's Table A.1."""

from dither.policies.feature import FeaturePerturbation
from dither.policies.greedy import EpsGreedy, Greedy
from dither.policies.ofuglb import OFUGLB
from dither.policies.optimism import GLMUCB, UCB
from dither.policies.parameter import ThompsonSampling
from dither.policies.refit import LossPerturbation, PerturbedRewards, PseudoSuccesses
from dither.policies.reward import PerturbedHistory, PseudoRewards
from dither.policies.utility import RandUCB

__all__ = [
    "GLMUCB",
    "OFUGLB",
    "UCB",
    "EpsGreedy",
    "FeaturePerturbation",
    "Greedy",
    "LossPerturbation",
    "PerturbedHistory",
    "PerturbedRewards",
    "PseudoRewards",
    "PseudoSuccesses",
    "RandUCB",
    "ThompsonSampling",
]
