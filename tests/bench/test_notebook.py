"""What a notebook shows of results: whole tables, escaped, in the colours of the page."""

from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

import dither
from dither import ope, simulate
from dither.base import notebook
from dither.envs import Linear
from dither.experiments import compare
from dither_bench import bakeoff
from dither_bench.results import Comparison

EVIL = "<script>alert('x')</script> & \"co\""


class Tree(HTMLParser):
    """Refuses tags that are not closed in their order; collects texts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def estimate():
    rng = np.random.default_rng(0)
    arm = rng.integers(0, 3, 200)
    return ope.ips(rng.normal(size=200), arm, np.full(200, 1 / 3), np.full((200, 3), 1 / 3))


def evaluation():
    rng, n = np.random.default_rng(0), 300
    frame = {"arm": rng.integers(0, 3, n), "propensity": np.full(n, 1 / 3), "reward": rng.normal(size=n)}
    return ope.evaluate(pl.DataFrame(frame), policies=["uniform", "arm:2"], arms=3)


def explanation():
    bandit = dither.LinFP(dim=2, seed=0)
    bandit.update(np.array([1.0, 0.0]), 1.0)
    return bandit.explain(np.eye(3, 2))


RESULTS = {
    "comparison": lambda: compare(["LinFP", "LinTS"], rounds=20, runs=3),
    "one run": lambda: compare(["LinFP"], rounds=20, runs=1),
    "bake-off": lambda: bakeoff.play(["LinFP", "Greedy"], ["iris"], rounds=30, shuffles=2),
    "estimate": estimate,
    "difference": lambda: ope.compare(estimate(), estimate()),
    "explanation": explanation,
    "evaluation": evaluation,
}


@pytest.mark.parametrize("name", RESULTS)
def test_it_is_whole_html_without_colours_of_its_own(name):
    text = RESULTS[name]()._repr_html_()
    tree = Tree(text)
    assert "script" not in tree.tags
    for colour in ("#", "rgb(", "white", "black"):
        assert colour not in text.replace("&#x27;", "")


def test_a_comparison_shows_what_its_text_says():
    found = RESULTS["comparison"]()
    shown = " ".join(Tree(found._repr_html_()).texts)
    for row in found.values().iter_rows(named=True):
        assert row["algorithm"] in shown
    assert repr(found).splitlines()[-1] in shown
    assert "reference" in shown


def test_an_explanation_marks_the_arm_at_z():
    text = Tree(explanation()._repr_html_())
    assert text.tags.count("tr") >= 2
    assert {"arm", "probability"} <= set(text.texts)


def test_names_of_users_are_escaped():
    """Seen red without `escape`: the notebook runs the script."""
    found = Comparison.of(simulate(Linear(arms=3, dim=2), {EVIL: "LinFP"}, runs=2, rounds=9), panel=EVIL)
    text = found._repr_html_()
    assert "<script" not in text
    assert EVIL in "".join(Tree(text).texts)
    assert "<b>" not in notebook.table(["<b>"], [("<b>",)], title="<b>", says=["<b>"])
