"""The paper's figures as data, the store of results, tables, plots and the report (extra "experiments").

figures -> run -> store -> tables -> plots -> summaries -> gallery. Each imports those before it. Nothing here prints:
`cli` does.
"""

from dither.experiments.comparing import compare
from dither.experiments.results import Results
from dither.experiments.sweeps import sweep

__all__ = ["Results", "compare", "sweep"]
