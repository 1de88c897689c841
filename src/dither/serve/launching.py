"""The service as processes of its own: uvicorn runs it, each worker opens the ledger, and gives it back at the end."""

import asyncio
import contextlib
import dataclasses
import gc
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from dither.base import errors
from dither.live import Live
from dither.serve import guard, listening, secret, service

NAME = "DITHER_SERVE"  # the variable by which a worker knows what it opens; it may hold a password, as the token's does
FACTORY = "dither.serve.launching:application"
TURNS = 0.001  # seconds after which a thread that waits for the interpreter gets it: requests and decisions take turns
GRACE = 30  # seconds in which running requests end, once the service is told to stop
SILENT = 60  # seconds until a worker that says nothing is ended, with its requests: uvicorn's 5 pass on a busy machine


@dataclasses.dataclass(frozen=True)
class Opening:
    """What each worker opens, and how much it answers; `service.app` and `Live` say what each parameter means."""

    home: str
    hosts: tuple[str, ...] = ()
    learn: bool | str = "background"
    store: str = "all"
    expire: float | None = None  # seconds between two calls of `Live.expire`; None: nobody calls it here
    arms: int = 1000
    requests: int = 1000
    may_erase: bool = False
    body: int = guard.Limits.body
    seconds: float = guard.Limits.seconds
    at_once: int = guard.Limits.at_once

    def __post_init__(self) -> None:
        if self.expire is not None:
            errors.positive("expire", self.expire, most=1e9)


def run(opening: Opening, *, host: str, port: int, workers: int, ready: Callable[[], None]) -> None:
    """Serve until a signal ends it. Then running requests are answered, and the ledger is closed.

    ready : called when nothing is left that could be refused

    Raises ValueError for an address that others reach where there is no token, OSError for one that is taken, and what
    `Live` and `app` raise; nothing has been served then.
    """
    secret.fits(host)  # before the ledger is opened
    with Live(
        opening.home, learn=False, store=opening.store
    ) as live:  # what is wrong is said here, and not by each worker
        _app(live, opening)
    os.environ[NAME] = json.dumps(dataclasses.asdict(opening))
    how: dict[str, Any] = {"factory": True, "timeout_keep_alive": 30, "timeout_graceful_shutdown": GRACE}
    how |= {"timeout_worker_healthcheck": SILENT}
    listening.run(FACTORY, host=host, port=port, ready=ready, extra="serve", workers=workers, **how)


def application() -> FastAPI:
    """The app of one worker."""
    settings = json.loads(os.environ[NAME])
    opening = Opening(**settings | {"hosts": tuple(settings["hosts"])})
    return _app(Live(opening.home, learn=opening.learn, store=opening.store), opening)  # type: ignore[arg-type]


def _app(live: Live, opening: Opening) -> FastAPI:
    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sys.setswitchinterval(TURNS)
        gc.collect()
        gc.freeze()  # what has been imported stays: each look at it stops all requests for 50 to 90 ms
        expiring = None if opening.expire is None else asyncio.create_task(_expired(live, opening.expire))
        try:
            yield
        finally:
            if expiring is not None:
                expiring.cancel()
            await run_in_threadpool(live.close)

    limits = guard.Limits(opening.body, opening.seconds, opening.at_once)
    more: dict[str, Any] = {"arms": opening.arms, "requests": opening.requests, "may_erase": opening.may_erase}
    return service.app(live, hosts=opening.hosts, limits=limits, lifespan=lifespan, **more)


async def _expired(live: Live, seconds: float) -> None:
    """Close the decisions whose horizon has passed, now and then. What fails is tried again the next time."""
    while True:
        await asyncio.sleep(seconds)
        with contextlib.suppress(OSError):
            await run_in_threadpool(live.expire)
