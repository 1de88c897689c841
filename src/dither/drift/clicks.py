"""A chart for values of 0 and 1 (Bernoulli), whose mean time to a false alarm is exact.

The log likelihood ratio of p₁ against p is b = ln(p₁/p) for a 1 and -a = ln((1 - p₁)/(1 - p)) for a 0. Where b/a is a
ratio j/i of whole numbers, S ← max(0, S + b or -a) moves on the multiples of a unit a/i, so it is a Markov chain with
H states below the threshold H a/i. Its mean time N(s) to the threshold from each state is the solution of

    N(s) = 1 + p N(s + j) [s + j < H] + (1 - p) N(max(0, s - i))

So p₁ is moved a little, to where b/a is such a ratio, of whole numbers without a common divisor. H is the least at
which N(0) is long enough. Where a click is rare, one more click may make that much too long. So the chart begins, and
begins anew, at the largest S whose N(S) is still long enough (Lucas, Crosier, "Fast initial response for CUSUM
quality-control schemes", Technometrics 1982). A chart cannot alarm more often than clicks come.

For a fall of p, the chart is that of 1 - v. (Reynolds, Stoumbos, "A CUSUM chart for monitoring a proportion when
inspecting continuously", Journal of Quality Technology 1999, have i = 1 and begin at 0.)
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg

UNIT = 0.02  # a step of the log likelihood is at most about so large


@dataclass(frozen=True)
class ClickChart:
    """The chart for a rise of the probability of a 1."""

    p: float  # probability of a 1 as long as nothing changes
    up: int  # j, steps of a 1
    down: int  # i, steps of a 0
    height: int  # H: an alarm comes at so many steps
    start: int = 0  # the S at which it begins

    @classmethod
    def of(cls, p: float, rise: float, time: float) -> "ClickChart":
        """rise : p₁ - p, about, and at most half the way to 1; time : the least mean time until a false alarm."""
        raised = min(p + rise, (1 + p) / 2)
        b, a = math.log(raised / p), -math.log1p((p - raised) / (1 - p))
        if a < b:
            down = max(1, math.ceil(a / UNIT))
            up = _coprime(down * b / a, down)
        else:
            up = max(1, math.ceil(b / UNIT))
            down = _coprime(up * a / b, up)
        low, high = 1, 2
        while cls(p, up, down, high).times(p)[0] < time:
            low, high = high, 2 * high
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if cls(p, up, down, middle).times(p)[0] >= time else (middle + 1, high)
        enough = cls(p, up, down, low).times(p) >= time
        return cls(p, up, down, low, int(np.flatnonzero(enough)[-1]))

    def after(self, S: int, rises: bool) -> int:
        """S after one more value; rises : whether it is a 1."""
        return S + self.up if rises else max(0, S - self.down)

    def times(self, p: float) -> np.ndarray:
        """N (H,): the mean number of values until an alarm from each S, where the probability of a 1 is p."""
        H, i, j = self.height, self.down, self.up
        if j == 1:  # N(s) = g_H - g_s
            g = [0.0]
            for k in range(H):
                g.append((g[k] + 1 - (1 - p) * g[max(0, k - i)]) / p)
            return g[H] - np.array(g[:H])
        s: np.ndarray = np.arange(H)
        inside = s[s + j < H]
        row, column = np.concatenate([s, s, inside]), np.concatenate([s, np.maximum(s - i, 0), inside + j])
        value = np.concatenate([np.ones(H), np.full(H, p - 1.0), np.full(len(inside), -p)])
        below, above = min(i, H - 1), min(j, H - 1)
        turned = below > above  # the other way round, the band below, which costs more, is the narrower
        if turned:
            row, column, below, above = H - 1 - row, H - 1 - column, above, below
        band = np.zeros((below + above + 1, H))
        np.add.at(band, (above + row - column, column), value)
        N = linalg.solve_banded((below, above), band, np.ones(H))
        return N[::-1] if turned else N


def _coprime(x: float, other: int) -> int:
    """The whole number near x, at least 1, that has no divisor with the other one: else steps are of many units."""
    middle = max(1, round(x))
    return next(n for n in range(middle, middle + other + 1) if math.gcd(n, other) == 1)
