"""`Request`: what is asked of a bandit, checked once. It is handed on to whoever needs a part of it.

A decision, its row in a log, what its reward teaches, and the probabilities of a policy beside it are all made from one
request. So the names of the columns, the ids of the arms and the user's own form of the context reach all of them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dither.deciding import inputs
from dither.deciding.inputs import EXACT, LARGEST
from dither.propensity import settled


class Request(NamedTuple):
    """One request, with K arms, or B of them. `...` is () or (B,)."""

    X: np.ndarray  # (..., K, d), or (..., d), the context of disjoint slots
    mask: np.ndarray | None  # (..., K) bool, True: on offer; None: all are
    shape: tuple[int, ...]  # (..., K)
    columns: tuple[str, ...] | None = None  # (d,) names of the columns of X; None: they have none
    values: np.ndarray | None = None  # (..., K)  what a unit of reward is worth; None: 1
    minimum: np.ndarray | None = None  # (..., K)  the least probabilities; None: none
    baseline: np.ndarray | None = None  # (...) int  position of the arm that is kept within a loss; None: there is none
    ids: tuple[str, ...] | None = None  # (K,) of the arms; None: positions are the arms
    context: Any = None  # as the user gave it, where it was encoded
    version: int | None = None  # of the catalogue that encoded it

    @property
    def single(self) -> bool:
        """Whether it is one request, and no batch."""
        return len(self.shape) == 1

    @property
    def size(self) -> int:
        """How many requests it is."""
        return 1 if len(self.shape) == 1 else self.shape[0]

    @property
    def offered(self) -> np.ndarray:
        """How many arms are on offer, (...)."""
        if self.mask is None:
            return np.full(self.shape[:-1], self.shape[-1])
        return np.sum(self.mask, axis=-1)

    def row(self, i: int) -> "Request":
        """Request i of a batch, by itself."""
        cut: dict[str, Any] = {name: None if part is None else part[i] for name, part in self._of_requests().items()}
        return self._replace(X=self.X[i], shape=self.shape[1:], **cut)

    def batched(self) -> "Request":
        """One request as a batch of one."""
        grown: dict[str, Any] = {
            name: None if part is None else part[None] for name, part in self._of_requests().items()
        }
        return self._replace(X=self.X[None], shape=(1, *self.shape), **grown)

    def _of_requests(self) -> dict[str, np.ndarray | None]:
        return {"mask": self.mask, "values": self.values, "minimum": self.minimum, "baseline": self.baseline}


def read(X: Any, mask: Any, *, dim: int, slots: int | None, columns: tuple[str, ...] | None) -> Request:
    """Check X and the mask.

    dim, slots, columns : of the bandit: d, K where its arms are disjoint slots, the names that it has learnt

    Raises ValueError for a wrong width, for NaN or infinity (the error names the place), for other columns than the
    bandit has, and where no arm is on offer.
    """
    alone = 1 if slots is not None else 2
    if type(X) is np.ndarray and inputs.plain(X, alone, dim):  # the usual case, at once
        arms = X.shape[:-1] if slots is None else (slots,)
        if mask is None:
            return Request(X, None, arms, columns)
        if type(mask) is np.ndarray and mask.dtype == np.bool_ and mask.shape == arms:
            on_offer = np.count_nonzero(mask)
            if on_offer:
                whole = slots is not None or on_offer == arms[0]
                return Request(X if whole else readable(X, mask), mask, arms, columns)
    X, columns = inputs.features(X, name="X", dim=dim, columns=columns)
    if X.ndim not in (alone, alone + 1):
        wanted = f"({dim},) or (B, {dim})" if alone == 1 else f"(K, {dim}) or (B, K, {dim})"
        raise ValueError(f"X must be {wanted}: width {dim}; got {X.shape}")
    if alone == 2 and X.shape[-2] == 0:
        raise ValueError(f"X must offer at least one arm, got {X.shape}")
    shape = X.shape[:-1] if slots is None else (*X.shape[:-1], slots)
    if mask is not None:
        mask = inputs.offered(mask, shape=shape)
    rows = None if slots is not None else mask
    inputs.finite(X, name="X", mask=rows)
    return Request(X if rows is None else readable(X, rows), mask, shape, columns)


def readable(X: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """X, where a row on offer stands in place of every row that is not. So no model reads what such a row holds."""
    if X.ndim == 2:
        X = X.copy()
        X[~mask] = X[mask.argmax()]
        return X
    first = np.take_along_axis(X, np.argmax(mask, axis=-1)[..., None, None], axis=-2)
    return np.where(mask[..., None], X, first)


def values(numbers: Any, *, shape: tuple[int, ...], mask: np.ndarray | None) -> np.ndarray:
    """Values of the arms (..., K), above 0; what is not on offer counts as 1.

    Values that nothing but rounding tells apart are one number, the least of them: 1.1 - 1.0 beside 0.1, and what came
    in a coarser type, or beside one number that did, by the rounding of that.
    """
    if isinstance(numbers, Mapping):
        raise TypeError("values must be numbers in the order of the arms, got a dict: [values[a] for a in arms]")
    rule, cure = f"be numbers above 0 and below {LARGEST:g}", ": leave an arm without value out by the mask"
    v = _of_arms(
        numbers, "values", shape, mask, absent=1.0, fits=lambda v: (v > 0) & (v < LARGEST), rule=rule, cure=cure
    )
    return settled.values(v, share=max(settled.OF_VALUES, *map(_coarse, _types(numbers))), mask=mask)


def _types(numbers: Any) -> set[str]:
    """The names of the types that numbers, or the parts of a sequence of them, came in."""
    kind = getattr(numbers, "dtype", None)
    if kind is not None or not isinstance(numbers, Sequence) or isinstance(numbers, str):
        return {str(kind).lower()}
    return set().union({""}, *map(_types, numbers))


def _coarse(kind: str) -> float:
    """The rounding error of a value of this type, as a share of it; 0 for float64 and whatever is not a float."""
    return next((share for name, share in settled.COARSE.items() if kind.endswith(name)), 0.0)


def minimum(numbers: Any, *, shape: tuple[int, ...], mask: np.ndarray | None) -> np.ndarray:
    """The least probabilities of the arms (..., K), which sum to at most 1; 0 for what is not on offer."""
    least = _of_arms(
        numbers,
        "minimum",
        shape,
        mask,
        absent=0.0,
        fits=lambda p: (p >= 0) & (p <= 1),
        rule="hold probabilities from 0 to 1",
    )
    total = float(np.max(np.sum(least, axis=-1), initial=0.0))
    if total > 1 + EXACT:
        raise ValueError(f"minimum must sum to at most 1 over the arms on offer, got {total:.6g}: lower some of them")
    return least


def costs(numbers: Any, *, shape: tuple[int, ...], mask: np.ndarray | None) -> np.ndarray:
    """What a show of each arm costs, (..., K), not negative; 0 for what is not on offer."""
    return _of_arms(
        numbers,
        "costs",
        shape,
        mask,
        absent=0.0,
        fits=lambda cost: (cost >= 0) & (cost < LARGEST),
        rule="be numbers of at least 0",
    )


def _of_arms(
    numbers: Any,
    name: str,
    shape: tuple[int, ...],
    mask: np.ndarray | None,
    *,
    absent: float,
    fits: Callable[[np.ndarray], np.ndarray],
    rule: str,
    cure: str = "",
) -> np.ndarray:
    """Numbers of the arms (..., K). absent : what stands for an arm that is not on offer; fits : which are allowed."""
    array = inputs.numbers(numbers, name=name)
    if array.shape != shape and array.shape != shape[-1:]:
        raise ValueError(f"{name} must have shape {shape} (or {shape[-1:]} for all requests alike), got {array.shape}")
    array = np.broadcast_to(array, shape)
    array = array if mask is None else np.where(mask, array, absent)
    wrong = ~fits(array)
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        where = f" of request {place[0]}" * (len(place) > 1)
        raise ValueError(f"{name} must {rule}, got {array[place]:g} for arm {place[-1]}{where}{cure}")
    return array
