"""Who may only read, reads; what was deleted is said to be; and nothing is printed beside the error."""

import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

import dither
from dither import log
from dither.log import archive, lines, reader  # noqa: F401  a child that is no root may not be able to import them

X = np.eye(3)
pytestmark = pytest.mark.usefixtures("closing")
NOBODY = 65534


def begun(home, n=3):
    """A ledger with some decisions and rewards, closed."""
    with dither.Live(home, bandit=dither.LinFP(dim=3, lam=1.0, floor=0.1, seed=0), horizon=3600) as live:
        ids = [live.choose(X, extra={"user": i}).id for i in range(n)]
        live.reward(ids[:-1], [1.0] * (n - 1))
    return ids


def reads(home, folder, ids):
    """Whoever may only read sees all of it, and changes nothing: each call that writes is refused in one sentence."""
    with log.Ledger(home) as made:
        assert made.read().frame["id"].to_list() == ids
        assert [one.id for one in made.pending()] == ids[-1:]
        assert len(made) == len(ids)
        assert made.horizon.total_seconds() == 3600
        (day,) = made.export(folder)
        assert log.read(day).frame["id"].to_list() == ids
        for call in (
            lambda: made.reward(ids[-1], 1.0),
            lambda: made.erase(ids),
            lambda: made.erase(user=1),
            lambda: made.expire(),
            lambda: made.take_over(folder),
            lambda: made.record(dither.LinFP(dim=3, seed=0).choose(X), X=X),
            lambda: dither.Live(home),
            lambda: log.Ledger(home, horizon=60),
        ):
            with pytest.raises(
                (PermissionError, ValueError), match=r"could not be written|has horizon=3600.0"
            ) as refused:
                call()
            assert "\n" not in str(refused.value)
        assert made.read().frame["id"].to_list() == ids


def test_a_role_that_may_only_read(postgres, tmp_path, capfd):
    """Seen red with an opening that locks the lease: 'permission denied for table dither_lease', of SQLAlchemy."""
    url = postgres.url()
    ids = begun(url)
    schema, role = url.rpartition("%3D")[2], postgres.new_name()
    postgres.execute(
        f"CREATE ROLE {role} LOGIN PASSWORD 'only reads'",
        f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}",
    )
    theirs = postgres.address(user=role, password="only reads") + f"&options=-csearch_path%3D{schema}"
    reads(theirs, tmp_path / "days", ids)
    with pytest.raises(PermissionError, match=r"INSERT, UPDATE and DELETE.*grant it"):
        dither.Live(theirs)
    postgres.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {role}")
    with pytest.raises(PermissionError, match=r"could not be read.*SELECT"):
        log.Ledger(theirs)
    with pytest.raises(PermissionError, match=r"CREATE in the schema"):
        log.Ledger(postgres.address(user=role, password="only reads") + "&options=-csearch_path%3Dpg_catalog")
    assert "Traceback" not in capfd.readouterr().err
    postgres.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_a_session_that_may_only_read(postgres, tmp_path):
    """As on a replica. Seen red with an opening that writes: ReadOnlySqlTransaction, of SQLAlchemy."""
    url = postgres.url()
    ids = begun(url)
    reads(url + "%20-cdefault_transaction_read_only%3Don", tmp_path / "days", ids)


def as_nobody(call):
    """Call in a fork that is no root, which may do anything."""
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            call()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


