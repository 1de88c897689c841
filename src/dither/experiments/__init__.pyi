"""The bench, for type checkers and editors; at run time it is imported when a name is asked for."""

from dither_bench import *  # noqa: F403
from dither_bench import __all__ as __all__
