"""Units of rewards and features: σ̂, τ̂, c and λ against least squares on the whole history, on every road."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dither
from dither.models import Diagonal, Disjoint, Ridge, units

ASKED = frozenset({"error_width", "error_sample", "perturb", "width", "mean"})
K, D = 4, 3


def rows(n, *, seed=0, intercept=True, offset=7.0):
    """Rows of K slots with an intercept as their last column, or without one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    if intercept:
        X[:, -1] = 2.0
    arm = rng.integers(0, K, n)
    return X, offset + arm + rng.normal(size=n), arm


def by_hand(X, r, arm, *, lam, omega=None, centred=True, clip=None):
    """c, θ̂ (K, d), σ̂², τ̂² and V (K, d, d), from the sums as the page has them, about the mean at once."""
    omega = np.ones(len(r)) if omega is None else omega
    N = omega.sum()
    scaled = r if clip is None else np.clip(r, *clip)
    c = centre = np.average(scaled, weights=omega) if centred else 0.0
    Q, S, theta, V = omega @ (scaled - centre) ** 2, 0.0, [], []
    for k in range(K):
        A, w = X[arm == k], omega[arm == k]
        V.append(lam * np.eye(D) + (A.T * w) @ A)
        theta.append(np.linalg.solve(V[-1], (A.T * w) @ (r[arm == k] - c)))
        b = (A.T * w) @ (scaled[arm == k] - centre)
        S += b @ np.linalg.solve(V[-1], b)
    square = Q / N
    noise = (square + Q - S) / (1 + N)
    return c, np.array(theta), noise, square / np.average((X**2).sum(1), weights=omega), np.array(V)


def widths(x, noise, prior, V, lam):
    """√(A (σ̂² (1 - ρ) + λτ̂² ρ)) with A = x'V⁻¹x and ρ = λA/‖x‖², from inverses."""
    A = np.array([x @ np.linalg.solve(one, x) for one in V])
    rho = lam * A / (x @ x)
    return np.sqrt(A * (noise * (1 - rho) + lam * prior * rho))


def exact(x, noise, prior, V, lam):
    """√(σ̂² x'V⁻¹(V - λI)V⁻¹x + τ̂² λ² x'V⁻²x), from inverses."""
    U = np.linalg.solve(V, np.broadcast_to(x, (len(V), D))[..., None])[..., 0]
    return np.sqrt(noise * np.einsum("ki,kij,kj->k", U, V - lam * np.eye(D), U) + prior * lam**2 * (U * U).sum(1))


def learnt(model, X, r, arm, *, at_once, needs=ASKED, **settings):
    """The state after all rows, one by one or in batches."""
    state = model.init(D, needs=needs)
    parts = np.split(np.arange(len(r)), [1, 3, 10, 60]) if at_once else np.arange(len(r))
    for i in parts:
        learn = model.update_many if at_once else model.update
        state = learn(state, X[i], r[i], arm=arm[i], **{k: v[i] for k, v in settings.items()})
    return state


def agrees(model, state, expected, X, *, lam, rtol=1e-9):
    """The state says what the sums say."""
    c, theta, noise, prior, V = expected
    assert_allclose(float(model.lam_of(state)), lam, rtol=1e-12)
    assert_allclose(model.noise_sd(state) ** 2, noise, rtol=rtol)
    for x in X[:3]:
        assert_allclose(model.mean(state, x), c + theta @ x, rtol=rtol, atol=1e-9)
        answer = model.error_width(state, x)
        assert_allclose(answer.w, widths(x, noise, prior, V, lam), rtol=rtol)
        assert np.all(model.width(state, x) <= answer.length * answer.raw * (1 + 1e-12))


@pytest.mark.parametrize("n", [2, 5, 40, 200])
@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("lam", ["auto", 0.3])
def test_slots_pool_what_they_learn(n, at_once, centred, lam):
    """Seen red with E of one target, with c of one slot, and with a λ that slots which are not shown keep."""
    X, r, arm = rows(n, seed=n)
    model = Disjoint(Ridge(lam, centre=centred), K)
    state = learnt(model, X, r, arm, at_once=at_once)
    h = 2 ** int(np.log2(min(n, 128)))
    lam = (X[:h] ** 2).sum(1).mean() / D if lam == "auto" else lam
    agrees(model, state, by_hand(X, r, arm, lam=lam, centred=centred), X, lam=lam)


