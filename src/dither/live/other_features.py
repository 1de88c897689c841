"""Other features for a running bandit: an event. What was learnt is learnt again, as they make X of it.

All is checked in the transaction that writes the event, before anything is stored: that the features take the records
of all decisions that have some, and the arms of the catalogue. So whoever learns afterwards is refused nothing.
"""

import json
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from dither.bandit.bandit import Bandit
from dither.base import errors
from dither.features import Catalogue, Features, records
from dither.features.catalogue_events import ArmEvent
from dither.features.encoder import checked
from dither.live import alarms, settling
from dither.live.course import Course
from dither.live.learner import Learner
from dither.live.taught import shadow_of
from dither.log.database import arm_events, encodings, keeping, ledger_events, lessons, reward_terms, sql_tables
from dither.log.database.encodings import Encoder, OfDecision
from dither.models import adapting

_DECISION, _REWARD, _ARM = sql_tables.decisions.c, sql_tables.rewards.c, sql_tables.arms.c
PAGE = 1000  # decisions that are read together
AGAIN, CARRIED, LEFT_OUT = "learnt again", "carried over", "left out"


def change(
    connection: Any,
    learner: Learner,
    first: Bandit,
    way: Course,
    *,
    features: Features,
    bandit: Bandit | None,
    arms: Mapping[Any, Any] | None,
    carry: bool,
    author: str,
) -> None:
    """Write the event, unless these are the features in force. `Live.change` says what is passed. The lease is locked.

    first : the bandit of the settings of now, as it begins; way : its course
    """
    errors.true_or_false("carry", carry)
    before = _before(connection, first)
    if checked(features).fitted and features.fingerprint == before.fingerprint and bandit is None:
        return  # they are in force already
    new = _fitting(connection, first, before, checked(features), bandit)
    alarms.fits(connection, new)
    settling.grows(new, max(first.slots or 0, lessons.slots(connection)))
    reward_terms.learnable(connection, learner.ledger.database, adapting.adapted(new.model).support)
    events = _completed(connection, features, arms)
    number = (connection.scalar(sa.select(sa.func.max(sql_tables.events.c.number))) or 0) + 1
    every = encodings.versions(connection) or {0: before}
    for event in events:  # in the transaction, so the check of the records sees them
        row = sa.update(sql_tables.arms).where(_ARM.version == event.version)
        connection.execute(row.values(record=json.dumps(event.record, allow_nan=False)))
    counts = _counted(connection, Encoder(number, every | {number: features}), way, carry=carry)
    details = {
        "features": features.fingerprint,
        "before": before.fingerprint,
        "new columns": sorted(set(features.columns) - set(before.columns)),
        "columns that went": sorted(set(before.columns) - set(features.columns)),
        "rows": counts,
    }
    home = learner.ledger.database
    ledger_events.put(connection, home, encodings.WHAT, details, author=author, data=new.to_bytes())
    encodings.put(connection, number, features, before)
    put_in_force(connection, number)


def put_in_force(connection: Any, number: int) -> None:
    """Let a version of the features make X from now on. A shadow has its own, so it ends where they are others."""
    if encodings.in_force(connection) == number:
        return
    encodings.put_in_force(connection, number)
    if shadow_of(connection).first is not None:
        settling.put_shadow(connection, None, learns=False)


def _before(connection: Any, first: Bandit) -> Features:
    """The features in force. Raises ValueError where X comes as it is."""
    stored = keeping.settings(connection).get(encodings.CATALOGUE)
    if stored is not None:
        return Features.of_description(stored["features"])
    if first.features is None:
        raise ValueError(
            "this ledger gets X itself, so there are no features that could be others: begin a new ledger with a "
            "bandit that has Features, and store='records'"
        )
    return first.features


