"""A ledger knows what taught each batch. A replay has the same bits where that is at hand, else it says so."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import sqlalchemy as sa

import dither
from dither import live as lives
from dither.base import compiled
from dither.log.database import sql_tables
from dither.models import stepped

X = np.random.default_rng(0).normal(size=(4, 5))
pytestmark = pytest.mark.usefixtures("closing")


class Idle:
    """A step that leaves everything to Python."""

    def __init__(self, version):
        self.ARITHMETIC = version

    def __getattr__(self, name):
        return lambda *arguments: None


def begin(**settings):
    return dither.LinFP(**{"dim": 5, "floor": 0.1, "lam": 1.0, "seed": 0} | settings)


def slow(home, **settings):
    """No snapshot, unless one is asked for, so all is learnt again by whoever opens the ledger."""
    return dither.Live(home, snapshot_batches=10**6, snapshot_seconds=1e6, **settings)


def arithmetics(live):
    batches = sql_tables.batches.c
    with live.ledger.database.reading() as connection:
        return list(connection.scalars(sa.select(batches.arithmetic).order_by(batches.number)))


def rewarded(live, n):
    for i in range(n):
        live.reward(live.choose(X).id, float(i % 3))


def end_lease(live):
    with live.ledger.holding() as connection:
        connection.execute(sa.update(sql_tables.lease).values(expires=0))


def test_a_replay_says_which_batches_it_learns_otherwise(shared, monkeypatch):
    monkeypatch.setattr(compiled, "STEP", None)
    live = dither.Live(shared, bandit=begin())
    rewarded(live, 2)
    monkeypatch.setattr(compiled, "STEP", Idle(7))
    rewarded(live, 1)
    monkeypatch.setattr(compiled, "STEP", None)
    rewarded(live, 1)
    assert arithmetics(live) == ["numpy", "numpy", "compiled 7", "numpy"]
    words = r"^the step \(compiled 7\) has taught batch 3, and NumPy learns .*Its means differ by at most \d\.\d"
    with pytest.warns(lives.RoundingWarning, match=words) as warned:
        live.replay()
    assert warned[0].filename == __file__
    live.replay(2)  # before it, without a word
    monkeypatch.setattr(compiled, "STEP", Idle(7))
    rewarded(live, 2)
    live.replay()  # NumPy is everywhere
    monkeypatch.setattr(compiled, "STEP", Idle(8))
    with pytest.warns(lives.RoundingWarning, match=r"3 of the batches 3 to 6, and the step \(compiled 8\)"):
        live.replay(of="bandit")
    # seen red: a learner that records nothing; all batches, whatever `batch` says


if importlib.util.find_spec("dither._step"):  # where it was built, whether or not the tests run with it
    STEP = importlib.import_module("dither._step")
    BUILT = f"compiled {STEP.ARITHMETIC}"

    def taught(home, monkeypatch, **settings):
        """A ledger of batches that the step has taught."""
        monkeypatch.setattr(compiled, "STEP", STEP)
        live = slow(home, bandit=begin(**settings))
        rewarded(live, 40)
        assert arithmetics(live) == [BUILT] * 40
        return live

    @pytest.mark.parametrize("settings", [{}, {"sigma": "auto", "lam": "auto"}], ids=["fixed", "auto"])
    def test_what_the_step_has_taught_is_replayed_by_it_to_the_bit_and_by_numpy_within_its_bounds(
        monkeypatch, settings
    ):
        live = taught(None, monkeypatch, **settings)
        assert live.replay().to_bytes() == live.to_bytes()
        step = live.replay()
        monkeypatch.setattr(compiled, "STEP", None)
        with pytest.warns(lives.RoundingWarning, match=r"has taught batches 1 to 40, and NumPy learns them here"):
            plain = live.replay()
        m, w = (np.array([ask(one.state, X) for one in (step, plain)]) for ask in (plain.model.mean, plain.model.width))
        rho, omega = plain.model.rounding(plain.state)
        assert abs(m[0] - m[1]).max() > 0  # or this test says nothing
        assert np.all(abs(m[0] - m[1]) <= 2 * rho * w[1])
        assert np.all(abs(w[0] - w[1]) <= 2 * omega * w[1])
        # seen red: a step that learns 1e-9 more of each reward

    def test_a_batch_that_numpy_has_taught_is_replayed_to_the_bit_where_the_step_is(monkeypatch):
        live = slow(None, bandit=begin())
        for i in range(40):
            monkeypatch.setattr(compiled, "STEP", [STEP, None][i // 3 % 2])
            rewarded(live, 1)
        assert len(set(arithmetics(live))) == 2
        monkeypatch.setattr(compiled, "STEP", STEP)
        assert live.replay().to_bytes() == live.to_bytes()
        live.erase([live.choose(X).id])  # then all is learnt anew
        assert live.replay().to_bytes() == live.to_bytes()
        # seen red: a replay by the step alone

    def test_a_snapshot_of_another_arithmetic_is_taken_to_the_bit(shared, monkeypatch):
        with taught(shared, monkeypatch) as live:
            state = live.to_bytes()
        monkeypatch.setattr(compiled, "STEP", None)
        with slow(shared) as live:
            assert live.to_bytes() == state
            rewarded(live, 3)
            assert arithmetics(live) == [BUILT] * 40 + ["numpy"] * 3
            state = live.to_bytes()
        monkeypatch.setattr(compiled, "STEP", STEP)
        with slow(shared) as live:
            assert live.to_bytes() == live.replay().to_bytes() == state

    def test_who_learns_batches_again_and_goes_on_from_there_says_so(shared, monkeypatch):
        """Else the ledger would say that the step has taught what later batches do not stand on."""
        gone = taught(shared, monkeypatch)
        monkeypatch.setattr(compiled, "STEP", None)
        with slow(shared) as live:  # there is no snapshot
            assert arithmetics(live) == [BUILT] * 40
            assert live.to_bytes() != gone.to_bytes()
            end_lease(live)
            live.learn()
            rewarded(live, 1)
            assert live.learns
            assert arithmetics(live) == ["numpy"] * 41
            state = live.to_bytes()
            assert live.replay().to_bytes() == state  # without a word
        monkeypatch.setattr(compiled, "STEP", STEP)
        gone.learn()
        assert gone.to_bytes() == gone.replay().to_bytes() == state
        # seen red: batches that keep what has taught them first

    OTHER_PROCESS = """
