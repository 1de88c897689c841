"""The cases of what happens in time: late rewards, seeds, files and who may read them, neighbours, threads."""

import copy
import io
import pickle
import subprocess
import sys
import threading
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
import oracles
from cases import EXACT, contents, loop, refused, saved, three, with_header
from dither.bandit import saving
from longer import size
from oracles import rows
from properties import bounded, brief, every, every_preset, known

# R2  late, and not in order


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
@pytest.mark.parametrize("at_once", [False, True])
def test_r2_order_does_not_matter(order, at_once):
    X, r = np.array([[1.0, 0], [0, 1], [1, 1]])[list(order)], np.array([1.0, 0.0, 0.5])[list(order)]
    b = dither.LinFP(dim=2, lam=1.0, c=1.0, seed=0)
    if at_once:
        b.update(X, r)
    else:
        for x, y in zip(X, r, strict=True):
            b.update(x, y)
    assert_allclose(b.propensities([[1, 0], [0, 2]]), [0.792891911, 0.207108089], **EXACT)


def test_r2_a_reward_that_never_comes_is_no_reward():
    b = dither.LinFP(dim=2, lam=1.0, c=1.0, seed=0)
    b.update([1, 1], 0.5)
    b.update([1, 0], 1.0)
    assert_allclose(b.propensities([[1, 0], [0, 2]]), [0.707264980, 0.292735020], **EXACT)


# S1  asking is not drawing


@every()
def test_s1_asking_is_not_drawing(name, tmp_path):
    a, b = dither.ALGORITHMS[name](dim=2, seed=3), dither.ALGORITHMS[name](dim=2, seed=3)
    X, A, B = [[1, 0], [0, 2]], [], []
    n = brief(b.model, b.policy, 200)
    for t in range(n):
        A.append(a.choose(X).arm)
        p = b.propensities(X, draws=100)
        repr(b), b.theta, known(b, X)
        assert_array_equal(b.propensities(X, draws=100), p)
        if t % (n // 4) == 0:
            b.save(tmp_path / "b")
        B.append(b.choose(X).arm)
    assert A == B


# S2  the same seed in two processes

LOOP = """
import sys, dither, numpy as np
name, seed = sys.argv[1], eval(sys.argv[2])
if len(sys.argv) > 3: np.random.seed(int(sys.argv[3]))
before = repr(np.random.get_state())
b = dither.ALGORITHMS[name](dim=4, seed=seed); g = np.random.default_rng(1)
for _ in range(300):
    X = g.normal(size=(6, 4)); d = b.choose(X); b.update(X[d.arm], g.normal()); print(d.arm, d.propensity.hex())
assert repr(np.random.get_state()) == before
"""


def process(*args, hashseed="0"):
    return subprocess.run(
        [sys.executable, "-c", LOOP, *map(str, args)],
        env={
            "PYTHONHASHSEED": hashseed,
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": ":".join(sys.path),
        },
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_s2_the_same_seed_in_two_processes():
    first = process("LinFP", 7)
    assert len(first.splitlines()) == 300
    assert process("LinFP", 7, 123, hashseed="99") == first
    assert process("LinFP", 8) != first
    assert process("LinFP", None) != process("LinFP", None)


def test_s2_entropy_is_recorded():
    b = dither.LinFP(dim=2, seed=None)
    twin = dither.LinFP(dim=2, seed=b.seed)
    X = np.eye(2)
    assert [b.choose(X).arm for _ in range(200)] == [twin.choose(X).arm for _ in range(200)]


@pytest.mark.parametrize("seed", [-1, 1.5, "0", True, np.nan])
def test_s2_a_seed_is_a_whole_number(seed):
    with pytest.raises(ValueError, match="seed"):
        dither.LinFP(dim=2, seed=seed)


# P1  saved in the middle


@every_preset(4)
def test_p1_saved_in_the_middle(name, preset, tmp_path):
    b, g = dither.ALGORITHMS[name](dim=4, seed=7, preset=preset, floor=0.1), np.random.default_rng(1)
    before, after = (brief(b.model, b.policy, n) for n in size((50, 50), longer=(100, 200)))
    loop(b, g, before)
    before = rows(b)
    b.save(tmp_path / "b")
    assert rows(b) == before
    c = dither.load(tmp_path / "b")
    assert rows(c) == before
    c.save(tmp_path / "c")
    assert contents(tmp_path / "b") == contents(tmp_path / "c")
    assert loop(b, np.random.default_rng(2), after) == loop(c, np.random.default_rng(2), after)
    assert [p.name for p in tmp_path.iterdir() if p.name not in "bc"] == []


# P2  a file from a stranger


class Boom:
    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return open, (self.marker, "w")


def test_p2_a_good_file_is_read(tmp_path):
    saved(tmp_path)
    assert_array_equal(dither.load(tmp_path / "good").theta, three().theta)


def test_p2_nothing_in_a_file_is_executed(tmp_path):
    marker = tmp_path / "marker"
    (tmp_path / "bad").write_bytes(pickle.dumps(Boom(marker)))
    refused(tmp_path / "bad")
    with open(tmp_path / "bad", "wb") as file:
        np.savez(file, header=np.array([Boom(marker)], dtype=object))
    refused(tmp_path / "bad")
    saved(tmp_path)
    with np.load(tmp_path / "good") as file:
        parts = {name: file[name] for name in file.files}
    parts["state.theta"] = np.array([Boom(marker), Boom(marker)], dtype=object)
    with open(tmp_path / "bad", "wb") as file:
        np.savez(file, **parts)
    refused(tmp_path / "bad")
    assert not marker.exists()
    # seen red: allow_pickle=True


@pytest.mark.parametrize("name", ["os.system", "Bandit", "subprocess.Popen", "__import__", "", 3, None, ["a"]])
def test_p2_only_names_of_the_librarys_own_table_are_known(tmp_path, name):
    for part in ("model", "policy"):
        with_header(tmp_path, **{part: {"class": name}})
        refused(tmp_path / "bad")


@pytest.mark.parametrize("damage", [b"", b"\0", b"PK\x03\x04", bytes(range(256)) * 20])
def test_p2_what_is_no_file_of_this_kind_is_refused(tmp_path, damage):
    (tmp_path / "bad").write_bytes(damage)
    refused(tmp_path / "bad")


def test_p2_a_part_of_a_good_file_is_refused(tmp_path):
    good = saved(tmp_path)
    for n in (*range(0, len(good), 97), len(good) // 2, len(good) - 1):
        (tmp_path / "bad").write_bytes(good[:n])
        refused(tmp_path / "bad")


def test_p2_a_damaged_byte_is_refused_or_harmless(tmp_path):
    good, rng = saved(tmp_path), np.random.default_rng(0)
    twin = rows(dither.load(tmp_path / "good"))
    for _ in range(500):
        at, bit = int(rng.integers(len(good))), 1 << int(rng.integers(8))
        (tmp_path / "bad").write_bytes(good[:at] + bytes([good[at] ^ bit]) + good[at + 1 :])
        try:
            b = dither.load(tmp_path / "bad")
        except ValueError:
            continue
        assert rows(b) == twin, at


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 1},
        {"format": saving.FORMAT + 1},
        {"format": 10**6},
        {"dim": 3},
        {"dim": -1},
        {"dim": 10**9},
        {"seed": -1},
        {"floor": 2.0},
        {"observations": -5},
        {"decisions": "many"},
        {"streams": {}},
        {"streams": None},
        {"model": None},
        {"model": {"class": "Ridge", "lam": -1}},
        {"model": {"class": "Ridge", "lamb": 1}},
        {"model": {"class": "Diagonal", "lam": 1.0}},
        {"model": {"class": "Gaussian"}},
        {"policy": {"class": "Ridge"}},
        {"policy": {"class": "FeaturePerturbation", "c": "ofuls"}},
        {"policy": {"class": "PerturbedHistory"}},
        {"columns": 5},
        {"columns": ["a"]},
    ],
)
def test_p2_a_header_that_does_not_fit_is_refused(tmp_path, changes):
    with_header(tmp_path, **changes)
    refused(tmp_path / "bad")