def _fitting(connection: Any, first: Bandit, before: Features, new: Features, bandit: Bandit | None) -> Bandit:
    """The bandit that learns from these features, as it begins. Raises ValueError for what cannot take their place."""
    if (before.form == "disjoint") != (new.form == "disjoint"):
        raise ValueError(
            f"the form of the features is {before.form!r}, and cannot become {new.form!r}: what slots have learnt, and "
            "what arms with features of their own have, says nothing of one another. Begin a new ledger"
        )
    if new.fingerprint == before.fingerprint:
        raise ValueError("features= are those that the ledger has: pass bandit= alone")
    if first.baseline is not None:
        raise ValueError(
            "the bandit keeps a baseline, whose rounds are added up in the features of each: they cannot change. Begin "
            "a new ledger"
        )
    if bandit is None:
        if first.observations:
            raise ValueError(
                f"the bandit had learnt {first.observations} rewards before the ledger began, in the features of "
                "before: pass bandit=, with these features, as it is to begin"
            )
        settings: dict[str, Any] = dict(floor=first.floor, monte_carlo=first.monte_carlo, seed=first.seed)
        return Bandit(first.model, first.policy, dim=new.dim, features=new, **settings)
    if bandit.features is None or bandit.features.fingerprint != new.fingerprint:
        raise ValueError("bandit= must have the features that are passed: dither.LinFP(features=features, ...)")
    if bandit.baseline is not None:
        raise ValueError("bandit= keeps a baseline, which must add up all rounds from the first on: leave it out")
    most = max(first.slots or 0, lessons.slots(connection))
    if first.slots is not None and bandit.slots not in range(first.slots, most + 1):
        raise ValueError(f"bandit= must have disjoint={most}, the slots that there are; it has {bandit.slots}")
    return bandit


def _completed(connection: Any, features: Features, arms: Mapping[Any, Any] | None) -> list[ArmEvent]:
    """The events of the catalogue whose arms get fields that they had not, with these.

    Raises ValueError where there is no catalogue, or an arm of it, and where the features refuse one of the arms.
    """
    stored = keeping.settings(connection).get(encodings.CATALOGUE)
    if stored is None:
        if arms is not None:
            raise ValueError("arms= are for a catalogue, and the ledger has none: leave them out")
        return []
    events, passed = arm_events.since(connection).events, {str(id): one for id, one in (arms or {}).items()}
    ids = {event.id for event in events}
    if odd := sorted(passed.keys() - ids):
        raise errors.unknown("arm", odd[0], names=sorted(ids))
    whole, changed = [], []
    for event in events:
        after = event
        if event.record is not None and event.id in passed:
            more = records.record(passed[event.id], f"arm {event.id!r}")
            new = {name: kind for name, kind in features.arm.items() if name not in event.record and name in more}
            read = records.table(more, list(new), what=f"arm {event.id!r}", optional=frozenset())
            after = event._replace(record=event.record | records.plain(read, new, what=f"arm {event.id!r}"))
        whole.append(after)
        if after != event:
            changed.append(after)
    try:
        Catalogue._of(features, whole, stored["id"])
    except ValueError as reason:
        raise ValueError(
            f"the features refuse an arm of the catalogue: {reason}. Pass the fields that arms had not, "
            "arms={id: {field: value}}, of retired arms too"
        ) from None
    return changed


def _counted(connection: Any, encoder: Encoder, way: Course, *, carry: bool) -> dict[str, int]:
    """How the rows that were learnt are learnt now.

    Raises ValueError, naming the decision, where the features refuse its records and it is not to be carried over.
    """
    counts = dict.fromkeys((AGAIN, CARRIED, LEFT_OUT), 0)
    teaches = sql_tables.teaches(_REWARD.standing) & (_REWARD.part == "") & (_REWARD.batch > 0)
    for low, high in way.gaps:
        teaches &= ~_REWARD.batch.between(low, high)
    learnt = sa.exists().where(teaches, _REWARD.decision == _DECISION.number).label("learnt")
    fields = sa.select(_DECISION.number, _DECISION.id, _DECISION.x, learnt, *encodings.FIELDS)
    fields = fields.outerjoin_from(sql_tables.decisions, sql_tables.records).where(_DECISION.erased.is_(None))
    fields, at = fields.order_by(_DECISION.number).limit(PAGE), -1
    while page := connection.execute(fields.where(_DECISION.number > at)).all():
        for row in page:
            how = _taught(connection, encoder, row, carry=carry)
            counts[how] += bool(row.learnt)
        at = page[-1].number
    return counts


def _taught(connection: Any, encoder: Encoder, row: Any, *, carry: bool) -> str:
    of = OfDecision(*row[4:])
    if of.raw is not None:
        try:
            encoder.encode(connection, of, [of.arm])
            return AGAIN
        except ValueError as reason:
            if not carry:
                raise ValueError(
                    f"the features refuse what decision {row.id!r} was made of: {reason}. Nothing has changed. Let a "
                    "field that older records lack be missing there, absent='missing'; or pass carry=True, and such a "
                    "row keeps the columns that mean the same"
                ) from None
    if row.x is None:
        return LEFT_OUT
    return CARRIED if encoder.carries(connection, of.encoded) else LEFT_OUT
