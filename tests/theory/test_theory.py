import inspect
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import integrate

import dither
from dither import envs, links, models, noise, policies, theory

LOGIT, LOG, IDENTITY = (links.find(name) for name in ("logit", "log", "identity"))
RNG = np.random.default_rng(7)


def close(x, y, rtol=1e-12):
    assert isinstance(x, float)
    assert_allclose(x, float(y), rtol=rtol)


# Radii


def test_beta_and_its_parts_are_the_formulas_of_the_paper():
    d, lam, S, M, L, delta = 7, 0.3, 2.5, 0.8, 321.0, 1e-5
    W2 = mp.log(1 / mp.mpf(delta)) + d * mp.log(2 * mp.e * S * L / d)
    close(theory.W(9, d=d, S=S, L=L, delta=delta), mp.sqrt(W2))
    proof = mp.sqrt(4 * S**2 * mp.mpf(lam) + 2 * (1 + S * M) * W2)
    close(theory.beta(9, d=d, lam=lam, S=S, M=M, L=L, delta=delta), proof)
    main = mp.sqrt(4 * mp.mpf(lam) + 2 * (1 + mp.mpf(M)) * (mp.log(1 / mp.mpf(delta)) + d * mp.log(2 * mp.e * L / d)))
    close(theory.beta(9, d=d, lam=lam, M=M, L=L, delta=delta), main)  # S = 1 is the form of the main text
    # seen red: without S² beside λ; without S in the logarithm


def test_known_numbers():
    L = theory.lipschitz_logistic(101, S=1.0)
    assert L == 150
    assert round(theory.beta(101, d=10, lam=1e-4, S=1, M=1, L=L, delta=1e-4 / 4e4), 2) == 15.98
    ofuglb = theory.W(101, d=10, S=5.0, L=theory.lipschitz_logistic(101, S=5.0), delta=1e-4)
    assert round(ofuglb**2, 3) == 77.790  # seen red: (1 + S)(t - 1)


def test_gamma_is_c_times_beta_at_delta_prime():
    d, T, delta = 4, 500, 0.07
    settings = dict(d=d, lam=2.0, S=1.5, M=1.0, L=90.0)
    beta = theory.beta(9, delta=delta / (4 * T), **settings)
    close(theory.gamma(9, delta=delta, T=T, **settings), beta * mp.sqrt(2 * mp.log(4 * 2 * T / mp.mpf(delta))))
    close(theory.gamma(9, delta=delta, T=T, **settings), beta * theory.c_delta(delta / (4 * T)))


def test_radii_keep_their_signatures():
    assert list(inspect.signature(theory.beta).parameters) == ["t", "d", "lam", "S", "M", "L", "delta", "R"]
    assert list(inspect.signature(theory.gamma).parameters) == ["t", "d", "lam", "S", "M", "L", "delta", "T"]
    close(theory.ucb(200, d=2, delta=0.1), 1 + mp.sqrt(2 * mp.log(201 / mp.mpf("0.1"))))


@given(st.floats(1e-12, 1.0))
def test_c_delta_concentrates(delta):
    assert mp.erfc(theory.c_delta(delta) / mp.sqrt(2)) <= delta * (1 + 1e-12)  # P(|z| > c); seen red: log(1/δ)


# Events


def test_p_is_the_constant_of_the_gaussian_law():
    close(theory.p, 1 / (4 * mp.sqrt(mp.e * mp.pi)))
    assert theory.p == noise.Gaussian.p
    close(theory.p_given(np.inf), mp.erfc(1 / mp.sqrt(2)) / 2)
    assert theory.p_given(1.0) == 0


@pytest.mark.parametrize("c", [1.3, 2.04, 5.0])
def test_p_given_is_conditioned(c):
    inside, _ = integrate.quad(noise.Gaussian().pdf, 1, c)
    whole, _ = integrate.quad(noise.Gaussian().pdf, -c, c)
    close(theory.p_given(c), inside / whole, rtol=1e-9)  # seen red: without 1 - 2 tail


def test_the_lemma_survives_its_condition():
    c = theory.c_delta(np.geomspace(1e-12, 0.25, 50))  # δ' = δ/(4T) is at most 1/4
    assert np.all(theory.p_given(c) >= theory.p)


