"""How often a `Live` waits for a server of PostgreSQL."""

import contextlib
import tempfile


def driver(live):
    home = live.ledger.database
    return home.driver(home._writer)


@contextlib.contextmanager
def answers(live):
    """How often the server says that it is ready, in the block: a list of one number."""
    number = [0]
    with tempfile.TemporaryFile() as file:
        driver(live).pgconn.trace(file.fileno())
        yield number
        driver(live).pgconn.untrace()
        file.seek(0)
        number[0] = file.read().count(b"ReadyForQuery")
