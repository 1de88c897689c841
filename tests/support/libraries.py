"""The array libraries that a test may run on."""

import array_api_compat.numpy
import array_api_strict
import numpy as np
import pytest

from dither.base import arrays

LIBRARIES = ("numpy", "read-only", "strict", "torch")


class Library:
    """A namespace, and the way there and back."""

    def __init__(self, name):
        self.name = name
        if name == "torch":
            pytest.importorskip("torch")
            self.xp = arrays.backend("cpu")
        else:
            self.xp = array_api_strict if name == "strict" else array_api_compat.numpy

    def array(self, x):
        x = np.array(x)
        if self.name == "read-only":
            x.flags.writeable = False
            return x
        return self.xp.asarray(x)

    def back(self, x):
        return x.numpy() if self.name == "torch" else np.asarray(x)
