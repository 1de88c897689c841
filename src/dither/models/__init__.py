"""Models: what is believed. A configuration is a frozen dataclass, a state a NamedTuple of arrays.

This is the table of them: a new one is a file beside these and a line here. Names, `saving` and docs/tables.md follow.
`Model`, on which they stand, is no line of the table.
"""

import inspect

from dither.models.admissible import Admissible as Admissible
from dither.models.diagonal import Diagonal as Diagonal
from dither.models.disjoint import Disjoint as Disjoint
from dither.models.glm.glm import GLM as GLM
from dither.models.model import Model as Model
from dither.models.network import Network as Network
from dither.models.neural_linear import NeuralLinear as NeuralLinear
from dither.models.online_newton import OnlineNewton as OnlineNewton
from dither.models.regressor import Fixed as Fixed
from dither.models.regressor import Regressor as Regressor
from dither.models.ridge import Ridge as Ridge

__all__ = sorted(name for name, kind in globals().items() if isinstance(kind, type) and not inspect.isabstract(kind))
