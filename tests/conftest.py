"""What all tests share: one BLAS thread (so that bits can be compared), and hypothesis without clocks or luck."""

import pytest
import threadpoolctl
from hypothesis import settings

settings.register_profile("dither", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("dither")


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    with threadpoolctl.threadpool_limits(1):
        yield
