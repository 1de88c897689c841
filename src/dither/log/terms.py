"""The terms of a ledger's rewards: when one is late, what counts without one, which numbers it may be.

A ledger keeps them, and whoever opens it again has the same. Of some there may be others later (`Ledger.change`). That
is an event, with a number and a time. It holds for the decisions that are stored after it, by any process. A decision
keeps the terms under which it was stored.
"""

import functools
import json
import math
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple, TypedDict

from dither.base import errors
from dither.log import reward_rules, schema
from dither.log.schema import Range

BEGIN = {
    "rewards": "sum",
    "horizon": None,
    "default": None,
    "late": "kept",
    "parts": None,
    "reward_range": None,  # as it was passed; None: it was not
    "support": None,  # the rewards that the bandit of the ledger can learn; None: any, or there is no bandit yet
}
_FOR_EVER = {
    "rewards": "the rewards that are there would be read by another rule",
    "parts": "what was learnt is the sum of these parts, and a sum of others is another reward",
}


class Terms(NamedTuple):
    """The terms of a decision, or of those to come. The parameters of `ledger.Ledger` say what each means."""

    rewards: str = "sum"
    horizon: timedelta | None = None
    default: float | None = None
    late: str = "kept"
    parts: tuple[str, ...] | None = None
    reward_range: Range | None = None  # where none was passed, what the bandit of the ledger can learn; None: no limits
    taught: bool = False  # whether the ledger has a bandit, which learns them


class NewTerms(TypedDict, total=False):
    """What may be passed where terms change; what is left out stays as it is."""

    horizon: timedelta | float | None
    default: float | None
    late: str
    reward_range: tuple[float, float] | None
    rewards: str
    parts: Iterable[str] | None


def wanted(
    *,
    rewards: str | None,
    horizon: Any,
    default: float | None,
    late: str | None,
    parts: Iterable[str] | None,
    reward_range: Any,
) -> dict[str, Any]:
    """What a user asks for, as a ledger keeps it: the horizon in seconds. None: as the ledger has it, left out here.

    Raises ValueError for a term that no ledger can have.
    """
    terms = dict(rewards=rewards, horizon=horizon, default=default, late=late, parts=parts, reward_range=reward_range)
    return {name: _stored(name, value) for name, value in terms.items() if value is not None}


def changed(terms: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The terms after a change, as a ledger keeps them. new : as of `NewTerms`

    Raises ValueError for a term that cannot change, for one that no ledger can have, and for terms that do not go
    together; LookupError for an unknown rule; TypeError for an unknown term.
    """
    if not new:
        raise ValueError("say what changes: change(horizon=..., default=..., late=..., reward_range=...)")
    for name in new.keys() - NewTerms.__annotations__.keys():
        raise errors.unknown_setting("term", name, names=NewTerms.__annotations__)
    other = {name: None if value is None else _stored(name, value) for name, value in new.items()}
    other["late"] = other.get("late", terms["late"]) or BEGIN["late"]
    for name, reason in _FOR_EVER.items():
        if other.get(name, terms[name]) != terms[name]:
            raise ValueError(
                f"{name} cannot change, since {reason}: it stays {terms[name]!r}. Begin a new ledger "
                f"for {other[name]!r}"
            )
    after = {**terms, **other}
    consistent(after)
    return after


def consistent(terms: Mapping[str, Any]) -> None:
    """Raise ValueError for terms that do not go together."""
    default, span, support = terms["default"], _span(terms), schema.of_ends(terms["support"])
    if default is not None and (terms["horizon"] is None or terms["late"] == "counts"):
        raise ValueError(
            "default= needs a horizon, after which it counts, and late='kept': a decision that has its default takes "
            "no other reward"
        )
    if terms["parts"] is not None and terms["rewards"] != "sum":
        raise ValueError(f"the parts of a reward are summed: parts= needs rewards='sum', not {terms['rewards']!r}")
    low, high = span or (-math.inf, math.inf)
    if support is not None and not (support[0] <= low and high <= support[1]):
        raise ValueError(
            f"reward_range must lie in {words(support)}, the rewards that the bandit can learn; got "
            f"{words((low, high))}: rescale the rewards, or choose another link"
        )
    if default is not None and span is not None and not span[0] <= default <= span[1]:
        raise ValueError(f"default must lie in reward_range, {words(span)}, since it is a reward; got {default!r}")


def differs(terms: Mapping[str, Any], passed: Mapping[str, Any], *, where: str) -> None:
    """Raise ValueError where a ledger in `where` has other terms than were passed."""
    for name, value in passed.items():
        has = terms[name]
        if name == "reward_range":
            has, value = _span(terms), schema.of_ends(value)
        if value != has:
            cure = "leave it out"
            if name not in _FOR_EVER:
                cure += f", or let it hold for the decisions from now on, by `change({name}=...)` of the open ledger"
            raise ValueError(f"the ledger in {where} has {name}={has!r}, not {value!r}: {cure}")


@functools.lru_cache(maxsize=256)
def of_text(text: str) -> Terms:
    """The terms as a ledger keeps them, in JSON."""
    terms = {**BEGIN, **json.loads(text)}
    return Terms(
        terms["rewards"],
        None if terms["horizon"] is None else timedelta(seconds=terms["horizon"]),
        terms["default"],
        terms["late"],
        None if terms["parts"] is None else tuple(terms["parts"]),
        _span(terms),
        terms["support"] is not None,
    )


def words(span: Range) -> str:
    """A range, for errors."""
    return f"[{span[0]:g}, {span[1]:g}]"


def _span(terms: Mapping[str, Any]) -> Range | None:
    """The range of the rewards: the one that was passed, else what the bandit can learn."""
    return schema.of_ends(terms["support"] if terms["reward_range"] is None else terms["reward_range"])


def _stored(name: str, value: Any) -> Any:
    """One term as a ledger keeps it. Raises ValueError, or LookupError for a rule, where no ledger can have it."""
    if name == "rewards":
        errors.among("rule for rewards", value, reward_rules.RULES)
    elif name == "late":
        errors.among("rule for late rewards", value, reward_rules.LATE)
    elif name == "horizon":
        return _seconds(value)
    elif name == "default":
        return reward_rules.finite(value)
    elif name == "parts":
        return reward_rules.parts(value)
    elif name == "reward_range":
        return pair(value)
    return value


def _seconds(horizon: Any) -> float:
    seconds = horizon.total_seconds() if isinstance(horizon, timedelta) else horizon
    errors.positive("horizon", seconds, most=1e11)  # some 3,000 years, for times that there are
    return max(float(seconds), 1e-6)


def pair(span: Any) -> list[float | None]:
    """A range as a ledger keeps it. Raises ValueError unless it is two numbers, the lower first."""
    try:
        low, high = (float(end) for end in span)
    except (TypeError, ValueError):
        low = high = math.nan
    if not low < high:
        raise ValueError(
            f"reward_range must be two numbers, the lower first, such as (0, 1) or (0, math.inf); got {span!r}"
        )
    return [end if math.isfinite(end) else None for end in (low, high)]
