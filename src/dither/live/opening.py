"""How `Live` is opened: its parts, in the order in which each needs those before it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from dither.bandit.bandit import Bandit
from dither.bandit.restoring import from_bytes
from dither.base import errors
from dither.features import Catalogue
from dither.live import beside, settling, stock, turns
from dither.live.deciding import Decider, Kept
from dither.live.learner import Learner, Pace
from dither.log import Ledger


@dataclass(frozen=True)
class Beside:
    """Policies beside the bandit. The parameters of `Live` say what each means.

    Raises TypeError for a shadow that is no bandit; ValueError for settings that exclude each other.
    """

    shadow: Bandit | None
    learns: bool  # the shadow
    apprentice: Callable[..., Any] | None
    explore: float | None

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

    @property
    def rule(self) -> beside.Apprentice | None:
        """The rule that acts in place of the bandit; None: the bandit acts."""
        if self.apprentice is None:
            return None
        return beside.Apprentice(self.apprentice, beside.EXPLORE if self.explore is None else self.explore, None)


class Parts(NamedTuple):
    """What `Live` is made of."""

    learner: Learner  # stands at what the ledger says
    keeper: stock.CatalogueKeeper | None  # of the catalogue, where there is one
    decider: Decider  # follows the learner
    turns: turns.Turns  # decides where decisions depend on those of others


def opened(
    ledger: Ledger,
    acting: Bandit | None,
    *,
    catalogue: Catalogue | None,
    others: Beside,
    pace: Pace,
    kept: Kept,
    budgets: Mapping[Any, Any] | None,
    load: dict[str, Any],
) -> Parts:
    """The parts. acting : the bandit that was passed; load : what `from_bytes` needs for the user's classes

    Raises ValueError where the ledger has another bandit, shadow or catalogue, or no bandit and none is passed.
    """
    created, acting = settling.bandit(ledger, acting, grows=catalogue is not None)
    learner = Learner(ledger, pace, load)
    shadow = others.shadow
    if shadow is not None:
        settling.fits(shadow, learner)
        if not settling.shadow(ledger, shadow, learns=others.learns):
            shadow = None
        ledger.look()  # its features have the names of the shadow, where they had none
        learner.follow(replay=True)
    keeper = _catalogue(ledger, learner, catalogue)
    if acting is None:
        acting = from_bytes(learner.stands.bandit.to_bytes(), **load)
    if not created:
        acting.reseed()
    ledger.columns(acting.columns)
    rule, arms = others.rule, None if keeper is None else keeper.catalogue
    decider = Decider(acting, ledger, learner, rule=rule, shadow=shadow, catalogue=arms, kept=kept)
    turns.settle(ledger, budgets)
    in_turn = turns.Turns(ledger, decider, learner.replay(0).bandit.kept)
    in_turn.fits(store=kept.store, shadows=[shadow, learner.stands.shadow], rule=rule is not None)
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
    if not isinstance(value, Bandit):
        what = f", or {or_none}; got" if or_none else ", got"
        raise TypeError(f"{name} must be a dither.Bandit, such as dither.LinFP(dim=...){what} {value!r}")
