"""`Ledger`: decisions and their rewards in a database that several processes share.

The rules of rewards are those of `reward_rules`, the tables those of `database`. A call returns when what it wrote is
on the disk. Threads that call at the same time share one transaction (`database.committing`).
"""

import contextlib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, overload

import numpy as np

from dither.base import errors, forks
from dither.deciding.answers import Decision, Decisions
from dither.log import address, flushing, record, reward_rules, schema, stated, storage, terms
from dither.log.arm_days import ArmDays
from dither.log.logged import Logged
from dither.log.record import AboutRecord, Recorded, RecordedMany, Recorder
from dither.log.reward_rules import Answer, Many, id_text
from dither.log.terms import NewTerms
from dither.log.troubles import Trouble

if TYPE_CHECKING:
    import sqlalchemy as sa

    from dither.deciding.answers import OneOrMany
    from dither.log.database import committing, fetching
    from dither.log.database.ledger_events import BanditEvent
    from dither.log.record import RecordedOneOrMany

FEATURES = ("now", "then")  # of which X is read
_TOGETHER = 10_000  # pending decisions that are read together


class Pending(NamedTuple):
    """A decision that waits for its reward."""

    id: str
    time: datetime
    deadline: datetime | None


class Ledger:
    """Decisions and their rewards, in memory, in one file, or in PostgreSQL. It needs the extra `log`.

    Parameters
    ----------
    home : None (memory), the path of a file (SQLite), or a URL `postgresql://user@host/database` (extra `postgres`)
    rewards : how the parts of a decision make its reward: "sum", "last" or "list"
    horizon : a timedelta, or seconds: after this long a reward is late; None: never
    default : the reward of a decision whose horizon passes without one, given by `expire`; None: it stays missing
    late : "kept": a late reward is kept as an event and never counts. "counts": it counts as others do
    parts : names of the parts of a reward, such as ["click", "sale"], which are summed. Then every reward names its
        part, and a decision waits until it has all of them, or until its horizon passes. None: parts have any names
    reward_range : the least and the largest reward of a decision, such as (0, 1) or (0, math.inf). With the rule "sum"
        it is that of the sum: of the parts that have come, each time one comes, since those that do not come are 0.
        None: what the bandit of the ledger can learn, where `dither.Live` gave it one, else all numbers. None is larger
        than 1e70 in size
    wait : whether a call waits for the disk. False: the calls of a process that is killed are there, but if the machine
        loses power, or the server of the database stops, the last `flush_seconds` may be lost
    flush_seconds : with wait=False, how often a file is synced. PostgreSQL has a setting of its own, wal_writer_delay

    The terms of rewards, `rewards` to `reward_range`, are kept in the ledger, so whoever opens it again may leave them
    out. `change` lets others hold for later decisions.

    Any number of threads and processes may hold one ledger. After a fork, the child has connections of its own, but a
    ledger in memory belongs to the parent.

    Raises ValueError for terms other than those that the ledger has, and for a file that is no ledger; OSError where
    the database cannot be reached.
    """

    def __init__(
        self,
        home: Any = None,
        *,
        rewards: str | None = None,
        horizon: Any = None,
        default: float | None = None,
        late: str | None = None,
        parts: Iterable[str] | None = None,
        reward_range: tuple[float, float] | None = None,
        wait: bool = True,
        flush_seconds: float = 1.0,
    ) -> None:
        errors.true_or_false("wait", wait)
        errors.positive("flush_seconds", flush_seconds, most=1e9)
        wanted = terms.wanted(
            rewards=rewards, horizon=horizon, default=default, late=late, parts=parts, reward_range=reward_range
        )
        needed()
        from dither.log.database import committing, reward_terms, tallying
        from dither.log.database import home as homes

        self.database = home if isinstance(home, homes.Home) else homes.Home(home, wait=wait)
        self.database.tallies.put = tallying.put
        try:
            self.terms = reward_terms.settle(self.database, wanted)
        except BaseException:
            if self.database is not home:  # else whoever has opened it closes it
                self.database.close()
            raise
        flush = None if wait else flushing.Flush(self.database, flush_seconds)
        self.committer = committing.Committer(self.database, flush=flush)
        self._facts: dict[str, tuple[str, ...]] = {}  # "names" of the features, and ids of the "slots"
        self.look()
        forks.tell(self)

    @classmethod
    def to_read(cls, home: Any) -> "Ledger":
        """The ledger of a home that is there, to read it alone: a file or a URL, also while others write to it.

        Nothing is made, migrated or locked, and all that writes raises PermissionError.

        Raises FileNotFoundError where there is no ledger; ValueError for None, for a file that is no ledger and for one
        of another version of dither, with the cure; OSError where it cannot be read.
        """
        return cls._opened(home, looks=True)

    @classmethod
    def to_go_on(cls, home: Any) -> "Ledger":
        """The ledger of a home that is there, to read it and to write to it: a file or a URL, beside all who have it.

        None is begun. Tables of an older version are migrated, as by all who write.

        Raises FileNotFoundError where there is no ledger; what `Ledger` raises; and ValueError for None.
        """
        if home is None:
            raise ValueError("a ledger in memory begins with its process: give a file, or a URL of PostgreSQL")
        return cls._opened(home, begins=False)

    @classmethod
    def _opened(cls, home: Any, **how: bool) -> "Ledger":
        """A ledger with a database of its own. how : as for `Home`"""
        needed()
        from dither.log.database import home as homes

        database = homes.Home(home, **how)
        try:
            return cls(database)
        except BaseException:
            database.close()
            raise

    @property
    def rewards(self) -> str:
        """How the parts of a decision make its reward."""
        return self.terms.rewards

    @property
    def horizon(self) -> timedelta | None:
        """After this long the reward of a decision is late, as this process knows the terms."""
        return self.terms.horizon

    @property
    def default(self) -> float | None:
        """The reward of a decision whose horizon passes without one."""
        return self.terms.default

    @property
    def late(self) -> str:
        """What becomes of late rewards."""
        return self.terms.late

    @property
    def parts(self) -> tuple[str, ...] | None:
        """The parts of which rewards are the sum; None: parts have any names."""
        return self.terms.parts

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The least and the largest reward; None: there are no limits."""
        return self.terms.reward_range

    def change(self, **new: Unpack[NewTerms]) -> None:
        """Let other terms hold for the decisions that are stored from now on, by any process.

        new : as the parameters of the ledger; what is left out stays as it is, None: as where nothing is passed

        It is an event, kept with its number and time. Decisions that are there keep their terms: `reward` and `expire`
        judge each by its own.

        Raises ValueError for terms that do not go together, and for `rewards` and `parts`, which cannot change;
        TypeError for an unknown term; OSError where the database refuses. Nothing has changed then.
        """
        from dither.log.database import lessons, reward_terms

        self.committer.begun()
        with self.holding() as connection:
            before = lessons.changes(connection).mark
            reward_terms.change(connection, self.database, new)
            after, mark = reward_terms.newest(connection), lessons.changes(connection).mark
        self.database.moved(before, mark)
        self.terms = after

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
        """Record a decision before it is shown. The arguments are those of `Log.record`.

        Raises what `Log.record` raises, and OSError where the database refuses. Nothing is recorded then.
        """
        stated.no_list(decision)
        recorder = Recorder(X is not None, False, False, X is None, record.constants(None))
        names = self.columns(None)
        request = stated.request(decision, X=X, mask=mask, arms=arms, probabilities=probabilities, columns=names)
        request = request._replace(ids=None if arms is None else record.ids(arms, request.shape[-1]))
        chosen, more = stated.choice(decision, request, floor=floor), dict(id=id, time=schema.moment(time), extra=extra)
        columns = self.columns(request.columns)
        rows = recorder.rows(chosen, columns=columns, probabilities=probabilities, **more)
        self.committer.enter(rows)
        return record.recorded(chosen, [row["id"] for row in rows])

    def columns(self, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """The names of the features, in the order of all rows. The first that are passed stay, for all processes.

        names : of the features of a request; None: it has none
        """
        return self._fact("names", names)

    def slot_ids(self, ids: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """The ids of disjoint slots. The first that are passed stay, for all processes. ids : those of a request"""
        return self._fact("slots", ids)

    def _fact(self, name: str, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """A fact of the ledger: the value that was passed first, by any process; None: there is none yet."""
        if value is not None and name not in self._facts:
            from dither.log.database import keeping, lessons

            with self.holding() as connection:
                lessons.hold(connection)
                before = lessons.changes(connection).mark
                self._facts[name] = tuple(keeping.settle(connection, **{name: value})[name])
                self.database.moved(before, lessons.changes(connection).mark)
        return self._facts.get(name)

    def look(self, *, anew: bool = False) -> None:
        """Read what another process may have passed: the terms, the names of features and the ids of slots.

        anew : also names and ids that are known, since the ledger may be another one
        """
        from dither.log.database import keeping, reward_terms

        facts = self._facts
        with self.database.reading() as connection:
            self.terms = reward_terms.newest(connection)
            if anew or len(facts) < 2:
                about = keeping.facts(connection)
                facts = {name: tuple(about[name]) for name in ("names", "slots") if about.get(name)}
        self._facts = facts

    @overload
    def reward(self, id: str | int, r: float, time: Any = None, *, part: str | None = None) -> Answer: ...
    @overload
    def reward(self, id: Many, r: Any, time: Any = None, *, part: str | None = None) -> list[Answer]: ...
    def reward(self, id: Any, r: Any, time: Any = None, *, part: str | None = None) -> Answer | list[Answer]:
        """Take a reward for a decision, however late, from any process.

        id, r : a text and a number, or a list of texts and one of numbers, which are taken together or not at all
        time : when the reward came: a datetime, an ISO 8601 text or seconds since 1970; None: now
        part : which of several rewards of one decision this is, such as "click" and "purchase"; each counts once. It
            must be one of `parts`, where the ledger has been told them
        -> 'counted', 'known' (the same again), 'conflict' (another value) or 'late' (the horizon has passed). A
        conflict and a late reward are kept, and never count. For lists a list

        Raises LookupError for an id that no decision has, or whose decision was erased; ValueError for a reward that is
        no number between -1e70 and 1e70 or lies outside `reward_range`, and for a part that is empty or not one of
        `parts`; OSError where the database refuses. Nothing has changed then.
        """
        task, many = self.rewarding(id, r, time, part)
        answers = self.committer.submit(task) if task.sent else []
        return answers if many else answers[0]

    def rewarding(self, id: Any, r: Any, time: Any, part: str | None) -> "tuple[committing.Rewarding, bool]":
        """What `reward` asks the committer for, and whether it was asked for lists. Raises what is wrong by itself."""
        from dither.log.database import committing, rewarding

        self._names(part)
        at = time_ns() // 1000 if time is None else record.micros(schema.moment(time))
        if isinstance(id, str) or not reward_rules.several(id):
            text = id_text(id)
            return committing.Rewarding([rewarding.Sent(text, reward_rules.finite(r, text), part, at)]), False
        if np.ndim(r) != 1:
            raise ValueError(f"give one reward for each id: {len(id)} ids, got {r!r}")
        ids, rs = list(map(id_text, id)), list(r)
        if len(ids) != len(rs):
            raise ValueError(f"give one reward for each id: {len(ids)} ids, {len(rs)} rewards")
        each = zip(ids, rs, strict=True)
        return committing.Rewarding(
            [rewarding.Sent(text, reward_rules.finite(one, text), part, at) for text, one in each]
        ), True

    @property
    def troubles(self) -> list[Trouble]:
        """What failed beside calls that were answered, the newest last; `Live.troubles` says more."""
        return self.database.troubles.latest

    def correct(self, id: str | int, r: float, *, part: str | None = None, time: Any = None) -> Answer:
        """Let another reward count in the place of the one that counts, as after a refund or a mistake.

        id, r, part, time : as for `reward`. time is that of the correction; the horizon does not matter. A default that
        the decision got can be corrected too, without a part
        -> 'counted', or 'known' where this reward counts already

        It is an event, which is kept beside what it corrects. `read` gives the new reward and the time of the
        correction. A reward that is sent again is known by what was answered to it.

        Raises LookupError for an id that no decision has, or whose decision was erased; ValueError where there is no
        reward to correct, for one that is not finite or lies outside `reward_range`, and for a part that is not one of
        `parts`; OSError where the database refuses. Nothing has changed then.
        """
        from dither.log.database import committing, rewarding

        if part is not None:
            self._names(part)
        at = time_ns() // 1000 if time is None else record.micros(schema.moment(time))
        r = reward_rules.finite(r, id)
        sent = rewarding.Sent(id_text(id), r, part, at, corrects=True)
        (answer,) = self.committer.submit(committing.Rewarding([sent]))
        return answer

    def _names(self, part: str | None) -> None:
        """Raise ValueError for a part that no reward of this ledger can have."""
        if part is not None:
            reward_rules.part(part)
        if self.parts is not None and part not in self.parts:
            raise ValueError(
                f"part must be one of {', '.join(map(repr, self.parts))}, which make a reward; got {part!r}"
            )

    @property
    def closed(self) -> bool:
        """Whether it was closed, or belongs to the parent of this process."""
        return self.committer.closed or not self.committer.mine

    @property
    def turn(self) -> Any:
        """The lock under which this process writes."""
        return self.committer.turn

    @contextlib.contextmanager
    def holding(self) -> "Iterator[sa.Connection]":
        """A transaction, while the calls of other threads wait."""
        with self.turn:
            self.committer.begun()
            with self.database.writing() as connection:
                yield connection

    def expire(self, now: Any = None, *, before: Any = None) -> int:
        """Close the decisions whose horizon has passed. Those without a reward get the default, where there is one.

        now : a datetime, an ISO 8601 text or seconds since 1970; None: now
        before : a time up to which all rewards have been heard of. Only decisions whose horizon has passed before it
            are closed, so rewards that still wait in a queue are not late; None: all have been heard of
        -> how many had no reward

        Raises ValueError for a ledger without a horizon.
        """
        from dither.log.database import rewarding

        self.committer.begun()
        at = record.micros(schema.moment(now))
        if before is not None:
            at = min(at, record.micros(schema.moment(before)) - 1)
        with self.holding() as connection:
            return rewarding.expire(connection, self.database, at)

    def events(self) -> "list[BanditEvent]":
        """What has changed the bandit of a `dither.Live`, in order: number, batch, time, author, what, details."""
        from dither.log.database import ledger_events

        self.committer.begun()
        with self.database.reading() as connection:
            return ledger_events.every(connection)

    def pending(self, limit: int | None = None) -> Iterator[Pending]:
        """The decisions that wait for a reward, the oldest first: those without one that are not closed."""
        from dither.log.database import rewarding

        def time(at: int) -> datetime:
            return record.EPOCH + timedelta(microseconds=min(at, record.LAST))

        self.committer.begun()
        after, left = -1, math.inf if limit is None else limit
        while left > 0:  # in pieces, so that no transaction is open while the caller looks at them
            with self.database.reading() as connection:
                rows = rewarding.pending(connection, self.parts, after, int(min(left, _TOGETHER)))
            if not rows:
                return
            for _, id, at, deadline in rows:
                yield Pending(id, time(at), None if deadline is None else time(deadline))
            after, left = rows[-1].number, left - len(rows)

    def erase(self, ids: Iterable[Any] | None = None, **where: Any) -> int:
        """Erase what is known of some decisions: features, your own columns, lines, probabilities and rewards.

        ids : of the decisions; or one column of your own and the value to look for: `erase(user="u7")`. A number and
            the text of it are one value: "7" finds 7, and 7 finds "7" and 7.0
        -> how many decisions were erased now

        Id, time, arm and propensity stay. That so many decisions were erased is recorded, and whose is not. Decisions
        of a person without any such column cannot be found.

        Raises TypeError unless ids or one column is given; ValueError for a column of the log's own, and for None, NaN
        and infinity, which would be all those without a value; LookupError where decisions have columns of your own,
        and none has this one.
        """
        from dither.log.database import erasing

        self.committer.begun()
        if (ids is None) == (not where) or len(where) > 1:
            raise TypeError("erase takes ids, or one column of your own: erase(['id', ...]) or erase(user='u7')")
        if isinstance(ids, (str, bytes)):
            raise TypeError(f"erase takes a list of ids, got {ids!r}: erase([{ids!r}])")
        by, sought = ("id", [id_text(one) for one in ids]) if ids is not None else next(iter(where.items()))
        if by in schema.COLUMNS and ids is None:
            raise ValueError(f"{by} is a column of the log, and none of your own: erase(['id', ...]) takes ids")
        if ids is None and record.as_kept(by, sought) is None:  # NaN and infinity are kept so too
            raise ValueError(
                f"{by}={sought!r} would erase all decisions without a value of {by!r}, as NaN, infinity and what is "
                f"masked are kept as missing: erase their ids"
            )
        with self.turn:
            with self.database.writing() as connection:
                erased = erasing.erase(connection, self.database, by, sought if ids is not None else [sought])
            self.database.erased()
        return erased

    def read(
        self,
        *,
        rewards: str | None = None,
        since: Any = None,
        until: Any = None,
        records: bool = False,
        features: str = "now",
    ) -> Logged:
        """The decisions with the rewards that count, as `dither.log.read` gives them.

        rewards : the rule for several rewards of a decision; None: that of the ledger. By another rule `reward_range`
            is not known
        since, until : times: the decisions from the first on and before the second, with all rewards of theirs; None:
            from the first one, or to the last one
        records : whether the log gets the columns `raw_context` and `raw_arms`, JSON of the context and of the records
            of the arms on offer, where `dither.Live` keeps them (`store="records"`); null for a decision without
        features : where a `Live` has changed them, which X has. "now": those of now in all rows, as the bandit learns
            them: encoded anew from the records, else carried over. "then": each row those that made it

        Raises ValueError for a ledger without decisions.
        """
        from dither.log.database import fetching

        errors.true_or_false("records", records)
        errors.one_of("features", features, FEATURES)
        within = fetching.within(record.span(since, until))
        return self.logged(within, rewards=rewards, records=records, features=features)

    def logged(
        self,
        which: "fetching.Which",
        *,
        rewards: str | None = None,
        leave: Collection[str] = (),
        records: bool = False,
        features: str = "now",
    ) -> Logged:
        """The decisions that fulfil all conditions, as `read` gives them; it says what the others mean.

        leave : columns that are not read, and are null, as features take most of the time and of the memory
        """
        if rewards is not None:
            errors.among("rule for rewards", rewards, reward_rules.RULES)
        decisions, events, about = self.frames(which, leave=leave, records=records, features=features)
        if decisions.height == 0:
            when = " in this span of time" * bool(which)
            raise ValueError(
                f"the ledger in {self.database.where} holds no decisions{when}: there is nothing to evaluate"
            )
        names, slots = (tuple(about[name]) if about.get(name) else None for name in ("names", "slots"))
        frame = storage.join(decisions, events, rule=rewards or self.rewards)
        span = schema.of_ends(about["reward_range"]) if rewards in (None, self.rewards) else None
        return Logged(frame, names=names, encoded_by=about.get("encoded_by"), slot_ids=slots, reward_range=span)

    def days(self, *, since: Any = None, until: Any = None) -> ArmDays:
        """What decisions and rewards add up to, by day (UTC) and arm, as the ledger is now (`arm_days.ArmDay`).

        since, until : times: of the days from that of the first on, and before the second; None: from the first one, or
            to the last one

        The sums are exact: those of the rows that `read` gives. A ledger that a `Live` learns from keeps them, so a
        long one is read at once; any other one is summed here, some seconds for a million decisions.
        """
        from dither.log.database import days, fetching

        self.committer.begun()
        with self.database.reading() as connection, fetching.uncollected():
            return days.read(connection, self.database, record.span(since, until))

    def frames(
        self,
        which: "fetching.Which" = (),
        *,
        leave: Collection[str] = (),
        records: bool = False,
        features: str = "now",
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Decisions and rewards as a folder of `Log` has them, at one moment, and what such a folder says of itself.

        which : conditions on the decisions; leave : columns of theirs that are not read; records, features : as for
            `read`
        """
        from dither.log.database import encodings, fetching, keeping, reward_terms

        self.committer.begun()
        with self.database.reading() as connection, fetching.uncollected():
            encoder = encodings.encoder(connection) if features == "now" else None
            more: dict[str, Any] = dict(leave=leave, records=records, encoder=encoder)
            parts = list(fetching.decisions(connection, self.database, which, **more))
            events = fetching.events(connection, self.database, which)
            limits = reward_terms.ranges(connection, *which)
            about = {"reward_range": schema.ends(limits)} | keeping.facts(connection)
        decisions = fetching.together(parts)
        events = storage.renumbered(events, decisions.select("id", number="__decision"))
        return decisions.drop("__decision"), events, {"rewards": self.rewards} | about

    def export(self, folder: Any, *, records: bool = False) -> list[Path]:
        """Write all of it to Parquet, a folder for each day (UTC) in which decisions were made; -> these folders.

        `dither.log.read(folder)` reads all days, and each of them alone. Only days of which something has changed since
        the last export are written: by decisions, by rewards that came later, or by an erasure. All days are where the
        ledger was restored since or is another one, or where this process may only read. The days take their places
        together, so who reads at that time has the old log or the new one.

        records : whether contexts and records of arms are written too, as for `read`. `take_over` takes them

        Raises ValueError while another export writes into the folder, and for a folder with days that this ledger has
        not.
        """
        from dither.log import archive

        errors.true_or_false("records", records)
        return archive.export(self, address.local(folder), records=records)

    def take_over(self, folder: Any) -> int:
        """Enter the decisions and rewards of a folder that `Log` or `export` wrote; -> how many decisions are new.

        Decisions that the ledger has already are left out, so that it may be called again. All of a folder is taken
        over, or nothing.
        """
        from dither.log import archive

        return archive.take_over(self, address.local(folder))

    def __len__(self) -> int:
        from dither.log.database import fetching

        self.committer.begun()
        with self.database.reading() as connection:
            return fetching.count(connection)

    def flush(self) -> None:
        """Return when all that was written is on the disk. It is needed with wait=False alone."""
        self.committer.begun()
        self.database.sync()

    def close(self) -> None:
        """Sync, and close the connections. In the child of a fork of a ledger in memory this does nothing."""
        if self.closed:
            return
        with self.turn:
            self.committer.close()
            try:
                self.database.sync()  # says what the timer was told
            finally:
                self.database.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self.database.where!r}, rewards={self.rewards!r}, horizon={self.horizon})"

    def _forked(self) -> None:
        """In the child of a fork: leave the parent's connections and locks alone."""
        self.committer.forget()


def needed() -> None:
    """Raise an ImportError that names the extra, where SQLAlchemy or Alembic is missing."""
    for package in ("sqlalchemy", "alembic"):
        errors.imported(package, package, extra="log")
