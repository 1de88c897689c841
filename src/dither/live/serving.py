"""`Live`: a bandit and its ledger, one object. A decision is stored before it is returned; a reward is learnt once."""

import threading
import time as clock
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, overload

import numpy as np

from dither.bandit.bandit import Bandit
from dither.base import errors, forks
from dither.deciding.answers import AnyShape, Batch, Record, Vector, Wishes
from dither.deciding.explain import Explanation
from dither.drift import ResidualAlarm
from dither.features import Catalogue, Features
from dither.features.records import listed
from dither.live import arithmetic, bandit_changes, explaining, opening, settling, turns
from dither.live import status as stands
from dither.live.alarms import LiveAlarm
from dither.live.awaiting import Desk
from dither.live.background import Background
from dither.live.deciding import Kept
from dither.live.fallbacks import Fallbacks
from dither.live.learner import BESIDE, Pace
from dither.live.new_settings import NewSettings
from dither.live.requests import Call
from dither.live.shown import Shown, ShownMany
from dither.live.taught import Taught
from dither.log import Ledger, Logged, Pending
from dither.log.database import lessons
from dither.log.database.committing import QueuedRequest, Rewarding, Stale
from dither.log.database.home import Home
from dither.log.database.ledger_events import BanditEvent
from dither.log.reward_rules import Answer, Many
from dither.log.troubles import Trouble

READY = frozenset({type(None), dict, list, np.ndarray})  # contexts and arms that can be read again
TRIES = 20  # of a decision, where the ledger changes while it is made
One: TypeAlias = Record | Vector | None  # a context with fields, or that of disjoint slots
Ids: TypeAlias = Sequence[str | int] | Mapping[str, Record | None] | Mapping[int, Record | None]  # perhaps with records


class Details(Wishes, total=False):
    """What may be said of a choice besides context and arms; `Live.choose` says what each means."""

    costs: Any
    id: Any
    time: datetime | str | float | None
    extra: Mapping[str, Any] | None
    body: bytes | str | None
    fallback: Any


if TYPE_CHECKING:

    class ShownById(Shown):
        """Of a request with ids."""

        arm: str

    class ShownOneOrMany(Shown, ShownMany):
        """What the type of the context leaves open."""

        arm: Any
        propensity: Any
        propensity_se: Any
        z: Any
        id: Any
        place: Any


