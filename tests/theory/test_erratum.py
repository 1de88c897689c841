"""The exact numbers of docs/erratum.md, computed again."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import integrate, special, stats

from dither import links, noise
from dither.models import Ridge
from dither.policies import FeaturePerturbation, RandUCB
from dither_bench.define import published

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "erratum.md").read_text(encoding="utf-8").split())
PUBLISHED = pl.read_csv(Path(published.__file__).with_name("published.csv"))


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
    assert re.findall(r"\*\*(E\d+)\.", PAGE) == [f"E{i}" for i in range(1, 17)]


def test_e1_the_curve_of_epsilon_greedy():
    assert "ends at 928" in said("E1")
    assert ends("fig3-linear", "d=10")["ε-Greedy"] == pytest.approx(928, abs=0.5)


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
    for figure, numbers in (("h4", (225, 234)), ("h5", (62, 68))):
        found = ends(figure, "d=10")
        assert (round(found["RandUCBLog"]), round(found["GLM-FP"])) == numbers
    for figure, numbers in (("fig3-neural", (696, 725)), ("h6", (711, 745))):
        found = ends(figure, "shuttle")
        assert (round(found["FTPL"]), round(found["DeepFP"])) == numbers
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
