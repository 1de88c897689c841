"""Questions that take a while, answered in one thread beside the pages.

A question is answered once, however often a page asks it, and the answer is kept for `KEPT` seconds. No page waits for
it longer than a moment. While one is being answered, `MOST` others may wait.
"""

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

KEPT = 60.0  # seconds
MOST = 4
Answer = TypeVar("Answer")


class Busy(Exception):
    """Too many questions wait."""


@dataclass
class _Job:
    future: "Future[Any]"
    begun: float  # by time.monotonic()


class AnswerDesk:
    """Answers questions, one after another."""

    def __init__(self, name: str) -> None:
        self._lock, self._jobs = threading.Lock(), dict[Hashable, _Job]()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"dither-{name}")

    def answer(self, question: Hashable, answered: Callable[[], Answer], *, wait: float) -> Answer | None:
        """What `answered` gives; None: it is being made.

        question : by which it is known again; wait : at most so many seconds

        Raises Busy, and what `answered` raises.
        """
        job = self._job(question, answered)
        try:
            answer: Answer = job.future.result(timeout=wait)
        except TimeoutError:
            if not job.future.done():
                return None
            raise
        return answer

    def _job(self, question: Hashable, answered: Callable[[], Any]) -> _Job:
        now = time.monotonic()
        with self._lock:
            for one in [one for one, job in self._jobs.items() if job.future.done() and now > job.begun + KEPT]:
                del self._jobs[one]
            if question not in self._jobs:
                if sum(not job.future.done() for job in self._jobs.values()) > MOST:
                    raise Busy
                self._jobs[question] = _Job(self._thread.submit(answered), now)
            return self._jobs[question]

    def close(self) -> None:
        """Let what waits go, and wait for what is being answered."""
        self._thread.shutdown(wait=True, cancel_futures=True)
