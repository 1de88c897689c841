"""Models: what is believed. A configuration is a frozen dataclass, a state a NamedTuple of arrays."""

from dither.models.diagonal import Diagonal
from dither.models.disjoint import Disjoint
from dither.models.glm.glm import GLM
from dither.models.network import Network
from dither.models.neural_linear import NeuralLinear
from dither.models.regressor import Fixed, Regressor
from dither.models.ridge import Ridge

__all__ = ["GLM", "Diagonal", "Disjoint", "Fixed", "Network", "NeuralLinear", "Regressor", "Ridge"]
