"""What is kept between two passes over the history, so that the distance to the exact estimate stays known.

The objective is approximated in two parts. The rows that the last pass read are the old rows: they count by one
quadratic at `base`, whose curvature R'R is right to within `offset`. Each later row counts by a quadratic at ζ, its
own logit after its update; the buffer holds these rows. The minimum of this model is at the current θ, up to a slope of
at most `slope`.

The slope of the objective itself at θ differs by a remainder that grows with how far the logits have moved. Let
D = θ - base, δ_j = x_j'θ - ζ_j for the later rows, s_0 >= |x'D| for the old rows, and s the largest of s_0 and all
|δ_j|. In the norm of the inverse of the current matrix

    ‖∇J(θ)‖ <= slope + (e^offset - 1)‖D‖_H + e^offset M φ(M s) √(s_0² ‖D‖_H² + Σ v_j δ_j⁴)

since that matrix is at least Σ v_i x_i x_i', so that ‖Σ c_i x_i‖² <= Σ c_i²/v_i.

In float64 every update misses the minimum of the model by a little. `drifted` adds to `slope` and `offset` what that
may be: the rest of the scalar equation for ζ, and the rounding of the products with F.
"""

import functools
import math
from typing import Any, NamedTuple

from dither.base import arrays
from dither.base.arrays import Array
from dither.links import Link
from dither.models import buffers, factor
from dither.models.glm import certificate, hessian, rounding
from dither.models.glm.batched import Solution

FIRST = 16  # rows that the buffer has room for at the start
QUICK = 5  # Newton steps after which the root is looked for inside a bracket
ROOT = 8 * rounding.UNIT  # relative size of a Newton step below which the root is found
SMALL = 1e-6  # size of a step below which steps that do not get shorter are rounding
FAR = 100.0  # |log eigenvalues| up to which an earlier bound is of use
MOST = 1e40  # larger lengths and changes are replaced by this one, so that their fourth powers do not overflow
LEAST_CAP = 512  # rows below which the buffer is never full


class Buffer(NamedTuple):
    """The rows since the last pass, in arrays with room for more."""

    X: Array  # (..., B, d)
    zeta: Array  # (..., B)
    v: Array  # (..., B)  ω μ'(ζ)


class Lazy(NamedTuple):
    """Shapes (...) are replications. "At most" marks a bound; H is the Hessian of the objective."""

    # What the last pass left.
    base: Array  # (..., d)  the estimate of the last pass
    R: Array  # (..., d, d)  R'R is H there
    old: Array  # (...)  max ‖x‖ in the norm of (R'R)⁻¹ over the old rows, at most
    exact: Array  # (...)  how many rows there were when `old` was last computed from the rows; int64
    passes: Array  # (...)  how often the history was read; int64
    nu: Array  # (...)  the multiplier of ‖θ‖ <= S
    # What is certain now.
    bound: Array  # (..., 2)  E, and the bound on |log eigenvalues|
    slope: Array  # (...)  the slope of the model at θ, in the norm of (R'R)⁻¹, at most
    noise: Array  # (...)  the part of `slope` that is rounding, summed over observations as independent errors are
    offset: Array  # (...)  |log eigenvalues| of R'R against the curvature at base, at most
    blur: Array  # (...)  |log eigenvalues| of FF' that are rounding, summed likewise
    reach: Array  # (...)  max ‖x‖ in the norm of the current H⁻¹ over all rows, at most
    stretch: Array  # (...)  length in the norm of Ĥ of a vector of length 1 in the norm of H, at most
    zmax: Array  # (...)  the largest of |x'base| over the old rows and |ζ| over the later ones
    xmax: Array  # (...)  max ‖x‖
    diagonal: Array  # (..., d)  H_ii
    inverse: Array  # (..., d)  (H⁻¹)_ii
    # What came since.
    buffer: Buffer  # the later rows
    fill: Array  # (...)  how many they are; int64
    left: Array | None = None  # (...)  what the old rows count, as a share of what they did at the last pass
    mass: Array | None = None  # (...)  what rows that were dropped count, as they fade: `forgotten.dropped`
    unread: Array | None = None  # (...)  how many rows at the beginning passes need not read; int64


class RowStep(NamedTuple):
    """One step of the recursion, as `learn` takes it. Shapes are (...), but theta and u are (..., d)."""

    theta: Array  # before the step
    z: Array  # x'θ
    zeta: Array  # ζ, v and |f| as of `proximal`
    u: Array  # H⁻¹x
    q: Array  # x'u
    v: Array
    left: Array
    omega: Array  # ω


