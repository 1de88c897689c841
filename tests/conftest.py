"""What all tests share: one BLAS thread (so that bits can be compared), hypothesis without luck, the command line."""

import os
import sys

import pytest
import threadpoolctl
from hypothesis import settings

from dither import cli

settings.register_profile("dither", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("dither")


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    with threadpoolctl.threadpool_limits(1):
        yield


@pytest.fixture
def dither(monkeypatch, capsys):
    """Runs the command line in this process -> (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["dither", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit:
            cli.main()
        return exit.value.code or 0, *capsys.readouterr()

    return run


def pytest_sessionfinish(session):
    """In CI everything that a test may need is there: a test that skips is a test that is missing."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = 1
        reporter.write_line("tests were skipped, which CI does not allow", red=True)
