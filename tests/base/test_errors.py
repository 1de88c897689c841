"""How names and numbers stand in a sentence, and which errors say so."""

import math

import numpy as np
import pytest

from dither.base import errors


@pytest.mark.parametrize(
    ("names", "all_", "one"),
    [
        (["a"], "a", "a"),
        ("ab", "a and b", "a or b"),
        (iter("abc"), "a, b and c", None),
        ((1, 2.5), "1 and 2.5", "1 or 2.5"),
    ],
)
def test_names_in_a_sentence(names, all_, one):
    names = list(names)
    assert errors.listed(names) == all_
    assert errors.either(names) == (one or "a, b or c")
    assert errors.quoted(names) == ", ".join(map(repr, names))


def test_many_names_are_cut_where_the_caller_does_not_want_all():
    names = [*"abcdefghijk"]
    assert errors.listed(names) == "a, b, c, d, e, f, g, h and 3 more"
    assert errors.listed(names, most=None).endswith("i, j and k")
    assert errors.listed(names, most=4) == "a, b and 9 more"  # seen red: a list as long as the limit was cut


@pytest.mark.parametrize(
    ("x", "digits", "text"),
    [
        (None, None, "–"),
        (math.nan, 2, "–"),
        (1234.5678, None, "1235"),
        (-1234.5678, 2, "−1,234.57"),
        (-0.001, 2, "0.00"),  # seen red: −0.00
        (1e-7, None, "1e−07"),
    ],
)
def test_numbers(x, digits, text):
    assert errors.number(x, digits) == text
    assert errors.number(x, digits, signed=True) in (text, f"+{text}")


def test_a_whole_number_is_an_int_of_any_kind_and_no_truth():
    assert [errors.whole(n) for n in (3, np.int64(3), np.uint8(3), np.array(3), 2**70)] == [3, 3, 3, 3, 2**70]
    assert [errors.whole(n) for n in (True, np.True_, 2.0, "2", None, np.array([1, 2]), math.nan)] == [None] * 7
    with pytest.raises(ValueError, match=r"k must be a whole number of at least 1, got array\(\[1, 2\]\)"):
        errors.at_least("k", np.array([1, 2]), 1)  # seen red: NumPy's own TypeError


def test_a_keyword_that_a_call_does_not_take_is_a_type_error_and_a_name_in_no_table_a_lookup_error():
    for make, kind in ((errors.unknown_setting, TypeError), (errors.unknown, LookupError)):
        error = make("setting of LinFP", "lamb", names=iter(["c", "lam"]))
        assert type(error) is kind
        assert str(error) == "no setting of LinFP 'lamb': did you mean 'lam'?"
        assert str(make("link", "zzz", names=["a", "b"])) == "no link 'zzz': one of a, b"
