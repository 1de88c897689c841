"""How uvicorn runs a service, for both commands: the address is tried first, and told when nothing can be refused."""

import socket
from collections.abc import Callable
from typing import Any

from dither.base import errors

HOW: dict[str, Any] = {
    "log_level": "warning",
    "access_log": False,
    "proxy_headers": False,  # so that nobody is taken for this machine who is not
    "server_header": False,
    "ws": "none",
    "lifespan": "on",
}


def run(app: Any, *, host: str, port: int, ready: Callable[[], None], extra: str, **more: Any) -> None:
    """Serve until a signal ends it.

    app, more : as of `uvicorn.run`; host : one that `secret.fits`; extra : which has uvicorn
    ready : called when nothing is left that could be refused

    Raises OSError for an address that is taken.
    """
    uvicorn = errors.imported("uvicorn", "uvicorn", extra=extra)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    socket.create_server((host, port), family=family).close()
    ready()
    uvicorn.run(app, host=host, port=port, **HOW, **more)
