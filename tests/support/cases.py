"""What the tests of the cases share: a bandit worked out by hand, a loop, files."""

import json
import zipfile

import numpy as np
import pytest

import dither
from properties import paid

EXACT = dict(rtol=0, atol=1e-9)


def three(**settings):
    """V = diag(4, 1), θ̂ = (0.75, 0)."""
    b = dither.LinFP(dim=2, lam=1.0, c=1.0, seed=0, **settings)
    for _ in range(3):
        b.update([1, 0], 1.0)
    return b


def loop(b, g, n):
    """The loop of S2: arms and propensities."""
    answers = []
    for _ in range(n):
        X = g.normal(size=(6, 4))
        d = b.choose(X)
        b.update(X[d.arm], paid(b.model, g.normal()))
        answers.append((d.arm, float(d.propensity).hex()))
    return answers


def contents(path):
    with zipfile.ZipFile(path) as z:
        return {name: z.read(name) for name in sorted(z.namelist())}


def saved(tmp_path):
    b = three()
    b.save(tmp_path / "good")
    return (tmp_path / "good").read_bytes()


def with_header(tmp_path, **changes):
    """A good file with another header."""
    saved(tmp_path)
    with np.load(tmp_path / "good") as file:
        parts = {name: file[name] for name in file.files}
    header = json.loads(parts.pop("header").tobytes()) | changes
    with open(tmp_path / "bad", "wb") as file:
        np.savez(file, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **parts)


def refused(path):
    with pytest.raises(ValueError, match="not a dither file"):
        dither.load(path)
