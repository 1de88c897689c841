"""Policies: where the randomness enters. One file a family, after the paper's Table A.1."""

from dither.policies.feature import FeaturePerturbation
from dither.policies.general import GeneralFeaturePerturbation
from dither.policies.greedy import EpsGreedy, Greedy
from dither.policies.neural import NeuralTS, NeuralUCB, PerturbedLeader, Sensitivity
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
    "GeneralFeaturePerturbation",
    "Greedy",
    "LossPerturbation",
    "NeuralTS",
    "NeuralUCB",
    "PerturbedHistory",
    "PerturbedLeader",
    "PerturbedRewards",
    "PseudoRewards",
    "PseudoSuccesses",
    "RandUCB",
    "Sensitivity",
    "ThompsonSampling",
]
