"""What computed where the batches of a ledger were taught. Who replays them without it is told so.

Each batch says what taught it (`base.compiled.arithmetic`), and is replayed by the same arithmetic where the process
has it. Another one gives the same numbers but for rounding, of which the model may know a bound.
"""

from typing import Any

import numpy as np

from dither.bandit.bandit import Bandit
from dither.base import compiled, errors
from dither.log.database import lessons
from dither.log.database.home import Home
from dither.models import adapting


class RoundingWarning(UserWarning):
    """A replay agrees with what was learnt to rounding alone, since another arithmetic has taught batches of it."""


def compared(home: Home, batch: int, bandit: Bandit) -> str | None:
    """What a replay up to a batch must say of the bandit that it gives; None: it has the arithmetic of all batches."""
    with home.reading() as connection:
        others = [one for one in lessons.taught_by(connection, upto=batch) if not compiled.at_hand(one.arithmetic)]
    if not others:
        return None
    taught = errors.listed(f"{_named(one.arithmetic)} has taught {_batches(one)}" for one in others)
    here = _named(compiled.arithmetic())
    return (
        f"{taught}, and {here} learns them here: so this bandit agrees with what was learnt to rounding, not to the "
        f"bit.{_bounds(bandit)} Where that step was built, a replay agrees to the bit"
    )


def _batches(one: lessons.TaughtBy) -> str:
    if one.first == one.last:
        return f"batch {one.first}"
    all_of_them = one.batches == one.last - one.first + 1
    return f"{'' if all_of_them else f'{one.batches} of the '}batches {one.first} to {one.last}"


def _named(arithmetic: str) -> str:
    return "NumPy" if arithmetic == compiled.NUMPY else f"the step ({arithmetic})"


def _bounds(bandit: Bandit) -> str:
    """What two states with the same rewards may differ by: each is within the bounds of the model."""
    model: Any = adapting.adapted(bandit.model)
    if "rounding" not in model.abilities:
        return ""
    rho, omega = (2 * float(np.max(part)) for part in model.rounding(bandit.state))
    return f" Its means differ by at most {rho:.1e} widths w, and each w by a share of at most {omega:.1e}."