def init(zeros: Array, rho: float, lam: float) -> Lazy:
    """Before the first observation, for features like zeros (..., d)."""
    xp, d, empty = arrays.namespace(zeros), zeros.shape[-1], functools.partial(arrays.blank, zeros)
    numbers = ("old", "nu", "slope", "noise", "offset", "blur", "reach", "zmax", "xmax")
    return Lazy(
        base=empty(d),
        R=factor.identity(zeros, rho**0.5),
        buffer=Buffer(empty(FIRST, d), empty(FIRST), empty(FIRST)),
        bound=empty(2),
        stretch=empty() + max(1.0, (lam / rho) ** 0.5),
        diagonal=empty(d) + rho,
        inverse=empty(d) + 1 / rho,
        **{name: empty() for name in numbers},
        **{name: empty(dtype=xp.int64) for name in ("exact", "passes", "fill")},
    )


def proximal(z: Array, q: Array, r: Array, omega: Array, *, link: Link) -> tuple[Array, Array, Array]:
    """ζ, v and |f|, all (...): the root ζ of f(ζ) = ζ - z + ωq (μ(ζ) - r), v = ω μ'(ζ), and the |f| that is left.

    By Newton's method. Where a few steps find no root, it starts anew inside a bracket.
    """
    k, zeta = omega * q, z
    for _ in range(QUICK):
        pull, slope = link.residual(zeta, k, k * r)
        f = (zeta - z) + pull
        move = -f / (1 + k * slope)
        new = zeta + move
        going = abs(move) > ROOT * (abs(zeta) + abs(z))
        if not arrays.some(going):
            return zeta, omega * slope, abs(f)
        zeta = arrays.namespace(z).where(going, new, zeta)
    root, v, left = _bracketed(z, k, r, omega, link=link)
    where = arrays.namespace(z).where
    return where(going, root, zeta), where(going, v, omega * slope), where(going, left, abs(f))


def _bracketed(z: Array, k: Array, r: Array, omega: Array, *, link: Link) -> tuple[Array, Array, Array]:
    """`proximal` by Newton's method inside a bracket, which is halved where a step leaves it or steps are too short.

    The length of a Newton step says when the root is found; the length of a halving says nothing.
    """
    xp = arrays.namespace(z)
    pull, slope = link.residual(z, k, k * r)
    before = xp.abs(pull)
    end = z - xp.where(before < 1e200, pull, xp.sign(pull) * 1e200)
    low, high = xp.minimum(z, end), xp.maximum(z, end)
    zeta = _between(z - pull / (1 + k * slope), low, high)
    last, done = xp.abs(zeta - z), before < 0
    for step in range(200):
        pull, slope = link.residual(zeta, k, k * r)
        f = (zeta - z) + pull
        move, left = -f / (1 + k * slope), xp.abs(f)
        size = xp.abs(move)
        done = done | (size <= ROOT * (xp.abs(zeta) + xp.abs(z))) | ((last <= SMALL) & (size >= last / 2))
        if not arrays.some(~done):
            break
        low, high = xp.where(f < 0, zeta, low), xp.where(f >= 0, zeta, high)
        new = zeta + move
        slow = (left > before / 2) | (new < low) | (new > high) | (step % 6 == 5)
        slow, before = slow & (size > SMALL), left
        new = xp.where(slow, (low + high) / 2, _between(new, low, high))
        last, zeta = xp.where(slow, xp.inf, size), xp.where(done, zeta, new)
    return zeta, omega * slope, left


def _between(x: Array, low: Array, high: Array) -> Array:
    xp = arrays.namespace(x)
    return xp.minimum(xp.maximum(x, low), high)


def drifted(lazy: Lazy, x: Array, r: Array, step: RowStep, F: Array, *, link: Link) -> Lazy:
    """What is kept, with what rounding may have done to the model at one observation: x (..., d), r (...).

    F (..., d, d) : the factor after it, FF' = H⁻¹

    In the norm of H⁻¹ the error has three parts: |f|/√(q s) from the equation that ζ solves, d u Σ √(H_jj (H⁻¹)_jj)
    times the length of the step, √(ωq) |μ - r|, from the products with F, and u Σ √H_jj |θ_j| from the sum that is θ.

    ζ is off by that of its equation, of q, and of the θ before, divided by s. It moves the log of v by M times as much,
    and v xx' is a share (s - 1)/s of the new H. So this counts where q is long, and hardly once there are rows.
    """
    xp, d, unit = arrays.namespace(x), x.shape[-1], rounding.UNIT
    theta, z, zeta, _, q, v, left, omega = step
    s = 1 + v * q
    error = left + rounding.FEW * (abs(zeta) + abs(z)) + d * unit * xp.vecdot(abs(x), abs(theta))
    taken = rounding.FEW * omega * q * abs(r)  # of μ - r, where nearly equal numbers may be subtracted
    diagonal = lazy.diagonal + v[..., None] * (x * x)
    spread = rounding.FEW * rounding.spread(diagonal, lazy.inverse)
    of_q = d * spread * abs(zeta - z)
    slip = ((error + taken) / xp.sqrt(s) + of_q) / xp.sqrt(xp.where(q > 0, q, 1.0))
    slip = slip + unit * rounding.length(diagonal, theta)  # q is 0 for an x of zeros
    if link.support == (0.0, 1.0):  # the links know 1 - μ to the last digit
        taken = xp.where((r == 0) | (r == 1), 0.0, taken)
    of_z = lazy.noise * xp.sqrt(q)  # of the θ before
    lost = link.M(abs(zeta)) * ((error + taken + of_q + of_z) / s) * ((s - 1) / s)
    blur = 2 * spread * (1 + d * (s - 1) / s) + unit * (8 + zeta * zeta)
    return lazy._replace(
        slope=lazy.slope + slip,
        offset=lazy.offset + blur,
        noise=xp.sqrt(lazy.noise * lazy.noise + slip * slip),
        blur=xp.sqrt(lazy.blur * lazy.blur + (blur + lost) * (blur + lost)),
        diagonal=diagonal,
        inverse=xp.vecdot(F, F),
    )


