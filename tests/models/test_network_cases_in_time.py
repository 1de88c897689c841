"""The cases of `test_cases_in_time` for networks: seeds, files and who may read them, threads."""

import json
import pickle
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import dither
from network_cases import after, arms, every, everything
from network_oracles import NAMES, bandit, context, learn

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
