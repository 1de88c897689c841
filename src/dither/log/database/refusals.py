"""What an error of a database means for a ledger, in a sentence that names the cure."""

from typing import Any

import sqlalchemy as sa

AGAIN = ("40001", "40P01")  # what PostgreSQL calls a transaction that may be tried again: not serial, or a deadlock
LOST = ("08", "57")  # the connection was lost, or the server stopped
FORBIDDEN, READ_ONLY = "42501", ("25006", "0A000")  # a replica does not even begin a transaction that writes
UNPREPARED = ("26000", "42P05")  # a prepared statement is not there, or is there already
GONE, OLDER = ("42P01", "3F000"), "42703"  # no such table or schema; no such column


class Twice(Exception):
    """A row that may be there once was there before. Another process was quicker."""


class Older(OSError):
    """The tables lack a column. Maybe the backup of an older dither was put in their place."""


class Crossed(OSError):
    """Another transaction stood in the way. All of this one was taken back, and it may be tried again."""


def of(reason: Any, driver: Any, *, done: str, where: str, postgres: bool) -> Exception | None:
    """The error that a user gets; None: the driver's own, as it is about values that no column takes.

    reason : what the driver has raised, without secrets, or NoResultFound where a row is missing that each ledger has;
    driver : its module; done : "written" or "read"; where : what is shown of the place
    """
    state = getattr(reason, "sqlstate", None) or ""
    words = str(reason).strip().splitlines()[0] if str(reason).strip() else repr(reason)
    could_not = f"the ledger in {where} could not be {done} ({words}): nothing of the call is there"
    if isinstance(reason, driver.IntegrityError):
        return Twice(str(reason))
    if isinstance(reason, sa.exc.NoResultFound) or state in GONE or "no such table" in words:
        return deleted(where, words)
    if state == OLDER or any(sign in words for sign in ("no such column", "has no column")):
        return Older(f"{could_not}. The backup of an older dither was put in its place: call again")
    if state == FORBIDDEN:
        return PermissionError(
            f"{could_not}. Reading needs SELECT on the tables of the ledger, writing INSERT, UPDATE and DELETE too, "
            f"and a new ledger CREATE in the schema: grant it, or open the ledger as another role"
        )
    if state in READ_ONLY or "readonly database" in words:
        return sealed(where, words)
    if state in UNPREPARED:
        return OSError(
            f"{could_not}. A pooler between here and the database gives each transaction another connection, and "
            f"prepared statements belong to one: leave prepare_threshold= out of the URL"
        )
    if any(sign in words for sign in ("connection option", "bad value for")):
        return ValueError(f"the URL of the ledger in {where} has an option that PostgreSQL does not take ({words})")
    if isinstance(reason, (driver.ProgrammingError, driver.DataError)):
        return None
    if any(sign in words for sign in ("not a database", "malformed")):
        return ValueError(f"{where} is not a ledger, or a damaged one ({words}): restore it from a backup")
    if state in AGAIN:
        return Crossed(
            f"another transaction stood in the way of a call to the ledger in {where} ({words}): nothing of the call "
            f"is there. Call again"
        )
    lost = postgres and state[:2] in ("", *LOST)
    sure = "if the connection was lost in the commit, all of the call is there, else " * lost
    return OSError(
        f"the ledger in {where} could not be {done} ({words}): {sure}nothing of the call is there. Make the database "
        f"reachable and writable, with room, and call again"
    )


def sealed(where: str, words: str = "it can only be read here") -> PermissionError:
    """The error of a call that writes where this process may only read."""
    return PermissionError(
        f"the ledger in {where} could not be written ({words}): nothing of the call is there. Open it where it can be "
        f"written: in a database that is no replica, or in a file and a folder that this user may write to"
    )


def deleted(where: str, words: str = "it has no tables") -> FileNotFoundError:
    """The error of a call where the tables of a ledger are gone, or rows that each ledger has."""
    return FileNotFoundError(
        f"the ledger in {where} is no longer there ({words}): nothing of the call is there. Its tables, or rows of "
        f"them, were deleted: restore it from a backup, or open it again to begin a new one"
    )


def unbegun(where: str, words: str = "has no bandit yet") -> ValueError:
    """The error of one who needs the bandit of a ledger that has none, or that only looks at one without terms."""
    return ValueError(f"the ledger in {where} {words}: dither.Live(home, bandit=...) gives it one")


def another(where: str, version: str, newest: str) -> ValueError:
    """The error of a ledger whose tables are of another version, where they may not be migrated, or are newer."""
    cure = "upgrade dither"
    if version < newest:
        cure = "open it once where it may be written, dither.log.Ledger(home).close(), which upgrades it"
    return ValueError(f"the ledger in {where} has tables of version {version}, and this dither knows {newest}: {cure}")
