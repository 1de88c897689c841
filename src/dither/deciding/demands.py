"""What is demanded of a choice, whatever the policy says, and what it does to the probabilities: exactly this.

    uniform    p'_i = (1 - e) p_i + e/n              a share e of all choices is uniform over the n arms on offer
    outright   p'_i = E_i + (1 - ΣE) p_i             with minima: a share E_i of all choices goes to arm i
    safe       p''_i = p'_i for the arms that are safe; the baseline has the p' of all others besides its own

p are the probabilities of the policy itself. With the floor f and the policy's own share of uniform choices a (that of
ε-greedy), e = a + f (1 - a). With minima m_i,

    E_i = M_i + (1 - ΣM) a/n,   M_i = max(m_i, f/n)

So each arm keeps its minimum and f/n both. An arm that is not on offer gives its minimum up. What is safe is decided
last, so an arm that is not safe gives up both. Demands always exist. An arm that alone can be shown has probability 1.
"""

from typing import Any, NamedTuple

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array
from dither.deciding import inputs


class Demands(NamedTuple):
    """What is demanded of one request, or of requests with leading axes `...`."""

    shape: tuple[int, ...]  # (..., K)
    mask: Array | None  # (..., K) bool  on offer; None: all are
    uniform: float  # the share e; with minima it is in `outright`
    outright: np.ndarray | None = None  # (..., K)  E; 0 for arms not on offer; None: no arm has a minimum
    safe: np.ndarray | None = None  # (..., K) bool  None: all are; the baseline always is
    baseline: np.ndarray | None = None  # (...) int  its position

    def row(self, row: tuple[int, ...]) -> "Demands":
        """Those of one request."""
        if not row:
            return self
        mask, outright, safe, baseline = (
            None if part is None else part[row] for part in (self.mask, self.outright, self.safe, self.baseline)
        )
        return Demands(self.shape[-1:], mask, self.uniform, outright, safe, baseline)

    def with_minimum(self, minimum: np.ndarray, *, floor: float, share: float) -> "Demands":
        """These, and minima (..., K); floor, share : of which `uniform` is made, the floor and the policy's own.

        Raises ValueError where the minima and the floor together ask for more than 1.
        """
        even = self.even
        least = np.maximum(minimum, floor * even)
        total = np.sum(least, axis=-1, keepdims=True)
        if np.any(total > 1 + inputs.EXACT):
            raise ValueError(
                f"minimum and floor={floor:g} together ask for {np.max(total):.6g} of the choices, more than all of "
                f"them: each arm on offer needs the larger one of its minimum and floor/n. Lower one of them"
            )
        return self._replace(outright=least + np.maximum(1 - total, 0.0) * share * even)

    # What is shown

    def drawn(self, arm: Array, u: Array) -> Array:
        """The arms shown where the policy itself shows `arm` (...): u (..., 3), whose first place ties have used."""
        if self.outright is not None:
            upto = np.cumsum(self.outright, axis=-1)
            total = upto[..., -1]
            at = u[..., 2] * total  # below the total, since u is at most 1 - 2^-53
            other = np.count_nonzero(upto <= at[..., None], axis=-1)  # arms of share 0 are passed
            arm = np.where(u[..., 1] < total, other, arm)
        elif self.uniform and arrays.some(fallen := u[..., 1] < self.uniform):
            arm = arrays.namespace(u).where(fallen, self.any(u[..., 2]), arm)
        if self.safe is None or self.baseline is None:
            return arm
        safe = np.broadcast_to(self.safe, (*np.shape(arm), self.shape[-1]))
        return np.where(arrays.pick(safe, arm, rank=0), arm, self.baseline)

    def any(self, u: Array) -> Array:
        """Any arm on offer, by a uniform u (...)."""
        if self.mask is not None:
            return arrays.nth(arrays.namespace(u).broadcast_to(self.mask, (*u.shape, self.shape[-1])), u)
        xp = arrays.namespace(u)
        return xp.astype(xp.floor(u * self.shape[-1]), xp.int64)

    # How probable that is

    def of(self, p: np.ndarray) -> np.ndarray:
        """The probabilities of all arms, from those of the policy: (..., K)."""
        if self.outright is not None:
            p = self.outright + self.rest[..., None] * p
        elif self.uniform:
            p = (1 - self.uniform) * p + self.uniform * self.even
        p = self.moved(p)
        alone = self.alone
        return p if alone is None else np.where(alone[..., None], self.possible, p)

    def of_logs(self, log_p: np.ndarray) -> np.ndarray:
        """Their logarithms, from the logarithms of the policy's: (..., K)."""
        if self.outright is not None:
            log_p = np.logaddexp(log_p + arrays.ln(self.rest)[..., None], arrays.ln(self.outright))
        elif self.uniform:
            log_p = np.logaddexp(log_p + arrays.ln(1 - self.uniform), arrays.ln(self.uniform * self.even))
        if self.safe is not None and self.baseline is not None:
            baseline = np.arange(log_p.shape[-1]) == self.baseline[..., None]
            all_of_it = np.logaddexp.reduce(np.where(baseline | ~self.safe, log_p, -np.inf), axis=-1)
            log_p = np.where(baseline, all_of_it[..., None], np.where(self.safe, log_p, -np.inf))
        alone = self.alone
        return log_p if alone is None else np.where(alone[..., None], arrays.ln(self.possible), log_p)

    def of_one(self, p: Any, arm: Any) -> Any:
        """The probability of `arm` (...), from the one that the policy gives it. All arms are safe."""
        if self.outright is not None:
            p = arrays.pick(self.outright, arm, rank=0) + self.rest * p
        elif self.uniform:
            p = (1 - self.uniform) * p + self.uniform / self.offered
        alone = self.alone
        return p if alone is None else np.where(alone, 1.0, p)

    def moved(self, p: np.ndarray) -> np.ndarray:
        """p (..., K) where the baseline is shown in place of what is not safe. Counts of draws are moved alike."""
        if self.safe is None or self.baseline is None:
            return p
        baseline = np.arange(p.shape[-1]) == self.baseline[..., None]
        return np.where(self.safe, p, 0.0) + baseline * np.sum(np.where(self.safe, 0.0, p), axis=-1, keepdims=True)

    @property
    def rest(self) -> np.ndarray:
        """The share that is left to the policy: (...)."""
        if self.outright is None:
            return np.full(self.shape[:-1], 1 - self.uniform)
        return np.maximum(1 - np.sum(self.outright, axis=-1), 0.0)

    @property
    def offered(self) -> Any:
        """How many arms are on offer, (...)."""
        return self.shape[-1] if self.mask is None else np.sum(self.mask, axis=-1)

    @property
    def even(self) -> np.ndarray:
        """1/(number on offer) for the arms on offer, (..., K)."""
        if self.mask is None:
            return np.full(self.shape, 1 / self.shape[-1])
        return self.mask / np.sum(self.mask, axis=-1, keepdims=True)

    @property
    def possible(self) -> np.ndarray:
        """Which arms can be shown at all: (..., K) bool."""
        on = np.ones(self.shape, dtype=bool) if self.mask is None else np.broadcast_to(self.mask, self.shape)
        return on if self.safe is None else on & self.safe

    @property
    def alone(self) -> np.ndarray | None:
        """In which requests one arm alone can be shown, so that it is certain: (...) bool; None: in none."""
        if self.mask is None and self.safe is None:
            return None if self.shape[-1] > 1 else np.ones(self.shape[:-1], dtype=bool)
        alone = np.count_nonzero(self.possible, axis=-1) == 1
        return alone if np.any(alone) else None

    @property
    def floor(self) -> np.ndarray:
        """The largest f for which every arm on offer surely has f/n: (...). It is what a log calls the floor."""
        on = np.ones(self.shape, dtype=bool) if self.mask is None else self.mask
        sure = self.moved(self.uniform * self.even if self.outright is None else self.outright)
        return np.min(np.where(on, sure, np.inf), axis=-1) * np.sum(on, axis=-1)
