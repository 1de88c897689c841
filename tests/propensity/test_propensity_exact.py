"""All arms' probabilities and their logarithms against comparisons of all pairs at 60 digits; a z for each arm against
enumeration; laws of one's own."""

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import special, stats

import dither
import oracles
from dither import noise, propensity
from properties import ALL, EXACT, exactly, integrates

GAUSSIAN = noise.Gaussian()
EPS = np.finfo(float).eps


def problem(rng):
    """Lines of nasty scales: K 1 to 12, with copies, equal slopes, slopes of 0, near parallels, far giants."""
    K = int(rng.integers(1, 13))
    kind = int(rng.integers(6))
    m, w = rng.normal(size=K), rng.uniform(0, 2, size=K)
    if kind == 1:  # far tails: corners tens or hundreds of standard deviations away
        m *= 10.0 ** rng.uniform(0, 2.5)
    elif kind == 2:
        m, w = m * 10.0 ** rng.uniform(-9, 9, size=K), w * 10.0 ** rng.uniform(-9, 9, size=K)
    elif kind == 3:  # on a grid: equal slopes, slopes of 0, many through one point
        m, w = np.round(4 * m) / 4, np.round(2 * w) / 4
    elif kind == 4:  # near parallels, and heights that nearly cancel
        m, w = 1e3 + m * 10.0 ** rng.uniform(-6, 0), 1 + w * 10.0 ** rng.uniform(-6, 0)
    elif kind == 5:  # tangents of a parabola: all can win
        m = -(w**2) / 2
    if K > 1 and rng.random() < 0.3:
        m[1:][rng.random(K - 1) < 0.3], w[0] = m[0], w[-1]
        i, j = rng.integers(K, size=2)
        m[i], w[i] = m[j], w[j]
    scale = 10.0 ** rng.choice([-200, -20, 0, 0, 0, 20, 90])
    return m * scale, w * scale


def tail(z):
    return mpmath.erfc(z / mpmath.sqrt(2)) / 2


def truth(m, w):
    """P (K,), log P (K,), and how far the rounding of the corners, 4 ulps, may move each, relative to it."""
    m, w = [mpmath.mpf(float(v)) for v in m], [mpmath.mpf(float(v)) for v in w]
    answer = []
    for i in range(len(m)):
        low, high, copies = -mpmath.inf, mpmath.inf, 0
        for j in range(len(m)):
            if w[j] == w[i]:
                copies += m[j] == m[i]
                high = -mpmath.inf if m[j] > m[i] else high
            elif w[j] > w[i]:
                high = min(high, (m[i] - m[j]) / (w[j] - w[i]))
            else:
                low = max(low, (m[j] - m[i]) / (w[i] - w[j]))
        if not low < high:
            answer.append((mpmath.mpf(0), -mpmath.inf, mpmath.mpf(0)))
            continue
        a, b = (low, high) if low > 0 else (-high, -low)
        p = tail(a) - tail(b)
        log_p = mpmath.log(p) if p < 0.5 else mpmath.log1p(-tail(-a) - tail(b))
        ends = [e for e in (a, b) if mpmath.isfinite(e)]
        slack = sum(4 * EPS * abs(e) * mpmath.npdf(e) for e in ends) / p
        answer.append((p / copies, log_p - mpmath.log(copies), slack))
    return answer


def unlike(m, w):
    """Whether no two lines are one to rounding that are not one exactly (those are the tie rule's)."""
    for key in (m, w):
        gap = np.abs(key[:, None] - key)
        near = gap <= 4e-12 * np.abs(key).max()
        if np.any(near & (gap > 0)):
            return False
    return True


