"""What may be asked of decisions that are there: why each is as it is, another reward for it, and to be erased.

These are calls of a person or of an hourly job, so they wait in threads, beside the road of decisions and rewards.
"""

from typing import Any

from starlette.concurrency import run_in_threadpool

from dither.live import Live
from dither.serve.exchange import Correct, Erase
from dither.serve.refusing import Forbidden, NoDecision

TAKEN = ("ids", "self")  # names of a column that `Live.erase` takes for something else


class Amending:
    """Those of one `Live`."""

    def __init__(self, live: Live, *, requests: int, may_erase: bool) -> None:
        """requests : the most ids of one call; may_erase : whether data may be erased over HTTP"""
        if not isinstance(may_erase, bool):
            raise TypeError(f"may_erase must be True or False, got {may_erase!r}")
        self._live, self._requests, self._may_erase = live, requests, may_erase

    async def explain(self, id: str) -> dict[str, Any]:
        """Why a decision is as it is."""
        try:
            return (await run_in_threadpool(self._live.explain, id)).to_dict()
        except LookupError as error:
            raise NoDecision(*error.args) from None

    async def correct(self, body: Correct) -> dict[str, Any]:
        """Another reward counts."""
        more: dict[str, Any] = {"part": body.part, "time": body.time}
        try:
            return {"answer": await run_in_threadpool(self._live.correct, body.id, body.reward, **more)}
        except LookupError as error:
            raise NoDecision(*error.args) from None

    async def erase(self, body: Erase) -> dict[str, Any]:
        """The data of decisions is taken out."""
        if not self._may_erase:
            raise Forbidden(
                "erasing over HTTP is off, as what is erased is gone: dither serve HOME --may-erase, or "
                "serve.app(live, may_erase=True), or erase by hand: dither erase HOME, or Live.erase"
            )
        where = body.where or {}
        if (body.ids is None) == (body.where is None) or (body.ids is None and len(where) != 1):
            raise ValueError('send ids, or where with one column, as {"where": {"user": "u7"}}')
        if len(body.ids or ()) > self._requests:
            few = f"a call has at most {self._requests} ids, got {len(body.ids or ())}"
            raise ValueError(f"{few}: send several, or raise the limit of the app")
        for name in where:
            if name in TAKEN:
                raise ValueError(f"a column {name!r} cannot be searched: send the ids of its decisions as ids")
        return {"erased": await run_in_threadpool(self._live.erase, body.ids, **where)}

    async def events(self) -> dict[str, Any]:
        """What has changed the bandit."""
        return {"events": [one.to_dict() for one in await run_in_threadpool(self._live.events)]}
