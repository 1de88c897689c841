"""Events that change a running bandit. Each is one transaction, under the lock of the lease (`ledger_events`).

What an event makes of the bandit is computed from the ledger in the transaction that writes it, and nothing is learnt
there. So of several processes that change something at once, each changes what the one before has left. Whoever learns
or decides meets the event as the next batch.
"""

import contextlib
import copy
import dataclasses
import functools
import getpass
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dither.bandit import saving
from dither.bandit.bandit import Bandit
from dither.bandit.restoring import from_bytes
from dither.base import errors
from dither.deciding import inputs
from dither.live import alarms, course, opening, other_features, same_settings, settling, turns
from dither.live.course import Course
from dither.live.learner import Learner
from dither.live.taught import shadow_of
from dither.log.database import keeping, ledger_events, lessons, reward_terms
from dither.log.database.ledger_events import BanditEvent
from dither.log.terms import NewTerms
from dither.models import adapting, forgetting

DEMANDS = ("floor", "monte_carlo")  # what is demanded of each decision, of the settings of a `Bandit`
BUDGETS = "budgets"


class Ledgered(NamedTuple):
    """What a ledger says of its bandit, in the transaction that is to change it."""

    events: list[BanditEvent]
    last: int  # the number of the last batch
    way: Course  # of the state after it
    first: Bandit  # with which this course begins


def ledgered(connection: Any, learner: Learner) -> Ledgered:
    """The bandit of a ledger, while the lease is locked."""
    events, last = ledger_events.every(connection), lessons.last(connection)
    way = course.at(events, last)
    return Ledgered(events, last, way, loaded(course.began(connection, way), learner))


def loaded(data: bytes, learner: Learner) -> Bandit:
    """A bandit of the ledger."""
    return from_bytes(data, **learner.load)


def author(name: str | None) -> str:
    """Who makes an event: the name that was passed, or the user of this process."""
    if name is not None and not (isinstance(name, str) and name):
        raise ValueError(f"author must be a text that is not empty, or None, got {name!r}")
    if name is not None:
        return inputs.storable(name, what="author")
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name
        return "?"


@contextlib.contextmanager
def happening(learner: Learner) -> Iterator[Any]:
    """The transaction of an event: all that this thread reads and writes in the block, while others wait."""
    learner.ledger.committer.begun()
    with learner.ledger.turn, learner.ledger.database.together(), learner.ledger.holding() as connection:
        lessons.hold(connection)
        yield connection


def change_features(
    learner: Learner, new: Mapping[str, Any], features: Any, bandit: Bandit | None, *, author: str, **more: Any
) -> None:
    """Other features from now on. `Live.change` says what is passed; more : arms and carry"""
    if features is None:
        raise TypeError("arms= and carry= go with features=, the new ones: dither.Features(...)")
    if new:
        raise TypeError(f"features= is an event by itself: change {errors.listed(sorted(new))} by a call of its own")
    with happening(learner) as connection:
        now = ledgered(connection, learner)
        about = dict(features=features, bandit=bandit, author=author)
        other_features.change(connection, learner, now.first, now.way, **about, **more)


def change(learner: Learner, new: Mapping[str, Any], bandit: Bandit | None, *, author: str) -> bool:
    """Other settings, or another bandit, from now on; and other terms of rewards. `Live.change` says what is passed.

    -> whether there is more than other terms
    """
    opening.bandit("bandit", bandit, or_none="None")
    terms = {name: value for name, value in new.items() if name in NewTerms.__annotations__}
    other = {name: value for name, value in new.items() if name not in terms}
    if not new and bandit is None:
        raise ValueError("say what changes, such as change(c=..., floor=..., budgets=..., default=...)")
    if bandit is not None and other.keys() - {BUDGETS}:
        raise TypeError(f"{errors.listed(sorted(other.keys() - {BUDGETS}))} and bandit=: a bandit has its settings")
    if terms and len(terms) == len(new) and bandit is None:
        learner.ledger.change(**terms)
        return False
    with happening(learner) as connection:
        now = ledgered(connection, learner)
        details: dict[str, Any] = {"bandit": False, "learnt again": False, "settings": {}, "before": {}}
        data, other_budgets, budgets = None, BUDGETS in other, other.pop(BUDGETS, None)
        if bandit is not None:
            settling.fits(bandit, learner, whose=settling.PASSED)
        if other or bandit is not None:
            after, again = _other(now.first, bandit) if bandit is not None else replaced(now.first, other)
            if again or same_settings.differing(now.first, after):
                data = fits(connection, learner, after)
                details |= {"bandit": True, "learnt again": again} | _described(now.first, after, other)
        spent = keeping.settings(connection).get(turns.BUDGETS, {})
        if other_budgets and (new_budgets := turns.put(connection, {} if budgets is None else budgets)) != spent:
            details["settings"] |= {BUDGETS: new_budgets}
            details["before"] |= {BUDGETS: spent}
        if details["settings"]:
            ledger_events.put(connection, learner.ledger.database, "change", details, author=author, data=data)
        if terms:
            reward_terms.change(connection, learner.ledger.database, terms)
    return True


