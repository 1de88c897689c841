"""kill -9 under load, on both databases; `make soak` does it fifty times."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")


def run(home):
    path = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1", "PATH": os.environ["PATH"]}
    script = Path(__file__).parents[1] / "support" / "kills.py"
    command = [sys.executable, "-W", "ignore", str(script), "--rounds", "5", "--home", str(home)]
    done = subprocess.run(command, env=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    assert int(lines[-1].split()[-3]) >= 5


def test_a_killed_process_loses_nothing_on_a_file(tmp_path):
    run(tmp_path / "ledger.db")
    # seen red: a learner that does not learn the last batch when it follows


def test_a_killed_process_loses_nothing_on_postgresql(postgres):
    run(postgres.url())
