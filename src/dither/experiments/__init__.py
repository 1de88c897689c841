"""The bench, which is a package apart (`dither_bench`). It is imported when a name is asked for."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """The name of that bench. Raises AttributeError where it has none."""
    return getattr(importlib.import_module("dither_bench"), name)


def __dir__() -> list[str]:
    """The names of the bench."""
    return dir(importlib.import_module("dither_bench"))
