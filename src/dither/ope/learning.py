"""Learning a policy from a log, by doubly robust scores.

    Γ_ik = M_ik + 1{a_i = k} (r_i - M_ik)/p_i       the DR score of arm k in row i; E[Γ_ik | X_i] = E[r | x_ik]
    ĝ    = regression of Γ_ik on x_ik               all n K scores
    π(X) = argmax_k ĝ(x_k)

M is cross-fitted: M_i comes from a model that never saw row i. So with exact propensities the scores are unbiased for
every model (Dudík, Langford, Li, "Doubly robust policy evaluation and learning", ICML 2011, Section 3; Athey,
Wager, "Policy learning with observational data", Econometrica 2021, Section 2.1, for the argmax over cross-fitted
scores). The regression gives a policy for contexts that the log does not have.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.base import arrays, errors
from dither.deciding import inputs
from dither.ope.choosing import Candidate, ChosenC, choose_c, effective
from dither.ope.fitting import cross_fit, fitted, sklearn
from dither.ope.rows import ArmRows, with_arms

__all__ = ["Candidate", "ChosenC", "OffPolicy", "choose_c", "effective", "fit"]

FOLDS = 5


@dataclass(frozen=True, eq=False)
class OffPolicy:
    """The policy that `fit` learnt: it shows the arm with the highest ĝ(x)."""

    regressors: tuple[Any, ...]  # fitted; one for all arms, or one for each
    dim: int
    clipped: int = 0  # rows of the log whose weight 1/p was cut

    def scores(self, X: Any) -> np.ndarray:
        """ĝ, an estimate of the expected reward: X (..., K, d) -> (..., K)."""
        X, _ = inputs.features(X, name="X", dim=self.dim, columns=None)
        if X.ndim < 2 or (len(self.regressors) > 1 and X.shape[-2] != len(self.regressors)):
            arms = len(self.regressors) if len(self.regressors) > 1 else "K"
            raise ValueError(f"X must be (n, {arms}, {self.dim}) or ({arms}, {self.dim}); got {X.shape}")
        inputs.finite(X, name="X")
        return _predicted(self.regressors, X)

    def probabilities(self, X: Any, *, mask: Any = None) -> np.ndarray:
        """1 for the best arm; arms that tie share it: X (..., K, d) -> (..., K). mask (..., K), True: on offer."""
        s = self.scores(X)
        return arrays.share(s, mask=None if mask is None else inputs.offered(mask, shape=s.shape))

    def choose(self, X: Any, *, mask: Any = None, rng: np.random.Generator | None = None) -> Any:
        """The best arm: (n, K, d) -> (n,), (K, d) -> int. rng breaks ties, which trees have often; None: fresh."""
        s = self.scores(X)
        offered = None if mask is None else inputs.offered(mask, shape=s.shape)
        u = np.asarray((rng or np.random.default_rng()).random(s.shape[:-1]))
        arm = arrays.argmax(s, u=u, mask=offered)
        return int(arm) if s.ndim == 1 else arm


def fit(
    r: Any,
    a: Any,
    p: Any,
    X: Any,
    *,
    regressor: Any = None,
    policy_regressor: Any = None,
    per_arm: bool = False,
    folds: int = FOLDS,
    clip: float | None = None,
    mask: Any = None,
    seed: int = 0,
    weight: Any = None,
) -> OffPolicy:
    """A policy from a log: argmax of a regression of cross-fitted DR scores (see the module).

    Parameters
    ----------
    r, a, p : (n,) rewards, arms shown, and their logged propensities
    X : (n, K, d) the arms on offer
    regressor : any scikit-learn regressor, for M; None: ridge regression with an intercept
    policy_regressor : the same for ĝ; None: as `regressor`
    per_arm : a regressor of its own for each arm, for arms that are the same in every row; each must have been shown
    clip : weights 1/p above it are cut to it, which biases the scores. `OffPolicy.clipped` counts the rows
    mask : (n, K), True: on offer
    folds, seed : those of the cross-fitting
    weight : (n,) how many rows of the traffic each row stands for; None: 1. Both regressions weight their rows by it
        (`sample_weight`), since they minimise the average loss over the traffic. Weights are divided by their mean, so
        a factor common to all changes nothing

    Evaluate the policy on rows that it did not learn from: on its own log it looks better than it is.

    Raises ValueError for propensities outside (0, 1], an arm off offer and wrong shapes, naming rows; ImportError
    without scikit-learn.
    """
    rows = with_arms(r, a, p, X, mask, weight).standing()
    n, K, d = rows.X.shape
    errors.at_least("folds", folds, 2)
    if n < 2 * folds:
        raise ValueError(f"cross-fitting in {folds} folds needs at least {2 * folds} rows, got {n}: pass fewer folds")
    outcome, arms = _regressor(regressor), K if per_arm else 0
    number = np.broadcast_to(np.arange(K, dtype=float)[:, None], (n, K, 1))  # of the arm, for a regressor of its own
    model, features = (_PerArm(outcome, K), np.concatenate([rows.X, number], axis=2)) if per_arm else (outcome, rows.X)
    s = None if rows.s is None else rows.s / np.mean(rows.s)
    M = cross_fit(rows.r, rows.a, features, arms=K, regressor=model, folds=folds, seed=seed, weight=s)
    inverse, clipped = 1 / rows.p, 0
    if clip is not None:
        errors.positive("clip", clip)
        clipped, inverse = int(np.sum(inverse > clip)), np.minimum(inverse, clip)
    scores = dr_scores(rows, M, inverse)
    final = outcome if policy_regressor is None else _regressor(policy_regressor)
    row, arm = np.nonzero(rows.mask)
    s = None if rows.s is None else rows.s[row]
    trained = _trained(final, rows.X[row, arm], scores[row, arm], arm, arms=arms, s=s)
    return OffPolicy(trained, dim=d, clipped=clipped)


def dr_scores(rows: ArmRows, M: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """Γ (n, K): M (n, K), corrected for the arm shown by its reward. inverse (n,) : 1/p."""
    place, scores = np.arange(len(rows.a)), M.copy()
    scores[place, rows.a] += inverse * (rows.r - M[place, rows.a])
    return scores


@dataclass
class _PerArm:
    """A regressor for each arm; the last feature is the number of the arm. scikit-learn's `clone` can copy it."""

    regressor: Any
    arms: int

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        return {"regressor": self.regressor, "arms": self.arms}

    def fit(self, x: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> "_PerArm":
        self.each = _trained(self.regressor, x[:, :-1], y, x[:, -1].astype(int), arms=self.arms, s=sample_weight)
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        every = x.reshape(-1, self.arms, x.shape[1])  # rows come with all their arms, in order
        return _predicted(self.each, every[..., :-1]).reshape(-1)


def _trained(
    regressor: Any, x: np.ndarray, y: np.ndarray, arm: np.ndarray, *, arms: int, s: np.ndarray | None
) -> tuple[Any, ...]:
    """Fitted copies: one for all, or one for each of `arms`; s (n,) weights of the rows, or None."""

    def learnt(keep: Any) -> Any:
        return fitted(regressor, x[keep], y[keep], None if s is None else s[keep] / np.mean(s))

    if not arms:
        return (learnt(slice(None)),)
    counts = np.bincount(arm, minlength=arms)
    if np.any(counts < 2):
        rare = int(np.argmin(counts))
        raise ValueError(
            f"per_arm=True needs at least two rows of each arm outside every fold; arm {rare} has {counts[rare]}: "
            f"pass fewer folds, leave the arm out of X, or per_arm=False"
        )
    return tuple(learnt(arm == k) for k in range(arms))


def _predicted(regressors: tuple[Any, ...], X: np.ndarray) -> np.ndarray:
    """X (..., K, d) -> (..., K)."""
    if len(regressors) == 1:
        return regressors[0].predict(X.reshape(-1, X.shape[-1])).reshape(X.shape[:-1])
    each = [one.predict(X[..., k, :].reshape(-1, X.shape[-1])) for k, one in enumerate(regressors)]
    return np.stack(each, axis=-1).reshape(X.shape[:-1])


def _regressor(regressor: Any) -> Any:
    linear = sklearn("linear_model")
    if regressor is None:
        return linear.Ridge(alpha=1.0)
    if isinstance(regressor, type) or not (hasattr(regressor, "fit") and hasattr(regressor, "predict")):
        raise TypeError(
            f"regressor must be a scikit-learn regressor, an instance with fit and predict; got {regressor!r}"
        )
    return regressor
