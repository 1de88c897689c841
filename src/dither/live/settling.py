"""The bandit and the shadow that a ledger began with, and whether those passed to `Live` are the same."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from dither.bandit import saving
from dither.bandit.bandit import Bandit
from dither.live import course, same_settings
from dither.live.course import BEGAN
from dither.live.learner import Learner
from dither.live.taught import SHADOW, shadow_of
from dither.log import Ledger, reward_rules
from dither.log.database import encodings, keeping, ledger_events, lessons, refusals, reward_terms
from dither.models import adapting

PASSED = "bandit="  # of `Live.change`


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
            if acting is not None and not _same(acting, first, _now(connection), where):
                acting = None
            return Settled(False, acting)
        if acting is None:
            raise refusals.unbegun(where)
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
    if judged is not None:
        named(connection, judged, whose="the shadow")
    number = shadow_of(connection).number + 1
    about = {"number": number, "learns": learns, "model": None if judged is None else repr(judged.model)}
    about["features"] = encodings.in_force(connection)
    keeping.put(connection, SHADOW, about, None if judged is None else judged.to_bytes())
    lessons.changed(connection, shadow=number)


def named(connection: Any, new: Bandit, *, whose: str) -> None:
    """Let the features of the ledger have the names of those of a bandit, where they have none.

    Raises ValueError where they have others, or another order.
    """
    if new.columns is None:
        return
    names = tuple(keeping.settle(connection, names=new.columns)["names"])
    if new.columns != names:
        raise ValueError(
            f"the ledger has the features {list(names)}, in this order, and {whose} has {list(new.columns)}: "
            f"pass a bandit that has seen no names, or these, as it learns from all rows of the ledger anyway"
        )


def grows(bandit: Bandit, slots: int) -> None:
    """Raise TypeError for a bandit with fewer slots that cannot have so many."""
    if bandit.slots is not None and bandit.slots < slots:
        adapting.with_slots(adapting.adapted(bandit.model), slots)


def fits(shadow: Bandit, learner: Learner, *, whose: str = "the shadow") -> None:
    """Raise ValueError unless the shadow takes the X of the bandit, as it began and as it is now."""
    first, now = learner.replay(0).bandit, learner.stands.bandit
    with learner.ledger.database.reading() as connection:
        most = max(now.slots or 0, lessons.slots(connection))
    has, new = now.features, shadow.features
    if whose == PASSED and has is not None and new is not None and has != new:
        raise ValueError(
            f"the features of {whose} are not those of the ledger's bandit: "
            f"{has.difference(new)}. Pass them: change(features=..., bandit=...)"
        )
    slots = (first.slots,) if first.slots is None else range(first.slots, most + 1)
    if shadow.dim != now.dim or shadow.slots not in slots:
        raise ValueError(
            f"{whose} must take the X of the bandit, dim={now.dim} and disjoint={now.slots}; it has "
            f"dim={shadow.dim} and disjoint={shadow.slots}"
        )
    grows(shadow, most)
    if shadow.features is not None and now.features is not None:
        now.features.check(shadow.features, what=f"the features of {whose}", whose="the bandit")


def _now(connection: Any) -> bytes | None:
    """The bandit of the settings of now, as it begins; None: it is the one with which the ledger began."""
    way = course.at(ledger_events.every(connection), lessons.last(connection))
    return course.began(connection, way) if way.first else None


def _same(acting: Bandit, data: bytes, now: bytes | None, where: str) -> bool:
    """Raise ValueError unless the bandit is the one with which the ledger began, or that of now.

    -> whether it has the settings of now. It does not where they were changed since it began, and where the same call
    made it under an earlier default.
    """
    if now is not None and not _odd(acting, now, "")[0]:
        return _odd(acting, now, "")[1]
    odd, today = _odd(acting, data, f"the ledger in {where}")
    cure = "dither.Live(home).change(bandit=...)"
    if acting.features is not None and acting.features.described != saving.from_bytes(now or data).header["features"]:
        cure = "dither.Live(home).change(features=..., bandit=...)"
    if odd and now is not None:
        raise ValueError(
            f"{odd}. Its settings were changed since it began, and it has others than these by now too: leave bandit= "
            f"out, or change it, by {cure}"
        )
    if odd:
        raise ValueError(
            f"{odd}. Leave bandit= out; or let this one take its place, by {cure}; or begin a "
            f"new ledger and take over the old one's export"
        )
    return today and now is None


def _odd(acting: Bandit, data: bytes, where: str) -> tuple[str, bool]:
    """Why a bandit is not that of some bytes, in words, "": it is; and whether it is so by today's default."""
    odd, today = _differs(acting, data)
    first = saving.from_bytes(data).header["observations"]
    if odd:
        return f"{where} is that of another bandit: {odd}", today
    if acting.observations != first:
        words = f"bandit= has learnt {acting.observations} rewards by itself, and {where} began with a bandit that had"
        return f"{words} learnt {first}", today
    return "", today


def _differs(passed: Bandit, data: bytes) -> tuple[str, bool]:
    """Where a bandit is another one than that of a file, in words, "": nowhere; and what `_same` answers.

    The words are about the default, today's or an earlier one, under which it differs least.
    """
    header, first = same_settings.read(saving.from_bytes(passed.to_bytes()).header), saving.from_bytes(data).header
    parts = [{"model": saving.pack(model), "policy": saving.pack(policy)} for model, policy in passed.formerly]
    headers = [header, *(header | same_settings.read(part) for part in parts)]
    least = min(headers, key=lambda one: len(same_settings.names(one, first)))
    odd = same_settings.names(least, first)
    if "features" in odd:  # of which the dimension and the columns of the model come
        odd = ["features"]
    return (same_settings.words(odd[0], least, first) if odd else ""), least is header
