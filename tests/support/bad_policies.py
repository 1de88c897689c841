"""Policies that break a rule of `dither.testing`, one for each check."""

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import special, stats

from dither.policies.views import Lines


class Seen(NamedTuple):
    m: Any
    temperature: float

    def scores(self, noise):
        return self.m + self.temperature * noise

    def propensities(self, *, mask=None):
        return special.softmax(np.where(True if mask is None else mask, self.m, -np.inf) / self.temperature, axis=-1)


@dataclass(frozen=True)
class Softmax:
    temperature: float = 0.5
    needs = frozenset({"mean"})

    def draw(self, rng, n, *, arms, dim):
        return (rng.gumbel(size=(n, arms)),)

    def view(self, model, state, X, *, t):
        return Seen(model.mean(state, X), self.temperature)


class TwoCalls(Softmax):
    def draw(self, rng, n, *, arms, dim):
        return (rng.gumbel(size=(n, arms)) + rng.random((n, 1)),)


class NoTuple(Softmax):
    def draw(self, rng, n, *, arms, dim):
        return rng.gumbel(size=(n, arms))


def seeing(**methods):
    """Softmax with another view: methods of the view by name."""
    kind = type("Other", (Seen,), methods)

    class Broken(Softmax):
        def view(self, model, state, X, *, t):
            return kind(model.mean(state, X), self.temperature)

    return Broken


def drawn_again(self, *, mask=None):
    p = Seen.propensities(self, mask=mask) * np.random.default_rng().uniform(0.9, 1, self.m.shape)
    return p / p.sum(axis=-1, keepdims=True)


def hotter(self, *, mask=None):  # T7: said .206, drawn .088
    return Seen(self.m, 2 * self.temperature).propensities(mask=mask)


def by_place(self, noise):
    return Seen.scores(self, noise) + 0.5 * np.arange(self.m.shape[-1])


def place_known(self, *, mask=None):
    return Seen(self.m + 0.5 * np.arange(self.m.shape[-1]), self.temperature).propensities(mask=mask)


def first(self, noise, *, u, mask=None):
    return np.argmax(np.where(True if mask is None else mask, self.m, -np.inf), axis=-1) + 0 * u.astype(int)


def halved(self, *, mask=None):
    with np.errstate(divide="ignore"):
        return np.log(self.propensities(mask=mask)) - np.log(2)


def by_number(self, noise, *, u, mask=None):
    left = np.broadcast_to(True if mask is None else mask, (*u.shape[:-1], self.m.shape[-1]))
    return np.argsort(~left, axis=-1, kind="stable")[..., : u.shape[-1]]


def none_masked(self, noise, *, u, mask=None):
    return np.argmax(self.scores(noise), axis=-1)


def by_batch(self, noise):
    return self.m + self.temperature * noise * (1 + np.std(self.m[..., 0]))


def by_rank(self, noise):
    return self.m + (self.temperature if self.m.ndim == 1 else 3 * self.temperature) * noise


def of_numpy(self, noise, *, u, mask=None):
    arm = np.argmax(self.scores(noise))
    return arm, self.propensities(mask=mask)[arm]


class Drawn(NamedTuple):
    m: Any

    def scores(self, noise):  # another law where few are drawn at once
        return self.m + (0.0 if len(noise) == 400 else 0.5) * noise


class FewAreGreedy(Softmax):
    def view(self, model, state, X, *, t):
        return Drawn(model.mean(state, X))


class Writes(Softmax):
    def view(self, model, state, X, *, t):
        state.theta[...] += 1e-9
        return super().view(model, state, X, t=t)


class Remembers(Softmax):
    asked: ClassVar[Any] = None

    def view(self, model, state, X, *, t):
        object.__setattr__(self, "asked", t)
        return super().view(model, state, X, t=t)


class Counts(Softmax):
    seen: ClassVar[int] = 0

    def view(self, model, state, X, *, t):
        type(self).seen += 1
        return super().view(model, state, X, t=t)


SEEN = itertools.count(1)


class CountsBeside(Softmax):
    def view(self, model, state, X, *, t):
        return Drawn(model.mean(state, X) / next(SEEN))


class Column(Softmax):
    def draw(self, rng, n, *, arms, dim):
        return (rng.normal(size=(n, 1)),)

    def view(self, model, state, X, *, t):
        return Wide(model.mean(state, X))


class Wide(NamedTuple):
    m: np.ndarray

    def scores(self, z):
        return self.m + z[..., None]


