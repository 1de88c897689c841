"""The side of `Live` that decides: a bandit with draws of its own, which follows what was learnt.

A decision has the state after some batch. A model with a half_life has faded since then, to the time of the decision.
So the state is `replay(batch)`, grown to the slots of the row, and `advance(time)`: a function of the ledger.
"""

import copy
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from dither.bandit.bandit import Bandit
from dither.base import errors
from dither.deciding.decision import Choice
from dither.deciding.demands import Demands
from dither.deciding.request import Request
from dither.features import Catalogue, counts
from dither.live import beside, kept_requests, repeats, requests, same_settings
from dither.live.learner import Learner
from dither.live.requests import Call
from dither.live.shown import Shown, ShownMany
from dither.live.taught import grow
from dither.log import Ledger, acting, record, schema
from dither.log.database.committing import Entering, Stale
from dither.log.database.lessons import DecisionBasis
from dither.log.record import Recorder

STORED = ("all", "shown", "records")


class Begun(NamedTuple):
    """A call before anything is drawn, and before any lock."""

    time: datetime  # of the decision
    request: Request | None  # None where there is a catalogue
    changes: int  # the mark of what this process knew of the ledger, before it used any of it


@dataclass(frozen=True)
class Kept:
    """What is kept of each decision. The parameters of `Live` say what each means."""

    store: str
    probabilities: bool

    def __post_init__(self) -> None:
        errors.one_of("store", self.store, STORED)

    @property
    def X(self) -> bool:
        """Whether the features of all arms on offer are."""
        return self.store != "shown"

    @property
    def records(self) -> bool:
        """Whether what X was made of is."""
        return self.store == "records"


