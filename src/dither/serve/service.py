"""The app: a ledger over HTTP. An endpoint hands a checked body to `Live`, and its answer back."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

from fastapi import FastAPI, Query
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from dither import _version
from dither.live import Live
from dither.serve import guard, measures
from dither.serve.amending import Amending
from dither.serve.calls import Calls
from dither.serve.exchange import (
    BanditChanges,
    Correct,
    Corrected,
    Decide,
    DecidedMany,
    DecidedOne,
    DecideMany,
    Erase,
    Erased,
    Health,
    Id,
    ProblemDetails,
    Reward,
    RewardMany,
    Taken,
    TakenMany,
)
from dither.serve.json_route import JsonRoute, malformed, written
from dither.serve.problems import MEDIA, later, problem
from dither.serve.readiness import Readiness
from dither.serve.refusing import refusal

WORDS = {  # status -> when it is answered
    400: "The body is no JSON, or the name of the host is not served",
    401: "The token is missing, or is another one",
    403: "Without a token only this machine may ask; no page of another site may write; erasing may be off",
    404: "No decision has this id, or its data was erased",
    408: "The body did not come in time",
    409: "The id was given to another request, or another reward counts already",
    413: "The body is too large",
    415: "The body is not sent as JSON",
    422: "The body has another form, or a value that is refused",
    503: "The store is away, or too many requests are being answered: send it again after Retry-After",
}
_PROBLEM = ProblemDetails.model_json_schema()
READS = (400, 401, 403, 503)
WRITES = (*READS, 408, 409, 413, 415, 422)


def app(
    live: Live,
    *,
    hosts: Sequence[str] = (),
    mounted: bool = False,
    limits: guard.Limits | None = None,
    arms: int = 1000,
    requests: int = 1000,
    may_erase: bool = False,
    lifespan: Callable[..., Any] | None = None,
) -> FastAPI:
    """An ASGI app that answers from a `Live`, to be run by itself or to be mounted.

    hosts : names by which it is reached besides this machine's, such as "bandit.example.org"
    mounted : whether it is part of an application that says who may ask, and by which name: it asks neither then
    limits : of a body, of the time in which it comes, and of requests at once (`guard.Limits`)
    arms, requests : the most of one call
    may_erase : whether POST /erase takes data out of the ledger; False: it is refused, as it cannot be undone
    lifespan : as of FastAPI. Whoever has opened the `Live` closes it; the app does not

    Without DITHER_TOKEN in the environment only this machine may ask. Raises TypeError for what is no `Live`;
    ValueError for a limit that is none, and what `guard.Guard` raises.
    """
    numbers = measures.Measures()
    service = FastAPI(
        title="dither",
        summary="Decisions of a bandit, with the probability of each, and rewards for them",
        version=_version.__version__,
        docs_url=None,  # they load scripts of other sites
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        exception_handlers={HTTPException: _refused, RequestValidationError: _odd},
    )
    service.router.route_class = JsonRoute
    _asked(service, Calls(live, arms=arms, requests=requests))
    _amended(service, Amending(live, requests=requests, may_erase=may_erase))
    _watched(service, live, numbers)
    settings: dict[str, Any] = {"hosts": hosts, "mounted": mounted, "limits": limits, "told": numbers.told}
    first = guard.Guard(service.router, unasked=("/health", "/ready"), **settings)
    service.add_middleware(first.before)
    return service


def _asked(service: FastAPI, calls: Calls) -> None:
    """The endpoints that decide and learn."""

    @service.post("/decide", response_model=DecidedOne, responses=_responses(WRITES))
    async def decide(body: Decide) -> Any:
        """Choose an arm. The decision is stored before it is answered.

        With an `id`, the same request may be sent again, to any worker, and gets the same answer; another request with
        the id is refused by 409.
        """
        return await calls.decide(body)

    @service.post("/decide/many", response_model=DecidedMany, responses=_responses(WRITES))
    async def decide_many(body: DecideMany) -> Any:
        """Choose an arm for each of several contexts. All decisions are stored together, or none is."""
        return await calls.decide_many(body)

    @service.post("/reward", response_model=Taken, responses=_responses((*WRITES, 404)))
    async def reward(body: Reward) -> Any:
        """Take the reward of a decision, however late. It counts once, however often it is sent."""
        return await calls.reward(body)

    @service.post("/reward/many", response_model=TakenMany, responses=_responses((*WRITES, 404)))
    async def reward_many(body: RewardMany) -> Any:
        """Take the rewards of several decisions: all of them, or none."""
        return await calls.reward_many(body)


def _amended(service: FastAPI, amending: Amending) -> None:
    """The endpoints about decisions that are there."""

    @service.get("/explain", response_model=dict[str, Any], responses=_responses((*READS, 404, 422)))
    async def explain(id: Annotated[Id, Query(description="Of the decision")]) -> Any:
        """Why a decision is as it is: what each arm promised, and what that is made of. It shows what was stored."""
        return await _written(amending.explain(id))

    @service.post("/correct", response_model=Corrected, responses=_responses((*WRITES, 404)))
    async def correct(body: Correct) -> Any:
        """Let another reward count in the place of the one that counts, as after a refund. What was learnt follows.

        Corrections count in the order in which they come. One that counts already is known, so the last one may be sent
        again.
        """
        return await amending.correct(body)

    @service.post("/erase", response_model=Erased, responses=_responses(WRITES))
    async def erase(body: Erase) -> Any:
        """Erase what is known of some decisions, for good. It is refused by 403 unless the service may erase.

        Id, time, arm and propensity stay. The bandit is made again from all other decisions.
        """
        return await amending.erase(body)

    @service.get("/events", response_model=BanditChanges, responses=_responses(READS))
    async def events() -> Any:
        """What has changed the bandit, in order: settings, promotions, rollbacks. They are made by its operator."""
        return await _written(amending.events())


async def _written(answer: Awaitable[Any]) -> Response:
    """An answer without a body of a request, or its refusal."""
    try:
        return written(await answer)
    except Exception as error:
        return refusal(error)


def _watched(service: FastAPI, live: Live, numbers: measures.Measures) -> None:
    """The endpoints that say how it goes."""
    ready = Readiness(live)

    @service.get("/health", response_model=Health, responses=_responses(READS))
    async def health() -> Any:
        """Whether the process answers. It needs no token."""
        return Health(status="ok")

    @service.get("/ready", response_model=Health, responses=_responses(READS))
    async def readiness() -> Any:
        """Whether the ledger can be reached: 200, else 503. It needs no token."""
        if await ready.now():
            return Health(status="ok")
        return later("the store cannot be reached")

    @service.get("/status", response_model=dict[str, Any], responses=_responses(READS))
    async def status() -> Any:
        """How the ledger stands: decisions and rewards by day, the learner, troubles, warnings."""
        try:
            return written((await run_in_threadpool(live.status)).to_dict())
        except Exception as error:
            return refusal(error)

    @service.get("/metrics", response_class=Response, responses=_responses(READS) | measures.TEXT)
    async def metrics() -> Response:
        """Numbers for Prometheus: of the ledger, and of the requests to this process."""
        try:
            stands = await run_in_threadpool(live.status)
        except Exception as error:
            return refusal(error)
        return Response(stands.prometheus() + numbers.text(), media_type=measures.MEDIA)


async def _refused(request: Request, refusal: Exception) -> Response:
    """A path or a method that there is not, as a problem."""
    assert isinstance(refusal, HTTPException)
    return problem(refusal.status_code, f"{request.method} here: {refusal.detail}", headers=refusal.headers)


async def _odd(request: Request, error: Exception) -> Response:
    """What is asked for in the address has another form."""
    assert isinstance(error, RequestValidationError)
    return malformed(error.errors())


def _responses(statuses: Sequence[int]) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of refusals."""
    content = {MEDIA: {"schema": _PROBLEM}}
    text = {"text/plain": {"schema": {"type": "string"}}}  # of a host that is not served
    return {
        status: {"description": WORDS[status], "content": content | (text if status == 400 else {})}
        for status in sorted(statuses)
    }