def faded(lazy: Lazy, left: Array, moved: Array, F: Array, *, rho: Array | float) -> Lazy:
    """What is kept when all rows count `left` (...) times as much, and ρ as before.

    moved (...) : ‖step‖ to the new minimum of the model, in the norm of H; F (..., d, d) : the new factor, FF' = H⁻¹

    The slope of the model was e. It is left e now, in the norm of a matrix that is at least left times the old one. So
    its length is √left times that of before, and no ‖x‖ is longer than 1/√left times that of before, or than ‖x‖/√ρ.
    """
    xp, pull = arrays.namespace(left), (1 - left) * rho
    diagonal, inverse = left[..., None] * lazy.diagonal + pull[..., None], xp.vecdot(F, F)
    kappa = rounding.of_cholesky(diagonal, inverse)
    slip, root = kappa * moved, xp.sqrt(left)
    longest = lazy.xmax / rho**0.5
    safe = xp.where(root > 0, root, 1.0)
    return lazy._replace(
        slope=root * lazy.slope + slip,
        noise=xp.sqrt(left * lazy.noise * lazy.noise + slip * slip),
        offset=lazy.offset + kappa,
        blur=kappa,
        reach=xp.where(root * longest > lazy.reach, lazy.reach / safe, longest),
        buffer=lazy.buffer._replace(v=left[..., None] * lazy.buffer.v),
        diagonal=diagonal,
        inverse=inverse,
        left=left * lazy.left,
    )


def extend(lazy: Lazy, x: Array, zeta: Array, v: Array, width: Array, *, own: bool) -> Lazy:
    """What is kept, with one more row: x (..., d), zeta, v (...); width (...) is ‖x‖ in the norm of the current H⁻¹."""
    xp, rows = arrays.namespace(x), lazy.buffer
    if int(xp.max(lazy.fill)) == rows.zeta.shape[-1]:
        size, own = 2 * rows.zeta.shape[-1], True
        rows = Buffer(*(buffers.grown(A, size, rank=rank) for A, rank in zip(rows, (1, 0, 0), strict=True)))
    parts = zip(rows, (x, zeta, v), (1, 0, 0), strict=True)
    return lazy._replace(
        buffer=Buffer(*(arrays.replace(A, lazy.fill, new, rank=rank, own=own) for A, new, rank in parts)),
        fill=lazy.fill + 1,
        zmax=xp.maximum(lazy.zmax, xp.abs(zeta)),
        reach=xp.maximum(lazy.reach, width),
    )


def strayed(lazy: Lazy, theta: Array, width: Array, *, model: Any) -> Lazy | None:
    """What is kept where the row after a pass alone moves the logits so far that another pass is due; else None.

    For one run. theta, width : as of `measured` and `extend`, of which the first part says enough
    """
    if int(lazy.fill):
        return None
    D = theta - lazy.base
    size = arrays.norms(arrays.dot(lazy.R, D))
    s = min(float(lazy.xmax * arrays.norms(D)), float(lazy.old * size), MOST)
    drift = float(model.function.M(float(lazy.zmax) + s)) * s + float(lazy.offset)
    if not drift > most_drift(model.tol):
        return None
    xp = arrays.namespace(theta)
    bound = xp.stack([xp.full_like(lazy.offset, xp.inf), xp.full_like(lazy.offset, drift)])
    return lazy._replace(reach=xp.maximum(lazy.reach, width), bound=bound)