class Live:
    """A bandit that decides, records, learns and goes on after a restart, in any number of processes.

    Parameters
    ----------
    home : None (memory), a path (SQLite) or a URL of PostgreSQL, as for `log.Ledger`
    bandit : the bandit as it begins. A ledger keeps it, so it may be left out later; another one is refused. The call
        that made it when the default was another preset goes on with the settings of the ledger
    learn : whether this process may learn. Of several that may, one learns at a time; the others decide from its
        snapshots and learn when it stops. "background": it learns in a thread beside the calls, so `reward` returns
        before its reward is learnt
    catalogue : arms by id (`dither.Catalogue`), for `choose(context, arms=ids)`. The ledger keeps it, with every later
        change, for all processes; so it may be left out later. Disjoint slots grow with it
    shadow : a bandit that does not act; its probabilities are logged as `judged`. The ledger keeps it too
    shadow_learns : whether it learns the rewards, those that the ledger has already and those that come
    apprentice : a rule, X and the mask -> the position of an arm. It acts in place of the bandit, which learns and
        whose probabilities are logged as `judged`
    explore : with `apprentice` alone, the share of choices that are uniform over the arms on offer; None: 0.1
    store : "all": the features of all arms on offer are stored; "shown": those of the arm shown alone. A reward can be
        learnt either way; estimates by a model need all. "records": all, and the contexts and the records of arms as
        they were passed, so that other features can be made of them. They are personal data where contexts are: `erase`
        finds them by their fields, and takes them
    probabilities : whether the probabilities of all arms are stored too
    budgets : id of an arm -> a `Budget` or several. An arm whose budget is spent is masked, in all processes. The
        ledger keeps them; other ones replace them, for the next decision of each process. None: those of the ledger
    alarm : whether it is watched that rewards are what the bandit predicts (`drift.ResidualAlarm`: how; True: as it is
        by default). The ledger keeps it, for all processes, from the next batch on; False: nothing is watched any more
    horizon, default, late, parts, wait, flush_seconds : as for `log.Ledger`. With `parts` the bandit learns the sum of
        the parts of a decision, once all have come or the horizon has passed
    reward_range : the least and the largest reward, with `parts` of their sum, as for `log.Ledger`; within what the
        bandit can learn, which is what None means: 0 to 1 with the logit link, no limits with the identity
    lease_seconds : after so long without a word from the process that learns, another one takes over
    snapshot_batches, snapshot_seconds : a snapshot is written after so many batches, or after so long
    refresh_seconds : how often a process that does not learn looks for a snapshot. Changes of arms, shadow and budgets
        are seen by its next decision
    fallback_rows : how many decisions wait in memory while the store cannot be reached, where calls have a `fallback=`
    known, model : as for `dither.load`, where the bandit is made of classes of your own

    The process that gives a new ledger its bandit draws from the streams of that bandit; all others from fresh entropy.

    Raises ValueError where the ledger has another bandit, shadow or catalogue, or no bandit and bandit is None;
    LookupError for a budget of an arm that is none of the catalogue, nor of the disjoint slots;
    FileNotFoundError where there is no ledger and bandit is None, and none is made; TypeError for a bandit that a file
    cannot hold; and what `log.Ledger` raises.
    """

    def __init__(
        self,
        home: Any = None,
        *,
        bandit: Bandit | None = None,
        learn: bool | Literal["background"] = True,
        catalogue: Catalogue | None = None,
        shadow: Bandit | None = None,
        shadow_learns: bool = True,
        apprentice: Callable[..., Any] | None = None,
        explore: float | None = None,
        store: str = "all",
        probabilities: bool = False,
        budgets: Mapping[Any, Any] | None = None,
        alarm: bool | ResidualAlarm | None = None,
        horizon: Any = None,
        default: float | None = None,
        late: str | None = None,
        parts: Iterable[str] | None = None,
        reward_range: tuple[float, float] | None = None,
        wait: bool = True,
        flush_seconds: float = 1.0,
        lease_seconds: float = 10.0,
        snapshot_batches: int = 1000,
        snapshot_seconds: float = 1.0,
        refresh_seconds: float = 1.0,
        fallback_rows: int = 10_000,
        known: tuple[type, ...] = (),
        model: Any = None,
    ) -> None:
        kept = Kept(store, probabilities)
        pace = Pace(learn, lease_seconds, snapshot_batches, snapshot_seconds)
        beside = opening.Beside(shadow, shadow_learns, apprentice, explore)
        errors.positive("refresh_seconds", refresh_seconds, most=1e9)
        opening.bandit("bandit", bandit, or_none="None")
        self._refresh, self._next = refresh_seconds, clock.monotonic() + refresh_seconds
        self._refreshing = threading.Lock()
        self._desk = Desk(self._answered)
        begins = home is None or bandit is not None
        database, load = Home(home, wait=wait, begins=begins), {"known": known, "model": model}
        how: dict[str, Any] = {"others": beside, "kept": kept, "load": load}
        also: dict[str, Any] = {
            "catalogue": catalogue,
            "budgets": budgets,
            "reward_range": reward_range,
            "alarm": alarm,
        }
        terms: dict[str, Any] = {"horizon": horizon, "default": default, "late": late, "parts": parts}
        try:
            with database.together():
                self.ledger = Ledger(database, wait=wait, flush_seconds=flush_seconds, **terms)
                agreed = opening.agreed(self.ledger, bandit, pace=pace, **also, **how)
            self._learner, self._keeper, self._decider, self._turns = opening.opened(self.ledger, agreed, **how)
            self._fallbacks = Fallbacks(self.ledger, self._decider, self._turns, fallback_rows, self._stored)
            self._anew()
        except BaseException:
            database.close()
            raise
        self._begin(learn == BESIDE)

    def _begin(self, beside: bool) -> None:
        """Let the calls learn, or a thread beside them."""
        self._background = Background(self._learner, self._refresh) if beside else None
        if self._background is None:
            self.ledger.committer.teacher = self._learner
        else:
            self._background.call()
        forks.tell(self)

    @property
    def bandit(self) -> Bandit:
        """The bandit that decides in this process, as it is by now."""
        self._decider.follow()
        return self._decider.bandit

    @property
    def catalogue(self) -> Catalogue | None:
        """The arms by id. To change it is to change it in the ledger, for all processes; None: there is none."""
        return None if self._keeper is None else self._keeper.catalogue

    @property
    def shadow(self) -> Bandit | None:
        """The shadow, as it is by now; None: there is none, or its model raised and it is set aside (`troubles`)."""
        self._decider.follow()
        return self._decider.shadow

    @overload
    def choose(self, context: AnyShape, arms: Any = None, **more: Unpack[Details]) -> "ShownOneOrMany": ...
    @overload
    def choose(self, context: One, arms: Ids, **more: Unpack[Details]) -> "ShownById": ...
    @overload
    def choose(self, context: One = None, *, arms: Ids, **more: Unpack[Details]) -> "ShownById": ...
    @overload
    def choose(self, context: One = None, arms: Any = None, **more: Unpack[Details]) -> Shown: ...
    @overload
    def choose(self, context: Batch | Sequence[Record], arms: Any = None, **more: Unpack[Details]) -> ShownMany: ...
    @overload
    def choose(self, context: Any, arms: Any = None, **more: Unpack[Details]) -> "ShownOneOrMany": ...
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
        body: bytes | str | None = None,
        fallback: Any = None,
    ) -> Shown | ShownMany:
        """Choose an arm, and store the decision before it is returned.

        context : X, as for `Bandit.choose`; or, with a catalogue or with features, the context as they take it
        arms : ids of the catalogue (None: all on offer), records for the features, or (K,) ids for the rows of X. Or
            id -> record: beside a catalogue what counts in this request alone, and the catalogue has the other fields
            (None: all of them); for features without a catalogue the whole record
        values : as for `Bandit.choose`, in the order of the arms; they are kept in the column `values`
        minimum : as for `Bandit.choose`, or id -> least probability; kept in the column `minimum`
        baseline : as for `Bandit.choose`, or the id. Its position among the arms on offer is kept in the column
            `baseline`, and which arms were safe in `safe`
        costs : (K,), (B, K), or id -> what a show costs of the budgets of the arm; None: 1
        mask, id, time, extra : as for `log.Log.decide`
        body : with `id`, what is asked for as bytes or a text, such as the body of a request. The same id with the same
            body is answered as it was before, by any process; with another body it is refused (`OtherRequest`)
        fallback : the arm that is shown where the store cannot be reached, by its id or position. The decision then has
            `fallback` True and no propensity, waits in memory, and is stored when the store is back

        With `wait` the decision is on the disk when this returns. Raises what `Bandit.choose`, the encoder and
        `log.Ledger` raise. What was not stored is not returned.
        """
        call = _called(context, arms, mask, values, minimum, baseline, costs, id, time, extra, body, fallback)
        return _given(self._answered([call])[0])

    def _answered(self, asked: list[Call | Rewarding]) -> list[Any]:
        """The answer to each, or its error: what was shown, or what became of rewards."""
        plain = all(isinstance(one, Rewarding) or (one.fallback is None and one.body is None) for one in asked)
        return self._stored(asked) if plain and not self._fallbacks.waiting else self._fallbacks.answered(asked)

    def _stored(self, asked: list[Call | Rewarding]) -> list[Any]:
        """What the ledger answers to each, or its error. All are stored together.

        Where the ledger is not the one that this process knows, a decision is made again: nothing of it is stored, and
        nobody has seen it.
        """
        self._look()
        answers: list[Any] = [None] * len(asked)
        left: Sequence[int] = range(len(asked))
        for again in range(TRIES):
            if again:
                self._anew()
            begun = [self._begun(asked[i]) for i in left]
            self._settle(begun)
            for i, one in zip(left, begun, strict=True):
                answers[i] = one.result if one.error is None else one.error
            left = [i for i in left if isinstance(answers[i], Stale)]
            if not left:
                break
        for i in left:
            answers[i] = self._too_often()
        if any(isinstance(one, Rewarding) for one in asked):
            if self._background is not None:
                self._background.call()
            self._hear()
        return answers

    def _begun(self, asked: Call | Rewarding) -> QueuedRequest:
        """What is to be stored. It is done already where it was refused, and where nothing is to be stored."""
        try:
            if isinstance(asked, Rewarding):
                return QueuedRequest(asked)
            if asked.fallen:
                return QueuedRequest(self._decider.fallen(asked))
            if self._turns.needed:
                return QueuedRequest(self._turns.task(asked))
            if asked.costs is not None:
                raise ValueError("costs= needs budgets that they are taken from: Live(home, budgets={...})")
            decided = self._decider.decide(asked)
        except Exception as error:
            return QueuedRequest(None, done=True, error=error)
        return QueuedRequest(decided) if decided.rows else QueuedRequest(None, done=True, result=decided.result)

    def _settle(self, begun: list[QueuedRequest]) -> None:
        """Store what is to be stored. All answers are made by then, so nothing is left to do when the disk has them."""
        waiting = [one for one in begun if not one.done]
        if waiting:
            try:
                self.ledger.committer.settle(waiting)
            except Exception as refusal:  # of the disk, or the ledger is closed: of all without an error of their own
                for one in waiting:
                    one.error = one.error or refusal

    def _too_often(self) -> OSError:
        return OSError(
            f"the ledger in {self.ledger.database.where} was changed {TRIES} times while this decision was made "
            f"(arms, shadows, erasures): nothing of the call is there. Call again, and change it less often"
        )

    @overload
    def reward(self, id: str | int, r: float, time: Any = None, *, part: str | None = None) -> Answer: ...
    @overload
    def reward(self, id: Many, r: Any, time: Any = None, *, part: str | None = None) -> list[Answer]: ...
    def reward(self, id: Any, r: Any, time: Any = None, *, part: str | None = None) -> Answer | list[Answer]:
        """Take a reward, from any process, however late: 'counted', 'known', 'conflict' or 'late'.

        id, r, time, part : as for `log.Ledger.reward`; lists are taken, and learnt, together

        Where this process learns, and not in the background, what counted is learnt when this returns; with `parts`,
        the sum of a decision that is complete. Raises what `log.Ledger.reward` raises, such as ValueError for a reward
        outside `reward_range`. One that the model refuses nevertheless is stored and counted in `refused`, and never
        learnt.
        """
        task, many = self.ledger.rewarding(id, r, time, part)
        answers = _given(self._answered([task])[0]) if task.sent else []
        self._learner.warn(stacklevel=2)
        return answers if many else answers[0]

    @overload
    async def achoose(self, context: AnyShape, arms: Any = None, **more: Unpack[Details]) -> "ShownOneOrMany": ...
    @overload
    async def achoose(self, context: One, arms: Ids, **more: Unpack[Details]) -> "ShownById": ...
    @overload
    async def achoose(self, context: One = None, *, arms: Ids, **more: Unpack[Details]) -> "ShownById": ...
    @overload
    async def achoose(self, context: One = None, arms: Any = None, **more: Unpack[Details]) -> Shown: ...
    @overload
    async def achoose(
        self, context: Batch | Sequence[Record], arms: Any = None, **more: Unpack[Details]
    ) -> ShownMany: ...
    @overload
    async def achoose(self, context: Any, arms: Any = None, **more: Unpack[Details]) -> "ShownOneOrMany": ...
    async def achoose(
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
        body: bytes | str | None = None,
        fallback: Any = None,
    ) -> Shown | ShownMany:
        """`choose` for an event loop: the same arguments and answers. The loop goes on meanwhile.

        A thread of this object decides, writes and waits for the disk (`live.awaiting`). What many tasks ask for at
        once is one transaction. The arrays that are passed must stay as they are until it returns.

        Where the task is cancelled, or waits no longer by `asyncio.timeout`, the decision is stored whole, as one that
        nobody was shown, or nothing of it is. What no thread has begun by then is not stored. Pass an `id` where you
        have to know which it was.
        """
        call = _called(context, arms, mask, values, minimum, baseline, costs, id, time, extra, body, fallback)
        return await self._desk.ask(call)

    @overload
    async def areward(self, id: str | int, r: float, time: Any = None, *, part: str | None = None) -> Answer: ...
    @overload
    async def areward(self, id: Many, r: Any, time: Any = None, *, part: str | None = None) -> list[Answer]: ...
    async def areward(self, id: Any, r: Any, time: Any = None, *, part: str | None = None) -> Answer | list[Answer]:
        """`reward` for an event loop: the same arguments and answers. The loop goes on meanwhile.

        Where the task is cancelled, all rewards of the call are taken, or none of them is. Send them again: those that
        were taken are 'known'.
        """
        task, many = self.ledger.rewarding(id, r, time, part)
        answers = await self._desk.ask(task) if task.sent else []
        self._learner.warn(stacklevel=2)
        return answers if many else answers[0]

    def correct(self, id: str | int, r: float, *, part: str | None = None, time: Any = None) -> Answer:
        """Let another reward count in the place of the one that counts: 'counted', or 'known' where it does already.

        id, r, part, time : as for `log.Ledger.correct`, which says what is raised

        The correction is a batch of its own, and from there on the bandit is as if it had learnt the new reward where
        it learnt the old one. So all that was learnt after it is learnt again. `replay(n)` of an earlier batch has the
        old reward.
        """
        self._fallbacks.stored_first(id, "nothing of the correction is there. Send it again")
        answer = self.ledger.correct(id, r, part=part, time=time)
        if answer != "known":
            self._learner.attempt("learning", self.learn)
        return answer

    def _hear(self) -> None:
        """Take the arms of which this process has heard. What it has learnt is taken by the next decision."""
        if self._learner.mark != self.ledger.database.mark:
            self._learner.attempt("looking", self._anew)

    def learn(self) -> int:
        """Learn all that waits, where this process may; -> how many batches. `reward` does so by itself."""
        self._fallbacks.store()
        batches = self._learner.learn()
        self._hear()
        self._learner.warn(stacklevel=2)
        return batches

    def expire(self, now: Any = None, *, before: Any = None) -> int:
        """Close the decisions whose horizon has passed (`log.Ledger.expire`), and learn their defaults.

        before : only those whose horizon had passed by then: a time up to which all rewards have been heard of
        """
        unpaid = self.ledger.expire(now, before=before)
        self._learner.attempt("learning", self.learn)
        return unpaid

    def change(
        self,
        *,
        bandit: Bandit | None = None,
        features: Features | None = None,
        arms: Mapping[Any, Any] | None = None,
        carry: bool = False,
        author: str | None = None,
        **new: Unpack[NewSettings],
    ) -> None:
        """Let other settings hold for the decisions from now on, in all processes: an event of the ledger.

        new : what is left out stays as it is. Settings of the policy and of the model, by the names that the algorithm
            has for them, such as c, sigma and discount; floor and monte_carlo; budgets, all of them (None: there are
            none any more); and the terms of rewards: horizon, default, late and reward_range (`log.Ledger.change`)
        bandit : another bandit for the same X, in the place of single settings: any policy, any model
        features : other features, in the place of those that make X: a call of its own, without `new`. With `bandit`,
            one that has them; without, the settings of the bandit stay
        arms : with features, and a catalogue: id -> record, the fields that the arms had not until now
        carry : with features: whether a decision whose records they refuse is learnt as one without records
        author : who changes it; None: the user of this process

        What changes the policy, the floor or monte_carlo keeps what was learnt. What changes the model is learnt again:
        the rewards that the state before the event had learnt, in the same order and as they are corrected by then. A
        bandit= that has learnt rewards by itself begins with these, and learns those of the ledger again. The ledger
        learns nothing again where bandit= has learnt nothing and has the same model.

        With other features all is learnt again: x is encoded anew from the records of the decision (`store="records"`).
        Without records, the columns that mean the same are carried over, and the others are 0; a row of which no column
        but that of ones is carried over is left out. The event counts them, as `details["rows"]`. So it is with rewards
        that come later for earlier decisions. The catalogue has the new features too. A shadow ends: give it anew.

        A decision made after this returned knows of it, in this process and in all others. Those before keep what they
        were made with: `replay(row.learnt)` is the bandit of each row. Other terms alone are no batch.

        Raises TypeError for a setting that the bandit has not; LookupError for a budget of an arm that is none of the
        catalogue, nor of the disjoint slots; ValueError for a bandit that does not take this X, or
        cannot learn the rewards that the ledger may have; and what the classes raise. Nothing has changed then.
        """
        who = bandit_changes.author(author)
        if features is not None or arms is not None or carry:
            bandit_changes.change_features(self._learner, new, features, bandit, arms=arms, carry=carry, author=who)
            self._changed()
        elif bandit_changes.change(self._learner, new, bandit, author=who):
            self._changed()

    def promote(self, *, keep: bool = False, author: str | None = None) -> None:
        """Let the shadow act, with what it has learnt: an event of the ledger. It is the bandit then.

        keep : whether the bandit of before becomes the shadow, which learns as any shadow does; False: there is none
        author : who promotes it; None: the user of this process

        A shadow that learns has learnt all rewards of the ledger. One that does not begins as it was given, and learns
        from now on.

        Raises ValueError where there is no shadow, where it is set aside since its model raised, where the bandit keeps
        a baseline, and where the shadow cannot learn the rewards that the ledger may have. Nothing has changed then.
        """
        bandit_changes.promote(self._learner, keep=keep, author=bandit_changes.author(author))
        self._changed()

    def rollback(self, batch: int, *, author: str | None = None) -> None:
        """Go on from the state after an earlier batch, settings included: an event of the ledger, with a new number.

        batch : as of `replay`; 0: the bandit as it began
        author : who rolls it back; None: the user of this process

        What came since is kept, with all its rewards and corrections, and `relearn` learns it again. Numbers of batches
        never repeat. The shadow, budgets, terms and arms stay as they are.

        Raises ValueError for a batch that the ledger has not, and where the bandit of that time cannot learn the
        rewards that the ledger may have by now. Nothing has changed then.
        """
        bandit_changes.roll_back(self._learner, batch, author=bandit_changes.author(author))
        self._changed()

    def relearn(self, *, author: str | None = None) -> None:
        """Learn again what was rolled back, with the settings of now: an event of the ledger.

        author : who says so; None: the user of this process

        All batches are learnt in their order, as if none had been left out. Where none was, nothing happens.
        """
        bandit_changes.learn_again(self._learner, author=bandit_changes.author(author))
        self._changed()

    def events(self) -> list[BanditEvent]:
        """What has changed the bandit, in order: number, batch, time, author, what, details (`log.Ledger.events`)."""
        return self.ledger.events()

    def pending(self, limit: int | None = None) -> Iterator[Pending]:
        """The decisions that wait for a reward (`log.Ledger.pending`)."""
        return self.ledger.pending(limit)

    def erase(self, ids: Iterable[Any] | None = None, **where: Any) -> int:
        """Erase the data of some decisions (`log.Ledger.erase`). The bandit is made again from all others."""
        self._fallbacks.store()
        erased = self.ledger.erase(ids, **where)
        self._changed()
        # what a baseline's rounds add up to, without those that were erased
        self._learner.attempt("looking", self._turns.rounds)
        return erased

    def _changed(self) -> None:
        """Learn what the ledger says after a change, which is committed, and write a snapshot of it."""
        self._learner.attempt("learning", self._learnt_anew)
        self._learner.attempt("snapshot", self._learner.keep)

    def _learnt_anew(self) -> None:
        self._learner.follow(replay=True)
        self._anew()

    def _anew(self) -> None:
        """Know all that changes rarely as the ledger has it by now, and stand where it does.

        The mark is read first. So if the ledger is changed meanwhile, the next decision sees that it has another one.
        """
        mark = self._learner.latest()
        self.ledger.look(anew=True)
        if self._keeper is not None:
            self._keeper.look()
        self._turns.look()
        self._learner.follow(replay=self._learner.holds)
        self.ledger.database.mark = mark

    @property
    def troubles(self) -> list[Trouble]:
        """What failed beside calls that were answered, the newest last: at most 100, of this process.

        Such as a batch that the model could not learn, or a snapshot for which the disk had no room. It is tried again
        later, with growing pauses, and decisions go on. Each is a line of the logger "dither.live" too.
        """
        return self.ledger.troubles

    @property
    def alarms(self) -> list[LiveAlarm]:
        """When rewards were not any more what was predicted, the newest last, by what this process has learnt.

        They are a function of the ledger, and also lines of the logger "dither.live" where they are learnt. [] where
        nothing is watched: `Live(home, alarm=True)`.
        """
        with self._learner.lock:
            return self._learner.stands.watch.alarms

    @property
    def budgets(self) -> dict[str, Any]:
        """The budgets of the arms, by id: a tuple of `Budget` each."""
        return dict(self._turns.budgets)

    def spent(self, now: Any = None) -> dict[str, tuple[float, ...]]:
        """What is spent of each budget, by id, in the periods of a time; None: now. Erased decisions count too."""
        return self._turns.spent(now)

    def replace_shadow(self, shadow: Bandit | None, *, learns: bool = True) -> None:
        """Judge another policy from now on, in all processes; None: none.

        shadow, learns : as `shadow` and `shadow_learns` of `Live`. It learns what the ledger has, and then goes on

        The column `shadow` of the log has the number of the shadow whose probabilities are `judged`.
        """
        errors.true_or_false("learns", learns)
        if shadow is not None:
            opening.bandit("shadow", shadow, or_none="None")
            settling.fits(shadow, self._learner)
            turns.judged(shadow)
        with self.ledger.holding() as connection:
            lessons.hold(connection)
            settling.put_shadow(connection, shadow, learns=learns)
        self._changed()

    def read(
        self,
        *,
        rewards: str | None = None,
        since: Any = None,
        until: Any = None,
        records: bool = False,
        features: str = "now",
    ) -> Logged:
        """The log, ready for `dither.ope`, or its decisions from one time on and before another (`log.Ledger.read`).

        records : whether it has the contexts and the records of arms that are kept, as `raw_context` and `raw_arms`
        features : where they were changed, "now": all rows have X by those of now; "then": each by those that made it
        """
        return self.ledger.read(rewards=rewards, since=since, until=until, records=records, features=features)

    def to_bytes(self, of: str = "bandit") -> bytes:
        """What was learnt, as `Bandit.to_bytes`. It is a function of the ledger: equal where the same was learnt.

        of : "bandit" or "shadow". The streams in it are those with which they began.
        """
        if not self._learner.stands_there():
            self._learner.attempt("looking", self._anew)
        sums = self._turns.rounds() if of == "bandit" else None
        with self.ledger.turn, self._learner.lock:
            self._learner.stands.name(self.ledger.columns(None))
            return turns.filed(_which(self._learner.stands, of), sums)

    def replay(self, batch: int | None = None, *, of: str = "bandit") -> Bandit:
        """A bandit that learns the ledger anew, up to a batch; None: all. The table says which batch each row knew.

        of : "bandit" or "shadow". With a half_life, `advance` it to the time of a decision, in seconds since 1970. With
        slots, `grow` it to those of the decision

        Batches say what arithmetic has taught them: NumPy, or the compiled step. Where another one has taught some of
        them than computes here, a `live.RoundingWarning` says which, and by how much the bandits may differ.

        Raises ValueError for a batch that the ledger has not.
        """
        self.ledger.committer.begun()
        stands = self._learner.replay(batch)
        bandit = _which(stands, of)
        words = arithmetic.compared(self.ledger.database, stands.batch, bandit)
        if words is not None:
            warnings.warn(words, arithmetic.RoundingWarning, stacklevel=2)
        if batch is None and bandit.baseline is not None:
            with self.ledger.database.reading() as connection:
                bandit.kept = self._turns.recount(connection)
        return bandit

    def explain(self, id: str | int) -> Explanation:
        """Why the arm of a decision was shown: what each arm's mean is made of, and which chance chose (docs/live.md).

        id : of a decision of the ledger, by whatever process, however old

        It is a function of the ledger: the bandit as it was at the decision is asked again. A recent decision takes
        milliseconds, since it starts from the last snapshot. One that is older than the oldest snapshot takes a replay.
        What cannot be known is said in `unknown`.

        Raises LookupError for an id that no decision has; OSError for a fallback that waits while the store is away.
        """
        self._fallbacks.stored_first(id, "it cannot be explained until then. Ask again")
        return explaining.explained(self.ledger, id, **self._learner.load)

    @property
    def batch(self) -> int:
        """The last batch that the bandit has learnt."""
        return self._learner.stands.batch

    @property
    def learns(self) -> bool:
        """Whether this process is the one that learns."""
        return self._learner.holds

    @property
    def refused(self) -> int:
        """How many rewards the model refused in this process."""
        return self._learner.refused

    def status(self, *, since: Any = None, limits: stands.WarningLimits | None = None) -> stands.Status:
        """How the ledger stands, with what this process knows; `dither status HOME` says the same without that.

        since : a time: the days from its day on; None: all days
        limits : what is a warning (`live.status.WarningLimits`); None: the defaults
        """
        here = stands.facts_of(self)
        return stands.of(self.ledger, since=since, limits=limits or stands.WarningLimits(), here=here)

    def flush(self) -> None:
        """Return when all that was written is on the disk. It is needed with wait=False alone."""
        self._fallbacks.store()
        self.ledger.flush()

    def close(self) -> None:
        """Write a snapshot, let another process learn, and close the ledger."""
        try:
            if not self.ledger.closed:
                self._fallbacks.close()
                if self._background is not None:
                    self._background.close()
                    self._learner.beside()
                self._learner.close()
        finally:  # also where the database cannot be reached: then the lease ends by itself
            if self._keeper is not None:
                self._keeper.detach()
            self.ledger.close()

    def __enter__(self) -> "Live":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Live({self.ledger.database.where!r}, batch {self.batch}, {self.bandit!r})"

    def _look(self) -> None:
        """Look now and then for what other processes have changed; in a process that does not learn, for a snapshot."""
        if clock.monotonic() < self._next or self.ledger.closed:  # a closed one refuses what is asked of it
            return
        if self._refreshing.acquire(blocking=False):
            try:
                self._next = clock.monotonic() + self._refresh
                self._learner.attempt("looking", self._seen)
            finally:
                self._refreshing.release()

    def _seen(self) -> None:
        self.ledger.look()
        if self._learner.latest() != self.ledger.database.mark:
            self._anew()
        elif not self._learner.holds:
            self._learner.follow(replay=False)

    def _forked(self) -> None:
        """In the child of a fork: locks of its own, and draws of its own."""
        self._refreshing = threading.Lock()
        self._desk.begin()
        self._fallbacks.begin()
        if self._background is not None:
            self._background.begin()
        if self._decider.rule is not None:
            self._decider.rule.reseed()


def _called(context: Any, arms: Any, *more: Any) -> Call:
    """The call, with lists in the place of what can be read once, as a decision may be made again."""
    read = (one if type(one) in READY else listed(one) for one in (context, arms))
    return Call(*read, *more)


def _given(answer: Any) -> Any:
    """An answer. Raises it where it is an error."""
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _which(stands: Taught, of: str) -> Bandit:
    """The bandit, or the shadow."""
    errors.one_of("of", of, ("bandit", "shadow"))
    if of == "bandit":
        return stands.bandit
    if stands.aside is not None:
        raise ValueError(f"{stands.aside.told}. {stands.aside.cure}")
    if stands.shadow is None:
        raise ValueError("this ledger has no shadow: Live(home, shadow=...)")
    return stands.shadow
