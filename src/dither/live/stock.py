"""The catalogue of a ledger. Its events are in the ledger, so every process that opens the ledger has the same arms.

A change is checked and written in one transaction: it first takes in the events of other processes, then writes the new
one. The catalogue in memory changes only where the ledger did. `features.Catalogue` calls a `Keeper` for this.
"""

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dither.features import Catalogue, Features, counts
from dither.features.catalogue_events import ArmEvent
from dither.live.learner import Learner
from dither.log import Ledger
from dither.log.database import arm_events, keeping, lessons

KEPT = "catalogue"  # the setting that holds the features, and the name of the field for ids


class CatalogueKeeper:
    """Keeps the events of a catalogue in a ledger (`features.catalogue_events.Keeper`)."""

    def __init__(self, ledger: Ledger, catalogue: Catalogue, learner: Learner) -> None:
        """learner : gives new arms their slots."""
        self.ledger, self.catalogue, self._learner = ledger, catalogue, learner
        self._latest = arm_events.NONE  # the last event of the ledger that the catalogue has
        self._encoded_by = catalogue.features.fingerprint
        self._written: arm_events.Latest | None = None  # what a transaction has put, which is not committed yet
        other = None if catalogue._keeper is None else catalogue._keeper()
        if isinstance(other, CatalogueKeeper) and not other.ledger.closed:
            raise ValueError(
                f"this catalogue is that of the ledger in {other.ledger.database.where}, which is open: pass a copy, "
                f"Catalogue.from_bytes(catalogue.to_bytes())"
            )

    def check(self, ids: Sequence[str]) -> None:
        """Raise ValueError where slots that have learnt would be those of other arms. ids : of the slots so far"""
        arms = self.catalogue.everything
        named = [slot for slot, id in enumerate(ids) if id != str(slot)]  # a slot that has no id yet may get one
        if self.slots and any(arms[slot : slot + 1] != (ids[slot],) for slot in named):
            raise ValueError(
                f"the slots of the ledger in {self.ledger.database.where} are {list(ids)}, and those of the catalogue "
                f"{list(arms)}. A slot keeps its id, since what it learnt is of that arm: pass a catalogue whose first "
                f"arms are these, in this order"
            )

    def attach(self) -> None:
        """From now on the catalogue is changed in the ledger."""
        self.catalogue._keeper = weakref.ref(self)

    def detach(self) -> None:
        """The catalogue is the caller's own again."""
        self.catalogue._keeper = None

    @property
    def slots(self) -> int:
        """How many disjoint slots the arms need; 0: none."""
        return self.catalogue.slots if self.catalogue.features.form == "disjoint" else 0

    def turn(self) -> Any:
        """Of the ledger."""
        return self.ledger.turn

    @contextlib.contextmanager
    def keeping(self) -> Iterator[Callable[[Sequence[ArmEvent]], None]]:
        """One transaction, in which no other process changes the catalogue."""
        with self.ledger.holding() as connection:
            lessons.hold(connection)
            self._take(*self._newer(connection))
            with counts.heard(self.ledger.database.tallies.of_features):
                yield lambda events: self._put(connection, events)

    def kept(self) -> None:
        """What was put is committed. Let the bandit grow, where this process learns."""
        self._latest, self._written = self._written or self._latest, None
        if self._learner.holds:
            self._learner.attempt("learning", self._learner.learn)

    def look(self) -> None:
        """Take in what other processes have changed."""
        with self.ledger.turn, self.catalogue._lock:  # in this order, and none of the two while events are read
            with self.ledger.database.reading() as connection:
                newer = self._newer(connection)
            self._take(*newer)

    def _newer(self, connection: Any) -> tuple[arm_events.Newer, Features | None]:
        """The events of others that the catalogue lacks, and other features, with which it has all of them anew."""
        stored = keeping.settings(connection)[KEPT]["features"]
        if stored["fingerprint"] != self._encoded_by:
            return arm_events.since(connection), Features.of_description(stored)
        version = self._latest.version
        event = self.catalogue._events[version - 1] if version else None
        return arm_events.since(connection, self._latest, event), None

    def _take(self, newer: arm_events.Newer, features: Features | None) -> None:
        """Take in events of others. Where the ledger has another history, the catalogue has that one from now on."""
        with self.catalogue._lock:
            before = self.catalogue.events, self.catalogue.features
            if newer.other or features is not None:
                self.catalogue._empty(features or self.catalogue.features)
            try:
                self.catalogue._extended(newer.events)
            except BaseException:
                if features is not None:
                    self.catalogue._empty(before[1])
                self.catalogue._extended(before[0])  # which it has, unless it was taken back
                raise
            self._latest, self._encoded_by = newer.latest, self.catalogue.features.fingerprint

    def _put(self, connection: Any, events: Sequence[ArmEvent]) -> None:
        self._learner.stands.room(self.slots)
        self._written = arm_events.put(connection, self.ledger.database, events)
        if self.slots:
            about = keeping.facts(connection)
            keeping.put(connection, "about", about | {"slots": list(self.catalogue.everything)})


def opened(ledger: Ledger, learner: Learner, new: Catalogue | None) -> CatalogueKeeper | None:
    """The catalogue of a ledger, which may be passed anew, or with further events; None where it has none.

    Raises ValueError where it has another one.
    """
    where = ledger.database.where
    with ledger.holding() as connection:
        lessons.hold(connection)
        stored = keeping.settings(connection).get(KEPT)
        if stored is None and new is None:
            return None
        features = None if stored is None else Features.of_description(stored["features"])
        catalogue = new if new is not None else Catalogue(features, id=stored["id"])  # type: ignore[arg-type, index]
        keeper = CatalogueKeeper(ledger, catalogue, learner)
        if features is None:
            keeper.check(keeping.facts(connection).get("slots") or [])
            keeping.put(connection, KEPT, {"features": catalogue.features.described, "id": catalogue._field})
        elif new is not None:
            features.check(new.features, what="the features of catalogue=", whose=f"the ledger in {where}")
        newer = arm_events.since(connection)
        before = catalogue.version
        try:
            catalogue._extended(newer.events)
        except ValueError as reason:
            raise ValueError(
                f"the ledger in {where} has another catalogue than catalogue= ({reason}). Leave catalogue= out, since "
                f"the ledger has it; then change the one of `live.catalogue`, by add, change, retire and restore"
            ) from None
        try:
            keeper._put(connection, catalogue.events[len(newer.events) :])
        except BaseException:
            catalogue._back_to(before)
            raise
    keeper._latest, keeper._written = keeper._written or newer.latest, None
    keeper.attach()
    return keeper
