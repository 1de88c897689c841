"""What a user may demand of a choice, whatever the policy says, and what it does to the probabilities: exactly this.

    outright   p'_i = E_i + (1 - ΣE) p_i        a share E_i of all choices goes to arm i
    safe       p''_i = p'_i for the arms that are safe; the baseline has the p' of all others besides its own

p are the probabilities of the policy, without the floor. With minima m_i, the floor f and n arms on offer,

    E_i = M_i + (1 - ΣM) e/n,   M_i = max(m_i, f/n)

where e is the policy's own share of uniform choices (ε-greedy). So each arm keeps its minimum and f/n both. An arm that
is not on offer gives its minimum up. What is safe is decided last, so an arm that is not safe gives up both.
"""

from typing import NamedTuple

import numpy as np

from dither.base import arrays
from dither.deciding import inputs


class Demands(NamedTuple):
    """What is demanded of one request, or of requests with leading axes `...`."""

    outright: np.ndarray  # (..., K)  E; 0 for arms not on offer
    safe: np.ndarray | None = None  # (..., K) bool  None: all are; the baseline always is
    baseline: np.ndarray | None = None  # (...) int  its position

    def row(self, row: tuple[int, ...]) -> "Demands":
        """Those of one request."""
        if not row:
            return self
        safe, at = (None if part is None else part[row] for part in self[1:])
        return Demands(self.outright[row], safe, at)

    def drawn(self, arm: np.ndarray, u: np.ndarray) -> np.ndarray:
        """The arms shown where the policy itself shows `arm` (...): u (..., 3), whose first place ties have used."""
        upto = np.cumsum(self.outright, axis=-1)
        total = upto[..., -1]
        at = u[..., 2] * total  # below the total, since u is at most 1 - 2^-53
        other = np.count_nonzero(upto <= at[..., None], axis=-1)  # arms of share 0 are passed
        arm = np.where(u[..., 1] < total, other, arm)
        if self.safe is None or self.baseline is None:
            return arm
        safe = np.broadcast_to(self.safe, (*arm.shape, self.safe.shape[-1]))
        return np.where(arrays.pick(safe, arm, rank=0), arm, self.baseline)

    def of(self, p: np.ndarray) -> np.ndarray:
        """The probabilities of all arms, from those of the policy: (..., K)."""
        return self.moved(self.outright + self.rest[..., None] * p)

    def of_logs(self, p: np.ndarray) -> np.ndarray:
        """Their logarithms, from the logarithms of the policy's: (..., K)."""
        mixed = np.logaddexp(p + arrays.log(self.rest)[..., None], arrays.log(self.outright))
        if self.safe is None or self.baseline is None:
            return mixed
        own = np.arange(mixed.shape[-1]) == self.baseline[..., None]
        all_of_it = np.logaddexp.reduce(np.where(own | ~self.safe, mixed, -np.inf), axis=-1)
        return np.where(own, all_of_it[..., None], np.where(self.safe, mixed, -np.inf))

    def moved(self, p: np.ndarray) -> np.ndarray:
        """p (..., K) where the baseline is shown in place of what is not safe. Counts of draws are moved alike."""
        if self.safe is None or self.baseline is None:
            return p
        own = np.arange(p.shape[-1]) == self.baseline[..., None]
        return np.where(self.safe, p, 0.0) + own * np.sum(np.where(self.safe, 0.0, p), axis=-1, keepdims=True)

    @property
    def rest(self) -> np.ndarray:
        """The share that is left to the policy: (...)."""
        return np.maximum(1 - np.sum(self.outright, axis=-1), 0.0)

    def possible(self, mask: np.ndarray | None) -> np.ndarray:
        """Which arms can be shown at all: (..., K)."""
        on = np.ones(self.outright.shape, dtype=bool) if mask is None else mask
        return on if self.safe is None else on & self.safe

    def floor(self, mask: np.ndarray | None) -> np.ndarray:
        """The largest f for which every arm on offer surely has f/n: (...). It is what a log calls the floor."""
        on = np.ones(self.outright.shape, dtype=bool) if mask is None else mask
        sure = self.moved(self.outright)
        return np.min(np.where(on, sure, np.inf), axis=-1) * np.sum(on, axis=-1)


def outright(
    minimum: np.ndarray | None, *, floor: float, own: float, shape: tuple[int, ...], mask: np.ndarray | None
) -> np.ndarray:
    """E (..., K) of minima as `inputs.minimum` gives them, the floor, and the policy's own uniform share.

    Raises ValueError where the minima and the floor together ask for more than 1.
    """
    even = np.full(shape, 1 / shape[-1]) if mask is None else mask / np.sum(mask, axis=-1, keepdims=True)
    least = floor * even if minimum is None else np.maximum(minimum, floor * even)
    total = np.sum(least, axis=-1, keepdims=True)
    if np.any(total > 1 + inputs.EXACT):
        raise ValueError(
            f"minimum and floor={floor:g} together ask for {np.max(total):.6g} of the choices, more than all of them: "
            f"each arm on offer needs the larger one of its minimum and floor/n. Lower one of them"
        )
    return least + np.maximum(1 - total, 0.0) * own * even
