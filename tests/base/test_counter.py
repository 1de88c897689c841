"""Chance by a counter: the published words, numbers that do not depend on how they are asked for, and the laws."""

import math

import array_api_compat.numpy
import array_api_strict
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from dither.base import arrays, counter, normals, philox
from dither.base.counter import CounterGenerator
from fifty_digits import mp

LIBRARIES = {"numpy": array_api_compat.numpy, "strict": array_api_strict, "torch": None}
KEY = (0xA4093822, 0x299F31D0)


@pytest.fixture(params=LIBRARIES)
def xp(request):
    if request.param == "torch":
        pytest.importorskip("torch")
        import array_api_compat.torch

        return array_api_compat.torch
    return LIBRARIES[request.param]


# Words


# Random123, tests/kat_vectors: counter, key, result
PUBLISHED = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


def slowly(words, key):
    """Philox 4x32-10 in Python's whole numbers, as Random123 writes it."""
    a, b, c, d = (int(word) for word in words)
    k, m = key
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (second >> 32) ^ b ^ k, second % 2**32, (first >> 32) ^ d ^ m, first % 2**32
        k, m = (k + 0x9E3779B9) % 2**32, (m + 0xBB67AE85) % 2**32
    return [a, b, c, d]


def block(xp, words, key):
    """The words of counters (n, 4) by the library: (n, 4)."""
    kind = xp.uint64 if arrays.unsigned(xp) else xp.int64
    columns = tuple(xp.asarray(np.array(words)[:, i].tolist(), dtype=kind) for i in range(4))
    return np.stack([arrays.numpy(word) for word in philox.block(columns, key, unsigned=arrays.unsigned(xp))], -1)


@pytest.mark.parametrize("vector", range(3))
def test_the_words_are_the_published_ones(xp, vector):
    words, key, result = PUBLISHED[vector]
    assert slowly(words, key) == result
    assert block(xp, [words], tuple(key)).tolist() == [result]
    # seen red: nine rounds; the halves of a product joined without a carry


def test_all_words_are_those_of_whole_numbers_in_python(xp):
    rng = np.random.default_rng(0)
    edges = [[0, 2**32 - 1, 2**32 - 1, 0], [2**16, 0, 2**31, 1]]
    words = [*rng.integers(0, 2**32, size=(200, 4)).tolist(), *edges]
    assert block(xp, words, KEY).tolist() == [slowly(row, KEY) for row in words]


# Uniforms and normals