def test_without_a_constant_column_rewards_are_as_they_are():
    """A column that is constant at first and then is not takes its centre along. Seen red with `kept` left out."""
    X, r, arm = rows(80, intercept=False)
    X[:5, -1] = 1.0
    model = Disjoint(Ridge(0.5, centre=True), K)
    state = learnt(model, X, r, arm, at_once=False)
    agrees(model, state, by_hand(X, r, arm, lam=0.5, centred=False), X, lam=0.5)


@pytest.mark.parametrize("at_once", [False, True])
def test_weights_are_copies(at_once):
    """Seen red with targets that are not weighted."""
    X, r, arm = rows(60, seed=2)
    omega = np.random.default_rng(3).integers(0, 4, 60).astype(float)
    model = Disjoint(Ridge("auto", centre=True), K)
    state = learnt(model, X, r, arm, at_once=at_once, weight=omega)
    copies = np.repeat(np.arange(60), omega.astype(int))
    again = learnt(model, X[copies], r[copies], arm[copies], at_once=False)
    for one, other in zip(state.units, again.units, strict=True):
        assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    lam = float(model.lam_of(again))
    agrees(model, state, by_hand(X, r, arm, lam=lam, omega=omega), X, lam=lam)


def test_a_range_of_rewards_clips_what_scales_the_noise_and_the_centre():
    """Seen red with the clipped reward as the one that θ̂ learns."""
    X, r, arm = rows(100, seed=4)
    r[9] = 1e6
    model = Disjoint(Ridge(0.5, centre=True, reward_range=(5.0, 12.0)), K)
    for at_once in (False, True):
        state = learnt(model, X, r, arm, at_once=at_once)
        agrees(model, state, by_hand(X, r, arm, lam=0.5, clip=(5.0, 12.0)), X, lam=0.5, rtol=1e-7)
    assert model.noise_sd(state) < 3


@pytest.mark.parametrize("discount", [0.9, 0.99])
@pytest.mark.parametrize("centred", [False, True])
def test_what_is_forgotten_fades_in_all_sums(discount, centred):
    """A slot forgets by its own clock. Seen red with N that does not fade."""
    X, r, arm = rows(150, seed=5)
    model = Disjoint(Ridge(0.5, discount=discount, centre=centred), K)
    later = np.array([np.count_nonzero(arm[i + 1 :] == arm[i]) for i in range(150)])
    expected = by_hand(X, r, arm, lam=0.5, omega=discount**later, centred=centred)
    for at_once in (False, True):
        agrees(model, learnt(model, X, r, arm, at_once=at_once), expected, X, lam=0.5, rtol=1e-8)


@pytest.mark.parametrize("window", [5, 30])
def test_a_window_holds_the_last_rows_of_each_slot(window):
    """Seen red with rows that keep the reward alone."""
    X, r, arm = rows(150, seed=6)
    model = Disjoint(Ridge(0.5, window=window, centre=True), K)
    last = np.array([np.count_nonzero(arm[i + 1 :] == arm[i]) < window for i in range(150)])
    expected = by_hand(X[last], r[last], arm[last], lam=0.5)
    for at_once in (False, True):
        agrees(model, learnt(model, X, r, arm, at_once=at_once), expected, X, lam=0.5, rtol=1e-8)


def test_time_that_passes_fades_all_slots():
    """Seen red with a row of zeros that counts where time passes without one."""
    X, r, arm = rows(60, seed=7)
    at = np.sort(np.random.default_rng(8).uniform(0, 30, 60))
    model = Disjoint(Ridge("auto", half_life=10.0, centre=True), K)
    state = learnt(model, X, r, arm, at_once=False, at=at)
    state = model.advanced(state, np.asarray(45.0))
    lam = float(model.lam_of(state))
    agrees(model, state, by_hand(X, r, arm, lam=lam, omega=0.5 ** ((45.0 - at) / 10)), X, lam=lam, rtol=1e-8)


