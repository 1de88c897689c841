"""A network as the model of rewards (paper, Section 7.2, Appendix H.1.2), trained a little after every reward.

    f(x; θ)     any network with one output. m_i = f(x_i); with K slots f takes the Kd-vector (0; ..; x; ..; 0)
    training    after every `every` observations, `steps` steps of Adam on a batch. The batch is drawn from the last
                `window` observations (paper: 1 step on the 32 most recent); window None: from all of them

NumPy computes a perceptron, forward and backward by hand (`perceptron.py`). Convolutions and modules of your own need
torch (`modules.py`). In a simulation on a device torch computes all of them, many runs at once (`at_once.py`). With
`a`, noise N(0, a²) is added to the rewards of a batch: this is FTPL.
"""

import dataclasses
import functools
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast, get_args

import numpy as np

from dither import links
from dither.base import arrays, errors, trees
from dither.base.arrays import Array
from dither.models import buffers, moments
from dither.models.buffers import BufferRows
from dither.models.model import Model, abilities_of
from dither.models.network import adam, copies, losses, perceptron, recent
from dither.models.network.layout import layout

LARGEST_FEATURE = 1e15  # in a request: float32 must hold its square
LARGEST_LEARNT = {"float32": 1e6, "float64": 1e50}  # feature or reward that is learnt: larger ones make long gradients
LONGEST_GRADIENT = {"float32": 1e15, "float64": 1e120}  # Adam must hold its square
WEIGHTS_TOGETHER = 200_000  # that all runs in lockstep may have, so that they stay in the cache
COPIES = 12  # of θ that a run on a device takes: the state, the gradient with its parts, what Adam needs for a while
KEPT = 6  # copies of the numbers of a row in its widest layer on a device, forward and backward
HERE = "a network is computed in NumPy arrays here: pass device= to simulate, and it is computed in tensors there"


class NetworkState(NamedTuple):
    """What is known: shapes (...) are replications, none for one bandit. float32 unless the model says otherwise."""

    theta: Array  # (..., p)  θ, the weights
    m: Array  # (..., p)  Adam's running mean of the gradient
    v: Array  # (..., p)  Adam's running mean of its square
    steps: Array  # (...)  steps taken; int64
    uinv: Array | None  # (..., p)  1/U of NeuralUCB and NeuralTS, U = λ + Σ (∂f/∂θ)² of the arms shown
    moments: Any  # `moments.Moments` where a policy asked for the spread of each feature
    buffer: BufferRows  # what training sees


@dataclass(frozen=True)
class Trained(Model):
    """The settings of a network and of its training, for arms with features of their own, or `slots` arms."""

    hidden: int | str | tuple[int, ...] = (50, 50)  # widths of the hidden layers; 100, or "50x50", in text
    output: losses.Output = "identity"  # or "sigmoid", "softmax" over the arms: `losses.py`
    slots: int | None = None  # K arms that share a context
    lr: float = 0.001  # Adam's η
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    batch: int = 32  # rows of a step
    window: int | None = 32  # the most recent observations that batches are drawn from; None: all
    every: int = 1  # observations between trainings
    steps: int = 1  # steps a training
    weight_decay: float = 0.0  # κ of κ‖θ‖²/2, added to the loss
    owns = True  # update takes own=

    @property
    def separate(self) -> bool:
        """Whether the expected reward of an arm is its own."""
        return self.output != "softmax"