def fits(connection: Any, learner: Learner, bandit: Bandit) -> bytes:
    """A bandit that is to be the ledger's, as bytes. Raises ValueError where the ledger cannot be learnt by it."""
    data = bandit.to_bytes()
    again = loaded(data, learner)  # what cannot be read again is refused before it is there
    settling.named(connection, bandit, whose="bandit=")
    alarms.fits(connection, again)
    reward_terms.learnable(connection, learner.ledger.database, adapting.adapted(again.model).support)
    return data


def _described(before: Bandit, after: Bandit, names: Mapping[str, Any]) -> dict[str, Any]:
    """What has changed: the settings that were passed, or the policy and the model of a bandit that was."""
    each = names or ("model", "policy", *DEMANDS)
    return {
        what: {name: saving.pack(_value(one, name)) for name in each}
        for what, one in (("settings", after), ("before", before))
    }


def _value(bandit: Bandit, name: str) -> Any:
    parts = {"model": bandit.model, "policy": bandit.policy} | _demands(bandit)
    if name in parts:
        return parts[name]
    owner = bandit.policy if name in _fields(bandit.policy) else _inner(bandit.model)
    return getattr(owner, name)


def _demands(bandit: Bandit) -> dict[str, Any]:
    """`DEMANDS`, as a bandit has them."""
    return {"floor": bandit.floor, "monte_carlo": bandit.monte_carlo}


def _inner(model: Any) -> Any:
    """The model that has the settings: with slots side by side, that of each slot."""
    return model.model if "model" in _fields(model) and "slots" in _fields(model) else model


def _fields(part: Any) -> dict[str, Any]:
    return {f.name: f.type for f in dataclasses.fields(part)} if dataclasses.is_dataclass(part) else {}


def replaced(first: Bandit, new: Mapping[str, Any]) -> tuple[Bandit, bool]:
    """A bandit with other settings, as it begins, and whether it must learn again what was learnt."""
    model, inner = first.model, _inner(first.model)
    of_policy, of_model = _fields(first.policy), _fields(inner)
    of_model.pop("slots", None)
    for name, value in new.items():
        kinds = of_policy | of_model
        if name in of_policy and name in of_model:
            raise TypeError(f"the policy and the model have a setting {name} each: pass bandit=")
        if name not in kinds and name not in DEMANDS:
            raise _unknown(first, name, [*kinds, *DEMANDS])
        if kinds.get(name) is bool:
            errors.true_or_false(name, value)
    policy_part = {name: value for name, value in new.items() if name in of_policy}
    model_part = {name: value for name, value in new.items() if name in of_model}
    policy = dataclasses.replace(first.policy, **policy_part) if policy_part else first.policy
    if model_part:
        settings = {name: getattr(inner, name) for name in of_model}
        if off := forgetting.in_the_way(settings, model_part):
            has = errors.listed([f"{name}={settings[name]!r}" for name in off])
            cure = ", ".join(f"{name}={value!r}" for name, value in (off | model_part).items())
            raise ValueError(f"a model forgets in one way, and the ledger's bandit has {has}: change({cure})")
        changed = dataclasses.replace(inner, **model_part)
        model = changed if inner is model else dataclasses.replace(model, model=changed)
    demands = {name: new.get(name, value) for name, value in _demands(first).items()}
    return _made(first, model, policy, demands)


def _unknown(first: Bandit, name: str, names: list[str]) -> TypeError:
    """The error of a setting that this bandit has not."""
    owners = sorted({cls.__name__ for cls in saving.KNOWN.values() if name in _fields(cls)})
    every = [*names, BUDGETS, *NewTerms.__annotations__]
    if not owners and name not in ("baseline", "features", "dim", "seed", "slots", "disjoint"):
        return errors.unknown_setting("setting", name, names=[*every, "bandit"])
    whose = f"{type(first.policy).__name__} on {type(_inner(first.model)).__name__}"
    of = f" ({errors.listed(owners)} has one)" if owners else ""
    return TypeError(
        f"{whose} has no setting {name!r} that can change{of}. It has {', '.join(dict.fromkeys(every))}. For another "
        f"policy or model pass the bandit whole: change(bandit=...)"
    )