def test_one_theta_for_all_arms_is_never_centred():
    """Seen red with a mean of the rewards in the model without slots."""
    X, r, _ = rows(70, seed=9)
    model = Ridge("auto", centre=True)
    state = model.init(D, needs=ASKED)
    for x, reward in zip(X, r, strict=True):
        state = model.update(state, x, reward)
    lam = float(model.lam_of(state))
    _, theta, noise, prior, V = by_hand(X, r, np.zeros(70, int), lam=lam, centred=False)
    assert_allclose(state.theta, theta[0], rtol=1e-9)
    for x in X[:3]:
        assert_allclose(model.error_width(state, x[None]).w, widths(x, noise, prior, V[:1], lam), rtol=1e-9)


@pytest.mark.parametrize("at_once", [False, True])
def test_the_diagonal_sums_its_errors_in_the_order_of_the_rows(at_once):
    """Seen red with s of the full V."""
    X, r, arm = rows(90, seed=10)
    model = Disjoint(Diagonal(0.4, centre=True), K)
    state = learnt(model, X, r, arm, at_once=at_once)
    v, b, a = np.full((K, D), 0.4), np.zeros((K, D)), np.zeros((K, D))
    errors = np.zeros((len(r), 2))
    order = (
        range(len(r))
        if not at_once
        else [i for part in np.split(np.arange(len(r)), [1, 3, 10, 60]) for k in range(K) for i in part if arm[i] == k]
    )
    for i in order:
        k, x = arm[i], X[i]
        s = 1 + (x * x / v[k]).sum()
        errors[i] = np.array([r[i] - (b[k] / v[k]) @ x, 1 - (a[k] / v[k]) @ x]) / np.sqrt(s)
        v[k], b[k], a[k] = v[k] + x * x, b[k] + r[i] * x, a[k] + x
    c = r.mean()
    Q = ((r - c) ** 2).sum()
    noise = (Q / 90 + ((errors @ [1, -c]) ** 2).sum()) / 91
    prior = Q / 90 / (X**2).sum(1).mean()
    assert_allclose(model.noise_sd(state) ** 2, noise, rtol=1e-9)
    x = X[0]
    assert_allclose(model.mean(state, x), c + ((b - c * a) / v) @ x, rtol=1e-9)
    A = (x * x / v).sum(1)
    rho = 0.4 * A / (x @ x)
    expected = np.sqrt(A * (noise * (1 - rho) + 0.4 * prior * rho))
    assert_allclose(model.error_width(state, x).w, expected, rtol=1e-9)


@pytest.mark.parametrize("kind", [Ridge, Diagonal])
def test_draws_have_the_widths_as_their_sd(kind):
    """n draws: the variance of x'(θ̃ - θ̂) within 5 standard errors, √(2/n) each. Seen red with σ̂ V⁻¹ alone."""
    X, r, arm = rows(40, seed=11)
    model = Disjoint(kind("auto", centre=True), K)
    state = learnt(model, X, r, arm, at_once=False)
    n = 40_000
    eta = np.random.default_rng(12).standard_normal((n, 3 * K * D))
    x = np.array([0.4, -1.0, 2.0])
    variance = (model.error_sample(state, eta) @ x).var(axis=0)
    lam, noise = float(model.lam_of(state)), model.noise_sd(state) ** 2
    sums = state.units.sums.sum(axis=0)
    c = sums[units.R] / sums[units.N]
    prior = (sums[units.Q] / sums[units.N] - c**2) / (sums[units.SIZE] / sums[units.N])
    V = np.linalg.inv(state.F @ state.F.mT) if kind is Ridge else np.array([np.diag(v) for v in state.v])
    expected = exact(x, noise, prior, V, lam)
    assert_allclose(variance, expected**2, rtol=5 * np.sqrt(2 / n))
    ratio = model.error_width(state, x).w / expected
    assert np.all(abs(ratio - 1) < 0.05)


