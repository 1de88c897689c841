"""Memory that the next call of the same thread writes over: a fresh megabyte costs more than what is put in it.

Fresh pages are cleared by the system when they are first written to, which took three quarters of the time of a
gradient of 800,000 weights. What is borrowed holds nothing and is never returned to a caller of the package.
"""

import threading

import numpy as np

_OWN = threading.local()


def borrow(what: str, shape: tuple[int, ...], dtype) -> np.ndarray:
    """An array whose contents are left over, ones at first; the thread's next call for this `what` gives it again."""
    held = _OWN.__dict__.setdefault("held", {})
    found = held.get(what)
    if found is None or found.shape != shape or found.dtype != dtype:
        found = held[what] = np.ones(shape, dtype)
    return found
