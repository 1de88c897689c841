"""The settings of a ledger, in the ledger."""

import json
from typing import Any

import sqlalchemy as sa

from dither.log.database import sql_tables

_SETTING = sql_tables.settings.c


def settings(connection: sa.Connection) -> dict[str, Any]:
    """All settings by name, without their bytes."""
    return {row.name: json.loads(row.value) for row in connection.execute(sa.select(_SETTING.name, _SETTING.value))}


def data(connection: sa.Connection, name: str) -> bytes | None:
    """The bytes of a setting; None where there is none of that name."""
    stored = connection.scalar(sa.select(_SETTING.bytes).where(_SETTING.name == name))
    return None if stored is None else bytes(stored)


def put(connection: sa.Connection, name: str, value: Any, data: bytes | None = None) -> None:
    """Set one setting. The caller's transaction makes it whole."""
    connection.execute(sa.delete(sql_tables.settings).where(_SETTING.name == name))
    connection.execute(sa.insert(sql_tables.settings).values(name=name, value=json.dumps(value), bytes=data))
