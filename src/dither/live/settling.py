"""The bandit and the shadow that a ledger began with, and whether those passed to `Live` are the same."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from dither.bandit import saving
from dither.bandit.bandit import Bandit
from dither.live.learner import Learner
from dither.live.taught import BEGAN, SHADOW, shadow_of
from dither.log import Ledger, reward_rules
from dither.log.database import keeping, lessons, reward_terms

_SAME = ("model", "policy", "features", "dim", "floor", "monte_carlo", "baseline")  # in headers of two equal bandits


class Settled(NamedTuple):
    """What came of the bandit that was passed."""

    created: bool  # the ledger was new, and has it
    acting: Bandit | None  # None: none was passed, or the same call made the ledger's under an earlier default


def bandit(ledger: Ledger, acting: Bandit | None, *, grows: bool) -> Settled:
    """Give a new ledger its bandit, or compare the one that it has with this one.

    grows : whether there is a catalogue, with which the slots of the bandit grow

    Raises ValueError where it has another one, or none and none is passed.
    """
    where = ledger.database.where
    with ledger.holding() as connection:
        lessons.hold(connection)
        first = keeping.data(connection, BEGAN)
        if first is not None:
            if acting is not None and not _same(acting, first, where):
                acting = None
            return Settled(False, acting)
        if acting is None:
            raise ValueError(f"the ledger in {where} has no bandit yet: Live(home, bandit=...)")
        keeping.put(connection, BEGAN, {"model": repr(acting.model)}, acting.to_bytes())
        encoder = None if acting.features is None else acting.features.fingerprint
        facts = keeping.settle(connection, names=acting.columns, encoded_by=encoder)
        _takes(connection, acting, encoder, facts, where, grows=grows)
        return Settled(True, acting)


def _takes(
    connection: Any, acting: Bandit, encoder: str | None, facts: Mapping[str, Any], where: str, *, grows: bool
) -> None:
    """Raise ValueError where rows that the ledger has already would mean something else to a bandit that is new there.

    encoder : fingerprint of its `Features`; facts : what the ledger says of itself
    """
    cure = "Open a new ledger with this bandit, and let it take over what this one exports (`export`, `take_over`)"
    if encoder is not None and facts["encoded_by"] != encoder:
        raise ValueError(
            f"other Features made the features in {where} ({facts['encoded_by']}) than the bandit has ({encoder}): "
            f"pass a bandit with the Features of the log"
        )
    names = tuple(facts.get("names") or ())
    if acting.columns is not None and acting.columns != names:
        raise ValueError(
            f"the ledger in {where} has the features {list(names)}, in this order, and the bandit has "
            f"{list(acting.columns)}. {cure}"
        )
    slots = len(facts.get("slots") or ())
    if slots and (acting.slots is None or (slots != acting.slots and not grows)):
        raise ValueError(
            f"the decisions in {where} are of {slots} disjoint slots, and the bandit has {acting.slots or 'none'}: "
            f"pass a bandit with disjoint={slots}"
        )
    odd = lessons.unlike(connection, acting.dim, acting.slots is not None)
    if odd is not None and odd[0] != acting.dim:
        raise ValueError(
            f"a decision in {where} has features of width {odd[0]}, and the bandit has dim={acting.dim}: pass a bandit "
            f"with dim={odd[0]}, or open a new ledger with this one"
        )
    if odd is not None:
        raise ValueError(
            f"a decision in {where} has {'no slot' if odd[1] is None else 'a slot'}, and the bandit has "
            f"{f'disjoint={acting.slots}' if acting.slots else 'no slots'}. {cure}"
        )
    parts = lessons.parts(connection)
    if parts and reward_terms.newest(connection).parts is None:
        raise reward_rules.unlearnable(parts, parts, where=where)


def shadow(ledger: Ledger, judged: Bandit, *, learns: bool) -> bool:
    """Give a ledger without a shadow this one, or compare the one that it has; -> whether they have the same settings.

    They do not where the same call made the ledger's under an earlier default. Raises ValueError where the ledger has
    another shadow.
    """
    with ledger.holding() as connection:
        lessons.hold(connection)
        facts = shadow_of(connection)
        if facts.first is None:
            put_shadow(connection, judged, learns=learns)
            return True
        odd, today = _differs(judged, facts.first)
        if not odd and facts.learns != learns:
            odd = f"shadow_learns is {facts.learns} there"
        if odd:
            raise ValueError(
                f"the ledger in {ledger.database.where} has another shadow: {odd}. Leave shadow= out, or put this one "
                f"in its place: dither.Live(home).replace_shadow(shadow)"
            )
        keeping.settle(connection, names=judged.columns)
        return today


def put_shadow(connection: Any, judged: Bandit | None, *, learns: bool) -> None:
    """The shadow of the ledger from now on; None: there is none. The lease is locked.

    Raises ValueError unless it has the features in the order of the ledger's rows, as it is judged by these. Where the
    ledger has no names yet, it has those of the shadow from now on.
    """
    if judged is not None and judged.columns is not None:
        names = tuple(keeping.settle(connection, names=judged.columns)["names"])
        if judged.columns != names:
            raise ValueError(
                f"the ledger has the features {list(names)}, in this order, and the shadow has {list(judged.columns)}: "
                f"pass a shadow that has seen no names, or these, as it learns from all rows of the ledger anyway"
            )
    number = shadow_of(connection).number + 1
    about = {"number": number, "learns": learns, "model": None if judged is None else repr(judged.model)}
    keeping.put(connection, SHADOW, about, None if judged is None else judged.to_bytes())
    lessons.changed(connection, shadow=number)


def fits(shadow: Bandit, learner: Learner) -> None:
    """Raise ValueError unless the shadow takes the X of the bandit, as it began and as it is now."""
    first, now = learner.replay(0).bandit, learner.stands.bandit
    with learner.ledger.database.reading() as connection:
        most = max(now.slots or 0, lessons.slots(connection))
    slots = (first.slots,) if first.slots is None else range(first.slots, most + 1)
    if shadow.dim != now.dim or shadow.slots not in slots:
        raise ValueError(
            f"the shadow must take the X of the bandit, dim={now.dim} and disjoint={now.slots}; it has "
            f"dim={shadow.dim} and disjoint={shadow.slots}"
        )
    if shadow.features is not None and now.features is not None:
        now.features.check(shadow.features, what="the shadow's features", whose="the bandit")


def _same(acting: Bandit, data: bytes, where: str) -> bool:
    """Raise ValueError unless the bandit is the one with which the ledger began; -> whether the settings are the same.

    They are not where the same call made the ledger's bandit under an earlier default.
    """
    odd, today = _differs(acting, data)
    if odd:
        raise ValueError(
            f"the ledger in {where} is that of another bandit: {odd}. Leave bandit= out, or begin a new ledger and "
            f"take over the old one's export"
        )
    first = saving.from_bytes(data).header["observations"]
    if acting.observations != first:
        raise ValueError(
            f"bandit= has learnt {acting.observations} rewards by itself, and the ledger in {where} began with a "
            f"bandit that had learnt {first}: pass a bandit as it began, or leave bandit= out"
        )
    return today


def _differs(passed: Bandit, data: bytes) -> tuple[str, bool]:
    """Where a bandit is another one than that of a file, in words, "": nowhere; and what `_same` answers.

    The words are about the default, today's or an earlier one, under which it differs least.
    """
    header, first = _read(saving.from_bytes(passed.to_bytes()).header), saving.from_bytes(data).header
    parts = [{"model": saving.pack(model), "policy": saving.pack(policy)} for model, policy in passed.formerly]
    headers = [header, *(header | _read(part) for part in parts)]
    least = min(headers, key=lambda one: len(_differing(one, first)))
    odd = (f"{n} is {first.get(n)!r} there and {least.get(n)!r} in what was passed" for n in _differing(least, first))
    return next(odd, ""), least is header


def _read(header: dict[str, Any]) -> dict[str, Any]:
    """A header as it is read from a file."""
    return dict(json.loads(json.dumps(header)))


def _differing(header: Mapping[str, Any], first: Mapping[str, Any]) -> list[str]:
    """The settings in which a header is another one than that of a ledger."""
    return [name for name in _SAME if _fixed(header.get(name)) != _fixed(first.get(name))]


def _fixed(described: Any) -> Any:
    """A setting without the number of slots, which grows. Fields that older files lack have their defaults."""
    if not isinstance(described, dict):
        return described
    whole = saving.defaults(described.get("class")) | described
    return {k: _fixed(v) for k, v in whole.items() if k != "slots"}
