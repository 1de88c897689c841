"""What an environment is, for users who write their own. It plays one run at a time, and n rounds of it at once.

    class Mine:
        arms, dim, disjoint = 10, 5, False
        def start(self, rng): ...               # returns what is fixed for a run: θ*, arm sets, an order of rows
        def fill(self, run, rng, out): ...      # writes n contexts into out (n, K, d), or (n, d) with disjoint slots
        def means(self, run, X, more): ...      # returns the expected rewards (n, K); more is what `fill` returned
        def reward_noise(self, rng, n): ...     # returns what is added to the means, (n, K), or None for nothing
        def rewards(self, rng, mean): ...       # or, in its place: returns the rewards (n, K) of these means

Noise and rewards may depend on more: `reward_noise` and `rewards` are told what they name of run, X, mean, more and t,
as in `reward_noise(self, rng, n, X, t)`.

Each method draws from the stream that it is given and from no other, and makes one kind of draw. Then n rounds at once
are the same as n rounds one by one.

More is optional. `simulate` passes `sigma` (the sd of the noise) and `S` (‖θ*‖) to those algorithms whose preset asks
for them (`told`). `delays(rng, n)` says how many rounds late each reward comes. `offered(run, rng, X, more)` says which
arms are on offer (n, K); without it all are. `fill(self, run, rng, out, t)` is told the round t, counted from 1, of the
first of the n contexts. A world that changes with time needs it.

`lockstep = True` in the body of the class itself says that its methods also play R runs at once (`in_lockstep`): what
`rng` draws then has an axis of runs in front, and so have `out`, the means and all else. With `simulate(...,
chance="counter")` such a world is made on the device. All other worlds are asked run by run.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Environment(Protocol):
    """What `simulate` needs of an environment. It needs one of `Noisy` and `Paying` besides."""

    arms: int
    dim: int
    disjoint: bool  # True: one context for K slots; False: features for each arm

    def start(self, rng: np.random.Generator) -> Any:
        """Return what is fixed for one run."""

    @property
    def fill(self) -> Callable[..., Any]:
        """fill(run, rng, out), or fill(run, rng, out, t): write the next n contexts into `out`.

        out is (n, K, d), or (n, d) with disjoint slots. t is the round of the first of them, from 1 on. Return what
        `means` needs besides the contexts, or None.
        """

    def means(self, run: Any, X: np.ndarray, more: Any) -> np.ndarray:
        """Return the expected rewards (n, K) in those contexts; more is what `fill` returned with them."""


@runtime_checkable
class Noisy(Protocol):
    """Rewards are the means, plus noise."""

    @property
    def reward_noise(self) -> Callable[..., Any]:
        """reward_noise(rng, n), and those of `RoundsOfRun` that it names: return the noise of the next n rounds.

        It is (n, K), has the expectation 0 and is added to the means; None for no noise.
        """


@runtime_checkable
class Paying(Protocol):
    """Rewards are drawn from the means. An environment that has `rewards` is not asked for `reward_noise`."""

    @property
    def rewards(self) -> Callable[..., Any]:
        """rewards(rng, mean), and those of `RoundsOfRun` that it names: return the rewards of the next n rounds.

        They are (n, K), and their expectations are `mean` (n, K).
        """


@runtime_checkable
class Offering(Protocol):
    """Not all arms are on offer in all rounds. Policies are told, and regret is measured against the best on offer."""

    def offered(self, run: Any, rng: np.random.Generator, X: np.ndarray, more: Any) -> np.ndarray:
        """Return which arms are on offer in the n rounds X, (n, K) of True and False; at least one in each round."""


class RoundsOfRun(NamedTuple):
    """n rounds of one run, of which noise and rewards may depend on all. It is not to be written into."""

    run: Any  # what `start` returned; in a world that changes, as it was at the start
    X: np.ndarray  # (n, K, d), or (n, d) with disjoint slots
    mean: np.ndarray  # (n, K)
    more: Any  # what `fill` returned with the contexts
    t: int  # the round of the first of them, from 1 on


def noise(env: Any, rng: np.random.Generator, at: RoundsOfRun) -> Any:
    """What `env.reward_noise` gives for these rounds."""
    return told(env.reward_noise, rng, at.mean.shape[-2], at)


def rewards(env: Any, rng: np.random.Generator, at: RoundsOfRun) -> Any:
    """What `env.rewards` gives for these rounds."""
    return told(env.rewards, rng, at.mean, at)


def told(rule: Callable[..., Any], rng: np.random.Generator, first: Any, at: RoundsOfRun) -> Any:
    """Call rule(rng, first, ...) with those parts of the rounds that it names after these two."""
    return rule(rng, first, **{name: getattr(at, name) for name in _names(rule)})


def rounds(env: Any, X: Any) -> int:
    """How many rounds the contexts X are: (..., n, K, d), or (..., n, d) with disjoint slots."""
    return X.shape[-2 if env.disjoint else -3]


def in_lockstep(env: Any) -> bool:
    """Whether the methods take all runs at once, and those of the environment within, if there is one.

    The class itself must say so. A subclass does not inherit it, since one method of its own that takes one run alone
    would make it wrong.
    """
    return vars(type(env)).get("lockstep", False) and (not hasattr(env, "env") or in_lockstep(env.env))


def depends(env: Any) -> bool:
    """Whether the noise or the rewards depend on more than the means."""
    rule = env.rewards if hasattr(env, "rewards") else env.reward_noise
    return bool(_names(rule))


def _names(rule: Callable[..., Any]) -> tuple[str, ...]:
    """The parts of rounds that a rule names behind the two that it always takes, of which one may be `mean`."""
    takes = list(inspect.signature(rule).parameters)[2:]
    return tuple(name for name in RoundsOfRun._fields if name in takes)


def fill(env: Any, run: Any, rng: np.random.Generator, out: np.ndarray, *, t: int) -> Any:
    """Ask for the next n contexts, whether `env.fill` takes the round t or not. -> what `means` needs besides."""
    rule = env.fill
    return rule(run, rng, out, t=t) if _takes_round(getattr(rule, "__func__", rule)) else rule(run, rng, out)


@functools.lru_cache(maxsize=256)
def _takes_round(rule: Callable[..., Any]) -> bool:
    """Whether the function names an argument t. A signature is looked at once."""
    return "t" in inspect.signature(rule).parameters
