"""One decision: what any policy does with its view and its chance, alone or for many requests at once.

A policy is a frozen dataclass with
    needs                                    the abilities it asks of a model, by name
    draw(rng, n, *, arms, dim) -> arrays     the chance of n requests, each array with n leading; nothing else draws
    view(model, state, X, *, t) -> view      what it sees before chance enters
    scores(view, *chance) -> (..., K)        the arm of the highest score is shown
and, where it has them,
    eps(t) -> float                          the share of uniform choices in round t
    best(view, *chance, u=, mask=) -> (...)  the arms shown, u deciding among tied ones (else: the highest score)
    in_turn(view, *chance, u=, mask=)        the k arms of a list in order, u (..., k) -> (..., k) (else: by score)
    propensities(view, mask=) -> (..., K)    exact choice probabilities (else: Monte Carlo)
    chosen(view, arm, mask=) -> (...)        the same for one arm, cheaper
    decide(view, *chance, u=, mask=) -> arm, p      both for one request, quicker still
    redraw(view, rng, n, *, arms, dim)       the scores of n decisions on one request, where that is cheaper
    asks = True                              its scores ask the model, which may refuse what was drawn
    spent = True                             its chance is spent in training: no propensity
log_propensities(view, mask=)            the logarithms of the exact probabilities (else: of what underflows, -inf)
z(view, *chance) -> (...) or (..., K)    the scalar that moved all arms, or one for each
as_lines(view) -> lines, law, or None    the lines m + z w that one z of that law moves, where there is one
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from dither import arrays, errors
from dither.arrays import Array

WHOLE = 1e-6  # how far from 1 probabilities may sum
UNIFORMS = 3  # a request spends: the tie-break, the coin of eps, the arm if it falls
TOGETHER = 1000  # decisions of one request that are ranked at once
BLOCK = 2**24  # numbers that are drawn at once for them


def check(policy: Any, model: Any) -> None:
    """Refuse what is no policy, and a policy that asks for what the model does not give."""
    if isinstance(policy, type):
        raise TypeError(f"a policy is an instance: pass {policy.__name__}() for {policy.__name__}")
    lacking = [name for name in ("needs", "draw", "view", "scores") if not hasattr(policy, name)]
    if lacking:
        raise TypeError(f"{type(policy).__name__} is no policy: it lacks {', '.join(lacking)}")
    for ability in sorted(policy.needs - model.abilities):
        raise errors.lacks(model, ability, policy=policy)


def given_up(model: Any) -> dict[str, bool]:
    """What to pass to a model's update where nobody keeps the old state: own=True, if the model `owns` its states."""
    return {"own": True} if getattr(model, "owns", False) else {}


def begin(model: Any, dim: int, *, needs: frozenset[str], rng: Any, **settings: Any) -> Any:
    """The first state of a model; one that `draws` gets its chance, a Generator or one for each run, from rng()."""
    chance = {"rng": rng()} if draws(model) else {}
    return model.init(dim, needs=needs, **settings, **chance)


def draws(model: Any) -> bool:
    """Whether a model has chance of its own: where its weights begin, in what it trains on."""
    return hasattr(model, "draw")


def knowable(policy: Any) -> bool:
    """Whether drawing decisions again shows their probabilities; not where the chance was spent in training."""
    return not getattr(policy, "spent", False)


