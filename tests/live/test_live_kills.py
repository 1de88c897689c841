"""kill -9, backups that are put back and full disks under load; `make soak` does it fifty and twenty times."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from longer import size

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")


def run(home, what="kills", n=3):
    tried("--rounds", str(n), "--what", what, "--home", str(home), n=n)


def tried(*options, n):
    """Run it with these options, of which n rounds are expected."""
    path = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1", "PATH": os.environ["PATH"]}
    script = Path(__file__).parents[1] / "support" / "kills.py"
    command = [sys.executable, "-W", "ignore", str(script), *options]
    ended = subprocess.run(command, env=path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = ended.stdout.splitlines()
    assert len(lines) == n
    assert int(lines[-1].split()[-3]) >= 5


def test_a_killed_process_loses_nothing_on_a_file(tmp_path):
    run(tmp_path / "ledger.db", n=size(2, longer=3))
    # seen red: a learner that does not learn the last batch when it follows


def test_a_killed_process_loses_nothing_on_postgresql(postgres):
    run(postgres.url(), n=size(2, longer=3))


def test_a_backup_that_is_put_back_under_load_takes_what_it_lost_and_no_more(tmp_path):
    run(tmp_path / "ledger.db", "restores", size(1, longer=2))
    # seen red: decisions that are stored without a comparison of marks: "did not know batch"


def test_a_server_that_is_put_back_under_load_takes_what_it_lost_and_no_more(postgres):
    n = size(1, longer=2)
    tried("--postgres", "--rounds", "0", "--restores", str(n), n=n)
    # seen red: decisions that are stored without a comparison of marks: "did not know batch"


def test_files_that_cannot_grow_lose_nothing_that_was_answered(tmp_path):
    run(tmp_path / "ledger.db", "full", size(1, longer=2))
    # seen red: rows that are committed, and a call that raises since the learner failed
