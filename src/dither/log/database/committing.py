"""What the calls of a ledger write: what several threads ask for at the same time goes into one transaction.

A thread puts its request in the queue and waits for its turn. Whoever has the turn commits all requests that are in
the queue by then, so the others find theirs done. There is no thread in the background, and a lone caller waits for
nobody.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import sqlalchemy as sa

from dither.log import record
from dither.log.database import entering, record_rows, rewarding
from dither.log.database.home import Home
from dither.log.database.lessons import DecisionBasis
from dither.log.database.refusals import Crossed, Twice
from dither.log.flushing import Flush

Rows: TypeAlias = Sequence[Mapping[str, Any]]  # by the names of columns
MOST = 1000  # requests in one transaction
TRIES = 5  # of a transaction that crosses another one


class Teacher(Protocol):
    """Who takes part in the transactions of a ledger, so that rewards are learnt where they are written.

    It takes part where there are rewards and it is not idle, and where the time `due` has come.
    """

    due: float  # by time.monotonic()

    @property
    def idle(self) -> bool:
        """Whether it has nothing to do where there are rewards."""

    def before(self, connection: sa.Connection, *, rewards: bool) -> int | None:
        """Called when a transaction has begun; -> the batch of its rewards; None: a later batch takes them."""

    def within(self, connection: sa.Connection, taught: list[Any]) -> None:
        """Called when the rows are written, before the commit. taught : x, slot, reward, time of each lesson."""

    def after(self) -> None:
        """Called after the commit."""

    def failed(self, reason: Exception) -> None:
        """Called where one of these has raised. The calls go on without the teacher."""


class Stale(Exception):
    """A decision was made from another ledger than the one that was to store it. Nothing is there: it is made again."""


class Entering(NamedTuple):
    """Decisions to enter."""

    rows: list[tuple[Any, ...]]  # in the order of `entering.COLUMNS`
    basis: DecisionBasis | None = None  # None: nothing of the ledger
    result: Any = None  # of the request, once they are there
    records: Sequence[tuple[str, bytes]] = ()  # id of a decision, and what it was made of, where that is kept


class Deciding(NamedTuple):
    """Decisions that depend on what others have decided, so they are made in the transaction that stores them.

    `decide` may be called again, where another request of the transaction is refused. Where it raises ValueError,
    TypeError or LookupError, it must have written nothing.
    """

    decide: Callable[[sa.Connection], Entering]
    ids: list[str]  # those that the user has given


class Rewarding(NamedTuple):
    """Rewards to take."""

    sent: list[rewarding.Sent]


Task: TypeAlias = Entering | Deciding | Rewarding


@dataclass(eq=False, slots=True)
class QueuedRequest:
    """What a call asks for, and what became of it. One of `result` and `error` is set when it is done."""

    task: Task | None  # None: there was nothing to ask for
    done: bool = False
    result: Any = None  # what became of each reward, or the result of what was entered
    error: BaseException | None = None
    number: int = 0  # of the commit that the disk must have, by `Home.written`; 0: none

    def end(self, result: Any = None, error: BaseException | None = None, number: int = 0) -> None:
        """The request is done."""
        self.result, self.error, self.number, self.done = result, error, number, True


class Committer:
    """Commits what the threads of one process ask for."""

    def __init__(self, home: Home, *, flush: Flush | None) -> None:
        """flush : syncs a file where calls do not wait for it."""
        self._home, self._flush = home, flush
        self.teacher: Teacher | None = None
        self._terms: str | None = None  # of the decision whose reward came last
        self._taught = False  # whether it takes part in the transaction
        self._fault: Exception | None = None  # what it has raised there
        self.closed, self._owner = False, os.getpid()
        self._begin()

    def _begin(self) -> None:
        self._queue: list[QueuedRequest] = []
        self.turn = threading.RLock()  # held while requests are committed; hold it to keep them waiting

    def forget(self) -> None:
        """In the child of a fork: leave the parent's queue, lock and timer alone."""
        self._begin()
        if self._flush is not None:
            self._flush = Flush(self._home, self._flush.seconds)

    @property
    def mine(self) -> bool:
        """Whether this process may use it: a ledger in memory belongs to the process that opened it."""
        return self._owner == os.getpid() or self._home.shared

    def begun(self) -> None:
        """Raise ValueError where the ledger is closed, or belongs to the parent of this process."""
        if self.closed:
            raise ValueError(f"the ledger in {self._home.where} is closed: open it again")
        if not self.mine:
            raise ValueError(
                f"the ledger in {self._home.where} was opened by process {self._owner}, and this is a fork of it: a "
                f"ledger in memory belongs to one process. Give it a file or a database"
            )

    def enter(self, rows: Rows) -> None:
        """Record rows that `record.Recorder` made. They are all there when this returns, or none is.

        Raises ValueError for an id that a decision has, and for what the table cannot hold.
        """
        values = [entering.IN_ORDER(record.stored(row)) for row in rows]
        if values:
            self.submit(Entering(values))

    def submit(self, task: Task) -> Any:
        """Wait until it is committed and on the disk; -> what became of each reward, or the result of decisions."""
        mine = QueuedRequest(task)
        self.settle([mine])
        if mine.error is not None:
            raise mine.error
        return mine.result

    def settle(self, mine: list[QueuedRequest]) -> None:
        """Return when each of one or more requests is refused, or committed and on the disk. It says so itself.

        Raises OSError where the disk refuses the sync, and ValueError where the ledger is closed.
        """
        self.begun()
        self._queue.extend(mine)  # one step for all threads, as the interpreter runs it
        last = mine[-1]  # it is committed with the others, or after them
        while not last.done:
            with self.turn:
                if not last.done:
                    self._next(mine)
        number, done = mine[0].number, mine[0].error is None
        if len(mine) > 1:
            number, done = max(one.number for one in mine), any(one.error is None for one in mine)
        if done:
            self._home.reach(number)  # the next transaction goes on meanwhile
            if self._flush is not None:
                self._flush.due()

    def _next(self, mine: list[QueuedRequest]) -> None:
        """Commit what is in the queue. An error that does not belong to one request ends all of them."""
        requests = self._queue[:MOST]
        del self._queue[: len(requests)]  # not what came meanwhile
        try:
            self.commit(requests)
        except BaseException as error:
            for request in requests:
                if not request.done:
                    belongs = isinstance(error, Exception) or any(request is one for one in mine)
                    request.end(error=error if belongs else _interrupted(error))
            if not isinstance(error, Exception):
                raise

    def close(self) -> None:
        """No more calls, and no more syncs by the timer."""
        if self._flush is not None:
            self._flush.stop()
        self.closed = True

    def commit(self, requests: list[QueuedRequest]) -> None:
        """One transaction for all. A request that the rules refuse ends with its error; the others go on."""
        try:
            ended = self._tried(requests)
        except OSError:
            raise
        except Exception as reason:  # a row that the database does not take, or `Twice`
            if len(requests) > 1:
                self._alone(requests)
            elif isinstance(reason, Twice):  # of an id, or of a reward where another process was quicker
                requests[0].end(error=self._twice(requests[0].task))
            else:
                raise
            return
        number = self._home.written
        try:  # no call is refused for what fails here, since what it asked for is there
            if self._taught and self.teacher is not None:
                _after(self.teacher)
            self._home.wipe()
        finally:
            for request, (result, error) in zip(requests, ended, strict=True):
                request.end(result, error, number)

    def _alone(self, requests: list[QueuedRequest]) -> None:
        """One transaction for each, so that each has its own error."""
        for request in requests:
            try:
                self.commit([request])
            except OSError:
                raise
            except Exception as error:
                request.end(error=error)

    def _tried(self, requests: list[QueuedRequest]) -> list[tuple[Any, Exception | None]]:
        """One transaction, again without the teacher where its part of it fails."""
        rewards = any(isinstance(request.task, Rewarding) for request in requests)
        teacher = self.teacher
        if teacher is not None and (teacher.idle if rewards else time.monotonic() < teacher.due):
            teacher = None
        self._fault = None
        try:
            return self._tries(requests, teacher)
        except Exception:
            if self._fault is None or teacher is None:
                raise
            teacher.failed(self._fault)
            return self._tries(requests, None)

    def _tries(self, requests: list[QueuedRequest], teacher: Teacher | None) -> list[tuple[Any, Exception | None]]:
        """`_transaction`, again where another one stood in its way."""
        for _ in range(TRIES - 1):
            try:
                return self._transaction(requests, teacher)
            except Crossed:
                self._fault = None
                time.sleep(random.uniform(0, 0.01))  # so that two that crossed do not cross again
        return self._transaction(requests, teacher)

    def _transaction(
        self, requests: list[QueuedRequest], teacher: Teacher | None
    ) -> list[tuple[Any, Exception | None]]:
        self._taught = teacher is not None
        if teacher is None and self._home.postgres and len(requests) == 1:  # where it may be one round trip
            task = requests[0].task
            if isinstance(task, Entering) and len(task.rows) == 1 and task.basis is not None:
                self._entered_alone(task, task.basis)
                return [(task.result, None)]
            if isinstance(task, Rewarding) and len(task.sent) == 1 and self._counted_alone(task.sent[0]):
                return [(["counted"], None)]
        ended: list[tuple[Any, Exception | None]] = [(None, None)] * len(requests)
        new: list[Entering] = []
        paid: list[tuple[int, list[rewarding.Sent]]] = []
        turns: list[tuple[int, Deciding]] = []
        for i, request in enumerate(requests):
            task = request.task
            if isinstance(task, Entering):
                new.append(task)
                ended[i] = task.result, None
            elif isinstance(task, Rewarding):
                paid.append((i, task.sent))
            elif task is not None:
                turns.append((i, task))
        with self._home.writing(later=True) as connection:
            batch, taught = None, []
            if teacher is not None:
                batch = self._blamed(teacher.before, connection, rewards=bool(paid))
            for i, turn in turns:  # first, as they lock
                ended[i] = self._decided(connection, turn)
            if new:
                self._insert(connection, new)
            if paid:
                ids = [one.id for _, sent in paid for one in sent]
                judge = rewarding.Judge(connection, self._home, ids)
                for i, sent in paid:
                    try:
                        for one in sent:
                            judge.refuse(one)
                    except (LookupError, ValueError) as error:
                        ended[i] = None, error
                    else:
                        ended[i] = [judge.answer(one) for one in sent], None
                rewarding.insert(connection, self._home, judge.rows, batch)
                if judge.later:
                    rewarding.insert(connection, self._home, judge.later)
                taught, self._terms = judge.taught, judge.terms or self._terms
            if teacher is not None:
                self._blamed(teacher.within, connection, taught)
        return ended

    def _entered_alone(self, task: Entering, basis: DecisionBasis) -> None:
        """Store a single decision in one round trip. Raises Stale as `_insert` does."""
        marks = {"changes_": basis.changes, "batch_": basis.batch, "mark_": basis.mark}
        with self._home.writing(later=True, alone=True) as connection:
            values = dict(zip(entering.COLUMNS, task.rows[0], strict=True)) | marks
            statements = entering.ALONE
            if task.records:
                statements, values["record_"] = record_rows.ALONE, task.records[0][1]
            if not self._home.stored(connection, statements, values):
                raise Stale

    def _counted_alone(self, sent: rewarding.Sent) -> bool:
        """Take a single reward in one round trip; -> whether it counts. Else nothing is there, and rules must say."""
        if self._terms is None or not rewarding.plain(sent, self._terms):
            return False
        values = {"id": sent.id, "reward": sent.reward, "time": sent.time, "terms": self._terms}
        try:
            with self._home.writing(later=True, alone=True) as connection:
                return self._home.stored(connection, rewarding.ALONE, values)
        except Twice:  # another process was quicker
            return False

    def _blamed(self, step: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
        """A part of the transaction that is the teacher's. What it raises is its fault."""
        try:
            return step(*arguments, **settings)
        except Exception as reason:
            self._fault = reason
            raise

    def _decided(self, connection: sa.Connection, task: Deciding) -> tuple[Any, Exception | None]:
        """Decide and enter; -> the result, or the error of a request that was refused before it wrote anything."""
        try:
            new = task.decide(connection)
        except (ValueError, TypeError, LookupError) as error:
            return None, error
        self._insert(connection, [new])
        return new.result, None

    def _insert(self, connection: sa.Connection, new: list[Entering]) -> None:
        """Insert decisions. Raises Stale where the ledger has other marks than their basis.

        The statement that inserts a row returns the marks, so the comparison costs no statement more.
        """
        rest: list[tuple[Any, ...]] = []
        compared: set[DecisionBasis] = set()
        there = None
        for rows, basis, *_ in new:
            if basis is None or basis in compared or not rows:
                rest += rows
                continue
            there = entering.first(connection, self._home, rows[0])
            if (there.changes, there.mark) != (basis.changes, basis.mark):
                raise Stale
            compared.add(basis)
            rest += rows[1:]
        if there is None:
            entering.enter(connection, self._home, rest)
        else:
            entering.others(connection, self._home, rest, there)
        if records := [row for one in new for row in one.records]:
            record_rows.put(connection, self._home, records)

    def _twice(self, task: Task | None) -> ValueError:
        """The error of a request with an id that is there, or that it gives twice."""
        ids = [row[0] for row in task.rows] if isinstance(task, Entering) else []
        ids = task.ids if isinstance(task, Deciding) else ids
        with self._home.reading() as connection:
            there = entering.taken(connection, ids)
        twice = [id for at, id in enumerate(ids) if id in there or id in ids[:at]]
        return ValueError(f"id {(twice or ['?'])[0]!r} was given to a decision before: ids must differ")


def _after(teacher: Teacher) -> None:
    """Let it learn what was committed."""
    try:
        teacher.after()
    except Exception as reason:
        teacher.failed(reason)


def _interrupted(error: BaseException) -> OSError:
    """What a call hears when the thread that was writing for it is interrupted."""
    return OSError(
        f"the thread that wrote for this call was interrupted ({type(error).__name__}): all of the call "
        "is there, or nothing of it. Call again: what is there is 'known', and an id that is there is refused"
    )
