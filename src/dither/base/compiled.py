"""The compiled step: what is quick in a decision and its reward, in C (`src/_step`), where it was built.

The Python path defines every number. The step is taken for what it answers to rounding and quicker, and nothing needs
it. `STEP` is looked up at each call, so a test may take it away.

DITHER_COMPILED, read when the library is imported:

    not set   the step is used where it was built
    0         it is not used
    1         it is demanded: ImportError where it was not built
"""

import importlib
import os
from types import ModuleType

from dither.base import errors

VERSION = 1  # of the arithmetic that this Python goes with: STEP_VERSION of `src/_step/step.h`
SWITCH = "DITHER_COMPILED"
NUMPY = "numpy"
CURE = f"with a C compiler and the headers of Python run pip install . in a checkout of dither, or do not set {SWITCH}"


def _step(switch: str | None) -> ModuleType | None:
    """The compiled step as the switch has it, or None. Raises ValueError for another value, and ImportError."""
    if switch is not None:
        errors.one_of(f"the environment variable {SWITCH}, if it is set,", switch, ("0", "1"))
    if switch == "0":
        return None
    try:
        step = importlib.import_module("dither._step")
        if step.VERSION != VERSION:
            raise ImportError(f"it was built from other sources: version {step.VERSION}, and this is {VERSION}")
    except ImportError as error:
        if switch == "1":
            raise ImportError(f"{SWITCH}=1 demands the compiled step, and there is none ({error}): {CURE}") from None
        return None
    return step


STEP: ModuleType | None = _step(os.environ.get(SWITCH))


def arithmetic() -> str:
    """What computes here: "numpy", or "compiled", the version of the step and the clone of its loops that runs."""
    return NUMPY if STEP is None else f"compiled {STEP.VERSION} {STEP.CLONE}"