def number(place, t, run, purpose, key=KEY):
    """The k of a place, by hand."""
    words = slowly([place // 2, t, run, purpose], key)[2 * (place % 2) :][:2]
    return (words[1] * 2**32 + words[0]) // 2**11


@pytest.mark.parametrize("width", [1, 2, 5])
def test_each_uniform_has_a_place_of_its_own(xp, width):
    runs = np.array([7, 0, 2**32 - 1])
    rng = CounterGenerator(KEY, runs, 4, xp=xp)
    assert rng.random((2, width)).shape == (3, 2, width)
    u = arrays.numpy(rng.random((3, width)))  # rounds 2, 3, 4
    for r, run in enumerate(runs.tolist()):
        for i in range(3):
            assert u[r, i].tolist() == [number(place, 2 + i, run, 4) / 2**53 for place in range(width)]
    child = arrays.numpy(rng.spawn(2)[1].random((1,)))[:, 0]
    assert child.tolist() == [number(0, 0, run, 4 + 2 * 2**16) / 2**53 for run in runs.tolist()]
    # seen red: the two halves of a block in the other order


def test_the_key_is_made_of_the_seed():
    assert counter.key(3) == tuple(np.random.SeedSequence(3).generate_state(2).tolist())
    assert len({counter.key(seed) for seed in range(200)} | {counter.key(2**127)}) == 201


SOME = np.random.default_rng(1)
KS = np.unique(
    np.concatenate(
        [
            SOME.integers(0, 2**53, size=800),
            np.exp2(SOME.uniform(0, 53, size=800)).astype(np.int64),  # far tails
            2**52 + np.exp2(SOME.uniform(0, 51, size=200)).astype(np.int64),  # near 0
            (2**53 * (0.075 + np.linspace(-1e-3, 1e-3, 41))).astype(np.int64),  # where one function ends
            (2**53 * math.exp(-25) * (1 + np.linspace(-1e-3, 1e-3, 41))).astype(np.int64),  # and the next
            [0, 1, 2**52 - 1, 2**52, 2**53 - 2, 2**53 - 1],
        ]
    )
)


def exact(k):
    """Φ⁻¹((2k + 1)/2^54) to fifty digits, by Newton's method."""
    twice = mp.mpf(2 * k + 1 - 2**53) / 2**53  # 2p - 1
    size = abs(twice)
    z = mp.mpf(float(abs(stats.norm.ppf(float((1 - size) / 2)))))
    for _ in range(3):
        wrong = size - mp.erf(z / mp.sqrt(2)) if size < 0.9 else mp.erfc(z / mp.sqrt(2)) - (1 - size)
        z += wrong / 2 * mp.sqrt(2 * mp.pi) * mp.exp(z * z / 2)
    return z if twice > 0 else -z


@pytest.mark.parametrize("whole", [False, True])
def test_normals_are_right_to_four_units_in_the_last_place(xp, whole):
    z = arrays.numpy(normals.normal(xp.asarray(KS.tolist(), dtype=xp.float64), whole=whole)).tolist()
    errors = [abs(mp.mpf(one) - right) / math.ulp(float(right)) for one, right in zip(z, EXACT, strict=True)]
    assert max(errors) < 4
    # seen red: the second function one unit beside its place; p - ½ without its half


EXACT = [exact(k) for k in KS.tolist()]


def test_normals_are_symmetric_and_rise():
    k = KS.astype(np.float64)
    assert_array_equal(normals.normal(2.0**53 - 1 - k), -normals.normal(k))
    assert np.all(np.diff(normals.normal(k)) > 0)
    assert_array_equal(normals.normal(k, whole=True), normals.normal(k))


def test_a_library_changes_no_uniform_and_hardly_a_normal():
    pytest.importorskip("torch")
    import array_api_compat.torch as xp

    one, other = CounterGenerator(KEY, np.arange(4), 1), CounterGenerator(KEY, np.arange(4), 1, xp=xp)
    assert_array_equal(arrays.numpy(other.random((50, 20))), one.random((50, 20)))
    here, there = one.standard_normal((50, 200)), arrays.numpy(other.standard_normal((50, 200)))
    assert_allclose(there, here, rtol=1e-15)
    inside = np.abs(here) < 1.43  # sums, products and a quotient
    assert_array_equal(there[inside], here[inside])


# How they are asked for


DRAWS = {
    "normals": lambda rng, n: rng.standard_normal((n, 3)),
    "normals into an array": lambda rng, n: rng.standard_normal(out=np.empty((*rng.lead, n, 3))),
    "half as long": lambda rng, n: rng.standard_normal((n, 2), dtype=np.float32),
    "uniforms": lambda rng, n: rng.uniform(-1.0, 2.0, n),
    "integers": lambda rng, n: rng.integers(2, 9, size=(n, 2)),
    "t": lambda rng, n: rng.standard_t(3.0, (n, 5)),
    "beta": lambda rng, n: rng.beta(2.0, 2.0, n),
    "pareto": lambda rng, n: rng.pareto(2.5, (n, 5)),
    "geometric": lambda rng, n: rng.geometric(0.3, n),
    "counts": lambda rng, n: rng.poisson(np.full((*rng.lead, n, 2), 3.0)),
}


@pytest.mark.parametrize("kind", DRAWS)
def test_a_number_depends_on_nothing_but_its_place(kind, monkeypatch):
    draw, runs = DRAWS[kind], np.array([5, 1, 8])
    whole = draw(CounterGenerator(KEY, runs, 3), 7)
    rng = CounterGenerator(KEY, runs, 3)
    assert_array_equal(np.concatenate([draw(rng, n) for n in (1, 4, 2)], axis=1), whole)
    alone = CounterGenerator(KEY, 1, 3)
    assert_array_equal(draw(alone, 7), whole[1])
    monkeypatch.setattr(counter, "AT_ONCE", 3)
    assert_array_equal(draw(CounterGenerator(KEY, runs[::-1], 3), 7), whole[::-1])
    # seen red: each draw begins with the first round


def test_a_device_computes_in_one_piece_or_step_by_step(monkeypatch):
    torch = pytest.importorskip("torch")
    import array_api_compat.torch as xp

    def fails(function, **settings):
        def compiled(*call, **more):
            raise RuntimeError("no compiler")

        return compiled

    def drawn(compiler):
        counter._fused.cache_clear()
        monkeypatch.setattr(torch, "compile", compiler)
        rng = CounterGenerator(KEY, np.arange(3), 2, xp=xp, device="cpu")
        return arrays.numpy(rng.standard_normal((4, 5)))

    here = CounterGenerator(KEY, np.arange(3), 2).standard_normal((4, 5))
    monkeypatch.setattr(arrays, "apart", lambda xp, device: True)
    for compiler in (lambda function, **settings: function, fails):
        assert_allclose(drawn(compiler), here, rtol=1e-15)
    counter._fused.cache_clear()


# Laws, at five standard errors


N = 40_000


def near(x, mean, sd=None):
    sd = x.std(axis=-1) if sd is None else sd
    assert np.all(np.abs(x.mean(axis=-1) - mean) < 5 * sd / math.sqrt(x.shape[-1]))


def lies(x, cdf):
    """Whether the distribution function is this one, at its deciles and far out."""
    for q in (0.001, 0.01, *np.linspace(0.1, 0.9, 9), 0.99, 0.999):
        edge = np.quantile(x, q)
        share, p = np.mean(x <= edge), float(cdf(edge))
        assert abs(share - p) < 5 * math.sqrt(p * (1 - p) / len(x)) + 1 / len(x), q


def test_uniforms_and_normals_have_their_law():
    rng = CounterGenerator(KEY, np.arange(200), 3)
    u, z = rng.random((N // 200,)).reshape(-1), rng.standard_normal((N // 200,)).reshape(-1)
    lies(u, stats.uniform.cdf)
    lies(z, stats.norm.cdf)
    counts = np.bincount((u * 64).astype(int), minlength=64)
    assert np.sum((counts - N / 64) ** 2) / (N / 64) < 63 + 5 * math.sqrt(2 * 63)
    for power, moment in ((1, 0), (2, 1), (3, 0), (4, 3)):
        near(z**power, moment)


def test_neighbours_are_not_correlated():
    purposes = [CounterGenerator(KEY, np.arange(100), purpose).standard_normal((100, 4)) for purpose in range(4)]
    z = np.stack([*purposes, CounterGenerator(KEY, np.arange(100), 0).spawn(1)[0].standard_normal((100, 4))])
    for axis in range(4):  # purposes, runs, rounds, places
        first, last = np.delete(z, -1, axis=axis), np.delete(z, 0, axis=axis)
        for a, b in ((first, last), (first**2, last**2)):
            product = ((a - a.mean()) * (b - b.mean()) / (a.std() * b.std())).reshape(-1)
            near(product, 0)
    other = CounterGenerator(counter.key(1), np.arange(100), 0).standard_normal((100, 4))
    near((z[0] * other).reshape(-1), 0)


def test_other_laws_are_theirs():
    rng = CounterGenerator(KEY, np.arange(100), 6)
    n = N // 100
    lies(rng.standard_t(3.0, n).reshape(-1), stats.t(3.0).cdf)
    lies(rng.standard_t(1.5, (n, 1)).reshape(-1), stats.t(1.5).cdf)
    lies(rng.beta(1.0, 1.0, n).reshape(-1), stats.uniform.cdf)
    lies(rng.beta(10.5, 10.5, n).reshape(-1), stats.beta(10.5, 10.5).cdf)
    lies(rng.pareto(2.5, n).reshape(-1), stats.lomax(2.5).cdf)
    lies(rng.normal(2.0, 3.0, n).reshape(-1), stats.norm(2.0, 3.0).cdf)
    near(rng.geometric(0.3, n).reshape(-1), 1 / 0.3)
    near((rng.geometric(0.3, n).reshape(-1) == 1).astype(float), 0.3)
    assert np.all(rng.geometric(1.0, 5) == 1)
    for mean in (0.0, 0.2, 4.0, 60.0):
        counts = rng.poisson(np.full((100, n), mean)).reshape(-1)
        near(counts, mean, math.sqrt(mean) + 1e-9)
        near((counts - mean) ** 2, mean, math.sqrt(mean + 2 * mean**2) + 1e-9)
    shares = np.bincount(rng.integers(5, size=n).reshape(-1), minlength=5) / N
    assert np.all(np.abs(shares - 0.2) < 5 * math.sqrt(0.16 / N))
    orders = rng.permutation(3).tolist() + rng.permutation(3).tolist()
    assert {tuple(sorted(order)) for order in orders} == {(0, 1, 2)}
    assert len(set(map(tuple, orders))) == 6


def test_one_run_draws_single_numbers_too():
    rng = CounterGenerator(KEY, 4, 3)
    assert isinstance(rng.random(), float)
    assert_array_equal(rng.standard_normal(3), CounterGenerator(KEY, 4, 3).standard_normal(4)[1:])
    assert rng.standard_t(3.0).shape == ()
    assert CounterGenerator(KEY, np.arange(3), 3).random().shape == (3,)


# What it refuses


def test_what_cannot_be_drawn_is_refused_with_a_cure():
    rng = CounterGenerator(KEY, np.arange(2), 3)
    with pytest.raises(AttributeError, match="and not gamma: make it of these, or take chance='streams'"):
        rng.gamma(2.0)
    with pytest.raises(AttributeError, match=r"^nonsense$"):
        rng.nonsense()
    with pytest.raises(ValueError, match=r"a = b >= 1 alone, got 1\.0 and 2\.0: chance='streams'"):
        rng.beta(1.0, 2.0, 3)
    with pytest.raises(ValueError, match="at most 700 with chance='counter', got 701: lower"):
        rng.poisson(np.full((2, 1, 1), 701.0))
    with pytest.raises(ValueError, match=r"up to 2\^32, got 4294967296"):
        CounterGenerator(KEY, 2**32, 3)
    rng.done = 2**32 - 1
    with pytest.raises(ValueError, match=r"up to 2\^32, got round 4294967297"):
        rng.random(2)
    assert rng.random(1).shape == (2, 1)
