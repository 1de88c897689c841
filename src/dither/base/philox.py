"""Philox 4x32-10: 128 bits of chance from a counter and a key, computed alike in every library of arrays.

The counter has four words of 32 bits, the key has two. Ten rounds of products and exclusive ors turn a counter into
four other words. Nothing is kept between two calls. So any number can be made anywhere, in any order.

Words are held in uint64, where the product of two of them fits. torch has few operations of that type. There words are
held in int64, and a product is made of two halves, so that none overflows.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, and their library Random123.
"""

from dither.base.arrays import Array

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
STEPS = (0x9E3779B9, 0xBB67AE85)  # what the key grows by after each round: the golden ratio, and √3 - 1
WORD = 0xFFFFFFFF

Words = tuple[Array, Array, Array, Array]


def block(counter: Words, key: tuple[int, int], *, unsigned: bool) -> Words:
    """Four words of chance for each counter. Words are whole numbers from 0 to 2^32 - 1.

    counter : arrays of one integer type, whose shapes broadcast; uint64 if `unsigned`, else int64
    """
    a, b, c, d = counter
    first, second = key
    for _ in range(ROUNDS):
        high, low = _product(a, MULTIPLIERS[0], unsigned=unsigned)
        other_high, other_low = _product(c, MULTIPLIERS[1], unsigned=unsigned)
        a, b, c, d = other_high ^ b ^ first, other_low, high ^ d ^ second, low
        first, second = (first + STEPS[0]) & WORD, (second + STEPS[1]) & WORD
    return a, b, c, d


def _product(a: Array, factor: int, *, unsigned: bool) -> tuple[Array, Array]:
    """The high and the low word of a factor, for words a."""
    if unsigned:
        product = a * factor
        return product >> 32, product & WORD
    low = a * (factor & 0xFFFF)  # below 2^48
    high = a * (factor >> 16) + (low >> 16)  # below 2^49
    return high >> 16, ((high & 0xFFFF) << 16) | (low & 0xFFFF)
