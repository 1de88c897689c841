"""What is answered while the store cannot be reached: the fallback of a call, where it has one.

Such a decision waits in memory, and is stored before anything newer once the store is back. It is lost with the
process. Nothing was drawn for it, so its row has no propensity, and `dither.ope` leaves it out. A reward for it is
refused until it is stored, so that it is sent again and learnt; none is dropped.

While the store is away, all calls with a fallback are answered at once. The store is tried again beside them, with
growing pauses, and by every other call.
"""

import copy
import logging
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

from dither.base import errors
from dither.live import repeats
from dither.live.deciding import Decider
from dither.live.requests import Call
from dither.live.turns import Spent, Turns
from dither.log import Ledger
from dither.log.database import days, entering, fetching, lessons
from dither.log.database.committing import MOST, Entering, QueuedRequest, Rewarding
from dither.log.reward_rules import id_text
from dither.log.troubles import Pause, in_words

REFUSALS = (ValueError, LookupError, TypeError)  # of a call that may have been answered before
Asked: TypeAlias = Call | Rewarding
_log = logging.getLogger("dither.live")


class Unstored(NamedTuple):
    """A decision that the ledger has not yet."""

    call: Call  # as it is stored: with its time and ids
    entry: Entering  # as it was answered
    digest: bytes | None
    spends: Callable[[int, str], Spent]  # what a decision in its place has spent, by its place in the call and its arm
    encoded_by: str | None  # fingerprint of the features that made its X; None: X came as it is