def worst(n, seed):
    """The largest absolute error of P, and of relative errors of P down to 1e-300 and of log P beyond the slack."""
    rng, absolute, relative, logs = np.random.default_rng(seed), 0.0, 0.0, 0.0
    with mpmath.workdps(60):
        for _ in range(n):
            m, w = problem(rng)
            if not unlike(m, w):
                continue
            p, log_p = (propensity.envelope(m, w, law=GAUSSIAN, log=log) for log in (False, True))
            assert abs(p.sum() - 1) < 1e-12
            for i, (exact, log_exact, slack) in enumerate(truth(m, w)):
                absolute = max(absolute, float(abs(p[i] - exact)))
                if slack > 1e-3 or (not exact and p[i] < 1e-300 and log_p[i] == -np.inf):
                    continue  # an interval as narrow as rounding, or none
                if exact > 1e-300:
                    relative = max(relative, float(abs(p[i] - exact) / exact - slack))
                if mpmath.isfinite(log_exact) and log_exact:
                    error = abs(float(log_p[i]) - log_exact) - slack - 1e-300  # where p is 1 but for what underflows
                    logs = max(logs, float(error / abs(log_exact)))
    return absolute, relative, logs


def test_random_problems_at_sixty_digits():
    absolute, relative, logs = worst(800, seed=0)  # 10,000 with seed 1: 1.9e-16, 7.3e-15, 2.9e-15
    assert absolute <= 1e-13
    assert relative <= 1e-9
    assert logs <= 1e-9
    # seen red: all intervals from the lower tail