@pytest.mark.parametrize(("T", "delta"), [(1, 0.5), (1000, 0.1), (10**6, 1e-3)])
def test_all_rounds_concentrate_as_often_as_said(T, delta):
    each = mp.erf(mp.sqrt(mp.log(8 * T / mp.mpf(delta))))  # |z| <= √2 √log(2/δ')
    close(theory.concentration(T, delta=delta), each**T, rtol=1e-10)
    assert 1 - delta / 4 <= theory.concentration(T, delta=delta) < 1


def test_optimism_is_the_mass_above_the_first_line_that_reaches():
    m, w = np.array([0.0, 0.5]), np.array([1.0, 0.25])
    close(theory.optimism(m, w, np.float64(0.8)), mp.erfc(0.8 / mp.sqrt(2)) / 2)  # 0.8 before 1.2
    close(theory.optimism(m, w, np.float64(0.4)), mp.erfc(-0.4 / mp.sqrt(2)) / 2)  # seen red: the larger of the two
    assert theory.optimism(np.array([1.0, 0.0]), np.zeros(2), np.float64(1.0)) == 1  # lines that do not move
    assert theory.optimism(np.array([0.9, 0.0]), np.zeros(2), np.float64(1.0)) == 0


def test_optimism_is_the_frequency_with_which_the_policy_is():
    rng, n = np.random.default_rng(0), 20_000
    X, theta = rng.standard_normal((6, 3)), rng.standard_normal(3)
    model, policy = models.Ridge(1.0), policies.FeaturePerturbation(c=0.7)
    state = model.update_many(model.init(3), X, X @ theta + rng.standard_normal(6))
    view = policy.view(model, state, X, t=7)
    (z,) = policy.draw(rng, n, arms=6, dim=3)
    eta = np.max(X @ theta) * 0.9
    share = np.mean(np.max(view.scores(z[:, None]), axis=-1) >= eta)
    P = theory.optimism(*view.lines[:2], np.float64(eta))
    assert 0.05 < P < 0.95
    assert abs(share - P) <= 5 * math.sqrt(P * (1 - P) / n)
    batch = theory.optimism(*(np.stack([line, line]) for line in view.lines[:2]), np.array([eta, -1e9]))
    assert_allclose(batch, [P, 1.0])


# The link and the features


@pytest.mark.parametrize("name", links.LINKS)
def test_lipschitz_bounds_the_gradient_on_the_ball_and_is_met_by_one_row(name):
    rng, link, S = np.random.default_rng(1), links.find(name), 1.7
    X = rng.standard_normal((30, 3))
    r = rng.uniform(0, 1, 30) if link.support[1] == 1 else rng.uniform(0, 5, 30)
    L = theory.lipschitz(X, r, S, link)
    theta = rng.standard_normal((500, 3))
    theta *= S / np.linalg.norm(theta, axis=1, keepdims=True)
    gradients = (link.mu(theta @ X.T) - r) @ X
    assert np.linalg.norm(gradients, axis=1).max() <= L
    eta = S * np.linalg.norm(X[0]) * np.linspace(-1, 1, 1001)
    assert_allclose(
        theory.lipschitz(X[:1], r[:1], S, link), np.linalg.norm(X[0]) * np.max(np.abs(link.mu(eta) - r[0])), rtol=1e-12
    )  # seen red: the upper end alone
    assert_allclose(theory.lipschitz(np.stack([X, 2 * X]), np.stack([r, r]), S, link)[0], L)


