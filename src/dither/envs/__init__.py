"""Environments: where contexts and rewards come from. `envs.base` says how to write your own."""

from dither.envs.base import Environment
from dither.envs.classification import Classification
from dither.envs.clipped import Clipped
from dither.envs.delayed import Delayed
from dither.envs.generalised import Kappas, Logistic, Poisson, Probit, kappas
from dither.envs.linear import Linear
from dither.envs.replay import Replay

__all__ = [
    "Classification",
    "Clipped",
    "Delayed",
    "Environment",
    "Kappas",
    "Linear",
    "Logistic",
    "Poisson",
    "Probit",
    "Replay",
    "kappas",
]
