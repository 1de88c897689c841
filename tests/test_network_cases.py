"""The cases of `test_cases` for networks: what breaks other libraries' deep bandits, and what must hold whatever was
learnt. A network has no right numbers by hand: its answers are held against its own means, and against the slow way.
"""

import json
import pickle
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import dither
import oracles
from dither.propensity import uncoupled
from network_oracles import NAMES, Slow, bandit, context, learn
from oracles import rows, unchanged

every = pytest.mark.parametrize("name", NAMES)
arms = pytest.mark.parametrize("slots", [None, 3])
KNOWN = [name for name in NAMES if name != "FTPL"]  # whose probabilities can be known


def everything(b):
    return rows(b), repr(b._training.bit_generator.state)


def after(name, n=10, **settings):
    """A bandit that has learnt a little."""
    b = bandit(name, **settings)
    learn(b, np.random.default_rng(0), n)
    return b


# N4  nothing is known yet, and one arm is all zeros


@every
@arms
def test_n4_nothing_known_and_zeros(name, slots):
    b = bandit(name, slots=slots)
    zeros = np.zeros(3) if slots else np.zeros((4, 3))
    assert b.choose(zeros).arm in range(4)
    if name in KNOWN:
        p, se, _ = b.propensities(zeros, detail=True)
        assert np.isfinite(p).all()
        assert abs(p.sum() - 1) < 1e-9
        if slots is None and name != "DeepEpsGreedy":  # four equal arms
            assert np.all(np.abs(p - 1 / 4) <= (0 if se is None else 5 * se) + 1e-9)
    before = b.theta
    b.update(np.zeros(3), 1.0, arm=0 if slots else None)  # allowed; the biases learn from it
    assert np.isfinite(b.theta).all()
    assert not np.array_equal(b.theta, before)


@every
def test_n4_of_its_kind_a_network_whose_units_are_all_off_ties_all_arms(name):
    b = bandit(name)
    theta = b.state.theta.copy()
    theta[-(4 * 1 + 1 + 4) :] = -1.0  # the last hidden layer's biases and what follows
    theta[: -(4 * 1 + 1 + 4)] = 0.0
    b.state = b.state._replace(theta=theta)
    X = np.random.default_rng(1).normal(size=(5, 3))
    assert_array_equal(b.mean(X), np.full(5, -1.0))
    if name in KNOWN:
        p, se, _ = b.propensities(X, detail=True)
        assert np.all(np.abs(p - 1 / 5) <= (0 if se is None else 5 * se) + 1e-9)
    counts = np.bincount([b.choose(X).arm for _ in range(400)], minlength=5) / 400
    assert oracles.agree(counts, np.full(5, 1 / 5), n=400)


# N5  a NaN gets in


@every
def test_n5_what_is_not_finite_is_refused(name):
    b, twin = after(name), after(name)
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="row 0, column 1"):
            b.choose([[1, bad, 0], [0, 1, 0]])
        with pytest.raises(ValueError, match=r"x.*column 1"):
            b.update([1, bad, 0], 1.0)
        with pytest.raises(ValueError, match="r"):
            b.update([1, 0, 0], bad)
    with pytest.raises(ValueError, match=r"x.*row 1, column 0"):
        b.update([[1, 1, 0], [np.nan, 1, 0]], [1.0, 1.0])
    assert everything(b) == everything(twin)
    unchanged(b, twin, np.eye(3))


@every
def test_n5_a_row_that_the_mask_rules_out_is_never_read(name):
    b, twin = after(name), after(name)
    X = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    Y = X.copy()
    Y[1] = np.nan
    mask = [True, False, True]
    for _ in range(20):
        assert b.choose(Y, mask=mask).arm == twin.choose(np.where(np.isnan(Y), 0, Y), mask=mask).arm != 1
    if name in KNOWN:
        assert b.propensities(Y, mask=mask)[1] == 0.0


# A1  the same arm three times


@pytest.mark.parametrize("name", KNOWN)
def test_a1_copies_share_and_agree_with_the_draws(name):
    b = after(name, dtype="float64")
    X = np.random.default_rng(2).normal(size=(2, 3))[[0, 1, 1, 1]]
    p, se, kind = b.propensities(X, detail=True)
    slack = 0.0 if se is None else np.max(se)
    assert abs(p.sum() - 1) < 1e-9
    assert_allclose(p[1:], p[1], rtol=0, atol=10 * slack + 1e-9)
    n = 1000 if kind == "exact" and name in ("NeuralTS", "DeepFP-scalar") else 20_000  # an integral a request
    d = b.choose(np.broadcast_to(X, (n, 4, 3)))
    assert oracles.agree(np.bincount(d.arm, minlength=4) / n, p, n=n, se=slack)
    if kind == "exact":
        assert_allclose(d.propensity, p[d.arm], rtol=0, atol=1e-12)


