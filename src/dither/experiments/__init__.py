"""The paper's figures, and comparisons of one's own (extra "experiments").

What is done with a figure has six stations, and each is a package: define, plan, run, keep, judge, show. Above them are
what Python calls: `compare`, `sweep` and `Results`. `environments` and `profiles` are modules of stations that users
ask by name. Nothing here prints: `cli` does.
"""

from dither.experiments.comparing import compare
from dither.experiments.define import environments
from dither.experiments.judge import profiles
from dither.experiments.results import Results
from dither.experiments.sweeps import sweep
from dither.experiments.tuned import tune

__all__ = ["Results", "compare", "environments", "profiles", "sweep", "tune"]
