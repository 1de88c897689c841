"""More than one process: copies that decide, forks, and the files that they write side by side."""

import copy
import os
import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest

import dither
from dither.base import files

ENV = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}
X = np.random.default_rng(0).normal(size=(5, 3))


def run(code, *args, check=True):
    """A process of its own: what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)], env=ENV, capture_output=True, text=True, check=False
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def draws(bandit, n=40):
    """What its streams give: z and propensities of policies with a z, arms of the others."""
    made = [bandit.choose(X) for _ in range(n)]
    return [(d.arm, d.propensity, None if d.z is None else np.ravel(d.z).tolist()) for d in made]


def taught(name="LinFP", **settings):
    bandit = dither.ALGORITHMS[name](dim=3, seed=0, **settings)
    bandit.update(X[:2], [1.0, 0.0])
    return bandit


# Copies


def test_a_load_goes_on_and_a_load_with_a_seed_is_beside_the_one_that_goes_on(tmp_path):
    bandit = taught(floor=0.1)
    bandit.save(tmp_path / "b")
    on = draws(bandit)
    assert draws(dither.load(tmp_path / "b")) == on
    assert dither.load(tmp_path / "b").seed == 0
    others = [dither.load(tmp_path / "b", seed=seed) for seed in (None, None, 0, 1)]
    assert len({other.seed for other in others}) == 4
    assert [other.seed for other in others[2:]] == [0, 1]
    z = [[d[2][0] for d in on], *([d[2][0] for d in draws(other)] for other in others)]
    assert len(np.unique(z)) == 5 * 40  # seen red: seed=0 begun anew, which is what the saved one drew at first
    assert draws(dither.load(tmp_path / "b", seed=1)) == draws(dither.load(tmp_path / "b", seed=1))
    for other in others:
        assert other.theta.tolist() == bandit.theta.tolist()


def test_a_reload_under_one_seed_draws_anew(tmp_path):
    """A worker loads every ten rewards with seed=7, its own number: it must not draw the same each time."""
    bandit, z = taught(), []
    for _ in range(5):
        bandit.update(X[0], 1.0)
        bandit.save(tmp_path / "b")
        z.append(dither.load(tmp_path / "b", seed=7).choose(X).z)
    assert len(set(z)) == 5
    # seen red: streams of the seed alone


def test_a_seed_is_recorded_and_saved(tmp_path):
    bandit = taught()
    bandit.save(tmp_path / "b")
    other = dither.load(tmp_path / "b", seed=None)
    other.choose(X)
    other.save(tmp_path / "c")
    again = dither.load(tmp_path / "c")
    assert again.seed == other.seed
    assert draws(again) == draws(other)
    with pytest.raises(ValueError, match="seed must be"):
        dither.load(tmp_path / "b", seed="fresh")
    with pytest.raises(ValueError, match="seed must be"):
        bandit.reseed(-1)
    assert bandit.seed == 0


@pytest.mark.parametrize("name", ["LinFP", "LinTS", "NeuralUCB", "FTPL", "EpsGreedy"])
def test_every_stream_is_its_own(name, tmp_path):
    """Policy, ties, training, and the Monte Carlo draws of a propensity."""
    bandit = taught(name, floor=0.2)
    bandit.save(tmp_path / "b")
    one, two = dither.load(tmp_path / "b", seed=1), dither.load(tmp_path / "b", seed=2)
    for stream in one._streams():
        u = [getattr(b, stream).random(8).tolist() for b in (bandit, one, two)]
        assert len(np.unique(u)) == 24, stream
    if name == "LinTS":
        p = [b.propensities(X, draws=1000).tolist() for b in (bandit, one, two)]
        assert p[0] != p[1] != p[2]  # seen red: the Monte Carlo stream of the old seed
    if name in ("FTPL", "NeuralUCB"):
        assert "_training" in one._streams()


def test_copies_go_on_until_they_are_told(tmp_path):
    bandit = taught()
    others = [copy.deepcopy(bandit), pickle.loads(pickle.dumps(bandit)), dither.from_bytes(bandit.to_bytes())]
    told = [copy.deepcopy(bandit) for _ in others]
    for other in told:
        other.reseed()
    on = draws(bandit)
    assert [draws(other) for other in others] == [on] * 3
    assert len({str(draws(other)) for other in told} | {str(on)}) == 4


def test_bytes_are_the_file(tmp_path):
    bandit = taught()
    (tmp_path / "b").write_bytes(bandit.to_bytes())
    assert draws(dither.load(tmp_path / "b")) == draws(dither.from_bytes(bandit.to_bytes()))
    with pytest.raises(ValueError, match=r"what was passed .* is not a dither file"):
        dither.from_bytes(b"PK")


# Forks

FORK = """
import os, sys, threading
import numpy as np, dither
X = np.random.default_rng(0).normal(size=(5, 3))
b = dither.ALGORITHMS[sys.argv[1]](dim=3, seed=0, floor=0.1)
b.update(X[:2], [1.0, 0.0])
[b.choose(X) for _ in range(3)]
def told(who):
    made = [b.choose(X) for _ in range(30)]
    out = repr([(d.arm, d.z) for d in made]) + "|" + repr(b.seed) + "|" + repr(b.theta.tolist())
    os.write(1, f"{who}|{out}\\n".encode())
