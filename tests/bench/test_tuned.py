"""One setting chosen by simulation: the runs that choose are not those that report, and doubt is said."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import dither as library
from dither import experiments
from dither_bench import sweeps

ENV = {"name": "linear", "dim": 3, "arms": 5, "contexts": 2}
WORLD = library.envs.Linear(dim=3, arms=5, contexts=2)
SMALL = dict(rounds=60, runs=5)


def regrets(texts, seed):
    """Regrets at the horizon by setting, (runs,): the simulator itself, without store and sweep."""
    found = library.simulate(WORLD, texts, seed=seed, **SMALL)
    return {name: last[:, -1] for name, last in zip(texts, found.regret, strict=True)}


def test_the_lowest_of_all_is_chosen_on_runs_apart(tmp_path):
    texts = ["LinFP:c=0.1", "LinFP:c=1", "LinFP:c=30", "LinTS", "Greedy"]
    found = experiments.tune(ENV, ["LinFP:c=0.1|1|30", "LinTS", "Greedy"], seed=3, out=tmp_path, **SMALL)
    searched, fresh = regrets(texts, sweeps.search_seed(3)), regrets(texts, 3)
    best = min(searched, key=lambda name: searched[name].mean())
    assert str(found.best) == best
    assert_allclose(found.regret[0], fresh[best].mean(), rtol=1e-9)
    half = stats.t.ppf(0.975, 4) * fresh[best].std(ddof=1) / np.sqrt(5)
    assert_allclose(found.regret[1:], [fresh[best].mean() - half, fresh[best].mean() + half], rtol=1e-9)
    tied = {best}
    for spec, (mean, low, _) in found.gaps.items():
        gap = searched[str(spec)] - searched[best]
        wide = stats.t.ppf(1 - 0.05 / 10 / 2, 4) * gap.std(ddof=1) / np.sqrt(5)  # of five settings: ten pairs
        assert_allclose([mean, low], [gap.mean(), gap.mean() - wide], rtol=1e-9)
        tied |= {str(spec)} if gap.mean() <= wide else set()
    assert set(map(str, found.tied)) == tied
    again = experiments.tune(ENV, ["LinFP:c=0.1|1|30", "LinTS", "Greedy"], seed=3, out=tmp_path, **SMALL)
    assert again.says == found.says
    # seen red: the fresh runs with the seed of the search; a level for each pair alone


def test_doubt_is_said(tmp_path):
    found = experiments.tune(ENV, ["LinFP:c=0.99|1|1.01"], out=tmp_path, **SMALL)
    assert len(found.tied) == 3
    assert "It cannot be told apart from" in str(found)
    sure = experiments.tune(ENV, ["LinFP:c=0.1|1000"], rounds=300, runs=8, out=tmp_path)
    assert sure.tied == (sure.best,)
    assert "below all others by more than the error" in str(sure)
    one = experiments.tune(ENV, ["LinFP", "Greedy"], rounds=20, runs=1, out=tmp_path)
    assert len(one.tied) == 2
    assert "on 1 run of the search (seed 1000000000)" in str(one)
    assert "One run alone decides nothing." in str(one)
    assert one.regret[1] is None


def test_a_setting_that_ends_with_an_error_is_left_out(tmp_path, monkeypatch):
    from dither_bench.run import computing

    whole = computing.simulate

    def simulate(env, algorithms, **how):
        if any(spec.name == "LinFP" and spec.value("c") > 2 for spec in algorithms.values()):
            raise ValueError("the estimate overflows")
        return whole(env, algorithms, **how)

    monkeypatch.setattr(computing, "simulate", simulate)
    found = experiments.tune(ENV, ["LinFP:c=1|2|3", "Greedy"], out=tmp_path, **SMALL)
    assert "LinFP:c=3 ended with an error and is left out: the estimate overflows" in str(found)
    assert len(found.gaps) == 2


@pytest.mark.parametrize(
    ("algorithms", "words"),
    [
        (["LinFP"], "at least two settings, as in .*; got LinFP"),
        ("LinFP:c=1|2", "algorithms must be a list"),
        ([], "at least one algorithm"),
        (["LinFP:q=1|2"], "'q'"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, algorithms, words):
    with pytest.raises((ValueError, LookupError, TypeError), match=words):
        experiments.tune(ENV, algorithms, out=tmp_path, **SMALL)
    assert not list(tmp_path.iterdir())
