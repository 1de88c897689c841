"""A perceptron with ReLU units, forward and backward by hand.

    z_1 = W_1'x + b_1,  a_l = max(z_l, 0),  z_{l+1} = W_{l+1}'a_l + b_{l+1},  f = z_L
    δ_L = 1,  δ_l = (W_{l+1} δ_{l+1}) 1[z_l > 0]        ∂f/∂W_l = a_{l-1} δ_l',  ∂f/∂b_l = δ_l
    Σ_p (∂f/∂θ_p)² u_p = Σ_l (a_{l-1}²)' u_{W_l} δ_l² + u_{b_l}'δ_l²            closed form: no gradient is formed
    ‖∇_x f‖ = ‖W_1 δ_1‖

θ is (p,) for one network and (R, p) for R networks in lockstep. With slots a batch is computed in one of two ways:

    placed    as rows of Kd numbers, where Kd is small: one product forward, one backward
    grouped   arm by arm, each with its own block of weights: the work does not grow with K
"""

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dither.models.network import scratch
from dither.models.network.layout import Layer, WeightLayout

ZERO = np.zeros((), np.float32)  # an array, since NumPy converts a Python number anew in every call
PLACED = 1024  # K d up to which rows of Kd numbers are quicker than a product for each arm


class ForwardPass(NamedTuple):
    """What a forward pass keeps: rows (..., N, m) of every layer."""

    acts: list[np.ndarray]  # a_1, ..., a_{L-1}
    f: np.ndarray  # (..., N)


class Room(NamedTuple):
    """Borrowed memory (`scratch`) for the gradient of a batch of B rows."""

    g: np.ndarray  # (..., p)  the gradient
    parts: list[Layer]  # its layers
    acts: list[np.ndarray]  # (..., B, h + 1) of each hidden layer; every row ends in 1
    open: list[np.ndarray]  # (..., B, h)  the same without the 1
    rows: Any  # (..., B, K d + 1)  the Kd-vectors, each with a 1 at its end; None: they are too long
    blank: Any  # the same without the features
    blocks: Any  # (all rows, K, d)  the rows without the 1, by slot
    each: Any  # (all rows,)  0, 1, 2, ...


def forward(net: WeightLayout, theta: np.ndarray, X: np.ndarray, *, by_slot: bool = False) -> np.ndarray:
    """f of every arm, (..., K): X (..., K, d); with slots the context (..., d), or by_slot a row for each."""
    layers = net.views(theta)
    z, restored = _inputs(net, layers[0], X, by_slot=by_slot, lead=theta.ndim - 1)
    return restored(_rest(layers, z).f)


def jittered(net: WeightLayout, theta: np.ndarray, X: np.ndarray, eta: np.ndarray, scale) -> np.ndarray:
    """f of one request under n jitters of each arm's own features: X (K, d), with slots (d,); eta (n, K, r) -> (n, K).

    The jitter is drawn in the width h of the first layer. W'(x + Dζ) has the law of W'x + N(0, (DW)'(DW)). With DW = QR
    that is the law of W'x + R'η, where η ~ N(0, I) has r = min(d, h) numbers. So n draws cost n h² an arm, not n d h.

    scale : the diagonal of D, a number or (..., d)
    """
    layers = net.views(theta)
    W = layers[0].W if net.slots is not None else layers[0].W[None]
    rows = np.broadcast_to(X, (eta.shape[1], net.d))
    D = np.asarray(scale, W.dtype).reshape(-1, 1) if np.ndim(scale) else W.dtype.type(scale)
    R = np.linalg.qr(W * D, mode="r")
    z = np.swapaxes(eta, 0, 1) @ R + (rows[:, None, :] @ W + layers[0].b)  # (K, n, h)
    f = _rest(layers, z.reshape(-1, z.shape[-1])).f
    return f.reshape(len(z), -1).T


