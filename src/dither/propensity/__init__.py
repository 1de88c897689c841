"""Choice probabilities of policies that score arms by lines, s_i(z) = m_i + z w_i, with one or K scalars z.

    chosen              the arm that was shown, O(K): it wins for z between the nearest crossings on either side
    decide              choice and probability of one request at once: what a live decision takes
    envelope            all arms, from the upper envelope of the lines, O(K log K), many requests at once
    points              z of finitely many values: the winners at each value
    uncoupled           a z_i for each arm: P(i) = ∫ f(z) Π_{j≠i} F((m_i - m_j + w_i z)/w_j) dz, or sums of products

    curves              all arms, where a value and the logit link make curves of the lines
    drawn_of_curves     the choice among curves, of any link; curves_at_point, where z has finitely many values

    corners             the envelope itself: which line is highest between which z
    ranks, listed       the ordered lists of the k highest lines over z; the interval of one such list

With log=True they answer log-probabilities, which are right even where the probabilities underflow; -inf: impossible.

`settled` has the tie rule: lines that rounding cannot tell apart are one line, and its arms have equal shares. Here w
is the slope (the width times c_t and σ); it is not negative. `slack` has the rounding errors of m and w. The functions
that draw (`drawn`, `drawn_apart`, `listed_at`) follow the same sets and corners as the probabilities. Probabilities
are NumPy arrays, since they leave the library here.
"""

from dither.propensity.coupled import alone, chosen, confirm, decide, decide_points, drawn, envelope, points, shared_at
from dither.propensity.curves import LOGIT, curves
from dither.propensity.curves import MOST as MOST_CURVES
from dither.propensity.curves import at_point as curves_at_point
from dither.propensity.curves import drawn as drawn_of_curves
from dither.propensity.curves import top as top_of_curves
from dither.propensity.independent import drawn_apart, tied_apart, uncoupled
from dither.propensity.ranks import listed, listed_at, ranks
from dither.propensity.settled import Sets, Slack, rounded, settle
from dither.propensity.upper import Corners, corners

__all__ = [
    "LOGIT",
    "MOST_CURVES",
    "Corners",
    "Sets",
    "Slack",
    "alone",
    "chosen",
    "confirm",
    "corners",
    "curves",
    "curves_at_point",
    "decide",
    "decide_points",
    "drawn",
    "drawn_apart",
    "drawn_of_curves",
    "envelope",
    "listed",
    "listed_at",
    "points",
    "ranks",
    "rounded",
    "settle",
    "shared_at",
    "tied_apart",
    "top_of_curves",
    "uncoupled",
]
