"""Calls of `Live` that are awaited. A thread beside the event loops answers them, so no loop waits for a database.

What is asked while the thread is busy is taken together: one transaction and one sync for all. More threads were
measured, and are no quicker: they take fewer calls at a time, and pay for a sync more often. The thread is started when
something is asked, and ends when nothing was for a while.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

IDLE = 1.0  # seconds after which the thread ends
APART = 0.005  # seconds from one batch to the next, where calls come while one is answered
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
        self._thread = False  # whether there is one

    async def ask(self, asked: Any) -> Any:
        """The answer. Raises its error. What nobody waits for any more is not begun; what has begun is ended."""
        loop = asyncio.get_running_loop()
        one = Waiting(asked, loop.create_future(), loop)
        with self._called:
            self._waiting.append(one)
            if self._thread:
                self._called.notify()
            else:
                self._thread = True
                threading.Thread(target=self._work, name="dither-live", daemon=True).start()
        return await one.future

    def _work(self) -> None:
        while together := self._next():
            begun = time.monotonic()
            waiting = [one for one in together if not one.future.cancelled()]
            try:
                answers = self._answered([one.asked for one in waiting]) if waiting else []
            except BaseException as error:  # of the thread, so of all
                answers = [error] * len(waiting)
            busy = bool(self._waiting)  # before anyone is told, as who is alone may ask again at once
            for loop in {one.loop for one in waiting}:
                mine = [(one.future, said) for one, said in zip(waiting, answers, strict=True) if one.loop is loop]
                with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody waits there
                    loop.call_soon_threadsafe(_tell, mine)
            if busy and (pause := begun + APART - time.monotonic()) > 0:
                time.sleep(pause)

    def _next(self) -> list[Waiting]:
        """Those who wait; none: the thread ends."""
        with self._called:
            if not self._called.wait_for(lambda: self._waiting, IDLE):
                self._thread = False
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
