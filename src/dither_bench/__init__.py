"""The paper's figures, and comparisons of one's own (extra "experiments").

What is done with a figure has six stations, and each is a package: define, plan, run, keep, judge, show. Above them are
what Python calls: `compare`, `sweep` and `Results`. `environments` and `profiles` are modules of stations that users
ask by name. Nothing here prints: `cli` does.
"""

from dither_bench.comparing import compare
from dither_bench.define import environments
from dither_bench.judge import profiles
from dither_bench.results import Comparison as Results
from dither_bench.sweeps import sweep
from dither_bench.tuned import tune

__all__ = ["Results", "compare", "environments", "profiles", "sweep", "tune"]