@pytest.mark.parametrize("settings", [{}, {"discount": 0.98}, {"window": 40}, {"diagonal": True}])
@pytest.mark.parametrize("rewards", ["x .001", "x 1000", "+ 1000", "+ 1e7", "- 100", "features x 30"])
def test_no_unit_of_rewards_or_features_changes_a_choice(settings, rewards):
    """Seen red with sums about 0, with a noise of 1 at first, and with a λ that is a number."""
    change = {
        "x .001": lambda x, r: (x, 1e-3 * r),
        "x 1000": lambda x, r: (x, 1e3 * r),
        "+ 1000": lambda x, r: (x, r + 1e3),
        "+ 1e7": lambda x, r: (x, r + 1e7),
        "- 100": lambda x, r: (x, r - 100),
        "features x 30": lambda x, r: (30 * x, r),
    }[rewards]
    made = dict(sigma="auto", lam="auto", centre=True, disjoint=K, seed=3, **settings)
    plain, other = dither.LinFP(D, **made), dither.LinFP(D, **made)
    rng, theta = np.random.default_rng(13), np.random.default_rng(14).normal(size=(K, D))
    for _ in range(400):
        x = np.append(rng.normal(size=D - 1), 1.0)
        noise = rng.normal(scale=0.5)
        arm = plain.choose(x).arm
        r = theta[arm] @ x + noise
        changed, reward = change(x, r)
        assert other.choose(changed).arm == arm
        plain.update(x, r, arm=arm)
        other.update(changed, reward, arm=arm)


@pytest.mark.parametrize("value", [0.0, 1.0, -3.5, 1e7])
@pytest.mark.parametrize("settings", [{}, {"discount": 0.9}, {"window": 10}, {"diagonal": True}])
def test_equal_rewards_play_uniformly(value, settings):
    """Seen red with σ̂ = 1 while nothing differs."""
    bandit = dither.LinFP(D, sigma="auto", lam="auto", centre=True, disjoint=K, seed=0, **settings)
    rng = np.random.default_rng(15)
    for _ in range(60):
        x = np.append(rng.normal(size=D - 1), 1.0)
        assert_allclose(bandit.propensities(x), 1 / K, rtol=1e-12)
        bandit.update(x, value, arm=bandit.choose(x).arm)


@pytest.mark.parametrize("name", ["LinFP", "LinTS", "LinUCB", "RandLinUCB"])
@pytest.mark.parametrize(
    "settings", [{}, {"disjoint": K}, {"disjoint": K, "window": 20}, {"disjoint": K, "diagonal": True}]
)
def test_files_and_growth_keep_what_was_found(name, settings, tmp_path):
    """Seen red with units that a file leaves out, and with new slots that know no λ."""
    more = {"beta": 1.0} if name.endswith("UCB") else {}
    bandit = dither.ALGORITHMS[name](D, sigma="auto", lam="auto", centre=True, seed=0, **settings, **more)
    rng = np.random.default_rng(16)

    def play(b, rng):
        X = rng.normal(size=(D,) if b.slots else (K, D))
        X[..., -1] = 1.0
        arm = b.choose(X).arm
        b.update(X if b.slots else X[arm], rng.normal(), **({"arm": arm} if b.slots else {}))
        return arm

    for _ in range(50):
        play(bandit, rng)
    if bandit.slots:
        bandit.grow(K + 2)
        assert_allclose(bandit.state.units.shared, np.tile(bandit.state.units.shared[0], (K + 2, 1)))
    bandit.save(tmp_path / "b.dither")
    again, other = dither.load(tmp_path / "b.dither"), np.random.default_rng(17)
    assert (again.lam, again.sigma) == (bandit.lam, bandit.sigma)
    assert [play(bandit, np.random.default_rng(i)) for i in range(20)] == [
        play(again, np.random.default_rng(i)) for i in range(20)
    ]
    del other


def test_before_the_first_reward_widths_are_those_of_sd_1():
    """Seen red with σ̂ = 0 at first."""
    model = Ridge(0.25)
    state = model.init(D, needs=ASKED)
    X = np.eye(D)
    assert_allclose(model.error_width(state, X).w, 1.0)  # τ̂ ‖x‖


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("LinFP", {"c": "oful"}, "c='oful'"),
        ("LinFP", {"c": "theory"}, "c='theory'"),
        ("LinTS", {"c": "anytime"}, "c='anytime'"),
        ("LinUCB", {}, "radius='constant'.*beta=1.0"),
        ("RandLinUCB", {"radius": "oful"}, "radius='oful'"),
        ("LinUCB", {"beta": 1.0, "gram": True}, "gram"),
    ],
)
def test_a_theorem_refuses_a_noise_that_is_found(name, settings, words):
    """Seen red without the check in `scale.sigma`."""
    with pytest.raises(ValueError, match=words):
        dither.ALGORITHMS[name](D, sigma="auto", **({"preset": "paper"} | settings))


