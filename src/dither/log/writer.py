"""`Log`: the append-only writer. A decision becomes a row before it is shown. A late reward finds it by its id.

A buffer holds up to `buffer` decisions and as many rewards. Then they go to the disk: many rows as a Parquet part, few
rows to a journal that becomes a part (`storage`). A kill loses at most the buffer. With buffer=1, every decision and
every reward is on the disk, synced, before the call returns. A log that is closed (`close`, or the end of `with`) loses
nothing.

A folder belongs to the process that opened it. After a fork, the child is refused. Nothing is lost, since the parent
still has the buffer.
"""

import contextlib
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

from dither.bandit.bandit import Bandit
from dither.base import errors, forks
from dither.deciding.answers import AnyShape, Batch, Decision, Decisions, Vector
from dither.deciding.decision import Choice
from dither.log import address, claim, record, reward_rules, schema, stated, storage
from dither.log.logged import Logged
from dither.log.record import About, AboutRecord, Recorded, RecordedMany, Recorder
from dither.log.reward_rules import Answer
from dither.models import adapting

if TYPE_CHECKING:
    from dither.deciding.answers import OneOrMany
    from dither.log.record import RecordedOneOrMany

UNLIMITED = (None, None)  # what a file says of rewards without limits, so that no earlier range counts


def _range(bandit: Bandit) -> schema.Range | None:
    """The least and the largest reward: what the user has said of the model, or what it can learn; None: no limits."""
    model = adapting.adapted(bandit.model)
    return schema.hull([model.support if model.reward_range is None else model.reward_range])


