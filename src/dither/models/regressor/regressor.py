"""Any regressor as the model of rewards: a scikit-learn estimator that is refitted (paper, Algorithm C.1, line 3).

    m_i = f̂(x_i),    f̂ = the estimator, fitted on all observations up to its last fit

A classifier with predict_proba takes rewards 0 and 1, and answers with the probability of class 1. `refit` says when
the estimator is fitted:

    "doubling"     at `first` observations, and whenever there are `factor` times as many as at the last fit; the fits
                   of T rounds then cost little more than two fits on T rows
    n              at `first` observations, and n observations after the last fit
    "request"      when `bandit.refit()` is called, and only then
    partial=True   partial_fit learns the observations since the last fit, by default after every observation

All arms tie before the first fit. They also tie as long as a classifier that is refitted has seen one class only.
"""

import functools
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from dither.base import arrays, errors
from dither.base.arrays import Array
from dither.models import buffers, moments
from dither.models.buffers import BufferRows
from dither.models.model import of_one
from dither.models.regressor import adapter, encoding, fingerprints, observed, suspects, training
from dither.models.regressor.answering import Answering
from dither.models.regressor.encoding import Encoding

Schedule = Literal["doubling", "request"]


class RegressorState(NamedTuple):
    """What is known: shapes (...) are replications, none for one bandit."""

    buffer: BufferRows  # all that was learnt
    seen: np.ndarray  # (...)  rows that the current fit has seen; int64
    key: np.ndarray  # (...)  what seeds of estimators are made of; int64
    moments: Any  # Moments: the spread of each feature, where a policy asked for it
    fitted: training.Fitted

    @property
    def theta(self) -> np.ndarray:
        """No θ: an estimator keeps its own."""
        return np.zeros(0)


