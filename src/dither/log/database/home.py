"""Where a ledger lives: in memory, in one SQLite file, or in a PostgreSQL database. Connections and transactions.

    memory      SQLite without a file
    file        SQLite: WAL, synced after the commit (`journal`); BEGIN IMMEDIATE for writes, so that two writers wait
                for each other and neither fails half-way
    URL         PostgreSQL by psycopg, READ COMMITTED for writes, one snapshot for reads

A transaction is whole or has not happened. An error of the database is raised as an OSError that says so.
"""

import contextlib
import importlib
import os
import selectors
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dither.base import errors, forks
from dither.log import address, tallies, troubles
from dither.log.database import journal, refusals
from dither.log.database.sql_tables import PREFIX

IDLE = 60  # seconds after which a connection may have been dropped on the way, without a word
WAIT = 30  # seconds that a writer of a SQLite file waits for another one
AGAIN = 0.02  # seconds between two tries to empty the journal, where somebody waits for it
PAGES = 4000  # in the journal of a file, before they are moved into it, which costs syncs
NEWEST = "0013"  # the newest migration
VERSIONS = PREFIX + "version"  # the table in which Alembic says which migrations have run
_MIGRATING = 7_365_114  # the number of the lock under which one process migrates a PostgreSQL database


class Home:
    """One database. Thread-safe, and fit for forks."""

    def __init__(self, where: Any, *, wait: bool = True, looks: bool = False, begins: bool = True) -> None:
        """where : None, a path, or a URL of PostgreSQL; wait : whether a commit waits for the disk.

        looks : only read what is there: nothing is made or migrated, and what writes is refused
        begins : whether a ledger is begun where there is none

        Raises what `address.of` raises, and ValueError for a file that is no ledger. With `looks`, or without `begins`,
        FileNotFoundError where there is none; with `looks` ValueError for one of another version and for one in memory.
        """
        self._address, self._sealed, self._looks = address.of(where), looks, looks  # sealed: it can only be read
        self.where, self.file = self._address.shown, self._address.file  # what messages say; the path of the file
        self.postgres = self._address.kind == "postgres"
        if self.file is not None and self.file.is_dir():
            raise ValueError(f"{self.file} is a folder: a ledger is one file. A folder that Log wrote is taken over")
        if looks and self._address.kind == "memory":
            raise ValueError("a ledger in memory is seen by its own process alone: give a file, or a URL of PostgreSQL")
        self._begins = begins and not looks
        if not self._begins:
            address.there(self._address)
        if self.file is not None and not self.file.parent.is_dir():
            raise FileNotFoundError(f"no folder {self.file.parent} for the ledger {self.file.name}")
        self._lock, self._wait = threading.RLock(), wait
        self._reads, self._read = 0, threading.Condition()  # how many readers there are
        self.lost = 0  # how often the database failed
        self.tallies = tallies.Tallies(self)
        self.troubles = self.tallies.troubles
        self.mark = 0  # of what this process knows of the things that change rarely (`lessons.Changes`)
        self._journal = None if self.file is None else journal.Journal(self.file)
        self._texts: dict[Any, tuple[str, tuple[str, ...]]] = {}
        self._writer: sa.Connection | None = None
        self._driving: tuple[sa.Connection, Any] | None = None  # the writer, and the driver's, which takes long to find
        self._written_at = 0.0  # by time.monotonic(), when it was last used
        self._together: tuple[int, sa.Connection] | None = None  # a thread, and the transaction of all that it does
        self._parents: list[Any] = []
        self._engine = self._new_engine()
        self._preparing, self._prepared = False, False  # whether the migrations run now, and have run
        self._began = False  # whether it was a ledger before
        self._file: journal.Identity | None = None  # for which they have
        self._written_to: journal.Identity | None = None  # the file that the writer has open
        self._unwiped, self._wiping = False, troubles.Pause()  # whether the journal has what was erased
        try:
            self._ready()
            self._unwiped = not looks and self._has_erased()
            self.wipe()
        except BaseException:
            self.close()
            raise
        forks.tell(self)

    def _new_engine(self) -> sa.Engine:
        if self.postgres:
            errors.imported("psycopg", "psycopg", extra="postgres")
            options = self._address.options  # beside the URL of the engine, which is shown in places
            more: dict[str, Any] = {"connect_args": options, "paramstyle": "format", "pool_pre_ping": True}
            return sa.create_engine("postgresql+psycopg://", **more)
        self._sealed = self._looks or (self.file is not None and self.file.exists() and not _writable(self.file))
        settings: dict[str, Any] = {"isolation_level": None, "check_same_thread": False, "timeout": WAIT}
        pool: Any = sa.StaticPool if self.file is None else sa.QueuePool
        if self._sealed:
            engine = sa.create_engine("sqlite://", creator=lambda: self._to_read(settings), poolclass=sa.NullPool)
        else:
            url = sa.URL.create("sqlite", database=None if self.file is None else str(self.file))
            engine = sa.create_engine(url, connect_args=settings, poolclass=pool)
        sa.event.listen(engine, "connect", self._opened)
        sa.event.listen(engine, "begin", _begin)
        return engine

    def _opened(self, connection: Any, record: Any) -> None:
        record.info["file"] = None if self.file is None else journal.identity(self.file)
        if self._sealed:
            return
        for pragma in (
            "journal_mode=WAL",
            "synchronous=NORMAL",
            "foreign_keys=ON",
            "secure_delete=ON",
            f"wal_autocheckpoint={PAGES}",
        ):
            connection.execute(f"PRAGMA {pragma}").fetchall()

    def _to_read(self, settings: dict[str, Any]) -> Any:
        """A connection to a file that this user may only read. It makes no journal, which its owner could not write to.

        Where there is a journal, another process has the file open, and it is read with the file.
        """
        assert self.file is not None
        how = "mode=ro" if Path(f"{self.file}-wal").exists() else "immutable=1"
        return sqlite3.connect(f"{self.file.as_uri()}?{how}", uri=True, **settings)

    @property
    def looks(self) -> bool:
        """Whether what is there is only read."""
        return self._looks

    @property
    def counts(self) -> bool:
        """Whether what this process counts is written to it: not where it is only read."""
        return not self._sealed

    def writing(self, *, later: bool = False, alone: bool = False) -> "Writing":
        """A transaction that writes. It is committed, and on the disk, when the block ends without an error.

        later : return when it is committed. The caller waits for the disk with `reach(self.written)`.
        alone : in PostgreSQL each statement is a transaction of its own, so that one statement is one round trip
        """
        return Writing(self, later, alone)

    def _begun(self, alone: bool) -> sa.Connection:
        """A transaction that writes. Until it has ended, no other thread has one."""
        if self._sealed:
            raise refusals.sealed(self.where)
        self._lock.acquire()
        try:
            now = self._ready()
            connection = self._to_write()
            try:
                driver = self.driver(connection)
                if not self.postgres:
                    driver.execute("BEGIN IMMEDIATE")  # by SQLAlchemy it takes twice as long
                elif alone:
                    driver.autocommit = True
                elif not self._wait:  # for this transaction, as a pooler may give the session to others
                    driver.execute("SET LOCAL synchronous_commit = off")
                if self._journal is not None:
                    self._journal.hold(self._written_to, now)
            except BaseException as error:
                self._taken_back(connection, error)
                raise
        except BaseException as error:
            self._lock.release()
            self._tell(error, "written")
            raise
        return connection

    def _ended(self, connection: sa.Connection, error: BaseException | None) -> int:
        """Commit, or take all back where the block has raised; -> the number of the commit, 0 where it has none."""
        try:
            try:
                if self.postgres:
                    self._not_alone(connection)
                if error is None:
                    (connection if connection.in_transaction() else self.driver(connection)).commit()
            except BaseException as reason:
                error = reason
                raise
            finally:
                if error is not None:
                    self._taken_back(connection, error)
            if error is not None:
                return 0
            # it stays open, as getting another takes as long as the writing
            self._writer, self._written_at = connection, time.monotonic()
            return self._journal.wrote() if self._journal is not None else 0
        finally:
            self._lock.release()

    def _not_alone(self, connection: sa.Connection) -> None:
        """Let statements be parts of transactions again. A connection that refuses, as it is lost, is given up."""
        driver = self.driver(connection)
        if driver.autocommit:
            try:
                driver.autocommit = False
            except self._driver.Error:
                connection.invalidate()

    def _taken_back(self, connection: sa.Connection, error: BaseException) -> None:
        self._give_back(connection)
        if isinstance(error, journal.Removed):
            self._engine.dispose()  # the next call opens what is there now
            self.lost += 1

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """One transaction for all that this thread reads and writes in the block: all of it is there, or nothing."""
        with self.writing() as connection:
            self._together = threading.get_ident(), connection
            try:
                yield
            finally:
                self._together = None

    def _mine(self) -> sa.Connection | None:
        """The transaction of all that this thread does; None where each has its own."""
        together = self._together
        return together[1] if together is not None and together[0] == threading.get_ident() else None

    def _ready(self) -> journal.Identity | None:
        """Run the migrations that are missing, where this may be another database than that for which they ran.

        -> which file it is now; None: it is in no file. Raises Removed where there is none any more.
        """
        file = None if self.file is None else journal.identity(self.file)
        if self._preparing or (self._prepared and file == self._file):
            return file
        with self._lock:
            if self._journal is not None and self._file is not None:
                self._journal.fits(self._file, file)
            self._preparing = True
            try:
                self._prepare()
            finally:
                self._preparing = False
            file = None if self.file is None else journal.identity(self.file)
            self._prepared, self._began, self._file = True, True, file
        return file

    def moved(self, before: int, mark: int) -> None:
        """Say that this process has made a change, in a transaction that found the mark `before` it.

        If it knew all changes up to there, it knows this one too.
        """
        if self.mark == before:
            self.mark = mark

    def _to_write(self) -> sa.Connection:
        """The connection of the last writing, or another one, where none is open or the server has closed it."""
        connection, self._writer = self._writer, None
        if connection is not None and self.postgres and not self._alive(self.driver(connection)):
            connection.invalidate()
            connection.close()
            self._driving = None
            self.lost += 1  # what comes next may be another server
            connection = None
        if connection is None:
            options: dict[str, Any] = (
                {"isolation_level": "READ COMMITTED"} if self.postgres else {"dither_writes": True}
            )
            connection = self._engine.connect().execution_options(**options)
            self._written_to = connection.info.get("file")
            self._driving = connection, connection.connection.driver_connection
        return connection

    def _alive(self, driver: Any) -> bool:
        """Whether the connection that was last used for writing is open still.

        A server, or a pooler, that closes it says so: there is something to read. A network that drops it says nothing.
        """
        if driver.closed:
            return False
        with selectors.DefaultSelector() as selector:
            selector.register(driver.fileno(), selectors.EVENT_READ)
            heard = selector.select(0)
        if not heard and time.monotonic() - self._written_at < IDLE:
            return True
        try:
            self._engine.dialect.do_ping(driver)
        except self._driver.Error:
            return False
        return True

    def _give_back(self, connection: sa.Connection) -> None:
        """End a transaction without a commit. A connection that cannot do it, as the server is gone, is closed."""
        if self._driving is not None and self._driving[0] is connection:
            self._driving = None
        try:
            (connection if connection.in_transaction() else self.driver(connection)).rollback()
            if self.postgres:
                self.driver(connection).read_only = None  # as the server says: some sessions may only read
        except Exception:  # the pool would try it again, and log it
            if self.shared:
                connection.invalidate()
        connection.close()

    @property
    def written(self) -> int:
        """How many transactions this process has committed to a file."""
        return self._journal.written if self._journal is not None else 0

    def reach(self, number: int) -> None:
        """Return when so many transactions of this process are on the disk, where calls wait for it.

        Raises OSError where the disk refuses. Where calls do not wait, it says that an earlier sync was refused.
        """
        if self._journal is not None:
            self._journal.wait(number if self._wait else 0)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that sees one moment of the database."""
        if (mine := self._mine()) is not None:
            yield mine
            return
        with contextlib.ExitStack() as stack:
            if not self.shared:
                stack.enter_context(self._lock)  # in memory there is one connection
            stack.enter_context(self._counted())
            stack.enter_context(self._told("read"))
            if self._sealed and self.file is not None:
                stack.enter_context(self._unchanged())
            file = self._ready()
            connection = self._engine.connect()
            if connection.info.get("file") != file:  # it was opened before the file was replaced
                connection.invalidate()
                connection.close()
                self._engine.dispose()
                connection = self._engine.connect()
            try:
                if self.postgres:
                    connection.execution_options(isolation_level="REPEATABLE READ")
                    self.driver(connection).read_only = True
                connection.begin()
                yield connection
            finally:
                self._give_back(connection)

    @contextlib.contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Raise OSError where a file that is read without a lock, as there is no journal, was written in the block."""
        assert self.file is not None
        before, journal_there = self.file.stat(), Path(f"{self.file}-wal").exists()
        yield
        after = self.file.stat()
        same = (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
        if not journal_there and not (same and not Path(f"{self.file}-wal").exists()):
            raise OSError(f"the ledger in {self.where} was written to while it was read: call again")

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """One reader more, in the block."""
        with self._read:
            self._reads += 1
        try:
            yield
        finally:
            with self._read:
                self._reads -= 1
                self._read.notify_all()

    @contextlib.contextmanager
    def _told(self, done: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._tell(error, done)
            raise

    def _tell(self, error: BaseException, done: str) -> None:
        """Raise what a user gets in place of an error of the database; do nothing for any other."""
        if not isinstance(error, (sa.exc.DatabaseError, self._driver.DatabaseError, sa.exc.NoResultFound)):
            return
        self._address.purge(error)
        reason = getattr(error, "orig", error)
        refusal = refusals.of(reason, self._driver, done=done, where=self.where, postgres=self.postgres)
        if refusal is None:
            return
        if isinstance(refusal, OSError):
            self.lost += 1
        if isinstance(refusal, (FileNotFoundError, refusals.Older)):  # look at its tables again
            self._prepared = False
        if self.postgres and isinstance(refusal, PermissionError):
            self._engine.dispose()  # the address may lead to another server by the next call
        raise refusal from None

    @property
    def _driver(self) -> Any:
        return self._engine.dialect.loaded_dbapi

    def quick(self, connection: sa.Connection, statement: Any, **parameters: Any) -> list[Any]:
        """Run a statement that is written once, with its parameters by name; -> its rows, [] where it gives none.

        It is compiled once, and its parameters go to the driver directly. Through SQLAlchemy the call would take ten
        times as long as SQLite needs for it.
        """
        text, names = self._texts.get(statement) or self._compiled(statement)
        cursor = self.driver(connection).execute(text, [parameters[name] for name in names])
        return cursor.fetchall() if cursor.description is not None else []

    def stored(self, connection: sa.Connection, statements: Mapping[bool, Any], values: Mapping[str, Any]) -> bool:
        """Run a statement that stores a row, or none, such as where what each row has would be null; -> whether it did.

        statements : the one where calls wait for the disk (True), and the one where they do not
        """
        try:
            return bool(self.quick(connection, statements[self._wait], **values))
        except self._driver.errors.NotNullViolation:
            return False

    def many(self, connection: sa.Connection, into: Any, columns: list[str], rows: list[tuple[Any, ...]]) -> Any:
        """Insert rows, with their values in the order of the columns; -> what a statement returns for a single row.

        into : a table, or a statement that inserts. PostgreSQL takes several rows of a table by COPY, which costs a
            tenth of what a statement for each row costs

        None: there are none or several, or it returns nothing.
        """
        if not rows:
            return None
        text, names = self._texts.get(into) or self._compiled(into, columns)
        if list(names) != columns:
            raise ValueError(f"the parameters {names} are not in the order {columns}")
        if len(rows) == 1:
            cursor = self.driver(connection).execute(text, rows[0])
            return None if cursor.description is None else cursor.fetchall()[0]  # all, so that the statement has ended
        with contextlib.closing(self.driver(connection).cursor()) as cursor:
            if self.postgres and isinstance(into, sa.Table):
                with cursor.copy(self._copying(into, columns)) as copy:
                    for row in rows:
                        copy.write_row(row)
            else:
                cursor.executemany(text, rows)
        return None

    def _copying(self, table: sa.Table, columns: list[str]) -> str:
        quoted = self._engine.dialect.identifier_preparer
        return f"COPY {quoted.format_table(table)} ({', '.join(map(quoted.quote, columns))}) FROM STDIN"

    def _compiled(self, of: Any, columns: list[str] | None = None) -> tuple[str, tuple[str, ...]]:
        """A statement, or that which inserts into a table, as the driver takes it."""
        statement = of.insert().inline() if isinstance(of, sa.Table) else of  # which returns nothing
        compiled = statement.compile(self._engine, column_keys=columns)
        self._texts[of] = str(compiled), tuple(compiled.positiontup or ())
        return self._texts[of]

    def driver(self, connection: sa.Connection) -> Any:
        """The connection of the driver, for what must be quick. It is in the same transaction."""
        if self._driving is not None and self._driving[0] is connection:
            return self._driving[1]
        return connection.connection.driver_connection

    def text(self, statement: Any) -> str:
        """A statement without parameters as the driver takes it."""
        return str(statement.compile(self._engine))

    def now(self, connection: sa.Connection) -> int:
        """The time in microseconds, by one clock for all that share the database."""
        if not self.postgres:
            return time.time_ns() // 1000
        return int(connection.scalar(sa.text("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint")))

    @property
    def shared(self) -> bool:
        """Whether other processes can open it."""
        return self.file is not None or self.postgres

    def durable(self) -> None:
        """Return when what was read is on the disk too, where calls wait for it: whoever wrote it may still wait."""
        if self._journal is not None and self._wait:
            self._journal.sync()

    def sync(self) -> None:
        """Return when what was committed is on the disk. PostgreSQL does so by itself a little later."""
        if self._journal is not None and not self._wait:
            self._journal.sync()

    def erased(self) -> None:
        """Let no copy of what was erased stay in the journal of a SQLite file.

        A reader of an earlier moment needs the journal, and nobody waits for it: then that is a trouble, and later
        calls do it, or the next opening.
        """
        self._unwiped = self.file is not None
        self._wiping.passed()
        self.wipe()
        if self._unwiped:
            self.troubles.add(
                "erasing",
                f"copies of what was erased are still in the journal {self.file}-wal, since a reader of an earlier "
                f"moment has it open: they go with one of the next writes, or with the next opening",
            )

    def wipe(self) -> None:
        """Empty the journal, where it has what was erased and nobody reads it. No call fails for it."""
        if not self._unwiped or not self._wiping.over:
            return
        try:
            self._unwiped = self._busy()
        except Exception as reason:
            self.troubles.add("erasing", f"the journal could not be emptied ({troubles.in_words(reason)})", reason)
        if self._unwiped:
            self._wiping.failed()
        else:
            self.troubles.mended("erasing")

    def wiped(self, seconds: float) -> bool:
        """Try for so long to empty the journal of what was erased, where the process ends then; -> whether it is empty.

        Each try takes no time from those who write.
        """
        until = time.monotonic() + seconds
        while self._unwiped and time.monotonic() < until:
            time.sleep(AGAIN)
            self._wiping.passed()
            self.wipe()
        return not self._unwiped

    def _busy(self) -> bool:
        """Move the journal into the file, and cut it to nothing; -> whether a reader was in the way."""
        with self._lock, self._told("written"), self._engine.connect() as connection:
            driver = self.driver(connection)
            driver.execute("PRAGMA busy_timeout=0")
            try:
                return bool(driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
            finally:
                driver.execute(f"PRAGMA busy_timeout={WAIT * 1000}")

    def _has_erased(self) -> bool:
        """Whether the journal may have what was erased, by a process that has ended before it could empty it."""
        if self.file is None or not os.path.exists(f"{self.file}-wal") or not os.path.getsize(f"{self.file}-wal"):
            return False
        with self.reading() as connection:
            return bool(connection.scalar(sa.text(f"SELECT erased FROM {PREFIX}lease")))

    def close(self) -> None:
        """Write what was counted, sync, and close all connections.

        Raises OSError where the disk refuses the sync. The connections are closed then too.
        """
        self.tallies.close()
        self._disconnect()

    def _disconnect(self) -> None:
        """Sync, and close all connections, for now or for ever."""
        with self._lock, contextlib.ExitStack() as stack:
            stack.callback(self._engine.dispose)
            if self._writer is not None:
                stack.callback(self._writer.close)
            self._writer = self._driving = None
            if self._journal is not None:
                self._journal.close()

    def _forking(self) -> None:
        """Before a fork: close the connections to a file, and keep other threads from opening some until it is done.

        SQLite counts the locks of a process. A child that inherits a connection believes that it holds the lock of the
        file, and does not take it. Then whoever closes the last connection elsewhere removes the journal that the child
        writes to, with all that it has answered (sqlite.org/howtocorrupt.html, 2.6).
        """
        self._lock.acquire()
        self._read.acquire()
        if self.file is not None:
            self._read.wait_for(lambda: self._reads == 0, timeout=WAIT)
            with contextlib.suppress(OSError):  # whoever waits for the disk is told
                self._disconnect()

    def _parent(self) -> None:
        """After a fork, in the parent."""
        self._read.release()
        self._lock.release()

    def _forked(self) -> None:
        """In the child of a fork: leave the parent's connections alone, and make new ones."""
        self._lock = threading.RLock()
        self._reads, self._read = 0, threading.Condition()
        self._together = None
        self._parents.append(self._writer)  # of PostgreSQL: closing it would end the parent's
        self._writer = self._driving = None
        self._preparing = False
        self._journal = None if self.file is None else journal.Journal(self.file)
        self._engine.dispose(close=False)
        if self.shared:
            self._engine = self._new_engine()

    def _prepare(self) -> None:
        """Make the tables, or bring them to the newest migration. One process does it, the others wait."""
        with self.reading() as connection:
            version = self._version(connection)
        if version == NEWEST:
            return
        if version is None and self._began:
            raise refusals.deleted(self.where)
        if version is None and not self._begins:
            raise address.missing(self.where)
        if self._looks:
            raise refusals.another(self.where, version or "", NEWEST)
        with self.writing() as connection:
            if self.postgres:
                connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_MIGRATING})"))
            version = self._version(connection)
            if version == NEWEST:
                return
            if version is not None and version > NEWEST:
                raise refusals.another(self.where, version, NEWEST)
            _migrate(connection)

    def _version(self, connection: sa.Connection) -> str | None:
        names = sa.inspect(connection).get_table_names()
        if VERSIONS in names:
            return connection.scalar(sa.text(f"SELECT version_num FROM {VERSIONS}"))
        if names and not self.postgres:
            raise ValueError(
                f"{self.where} is a database of another program (it has {names[0]!r}): choose another file"
            )
        return None


class Writing:
    """The block of a transaction that writes (`Home.writing`). As a generator it would take as long as SQLite does."""

    __slots__ = ("_alone", "_connection", "_home", "_later")

    def __init__(self, home: Home, later: bool, alone: bool) -> None:
        self._home, self._later, self._alone = home, later, alone
        self._connection: sa.Connection | None = None  # None: the block is part of another one (`Home.together`)

    def __enter__(self) -> sa.Connection:
        if (mine := self._home._mine()) is not None:
            return mine
        self._connection = self._home._begun(self._alone)
        return self._connection

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._connection is None:
            return
        try:
            number = self._home._ended(self._connection, error)
        except BaseException as reason:
            self._home._tell(reason, "written")
            raise
        if error is not None:
            self._home._tell(error, "written")
        elif not self._later:
            self._home.reach(number)


def _writable(file: Path) -> bool:
    """Whether this user may write to a file and to its folder, which has the journal."""
    return os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)


def _begin(connection: sa.Connection) -> None:
    if not connection.get_execution_options().get("dither_writes"):  # `writing` begins by itself
        connection.exec_driver_sql("BEGIN")


def _migrate(connection: sa.Connection) -> None:
    """Run the migrations that are missing, in the transaction of the connection."""
    config = migrations()
    config.attributes["connection"] = connection
    importlib.import_module("alembic.command").upgrade(config, "head")


def migrations() -> Any:
    """The configuration by which Alembic finds the migrations."""
    config = importlib.import_module("alembic.config").Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config
