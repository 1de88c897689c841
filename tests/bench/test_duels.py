"""Who wins a bake-off: the Z test, Holm's correction, the paired t and the ratios, by hand and by other mathematics."""

import itertools
import math

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from dither_bench.define.bake_sets import SetFacts
from dither_bench.define.figures import FIGURES
from dither_bench.define.panels import Figure, Panel
from dither_bench.judge import duel_words, duels, profiles, set_losses
from dither_bench.judge.set_losses import SetLosses

NAMES = ("one", "two", "three")


def losses(loss, *, rounds=100, names=NAMES, random=0.5):
    """Of an array (S, R, A)."""
    loss = np.asarray(loss, dtype=float)
    sets = tuple(SetFacts(f"set{s}", 200, 2, 3, 1.0, random) for s in range(len(loss)))
    return SetLosses(loss, np.full(len(loss), rounds), sets, tuple(names[: loss.shape[2]]))


def drawn(S=6, R=4, A=3, seed=0):
    return losses(np.random.default_rng(seed).binomial(100, 0.3, size=(S, R, A)) / 100)


def test_z_by_hand():
    """20 errors of 100 against 30: 0.1 over the root of (0.16 + 0.21)/100. Seen red with n times the shuffles."""
    one = losses([[[0.1, 0.3], [0.3, 0.3]]])
    assert_allclose(duels.z(one, "one", "two"), 0.1 / math.sqrt(0.0037), rtol=1e-12)
    assert_allclose(duels.z(one, "two", "one"), -0.1 / math.sqrt(0.0037), rtol=1e-12)


@pytest.mark.parametrize(
    ("p", "q", "wanted"), [(0.0, 0.0, 0.0), (0.3, 0.3, 0.0), (1.0, 1.0, 0.0), (0.0, 1.0, math.inf)]
)
def test_z_where_nothing_varies(p, q, wanted):
    """Equal losses are no win, and none against all is one. Seen red without the case of no gap: NaN."""
    one = losses([[[p, q]]])
    assert duels.z(one, "one", "two") == wanted
    assert duels.won(one, "one", "two", corrected=False) == [wanted > 0]


@pytest.mark.parametrize("seed", range(20))
def test_holm_is_the_closed_test_of_bonferroni(seed):
    """A hypothesis falls where every set of hypotheses with it has a p below level/size (Marcus et al. 1976).

    Seen red with level/k in place of level/(S - k + 1).
    """
    p = np.random.default_rng(seed).beta(0.3, 2.0, size=6)
    closed = [
        all(
            min(p[list(them)]) < 0.05 / len(them)
            for n in range(1, 7)
            for them in itertools.combinations(range(6), n)
            if i in them
        )
        for i in range(6)
    ]
    assert duels.holm(p).tolist() == closed


def test_holm_by_hand():
    """.005 < .05/4, .01 < .05/3, but .03 > .05/2, so .04 < .05 does not count. Seen red without the running product."""
    assert duels.holm(np.array([0.01, 0.04, 0.03, 0.005])).tolist() == [True, False, False, True]


def test_the_matrix_has_the_duels():
    """Row better than column. Seen red with the transposed matrix."""
    three = losses([[[0.05, 0.5, 0.5]], [[0.5, 0.06, 0.5]], [[0.05, 0.5, 0.3]]])
    assert duels.matrix(three).tolist() == [[0, 2, 2], [1, 0, 1], [0, 1, 0]]
    for a, b in itertools.permutations(range(3), 2):
        duel = duels.duel(three, NAMES[a], NAMES[b])
        assert (duel.wins, duel.losses) == (duels.matrix(three)[a, b], duels.matrix(three)[b, a])


def test_the_paired_t_is_that_of_scipy():
    """Seen red with ddof=0."""
    some = drawn()
    rows = duels.paired(some, "two", "one")
    for s, row in enumerate(rows.iter_rows(named=True)):
        test = stats.ttest_rel(some.loss[s, :, 1], some.loss[s, :, 0])
        low, high = test.confidence_interval(0.95)
        assert_allclose([row["p"], row["low"], row["high"]], [test.pvalue, low, high], rtol=1e-9)
        assert row["set"] == f"set{s}"
        assert_allclose(row["relative"], row["difference"] / some.mean[s, 0], rtol=1e-12)


def test_one_shuffle_has_no_interval():
    """Seen red without the case of one shuffle: a warning of NumPy, which is an error."""
    one = drawn(R=1)
    rows = duels.paired(one, "one", "two")
    assert rows.select("low", "high", "p").null_count().row(0) == (6, 6, 6)
    assert duels.sizes(one, "one", "two")[:2] == (0, 0)
    assert "One run alone decides nothing." in list(duel_words.sentences(one, "one"))


