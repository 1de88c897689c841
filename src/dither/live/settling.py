"""What a ledger has of its bandit and its shadow, and whether those that were passed are the same."""

import json
from typing import Any

from dither.bandit import saving
from dither.bandit.bandit import Bandit
from dither.live.taught import BEGAN, SHADOW, ShadowFacts, shadow_of
from dither.log import Ledger
from dither.log.database import keeping, lessons

_SAME = (
    "model",
    "policy",
    "features",
    "dim",
    "floor",
    "monte_carlo",
    "baseline",
)  # of the headers of two equal bandits


def bandit(ledger: Ledger, given: Bandit | None) -> bool:
    """Give a new ledger its bandit, or compare the one that it has; -> whether the ledger was new.

    Raises ValueError where it has another one, or none and none is given.
    """
    where = ledger.database.where
    with ledger.holding() as connection:
        lessons.hold(connection)
        have = keeping.data(connection, BEGAN)
        if have is None and given is None:
            raise ValueError(f"the ledger in {where} has no bandit yet: Live(home, bandit=...)")
        if have is not None:
            if given is not None:
                _same(given, have, where)
            return False
        assert given is not None
        keeping.put(connection, BEGAN, {"model": repr(given.model)}, given.to_bytes())
        if given.features is not None:  # so that nobody learns the log with other Features
            about = keeping.settings(connection).get("about", {})
            keeping.put(connection, "about", about | {"encoded_by": given.features.fingerprint})
        return True


def shadow(ledger: Ledger, given: Bandit | None, *, learns: bool) -> None:
    """Give a ledger without a shadow this one, or compare the one that it has.

    Raises ValueError where the ledger has another shadow.
    """
    if given is None:
        return
    with ledger.holding() as connection:
        lessons.hold(connection)
        have = shadow_of(connection)
        if have.first is None:
            put_shadow(connection, given, learns=learns)
            return
        odd = _differs(given, have.first) or ((have.learns != learns) and f"shadow_learns is {have.learns} there") or ""
        if odd:
            raise ValueError(
                f"the ledger in {ledger.database.where} has another shadow: {odd}. Leave shadow= out, or put this one "
                f"in its place: dither.Live(home).replace_shadow(shadow)"
            )


def put_shadow(connection: Any, given: Bandit | None, *, learns: bool) -> ShadowFacts:
    """The shadow of the ledger from now on; None: there is none. The lease is locked."""
    made = ShadowFacts(shadow_of(connection).number + 1, learns, None if given is None else given.to_bytes())
    about = {"number": made.number, "learns": learns, "model": None if given is None else repr(given.model)}
    keeping.put(connection, SHADOW, about, made.first)
    lessons.changed(connection, shadow=made.number)
    return made


def fits(given: Bandit, first: Bandit, now: Bandit) -> None:
    """Raise ValueError unless the shadow takes the X of the bandit, as it began and as it is now."""
    slots = (first.slots,) if first.slots is None else range(first.slots, (now.slots or 0) + 1)
    if given.dim != now.dim or given.slots not in slots:
        raise ValueError(
            f"the shadow must take the X of the bandit, dim={now.dim} and disjoint={now.slots}; it has "
            f"dim={given.dim} and disjoint={given.slots}"
        )
    if given.features is not None and now.features is not None:
        now.features.check(given.features, what="the shadow's features", whose="the bandit")


def _same(given: Bandit, data: bytes, where: str) -> None:
    """Raise ValueError unless the bandit is the one with which the ledger began."""
    odd = _differs(given, data)
    if odd:
        raise ValueError(
            f"the ledger in {where} is that of another bandit: {odd}. Leave bandit= out, or begin a new ledger and "
            f"take over the old one's export"
        )
    first = saving.from_bytes(data).header["observations"]
    if given.observations != first:
        raise ValueError(
            f"bandit= has learnt {given.observations} rewards by itself, and the ledger in {where} began with a "
            f"bandit that had learnt {first}: pass a bandit as it began, or leave bandit= out"
        )


def _differs(given: Bandit, data: bytes) -> str:
    """The first setting in which a bandit is another one than that of a file, in words; "": none."""
    own = json.loads(json.dumps(saving.from_bytes(given.to_bytes()).header))
    first = saving.from_bytes(data).header
    for name in _SAME:
        if _fixed(own.get(name)) != _fixed(first.get(name)):
            return f"{name} is {first.get(name)!r} there and {own.get(name)!r} in what was passed"
    return ""


def _fixed(described: Any) -> Any:
    """A setting without the number of slots, which grows."""
    return {k: v for k, v in described.items() if k != "slots"} if isinstance(described, dict) else described
