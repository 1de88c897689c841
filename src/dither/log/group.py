"""Group commit: what several threads ask for at the same time goes into one transaction.

A thread puts its request in the queue and waits for its turn. Whoever has the turn commits all requests that are in
the queue by then, so the others find theirs done. There is no thread in the background, and a lone caller waits for
nobody.
"""

import threading
from collections.abc import Callable
from typing import Any

MOST = 1000  # requests in one transaction


class Request:
    """What a call asks for, and what became of it. One of `result` and `error` is set when it is done."""

    __slots__ = ("asked", "done", "error", "result")

    def __init__(self, asked: Any) -> None:
        self.asked = asked
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def end(self, result: Any = None, error: BaseException | None = None) -> None:
        """The request is done."""
        self.result, self.error, self.done = result, error, True


class Group:
    """The queue, and the turn."""

    def __init__(self, commit: Callable[[list[Request]], None]) -> None:
        """commit : ends each of the requests that it is given, and may raise, which is the end of all of them."""
        self._commit = commit
        self._queue: list[Request] = []
        self.turn = threading.RLock()  # held while requests are committed; hold it to keep them waiting

    def submit(self, asked: Any) -> Any:
        """Wait until the request is committed; -> its result. Raises its error."""
        mine = Request(asked)
        self._queue.append(mine)  # one step for all threads, as the interpreter runs it
        while not mine.done:
            with self.turn:
                if not mine.done:
                    self._next(mine)
        if mine.error is not None:
            raise mine.error
        return mine.result

    def _next(self, mine: Request) -> None:
        requests, self._queue[:MOST] = self._queue[:MOST], []
        try:
            self._commit(requests)
        except BaseException as error:
            for request in requests:
                if not request.done:
                    request.end(error=error if request is mine or isinstance(error, Exception) else _interrupted(error))
            if not isinstance(error, Exception):
                raise


def _interrupted(error: BaseException) -> OSError:
    """What a call hears when the thread that was writing for it is interrupted."""
    return OSError(
        f"the thread that wrote for this call was interrupted ({type(error).__name__}): all of the call "
        "is there, or nothing of it. Call again: what is there is 'known', and an id that is there is refused"
    )
