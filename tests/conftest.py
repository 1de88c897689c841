"""What all tests share: one BLAS thread (so that bits can be compared), hypothesis without luck, the command line."""

import gc
import os
import shutil
import sys
import zlib
from pathlib import Path

import pytest
import threadpoolctl
from hypothesis import settings

import browsing
import databases
import longer
from dither import cli
from dither.base import compiled
from libraries import LIBRARIES, Library

settings.register_profile("dither", deadline=None, derandomize=True, max_examples=longer.size(40, longer=100))
settings.load_profile("dither")

# What compares the compiled step with Python needs both.
collect_ignore = (
    [] if compiled.STEP else ["base/test_step_buffers.py", "deciding/test_step.py", "models/test_stepped.py"]
)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Nothing that tests import is garbage: 780,000 objects, at which the collector looks no more (0.45 s a look)."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config, items):
    """With DITHER_EVERY=3 every third test, by its name: a sample of what another run asks whole."""
    n = int(os.environ.get("DITHER_EVERY", 1))
    left = [one for one in items if zlib.crc32(one.nodeid.encode()) % n]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [one for one in items if zlib.crc32(one.nodeid.encode()) % n == 0]


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    with threadpoolctl.threadpool_limits(1):
        yield


@pytest.fixture(autouse=True, scope="session")
def one_migration():
    """The migrations of the ledger run once for each kind of database (`databases.migrate_once`)."""
    from dither.log.database import home

    before = databases.migrate_once(home)
    yield
    home._migrate = before


@pytest.fixture
def dither(monkeypatch, capsys):
    """Runs the command line in this process -> (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["dither", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit:
            cli.main()
        return exit.value.code or 0, *capsys.readouterr()

    return run


@pytest.fixture(params=LIBRARIES)
def lib(request):
    """Each array library in turn."""
    return Library(request.param)


@pytest.fixture(scope="session")
def data_folder():
    """The folder of the original data sets: that of DITHER_DATA, or ../shared/data beside the checkout."""
    folder = Path(os.environ.get("DITHER_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not folder.is_dir():
        reason = f"no data sets in {folder}: set DITHER_DATA to a folder with shuttle/, isolet/, ..."
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return folder


@pytest.fixture(scope="session")
def chromium():
    """A browser without a window, one for each process of tests; `browsing.Page` opens a file in it."""
    driver = shutil.which("chromedriver")
    if driver is None or shutil.which("chromium") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            "no chromium and chromedriver: install both, as .ci/run does"
        )
    browser = browsing.start(driver)
    yield browser
    browser.quit()


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server of our own, one for each process of tests; `url()` is a place for a new ledger."""
    if databases.programs() is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no PostgreSQL: apt install postgresql, as .ci/run does")
    server = databases.Server("fsync=off", "max_connections=100")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def pooler(postgres):
    """PgBouncer in transaction mode before our server: two connections for all clients. `url()` as of the server."""
    if not Path(databases.Pooler.PROGRAM).exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no PgBouncer: apt install pgbouncer, as .ci/run does")
    made = databases.Pooler(postgres, "default_pool_size = 2", "server_lifetime = 2", "client_idle_timeout = 5")
    yield made
    made.stop()


@pytest.fixture
def closing(monkeypatch):
    """Closes the connections of all ledgers that a test leaves open."""
    from dither.log.database import home as homes

    held, begin = [], homes.Home.__init__

    def noted(self, *arguments, **settings):
        begin(self, *arguments, **settings)
        held.append(self)

    monkeypatch.setattr(homes.Home, "__init__", noted)
    yield
    for one in held:
        one.close()


@pytest.fixture(params=["memory", "file", "postgres"])
def home(request, tmp_path, closing):
    """Where a ledger lives: each kind of home in turn."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres").url()
    return None if request.param == "memory" else tmp_path / "ledger.db"


@pytest.fixture(params=["file", "postgres"])
def shared(request, tmp_path, closing):
    """A home that several processes can open."""
    return request.getfixturevalue("postgres").url() if request.param == "postgres" else tmp_path / "ledger.db"


def pytest_sessionfinish(session):
    """In CI everything that a test may need is there: a test that skips is a test that is missing."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = 1
        reporter.write_line("tests were skipped, which CI does not allow", red=True)
