"""Databases of the tests. A PostgreSQL server: its own folder, a socket in it, and no port. Each ledger gets a schema.

Whoever connects needs a password (scram-sha-256), which has the characters that a URL writes in another way.

And tables without a migration each time: most tests begin with an empty ledger, of which migrations are the main cost.
"""

import itertools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

USER = "postgres"  # who runs the server where the tests run as root, which it refuses
PASSWORD = "p@s:s/w%rd?7Q"


def programs():
    """The folder of initdb and pg_ctl, the newest; None where PostgreSQL is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    here = shutil.which("initdb")
    return None if here is None else Path(here).resolve().parent


class Server:
    """A running server."""

    port = 5432  # names the socket

    def __init__(self, *settings):
        self.folder = Path(tempfile.mkdtemp(prefix="dither-pg-"))
        self.data = self.folder / "data"
        self._programs, self._schemas = programs(), itertools.count()
        if os.getuid() == 0:
            shutil.chown(self.folder, USER)
        word = self.folder / "word"
        word.write_text(PASSWORD)
        self._run(*f"initdb -D {self.data} -U dither -A scram-sha-256 --pwfile={word} -E UTF8 --no-sync".split())
        given = [f"unix_socket_directories={self.folder}", "listen_addresses=", "shared_buffers=32MB", *settings]
        self._options = " ".join(f"-c {setting}" for setting in given)
        self.start()

    def start(self):
        self._run("pg_ctl", "-D", self.data, "-w", "-l", self.folder / "log", "-o", self._options, "start")

    def halt(self):
        """As if it were killed."""
        self._run("pg_ctl", "-D", self.data, "-m", "immediate", "stop")

    def restart(self):
        self.halt()
        self.start()

    def url(self):
        """A place for a new ledger: a schema of its own."""
        name = self.new_name()
        self.execute(f"CREATE SCHEMA {name}")
        return f"{self.address()}&options=-csearch_path%3D{name}"

    def address(self, database="postgres", user="dither", password=PASSWORD):
        """The URL of a database."""
        login = f"{user}:{quote(password, safe='')}"
        return f"postgresql://{login}@/{database}?host={quote(str(self.folder))}&port={self.port}"

    def new_name(self):
        """A name that nothing in the server has."""
        return f"ledger_{os.getpid()}_{next(self._schemas)}"

    def execute(self, *statements, database="postgres"):
        """Run statements as the owner; -> the rows of the last one, [] where it gives none."""
        import psycopg

        with psycopg.connect(self.address(database), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description is not None else []

    def end(self, backend):
        """End a process of the server, and so a connection; it returns when it has ended."""
        self.execute(f"SELECT pg_terminate_backend({backend}, 10000)")

    def stop(self):
        self.halt()
        shutil.rmtree(self.folder)

    def _run(self, program, *arguments):
        command = [str(self._programs / program), *map(str, arguments)]
        if os.getuid() == 0:
            command = ["runuser", "-u", USER, "--", *command]
        with (self.folder.parent / f"{self.folder.name}.out").open("w+b") as out:  # the server keeps it open
            done = subprocess.run(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd="/", check=False)
            out.seek(0)
            said = out.read().decode()
        Path(out.name).unlink()
        if done.returncode:
            raise RuntimeError(f"{program} failed: {said}")


def migrate_once(home):
    """Let the migrations run once for each kind of database. A new one is sent what they sent then.

    home : the module that migrates. Returns its own function, to be set again.
    """
    import sqlalchemy as sa

    migrate, sent = home._migrate, {}

    def quickly(connection):
        kind = connection.dialect.name, home.NEWEST
        if home.VERSIONS in sa.inspect(connection).get_table_names():
            return migrate(connection)
        if kind in sent:
            for statement, parameters in sent[kind]:
                connection.exec_driver_sql(statement, parameters)
            return None
        statements = []

        def note(connection, cursor, statement, parameters, context, many):
            if not statement.lstrip().startswith(("SELECT", "PRAGMA")):
                statements.append((statement, parameters))

        sa.event.listen(connection, "before_cursor_execute", note)
        try:
            migrate(connection)
        finally:
            sa.event.remove(connection, "before_cursor_execute", note)
        sent[kind] = statements
        return None

    home._migrate = quickly
    return migrate