def draw(policy: Any, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
    """What the policy draws for n requests, which must be a tuple: an array would be taken for one."""
    chance = policy.draw(rng, n, arms=arms, dim=dim)
    if type(chance) is not tuple or [kind for kind in chance if len(kind) != n]:
        name = type(policy).__name__
        raise TypeError(f"{name}.draw must return a tuple of arrays with {n} entries each, as in 'return (z,)'")
    return chance


def eps(policy: Any, t: int, *, floor: float = 0.0) -> float:
    """The share of uniform choices in round t, the policy's own and the floor together."""
    own = policy.eps(t) if hasattr(policy, "eps") else 0.0
    return own + floor * (1 - own)


def choose(policy: Any, view: Any, chance: tuple, u: Array, *, eps: float, mask: Array | None = None) -> Array:
    """The arms shown: chance as `draw` gave it, u (..., 3) uniforms, mask (..., K). -> (...) integers"""
    arm = best(policy, view, chance, u[..., 0], mask=mask)
    if not (eps and arrays.some(u[..., 1] < eps)):
        return arm
    return mixed(arm, u, eps=eps, arms=policy.scores(view, *chance).shape[-1], mask=mask)


def decide(
    policy: Any, view: Any, chance: tuple, u: np.ndarray, *, eps: float, arms: int, mask: np.ndarray | None
) -> tuple[int, float] | None:
    """The arm of one request and its probability at once, u (3,); None where that takes the general way."""
    if not hasattr(policy, "decide") or (eps and u[1] < eps):
        return None
    arm, p = policy.decide(view, *chance, u=u[0], mask=mask)
    return (arm, (1 - eps) * p + eps / (arms if mask is None else np.count_nonzero(mask))) if eps else (arm, p)


def best(policy: Any, view: Any, chance: tuple, u: Array, *, mask: Array | None) -> Array:
    """The arms that the policy itself shows: u (...) for ties. -> (...) integers"""
    if hasattr(policy, "best"):
        return policy.best(view, *chance, u=u, mask=mask)
    return arrays.argmax(policy.scores(view, *chance), u=u, mask=mask)


def mixed(arm: Array, u: Array, *, eps: float, arms: int, mask: Array | None) -> Array:
    """The arms shown, of which a share eps is any arm on offer: arm (...), u (..., 3)."""
    if not eps:
        return arm
    fallen = u[..., 1] < eps
    if not arrays.some(fallen):
        return arm
    xp = arrays.namespace(u)
    other = xp.astype(xp.floor(u[..., 2] * arms), xp.int64) if mask is None else arrays.nth(mask, u[..., 2])
    return xp.where(fallen, other, arm)


def z(policy: Any, view: Any, chance: tuple) -> Any:
    """The scalar that moved the arms, (...) or a number; (..., K) where each has one; None where there is none."""
    return policy.z(view, *chance) if hasattr(policy, "z") else None


def plain(z: Any) -> Any:
    """A number as a float, an array as it is."""
    return float(z) if z is not None and np.ndim(z) == 0 else z


def exact(policy: Any) -> bool:
    """Whether the policy knows its choice probabilities."""
    return hasattr(policy, "propensities")


def propensities(policy: Any, view: Any, *, eps: float, shape: tuple[int, ...], mask=None) -> np.ndarray:
    """The probabilities of all arms (..., K) of a policy that is `exact`; shape (..., K)."""
    p = _whole(policy, policy.propensities(view, mask=mask))
    return (1 - eps) * p + eps * uniform(shape, mask) if eps else p


def log_propensities(policy: Any, view: Any, *, eps: float, shape: tuple[int, ...], mask=None) -> np.ndarray:
    """The logarithms of the probabilities of all arms (..., K) of a policy that is `exact`; shape (..., K)."""
    if hasattr(policy, "log_propensities"):
        p = policy.log_propensities(view, mask=mask)
    else:
        p = log(policy.propensities(view, mask=mask))
    return np.logaddexp(p + log(1 - eps), log(eps * uniform(shape, mask))) if eps else p


def log(p: Any) -> np.ndarray:
    """The logarithm; -inf of 0."""
    with np.errstate(divide="ignore"):
        return np.log(p)


def chosen(policy: Any, view: Any, arm: np.ndarray, *, eps: float, shape: tuple[int, ...], mask=None) -> np.ndarray:
    """The probability of `arm` (...) of a policy that is `exact`; shape (..., K)."""
    if hasattr(policy, "chosen"):
        p = policy.chosen(view, arm, mask=mask)
    else:
        p = arrays.pick(_whole(policy, policy.propensities(view, mask=mask)), arm, rank=0)
    if not eps:
        return p
    return (1 - eps) * p + eps * arrays.pick(uniform(shape, mask), arm, rank=0)


def _whole(policy: Any, p: np.ndarray) -> np.ndarray:
    """p (..., K), refused where it is no distribution: a policy of one's own would be believed."""
    total = np.sum(p, axis=-1)
    if not np.all(np.abs(total - 1) < WHOLE):
        wrong = float(np.ravel(total)[np.argmax(~(np.abs(np.ravel(total) - 1) < WHOLE))])
        raise ValueError(
            f"{type(policy).__name__}.propensities must sum to 1 over the arms on offer, got a sum of {wrong:g}: "
            f"divide by it"
        )
    return p


def uniform(shape: tuple[int, ...], mask: np.ndarray | None) -> np.ndarray:
    """1/(number on offer) for the arms on offer, (..., K)."""
    return np.full(shape, 1 / shape[-1]) if mask is None else mask / np.sum(mask, axis=-1, keepdims=True)


def offered(shape: tuple[int, ...], mask: np.ndarray | None) -> np.ndarray:
    """How many arms are on offer, (...)."""
    return np.full(shape[:-1], shape[-1]) if mask is None else np.sum(mask, axis=-1)


def frequencies(policy: Any, view: Any, rng, *, n: int, arms: int, dim: int, mask=None, eps: float = 0.0) -> np.ndarray:
    """How often n decisions of one request show each arm, (K,) of counts; eps: the share of uniform choices."""
    counts = np.zeros(arms)
    for s in again(policy, view, rng, n=n, arms=arms, dim=dim, redraw=hasattr(policy, "redraw")):
        allowed = None if mask is None else np.broadcast_to(mask, s.shape)
        u = rng.random((len(s), UNIFORMS))
        arm = mixed(arrays.argmax(s, u=u[..., 0], mask=allowed), u, eps=eps, arms=arms, mask=allowed)
        counts += np.bincount(arm, minlength=arms)
    return counts


def again(
    policy: Any, view: Any, rng: np.random.Generator, *, n: int, arms: int, dim: int, redraw: bool
) -> Iterator[Array]:
    """The scores of n decisions of one request, as many together as memory allows: (., K).

    Only so many numbers as fit a `BLOCK` are drawn at once. The uniforms that the caller takes from the same stream
    come after the scores of all that are together, so the blocks change no number.
    """
    together, block = min(TOGETHER, max(1, BLOCK // arms)), max(1, BLOCK // _numbers(policy, view, arms=arms, dim=dim))
    for start in range(0, n, together):
        stop = min(n, start + together)
        sizes = [min(block, stop - first) for first in range(start, stop, block)]
        if redraw:
            yield np.concatenate([policy.redraw(view, rng, k, arms=arms, dim=dim) for k in sizes])
        else:
            drawn = (draw(policy, rng, k, arms=arms, dim=dim) for k in sizes)
            yield np.concatenate([policy.scores(view, *chance) for chance in drawn])


def _numbers(policy: Any, view: Any, *, arms: int, dim: int) -> int:
    """How many numbers one decision takes: those drawn, once for each arm they move, or a hidden layer of all arms."""
    drawn = draw(policy, np.random.Generator(np.random.SFC64(0)), 1, arms=arms, dim=dim)  # a stream of no account
    moved = sum(np.size(kind) * (arms if np.shape(kind)[1:2] == (1,) else 1) for kind in drawn)
    return max(moved, arms * max(getattr(getattr(view, "model", None), "hidden", ()), default=1))
