"""Laws of the perturbation against integrals, known numbers and one another."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, special, stats

import dither
from dither import noise

LAWS = [noise.Gaussian(), *(noise.BallMarginal(d) for d in (1, 2, 3, 10, 100, 784))]


@pytest.mark.parametrize(("d", "expected"), [(10, 0.14626), (2, 0.09085)])
def test_the_balls_tail_is_the_known_number(d, expected):
    law = noise.Ball().marginal(d)
    assert_allclose(law.cdf(-1.0), expected, atol=5e-6)
    assert_allclose(law.cdf(-1.0), special.betainc((d + 1) / 2, 0.5, 1 - 1 / d) / 2, rtol=1e-12)  # paper, Appendix B


@pytest.mark.parametrize("d", [1, 2, 3, 10, 100])
def test_the_balls_marginal_is_a_slice_of_the_ball(d):
    law, radius = noise.Ball().marginal(d), math.sqrt(d)

    def slice_at(z):  # volume of the (d-1)-ball that the ball has at height z
        return max(0.0, 1 - z * z / d) ** ((d - 1) / 2)

    whole = integrate.quad(slice_at, -radius, radius, epsabs=1e-13)[0]
    for z in np.linspace(-radius, radius, 7):
        assert_allclose(law.cdf(z), integrate.quad(slice_at, -radius, z)[0] / whole, atol=1e-9)
        assert_allclose(law.pdf(z), slice_at(z) / whole, rtol=1e-9, atol=1e-15)
    second = integrate.quad(lambda z: z * z * law.pdf(z), -radius, radius)[0]
    assert_allclose(second, d / (d + 2), rtol=1e-9)
    assert_array_equal(law.cdf(np.array([-np.inf, -radius - 1, radius + 1, np.inf])), [0, 0, 1, 1])
    assert_array_equal(law.pdf(np.array([-radius - 1, radius + 1])), [0, 0])


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_follow_the_cdf_and_the_pdf(law):
    n = 20_000
    z = law.draw(np.random.default_rng(0), (n,))
    assert stats.kstest(z, law.cdf).statistic < 1.95 / math.sqrt(n)  # P < 1e-3 for a right law, seed fixed
    reach = min(law.reach, 8.0)
    for a, b in ((-1.0, 0.5), (0.1, 0.9)):
        assert_allclose(
            integrate.quad(law.pdf, a * reach, b * reach)[0], law.cdf(b * reach) - law.cdf(a * reach), atol=1e-8
        )
    assert_allclose(law.cdf(np.array([-0.7, 0.0])) + law.cdf(np.array([0.7, 0.0])), 1.0, rtol=1e-12)


@pytest.mark.parametrize("d", [1000, 5000, 100_000])
def test_the_ball_of_many_dimensions_is_nearly_normal(d):
    law, z = noise.BallMarginal(d), np.array([-2.0, 0.0, 1.0])
    assert_allclose(law.cdf(z), special.ndtr(z), atol=2 / d)
    assert_allclose(law.pdf(z), noise.Gaussian().pdf(z), rtol=10 / d)


@pytest.mark.parametrize("kind", [noise.Gaussian(), noise.Ball()])
@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_vectors_project_to_the_marginal(kind, d):
    n, rng = 20_000, np.random.default_rng(1)
    zeta = kind.vectors(rng, n, d)
    u = rng.normal(size=d)
    u /= np.linalg.norm(u)
    assert zeta.shape == (n, d)
    assert stats.kstest(zeta @ u, kind.marginal(d).cdf).statistic < 1.95 / math.sqrt(n)
    if isinstance(kind, noise.Ball):  # uniform in the ball of radius √d: (‖ζ‖/√d)^d is uniform on [0, 1]
        r = np.linalg.norm(zeta, axis=1) / math.sqrt(d)
        assert r.max() <= 1
        assert stats.kstest(r**d, "uniform").statistic < 1.95 / math.sqrt(n)
    # seen red: dim + 1 coordinates on the sphere; radius 1


@pytest.mark.parametrize("law", [noise.Gaussian(), noise.BallMarginal(10)], ids=str)
def test_mass_is_taken_from_the_tail(law):
    low, high = np.array([1.0, 2.9, -2.0, 0.0, -np.inf]), np.array([1.5, 3.0, -1.0, np.inf, np.inf])
    by_hand = [integrate.quad(law.pdf, a, b)[0] for a, b in zip(low[:3], high[:3], strict=True)]
    assert_allclose(noise.mass(law, low, high), [*by_hand, 0.5, 1.0], rtol=1e-8)
    assert_allclose(noise.mass(law, low, high), noise.mass(law, -high, -low), rtol=1e-14)
    assert_array_equal(noise.mass(law, np.array([1.0, 2.0, np.inf]), np.array([1.0, -2.0, np.inf])), 0.0)
    # seen red: differences of the cdf near 1


def test_mass_far_out():
    p = noise.mass(noise.Gaussian(), np.array([20.0, -np.inf]), np.array([np.inf, -37.0]))
    assert_allclose(np.log(p), special.log_ndtr([-20.0, -37.0]), rtol=1e-12)
    law, z = noise.BallMarginal(4), 2 - 1e-6  # near the rim P ≈ C (1 - z/2)^(5/2)
    C = 2 ** (3 / 2) * 2 / (special.beta(2.5, 0.5) * 2.5) / 2
    assert_allclose(noise.mass(law, np.array(z), np.array(np.inf)), C * (1 - z / 2) ** 2.5, rtol=1e-4)


def test_half_gaussian_is_that_of_randucb():
    law = noise.half_gaussian()
    a, q = np.array(law.points), np.array(law.weights)
    assert_allclose(a, np.arange(20) / 19)
    assert_allclose([q[0], q[1]], [0.287636, 0.263236], atol=5e-7)
    assert_allclose(q[-1], 9.0e-8, rtol=0.01)
    assert_allclose(a @ q, 0.084119, atol=5e-7)
    assert_allclose(math.sqrt(a**2 @ q - (a @ q) ** 2), 0.079385, atol=5e-7)
    assert abs(q.sum() - 1) < 1e-12


def test_points_are_drawn_with_their_weights():
    law, n = noise.Points((-2.0, 0.0, 5.0, 7.0), (0.5, 0.0, 0.2, 0.3)), 100_000
    z = law.draw(np.random.default_rng(0), (n,))
    for point, weight in zip(law.points, law.weights, strict=True):
        assert abs(np.mean(z == point) - weight) <= 5 * math.sqrt(weight * (1 - weight) / n)


@pytest.mark.parametrize(
    ("points", "weights"),
    [((), ()), ((1.0,), (0.5, 0.5)), ((0.0, 1.0), (0.7, 0.7)), ((0.0, 1.0), (1.5, -0.5)), ((0.0,), (np.nan,))],
)
def test_points_that_are_no_law_are_refused(points, weights):
    with pytest.raises(ValueError, match="weights"):
        noise.Points(points, weights)


@pytest.mark.parametrize("settings", [{"m": 1}, {"sd": 0.0}, {"sd": -1.0}, {"last": -1.0}, {"last": np.nan}])
def test_half_gaussians_that_are_none_are_refused(settings):
    with pytest.raises(ValueError, match="must"):
        noise.half_gaussian(**settings)


def test_constants_are_those_of_the_paper():
    gaussian, ball = noise.Gaussian(), noise.Ball()
    assert gaussian.c == gaussian.c_prime == ball.c == ball.c_prime == 2
    assert_allclose(gaussian.p, 1 / (4 * math.sqrt(math.e * math.pi)))
    assert_allclose(ball.p, 1 / (16 * math.sqrt(3 * math.pi)))
    assert special.ndtr(-1) >= gaussian.p
    assert all(ball.marginal(d).cdf(-1.0) >= ball.p for d in (2, 3, 10, 1000))
    for delta in (0.5, 0.1, 1e-6):  # concentration
        for law in (gaussian, ball.marginal(2), ball.marginal(50)):
            assert 2 * law.cdf(-math.sqrt(2 * math.log(2 / delta))) <= delta


# Whatever is drawn for n requests at once is what n requests draw one by one.

DRAWS = {
    "gaussian vectors": lambda rng, n: (noise.Gaussian().vectors(rng, n, 5),),
    "ball vectors": lambda rng, n: (noise.Ball().vectors(rng, n, 5),),
    "gaussian": lambda rng, n: (noise.Gaussian().draw(rng, (n, 3)),),
    "ball 1": lambda rng, n: (noise.BallMarginal(1).draw(rng, (n,)),),
    "ball 2": lambda rng, n: (noise.BallMarginal(2).draw(rng, (n, 4)),),
    "ball 9": lambda rng, n: (noise.BallMarginal(9).draw(rng, (n,)),),
    "points": lambda rng, n: (noise.half_gaussian().draw(rng, (n,)),),
}


def policies():
    for name, algorithm in dither.ALGORITHMS.items():
        for preset in dither.algorithms.PRESETS:
            yield f"{name} {preset}", algorithm.configure(5, preset=preset)[1]
    p = dither.policies
    yield "vector", p.FeaturePerturbation(form="vector")
    yield "vector ball", p.FeaturePerturbation(form="vector", noise=noise.Ball())
    yield "uncoupled", p.FeaturePerturbation(coupled=False)
    yield "uncoupled ball", p.FeaturePerturbation(coupled=False, noise=noise.Ball())
    yield "randucb gaussian", p.RandUCB(law=noise.Gaussian())
    yield "randucb ball", p.RandUCB(law=noise.Ball())


DRAWS |= {name: lambda rng, n, policy=policy: policy.draw(rng, n, arms=4, dim=5) for name, policy in policies()}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("blocks", [(1,) * 60, (7, 13, 40)])
def test_a_block_is_its_parts(name, blocks):
    def fresh():
        return np.random.Generator(np.random.SFC64(3))

    rng = fresh()
    parts = [DRAWS[name](rng, n) for n in blocks]
    for i, whole in enumerate(DRAWS[name](fresh(), sum(blocks))):
        assert whole.shape[0] == 60
        assert_array_equal(np.concatenate([part[i] for part in parts]), whole)


@pytest.mark.parametrize("law", [noise.Gaussian(), noise.BallMarginal(2), noise.BallMarginal(40)], ids=str)
def test_the_mass_of_two_numbers_is_that_of_two_arrays(law):
    ends = [-np.inf, -30.0, -6.0, -1.0, -1e-9, 0.0, 0.3, 1.0, 6.0, 30.0, np.inf]
    for low in ends:
        for high in ends:
            expected = float(noise.mass(law, np.array(low), np.array(high)))
            assert_allclose(law.mass(low, high), expected, rtol=1e-12, atol=1e-300)