class Log:
    """Decisions and their rewards, in a folder or in memory.

    Parameters
    ----------
    path : a folder, which is made if it is missing and continued if it is there; None keeps the log in memory
    bandit : the bandit that decides; needed by `decide`, lines=True and probabilities=True
    features : whether to log the features of the arms on offer (with disjoint slots the context)
    lines : whether to log m and w of the arms, where the model has them
    probabilities : whether to log the probabilities of all arms on offer (Monte Carlo where the policy has no closed
        form)
    arm_set : whether to log a digest of the features on offer; None: if the features are not logged
    buffer : how many decisions, and rewards, wait for the next part; a kill loses no more than these
    rewards : how several rewards of a decision count: "sum", "last" or "list" (`reward_rules`)
    policy, preset : texts that every row has; policy None: the policy and model of the bandit

    The files say in which range rewards lie: the `reward_range` of the model, or what it can learn, such as (0, 1) for
    clicks; where several bandits wrote one folder, that of all. An interval that needs a range takes it (docs/ope.md).

    With disjoint slots, a slot keeps the id that `arms` gave it first, also when the folder is opened again. The id
    says whose rewards the slot has learnt.

    Raises ValueError for impossible settings, if another open log writes into the folder, and for a folder of days that
    a ledger exported; FileExistsError for a file.
    """

    def __init__(
        self,
        path: Any = None,
        *,
        bandit: Bandit | None = None,
        features: bool = True,
        lines: bool = False,
        probabilities: bool = False,
        arm_set: bool | None = None,
        buffer: int = 1000,
        rewards: str = "sum",
        policy: str | None = None,
        preset: str | None = None,
    ) -> None:
        errors.at_least("buffer", buffer, 1)
        errors.among("rule for rewards", rewards, reward_rules.RULES)
        schema.usable_polars()
        self.path = None if path is None else address.local(path)
        self.buffer, self.rewards = int(buffer), rewards
        constants = record.constants(bandit, policy=policy, preset=preset)
        arm_set = not features if arm_set is None else arm_set
        self.bandit, self._recorder = bandit, Recorder(features, lines, probabilities, arm_set, constants)
        self._columns: tuple[str, ...] | None = None  # (d,) names of the features, in the order of the log
        self._lock = threading.RLock()
        self._rows: list[dict[str, Any]] = []
        self._events: list[reward_rules.Event] = []
        self._disk: dict[str, storage.FolderAppender] = {}  # "decisions" and "rewards"
        self._slots: tuple[str, ...] | None = None  # (K,) ids of disjoint slots
        self._extra: tuple[str, ...] | None = None
        self._range = None if bandit is None else _range(bandit)
        self._ledger = reward_rules.RewardRegister()
        self._closed, self._owner = False, os.getpid()
        if self.path is not None:
            if self.path.is_file():
                raise FileExistsError(f"a log is a folder, and {self.path} is a file: name another place")
            if storage.days(self.path):
                raise ValueError(f"{self.path} holds days that a ledger exported: write the log into another folder")
            self.path.mkdir(parents=True, exist_ok=True)
        self._claim = claim.Claim(self.path)
        if self.path is not None:
            try:
                self._continue(self.path)
            except BaseException:
                self._claim.release()
                raise
        forks.tell(self)

    @overload
    def decide(self, X: AnyShape, id: Any = None, **more: Unpack[About]) -> "RecordedOneOrMany": ...
    @overload
    def decide(self, X: Vector, id: Any = None, **more: Unpack[About]) -> Recorded: ...
    @overload
    def decide(self, X: Batch, id: Any = None, **more: Unpack[About]) -> RecordedMany: ...
    @overload
    def decide(self, X: Any, id: Any = None, **more: Unpack[About]) -> "RecordedOneOrMany": ...
    def decide(
        self,
        X: Any,
        id: Any = None,
        *,
        time: Any = None,
        mask: Any = None,
        arms: Any = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Recorded | RecordedMany:
        """Let the bandit choose, and record the decision before it is returned.

        X, mask : as for `Bandit.choose`; a batch (B, K, d) is B rows
        id : text (for a batch B of them); None makes one
        time : a datetime, an ISO 8601 text or seconds since 1970; None: now
        arms : (K,) ids of the rows of X, or of the slots; None: their positions, or the ids that the slots have
        extra : your own columns, such as {"user": "u7"}; for a batch each value is a sequence of B. Every decision of
            a log has the same columns.

        Raises what `choose` and `record` raise. A decision that was not recorded is not returned.
        """
        if self.bandit is None:
            raise ValueError("decide needs a bandit: Log(path, bandit=...), or record(decision, X=...)")
        with self._lock, self.bandit._lock:
            self._open()
            chosen = self.bandit.decide(self.bandit.request(X, mask))
            floor = None if self.bandit.baseline is None else 0.0  # what is not safe has no floor
            return self._record(chosen, arms, id=id, time=time, extra=extra, floor=floor)

    @overload
    def record(self, decision: "OneOrMany", **more: Unpack[AboutRecord]) -> "RecordedOneOrMany": ...
    @overload
    def record(self, decision: Decision, **more: Unpack[AboutRecord]) -> Recorded: ...
    @overload
    def record(self, decision: Decisions, **more: Unpack[AboutRecord]) -> RecordedMany: ...
    def record(
        self,
        decision: Decision | Decisions,
        *,
        X: Any = None,
        id: Any = None,
        time: Any = None,
        mask: Any = None,
        arms: Any = None,
        extra: Mapping[str, Any] | None = None,
        probabilities: Any = None,
        floor: float | None = None,
    ) -> Recorded | RecordedMany:
        """Record a decision that was made elsewhere, before it is shown, and before the bandit learns anything more.

        X, id, time, mask, arms, extra : as for `decide`; X is not needed if neither features nor lines are logged,
            and the bandit is not asked for probabilities
        probabilities : (K,) or (B, K) of all arms; None: if the log holds them, the bandit is asked
        floor : share of uniform choices; None: that of the bandit, with the policy's own

        Raises ValueError for an id that an earlier decision has, an arm that is not on offer, shapes that do not fit,
        another id for a slot, and an exact propensity that differs from the probability the bandit gives. Raises
        ValueError also in the child of a fork. After an error nothing is recorded.
        """
        stated.no_list(decision)
        recorder = self._recorder
        if X is None and (recorder.features or recorder.lines):
            raise ValueError("X must be given where features or lines are logged: Log(..., features=False)")
        if X is None and recorder.probabilities and probabilities is None and self.bandit is not None:
            raise ValueError("X must be given where the bandit is asked for probabilities, or pass probabilities=")
        with self._lock:
            self._open()
            chosen = self._stated(decision, floor, X=X, mask=mask, arms=arms, probabilities=probabilities)
            if probabilities is None and self._recorder.probabilities:
                probabilities = self._agreed(chosen)
            return self._record(chosen, arms, id=id, time=time, extra=extra, probabilities=probabilities)

    def _stated(self, decision: Decision | Decisions, floor: float | None, *, X: Any, mask: Any, **more: Any) -> Choice:
        """A decision that was made elsewhere; with a bandit, what it knows now."""
        bandit, slots = self.bandit, None if self.bandit is None else self.bandit.slots
        if floor is None and bandit is not None and bandit.baseline is not None:
            floor = 0.0  # what is not safe has no floor
        if bandit is None or X is None:
            request = stated.request(decision, X=X, mask=mask, slots=slots, columns=self._columns, **more)
        else:
            request = bandit.read(X, mask)
        chosen = stated.choice(decision, request, floor=floor)
        return chosen if bandit is None else bandit.restated(chosen)

    def _agreed(self, chosen: Choice) -> Any:
        """The probabilities that the bandit gives now. Raises ValueError where they are not those of the decision."""
        if self.bandit is None:
            raise record.needs_bandit("probabilities")
        if self.bandit.baseline is not None:
            raise ValueError(
                "a bandit that keeps a baseline has other probabilities after it has chosen: ask for them before, "
                "and pass probabilities=; Log.decide and Live do so"
            )
        P = self.bandit.probabilities(chosen.request)[0]
        stated.agreed(chosen, P)
        return P

    def _record(self, chosen: Choice, arms: Any, *, time: Any, **more: Any) -> Recorded | RecordedMany:
        """Record a choice. arms : ids of the rows of X, or of the slots"""
        slots = self._slot_ids(arms)
        ids = slots if slots or arms is None else record.ids(arms, chosen.request.shape[-1])
        chosen.request = chosen.request._replace(ids=ids)
        columns = self._columns or (chosen.request.columns if self._recorder.features else None)
        rows = self._recorder.rows(chosen, columns=columns, time=schema.moment(time), **more)
        if rows:
            self._same(rows[0])
        at, before = len(self._rows), (self._slots, self._columns)
        try:
            for row in rows:
                self._ledger.enter(row["id"], len(self))
                self._rows.append(row)
            if rows and self.bandit is not None and self.bandit.slots is not None:
                self._slots = slots or tuple(map(str, range(self.bandit.slots)))
            self._columns = columns
            full = len(self._rows) >= self.buffer
            if full:
                self._put_decisions()
        except BaseException:
            for row in self._rows[at:]:
                self._ledger.leave(row["id"])
            del self._rows[at:]
            self._slots, self._columns = before
            raise
        if full:
            with contextlib.suppress(OSError):  # the decision is recorded; the next flush tells of rewards that wait
                self._put_rewards()
        return record.recorded(chosen, [row["id"] for row in rows])

    def reward(self, id: Any, r: float, time: Any = None, *, part: str | None = None) -> Answer:
        """Take a reward for a decision, however late. Returns 'counted', 'known' (the same value again) or 'conflict'.

        A conflict is another value for a part that has one. It is kept, and does not count.

        part : which of several rewards of one decision this is, such as "click" and "purchase"; each counts once

        Raises LookupError for an id that is not in the log, ValueError for a reward that is not a finite number and for
        a part that is no text or is empty.
        """
        if part is not None:
            reward_rules.part(part)
        with self._lock:
            self._open()
            answer, event = self._ledger.reward(reward_rules.id_text(id), r, part=part, time=schema.moment(time))
            if event is not None:
                self._events.append(event)
                try:
                    if len(self._events) >= self.buffer:
                        self.flush()
                except BaseException:
                    self._events.pop()
                    self._ledger.forget(event)
                    raise
            return answer

    def flush(self) -> None:
        """Write the buffer to the disk: decisions first, so that every reward there has its decision."""
        with self._lock:
            self._check_process()
            self._put_decisions()
            self._put_rewards()

    def _put_decisions(self) -> None:
        if self._rows and self.path is not None:
            self._disk["decisions"].add(self._decisions(), self._about)
            self._rows = []

    def _put_rewards(self) -> None:
        if self._events and self.path is not None:
            self._disk["rewards"].add(storage.events(self._events), self._about)
            self._events = []

    @property
    def _about(self) -> dict[str, Any]:
        """What the files say of the log."""
        facts = {"slots": self._slots, "names": self._columns, "encoded_by": self._encoded_by}
        return {"rewards": self.rewards, "reward_range": schema.ends(self._range) or UNLIMITED, **facts}

    @property
    def _encoded_by(self) -> str | None:
        """The fingerprint of the `Features` that made the features which are logged, where the bandit has them."""
        features = None if self.bandit is None or not self._recorder.features else self.bandit.features
        return None if features is None else features.fingerprint

    def read(self, *, rewards: str | None = None) -> Logged:
        """All decisions, with the rewards that have come, as `dither.log.read` gives them.

        rewards : the rule for several rewards of a decision; None: that of the log. Raises LookupError for another one
        """
        from dither.log import reader

        if rewards is not None:
            errors.among("rule for rewards", rewards, reward_rules.RULES)
        with self._lock:
            if self.path is not None:
                self.flush()
                return reader.read(self.path, rewards=rewards)
            frame = storage.join(self._decisions(), storage.events(self._events), rule=rewards or self.rewards)
            span = self._range if rewards in (None, self.rewards) else None
            facts: dict[str, Any] = dict(encoded_by=self._encoded_by, slot_ids=self._slots, reward_range=span)
            return Logged(frame, names=self._columns, **facts)

    def close(self) -> None:
        """Flush, and let another writer have the folder. In the child of a fork this does nothing."""
        with self._lock:
            if not self._closed and self._mine:
                self.flush()
                for rows in self._disk.values():
                    rows.compact()
                self._closed = True
                self._claim.release()

    def __len__(self) -> int:
        written = self._disk["decisions"].at if self._disk else 0
        return written + len(self._rows)

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Log({self.path}, {len(self)} decisions, {len(self._rows)} of them in the buffer of {self.buffer})"

    def _same(self, row: dict[str, Any]) -> None:
        """Every decision of a log has the same columns."""
        extra = tuple(name for name in row if name not in schema.COLUMNS)
        if self._extra is not None and set(extra) != set(self._extra):
            raise ValueError(f"extra must have the columns of the first decision, {list(self._extra)}: {list(extra)}")
        self._extra = extra if self._extra is None else self._extra

    def _decisions(self) -> Any:
        """The buffer as a frame."""
        pl = schema.polars()
        types = schema.dtypes(schema.DECISION)
        columns = []
        for name in (*schema.DECISION, *(self._extra or ())):
            values, what = [row[name] for row in self._rows], schema.COLUMNS.get(name)
            lists = schema.lists(name, values, what) if what in ("numbers", "rows") else None
            columns.append(pl.Series(name, values, dtype=types.get(name), strict=False) if lists is None else lists)
        return pl.DataFrame(columns)

    def _slot_ids(self, arms: Any) -> tuple[str, ...] | None:
        """The ids of disjoint slots; None if they have only positions, or if there are no slots."""
        slots = None if self.bandit is None else self.bandit.slots
        if slots is None:
            return None
        positions = tuple(map(str, range(slots)))
        if arms is None:
            names = positions if self._slots is None else record.slot_names(self._slots, slots)
            return None if names == positions else names
        names = record.ids(arms, slots)
        for i, (old, new) in enumerate(zip(self._slots or (), names, strict=False)):  # more may have come since
            if old != new:
                raise ValueError(
                    f"slot {i} is {old!r} in this log, and arms= calls it {new!r}. A slot keeps its id, since what it "
                    f"learnt is of that arm: pass arms={list(self._slots or ())}, with mask= for those on offer, or "
                    f"begin a bandit and a log for other arms"
                )
        return names

    def _continue(self, folder: Path) -> None:
        """Continue a folder that is there: read its ids, its rewards and the ids of its slots."""
        folders = {what: storage.folder_rows(folder, what) for what in ("decisions", "rewards")}
        about = folders["decisions"].about
        slots, names = about.get("slots"), about.get("names")
        self._columns = None if names is None else tuple(names)
        if folders["decisions"].rows:
            self._range = schema.hull([self._range, schema.of_ends(about.get("reward_range"))])
        if slots is not None:
            self._slots = tuple(slots)
            if self.bandit is not None and self.bandit.slots != len(self._slots):
                raise ValueError(
                    f"the decisions in {folder} are of {len(self._slots)} disjoint slots, and the bandit has "
                    f"{self.bandit.slots or 'none'}: give it a folder of its own"
                )
        elif folders["decisions"].rows and self.bandit is not None and self.bandit.slots is not None:
            raise ValueError(
                f"the decisions in {folder} are of arms with features of their own, and the bandit has "
                f"{self.bandit.slots} disjoint slots: give it a folder of its own"
            )
        before, now = about.get("encoded_by"), self._encoded_by
        if before is not None and now is not None and before != now:
            raise ValueError(
                f"other Features made the features in {folder} ({before}) than the bandit has ({now}): give it a "
                "folder of its own"
            )
        self._disk = {what: storage.FolderAppender(folder, what, held) for what, held in folders.items()}
        for first, _, path in storage.listed_parts(folder, "decisions"):
            with storage.readable(path):
                names = list(schema.polars().read_parquet_schema(path))
                ids = schema.polars().read_parquet(path, columns=["id"])["id"].to_list()
                if "was_erased" in names:
                    gone = schema.polars().read_parquet(path, columns=["id", "was_erased"])
                    self._ledger.erase(gone.filter("was_erased")["id"])
            self._extra = tuple(n for n in names if n not in schema.COLUMNS)
            for number, name in enumerate(ids, first):
                self._ledger.enter(name, number)
        for _, _, path in storage.listed_parts(folder, "rewards"):
            for row in storage.read_part(path).select(list(schema.EVENT)).iter_rows():
                self._ledger.replay(reward_rules.Event(*row))

    @property
    def _mine(self) -> bool:
        """Whether this process may use the log: it opened the folder, or the log is in memory."""
        return self.path is None or self._owner == os.getpid()

    def _open(self) -> None:
        if self._closed:
            raise ValueError(f"{self!r} is closed")
        self._check_process()

    def _check_process(self) -> None:
        if not self._mine:
            raise ValueError(
                f"{self!r} was opened by process {self._owner}, and this is a fork of it: one process writes a folder, "
                f"or two would take the same places. Open the Log of each process after the fork, with a folder of "
                f"its own, and read all: dither.log.read([one, other])"
            )

    def _forked(self) -> None:
        """In the child of a fork: make a lock that no thread of the parent holds, and let go of the parent's files."""
        self._lock = threading.RLock()
        for rows in self._disk.values():
            rows.let_go()
        self._claim.let_go()
