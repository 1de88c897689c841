"""What the endpoints ask of `Live`: bodies become calls, and answers become what JSON can say."""

import json
import math
from typing import Any

import numpy as np
from starlette.responses import Response

from dither.base import errors
from dither.live import Live, Shown, ShownMany
from dither.serve.exchange import Decide, DecideMany, Reward, RewardMany
from dither.serve.problems import problem
from dither.serve.refusing import NoDecision

_SPELT = json.JSONEncoder(sort_keys=True, allow_nan=False)
WISHES = ("mask", "values", "minimum", "costs", "baseline", "extra", "fallback")


class Calls:
    """The calls of one `Live`."""

    def __init__(self, live: Live, *, arms: int, requests: int) -> None:
        """arms, requests : the most of one call."""
        if not isinstance(live, Live):
            raise TypeError(f"live must be a dither.Live, got {live!r}: app(dither.Live(home))")
        errors.at_least("arms", arms, 1)
        errors.at_least("requests", requests, 1)
        self._live, self._arms, self._requests = live, arms, requests

    async def decide(self, body: Decide) -> dict[str, Any]:
        """One decision."""
        context = _context(body.context, body.X, "context")
        self._few("arms", max(_size(body.arms), _size(body.X), _size(body.mask)), self._arms)
        shown = await self._live.achoose(context, body.arms, id=body.id, body=_said(body, body.id), **_wishes(body))
        return _decided(shown)

    async def decide_many(self, body: DecideMany) -> dict[str, Any]:
        """Decisions that are stored together."""
        contexts = _context(body.contexts, body.X, "contexts")
        if contexts is None:
            raise ValueError("contexts or X must say how many decisions are asked for: one entry each")
        if not len(contexts):
            return {"decisions": _nothing(body)}
        self._few("requests", len(contexts), self._requests)
        rows = [row for several in (body.X, body.mask, body.values) for row in several or ()]
        self._few("arms", max(map(_size, (body.arms, *rows))), self._arms)
        shown = await self._live.achoose(contexts, body.arms, id=body.ids, body=_said(body, body.ids), **_wishes(body))
        return {"decisions": _each(shown)}

    async def reward(self, body: Reward) -> Any:
        """The reward of one decision."""
        try:
            answer = await self._live.areward(body.id, body.reward, body.time, part=body.part)
        except LookupError as error:
            raise NoDecision(*error.args) from None
        return _conflict(body.id) if answer == "conflict" else {"answer": answer}

    async def reward_many(self, body: RewardMany) -> Any:
        """Rewards that are taken together."""
        self._few("rewards", len(body.ids), self._requests)
        try:
            answers = await self._live.areward(body.ids, body.rewards, body.time, part=body.part)
        except LookupError as error:
            raise NoDecision(*error.args) from None
        return {"answers": answers}

    def _few(self, what: str, n: int, most: int) -> None:
        """Raise ValueError for more than one call may have."""
        if n > most:
            raise ValueError(f"a call has at most {most} {what}, got {n}: send several, or raise the limit of the app")


def _size(value: Any) -> int:
    return len(value) if isinstance(value, (list, dict)) else 0


def _context(fields: Any, X: Any, name: str) -> Any:
    """What `Live.choose` takes for it: fields, or X as an array."""
    if X is None:
        return fields
    if fields is not None:
        raise ValueError(f"{name} and X are two ways to say the same: send one of them")
    try:
        return np.array(X, dtype=np.float64)
    except ValueError:
        raise ValueError("X must have rows of one length: (K, d), or (d,) with slots; B before them for many") from None


def _nothing(body: DecideMany) -> list[dict[str, Any]]:
    """The decisions of no requests: JSON cannot say how wide X is where it has no rows, so `Live` is not asked.

    Raises ValueError for what has entries for requests that there are not.
    """
    for name, each in {"ids": body.ids, "mask": body.mask, "values": body.values, **(body.extra or {})}.items():
        if each:
            raise ValueError(f"{name} must have an entry for each request, and there are none; got {len(each)}")
    return []


def _wishes(body: Decide | DecideMany) -> dict[str, Any]:
    """What else is asked for: what is there alone, as most bodies have none of it."""
    return {name: value for name in WISHES if (value := getattr(body, name)) is not None}


def _said(body: Decide | DecideMany, id: Any) -> str | None:
    """What is asked for as one text, however it was spelt: the order of names and blanks say nothing."""
    if id is None:
        return None
    return _SPELT.encode(body.model_dump(exclude_defaults=True))


def _decided(shown: Shown) -> dict[str, Any]:
    """A decision as JSON says it."""
    about = shown.propensity_kind, shown.propensity_se, shown.z, shown.fallback
    return _said_of(shown.id, shown.arm, shown.place, shown.propensity, *about)


def _each(shown: ShownMany) -> list[dict[str, Any]]:
    """The decisions of one call, one by one."""
    nothing = [None] * len(shown.id)
    se = nothing if shown.propensity_se is None else shown.propensity_se.tolist()
    z = nothing if shown.z is None else shown.z.tolist()
    columns = shown.id, shown.arm.tolist(), shown.place.tolist(), shown.propensity.tolist(), se, z
    kind, fallback = shown.propensity_kind, shown.fallback
    each = zip(*columns, strict=True)
    return [_said_of(id, arm, place, p, kind, error, drawn, fallback) for id, arm, place, p, error, drawn in each]


def _said_of(id: str, arm: Any, place: int, p: float, kind: str, se: Any, z: Any, fallback: bool) -> dict[str, Any]:
    """A number that is not known is null, and so is what was drawn for each arm by itself."""
    return {
        "id": id,
        "arm": arm,
        "place": place,
        "propensity": None if math.isnan(p) else p,
        "propensity_kind": kind,
        "propensity_se": se,
        "z": z if isinstance(z, (int, float)) and math.isfinite(z) else None,
        "fallback": fallback,
    }


def _conflict(id: str) -> Response:
    words = f"decision {id!r} has another reward, which counts: this one never does. Correct the first one"
    return problem(409, words)
