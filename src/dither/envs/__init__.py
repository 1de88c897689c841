"""Environments: where contexts and rewards come from. `envs.base` says how to write your own."""

from dither.envs.base import Environment
from dither.envs.changing import Abrupt, Rotating, Walking
from dither.envs.classification import Classification
from dither.envs.clipped import Clipped
from dither.envs.delayed import Delayed
from dither.envs.generalised import Kappas, Logistic, Poisson, Probit, kappas
from dither.envs.heavy import ContaminatedNoise, ParetoNoise, StudentNoise
from dither.envs.linear import Linear
from dither.envs.masked import Masked
from dither.envs.misspecified import Misspecified
from dither.envs.noised import Noised
from dither.envs.replay import Replay

__all__ = [
    "Abrupt",
    "Classification",
    "Clipped",
    "ContaminatedNoise",
    "Delayed",
    "Environment",
    "Kappas",
    "Linear",
    "Logistic",
    "Masked",
    "Misspecified",
    "Noised",
    "ParetoNoise",
    "Poisson",
    "Probit",
    "Replay",
    "Rotating",
    "StudentNoise",
    "Walking",
    "kappas",
]