# A2  one arm; no arm


@every
@arms
def test_a2_one_arm_and_no_arm(name, slots):
    b, twin = after(name, slots=slots), after(name, slots=slots)
    X = np.ones(3) if slots else np.random.default_rng(3).normal(size=(3, 3))
    for one in (b, twin):
        d = one.choose(X, mask=[False, True, False])
        assert (d.arm, d.propensity, d.propensity_kind) == (1, 1.0, "exact")
    with pytest.raises(ValueError, match="at least one"):
        b.choose(X, mask=[False] * 3)
    if slots is None:
        with pytest.raises(ValueError, match="at least one"):
            b.choose(np.empty((0, 3)))
    unchanged(b, twin, X)


# A3  arms come and go


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_a3_leaving_out_is_masking(name, floor):
    b = after(name, floor=floor, dtype="float64")
    X = np.random.default_rng(4).normal(size=(4, 3))
    mask = np.array([True, False, True, True])
    p, se, _ = b.propensities(X, mask=mask, detail=True)
    q, other, _ = b.propensities(X[mask], detail=True)
    assert p[1] == 0.0
    slack = 0.0 if se is None else 5 * np.hypot(se[mask], other)
    assert np.all(np.abs(p[mask] - q) <= slack + 1e-9)
    assert p[mask].min() >= floor / 3 - 1e-12
    arm = b.choose(np.broadcast_to(X, (300, 4, 3)), mask=mask).arm
    assert 1 not in arm


@arms
def test_a3_of_its_kind_masks_of_a_batch_are_each_its_own(slots):
    b = after("NeuralTS", slots=slots)
    X = np.random.default_rng(5).normal(size=(3,) if slots else (3, 3))
    masks = np.array([[True, True, False], [False, True, True], [True, False, False]])
    batch = np.stack([X] * 3)
    p = b.propensities(batch, mask=masks)
    for i, mask in enumerate(masks):
        assert_allclose(p[i], b.propensities(X, mask=mask), rtol=0, atol=1e-6)
        m = b.policy.view(b.model, b.state, X[None], t=b.t).lines
        assert_allclose(
            p[i], uncoupled(m.m[0], m.w[0], law=b.policy.view(b.model, b.state, X[None], t=1).law, mask=mask), atol=1e-6
        )


# A4  the same numbers in other clothes


@every
def test_a4_clothes_do_not_matter(name):
    X = np.random.default_rng(6).integers(-9, 9, size=(4, 3))
    r = np.array([0.0, 1.0, 1.0, 0.0])
    wide = np.zeros((8, 6))
    wide[::2, ::2] = X
    clothes = {
        "float64": X.astype(float),
        "int8": X.astype(np.int8),
        "float32": X.astype(np.float32),
        "lists": X.tolist(),
        "Fortran": np.asfortranarray(X.astype(float)),
        "strided": wide[::2, ::2],
        "frame": pd.DataFrame(X, columns=["a", "b", "c"]),
        "sparse": sparse.csr_array(X),
    }
    answers = {}
    for kind, Y in clothes.items():
        b = bandit(name)
        b.update(Y, r)
        answers[kind] = (b.theta.tobytes(), [b.choose(Y).arm for _ in range(20)])
    assert len(set(map(repr, answers.values()))) == 1, answers
    for bad in (X.astype(complex), X.astype(str)):
        with pytest.raises(ValueError, match="X"):
            b.choose(bad)


@every
def test_a4_of_its_kind_what_is_passed_in_stays_as_it_is(name):
    for slots in (None, 3):
        b = bandit(name, slots=slots)
        X = np.random.default_rng(7).normal(size=3 if slots else (4, 3))
        x, r = np.random.default_rng(8).normal(size=(5, 3)), np.arange(5.0) / 5
        before = X.copy(), x.copy(), r.copy()
        for A in (X, x, r):
            A.flags.writeable = False
        b.choose(X)
        b.update(x, r, arm=[0, 1, 2, 0, 1] if slots else None)
        b.propensities(X, draws=50)
        for A, old in zip((X, x, r), before, strict=True):
            assert_array_equal(A, old)


# A5  the wrong width


