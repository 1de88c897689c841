"""Algorithms by name. A new one is one policy file and one entry in `table`."""

from dither.algorithms.algorithm import PRESETS, Algorithm, Labels
from dither.algorithms.spec import Spec, specs
from dither.algorithms.table import ALGORITHMS, find

__all__ = ["ALGORITHMS", "PRESETS", "Algorithm", "Labels", "Spec", "find", "specs"]
