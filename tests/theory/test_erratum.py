"""The exact numbers of docs/erratum.md, computed again."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import integrate, special, stats

import dither
from dither import links, noise
from dither.envs import Linear
from dither.models import Ridge
from dither.policies import FeaturePerturbation, RandUCB
from dither_bench.define import published
from dither_bench.define.figures import FIGURES
from dither_bench.judge import ratios, tables
from dither_bench.show import summaries

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "erratum.md").read_text(encoding="utf-8").split())
PUBLISHED = pl.read_csv(Path(published.__file__).with_name("published.csv"))
RESULTS = Path(__file__).parents[2] / "docs" / "results"
SOURCE = Path(__file__).parents[3] / "shared" / "paper" / "feature_perturbation.tex"


def summary(name):
    return summaries.read(RESULTS / f"{name}.json")


def summary_values(name):
    return tables.judged(summary(name).figure, summary(name).measured)


def said(entry):
    """The text of an entry of the page."""
    (text,) = re.findall(rf"\*\*{entry}\. (.*?)(?=\*\*E\d|## |$)", PAGE)
    return text


def ends(figure, panel):
    """Algorithm -> its last published value."""
    rows = PUBLISHED.filter(figure=figure, panel=panel).sort("round")
    return dict(rows.group_by("algorithm").last().select("algorithm", "regret_mean").iter_rows())


def begins(figure, panel):
    rows = PUBLISHED.filter(figure=figure, panel=panel, round=1)
    return dict(rows.select("algorithm", "regret_mean").iter_rows())


def lost(d, mu=lambda eta: eta, *, S=1.0, K=100):
    """What a uniform choice among K unit arms loses: (x'θ*/S + 1)/2 ~ Beta((d-1)/2, (d-1)/2), the best of K of them."""
    law = stats.beta((d - 1) / 2, (d - 1) / 2)

    def mean(power):
        def density(b):
            return mu(S * (2 * b - 1)) * power * law.pdf(b) * law.cdf(b) ** (power - 1)

        return integrate.quad(density, 0, 1)[0]

    return mean(K) - mean(1)


def slope(eta):
    """μ' of the logistic function."""
    return links.find("logit").slopes(eta)[1]


def test_every_entry_is_there_once():
    assert re.findall(r"\*\*(E\d+)\.", PAGE) == [f"E{i}" for i in range(1, 22)]


def test_e1_the_curve_of_epsilon_greedy():
    """Seen red with the schedule of the text as the default."""
    assert "ends at 928" in said("E1")
    assert ends("fig3-linear", "d=10")["ε-Greedy"] == pytest.approx(928, abs=0.5)
    values = summary_values("fig3-linear").filter(panel="d=10", algorithm="EpsGreedy")
    assert values["value"].to_list() == [ratios.REPRODUCED]
    both = ["EpsGreedy:preset=paper", "EpsGreedy:preset=paper,decay=text"]
    half, whole = dither.simulate(Linear(dim=10, arms=100), both, rounds=20_000, runs=2).regret[:, :, -1].mean(axis=1)
    assert "at 1.7 times as much" in said("E1")
    assert whole / half == pytest.approx(1.7, abs=0.2)  # five standard errors of two runs


def test_e2_no_derivative_of_the_logistic_function_is_above_a_quarter():
    eta = np.linspace(-40, 40, 10_001)
    slopes = slope(eta)
    assert slopes.max() == 0.25
    assert np.all(np.maximum(slopes, 0.25) == 0.25)
    assert f"factor of {0.25 / slope(np.array(4.0)):.0f}" in said("E2")


def test_e3_a_softmax_over_one_output_is_1():
    assert np.all(special.softmax(np.array([[-3.0], [0.0], [50.0]]), axis=1) == 1)


def test_e4_the_law_of_the_ball():
    d, rng = 5, np.random.default_rng(0)
    v = rng.normal(size=(100_000, d))
    u = v[:, 0] / np.linalg.norm(v, axis=1)
    printed = stats.beta(0.5, (d - 1) / 2)
    assert stats.kstest(u, printed.cdf).statistic == pytest.approx(0.5, abs=0.01)
    assert stats.kstest(u**2, printed.cdf).statistic < 0.005
    z = noise.Ball().vectors(rng, 100_000, d)[:, 0]
    share = stats.beta((d + 1) / 2, (d + 1) / 2)
    assert stats.kstest((z / np.sqrt(d) + 1) / 2, share.cdf).statistic < 0.005


@pytest.mark.parametrize(("padding", "side"), [(0, 5), (1, 7)])
def test_e5_the_padding(padding, side):
    def layer(n):
        return (n + 2 * padding - 2) // 2  # a kernel of 3, then halves

    assert layer(layer(28)) == side
    assert f"64 × {side} × {side}" in said("E5")


@pytest.mark.parametrize(("d", "figures"), [(10, ("0.714", "1.43")), (40, ("0.387", "0.77"))])
def test_e8_the_first_round_says_s_is_1(d, figures):
    cost = lost(d)
    assert (f"{cost:.3f}", f"{2 * cost:.2f}") == figures
    assert all(number in said("E8") for number in figures)
    first = list(begins("h3", f"d={d}").values())
    low, high = map(float, re.findall(r"(0\.\d\d) to (0\.\d\d)", said("E8"))[0 if d == 10 else 1])
    assert (min(first), max(first)) == pytest.approx((low, high), abs=0.0051)
    assert abs(np.mean(first) - cost) < 0.1 * cost


def test_e6_which_of_the_two_adds_normal_noise():
    """Seen red with the two names exchanged."""
    assert dither.ALGORITHMS["LogFPL"].label["fig3-logistic"].startswith("LogFPL")
    for figure, name in (("fig3-logistic", "LogFPL"), ("h4", "LogPHE"), ("h5", "LogPHE")):
        legend = set(PUBLISHED.filter(figure=figure)["algorithm"])
        assert legend & {"LogFPL", "LogPHE"} == {name}
    assert "LogPHE adds pseudo-rewards, and LogFPL adds normal noise to the rewards" in said("E6")


def test_e7_where_the_legend_says_linfp():
    """Seen red with Figure 2b among the others, as the page once had it."""
    linear = {
        name: set(PUBLISHED.filter(figure=name)["algorithm"]) for name in ("fig2b", "fig3-linear", "h1", "h2", "h3")
    }
    assert {name for name, legend in linear.items() if "LinFP" in legend} == {"fig2b", "h3"}
    assert {name for name, legend in linear.items() if "GLM-FP" in legend} == {"fig3-linear", "h1", "h2"}
    assert "The legends of Figures 2b and H.3 say LinFP" in said("E7")


def test_e10_the_panels():
    """Seen red with Figure H.5 beside H.4, whose caption agrees."""
    for figure, dims in (("h4", (10, 20, 40)), ("h5", (5, 10, 20))):
        assert set(PUBLISHED.filter(figure=figure)["panel"]) == {f"d={d}" for d in dims}
    assert "panels are titled d = 10, 20, 40" in said("E10")


def test_e9_the_horizons():
    last = dict(PUBLISHED.group_by("figure", "panel").agg(pl.col("round").max()).select(
        pl.concat_str("figure", "panel", separator=" "), "round").iter_rows())  # fmt: skip
    assert [last[f"fig3-logistic d={d}"] for d in (10, 20, 40)] == [500, 3000, 10_000]
    assert (last["h4 d=10"], last["h5 d=10"], last["fig3-neural shuttle"], last["h7 MNIST"]) == (
        20_000,
        10_000,
        20_000,
        50_000,
    )


@pytest.mark.parametrize(("d", "figure"), [(10, "0.443"), (20, "0.391"), (40, "0.322")])
def test_e12_what_a_uniform_choice_loses(d, figure):
    assert f"{lost(d, special.expit, S=4.0):.3f}" == figure
    assert figure in said("E12")
    first = begins("fig3-logistic", f"d={d}")
    assert min(first[name] for name in ("ε-Greedy", "LogFPL", "RandUCBLog")) >= 0.62
    assert max(first[name] for name in ("ε-Greedy", "LogFPL", "RandUCBLog")) <= 0.74
    assert first["GLM-FP"] == first["OFUGLB-e"] == 0


def test_e14_to_e16_the_claims():
    below = {
        d: 1 - ends("fig3-linear", f"d={d}")["GLM-FP"] / ends("fig3-linear", f"d={d}")["RandLinUCB"]
        for d in (10, 20, 40)
    }
    assert ", ".join(f"{share:.0%}" for share in below.values()) == "1%, 7%, 2%"
    figure, gaps, drawn = FIGURES["fig3-linear"], [], []
    for panel in figure.panels:
        of = {spec.name: published.last(figure, panel, algorithm=spec) for spec in panel.algorithms}
        gaps.append(round(of["RandLinUCB"].mean - of["LinFP"].mean))
        drawn.append(round(float(np.hypot(of["RandLinUCB"].se, of["LinFP"].se))))
    assert (
        f"by {gaps[0]}, {gaps[1]} and {gaps[2]}, where the errors that are drawn make {drawn[0]}, {drawn[1]} and"
        in said("E14")
    )
    for figure, numbers in (("h4", (225, 234)), ("h5", (62, 68))):
        found = ends(figure, "d=10")
        assert (round(found["RandUCBLog"]), round(found["GLM-FP"])) == numbers
    for figure, numbers in (("fig3-neural", (696, 725)), ("h6", (711, 745))):
        found = ends(figure, "shuttle")
        assert (round(found["FTPL"]), round(found["DeepFP"])) == numbers
    fashion = ends("h7", "Fashion-MNIST")
    assert f"{fashion['FTPL']:,.0f} and {fashion['DeepFP']:,.0f}" == "5,487 and 5,606"
    assert "5,487 and 5,606" in said("E15")
    found = ends("h1", "d=20")
    assert (round(found["RandLinUCB"]), round(found["GLM-FP"])) == (1279, 631)


def test_e16_both_show_the_same_arms_for_the_same_z():
    rng, model = np.random.default_rng(0), Ridge(lam=0.5)
    state = model.init(4)
    for _ in range(20):
        state = model.update(state, rng.normal(size=4), np.array(rng.normal()))
    X = rng.normal(size=(7, 4))
    ours = FeaturePerturbation(c=0.5).view(model, state, X, t=21)
    theirs = RandUCB(law=noise.Gaussian(), beta=0.5).view(model, state, X, t=21)
    for z in rng.normal(size=50):
        assert np.array_equal(ours.scores(np.array(z)), theirs.scores(np.array(z)))


def test_e17_the_figures_are_longer_than_the_assumption():
    """Seen red with ‖θ*‖ = 1 for Figure H.5."""
    norms = {name: {panel.env.get("norm", 1.0) for panel in FIGURES[name].panels} for name in ("h2", "h3", "h5")}
    assert (norms["h2"], norms["h5"], 2.0 in norms["h3"]) == ({2.0}, {4.0}, True)
    assert "S = 2, 2 and 4" in said("E17")


def test_e19_the_law_of_the_comment():
    """x̃'θ̂ has mean x'θ̂ and variance c² ‖x‖² in the norm of V⁻¹: five standard errors of 20,000 draws.

    Seen red with the norm of V.
    """
    rng, model, n, c = np.random.default_rng(0), Ridge(lam=0.5), 20_000, 0.7
    state = model.init(4)
    V, b = 0.5 * np.eye(4), np.zeros(4)
    for _ in range(20):
        x, r = rng.normal(size=4), rng.normal()
        state, V, b = model.update(state, x, np.array(r)), V + np.outer(x, x), b + r * x
    theta, x = np.linalg.solve(V, b), rng.normal(size=4)
    width = np.sqrt(x @ np.linalg.solve(V, x))
    moved = x + c * width / np.linalg.norm(theta) * rng.normal(size=(n, 4))
    scores = moved @ theta
    sd = c * width
    assert abs(scores.mean() - x @ theta) < 5 * sd / np.sqrt(n)
    assert abs(scores.var() / sd**2 - 1) < 5 * np.sqrt(2 / n)
    view = FeaturePerturbation(c=c).view(model, state, x[None], t=21)
    assert float((view.scores(np.array(1.0)) - view.scores(np.array(0.0)))[0]) == pytest.approx(sd)


def test_e21_what_proves_the_two_constants():
    """P(|z| <= √(2 log(2/δ))) >= 1 - δ, Lemma F.6; (normal anti) is another inequality. Seen red with c = 1."""
    delta = np.geomspace(1e-8, 1, 200)
    assert np.all(1 - 2 * stats.norm.sf(np.sqrt(2 * np.log(2 / delta))) >= 1 - delta - 1e-15)
    assert stats.norm.sf(1) >= 1 / (4 * np.sqrt(np.e * np.pi))
    assert "1/(4√(eπ))" in said("E21")


if SOURCE.exists():  # where the paper lies beside the checkout

    @pytest.mark.parametrize(
        "printed",
        [
            r"\varepsilon_t = \varepsilon \sqrt{T/t}$ with $\varepsilon = 0.05",  # E1
            r"use a minimum link derivative of $0.25$",  # E2
            r"LogPHE~\cite{kveton2020randomized}",  # E6
            r"Logistic-UCB-2 \cite{jun2017scalable}",  # E7
            r"$|\Ccal|=T$, $d=\{10,20,40\}$, $K=100$, $S=2$",  # E8
            r"Logistic Bandit. $|\Ccal|=1$, $d=\{5,10,20\}$, $K=100$, $S=1$",  # E10
            r"Logistic Bandit. $|\Ccal|=1$, $d=\{5,10,20\}$, $K=100$, $S=4$",  # E10, E17
            r"we have $\|x\|\leq 1$ and $\|\theta^*\|\leq 1$",  # E17
            r"constrain $\|\theta^*\| \leq 4$",  # E17
            r"\Comment{$x_{ti}^\top\tilde{\theta}_t\sim \Ncal(x_{ti}^\top\hat{\theta}_t",  # E19
            r"\|x_{ti}\|_{\hat{V}_t^{-1}}",  # E19
            r"\abr{\dot{\mu}(x_t^\top\btt)-\dot{\mu}(x_t^\top\htt)}\beta_{\tau(t)}",  # E20
            r"are both $2$, as proved in \cref{eqn:normal anti}",  # E21
        ],
    )
    def test_what_is_quoted_is_printed(printed):
        """Seen red with a word changed."""
        assert printed in " ".join(SOURCE.read_text("utf-8").split())

    def test_e18_lambda_is_an_input_alone():
        """Seen red with Algorithm 1, whose estimate is regularised by its Hessian."""
        source = SOURCE.read_text("utf-8")
        algorithm = source.partition(r"\caption{Feature Perturbation in Bandit Problems}")[2].partition(
            r"\label{alg:FP}"
        )[0]
        assert algorithm.count(r"\lambda") == algorithm.count("c_t") == 1