class Moved(Softmax):
    """Lines that one z moves. Right, but for the one method that a subclass has."""

    needs = frozenset({"mean", "width"})
    law: ClassVar[dict[str, Any]] = {}

    def draw(self, rng, n, *, arms, dim):
        return (rng.normal(size=n),)

    def view(self, model, state, X, *, t):
        return Lines(model.mean(state, X), self.temperature * model.width(state, X), **self.law)


class OtherLaw(Moved):
    def draw(self, rng, n, *, arms, dim):
        return (rng.laplace(size=n),)


class Unwrapped(OtherLaw):
    law: ClassVar[dict[str, Any]] = {"law": stats.laplace()}


class OneEach(Moved):
    def draw(self, rng, n, *, arms, dim):
        return (rng.normal(size=(n, arms)),)


class Blind(Softmax):
    def view(self, model, state, X, *, t):
        return model.mean(state, X)


@dataclass(frozen=True)
class WidthEps(Softmax):
    eps: float = 0.1


class Global(Softmax):
    def draw(self, rng, n, *, arms, dim):
        return (np.random.default_rng().gumbel(size=(n, arms)),)


class Changing(Softmax):
    turn: ClassVar[Any] = itertools.cycle((0.0, 0.6))

    def eps(self, t):
        return next(self.turn)


class Plain(Softmax.__mro__[1]):  # no dataclass: a file cannot hold it
    needs = frozenset({"mean"})
    temperature = 0.5
    draw, view = Softmax.draw, Softmax.view


BAD_POLICIES = [
    ("draw", TwoCalls(), "n draws in turn|is not that of 6 draws"),
    ("draw", NoTuple(), "Return a tuple"),
    (
        "draw",
        Column(),
        r"score each of the 5 arms: scores \(6, 5\), got shape \(6, 6, 5\): draw gave .* shapes \(6, 1\)",
    ),
    ("draw", WidthEps(), r"method eps\(t\), .*; WidthEps has 0\.1 there: call the setting `epsilon`"),
    ("draw", Unwrapped(), r"got rv_continuous_frozen; one of SciPy is wrapped: Custom\.of\(stats\.laplace\(\)\)"),
    ("draw", OneEach(), "or pass coupled=False to Lines if each arm has a number of its own"),
    ("draw", Blind(), r"a view must have scores\(\*chance\), and ndarray has not"),
    ("probabilities", seeing(propensities=drawn_again)(), "two answers"),
    ("frequencies", OtherLaw(), "The law of Lines must be the one that `draw` draws from: same family, same scale"),
    ("lists", OtherLaw(), "The law of Lines must be the one that `draw` draws from"),
    ("probabilities", seeing(propensities=lambda self, mask=None: self.m * np.nan)(), "sum|NaN"),
    ("frequencies", seeing(propensities=hotter)(), r"arm \d was chosen \d+ of 20000 times .* propensities says 0\.\d+"),
    ("logged_propensity", seeing(chosen=lambda self, arm, mask=None: 0.5 + 0.0 * self.m[..., 0])(), "another probab"),
    ("monte_carlo", FewAreGreedy(), "many draws"),
    ("masked_arms", seeing(best=none_masked)(), "not on offer were chosen"),
    ("permuted_arms", seeing(scores=by_place, propensities=place_known)(), "another order have other"),
    ("ties", seeing(best=first)(), "arm 0 was chosen 20000 of 20000"),
    ("logarithms", seeing(log_propensities=halved)(), "logarithms of others"),
    ("lists", seeing(in_turn=by_number)(), "lists of one arm show"),
    ("floor", Changing(), "floor="),
    ("batch", seeing(scores=by_batch)(), "with another arm than alone"),
    ("shapes", seeing(decide=of_numpy)(), "answered with int64"),
    ("purity", Writes(), "choosing changes the state"),
    ("purity", Remembers(), "choosing changes the policy"),
    ("purity", Counts(), "choosing changes seen of the class Counts"),
    ("purity", CountsBeside(), "other scores after some choices, though nothing was learnt"),
    ("purity", Plain(), r"Write @dataclass\(frozen=True\) above the class"),
    ("seed", Global(), "one seed choose differently"),
    ("save_and_load", Plain(), "TypeError"),
    ("streams", seeing(scores=by_batch)(), "what runs beside it"),
    ("lockstep", seeing(scores=by_rank)(), "a live bandit part"),
]
