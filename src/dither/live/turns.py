"""Budgets, and a baseline: decisions that depend on what all processes have decided so far.

Such a decision is made inside the transaction that stores it, under a lock of the database (`log.database.spending`).
What was spent and what the rounds add up to are read, arms whose budget is spent are masked, the bandit chooses, and
the new sums are written with the decision. So no two processes decide from the same state: no budget is overspent, and
the propensity is exact, given the mask of the decision.

The other way would be to decide first, and to decide again if the state has changed meanwhile. Then every decision
whose mask has changed must be drawn anew, not only one whose arm was spent: else the probability of an arm would be a
mixture over two masks. A batch could not be drawn anew as a whole either, as its own first draws change the mask of the
later ones, and to refuse the batch would favour some draws. Under the lock every decision is drawn once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dither.bandit.bandit import Bandit
from dither.base import errors
from dither.deciding import one_arm
from dither.deciding import request as of_request
from dither.deciding.baseline import RoundSums, position
from dither.deciding.budget import Budgets, checked, described, of_description
from dither.deciding.decision import Choice
from dither.deciding.request import Request
from dither.live import beside, budgeted_arms, repeats, requests
from dither.live.deciding import Decider
from dither.live.requests import Call
from dither.log import Ledger, record, schema
from dither.log.database import keeping, lessons, spending
from dither.log.database.committing import Deciding, Entering

BUDGETS = "budgets"  # the setting that holds them
_ROUNDING = 1e-12  # a sum of costs may be above the budget by this share of it
Spent = dict[tuple[str, spending.Place], float]  # (id, period) -> what is spent


class Limit(NamedTuple):
    """A budget, as decisions need it."""

    ticks: int  # the length of its periods in microseconds; 0: one for ever
    most: float

    def place(self, now: int) -> spending.Place:
        """The period in which a time lies, in microseconds since 1970."""
        return self.ticks, now // self.ticks if self.ticks else 0


def settle(ledger: Ledger, budgets: Mapping[Any, Any] | None) -> None:
    """Let a ledger keep these budgets from now on; None: those that it has."""
    if budgets is not None:
        with ledger.holding() as connection:
            put(connection, budgets)


def put(connection: Any, budgets: Mapping[Any, Any]) -> dict[str, Any]:
    """The budgets of a ledger from now on; -> how it keeps them.

    Raises LookupError for an arm that the ledger has not, where it knows all arms.
    """
    new = described(checked(budgets))
    lessons.hold(connection)
    budgeted_arms.check(connection, new)
    if new != keeping.settings(connection).get(BUDGETS, {}):
        keeping.put(connection, BUDGETS, new)
        lessons.changed(connection)
    return new


class Turns:
    """Decides inside the transaction that stores the decision, where something is shared by all processes."""

    def __init__(self, ledger: Ledger, decider: Decider, began: RoundSums | None) -> None:
        """began : what the rounds of the bandit added up to as it began."""
        self.decider, self._began = decider, began
        self._ledger, self._home = ledger, ledger.database
        self.budgets: Budgets = {}
        self._unseen = budgeted_arms.UnseenArms(())
        self.look()

    def look(self) -> None:
        """Take the budgets that the ledger has by now."""
        with self._home.reading() as connection:
            before, self.budgets = self.budgets, of_description(keeping.settings(connection).get(BUDGETS, {}))
            if self.budgets != before:
                come = budgeted_arms.every_arm(connection) is None  # the arms are not known until they do
                self._unseen = budgeted_arms.UnseenArms(self.budgets if come else ())
                self._home.troubles.mended("budgets")
        self._limits = {
            arm: tuple(Limit(one.ticks, one.most * (1 + _ROUNDING)) for one in several)
            for arm, several in self.budgets.items()
        }
        # whether decisions depend on those of others
        self.needed = bool(self.budgets) or self.decider.bandit.baseline is not None

    def task(self, call: Call) -> Deciding:
        """One request, or B, which is decided when the committer does it."""
        begun = self.decider.begun(call)
        home, bandit = self._home, self.decider.bandit

        def decided(connection: Any) -> Entering:
            spending.hold(connection, home)
            with self.decider.lock:
                request = self.decider.request(begun, call)
                erased = 0
                if bandit.baseline is not None:
                    erased, bandit.kept = self._rounds(connection)
                choice, amounts = self._in_turn(connection, request, call, record.micros(begun.time))
                entry = self.decider.entry(choice, call, begun)  # before anything is written, as it may refuse a row
                sums = bandit.kept

            spending.spend(connection, home, amounts)
            if sums is not None:
                spending.put_rounds(connection, home, erased, _array(sums))
            return entry

        return Deciding(decided, repeats.ids_of(call))

    def _in_turn(self, connection: Any, request: Request, call: Call, now: int) -> tuple[Choice, Spent]:
        """The choices of all requests, one after the other, and what is then spent of the budgets that changed."""
        if request.size == 0:
            return self.decider.choose(request), Spent()
        names = _names(request)
        if (words := self._unseen.offered(names, request.size)) is not None:
            self._home.troubles.add("budgets", words)
        costs = self._costs(call.costs, request)
        places = {one.place(now) for name in names for one in self._limits.get(name, ())}
        spent, changed = spending.spent(connection, self._home, places), Spent()
        parts: list[Choice] = []
        for i in range(request.size):
            one, price = (request, costs) if request.single else (request.row(i), costs[i])
            open_arms = [self._open(name, price[k], spent, now) for k, name in enumerate(names)]
            one = _masked(one, np.array(open_arms), names)
            part = self.decider.choose(one)
            parts.append(part)
            for limit in self._limits.get(names[part.arm], ()):
                key = names[part.arm], limit.place(now)
                changed[key] = spent[key] = spent.get(key, 0.0) + float(price[part.arm])
        return (parts[0] if request.single else one_arm.joined(parts, request)), changed

    def spends(self, call: Call) -> Callable[[int, str], Spent]:
        """What a show takes of the budgets as they are now: by the place of its request in the call, and its arm."""
        limits = self._limits
        if not limits:
            return lambda place, arm: Spent()
        begun = self.decider.begun(call)
        with self.decider.lock:
            request = self.decider.request(begun, call)
        costs, now = np.atleast_2d(self._costs(call.costs, request)), record.micros(begun.time)
        names = _names(request)

        def spent(place: int, arm: str) -> Spent:
            price = float(costs[place, names.index(arm)]) if arm in names else 0.0
            return {(arm, limit.place(now)): price for limit in limits.get(arm, ())}

        return spent

    def give_back(self, connection: Any, amounts: Sequence[Spent]) -> None:
        """Let decisions that nobody was shown have spent nothing, and be no rounds. The lease is locked.

        amounts : what each has spent (`spends`)
        """
        spending.hold(connection, self._home)
        for taken in amounts:
            spent = spending.spent(connection, self._home, {place for _, place in taken})
            left = {key: max(spent.get(key, 0.0) - amount, 0.0) for key, amount in taken.items()}
            spending.spend(connection, self._home, left)
        if amounts and self.decider.bandit.baseline is not None:
            spending.recount(connection)

    def _costs(self, costs: Any, request: Request) -> np.ndarray:
        """What a show of each arm costs, (..., K)."""
        if costs is None:
            return np.ones(request.shape)
        by_place = requests.by_place(costs, request, what="costs", default=1.0, catalogue=self.decider.catalogue)
        return of_request.costs(by_place, shape=request.shape, mask=request.mask)

    def _open(self, name: str, cost: float, spent: Spent, now: int) -> bool:
        """Whether an arm may be shown once more."""
        return all(
            spent.get((name, limit.place(now)), 0.0) + cost <= limit.most for limit in self._limits.get(name, ())
        )

    def spent(self, now: Any = None) -> dict[str, tuple[float, ...]]:
        """Id -> what is spent of each of its budgets, in the period in which the time `now` lies."""
        at = record.micros(schema.moment(now))
        places = {limit.place(at) for several in self._limits.values() for limit in several}
        with self._home.reading() as connection:
            amounts = spending.spent(connection, self._home, places)
        return {
            arm: tuple(amounts.get((arm, limit.place(at)), 0.0) for limit in several)
            for arm, several in self._limits.items()
        }

    # The rounds of a baseline

    def rounds(self) -> RoundSums | None:
        """What the rounds add up to by now. Where decisions were erased, it is made again from all others."""
        if self.decider.bandit.baseline is None:
            return None
        with self._ledger.holding() as connection:
            spending.hold(connection, self._home)
            erased, sums = self._rounds(connection)
            spending.put_rounds(connection, self._home, erased, _array(sums))
        return sums

    def _rounds(self, connection: Any) -> tuple[int, RoundSums]:
        """The number of the last erasure, and what the rounds add up to without erased decisions. The lock is held."""
        erased, sums = spending.rounds(connection, self._home)
        if sums is None:
            return erased, self.recount(connection)
        *z, g, rounds, shown = sums.tolist()
        return erased, RoundSums(np.array(z), g, int(rounds), int(shown))

    def recount(self, connection: Any) -> RoundSums:
        """What the decisions of the ledger add up to, in their order, from where the bandit began. Exact to the bit."""
        sums, baseline = self._began, self.decider.bandit.baseline
        assert sums is not None
        assert baseline is not None
        for one in spending.all_rounds(connection, beside.BASELINE):
            values = one.extra.get(beside.VALUES)
            v = None if values is None else np.array(values, dtype=np.float64)
            at = np.array(one.extra[beside.BASELINE])
            request = Request(one.X, None, one.X.shape[:-1], values=v, baseline=at)
            sums = baseline.after(sums, request, one.arm)
        return sums


def fits(bandit: Bandit, *, whole: bool, shadows: Iterable[Bandit | None], rule: bool) -> None:
    """Raise ValueError where a baseline cannot be kept, or would be that of a bandit that does not act.

    whole : whether the features of all arms on offer are stored
    """
    if bandit.baseline is not None and not whole:
        raise ValueError("a baseline needs store='all': what its rounds add up to is counted from all features")
    for one in shadows:
        judged(one)
    if rule and bandit.baseline is not None:
        raise ValueError("a rule acts here, so the bandit cannot keep a baseline: leave apprentice= or it out")


def _names(request: Request) -> tuple[str, ...]:
    """The ids of the arms, (K,); their positions where they have none."""
    return tuple(map(str, range(request.shape[-1]))) if request.ids is None else request.ids


def _masked(request: Request, open_arms: np.ndarray, names: tuple[str, ...]) -> Request:
    """The request without arms whose budget is spent. Raises ValueError where none is left."""
    if open_arms.all():
        return request
    on = np.ones(len(names), dtype=bool) if request.mask is None else request.mask
    left = on & open_arms
    if not left.any():
        raise ValueError(
            "all arms on offer have spent their budgets: leave one arm without a budget, or raise one of "
            f"{errors.listed([name for name, offered in zip(names, on, strict=True) if offered])}"
        )
    X = request.X if request.X.ndim == 1 else of_request.readable(request.X, left)
    if request.baseline is not None:
        position(request.baseline, shape=request.shape, mask=left)
    values = None if request.values is None else np.where(left, request.values, 1.0)
    minimum = None if request.minimum is None else np.where(left, request.minimum, 0.0)
    return request._replace(X=X, mask=left, values=values, minimum=minimum)


def judged(shadow: Bandit | None) -> None:
    """Raise ValueError for a shadow that keeps a baseline."""
    if shadow is not None and shadow.baseline is not None:
        raise ValueError("a bandit that is judged and does not act keeps no baseline: give it without baseline=")


def filed(bandit: Bandit, sums: RoundSums | None) -> bytes:
    """The bytes of what was learnt, with what the rounds add up to. It is not left in the bandit, nor in a snapshot."""
    with bandit._lock:
        before = bandit.kept
        try:
            bandit.kept = before if sums is None else sums
            return bandit.to_bytes()
        finally:
            bandit.kept = before


def _array(sums: RoundSums) -> np.ndarray:
    return np.array([*sums.z, sums.g, sums.rounds, sums.shown], dtype=np.float64)