def test_p2_a_file_from_the_future_says_so(tmp_path):
    with_header(tmp_path, format=saving.FORMAT + 1)
    with pytest.raises(ValueError, match="upgrade"):
        dither.load(tmp_path / "bad")


def members(tmp_path):
    """A good file's members, name -> bytes."""
    saved(tmp_path)
    return contents(tmp_path / "good")


def npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=(1, 0))
    return file.getvalue()


def test_p2_what_is_compressed_is_refused_before_it_is_inflated(tmp_path):
    parts = members(tmp_path)
    with zipfile.ZipFile(tmp_path / "bad", "w", zipfile.ZIP_DEFLATED) as bomb:
        for name, data in parts.items():
            if name != "state.theta.npy":
                bomb.writestr(name, data, compress_type=zipfile.ZIP_STORED)
        with bomb.open("state.theta.npy", "w") as file:
            file.write(npy(np.zeros(10_000_000))[:128])
            for _ in range(10):
                file.write(bytes(8_000_000))
    assert (tmp_path / "bad").stat().st_size < 200_000
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"'state\.theta' is compressed"):
            dither.load(tmp_path / "bad")
        assert tracemalloc.get_traced_memory()[1] < 2_000_000  # seen red: 80 MB of zeros made first
    finally:
        tracemalloc.stop()