def _other(first: Bandit, bandit: Bandit) -> tuple[Bandit, bool]:
    """A bandit that was passed, as it begins, and whether it must learn again what was learnt."""
    if bandit.baseline != first.baseline:
        raise ValueError(
            f"the ledger's bandit has baseline={first.baseline}, and bandit= has {bandit.baseline}: a baseline adds up "
            f"all rounds from the first on, so it cannot change. Begin a new ledger with this bandit"
        )
    if bandit.observations == 0:
        return _made(first, bandit.model, bandit.policy, _demands(bandit), bandit)
    return bandit, True


def _made(
    first: Bandit, model: Any, policy: Any, demands: Mapping[str, Any], passed: Bandit | None = None
) -> tuple[Bandit, bool]:
    """The bandit of these parts. What it has learnt before the ledger began stays where the model does."""
    settings: dict[str, Any] = dict(dim=first.dim, seed=first.seed, features=first.features, baseline=first.baseline)
    new = Bandit(model, policy, **settings, **demands)
    new.columns = first.columns
    if _learn_alike(new, Bandit(first.model, first.policy, **settings)):
        again = copy.deepcopy(first)
        again.decide_as(new)
        return again, False
    if first.observations and passed is None:
        raise ValueError(
            f"the bandit had learnt {first.observations} rewards before the ledger began, which other settings of its "
            f"model would have to learn again and the ledger has not: pass bandit=, of these settings, that has learnt "
            f"them (`log.warm_start`), or none of them"
        )
    return new if passed is None else passed, True


def _learn_alike(one: Bandit, other: Bandit) -> bool:
    """Whether two bandits that have learnt nothing learn the same: they have the same model, and keep the same."""
    a, b = one._content(), other._content()
    same = a[0]["model"] == b[0]["model"] and a[1].keys() == b[1].keys()
    return same and all(a[1][name].shape == b[1][name].shape for name in a[1])


def promote(learner: Learner, *, keep: bool, author: str) -> None:
    """The shadow takes the place of the bandit. `Live.promote` says what is passed."""
    errors.true_or_false("keep", keep)
    learner.attempt("looking", functools.partial(learner.follow, replay=True))  # what raises is known then
    with happening(learner) as connection:
        now, facts = ledgered(connection, learner), shadow_of(connection)
        if facts.first is None:
            raise ValueError("this ledger has no shadow that could be promoted: live.replace_shadow(bandit)")
        if now.first.baseline is not None:
            raise ValueError(
                "the bandit keeps a baseline, which a shadow has not: begin a new ledger with a bandit that keeps it, "
                "and let it take over what this one exports"
            )
        aside = learner.stands.aside
        if aside is not None and aside.facts == facts:
            raise ValueError(f"{aside.told}: it cannot act. {aside.cure}, and promote it then")
        data = fits(connection, learner, loaded(facts.first, learner))
        details = {"shadow": facts.number, "learnt": facts.learns, "kept": keep}
        ledger_events.put(connection, learner.ledger.database, "promote", details, author=author, data=data)
        settling.put_shadow(connection, now.first if keep else None, learns=True)


def roll_back(learner: Learner, batch: int, *, author: str) -> None:
    """The state after an earlier batch, from now on. `Live.rollback` says what is passed."""
    errors.at_least("batch", batch, 0)
    with happening(learner) as connection:
        now = ledgered(connection, learner)
        if batch > now.last:
            raise ValueError(f"the ledger has {now.last} batches, and no batch {batch}: give one of them, or 0")
        way = course.at(now.events, batch)
        then = loaded(course.began(connection, way), learner)
        reward_terms.learnable(connection, learner.ledger.database, adapting.adapted(then.model).support)
        details = {"batch": int(batch)}
        ledger_events.put(connection, learner.ledger.database, "rollback", details, author=author)
        other_features.put_in_force(connection, way.features)


def learn_again(learner: Learner, *, author: str) -> None:
    """Learn what was rolled back. `Live.relearn` says what is passed."""
    with happening(learner) as connection:
        now = ledgered(connection, learner)
        if now.way.gaps:
            details = {"batches": [list(gap) for gap in now.way.gaps]}
            ledger_events.put(connection, learner.ledger.database, "relearn", details, author=author)
