"""A request as a user has it becomes what a bandit takes: X, the mask, and the ids of the arms."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dither.bandit.bandit import Bandit
from dither.base import errors
from dither.deciding import inputs
from dither.live import taught
from dither.log.record import id_text, ids


class Asked(NamedTuple):
    """One request, or B of them."""

    X: Any
    mask: Any
    names: tuple[str, ...] | None  # (K,) ids by position; None: positions are the arms
    version: int | None = None  # of the catalogue


def placed(given: Any, names: tuple[str, ...] | None, K: int, *, what: str, default: float, catalogue: Any) -> Any:
    """Numbers by id, in the order of the arms: (K,). Numbers that are in order already stay as they are.

    An id that is not on offer is left out. Raises LookupError for one that the catalogue, or the slots, never had.
    """
    if not isinstance(given, Mapping):
        return given
    place = {name: i for i, name in enumerate(map(str, range(K)) if names is None else names)}
    made = np.full(K, default)
    for id, number in given.items():
        at = place.get(str(id))
        if at is not None:
            made[at] = number
        elif catalogue is not None and str(id) not in catalogue.everything:
            raise errors.unknown(f"arm in {what}", str(id), known=catalogue.everything)
    return made


def position(given: Any, names: tuple[str, ...] | None) -> Any:
    """The position of an arm that is named by its id. Raises ValueError where it is not on offer."""
    if not isinstance(given, str):
        return given
    if given not in (names or ()):
        raise ValueError(f"the baseline {given!r} must be among the arms of every request: {list(names or ())}")
    return (names or ()).index(given)


def asked(bandit: Bandit, catalogue: Any, context: Any, arms: Any, mask: Any) -> Asked:
    """X, mask and ids. A bandit with disjoint slots grows, where the catalogue has more ids.

    context : X itself where the bandit has no features, or where it is an array; else what `Features.encode` takes
    arms : ids of a catalogue, records for the features, or ids for the rows of X

    Raises what `Features.encode` and `Catalogue.encode` raise, and ValueError for ids that are not one for each arm.
    """
    if (bandit.features is None and catalogue is None) or isinstance(context, np.ndarray):
        X = context
        K = bandit.slots or np.shape(X)[-2] if arms is not None else 0
        return Asked(X, mask, None if arms is None else tuple(ids(arms, K)))
    if catalogue is None:
        return Asked(bandit.features.encode(context, arms), mask, None)  # type: ignore[union-attr]
    if isinstance(arms, (str, bytes)):
        raise ValueError(f"arms must be a list of ids, got {arms!r}: arms=[{arms!r}]")
    with catalogue._lock:  # the version is that of the arms
        version = catalogue.version
        if catalogue.features.form == "disjoint":
            taught.grow(bandit, catalogue.slots)
            offered = catalogue.mask(arms, slots=bandit.slots)
            names = (*catalogue.everything, *map(str, range(catalogue.slots, bandit.slots or 0)))
            if mask is not None:
                offered = offered & inputs.offered(mask, shape=_slots(mask, offered))
            return Asked(catalogue.encode(context, arms), offered, names, version)
        given = catalogue.ids if arms is None else tuple(arm if isinstance(arm, str) else id_text(arm) for arm in arms)
        return Asked(catalogue.encode(context, given), mask, given, version)


def _slots(mask: Any, offered: np.ndarray) -> tuple[int, ...]:
    """The shape that a mask must have. Raises ValueError where slots have been added since it was made."""
    n = np.shape(mask)[-1] if np.ndim(mask) else 0
    if n != len(offered):
        raise ValueError(
            f"mask has {n} places, and the catalogue has {len(offered)} slots by now: pass arms=, the ids on offer"
        )
    return np.shape(mask)
