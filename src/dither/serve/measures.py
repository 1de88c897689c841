"""Numbers of the service for Prometheus: how many requests were answered, with which status, and how long they took."""

from typing import Any

import prometheus_client
from starlette.types import Scope

NOWHERE = "none"  # the path of a request that no endpoint took, so that a stranger cannot make names of series
MEDIA = prometheus_client.CONTENT_TYPE_LATEST
TEXT: dict[int | str, dict[str, Any]] = {
    200: {"description": "Lines of text", "content": {"text/plain": {"schema": {"type": "string"}}}}
}
BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0)  # seconds


class Measures:
    """Those of one app in one process."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, int], tuple[Any, Any]] = {}
        self._registry = prometheus_client.CollectorRegistry()
        more: dict[str, Any] = {"registry": self._registry}
        self._count = prometheus_client.Counter(
            "dither_http_requests", "Requests that were answered", ["path", "status"], **more
        )
        self._seconds = prometheus_client.Histogram(
            "dither_http_seconds", "How long they took", ["path"], buckets=BUCKETS, **more
        )

    def told(self, scope: Scope, status: int, seconds: float) -> None:
        """A request was answered."""
        path = getattr(scope.get("route"), "path", NOWHERE)
        count, took = self._series(path, status)
        count.inc()
        took.observe(seconds)

    def _series(self, path: str, status: int) -> tuple[Any, Any]:
        if (path, status) not in self._of:
            self._of[path, status] = self._count.labels(path, str(status)), self._seconds.labels(path)
        return self._of[path, status]

    def text(self) -> str:
        """All of them, as Prometheus reads them."""
        return prometheus_client.generate_latest(self._registry).decode()
