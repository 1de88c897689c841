"""`Catalogue`: arms by id, with their features, which are added, changed and retired while the bandit is live.

    version n          the number of events so far; each change is one event more
    slot of an id      its number in the order in which ids came, for ever: what a slot has learnt is that id's
    A (n, q)           the factors of the arms (`Features.of_arm`), encoded once; a request multiplies the context

The events are the catalogue: `at(version)` is what it was, and other processes follow by `extend(events)`. A ledger may
keep them (`dither.Live`): then a change is in the ledger, or has not happened.
"""

import contextlib
import difflib
import hashlib
import json
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dither.base import errors, forks
from dither.features import arm_ids, catalogue_events, declared, records, slips, tokens, values
from dither.features.arm_ids import id_text
from dither.features.catalogue_events import ArmEvent, whole
from dither.features.encoder import SAME, Features, checked

FORMAT = 1
RETIRED = ("error", "keep")
CHANGES = ("_events", "_records", "_slots", "_ids", "_before", "_offered", "_A", "_active", "_compared")  # by events
_LOOKED_AT = 5000  # ids that are compared with an unknown one, which takes a tenth of a second


class RetiredArm(ValueError):
    """An arm was asked for that is retired."""

    def __init__(self, id: str, cure: str) -> None:
        super().__init__(id, cure)
        self.id, self.cure = id, cure

    def __str__(self) -> str:
        return f"the arm {self.id!r} is retired: leave it out, restore it, or {self.cure}"