def test_p2_an_array_that_says_it_is_longer_than_it_is_is_refused_before_it_is_made(tmp_path):
    parts = members(tmp_path)
    long = io.BytesIO()
    np.lib.format.write_array_header_1_0(long, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    for header in (long.getvalue() + bytes(16), npy(np.zeros(2)) + bytes(8), npy(np.zeros(2))[:-8]):
        with zipfile.ZipFile(tmp_path / "bad", "w") as file:
            for name, data in (parts | {"state.theta.npy": header}).items():
                file.writestr(name, data)
        with pytest.raises(ValueError, match="bytes long"):  # seen red: read as NumPy reads it
            dither.load(tmp_path / "bad")


def test_p2_members_that_lie_over_each_other_are_refused(tmp_path):
    """Many names for the bytes of one: a small file that is long to read."""
    parts = members(tmp_path)
    with zipfile.ZipFile(tmp_path / "bad", "w") as file:
        for name, data in parts.items():
            file.writestr(name, data)
        file.writestr("x.npy", npy(np.zeros(1000)))
        for k in range(20):
            info = copy.copy(file.getinfo("x.npy"))
            info.filename = info.orig_filename = f"x{k}.npy"
            file.filelist.append(info)
    with pytest.raises(ValueError, match="bytes long in a file of"):  # seen red: the sum not asked for
        dither.load(tmp_path / "bad")


@pytest.mark.parametrize("name", ["header.npy", "state.theta.npy", "state.theta"])
def test_p2_a_member_that_is_named_twice_is_refused(tmp_path, name):
    parts = members(tmp_path)
    with zipfile.ZipFile(tmp_path / "bad", "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n, data in [*parts.items(), (name, parts[f"{name.removesuffix('.npy')}.npy"])]:
            file.writestr(n, data)
    with pytest.raises(ValueError, match="twice"):  # seen red: the last of the two is read
        dither.load(tmp_path / "bad")


def test_p2_no_file_is_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        dither.load(tmp_path / "absent")


# P3  killed while saving


def test_p3_an_error_in_the_middle_of_a_write_leaves_the_old_file(tmp_path, monkeypatch):
    b = three()
    b.save(tmp_path / "b")
    before = (tmp_path / "b").read_bytes()
    b.update([0, 1], 5.0)
    whole = np.savez

    def half(file, **parts):
        whole(file, **dict(list(parts.items())[:2]))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(OSError, match="No space"):
        b.save(tmp_path / "b")
    assert [p.name for p in tmp_path.iterdir()] == ["b"]
    assert (tmp_path / "b").read_bytes() == before
    assert_array_equal(dither.load(tmp_path / "b").theta, three().theta)
    # seen red: writing to the name itself


def test_p3_killed_in_the_middle_of_a_write(tmp_path):
    script = """
import os, signal, sys, numpy as np, dither
b = dither.LinFP(dim=2, lam=1.0, seed=0); b.save(sys.argv[1]); b.update([0, 1], 5.0)
whole = np.savez
def half(file, **parts):
    whole(file, **dict(list(parts.items())[:2])); file.flush(); os.kill(os.getpid(), signal.SIGKILL)
np.savez = half
b.save(sys.argv[1])
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "b")],
        env={"OMP_NUM_THREADS": "1", "PYTHONPATH": ":".join(sys.path)},
        check=False,
    )
    assert done.returncode == -9
    assert_array_equal(dither.load(tmp_path / "b").theta, [0.0, 0.0])


def test_p3_a_configuration_that_no_file_holds_is_refused_before_anything_is_written(tmp_path):
    b = dither.LinFP(dim=2, c=lambda t: 1.0, seed=0)
    with pytest.raises(TypeError, match="cannot hold"):
        b.save(tmp_path / "b")
    assert list(tmp_path.iterdir()) == []


# X1  a run does not know its neighbours


def test_x1_a_run_does_not_know_its_neighbours():
    env = dither.envs.Linear(dim=5, arms=10)
    one = dither.simulate(env, ["LinFP"], runs=4, rounds=200, seed=0)
    many = dither.simulate(env, ["LinTS", "LinFP"], runs=8, rounds=200, seed=0)
    assert_array_equal(one.regret[0], many.regret[1, :4])
    assert_array_equal(one.realised[0], many.realised[1, :4])
    assert len(set(many.regret[1, :, -1])) == 8


@pytest.mark.parametrize("env", [dither.envs.Linear, dither.envs.Logistic])
def test_x1_one_arm_has_no_regret(env):
    names = [name for name in dither.ALGORITHMS if bounded(name) <= (env is dither.envs.Logistic)]
    r = dither.simulate(env(dim=5, arms=1), names, runs=3, rounds=12 if len(names) > 7 else 50, seed=0)
    assert not r.regret.any()
    assert not r.realised.any()


# V2  eight threads


def test_v2_eight_threads():
    b = dither.LinFP(dim=2, lam=1.0, c=1.0, seed=0)
    answers, failures = [], []

    def work():
        try:
            for _ in range(2000):
                answers.append(b.choose([[1, 0], [0, 1]]).propensity)
                b.update([1, 0], 1.0)
        except BaseException as failure:
            failures.append(failure)
            raise

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(answers) == 16_000
    assert min(answers) > 0
    assert max(answers) <= 1
    assert (b.decisions, b.observations) == (16_000, 16_000)
    assert_allclose(b.propensities([[1, 0], [0, 1]]), [0.843250072, 0.156749928], rtol=0, atol=1e-10 + 5e-10)
    m, w = 16_000 / 16_001, 1 / np.sqrt(16_001)
    p = oracles.special.ndtr(m / (1 - w))
    assert_allclose(b.propensities([[1, 0], [0, 1]]), [p, 1 - p], rtol=0, atol=1e-10)
    # seen red: no lock
