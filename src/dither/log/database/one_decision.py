"""All that the tables know of one decision, for whoever explains it."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from dither.log.database import keeping, lessons, sql_tables

_DECISION, _REWARD, _ARM = sql_tables.decisions.c, sql_tables.rewards.c, sql_tables.arms.c
_BATCH, _ERASURE = sql_tables.batches.c, sql_tables.erasures.c
_ARRAYS = ("features", "x", "probabilities")


class BatchFacts(NamedTuple):
    """What a ledger says of a batch."""

    mark: int
    arithmetic: str


@dataclass(frozen=True)
class DecisionRow:
    """A row of the table of decisions, read."""

    row: Any  # with the columns of the table, but for those below
    arms: tuple[str, ...] | None  # (n,) ids of the arms on offer; None: they have only positions
    features: np.ndarray | None  # (n, d) of the arms on offer; with slots (1, d)
    x: np.ndarray | None  # (d,) of the arm that was shown, or the context of the slots
    probabilities: np.ndarray | None  # (n,)
    extra: dict[str, Any]  # the columns that are not of the log, by name

    @property
    def erased(self) -> bool:
        """Whether its data was erased."""
        return self.row.erased is not None


def read(connection: sa.Connection, id: str) -> DecisionRow:
    """A decision. Raises LookupError for an id that none has."""
    row = connection.execute(sa.select(sql_tables.decisions).where(_DECISION.id == id)).first()
    if row is None:
        raise LookupError(f"no decision {id!r} in this ledger: pass the id that `choose` answered")
    features, x, probabilities = (
        None if (data := getattr(row, name)) is None else np.frombuffer(data, dtype="<f8") for name in _ARRAYS
    )
    if features is not None:
        features = features.reshape(-1, row.width)
    arms = None if row.arms is None else tuple(json.loads(row.arms))
    return DecisionRow(row, arms, features, x, probabilities, json.loads(row.extra) if row.extra else {})


def batch_facts(connection: sa.Connection, number: int) -> BatchFacts | None:
    """Of a batch; None: the ledger has none of that number."""
    row = connection.execute(sa.select(lessons.MARK, lessons.ARITHMETIC).where(_BATCH.number == number)).first()
    return None if row is None else BatchFacts(*row)


def arms_by(connection: sa.Connection, version: int) -> int:
    """How many arms the catalogue had at a version, those that were retired too."""
    added = sa.select(sa.func.count()).where(_ARM.what == "add", _ARM.version <= version)
    return connection.scalar(added) or 0


def slots(connection: sa.Connection) -> tuple[str, ...]:
    """The ids of the disjoint slots; () where there are none, or where they have only positions."""
    return tuple(keeping.facts(connection).get("slots") or ())


def erased_since(connection: sa.Connection, batch: int, time: int) -> bool:
    """Whether rewards of batches up to one, which a decision of that time knew, were erased after it."""
    later = sa.select(_ERASURE.number).where(_ERASURE.time > time)
    if connection.execute(later.limit(1)).first() is None:
        return False
    learnt = sa.exists().where(_REWARD.decision == _DECISION.number, _REWARD.batch.between(1, batch))
    those = sa.select(_DECISION.number).where(_DECISION.erased.is_not(None), _DECISION.erased.in_(later), learnt)
    return connection.execute(those.limit(1)).first() is not None
