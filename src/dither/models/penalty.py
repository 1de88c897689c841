"""λ in units of the features, where the user gives none (`lam="auto"`): λ = mean ‖x‖²/d of the first rows.

    λ_n = Σ_{i <= h} ‖x_i‖² / (h d),   h the largest of 1, 2, 4, ..., 128 that is at most n

So λ is set anew at most eight times, and never after 128 rows. It is a function of the rows in the order in which they
were learnt, whatever the batches. A row of weight ω is ω rows. Rows of zeros say nothing: until the first mean above 0,
λ is ‖x‖²/d of the first x that is not 0, and 1 before it. At two moments of the rule λ is at least half of what it was,
so V stays as well conditioned as 1 + n d says.
"""

from typing import Any, Literal, NamedTuple

from dither.base import arrays, errors
from dither.base.arrays import Array

AUTO = "auto"
Penalty = float | Literal["auto"]  # λ, or the rule
FIRST = 1.0  # λ before the first row that is not 0
ROWS = 128  # after so many rows λ stays
LEAST, LARGEST = 1e-100, 1e100  # what float64 can hold beside what is learnt
BESIDE = 1e20  # times as large as mean ‖x‖² so far, λ would leave nothing of what was learnt
_STEPS = tuple(float(2**j) for j in range(8))


class Rule(NamedTuple):
    """λ and what it was made of; shapes (...) are replications."""

    lam: Array  # (...)  λ; feature²
    rows: Array  # (...)  Σ ω of the rows so far, at most 128
    square: Array  # (...)  Σ ω ‖x‖² of those


def check(name: str, value: Any) -> None:
    """Refuse what is neither "auto" nor a λ that float64 can hold beside what is learnt."""
    if isinstance(value, str) and value == AUTO:
        return
    errors.positive(name, value)
    errors.within(name, value, LEAST, LARGEST)


def init(like: Array) -> Rule:
    """Before the first row; like (..., d)."""
    return Rule(arrays.blank(like) + FIRST, arrays.blank(like), arrays.blank(like))


def too_long(before: Rule, after: Rule, *, d: int) -> bool:
    """Whether one row has made λ so large that what two rows and more have taught is lost beside it."""
    moved = (after.lam != before.lam) & (before.rows >= 2) & (before.square > 0)
    return arrays.some(moved & (after.lam * before.rows * d > BESIDE * before.square))


def advanced(rule: Rule, X: Array, weight: Array | None = None) -> Rule:
    """After n more rows X (..., n, d) with weights (..., n). The same `Rule` where nothing has changed."""
    xp, d = arrays.namespace(X), X.shape[-1]
    if not X.shape[-2] or not arrays.some((rule.rows < ROWS) | (rule.square == 0)):
        return rule
    size = xp.vecdot(X, X)
    omega = xp.ones_like(size) if weight is None else weight + xp.zeros_like(size)
    count = rule.rows[..., None] + xp.cumulative_sum(omega, axis=-1)
    total = rule.square[..., None] + xp.cumulative_sum(omega * size, axis=-1)
    last = count[..., -1]

    def first(true: Array) -> Array:
        """The place of the first row of which it is true, (...)."""
        return xp.argmax(xp.astype(true, xp.int64), axis=-1)

    counts = omega * size > 0
    begins, start = (rule.square == 0) & xp.any(counts, axis=-1), first(counts)
    lam = xp.where(begins, arrays.pick(size, start, rank=0) / d, rule.lam)
    of_step, passed = total[..., -1], rule.rows < 0
    for h in _STEPS:
        here = first(count >= h)
        beyond = (arrays.pick(count, here, rank=0) - h) * arrays.pick(size, here, rank=0)
        of_step = arrays.pick(total, here, rank=0) - beyond
        passed = (rule.rows < h) & (last >= h)
        lam = xp.where(passed & (of_step > 0), of_step / (h * d), lam)
    late = arrays.pick(omega * size, start, rank=0)  # where all of the first 128 were zeros, one row says that λ is set
    square = xp.where(last < ROWS, total[..., -1], xp.where(passed & (of_step > 0), of_step, late))
    done = (rule.rows >= ROWS) & (rule.square > 0)
    rows = xp.where(last < ROWS, last, xp.full_like(last, float(ROWS)))
    square = xp.where(done, rule.square, square)
    return Rule(xp.clip(lam, LEAST, LARGEST), rows, square)