@dataclass(frozen=True)
class Regressor(Answering):
    """A scikit-learn estimator, or any object with `fit` and `predict`, for X (..., K, d) or `slots` arms.

    estimator : is copied, never fitted itself
    refit : "doubling", a number of observations or "request"; None: "doubling", with partial=True 1
    factor : of "doubling"
    first : observations before the first fit
    partial : partial_fit with what is new, rather than fit on everything
    slots, encode : K arms that share a context, as `encoding` says: "disjoint" or "index"
    trained : the estimator has been fitted already and answers from the first round on; fits from scratch replace what
        it knows at `first` observations, partial_fit adds to it

    Raises TypeError for what is no estimator, or a classifier without predict_proba.
    """

    estimator: Any
    refit: Schedule | int | None = None
    factor: float = 2.0
    first: int = 1
    partial: bool = False
    slots: int | None = None
    encode: Encoding = "disjoint"
    trained: bool = False
    owns = True  # update takes own=; a classifier takes 0 and 1 alone, which `update` says better than `support`

    def __post_init__(self) -> None:
        for name in ("partial", "trained"):
            errors.true_or_false(name, getattr(self, name))
        adapter.check(self.estimator, partial=self.partial)
        schedule = (1 if self.partial else "doubling") if self.refit is None else self.refit
        if isinstance(schedule, str):
            if schedule not in get_args(Schedule):
                raise errors.unknown("refit", schedule, names=(*get_args(Schedule), "a number of observations"))
        else:
            errors.at_least("refit", schedule, 1)
        errors.positive("factor", self.factor)
        if self.factor <= 1:
            raise ValueError(f"factor must be above 1, got {self.factor!r}")
        errors.at_least("first", self.first, 1)
        encoding.check(self.slots, self.encode)
        object.__setattr__(self, "refit", schedule)
        object.__setattr__(self, "estimator", adapter.fresh(self.estimator, trained=self.trained))

    def bytes(self, dim: int, rounds: int) -> int:
        """About how much memory the rows of one run take after so many rounds."""
        return 8 * 2 * rounds * (dim + 4)

    def together(self, dim: int) -> int:
        """Runs in lockstep gain nothing: each has an estimator of its own."""
        return 1

    def fingerprint(self) -> str:
        """What a file says of the estimator, which it cannot hold, and of the settings here."""
        of = fingerprints.fingerprint(self.estimator, trained=self.trained)
        names = ("refit", "factor", "first", "partial", "slots", "encode")
        return f"Regressor({of}, {', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def check(self, state: RegressorState) -> None:
        """Refuse a state that no data can lead to, as of a file that something else wrote."""
        buffers.check(state.buffer, slots=self.slots, ring=False)
        if np.any(state.seen > state.buffer.count) or np.any(state.key < 0):
            raise ValueError("its fit has seen rows that are not there")
        for i, seen in enumerate(state.seen.reshape(-1)):
            if (observed.ends(state.buffer, i) or [0])[-1] != seen:
                raise ValueError("its last fit is not where its rows say")

    def restored(self, state: RegressorState) -> RegressorState:
        """The state of a file with its estimators fitted again."""
        bare = _unfitted(state)
        for i in range(_runs(bare)):
            training.current(self, bare, i)
        return bare

    def init(
        self, dim: int, *, batch=(), needs=frozenset(), xp=arrays.NUMPY, device=None, rng: Any = None
    ) -> RegressorState:
        """Nothing learnt; rng, a Generator, or with leading axes `batch` (R,) one for each run, seeds estimators."""
        if xp is not arrays.NUMPY:
            raise TypeError("estimators take NumPy arrays: leave device= of simulate out")
        if rng is None:
            raise TypeError("a Regressor has slots of its own: Regressor(..., slots=K) rather than Disjoint(..., K)")
        key = np.array([g.integers(2**62) for g in rng]) if batch else np.array(rng.integers(2**62))
        buffer = buffers.init(batch, dim, slots=self.slots is not None, ended=True)
        more = moments.init(batch, dim) if "spread" in needs else None
        return _unfitted(RegressorState(buffer, np.zeros(batch, np.int64), key, more, training.Fitted([], [])))

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
        """Nothing: all seeds are made of the one number drawn at the beginning."""
        return ()

    def update(
        self, state: RegressorState, x: Array, r: Array, *, own: bool = False, chance=(), **settings: Any
    ) -> Any:
        """One more observation: x (..., d), r (...), arm=None (...) with slots, weight=None (...).

        own : the caller gives the old state up: rows are added in place and partial_fit works on its estimator

        Raises ValueError where the estimator cannot be fitted, or cannot answer then. Nothing is learnt; with own=True
        rows of before that spoil the fit get weight 0 in the old state, so that later fits work (`suspects`).
        """
        each = {name: None if A is None else np.asarray(A) for name, A in settings.items()}
        return of_one(functools.partial(self.update_many, state), np.asarray(x), np.asarray(r), each, own=own)

    def update_many(
        self,
        state: RegressorState,
        X: Array,
        r: Array,
        *,
        arm: Array | None = None,
        weight: Array | None = None,
        own: bool = False,
        chance: tuple = (),
    ) -> RegressorState:
        """n observations in each run: X (..., n, d), r, arm, weight (..., n). The same fits as one by one."""
        r = np.asarray(r, np.float64)
        weight = np.ones_like(r) if weight is None else np.asarray(weight, np.float64)
        self._takes(r, weight)
        count = state.buffer.count
        new = state._replace(buffer=observed.extended(state.buffer, X, r, weight, arm, own=own))
        estimators, seen, touched = [], training.numbers(state.seen), []
        try:
            for i, last in enumerate(training.numbers(new.buffer.count)):
                due = training.due(self, new, i, last - r.shape[-1])
                estimator = training.current(self, state, i)
                if due and self.partial and own:
                    touched.append(i)
                elif due and self.partial:
                    estimator = adapter.fresh(estimator, trained=True)
                estimators.append(training.fitted(self, new, i, estimator, due))
                if due:
                    observed.marked(new.buffer, i, due)
                    seen[i] = due[-1]
        except BaseException as reason:
            for j in touched:
                state.fitted.seen[j] = -1  # it may have learnt a part: it is made again where it is asked next
            try:
                if own and isinstance(reason, ValueError):
                    W = suspects.spoiling(self, new, i, due, first=training.numbers(count)[i])
                    if W.size:
                        raise suspects.left_out(state, i, W, reason=reason) from reason
                raise
            finally:
                observed.forget(new.buffer, count)
        more = None if state.moments is None else moments.update_many(state.moments, X, weight)
        fitted = training.Fitted(estimators, seen, before=None if own else state.fitted)
        return new._replace(seen=np.reshape(seen, state.seen.shape), moments=more, fitted=fitted)

    def refitted(self, state: RegressorState) -> RegressorState:
        """The state fitted on all rows now. Raises ValueError where that fails; rows are left out as in `update`."""
        buffer = state.buffer._replace(ended=state.buffer.ended.copy())
        estimators, seen = [], training.numbers(state.seen)
        for i in range(_runs(state)):
            count = training.numbers(state.buffer.count)[i]
            if count == 0 or (due := training.able(self, state, i)) is None or due > count:
                kind = " of one class" if count and adapter.classifies(self.estimator) else ""
                raise ValueError(
                    f"there is nothing to fit {adapter.title(self.estimator)} on: {count} observations{kind}"
                )
            estimator = training.current(self, state, i)
            if count > seen[i]:
                estimator = adapter.fresh(estimator, trained=True) if self.partial else None
                try:
                    estimator, seen[i] = training.fitted(self, state, i, estimator, [count]), count
                except ValueError as reason:
                    W = suspects.spoiling(self, state, i, [count])
                    weighted = np.count_nonzero(observed.run(state.buffer, i).weight)
                    if W.size in (0, weighted):  # all: there may be too few
                        raise
                    raise suspects.left_out(state, i, W, reason=reason) from reason
                observed.marked(buffer, i, [count])
            estimators.append(estimator)
        fitted = training.Fitted(estimators, seen)
        return state._replace(buffer=buffer, seen=np.reshape(seen, state.seen.shape), fitted=fitted)

    def answers(self, state: RegressorState, X: np.ndarray, *, slots: int | None) -> np.ndarray:
        """f̂ of rows (..., K, d), with one call of predict for each run: (..., K)."""
        how = {"slots": slots, "encode": self.encode}
        if state.seen.ndim == 0:
            return _answers(training.current(self, state, 0), X, **how)
        return np.stack([_answers(training.current(self, state, i), X[i], **how) for i in range(len(state.seen))])

    def _takes(self, r: np.ndarray, weight: np.ndarray) -> None:
        """Raise ValueError for rewards and weights that the estimator cannot learn."""
        name = adapter.title(self.estimator)
        if adapter.classifies(self.estimator) and not np.all((r == 0) | (r == 1)):
            wrong = r[(r != 0) & (r != 1)].flat[0]
            raise ValueError(
                f"r must be 0 or 1, the classes of {name}; got {wrong:g}: take a regressor for such rewards"
            )
        wrong = weight[(weight != 0) & (weight != 1)]
        if wrong.size and not adapter.weighs(self.estimator, partial=self.partial):
            raise ValueError(
                f"weight must be 0 or 1 for {name}, whose fit takes no sample_weight; got {wrong.flat[0]:g}"
            )


def _answers(estimator: Any, X: np.ndarray, **how: Any) -> np.ndarray:
    """f̂ of rows (..., K, d) -> (..., K); 0 for all before the first fit."""
    if estimator is None:
        return np.zeros(X.shape[:-1])
    return encoding.asked(lambda block: adapter.answer(estimator, block), X, **how)


def _runs(state: RegressorState) -> int:
    """The number of replications; 1 for one bandit."""
    return int(state.seen.size)


def _unfitted(state: RegressorState) -> RegressorState:
    """The state without estimators: each is made when it is asked."""
    R = _runs(state)
    return state._replace(fitted=training.Fitted([None] * R, [-1] * R))
