"""The same calls with the compiled step and without it, side by side."""

import contextlib
import math

import numpy as np

from dither.base import compiled
from dither.deciding import decision


@contextlib.contextmanager
def road(step):
    """Whatever is asked inside is asked of this step; None: of Python alone."""
    before, compiled.STEP = compiled.STEP, step
    try:
        yield step
    finally:
        compiled.STEP = before


class Counting:
    """The step, and how often it was asked and answered."""

    def __init__(self, step=compiled.STEP):
        self.step, self.asked, self.took = step, 0, 0

    def choose(self, *arguments):
        return self._counted(self.step.choose(*arguments))

    def learn(self, *arguments):
        return self._counted(self.step.learn(*arguments))

    def plain(self, *arguments):
        return self.step.plain(*arguments)

    def _counted(self, answer):
        self.asked += 1
        self.took += answer is not None
        return answer


def streams(bandit):
    """Where the streams of a bandit stand, as text."""
    return repr([rng.bit_generator.state for rng in bandit._streams().values()])


@contextlib.contextmanager
def rewound(bandit):
    """The streams are afterwards where they were before."""
    states = [(rng.bit_generator, rng.bit_generator.state) for rng in bandit._streams().values()]
    yield
    for stream, state in states:
        stream.state = state
    bandit.decisions -= 1


def off(bandit, X, arm, mask=None):
    """By how much rounding may move the propensity of an arm of one request, by its two corners."""
    view = decision.view(bandit.policy, bandit._model, bandit.state, X, t=bandit.t)
    lines = decision.lines(view)
    if lines is None or lines.slack is None:
        return 0.0
    m, w, slack = lines.m, lines.w, lines.slack
    error = [np.broadcast_to(part, m.shape) for part in (slack.m + 1e-15 * abs(m), slack.omega * w)]
    sides, on = {-1: (-math.inf, 0.0), 1: (math.inf, 0.0)}, range(len(m)) if mask is None else np.flatnonzero(mask)
    for i in on:
        gain = w[i] - w[arm]
        if i == arm or gain == 0:
            continue
        z, side = (m[arm] - m[i]) / gain, int(np.sign(gain))
        moved = (error[0][i] + error[0][arm] + abs(z) * (error[1][i] + error[1][arm])) / abs(gain)
        if side * z < side * sides[side][0]:
            sides[side] = z, moved
    return 0.4 * sum(moved for _, moved in sides.values())
