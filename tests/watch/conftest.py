"""Ledgers and pages that the tests of the page share."""

import pytest

import watched_ledgers
from asking import Client
from dither import watch
from dither.log.database import home as homes


@pytest.fixture(scope="session", autouse=True)
def all_closed():
    """Closes the connections of all ledgers that these tests leave open."""
    held, begin = [], homes.Home.__init__

    def noted(self, *arguments, **settings):
        begin(self, *arguments, **settings)
        held.append(self)

    homes.Home.__init__ = noted
    yield
    homes.Home.__init__ = begin
    for one in held:
        one.close()


@pytest.fixture(scope="session")
def rich(tmp_path_factory):
    """The path of a ledger with all that a page can show, and the ids of its decisions."""
    path = tmp_path_factory.mktemp("watched") / "shop.db"
    return path, watched_ledgers.rich(path)


@pytest.fixture(scope="session")
def page(rich):
    """A client of the page over it."""
    return Client(watch.app(rich[0]))


@pytest.fixture(scope="session")
def empty(tmp_path_factory):
    """The path of a ledger in which nothing was decided."""
    path = tmp_path_factory.mktemp("watched") / "new.db"
    watched_ledgers.empty(path)
    return path