class Fallbacks:
    """Decisions that wait for the store, in the order in which they were answered."""

    def __init__(
        self, ledger: Ledger, decider: Decider, turns: Turns, most: int, stored: Callable[[list[Any]], list[Any]]
    ) -> None:
        """most : how many wait; a call that would be one more is refused as without a fallback

        stored : what the ledger answers to calls, one by one, or their errors
        """
        errors.at_least("fallback_rows", most, 0)
        self._ledger, self._decider, self._turns, self._most, self._stored = ledger, decider, turns, most, stored
        self.begin()

    def begin(self) -> None:
        """Nothing waits: at first, and in the child of a fork, whose parent stores what waits."""
        self.waiting: list[Unstored] = []
        self._ids: dict[str, Unstored] = {}  # by the ids of the decisions
        self._lock, self._writing, self._pause = threading.Lock(), threading.Lock(), Pause()

    def answered(self, asked: Sequence[Asked]) -> list[Any]:
        """The answer to each, or its error."""
        asked = [_timed(one) for one in asked]
        answers: list[Any] = [None] * len(asked)
        left, refusal = list(range(len(asked))), None
        if self.waiting:
            urgent = any(isinstance(one, Rewarding) or one.fallback is None for one in asked)
            refusal = self._try(urgent)
            with self._lock:
                answers = [self._before(one) for one in asked]
            left = [i for i in left if answers[i] is None]
        said = [refusal] * len(left) if refusal is not None else self._said([asked[i] for i in left])
        for i, one in zip(left, said, strict=True):
            answers[i] = self._last(asked[i], one)
        return answers

    def _try(self, urgent: bool) -> OSError | None:
        """Store what waits, where a call needs it; else now and then, beside the calls; -> why it cannot be now."""
        if urgent:
            try:
                self.store()
            except OSError as reason:
                return reason
            return None
        if self._pause.over and self._writing.acquire(blocking=False):
            threading.Thread(target=self._beside, name="dither-fallbacks", daemon=True).start()
        return OSError(f"the ledger in {self._ledger.database.where} is away, and is tried again now and then")

    def _beside(self) -> None:
        """Store what waits, in a thread for which no call waits. The turn to write is this thread's already."""
        try:
            self._all()
        except Exception as reason:
            _log.debug("what waits cannot be stored", exc_info=reason)
        finally:
            self._writing.release()

    def _before(self, asked: Asked) -> Any:
        """What was answered to the same request, which waits still; None: nothing was. The lock is held."""
        if isinstance(asked, Rewarding):
            waits = (one.id for one in asked.sent if one.id in self._ids)
            return next((_unstored(id, "nothing of the reward is there. Send it again") for id in waits), None)
        for id in repeats.ids_of(asked):
            if (before := self._ids.get(id)) is not None:
                same = before.digest is not None and before.digest == repeats.digest(asked.body)
                return before.entry.result if same else repeats.other(id)
        return None

    def _last(self, asked: Asked, said: Any) -> Any:
        """The answer of a call, which its fallback, or a request before it, may give where the ledger has refused."""
        if not isinstance(said, Exception) or isinstance(asked, Rewarding):
            return said
        try:
            if isinstance(said, OSError) and asked.fallback is not None:
                return self._fall(asked, said)
            if isinstance(said, REFUSALS) and asked.body is not None and asked.id is not None:
                return repeats.answer(self._ledger, self._decider.catalogue, asked, said)
        except OSError as reason:  # the store has gone since it refused
            return reason if asked.fallback is None or isinstance(said, OSError) else self._last(asked, reason)
        except Exception as error:
            return error
        return said

    def _fall(self, call: Call, reason: OSError) -> Any:
        """Answer the fallback, and let its row wait."""
        entry, spends = self._decider.fallen(call), self._turns.spends(call)
        ids = [row[0] for row in entry.rows]
        pinned = copy.deepcopy(call)._replace(id=ids if isinstance(entry.result.id, tuple) else ids[0], fallen=True)
        one = Unstored(pinned, entry, repeats.digest(call.body), spends, self._decider.encoded_by)
        with self._lock:
            if len(self._ids) + len(ids) > self._most:
                return reason
            first = not self.waiting
            self.waiting.append(one)
            self._ids |= dict.fromkeys(ids, one)
        if first:
            seconds = self._pause.failed()
            words = f"decisions are their fallbacks ({in_words(reason)}): the store is tried again in {seconds:g} s"
            self._ledger.database.troubles.add("fallback", words, reason)
        return entry.result

    def store(self) -> None:
        """Store what waits, in order. Raises OSError where the store is away; what is not stored waits on."""
        if self.waiting:
            with self._writing:
                self._all()

    def _all(self) -> None:
        """`store`, in the turn to write."""
        while some := self.waiting[:MOST]:
            for one, said in zip(some, self._said([one.call for one in some]), strict=True):
                if isinstance(said, Exception):
                    self._refused(one, said)
                with self._lock:
                    del self.waiting[0]  # which it is, as others only add to the end
                    for row in one.entry.rows:
                        del self._ids[row[0]]
        self._pause.passed()
        self._ledger.database.troubles.mended("fallback")

    def _said(self, asked: list[Any]) -> list[Any]:
        """What the ledger answers to each, or its error."""
        try:
            return self._stored(asked) if asked else []
        except OSError as reason:
            return [reason] * len(asked)

    def _refused(self, one: Unstored, refusal: Exception) -> None:
        """Store a decision that was refused as it stands, since it was shown: its arm may have gone meanwhile.

        Where the bandit has other features by now, the row is stored without X, which these would read wrongly: its
        reward is kept and teaches nothing.
        """
        if isinstance(refusal, OSError):
            if self._pause.over:
                self._pause.failed()
            raise refusal
        self._decider.follow()
        if one.encoded_by != self._decider.encoded_by:
            rows = [entering.without_x(row) for row in one.entry.rows]
            one = one._replace(entry=one.entry._replace(rows=rows, records=()))
        with self._ledger.holding() as connection:
            lessons.hold(connection)
            there = [fetching.number(connection, row[0]) for row in one.entry.rows]
            before = entering.stored(connection, [row[0] for row in one.entry.rows])
            with days.changing(connection, [number for number in there if number is not None]):
                replaced = [entering.replace(connection, row) for row in one.entry.rows]
            drawn = [(i, before[row[0]]) for i, row in enumerate(one.entry.rows) if replaced[i]]
            self._turns.give_back(connection, [one.spends(i, row.shown) for i, row in drawn if not repeats.fell(row)])
        if all(replaced):  # a commit was lost on its way back, and its decision was shown to nobody
            return
        alone = QueuedRequest(one.entry._replace(basis=None))
        self._ledger.committer.settle([alone])
        if isinstance(alone.error, OSError):
            raise alone.error
        if alone.error is not None:
            words = f"the fallback that was shown as decision {one.entry.rows[0][0]!r} is not stored"
            self._ledger.database.troubles.add("lost", f"{words} ({in_words(alone.error)})", alone.error)

    def stored_first(self, id: Any, words: str) -> None:
        """Store what waits, where a decision of this id does.

        Raises OSError while the store is away; words : what follows from that, and what to do
        """
        if self.waiting and (name := id_text(id)) in self._ids:
            try:
                self.store()
            except OSError as reason:
                raise _unstored(name, words) from reason

    def close(self) -> None:
        """Store what waits, before the ledger is closed. What cannot be stored is a trouble, and lost."""
        try:
            self.store()
        except OSError as reason:
            words = f"{len(self._ids)} fallbacks that were shown are not stored, and lost ({in_words(reason)})"
            self._ledger.database.troubles.add("lost", words, reason)


def _timed(asked: Asked) -> Asked:
    """A call with a fallback has one time, whether it is stored at once or later."""
    if isinstance(asked, Rewarding) or asked.fallback is None or asked.time is not None:
        return asked
    return asked._replace(time=datetime.now(UTC))


def _unstored(id: str, words: str) -> OSError:
    return OSError(f"decision {id!r} is a fallback, shown while the store was away, and is not stored yet: {words}")
