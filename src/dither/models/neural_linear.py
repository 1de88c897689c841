"""NeuralLinear (Riquelme, Tucker, Snoek 2018): a network learns the features, a ridge regression on them explores.

    φ_i         the last hidden layer of the network at x_i                                `Network.embedding`
    V = λI + Σ φφ',  θ̂ = V⁻¹ Σ r φ,  m_i = φ_i'θ̂,  w_i = ‖φ_i‖_{V⁻¹}                      `Ridge`, in float64
    training    of the network, as `Network`; it does not see the regression

A new observation enters the regression with the φ of the moment, before the network trains on it; every `refresh`
observations V and θ̂ are made anew from the whole history by the network as it then is. Where the network trains as
seldom (every=refresh: the authors' way), φ is always that of one network.

Thompson sampling on top is their method, with one regression for all arms: their network has an output, and so a
regression, for each arm, and they draw the noise's variance from an inverse gamma law; here it is the policy's `sigma`.
Feature perturbation on top has exact propensities.
"""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, cast

import numpy as np

from dither.base import arrays, errors, trees
from dither.base.arrays import Array
from dither.models import buffers, digits, statistics
from dither.models.buffers import BufferRows
from dither.models.model import Model, sound
from dither.models.network import Network, NetworkState, losses, recent
from dither.models.network.layout import layout
from dither.models.network.network import Trained
from dither.models.ridge import Ridge, RidgeState

BLOCK = 1024  # rows of the history that are embedded and learnt at once: they stay in the cache
STEEP = 1e8  # trace of V over λ up to which V is factored: θ̂ loses so many of its 1e16
ENTRIES_TOGETHER = 50_000  # of F that all runs in lockstep may have


class NeuralLinearState(NamedTuple):
    """What is known: shapes (...) are replications, none for one bandit."""

    network: NetworkState
    ridge: RidgeState  # of φ (..., h)
    buffer: BufferRows | None  # all observations, where the network keeps fewer

    @property
    def theta(self) -> np.ndarray:
        """θ̂ of the regression (..., h)."""
        return self.ridge.theta


