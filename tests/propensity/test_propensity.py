"""Choice probabilities of lines against comparisons of all pairs in rational arithmetic, quadrature and draws."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import integrate, special

import oracles
from dither import noise, propensity
from dither.base import arrays

GAUSSIAN = noise.Gaussian()

# Heights and slopes on a grid, so that ties and triple points are common and exact.
grid = st.integers(-12, 12).map(lambda i: i / 4)
slopes = st.integers(0, 8).map(lambda i: i / 4)
lines = st.lists(st.tuples(grid, slopes), min_size=1, max_size=9)
powers = st.sampled_from([1.0, 2.0**-40, 2.0**40, 2.0**-300, 2.0**300])


def both(m, w, *, law=GAUSSIAN, mask=None):
    """All arms at once; and arm by arm, which must agree."""
    m, w = np.array(m, dtype=float), np.array(w, dtype=float)
    p = propensity.envelope(m, w, law=law, mask=mask)
    one = [propensity.chosen(m, w, np.array(i), law=law, mask=mask) for i in range(len(m)) if mask is None or mask[i]]
    assert_allclose(one, p if mask is None else p[mask], rtol=1e-9, atol=1e-15)
    return p


@given(lines=lines, scale=powers)
@example(lines=[(0.0, 0.0)], scale=1.0)
@example(lines=[(0.0, 0.0)] * 4, scale=1.0)
@example(lines=[(1.0, 1.0), (1.0, 1.0), (0.0, 2.0), (2.0, 0.0)], scale=1.0)  # three through one point, one twice
@example(lines=[(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)], scale=1.0)
def test_lines_are_compared_pair_by_pair(lines, scale):
    m, w = np.array(lines).T
    p = both(scale * m, scale * w)
    assert_allclose(p, oracles.line_mass(m, w), rtol=1e-9, atol=1e-15)
    assert abs(p.sum() - 1) < 1e-12
    # seen red: the lowest of equal slopes kept; the mass not shared among copies


@given(lines=st.lists(st.tuples(st.floats(-3, 3), st.floats(0, 3)), min_size=1, max_size=12))
def test_lines_of_any_numbers(lines):
    m, w = np.array(lines).T
    scale_m, scale_w = np.abs(m).max(), w.max()
    # What is within rounding of a tie is the tie rule's, tested elsewhere.
    for a, b in itertools.combinations(lines, 2):
        if a != b and abs(a[0] - b[0]) <= 1e-9 * scale_m and abs(a[1] - b[1]) <= 1e-9 * scale_w:
            return
    assert_allclose(both(m, w), oracles.line_mass(m, w), rtol=1e-6, atol=1e-12)


@given(lines=lines, kept=st.lists(st.booleans(), min_size=9, max_size=9))
def test_masking_is_leaving_out(lines, kept):
    m, w = np.array(lines).T
    mask = np.array(kept[: len(lines)])
    if not mask.any():
        return
    p = both(m, w, mask=mask)
    assert not p[~mask].any()
    assert_allclose(p[mask], oracles.line_mass(m[mask], w[mask]), rtol=1e-9, atol=1e-15)


def test_what_is_masked_has_no_say_in_what_is_a_tie():
    m, w = np.array([1.0, 2.0, 1e14]), np.array([1.0, 1.0, 0.5])
    mask = np.array([True, True, False])
    assert_allclose(propensity.envelope(m, w, law=GAUSSIAN, mask=mask), [0, 1, 0])
    assert_allclose([propensity.chosen(m, w, np.array(i), law=GAUSSIAN, mask=mask) for i in (0, 1)], [0, 1])
    assert_allclose(arrays.share(m, mask=mask), [0, 1, 0])


@given(lines=lines, order=st.randoms(use_true_random=False))
def test_permuted_lines_permute_the_answer(lines, order):
    place = list(range(len(lines)))
    order.shuffle(place)
    m, w = np.array(lines).T
    assert_allclose(both(m[place], w[place]), both(m, w)[place], rtol=1e-12, atol=1e-300)


def test_far_tails_keep_their_digits():
    # Line 1 overtakes line 0 at z = 12, 20, 30: log P = log Φ(-z), where 1 - Φ(z) would be 0.
    for z in (-30.0, -12.0, 12.0, 20.0, 30.0):
        p = both([0.0, -z], [1.0, 2.0])
        assert_allclose(np.log(p), [special.log_ndtr(z), special.log_ndtr(-z)], rtol=1e-10, atol=1e-30)
    p = both([0.0, -20.0, -40.5], [0.0, 1.0, 2.0])  # the middle wins between 20 and 20.5
    assert_allclose(p[1], special.ndtr(-20.0) - special.ndtr(-20.5), rtol=1e-10)


@pytest.mark.parametrize("K", [1, 2, 3, 50, 3000])
def test_tangents_of_a_parabola_cross_halfway(K):
    w = np.linspace(0.0, 3.0, K)
    edges = np.r_[-np.inf, (w[1:] + w[:-1]) / 2, np.inf]
    expected = [oracles.mass(a, b, special.ndtr) for a, b in itertools.pairwise(edges)]
    order = np.random.default_rng(0).permutation(K)
    p = propensity.envelope(-(w[order] ** 2) / 2, w[order], law=GAUSSIAN)
    assert_allclose(p, np.array(expected)[order], rtol=1e-9, atol=1e-11)  # what rounding of m moves a corner by


@pytest.mark.parametrize("dim", [1, 2, 3, 10, 640])
def test_lines_under_the_ball(dim):
    law, rng = noise.BallMarginal(dim), np.random.default_rng(dim)
    for _ in range(20):
        m, w = rng.normal(size=6), rng.uniform(0, 2, size=6)
        p = both(m, w, law=law)
        assert_allclose(p, oracles.line_mass(m, w, cdf=law.cdf), rtol=1e-9, atol=1e-15)
        assert abs(p.sum() - 1) < 1e-12


def test_batches_are_loops():
    rng = np.random.default_rng(0)
    m, w = np.round(rng.normal(size=(2, 5, 7)), 1), np.round(rng.uniform(size=(2, 5, 7)), 1)
    mask = rng.random((2, 5, 7)) < 0.7
    mask[..., 0] = True
    points = noise.half_gaussian()
    rules = ((propensity.envelope, GAUSSIAN), (propensity.points, points), (propensity.uncoupled, GAUSSIAN))
    for rule, law in rules:
        p = rule(m, w, law=law, mask=mask)
        for i in np.ndindex(2, 5):
            assert_allclose(p[i], rule(m[i], w[i], law=law, mask=mask[i]), rtol=1e-9, atol=1e-12)
    p = propensity.envelope(m, w, law=GAUSSIAN, mask=mask)
    arm = np.argmax(mask * rng.random(mask.shape), axis=-1)
    one = propensity.chosen(m, w, arm, law=GAUSSIAN, mask=mask)
    assert_allclose(one, np.take_along_axis(p, arm[..., None], -1)[..., 0], rtol=1e-9, atol=1e-15)


# z of finitely many values


@given(lines=lines, weights=st.lists(st.integers(0, 5), min_size=5, max_size=5).filter(any))
def test_points_are_winners_value_by_value(lines, weights):
    q = np.array(weights) / sum(weights)
    law = noise.Points((-1.0, 0.0, 0.25, 0.5, 1.0), tuple(q.tolist()))
    m, w = np.array(lines).T
    expected = np.zeros(len(m))
    for z, weight in zip(law.points, q, strict=True):
        s = m + z * w  # exact on the grid
        expected += weight * (s == s.max()) / np.sum(s == s.max())
    p = propensity.points(m, w, law=law)
    assert_allclose(p, expected, rtol=1e-12, atol=1e-15)
    assert abs(p.sum() - 1) < 1e-12


# A z for each arm


@pytest.mark.parametrize("gap", [0.0, 0.3, -2.0, 5.0])
@pytest.mark.parametrize(("w1", "w2"), [(1.0, 1.0), (0.5, 2.0), (1e-3, 1.0), (0.0, 1.5), (3e8, 1e8)])
def test_two_uncoupled_arms_are_one_normal(gap, w1, w2):
    scale = max(w1, w2)
    m = np.array([1.0 + gap, 1.0]) * scale
    p = propensity.uncoupled(m, np.array([w1, w2]), law=GAUSSIAN)
    z = gap * scale / np.hypot(w1, w2)
    assert_allclose(p, [special.ndtr(z), special.ndtr(-z)], rtol=0, atol=1e-9)


def test_uncoupled_arms_without_width_are_greedy():
    p = propensity.uncoupled(np.array([1.0, 2.0, 2.0, -1.0]), np.zeros(4), law=GAUSSIAN)
    assert_allclose(p, [0, 0.5, 0.5, 0])
    assert_allclose(propensity.uncoupled(np.array([3.0]), np.array([2.0]), law=GAUSSIAN), [1.0])


@pytest.mark.parametrize("law", [GAUSSIAN, noise.BallMarginal(1), noise.BallMarginal(2), noise.BallMarginal(30)])
@pytest.mark.parametrize("seed", range(4))
def test_uncoupled_arms_against_draws_and_quadrature(law, seed):
    rng, n = np.random.default_rng(seed), 200_000
    m, w = rng.normal(size=5), rng.uniform(0.1, 2, size=5)
    m[4], w[4] = m[3], w[3]  # one arm twice
    if seed % 2:
        w[0] = 0.0
    p = propensity.uncoupled(m, w, law=law)
    assert abs(p.sum() - 1) < 1e-9
    assert_allclose(p[4], p[3], rtol=1e-8)
    s = m + law.draw(rng, (n, 5)) * w
    assert oracles.agree(np.bincount(np.argmax(s, axis=1), minlength=5) / n, p, n=n)
    # The arm's own z, not the winning score, as the variable of the integral.
    reach = min(law.reach, 10.0)
    others = [1, 2, 3]
    z_at = [(m[j] - m[4]) / w[4] for j in range(4)]
    corners = [z for z in z_at if -reach < z < reach]

    def density(z):
        F = [law.cdf((m[4] + w[4] * z - m[j]) / w[j]) for j in others]
        fixed = law.cdf((m[4] + w[4] * z - m[0]) / w[0]) if w[0] else float(m[4] + w[4] * z > m[0])
        return law.pdf(z) * fixed * np.prod(F)

    won = integrate.quad(density, -reach, reach, points=corners, limit=500, epsabs=1e-11)[0]
    assert_allclose(p[4], won, rtol=0, atol=1e-7)


def test_many_uncoupled_arms():
    p = propensity.uncoupled(np.zeros(300), np.ones(300), law=GAUSSIAN)
    assert_allclose(p, 1 / 300, rtol=1e-6)
    for gap in (6.0, 50.0, 1e6):
        p = propensity.uncoupled(np.array([gap, 0.0, 0.0]), np.array([1e-3, 1.0, 1.0]), law=GAUSSIAN)
        assert abs(p.sum() - 1) < 1e-9
        assert_allclose(p[0], special.ndtr(gap / np.hypot(1, 1e-3)) ** 2, rtol=0, atol=1e-6)


def test_uncoupled_arms_under_the_ball_of_many_slots():
    p = propensity.uncoupled(np.array([0.3, 0.0]), np.array([1.0, 1.0]), law=noise.BallMarginal(10 * 784))
    z = 0.3 / np.sqrt(2)  # in many dimensions the ball's marginal is a normal but for 1/dim
    assert_allclose(p, [special.ndtr(z), special.ndtr(-z)], rtol=0, atol=1e-4)


# One request at once, as a live decision takes it


@pytest.mark.parametrize("law", [GAUSSIAN, noise.BallMarginal(3)], ids=str)
@given(lines=lines, z=st.floats(-1.7, 1.7), scale=powers)
@example(lines=[(0.0, 0.0)], z=0.3, scale=1.0)
@example(lines=[(1.0, 1.0), (2.0, 1.0), (0.0, 0.0)], z=0.3, scale=1.0)
def test_a_quick_decision_is_the_slow_one(law, lines, z, scale):
    m, w = np.array(lines).T
    decided = propensity.decide(scale * m, scale * w, z, law=law)
    s = m + z * w
    best = np.flatnonzero(s >= s.max() - 1e-9)
    if decided is None:  # only where the winner has a rival at its side
        assert len(best) > 1 or np.sum(w == w[best[0]]) > 1
        return
    arm, p = decided
    assert type(arm) is int
    assert arm in best
    if len(best) == 1:
        assert_allclose(p, oracles.line_mass(m, w, cdf=law.cdf)[arm], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_quick_decisions_have_the_masses_of_the_envelope(seed):
    rng = np.random.default_rng(seed)
    for K in (1, 2, 10, 100):
        m, w = rng.normal(size=K), rng.uniform(0, 2, size=K)
        p = propensity.envelope(m, w, law=GAUSSIAN)
        for z in rng.normal(size=20):
            arm, own = propensity.decide(m, w, z, law=GAUSSIAN)
            assert arm == np.argmax(m + z * w)
            assert_allclose(own, p[arm], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("rounding", [0.0, 1e-15, -3e-14])
def test_lines_that_agree_to_rounding_are_left_to_the_tie_rule(rounding):
    m, w = np.array([0.2, 0.2 * (1 + rounding), 0.2, -1.0]), np.array([1.0, 1.0, 1 + rounding, 0.1])
    for z in (-2.0, -1e-3, 0.4, 1.7):
        decided = propensity.decide(m, w, z, law=GAUSSIAN)
        if np.argmax(m + z * w) != 3:
            assert decided is None  # seen red: decide without its look at slopes that nearly agree
    assert_allclose(propensity.envelope(m, w, law=GAUSSIAN)[:3], special.ndtr(1.2 / 0.9) / 3, rtol=1e-9)


def test_lines_tied_in_a_chain_have_the_probability_with_which_they_are_drawn():
    m = np.array([1.0, 1 + 7e-13, 1 + 1.4e-12])  # 0 and 1 are one, 1 and 2 are one, 0 and 2 are not
    p = propensity.envelope(m, m, law=GAUSSIAN)
    for arm in range(3):
        assert_allclose(propensity.chosen(m, m, np.int64(arm), law=GAUSSIAN), p[arm], rtol=1e-12)
    # seen red: each arm's own interval over the size of its own group: 1/3 for the middle one, not 1/2


def test_a_giant_among_the_arms_does_not_make_the_others_one():
    m, w = np.array([0.0, 0.0, -1e-4, -1e8]), np.array([1e-5, 9e-5, 2.2e-4, 1e8])
    assert_allclose(propensity.envelope(m, w, law=GAUSSIAN)[0], 0.5, atol=1e-6)  # seen red: 0.39
    assert_allclose(propensity.chosen(m, w, np.int64(0), law=GAUSSIAN), 0.5, atol=1e-6)
    p = propensity.uncoupled(np.array([0.0, 1e-6, 0.0]), np.array([1e-5, 1e-5, 1e8]), law=GAUSSIAN)
    gap = special.ndtr(1e-6 / np.hypot(1e-5, 1e-5))
    assert_allclose(p, [(1 - gap) / 2, gap / 2, 0.5], atol=1e-7)  # seen red: (0, 0.5, 0.5)


@pytest.mark.parametrize("law", [GAUSSIAN, *(noise.BallMarginal(d) for d in (1, 2, 3, 10, 60, 150, 200, 201))])
@pytest.mark.parametrize("K", [2, 50, 300])
def test_uncoupled_arms_against_a_finer_grid(law, K):
    m = np.zeros(K)
    m[0] = 0.5
    p = propensity.uncoupled(m + 1e6, np.ones(K), law=law)
    edge = min(law.reach, 9.0)
    x, weight = np.polynomial.legendre.leggauss(60)
    cuts = np.unique(
        np.r_[np.linspace(-edge, edge, 120), edge * (1 - 2.0 ** -np.arange(30)), edge * (2.0 ** -np.arange(30) - 1)]
    )
    half, middle = np.diff(cuts)[:, None] / 2, (cuts[1:, None] + cuts[:-1, None]) / 2
    z, weight = (middle + half * x).ravel(), (half * weight).ravel()
    # Arm 0 wins at its own z: a different variable of integration, and a grid that knows nothing of the arms.
    won = np.sum(weight * law.pdf(z) * law.cdf(np.minimum(z + 0.5, law.reach)) ** (K - 1))
    kink = 1e-6 if law.reach < 9 and law.dim < 3 else 1e-9  # the reference has a kink where z + 0.5 leaves the ball
    assert_allclose(p[0], won, atol=max(kink, 1e-9))  # seen red: the ball's panels without the Gaussian's


def test_uncoupled_arms_that_hardly_move_are_greedy():
    p = propensity.uncoupled(np.array([0.5, 0.0, 0.5]), np.array([5e-301, 1e-300, 7e-301]), law=GAUSSIAN)
    assert_allclose(p, [0.5, 0.0, 0.5])  # seen red: 0/0
