"""Chance that is computed from where it is used, not drawn in turn: `numpy.random.Generator`'s draws by Philox.

Number p of round t of a purpose in a run comes from one block of `philox`:

    key      two words that NumPy's SeedSequence makes of the seed
    counter  (p div 2, t - 1, run, purpose + 2^16 child)      words 0 and 1 of the block if p is even, 2 and 3 if odd

The two words w, v are the whole number k = 2^21 v + floor(w/2^11) of 53 bits; k/2^53 is the uniform, and
`normals.normal(k)` the normal. `streams.PURPOSES` numbers the purposes. A child is a generator of its own that a
purpose needs beside itself (`streams.child`). So a number depends on nothing else: not on the runs beside it, on how
many rounds are drawn at once, on the library or the device.

What is drawn has rounds as its first axis, as (n, K) for n rounds, and the next draw goes on with the next round. A
draw that is no round of a game, as that of θ*, counts its first axis in the same way. A generator of one run draws the
shape that it is asked for. A generator of R runs draws it R times, with the axis of runs in front.

Other laws are functions of one or two uniforms, so that a round always takes as many. Sources: Bailey, "Polar
generation of random variates with the t-distribution", Mathematics of Computation 62, 1994; Ulrich, "Computer
generation of distributions on the m-sphere", Applied Statistics 33, 1984, for the symmetric beta.
"""

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dither.base import arrays, philox
from dither.base.arrays import Array
from dither.base.normals import NUMBERS, normal

WORDS = 2**32  # how many values a word of the counter has
AT_ONCE = 2**14  # blocks computed at once where numbers must stay in the cache
AT_ONCE_THERE = 2**22  # the same on a device: 32 MB an array
LARGEST_MEAN = 700.0  # of a count: e^-700 is still a number of full precision

Size = int | tuple[int, ...] | None


