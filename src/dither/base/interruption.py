"""Ctrl-C while processes of this machine compute: they end at once, and it is raised between two results.

A terminal sends Ctrl-C to all processes. Those that compute do not hear it: one that ends by itself says so in a
traceback of its own, and joblib looks for it in vain. This process hears it wherever it is, also in the midst of a file
that it writes. So it notes it, kills the processes, and raises it where the next result would come. What has come is
kept by then. Who presses Ctrl-C again does not wait for that.

The workers of a cluster are not killed, and it is raised at once. It waits only while they start or stop, since half a
cluster cannot be stopped.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from multiprocessing import resource_tracker
from typing import Any


class Interruption:
    """What happens to Ctrl-C within the context. In a thread that is not the main one: what happened before.

    late : whether processes of this machine compute, which are ended, and it is raised between two results
    """

    def __init__(self, *, late: bool) -> None:
        self.late, self.waits, self.heard = late, late, False
        self.before: Any = None  # what heard Ctrl-C before; None: it is not heard here

    def __enter__(self) -> "Interruption":
        listens = callable(signal.getsignal(signal.SIGINT))  # else it is ignored, as under nohup
        if listens and threading.current_thread() is threading.main_thread():  # no other thread may set it
            self.before = signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(self, *error: object) -> None:
        if self.before is None:
            return
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self.before)
        if self.heard and error[0] is not KeyboardInterrupt:
            self.before(signal.SIGINT, None)

    def _hear(self, number: int, frame: Any) -> None:
        again, self.heard = self.heard, True
        if self.late:
            end_processes()
        if again or not self.waits:
            self.before(number, frame)

    @contextmanager
    def around(self, workers: AbstractContextManager[Any]) -> Iterator[None]:
        """The context of the workers, whose start and end are not broken off."""
        with ExitStack() as stack:
            self.waits = True
            with nullcontext() if self.late else self.deaf():
                stack.enter_context(workers)
            stack.callback(self._wait)
            self.waits = self.late
            if self.heard and not self.late:
                self.before(signal.SIGINT, None)
            yield

    def _wait(self) -> None:
        self.waits = True

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """Processes that start in here do not hear Ctrl-C, since a process has from its parent what is blocked."""
        if self.before is None or os.name == "nt":  # which has no such thing
            yield
            return
        from joblib.externals.loky.backend.resource_tracker import ensure_running

        ensure_running()  # at the end of its start SIGINT is unblocked; so it is with Python's own
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            if self.heard and self.late:  # before all processes had begun
                end_processes()

    def between(self, answers: Iterator[Any]) -> Iterator[Any]:
        """The answers, until Ctrl-C was heard. Where whoever takes them ends early, so do the processes."""
        try:
            for answer in answers:
                yield answer
                if self.heard:
                    break
        except GeneratorExit:
            self._drop(answers)
            raise
        except Exception:
            if not self.heard:  # else joblib tells that the processes were killed
                raise
        if self.heard:
            self._drop(answers)

    def _drop(self, answers: Iterator[Any]) -> None:
        """End the processes, and let joblib see that they ended."""
        end_processes()
        with suppress(Exception):
            for _ in answers:
                pass


def end_processes() -> None:
    """Kill the processes that joblib has started here, and those that they have started."""
    from joblib.externals.loky.backend.process import LokyProcess
    from joblib.externals.loky.backend.utils import kill_process_tree

    for child in multiprocessing.active_children():
        if isinstance(child, LokyProcess):
            kill_process_tree(child)
