"""`Ledger`: decisions and their rewards in a database that several processes share.

The rules of rewards are those of `reward_rules`, the tables those of `database`. A call returns when what it wrote is
on the disk. Threads that call at the same time share one transaction (`database.committing`).
"""

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, overload

import numpy as np

from dither.base import errors, forks
from dither.deciding.answers import Decision, Decisions
from dither.log import address, flushing, record, reward_rules, schema, stated, storage, terms
from dither.log.logged import Logged
from dither.log.record import AboutRecord, Recorded, RecordedMany, Recorder
from dither.log.reward_rules import Answer, Many, id_text
from dither.log.troubles import Trouble

if TYPE_CHECKING:
    import sqlalchemy as sa

    from dither.deciding.answers import OneOrMany
    from dither.log.record import RecordedOneOrMany

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
    wait : whether a call waits for the disk. False: the calls of a process that is killed are there, but if the machine
        loses power, or the server of the database stops, the last `flush_seconds` may be lost
    flush_seconds : with wait=False, how often a file is synced. PostgreSQL has a setting of its own, wal_writer_delay

    The settings of rewards are kept in the ledger. Whoever opens it again may leave them out.

    Any number of threads and processes may hold one ledger. After a fork, the child has connections of its own, but a
    ledger in memory belongs to the parent.

    Raises ValueError for settings other than those that the ledger has, and for a file that is no ledger; OSError where
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
        wait: bool = True,
        flush_seconds: float = 1.0,
    ) -> None:
        errors.true_or_false("wait", wait)
        errors.positive("flush_seconds", flush_seconds, most=1e9)
        wanted = terms.wanted(rewards=rewards, horizon=horizon, default=default, late=late, parts=parts)
        needed()
        from dither.log.database import committing
        from dither.log.database import home as homes

        self.database = homes.Home(home, wait=wait)
        try:
            self.terms = terms.settle(self.database, wanted)
        except BaseException:
            self.database.close()
            raise
        self.rewards, self.horizon, self.default, self.late, self.parts = self.terms
        self.ticks = None if self.horizon is None else self.horizon // timedelta(microseconds=1)  # the horizon, whole
        flush = None if wait else flushing.Flush(self.database, flush_seconds)
        self.committer = committing.Committer(self.database, self.terms, horizon=self.ticks, flush=flush)
        self._facts: dict[str, tuple[str, ...]] = {}  # "names" of the features, and ids of the "slots"
        self.look()
        forks.tell(self)

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
        """Read the names of features and the ids of slots, which another process may have passed.

        anew : also those that are known, since the ledger may be another one
        """
        from dither.log.database import keeping

        if anew or len(self._facts) < 2:
            with self.database.reading() as connection:
                about = keeping.facts(connection)
            self._facts = {name: tuple(about[name]) for name in ("names", "slots") if about.get(name)}

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
        not a finite number, and for a part that is empty or not one of `parts`; OSError where the database refuses.
        Nothing has changed then.
        """
        from dither.log.database import committing, rewarding

        many = isinstance(id, (list, tuple, np.ndarray)) and np.ndim(id) > 0
        if part is not None:
            reward_rules.part(part)
        if self.parts is not None and part not in self.parts:
            raise ValueError(
                f"part must be one of {', '.join(map(repr, self.parts))}, which make a reward; got {part!r}"
            )
        if many and np.ndim(r) != 1:
            raise ValueError(f"give one reward for each id: {len(id)} ids, got {r!r}")
        ids, rs = (list(id), list(r)) if many else ([id], [r])
        if len(ids) != len(rs):
            raise ValueError(f"give one reward for each id: {len(ids)} ids, {len(rs)} rewards")
        at = time_ns() // 1000 if time is None else record.micros(schema.moment(time))
        texts = [id_text(one) for one in ids]
        sent = [
            rewarding.Sent(i, reward_rules.finite(one, f"for decision {i!r}"), part, at)
            for i, one in zip(texts, rs, strict=True)
        ]
        answers = self.committer.submit(committing.Rewarding(sent)) if sent else []
        return answers if many else answers[0]

    @property
    def troubles(self) -> list[Trouble]:
        """What failed beside calls that were answered, the newest last; `Live.troubles` says more."""
        return self.database.troubles.latest

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

    def expire(self, now: Any = None) -> int:
        """Close the decisions whose horizon has passed. Those without a reward get the default, where there is one.

        now : a datetime, an ISO 8601 text or seconds since 1970; None: now
        -> how many had no reward

        Raises ValueError for a ledger without a horizon.
        """
        from dither.log.database import rewarding

        self.committer.begun()
        if self.horizon is None:
            raise ValueError("the ledger has no horizon, so no decision expires: Ledger(home, horizon=...)")
        at = record.micros(schema.moment(now))
        with self.holding() as connection:
            return rewarding.expire(connection, self.database, self.terms, at)

    def pending(self, limit: int | None = None) -> Iterator[Pending]:
        """The decisions that wait for a reward, the oldest first: those without one that are not closed."""
        from dither.log.database import rewarding

        def time(at: int) -> datetime:
            return record.EPOCH + timedelta(microseconds=at)

        self.committer.begun()
        after, left = -1, math.inf if limit is None else limit
        while left > 0:  # in pieces, so that no transaction is open while the caller looks at them
            with self.database.reading() as connection:
                rows = rewarding.pending(connection, self.terms, after, int(min(left, _TOGETHER)))
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

        Raises TypeError unless ids or one column is given; ValueError for a column of the log's own, and for None,
        which would be all those without a value; LookupError where decisions have columns of your own, and none has
        this one.
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
        if sought is None:
            raise ValueError(f"{by}=None would erase all decisions without a value of {by!r}: erase their ids")
        with self.turn:
            with self.database.writing() as connection:
                erased = erasing.erase(connection, self.database, by, sought if ids is not None else [sought])
            self.database.erased()
        return erased

    def read(self, *, rewards: str | None = None) -> Logged:
        """All decisions with the rewards that count, as `dither.log.read` gives them.

        rewards : the rule for several rewards of a decision; None: that of the ledger

        Raises ValueError for a ledger without decisions.
        """
        if rewards is not None:
            errors.among("rule for rewards", rewards, reward_rules.RULES)
        decisions, events, about = self.frames()
        if decisions.height == 0:
            raise ValueError(f"the ledger in {self.database.where} holds no decisions: there is nothing to evaluate")
        names, slots = (tuple(about[name]) if about.get(name) else None for name in ("names", "slots"))
        frame = storage.join(decisions, events, rule=rewards or self.rewards)
        return Logged(frame, names=names, encoded_by=about.get("encoded_by"), slot_ids=slots)

    def frames(self) -> tuple[Any, Any, dict[str, Any]]:
        """Decisions and rewards as a folder of `Log` has them, at one moment, and what such a folder says of itself."""
        from dither.log.database import fetching, keeping

        self.committer.begun()
        with self.database.reading() as connection, fetching.uncollected():
            parts = list(fetching.decisions(connection, self.database))
            events = fetching.events(connection, self.database)
            about = keeping.facts(connection)
        decisions = fetching.together(parts)
        events = storage.renumbered(events, decisions.select("id", number="__decision"))
        return decisions.drop("__decision"), events, {"rewards": self.rewards} | about

    def export(self, folder: Any) -> list[Path]:
        """Write all of it to Parquet, a folder for each day (UTC) in which decisions were made; -> these folders.

        `dither.log.read(folder)` reads all days, and each of them alone. A day that is there is written anew.
        """
        from dither.log import archive

        return archive.export(self, address.local(folder))

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
