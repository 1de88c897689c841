"""Databases of the tests. A PostgreSQL server: its own folder, a socket in it, and no port. Each ledger gets a schema.

Whoever connects needs a password (scram-sha-256), which has the characters that a URL writes in another way.

And tables without a migration each time: most tests begin with an empty ledger, of which migrations are the main cost.
"""

import itertools
import os
import shutil
import subprocess
import tempfile
import time
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
    names = itertools.count()

    def __init__(self, *settings, of=None, data=None, wal=None):
        """of : a running server that this one is to be a replica of.

        data, wal : empty folders for what it stores, and for its WAL, in files of 1 MB; None: in its own folder
        """
        self.folder = Path(tempfile.mkdtemp(prefix="dither-pg-"))
        self.data = data or self.folder / "data"
        self._programs = programs()
        if os.getuid() == 0:
            shutil.chown(self.folder, USER)
        given = [f"unix_socket_directories={self.folder}", "listen_addresses=", "shared_buffers=32MB", *settings]
        self._options = " ".join(f"-c {setting}" for setting in given)
        if of is not None:
            self.follow(of)
            return
        word = self.folder / "word"
        word.write_text(PASSWORD)
        apart = f"-X {wal} --wal-segsize=1" if wal else ""
        self._run(
            *f"initdb -D {self.data} -U dither -A scram-sha-256 --pwfile={word} -E UTF8 --no-sync {apart}".split()
        )
        word.unlink()
        self.start()

    def start(self):
        self._run("pg_ctl", "-D", self.data, "-w", "-l", self.folder / "log", "-o", self._options, "start")

    def halt(self):
        """As if it were killed."""
        running = self.data / "postmaster.pid"
        try:
            if running.exists():
                self._run("pg_ctl", "-D", self.data, "-m", "immediate", "stop")
        except RuntimeError:
            if running.exists():  # else it has ended by itself meanwhile
                raise

    def restart(self):
        self.halt()
        self.start()

    def copy(self):
        """Copy the folder of its data, while it is in use."""
        shutil.rmtree(self.folder / "copy", ignore_errors=True)
        self._run("pg_basebackup", "-D", self.folder / "copy", "-d", self.address(), "-c", "fast", "--no-sync")

    def put_back_copy(self):
        """Be stopped, and go on with the copy."""
        self.halt()
        shutil.rmtree(self.data)
        self._run(shutil.which("cp"), "-a", self.folder / "copy", self.data)
        self.start()

    def dump(self, database):
        """Write a database as statements, while it is in use."""
        file = self.folder / "dump.sql"
        self._run("pg_dump", "--clean", "--if-exists", "-f", file, "-d", self.address(database))

    def put_back_dump(self, database):
        """Have what was dumped, in one transaction; again, where PostgreSQL ended it as a deadlock."""
        command = ["psql", "-q", "-X", "--single-transaction", "-v", "ON_ERROR_STOP=1"]
        for _ in range(10):
            try:
                return self._run(*command, "-f", self.folder / "dump.sql", "-d", self.address(database))
            except RuntimeError as error:
                if "deadlock detected" not in str(error):
                    raise
        raise RuntimeError("ten deadlocks")

    def use_up_wal(self, room):
        """Write until the files that there are for WAL, of 1 MB each, have so many bytes left."""
        now = "pg_current_wal_insert_lsn()"
        ((files,),) = self.execute(f"SELECT count(*) FROM pg_ls_waldir() WHERE name >= pg_walfile_name({now})")
        ((taken,),) = self.execute(f"SELECT file_offset FROM pg_walfile_name_offset({now})")
        length = max(0, (files << 20) - taken - room)
        self.execute(f"SELECT pg_logical_emit_message(true, 'full', repeat('x', {length}))")

    def panics(self):
        """How often it has ended all its processes."""
        return (self.folder / "log").read_text().count("PANIC:")

    def follow(self, primary):
        """Be a replica of another server from now on."""
        shutil.rmtree(self.data, ignore_errors=True)
        self._run(
            "pg_basebackup", "-D", self.data, "-d", primary.address(), "-R", "-X", "stream", "-c", "fast", "--no-sync"
        )
        self.start()

    def hold_back(self):
        """Take nothing more from the primary: what it writes from now on is lost where this one is promoted."""
        self.execute("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
        self._until("SELECT count(*) = 0 FROM pg_stat_wal_receiver")

    def catch_up(self, primary):
        """Return when this replica has what the primary has now."""
        ((place,),) = primary.execute("SELECT pg_current_wal_lsn()")
        self._until(f"SELECT pg_last_wal_replay_lsn() >= '{place}'")

    def promote(self):
        """Be no replica any more."""
        self._run("pg_ctl", "-D", self.data, "-w", "promote")
        self._until("SELECT NOT pg_is_in_recovery()")

    def _until(self, question):
        until = time.monotonic() + 60
        while self.execute(question) != [(True,)]:
            if time.monotonic() > until:
                raise RuntimeError(f"it never came: {question}")
            time.sleep(0.01)

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
        return f"ledger_{os.getpid()}_{next(self.names)}"

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
            log = self.folder / "log"
            raise RuntimeError(f"{program} failed: {said}{log.read_text()[-2000:] if log.exists() else ''}")


class Pair:
    """A primary and a replica of it behind one address, as libpq takes several hosts."""

    def __init__(self, *settings):
        self.primary = Server(*settings)
        self.replica = Server(*settings, of=self.primary)
        self._hosts = ",".join(quote(str(one.folder)) for one in (self.primary, self.replica))

    def url(self):
        """A place for a new ledger, on whichever of the two can be written."""
        alone, ours = quote(str(self.primary.folder)), f"{self._hosts}&target_session_attrs=read-write"
        return self.primary.url().replace(f"host={alone}", f"host={ours}").replace("port=5432", "port=5432,5432")

    def wait_for_replica(self):
        """A commit returns when the replica has it, and shows it: until the next time that it is made."""
        self.primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        self.primary.execute("ALTER SYSTEM SET synchronous_commit = remote_apply", "SELECT pg_reload_conf()")
        self.primary._until("SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")

    def fail_over(self):
        """Kill the primary, and promote the replica."""
        self.primary.halt()
        self.replica.promote()
        self.replica.execute("ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()")
        self.primary, self.replica = self.replica, self.primary

    def mend(self):
        """Make the server that was killed a replica of the one that runs."""
        self.replica.halt()
        self.replica.follow(self.primary)

    def stop(self):
        for one in (self.replica, self.primary):
            one.stop()


class Pooler:
    """PgBouncer before a server: after each transaction a connection may go to another client."""

    PROGRAM = "/usr/sbin/pgbouncer"

    def __init__(self, server, *settings):
        """settings : lines of its file, such as "default_pool_size = 1"."""
        self.server, self.port = server, 6432
        self.folder = Path(tempfile.mkdtemp(prefix="dither-pooler-"))
        (self.folder / "users").write_text('"dither" "' + PASSWORD.replace('"', '""') + '"\n')
        lines = [
            "[databases]",
            f"* = host={server.folder} port={server.port}",
            "[pgbouncer]",
            "pool_mode = transaction",
            "auth_type = scram-sha-256",
            f"auth_file = {self.folder}/users",
            f"unix_socket_dir = {self.folder}",
            f"listen_port = {self.port}",
            f"logfile = {self.folder}/log",
            *settings,
        ]
        (self.folder / "pooler.ini").write_text("\n".join(lines) + "\n")
        command = [self.PROGRAM, "-q", str(self.folder / "pooler.ini")]
        if os.getuid() == 0:
            for one in (self.folder, *self.folder.iterdir()):
                shutil.chown(one, USER)
            command = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *command]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd="/")
        until = time.monotonic() + 20
        while not (self.folder / f".s.PGSQL.{self.port}").exists():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"pgbouncer did not start: {(self.folder / 'log').read_text()}")
            time.sleep(0.01)

    def url(self):
        """A place for a new ledger: a database of its own, since a pooler takes no search path with the connection."""
        name = self.server.new_name()
        self.server.execute(f"CREATE DATABASE {name}")
        return f"postgresql://dither:{quote(PASSWORD, safe='')}@/{name}?host={quote(str(self.folder))}&port={self.port}"

    def stop(self):
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self.folder)


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
