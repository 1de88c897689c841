"""The compiled step: what is quick in a decision and its reward, in C (`src/_step`), where it was built.

The Python path defines every number. The step is taken for what it answers to rounding and quicker, and nothing needs
it. `STEP` is looked up at each call, so a test may take it away.

DITHER_COMPILED, read when the library is imported:

    not set   the step is used where it was built
    0         it is not used
    1         it is demanded: ImportError where it was not built
"""

import contextlib
import importlib
import os
import threading
from collections.abc import Iterator
from types import ModuleType

from dither.base import errors

VERSION = 2  # of the sources that this Python goes with: STEP_VERSION of `src/_step/step.h`
SWITCH = "DITHER_COMPILED"
NUMPY = "numpy"
FORMERLY = {"compiled 1": "compiled 1 portable"}  # what older ledgers call an arithmetic
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


class _Thread(threading.local):
    plain = False  # whether NumPy learns in this thread


_THREAD = _Thread()


def arithmetic() -> str:
    """What learns here: "numpy", or "compiled" and the version of the step's arithmetic."""
    return NUMPY if STEP is None else f"compiled {STEP.ARITHMETIC}"


def in_words() -> str:
    """Whether the step is in use, and why not."""
    if STEP is not None:
        return f"the compiled step is in use ({arithmetic()})"
    reason = f"is turned off by {SWITCH}=0" if os.environ.get(SWITCH) == "0" else "was not built here"
    return f"the compiled step {reason}, and NumPy does all"


def at_hand(other: str) -> bool:
    """Whether this process can learn by an arithmetic."""
    here = arithmetic()
    return other in (NUMPY, here, FORMERLY.get(here))


def learning() -> ModuleType | None:
    """The step where it is to learn, or None."""
    return None if _THREAD.plain else STEP


@contextlib.contextmanager
def learnt_by(other: str) -> Iterator[None]:
    """Learn by this arithmetic meanwhile, in this thread; by that of this process where it is not at hand."""
    before, _THREAD.plain = _THREAD.plain, other == NUMPY
    try:
        yield
    finally:
        _THREAD.plain = before
