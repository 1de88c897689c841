"""Policies beside the bandit: one that is judged before it acts, or one that acts while the bandit is judged.

    shadow       the bandit acts. Of the shadow are logged the probabilities that it gives to the arms on offer
    apprentice   a rule acts, with a share of uniform choices. Of the bandit are logged its probabilities

Either way they are the column `judged`, (K,) for each decision. `dither.ope` then says what the judged policy would
have earned: `ope.ips(log.r, log.a, log.p, log.matrix("judged"))`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dither.base import errors
from dither.deciding.decision import Choice
from dither.deciding.demands import Demands
from dither.deciding.request import Request

JUDGED = "judged"
SHADOW = "shadow"  # the number of the shadow that was judged
EXPLORE = 0.1  # of the choices of a rule, where nothing is said
VALUES = "values"  # of the arms on offer, where they were given
MINIMUM = "minimum"  # of the arms on offer, where they were given
BASELINE = "baseline"  # its position among the arms on offer, where the bandit keeps one
SAFE = "safe"  # whether each arm on offer was safe
FALLBACK = "fallback"  # True where the store could not be reached, and the fallback of the call was shown
CATALOGUE = "catalogue"  # the version of the catalogue: `catalogue.at(version)` has the arms as they were
COLUMNS = (JUDGED, SHADOW, VALUES, MINIMUM, BASELINE, SAFE, FALLBACK, CATALOGUE)  # that no user may write


class Apprentice:
    """A rule that acts, with a share of exploration."""

    def __init__(self, rule: Callable[..., Any], explore: float, seed: int | None) -> None:
        """rule : X (K, d), with disjoint slots (d,), and the mask (K,) or None -> the position of an arm."""
        errors.within("explore", explore, 0, 1)
        if not callable(rule):
            raise TypeError(f"apprentice must be a rule that takes X and a mask and gives a position, got {rule!r}")
        self.rule, self.explore = rule, float(explore)
        self._rng = np.random.default_rng(seed)

    def decide(self, request: Request) -> Choice:
        """The rule's arm, or with the share `explore` an arm of those on offer, all alike; with its exact probability.

        Raises ValueError for a batch, for minima, and where the rule gives no arm that is on offer.
        """
        if not request.single:
            raise ValueError("a rule that acts decides one request at a time: give X without a batch axis")
        if request.minimum is not None:
            raise ValueError("a rule that acts has no minima: explore= says how often each arm is shown at least")
        on = np.arange(request.shape[-1]) if request.mask is None else np.flatnonzero(request.mask)
        shown = request.X.view()
        shown.setflags(write=False)  # what the rule sees is what is stored
        ruled = self.rule(shown, request.mask)
        place = errors.whole(ruled)
        if place is None or place not in on:
            raise ValueError(f"the rule must give the position of an arm on offer, one of {on.tolist()}; got {ruled!r}")
        arm = int(on[self._rng.integers(len(on))]) if self._rng.random() < self.explore else place
        p = self.explore / len(on) + (1 - self.explore) * (arm == place)
        return Choice(request, Demands(request.shape, request.mask, self.explore), (arm, p, "exact", None, None))

    def reseed(self) -> None:
        """Draw from fresh entropy."""
        self._rng = np.random.default_rng()
