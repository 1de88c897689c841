"""The arm of the highest mean, always, or in all choices but a share ε_t that is uniform.

    Greedy      no exploration: every comparison should have it beside those that explore
    EpsGreedy   ε_t = min(1, ε √(T/t)/2), ε = 0.05: the schedule that the paper's curves follow (decay="half");
                ε_t = min(1, ε √(T/t)), the one of its text (decay="text", Appendix H.1.1); constant ε (decay=None)

A policy with `eps` chooses uniformly among the arms on offer with that probability: the mixing is in `decision`.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from dither.base import errors
from dither.base.arrays import Array
from dither.policies import views

Decay = Literal["half", "text"]
DECAYS = get_args(Decay)


@dataclass(frozen=True)
class Greedy:
    """On any model."""

    needs = frozenset({"mean"})
    draw = views.nothing

    def rule(self, model, state, *, t: int, d: int) -> views.LineRule:
        """The means alone."""
        return views.LineRule(score="mean")

    def view(self, model, state, X: Array, *, t: int) -> views.Scores:
        """The means (..., K)."""
        return views.of_rule(self.rule(model, state, t=t, d=X.shape[-1]), model, state, X)


@dataclass(frozen=True)
class EpsGreedy(Greedy):
    """Greedy, with a share ε_t of uniform choices."""

    epsilon: float = 0.05  # ε
    decay: Decay | None = "half"
    horizon: int | None = None  # T; None: t, which makes ε_t constant

    def __post_init__(self) -> None:
        errors.within("epsilon", self.epsilon, 0, 1)
        if self.decay is not None:
            errors.among("decay", self.decay, DECAYS)
        errors.at_least("horizon", self.horizon, 1, or_none=True)

    rule = Greedy.rule  # told by the class itself, since a subclass may see otherwise

    def eps(self, t: int) -> float:
        """ε_t."""
        if self.decay is None:
            return self.epsilon
        half = 2 if self.decay == "half" else 1
        return min(1.0, self.epsilon * math.sqrt((self.horizon or t) / t) / half)
