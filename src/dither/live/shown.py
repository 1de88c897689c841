"""What `Live` answers: a decision that is in the ledger, or many."""

from dataclasses import dataclass
from typing import Any

from dither.log.record import Recorded, RecordedMany


@dataclass(frozen=True)
class Shown(Recorded):
    """A decision that is in the ledger."""

    arm: Any  # the id of the arm where ids were given, else its position
    place: int = -1  # the position of the arm in the request; with disjoint slots its slot
    fallback: bool = False  # whether the store could not be reached: nothing was drawn, and it is stored later


@dataclass(frozen=True)
class ShownMany(RecordedMany):
    """Decisions that are in the ledger."""

    arm: Any  # (B,) as of `Shown`
    place: Any = None  # (B,) as of `Shown`
    fallback: bool = False  # as of `Shown`
