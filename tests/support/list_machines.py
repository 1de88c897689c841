"""What state machines share that hold a `Live` against a plain bandit, which learns written lists of batches.

A machine says what each batch leaves (`states`), and which bandit a state is (`made_of`).
"""

import itertools

import numpy as np
from hypothesis.stateful import RuleBasedStateMachine, invariant
from numpy.testing import assert_allclose


class ListMachine(RuleBasedStateMachine):
    """One or two objects on one home: `held`."""

    def __init__(self, place):
        """place : gives the home, and whether several objects can have it."""
        super().__init__()
        self.where, self.several = place()
        self.held, self.number = [], itertools.count()

    def call(self, which, name, *given, **more):
        return self.held[which % len(self.held)].call(name, *given, **more)

    def states(self):
        """What is learnt after each batch, and the rewards that teach."""
        raise NotImplementedError

    def made_of(self, state):
        """A bandit that has learnt nothing, the batches that it is to learn, and x of each lesson, by its row."""
        raise NotImplementedError

    def bandit(self, state, rows):
        """A plain bandit that has learnt the batches of a state."""
        bandit, batches, x = self.made_of(state)
        those = [row for row in rows if row[0] in batches and row[2] is not None]
        first = {id: batch for batch, id, *_ in reversed(rows)}  # the batch of its lesson, whether it is learnt or not
        for batch in batches:
            lesson = {row[1]: row for row in those if row[0] == batch and first[row[1]] == batch}
            if lesson:
                r = [[row[2] for row in those if row[1] == id][-1] for id in lesson]
                bandit.update(np.array([x(row) for row in lesson.values()]), np.array(r))
        return bandit

    @invariant()
    def what_was_learnt_is_what_the_list_teaches(self):
        if not self.held:
            return
        states, rows = self.states()
        for which in range(len(self.held)):
            stands = self.call(which, "stands")
            assert False not in stands["same"].values()
            if stands["same"]:  # else others have erased since
                plain = self.bandit(states[stands["batch"]], rows)
                assert_allclose(stands["theta"], plain.theta, rtol=0, atol=1e-9)
                assert stands["observations"] == plain.observations
