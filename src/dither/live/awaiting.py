"""Calls of `Live` that are awaited. Threads beside the event loops answer them, so no loop waits for a database.

What is asked while the threads are busy is taken together: one transaction and one sync for all. While one thread waits
for the disk, another one decides and commits what came meanwhile. The threads are started when something is asked, and
end when nothing was for a while.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

THREADS = 3  # one waits for the disk, one for the turn to sync, one commits
IDLE = 1.0  # seconds after which a thread ends
MOST = 1000  # that are answered together


class Waiting(NamedTuple):
    """What was asked, and who waits for it."""

    asked: Any
    future: "asyncio.Future[Any]"
    loop: asyncio.AbstractEventLoop


class Desk:
    """Answers what is asked in event loops, of any thread."""

    def __init__(self, answered: Callable[[list[Any]], list[Any]]) -> None:
        """answered : all that was asked -> the answer to each, or its error."""
        self._answered = answered
        self.begin()

    def begin(self) -> None:
        """Nobody waits, and there is no thread: at first, and in the child of a fork."""
        self._waiting: list[Waiting] = []
        self._called = threading.Condition()
        self._threads, self._idle = 0, 0

    async def ask(self, asked: Any) -> Any:
        """The answer. Raises its error. What nobody waits for any more is not begun; what has begun is ended."""
        loop = asyncio.get_running_loop()
        one = Waiting(asked, loop.create_future(), loop)
        with self._called:
            self._waiting.append(one)
            if self._idle:
                self._called.notify()
            elif self._threads < THREADS:
                self._threads += 1
                threading.Thread(target=self._work, name="dither-live", daemon=True).start()
        return await one.future

    def _work(self) -> None:
        while together := self._next():
            waiting = [one for one in together if not one.future.cancelled()]
            try:
                answers = self._answered([one.asked for one in waiting]) if waiting else []
            except BaseException as error:  # of the thread, so of all
                answers = [error] * len(waiting)
            for loop in {one.loop for one in waiting}:
                mine = [(one.future, said) for one, said in zip(waiting, answers, strict=True) if one.loop is loop]
                with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody waits there
                    loop.call_soon_threadsafe(_tell, mine)

    def _next(self) -> list[Waiting]:
        """Those who wait; none: the thread ends."""
        with self._called:
            while not self._waiting:
                self._idle += 1
                called = self._called.wait(IDLE)
                self._idle -= 1
                if not called and not self._waiting:
                    self._threads -= 1
                    return []
            together = self._waiting[:MOST]
            del self._waiting[:MOST]
            return together


def _tell(answers: "list[tuple[asyncio.Future[Any], Any]]") -> None:
    """Give the answers, in the thread of their loop."""
    for future, said in answers:
        if future.done():  # cancelled
            continue
        if isinstance(said, StopIteration):  # which no future takes
            said = RuntimeError(f"the call raised {said!r}")
        if isinstance(said, BaseException):
            future.set_exception(said)
        else:
            future.set_result(said)
