"""Links against 50 digits, the relations between μ, μ', μ'' and g, and one result on every array library."""

import functools

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from dither import links

NAMES = ["identity", "logit", "log", "probit"]
TINY = 1e-300  # below it float64 loses digits; there an absolute error of this size is allowed
HALF = np.r_[
    0.0, 1e-300, 1e-9, 1e-3, 0.1, 0.5, 1, 2, 5, 8, 12, 20, 26, 30, 36.5, 36.9, 37.2, 38, 50, 100, 350, 690, 700
]
GRID = np.r_[-HALF[::-1], HALF, np.linspace(-40, 40, 161)]
BOUNDS = [0.0, 1e-3, 0.3, 1.0, 3.7, 12.0]


def logistic(e):
    return 1 / (1 + mp.exp(-e))


def phi(e):
    return mp.exp(-e * e / 2) / mp.sqrt(2 * mp.pi)


def Phi(e):
    return mp.erfc(-e / mp.sqrt(2)) / 2


FORMULAS = {  # μ, μ', μ'', g in mpmath's numbers
    "identity": (lambda e: e, lambda e: mp.mpf(1), lambda e: mp.mpf(0), lambda e: e * e / 2),
    "logit": (
        logistic,
        lambda e: logistic(e) * logistic(-e),
        lambda e: -logistic(e) * logistic(-e) * mp.tanh(e / 2),
        lambda e: mp.log1p(mp.exp(-abs(e))) + max(e, 0),
    ),
    "log": (mp.exp,) * 4,
    "probit": (Phi, phi, lambda e: -e * phi(e), lambda e: e * Phi(e) + phi(e)),
}


@functools.cache
def fifty(name):
    """μ, μ, μ', μ'', g on the grid with 50 digits (and as many more as ηΦ(η) + φ(η) cancels), rounded at last."""
    mu, slope, curvature, g = FORMULAS[name]
    with mp.workdps(75):
        return [np.array([float(f(mp.mpf(float(e)))) for e in GRID]) for f in (mu, mu, slope, curvature, g)]


def answers(link, eta):
    """μ, μ again, μ', μ'', g."""
    return (link.mu(eta), *link.slopes(eta), link.curvature(eta), link.g(eta))


@pytest.mark.parametrize("name", NAMES)
def test_functions_are_right_to_the_tails(lib, name):
    found = [lib.back(part) for part in answers(links.find(name), lib.array(GRID))]
    for part, expected in zip(found, fifty(name), strict=True):
        assert part.dtype == np.float64
        assert_allclose(part, expected, rtol=2e-12, atol=TINY)
    # seen red: logit's μ' as μ(1 - μ), 0 from 37 on; probit's g as it is written, all digits lost at -8; Φ as 1 - Φ(-η)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0,)])