def test_lines_that_always_lose_their_place_to_rounding_lose_nothing():
    # c is nearly parallel to b: where a meets both is the same to rounding, where b meets c is 1e-6 away.
    m, w = np.array([0.0, -1.0, -1.0 - 1.000001e-10]), np.array([0.0, 1.0, 1.0 + 1e-10])
    p = propensity.envelope(m, w, law=GAUSSIAN)
    with mpmath.workdps(60):
        expected = [float(exact) for exact, _, _ in truth(m, w)]
    assert_allclose(p, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dim", [1, 2, 3, 10, 784])
def test_the_balls_logarithms(dim):
    law, reach = noise.BallMarginal(dim), np.sqrt(dim)
    ends = [(-reach, -0.999 * reach), (-reach, -0.9 * reach), (-0.7 * reach, -0.6 * reach), (-0.1, 0.3), (0.2, np.inf)]
    ends += [(0.85 * reach, 0.86 * reach), (-1e-9, 2e-9), (0.5, 0.5 + 1e-9)]
    low, high = np.array(ends).T
    found = noise.log_mass(law, low, high)
    with mpmath.workdps(40):
        for i, (a, b) in enumerate(ends):
            a, b = max(mpmath.mpf(a), -mpmath.sqrt(dim)), min(mpmath.mpf(b), mpmath.sqrt(dim))
            half = mpmath.mpf(dim + 1) / 2

            def F(z, half=half):
                return mpmath.betainc(half, half, 0, (1 + z / mpmath.sqrt(dim)) / 2, regularized=True)

            exact = F(b) - F(a) if b < 0 else F(-a) - F(-b)
            # A gap of 1e-9 between two floats has 1e-7 of itself in rounding only where the ends are large: not here.
            assert_allclose(found[i], float(mpmath.log(exact)), rtol=1e-9)
    assert_allclose(np.exp(found), noise.mass(law, low, high), rtol=1e-9, atol=1e-300)
    assert noise.log_mass(law, 2 * reach, 3 * reach) == -np.inf
    # seen red: the logarithm of an underflowing betainc; short intervals as differences of tails


@given(st.lists(st.tuples(st.integers(-6, 6), st.integers(0, 6)), min_size=1, max_size=8))
def test_logarithms_are_those_of_the_probabilities(lines):
    m, w = np.array(lines, dtype=float).T / 2
    points = noise.Points((-1.0, 0.0, 0.5), (0.25, 0.5, 0.25))
    for rule, law in (
        (propensity.envelope, GAUSSIAN),
        (propensity.envelope, noise.BallMarginal(3)),
        (propensity.points, points),
        (propensity.uncoupled, points),
    ):
        assert_allclose(np.exp(rule(m, w, law=law, log=True)), rule(m, w, law=law), rtol=1e-12, atol=1e-300)
    log_p = propensity.envelope(m, w, law=GAUSSIAN, log=True)
    for arm in range(len(m)):
        own = propensity.chosen(m, w, np.intp(arm), law=GAUSSIAN, log=True)
        assert_allclose(own, log_p[arm], rtol=1e-9, atol=1e-12)


def test_the_envelope_of_a_large_batch_is_that_of_each_request():
    rng = np.random.default_rng(3)
    m, w = rng.normal(size=(40, 60)), rng.uniform(size=(40, 60))
    m[3], w[3] = -(np.arange(60.0) ** 2) / 2e3, np.arange(60) / 1e3  # all can win
    m[5], w[5] = 0.0, 1.0  # all are one
    m[7, :30], w[7, :30] = m[7, 30:], w[7, 30:]  # all twice
    m[8], w[8] = (np.arange(60.0) - 30) ** 2, np.arange(60)  # none but the ends
    m[9], w[9] = -(np.arange(60.0) ** 2), np.arange(60)
    m[9, -1] = 1e6  # the last beats all others, one after another: the stack's case
    mask = rng.random((40, 60)) < 0.8
    mask[6] = np.arange(60) == 17
    p = propensity.envelope(m, w, law=GAUSSIAN, mask=mask)
    for i in range(40):
        expected = np.zeros(60)
        expected[mask[i]] = oracles.line_mass(m[i, mask[i]], w[i, mask[i]])
        assert_allclose(p[i], expected, rtol=1e-7, atol=1e-13)
    assert propensity.envelope(m[:0], w[:0], law=GAUSSIAN).shape == (0, 60)
    # seen red: neighbours compared across two requests


# Laws of one's own


@pytest.mark.parametrize(
    "distribution",
    [stats.t(df=3), stats.gamma(2.0, loc=-1.0), stats.skewnorm(4.0), stats.norm(0.3, 2)],
    ids=["t", "gamma", "skewed", "shifted"],
)
def test_a_law_of_ones_own_is_not_assumed_symmetric(distribution):
    law = noise.Custom.of(distribution)
    rng = np.random.default_rng(1)
    m, w = rng.normal(size=7), rng.uniform(0, 2, size=7)
    p = propensity.envelope(m, w, law=law)
    for i in range(7):  # no two slopes are equal
        z = [((m[i] - m[j]) / (w[j] - w[i]), w[j] > w[i]) for j in range(7) if j != i]
        low, high = max([c for c, up in z if not up], default=-np.inf), min([c for c, up in z if up], default=np.inf)
        assert_allclose(p[i], max(distribution.cdf(high) - distribution.cdf(low), 0), atol=1e-12)
    assert abs(p.sum() - 1) < 1e-12
    z = law.draw(rng, (20_000,))
    assert stats.kstest(z, distribution.cdf).statistic < 1.95 / np.sqrt(20_000)
    s = m + z[:, None] * w
    assert oracles.agree(np.bincount(np.argmax(s, axis=1), minlength=7) / 20_000, p, n=20_000)
    bare = noise.Custom(distribution.cdf, distribution.sf)
    assert_allclose(propensity.envelope(m, w, law=bare), p, rtol=1e-12)
    for arm in range(7):
        assert_allclose(propensity.chosen(m, w, np.intp(arm), law=bare), p[arm], rtol=1e-9, atol=1e-15)
    # seen red: taken for symmetric


def test_a_law_of_ones_own_has_the_probabilities_of_the_same_law_built_in():
    rng = np.random.default_rng(2)
    m, w = rng.normal(size=5), rng.uniform(0.1, 2, size=5)
    law = noise.Custom.of(stats.norm)
    for rule in (propensity.envelope, propensity.uncoupled):
        assert_allclose(rule(m, w, law=law), rule(m, w, law=GAUSSIAN), atol=1e-9)
    low, high = np.array([-np.inf, -40.0, 1.0, 38.0]), np.array([-50.0, -39.0, 2.0, np.inf])
    assert_allclose(noise.log_mass(law, low, high), noise.log_mass(GAUSSIAN, low, high), rtol=1e-9)


@pytest.mark.parametrize("coupled", [True, False])
def test_a_bandit_draws_from_a_law_of_ones_own(coupled):
    policy = dither.policies.FeaturePerturbation(noise=noise.Custom.of(stats.gumbel_r), coupled=coupled)
    b = dither.Bandit(dither.models.Ridge(1.0), policy, dim=2, seed=0)
    X, n = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]]), 20_000 if coupled else 1_000
    f = np.bincount(b.choose(np.broadcast_to(X, (n, 3, 2))).arm, minlength=3) / n
    assert oracles.agree(f, b.propensities(X), n=n)
    d = b.choose(X)
    assert_allclose(d.propensity, b.propensities(X)[d.arm], rtol=1e-9)


