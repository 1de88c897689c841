"""Totals of groups of rows, which add up over the parts of a log: for clusters, the bootstrap and the test of drift.

    V̂ = b̄ + ρ,  b̄ = Σsb/n,  ρ = Σsu/Σsv                   every estimate, from what each row adds (`ope.rows`)
    Ψ_c = B_c - n_c b̄ + (U_c - ρ V_c) n/Σv                how a group c leans it, B_c, U_c, V_c its totals; ΣΨ = 0
    se² = G/(G - ddof) Σ_c Ψ_c²/n²                          with G clusters, whose rows may stand anywhere in the log

s are the weights of the rows (1 where there are none), n = Σs the rows of the traffic, n_c those of a group.
Without clusters the rows are grouped into at most BLOCKS blocks of 2^k successive rows; a log of fewer rows has one row
in each. To draw blocks anew is the bootstrap of rows where rows are independent, and more careful where they are not.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dither.ope.contributions import Contributions, ratio

BLOCKS = 10_000


class Groups(NamedTuple):
    """Totals of G groups for J estimates, in order of their labels."""

    label: np.ndarray  # (G,) distinct, sorted
    n: np.ndarray  # (G,) Σs, rows of the traffic
    T: np.ndarray  # (G, J, 3)  Σsb, Σsu, Σsv over each group
    width: int = 0  # of blocks: rows each, a power of two, the label row // width; 0: clusters, by the user's labels


def of(made: Sequence[Contributions], label: np.ndarray) -> Groups:
    """The totals of J estimates of the same rows by label (n,), of any kind that can be sorted."""
    labels, index = np.unique(label, return_inverse=True)
    return Groups(labels, *_totals(made, lambda x: np.bincount(index, weights=x, minlength=len(labels))))


def blocks(made: Sequence[Contributions], row: np.ndarray) -> Groups:
    """The totals of J estimates by blocks; row (n,) the numbers of their rows in the whole log, ascending."""
    width = 1 << (int(row[-1]) // BLOCKS).bit_length()
    label = row // width
    starts = np.flatnonzero(np.diff(label, prepend=-1))
    return Groups(label[starts], *_totals(made, lambda x: np.add.reduceat(x, starts)), width)


def merge(a: Groups, b: Groups) -> Groups:
    """The totals of the rows of both. Blocks of blocks are the blocks that the whole log has."""
    width = max(a.width, b.width)
    if width:
        a, b = (part._replace(label=part.label // (width // part.width)) for part in (a, b))
    labels, index = np.unique(np.concatenate([a.label, b.label]), return_inverse=True)
    n = np.bincount(index, weights=np.concatenate([a.n, b.n]), minlength=len(labels))
    T = np.zeros((len(labels), *a.T.shape[1:]))
    np.add.at(T, index, np.concatenate([a.T, b.T]))
    return Groups(labels, n, T, width)


def lean(groups: Groups, j: int) -> np.ndarray:
    """Ψ of the j-th estimate (G,); NaN where it has no value."""
    n = np.sum(groups.n)
    B, U, V = groups.T[:, j].T
    total = float(np.sum(V))
    return B - groups.n * (np.sum(B) / n) + (U - ratio(float(np.sum(U)), total) * V) * ratio(float(n), total)


def standard_error(leans: np.ndarray, n: float, *, ddof: int) -> float:
    """From Ψ (G,) of n = Σs rows: ddof 1 for means, 0 for ratios. NaN where there is one group and ddof is 1."""
    G = len(leans)
    return float(np.sqrt(leans @ leans * G / (G - ddof))) / n if ddof < G else np.nan


def resampled(groups: Groups, rng: np.random.Generator, *, times: int) -> np.ndarray:
    """The J estimates of as many groups drawn anew with replacement: (times, J); NaN for 0/0."""
    G, J = groups.T.shape[:2]
    table = np.column_stack([groups.T.reshape(G, 3 * J), groups.n])
    sums = np.empty((times, 3 * J + 1))
    for i in range(times):
        sums[i] = np.bincount(rng.integers(G, size=G), minlength=G) @ table
    b, u, v = np.moveaxis(sums[:, :-1].reshape(times, J, 3), -1, 0)
    return b / sums[:, -1:] + np.divide(u, v, out=np.full(v.shape, np.nan), where=v != 0)


def _totals(made: Sequence[Contributions], add: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Σs of each of G groups (G,), and Σsb, Σsu, Σsv of each estimate in them (G, J, 3); v = 1 for means."""
    s = made[0].log.s
    n = add(np.ones(made[0].n) if s is None else s)
    T = np.zeros((len(n), len(made), 3))
    for j, one in enumerate(made):
        for k, x in enumerate((one.b, one.u, one.v)):
            if x is not None:
                T[:, j, k] = add(x if s is None else s * x)
        if one.v is None:
            T[:, j, 2] = n
    return n, T
