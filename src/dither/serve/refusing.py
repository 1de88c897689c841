"""What an error of `Live` is over HTTP: a status, and its own words, which name the rule, the value and the cure."""

import logging

from starlette.responses import Response

from dither.live.repeats import OtherRequest
from dither.serve.problems import later, problem


class NoDecision(LookupError):
    """An id that no decision has, or whose decision was erased."""


class Forbidden(ValueError):
    """What the app was not made to do."""


_log = logging.getLogger("dither.serve")


def refusal(error: Exception) -> Response:
    """The response to a request that was refused. Raises the error itself where it is one of the code."""
    if isinstance(error, OtherRequest):
        return problem(409, str(error))
    if isinstance(error, NoDecision):
        return problem(404, str(error))
    if isinstance(error, Forbidden):
        return problem(403, str(error))
    if isinstance(error, (ValueError, TypeError, LookupError)) and not isinstance(error, (KeyError, IndexError)):
        return problem(422, str(error))
    if isinstance(error, OSError):
        _log.warning("the store could not be reached: %s", error)
        return later(
            "the store cannot be reached now: all of the request is there, or nothing of it. Send it again with the "
            "same ids: what is there is known, and nothing is stored twice"
        )
    raise error
