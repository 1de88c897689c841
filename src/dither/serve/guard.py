"""Who may ask, from where, how much, and how many at once: the ASGI middleware before a service and before the page.

In this order:

    headers     each response says what a browser may do with it; an error of the code is 500, without its words
    host        the Host is one that is served (400), so that no name of a stranger leads here (DNS rebinding)
    token       without DITHER_TOKEN only this machine may ask (403); with it, who has the token (401)
    origin      what writes does not come from the page of another site (403)
    at once     so many requests are answered together (503); the others come again
    body        is read whole, within its time (408) and its size (413), before the service sees it

It knows nothing of bandits, and needs Starlette alone.
"""

import asyncio
import functools
import ipaddress
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dither.base import errors
from dither.serve import secret
from dither.serve.problems import LATER, problem

LOCAL = ("localhost", "127.0.0.1", "[::1]")  # hosts that are this machine
READS = ("GET", "HEAD", "OPTIONS")  # methods that write nothing
DATA = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_ALWAYS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
_log = logging.getLogger("dither.serve")


@dataclass(frozen=True)
class Limits:
    """How much a request may ask for. Raises ValueError for what is no limit."""

    body: int = 1_000_000  # bytes of a request
    seconds: float = 10.0  # in which its body must have come
    at_once: int = 256  # requests that are answered at the same time

    def __post_init__(self) -> None:
        errors.at_least("body", self.body, 1)
        errors.at_least("at_once", self.at_once, 1)
        errors.positive("seconds", self.seconds, most=3600)


class Guard:
    """An ASGI app before another one."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Sequence[str] = (),
        limits: Limits | None = None,
        policy: str = DATA,
        browser: bool = False,
        mounted: bool = False,
        unasked: Sequence[str] = (),
        told: Callable[[Scope, int, float], None] | None = None,
    ) -> None:
        """The token is that of the environment, DITHER_TOKEN, as it is now.

        hosts : names by which it is reached besides this machine's, such as "bandit.example.org"; "*" with a token: all
        policy : its Content-Security-Policy, `DATA` or `PAGE`; browser : whether a browser asks for the token (`Basic`)
        mounted : whether it is part of an application that says who may ask, and by which name: neither is asked then
        unasked : paths for which no token is needed, such as "/health"
        told : called with the scope, the status and the seconds of each request that was answered

        Raises ValueError for a token that is too short, and for all hosts without one; TypeError for hosts in a text.
        """
        self._app, self._limits = app, limits or Limits()
        self._browser, self._mounted, self._unasked = browser, mounted, tuple(unasked)
        self._token = None if mounted else secret.of_environment()
        if isinstance(hosts, str):
            raise TypeError(f"hosts must be a list of names, got {hosts!r}: hosts=[{hosts!r}]")
        if "*" in hosts and self._token is None:
            raise ValueError(f"hosts=['*'] needs a token, as any page could ask then: set {secret.NAME}")
        for name in hosts:
            if "*" in name[1:] or (name.startswith("*") and name != "*" and not name.startswith("*.")):
                raise ValueError(f"a host is a name without its port, or '*.example.org', got {name!r}")
        self._checked: ASGIApp = self._admit
        if not mounted:
            self._checked = TrustedHostMiddleware(self._admit, allowed_hosts=[*LOCAL, *hosts], www_redirect=False)
        rules = {**_ALWAYS, "content-security-policy": policy}
        self._rules = {name.encode(): value.encode() for name, value in rules.items()}
        self._running, self._told = 0, told

    def before(self, app: ASGIApp) -> "Guard":
        """Stand before this app from now on, as where a framework builds its middleware with the first request."""
        self._app = app
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the service answer."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        status, begun = 0, time.perf_counter()

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._say(message)
            await send(message)

        try:
            await self._checked(scope, receive, sent)
        except Exception:
            _log.exception("an error of the code, answered by 500")
            if status:
                raise
            await problem(500, "an error of the code: its words are in the log of the service")(scope, receive, sent)
        finally:
            if self._told is not None and status:
                self._told(scope, status, time.perf_counter() - begun)

    def _say(self, message: Message) -> None:
        """Say to browsers what they may do with a response, whatever the service has said of it."""
        headers = [one for one in message["headers"] if one[0] not in self._rules]
        kept = any(name == b"cache-control" for name, _ in headers)
        message["headers"] = headers + list(self._rules.items()) + ([] if kept else [(b"cache-control", b"no-store")])

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        refusal = None if self._mounted else self._stranger(scope, headers)
        if refusal is None and scope["method"] not in READS and _of_another_site(headers):
            refusal = problem(403, "this came from the page of another site: ask from a program, or from the same site")
        if refusal is None and self._running >= self._limits.at_once:
            words = f"{self._limits.at_once} requests are being answered: send it again a little later"
            refusal = problem(503, words, headers={"retry-after": LATER})
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        self._running += 1
        try:
            await self._read(scope, headers, receive, send)
        finally:
            self._running -= 1

    def _stranger(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        """The refusal of who may not ask; None: he may."""
        if self._token is None:
            if (
                _here((scope.get("client") or ("",))[0])
                and "x-forwarded-for" not in headers
                and "forwarded" not in headers
            ):
                return None
            return problem(403, f"without a token only this machine may ask, and no proxy: set {secret.NAME}")
        if scope["path"].removeprefix(scope.get("root_path", "")) in self._unasked:
            return None
        if self._token.opens(headers.get("authorization"), browser=self._browser):
            return None
        how = 'Basic realm="dither", charset="UTF-8"' if self._browser else 'Bearer realm="dither"'
        words = "send the token of the service: Authorization: Bearer TOKEN"
        return problem(401, words, headers={"www-authenticate": how})

    async def _read(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Hand the request on with its whole body."""
        try:
            async with asyncio.timeout(self._limits.seconds):
                body = await self._body(headers.get("content-length", ""), receive)
        except TimeoutError:
            words = f"the body of a request must have come within {self._limits.seconds:g} s: send it again"
            await problem(408, words, last=True)(scope, receive, send)
            return
        except _TooLarge:
            words = f"the body of a request must have at most {self._limits.body} bytes: send it in several requests"
            await problem(413, words, last=True)(scope, receive, send)
            return
        if body is None:
            return
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def whole() -> Message:
            return waiting.pop() if waiting else await receive()

        await self._app(scope, whole, send)

    async def _body(self, length: str, receive: Receive) -> bytes | None:
        """The whole body; None: whoever asked is gone. length : the header Content-Length. Raises _TooLarge."""
        if len(length) > 18 or (length.isdecimal() and int(length) > self._limits.body):
            raise _TooLarge
        pieces, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return None
            pieces.append(message.get("body", b""))
            size, more = size + len(pieces[-1]), message.get("more_body", False)
            if size > self._limits.body:
                raise _TooLarge
        return b"".join(pieces)


class _TooLarge(Exception):
    """A body has more bytes than the limit."""


@functools.lru_cache(maxsize=100)
def _here(client: str) -> bool:
    """Whether an address is that of this machine."""
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def _of_another_site(headers: Headers) -> bool:
    """Whether a browser sends the request for the page of another site. Programs that are no browser say nothing."""
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return True
    origin = headers.get("origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
    except ValueError:
        return True
