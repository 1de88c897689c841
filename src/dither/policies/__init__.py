"""Policies: where the randomness enters. One file a family, after the paper's Table A.1.

This is the table of them: a new one is a file beside these and a line here. Names, `saving` and docs/tables.md follow.
"""

from dither.policies.feature import FeaturePerturbation as FeaturePerturbation
from dither.policies.general import GeneralFeaturePerturbation as GeneralFeaturePerturbation
from dither.policies.gloc import GLOC as GLOC
from dither.policies.greedy import EpsGreedy as EpsGreedy
from dither.policies.greedy import Greedy as Greedy
from dither.policies.logistic_ucb import LogisticUCB2 as LogisticUCB2
from dither.policies.neural import NeuralTS as NeuralTS
from dither.policies.neural import NeuralUCB as NeuralUCB
from dither.policies.neural import PerturbedLeader as PerturbedLeader
from dither.policies.neural import Sensitivity as Sensitivity
from dither.policies.ofuglb import OFUGLB as OFUGLB
from dither.policies.optimism import GLMUCB as GLMUCB
from dither.policies.optimism import UCB as UCB
from dither.policies.parameter import ThompsonSampling as ThompsonSampling
from dither.policies.refit import LossPerturbation as LossPerturbation
from dither.policies.refit import PerturbedRewards as PerturbedRewards
from dither.policies.refit import PseudoSuccesses as PseudoSuccesses
from dither.policies.reward import PerturbedHistory as PerturbedHistory
from dither.policies.reward import PseudoRewards as PseudoRewards
from dither.policies.stated import Softmax as Softmax
from dither.policies.stated import SquareCB as SquareCB
from dither.policies.utility import RandUCB as RandUCB

__all__ = sorted(name for name, kind in globals().items() if isinstance(kind, type))
