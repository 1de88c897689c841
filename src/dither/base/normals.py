"""Normals from whole numbers of 53 bits, by the inverse of the distribution function: the same in every library.

    z(k) = Φ⁻¹((2k + 1)/2^54),   k = 0, ..., 2^53 - 1

So z rises with k, z(2^53 - 1 - k) = -z(k), and |z| <= 8.3. 85 % of all normals take sums, products and a quotient
alone, which IEEE 754 rounds in one way: they have the same bits in every library that does not fuse a product with a
sum. The others take a logarithm and a root besides. All are within 4 units in the last place of Φ⁻¹ (measured: 3.2).

Source: Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics 37, 1988. Each
of his three rational functions P(s)/Q(s) is written as P(0)/Q(0) + s N(s)/Q(s), which rounds less: AS 241 as it is has
errors up to 4.6 units. The second one is expanded about 2 in the place of 1.6.
"""

from typing import NamedTuple

from dither.base import arrays
from dither.base.arrays import Array

NUMBERS = 2**53  # how many k there are
CENTRE = 0.425  # |p - ½| up to which the first rational function is used
SQUARE = 0.180625  # CENTRE²
FAR = 5.0  # √(-log p) from which on the third one is used: p = 1.4e-11


class Rational(NamedTuple):
    """at + s N(s)/Q(s): coefficients of falling powers."""

    at: float
    N: tuple[float, ...]
    Q: tuple[float, ...]

    def __call__(self, s: Array) -> Array:
        """Its value for each s."""
        return s * (_horner(self.N, s) / _horner(self.Q, s)) + self.at


# z/(p - ½) as a function of CENTRE² - (p - ½)²
FIRST = Rational(
    3.3871328727963665,
    (
        -15193.753039787392,
        -63878.65511726085,
        -65875.29509793954,
        -25931.98610409433,
        -4539.164900965687,
        -356.00275252836093,
        -10.179205485111812,
    ),
    (
        5226.495278852854,
        28729.085735721943,
        39307.89580009271,
        21213.794301586597,
        5394.196021424751,
        687.1870074920579,
        42.31333070160091,
        1.0,
    ),
)
# |z| as a function of √(-log p) - 2, for the smaller tail p
SECOND = Rational(
    2.0898499829712573,
    (
        0.0003623435037506022,
        0.011109776095453824,
        0.12369566664267057,
        0.6710840813390845,
        1.9218775132206953,
        2.797109134001047,
        1.630634772492406,
    ),
    (
        4.915576692427388e-10,
        0.000256174507786086,
        0.007724996184139891,
        0.08412058078378833,
        0.44524501662494836,
        1.2426234928498712,
        1.761458837484443,
        1.0,
    ),
)
SECOND_AT = 2.0
# |z| as a function of √(-log p) - 5
THIRD = Rational(
    6.657904643501103,
    (
        2.0103342631872e-07,
        2.616912671378623e-05,
        0.001119734834392765,
        0.021293289884494068,
        0.197521834816394,
        0.8731604498877554,
        1.4701592778141548,
    ),
    (
        2.0442631033899397e-15,
        1.421511758316446e-07,
        1.8463183175100548e-05,
        0.0007868691311456133,
        0.014875361290850615,
        0.1369298809227358,
        0.599832206555888,
        1.0,
    ),
)


def normal(k: Array, *, whole: bool = False) -> Array:
    """z(k) for whole numbers k in float64, of any shape.

    whole : compute all three functions for all numbers. No step waits for numbers then, which a device wants
    """
    xp = arrays.namespace(k)
    q = (k - NUMBERS // 2) * 2.0**-53 + 2.0**-54  # p - ½, exactly
    size = xp.abs(q)
    tail = size > CENTRE
    if whole:
        root = xp.sqrt(-xp.log(xp.where(tail, 0.5 - size, 0.05)))
        beyond = xp.where(root > FAR, THIRD(root - FAR), SECOND(root - SECOND_AT))
        return xp.where(tail, xp.sign(q) * beyond, q * FIRST(SQUARE - q * q))
    z = q * FIRST(SQUARE - q * q)
    if arrays.some(tail):
        root = xp.sqrt(-xp.log(0.5 - size[tail]))
        beyond, far = SECOND(root - SECOND_AT), root > FAR
        if arrays.some(far):
            beyond[far] = THIRD(root[far] - FAR)
        z[tail] = xp.sign(q[tail]) * beyond
    return z


def _horner(coefficients: tuple[float, ...], s: Array) -> Array:
    """A polynomial by its coefficients of falling powers."""
    total = coefficients[0] * s + coefficients[1]
    for coefficient in coefficients[2:]:
        total *= s
        total += coefficient
    return total
