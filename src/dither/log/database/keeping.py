"""The settings of a ledger, in the ledger."""

import json
from typing import Any

import sqlalchemy as sa

from dither.log.database import lessons, sql_tables

_SETTING = sql_tables.settings.c


def settings(connection: sa.Connection, *names: str) -> dict[str, Any]:
    """Settings by name, without their bytes: those of these names, or all."""
    fields = sa.select(_SETTING.name, _SETTING.value)
    rows = connection.execute(fields.where(_SETTING.name.in_(names)) if names else fields)
    return {row.name: json.loads(row.value) for row in rows}


def data(connection: sa.Connection, name: str) -> bytes | None:
    """The bytes of a setting; None where there is none of that name."""
    stored = connection.scalar(sa.select(_SETTING.bytes).where(_SETTING.name == name))
    return None if stored is None else bytes(stored)


def put(connection: sa.Connection, name: str, value: Any, data: bytes | None = None) -> None:
    """Set one setting. The caller's transaction makes it whole."""
    connection.execute(sa.delete(sql_tables.settings).where(_SETTING.name == name))
    connection.execute(sa.insert(sql_tables.settings).values(name=name, value=json.dumps(value), bytes=data))


def facts(connection: sa.Connection) -> dict[str, Any]:
    """What a ledger says of itself: names of features, ids of slots, which `Features` made the features."""
    return settings(connection).get("about", {})


def settle(connection: sa.Connection, **values: Any) -> dict[str, Any]:
    """The facts of a ledger, where those that it has not yet have these values from now on; None: no value.

    The lease is locked, so the first one to say a fact settles it.
    """
    about = facts(connection)
    new = {name: value for name, value in values.items() if value is not None and name not in about}
    if new:
        put(connection, "about", about | new)
        lessons.changed(connection)
    return about | new
