"""Contextual bandits by feature perturbation (Yi, Oh, NeurIPS 2025), with the exact probability of every choice."""

import importlib
from typing import TYPE_CHECKING, Any

from dither import features, links, models, noise, policies, theory
from dither._version import __version__
from dither.algorithms import ALGORITHMS, Algorithm
from dither.bandit.bandit import Bandit
from dither.bandit.restoring import from_bytes, load
from dither.deciding.answers import Decision, Decisions, ListDecision, ListDecisions
from dither.deciding.baseline import Baseline
from dither.deciding.budget import Budget
from dither.deciding.explain import Explanation
from dither.deciding.ranking import ListPropensities
from dither.features import Catalogue, Features
from dither.simulation.simulate import Results, simulate

# Imported when asked for: a bandit needs none of them. `experiments` and `Live` need an extra, so * leaves them out.
LATE = ("datasets", "drift", "envs", "experiments", "live", "log", "ope", "testing", "watch")
LATE_NAMES = {"Live": "live"}  # and the modules that they come from
ELSEWHERE = {"arrays": "base.arrays", "compiled": "base.compiled"}  # modules that users call, and where they are

if TYPE_CHECKING:
    import dither.algorithms.signatures as _signatures
    from dither import datasets, drift, envs, log, ope, testing
    from dither import live as live
    from dither import watch as watch
    from dither.algorithms.signatures import *  # noqa: F403, the algorithms with their settings (`make stubs`)
    from dither.base import arrays as arrays
    from dither.base import compiled as compiled
    from dither.live import Live as Live

else:

    def __getattr__(name: str) -> Any:
        """The module of `LATE` or the algorithm of that name. Raises AttributeError for an unknown name."""
        if name in LATE_NAMES:
            return getattr(importlib.import_module(f"dither.{LATE_NAMES[name]}"), name)
        if name in LATE:
            return importlib.import_module(f"dither.{name}")
        if name in ELSEWHERE:
            return importlib.import_module(f"dither.{ELSEWHERE[name]}")
        for algorithm in ALGORITHMS.values():
            if algorithm.identifier == name:
                return algorithm
        raise AttributeError(f"module 'dither' has no attribute {name!r}")


def __dir__() -> list[str]:
    """All names, also those that nobody has asked for yet."""
    return sorted(
        {*globals(), *LATE, *LATE_NAMES, *ELSEWHERE, *(algorithm.identifier for algorithm in ALGORITHMS.values())}
    )


__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Bandit",
    "Baseline",
    "Budget",
    "Catalogue",
    "Decision",
    "Decisions",
    "Explanation",
    "Features",
    "ListDecision",
    "ListDecisions",
    "ListPropensities",
    "Results",
    "__version__",
    "datasets",
    "drift",
    "envs",
    "features",
    "from_bytes",
    "links",
    "load",
    "log",
    "models",
    "noise",
    "ope",
    "policies",
    "simulate",
    "testing",
    "theory",
]
if TYPE_CHECKING:
    __all__ += _signatures.__all__
else:
    __all__ += [algorithm.identifier for algorithm in ALGORITHMS.values()]
