"""What there is, made from the package's own tables: words for the commands' help.

Nothing is listed here by hand. A new entry of a table shows in the help.
"""

from collections.abc import Sequence
from typing import NamedTuple

from dither import log
from dither.algorithms import ALGORITHMS
from dither.base import errors
from dither.ope.contributions import ESTIMATORS, find
from dither.ope.judge import INTERVALS


class Listing(NamedTuple):
    """Rows under a title. The first column holds names."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def estimators() -> str:
    """The estimators as the command line writes them, by whether they need reward predictions."""
    plain, fitted, past = (
        ", ".join(asked(name) for name in ESTIMATORS if find(name).predicts is one) for one in (False, True, None)
    )
    return f"{plain}; with predictions {fitted}; with or without, on the log of a policy that learnt, {past}"


def intervals() -> str:
    """The names of the intervals."""
    return errors.either(INTERVALS)


def formats() -> str:
    """The formats of logs by name, each with what it is."""
    return "; ".join(f"{name}, {form.words}" for name, form in log.FORMATS.items())


def algorithms() -> Listing:
    """The algorithms by where they are random (paper, Table A.1 and more)."""
    rows = [
        (name, a.bound or "–", a.perturbs, ", ".join(a.needs), a.propensity, a.source) for name, a in ALGORITHMS.items()
    ]
    columns = ("algorithm", "regret bound", "random in", "needs of a model", "propensity", "source")
    return Listing("Algorithms", columns, rows)


def asked(estimator: str) -> str:
    """An estimator as the command line takes it: NAME, or NAME:SETTING."""
    setting = find(estimator).setting
    return estimator if setting is None else f"{estimator}:{setting[0].upper()}"
