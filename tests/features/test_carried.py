"""Which columns mean the same under other Features."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import dither
from dither.features import Category, Hashed, Numeric, Standard, Text, Words, carried

KINDS = {
    "n": Numeric(mean=1, scale=2, missing="column"),
    "s": Standard(mean=1, scale=2),
    "c": Category(["a", "b"], unknown="column", missing="column"),
    "h": Hashed(width=3),
    "t": Text(width=3),
    "w": Words(vocabulary=["a", "b"]),
}


LOST = {"c (unknown)", "c=c"}  # of a category with a value more


def features(kinds=KINDS, **settings):
    return dither.Features(**{"context": {"x": Numeric(mean=0, scale=1)}, "arm": kinds, "cross": "all"} | settings)


def names(old, new):
    """The columns of new Features that are carried over; and each from a column of its own name."""
    places = carried.places(old, new)
    for j, name in zip(places, new.columns, strict=True):
        assert j < 0 or old.columns[j] == name
    return {name for j, name in zip(places, new.columns, strict=True) if j >= 0}


def test_the_same_features_carry_all():
    f = features()
    assert_array_equal(carried.places(f, f), np.arange(f.dim))
    X = np.random.default_rng(0).normal(size=(2, f.dim))
    assert_array_equal(carried.carried(X, carried.places(f, f)), X)


@pytest.mark.parametrize(
    ("field", "kind", "lost"),
    [
        ("n", Numeric(mean=1, scale=2), set()),  # the rule for missing values leaves the others as they are
        ("n", Numeric(mean=1, scale=3, missing="column"), {"n", "x*n"}),
        ("n", Standard(mean=1, scale=2, missing="column"), {"n", "x*n"}),
        ("s", Standard(mean=1, scale=2, clip=3), {"s", "x*s"}),
        (
            "c",
            Category(["b", "c", "a"], unknown="column", missing="column"),
            {"c (unknown)", "x*c (unknown)", "c=c", "x*c=c"},
        ),
        ("h", Hashed(width=4), {f"{x}h#{i}" for x in ("", "x*") for i in range(4)}),
        ("t", Text(width=3, signed=False), {f"{x}t#{i}" for x in ("", "x*") for i in range(3)}),
        ("w", Words(vocabulary=["a", "b", "c"]), {f"{x}w^{w}" for x in ("", "x*") for w in "abc"}),
    ],
)
def test_a_column_means_what_its_kind_makes_of_a_value(field, kind, lost):
    new = features(KINDS | {field: kind})
    assert set(new.columns) - names(features(), new) == lost
    # seen red: columns by their names alone


def test_a_field_that_changes_sides_is_another_one():
    one = Numeric(mean=0, scale=1)
    old, new = (dither.Features(context={a: one}, arm={b: one}, cross=()) for a, b in ("xy", "yx"))
    assert names(old, new) == {"intercept"}
    assert not carried.enough(carried.places(old, new), new)
    assert carried.enough(carried.places(old, old), old)


def test_the_blocks_of_slots_are_carried_by_their_numbers():
    old, new = (
        dither.Features(
            context={"x": Numeric(mean=0, scale=1)}, arm={"c": ["a", "b"]}, form="hybrid", slots=n, cross=cross
        )
        for n, cross in ((2, ()), (3, "all"))
    )
    lost = set(new.columns) - names(old, new)
    assert lost == {"slot 2*intercept", "slot 2*x", "x*c=a", "x*c=b"}
