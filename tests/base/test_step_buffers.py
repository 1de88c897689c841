"""The compiled step reads and writes inside the arrays that it is given, and takes no others."""

import numpy as np
import pytest

from dither import models
from dither.base import compiled

STEP = compiled.STEP


def question(arms=3, dim=4, **other):
    """What the step is asked about a request."""
    state = models.Ridge(1.0).update(models.Ridge(1.0).init(dim), np.arange(1.0, dim + 1), np.float64(1.0))
    X = np.random.default_rng(0).standard_normal((arms, dim))
    of = dict(theta=state.theta, F=state.F, lost=state.lost, rho=0.0, omega=0.0, scales=None)
    of |= {name: other.pop(name) for name in of if name in other}
    given = dict(X=X, mask=None, factors=tuple(of.values()), by=1.0, score=0, z=0.3, wanted=-1)
    return list((given | other).values())


def lesson(dim=4, **other):
    """What it is asked about an observation."""
    state = models.Ridge(1.0).init(dim)
    given = dict(F=state.F, theta=state.theta, lost=state.lost, sums=np.zeros(7), x=np.ones(dim), r=0.5, weight=1.0)
    new = dict(
        new_F=np.empty((dim, dim)), new_theta=np.empty(dim), new_lost=np.empty(5 + 4 * dim), new_sums=np.empty(7)
    )
    return list((given | new | other).values())


def of(array, change):
    """The array in another form."""
    if change == "float32":
        return array.astype(np.float32)
    if change == "apart":
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if change == "turned":
        return np.asfortranarray(array) if array.ndim > 1 else array[::-1]
    if change == "swapped":
        return array.astype(array.dtype.newbyteorder())
    if change == "odd":
        raw = np.zeros(array.nbytes + 1, dtype=np.uint8)[1:]
        return raw.view(np.float64).reshape(array.shape)
    if change == "list":
        return array.tolist()
    return array[..., :-1] if change == "short" else np.zeros((*array.shape[:-1], array.shape[-1] + 1))


CHANGES = ["float32", "apart", "turned", "swapped", "odd", "list", "short", "long"]


def test_what_fits_is_taken():
    assert STEP.choose(*question()) is not None
    assert STEP.choose(*question(mask=np.array([True, False, True]))) is not None
    assert STEP.choose(*question(scales=(1.0, 1.0, 1.0))) is not None
    assert STEP.choose(*question(scales=(1.0, np.ones(7)))) is not None
    assert STEP.learn(*lesson()) is not None
    assert STEP.learn(*lesson(sums=None, new_sums=None)) is not None


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("part", ["X", "theta", "F", "lost"])
def test_a_question_in_other_arrays_is_not_for_the_step(part, change):
    given = question()
    parts = dict(X=given[0], theta=given[2][0], F=given[2][1], lost=given[2][2])
    given = question(**{part: of(parts[part], change)})
    assert (STEP.choose(*given) is None) == ((part, change) != ("F", "turned"))  # LAPACK leaves F so


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("place", [0, 1, 2, 3, 4, 7, 8, 9, 10])
def test_a_lesson_in_other_arrays_is_not_for_the_step(place, change):
    given = lesson()
    given[place] = of(given[place], change)
    assert STEP.learn(*given) is None


def test_other_questions_that_are_not_for_the_step():
    for mask in (np.ones(2, dtype=bool), np.ones(3), np.ones((1, 3), dtype=bool), np.zeros(3, dtype=bool), "ab", 5):
        assert STEP.choose(*question(mask=mask)) is None
    for scales in ((), (1.0,), (1.0, 2.0), (1.0, np.ones(6)), (1.0, 1.0, 1), (1.0, 1.0, 1.0, 1.0), [1.0, 1.0, 1.0]):
        assert STEP.choose(*question(scales=scales)) is None
    for wanted in (3, 4, 2**40):
        assert STEP.choose(*question(wanted=wanted)) is None
    assert STEP.choose(*question(wanted=1, mask=np.array([True, False, True]))) is None
    for score in (-1, 3):
        assert STEP.choose(*question(score=score)) is None
    for X in (np.ones((0, 4)), np.ones((3, 0)), np.ones(4), np.ones((1, 3, 4)), np.float64(1.0), b"abcd", None):
        assert STEP.choose(*question(X=X)) is None
    for z in (np.nan, np.inf):
        assert STEP.choose(*question(z=z)) is None
    for arms, score, wanted in [(1, 0, -1), (3, 0, -1), (1, 1, -1), (3, 2, -1), (1, 0, 0), (3, 0, 1)]:
        for bad in (np.nan, np.inf, 1e200):
            X = np.full((arms, 4), bad)
            assert STEP.choose(*question(X=X, score=score, wanted=wanted)) is None
    # seen red: a mask of numbers read as truth values, no look at the length of F


def test_what_is_written_is_apart_from_all_else():
    for read in (0, 1, 2, 3):
        given = lesson()
        given[read + 7 if read else 7] = given[read]
        before = [part.copy() if isinstance(part, np.ndarray) else part for part in given]
        assert STEP.learn(*given) is None
        for part, old in zip(given[:5], before[:5], strict=True):
            assert np.array_equal(part, old)
    new = np.empty((4, 4))
    new.flags.writeable = False
    assert STEP.learn(*lesson(new_F=new)) is None
    frozen = lesson()
    for part in frozen[:5]:
        part.flags.writeable = False
    assert STEP.learn(*frozen) is not None


def test_wrong_arguments_are_told():
    for call, given in ((STEP.choose, question()), (STEP.learn, lesson()), (STEP.plain, [np.ones(2), 1, 2, 1e9])):
        with pytest.raises(TypeError, match="arguments"):
            call(*given[:-1])
    for wrong in (dict(by=None), dict(rho=None), dict(factors=None), dict(factors=(1.0,) * 5)):
        with pytest.raises(TypeError):
            STEP.choose(*question(**wrong))
    with pytest.raises(TypeError):
        STEP.learn(*lesson(r="1"))


def test_plain_arrays():
    X = np.ones((3, 2))
    assert STEP.plain(X, 2, 2, 7.0)
    assert STEP.plain(X[0], 1, 2, 7.0)
    for other, ndim, width, most in [
        (X, 2, 2, 6.0),
        (X, 2, 3, 7.0),
        (X, 1, 2, 7.0),
        (X, 3, 2, 7.0),
        (X[:0], 2, 2, 7.0),
    ]:
        assert not STEP.plain(other, ndim, width, most)
    for change in CHANGES:
        assert not STEP.plain(of(X, change), 2, 2, 1e9)
    assert not STEP.plain(np.array([[1.0, np.nan]]), 2, 2, np.inf)
