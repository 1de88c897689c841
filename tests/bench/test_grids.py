import itertools
import re

import numpy as np
import pytest

from dither.algorithms import Spec, grids, specs
from dither.algorithms.grids import Grid, Range
from dither.algorithms.spec import settings


def test_the_bars_are_the_product_of_the_values():
    found = specs("LinFP:c=0.1|0.3|1,lam=1e-4|1")
    pairs = itertools.product((0.1, 0.3, 1), (1e-4, 1))
    assert found == tuple(Spec("LinFP", (("c", c), ("lam", lam))) for c, lam in pairs)
    assert specs("LinFP:sigma=0.5,c=1|2,coupled=false") == specs(
        "LinFP:sigma=0.5,c=1,coupled=false", "LinFP:sigma=0.5,c=2,coupled=false"
    )
    assert specs("LinTS:preset=as_run|own_paper,c=2") == specs("LinTS:preset=as_run,c=2", "LinTS:preset=own_paper,c=2")
    # seen red: the sum of the values in place of their product; preset=… kept as a setting


def test_one_value_and_values_that_repeat_are_tried_once():
    assert specs("LinFP:c=0.3") == (Spec("LinFP", (("c", 0.3),)),)
    assert specs("LinFP:c=0.3|0.30|3e-1", "LinFP:c=0.3") == specs("LinFP:c=0.3")
    assert Grid.parse("LinFP:c=0.3").axes == ()
    assert Grid.parse("Greedy").texts() == [""]


def test_a_bar_inside_quotes_or_brackets_belongs_to_the_value():
    found = Grid.parse("A:x='a|b'|\"c,d|\"|(1, 2)|[3|4]")
    assert found.axes == (("x", ("'a|b'", '"c,d|"', "(1, 2)", "[3|4]")),)
    assert Grid.parse("A:x='a|b',y=(1, 2)") == Grid("A:x='a|b',y=(1, 2)")
    assert grids.split("it's|so", "|") == ["it's", "so"]  # one quote is a letter


@pytest.mark.parametrize("value", ["a|b", "a,b", "1", "none", "0..2", "oful", "it's", (50, 50), 0.3, None, True])
def test_a_spec_is_read_as_it_is_written(value):
    spec = Spec("LinFP", (("lam", 1), ("noise", value)))
    assert specs(str(spec)) == (spec,)
    # seen red: text with a bar written without quotes; tuples cut at their comma


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("LinFP:c=1||2", "a value is missing in 'LinFP:c=1||2'"),
        ("LinFP:c=|", "a value is missing"),
        ("LinFP|LinTS", "| stands between values, as in NAME:setting=value|value; got 'LinFP|LinTS'"),
        ("LinFP:c=1|2,c=3|4", "c is set twice"),
        ("LinFP:c=1|2,lam=1,lam=2", "lam is set twice"),
        ("LinFP:c=3..1", "a range goes up, from a smaller to a larger number, got 3..1"),
        ("LinFP:c=1..1", "a range goes up"),
        ("LinFP:c=log:0..1", "a range of logarithms begins above 0, got log:0..1"),
        ("LinFP:c=0..1e999", "a range goes up"),
        ("LinFP:c=0.1..2", "c=0.1..2 is a range: say how many values to draw of it"),
    ],
)
def test_what_cannot_be_tried_is_refused(text, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        specs(text)


def test_a_sweep_is_read_from_text_or_a_dict():
    c, lam = ("c", ("0.1", "0.3")), ("lam", (Range("1e-4", "1", geometric=True),))
    assert grids.axis("c=0.1,0.3") == grids.axis("c=0.1|0.3") == grids.axis(" c = 0.1, 0.3") == c
    assert grids.axes(["c=0.1,0.3", "lam=log:1e-4..1"]) == [c, lam]
    assert grids.axes({"c": [0.1, 0.3], "lam": "log:1e-4..1"}) == [c, lam]
    assert grids.axes({"x": ["a|b", (1, 2)]}) == [("x", ("'a|b'", "(1, 2)"))]
    for wrong, says in (("c", "a sweep is written setting=value,value"), ("=1", "a sweep"), ("c=", "value is missing")):
        with pytest.raises(ValueError, match=says):
            grids.axis(wrong)
    with pytest.raises(ValueError, match="c is set twice"):
        grids.axes(["c=1,2", "c=3"])
    assert grids.axes({"c": 3}) == [("c", ("3",))]  # seen red: 'int' object is not iterable
    with pytest.raises(ValueError, match="a value is missing"):  # seen red: the sweep had no algorithm left
        grids.axes({"c": []})


def test_more_tries_begin_with_those_of_fewer():
    grid = Grid.parse("LinFP:c=log:0.01..10,lam=1|2|3")
    many = grid.tries(20, seed=4)
    assert grid.tries(7, seed=4) == many[:7]
    assert len(set(many)) == 20
    assert grid.tries(20, seed=5) != many
    assert Grid.parse("Greedy").tries(20, seed=4) == [""]
    # seen red: a stream for each number of tries


def test_a_setting_has_the_same_draws_in_every_algorithm():
    def drawn(text):
        return [settings(one)["c"] for one in Grid.parse(text).tries(5, seed=3)]

    assert drawn("LinTS:c=log:0.1..9") == drawn("LinFP:lam=log:0.001..1,c=log:0.1..9")
    # seen red: streams that know how many settings there are


def test_two_settings_are_drawn_apart():
    pairs = [settings(one) for one in Grid.parse("LinFP:lam=0.0..1.0,c=0.0..1.0").tries(200, seed=3)]
    c, lam = (np.array([pair[name] for pair in pairs]) for name in ("c", "lam"))
    assert abs(np.corrcoef(c, lam)[0, 1]) < 5 / np.sqrt(200)
    # seen red: the same stream for every setting


def test_the_draws_have_the_law_that_is_written():
    rng = np.random.default_rng(0)
    powers = np.array([float(Range("0.01", "10", geometric=True).draw(rng, fractions=True)) for _ in range(4000)])
    even = np.array([float(Range("-1", "3").draw(rng, fractions=True)) for _ in range(4000)])
    for u in (np.log10(powers / 0.01) / 3, (even + 1) / 4):  # both are uniform on [0, 1]
        assert u.min() >= 0
        assert u.max() <= 1
        assert abs(u.mean() - 1 / 2) < 5 / np.sqrt(12 * 4000)
        assert np.abs(np.quantile(u, [0.25, 0.75]) - [0.25, 0.75]).max() < 5 * np.sqrt(3 / 16 / 4000)
    # seen red: the numbers in place of their logarithms


def test_drawn_numbers_are_short_and_whole_where_they_must_be():
    rng = np.random.default_rng(0)
    assert {len(repr(float(Range("1", "9").draw(rng, fractions=True)))) <= 4 for _ in range(50)} == {True}
    whole = [Range("2", "5").draw(rng, fractions=False) for _ in range(100)]
    assert set(whole) == {"2", "3", "4", "5"}
    assert float(Range("0.12345", "0.12346").draw(rng, fractions=True)) == 0.12345  # rounding stays inside the range


def test_a_search_says_when_there_is_nothing_else_to_try():
    assert sorted(Grid.parse("LinFP:c=1|2|3").tries(3, seed=0)) == ["c=1", "c=2", "c=3"]
    with pytest.raises(ValueError, match="only 3 different settings of LinFP were found"):
        Grid.parse("LinFP:c=1|2|3").tries(4, seed=0)
    with pytest.raises(ValueError, match="tries must be a whole number of at least 1, got 0"):
        Grid.parse("LinFP:c=1|2|3").tries(0, seed=0)
