"""A baseline arm that is kept within a stated loss: with probability 1 - δ, in all rounds t at once,

    Σ_{s <= t} μ(shown at s) >= (1 - α) Σ_{s <= t} μ(baseline at s)

Conservative linear bandits (Kazerouni, Ghavamzadeh, Abbasi-Yadkori, Van Roy, NeurIPS 2017; with K arms and no features
Wu, Shariff, Lattimore, Szepesvári, ICML 2016). An arm is safe in a round if the inequality would hold after it for
every θ of the confidence ellipsoid. The baseline is shown in place of arms that are not safe. With x_i the features of
arm i, b the baseline, and v_i the values of the arms (all 1 without `values=`):

    c_i = z + v_i x_i - [learnt] (1-α) v_b x_b       g_i = g - [known] (1-α) v_b r_b
    arm i is safe  <=>  c_i'θ̂ - β ‖c_i‖_{V⁻¹} + g_i >= 0
    after arm i: z <- c_i, g <- g_i.   After the baseline: z <- z + [learnt] α v_b x_b, g <- g + [known] α v_b r_b

    β = √λ S + σ √(2 log(1/δ) + log(det V/det λI))                                           `theory.self_normalised`

"known": the mean reward r_b of the baseline is stated. "learnt": it is x_b'θ, as that of any arm (their extension to
unknown rewards). Both sides of the inequality are then linear in θ, so one bound holds of their difference. It is
tighter than a bound for each side. The set of safe arms does not depend on chance. So the probabilities of choices stay
what they were: exact ones are exact, given z and g.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dither import theory
from dither.base import arrays, errors
from dither.deciding.request import Request
from dither.models import Ridge

FILED = ("rounds.z", "rounds.sums")  # the names of what a file has of the rounds


class RoundSums(NamedTuple):
    """What the rounds so far add up to."""

    z: np.ndarray  # (d,)  reward is z'θ
    g: float  # reward that is known
    rounds: int  # decisions
    shown: int  # of these the baseline


class Safety(NamedTuple):
    """One request, before chance enters."""

    surplus: np.ndarray  # (K,)  lower bounds on what the rounds have above (1 - α) of the baseline's, after each arm
    safe: np.ndarray  # (K,) bool


@dataclass(frozen=True)
class Baseline:
    """The demand. It is a setting of a bandit: `LinFP(dim=3, baseline=Baseline("a5", loss=0.1))`.

    Parameters
    ----------
    arm : the baseline: a position, or in `Live` an id; `choose(baseline=)` may name another one for a request
    loss : α, the share of the baseline's reward that may be lost, above 0 and at most 1
    reward : the mean reward of the baseline, where it is known, above 0; None: it is learnt
    delta : δ, the probability with which the demand may fail
    sigma : σ; the noise of rewards is σ-sub-Gaussian (rewards in [0, 1]: 0.5)
    S : bound on ‖θ*‖

    The true rewards must be linear in the features, and the baseline's must be positive. Raises ValueError for settings
    that make no sense.
    """

    arm: int | str = 0
    loss: float = 0.1
    reward: float | None = None
    delta: float = 0.05
    sigma: float = 1.0
    S: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.arm, str):
            errors.at_least("arm, the position of the baseline,", self.arm, 0)
        for name in ("loss", "sigma", "S", "delta"):
            errors.positive(name, getattr(self, name))
        errors.within("loss", self.loss, 0, 1)
        errors.within("delta", self.delta, 0, 1)
        if self.reward is not None:
            errors.positive("reward, the mean reward of the baseline,", self.reward)

    def check(self, model: Any, *, slots: int | None) -> None:
        """Raise TypeError for a model for which the ellipsoid says nothing."""
        if isinstance(model, Ridge) and not model.forgets and slots is None:
            return
        reason = (
            "the sums over the rounds would need one ellipsoid over all slots: give the arms features of their own, "
            "as np.eye(K) has"
            if slots is not None
            else "what it forgets has no confidence ellipsoid around one θ"
            if isinstance(model, Ridge)
            else "the bound is one on sums of x'θ. With a link or a network, every past round would need a bound of "
            "its own, and their sum grows with the rounds"
        )
        raise TypeError(f"baseline= needs a linear model of shared features, models.Ridge; with {model} {reason}")

    def begin(self, dim: int) -> RoundSums:
        """Before the first round."""
        return RoundSums(np.zeros(dim), 0.0, 0, 0)

    def safe(self, model: Any, state: Any, sums: RoundSums, request: Request) -> np.ndarray:
        """Which arms of each request are safe, (..., K) bool."""
        if request.single:
            return self.look(model, state, sums, request).safe
        rows = [self.look(model, state, sums, request.row(i)).safe for i in range(request.size)]
        return np.reshape(rows, request.shape).astype(bool)

    def look(self, model: Any, state: Any, sums: RoundSums, request: Request) -> Safety:
        """What is known of one request, before chance enters."""
        z, g = self.ahead(sums, request.X, at=_at(request), values=request.values)
        surplus = model.mean(state, z) - self.beta(model, state) * model.width(state, z) + g
        safe = surplus >= 0
        safe[_at(request)] = True
        return Safety(surplus, safe)

    def ahead(
        self, sums: RoundSums, X: np.ndarray, *, at: int, values: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """z (K, d) and g (K,) after each of the arms X (K, d), where `at` is the position of the baseline."""
        x = X if values is None else X * values[:, None]
        z, g = sums.z + x, np.full(len(X), sums.g)
        if self.reward is None:
            z -= (1 - self.loss) * x[at]
            z[at] = sums.z + self.loss * x[at]
        else:
            reward = self.reward * (1.0 if values is None else float(values[at]))
            z[at] = sums.z
            g -= (1 - self.loss) * reward
            g[at] = sums.g + self.loss * reward
        return z, g

    def beta(self, model: Any, state: Any) -> float:
        """β: with probability 1 - δ, ‖θ̂ - θ*‖_V is at most this in all rounds."""
        logdet = arrays.numpy(model.logdet(state))
        return float(theory.self_normalised(logdet, lam=model.lam_of(state), S=self.S, R=self.sigma, delta=self.delta))

    def after(self, sums: RoundSums, request: Request, arm: int) -> RoundSums:
        """After a round that has answered one request with `arm`."""
        at = _at(request)
        z, g = self.ahead(sums, request.X, at=at, values=request.values)
        return RoundSums(z[arm].copy(), float(g[arm]), sums.rounds + 1, sums.shown + (arm == at))


def _at(request: Request) -> int:
    """The position of the baseline in one request."""
    return -1 if request.baseline is None else int(request.baseline)


def content(sums: RoundSums) -> dict[str, np.ndarray]:
    """What a file has of the rounds."""
    return dict(zip(FILED, (sums.z, np.array([sums.g, sums.rounds, sums.shown], dtype=np.float64)), strict=True))


def restored(content: dict[str, np.ndarray], dim: int) -> RoundSums:
    """The rounds that a file has, taken out of its content. Raises ValueError or LookupError for anything else."""
    z, sums = (content.pop(name) for name in FILED)
    for name, array, shape in zip(FILED, (z, sums), ((dim,), (3,)), strict=True):
        if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
            raise ValueError(f"its {name} is {array.dtype}{array.shape}, where {shape} finite numbers belong")
    g, rounds, shown = sums.tolist()
    if not (0 <= shown <= rounds and rounds == int(rounds) and shown == int(shown)):
        raise ValueError(f"its {FILED[1]} count {shown:g} of {rounds:g} rounds")
    return RoundSums(z, g, int(rounds), int(shown))


def position(arm: Any, *, shape: tuple[int, ...], mask: np.ndarray | None) -> np.ndarray:
    """The positions of the baselines, (...), for requests of shape (..., K).

    Raises TypeError for an id, which `Live` alone knows; ValueError unless it is on offer.
    """
    if isinstance(arm, str):
        raise TypeError(f"the baseline is {arm!r}, an id: a Bandit knows positions alone, so pass baseline=position")
    at = np.asarray(arm)
    if at.dtype.kind not in "iu" or at.shape not in ((), shape[:-1]):
        raise ValueError(f"baseline must be the position of an arm, or {shape[:-1]} of them; got {arm!r}")
    at = np.broadcast_to(at, shape[:-1])
    inside = (at >= 0) & (at < shape[-1])
    on = inside if mask is None else inside & arrays.pick(mask, np.where(inside, at, 0), rank=0)
    if not np.all(on):
        wrong = int(np.ravel(at)[np.argmin(np.ravel(on))])
        raise ValueError(
            f"the baseline must be on offer in every request: arm {wrong} of {shape[-1]} is not. Put it on offer, or "
            f"name another one with baseline="
        )
    return at


def no_baseline() -> ValueError:
    """The error of a request that names a baseline, where the bandit keeps none."""
    return ValueError("baseline= needs a bandit that keeps one: LinFP(dim=..., baseline=dither.Baseline(...))")


def unknown_to(call: str) -> TypeError:
    """The error of a call that knows no baseline."""
    return TypeError(
        f"{call} knows no baseline: what is kept is the sum of single decisions. Use a bandit without baseline="
    )
