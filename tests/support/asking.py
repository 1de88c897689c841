"""A client of an ASGI app in this process, without a network: requests in turn, or several at once."""

import asyncio
from urllib.parse import urlsplit

import httpx

HERE = ("127.0.0.1", 50000)


class Client:
    """Asks an app. Each call has an event loop of its own, as a worker that was started anew."""

    def __init__(self, app, base="http://localhost", *, at=HERE, headers=None, root=""):
        """at : where requests come from; root : where an application has mounted the app."""
        self._app, self._base, self._headers = app, base, headers
        self._settings = {"raise_app_exceptions": False, "client": at, "root_path": root}

    def request(self, method, path, **more):
        return self.together([(method, path, more)])[0]

    def together(self, requests):
        """The responses to (method, path, more), which are sent at the same time."""

        async def ask():
            transport = httpx.ASGITransport(self._app, **self._settings)
            async with httpx.AsyncClient(transport=transport, base_url=self._base, headers=self._headers) as client:
                return await asyncio.gather(*[client.request(how, path, **more) for how, path, more in requests])

        return asyncio.run(ask())

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, **more):
        return self.request("POST", path, **more)


def body(text, more=True):
    """A piece of the body of a request."""
    return {"type": "http.request", "body": text, "more_body": more}


def raw(app, messages, *, path="/", method="POST", headers=(), at=HERE):
    """What an app answers to a body in pieces: its status or None, its body, and how many pieces it took.

    What comes after the pieces never comes.
    """
    taken, sent = [], []

    async def receive():
        if not messages:
            await asyncio.Event().wait()
        taken.append(messages.pop(0))
        return taken[-1]

    async def send(message):
        sent.append(message)

    every = [(b"host", b"localhost"), *[(name.encode(), value.encode()) for name, value in headers]]
    path = urlsplit(path).path
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "root_path": ""}
    scope |= {"headers": every, "client": at, "query_string": b"", "http_version": "1.1", "scheme": "http"}
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"] if sent else None, b"".join(one.get("body", b"") for one in sent), len(taken)
