"""The timer that syncs a file now and then, where calls do not wait for the disk."""

import threading
from typing import Any


class Flush:
    """Syncs a file so many seconds after something was written."""

    def __init__(self, home: Any, seconds: float) -> None:
        self.seconds, self._home = float(seconds), home
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def due(self) -> None:
        """Something was written: sync after so many seconds."""
        if self._timer is None:
            with self._lock:
                if self._timer is None:
                    self._timer = threading.Timer(self.seconds, self._run)
                    self._timer.daemon = True
                    self._timer.start()

    def _run(self) -> None:
        self._timer = None  # what is written from now on is due again
        self._home.sync()

    def stop(self) -> None:
        """No more syncs."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
