"""Choice probabilities of policies that score arms by lines, s_i(z) = m_i + z w_i, with one or K scalars z.

    chosen              the arm that was shown, O(K): it wins for z between the nearest crossings on either side
    decide              choice and probability of one request at once: what a live decision takes
    envelope            all arms, from the upper envelope of the lines, O(K log K), many requests at once
    points              z of finitely many values: the winners at each value
    uncoupled           a z_i for each arm: P(i) = ∫ f(z) Π_{j≠i} F((m_i - m_j + w_i z)/w_j) dz
    uncoupled_points    the same for z_i of finitely many values: sums of products

    corners             the envelope itself: which line is highest between which z
    ranks, listed       the ordered lists of the k highest lines over z; the interval of one such list

Where they take `log`, they answer log-probabilities, right where the probabilities underflow; -inf for what cannot be.

The tie rule is that of `arrays.argmax`: lines whose m and w agree to rounding share their mass equally. Here w is the
slope (the width times c_t and σ), not negative. NumPy only: probabilities leave the library here.
"""

from dither.propensity.coupled import chosen, decide, envelope, points
from dither.propensity.independent import uncoupled, uncoupled_points
from dither.propensity.ranks import listed, ranks
from dither.propensity.upper import Corners, corners

__all__ = [
    "Corners",
    "chosen",
    "corners",
    "decide",
    "envelope",
    "listed",
    "points",
    "ranks",
    "uncoupled",
    "uncoupled_points",
]
