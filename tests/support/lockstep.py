"""What a view and its chance show, for runs in lockstep: as `simulate` does it."""

from dither.deciding import decision
from dither.deciding.demands import Demands
from dither.deciding.one_arm import ONE


def choose(view, chance, u, *, eps=0.0, mask=None):
    """The arms shown: chance as `draw` made it, u (..., 3) uniforms, eps the share of uniform choices."""
    arms = decision.scores(view, chance).shape[-1]
    return ONE.shown(view, chance, u, Demands((*u.shape[:-1], arms), mask, eps))