class Catalogue:
    """Arms by id.

    Parameters
    ----------
    features : the `Features` of contexts and arms. A field of the arm that is called like `id` has the id, where a
        record lacks it
    arms : id -> record; or a list of records, or a frame, whose field `id` is the id
    id : the name of that field

    An id is a text in Unicode's form NFC; a number is written as text. A record is as for `Features.encode`. Calls from
    many threads are safe.

    Raises ValueError for records that the features cannot take, and TypeError for what is no record. After an error the
    catalogue is as it was before.
    """

    def __init__(self, features: Features, arms: Any = None, *, id: str = "id") -> None:
        self.features, self._field = checked(features), id
        self._keeper: Callable[[], catalogue_events.Keeper | None] | None = None  # a weak reference
        self._lock = threading.RLock()
        self._events: list[ArmEvent] = []
        self._records: dict[str, dict[str, Any]] = {}  # the last one of each id
        self._slots: dict[str, int] = {}
        self._ids: list[str] = []  # by slot
        self._before: dict[str, str] = {}  # NFC -> an id in another form, in a history from before ids were NFC
        self._offered = np.zeros(0, dtype=bool)  # by slot, with room for more
        self._A = np.zeros((0, self.features.of_width))  # by slot, with room for more
        self._active: tuple[np.ndarray, tuple[str, ...]] | None = None  # rows and ids on offer; None: look again
        self._compared = 0  # the version whose arms were compared
        for one, record in records.keyed([] if arms is None else arms, id):
            self.add(one, record)
        forks.tell(self)

    @property
    def version(self) -> int:
        """How many events there were: with every change it is one more."""
        return len(self._events)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids on offer, in the order of their slots."""
        with self._lock:
            return self._now()[1]

    @property
    def everything(self) -> tuple[str, ...]:
        """All ids that ever were, in the order of their slots."""
        with self._lock:
            return tuple(self._ids)

    @property
    def slots(self) -> int:
        """How many ids ever were: a bandit with disjoint slots needs so many (`Bandit.grow`)."""
        return len(self._ids)

    @property
    def records(self) -> dict[str, dict[str, Any]]:
        """The fields of the arms on offer, by id."""
        with self._lock:
            return {id: catalogue_events.copied(self._records[id]) for id in self.ids}

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __contains__(self, id: Any) -> bool:
        try:
            slot = self._slots.get(self._spelt(id))
        except ValueError:  # what can be no id
            return False
        return slot is not None and bool(self._offered[slot])

    def add(self, id: Any, record: Any = None) -> int:
        """A new arm. -> the version. Raises ValueError for an id that was there before."""
        with self._changing():
            id = self._spelt(id)
            if id in self._slots:
                cure = "change it" if self._offered[self._slots[id]] else "restore it, or change it and restore it"
                raise ValueError(f"the arm {id!r} is in the catalogue: {cure}; or take another id")
            return self._append("add", id, self._plain(id, {} if record is None else record))

    def change(self, id: Any, record: Any) -> int:
        """Other features for an arm: the fields that the record has; the other fields stay. -> the version."""
        with self._changing():
            id = self._there(id)
            return self._append("change", id, self._plain(id, self._known(id, records.record(record, f"arm {id!r}"))))

    def retire(self, id: Any) -> int:
        """Take an arm off the offer. Its features and its slot stay. -> the version."""
        with self._changing():
            id = self._there(id)
            if not self._offered[self._slots[id]]:
                raise ValueError(f"the arm {id!r} is retired already")
            return self._append("retire", id, None)

    def restore(self, id: Any) -> int:
        """Put a retired arm on offer again. -> the version."""
        with self._changing():
            id = self._there(id)
            if self._offered[self._slots[id]]:
                raise ValueError(f"the arm {id!r} is on offer: only a retired arm can be restored")
            return self._append("restore", id, None)

    def slot(self, id: Any) -> int:
        """The slot of an id, for ever. Raises LookupError, with ids that are spelt alike, for an unknown id."""
        with self._lock:
            return self._slots[self._there(id)]

    def id(self, slot: int) -> str:
        """The id of a slot, such as `decision.arm` of a bandit with disjoint slots."""
        with self._lock:
            if not whole(slot) or not 0 <= slot < len(self._ids):
                raise LookupError(f"no slot {slot}: the catalogue has {len(self._ids)} slots")
            return self._ids[slot]

    def encode(self, context: Any, arms: Any = None, *, retired: str = "error") -> np.ndarray:
        """X of a request, (K, d), or of B requests, (B, K, d). In the disjoint form the context, (d,) or (B, d).

        context : as for `Features.encode`
        arms : (K,) ids; for B requests also (B, K). None: `ids`, all that are on offer. Or id -> record, for B requests
            also B of them: what the record has counts in this request, and the catalogue has the other fields. None
            brings nothing
        retired : a retired id among the arms: "error"; or "keep", for a request with `mask`

        Raises LookupError for an unknown id; ValueError for a retired one, and for a record without a field of an arm.
        """
        errors.one_of("retired", retired, RETIRED)
        left = self.features.of_context(context)
        arms = arms if isinstance(arms, (list, tuple)) else records.listed(arms)  # once, as it may be a generator
        with self._lock:
            rows = self._rows(arms, retired)
            right = self._A.take(rows, axis=0)
            if (brought := arm_ids.brought(arms)) is not None:
                right = self._with_records(right, rows, brought)
        if self.features.form == "disjoint":
            return self.features.joined(left, None)
        if right.ndim == 3 and (left.ndim == 1 or len(left) != len(right)):
            n = "one context" if left.ndim == 1 else f"{len(left)} contexts"
            raise ValueError(f"arms has the ids of {len(right)} requests, and there is {n}: give a list for each")
        return self.features.joined(left, right)

    def mask(self, arms: Any = None, *, slots: int | None = None) -> np.ndarray:
        """Which arms are on offer, True or False.

        arms : (K,) ids that the request has; None: all. Without disjoint slots -> (K,), in the order of the arms (None:
            of `everything`). In the disjoint form -> (slots,): a slot is on offer if its id is, and is among the arms
        slots : how many slots the bandit has; None: `slots`

        Raises LookupError for an unknown id, ValueError for more ids than slots.
        """
        with self._lock:
            rows = np.arange(self.slots) if arms is None else self._rows(arms, "keep")
            if self.features.form != "disjoint":
                if slots is not None:
                    raise ValueError(f"slots is for the disjoint form; the form is {self.features.form!r}")
                return self._offered[rows]
            n = self.slots if slots is None else slots
            if n < self.slots:
                raise ValueError(f"the catalogue has {self.slots} ids for {n} slots: bandit.grow({self.slots})")
            out = np.zeros(n, dtype=bool)
            out[rows] = self._offered[rows]
            return out

    @property
    def events(self) -> tuple[ArmEvent, ...]:
        """All changes, in order. They are copies."""
        return tuple(catalogue_events.event_of(event) for event in self._events)

    def extend(self, events: Iterable[Any]) -> int:
        """Follow another catalogue: take its events that this one does not have. -> the version.

        Raises ValueError if an event is another one here, or if one is left out. Nothing has changed then.
        """
        with self._changing():
            return self._extended(events)

    def _extended(self, events: Iterable[Any]) -> int:
        """`extend`, here alone."""
        with self._lock:
            copies = [catalogue_events.event_of(event) for event in events]
            new = [event for event in copies if event.version > self.version]
            for event in copies[: len(copies) - len(new)]:
                if self._events[event.version - 1] != event:
                    raise ValueError(f"event {event.version} is {event} there and another one here: two histories")
            if [event.version for event in new] != list(range(self.version + 1, self.version + 1 + len(new))):
                raise ValueError(f"the events must go on from version {self.version} without a gap")
            before = self.version
            try:
                for event in new:
                    self._happen(event, count=False)
            except BaseException:
                self._back_to(before)
                raise
            return self.version

    def at(self, version: int) -> "Catalogue":
        """The catalogue as it was at a version."""
        if not whole(version) or not 0 <= version <= self.version:
            raise ValueError(f"version must be from 0 to {self.version}, got {version!r}")
        return Catalogue._of(self.features, self._events[:version], self._field)

    def encoded_by(self, features: Features) -> "Catalogue":
        """The same history with other Features, such as newly fitted ones."""
        return Catalogue._of(features, self.events, self._field)

    @property
    def fingerprint(self) -> str:
        """16 hex digits: catalogues with the same fingerprint have the same features and the same history."""
        return hashlib.sha256(self.to_bytes()).hexdigest()[:16]

    def to_bytes(self) -> bytes:
        """The features and the history as JSON; `from_bytes` reads it."""
        events = [list(event) for event in self.events]
        described = {"format": FORMAT, "features": self.features.described, "id": self._field, "events": events}
        return declared.canonical(described)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Catalogue":
        """The catalogue that `to_bytes` wrote. Raises ValueError for anything else."""
        with declared.damaged(data, "no Catalogue, or a damaged one"):
            described = json.loads(data)
            if type(described["format"]) is not int or not 1 <= described["format"] <= FORMAT:
                raise ValueError(f"its format is {described['format']!r}, and this version reads up to {FORMAT}")
            events = [catalogue_events.event_of(event) for event in described["events"]]
            return cls._of(Features.of_description(described["features"]), events, described["id"])

    def __repr__(self) -> str:
        return f"Catalogue({len(self)} arms on offer of {self.slots}, version {self.version}, {self.features!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        with self._lock:
            return Catalogue.from_bytes, (self.to_bytes(),)

    def _forked(self) -> None:
        """Called in the child of a fork: a lock that no thread of the parent holds."""
        self._lock = threading.RLock()

    @classmethod
    def _of(cls, features: Features, events: Sequence[ArmEvent], field: str) -> "Catalogue":
        """A catalogue with this history. Nothing is counted: it was, when it happened."""
        catalogue = cls(features, id=field)
        for event in events:
            catalogue._happen(event, count=False)
        return catalogue

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """A block that makes events. Where a keeper has them too, it has them when the block ends, or nobody has."""
        keeper = None if self._keeper is None else self._keeper()
        if keeper is None:
            with self._lock:
                yield
            return
        with keeper.turn():  # first, as whoever has the turn may take the lock
            with self._lock:
                before = self.version
                try:
                    with keeper.keeping() as keep:
                        before = self.version  # with the events of others, which stay in any case
                        yield
                        keep(self._events[before:])
                except BaseException:
                    self._back_to(before)
                    raise
            keeper.kept()

    def _back_to(self, version: int) -> None:
        """As it was at a version."""
        if self.version != version:
            before = vars(Catalogue._of(self.features, self._events[:version], self._field))
            self.__dict__ |= {name: before[name] for name in CHANGES}

    def _empty(self, features: Features) -> None:
        """As it was before its first event, with other features."""
        begun = vars(Catalogue(features, id=self._field))
        self.__dict__ |= {name: begun[name] for name in CHANGES}
        self.features = features

    def _append(self, what: str, id: str, record: dict[str, Any] | None) -> int:
        self._happen(ArmEvent(self.version + 1, what, id, record), count=True)
        return self.version

    def _happen(self, event: ArmEvent, *, count: bool) -> None:
        """One change. Whatever can fail comes before anything is changed."""
        errors.one_of("what happened", event.what, catalogue_events.KINDS_OF_EVENTS)
        new, record = event.id not in self._slots, event.what in ("add", "change")
        if event.version != self.version + 1 or new != (event.what == "add") or record != (event.record is not None):
            raise ValueError(f"{event} cannot follow version {self.version}")
        slot = self._slots.get(event.id, len(self._slots))
        if event.record is not None:
            row = self._encoded(event.id, event.record, slot, count)
            if slot >= len(self._A):
                self._A, self._offered = (
                    catalogue_events.longer(self._A, slot),
                    catalogue_events.longer(self._offered, slot),
                )
            self._A[slot] = row
            self._records[event.id] = event.record
        if event.what == "add":
            self._slots[event.id] = slot
            self._ids.append(event.id)
            if (form := tokens.nfc(event.id)) != event.id:
                self._before.setdefault(form, event.id)
        if event.what != "change":
            self._offered[slot] = event.what != "retire"
        self._events.append(event)
        self._active = None

    def _encoded(self, id: str, record: dict[str, Any], slot: int, count: bool) -> np.ndarray:
        """The factors of an arm."""
        f = self.features
        if f.form == "disjoint":
            return np.zeros(f.of_width)
        if f.form == "hybrid" and slot >= (f.slots or 0):
            raise ValueError(
                f"no slot is left for {id!r}: the features have slots={f.slots}. Make Features with more, and learn "
                "again from the log"
            )
        return f.of_arm(record, slot=slot if f.form == "hybrid" else None, called=f"arm {id!r}", count=count)

    def _with_records(self, right: np.ndarray, rows: np.ndarray, brought: list[Any]) -> np.ndarray:
        """The factors (K, q) or (B, K, q) of these rows, with those of the records that a request brings."""
        at = [i for i, record in enumerate(brought) if record is not None]
        ids = [self._ids[row] for row in rows.flat[at]]
        named = [f"arm {id!r}" for id in ids]
        each = [records.record(brought[i], called) for i, called in zip(at, named, strict=True)]
        whole = [self._known(id, fields) if fields else self._records[id] for id, fields in zip(ids, each, strict=True)]
        if whole and self.features.arm:
            slots = rows.flat[at] if self.features.form == "hybrid" else None
            right.reshape(-1, right.shape[-1])[at] = self.features.of_arms(whole, slots=slots, called=named)
        return right

    def _known(self, id: str, fields: dict[str, Any]) -> dict[str, Any]:
        """All fields of an arm: those given, and else its own. Raises ValueError where none is a field of it."""
        before = self._records[id]
        if not fields.keys() & before.keys():
            cure = ", ".join(map(repr, before)) or "the features have none"
            raise ValueError(f"the record for {id!r} has no field of an arm: {cure}; got {list(fields)}")
        if fields.keys() - before.keys():
            self.features.tell(slips.nearly(tuple(fields), tuple(before)), "arm")
        return before | fields

    def _plain(self, id: str, record: Any) -> dict[str, Any]:
        """The fields of an arm as JSON has them; the id stands for a field that is called like it."""
        if self._field in self.features.arm:
            record = {self._field: id} | records.record(record, f"arm {id!r}")
        return self.features.arm_record(record, called=f"arm {id!r}")

    def _now(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """The rows on offer, and their ids."""
        if self._active is None:
            rows = np.flatnonzero(self._offered[: self.slots])
            self._active = rows, tuple(self._ids[slot] for slot in rows)
        return self._active

    def _there(self, id: Any) -> str:
        """The id as text. Raises LookupError, with ids that are spelt alike, for an unknown id."""
        id = self._spelt(id)
        if id not in self._slots:
            near = difflib.get_close_matches(id, self._ids[:_LOOKED_AT], n=3)
            like = f"spelt alike are {', '.join(map(repr, near))}" if near else f"it has {self.slots} ids; add it first"
            raise LookupError(f"no arm {id!r} in the catalogue: {like}")
        return id

    def _spelt(self, id: Any) -> str:
        """An id as text, as this catalogue has it. Raises ValueError as `id_text` does."""
        text = id_text(id)
        raw = values.text(id) if isinstance(id, str) else text
        return raw if raw in self._slots else self._before.get(text, text)

    def _texts(self, arms: Any) -> tuple[str, ...]:
        """The ids of the arms of a request, (K,), as this catalogue has them. Raises as `arm_ids.id_texts`."""
        if type(arms) is list and set(map(type, arms)) == {str}:
            different = set(arms)
            if len(different) == len(arms) and different <= self._slots.keys():  # as nearly always: nothing to do
                return tuple(arms)
        texts = arm_ids.id_texts(arms)
        return tuple(map(self._spelt, texts)) if self._before else texts

    def _rows(self, arms: Any, retired: str) -> np.ndarray:
        """The rows of these arms, (K,) or (B, K)."""
        if arms is None:
            rows, ids = self._now()
            if not ids:
                raise ValueError(f"no arm is on offer: all {self.slots} are retired, or none was added")
            if self._compared != self.version:
                self._compared = self.version
                if len(rows) > 1 and self.features.arm and (self._A[rows] == self._A[rows[0]]).all():
                    warnings.warn(SAME, UserWarning, stacklevel=4)
            return rows
        arms = arm_ids.id_list(arms)
        if not isinstance(arms[0], (str, int)):  # lists of ids, one for each request
            arms = [list(ids) if isinstance(ids, Mapping) else records.column(ids) for ids in arms]
        if isinstance(arms[0], (list, tuple)):
            if len({len(ids) for ids in arms}) > 1:
                raise ValueError("each request of a batch must have as many arms: encode them one by one")
            return np.stack([self._rows(ids, retired) for ids in arms])
        try:
            rows = np.array([self._slots[id] for id in arms])
        except (KeyError, TypeError):
            rows = np.array([self._slots[self._there(id)] for id in arms])
        if retired == "error" and not self._offered[rows].all():
            gone = id_text(arms[int(np.argmin(self._offered[rows]))])
            raise RetiredArm(gone, "pass retired='keep' to `encode` and the mask to the bandit")
        return rows