class Decider:
    """Decides, and makes the rows of the ledger."""

    def __init__(
        self,
        bandit: Bandit,
        ledger: Ledger,
        learner: Learner,
        *,
        rule: beside.Apprentice | None,
        shadow: Bandit | None,
        catalogue: Catalogue | None,
        kept: Kept,
    ) -> None:
        """bandit : the one that acts; learner : whom it follows; shadow : the one that was passed."""
        self.bandit, self.rule, self.catalogue = bandit, rule, catalogue
        self._ledger, self._learner = ledger, learner
        self.shadow, self._shadow_facts = shadow, None if shadow is None else learner.stands.shadow_facts
        self._version = -1  # of what was learnt, as it is followed
        self._first: bytes | None = None  # the bandit of these settings, as it begins
        self._learnt: tuple[int, int | None] = 0, None  # the last batch of it, and the mark of this batch
        self._kept = kept
        self._recorder = self._recording()
        self.follow()

    def _recording(self) -> Recorder:
        """What is recorded of each decision, and of the settings with which it is made."""
        rule, kept = self.rule, self._kept
        ruled = None if rule is None else f"{acting.RULE} {rule.explore}"
        constants = record.constants(self.bandit if rule is None else None, policy=ruled)
        return Recorder(kept.X, False, kept.probabilities and rule is None, False, constants)

    # What was learnt

    def follow(self) -> None:
        """Decide from what is learnt by now."""
        with self._learner.lock:
            stands = self._learner.stands
            if stands.version == self._version or stands.torn:
                return
            if stands.first is not self._first and same_settings.differing(self.bandit, stands.bandit):
                self.bandit.follow(stands.bandit, settings=True)
                self._recorder = self._recording()
            else:
                self.bandit.follow(stands.bandit)
            self._first = stands.first
            facts = stands.shadow_facts
            if stands.shadow is None:
                self.shadow = None
            elif self.shadow is None or facts != self._shadow_facts:  # by its bytes too: in a ledger that was restored
                self.shadow = copy.deepcopy(stands.shadow)  # numbers come again
                self.shadow.reseed()
            else:
                self.shadow.follow(stands.shadow)
            self._shadow_facts = facts
            self._version, self._learnt = stands.version, (stands.batch, stands.mark)
            judged = [one for one in (self.bandit, self.shadow) if one is not None]
            self._clocked = [one for one in judged if one.clocked]

    def _stand(self, time: datetime) -> None:
        """Be what is learnt by now, faded to the time of a decision, where a model has a half_life."""
        if self._clocked:
            self._version = -1  # from what was learnt, so that no rounding of earlier decisions is left
        self.follow()
        at = record.micros(time) / 1e6
        for one in self._clocked:
            if one is self.shadow:
                self._of_shadow(functools.partial(Bandit.advance, at=at), when="when its clock was set")
            else:
                one.advance(at)

    def _of_shadow(self, ask: Callable[[Bandit], Any], *, when: str) -> Any:
        """What the shadow answers; None: there is none, or it raises and is set aside. What was learnt is locked."""
        if self.shadow is None:
            return None
        try:
            return ask(self.shadow)
        except Exception as reason:
            if self._shadow_facts is not None:
                self._learner.stands.set_aside(self._shadow_facts, reason, when)
            self.shadow = None
            return None

    @property
    def lock(self) -> Any:
        """Held while nothing more is learnt."""
        return self._learner.lock

    # A decision

    def decide(self, call: Call) -> Entering:
        """One request, or B, and what the user gets of it once it is stored.

        Raises Stale where what this process knows of the ledger changes meanwhile.
        """
        begun = self.begun(call)
        with self._learner.lock:
            return self.entry(self.choose(self.request(begun, call)), call, begun)

    def begun(self, call: Call) -> Begun:
        """The call, before any lock, as the ledger may be asked for names."""
        database = self._ledger.database
        changes = database.mark
        time = datetime.now(UTC) if call.time is None else schema.moment(call.time)
        begun = Begun(time, self._early(call), changes)
        if database.mark != changes:  # this call has named the features
            raise Stale
        return begun

    def _early(self, call: Call) -> Request | None:
        if self.catalogue is not None:
            return None
        if self.bandit.slots is not None:
            self.follow()  # it may have more slots by now, if another process has given the ledger a catalogue
        request = self._read(call)
        if request.columns is not None:
            columns = self._ledger.columns(request.columns)
            if columns != request.columns and self.bandit.features is not None:  # which are others by now
                self.follow()
                raise Stale
            if columns != request.columns:  # another process was the first to name them
                self.bandit.columns = columns
                request = self._read(call)
        if self.bandit.slots is not None:
            request = request._replace(ids=self._slot_ids(request.ids))
        return request

    def _read(self, call: Call) -> Request:
        """The request, where there is no catalogue: most often X itself."""
        if self.bandit.features is None and call.arms is None:
            return self.bandit.read(call.context, call.mask)
        return self._encoded(call)

    def _encoded(self, call: Call) -> Request:
        """The request, as features make X of it. Raises Stale where others come meanwhile, in another thread."""
        before = self._features()
        try:
            with counts.heard(self._ledger.database.tallies.of_features):
                return requests.read(self.bandit, self.catalogue, call)
        except Exception:
            if any(one is not other for one, other in zip(before, self._features(), strict=True)):
                raise Stale from None
            raise

    @property
    def encoded_by(self) -> str | None:
        """Fingerprint of the features that make X; None: X comes as it is."""
        return None if self.bandit.features is None else self.bandit.features.fingerprint

    def _features(self) -> tuple[Any, Any]:
        return self.bandit.features, None if self.catalogue is None else self.catalogue.features

    def request(self, begun: Begun, call: Call) -> Request:
        """The whole request. What was learnt is locked, since the bandit may grow and stands at the time from here."""
        self._stand(begun.time)
        request = begun.request or self._of_catalogue(call)
        if request.X.shape[-1] != self.bandit.dim:  # other features came since it was read
            raise Stale
        if call.fallback is not None:
            requests.place(call.fallback, request, what="fallback")
        if call.values is None and call.minimum is None and call.baseline is None and self.bandit.baseline is None:
            return request
        return requests.demanding(self.bandit, self.catalogue, request, call)

    def _of_catalogue(self, call: Call) -> Request:
        """The request, where there is a catalogue."""
        if self.catalogue is not None and self.catalogue.features.dim != self.bandit.dim:
            raise Stale  # one of the two has other features already
        return self._encoded(call)

    def choose(self, request: Request) -> Choice:
        """The choice: of the rule, where one acts."""
        return self.bandit.decide(request) if self.rule is None else self.rule.decide(request)

    def fallen(self, call: Call) -> Entering:
        """The fallback of a call, of which nothing was drawn. Its row says so: kind "none", and `fallback`."""
        begun = self.begun(call)
        with self._learner.lock:
            request = self.request(begun, call)
            shape = request.shape[:-1]
            arm = requests.place(call.fallback, request, what="fallback")
            drawn: tuple[Any, Any] = (arm, math.nan) if not shape else (np.full(shape, arm), np.full(shape, math.nan))
            demands = Demands(request.shape, request.mask, math.nan)  # and no floor
            return self.entry(Choice(request, demands, (*drawn, "none", None, None)), call, begun, fallback=True)

    def entry(self, choice: Choice, call: Call, begun: Begun, *, fallback: bool = False) -> Entering:
        """The choice with its rows, and as a user gets it."""
        extra = self._extra(choice, call.extra, fallback)
        slots, (batch, mark) = self.bandit.slots is not None, self._learnt
        more: dict[str, Any] = {
            "id": call.id,
            "time": begun.time,
            "digest": None if call.body is None else repeats.digest(call.body),
        }
        rows = self._recorder.stored(choice, extra=extra, slots=slots, batch=batch, **more)
        raw = kept_requests.kept(call, choice.request, self.catalogue) if self._kept.records else []
        named = [(row[0], data) for row, data in zip(rows, raw, strict=False)]  # none where X came as it is
        return Entering(rows, DecisionBasis(batch, mark, begun.changes), _shown(choice, rows, fallback), named)

    def _extra(self, choice: Choice, extra: Mapping[str, Any] | None, fallback: bool) -> Mapping[str, Any] | None:
        """The user's columns, what was demanded, and what the policy that is judged would do."""
        request, columns = choice.request, _columns(choice)
        if fallback:
            columns[beside.FALLBACK] = True if request.single else [True] * request.size
        elif self.rule is not None:
            columns[beside.JUDGED] = self._judged(self.bandit, request)
        else:
            ask = functools.partial(self._judged, request=request)
            judged = self._of_shadow(ask, when="when it was asked for its probabilities")
            if judged is not None and self._shadow_facts is not None:
                number = self._shadow_facts.number
                columns |= {beside.JUDGED: judged, beside.SHADOW: number if request.single else [number] * request.size}
        taken = [name for name in extra or {} if name in beside.COLUMNS]
        if taken:
            raise ValueError(f"extra must not have the column {taken[0]!r}, which the ledger writes: take another name")
        return dict(extra or {}) | columns if columns else extra

    def _judged(self, judged: Bandit, request: Request) -> list[Any]:
        """The probabilities of the arms on offer, by a policy that does not act."""
        grow(judged, self.bandit.slots)
        p, _, _ = judged.probabilities(request._replace(baseline=None))
        return _on_offer(p, request)

    def _slot_ids(self, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """The ids of the arms; None: they have only positions. A disjoint slot keeps its id, whose rewards it learnt.

        The first request settles them, so that a log of one arm on offer says that its rows are contexts.
        """
        positions = _positions(self.bandit.slots or 0)
        slots = record.slot_names(self._ledger.slot_ids(names or positions) or positions, len(positions))
        if names is None:
            return None if slots == positions else slots
        if names != slots:
            raise ValueError(
                f"the slots of this ledger are {list(slots)}, and arms= calls them {list(names)}. A slot keeps "
                f"its id, since what it learnt is of that arm: pass them in this order, with mask= for those on offer"
            )
        return slots


def _shown(choice: Choice, rows: list[tuple[Any, ...]], fallback: bool) -> Shown | ShownMany:
    """A choice as a user gets it, once its rows are in the ledger."""
    names, more = choice.request.ids, (choice.p, choice.kind, choice.se, choice.z, choice.learnt)
    if choice.request.single:
        place = int(choice.arm)
        return Shown(place if names is None else names[place], *more, rows[0][0], place, fallback)
    arms = choice.arm if names is None else np.array([names[arm] for arm in choice.arm])
    return ShownMany(arms, *more, tuple(row[0] for row in rows), choice.arm, fallback)


@functools.cache
def _positions(slots: int) -> tuple[str, ...]:
    return tuple(map(str, range(slots)))


def _columns(choice: Choice) -> dict[str, Any]:
    """What a row has of its request and of what was demanded: for B requests a list for each column."""
    request, demands = choice.request, choice.demands
    row: dict[str, Any] = {}
    if request.values is not None:
        row[beside.VALUES] = _on_offer(request.values, request)
    if request.minimum is not None:
        row[beside.MINIMUM] = _on_offer(request.minimum, request)
    if demands.safe is not None and demands.baseline is not None:
        row[beside.SAFE] = _on_offer(demands.safe, request)
        baselines = _on_offer(np.arange(request.shape[-1]) == demands.baseline[..., None], request)
        row[beside.BASELINE] = baselines.index(True) if request.single else [one.index(True) for one in baselines]
    if request.version is not None:
        row[beside.CATALOGUE] = request.version if request.single else [request.version] * request.size
    return row


def _on_offer(numbers: np.ndarray, request: Request) -> list[Any]:
    """Those numbers (K,) or (B, K) that belong to arms on offer, in order."""
    if request.mask is None:
        return numbers.tolist()
    if request.single:
        return numbers[request.mask].tolist()
    return [row[mask].tolist() for row, mask in zip(numbers, request.mask, strict=True)]
