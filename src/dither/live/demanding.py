"""Budgets, and a baseline: decisions that depend on what all processes have decided so far.

Such a decision is made inside the transaction that stores it, under a lock of the database (`log.database.spending`).
What was spent and what the rounds add up to are read, arms whose budget is spent are masked, the bandit chooses, and
the new sums are written with the decision. So no two processes decide from the same state: no budget is overspent, and
the propensity is exact, given the mask of the decision.

The other way would be to decide first, and to decide again if the state has changed meanwhile. Then every decision
whose mask has changed must be drawn anew, not only one whose arm was spent: else the probability of an arm would be a
mixture over two masks. A batch could not be drawn anew as a whole either, as its own first draws change the mask of the
later ones, and to refuse the batch would favour some draws. Under the lock nothing is drawn anew for what was drawn.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dither.bandit.bandit import Bandit, Decision
from dither.base import errors
from dither.deciding import demanded, inputs
from dither.deciding.baseline import Kept
from dither.deciding.budget import Budgets, checked, described, of_description
from dither.live import beside, requests
from dither.live.deciding import Decided, Decider
from dither.log import Ledger, schema
from dither.log.database import entering, keeping, lessons, spending

BUDGETS = "budgets"  # the setting that holds them


def budgets_of(ledger: Ledger, given: Mapping[Any, Any] | None) -> Budgets:
    """The budgets of a ledger: those that it has, or those that are given, which it keeps from now on."""
    own = None if given is None else checked(given)
    with ledger.holding() as connection:
        have = keeping.settings(connection).get(BUDGETS, {})
        if own is None:
            return of_description(have)
        if described(own) != have:
            lessons.hold(connection)
            keeping.put(connection, BUDGETS, described(own))
        return own


class Demanding:
    """Decides inside the transaction that stores the decision."""

    def __init__(self, ledger: Ledger, decider: Decider, budgets: Budgets, began: Kept | None) -> None:
        """began : what the rounds of the bandit added up to as it began."""
        self.ledger, self.decider, self.budgets, self._began = ledger, decider, budgets, began

    def decide(self, context: Any, arms: Any, *, mask: Any, time: Any, costs: Any, id: Any, **given: Any) -> Decided:
        """One request, or B. The arguments are those of `Live.choose`."""
        at, asked = schema.moment(time), self.decider.ask(context, arms, mask)
        home, bandit = self.ledger.database, self.decider.bandit

        def made(connection: Any) -> tuple[Any, ...]:
            spending.hold(connection, home)
            with bandit._lock:
                self.decider.passes(at)
                own = asked or self.decider.ask_now(context, arms, mask)
                erased = 0
                if bandit.baseline is not None:
                    erased, bandit.kept = self._rounds(connection)
                decided, amounts = self._in_turn(connection, own, at, costs, id, given)
                kept = bandit.kept

            def write(connection: Any) -> None:
                spending.spend(connection, home, amounts)
                if kept is not None:
                    spending.put_rounds(connection, home, erased, _sums(kept))

            return decided.rows, decided.lessons, decided, write

        said = [] if id is None else list(id) if isinstance(id, (list, tuple, np.ndarray)) else [id]
        return self.ledger.enter_decided(made, [str(one) for one in said])

    def _in_turn(
        self, connection: Any, asked: requests.Asked, at: Any, costs: Any, id: Any, given: Mapping[str, Any]
    ) -> tuple[Decided, dict[Any, float]]:
        """The decisions of all requests, one after the other, and what is then spent of the budgets that changed."""
        bandit, now = self.decider.bandit, entering.micros(at)
        with bandit._whole():
            X, mask, single = bandit._request(asked.X, asked.mask)
        shape = bandit._shape(X)
        names = tuple(map(str, range(shape[-1]))) if asked.names is None else asked.names
        costs = self._costs(costs, names, shape, mask)
        places = {(one.ticks, one.start(now)) for name in names for one in self.budgets.get(name, ())}
        spent = spending.spent(connection, self.ledger.database, places)
        changed: dict[Any, float] = {}
        found: list[Decided] = []
        rows: list[Any] = [...] if single else list(range(shape[0]))
        for i, own in enumerate(rows):
            price = costs[own]
            on = np.ones(shape[-1], dtype=bool) if mask is None else mask[own].copy()
            on &= [self._open(name, price[k], spent, now) for k, name in enumerate(names)]
            if not on.any():
                raise ValueError(
                    "all arms on offer have spent their budgets: leave one arm without a budget, or raise one of "
                    f"{errors.listed([name for k, name in enumerate(names) if mask is None or mask[own][k]])}"
                )
            part = None if mask is None and on.all() else on
            one = self._one(asked._replace(X=X[own], mask=part), own, i, shape, at, id, single, given)
            found.append(one)
            arm = int(one.made.arm)
            for budget in self.budgets.get(names[arm], ()):
                key = names[arm], (budget.ticks, budget.start(now))
                changed[key] = spent[key] = spent.get(key, 0.0) + float(price[arm])
        return found[0] if single else _together(found), changed

    def _one(
        self,
        asked: Any,
        own: Any,
        i: int,
        shape: tuple[int, ...],
        at: Any,
        id: Any,
        single: bool,
        given: Mapping[str, Any],
    ) -> Decided:
        """The decision of request i, `own` of the batch."""
        if single:
            return self.decider.decided(asked, id=id, time=at, **given)
        cut = dict(given)
        for name in ("values", "minimum"):
            if cut[name] is not None and not isinstance(cut[name], Mapping):
                array = inputs.numbers(cut[name], name=name)
                cut[name] = array if array.ndim < 2 else array[own]
        if cut["baseline"] is not None and np.ndim(cut["baseline"]):
            cut["baseline"] = cut["baseline"][own]
        B = shape[0]
        if id is not None and len(id) != B:
            raise ValueError(f"id must be {B} texts that are not empty, got {id!r}")
        if cut["extra"] is not None:
            for name, value in cut["extra"].items():
                if isinstance(value, (str, bytes)) or not hasattr(value, "__len__") or len(value) != B:
                    raise ValueError(f"extra[{name!r}] must hold {B} values, one a request")
            cut["extra"] = {name: value[i] for name, value in cut["extra"].items()}
        return self.decider.decided(asked, id=None if id is None else id[i], time=at, **cut)

    def _costs(self, given: Any, names: tuple[str, ...], shape: tuple[int, ...], mask: Any) -> np.ndarray:
        """What a show of each arm costs, (..., K)."""
        if given is None:
            return np.ones(shape)
        by_id: dict[str, Any] = dict(what="costs", default=1.0, catalogue=self.decider.catalogue)
        return inputs.costs(requests.placed(given, names, shape[-1], **by_id), shape=shape, mask=mask)

    def _open(self, name: str, cost: float, spent: Mapping[Any, float], now: int) -> bool:
        """Whether an arm may be shown once more."""
        return all(
            budget.allows(spent.get((name, (budget.ticks, budget.start(now))), 0.0), cost)
            for budget in self.budgets.get(name, ())
        )

    def spent(self, now: Any = None) -> dict[str, tuple[float, ...]]:
        """What is spent of each budget in its period at a time, by id."""
        at = entering.micros(schema.moment(now))
        places = {(one.ticks, one.start(at)) for own in self.budgets.values() for one in own}
        with self.ledger.database.reading() as connection:
            found = spending.spent(connection, self.ledger.database, places)
        return {
            arm: tuple(found.get((arm, (one.ticks, one.start(at))), 0.0) for one in own)
            for arm, own in self.budgets.items()
        }

    # The rounds of a baseline

    def rounds(self) -> Kept | None:
        """What the rounds add up to by now. Where decisions were erased, it is made again from all others."""
        if self.decider.bandit.baseline is None:
            return None
        with self.ledger.turn, self.ledger.holding() as connection:
            spending.hold(connection, self.ledger.database)
            erased, kept = self._rounds(connection)
            spending.put_rounds(connection, self.ledger.database, erased, _sums(kept))
        return kept

    def _rounds(self, connection: Any) -> tuple[int, Kept]:
        """The last erasure, and what the rounds add up to without what was erased. Nobody else decides meanwhile."""
        erased, sums = spending.rounds(connection, self.ledger.database)
        if sums is None:
            return erased, self.recount(connection)
        *z, g, rounds, shown = sums.tolist()
        return erased, Kept(np.array(z), g, int(rounds), int(shown))

    def recount(self, connection: Any) -> Kept:
        """What the decisions of the ledger add up to, in their order, from where the bandit began. Exact to the bit."""
        kept, baseline = self._began, self.decider.bandit.baseline
        assert kept is not None
        assert baseline is not None
        for one in spending.all_rounds(connection, beside.BASELINE):
            values, at = one.extra.get(beside.VALUES), one.extra[beside.BASELINE]
            v = None if values is None else np.array(values, dtype=np.float64)
            kept = baseline.after(kept, *baseline.ahead(kept, one.X, at=at, values=v), one.arm, at=at)
        return kept

    def fits(self, *, store: str, shadows: Iterable[Bandit | None], rule: bool) -> None:
        """Raise ValueError where a baseline cannot be kept, or would be that of a bandit that does not act."""
        if self.decider.bandit.baseline is not None and store != "all":
            raise ValueError("a baseline needs store='all': what its rounds add up to is counted from all features")
        for one in shadows:
            judged(one)
        if rule and self.decider.bandit.baseline is not None:
            raise ValueError("a rule acts here, so the bandit cannot keep a baseline: leave apprentice= or it out")


def judged(shadow: Bandit | None) -> None:
    """Raise ValueError for a shadow that keeps a baseline."""
    if shadow is not None and shadow.baseline is not None:
        raise ValueError("a bandit that is judged and does not act keeps no baseline: give it without baseline=")


def filed(bandit: Bandit, kept: Kept | None) -> bytes:
    """The bytes of what was learnt, with what the rounds add up to. It is not left in the bandit, nor in a snapshot."""
    with bandit._lock:
        before = bandit.kept
        try:
            bandit.kept = before if kept is None else kept
            return bandit.to_bytes()
        finally:
            bandit.kept = before


def _sums(kept: Kept) -> np.ndarray:
    return np.array([*kept.z, kept.g, kept.rounds, kept.shown], dtype=np.float64)


def _together(found: list[Decided]) -> Decided:
    """Decisions of single requests as those of a batch."""
    made = [one.made for one in found]
    parts: list[Any] = [(one.arm, one.propensity, one.propensity_kind, one.propensity_se, one.z) for one in made]
    return Decided(
        Decision(*demanded.stacked(parts)),
        found[0].names,
        [row for one in found for row in one.rows],
        [lesson for one in found for lesson in one.lessons],
    )
