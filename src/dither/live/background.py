"""Learning beside the calls: a thread that numbers the rewards which wait, and learns them.

It is for who opens a `Live` with `learn="background"`. Then no call takes part in the learning. Rewards that come while
the thread is at work, or rests, are one batch.
"""

import threading
import weakref

from dither.live.learner import Learner

REST = 0.1  # seconds between two batches, so that rewards come together


class Background:
    """The thread of one learner. It ends when it is closed, or when the learner is gone."""

    def __init__(self, learner: Learner, seconds: float) -> None:
        """seconds : how often it looks for rewards that other processes have written."""
        self._learner, self._seconds = weakref.ref(learner), seconds
        self.begin()

    def begin(self) -> None:
        """There is no thread: at first, and in the child of a fork."""
        self._called, self._closed = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def call(self) -> None:
        """There are rewards to learn."""
        self._called.set()
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    work = (self._learner, self._seconds, self._called, self._closed)
                    self._thread = threading.Thread(target=_work, args=work, name="dither-learning", daemon=True)
                    self._thread.start()

    def close(self) -> None:
        """Return when the thread has ended. A batch that it learns is learnt first."""
        self._closed.set()
        self._called.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()


def _work(learner: "weakref.ref[Learner]", seconds: float, called: threading.Event, closed: threading.Event) -> None:
    while not closed.is_set():
        called.clear()
        one = learner()
        if one is None:
            return
        more = one.beside()
        del one  # so that it may go
        if not more and not closed.wait(REST):
            called.wait(seconds)
