"""`Live`: a bandit and its ledger, one object. A decision is stored before it is returned; a reward is learnt once."""

import contextlib
import dataclasses
import threading
import time as clock
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from dither.bandit.bandit import Bandit
from dither.bandit.restoring import from_bytes
from dither.base import errors, forks
from dither.features import Catalogue
from dither.live import beside, demanding, settling, stock
from dither.live.deciding import Decider, alone, columns
from dither.live.learner import Learner
from dither.live.taught import Taught
from dither.log import Ledger, Logged, Pending, Recorded
from dither.log.database import lessons

STORED = ("all", "shown")


@dataclasses.dataclass(frozen=True, slots=True)
class Shown(Recorded):
    """A decision that is in the ledger. `arm` is the id of the arm where ids were given, else its position."""

    place: Any = None  # the position of the arm in the request; with disjoint slots its slot


class Live:
    """A bandit that decides, records, learns and goes on after a restart, in any number of processes.

    Parameters
    ----------
    home : None (memory), a path (SQLite) or a URL of PostgreSQL, as for `log.Ledger`
    bandit : the bandit as it begins. A ledger keeps it, so it may be left out later; another one is refused
    learn : whether this process may learn. Of several that may, one learns at a time; the others decide from its
        snapshots and learn when it stops
    catalogue : arms by id (`dither.Catalogue`), for `choose(context, arms=ids)`. The ledger keeps it, with every later
        change, for all processes; so it may be left out later. Disjoint slots grow with it
    shadow : a bandit that does not act; its probabilities are logged as `judged`. The ledger keeps it too
    shadow_learns : whether it learns the rewards, those that the ledger has already and those that come
    apprentice : a rule, X and the mask -> the position of an arm. It acts in place of the bandit, which learns and
        whose probabilities are logged as `judged`
    explore : with `apprentice` alone, the share of choices that are uniform over the arms on offer; None: 0.1
    store : "all": the features of all arms on offer are stored; "shown": those of the arm shown alone. A reward can be
        learnt either way; estimates by a model need all
    probabilities : whether the probabilities of all arms are stored too
    budgets : id of an arm -> a `Budget` or several. An arm whose budget is spent is masked, in all processes. The
        ledger keeps them; other ones replace them, and processes that are open then must be opened again
    horizon, default, late, parts, wait, flush_seconds : as for `log.Ledger`. With `parts` the bandit learns the sum of
        the parts of a decision, once all have come or the horizon has passed
    lease_seconds : after so long without a word from the process that learns, another one takes over
    snapshot_batches, snapshot_seconds : a snapshot is written after so many batches, or after so long
    refresh_seconds : how often a process looks for changes of the catalogue, and, if it does not learn, for a snapshot
    known, model : as for `dither.load`, where the bandit is made of classes of your own

    The process that gives a new ledger its bandit draws from the streams of that bandit; all others from fresh entropy.

    Raises ValueError where the ledger has another bandit, shadow or catalogue, or no bandit and bandit is None;
    TypeError for a bandit that a file cannot hold; and what `log.Ledger` raises.
    """

    def __init__(
        self,
        home: Any = None,
        *,
        bandit: Bandit | None = None,
        learn: bool = True,
        catalogue: Catalogue | None = None,
        shadow: Bandit | None = None,
        shadow_learns: bool = True,
        apprentice: Callable[..., Any] | None = None,
        explore: float | None = None,
        store: str = "all",
        probabilities: bool = False,
        budgets: Mapping[Any, Any] | None = None,
        horizon: Any = None,
        default: float | None = None,
        late: str | None = None,
        parts: Iterable[str] | None = None,
        wait: bool = True,
        flush_seconds: float = 1.0,
        lease_seconds: float = 10.0,
        snapshot_batches: int = 1000,
        snapshot_seconds: float = 1.0,
        refresh_seconds: float = 1.0,
        known: tuple[type, ...] = (),
        model: Any = None,
    ) -> None:
        errors.one_of("store", store, STORED)
        errors.true_or_false("learn", learn)
        errors.true_or_false("shadow_learns", shadow_learns)
        errors.at_least("snapshot_batches", snapshot_batches, 1)
        for name, value in (("lease", lease_seconds), ("snapshot", snapshot_seconds), ("refresh", refresh_seconds)):
            errors.positive(f"{name}_seconds", value, most=1e9)
        if bandit is not None and not isinstance(bandit, Bandit):
            raise TypeError(f"bandit must be a dither.Bandit, such as dither.LinFP(dim=...), got {bandit!r}")
        if shadow is not None and not isinstance(shadow, Bandit):
            raise TypeError(f"shadow must be a dither.Bandit, such as dither.LinFP(dim=...), got {shadow!r}")
        if shadow is not None and apprentice is not None:
            raise ValueError("shadow and apprentice are two ways to judge a policy: give one of them")
        if explore is not None and apprentice is None:
            raise ValueError(
                "explore= is for a rule, apprentice=. A bandit explores by itself, and by its floor=: leave it out"
            )
        self._rule = None
        if apprentice is not None:
            self._rule = beside.Apprentice(apprentice, beside.EXPLORE if explore is None else explore, None)
        self._refresh, self._next = refresh_seconds, clock.monotonic() + refresh_seconds
        self._refreshing = threading.Lock()
        self._load = {"known": known, "model": model}
        rules = dict(horizon=horizon, default=default, late=late, parts=parts)
        self.ledger = Ledger(home, wait=wait, flush_seconds=flush_seconds, **rules)
        self._decider: Decider | None = None
        self._arms: stock.Kept | None = None
        try:
            created = settling.bandit(self.ledger, bandit)
            self._learner = Learner(
                self.ledger,
                learns=learn,
                lease_seconds=lease_seconds,
                snapshot_batches=snapshot_batches,
                snapshot_seconds=snapshot_seconds,
                load=self._load,
                showing=self._showing,
            )
            if shadow is not None:
                self._fits(shadow)
                settling.shadow(self.ledger, shadow, learns=shadow_learns)
                self._learner.follow(replay=True)
            self._open(catalogue)
            facts = settling.facts(self.ledger)
            self._slots = tuple(facts["slots"]) if facts.get("slots") else None
            self._names: Any = facts.get("names")
            self.bandit = bandit if bandit is not None else from_bytes(self._stands().bandit.to_bytes(), **self._load)
            if not created:
                self.bandit.reseed()
            self._decider = Decider(
                self.bandit,
                self._stands,
                rule=self._rule,
                shadow=shadow,
                catalogue=self.catalogue,
                named=self._named,
                store=store,
                probabilities=probabilities,
            )
            self._demanding = demanding.Demanding(
                self.ledger,
                self._decider,
                demanding.budgets_of(self.ledger, budgets),
                self._learner.replay(0).bandit.kept,
            )
            self._demanding.fits(store=store, shadows=[shadow, self._stands().shadow], rule=self._rule is not None)
        except BaseException:
            self._end()
            raise
        self.ledger.tell(self._learner)
        forks.tell(self)

    def _stands(self) -> Taught:
        return self._learner.stands

    def _fits(self, shadow: Bandit) -> None:
        """Raise ValueError unless a shadow takes the X of the bandit."""
        settling.fits(shadow, self._learner.replay(0).bandit, self._stands().bandit)

    def _open(self, given: Catalogue | None) -> None:
        """Open the catalogue of the ledger, or give it one."""
        bandit = self._stands().bandit
        if given is not None and bandit.features is not None:
            given.features.check(bandit.features, what="the bandit's features", whose="the catalogue")
        if given is not None:
            given.features.fits(bandit.dim, slots=bandit.slots)
        self._arms = stock.opened(
            self.ledger,
            given,
            room=lambda slots: self._stands().room(slots),
            told=self._grow,
        )
        self._learner.arms = self._arms

    def _grow(self) -> None:
        """Where this process learns, give the arms that are new their slots."""
        if self.learns:
            self.learn()

    @property
    def catalogue(self) -> Catalogue | None:
        """The arms by id. To change it is to change it in the ledger, for all processes; None: there is none."""
        return None if self._arms is None else self._arms.catalogue

    @property
    def shadow(self) -> Bandit | None:
        """The shadow, as it is by now; None: there is none."""
        return None if self._decider is None else self._decider.shadow

    @contextlib.contextmanager
    def _showing(self, learner: Learner) -> Iterator[None]:
        """What was learnt in the block is what decides after it."""
        if self._decider is None:  # it is being opened
            yield
            return
        with self._decider.bandit._lock:
            yield
            self._decider.show()

    def choose(
        self,
        context: Any = None,
        arms: Any = None,
        *,
        mask: Any = None,
        values: Any = None,
        minimum: Any = None,
        baseline: Any = None,
        costs: Any = None,
        id: Any = None,
        time: Any = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Shown:
        """Choose an arm, and store the decision before it is returned.

        context : X, as for `Bandit.choose`; or, with a catalogue or with features, the context as they take it
        arms : ids of the catalogue (None: all on offer), records for the features, or (K,) ids for the rows of X
        values : as for `Bandit.choose`, in the order of the arms; they are kept in the column `values`
        minimum : as for `Bandit.choose`, or id -> least probability; kept in the column `minimum`
        baseline : as for `Bandit.choose`, or the id. Its position among the arms on offer is kept in the column
            `baseline`, and which arms were safe in `safe`
        costs : (K,), (B, K), or id -> what a show costs of the budgets of the arm; None: 1
        mask, id, time, extra : as for `log.Log.decide`

        With `wait` the decision is on the disk when this returns. Raises what `Bandit.choose`, the encoder and
        `log.Ledger` raise. What was not stored is not returned.
        """
        self._look()
        given = dict(mask=mask, values=values, minimum=minimum, baseline=baseline, id=id, time=time, extra=extra)
        assert self._decider is not None
        if self._demanding.budgets or self.bandit.baseline is not None:
            made, names, rows, _ = self._demanding.decide(context, arms, costs=costs, **given)
            self._told_names(self.bandit._columns)
        elif costs is not None:
            raise ValueError("costs= needs budgets that they are taken from: Live(home, budgets={...})")
        else:
            made, names, rows, taught = self._decider.decide(context, arms, **given)
            self._told_names(self.bandit._columns)
            self.ledger.enter(rows, taught)
        shown = columns(made) | {"place": made.arm}
        if alone(made):
            arm = made.arm if names is None else names[int(made.arm)]
            return Shown(**shown | {"arm": arm, "id": rows[0]["id"]})
        arms_shown = made.arm if names is None else np.array([names[a] for a in np.asarray(made.arm)])
        return Shown(**shown | {"arm": arms_shown, "id": tuple(row["id"] for row in rows)})

    def _named(self, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """The ids of the arms. A disjoint slot keeps its id, since what it learnt is of that arm."""
        if self.bandit.slots is None:
            return names
        if names is None:
            return self._slots
        if self._slots is None:
            self._slots = settling.fact(self.ledger, "slots", names)
        if names != self._slots:
            raise ValueError(
                f"the slots of this ledger are {list(self._slots)}, and arms= calls them {list(names)}. A slot keeps "
                f"its id, since what it learnt is of that arm: pass them in this order, with mask= for those on offer"
            )
        return names

    def _told_names(self, columns: list[str] | None) -> None:
        """Keep the names of the features, so that the log has them."""
        if columns is not None and self._names is None:
            self._names = settling.fact(self.ledger, "names", columns)

    def reward(self, id: Any, r: Any, time: Any = None, *, part: str | None = None) -> Any:
        """Take a reward, from any process, however late: 'counted', 'known', 'conflict' or 'late'.

        id, r, time, part : as for `log.Ledger.reward`; lists are taken, and learnt, together

        Where this process learns, what counted is learnt when this returns; with `parts`, the sum of a decision that is
        complete. Raises what `log.Ledger.reward` raises. A reward that the model refuses, such as 2 for a click, is
        stored and counted in `refused`, and never learnt.
        """
        if part is not None and self.ledger.parts is None:
            raise ValueError(
                f"the reward of this ledger has no parts, so part={part!r} would never be learnt: "
                f"Live(home, parts=[...]) says of which parts a new ledger's rewards are the sum"
            )
        return self.ledger.reward(id, r, time, part=part)

    def learn(self) -> int:
        """Learn all that waits, where this process may; -> how many batches. `reward` does so by itself."""
        return self._learner.learn()

    def expire(self, now: Any = None) -> int:
        """Close the decisions whose horizon has passed (`log.Ledger.expire`), and learn their defaults."""
        found = self.ledger.expire(now)
        self.learn()
        return found

    def pending(self, limit: int | None = None) -> Iterator[Pending]:
        """The decisions that wait for a reward (`log.Ledger.pending`)."""
        return self.ledger.pending(limit)

    def erase(self, ids: Iterable[Any] | None = None, **where: Any) -> int:
        """Erase the data of some decisions (`log.Ledger.erase`). The bandit is made again from all others."""
        found = self.ledger.erase(ids, **where)
        self._learner.follow(replay=True)
        self._learner.keep()
        self._demanding.rounds()  # what a baseline's rounds add up to, without those that were erased
        return found

    @property
    def budgets(self) -> dict[str, Any]:
        """The budgets of the arms, by id: a tuple of `Budget` each."""
        return dict(self._demanding.budgets)

    def spent(self, now: Any = None) -> dict[str, tuple[float, ...]]:
        """What is spent of each budget, by id, in the periods of a time; None: now. Erased decisions count too."""
        return self._demanding.spent(now)

    def replace_shadow(self, shadow: Bandit | None, *, learns: bool = True) -> None:
        """Judge another policy from now on, in all processes; None: none.

        shadow, learns : as `shadow` and `shadow_learns` of `Live`. It learns what the ledger has, and then goes on

        The column `shadow` of the log has the number of the shadow whose probabilities are `judged`.
        """
        errors.true_or_false("learns", learns)
        if shadow is not None and not isinstance(shadow, Bandit):
            raise TypeError(f"shadow must be a dither.Bandit, such as dither.LinFP(dim=...), or None; got {shadow!r}")
        if shadow is not None:
            self._fits(shadow)
            demanding.judged(shadow)
        with self.ledger.turn, self.ledger.holding() as connection:
            lessons.hold(connection)
            settling.put_shadow(connection, shadow, learns=learns)
        self._learner.follow(replay=True)
        self._learner.keep()

    def read(self, *, rewards: str | None = None) -> Logged:
        """The log, ready for `dither.ope`."""
        return self.ledger.read(rewards=rewards)

    def to_bytes(self, of: str = "bandit") -> bytes:
        """What was learnt, as `Bandit.to_bytes`. It is a function of the ledger: equal where the same was learnt.

        of : "bandit" or "shadow". The streams in it are those with which they began.
        """
        kept = self._demanding.rounds() if of == "bandit" else None
        with self.ledger.turn:
            return demanding.filed(self._which(self._stands(), of), kept)

    def replay(self, batch: int | None = None, *, of: str = "bandit") -> Bandit:
        """A bandit that learns the ledger anew, up to a batch; None: all. The table says which batch each row knew.

        of : "bandit" or "shadow". With a half_life, `advance` it to the time of a decision, in seconds since 1970. With
        slots, `grow` it to those of the decision

        Raises ValueError for a batch that the ledger has not.
        """
        self.ledger.begun()
        made = self._which(self._learner.replay(batch), of)
        if batch is None and made.baseline is not None:
            with self.ledger.database.reading() as connection:
                made.kept = self._demanding.recount(connection)
        return made

    def _which(self, stands: Taught, of: str) -> Bandit:
        errors.one_of("of", of, ("bandit", "shadow"))
        if of == "bandit":
            return stands.bandit
        if stands.shadow is None:
            raise ValueError("this ledger has no shadow: Live(home, shadow=...)")
        return stands.shadow

    @property
    def batch(self) -> int:
        """The last batch that the bandit has learnt."""
        return self._learner.batch

    @property
    def learns(self) -> bool:
        """Whether this process is the one that learns."""
        return self._learner.holds

    @property
    def refused(self) -> int:
        """How many rewards the model refused in this process."""
        return self._learner.refused

    def flush(self) -> None:
        """Return when all that was written is on the disk. It is needed with wait=False alone."""
        self.ledger.flush()

    def close(self) -> None:
        """Write a snapshot, let another process learn, and close the ledger."""
        try:
            if not self.ledger.closed:
                self._learner.close()
        finally:  # also where the database cannot be reached: then the lease ends by itself
            self._end()

    def _end(self) -> None:
        if self._arms is not None:
            self._arms.detach()
        self.ledger.close()

    def __enter__(self) -> "Live":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Live({self.ledger.database.where!r}, batch {self.batch}, {self.bandit!r})"

    def _look(self) -> None:
        """Look now and then for what other processes have changed; in a process that does not learn, for a snapshot."""
        if self.ledger.closed or clock.monotonic() < self._next:  # a closed one refuses what is asked of it
            return
        if self._refreshing.acquire(blocking=False):
            try:
                self._next = clock.monotonic() + self._refresh
                if self._learner.holds:
                    self._learner.look()
                else:
                    self._learner.follow(replay=False)
            finally:
                self._refreshing.release()

    def _forked(self) -> None:
        """In the child of a fork: locks of its own, and draws of its own."""
        self._refreshing = threading.Lock()
        if self._rule is not None:
            self._rule.reseed()
