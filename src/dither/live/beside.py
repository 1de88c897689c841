"""Policies beside the bandit: one that is judged before it acts, or one that acts while the bandit is judged.

    shadow       the bandit acts. Of the shadow are logged the probabilities that it gives to the arms on offer
    apprentice   a rule acts, with a share of uniform choices. Of the bandit are logged its probabilities

Either way they are the column `judged`, (K,) for each decision. `dither.ope` then says what the judged policy would
have earned: `ope.ips(log.r, log.a, log.p, log.matrix("judged"))`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dither.bandit.bandit import Bandit, Decision
from dither.base import errors

JUDGED = "judged"
SHADOW = "shadow"  # the number of the shadow that was judged
EXPLORE = 0.1  # of the choices of a rule, where nothing is said
VALUES = "values"  # of the arms on offer, where they were given
MINIMUM = "minimum"  # of the arms on offer, where they were given
BASELINE = "baseline"  # its position among the arms on offer, where the bandit keeps one
SAFE = "safe"  # whether each arm on offer was safe
CATALOGUE = "catalogue"  # the version of the catalogue: `catalogue.at(version)` has the arms as they were


class Apprentice:
    """A rule that acts, with a share of exploration."""

    def __init__(self, rule: Callable[..., Any], explore: float, seed: int | None) -> None:
        """rule : X (K, d), with disjoint slots (d,), and the mask (K,) or None -> the position of an arm."""
        errors.within("explore", explore, 0, 1)
        if not callable(rule):
            raise TypeError(f"apprentice must be a rule that takes X and a mask and gives a position, got {rule!r}")
        self.rule, self.explore = rule, float(explore)
        self._rng = np.random.default_rng(seed)

    def choose(self, X: np.ndarray, mask: np.ndarray | None, K: int) -> Decision:
        """The rule's arm, or with the share `explore` an arm of those on offer, all alike; with its exact probability.

        Raises ValueError where the rule gives no arm that is on offer.
        """
        on = np.arange(K) if mask is None else np.flatnonzero(mask)
        shown = X.view()
        shown.setflags(write=False)  # what the rule sees is what is stored
        ruled = self.rule(shown, mask)
        place = (
            None if isinstance(ruled, (bool, np.bool_)) or np.ndim(ruled) or not hasattr(ruled, "__index__") else ruled
        )
        if place is None or int(place) not in on:
            raise ValueError(f"the rule must give the position of an arm on offer, one of {on.tolist()}; got {ruled!r}")
        arm = int(on[self._rng.integers(len(on))]) if self._rng.random() < self.explore else int(place)
        p = self.explore / len(on) + (1 - self.explore) * (arm == int(place))
        return Decision(arm, p, "exact", None, None)

    def reseed(self) -> None:
        """Draw from fresh entropy."""
        self._rng = np.random.default_rng()


def probabilities(bandit: Bandit, X: Any, mask: np.ndarray | None, **given: Any) -> list[Any]:
    """The probabilities that a policy gives to the arms on offer, in order; for B requests a list for each.

    given : values and minimum, as for `Bandit.propensities`
    """
    return on_offer(np.asarray(bandit.propensities(X, mask=mask, **given), dtype=np.float64), mask)


def on_offer(numbers: np.ndarray, mask: np.ndarray | None) -> list[Any]:
    """Those numbers (K,) or (B, K) that belong to arms on offer, in order."""
    if mask is None:
        return numbers.tolist()
    on = np.broadcast_to(mask, numbers.shape)
    return numbers[on].tolist() if numbers.ndim == 1 else [row[m].tolist() for row, m in zip(numbers, on, strict=True)]
