"""How `Live` is opened: its parts, in the order in which each needs those before it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dither.bandit.bandit import Bandit
from dither.bandit.restoring import from_bytes
from dither.base import errors
from dither.deciding.baseline import RoundSums
from dither.drift import ResidualAlarm
from dither.features import Catalogue
from dither.live import alarms, beside, kept_requests, settling, stock, turns
from dither.live.deciding import Decider, Kept
from dither.live.learner import Learner, Pace
from dither.log import Ledger
from dither.log.database import reward_terms
from dither.models import adapting


@dataclass(frozen=True)
class Beside:
    """Policies beside the bandit. The parameters of `Live` say what each means.

    Raises TypeError for a shadow that is no bandit and a rule that cannot be called; ValueError for settings that
    exclude each other, and for a share that is none.
    """

    shadow: Bandit | None
    learns: bool  # the shadow
    apprentice: Callable[..., Any] | None
    explore: float | None
    rule: beside.Apprentice | None = field(init=False)  # acts in place of the bandit; None: the bandit acts

    def __post_init__(self) -> None:
        if self.shadow is not None:
            bandit("shadow", self.shadow)
        if self.shadow is not None and self.apprentice is not None:
            raise ValueError("shadow and apprentice are two ways to judge a policy: give one of them")
        if self.explore is not None and self.apprentice is None:
            raise ValueError(
                "explore= is for a rule, apprentice=. A bandit explores by itself, and by its floor=: leave it out"
            )
        errors.true_or_false("shadow_learns", self.learns)
        rule, share = None, beside.EXPLORE if self.explore is None else self.explore
        if self.apprentice is not None:  # here, before anything is settled, as it may be refused
            rule = beside.Apprentice(self.apprentice, share, None)
        object.__setattr__(self, "rule", rule)


class Agreed(NamedTuple):
    """What is agreed with a ledger that is opened, in one transaction."""

    created: bool  # the ledger was new, and has the bandit that was passed
    acting: Bandit | None  # the bandit that was passed; None: the one that was learnt acts
    learner: Learner
    keeper: stock.CatalogueKeeper | None
    shadow: Bandit | None  # the one that was passed
    began: RoundSums | None  # what the rounds of the bandit added up to as it began


class Parts(NamedTuple):
    """What `Live` is made of."""

    learner: Learner  # stands at what the ledger says
    keeper: stock.CatalogueKeeper | None  # of the catalogue, where there is one
    decider: Decider  # follows the learner
    turns: turns.Turns  # decides where decisions depend on those of others


def agreed(
    ledger: Ledger,
    acting: Bandit | None,
    *,
    catalogue: Catalogue | None,
    others: Beside,
    pace: Pace,
    kept: Kept,
    budgets: Mapping[Any, Any] | None,
    reward_range: Any,
    alarm: bool | ResidualAlarm | None,
    load: dict[str, Any],
) -> Agreed:
    """Settle in a new ledger what is passed, or compare it with what the ledger has.

    The caller's transaction is that of all of it (`Home.together`), so a ledger that is not opened has settled nothing.

    acting : the bandit that was passed; alarm : as for `Live`; load : what `from_bytes` needs for the user's classes

    Raises ValueError where the ledger has another bandit, shadow or catalogue, or no bandit and none is passed. The
    catalogue is then as it was.
    """
    if not isinstance(catalogue, Catalogue | None):
        raise TypeError(f"catalogue must be a dither.Catalogue, or None; got {catalogue!r}")
    version, keeper = 0 if catalogue is None else catalogue.version, None
    created, acting = settling.bandit(ledger, acting, grows=catalogue is not None)
    learner, shadow = Learner(ledger, pace, load), others.shadow
    with ledger.holding() as connection:
        support = adapting.adapted(learner.stands.bandit.model).support
        reward_terms.bound(connection, ledger.database, support, reward_range, new=created)
    if shadow is not None:
        settling.fits(shadow, learner)
        if not settling.shadow(ledger, shadow, learns=others.learns):
            shadow = None
    try:
        keeper = _catalogue(ledger, learner, catalogue)
        bandit = learner.stands.bandit if acting is None else acting
        ledger.columns(bandit.columns)
        turns.settle(ledger, budgets)
        with ledger.holding() as connection:
            alarms.settle(connection, alarm, bandit)
        turns.fits(bandit, whole=kept.X, shadows=[shadow], rule=others.apprentice is not None)
        if kept.records:
            kept_requests.fits(kept_requests.features_of(bandit, None if keeper is None else keeper.catalogue))
    except BaseException:
        if keeper is not None and catalogue is not None:
            keeper.detach()
            catalogue._back_to(version)
        raise
    return Agreed(created, acting, learner, keeper, shadow, learner.replay(0).bandit.kept)


def opened(ledger: Ledger, settled: Agreed, *, others: Beside, kept: Kept, load: dict[str, Any]) -> Parts:
    """The parts, at what the ledger says. It is asked after the transaction, as all may have to be learnt anew."""
    learner, keeper, acting = settled.learner, settled.keeper, settled.acting
    ledger.look()  # its features have the names of the shadow, where they had none
    learner.follow(replay=True)
    if acting is None:
        acting = from_bytes(learner.stands.bandit.to_bytes(), **load)
    if not settled.created:
        acting.reseed()
    rule, arms = others.rule, None if keeper is None else keeper.catalogue
    decider = Decider(acting, ledger, learner, rule=rule, shadow=settled.shadow, catalogue=arms, kept=kept)
    in_turn = turns.Turns(ledger, decider, settled.began)
    return Parts(learner, keeper, decider, in_turn)


def _catalogue(ledger: Ledger, learner: Learner, catalogue: Catalogue | None) -> stock.CatalogueKeeper | None:
    """Open the catalogue of the ledger, or give it one."""
    bandit = learner.stands.bandit
    if catalogue is not None and bandit.features is not None:
        catalogue.features.check(bandit.features, what="the bandit's features", whose="the catalogue")
    if catalogue is not None:
        catalogue.features.fits(bandit.dim, slots=bandit.slots)
    return stock.opened(ledger, learner, catalogue)


def bandit(name: str, value: Any, *, or_none: str = "") -> None:
    """Raise TypeError for what is no bandit; or_none : what errors add where None is taken too."""
    if not isinstance(value, Bandit) and not (or_none and value is None):
        what = f", or {or_none}; got" if or_none else ", got"
        raise TypeError(f"{name} must be a dither.Bandit, such as dither.LinFP(dim=...){what} {value!r}")
