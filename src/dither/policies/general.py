"""Feature perturbation in any class of functions (paper, Algorithm C.1; Section 7.2 for networks: DeepFP).

    x̃_i = x_i + c Σ_t^{1/2} ζ_i,   s_i = f̂(x̃_i)

Σ_t is I/t ("1/t", the paper's example), I ("constant"), diag(s_j²)/t with s_j the sd of feature j in what was learnt
("spread"), a variance, or what a function of t returns: a variance, one for each feature, or a matrix. One variance for
all features makes sense only where all features have one unit. A jitter of 1 is nothing for a column in thousands, and
far too much for a column in hundredths. So standardise the features, or take "spread".

ζ is N(0, I) or uniform in the ball of radius √d: one for each arm, as in the paper's networks, or one for all
(coupled). With slots, ζ moves only the features of the arm's own slot (Appendix H.1.2). mask=False moves all K d
numbers. A tuple of booleans says which features move. The probabilities have no closed form: propensities are Monte
Carlo.

In a linear model s_i = x_i'θ̂ + c ζ_i'Σ_t^{1/2}θ̂. If it is coupled, all arms move alike, and the choice is greedy. That
is why `FeaturePerturbation` moves arm i of a linear model by its width w_i.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from dither.base import arrays, errors
from dither.base.arrays import Array
from dither.noise import Ball, Gaussian

Schedule = Literal["1/t", "constant", "spread"]
SCHEDULES = get_args(Schedule)
LARGEST_VARIANCE = 1e15


class Root(NamedTuple):
    """A square root of c² Σ_t."""

    scale: Any  # a number, or standard deviations (d,) or (..., 1, d)
    matrix: np.ndarray | None = None  # (d, d)  a further factor; None: there is none


@dataclass(frozen=True)
class GeneralFeaturePerturbation:
    """On any model with `mean_at`."""

    Sigma: Schedule | float | Callable[[int], Any] = "1/t"  # Σ_t: a name, a constant variance, or a function of t
    c: float = 1.0  # a factor of the standard deviations
    noise: Gaussian | Ball = Gaussian()
    coupled: bool = False  # one ζ for all arms
    mask: bool | tuple[bool, ...] = True  # what moves: the arm's own features; False: all slots'; or these features
    asks = True  # `scores` asks the model

    def __post_init__(self) -> None:
        if isinstance(self.Sigma, str):
            if self.Sigma not in SCHEDULES:
                raise errors.unknown("Sigma", self.Sigma, names=(*SCHEDULES, "a variance", "a function of t"))
        elif not callable(self.Sigma):
            errors.within("Sigma", self.Sigma, 0, LARGEST_VARIANCE)
        errors.within("c", self.c, 0, 1e7)
        errors.true_or_false("coupled", self.coupled)
        if not isinstance(self.noise, (Gaussian, Ball)):
            raise ValueError(f"noise must be dither.noise.Gaussian() or Ball(), got {self.noise!r}")
        if not isinstance(self.mask, bool):
            if not hasattr(self.mask, "__iter__"):
                raise ValueError(f"mask must be True, False or a boolean for each feature, got {self.mask!r}")
            for kept in self.mask:
                errors.true_or_false("each of mask", kept)
            object.__setattr__(self, "mask", tuple(bool(kept) for kept in self.mask))

    @property
    def needs(self) -> frozenset[str]:
        """What it asks of a model."""
        more = {"spread"} if isinstance(self.Sigma, str) and self.Sigma == "spread" else set()
        return frozenset({"mean", "mean_everywhere" if self.mask is False else "mean_at"} | more)

    def refuse(self, model: Any, *, dim: int) -> str | None:
        """Why it cannot run, though the model has all it needs: `mask` has another length than d; None: it can."""
        if isinstance(self.mask, tuple) and len(self.mask) != dim:
            return f"mask must say for each of {dim} features if it moves, got {len(self.mask)} entries"
        return None

    def draw(self, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
        """Normals g of n requests, of which `scores` makes ζ: float32 (n, K, dim), or (n, 1, dim) if coupled.

        dim : at least d, the number of features that move. A model with K slots may say K d: the first d are used then.
        A ball takes 2 numbers more along the last axis. mask=False draws a block for every slot of each arm.
        """
        shape: tuple[int, ...] = (n, 1 if self.coupled else arms)
        if self.mask is False and isinstance(self.noise, Ball):
            shape += (arms * dim + 2,)  # one ball for the features of all slots
        else:
            shape += ((arms,) if self.mask is False else ()) + (dim + 2 * isinstance(self.noise, Ball),)
        return (rng.standard_normal(shape, dtype=np.float32),)

    def view(self, model, state, X: Array, *, t: int) -> "MovedFeatures":
        """The features and how far they are moved."""
        return MovedFeatures(self, model, state, X, self._scaled(model, state, t, d=X.shape[-1]), model.slots)

    def _scaled(self, model, state, t: int, *, d: int) -> Root:
        if callable(self.Sigma):
            return _root(self.Sigma(t), t, d=d, c=self.c)
        if not isinstance(self.Sigma, str):
            return Root(self.c * math.sqrt(self.Sigma))
        scale = self.c if self.Sigma == "constant" else self.c / math.sqrt(t)
        return Root(scale * model.spread(state)[..., None, :] if self.Sigma == "spread" else scale)


class MovedFeatures(NamedTuple):
    """What there is before chance enters."""

    policy: GeneralFeaturePerturbation
    model: Any
    state: Any
    X: Array
    root: Root
    slots: int | None  # K

    @property
    def numbers(self) -> int:
        """How many numbers one arm takes while it is scored."""
        return self.model.widest

    def scores(self, g: Array) -> Array:
        """f̂(x̃_i): (..., K)."""
        policy, model, state, X, _, slots = self
        xp, step = arrays.namespace(X), self._step(g)
        if policy.mask is False:
            K = step.shape[-2]
            return model.mean_everywhere(state, X, xp.broadcast_to(step, (*step.shape[:-3], K, K, step.shape[-1])))
        step = xp.astype(step, X.dtype, copy=False)  # a sum of two types is slow
        moved = (X if slots is None else X[..., None, :]) + step
        if slots is not None and moved.shape[-2] != slots:  # coupled
            moved = xp.broadcast_to(moved, (*moved.shape[:-2], slots, moved.shape[-1]))
        return model.mean_at(state, moved)

    def redraw(self, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> np.ndarray:
        """The scores (n, K) of n decisions on the view of one request, drawn where it is cheapest."""
        policy, model, state, X, root, slots = self
        cheap = "jittered" in model.abilities and isinstance(policy.noise, Gaussian) and root.matrix is None
        if cheap and policy.mask is True and not policy.coupled and np.any(root.scale):
            one = X if X.ndim > (2 if slots is None else 1) else X[None]
            return model.jittered(state, one, rng, n, scale=root.scale)
        return self.scores(*policy.draw(rng, n, arms=arms, dim=X.shape[-1]))

    def _step(self, g: Array) -> Array:
        """x̃ - x of normals g (..., at least d)."""
        policy, _, _, X, root, slots = self
        xp, d = arrays.namespace(X), X.shape[-1]
        zeta = g[..., :d]
        if isinstance(policy.noise, Ball):  # the first numbers of a point on the sphere in 2 dimensions more
            moved = d * (slots or 1) if policy.mask is False else d
            g = g[..., : moved + 2]
            zeta = g[..., :moved] * (math.sqrt(moved) / xp.sqrt(xp.vecdot(g, g))[..., None])
            if policy.mask is False:
                zeta = xp.reshape(zeta, (*zeta.shape[:-1], slots, d))
        if root.matrix is not None:
            zeta = xp.astype(zeta, X.dtype) @ _like(root.matrix.T, X)
        scale = _like(root.scale, X) if isinstance(root.scale, np.ndarray) else root.scale
        if policy.mask is False and getattr(scale, "ndim", 0) > 1:
            scale = scale[..., None, :]  # of each run, for all blocks
        step = zeta * scale
        if isinstance(policy.mask, tuple):
            step = step * _like(np.asarray(policy.mask, dtype=np.float64), X)
        return step


def _root(Sigma: Any, t: int, *, d: int, c: float) -> Root:
    """c times the square root of what a user's function returned for d features."""
    try:
        Sigma = np.asarray(Sigma, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"Sigma({t}) must return numbers, got {Sigma!r}") from None
    if Sigma.shape not in ((), (d,), (d, d)) or not (np.abs(Sigma) <= LARGEST_VARIANCE).all():
        raise ValueError(
            f"Sigma({t}) must be a variance, one for each feature ({d},), or a matrix ({d}, {d}), all finite and "
            f"at most {LARGEST_VARIANCE:g}; got shape {Sigma.shape}"
        )
    if Sigma.ndim < 2:
        if (Sigma < 0).any():
            raise ValueError(f"Sigma({t}) must not be negative, got {Sigma.min()}")
        return Root(c * (math.sqrt(Sigma) if Sigma.ndim == 0 else np.sqrt(Sigma)))
    if not np.allclose(Sigma, Sigma.T, rtol=1e-8, atol=1e-12 * float(np.abs(Sigma).max())):
        raise ValueError(f"Sigma({t}) must be symmetric, as a matrix of covariances is")
    values, vectors = np.linalg.eigh((Sigma + Sigma.T) / 2)
    if values.min() < -1e-12 * max(values.max(), 0.0):
        raise ValueError(f"Sigma({t}) must be positive semidefinite, got an eigenvalue of {values.min():g}")
    return Root(c, vectors * np.sqrt(np.maximum(values, 0.0)))


def _like(A: np.ndarray, X: Array) -> Array:
    """A in the library of X, on the device of X."""
    return A if type(X) is np.ndarray else arrays.namespace(X).asarray(A, dtype=X.dtype, device=arrays.device(X))