@dataclass(frozen=True)
class NeuralLinear(Trained):
    """Ridge regression on the last hidden layer of a network, which is trained as its settings say.

    The output is what the network is trained for; the regression is of the rewards themselves. The window is that of
    the training; the regression always sees the whole history.
    """

    dtype: losses.Precision = "float32"
    lam: float = 0.25  # λ of the regression
    refresh: int = 50  # observations between two embeddings of the whole history
    block = BLOCK

    def __post_init__(self) -> None:
        errors.at_least("refresh", self.refresh, 1)
        object.__setattr__(self, "hidden", self.network.hidden)  # which checks all settings of the network
        Ridge(self.lam)

    @functools.cached_property
    def network(self) -> Network:
        """The network that makes the features."""
        return self._network()

    def _network(self) -> Network:
        return Network(dtype=self.dtype, **{field.name: getattr(self, field.name) for field in fields(Trained)})

    def placed(self, device: str) -> Model:
        """The same model with all arrays on that device, where torch computes all runs at once."""
        return _OnDevice(**{field.name: getattr(self, field.name) for field in fields(self)}, device=device)

    @functools.cached_property
    def ridge(self) -> Ridge:
        """The regression on them."""
        return Ridge(self.lam)

    @property
    def support(self) -> tuple[float, float]:
        """Between which the rewards lie."""
        return self.network.support

    def ambient(self, dim: int) -> int:
        """The dimension of θ̂: h, the width of the last hidden layer."""
        return self._widths[-1]

    def bytes(self, dim: int, rounds: int) -> int:
        """About how much memory one run takes after so many rounds."""
        kept = 0 if self.window is None else 2 * rounds * np.dtype(self.dtype).itemsize * (dim + 4)
        return self.network.bytes(dim, rounds) + kept + 16 * self.ambient(dim) ** 2

    def together(self, dim: int) -> int:
        """How many runs in lockstep are quickest."""
        return max(1, min(self.network.together(dim), ENTRIES_TOGETHER // self.ambient(dim) ** 2))

    def check(self, state: NeuralLinearState) -> None:
        """Refuse a state that no data can lead to, as of a file that something else wrote."""
        self.network.check(state.network)
        self.ridge.check(state.ridge)
        if state.buffer is not None:
            buffers.check(state.buffer, slots=self.slots)
            if not np.array_equal(state.buffer.count, state.network.buffer.count):
                raise ValueError("its history and its network have seen different numbers of observations")
        if int(np.max(self._past(state).count)) > self._past(state).r.shape[-1]:
            raise ValueError("its history counts rows that are not there")

    def init(
        self, dim: int, *, batch=(), needs=frozenset(), xp=arrays.NUMPY, device=None, rng: Any
    ) -> NeuralLinearState:
        """V = λI, θ̂ = 0, and the network drawn from rng: one Generator, or with leading axes (R,) one for each run."""
        network = self.network.init(dim, batch=batch, xp=xp, device=device, rng=rng)
        ridge = self.ridge.init(self.ambient(dim), batch=batch, needs=needs & {"logdet"}, xp=xp, device=device)
        if self.window is None:
            return NeuralLinearState(network, ridge, None)
        past = buffers.init(batch, dim, slots=self.slots is not None, dtype=self.dtype, xp=xp, device=device)
        return NeuralLinearState(network, ridge, past)

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
        """The chance that n observations spend in training, as of `Network`."""
        return self.network.draw(rng, n)

    def update(
        self,
        state: NeuralLinearState,
        x: Array,
        r: Array,
        *,
        arm: Array | None = None,
        weight: Array | None = None,
        own: bool = False,
        chance: tuple[np.ndarray, ...] = (),
    ) -> NeuralLinearState:
        """One more observation: x (..., d), r (...), arm (...) with slots, weight (...), chance as `draw` gave it.

        own : the caller gives the old state up, and its arrays are overwritten; where this raises, it is as it was
        """
        if weight is not None and not np.any(arrays.numpy(weight)):
            return state  # no observation, as of `Network`
        r = arrays.beside(r, state.theta)
        ridge = self.ridge.update(state.ridge, self._shown(state, x, arm), r, weight=weight)
        sound(ridge.theta)
        due = (self._past(state).count + 1) % self.refresh == 0  # bool, or (R,)
        some = bool(due.any())
        own = own and not some  # embedding the history may be refused after the network has learnt
        network = self.network.update(state.network, x, r, arm=arm, weight=weight, own=own, chance=chance)
        buffer = state.buffer
        if buffer is not None:
            buffer = recent.roomy(buffer if own else trees.map_arrays(arrays.copied, buffer), window=None)
            at = recent.place(buffer, recent.alike(buffer.count))
            recent.write(buffer, at, x, r, 1.0 if weight is None else weight, arm)
            buffer = buffer._replace(count=buffer.count + 1)
        state = NeuralLinearState(network, ridge, buffer)
        return self._refreshed(state, due) if some else state

    def beneath(self, state: NeuralLinearState, X: Array) -> tuple[Ridge, RidgeState, Array]:
        """The linear model that explores, its state and its features (..., K, h): one pass through the network."""
        return self.ridge, state.ridge, self.embedding(state, X)

    def embedding(self, state: NeuralLinearState, X: Array) -> Array:
        """φ_i: X (..., K, d), with slots (..., d) -> (..., K, h)."""
        return self.network.embedding(state.network, X)

    def mean(self, state: NeuralLinearState, X: Array) -> Array:
        """m_i = φ_i'θ̂: X (..., K, d), with slots (..., d) -> (..., K)."""
        return self.ridge.mean(state.ridge, self.embedding(state, X))

    def width(self, state: NeuralLinearState, X: Array) -> Array:
        """w_i = ‖φ_i‖_{V⁻¹}: X as for `mean` -> (..., K)."""
        return self.ridge.width(state.ridge, self.embedding(state, X))

    def gram_width(self, state: NeuralLinearState, X: Array) -> Array:
        """The width: V is the matrix of this model."""
        return self.width(state, X)

    def predict(self, state: NeuralLinearState, X: Array) -> Array:
        """The expected rewards, which are the means here."""
        return self.mean(state, X)

    def flat(self, state: NeuralLinearState) -> Array:
        """θ̂ as one vector: (..., h)."""
        return state.theta

    def scores(self, theta: Array, phi: Array) -> Array:
        """φ_i'θ for any θ (..., h), of what `beneath` shows: phi (..., K, h) -> (..., K)."""
        return self.ridge.scores(theta, phi)

    def sample(self, state: NeuralLinearState, eta: Array) -> Array:
        """N(0, V⁻¹) from η ~ N(0, I): (..., h) -> (..., h)."""
        return self.ridge.sample(state.ridge, eta)

    def logdet(self, state: NeuralLinearState) -> Array:
        """log(det V/det λI), (...)."""
        return self.ridge.logdet(state.ridge)

    @property
    def _widths(self) -> tuple[int, ...]:
        return cast(tuple[int, ...], self.network.hidden)  # which has read them

    def _past(self, state: NeuralLinearState) -> BufferRows:
        """The whole history."""
        return state.network.buffer if state.buffer is None else state.buffer

    def _shown(self, state: NeuralLinearState, x: Array, arm: Array | None) -> Array:
        """φ of the arm shown: x (..., d) -> (..., h)."""
        if arm is None:
            return self.embedding(state, x[..., None, :])[..., 0, :]
        return arrays.pick(self.embedding(state, x), arm, rank=1)

    def _refreshed(self, state: NeuralLinearState, due: Any) -> NeuralLinearState:
        """The regression made anew where due, a bool or (R,)."""
        past = self._past(state)
        if past.count.ndim == 0:
            return state._replace(ridge=self._fitted(state.network, past, state.ridge))
        ridge = trees.map_arrays(np.copy, state.ridge)
        for i in np.flatnonzero(due).tolist():
            one = (trees.map_arrays(lambda A, i=i: A[i], tree) for tree in (state.network, past, ridge))
            trees.put(ridge, [i], trees.map_arrays(lambda A: A[None], self._fitted(*one)))
        return state._replace(ridge=ridge)

    def _fitted(self, network: NetworkState, past: BufferRows, old: RidgeState) -> RidgeState:
        """The regression of one run, or of (R,) on a device, on the whole history, by the network as it is.

        old : says what policies asked for
        """
        h, lam, xp = old.theta.shape[-1], float(self.lam), arrays.namespace(old.theta)
        eye = xp.eye(h, dtype=xp.float64, device=arrays.device(old.theta))
        V, b, paid = lam * eye, xp.zeros_like(old.theta), 0.0
        for phi, r, weight in self._blocks(network, past):
            part = statistics.weighted(phi, weight)
            V = V + part.mT @ part
            b = b + arrays.dot(phi.mT, weight * r)
            paid = paid + arrays.inner(weight, r * r)
        R = arrays.cholesky(V) if arrays.largest(xp.linalg.trace(V)) < STEEP * lam else None
        if R is None:
            return self._fitted_by_rows(network, past, old)
        F = _inverse(R, eye)  # V = R'R, V⁻¹ = FF'
        logdet = None
        if old.logdet is not None:
            logdet = 2 * xp.sum(xp.log(xp.linalg.diagonal(R)), axis=-1) - h * math.log(lam)
        theta = sound(arrays.dot(F, arrays.dot(F.mT, b)))
        lost = digits.factored(v=xp.linalg.diagonal(V), paid=paid, n=past.count, F=F, theta=theta)
        return RidgeState(F, theta, logdet, None, lost)

    def _fitted_by_rows(self, network: NetworkState, past: BufferRows, old: RidgeState) -> RidgeState:
        """The same by QR of the rows, ten times as slow: V itself cannot hold a λ so small beside them."""
        theta, needs = old.theta, frozenset() if old.logdet is None else frozenset({"logdet"})
        there = dict(xp=arrays.namespace(theta), device=arrays.device(theta))
        ridge = self.ridge.init(theta.shape[-1], batch=theta.shape[:-1], needs=needs, **there)
        for phi, r, weight in self._blocks(network, past):
            ridge = self.ridge.update_many(ridge, phi, r, weight=weight)
        return ridge._replace(theta=sound(ridge.theta))

    def _blocks(self, network: NetworkState, past: BufferRows) -> Iterator[tuple[Array, Array, Array]]:
        """φ, r and weight of the history, block by block; the weight is 0 where a run has no such row."""
        xp, most = arrays.namespace(past.r), int(past.count.max())
        for start in range(0, most, self.block):
            end = min(start + self.block, most)
            X, r, weight = past.X[..., start:end, :], past.r[..., start:end], past.weight[..., start:end]
            phi = self._embedded(network, X, None if past.arm is None else past.arm[..., start:end])
            yield phi, xp.astype(r, xp.float64), xp.astype(weight, xp.float64)

    def _embedded(self, network: NetworkState, X: np.ndarray, arm: np.ndarray | None) -> np.ndarray:
        """φ of past rows of one run: X (n, d), arm (n,) -> (n, h)."""
        if arm is None:
            return self.network.embedding(network, X)
        one = replace(self.network, slots=None)  # an arm's network: its own block of the first layer, all else shared
        W = layout(X.shape[-1], self.slots, self._widths).views(network.theta)[0].W
        shared, phi = network.theta[W.size :], np.empty((len(X), self.ambient(X.shape[-1])))
        for k in np.unique(arm):
            rows, theta = arm == k, np.concatenate([W[k].reshape(-1), shared])
            phi[rows] = one.embedding(network._replace(theta=theta), X[rows])
        return phi


def _inverse(R: Array, eye: Array) -> Array:
    """F = R⁻¹ of upper triangles R (..., h, h)."""
    if type(R) is not np.ndarray:
        return arrays.namespace(R).linalg.solve(R, arrays.namespace(R).zeros_like(R) + eye)
    from scipy import linalg  # an eighth of what `import dither` would take

    return linalg.solve_triangular(R, eye)


@dataclass(frozen=True)
class _OnDevice(NeuralLinear):
    """As `NeuralLinear`, in tensors on a device: leading axes (R,) always."""

    device: str = "cpu"
    placed: Any = field(default=None, init=False, repr=False)  # its arrays are on the device
    block = 128  # of R runs

    def _network(self) -> Any:
        return super()._network().placed(self.device)

    def _refreshed(self, state: NeuralLinearState, due: Array) -> NeuralLinearState:
        """The regression of all runs that are due, made anew at once."""
        runs = arrays.namespace(due).nonzero(due)[0]
        trees_of = (state.network, self._past(state), state.ridge)
        fitted = self._fitted(*(trees.map_arrays(lambda A: A[runs], tree) for tree in trees_of))

        def put(old: Array, new: Array) -> Array:
            whole = arrays.copied(old)
            whole[runs] = new
            return whole

        return state._replace(ridge=trees.map_arrays(put, state.ridge, fitted))

    def _embedded(self, network: NetworkState, X: Array, arm: Array | None) -> Array:
        """φ of past rows of every run: X (R, n, d), arm (R, n) -> (R, n, h)."""
        of_device: Any = self.network
        return of_device.embedded(network, X, arm)
