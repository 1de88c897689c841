"""The features that made X of decisions, which change while a bandit runs; and X again, as other features make it.

    version of features    0: those with which the ledger began; n: those of the event n (`ledger_events`)
    in force               the version that makes X of decisions from now on. It stands in the row of the lease

A decision has the version that made its X. As another version has it, it is encoded anew from its records. Without
records, the columns that mean the same are carried over, and the others are 0 (`features.carried`). Where no column but
that of ones is, nothing is known of the row. Each of these is a function of the ledger, so all who learn agree.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from dither.features import Features, carried, raw_records
from dither.features.raw_records import RawRequest
from dither.log.database import keeping, ledger_events, lessons, sql_tables

WHAT = "features"  # the kind of the event; and, with the version, the setting that holds the features
CATALOGUE = "catalogue"  # the setting that holds the features of a catalogue; the user's column with its version
_DECISION, _ARM = sql_tables.decisions.c, sql_tables.arms.c
FIELDS = (*[_DECISION[name] for name in ("encoded", "arms", "arm", "extra")], sql_tables.records.c.bytes.label("raw"))


class OfDecision(NamedTuple):
    """What is known of a decision beside its X (`FIELDS`)."""

    encoded: int  # the version of the features that made X
    arms: str | None  # JSON of the ids on offer
    arm: int  # which of them was shown
    extra: str | None  # JSON of the user's columns
    raw: bytes | None  # its records


def versions(connection: sa.Connection) -> dict[int, Features]:
    """All features that decisions may have, by version; {}: they never changed."""
    events = [event.number for event in ledger_events.every(connection) if event.what == WHAT]
    data = {number: keeping.data(connection, f"{WHAT} {number}") or b"" for number in [0, *events]} if events else {}
    return {number: Features.from_bytes(one) for number, one in data.items()}


def in_force(connection: sa.Connection) -> int:
    """The version of the features of decisions to come."""
    return connection.scalar(sa.select(sql_tables.lease.c.encoded)) or 0


def put(connection: sa.Connection, number: int, features: Features, before: Features) -> None:
    """Keep the features of an event, and, with the first one, those before it."""
    if keeping.data(connection, f"{WHAT} 0") is None:
        keeping.put(connection, f"{WHAT} 0", before.fingerprint, before.to_bytes())
    keeping.put(connection, f"{WHAT} {number}", features.fingerprint, features.to_bytes())


def put_in_force(connection: sa.Connection, number: int) -> None:
    """Let a version of the features make X of decisions to come. The lease is locked."""
    features = versions(connection)[number]
    about = keeping.facts(connection) | {"encoded": number, "encoded_by": features.fingerprint}
    keeping.put(connection, "about", about | {"names": list(features.columns)})
    stored = keeping.settings(connection).get(CATALOGUE)
    if stored is not None:
        keeping.put(connection, CATALOGUE, stored | {"features": features.described})
    connection.execute(sa.update(sql_tables.lease).values(encoded=number))
    lessons.changed(connection)


class ArmsOfCatalogue:
    """The records of the arms of a catalogue, at each of its versions; and their slots."""

    def __init__(self) -> None:
        self._version = -1
        self._records: dict[str, list[tuple[int, dict[str, Any]]]] = {}

    def record(self, connection: sa.Connection, id: str, version: int) -> dict[str, Any]:
        """The record of an arm at a version. Raises ValueError where it had none."""
        if version > self._version:
            self._read(connection)
        for since, record in reversed(self._records.get(id, [])):
            if since <= version:
                return record
        raise ValueError(f"the catalogue had no arm {id!r} at version {version}")

    def slot(self, id: str) -> int:
        """The number of an arm, in the order in which they came."""
        return list(self._records).index(id)

    def _read(self, connection: sa.Connection) -> None:
        self._records = {}
        rows = connection.execute(sa.select(_ARM.version, _ARM.id, _ARM.record).order_by(_ARM.version)).all()
        for version, id, record in rows:
            if record is not None:
                self._records.setdefault(id, []).append((version, json.loads(record)))
        self._version = rows[-1].version if rows else 0


class Encoder:
    """X of decisions as one version of the features has it, whatever version has made it."""

    fields = FIELDS

    def __init__(self, number: int, every: dict[int, Features]) -> None:
        """number : the version; every : all of them, by version"""
        self.number, self.features = number, every[number].silent()
        self._every, self._places, self._arms = every, dict[int, np.ndarray | None](), ArmsOfCatalogue()

    def lesson(self, connection: sa.Connection, x: bytes | None, values: Sequence[Any]) -> bytes | None:
        """The features of the arm that was shown, (d,) float64 as bytes; None: they are not known.

        x : as the decision has them; values : of `fields`
        """
        of = OfDecision(*values)
        if x is None or of.encoded == self.number:
            return x
        X = self._again(connection, of, [of.arm])
        X = self.carried(connection, np.frombuffer(x, dtype="<f8"), of.encoded) if X is None else X[-1]
        return None if X is None else np.ascontiguousarray(X, dtype="<f8").tobytes()

    def rows(self, connection: sa.Connection, X: np.ndarray, values: Sequence[Any]) -> np.ndarray | None:
        """The features of all arms on offer (K, d), or the context (1, d); None: they are not known.

        X : as the decision has them; values : of `fields`
        """
        of = OfDecision(*values)
        if of.encoded == self.number:
            return X
        again = self._again(connection, of, range(len(X)))
        return self.carried(connection, X, of.encoded) if again is None else again

    def encode(self, connection: sa.Connection, of: OfDecision, places: Any) -> np.ndarray:
        """X of the arms at some places on offer (n, d), or of the context (1, d), from the records of a decision.

        Raises ValueError for records that the features refuse.
        """
        assert of.raw is not None
        request = raw_records.unpacked(bytes(of.raw))
        left = self.features.of_context(request.context)
        if self.features.form == "disjoint":
            return self.features.joined(left, None)[None]
        records, slots = self._records(connection, request, of, places)
        return self.features.joined(left, self.features.of_arms(records, slots=slots))

    def carries(self, connection: sa.Connection, encoded: int) -> bool:
        """Whether columns of rows of another version are carried over."""
        return self._carried(connection, encoded) is not None

    def carried(self, connection: sa.Connection, X: np.ndarray, encoded: int) -> np.ndarray | None:
        """Rows of another version; None where nothing is carried over."""
        places = self._carried(connection, encoded)
        return None if places is None else carried.carried(X, places)

    def _carried(self, connection: sa.Connection, encoded: int) -> np.ndarray | None:
        """The places of the columns that mean the same; None where there are none."""
        if encoded not in self._every:
            self._every = versions(connection)
        if encoded not in self._places:
            old, new = self._every[encoded], self.features
            places = carried.places(old, new)
            self._places[encoded] = places if carried.enough(places, new) else None
        return self._places[encoded]

    def _again(self, connection: sa.Connection, of: OfDecision, places: Any) -> np.ndarray | None:
        """`encode`; None where there are no records, or the features refuse them."""
        if of.raw is None:
            return None
        try:
            return self.encode(connection, of, places)
        except ValueError:
            return None

    def _records(
        self, connection: sa.Connection, request: RawRequest, of: OfDecision, places: Any
    ) -> tuple[list[dict[str, Any]], list[int] | None]:
        """The records of arms, and their slots in the hybrid form."""
        if isinstance(request.arms, list):
            return [request.arms[place] for place in places], None
        ids = [json.loads(of.arms or "[]")[place] for place in places]
        version, brought = json.loads(of.extra or "{}")[CATALOGUE], request.arms or {}
        records = [self._arms.record(connection, id, version) | brought.get(id, {}) for id in ids]
        return records, [self._arms.slot(id) for id in ids] if self.features.form == "hybrid" else None


def encoder(connection: sa.Connection, number: int | None = None) -> Encoder | None:
    """Who has X as a version of the features has it; None where they never changed, so that X is as it was stored.

    number : the version; None: that in force
    """
    every = versions(connection)
    return Encoder(in_force(connection) if number is None else number, every) if every else None
