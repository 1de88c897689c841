"""What a bandit is taught: features, rewards, slots, weights and times, checked once (`inputs`)."""

from typing import Any

import numpy as np

from dither.deciding.inputs import LARGEST, features, finite, numbers, plain, whole
from dither.models import adapting
from dither.models.model import Model, link

EVERY = (-np.inf, np.inf)  # the support of rewards that may be any number


def observation(
    model: Model, x: Any, r: Any, *, arm: Any, weight: Any, at: Any, dim: int, columns: tuple[str, ...] | None
) -> tuple[np.ndarray, np.ndarray | np.float64, dict[str, Any], tuple[str, ...] | None]:
    """Check one observation or n. -> x, r, the other arguments of the model's `update`, the column names."""
    if weight is None and at is None and arm is None and type(x) is np.ndarray:
        usual = model.slots is None and model.half_life is None and model.support == EVERY  # x and any reward
        if usual and isinstance(r, float) and abs(r) < LARGEST and plain(x, 1, dim):
            return x, np.float64(r), {}, columns
    X, columns = features(x, name="x", dim=dim, columns=columns)
    if X.ndim > 2:
        raise ValueError(f"x must be ({dim},) or (n, {dim}), got {X.shape}")
    finite(X, name="x")
    r = rewards(r, X.shape[:-1])
    supported(r, model)
    more: dict[str, Any] = {}
    if weight is not None:
        adapting.weighs(model)
        more["weight"] = weights(weight, X.shape[:-1], most=model.heaviest)
    if at is not None or model.half_life is not None:
        more["at"] = times(at, X.shape[:-1], model)
    if model.slots is None and arm is None:
        return X, r, more, columns
    if model.slots is None:
        raise ValueError("arm is for disjoint slots alone; here x is the features of the arm that was shown")
    if arm is None:
        raise ValueError("arm must say which slot was shown: update(x, r, arm=decision.arm)")
    more["arm"] = whole(arm, name="arm", below=model.slots, shape=X.shape[:-1])
    return X, r, more, columns


def times(at: Any, shape: tuple[int, ...], model: Model) -> np.ndarray | np.float64:
    """The times of observations, a number or one for each. Raises TypeError where the model has no clock, or no at."""
    if model.half_life is None:
        raise TypeError(f"{type(model).__name__} has no clock, so it takes no at=: leave it out, or set half_life=")
    if at is None:
        raise TypeError(
            "a model with half_life= forgets by the clock: pass at=, the time of the observation, in the units of "
            "half_life; discount= counts observations and needs no time"
        )
    at = numbers(at, name="at")
    finite(at, name="at")
    if at.ndim and at.shape != shape:
        raise ValueError(f"at must be a number or of shape {shape}, got {at.shape}")
    return np.float64(at) if not shape else np.broadcast_to(at, shape)


def rewards(r: Any, shape: tuple[int, ...]) -> np.ndarray | np.float64:
    """Rewards of a given shape as float64."""
    if not shape and isinstance(r, float) and abs(r) < LARGEST:  # the usual case
        return np.float64(r)
    r = numbers(r, name="r")
    if r.shape != shape:
        wanted = f"({shape[0]},), one for each row of x" if shape else "a single number, as x is one arm"
        raise ValueError(f"r must be {wanted}; got shape {r.shape}")
    finite(r, name="r", axes=("row",) if shape else ())
    return r


def supported(r: np.ndarray | np.float64, model: Model) -> None:
    """Raise ValueError for rewards that the model's link cannot have."""
    low, high = model.support
    if low == -np.inf and high == np.inf:
        return
    wrong = (r < low) | (r > high)
    if not np.any(wrong):
        return
    where = f" at row {int(np.argmax(wrong))} ({int(np.sum(wrong))} such values)" if np.ndim(r) else ""
    what = f"not be below {low:g}" if high == np.inf else f"lie in [{low:g}, {high:g}]"
    value = float(np.ravel(r)[np.argmax(wrong)])
    raise ValueError(
        f"r must {what}, where rewards of the {link(model).name} link are; got {value!r}{where}: "
        f"rescale the rewards or choose another link"
    )


def weights(weight: Any, shape: tuple[int, ...], *, most: float) -> np.ndarray:
    """Weights of a given shape. Raises ValueError where one is negative or above `most`."""
    weight = numbers(weight, name="weight")
    if weight.shape not in (shape, ()):
        raise ValueError(f"weight must have shape {shape} or be one number, got {weight.shape}")
    finite(weight, name="weight", axes=("row",) if weight.ndim else ())
    if np.any(weight < 0):
        raise ValueError(f"weight must not be negative, got {weight.min()}")
    if np.any(weight > most):
        raise ValueError(
            f"weight must be at most {most:g} for this model, got {weight.max():g}: scale the weights down"
        )
    return np.broadcast_to(weight, shape)