@pytest.fixture
def reachable():
    """A folder that others may look into: those of pytest are of one user."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


HOLDER = """
import sys, numpy as np, dither
live = dither.Live(sys.argv[1])
d = live.choose(np.eye(3))
print(d.id, flush=True)
input()
live.choose(np.eye(3))
print(len(live.ledger), flush=True)
live.close()
"""


@pytest.mark.parametrize(("file", "folder"), [(0o444, 0o755), (0o644, 0o555), (0o444, 0o555)])
@pytest.mark.parametrize("held", [False, True])
def test_a_file_that_may_only_be_read(reachable, file, folder, held):
    """Seen red with a journal that the reader makes: 'attempt to write a readonly database', or a file that its owner
    could no longer write to."""
    place = reachable
    ids = begun(place / "a.db")
    holder = None
    if held:
        path = {"PYTHONPATH": ":".join(sys.path), "PATH": os.environ["PATH"]}
        command = [sys.executable, "-W", "ignore", "-c", HOLDER, str(place / "a.db")]
        holder = subprocess.Popen(command, env=path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ids.append(holder.stdout.readline().strip())
    if os.getuid() == 0:
        (place / "a.db").chmod(file)
        place.chmod(folder)
    assert as_nobody(lambda: read_alone(place / "a.db", ids))
    left = {path.name for path in place.iterdir()}
    if held:
        assert holder.communicate("\n")[0] == f"{len(ids) + 1}\n"  # its owner goes on
    else:
        assert left == {"a.db"}
    place.chmod(0o755)


def read_alone(home, ids):
    """As `reads`, without polars, of which no fork may read a log."""
    with log.Ledger(home) as made:
        assert len(made) == len(ids)
        assert made.horizon.total_seconds() == 3600
        assert {one.id for one in made.pending()} <= set(ids)
        for call in (
            lambda: made.reward(ids[-1], 1.0),
            lambda: made.erase(ids),
            lambda: made.expire(),
            lambda: dither.Live(home),
        ):
            with pytest.raises(PermissionError, match=r"could not be written.*this user may write to"):
                call()


def test_a_ledger_whose_tables_were_deleted(shared, capfd):
    """Seen red with 'relation "dither_lease" does not exist', of SQLAlchemy, and 'Exception during reset'."""
    begun(shared)
    live = dither.Live(shared)
    with live.ledger.holding() as connection:
        for table in ("rewards", "records", "decisions", "lease"):
            connection.exec_driver_sql(f"DROP TABLE dither_{table}")
    for call in (
        lambda: live.choose(X),
        lambda: live.reward("a", 1.0),
        lambda: live.read(),
        lambda: live.ledger.erase(["a"]),
        lambda: live.expire(),
        lambda: list(live.pending()),
        lambda: len(live.ledger),
    ):
        with pytest.raises(FileNotFoundError, match=r"tables, or rows of them, were deleted: restore it") as refused:
            call()
        assert "\n" not in str(refused.value)
    said = capfd.readouterr().err
    assert "Traceback" not in said
    assert "Exception during reset" not in said


def test_a_ledger_whose_rows_were_deleted(shared):
    """Seen red with NoResultFound, of SQLAlchemy."""
    begun(shared)
    live = dither.Live(shared)
    with live.ledger.holding() as connection:
        connection.exec_driver_sql("DELETE FROM dither_lease")
    for call in (live.learn, lambda: dither.Live(shared)):
        with pytest.raises(FileNotFoundError, match=r"tables, or rows of them, were deleted: restore it"):
            call()


def test_a_database_that_was_dropped(postgres, capfd):
    """Seen red with a rollback by the pool: 'Exception during reset or similar', with its traceback."""
    name = postgres.new_name()
    postgres.execute(f"CREATE DATABASE {name}")
    live = dither.Live(postgres.address(name), bandit=dither.LinFP(dim=3, seed=0))
    live.reward(live.choose(X).id, 1.0)
    with live.ledger.database.reading():
        postgres.execute(f"DROP DATABASE {name} WITH (FORCE)")
    for call in (lambda: live.choose(X), lambda: live.read(), lambda: len(live.ledger), live.learn):
        with pytest.raises(OSError, match=f'could not be .*database "{name}" does not exist'):
            call()
    with pytest.raises(OSError, match="could not be"):
        live.close()
    said = capfd.readouterr().err
    assert "Traceback" not in said
    assert "Exception during reset" not in said


def test_a_server_that_ends_in_a_transaction_prints_nothing(postgres, capfd):
    """Seen red with a rollback by the pool: 'Exception during reset or similar', with its traceback."""
    url = postgres.url()
    live = dither.Live(url, bandit=dither.LinFP(dim=3, seed=0))

    def ended(connection):
        postgres.end(live.ledger.database.driver(connection).info.backend_pid)

    def refused(block, end):
        with block() as connection:
            ended(connection)
            end(connection)

    def stop(connection):
        raise KeyError

    with pytest.raises(OSError, match="could not be written"):
        refused(live.ledger.holding, lambda connection: connection.exec_driver_sql("SELECT 1"))
    for block in (live.ledger.holding, live.ledger.database.reading):
        with pytest.raises(KeyError):
            refused(block, stop)
    with live.ledger.holding() as connection:
        mine = live.ledger.database.driver(connection).info.backend_pid
    postgres.end(mine)
    assert live.reward(live.choose(X).id, 1.0) == "counted"  # nothing of it was sent, so it goes on
    assert live.to_bytes() == live.replay().to_bytes()
    said = capfd.readouterr().err
    assert "Traceback" not in said
    assert "Exception" not in said


def test_to_erase_finds_what_was_meant_or_says_so(home):
    """Seen red with "7" that missed 7, and with a column that no decision has: 0, and nothing was said."""
    with log.Ledger(home) as made:
        bandit = dither.LinFP(dim=3, seed=0)
        for i, user in enumerate([7, "7", 7.0, 8, "u7", True, 70, "007", 7.5, 2**60 + 1]):
            made.record(bandit.choose(X), X=X, id=f"d{i}", extra={"user": user})
        with pytest.raises(LookupError, match=r"no decision has a column 'usr' of your own.*they have user"):
            made.erase(usr="7")
        left = [made.erase(user=value) for value in ("7", "u7", "7.5", 70.0, 2**60, str(2**60 + 1), "8", True, "9")]
        assert left == [3, 1, 1, 1, 0, 1, 1, 1, 0]


def test_an_option_that_there_is_not(postgres):
    """Seen red with ProgrammingError, of psycopg."""
    with pytest.raises(ValueError, match=r"an option that PostgreSQL does not take.*passwrd"):
        log.Ledger(postgres.url() + "&passwrd=x")
    log.Ledger(postgres.url() + f"&application_name={quote('a shop')}").close()
