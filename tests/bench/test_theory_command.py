import math

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from dither import models, policies, theory
from dither.base import streams
from dither.simulation import simulate
from dither_bench.commands import analysis
from dither_bench.theory import catalogue, coverage, illustrations, kappas, optimistic, slopes, width
from dither_bench.theory.play import Size, fp, play, setting

TINY = Size(runs=2, rounds=30, arms=4, dim=2)


@pytest.fixture
def tiny(monkeypatch):
    """Every part at its smallest."""
    monkeypatch.setattr(
        catalogue, "MEASURED", {name: (function, TINY) for name, (function, _) in catalogue.MEASURED.items()}
    )


def test_everything_is_written_and_shown(dither, tiny, tmp_path):
    code, out, err = dither("theory", "--out", tmp_path)
    assert code == 0, err
    wrote = [line.removeprefix("wrote ") for line in out.splitlines() if line.startswith("wrote ")]
    files = [*(f"{name}.png" for name in catalogue.NAMES), "theory.csv", "theory.parquet", "theory.md"]
    assert wrote == [str(tmp_path / name) for name in files]
    assert all((tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG") for name in catalogue.NAMES)
    table = pl.read_parquet(tmp_path / "theory.parquet")
    assert table.columns == ["part", "setting", "quantity", "value", "theory"]
    assert table["part"].unique(maintain_order=True).to_list() == list(catalogue.NAMES)
    assert table["value"].is_finite().all()
    assert pl.read_csv(tmp_path / "theory.csv").height == table.height
    page = (tmp_path / "theory.md").read_text(encoding="utf-8")
    for name in catalogue.NAMES:
        assert f"![{name}]({name}.png)" in page
    assert "Coverage of Ê_T and Ẽ_T against δ" in out
    assert "P(Ê_T), δ = 0.1" in out

    events = table.filter(pl.col("part") == "coverage", pl.col("quantity").str.starts_with("P("))
    assert events.height == (2 * 2 + 2) * len(coverage.DELTAS)  # links by estimates, z exact and drawn
    for name in ("linear, S = 1, ridge estimate", "logistic, S = 2, constrained estimate"):
        mine = events.filter(setting=name)
        assert mine["theory"].to_list() == [1 - delta / 4 for delta in coverage.DELTAS]
    least = table.filter(part="optimism", quantity="smallest P_t", setting="logistic, S = 2, c_t = β_t(δ')")
    assert least["theory"].to_list() == [theory.p]
    assert least["value"][0] >= theory.p  # as the lemma says; the events hold with margin
    # seen red: a table without the last part


def test_one_part_alone(dither, tiny, tmp_path):
    code, _, err = dither("theory", "--figure", "fig2a", "--figure", "fig1", "--out", tmp_path)
    assert code == 0, err
    found = sorted(path.name for path in tmp_path.iterdir())
    assert found == ["fig1.png", "fig2a.png", "theory.csv", "theory.md", "theory.parquet"]
    assert "Example: dither theory" in dither("theory", "--help")[1]


def test_reproduce_draws_the_illustrations_too(dither, tiny, tmp_path):
    """`reproduce` takes every figure's name; its list of those that are drawn is that of the parts."""
    assert tuple(catalogue.DRAWN) == analysis.DRAWN
    code, _, err = dither("reproduce", "fig1", "fig2a", "--out", tmp_path)
    assert code == 0, err
    assert {path.name for path in (tmp_path / "theory").iterdir()} >= {"fig1.png", "fig2a.png"}
    code, _, err = dither("reproduce", "fig1", "fig9", "--out", tmp_path / "none")
    assert (code, (tmp_path / "none").exists()) == (2, False)  # seen red: drawn before the names were looked at
    assert "no figure 'fig9'" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--figure", "fig2"), "no part of the theory 'fig2': did you mean 'fig2a'?"),
        (("--more", 0), "more must be a whole number of at least 1, got 0"),
        (("--seed", -1), "seed must be"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(dither, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    code, out, err = dither("theory", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err
    assert list(tmp_path.iterdir()) == []


def test_more_is_that_many_times_the_runs(monkeypatch):
    asked = []
    monkeypatch.setitem(catalogue.MEASURED, "width", (lambda size, *, seed: asked.append((size, seed)), TINY))
    catalogue.measure("width", more=3, seed=8)
    catalogue.measure("width", size=TINY._replace(dim=9))
    assert asked == [(Size(6, 30, 4, 2), 8), (Size(2, 30, 4, 9), 0)]  # seen red: `more` left out


def marks():
    return np.unique(np.geomspace(1, TINY.rounds, coverage.MARKS).round())


@pytest.mark.parametrize("name", ["linear", "logistic"])
def test_a_play_is_the_run_that_simulate_has(name):
    given = setting(name, TINY, S=1.5)
    lost = np.zeros(TINY.runs)
    for now in play(given.env, given.model, fp(), size=TINY, seed=3):
        mu = given.link.mu(now.eta)
        lost += mu.max(axis=-1) - np.take_along_axis(mu, now.arm[:, None], axis=-1)[:, 0]
    results = simulate(given.env, {"FP": (given.model, fp())}, runs=TINY.runs, rounds=TINY.rounds, seed=3)
    assert_allclose(results.regret[0, :, -1], lost, rtol=1e-10)  # seen red: the streams "policy" and "ties" exchanged


def test_coverage_measures_the_distance_and_both_estimates():
    rng = np.random.default_rng(0)
    model = models.Ridge(0.3)
    X, r, theta = rng.standard_normal((1, 7, 2)), rng.standard_normal((1, 7)), rng.standard_normal((1, 2))
    state = model.update_many(model.init(2, batch=(1,)), X, r)
    V = 0.3 * np.eye(2) + X[0].T @ X[0]
    off = (state.theta - theta)[0]
    assert_allclose(coverage.distance(state, theta), math.sqrt(off @ V @ off))  # seen red: F for its inverse

    given = setting("linear", TINY, S=1.0)
    seen = coverage.watch(given, TINY, seed=0)
    states = [now.state for now in play(given.env, given.model, fp(), size=TINY, seed=0)]
    outside = np.stack([np.linalg.norm(state.theta, axis=-1) > 1 for state in states])
    assert_allclose(seen.outside, outside[marks().astype(int) - 1])
    assert seen.z.shape == (TINY.rounds, TINY.runs)
    inside = ~seen.outside  # there the two estimates are one, but for the ridge
    assert inside.any()
    assert seen.outside.any()
    ridge, constrained = seen.off["ridge estimate"], seen.off["constrained estimate"]
    assert_allclose(ridge[inside], constrained[inside], rtol=0.05, atol=0.01)
    assert np.abs(ridge - constrained)[seen.outside].max() > 0.1


def test_coverage_takes_the_worst_round():
    given, size = setting("linear", TINY, S=1.0), Size(runs=2, rounds=2, dim=2)
    L = np.full((2, 2), 40.0)
    beta = theory.beta(1, d=2, lam=1e-4, S=1.0, M=0.0, L=40.0, delta=0.1 / 8)
    seen = coverage.Watched(L, {"it": beta * np.array([[0.5, 2.0], [0.9, 1.0]])}, L, L > 0, L > 0)
    assert_allclose(coverage.ratio(given, seen, size, S=1.0, delta=0.1, estimate="it"), [0.9, 2.0])


def test_optimism_uses_the_lines_of_the_policy():
    given = setting("logistic", TINY, S=2.0)
    one, ten = (optimistic.probabilities(given, c, TINY, seed=0)[0] for c in (1.0, 10.0))
    for now in play(given.env, given.model, fp(), size=TINY, seed=0):
        width = np.linalg.norm(now.X, axis=-1) / math.sqrt(given.model.lam)  # of the first round: Ĥ = λI, θ̂ = 0
        assert_allclose(one, stats.norm.sf(np.min(now.eta.max(axis=-1)[:, None] / width, axis=-1)))
        break
    assert np.all(np.abs(ten - 0.5) <= np.abs(one - 0.5))


def test_the_lipschitz_bound_of_the_linear_model_holds():
    given, size = setting("linear", TINY, S=1.0), TINY._replace(runs=20)
    rows = list(play(given.env, given.model, fp(), size=size, seed=0))
    X, r = np.stack([now.x for now in rows], axis=1), np.stack([now.r for now in rows], axis=1)
    L = theory.lipschitz(X, r, 1.0, given.link)
    most = optimistic.loss_lipschitz("linear", size.rounds + 1, S=1.0, delta=0.01)
    assert np.all(most >= L)  # seen red: S/10 for 2S and log(2t/δ)/10


def test_widths_are_those_of_the_draws():
    largest, chosen = width.ratios(fp(), TINY, seed=0)
    z = np.stack([now.chance[0] for now in play(*linear(), fp(), size=TINY, seed=0)])
    assert_allclose(largest, np.abs(z), rtol=1e-6)  # FP moves every arm by the same number of widths
    assert_allclose(chosen, np.abs(z), rtol=1e-6)
    ts = policies.ThompsonSampling()
    largest, chosen = width.ratios(ts, TINY, seed=0)
    eta = np.stack([now.chance[0] for now in play(*linear(), ts, size=TINY, seed=0)])
    assert np.all(largest <= np.linalg.norm(eta, axis=-1) * (1 + 1e-9))  # the Cauchy-Schwarz step of Section 6
    assert np.all(chosen <= largest)
    assert_allclose(width.chi(1), stats.norm.ppf(0.975))
    assert_allclose(width.slope([2.0, 16.0], [1.0, 4.0]), 1.5)


def linear():
    given = setting("linear", TINY, S=1.0)
    return given.env, given.model


def test_the_bound_is_the_theorem_for_unit_features():
    given = setting("logistic", TINY, S=2.0, lam=2.0)
    link = given.link
    told = dict(d=2, lam=2.0, S=2.0, M=math.tanh(1.0), L_mu=0.25, L=2 * 499, kappa=link.kappa(2.0), kappa_star=0.1)
    expected = theory.theorem(500, R_star=1 / (1 + math.exp(-2)), delta=optimistic.DELTA, **told).total
    assert_allclose(slopes.bound(given, TINY, kappa_star=0.1)(500), expected)
    assert_allclose(slopes.steep(lambda T: 3 * T**0.7, 50.0), 0.7)


def test_curvature_takes_the_contexts_of_the_simulation_and_fits():
    given = setting("logistic", TINY, S=2.0, contexts=1)
    star = kappas.kappa_stars(given.env, TINY, seed=5)
    run = given.env.start(streams.stream(5, 1, "instance"))
    slope = given.link.slopes(np.max(run.sets[0] @ run.theta))[1]
    assert_allclose(star[1], slope)
    x = np.array([0.1, 0.2, 0.05, 0.3])
    steep, se, level = kappas.fit(x, 3 * x**0.5)
    assert_allclose([steep, math.exp(level)], [0.5, 3.0])
    assert se < 1e-7


def test_figure_2a_is_computed():
    given = illustrations.turned(0)
    assert_allclose(given.A.T @ given.A @ given.A.T @ given.A @ given.V, np.eye(2), atol=1e-12)  # A'A = V^{-1/2}
    values, P = np.linalg.eigh(given.V)
    root = P @ np.diag(values**-0.5) @ P.T
    for zeta in (given.proper, given.reversed):
        assert_allclose(given.bonus(zeta), given.arms @ root @ zeta)
    assert given.bonus(given.proper)[1] > max(given.bonus(given.proper)[0], 0)
    assert given.bonus(given.reversed)[0] > max(given.bonus(given.reversed)[1], 0)
    zeta = np.random.default_rng(1).standard_normal((100_000, 2))
    first, second = (given.arms @ root @ zeta.T)[:, None]
    share = np.mean((first > 0) & (first > second))
    assert abs(share - illustrations.reversal(given)) < 5 * math.sqrt(0.25 / 100_000)  # seen red: the angle itself


def test_figure_1_moves_models_on_the_left_and_inputs_on_the_right():
    left, right = illustrations.fig1(0).canvas.axes
    curve = next(line for line in right.lines if line.get_label() == "model f̂, kept fixed")
    dots = next(line for line in right.lines if line.get_label() == "f̂(x̃ᵢ), inputs perturbed")
    x, y = dots.get_data()
    assert len(x) == 24
    assert_allclose(y, np.interp(x, *curve.get_data()), atol=1e-3)
    model = next(line for line in left.lines if line.get_label() == "model f̂")
    dots = [line.get_data() for line in left.lines if line.get_marker() == "o"]
    assert len(dots) == 6
    assert max(np.abs(y - np.interp(x, *model.get_data())).max() for x, y in dots) > 0.05
    assert all(np.array_equal(x, dots[0][0]) for x, _ in dots)
