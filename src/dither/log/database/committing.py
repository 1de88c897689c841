"""What the calls of a ledger write: one transaction for all that ask at the same time (`log.group`)."""

import random
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import sqlalchemy as sa

from dither.log import group
from dither.log.database import entering, rewarding
from dither.log.database.home import Crossed, Home, Twice

TRIES = 5  # of a transaction that crosses another one


class Teacher(Protocol):
    """Who takes part in the transactions of a ledger, so that rewards are learnt where they are written.

    It takes part where there are rewards, and where the time `due` has come.
    """

    due: float  # by time.monotonic()

    def before(self, connection: sa.Connection, *, rewards: bool) -> int | None:
        """Called when a transaction has begun; -> the number of the batch that rewards which count now are of."""

    def within(self, connection: sa.Connection, taught: list[Any]) -> None:
        """Called when the rows are written, before the commit. taught : x, slot, reward, time of each lesson."""

    def after(self) -> None:
        """Called after the commit."""


class Entering(NamedTuple):
    """Decisions to enter, as `entering.values` makes them."""

    rows: list[tuple[Any, ...]]


class Deciding(NamedTuple):
    """Decisions that depend on what others have decided, so they are made in the transaction that stores them."""

    decide: Callable[[sa.Connection], tuple[list[tuple[Any, ...]], Any]]  # -> the rows, as of `Entering`, and a result
    ids: list[str]  # those that the user has given


class Rewarding(NamedTuple):
    """Rewards to take."""

    sent: list[rewarding.Sent]


class Committer:
    """Commits what the threads of one process ask for."""

    def __init__(self, home: Home, rules: rewarding.Rules) -> None:
        self._home, self._rules = home, rules
        self.teacher: Teacher | None = None
        self._taught = False  # whether it takes part in the transaction
        self.forget()

    def forget(self) -> None:
        """In the child of a fork: leave the parent's queue and lock alone."""
        self.group = group.Group(self.commit)

    def submit(self, asked: Entering | Deciding | Rewarding) -> Any:
        """Wait until it is committed and on the disk; -> what became of each reward, or the result of `Deciding`."""
        result, number = self.group.submit(asked)
        self._home.reach(number)  # the next transaction goes on meanwhile
        return result

    @property
    def turn(self) -> "threading.RLock":
        """The lock under which this process writes."""
        return self.group.turn

    def commit(self, requests: list[group.Request]) -> None:
        """One transaction for all. A request that the rules refuse ends with its error and leaves the others alone."""
        try:
            ended = self._tried(requests)
        except Twice:  # of an id, or of a reward where another process was quicker
            if len(requests) == 1:
                requests[0].end(error=self._twice(requests[0].asked))
                return
            self._alone(requests)
            return
        except OSError:
            raise
        except Exception:  # a row that the database does not take
            if len(requests) == 1:
                raise
            self._alone(requests)
            return
        number = self._home.written
        if self._taught and self.teacher is not None:
            self.teacher.after()  # outside the tries: the rows are there
        for request, (result, error) in zip(requests, ended, strict=True):
            request.end((result, number), error)

    def _alone(self, requests: list[group.Request]) -> None:
        """One transaction for each, so that each has its own error."""
        for request in requests:
            try:
                self.commit([request])
            except OSError:
                raise
            except Exception as error:
                request.end(error=error)

    def _tried(self, requests: list[group.Request]) -> list[tuple[Any, Exception | None]]:
        """`_transaction`, again where another one stood in its way."""
        for _ in range(TRIES - 1):
            try:
                return self._transaction(requests)
            except Crossed:
                time.sleep(random.uniform(0, 0.01))  # so that two that crossed do not cross again
        return self._transaction(requests)

    def _transaction(self, requests: list[group.Request]) -> list[tuple[Any, Exception | None]]:
        ended: list[tuple[Any, Exception | None]] = [(None, None)] * len(requests)
        new = [request.asked.rows for request in requests if isinstance(request.asked, Entering)]
        paid = [(i, request.asked.sent) for i, request in enumerate(requests) if isinstance(request.asked, Rewarding)]
        teacher = self.teacher if paid or (self.teacher is not None and time.monotonic() >= self.teacher.due) else None
        self._taught = teacher is not None
        with self._home.writing(later=True) as connection:
            batch, taught = None, []
            if teacher is not None:
                batch = teacher.before(connection, rewards=bool(paid))
            for i, request in enumerate(requests):  # first, as they lock
                if isinstance(request.asked, Deciding):
                    ended[i] = self._decided(connection, request.asked)
            entering.enter(connection, self._home, [row for rows in new for row in rows])
            if paid:
                ids = [one.id for _, sent in paid for one in sent]
                judge = rewarding.Judge(connection, self._home, self._rules, ids)
                for i, sent in paid:
                    try:
                        for one in sent:
                            judge.refuse(one)
                    except LookupError as error:
                        ended[i] = None, error
                    else:
                        ended[i] = [judge.answer(one) for one in sent], None
                rewarding.insert(connection, self._home, judge.rows, batch)
                taught = judge.taught
            if teacher is not None:
                teacher.within(connection, taught)
        return ended

    def _decided(self, connection: sa.Connection, asked: Deciding) -> tuple[Any, Exception | None]:
        """Decide and enter; -> the result, or the error of a request that was refused before it wrote anything."""
        try:
            rows, result = asked.decide(connection)
        except (ValueError, TypeError, LookupError) as error:
            return None, error
        entering.enter(connection, self._home, rows)
        return result, None

    def _twice(self, asked: Entering | Deciding | Rewarding) -> ValueError:
        """The error of a request with an id that is there, or that it gives twice."""
        ids = [entering.id_of(row) for row in asked.rows] if isinstance(asked, Entering) else []
        ids = asked.ids if isinstance(asked, Deciding) else ids
        with self._home.reading() as connection:
            there = entering.taken(connection, ids)
        twice = [id for at, id in enumerate(ids) if id in there or id in ids[:at]]
        return ValueError(f"id {(twice or ['?'])[0]!r} was given to a decision before: ids must differ")
