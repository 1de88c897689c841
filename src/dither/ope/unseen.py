"""Intervals that hold for events not seen: where few rewards differ from the others, the rows' spread tells little.

Rewards take two values, low and high (0 and 1 as left unsaid); y = 1 where a reward is the high one.

    equal weights    the policy shows what the log shows in N of n rows, each with one weight. Given N, the number of
                     y = 1 among them is binomial with mean (V - low)/(high - low): Clopper and Pearson (1934), exact
    other weights    w <= W, rows of weight s <= S. V has E[s (w y - v)] = 0, v its place in [low, high], so that
                     z(v) = (s/S) (w y/W - v/W) + v/W lies in [0, 1] with mean v/W:  v is refused where
                     n kl(z̄(v), v/W) > ln(2/α)  (Chernoff, Hoeffding 1963; two-sided), convex in v

Both need independent rows. What is kept of the rows adds up over parts of a log: a line for each of the values of the
reward, up to MOST of them, beyond which events are not few.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special

MOST = 8  # values of the reward, that are told apart
FEW = 10  # effective events below which a normal interval is not to be trusted
EVEN = 1e-9  # relative spread below which weights are one number
STEPS = 60  # halvings of [0, 1]


class Tally(NamedTuple):
    """Rewards by value, of n rows and one policy."""

    n: int
    total: float  # Σs
    rows: tuple[float, float]  # the least and the largest s
    weights: tuple[float, float]  # the least weight w above 0 and the largest; (inf, 0) where all are 0
    values: tuple[float, ...]  # of the rewards, sorted; empty where there are more than MOST
    shown: tuple[int, ...]  # rows of w > 0, by value
    mass: tuple[float, ...]  # Σ s w, by value
    squares: tuple[float, ...]  # Σ (s w)², by value


def of(r: np.ndarray, w: np.ndarray, s: np.ndarray | None) -> Tally:
    """Of rewards r (n,), weights w (n,), weights of the rows s (n,) or None: 1."""
    rows = (1.0, 1.0) if s is None else (float(np.min(s)), float(np.max(s)))
    total = float(len(r)) if s is None else float(np.sum(s))
    above = w > 0
    ends = (float(np.min(w, where=above, initial=np.inf)), float(np.max(w)))
    values = _values(r)
    if not len(values):
        return Tally(len(r), total, rows, ends, (), (), (), ())
    place = np.searchsorted(values, r)
    carried = w if s is None else s * w
    by = [np.bincount(place, weights=x, minlength=len(values)) for x in (above, carried, carried**2)]
    shown = tuple(int(x) for x in by[0])
    mass, squares = (tuple(x.tolist()) for x in by[1:])
    return Tally(len(r), total, rows, ends, tuple(values.tolist()), shown, mass, squares)


def merge(a: Tally, b: Tally) -> Tally:
    """Of the rows of both."""
    values = tuple(sorted({*a.values, *b.values})) if a.values and b.values else ()
    if len(values) > MOST:
        values = ()

    def line(name: str) -> Any:
        found = [dict(zip(part.values, getattr(part, name), strict=True)) for part in (a, b)]
        return tuple(sum(part.get(value, 0) for part in found) for value in values)

    rows, weights = ((min(x[0], y[0]), max(x[1], y[1])) for x, y in ((a.rows, b.rows), (a.weights, b.weights)))
    lines = line("shown"), line("mass"), line("squares")
    return Tally(a.n + b.n, a.total + b.total, rows, weights, values, *lines)


def few(x: Tally) -> bool:
    """Whether fewer than FEW effective rows that the policy shows have another reward than most of them."""
    if not x.values or not sum(x.mass):
        return False
    most = int(np.argmax(x.mass))
    mass, squares = sum(x.mass) - x.mass[most], sum(x.squares) - x.squares[most]
    return mass == 0 or mass**2 < FEW * squares


def span(x: Tally, given: tuple[float, float] | None) -> tuple[float, float] | None:
    """The two values that rewards can take: as given, 0 and 1 where all are, or the two there are; None: not known."""
    if given is not None:
        return float(given[0]), float(given[1])
    if not x.values or len(x.values) > 2:
        return None
    return (0.0, 1.0) if set(x.values) <= {0.0, 1.0} else x.values if len(x.values) == 2 else None


def interval(
    x: Tally, level: float, given: tuple[float, float] | None, *, bound: float | None = None
) -> tuple[float, float] | None:
    """The interval of the policy's value, whatever the weights; None where the range of rewards is not known.

    given : bounds of the rewards; bound : W, a bound on the weights; None: the largest there is
    """
    ends = span(x, given)
    if ends is None or (given is not None and not x.values):
        return None
    low, high = ends
    if _even(x) and set(x.values) <= {low, high}:
        return clopper_pearson(x, level, ends, of_shown=True)
    W = max(x.weights[1], bound or 0.0, 1.0)
    y = np.clip((np.array(x.values) - low) / (high - low), 0.0, 1.0)
    A, S = float(np.dot(y, x.mass)) / (x.n * x.rows[1] * W), x.total / (x.n * x.rows[1])
    need, middle = np.log(2 / (1 - level)) / x.n, min(A / S, 1.0)

    def excess(v: float) -> float:  # v: the value over W
        return _divergence(min(max(A - S * v + v, 0.0), 1.0), v) - need

    left, right = (_root(excess, middle, end) for end in (0.0, 1.0))
    return low + (high - low) * min(W * left, 1.0), low + (high - low) * min(W * right, 1.0)


def _divergence(x: float, m: float) -> float:
    """kl(x, m) = x ln(x/m) + (1 - x) ln((1 - x)/(1 - m))."""
    return float(special.rel_entr(x, m) + special.rel_entr(1 - x, 1 - m))


def _root(excess: Callable[[float], float], inside: float, outside: float) -> float:
    """Where `excess`, convex and at most 0 at `inside`, passes 0 on the way to `outside`; rounded outwards."""
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if excess(middle) > 0 else (middle, outside)
    return outside


def clopper_pearson(
    x: Tally, level: float, given: tuple[float, float] | None, *, of_shown: bool
) -> tuple[float, float]:
    """The exact interval. of_shown : of the mean reward where the policy shows what the log does; else of mean w r.

    Raises ValueError where weights are not equal or rewards are not two.
    """
    ends = span(x, given)
    if ends is None or not set(x.values) <= set(ends):
        raise ValueError(
            f"interval='clopper_pearson' needs rewards of two values, 0 and 1 or those of reward_range=; there are "
            f"{'others' if x.values else f'more than {MOST}'}: take 'betting'"
        )
    if not _even(x):
        what = "weights of rows" if x.rows[0] != x.rows[1] else "weights q/p above 0"
        raise ValueError(f"interval='clopper_pearson' needs equal weights, and the {what} differ: take 'betting'")
    low, high = ends
    if not of_shown and low != 0:
        raise ValueError("interval='clopper_pearson' of a mean w r needs rewards of 0 and another value: take snips")
    k = sum(count for value, count in zip(x.values, x.shown, strict=True) if value == high)
    N = sum(x.shown) if of_shown else x.n
    if N == 0:
        return low, high
    tail, scale = (1 - level) / 2, (high - low) * (1.0 if of_shown else x.weights[1])
    least = float(special.betaincinv(k, N - k + 1, tail)) if k else 0.0
    most = float(special.betaincinv(k + 1, N - k, 1 - tail)) if k < N else 1.0
    return low + scale * least, low + scale * most


def _even(x: Tally) -> bool:
    """Whether all rows count alike, and all weights above 0 are one number."""
    return x.rows[0] == x.rows[1] and (x.weights[1] - x.weights[0]) <= EVEN * x.weights[1]


def _values(r: np.ndarray) -> np.ndarray:
    """The distinct values (V,), none of them where there are more than MOST."""
    found: list[float] = []
    left = r
    while len(left):
        if len(found) == MOST:
            return np.empty(0)
        found.append(float(left[0]))
        left = left[left != left[0]]
    return np.sort(np.array(found))
