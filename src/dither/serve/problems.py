"""Refusals over HTTP: problem details (RFC 9457), with the rule, the value and the cure as their `detail`."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

MEDIA = "application/problem+json"
LATER = "1"  # seconds, of the header Retry-After


def problem(
    status: int, words: str, *, headers: Mapping[str, str] | None = None, last: bool = False, **more: Any
) -> Response:
    """The response that says what was refused, and why.

    words : a sentence; last : the connection is closed after it, since the rest of the request is not read
    more : further members of the document, such as the errors of a body, one by one
    """
    said = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": words} | more
    body = json.dumps(said, allow_nan=False)  # in ASCII, so that half of a surrogate pair in a value cannot break it
    every = dict(headers or {}) | ({"connection": "close"} if last else {})
    return Response(body, status, every, MEDIA)


def later(words: str) -> Response:
    """The response to what may be sent again, as nothing of it is there: 503 with Retry-After."""
    return problem(503, words, headers={"retry-after": LATER})