@every
@arms
def test_a5_a_wrong_width_is_refused(name, slots):
    b, twin = after(name, slots=slots), after(name, slots=slots)
    for shape in ((4,), (2,), ()) if slots else ((5, 4), (5, 2), (3, 5), (3,), ()):
        with pytest.raises(ValueError, match=r"X.*3"):
            b.choose(np.ones(shape))
    arm = dict(arm=0) if slots else {}
    many = dict(arm=np.zeros(5, int)) if slots else {}
    with pytest.raises(ValueError, match=r"width 3.*width 4"):
        b.update(np.ones(4), 1.0, **arm)
    for r in (np.ones(4), 1.0, np.ones((5, 1))):
        with pytest.raises(ValueError, match="r must"):
            b.update(np.ones((5, 3)), r, **many)
    if slots:
        for wrong in (3, -1, 0.5, [0, 0], None):
            with pytest.raises(ValueError, match="arm"):
                b.update(np.ones(3), 1.0, arm=wrong)
    else:
        with pytest.raises(ValueError, match="arm"):
            b.update(np.ones(3), 1.0, arm=0)
    assert everything(b) == everything(twin)


# A6  every arm can win


@pytest.mark.parametrize("name", KNOWN)
def test_a6_many_arms(name):
    b = after(name, hidden=(20, 10), dtype="float64")
    K = 30 if name in ("NeuralTS", "DeepFP-scalar") else 1000  # an integral for each arm
    X = np.random.default_rng(9).normal(size=(K, 3))
    assert_allclose(b.mean(X), Slow(b).mean(X), rtol=1e-8, atol=1e-10)
    p = b.propensities(X, draws=500)
    assert p.min() >= 0
    assert abs(p.sum() - 1) < 1e-9
    d = b.choose(X)
    if d.propensity_kind == "exact":
        assert_allclose(d.propensity, p[d.arm], rtol=1e-9)


# S1  asking is not drawing


@every
@arms
def test_s1_asking_is_not_drawing(name, slots, tmp_path):
    a, b = bandit(name, slots=slots), bandit(name, slots=slots)
    X, A, B = context(np.random.default_rng(10), a), [], []
    x = X if slots else X[0]
    for t in range(40):
        A.append(a.choose(X).arm)
        p = b.propensities(X, draws=60)
        repr(b), b.theta, b.mean(X), b.predict(X)
        assert_array_equal(b.propensities(X, draws=60), p)
        if t % 10 == 0:
            b.save(tmp_path / "b")
        B.append(b.choose(X).arm)
        for one in (a, b):
            one.update(x, 0.1 * t, arm=t % 3 if slots else None)
    assert A == B
    assert everything(a) == everything(b)


# S2  the same seed in two processes

LOOP = """
import sys, dither, numpy as np
name, seed = sys.argv[1], eval(sys.argv[2])
if len(sys.argv) > 3: np.random.seed(int(sys.argv[3]))
before = repr(np.random.get_state())
b = dither.ALGORITHMS[name](dim=4, seed=seed, monte_carlo=20); g = np.random.default_rng(1)
for _ in range(50):
    X = g.normal(size=(6, 4)); d = b.choose(X); b.update(X[d.arm], g.normal()); print(d.arm, d.propensity.hex())
assert repr(np.random.get_state()) == before
"""