class CounterGenerator:
    """The draws of one purpose, in one run (a number) or in R runs (an array of numbers) at once."""

    def __init__(
        self, key: tuple[int, int], runs: Any, purpose: int, *, xp: Any = arrays.NUMPY, device: Any = None
    ) -> None:
        self.key, self.runs, self.purpose, self.xp, self.device = key, runs, purpose, xp, device
        self.lead = tuple(np.shape(runs))  # () or (R,)
        self.done = self.children = 0  # rounds, and generators beside this one
        self.unsigned = arrays.unsigned(xp)
        self.type = xp.uint64 if self.unsigned else xp.int64
        self._run, self._purpose = self._words(np.atleast_1d(runs)), self._words(np.array([purpose]))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.random.Generator, name):
            raise AttributeError(name)
        raise AttributeError(
            f"chance='counter' draws random, uniform, integers, standard_normal, normal, permutation, beta(a, a), "
            f"geometric, pareto, poisson and standard_t, and not {name}: make it of these, or take chance='streams'"
        )

    def spawn(self, n: int) -> list["CounterGenerator"]:
        """n generators beside this one, each of chance of its own."""
        first, self.children = self.children + 1, self.children + n
        words = [self.purpose + 2**16 * (first + i) for i in range(n)]
        return [CounterGenerator(self.key, self.runs, word, xp=self.xp, device=self.device) for word in words]

    def random(self, size: Size = None) -> Array:
        """Uniforms k/2^53 in [0, 1)."""
        return self._drawn(size, _uniform)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Size = None) -> Array:
        """Uniforms in [low, high)."""
        return low + (high - low) * self.random(size)

    def standard_normal(self, size: Size = None, dtype: Any = np.float64, out: Array | None = None) -> Array:
        """Normals. out (..., n, *): an array of float64 that they are written into."""
        if out is None:
            z = self._drawn(size, normal)
            return (
                z if dtype is np.float64 else self.xp.astype(self.xp.asarray(z), getattr(self.xp, np.dtype(dtype).name))
            )
        out[...] = self._drawn(tuple(out.shape)[len(self.lead) :], normal)
        return out

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: Size = None) -> Array:
        """Normals of this mean and standard deviation."""
        return loc + scale * self.standard_normal(size)

    def integers(self, low: int, high: int | None = None, size: Size = None) -> Array:
        """Whole numbers from low (else 0) to below high, alike likely but for a share of (high - low)/2^53."""
        low, high = (0, low) if high is None else (low, high)
        u = self.random(size)
        return self.xp.astype(self.xp.floor(self.xp.asarray(u) * float(high - low)), self.xp.int64) + low

    def permutation(self, n: int) -> Array:
        """The numbers 0, ..., n - 1 in an order of which all are alike likely."""
        return self.xp.argsort(self.random(n), axis=-1)

    def standard_t(self, df: float, size: Size = None) -> Array:
        """Student's t: √(ν (U^(-2/ν) - 1)) cos 2πV."""
        log_u, cosine = self._polar(size)
        return self.xp.sqrt(df * self.xp.expm1(log_u * (-2 / df))) * cosine

    def beta(self, a: float, b: float, size: Size = None) -> Array:
        """The symmetric beta, a = b >= 1: ½ + ½ √(1 - U^(2/(2a - 1))) cos 2πV."""
        if a != b or a < 1:
            raise ValueError(f"chance='counter' draws a beta with a = b >= 1 alone, got {a} and {b}: chance='streams'")
        log_u, cosine = self._polar(size)
        return 0.5 + 0.5 * self.xp.sqrt(-self.xp.expm1(log_u * (2 / (2 * a - 1)))) * cosine

    def pareto(self, a: float, size: Size = None) -> Array:
        """Lomax: U^(-1/a) - 1."""
        return self.xp.expm1(self._log_u(size) * (-1 / a))

    def geometric(self, p: float, size: Size = None) -> Array:
        """The number of trials up to the first success, 1, 2, ...: 1 + ⌊log U/log(1 - p)⌋."""
        failures = self.xp.floor(self._log_u(size) / math.log1p(-p)) if p < 1 else 0.0 * self._log_u(size)
        return 1 + self.xp.astype(failures, self.xp.int64)

    def poisson(self, lam: Array) -> Array:
        """Counts of these means (..., n, *): the smallest count whose distribution function is above U."""
        xp, most = self.xp, arrays.largest(lam)
        if most > LARGEST_MEAN:
            raise ValueError(
                f"the mean of a count must be at most {LARGEST_MEAN:g} with chance='counter', got {most:.3g}: lower "
                "the means, or take chance='streams'"
            )
        u = self.random(tuple(lam.shape)[len(self.lead) :])
        term = xp.exp(-lam)
        total, count = term, xp.astype(u >= term, xp.float64)
        for j in range(1, math.ceil(most + 12 * math.sqrt(most) + 30)):  # above it no k of 53 bits is left
            term = term * lam / j
            total = total + term
            count = count + xp.astype(u >= total, xp.float64)
        return count

    def _log_u(self, size: Size) -> Array:
        """log U for U in (0, 1]."""
        return self.xp.log1p(-self.xp.asarray(self.random(size)))

    def _polar(self, size: Size) -> tuple[Array, Array]:
        """log U and cos 2πV of two uniforms each."""
        shape = _shape(size)
        pair = self.random((*(shape or (1,)), 2))
        if not shape:
            pair = pair[..., 0, :]
        return self.xp.log1p(-pair[..., 0]), self.xp.cos(2 * math.pi * pair[..., 1])

    def _words(self, x: np.ndarray) -> Array:
        """Words of the counter in the type of this library."""
        if np.min(x) < 0 or np.max(x) >= WORDS:
            raise ValueError(f"chance='counter' counts runs and rounds up to 2^32, got {int(np.max(x))}")
        return self.xp.asarray(x, dtype=self.type, device=self.device)

    def _drawn(self, size: Size, rule: Callable[[Array], Array]) -> Array:
        """rule(k) of the whole numbers of the next rounds, in float64: (*lead, *size)."""
        xp, shape = self.xp, _shape(size)
        n, width = shape[0] if shape else 1, math.prod(shape[1:])
        first, R, blocks = self.done, max(1, math.prod(self.lead)), -(-width // 2)
        if first + n > WORDS:
            raise ValueError(f"chance='counter' counts runs and rounds up to 2^32, got round {first + n}")
        self.done += n
        drawn = xp.empty((R * n, width), dtype=xp.float64, device=self.device)
        there = arrays.apart(xp, self.device)
        at_once, numbers = (AT_ONCE_THERE, _fused(rule)) if there else (AT_ONCE, functools.partial(_numbers, rule))
        places, rows = min(blocks, at_once), max(1, at_once // max(blocks, 1))
        for i in range(0, R * n, rows):
            stop = min(i + rows, R * n)
            row = self._row(i, stop)
            run, t = self._run[row // n], xp.astype(row % n, self.type) + first
            for p in range(0, blocks, places):
                place = self._row(p, min(p + places, blocks))
                even, odd = numbers((place, t[:, None], run[:, None], self._purpose), self.key, unsigned=self.unsigned)
                last = min(2 * (p + places), width)
                drawn[i:stop, 2 * p : last : 2] = even
                drawn[i:stop, 2 * p + 1 : last : 2] = odd[:, : (last - 2 * p) // 2]
        drawn = xp.reshape(drawn, (*self.lead, *shape))
        return drawn if shape or self.lead else float(drawn)

    def _row(self, first: int, last: int) -> Array:
        """The numbers from first to below last."""
        return self.xp.arange(first, last, dtype=self.type, device=self.device)


def key(seed: int) -> tuple[int, int]:
    """The key of a seed: two words."""
    first, second = np.random.SeedSequence(seed).generate_state(2).tolist()
    return first, second


def _shape(size: Size) -> tuple[int, ...]:
    return () if size is None else (int(size),) if isinstance(size, (int, np.integer)) else tuple(size)


def _uniform(k: Array, *, whole: bool = False) -> Array:
    """k/2^53."""
    return k * (1 / NUMBERS)


def _numbers(
    rule: Callable[..., Array],
    counter: philox.Words,
    key: tuple[int, int],
    *,
    unsigned: bool,
    whole: bool = False,
) -> tuple[Array, Array]:
    """rule of the two numbers of each block -> those of the even and of the odd place."""
    xp = arrays.namespace(counter[0])
    words = philox.block(counter, key, unsigned=unsigned)
    pairs = (words[:2], words[2:])
    return tuple(rule(xp.astype((high << 21) | (low >> 11), xp.float64), whole=whole) for low, high in pairs)


@functools.cache
def _fused(rule: Callable[..., Array]) -> Callable[..., Any]:
    """`_numbers` of a rule as torch compiles it for a device: one kernel in the place of some three hundred.

    It is compiled for each shape: with shapes left open torch took more than five minutes. Where torch cannot compile,
    it is computed step by step.
    """
    steps = functools.partial(_numbers, rule, whole=True)
    compiled: Callable[..., Any] | None = None

    def numbers(*call: Any, **settings: Any) -> Any:
        nonlocal compiled
        try:
            compiled = compiled or importlib.import_module("torch").compile(steps, dynamic=False)
            return compiled(*call, **settings)
        except Exception:  # no compiler there, or one that fails: torch has no single error for that
            compiled = steps
            return steps(*call, **settings)

    return numbers
