"""What all tests share: one BLAS thread (so that bits can be compared), and hypothesis without clocks or luck."""

import os

import pytest
import threadpoolctl
from hypothesis import settings

settings.register_profile("dither", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("dither")


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    with threadpoolctl.threadpool_limits(1):
        yield


def pytest_sessionfinish(session):
    """In CI everything that a test may need is there: a test that skips is a test that is missing."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = 1
        reporter.write_line("tests were skipped, which CI does not allow", red=True)
