"""A hash of texts that is the same in every process, on every machine and in every version: BLAKE2b.

    n = the first 8 bytes of BLAKE2b(text as UTF-8, digest of 8 bytes), little endian
    column = ⌊n/2⌋ mod width,  sign = 1 - 2 (n mod 2)

Python's own `hash` of a text differs from process to process. With signs, the inner product of two hashed bags is that
of the bags on average (Weinberger et al. 2009, "Feature hashing for large scale multitask learning", Lemma 2).
"""

import hashlib


def place(text: str, width: int) -> tuple[int, int]:
    """The column in [0, width) and the sign, 1 or -1, of a text."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    n = int.from_bytes(digest, "little")
    return (n >> 1) % width, 1 - 2 * (n & 1)
