"""The minimum of J along a line, for which the logits and their change are enough: O(n) a look."""

from dither import arrays
from dither.arrays import Array
from dither.links import Link
from dither.models.glm.problem import Problem

LINE = 100  # evaluations along a line, at most


def minimum(problem: Problem, theta: Array, N: Array, z: Array, dz: Array, *, far: Array, link: Link) -> Array:
    """s (G,) near the minimum of J(θ + sN): the slope has lost nine tenths of its size at s = 0. 1 but for `far`."""
    xp = arrays.namespace(theta)
    fixed, bend = problem.rho * xp.vecdot(theta, N), problem.rho * xp.vecdot(N, N)
    if problem.b is not None:
        fixed = fixed - xp.vecdot(problem.b, N)

    def slopes(s: Array) -> tuple[Array, Array]:
        e, w = link.residual(z + s[..., None] * dz, problem.count, problem.total)
        return xp.sum(e * dz, axis=-1) + fixed + s * bend, xp.sum(problem.count * w * dz * dz, axis=-1) + bend

    s = xp.ones_like(fixed)
    low, high = xp.zeros_like(s), xp.full_like(s, xp.inf)
    enough = xp.where(far, 0.1 * xp.abs(slopes(low)[0]), xp.inf)
    for step in range(LINE):
        up, curve = slopes(s)
        if not arrays.some(xp.abs(up) > enough):
            break
        low, high = xp.where(up < 0, s, low), xp.where(up > 0, s, high)
        newton = s - up / xp.where(curve > 0, curve, 1.0)
        middle = xp.where(xp.isfinite(high), (low + high) / 2, 4 * s)
        inside = (newton > low) & (newton < high) & xp.isfinite(newton)
        inside = inside & (newton < 16 * s) & (newton > s / 16)
        if step % 4 == 3:  # where Newton's steps are too short, as beyond the minimum of an exponential
            inside = inside & ~xp.isfinite(high)
        s = xp.where(xp.abs(up) <= enough, s, xp.where(inside, newton, middle))
    return s
