"""A route whose body is read in one step, from bytes to a checked model, and whose answer is written in one.

FastAPI makes the OpenAPI document of it as of any other route. Its own way from a body to an answer goes through
Python's `json`, which takes NaN and Infinity, and takes several times as long.
"""

from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dither.serve.problems import problem
from dither.serve.refusing import refusal

MEDIA = "application/json"
NAMED = 10  # errors of a body that are named


class JsonRoute(APIRoute):
    """The endpoint takes a model, and gives what JSON can say, or a response."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        super().__init__(path, endpoint, **settings)
        models = [one for one in get_type_hints(endpoint).values() if _is_body(one)]
        if len(models) == 1:
            self.app = _answering(models[0], endpoint)


def _answering(model: type[BaseModel], endpoint: Callable[..., Any]) -> ASGIApp:
    """From a request to its response. FastAPI's own opens two stacks besides, for dependencies that are not there."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        response = await answered(Request(scope, receive))
        await response(scope, receive, send)

    async def answered(request: Request) -> Response:
        if (odd := _other_form(request)) is not None:
            return odd
        try:
            body = model.model_validate_json(await request.body())
        except ValidationError as error:
            return malformed(error.errors(include_url=False, include_input=False, include_context=False))
        try:
            answer = await endpoint(body)
        except Exception as error:
            return refusal(error)
        return answer if isinstance(answer, Response) else written(answer)

    return app


def written(answer: Any) -> Response:
    """An answer as JSON. Numbers are written so that they are read as they were, to the bit."""
    return Response(to_json(answer, inf_nan_mode="null"), media_type=MEDIA)


def _is_body(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel) and kind.model_config.get("extra") == "forbid"


def _other_form(request: Request) -> Response | None:
    """The refusal of a body that is no JSON by what its headers say."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != MEDIA:
        return problem(415, f"the body must be JSON: send content-type: {MEDIA}, got {kind[:100]!r}")
    if (coding := request.headers.get("content-encoding", "identity").lower()) != "identity":
        return problem(415, f"the body must not be compressed: leave content-encoding out, got {coding[:100]!r}")
    return None


def malformed(every: Sequence[Any]) -> Response:
    """What is wrong with a request. The values in it are not repeated, since they may be a person's.

    every : its errors, as pydantic says them
    """
    if any(one["type"] == "json_invalid" for one in every):
        return problem(400, f"the body must be JSON, in UTF-8 and without NaN and Infinity: {every[0]['msg']}")
    named = [
        {"loc": list(one["loc"]), "msg": one["msg"].removeprefix("Value error, "), "type": one["type"]}
        for one in every[:NAMED]
    ]
    words = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'the body'}: {one['msg']}" for one in named[:3])
    return problem(422, f"{words} ({len(every)} in all)" if len(every) > 3 else words, errors=named)