def test_sizes_count_the_sets_whose_interval_leaves_zero():
    """Seen red with lower and higher exchanged."""
    some = losses([[[0.1, 0.2], [0.11, 0.21]], [[0.2, 0.3], [0.21, 0.31]], [[0.1, 0.2], [0.4, 0.2]], [[0.5, 0.4]] * 2])
    sizes = duels.sizes(some, "one", "two")
    assert (sizes.lower, sizes.higher) == (2, 1)
    relative = [0.105 / 0.205 - 1, 0.205 / 0.305 - 1, 0.25, 0.25]
    assert_allclose([sizes.least, sizes.median, sizes.most], [min(relative), np.median(relative), 0.25], atol=1e-12)


def test_ratio_and_normalised_loss_by_hand():
    """Seen red with the arithmetic mean of the ratios, and with 0 in the place of the lowest loss."""
    two = losses([[[0.1, 0.2]], [[0.4, 0.1]]])
    assert_allclose(two.ratios(), [[1, 2], [4, 1]])
    assert_allclose(two.ratios(to=["two"]), [[0.5, 1], [4, 1]])
    assert_allclose(two.normalised, [[0, 0.25], [0.75, 0]])
    table = two.table()
    assert table["algorithm"].to_list() == ["one", "two"]
    assert_allclose(table["ratio"], [2, math.sqrt(2)])
    assert_allclose(table["largest"], [4, 2])
    assert_allclose(table["loss"], [0.25, 0.15])
    assert_allclose(two.select(["two"]).loss, two.loss[:, :, 1:])


def test_no_error_counts_as_one():
    """Two shuffles of 100 rounds without an error count as 1 in 200. Seen red without the least loss: infinity."""
    assert_allclose(losses([[[0.0, 0.1], [0.0, 0.1]]]).ratios(), [[1, 20]])


def test_an_unknown_algorithm_has_a_near_match():
    """Seen red with `tuple.index`, whose error names nothing."""
    with pytest.raises(LookupError, match="did you mean 'three'"):
        duels.z(drawn(), "thre", "one")


def test_losses_of_stored_curves():
    """Regret over rounds and over the worst of a row; shuffles beyond those that were asked for do not count.

    Seen red without the filter of runs.
    """
    from dither.algorithms import specs
    from dither_bench.define.environments import describe

    panel = Panel("diabetes", describe("bakeoff", data="diabetes"), 50, specs("LinFP", "Greedy"))
    figure = Figure("bakeoff", "", (panel,), runs=2)
    rows = [
        ("diabetes", a, run, 50, 10.0 * (run + 1) + i) for i, a in enumerate(("LinFP", "Greedy")) for run in range(3)
    ]
    curves = pl.DataFrame(rows, schema=["panel", "algorithm", "run", "round", "regret"], orient="row")
    some = set_losses.of_curves(figure, curves)
    worst = some.sets[0].worst
    assert_allclose(some.loss, np.array([[[10, 11], [20, 21]]]) / (50 * worst))


def test_the_profile_of_a_bake_off_by_hand():
    """Two sets, two shuffles: regrets over the mean of the reference. Seen red with τ < in place of ≤."""
    from dither.algorithms import specs

    panels = tuple(Panel(name, {"name": "bakeoff"}, 10, specs("LinFP", "Greedy")) for name in "ab")
    rows = [
        (name, algorithm, run, 10, regret)
        for name, algorithm, regrets in [
            ("a", "LinFP", (1.0, 3.0)),
            ("a", "Greedy", (1.0, 1.0)),
            ("b", "LinFP", (4.0, 4.0)),
            ("b", "Greedy", (8.0, 2.0)),
        ]
        for run, regret in enumerate(regrets)
    ]
    curves = pl.DataFrame(rows, schema=["panel", "algorithm", "run", "round", "regret"], orient="row")
    scores = profiles.scores(Figure("bakeoff", "", panels, runs=2), curves)
    profile = profiles.profile(scores, at=[0.5, 1.0, 2.0])
    assert profile.filter(algorithm="Greedy")["share"].to_list() == [0.75, 0.75, 1.0]
    assert profile.filter(algorithm="LinFP")["share"].to_list() == [0.25, 0.75, 1.0]


def test_sentences_name_each_algorithm_once():
    """Seen red with the kinds exchanged."""
    three = losses([[[0.05, 0.5, 0.05]], [[0.05, 0.5, 0.05]]])
    said = list(duel_words.sentences(three, "one"))
    assert "Worse than one on some sets, and better on none: two (0–2)." in said
    assert "Not told apart from one on any set: three." in said


def test_no_figure_of_the_paper_is_called_so():
    """A bake-off has no published curves. Seen red with a figure of this name."""
    assert "bakeoff" not in FIGURES