@pytest.mark.parametrize("wrong", [(1.0, 0.0), (0.0, np.nan), (1.0,), "ab", 3.0])
def test_a_range_that_is_none_is_refused(wrong):
    """Seen red with a range that is kept as it comes."""
    with pytest.raises((TypeError, ValueError), match="reward_range"):
        Ridge(reward_range=wrong)


@pytest.mark.parametrize("lam", [1e-9, 0.5, 1e3])
def test_what_rounding_does_to_a_width_is_within_its_share(lam):
    """σ̂² far above λτ̂² and far below it. Against 50 digits; seen red with a share of 1e-6."""
    mp = pytest.importorskip("mpmath")
    X, r, arm = rows(30, seed=18)
    X[:, 0] *= 1e-6
    model = Disjoint(Ridge(lam, centre=True), K)
    state = learnt(model, X, r, arm, at_once=False)
    noise, prior = units.scales(state.units, slots=True)
    for x in (np.array([1e-3, 0.5, 2.0]), np.array([1.0, 0.0, 0.0]), X[0]):
        answer, omega = model.error_width(state, x), model.rounding(state).omega
        share = np.broadcast_to(answer.share, K)
        with mp.workdps(50):
            for k in range(K):
                A = mp.matrix(X[arm == k].tolist())
                V, at = A.T * A + mp.mpf(lam) * mp.eye(D), mp.matrix(x.tolist())
                size = (at.T * mp.lu_solve(V, at))[0]
                rho = mp.mpf(lam) * size / (at.T * at)[0]
                w = mp.sqrt(size * (mp.mpf(noise) * (1 - rho) + mp.mpf(lam) * mp.mpf(prior) * rho))
                assert abs(answer.w[k] - float(w)) <= omega[k] * share[k] * float(w)


def test_a_row_that_would_drown_what_was_learnt_is_refused():
    """The eighth row sets λ anew. Seen red without `too_long`: λ is 1e100 for ever."""
    bandit = dither.LinFP(D, disjoint=K, seed=0)
    X, r, arm = rows(8, seed=20)
    for i in range(7):
        bandit.update(X[i], r[i], arm=arm[i])
    before = bandit.to_bytes()
    with pytest.raises(ValueError, match="too long beside what was learnt"):
        bandit.update(1e60 * X[7], r[7], arm=arm[7])
    assert bandit.to_bytes() == before
    bandit.update(X[7], r[7], arm=arm[7])


def test_before_the_first_reward_equal_lengths_are_equal_widths_whatever_lam_is():
    """Seen red with σ̂ = 1 beside a λ of 1e-20, where a width is all rounding."""
    bandit = dither.LinFP(2, lam=1e-20, coupled=False, seed=0)
    X = 1e-8 * np.array([[1.0, 0.0], [0.6, 0.8], [-0.8, 0.6]])
    assert_allclose(bandit.propensities(X), 1 / 3, rtol=1e-9)


def test_a_model_that_knows_its_noise_says_so():
    """Seen red with the ability alone."""
    with pytest.raises(TypeError, match=r"sigma='auto' is for models\.Ridge and Diagonal, so give sigma a number"):
        dither.GLMFP(D, sigma="auto")


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-160])
@pytest.mark.parametrize("lam", [1.0, "auto"])
def test_a_column_of_next_to_nothing_is_no_intercept(size, lam):
    """Its coefficient would be infinite. Seen red without `FAINT`: the row was refused, and θ̂ infinite all the same."""
    b = dither.LinFP(dim=2, disjoint=2, lam=lam, seed=0)
    for x, arm in (([size, 1.0], 0), ([size, 0.5], 1), ([size, size], 1)):
        b.update(x, 1.0, arm=arm)
        assert np.isfinite(b.theta).all()
        assert dither.from_bytes(b.to_bytes()).propensities(x).tolist() == b.propensities(x).tolist()
