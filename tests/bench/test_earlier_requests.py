"""What a folder holds from earlier requests is said beside new results; names are printed as they are."""

import pytest

MINE = """
from dataclasses import dataclass

import dither
from dither.policies.views import plain


@dataclass(frozen=True)
class P:
    needs = frozenset({"mean", "width"})

    def draw(self, rng, n, *, arms, dim):
        return ()

    def view(self, model, state, X, *, t):
        return plain(SCORES)
"""
BOTH = "model.mean(state, X) + model.width(state, X)"


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Writes mine.py with these scores."""
    monkeypatch.chdir(tmp_path)

    def write(scores):
        (tmp_path / "mine.py").write_text(MINE.replace("SCORES", scores))

    write(BOTH)
    return write


def compare(dither, *more):
    code, out, err = dither(
        "compare", "LinFP", "mine.py:P", "--dim", 2, "--arms", 3, "--rounds", 30, "--runs", 2, "--out", "r", *more
    )
    assert code == 0, err
    return " ".join(out.split())


def test_results_of_older_code_beside_new_ones_are_said(dither, mine):
    assert "CAUTION" not in compare(dither)
    assert "CAUTION" not in compare(dither, "--norm", 2)
    mine(BOTH.replace("+", "-"))
    assert "CAUTION" not in compare(dither, "--norm", 3)  # the files leave them out
    out = compare(dither, "--norm", 3, "--with-earlier")
    caution = out[out.index("CAUTION") :]
    for panel in ("linear, dim=2, arms=3, T=30", "linear, dim=2, arms=3, norm=2, T=30"):
        assert f"mine.py:P in {panel}" in caution
    assert "LinFP" not in caution  # its code is what it was
    # seen red: every earlier panel is compared with itself


def test_a_seed_that_the_files_leave_out_is_said(dither, mine):
    assert "seed" not in compare(dither)
    said = compare(dither, "--seed", 1)
    assert "The files show seed 1 alone, which was asked for last. Results of seed 0 are kept in this folder." in said


@pytest.mark.parametrize("scores", ["model.mean(state, X)[..., :-1]", "model.mean(state, X)[..., :1]"])
def test_scores_of_too_few_arms_are_refused(dither, mine, scores):
    mine(scores)
    code, _, err = dither("compare", "mine.py:P", "--dim", 2, "--arms", 3, "--rounds", 5, "--runs", 1, "--out", "r")
    assert code == 2
    assert "P must score each of the 3 arms" in " ".join(err.split())


def test_names_have_no_emoji_and_no_colours(dither, tmp_path, monkeypatch, mine):
    (tmp_path / "mine.py").rename(tmp_path / "x[red].py")
    text = (tmp_path / "x[red].py").read_text()
    (tmp_path / "x[red].py").write_text(text.replace("class P:", "class fire:\n    c: float = 1.0"))
    name = "x[red].py:fire:c=2.0"
    code, out, err = dither(
        "compare", name, "Greedy", "--dim", 2, "--arms", 3, "--rounds", 5, "--runs", 2, "--out", "r"
    )
    assert code == 0, err
    assert "🔥" not in out + err
    assert name in out


def test_an_environment_without_a_name_is_refused():
    from dither import experiments

    with pytest.raises(ValueError, match="has the key 'name'"):
        experiments.compare(["LinFP"], {"env": "linear"}, rounds=5, runs=1)
