"""How far an estimate is from the exact one, at most, without a look at the history (self-concordance).

The objective is J(θ) = Σ ω [g(x'θ) - r x'θ] + ρ‖θ‖²/2. Its Hessian is H(θ) = ρI + Σ ω μ'(x'θ) xx'. On the logits at
hand |μ''| <= M μ'. The bound takes a matrix Ht and, for the θ at hand, three numbers:

    a      M |x'θ - ζ| <= a for all x, where ζ is the logit at which x entered Ht; hence e^{-a} Ht <= H(θ) <= e^{a} Ht
    rem    ‖∇J(θ)‖ <= rem in the norm of Ht⁻¹
    reach  ‖x‖ <= reach in the norm of Ht⁻¹, for all x

Let ν = e^{a/2} rem and R = e^{a/2} reach. The minimiser lies within e of θ in the norm of H(θ), where

    e = -log(1 - M R ν)/(M R)

The reason: along a ray of length s from θ, the curvature is at least e^{-M R s} times that at θ. So on the sphere of
radius e around θ all slopes point outwards. The bound is used for M R ν < `LIMIT`, and is infinite beyond. Below
`LIMIT`, e <= 2ν, so that M need hold only for logits that are 2Rν further than those at θ; probit has no M for all
logits. In the norms of Ht, H(θ) and H(minimiser) alike

    ‖θ - minimiser‖ <= E = e exp(max(a, M R e)/2),     |log eigenvalues of Ht against H(minimiser)| <= a + M R e
"""

from dither.base import arrays
from dither.base.arrays import Array
from dither.links import Link

LIMIT = 0.79  # of M R ν, above which nothing is certain
HUGE = 1e60  # larger numbers are replaced by this one, so that products do not overflow
FAR = 50.0  # a above which nothing is certain
SMALL = 1e-3  # arguments below which a series replaces a quotient of small numbers


def bounds(a: Array, rem: Array, reach: Array, *, zmax: Array, link: Link) -> Array:
    """E and the bound on the log eigenvalues: (...) -> (..., 2); infinite where nothing is certain.

    a, rem, reach (...) as above; zmax (...) is the largest |x'θ|
    """
    xp = arrays.namespace(a)
    half = xp.exp(cut(a) / 2)
    nu, R = (half * xp.where(size < HUGE, size, HUGE) for size in (rem, reach))
    M = link.M(zmax + 2 * R * nu)
    y = M * R * nu
    certain = (a < FAR) & (y < LIMIT)
    sure = bool(xp.all(certain))
    y = y if sure else xp.where(certain, y, 0.0)
    e = nu * (1 + y * (1 / 2 + y * (1 / 3 + y / 4)))
    small = y < SMALL
    if not bool(xp.all(small)):
        safe = xp.where(small, 0.5, y)
        e = xp.where(small, e, nu * (-xp.log1p(-safe) / safe))
    drift = M * R * e
    if not sure:
        drift, a = xp.where(certain, drift, 0.0), xp.where(certain, a, 0.0)
    bound = xp.stack([e * xp.exp(xp.where(a > drift, a, drift) / 2), a + drift], axis=-1)
    return bound if sure else xp.where(certain[..., None], bound, xp.inf)


def cut(a: Array) -> Array:
    """a, or `FAR` where a is larger or NaN: (...)."""
    return arrays.namespace(a).where(a < FAR, a, FAR)


def grown(a: Array) -> Array:
    """e^a - 1, for a >= 0 as of `cut`: (...)."""
    return arrays.namespace(a).expm1(cut(a))


def phi(a: Array) -> Array:
    """φ(a) = (e^a - 1 - a)/a² for a >= 0; then |μ(z + d) - μ(z) - μ'(z) d| <= M μ'(z) d² φ(M |d|)."""
    xp = arrays.namespace(a)
    small = a < SMALL
    safe = xp.where(small, 1.0, xp.where(a < 700, a, 700.0))
    return xp.where(small, 0.5 + a * (1 / 6 + a / 24), (xp.expm1(safe) - safe) / (safe * safe))