def test_s2_the_same_seed_in_two_processes():
    def process(*args, name="DeepFP", hashseed="0"):
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
        return subprocess.run(
            [sys.executable, "-c", LOOP, name, *map(str, args)],
            env={"PYTHONHASHSEED": hashseed, "PYTHONPATH": ":".join(sys.path)} | threads,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    first = process(7)
    assert len(first.splitlines()) == 50
    assert process(7, 123, hashseed="99") == first
    assert process(None) != first


# P1  saved in the middle


def contents(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in sorted(file.namelist())}


KEPT = {
    "as it is": {},
    "a window of many batches": dict(window=20, batch=4),
    "the whole history": dict(window=None, batch=4),
    "seldom": dict(every=4, steps=2),
}


@pytest.mark.parametrize(
    ("name", "kept"),
    [(name, kept) for name in NAMES for kept in KEPT if kept == "as it is" or name in ("DeepFP", "FTPL")],
)
@arms
def test_p1_saved_in_the_middle(name, kept, slots, tmp_path):
    b = bandit(name, slots=slots, floor=0.1, monte_carlo=20, seed=7, **KEPT[kept])
    learn(b, np.random.default_rng(11), 30)
    before = everything(b)
    b.save(tmp_path / "b")
    assert everything(b) == before
    c = dither.load(tmp_path / "b")
    assert everything(c) == before
    c.save(tmp_path / "c")
    assert contents(tmp_path / "b") == contents(tmp_path / "c")
    assert learn(b, np.random.default_rng(12), 20) == learn(c, np.random.default_rng(12), 20)
    assert everything(b) == everything(c)
    # seen red: the stream of the training left out of the file


def test_p1_of_its_kind_a_history_that_has_grown(tmp_path):
    b = bandit("DeepGreedy", window=None, batch=4, slots=3)
    rng = np.random.default_rng(13)
    b.update(rng.normal(size=(300, 3)), rng.normal(size=300), arm=rng.integers(0, 3, size=300))
    b.save(tmp_path / "b")
    c = dither.load(tmp_path / "b")
    assert everything(b) == everything(c)
    assert learn(b, np.random.default_rng(14), 5) == learn(c, np.random.default_rng(14), 5)


# P2  a file from a stranger


class Boom:
    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return open, (self.marker, "w")


def altered(tmp_path, *, header=None, refusal="not a dither file", **arrays):
    """A good file of a network with another header or other arrays, which must be refused."""
    after("NeuralTS", slots=3).save(tmp_path / "good")
    with np.load(tmp_path / "good") as file:
        parts = {name: file[name] for name in file.files}
    told = json.loads(parts.pop("header").tobytes()) | (header or {})
    parts |= {name.replace("__", "."): value for name, value in arrays.items()}
    with open(tmp_path / "bad", "wb") as file:
        np.savez(file, header=np.frombuffer(json.dumps(told).encode(), np.uint8), **parts)
    with pytest.raises(ValueError, match=refusal):
        dither.load(tmp_path / "bad")


def test_p2_a_state_that_no_data_lead_to_is_refused(tmp_path):
    b = after("NeuralTS", slots=3)
    s = b.state
    altered(tmp_path, state__theta=s.theta[:-1])
    altered(tmp_path, state__theta=s.theta.astype(np.float64))
    altered(tmp_path, state__theta=np.full_like(s.theta, np.nan))
    altered(tmp_path, state__v=-1 - s.v)
    altered(tmp_path, state__uinv=-s.uinv)
    altered(tmp_path, state__steps=np.array(-1))
    altered(tmp_path, state__buffer__arm=s.buffer.arm + 3)
    altered(tmp_path, state__buffer__X=s.buffer.X[:-1])
    altered(tmp_path, state__buffer__count=np.array(-4))
    altered(tmp_path, header={"model": {"class": "Network", "hidden": [5, 4, 3]}})
    altered(tmp_path, header={"model": {"class": "Network", "hidden": "none"}})
    altered(tmp_path, header={"policy": {"class": "DeepFP"}})


def test_p2_a_ring_of_another_length_is_refused(tmp_path):
    """A file may say that a history has grown, but not that a window has: the next row would go elsewhere."""
    s = after("NeuralTS", slots=3).state.buffer
    longer = {f"state__buffer__{k}": np.concatenate([getattr(s, k)] * 2) for k in ("X", "r", "weight", "arm")}
    altered(tmp_path, **longer)


def test_p2_nothing_in_a_file_is_executed(tmp_path):
    marker = tmp_path / "marker"
    boom = np.array([Boom(marker)], dtype=object)
    (tmp_path / "bad").write_bytes(pickle.dumps(Boom(marker)))
    with pytest.raises(ValueError, match="not a dither file"):
        dither.load(tmp_path / "bad")
    altered(tmp_path, state__theta=boom)
    altered(tmp_path, header={"model": {"given": "torch.nn.Module"}}, refusal="pass it again")
    altered(tmp_path, header={"model": {"class": "os.system"}})
    assert not marker.exists()


# P3  killed while saving


def test_p3_an_error_in_the_middle_of_a_write_leaves_the_old_file(tmp_path, monkeypatch):
    b = after("DeepFP")
    b.save(tmp_path / "b")
    before, theta, whole = (tmp_path / "b").read_bytes(), b.theta, np.savez
    learn(b, np.random.default_rng(15), 3)

    def half(file, **parts):
        whole(file, **dict(list(parts.items())[:2]))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(OSError, match="No space"):
        b.save(tmp_path / "b")
    assert [p.name for p in tmp_path.iterdir()] == ["b"]
    assert (tmp_path / "b").read_bytes() == before
    assert_array_equal(dither.load(tmp_path / "b").theta, theta)


# V2  eight threads


@pytest.mark.parametrize("name", ["DeepFP", "NeuralTS"])
def test_v2_eight_threads(name):
    """Updates from many threads: as many steps as updates, and weights that some order of them leads to."""
    b, failures, answers = bandit(name), [], []
    X, per = np.eye(3), 60

    def work():
        try:
            for _ in range(per):
                answers.append(b.choose(X).arm)
                b.update([1, 0, 0], 1.0)
        except BaseException as failure:
            failures.append(failure)
            raise

    threads = [threading.Thread(target=work) for _ in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures
    assert len(answers) == b.decisions == b.observations == int(b.state.steps) == 8 * per
    twin = bandit(name)
    twin.update(np.tile([1, 0, 0], (8 * per, 1)), np.ones(8 * per))  # all updates are alike: one order is any other
    assert_array_equal(b.theta, twin.theta)
    # seen red: no lock