@dataclass(frozen=True)
class Network(Trained):
    """Any network with one output."""

    a: float = 0.0  # sd of the noise on rewards in training (FTPL)
    once: bool = False  # one draw of it for each reward, when it comes; else a fresh one at each step
    lam: float = 1e-5  # λ, where U begins
    dtype: losses.Precision = "float32"
    convolutions: int | str | tuple[int, ...] = ()  # filters of the 3 x 3 convolutions before the hidden layers (torch)
    image: str | tuple[int, int] | None = None  # their input: d = height x width
    module: Any = field(default=None, repr=False)  # a torch.nn.Module of your own, which takes the place of all layers
    device: str = "cpu"  # of torch

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", _whole("hidden", self.hidden))
        object.__setattr__(self, "convolutions", _whole("convolutions", self.convolutions))
        object.__setattr__(self, "image", None if self.image is None else _whole("image", self.image))
        if not self.hidden:
            raise ValueError("hidden must have at least one layer, such as (50,); for none take a linear model")
        errors.among("output", self.output, losses.OUTPUTS)
        errors.at_least("slots", self.slots, 1, or_none=True)
        for name in ("batch", "every", "steps"):
            errors.at_least(name, getattr(self, name), 1)
        errors.within("lr", self.lr, 1e-30, 1e3)
        for name in ("eps", "lam"):
            errors.within(name, getattr(self, name), 1e-30, 1e30)
        for name in ("beta1", "beta2"):
            errors.within(name, getattr(self, name), 0, 0.999999)
        for name in ("weight_decay", "a"):
            errors.within(name, getattr(self, name), 0, 1e6)
        errors.true_or_false("once", self.once)
        errors.at_least("window", self.window, 1, or_none=True)
        if self.window is not None and self.window < self.batch:
            raise ValueError(f"window must be at least batch={self.batch}, got {self.window}")
        errors.among("dtype", self.dtype, get_args(losses.Precision))
        elsewhere = self.device != "cpu" and self.placed is not None
        if self.module is None and not self.convolutions and (self.image is not None or elsewhere):
            raise ValueError("image and device are for convolutions or a module of your own: leave them out")
        if self.module is not None or self.convolutions:
            from dither.models.network import modules

            modules.check(self)
            if self.module is not None:
                object.__setattr__(self, "module", modules.copied(self))

    @functools.cached_property
    def abilities(self) -> frozenset[str]:
        """What a policy may ask of it."""
        lacking = set() if self.a else {"reward_noise"}
        if self.module is not None or self.convolutions:
            lacking |= {"embedding", "jittered", "mean_everywhere"}
        if self.placed is None:
            lacking |= {"jittered"}  # of one request, and on a device there are runs
        return abilities_of(type(self)) - (lacking if self.slots else lacking | {"mean_everywhere"})

    @property
    def function(self) -> links.Link:
        """μ and its kin."""
        return links.LINKS["identity" if self.output == "identity" else "logit"]

    @property
    def support(self) -> tuple[float, float]:
        """Between which the rewards lie."""
        return self.function.support

    @property
    def widest(self) -> int:
        """Numbers that one arm takes while it is scored: the widest hidden layer."""
        return max(cast(tuple[int, ...], self.hidden))

    def bytes(self, dim: int, rounds: int) -> int:
        """About how much memory one run takes after so many rounds."""
        kept = 2 * rounds if self.window is None else self.window
        return np.dtype(self.dtype).itemsize * (6 * self._net(dim)[1].size + kept * (dim + 4))

    def together(self, dim: int) -> int:
        """How many runs in lockstep are quickest: many small networks, or one large one."""
        return max(1, WEIGHTS_TOGETHER // self._net(dim)[1].size)

    def check(self, state: NetworkState) -> None:
        """Refuse a state that no data can lead to, as of a file that something else wrote."""
        buffers.check(state.buffer, slots=self.slots)
        if self.window is not None and state.buffer.r.shape[-1] != self.window:
            raise ValueError(f"its buffer has {state.buffer.r.shape[-1]} rows for a window of {self.window}")
        if float(state.v.min()) < 0 or (state.uinv is not None and float(state.uinv.min()) < 0):
            raise ValueError("its second moments lie below 0")

    def fingerprint(self) -> str | None:
        """What a file says of a module that it cannot hold; None where it holds everything."""
        if self.module is None:
            return None
        from dither.models.network import modules

        names = (f.name for f in dataclasses.fields(self) if f.repr and f.name != "device")
        settings = (f"{name}={getattr(self, name)!r}" for name in names)
        return f"Network({', '.join(settings)}) of {modules.fingerprint(self.module)}"

    def init(self, dim: int, *, batch=(), needs=frozenset(), xp=arrays.NUMPY, device=None, rng: Any) -> NetworkState:
        """θ_0 drawn from rng: one Generator, or with leading axes `batch` (R,) one for each run."""
        if xp is not arrays.NUMPY and self.placed is not None:
            raise TypeError(HERE)
        if self.output == "softmax" and (self.slots or 1) == 1:
            raise ValueError("output='softmax' is over the arms of a context: it needs slots, at least 2 (disjoint=)")
        _, net = self._net(dim)
        first = np.stack([net.initial(g) for g in rng]) if batch else net.initial(rng)
        there: dict[str, Any] = dict(xp=xp, device=device)
        theta = xp.asarray(first.astype(self.dtype), device=device)
        return NetworkState(
            theta,
            xp.zeros_like(theta),
            xp.zeros_like(theta),
            xp.zeros(batch, dtype=xp.int64, device=device),
            xp.full_like(theta, 1 / self.lam) if "gradient_norm" in needs else None,
            moments.init(batch, dim, **there) if "spread" in needs else None,
            buffers.init(batch, dim, room=self.window, slots=self.slots is not None, dtype=self.dtype, **there),
        )

    def placed(self, device: str) -> Model:
        """The same network as torch computes it on that device, with all arrays there and all runs at once."""
        return NetworkOnDevice(**{f.name: getattr(self, f.name) for f in dataclasses.fields(self)} | {"device": device})

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
        """The chance that n observations spend in training: normals (n, steps, 0 to 2 batches), () where none."""
        kinds = int(self._samples) + int(self.a > 0)
        return (rng.standard_normal((n, self.steps, kinds * self.batch)),) if kinds else ()

    def update(
        self,
        state: NetworkState,
        x: Array,
        r: Array,
        *,
        arm: Array | None = None,
        weight: Array | None = None,
        own: bool = False,
        chance: tuple[np.ndarray, ...] = (),
    ) -> NetworkState:
        """One more observation: x (..., d), r (...), arm (...) with slots, weight (...), chance as `draw` gave it.

        own : the caller gives the old state up, and its arrays are overwritten; where this raises, it is as it was
        """
        most, xp = LARGEST_LEARNT[self.dtype], arrays.namespace(state.theta)
        x, r = self._cast(x, "x", most=most), self._cast(r, "r", most=most)
        if weight is not None and not np.any(arrays.numpy(weight)):
            return state  # what counts as no observation takes no step either
        weight = 1.0 if weight is None else self._cast(weight, "weight")
        engine, net = self._net(x.shape[-1])
        z = arrays.beside(chance[0], x) if chance else None
        if self.a and self.once and z is not None:
            r = r + arrays.cast(self.a * z[..., 0, -1], self.dtype)
        if not own:
            state = trees.map_arrays(arrays.copied, state)
        buffer = recent.roomy(state.buffer, window=self.window)
        count = recent.alike(buffer.count)
        at = recent.place(buffer, count)
        after = buffer._replace(count=buffer.count + 1)
        count = None if count is None else count + 1
        due: Any = (after.count if count is None else count) % self.every == 0  # bool, or (R,) where the counts differ
        some, every = (due, due) if count is not None else (bool(due.any()), bool(due.all()))
        once = self.steps == 1 and every  # then θ is written once, and nothing is refused after that
        theta, m, v, steps = state[:4]
        if some and not once:
            theta, m, v = map(arrays.copied, (theta, m, v))
        before = recent.read(buffer, at)
        recent.write(buffer, at, x, r, weight, arm)
        try:
            for i in range(self.steps if some else 0):
                g = self._gradient(engine, net, theta, after, count, None if z is None else z[..., i, :])
                if once and state.uinv is not None:
                    engine.add_squares(net, state.theta, x, arm, state.uinv, weight)
                steps = steps + 1
                alike = recent.alike(steps)
                s = steps if alike is None else alike
                adam.step(theta, m, v, g, s=s, lr=self.lr, beta1=self.beta1, beta2=self.beta2, eps=self.eps)
        except ValueError:
            recent.write(buffer, at, *before)
            raise
        if not once and state.uinv is not None:
            engine.add_squares(net, state.theta, x, arm, state.uinv, weight)
        if some and not every:  # some replications have had fewer observations
            pairs = zip((theta, m, v, steps), state[:4], strict=True)
            theta, m, v, steps = (xp.where(arrays.over(due, new), new, old) for new, old in pairs)
        kept = state.moments if state.moments is None else moments.update(state.moments, x, weight)
        return NetworkState(theta, m, v, steps, state.uinv, kept, after)

    def mean(self, state: NetworkState, X: Array) -> Array:
        """m_i = f(x_i), before a sigmoid or softmax: X (..., K, d), with slots (..., d) -> (..., K)."""
        return self._forward(state, X, by_slot=False)

    def mean_at(self, state: NetworkState, X: Array) -> Array:
        """f at one row for each arm, with slots too: X (..., K, d) -> (..., K)."""
        return self._forward(state, X, by_slot=self.slots is not None)

    def mean_everywhere(self, state: NetworkState, X: Array, step: Array) -> Array:
        """f at the whole Kd-vector of each arm, moved by step (..., K, K, d): X (..., d) -> (..., K)."""
        X, (slots, d) = self._cast(X, "X"), step.shape[-2:]
        eye = arrays.namespace(X).eye(slots, dtype=X.dtype, device=arrays.device(X))
        full = self._cast(X[..., None, None, :] * eye[:, :, None] + step, "X")
        engine, whole = self._whole_net(slots * d)  # the same θ
        return answer(engine.forward(whole, state.theta, full.reshape(*full.shape[:-2], -1)))

    def jittered(self, state: NetworkState, X: Array, rng: np.random.Generator, n: int, *, scale: Any) -> Array:
        """f of one request under n jitters N(0, scale²) of each arm's own features, (n, K): X (1, K, d) or (1, d)."""
        X, net = self._cast(X[0], "X"), layout(X.shape[-1], self.slots, self.hidden)
        K = len(X) if self.slots is None else self.slots
        eta = rng.standard_normal((n, K, min(net.d, net.hidden[0])), dtype=np.float32).astype(self.dtype, copy=False)
        return answer(perceptron.jittered(net, state.theta, X, eta, scale))

    def predict(self, state: NetworkState, X: Array) -> Array:
        """The expected rewards: as `mean`, after the output."""
        return losses.expected(self.output, self.mean(state, X))

    def gradient_norm(self, state: NetworkState, X: Array) -> tuple[Array, Array]:
        """f and √(Σ (∂f/∂θ)²/U) of every arm: X as for `mean` -> (..., K) each."""
        return self._norms(state, X, state.uinv)

    def sensitivity(self, state: NetworkState, X: Array) -> tuple[Array, Array]:
        """f and ‖∇_x f‖ of every arm, by its own d features: X as for `mean` -> (..., K) each."""
        return self._norms(state, X, None, inputs=True)

    def embedding(self, state: NetworkState, X: Array) -> Array:
        """φ_i, the last hidden layer: X as for `mean` -> (..., K, h)."""
        engine, net = self._net(X.shape[-1])
        phi = answer(engine.last_hidden(net, state.theta, self._cast(X, "X")))
        return copies.of_first(phi, self._copies(X, phi.sum(axis=-1)))

    def reward_noise(self) -> float:
        """The sd of the noise that training adds to rewards: a."""
        return self.a

    def spread(self, state: NetworkState) -> Array:
        """The sd of each feature of what was learnt, (..., d)."""
        return moments.spread(state.moments)

    def _copies(self, X: Array, f: Array) -> Array | None:
        """For each arm the first one with the same row; None where no answer needs it, as with slots."""
        return None if self.slots is not None else copies.first(X, f)

    def _forward(self, state: NetworkState, X: Array, *, by_slot: bool) -> Array:
        """f of all arms, and the same of equal ones; by_slot: X has a row for each slot."""
        engine, net = self._net(X.shape[-1])
        f = answer(engine.forward(net, state.theta, self._cast(X, "X"), by_slot=by_slot))
        return copies.of_first(f, self._copies(X, f))

    def _norms(self, state: NetworkState, X: Array, u: Any, *, inputs: bool = False) -> tuple[Array, Array]:
        """f of all arms and the length of its gradient, as of `perceptron.gradient_norms`, the same of equal ones."""
        engine, net = self._net(X.shape[-1])
        f, norm = map(answer, engine.gradient_norms(net, state.theta, self._cast(X, "X"), u, inputs=inputs))
        first = self._copies(X, f)
        return copies.of_first(f, first), copies.of_first(norm, first)

    @property
    def _samples(self) -> bool:
        """Whether a batch is drawn at random; else it is all that the window holds."""
        return self.window is None or self.window > self.batch

    def _net(self, dim: int) -> tuple[Any, Any]:
        """The file whose functions compute the network, and the network as they take it."""
        if self.module is None and not self.convolutions:
            return perceptron, layout(dim, self.slots, self.hidden)
        from dither.models.network import modules

        return modules, modules.network(self, dim)

    def _whole_net(self, dim: int) -> tuple[Any, Any]:
        """The same for a perceptron that takes Kd-vectors as they are, of dim numbers."""
        return perceptron, layout(dim, None, self.hidden)

    def _gradient(self, engine: Any, net: Any, theta: Array, buffer: BufferRows, count: int | None, z: Any) -> Array:
        """The gradient of the mean loss over one batch; z (..., kinds * batch) is the chance of this step."""
        u = arrays.special("ndtr", z[..., : self.batch]) if self._samples else None
        part = recent.batch(buffer, count, u)
        r, xp = part.r, arrays.namespace(theta)
        if self.a and not self.once:
            r = r + arrays.cast(self.a * z[..., -self.batch :][..., : r.shape[-1]], self.dtype)
        if self.output == "softmax":

            def pull(f: Any) -> Any:
                return losses.pull_arms(f, part.arm, r) * part.share[..., None]

            _, g = engine.gradient_arms(net, theta, part.X, pull)
        else:
            _, g = engine.gradient(net, theta, part.X, part.arm, lambda f: losses.pull(self.output, f, r) * part.share)
        if self.weight_decay:
            g += self.weight_decay * theta
        square, most = float(arrays.square(g)), LONGEST_GRADIENT[self.dtype]  # vdot does not warn of an overflow
        if not square < np.inf:
            raise ValueError(
                f"the gradient of the network overflows {self.dtype}: scale x and r down (features with mean 0 and "
                "sd 1 train best)"
            )
        if square > most**2:  # shortened and not refused: an old row may have made it, and would make it again
            length = arrays.norms(g)[..., None]  # of each run
            g *= xp.where(length > most, most / length, 1.0)
        return g

    def _cast(self, x: Array, name: str, *, most: float = LARGEST_FEATURE) -> Array:
        """x in the network's type. Raises ValueError where a number is not below `most`."""
        if self.placed is not None:
            x = np.asarray(x)
        if not arrays.square(x) < most**2 and not abs(x).max() < most:
            raise ValueError(
                f"{name} must lie below {most:g} for a network in {self.dtype}: scale it down (features with mean 0 "
                "and sd 1 train best)"
            )
        return arrays.cast(x, self.dtype)


class NetworkOnDevice(Network):
    """A network in a simulation on a device of torch: all arrays are tensors on `device`, with R runs always."""

    placed: Any = None  # its arrays are on the device

    def bytes(self, dim: int, rounds: int) -> int:
        """About how much memory one run takes after so many rounds, with what a round needs for a while.

        Arms with features of their own are counted as the rows of a batch.
        """
        engine, net = self._net(dim)
        rows = self.batch + (self.slots or self.batch)
        formed = min(net.forms * rows, engine.NUMBERS_AT_ONCE)
        numbers = COPIES * net.size + KEPT * rows * net.width + formed
        return super().bytes(dim, rounds) + np.dtype(self.dtype).itemsize * numbers

    def embedded(self, state: NetworkState, X: Array, arm: Array | None) -> Array:
        """φ of rows of every run, of the arm that is said with slots: X (R, n, d), arm (R, n) -> (R, n, h)."""
        engine, net = self._net(X.shape[-1])
        return answer(engine.last_hidden(net, state.theta, self._cast(X, "X"), arm))

    def _net(self, dim: int) -> tuple[Any, Any]:
        """The file whose functions compute the network, and the network as they take it."""
        from dither.models.network import at_once, modules

        return at_once, modules.network(self, dim)

    def _whole_net(self, dim: int) -> tuple[Any, Any]:
        """The same for a perceptron that takes Kd-vectors as they are, of dim numbers."""
        from dither.models.network import at_once, modules

        return at_once, modules.perceptron(self, dim)


def _whole(name: str, numbers: Any) -> tuple[int, ...]:
    """(50, 50) of 50, "50x50" or any sequence of whole numbers."""
    if isinstance(numbers, str):
        parts: Any = [int(part) if part.isdigit() else part for part in numbers.split("x")]
    else:
        parts = list(numbers) if np.iterable(numbers) else [numbers]
    for part in parts:
        errors.at_least(f"each number in {name}", part, 1)
    return tuple(int(part) for part in parts)


def answer(f: Array) -> Array:
    """f in float64. Raises ValueError where it is not finite."""
    if not arrays.square(f) < np.inf:
        raise ValueError("the network's answer is not finite: scale the features down (mean 0 and sd 1 train best)")
    return arrays.cast(f, "float64")
