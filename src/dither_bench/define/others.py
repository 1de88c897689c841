"""Other libraries of contextual bandits, as algorithms that play in an interpreter of their own.

    vw                 Vowpal Wabbit: action-dependent features, a context for all and interactions with the arms
    contextualbandits  linear models, learnt row by row
    coba               linear models over interactions of context and arm
    bayesianbandits    one regressor an arm
    mabwiser           one ridge regression an arm

A bake-off exports its rounds, and `run/others_runner.py` plays them in that interpreter, where it needs NumPy and the
library alone. Settings that are not set are the library's defaults.
"""

import dataclasses
import functools
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dither.algorithms import Algorithm, Spec
from dither.base import errors

RUNNER = Path(__file__).parents[1] / "run" / "others_runner.py"
DIGITS = 16  # hexadecimal digits of the digest of the runner
TIME = 120  # seconds in which an interpreter must say whether it has a library


@dataclass(frozen=True)
class VowpalWabbit:
    """Vowpal Wabbit (cb_explore_adf)."""

    explore: str = "epsilon"  # or greedy, bag, cover, squarecb, regcb
    epsilon: float = 0.05  # of epsilon
    size: int = 5  # policies of bag and cover
    cb_type: str = "mtr"
    learning_rate: float = 0.5
    # Learning rate and cb_type with the least loss on another order of the same rows, which no other player sees.
    tuned: bool = False


@dataclass(frozen=True)
class ContextualBandits:
    """The linear models of contextualbandits."""

    explore: str = "linucb"  # or lints
    alpha: float = 1.0  # of linucb
    v_sq: float = 1.0  # of lints
    lam: float = 1.0


@dataclass(frozen=True)
class Coba:
    """The linear learners of coba."""

    explore: str = "linucb"  # or lints
    alpha: float = 1.0  # of linucb
    v: float = 1.0  # of lints


@dataclass(frozen=True)
class BayesianBandits:
    """Normal-inverse-gamma or empirical-Bayes regressors of bayesianbandits."""

    explore: str = "thompson"  # or ucb, epsilon
    regressor: str = "nig"  # or empirical
    alpha: float = 0.68  # of ucb
    epsilon: float = 0.1  # of epsilon


@dataclass(frozen=True)
class MabWiser:
    """The ridge regressions of mabwiser."""

    explore: str = "linucb"  # or lints, lingreedy
    alpha: float = 1.0  # of linucb and lints
    lam: float = 1.0
    epsilon: float = 0.1  # of lingreedy


@dataclass(frozen=True)
class OtherModel:
    """What stands for the model of another library: which one it is, and by which code it is played."""

    slots: int | None = None
    library: str = ""  # with its version
    runner: str = ""  # the digest of the script that plays it


class OtherLibrary(Algorithm):
    """An algorithm of another library, in the interpreter where that is installed."""

    def __init__(self, name: str, policy: type, *, package: str, module: str, python: str = sys.executable) -> None:
        """package, module : what is installed, and what is imported; python : the path of the interpreter."""
        summary = (policy.__doc__ or "").partition("\n")[0]
        super().__init__(name, policy, model=OtherModel, summary=summary, source=package, propensity="not stated")
        self.package, self.module, self.python = package, module, python

    def within(self, python: str) -> "OtherLibrary":
        """The same in another interpreter."""
        return OtherLibrary(self.name, self.policy, package=self.package, module=self.module, python=python)  # type: ignore[arg-type]

    def configure(
        self, dim: int, *, preset: str = "default", disjoint: int | None = None, diagonal: bool = False, **settings: Any
    ) -> tuple[Any, Any]:
        """What stands for the model, and the settings.

        Raises ImportError where the interpreter has no such library.
        """
        model, policy = super().configure(dim, preset=preset, disjoint=disjoint, diagonal=diagonal, **settings)
        version = version_of(self.python, self.module, self.package)
        return dataclasses.replace(model, library=f"{self.package} {version}", runner=_digest()), policy


LIBRARIES: dict[str, OtherLibrary] = {
    library.name: library
    for library in (
        OtherLibrary("vw", VowpalWabbit, package="vowpalwabbit", module="vowpalwabbit"),
        OtherLibrary(
            "contextualbandits", ContextualBandits, package="contextualbandits", module="contextualbandits.online"
        ),
        OtherLibrary("coba", Coba, package="coba", module="coba.learners"),
        OtherLibrary("bayesianbandits", BayesianBandits, package="bayesianbandits", module="bayesianbandits"),
        OtherLibrary("mabwiser", MabWiser, package="mabwiser", module="mabwiser.mab"),
    )
}
USUAL: dict[str, tuple[str, ...]] = {  # what is played where a library is named alone
    "vw": ("vw:explore=greedy", "vw", *(f"vw:explore={explore}" for explore in ("bag", "cover", "squarecb"))),
    "vw-tuned": ("vw:explore=greedy,tuned=true", "vw:explore=squarecb,tuned=true"),
    "contextualbandits": ("contextualbandits", "contextualbandits:explore=lints"),
    "coba": ("coba", "coba:explore=lints"),
    "bayesianbandits": ("bayesianbandits", "bayesianbandits:explore=ucb", "bayesianbandits:regressor=empirical"),
    "mabwiser": ("mabwiser", "mabwiser:explore=lints", "mabwiser:explore=lingreedy,epsilon=0"),
}


def others(texts: Iterable[str], *, python: str = sys.executable) -> tuple[Spec, ...]:
    """The algorithms of other libraries: "vw,coba" are those of `USUAL`, "vw:explore=cover,size=16" is one.

    python : the interpreter that has them. Raises LookupError or ImportError, each with what to do.
    """
    every: dict[Spec, None] = {}
    for text in texts:
        for name in [text] if ":" in text else filter(None, text.split(",")):
            if ":" not in name:
                errors.among("other library", name, USUAL)
            for one in USUAL.get(name, (name,)):
                every[_spec(one, python)] = None
    return tuple(every)


@functools.cache
def version_of(python: str, module: str, package: str) -> str:
    """The version of a library in an interpreter. Raises ImportError where it has none."""
    command = [python, str(RUNNER), "--version", module, package]
    cure = f"make an environment that has it: python -m venv others; others/bin/pip install numpy {package}"
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=TIME, check=False)
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise ImportError(f"{python} is no Python that answers ({reason}): {cure}") from None
    if told.returncode:
        why = (told.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise ImportError(f"{python} has no {package} ({why}): {cure}; then --python others/bin/python")
    return str(json.loads(told.stdout.splitlines()[-1]))


def _spec(text: str, python: str) -> Spec:
    spec = Spec.read(text)
    errors.among("other library", spec.name, LIBRARIES)
    return dataclasses.replace(spec, origin=LIBRARIES[spec.name].within(python))


@functools.cache
def _digest() -> str:
    return hashlib.sha256(RUNNER.read_bytes()).hexdigest()[:DIGITS]