def measured(lazy: Lazy, theta: Array, *, link: Link, rho: Array | float) -> Lazy:
    """What is kept, with the bound at theta (..., d); rho is ρ, (...) or a number."""
    xp = arrays.namespace(theta)
    D, most = theta - lazy.base, xp.full_like(lazy.slope, MOST)
    length = arrays.norms(D)
    size = xp.minimum(arrays.norms(arrays.dot(lazy.R, D)), most)
    s0 = xp.minimum(xp.minimum(lazy.xmax * length, lazy.old * size), most)
    if lazy.left is not None:  # the old rows have faded, and ρ has not
        size = xp.minimum(xp.sqrt(lazy.left * size * size + (1 - lazy.left) * rho * length * length), most)
    n = max(1, int(xp.max(lazy.fill)))
    used = xp.arange(n, device=arrays.device(theta)) < lazy.fill[..., None]
    delta = arrays.dot(lazy.buffer.X[..., :n, :], theta) - lazy.buffer.zeta[..., :n]
    delta = xp.where(used, xp.abs(delta), 0.0)
    delta = xp.where(delta < MOST, delta, MOST)
    square = delta * delta
    s = xp.maximum(s0, xp.max(delta, axis=-1))
    M = link.M(lazy.zmax + s)
    a = M * s
    quartic = s0 * s0 * size * size + xp.vecdot(lazy.buffer.v[..., :n] * square, square)
    off = certificate.grown(lazy.offset)
    rem = lazy.slope + off * size
    rem = rem + (1 + off) * M * certificate.phi(certificate.cut(a)) * xp.sqrt(quartic)
    bound = certificate.bounds(a + lazy.offset, rem, lazy.reach, zmax=lazy.zmax + s, link=link)
    return lazy._replace(bound=stretched(bound, lazy.stretch))


def stretched(bound: Array, stretch: Array) -> Array:
    """The bound in the norm of Ĥ, from the bound in the norm of the objective's Hessian: (..., 2)."""
    xp = arrays.namespace(bound)
    drift = xp.exp(xp.where(bound[..., 1] < certificate.FAR, bound[..., 1], 0.0) / 2)  # what either may be off by
    return xp.stack([bound[..., 0] * xp.where(stretch > 1, stretch * drift, 1.0), bound[..., 1]], axis=-1)


def renewal(lazy: Lazy, solution: Solution, *, runs: Any = ..., rows: Array, every: Array | bool) -> dict[str, Array]:
    """What a pass over `rows` (...) rows changes of what is kept of the `runs`, by the names of its parts.

    every : (...) whether every row was looked at for the longest one
    """
    xp, before = arrays.namespace(rows), lazy.exact[runs]
    exact = (rows if every else before) if isinstance(every, bool) else xp.where(every, rows, before)
    changes = {name: part for name, part in solution._asdict().items() if name not in ("theta", "F", "steps")}
    if lazy.left is not None:
        changes["left"] = xp.ones_like(solution.slope)
    return changes | {
        "old": solution.reach,
        "exact": exact,
        "passes": lazy.passes[runs] + solution.steps,
        "fill": 0 * before,
        "bound": stretched(solution.bound, lazy.stretch[runs]),
        "diagonal": arrays.namespace(rows).vecdot(solution.R.mT, solution.R.mT),
        "inverse": arrays.namespace(rows).vecdot(solution.F, solution.F),
    }


def without(lazy: Lazy, solution: Solution, *, link: Link, rho: Array | float) -> Lazy:
    """What is kept after a pass without the rows of this `mass`, which have a part in the estimate all the same.

    ‖x‖ <= max ‖x‖ ‖F‖ for each of them. So their slope is at most mass ‖x‖, and their share of H mass ‖x‖².
    """
    long = lazy.xmax * hessian.spread(solution.F)
    lazy = lazy._replace(slope=lazy.slope + lazy.mass * long, offset=lazy.offset + lazy.mass * long * long)
    return measured(lazy, solution.theta, link=link, rho=rho)


def most_drift(tol: float) -> float:
    """The bound on |log eigenvalues| above which a pass is due."""
    return 2 * math.log1p(tol)


def cap(rows: int, dim: int) -> int:
    """How many rows the buffer may have: to read more in every round would cost more than a pass now and then."""
    return max(LEAST_CAP, int((2 * rows * dim) ** 0.5))


def full(fill: Array, rows: Array, dim: int) -> Array:
    """Whether the buffer has as many rows as `cap` says, (...)."""
    return (fill >= LEAST_CAP) & (fill * fill >= 2 * dim * rows)


def check(lazy: Lazy) -> None:
    """Refuse a buffer that no data can lead to, as of a file that something else wrote."""
    X, zeta, v = lazy.buffer
    if X.shape[:-1] != zeta.shape or zeta.shape != v.shape or int(lazy.fill.max()) > zeta.shape[-1]:
        raise ValueError(f"its buffer has shapes {X.shape}, {zeta.shape}, {v.shape}, which do not fit")