def test_laws_that_are_none_are_refused():
    with pytest.raises(ValueError, match="cdf must go from 0"):
        noise.Custom(lambda z: special.ndtr(-z), special.ndtr)
    with pytest.raises(ValueError, match="sf must go from 1"):
        noise.Custom(special.ndtr, special.ndtr)
    with pytest.raises(TypeError, match="function"):
        noise.Custom(special.ndtr, 0.5)
    bare = noise.Custom(stats.norm.cdf, stats.norm.sf)
    with pytest.raises(ValueError, match="quantiles"):
        dither.policies.FeaturePerturbation(noise=bare)
    with pytest.raises(ValueError, match="density"):
        dither.policies.RandUCB(law=noise.Custom(stats.norm.cdf, stats.norm.sf, ppf=stats.norm.ppf), coupled=False)
    with pytest.raises(ValueError, match="form='scalar'"):
        dither.policies.FeaturePerturbation(noise=noise.Custom.of(stats.norm), form="vector")


# A z for each arm, of finitely many values


def by_hand(m, w, law):
    """P (K,) from all J^K outcomes, exact on a grid."""
    p = np.zeros(len(m))
    for outcome in itertools.product(range(len(law.points)), repeat=len(m)):
        s = np.array([m[i] + law.points[j] * w[i] for i, j in enumerate(outcome)])
        won = s == s.max()
        p += np.prod([law.weights[j] for j in outcome]) * won / won.sum()
    return p


@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(0, 4)), min_size=1, max_size=5))
def test_uncoupled_points_are_all_outcomes(lines):
    m, w = np.array(lines, dtype=float).T / 4
    law = noise.Points((0.0, 0.5, 1.0, 2.0), (0.5, 0.25, 0.125, 0.125))
    p = propensity.uncoupled(m, w, law=law)
    assert_allclose(p, by_hand(m, w, law), rtol=1e-12, atol=1e-15)
    assert abs(p.sum() - 1) < 1e-12
    mask = np.arange(len(m) + 1) < len(m)
    more = propensity.uncoupled(np.append(m, 9.0), np.append(w, 9.0), law=law, mask=mask)
    assert_allclose(more, np.append(p, 0.0), rtol=1e-12)
    # seen red: arms that tie counted as won by all


@pytest.mark.parametrize("law", [noise.half_gaussian(), GAUSSIAN], ids=["points", "gaussian"])
def test_randucb_with_an_a_for_each_arm(law):
    b = dither.RandLinUCB(dim=3, seed=0, lam=1.0, beta=1.5, law=law, coupled=False)
    rng, n = np.random.default_rng(5), 2_000
    X = rng.normal(size=(6, 3))
    X[4] = X[3]
    b.update(X[:2], np.array([0.3, -0.2]))
    p = b.propensities(X)
    many = b.choose(np.broadcast_to(X, (n, 6, 3)))
    assert oracles.agree(np.bincount(many.arm, minlength=6) / n, p, n=n)
    assert many.z.shape == (n, 6)
    d = b.choose(X)
    assert_allclose(d.propensity, p[d.arm], rtol=1e-12)
    assert d.z.shape == (6,)
    assert dither.RandLinUCB(dim=3, seed=0, coupled=True).propensities(X).shape == (6,)


# What is drawn


