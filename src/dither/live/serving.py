"""`Live`: a bandit and its ledger, one object. A decision is stored before it is returned; a reward is learnt once."""

import contextlib
import dataclasses
import threading
import time as clock
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from dither import _version, decision, errors, forks, inputs
from dither.bandit import Bandit, Decision
from dither.features import Catalogue
from dither.live import beside, requests
from dither.live.learner import Learner
from dither.log import Ledger, Logged, Pending, Recorded
from dither.log.database import keeping, lessons
from dither.log.record import Maker, law
from dither.restoring import from_bytes

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
    catalogue : arms by id (`dither.Catalogue`), for `choose(context, arms=ids)`
    shadow : a bandit that does not act and does not learn; its probabilities are logged as `judged`
    apprentice : a rule, X and the mask -> the position of an arm. It acts in place of the bandit, which learns and
        whose probabilities are logged as `judged`
    explore : with `apprentice`, the share of choices that are uniform over the arms on offer
    store : "all": the features of all arms on offer are stored; "shown": those of the arm shown alone. A reward can be
        learnt either way; estimates by a model need all
    probabilities : whether the probabilities of all arms are stored too
    horizon, default, late, wait, flush_seconds : as for `log.Ledger`
    lease_seconds : after so long without a word from the process that learns, another one takes over
    snapshot_batches, snapshot_seconds : a snapshot is written after so many batches, or after so long
    refresh_seconds : how often a process that does not learn looks for a snapshot
    known, model : as for `dither.load`, where the bandit is made of classes of your own

    The process that gives a new ledger its bandit draws from the streams of that bandit; all others from fresh entropy.

    Raises ValueError where the ledger has another bandit, or none and bandit is None; TypeError for a bandit that a
    file cannot hold; and what `log.Ledger` raises.
    """

    def __init__(
        self,
        home: Any = None,
        *,
        bandit: Bandit | None = None,
        learn: bool = True,
        catalogue: Catalogue | None = None,
        shadow: Bandit | None = None,
        apprentice: Callable[..., Any] | None = None,
        explore: float = 0.1,
        store: str = "all",
        probabilities: bool = False,
        horizon: Any = None,
        default: float | None = None,
        late: str | None = None,
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
        errors.at_least("snapshot_batches", snapshot_batches, 1)
        for name, value in (("lease", lease_seconds), ("snapshot", snapshot_seconds), ("refresh", refresh_seconds)):
            errors.positive(f"{name}_seconds", value)
        if bandit is not None and not isinstance(bandit, Bandit):
            raise TypeError(f"bandit must be a dither.Bandit, such as dither.LinFP(dim=...), got {bandit!r}")
        if shadow is not None and apprentice is not None:
            raise ValueError("shadow and apprentice are two ways to judge a policy: give one of them")
        self.catalogue, self.shadow = catalogue, shadow
        self._rule = None if apprentice is None else beside.Apprentice(apprentice, explore, None)
        self._refresh, self._next = refresh_seconds, clock.monotonic() + refresh_seconds
        self._refreshing = threading.Lock()
        self._store, self._probabilities = store, probabilities
        self.ledger = Ledger(home, horizon=horizon, default=default, late=late, wait=wait, flush_seconds=flush_seconds)
        try:
            self.bandit: Bandit | None = None
            self._learner = Learner(
                self.ledger,
                bandit,
                learns=learn,
                lease_seconds=lease_seconds,
                snapshot_batches=snapshot_batches,
                snapshot_seconds=snapshot_seconds,
                load={"known": known, "model": model},
                showing=self._showing,
            )
            self.bandit = self._decider(bandit, known, model)
            self._fits()
            with self.ledger.holding() as connection:
                about = keeping.settings(connection).get("about", {})
            self._slots = tuple(about["slots"]) if about.get("slots") else None
            self._names: Any = about.get("names")
        except BaseException:
            self.ledger.close()
            raise
        self._maker = self._made()
        self.ledger.tell(self._learner)
        forks.tell(self)

    def _decider(self, given: Bandit | None, known: tuple[type, ...], model: Any) -> Bandit:
        """The bandit that chooses: its streams are its own, and what it has learnt is the learner's."""
        taught = self._learner.bandit
        made = given if given is not None else from_bytes(taught.to_bytes(), known=known, model=model)
        if not self._learner.created:
            made.reseed()
        made.follow(taught)
        return made

    def _fits(self) -> None:
        """Raise ValueError where what was passed does not go with the bandit of the ledger."""
        bandit = self._bandit
        if self.shadow is not None and (self.shadow.dim, self.shadow.slots) != (bandit.dim, bandit.slots):
            raise ValueError(
                f"the shadow must take the X of the bandit, dim={bandit.dim} and disjoint={bandit.slots}; it has "
                f"dim={self.shadow.dim} and disjoint={self.shadow.slots}"
            )
        if self.catalogue is not None and bandit.features is not None:
            self.catalogue.features.check(bandit.features, what="the bandit's features", whose="the catalogue")

    def _made(self) -> Maker:
        bandit = self._bandit
        policy = (
            f"{bandit.policy} on {bandit.model}" if self._rule is None else f"a rule, explored {self._rule.explore}"
        )
        constants = {"policy": policy, "preset": None, "version": _version.__version__}
        constants["z_law"] = law(bandit.policy) if self._rule is None else None
        all_of_them = self._store == "all"
        ask = self._probabilities and self._rule is None
        return Maker(bandit, all_of_them, False, ask, False, constants)

    @property
    def _bandit(self) -> Bandit:
        if self.bandit is None:
            raise ValueError("this Live has no bandit yet")
        return self.bandit

    @contextlib.contextmanager
    def _showing(self, learner: Learner) -> Iterator[None]:
        """What was learnt in the block is what decides after it."""
        if self.bandit is None:  # it is being opened
            yield
            return
        with self.bandit._lock:
            yield
            self.bandit.follow(learner.bandit)

    def choose(
        self,
        context: Any = None,
        arms: Any = None,
        *,
        mask: Any = None,
        values: Any = None,
        id: Any = None,
        time: Any = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Shown:
        """Choose an arm, and store the decision before it is returned.

        context : X, as for `Bandit.choose`; or, with a catalogue or with features, the context as they take it
        arms : ids of the catalogue (None: all on offer), records for the features, or (K,) ids for the rows of X
        values : as for `Bandit.choose`, in the order of the arms; they are kept in the column `values`
        mask, id, time, extra : as for `log.Log.decide`

        With `wait` the decision is on the disk when this returns. Raises what `Bandit.choose`, the encoder and
        `log.Ledger` raise. What was not stored is not returned.
        """
        self._look()
        bandit = self._bandit
        X, mask, names = requests.asked(bandit, self.catalogue, context, arms, mask)
        with bandit._lock:
            names = self._named(names)
            made, X, mask, batch, eps = *self._chosen(X, mask, values), self._learner.batch, self._eps()
            if values is not None:
                values = inputs.values(values, shape=bandit._shape(X), mask=mask)
            more = self._beside(X, mask, values, extra)
            given = {"id": id, "time": time, "mask": mask, "arms": names, "extra": more}
            if values is not None and self._maker.probabilities:
                given["probabilities"] = bandit.propensities(X, mask=mask, values=values)
            rows = self._maker.rows(made, X=X, floor=eps, **given)
        self._told_names(bandit._columns)
        self.ledger.enter(rows, self._lessons(np.asarray(X, dtype=np.float64), made, batch))
        shown = {f.name: getattr(made, f.name) for f in dataclasses.fields(Decision)} | {"place": made.arm}
        if np.ndim(made.arm) == 0:
            arm = made.arm if names is None else names[int(made.arm)]
            return Shown(**shown | {"arm": arm, "id": rows[0]["id"]})
        arms_shown = made.arm if names is None else np.array([names[a] for a in np.asarray(made.arm)])
        return Shown(**shown | {"arm": arms_shown, "id": tuple(row["id"] for row in rows)})

    def _chosen(self, X: Any, mask: Any, values: Any) -> tuple[Decision, Any, Any]:
        bandit = self._bandit
        if self._rule is None:
            return bandit.choose(X, mask=mask, values=values), *bandit.read(X, mask)
        X, mask = bandit.read(X, mask)
        if X.ndim != (1 if bandit.slots else 2):
            raise ValueError("a rule that acts decides one request at a time: give X without a batch axis")
        return self._rule.choose(X, mask, bandit.slots or len(X)), X, mask

    def _eps(self) -> float:
        if self._rule is not None:
            return self._rule.explore
        bandit = self._bandit
        return decision.eps(bandit.policy, bandit.t, floor=bandit.floor)

    def _beside(self, X: Any, mask: Any, values: Any, extra: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """The user's columns, the values, and the probabilities of the policy that is judged."""
        more = {} if values is None else {beside.VALUES: beside.on_offer(values, mask)}
        judged = self.shadow if self._rule is None else self._bandit
        if judged is not None:
            more[beside.JUDGED] = beside.probabilities(judged, X, mask, values)
        return dict(extra or {}) | more if more else extra

    def _lessons(self, X: np.ndarray, made: Decision, batch: int) -> list[dict[str, Any]]:
        """What the rewards of the decisions teach."""
        slots, arm = self._bandit.slots is not None, np.atleast_1d(np.asarray(made.arm))
        if slots:
            x = np.atleast_2d(X)
        else:
            X = X if X.ndim == 3 else X[None]
            x = X[np.arange(len(arm)), arm]
        return [
            {"x": x[i], "slot": int(arm[i]) if slots else None, "batch": batch, "width": x.shape[1]}
            for i in range(len(arm))
        ]

    def _named(self, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """The ids of the arms. A disjoint slot keeps its id, since what it learnt is of that arm."""
        if self._bandit.slots is None or self.catalogue is not None:
            return names
        if names is None:
            return self._slots
        if self._slots is None:
            self._slots = self._about("slots", names)
        if names != self._slots:
            raise ValueError(
                f"the slots of this ledger are {list(self._slots)}, and arms= calls them {list(names)}. A slot keeps "
                f"its id, since what it learnt is of that arm: pass them in this order, with mask= for those on offer"
            )
        return names

    def _told_names(self, columns: list[str] | None) -> None:
        """Keep the names of the features, so that the log has them."""
        if columns is not None and self._names is None:
            self._names = self._about("names", columns)

    def _about(self, name: str, value: Any) -> Any:
        """A fact of the ledger that the first one to say it settles."""
        with self.ledger.turn, self.ledger.holding() as connection:
            lessons.hold(connection)
            about = keeping.settings(connection).get("about", {})
            if name not in about:
                keeping.put(connection, "about", about | {name: list(value)})
            return tuple(about.get(name, value))

    def reward(self, id: Any, r: Any, time: Any = None) -> Any:
        """Take a reward, from any process, however late: 'counted', 'known', 'conflict' or 'late'.

        id, r, time : as for `log.Ledger.reward`; lists are taken, and learnt, together

        Where this process learns, what counted is learnt when this returns. Raises what `log.Ledger.reward` raises. A
        reward that the model refuses, such as 2 for a click, is stored and counted in `refused`, and never learnt.
        """
        return self.ledger.reward(id, r, time)

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
        return found

    def read(self, *, rewards: str | None = None) -> Logged:
        """The log, ready for `dither.ope`."""
        return self.ledger.read(rewards=rewards)

    def to_bytes(self) -> bytes:
        """What was learnt, as `Bandit.to_bytes`. It is a function of the ledger: equal where the same was learnt.

        The streams in it are those with which the ledger began.
        """
        with self.ledger.turn:
            return self._learner.bandit.to_bytes()

    def replay(self, batch: int | None = None) -> Bandit:
        """A bandit that learns the ledger anew, up to a batch; None: all. `read()` says which batch each row knew."""
        return self._learner.replay(batch)

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
        if not self.ledger.closed:
            self._learner.close()
        self.ledger.close()

    def __enter__(self) -> "Live":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Live({self.ledger.database.where!r}, batch {self.batch}, {self.bandit!r})"

    def _look(self) -> None:
        """In a process that does not learn, look for a snapshot now and then."""
        if self._learner.holds or clock.monotonic() < self._next:
            return
        if self._refreshing.acquire(blocking=False):
            try:
                self._next = clock.monotonic() + self._refresh
                self._learner.follow(replay=False)
            finally:
                self._refreshing.release()

    def _forked(self) -> None:
        """In the child of a fork: locks of its own, and draws of its own."""
        self._refreshing = threading.Lock()
        if self._rule is not None:
            self._rule.reseed()