def test_the_closed_bound_of_the_logit_link_is_one():
    X = RNG.standard_normal((50, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    for r in (np.zeros(50), np.ones(50), RNG.uniform(0, 1, 50)):
        for S in (0.1, 1.0, 6.0):
            assert theory.lipschitz(X, r, S, LOGIT) <= theory.lipschitz_logistic(51, S=S)


def test_kappa_and_kappa_star():
    X = np.array([[[1.0, 0.0], [0.0, 2.0]], [[-1.0, 0.0], [0.0, -0.5]]])  # two rounds of two arms
    theta = np.array([0.3, 1.0])
    s = mp.mpf(1) / (1 + mp.exp(-2)), 1 / (1 + mp.exp(mp.mpf("0.3")))  # the best arms: 2 and -0.3
    close(theory.kappa_star(X, theta, LOGIT), (s[0] * (1 - s[0]) + s[1] * (1 - s[1])) / 2)  # seen red: the worst arms
    close(theory.kappa(X, 1.5, LOGIT), mp.exp(-3) / (1 + mp.exp(-3)) ** 2)
    both = theory.kappa_star(np.stack([X, X]), np.stack([theta, theta]), LOGIT)
    assert both.shape == (2,)
    assert theory.kappa_star(X, theta, IDENTITY) == theory.kappa(X, 1.5, IDENTITY) == 1


@pytest.mark.parametrize(("name", "S"), [(name, S) for name in links.LINKS for S in (0.5, 3.0)])
def test_lemmas_about_the_link(name, S):
    link = links.find(name)
    M, grid = float(link.M(S)), np.linspace(-S, S, 61)
    mu, slope = link.slopes(grid)
    far = np.abs(slope[:, None] - slope) - M * np.abs(mu[:, None] - mu)
    assert far.max() <= 1e-12  # |μ'(x) - μ'(y)| <= M_μ |μ(x) - μ(y)|; seen red: M/2
    u, weight = np.polynomial.legendre.leggauss(60)
    u, weight = (u + 1) / 2, weight / 2
    path = grid[:, None, None] + u * (grid[None, :, None] - grid[:, None, None])
    mean = np.sum(weight * (1 - u) * link.slopes(path)[1], axis=-1)
    assert np.all(mean >= slope[:, None] / (2 + 2 * S * M) * (1 - 1e-9))  # Proposition F.1


# Elliptical potential and count


def sequences():
    rng = np.random.default_rng(3)
    random = rng.standard_normal((150, 4))
    unit = random / np.linalg.norm(random, axis=1, keepdims=True)
    yield "random", unit
    yield "one direction", np.tile(unit[:1], (150, 1))
    yield "basis in turn", np.eye(4)[np.arange(150) % 4]
    yield "growing", unit * np.geomspace(1e-3, 1, 150)[:, None]
    V, greedy = np.zeros((4, 4)), np.empty((150, 4))
    for t in range(150):  # the direction that is known least
        greedy[t] = np.linalg.eigh(V)[1][:, 0]
        V += np.outer(greedy[t], greedy[t])
    yield "greedy", greedy


@pytest.mark.parametrize(("name", "X"), list(sequences()))
@pytest.mark.parametrize("lam", [1e-4, 0.05, 1.0, 30.0])
@pytest.mark.parametrize("R", [1.0, 3.0])
def test_elliptical_lemmas_hold(name, X, lam, R):
    X, T = R * X, len(X)
    pivots = np.diag(np.linalg.cholesky(np.eye(T) + X @ X.T / lam))  # its squares are 1 + ‖x_t‖² in the norm of V_t⁻¹
    assert_allclose(np.square(theory.widths(X, lam)), pivots**2 - 1, rtol=1e-6, atol=1e-9)
    assert_allclose(theory.potential(X, lam), np.minimum(1, pivots**2 - 1).sum(), rtol=1e-6)
    assert theory.potential(X, lam) <= theory.potential_bound(T, d=4, lam=lam, R=R)
    for c in (0.317, 0.993, 2.031):  # no width is one of these
        assert theory.count(X, lam, c=c) == np.count_nonzero(np.sqrt(np.maximum(pivots**2 - 1, 0)) > c)
        assert theory.count(X, lam, c=c) <= theory.count_bound(d=4, lam=lam, R=R, c=c)
    # seen red: the bounds with d/2 for 2d; u p'/(2s) for u p'/(s + √s) in `widths`; no min with 1


def test_elliptical_bounds_are_the_formulas():
    close(theory.potential_bound(100, d=3, lam=0.2, R=1.5), 6 * mp.log(1 + mp.mpf("2.25") * 100 / mp.mpf("0.6")))
    unit = mp.log(1 + mp.mpf("0.49"))
    close(
        theory.count_bound(d=3, lam=0.2, R=1.5, c=0.7), 6 / unit * mp.log(1 + mp.mpf("2.25") / (mp.mpf("0.2") * unit))
    )
    batch = np.stack([np.eye(2), 2 * np.eye(2)])
    assert theory.potential(batch, 1.0).shape == theory.count(batch, 1.0).shape == (2,)


# The theorem


def written_out(T, d, lam, S, M, Lmu, L, kappa, star, R_star, delta):
    """Appendix E from top to bottom with mpmath, none of it from the code."""
    T, lam, S, M, Lmu, L, kappa, star, R_star, delta = map(mp.mpf, (T, lam, S, M, Lmu, L, kappa, star, R_star, delta))
    prime, p = delta / (4 * T), 1 / (4 * mp.sqrt(mp.e * mp.pi))
    W2 = mp.log(1 / prime) + d * mp.log(2 * mp.e * S * L / d)
    beta = mp.sqrt(4 * S**2 * lam + 2 * (1 + S * M) * W2)
    gamma = beta * mp.sqrt(2 * mp.log(2 / prime))
    azuma = (
        mp.sqrt(2 * T * Lmu**2 / lam * mp.log(8 / delta)),
        mp.sqrt(2 * T * Lmu**2 / (4 * lam**2) * mp.log(8 / delta)),
    )
    eps = 2 / p * (gamma * azuma[0] + M * gamma**2 * azuma[1])
    A = gamma * mp.sqrt(2 * d * mp.log(1 + Lmu * T / (d * lam)))
    B, C = star * T + M * eps, M * (2 / p + 4)
    D = 5 * d / kappa * M * Lmu * gamma**2 * mp.log(1 + kappa * T / (d * lam))
    most = 2 * (A * mp.sqrt(B) + A**2 * C + D)
    two = mp.log(2)
    warm = 4 * d * R_star / two * (mp.log(1 + Lmu / (lam * two)) + mp.log(1 + kappa / (lam * two)))
    return beta, gamma, eps, A, B, C, D, most, warm, (2 / p + 2) * most + eps + warm


CASE = dict(d=6, lam=6.0, S=2.0, M=0.76, L_mu=0.25, L=4000.0, kappa=0.105, kappa_star=0.15, R_star=0.88, delta=0.05)


def test_the_theorem_is_appendix_e():
    expected = written_out(2000, *CASE.values())
    for found, value in zip(theory.theorem(2000, **CASE), expected, strict=True):
        assert_allclose(float(found), float(value), rtol=1e-11)
    # seen red: 4 for 5 in D; γ_T for γ_T² in ε; log(4/δ) for log(8/δ); R* without its 2


def test_the_parts_of_the_theorem_are_public():
    whole = theory.theorem(2000, **CASE)
    some = {k: CASE[k] for k in ("d", "lam", "L_mu")}
    gamma = whole.gamma
    assert theory.A(2000, gamma=gamma, **some) == whole.A
    assert theory.B(2000, kappa_star=0.15, M=0.76, epsilon=whole.epsilon) == whole.B
    assert theory.C(0.76) == whole.C
    assert theory.D(2000, gamma=gamma, M=0.76, kappa=0.105, **some) == whole.D
    assert theory.poly_solve(whole.A, whole.B, whole.C, whole.D) == whole.Reg_max
    assert theory.warm_up(kappa=0.105, R_star=0.88, **some) == whole.warm_up
    assert_allclose(theory.warm_up_rounds(kappa=0.105, **some) * 2 * 0.88, whole.warm_up)
    assert theory.epsilon(2000, delta=0.05, lam=6.0, gamma=gamma, M=0.76, L_mu=0.25) == whole.epsilon
    azuma = dict(delta=0.05, lam=6.0, L_mu=0.25)
    assert_allclose(theory.R_2(2000, **azuma), theory.R_1(2000, **azuma) / (2 * math.sqrt(6)))


def test_the_theorem_takes_arrays_of_horizons():
    T = np.array([10.0, 1e4, 1e9])
    L = theory.lipschitz_logistic(T, S=2.0)
    many = theory.theorem(T, **CASE | {"L": L})
    for i in range(3):
        one = theory.theorem(T[i], **CASE | {"L": L[i]})
        assert_allclose([np.broadcast_to(kind, 3)[i] for kind in many], one, rtol=1e-13)
    assert np.all(np.diff(many.total) > 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("d", 7),
        ("kappa_star", 0.2),
        ("kappa", 0.05),
        ("delta", 0.01),
        ("R_star", 1.0),
        ("L", 5000.0),
        ("S", 3.0),
        ("M", 1),
    ],
)
def test_harder_instances_have_a_higher_bound(name, value):
    assert theory.theorem(2000, **CASE | {name: value}).total > theory.theorem(2000, **CASE).total


def test_repairs_only_add():
    printed, repaired = (theory.theorem(2000, **CASE, repaired=kind) for kind in (False, True))
    assert_allclose(repaired.D, 7 / 5 * printed.D)
    per_round = printed.gamma * 0.25 / math.sqrt(6) + 0.76 * printed.gamma**2 * 0.25 / 12
    rounds = theory.warm_up_rounds(d=6, lam=6.0, L_mu=0.25, kappa=0.105)
    assert_allclose(repaired.epsilon - printed.epsilon, 2 / theory.p * per_round * rounds)
    assert repaired.total > printed.total


def test_linear_models_have_the_leading_term_alone():
    case = CASE | dict(M=0.0, L_mu=1.0, kappa=1.0, kappa_star=1.0)
    found = theory.theorem(2000, **case)
    assert (found.C, found.D) == (0, 0)
    assert_allclose(found.Reg_max, 2 * found.A * math.sqrt(2000))


positive = st.floats(1e-3, 1e6)


@given(positive, positive, positive, positive)
def test_poly_solve_bounds_the_root(A, B, C, D):
    root = theory.poly_root(A, B, C, D)
    assert_allclose(root, A * math.sqrt(B + C * root) + D, rtol=1e-9)
    assert root <= theory.poly_solve(A, B, C, D) * (
        1 + 1e-12
    )  # seen red: `poly_root` without C D; `poly_solve` without its 2
    assert theory.poly_root(A, B, 0.0, 0.0) == pytest.approx(A * math.sqrt(B))


def test_informative_from_solves_for_the_crossing():
    assert_allclose(theory.informative_from(lambda T: 30 * math.sqrt(T), gap=0.5), 3600, rtol=1e-12)
    assert theory.informative_from(lambda T: 2 * T, gap=1.0) == math.inf

    def total(T):
        return theory.theorem(T, **CASE | {"L": theory.lipschitz_logistic(T, S=2.0)}).total

    T = theory.informative_from(total, gap=0.76)
    assert total(1.001 * T) < 0.76 * 1.001 * T
    assert total(0.999 * T) > 0.76 * 0.999 * T


@pytest.mark.parametrize("link", [IDENTITY, LOGIT])
def test_the_bound_holds_for_what_is_simulated(link):
    d, T, S, delta = 3, 300, 1.0, 0.1
    linear = link is IDENTITY
    env = (envs.Linear if linear else envs.Logistic)(dim=d, arms=5, norm=S)
    M, L_mu = float(link.M(S)), float(link.L(S))
    slack = math.sqrt(2 * math.log(2 * T / delta)) if linear else 0.0
    L = (2 * S + slack) * T if linear else theory.lipschitz_logistic(T + 1, S=S)
    told = dict(d=d, lam=float(d), S=S, M=M)
    beta = theory.beta(T, L=L, delta=delta / (4 * T), **told)
    model = models.Ridge(float(d)) if linear else models.GLM(link="logit", lam=float(d))
    agents = {"theory": (model, policies.FeaturePerturbation(c=beta)), "c = 1": (model, policies.FeaturePerturbation())}
    regret = dither.simulate(env, agents, runs=5, rounds=T, seed=0).regret[..., -1]
    R_star = S if linear else 1.0
    total = theory.theorem(
        T, L=L, L_mu=L_mu, kappa=link.kappa(S), kappa_star=L_mu, R_star=R_star, delta=delta, **told
    ).total
    assert np.all(regret > 0)
    assert np.all(regret <= total)
