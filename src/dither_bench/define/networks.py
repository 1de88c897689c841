"""The settings of an algorithm's network, without the network: neither torch nor the data are needed."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from dither.algorithms import Spec


def settings(spec: Spec) -> dict[str, Any]:
    """The settings of its network; {} for an algorithm that has none."""
    entry = spec.algorithm
    model: Any = entry.model
    known = {field.name: field.default for field in dataclasses.fields(model)}
    if "hidden" not in known:
        return {}
    preset = entry.presets[spec.preset]
    given = (dict(preset) if isinstance(preset, Mapping) else {}) | dict(spec.settings)
    return known | {name: value for name, value in given.items() if name in known}


def widths(given: Any) -> tuple[int, ...]:
    """(50, 50) of 50, "50x50" or a tuple."""
    if isinstance(given, str):
        return tuple(int(part) for part in given.split("x"))
    return tuple(given) if hasattr(given, "__iter__") else (int(given),)
