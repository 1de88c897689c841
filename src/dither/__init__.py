"""Contextual bandits by feature perturbation (Yi, Oh, NeurIPS 2025), with the exact probability of every choice."""

from dither import datasets, envs, links, log, models, noise, ope, policies, theory
from dither._version import __version__
from dither.algorithms import ALGORITHMS
from dither.bandit import Bandit, Decision, from_bytes, load
from dither.explain import Explanation
from dither.ranking import ListDecision, ListPropensities
from dither.simulate import Results, simulate

LinFP = ALGORITHMS["LinFP"]
LinTS = ALGORITHMS["LinTS"]
LinPHE = ALGORITHMS["LinPHE"]
RandLinUCB = ALGORITHMS["RandLinUCB"]
LinUCB = ALGORITHMS["LinUCB"]
EpsGreedy = ALGORITHMS["EpsGreedy"]
Greedy = ALGORITHMS["Greedy"]
GLMFP = ALGORITHMS["GLMFP"]
LogEpsGreedy = ALGORITHMS["LogEpsGreedy"]
LogGreedy = ALGORITHMS["LogGreedy"]
LogTS = ALGORITHMS["LogTS"]
LogFPL = ALGORITHMS["LogFPL"]
LogPHE = ALGORITHMS["LogPHE"]
RandUCBLog = ALGORITHMS["RandUCBLog"]
OFUGLB = ALGORITHMS["OFUGLB"]
OFUGLBe = ALGORITHMS["OFUGLB-e"]
UCBGLM = ALGORITHMS["UCB-GLM"]
GLMUCB = ALGORITHMS["GLM-UCB"]
EVILL = ALGORITHMS["EVILL"]
FP = ALGORITHMS["FP"]
DeepFP = ALGORITHMS["DeepFP"]
DeepFPScalar = ALGORITHMS["DeepFP-scalar"]
DeepEpsGreedy = ALGORITHMS["DeepEpsGreedy"]
DeepGreedy = ALGORITHMS["DeepGreedy"]
NeuralUCB = ALGORITHMS["NeuralUCB"]
NeuralTS = ALGORITHMS["NeuralTS"]
FTPL = ALGORITHMS["FTPL"]
NeuralLinear = ALGORITHMS["NeuralLinear"]
NeuralLinearFP = ALGORITHMS["NeuralLinearFP"]


__all__ = [
    "ALGORITHMS",
    "EVILL",
    "FP",
    "FTPL",
    "GLMFP",
    "GLMUCB",
    "OFUGLB",
    "UCBGLM",
    "Bandit",
    "Decision",
    "DeepEpsGreedy",
    "DeepFP",
    "DeepFPScalar",
    "DeepGreedy",
    "EpsGreedy",
    "Explanation",
    "Greedy",
    "LinFP",
    "LinPHE",
    "LinTS",
    "LinUCB",
    "ListDecision",
    "ListPropensities",
    "LogEpsGreedy",
    "LogFPL",
    "LogGreedy",
    "LogPHE",
    "LogTS",
    "NeuralLinear",
    "NeuralLinearFP",
    "NeuralTS",
    "NeuralUCB",
    "OFUGLBe",
    "RandLinUCB",
    "RandUCBLog",
    "Results",
    "__version__",
    "datasets",
    "envs",
    "from_bytes",
    "links",
    "load",
    "log",
    "models",
    "noise",
    "ope",
    "policies",
    "simulate",
    "theory",
]