import json, sys
import numpy as np
import dither
from dither.base import compiled
X, live = np.array(json.loads(sys.argv[2])), dither.Live(sys.argv[1], refresh_seconds=1e-9)
for line in sys.stdin:
    if line == "learn\\n":
        live.learn()
        print(json.dumps([live.learns, compiled.arithmetic()]), flush=True)
        continue
    if line == "close\\n":
        break
    d = live.choose(X)
    print(json.dumps([d.id, d.place, d.propensity, live.reward(d.id, float(line))]), flush=True)
live.close()
"""

    def test_processes_with_and_without_the_step_share_a_ledger(shared, monkeypatch):
        monkeypatch.setattr(compiled, "STEP", STEP)
        live = dither.Live(shared, bandit=begin(), refresh_seconds=1e-9, snapshot_batches=1)
        more = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1", "DITHER_COMPILED": "0"}
        command = [sys.executable, "-c", OTHER_PROCESS, str(shared), json.dumps(X.tolist())]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": os.environ | more}
        with subprocess.Popen(command, **pipes) as other:

            def ask(line):
                print(line, file=other.stdin, flush=True)
                return json.loads(other.stdout.readline())

            decisions, rng = {}, np.random.default_rng(1)
            for i in range(8):
                if i == 4:
                    end_lease(live)
                    assert ask("learn") == [True, "numpy"]
                for _ in range(3):  # batches of one reward, which are the step's
                    d = live.choose(X)
                    decisions[d.id] = d.place, d.propensity
                    assert live.reward(d.id, 3 * rng.normal()) == "counted"
                id, place, p, answer = ask(3 * rng.normal())
                decisions[id] = place, p
                assert answer == "counted"
            print("close", file=other.stdin, flush=True)
            assert other.wait() == 0
        live.learn()
        assert live.bandit.observations == 32
        assert set(arithmetics(live)) == {BUILT, "numpy"}
        assert live.replay().to_bytes() == live.to_bytes()
        frame = live.read().frame
        assert len(set(frame["learnt"])) > 8  # of many states
        monkeypatch.setattr(compiled, "STEP", None)
        states = {}
        for id, batch in zip(frame["id"], frame["learnt"], strict=True):
            if batch not in states:
                states[batch] = live._learner.replay(batch).bandit.propensities(X)
            place, p = decisions[id]
            assert abs(states[batch][place] - p) <= 1e-12
        # seen red: a step whose θ̂ is 1e-10 longer; propensities of the batch before

    def test_learning_by_numpy_is_of_one_thread_and_ends():
        with compiled.learnt_by("numpy"):
            assert compiled.learning() is None
            with compiled.learnt_by(BUILT):
                assert compiled.learning() is compiled.STEP
            assert compiled.learning() is None
        with pytest.raises(ValueError, match="inside"), compiled.learnt_by("numpy"):
            raise ValueError("inside")
        assert compiled.learning() is compiled.STEP
        assert stepped.compiled is compiled
