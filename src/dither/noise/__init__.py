"""Laws of the perturbation ζ and of its projection z = u'ζ on a unit vector (paper, Appendix B).

    Gaussian   ζ ~ N(0, I_d)           z ~ N(0, 1)
    Ball       ζ ~ U(B_d(0, √d))       z/√d = 2B - 1, B ~ Beta((d+1)/2, (d+1)/2); variance d/(d+2)
    Points     no ζ                    z takes finitely many values (RandUCB)
    Custom     no ζ                    z has the cdf and the sf that you give

A law of z has draw, cdf, sf, pdf and mass. `mass` and `log_mass` give the probability of an interval, to the last
digits (`slices`).
"""

from dither.noise.custom import Custom
from dither.noise.laws import Ball, BallMarginal, Gaussian, Points, half_gaussian
from dither.noise.slices import Law, log_mass, mass

__all__ = ["Ball", "BallMarginal", "Custom", "Gaussian", "Law", "Points", "half_gaussian", "log_mass", "mass"]