for k in range(2):
    pid = os.fork()
    if pid == 0:
        told("child"); os._exit(0)
    os.waitpid(pid, 0)
told("parent")
"""


@pytest.mark.parametrize("name", ["LinFP", "GLMFP", "RandLinUCB"])
def test_a_fork_draws_from_fresh_entropy_and_its_parent_goes_on(name):
    lines = [line.split("|") for line in run(FORK, name).stdout.splitlines()]
    assert [line[0] for line in lines] == ["child", "child", "parent"]
    assert len({line[1] for line in lines}) == 3  # seen red: without the hook all three are one
    assert lines[2][2] == "0"
    assert len({line[2] for line in lines}) == 3
    assert len({line[3] for line in lines}) == 1
    alone = FORK.replace("range(2)", "range(0)")
    assert run(alone, name).stdout.splitlines()[0].split("|") == lines[2]


def test_a_fork_while_a_thread_holds_the_bandit_does_not_hang():
    code = """
import os, threading, numpy as np, dither
b = dither.LinFP(dim=2, seed=0)
held, go = threading.Event(), threading.Event()
def hold():
    with b._lock:
        held.set(); go.wait()
threading.Thread(target=hold, daemon=True).start()
held.wait()
pid = os.fork()
if pid == 0:
    os.write(1, str(b.choose(np.eye(2)).arm).encode()); os._exit(0)
import time
for _ in range(200):
    done, status = os.waitpid(pid, os.WNOHANG)
    if done: break
    time.sleep(0.05)
else:
    os.kill(pid, 9)
go.set()
"""
    assert run(code).stdout in ("0", "1")
    # seen red: the lock of the parent's thread kept


def test_runs_of_a_simulation_do_not_know_that_they_are_forked():
    code = """
import multiprocessing, dither
def job(runs):
    return dither.simulate(dither.envs.Linear(dim=3, arms=4), ["LinFP", "LinTS"], runs=runs, rounds=30, seed=0).regret
if __name__ == "__main__":
    here = job(2)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        there = pool.map(job, [2, 2])
    print(all((one == here).all() for one in there))
"""
    assert run(code).stdout.strip() == "True"


# Files side by side

SAVE = """
import sys, os, signal, numpy as np, dither
b = dither.LinFP(dim=3, seed=0)
whole = np.savez
def half(file, **parts):
    whole(file, **parts); file.flush(); print("here", flush=True)
    {then}
np.savez = half
b.save(sys.argv[1])
"""


def test_kills_leave_at_most_one_part(tmp_path):
    for k in range(4):
        done = run(SAVE.format(then="os.kill(os.getpid(), 9)"), tmp_path / f"b{k}", check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert len(list(tmp_path.iterdir())) == 1  # that of the last kill. seen red: none swept
    taught().save(tmp_path / "other")
    assert [p.name for p in tmp_path.iterdir()] == ["other"]


def test_the_part_of_a_living_writer_is_left_alone(tmp_path):
    bystanders = [".b.part", "x.part", ".b.0123456789abcdeX.part"]
    for name in bystanders:
        (tmp_path / name).write_text("mine")
    code = SAVE.format(then="sys.stdin.readline()")
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "b")], env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as live:
        assert live.stdout.readline() == b"here\n"
        (part,) = [p for p in tmp_path.glob(".b.*.part") if p.name not in bystanders]
        for _ in range(3):
            taught().save(tmp_path / "b")
        assert part.exists()  # seen red: swept without asking for the lock
        live.communicate(b"\n")
        assert live.returncode == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*bystanders, "b"])
    assert dither.load(tmp_path / "b").observations == 0  # the last to rename


def test_the_name_is_on_the_disk_too(tmp_path, monkeypatch):
    synced, whole = [], os.fsync

    def fsync(handle):
        synced.append(os.path.realpath(f"/proc/self/fd/{handle}"))
        whole(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    taught().save(tmp_path / "b")
    assert synced[-1] == str(tmp_path)
    assert len(synced) == 2


def test_a_part_that_is_swept_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    import fcntl

    whole, swept = fcntl.flock, []

    def late(file, how):
        if not swept:
            (part,) = tmp_path.glob(".b.*.part")
            swept.append(part)
            part.unlink()
        whole(file, how)

    monkeypatch.setattr(files.fcntl, "flock", late)
    files.replace(tmp_path / "b", lambda file: file.write(b"whole"))
    assert [p.name for p in tmp_path.iterdir()] == ["b"]
    assert (tmp_path / "b").read_bytes() == b"whole"
    assert swept
    # seen red: the first part kept: its rename fails
