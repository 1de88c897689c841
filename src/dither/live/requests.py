"""A request as a user has it becomes a `Request`: features, ids, numbers by id."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from dither.bandit.bandit import Bandit
from dither.base import errors
from dither.deciding import inputs
from dither.deciding.baseline import no_baseline
from dither.deciding.request import Request
from dither.features import Catalogue
from dither.features.arm_catalogue import RetiredArm
from dither.features.arm_ids import id_texts, spelt, with_ids
from dither.live import taught
from dither.log.record import ids


class Call(NamedTuple):
    """What the user has passed to `Live.choose`."""

    context: Any
    arms: Any = None
    mask: Any = None
    values: Any = None
    minimum: Any = None
    baseline: Any = None
    costs: Any = None
    id: Any = None
    time: Any = None
    extra: Mapping[str, Any] | None = None
    body: Any = None  # bytes or a text
    fallback: Any = None  # an arm
    fallen: bool = False  # whether the fallback was shown, and nothing is drawn


def read(bandit: Bandit, catalogue: Catalogue | None, call: Call) -> Request:
    """X, mask and ids, checked. A bandit with disjoint slots grows, where the catalogue has more ids.

    context : X itself where the bandit has no features, or where it is an array; else what `Features.encode` takes
    arms : ids of a catalogue, with or without records; records for the features, with or without ids; or ids for the
        rows of X

    Raises what `Features.encode` and `Catalogue.encode` raise, and ValueError for ids that are not one for each arm.
    """
    context, arms = call.context, call.arms
    if (bandit.features is None and catalogue is None) or isinstance(context, np.ndarray):
        if isinstance(arms, Mapping):
            raise ValueError(f"arms must be ids where X is given, as X is the features; got records: {list(arms)!r}")
        request = bandit.read(context, call.mask)
        return request._replace(ids=None if arms is None else ids(arms, request.shape[-1]))
    if catalogue is not None:
        return _of_catalogue(bandit, catalogue, call)._replace(context=context)
    named = isinstance(arms, Mapping)
    X = bandit.features.encode(context, with_ids(arms) if named else arms)  # type: ignore[union-attr]
    return bandit.read(X, call.mask)._replace(ids=id_texts(arms) if named else None, context=context)


def _of_catalogue(bandit: Bandit, catalogue: Catalogue, call: Call) -> Request:
    """The request of a context, and of arms that the catalogue has."""
    mask = call.mask
    with catalogue._lock, _known_late():  # the version is that of the arms
        version = catalogue.version
        arms = None if call.arms is None else catalogue._texts(call.arms)
        asked: Any = arms  # with the records that the request brings
        if arms is not None and isinstance(call.arms, Mapping):
            asked = dict(zip(arms, call.arms.values(), strict=True))
        if catalogue.features.form == "disjoint":
            taught.grow(bandit, catalogue.slots)
            offered = catalogue.mask(arms, slots=bandit.slots)
            names = (*catalogue.everything, *map(str, range(catalogue.slots, bandit.slots or 0)))
            if mask is not None:
                offered = offered & inputs.offered(mask, shape=_slots(mask, offered))
            return bandit.read(catalogue.encode(call.context, asked), offered)._replace(ids=names, version=version)
        names = catalogue.ids if arms is None else arms
        X = catalogue.encode(call.context, names if asked is None else asked)
        return bandit.read(X, mask)._replace(ids=names, version=version)


@contextlib.contextmanager
def _known_late() -> Iterator[None]:
    """A block that finds out which arms are retired. Another process may have done it since the caller took `ids`."""
    try:
        yield
    except RetiredArm as gone:
        cure = "take the `ids` of `live.catalogue` again, if another process has retired it, and call `choose` again"
        raise RetiredArm(gone.id, cure) from None


def demanding(bandit: Bandit, catalogue: Catalogue | None, request: Request, call: Call) -> Request:
    """The request with its values, minima and baseline, where the user may have named arms by their ids."""
    minimum, baseline = call.minimum, call.baseline
    if minimum is not None:
        minimum = by_place(minimum, request, what="minimum", default=0.0, catalogue=catalogue)
    if bandit.baseline is not None:
        baseline = position(bandit.baseline.arm if baseline is None else baseline, request.ids)
    elif baseline is not None:
        raise no_baseline()
    return bandit.demanding(request, values=call.values, minimum=minimum, baseline=baseline)


def by_place(numbers: Any, request: Request, *, what: str, default: float, catalogue: Catalogue | None) -> Any:
    """Numbers by id, in the order of the arms: (K,). Numbers that are in order already stay as they are.

    An id that is not on offer is left out. Raises LookupError for one that the catalogue, or the slots, never had.
    """
    if not isinstance(numbers, Mapping):
        return numbers
    K = request.shape[-1]
    place = {name: i for i, name in enumerate(map(str, range(K)) if request.ids is None else request.ids)}
    array = np.full(K, default)
    for id, number in numbers.items():
        if np.ma.is_masked(number):
            raise ValueError(f"{what} of arm {id!r} is masked: fill it in first, or leave the arm out")
        at = place.get(spelt(id, place))
        if at is not None:
            array[at] = number
        elif catalogue is not None and spelt(id, everything := catalogue.everything) not in everything:
            raise errors.unknown(f"arm in {what}", str(id), names=everything)
    return array


def position(arm: Any, names: tuple[str, ...] | None) -> Any:
    """The position of an arm that is named by its id. Raises ValueError where it is not on offer."""
    if not isinstance(arm, str):
        return arm
    arm = spelt(arm, names or ())
    if arm not in (names or ()):
        raise ValueError(f"the baseline {arm!r} must be among the arms of every request: {list(names or ())}")
    return (names or ()).index(arm)


def place(arm: Any, request: Request, *, what: str) -> int:
    """The position of an arm of a request, by its id, or by its position where the arms have no ids.

    Raises ValueError where it is not on offer in each of the requests. what : the argument, for the error
    """
    names = request.ids if request.ids is not None else tuple(map(str, range(request.shape[-1])))
    name = str(arm) if request.ids is None else spelt(arm, names)
    at = names.index(name) if name in names and not isinstance(arm, bool) else None
    if at is None or (request.mask is not None and not np.all(request.mask[..., at])):
        raise ValueError(f"{what} must be an arm that is on offer, one of {errors.listed(names)}; got {arm!r}")
    return at


def _slots(mask: Any, offered: np.ndarray) -> tuple[int, ...]:
    """The shape that a mask must have. Raises ValueError where slots have been added since it was made."""
    n = np.shape(mask)[-1] if np.ndim(mask) else 0
    if n != len(offered):
        raise ValueError(
            f"mask has {n} places, and the catalogue has {len(offered)} slots by now: pass arms=, the ids on offer"
        )
    return np.shape(mask)
