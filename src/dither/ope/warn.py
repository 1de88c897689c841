"""What an estimate warns of: each class is one way in which a log fails to answer the question."""


class EvaluationWarning(UserWarning):
    """The log does not carry the estimate; the message says why and what cures it."""


class SupportWarning(EvaluationWarning):
    """The new policy plays arms that the log could not show: no weighting tells their value."""


class WeightWarning(EvaluationWarning):
    """A few rows carry the estimate."""


class DriftWarning(EvaluationWarning):
    """The weighted rewards change over time, so their mean is of no one moment."""


class EventWarning(EvaluationWarning):
    """Few rewards differ from the others, so that the spread of the rows tells little of the error."""
