"""Contextual bandits by feature perturbation (Yi, Oh, NeurIPS 2025), with the exact probability of every choice."""

import importlib
from typing import TYPE_CHECKING, Any

from dither import links, models, noise, policies, theory
from dither._version import __version__
from dither.algorithms import ALGORITHMS
from dither.bandit import Bandit, Decision
from dither.explain import Explanation
from dither.ranking import ListDecision, ListPropensities
from dither.restoring import from_bytes, load
from dither.simulate import Results, simulate

if TYPE_CHECKING:
    from dither import datasets, envs, log, ope

LATE = ("datasets", "envs", "log", "ope")  # imported when they are first asked for: a live bandit needs none of them

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


def __getattr__(name: str) -> Any:
    """A module of `LATE`; whoever asks again finds it here."""
    if name in LATE:
        return importlib.import_module(f"dither.{name}")
    raise AttributeError(f"module 'dither' has no attribute {name!r}")


def __dir__() -> list[str]:
    """All names, whether or not they were asked for."""
    return sorted({*globals(), *LATE})


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
