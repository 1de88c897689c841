"""The routes of the page: what is asked, who answers, which template. Nothing here writes to the ledger."""

import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import jinja2
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from dither import _version
from dither.base import templates
from dither.ope import verdicts
from dither.watch import pages, query, static_files, wording
from dither.watch.pages import Content, Query
from dither.watch.watched import StillReading, WatchedLedger

PAGES = (("", "Overview"), ("arms", "Arms"), ("decisions", "Decisions"), ("judge", "Compare"), ("events", "Events"))


def pages_of(watched: WatchedLedger) -> Starlette:
    """The pages over one ledger, without what says who may ask."""
    site = Site(watched)
    routes = [Route(f"/{place}", site.page(place or "overview", answer)) for place, answer in site.answers.items()]
    routes += [
        Route("/decisions/{number}", site.decision),
        Route("/static/{name}", site.static),
    ]
    wrong: Any = {HTTPException: site.refused, OSError: site.unreadable, StillReading: site.later}

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        watched.close()

    return Starlette(routes=routes, exception_handlers=wrong, lifespan=lifespan)


class Site:
    """The pages of one ledger. Starlette calls them in threads, as they wait for the database."""

    def __init__(self, watched: WatchedLedger) -> None:
        self._watched = watched
        self._templates = _templates()
        self.answers: dict[str, Callable[[WatchedLedger, Query], Content]] = {
            "": pages.overview,
            "arms": pages.arms,
            "decisions": pages.decisions,
            "judge": pages.judge,
            "events": pages.events,
        }
        for name in static_files.FILES:  # now, and not while the first reader waits
            static_files.read(name)

    def page(self, name: str, answer: Callable[[WatchedLedger, Query], Content]) -> Callable[[Request], Response]:
        """What answers a request for a page."""

        def answered(request: Request) -> Response:
            if name == "decisions" and request.query_params.get("id"):
                number = pages.number_of(self._watched, request.query_params["id"])
                if number is not None:
                    return RedirectResponse(self._at(request)(f"decisions/{number}"), status_code=303)
            return self._shown(request, name, answer(self._watched, request.query_params))

        return answered

    def decision(self, request: Request) -> Response:
        """The page of one decision."""
        number = query.whole(request.path_params["number"])
        content = None if number is None else pages.decision(self._watched, number)
        if content is None:
            raise HTTPException(404, "There is no such decision in this ledger. It may have been restored since.")
        return self._shown(request, "decision", content, here="decisions")

    def static(self, request: Request) -> Response:
        """A style, a script or a picture: our own, and Plotly's, which is read from where it is installed."""
        name = request.path_params["name"]
        if name not in static_files.FILES:
            raise HTTPException(404, "There is no such file.")
        return static_files.response(name, request)

    def refused(self, request: Request, error: Exception) -> Response:
        """A page that is not there, or a method that no page has."""
        status, words = getattr(error, "status_code", 500), getattr(error, "detail", "")
        words = "There is nothing at this address." if words in ("", "Not Found") else words
        title = {404: "Not found", 405: "This page is only read"}.get(status, "Refused")
        return self._shown(request, "wrong", {"title": title, "words": words}, here=None, status=status)

    def unreadable(self, request: Request, error: Exception) -> Response:
        """The database does not answer, or the file is gone."""
        content = {"title": "The ledger cannot be read now", "words": str(error)}
        return self._shown(request, "wrong", content, here=None, status=503)

    def later(self, request: Request, error: Exception) -> Response:
        """The ledger has no sums yet, and they take a while."""
        words = "This ledger keeps no sums by day, so its decisions are added up once. The page looks again by itself."
        content = {"title": "Being added up", "words": words, "again": 2}
        return self._shown(request, "wrong", content, here=None)

    def _shown(
        self, request: Request, name: str, content: Content, *, here: str | None = "", status: int = 200
    ) -> Response:
        common = {
            "at": self._at(request),
            "here": ("" if name == "overview" else name) if here == "" else here,
            "pages": PAGES,
            "where": self._watched.where,
            "name": self._watched.name,
            "now": datetime.now(UTC),
            "again": None,
            "address": f"?{request.url.query}",
            "static": lambda file: self._at(request)(static_files.place(file)),
            "style_id": static_files.style_id(),
            "version": _version.__version__,
        }
        text = self._templates.get_template(f"{name}.html.jinja").render(common | content)
        return HTMLResponse(text, status_code=status)

    @staticmethod
    def _at(request: Request) -> Callable[[str], str]:
        """What gives the address of a place, wherever the app is mounted."""
        root = request.scope.get("root_path", "").rstrip("/")
        return lambda place: f"{root}/{place}"


@functools.cache
def _templates() -> jinja2.Environment:
    """All templates, compiled."""
    page_templates = templates.environment(static_files.HERE, autoescape=True)
    said: dict[str, Callable[..., str]] = {
        "estimate": verdicts.estimate,
        "difference": verdicts.difference,
        "named": verdicts.named,
        "by": verdicts.by,
    }
    page_templates.filters |= wording.FILTERS | said
    for name in page_templates.list_templates(["jinja"]):
        page_templates.get_template(name)
    return page_templates