def last_hidden(net: WeightLayout, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
    """φ = a_{L-1} of every arm: X as for `forward` -> (..., K, h)."""
    layers = net.views(theta)
    z, restored = _inputs(net, layers[0], X, lead=theta.ndim - 1)
    return restored(_rest(layers, z).acts[-1])


def gradient_norms(
    net: WeightLayout, theta: np.ndarray, X: np.ndarray, u: np.ndarray | None = None, *, inputs: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """f and √Σ_p (∂f/∂θ_p)² u_p of every arm, (..., K) each: X as for `forward`, u (..., p) positive.

    inputs=True : f and ‖∇_x f‖ instead, where ∇_x is over the arm's own d features
    """
    layers, lead = net.views(theta), theta.ndim - 1
    z, restored = _inputs(net, layers[0], X, lead=lead)
    done = _rest(layers, z)
    weight = None if u is None else net.views(u)
    total, delta = np.zeros_like(done.f), np.ones_like(done.f)[..., None]
    for i in range(len(layers) - 1, 0, -1):
        a = done.acts[i - 1]
        if weight is not None:
            square = delta * delta
            total += np.sum((a * a @ weight[i].W) * square, axis=-1) + (square @ weight[i].b[..., None])[..., 0]
        delta = (delta @ layers[i].W.mT) * (a > 0)
    square = delta * delta
    if weight is not None:
        inner, _ = _inputs(net, weight[0], X * X, lead=lead)
        total += np.sum(inner * square, axis=-1)
    if inputs:
        total = _input_norms(net, layers[0], delta, lead=lead)
    return restored(done.f), np.sqrt(restored(total))


def add_squares(
    net: WeightLayout, theta: np.ndarray, x: np.ndarray, arm: np.ndarray | None, uinv: np.ndarray, weight: Any = 1.0
) -> None:
    """Update `uinv` = 1/U in place, where U grows by ω (∂f/∂θ)² at one row of each run.

    x (..., d); arm (...) with slots; uinv (..., p); weight : ω, a number or (...)
    """
    layers, parts = net.views(theta), net.views(uinv)
    first = _own_block(layers[0], arm)
    z = (x[..., None, :] @ first)[..., 0, :] + layers[0].b
    acts = _rest(layers, z[..., None, :]).acts
    delta = np.ones((*x.shape[:-1], 1), theta.dtype)
    weight = np.asarray(weight, theta.dtype)[..., None]
    for i in range(len(layers) - 1, 0, -1):
        a = acts[i - 1][..., 0, :]
        _shrink(parts[i].W, parts[i].b, a, weight * delta * delta)
        delta = (layers[i].W @ delta[..., None])[..., 0] * (a > 0)
    block = _own_block(parts[0], arm)
    _shrink(block, parts[0].b, x, weight * delta * delta)
    if arm is not None and theta.ndim > 1:
        parts[0].W[np.arange(len(arm)), arm] = block


def gradient(net: WeightLayout, theta: np.ndarray, X: np.ndarray, arm: Any, pull) -> tuple[np.ndarray, np.ndarray]:
    """f (..., B) of a batch and Σ_b pull_b ∂f_b/∂θ (..., p): X (..., B, d), arm (..., B) with slots.

    The gradient lies in borrowed memory (`scratch`). pull : from f (..., B) to what multiplies the gradients, (..., B)
    """
    layers, room = net.views(theta), _room(net, X.shape[:-1], theta.dtype)
    first = room.parts[0]
    if room.rows is None:
        groups = _groups(arm)
        _grouped(layers[0], X, groups, out=room.open[0])
        f = _above(layers, room)
        delta = _below(layers, room, pull(f))
        _grouped_gradient(first, X, groups, delta)
        np.sum(delta, axis=-2, out=first.b)
        return f, room.g
    rows = _placed(room, X, arm)
    np.matmul(rows, layers[0].both, out=room.open[0])
    f = _above(layers, room)
    np.matmul(rows.mT, _below(layers, room, pull(f)), out=first.both)
    return f, room.g


def gradient_arms(net: WeightLayout, theta: np.ndarray, X: np.ndarray, pull) -> tuple[np.ndarray, np.ndarray]:
    """As `gradient`, with all K arms of a context in its loss: X (..., B, d); pull maps (..., B, K) to (..., B, K)."""
    K, B, lead = net.slots or 1, X.shape[-2], theta.shape[:-1]
    layers, room = net.views(theta), _room(net, (*lead, K * B), theta.dtype)
    z = X[..., None, :, :] @ layers[0].W + layers[0].b[..., None, None, :]  # (..., K, B, h)
    room.open[0][...] = z.reshape(*lead, K * B, -1)
    f = np.swapaxes(_above(layers, room).reshape(*lead, K, B), -1, -2)
    delta = _below(layers, room, np.swapaxes(pull(f), -1, -2).reshape(*lead, K * B))
    np.sum(delta, axis=-2, out=room.parts[0].b)
    np.matmul(X.mT[..., None, :, :], delta.reshape(*lead, K, B, -1), out=room.parts[0].W)
    return f, room.g


def _placed(room: Room, X: np.ndarray, arm: np.ndarray | None) -> np.ndarray:
    """The Kd-vectors of a batch in the room's rows: X (..., B, d), arm (..., B) -> (..., B, K d + 1)."""
    if arm is None:
        room.rows[..., :-1] = X
    else:
        room.rows[...] = room.blank
        room.blocks[room.each, arm.reshape(-1)] = X.reshape(-1, X.shape[-1])
    return room.rows


def _inputs(
    net: WeightLayout, first: Layer, X: np.ndarray, *, lead: int, by_slot: bool = False
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """z_1 as rows (..., N, m), and the rule that brings answers of rows, (..., N) or (..., N, h), back to (..., K)."""
    if lead:
        if net.slots is None:
            return X @ first.W + first.b[..., None, :], lambda f: f
        rows = X[..., None, :] if by_slot else X[..., None, None, :]
        z = (rows @ first.W)[..., 0, :]
        z += first.b[..., None, :]
        return z, lambda f: f
    if net.slots is None:
        return X.reshape(-1, net.d) @ first.W + first.b, lambda f: f.reshape(*X.shape[:-1], *f.shape[1:])
    before = (*(X.shape[:-2] if by_slot else X.shape[:-1]), net.slots)
    rows = X.reshape(-1, net.slots, net.d).swapaxes(0, 1) if by_slot else X.reshape(1, -1, net.d)
    z = rows @ first.W + first.b  # (K, B, m): one product an arm

    def restored(f: np.ndarray) -> np.ndarray:
        return np.swapaxes(f.reshape(*z.shape[:2], *f.shape[1:]), 0, 1).reshape(*before, *f.shape[1:])

    return z.reshape(-1, z.shape[-1]), restored


def _rest(layers: list[Layer], z: np.ndarray) -> ForwardPass:
    """The layers after the first, from z_1 (..., N, m), which is overwritten."""
    acts = []
    for layer in layers[1:]:
        a = np.maximum(z, ZERO, out=z)
        acts.append(a)
        z = a @ layer.W
        z += layer.b[..., None, :]
    return ForwardPass(acts, z[..., 0])


def _room(net: WeightLayout, shape: tuple[int, ...], dtype) -> Room:
    """The room for a batch of this shape, (..., B)."""

    def make() -> Room:
        g = np.zeros((*shape[:-1], net.size), dtype)
        acts, K = [np.ones((*shape, h + 1), dtype) for h in net.hidden], net.slots or 1
        room = Room(g, net.views(g), acts, [a[..., :-1] for a in acts], None, None, None, None)
        if net.slots is not None and K * net.d > PLACED:
            return room
        blank, n = np.zeros((*shape, K * net.d + 1), dtype), math.prod(shape)
        blank[..., -1] = 1
        rows = blank.copy()
        blocks = rows.reshape(n, -1)[:, :-1].reshape(n, K, net.d)
        return room._replace(rows=rows, blank=blank, blocks=blocks, each=np.arange(n))

    return scratch.borrow("room", (net, shape, dtype), make)


def _above(layers: list[Layer], room: Room) -> np.ndarray:
    """f (..., B), from the z_1 that lies in the room; all activations are filled in."""
    for i, a in enumerate(room.acts):
        np.maximum(a, ZERO, out=a)  # of whole rows, which is quicker: the 1 stays
        if i + 1 < len(room.acts):
            np.matmul(a, layers[i + 1].both, out=room.open[i + 1])
    return (room.acts[-1] @ layers[-1].both)[..., 0]


def _below(layers: list[Layer], room: Room, pull: np.ndarray) -> np.ndarray:
    """δ_1 (..., B, m); the gradients of all layers but the first are written into the room."""
    delta = pull[..., None]
    for i in range(len(layers) - 1, 0, -1):
        a, W = room.acts[i - 1], layers[i].W
        np.matmul(a.mT, delta, out=room.parts[i].both)
        delta = delta * W.mT if W.shape[-1] == 1 else delta @ W.mT  # of one column: an outer product
        delta *= (a > ZERO)[..., :-1]  # compared in whole rows, which is quicker
    return delta


def _own_block(first: Layer, arm: np.ndarray | None) -> np.ndarray:
    """The block of the arm shown in the first W: (..., d, m)."""
    if arm is None:
        return first.W
    return first.W[int(arm)] if arm.ndim == 0 else first.W[np.arange(len(arm)), arm]  # int: an index () would copy


def _shrink(W: np.ndarray, b: np.ndarray, a: np.ndarray, square: np.ndarray) -> None:
    """Replace u by u/(1 + g² u) in place, for the gradients g = a δ' of W and g = δ of b in one layer; square is δ²."""
    W /= 1 + (a * a)[..., :, None] * square[..., None, :] * W
    b /= 1 + square * b


def _input_norms(net: WeightLayout, first: Layer, delta: np.ndarray, *, lead: int) -> np.ndarray:
    """‖W_1 δ_1‖² for every row (..., N)."""
    if net.slots is None:
        g = delta @ first.W.mT
    elif lead:
        g = (delta[..., None, :] @ first.W.mT)[..., 0, :]
    else:
        of_arm = delta.reshape(net.slots, len(delta) // net.slots, delta.shape[-1])
        g = (of_arm @ first.W.mT).reshape(len(delta), first.W.shape[-2])
    return np.sum(g * g, axis=-1)


def _grouped(first: Layer, X: np.ndarray, groups: list[tuple], *, out: np.ndarray) -> None:
    """Write z_1 of each row into `out` (..., B, m), arm by arm."""
    for run, k, rows in groups:
        out[*run, rows] = np.dot(X[*run, rows], first.W[*run, k]) + first.b[run]


def _grouped_gradient(part: Layer, X: np.ndarray, groups: list[tuple], delta: np.ndarray) -> None:
    """Write Σ x δ' of each arm into its block of the gradient; 0 where an arm has no row."""
    idle = np.ones(part.W.shape[:-2], bool)
    for run, k, rows in groups:
        idle[*run, k] = False
        np.dot(X[*run, rows].T, delta[*run, rows], out=part.W[*run, k])  # for few rows np.dot is quicker than matmul
    part.W[idle] = 0


def _groups(arm: np.ndarray) -> list[tuple]:
    """(run, arm, its rows) for every arm in the batch of every run; for one network run is ()."""
    groups = []
    for run in np.ndindex(arm.shape[:-1]):
        order = np.argsort(arm[run], kind="stable")
        arms = arm[run][order]
        ends = [0, *(np.flatnonzero(arms[1:] != arms[:-1]) + 1).tolist(), len(arms)]
        groups += [(run, int(arms[a]), order[a:b]) for a, b in itertools.pairwise(ends)]
    return groups
