"""What a result is: a run of a cell = (environment, horizon, algorithm with settings and preset, seed).

A cell is known by its content and not by its place in a figure. So results stay valid when a figure gets longer or is
reordered, and two figures that share a cell share its results.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dither.algorithms import Spec
from dither_bench.define.environments import identity
from dither_bench.define.panels import Panel


@dataclass(frozen=True)
class Cell:
    """One algorithm in one setting, over all runs."""

    env: Mapping[str, Any]  # as of `environments.describe`
    rounds: int
    algorithm: Spec
    seed: int

    def content(self) -> dict[str, Any]:
        """All that identifies it, as JSON holds it."""
        return {
            "env": identity(self.env),
            "rounds": self.rounds,
            "algorithm": self.algorithm.name,
            "settings": dict(self.algorithm.settings),
            "preset": self.algorithm.preset,
            "seed": self.seed,
        }

    @property
    def key(self) -> str:
        """16 hexadecimal digits of the hash of the content."""
        return key_of(self.content())


def key_of(content: Mapping[str, Any]) -> str:
    """The key of the cell that has this content."""
    text = json.dumps(_canonical(content), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def of_panel(panel: Panel, *, seed: int) -> dict[str, Cell]:
    """The names of the panel's algorithms and their cells."""
    return {str(spec): Cell(panel.env, panel.rounds, spec, seed) for spec in panel.algorithms}


def _canonical(value: Any) -> Any:
    """The value with 1 in place of 1.0: equal settings are one cell, however they were written."""
    if isinstance(value, Mapping):
        return {k: _canonical(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