def chi_square(bandit, X, n, *, block=20_000):
    """The P-value of n draws against the probabilities; arms of probability 0 must not be drawn."""
    p, hits = bandit.propensities(X), np.zeros(len(X))
    for _ in range(n // block):
        hits += np.bincount(bandit.choose(np.broadcast_to(X, (block, *X.shape))).arm, minlength=len(X))
    assert not hits[p == 0].any()
    rare = n * p < 5  # together with the most frequent arm: expectations below 5 are no chi-square's
    group = np.where(rare, np.argmax(p), np.arange(len(p)))
    observed, expected = np.bincount(group, hits), np.bincount(group, n * p)
    observed, expected = observed[expected > 0], expected[expected > 0]
    return stats.chi2.sf(np.sum((observed - expected) ** 2 / expected), max(len(expected) - 1, 1))


def drawn(name, n):
    """The P-value of one algorithm, after some rounds, with copies and a zero arm."""
    rng = np.random.default_rng(7)
    b = dither.ALGORITHMS[name](dim=3, seed=1, floor=0.05, **exactly(name))
    A = rng.normal(size=(8, 3)) / 2
    for x in A:
        b.update(x, float(x[0] > 0))
    X = np.vstack([A[:5], A[1], A[1], np.zeros(3)])
    return chi_square(b, X, n, block=min(n, 20_000))


@pytest.mark.parametrize("name", [name for name in EXACT if name != "OFUGLB"])  # seconds a draw: one problem an arm
def test_draws_pass_a_chi_square(name):
    assert drawn(name, 1_000 if integrates(*ALL[name]) else 40_000) > 1e-6  # 10⁶ draws each: 0.24 to 0.70
    # seen red: the scores with 1.05 z


def test_the_z_of_a_decision_is_the_one_that_chose_it():
    rng = np.random.default_rng(0)
    for form in ("scalar", "vector"):
        b = dither.LinFP(dim=3, seed=0, form=form, lam=1.0, sigma=1.0)
        b.update(rng.normal(size=(5, 3)), rng.normal(size=5))
        X = rng.normal(size=(6, 3))
        for _ in range(20):
            d = b.choose(X)
            assert type(d.z) is float
            assert d.arm == np.argmax(b.mean(X) + d.z * b.width(X))
        many = b.choose(np.broadcast_to(X, (50, 6, 3)))
        assert many.z.shape == (50,)
        assert np.array_equal(many.arm, np.argmax(b.mean(X) + many.z[:, None] * b.width(X), axis=1))
    assert dither.LinTS(dim=3, seed=0).choose(X).z is None
    # seen red: the first entry of ζ for ζ'u


def test_a_bandits_logarithms():
    b = dither.LinFP(dim=1, lam=1.0, sigma=1.0, seed=0)
    b.update(np.array([1.0]), 100.0)
    X = np.array([[1.0], [-1.0], [0.5]])
    m, w = b.mean(X), b.width(X)
    assert b.propensities(X)[2] == 0
    log_p = b.propensities(X, log=True)
    assert_allclose(log_p[2], special.log_ndtr(-m[0] / w[0]), rtol=1e-9)  # about -2,500
    assert_allclose(np.exp(log_p[0]), b.propensities(X)[0])
    mixed = dither.LinFP(dim=1, lam=1.0, seed=0, floor=0.3)
    assert_allclose(np.exp(mixed.propensities(X, log=True)), mixed.propensities(X), rtol=1e-12)
    for other in (dither.Greedy(dim=1, seed=0), dither.LinTS(dim=1, seed=0)):
        p, se, kind = other.propensities(X, log=True, detail=True)
        assert_allclose(np.exp(p), other.propensities(X), rtol=1e-12)
    assert kind == "monte_carlo"
    assert np.all(np.isnan(se) | (se > 0))


if __name__ == "__main__":  # what the tests quote
    print(worst(10_000, seed=1))
    for name in EXACT:
        print(name, drawn(name, 2_000 if name == "OFUGLB" else 1_000_000))
