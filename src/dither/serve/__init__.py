"""A ledger over HTTP: decisions and rewards for whatever speaks JSON (docs/serve.md). It needs the extra `serve`.

app         an ASGI app of a `dither.Live`, to be mounted or to be run
Limits      how much a request may ask for
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dither.serve.guard import Limits
    from dither.serve.service import app

__all__ = ["Limits", "app"]


def __getattr__(name: str) -> Any:
    """Imported where it is used: the page of a ledger needs the guard alone, which needs no FastAPI."""
    from dither.base import errors

    if name == "app":
        errors.imported("fastapi", "fastapi", extra="serve")
        from dither.serve.service import app

        return app
    if name == "Limits":
        errors.imported("starlette", "starlette", extra="serve")
        from dither.serve.guard import Limits

        return Limits
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