def test_any_shape_goes_in_and_comes_out(lib, name, shape):
    eta = np.random.default_rng(0).normal(size=shape)
    kept = eta.copy()
    for part in answers(links.find(name), lib.array(eta)):
        assert tuple(part.shape) == shape
        assert lib.back(part).dtype == np.float64
    assert_array_equal(eta, kept)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_the_derivative_of_the_one_before(name):
    """g' = μ, which for probit makes the loss a quasi-likelihood; by mpmath's differences of mpmath's formulas."""
    mu, slope, _, g = FORMULAS[name]
    eta = np.linspace(-6, 6, 13)
    link = links.find(name)
    for f, derivative in ((g, link.mu(eta)), (mu, link.slopes(eta)[1]), (slope, link.curvature(eta))):
        with mp.workdps(50):
            expected = np.array([float(mp.diff(f, mp.mpf(e))) for e in eta])
        assert_allclose(derivative, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_the_derivative_of_the_one_before_as_computed(name):
    """The same of the library's own functions, by central differences."""
    link, eta, h = links.find(name), np.linspace(-8, 8, 33), 1e-5
    for f, derivative in (
        (link.g, link.mu),
        (link.mu, lambda e: link.slopes(e)[1]),
        (lambda e: link.slopes(e)[1], link.curvature),
    ):
        difference = (f(eta + h) - f(eta - h)) / (2 * h)
        assert_allclose(derivative(eta), difference, rtol=1e-7, atol=1e-9 * np.abs(f(eta)).max())


@given(st.sampled_from(NAMES), st.floats(-700, 700), st.floats(0, 700))
def test_means_rise_and_stay_in_the_support(name, eta, step):
    link = links.find(name)
    low, high = link.support
    a, b = link.mu(np.array(eta)), link.mu(np.array(min(eta + step, 700.0)))
    assert low <= a <= b <= high
    for part in answers(link, np.array(eta)):
        assert np.isfinite(part)
    assert link.slopes(np.array(eta))[1] >= 0
    # seen red: logit's g as log(1 + e^η) of η above 709


@pytest.mark.parametrize("name", NAMES)
def test_residuals_do_not_cancel(lib, name):
    """count μ - total of whole observations, to the last digit where they are all 0 or all 1."""
    mu, slope = FORMULAS[name][:2]
    eta = np.r_[-30.0, -20, -3, -0.1, 0, 0.1, 3, 20, 30, 36, 40]
    for count, total in ((1.0, 0.0), (1.0, 1.0), (7.0, 7.0), (4.0, 3.0)):
        found = links.find(name).residual(lib.array(eta), lib.array(0 * eta + count), lib.array(0 * eta + total))
        with mp.workdps(450):
            expected = [[float(count * mu(mp.mpf(e)) - total) for e in eta], [float(slope(mp.mpf(e))) for e in eta]]
        for part, values in zip(found, expected, strict=True):
            assert_allclose(lib.back(part), values, rtol=1e-12, atol=TINY)
    # seen red: μ - r as it is written, 0 from η = 37 on


@pytest.mark.parametrize("name", ["logit", "probit"])
def test_zero_and_one_are_mirrored(name):
    link, eta = links.find(name), GRID
    assert_allclose(link.mu(eta) + link.mu(-eta), 1, rtol=1e-15)
    assert_array_equal(link.slopes(eta)[1], link.slopes(-eta)[1])
    assert_array_equal(link.curvature(eta), -link.curvature(-eta))
    assert_allclose(link.g(eta) - link.g(-eta), eta, rtol=1e-13, atol=1e-15)


def test_the_losses_of_zero_and_one_are_not_negative():
    for name in ("logit", "probit"):
        g = links.find(name).g(GRID)
        assert g.min() >= 0
        assert (g - GRID).min() >= 0


def test_only_the_canonical_losses_are_likelihoods():
    """g(η) - rη is -log P(r), but for what is free of η: Bernoulli and logit, Poisson and log; not probit."""
    eta = np.linspace(-3, 3, 7)
    logit, log, probit = links.find("logit"), links.find("log"), links.find("probit")
    assert_allclose(logit.g(eta) - eta, -np.log(logit.mu(eta)), rtol=1e-12)
    assert_allclose(logit.g(eta), -np.log1p(-logit.mu(eta)), rtol=1e-12)
    for r in (0, 1, 5):
        assert_allclose(log.g(eta) - r * eta, log.mu(eta) - r * np.log(log.mu(eta)), rtol=1e-12)
    gap = probit.g(eta) - eta + np.log(probit.mu(eta))
    assert np.ptp(gap) > 0.1


# Constants


def domain(B, n=201):
    return [mp.mpf(B) * (2 * k - n + 1) / (n - 1) for k in range(n)]


@pytest.mark.parametrize("B", BOUNDS)
@pytest.mark.parametrize("name", NAMES)
def test_constants_are_the_extremes_on_their_domain(name, B):
    _, slope, curvature, _ = FORMULAS[name]
    link = links.find(name)
    with mp.workdps(50):
        eta = domain(B)
        slopes = [slope(e) for e in eta]
        ratio = [abs(curvature(e)) / s for e, s in zip(eta, slopes, strict=True)]
    assert_allclose(link.L(B), float(max(slopes)), rtol=1e-12)
    assert_allclose(link.M(B), float(max(ratio)), rtol=1e-12, atol=1e-15)
    assert_allclose(link.kappa(B), float(min(slopes)), rtol=1e-12)
    # seen red: M_μ of logit as tanh(B); κ at 0 instead of at the ends; L_μ of log as 1


@given(st.sampled_from(NAMES), st.floats(0, 30), st.floats(-1, 1))
def test_no_point_of_the_domain_beats_the_constants(name, B, at):
    link, eta = links.find(name), np.array(at * B)
    slope, slack = link.slopes(eta)[1], 1 + 1e-12
    assert slope <= link.L(B) * slack
    assert abs(link.curvature(eta)) <= link.M(B) * slope * slack
    assert slope >= link.kappa(B) / slack


@pytest.mark.parametrize("name", NAMES)
def test_constants_grow_with_the_domain(name):
    link, B = links.find(name), np.array([0.0, 0.1, 1, 10, 36, 700])
    for f in (link.L, link.M):
        values = np.array([f(b) for b in B])
        assert np.isfinite(values).all()
        assert (np.diff(values) >= 0).all()
    kappa = np.array([link.kappa(b) for b in B])
    assert (np.diff(kappa) <= 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_constants_of_arrays_are_those_of_numbers(lib, name):
    link, B = links.find(name), np.array([0.0, 0.3, 2.0, 15.0, 700.0])
    for f in (link.L, link.M):
        assert_allclose(lib.back(f(lib.array(B))), [f(float(b)) for b in B], rtol=1e-14)


# The table


def test_the_table_names_itself():
    assert sorted(links.LINKS) == sorted(NAMES)
    for name, link in links.LINKS.items():
        assert link.name == name
        assert links.find(name) is link


@pytest.mark.parametrize(
    ("name", "near"),
    [("logti", "logit"), ("Logit", "logit"), ("logistic", "logit"), ("prob", "probit"), ("ident", "identity")],
)
def test_a_name_that_is_nearly_one_is_told_the_near_match(name, near):
    with pytest.raises(LookupError, match=f"(?s)link.*{name}.*did you mean '{near}'"):
        links.find(name)


@pytest.mark.parametrize("name", ["", "tanh"])
def test_another_name_is_told_all_there_are(name):
    with pytest.raises(LookupError) as e:
        links.find(name)
    assert all(known in str(e.value) for known in NAMES)
