"""What was learnt: a bandit that never chooses, and a shadow that learns beside it. Both are functions of the ledger.

    after batch n = as it began, and then for each of the batches 1, 2, ..., n: grow, and update(x, r) with its rows

where r is the reward as it was corrected up to batch n. Events of the ledger say with which bandit it began, and which
of the batches it has not learnt (`course`).

A shadow that is given later learns the batches before it too. So it is always as if it had been there from the start.
The events of the bandit do not change it. Whatever its model raises, the bandit goes on as if there were none: the
shadow is set aside, and stays so until another one is given, or the ledger is opened again.
A model with a half_life learns each row at the time of its decision, in seconds since 1970.

The update is by the arithmetic that has taught the batch (`base.compiled`), where this process has it. So the state is
the same to the bit in all processes that have the step, and to rounding in those that have it not.

A reward is refused where a model raises ValueError or ArithmeticError: that is a judgement of its numbers, and the same
one again in every replay. Whatever else a model raises tells nothing of the reward (no memory, a bug). So no reward is
passed over for it: what was learnt stays at the batch before.
"""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from dither.bandit.bandit import Bandit
from dither.bandit.restoring import from_bytes
from dither.base import compiled
from dither.live import alarms, course
from dither.live.course import Course
from dither.log import teaching, troubles
from dither.log.database import encodings, keeping, ledger_events, lessons
from dither.log.database.encodings import Encoder
from dither.models import adapting

SHADOW = "shadow"  # the setting that holds it as it began
REFUSALS = (ValueError, ArithmeticError)  # what a model raises for a reward that it does not take


class LearningError(RuntimeError):
    """A model raised what tells nothing of a reward. What it raised is the cause."""


class ShadowFacts(NamedTuple):
    """A shadow as the ledger has it."""

    number: int  # grows with every shadow that is given
    learns: bool
    first: bytes | None  # as it began; None: there is none any more
    features: int = 0  # the version of the features that make its X, which stays


class ShadowAside(NamedTuple):
    """A shadow that is judged and taught no more, since its model raised."""

    facts: ShadowFacts  # which one
    why: str  # what it raised, and when

    @property
    def told(self) -> str:
        """In words."""
        return f"the shadow is set aside, since {self.why}"

    @property
    def cure(self) -> str:
        """What can be done, as a sentence."""
        return (
            "Mend its model and give it again, or give another: live.replace_shadow(shadow). It is tried again too "
            "where the ledger is opened again"
        )


def shadow_of(connection: Any) -> ShadowFacts:
    """The shadow of a ledger; number 0 and no bytes where it never had one."""
    about = keeping.settings(connection).get(SHADOW)
    if about is None:
        return ShadowFacts(0, False, None)
    return ShadowFacts(about["number"], about["learns"], keeping.data(connection, SHADOW), about.get("features", 0))


class Taught:
    """A bandit and its shadow, as they stand after a batch."""

    def __init__(
        self, connection: Any, load: dict[str, Any], tell: Callable[[ShadowAside, Exception], None] | None = None
    ) -> None:
        """The bandit as the ledger began.

        load : what `from_bytes` needs for the user's classes; tell : called with a shadow that is set aside
        """
        self.load, self.version = load, 0  # counts what has changed
        self.refusals: dict[int, int] = {}  # batch -> rewards that the model refused, until they are counted
        self.shadow: Bandit | None = None
        self.aside: ShadowAside | None = None  # None: the shadow, where there is one, has not raised
        self._tell = tell
        self.shadow_facts, self._shadow_at = ShadowFacts(0, False, None), 0  # and the batch that the shadow stands at
        # the shadow of before, as it began and as it is, and the batch at which it stands
        self._former: tuple[bytes | None, Bandit | None, int] | None = None
        self.watch = alarms.Watch(alarms.AlarmFacts())
        self._firsts: dict[tuple[int, int | None], bytes] = {}  # by event and its mark, with which the course begins
        self._encoders: dict[int, Encoder | None] = {}  # by the version of the features, as the events are by now
        self.begin(connection, course.BEGIN)

    def _loaded(self, data: bytes) -> Bandit:
        return from_bytes(data, **self.load)

    def begin(self, connection: Any, way: Course) -> None:
        """The bandit with which a course begins."""
        self._follow(connection, way)
        self.bandit, self.batch = self._loaded(self.first), 0
        self.watch.take(None)
        self.mark: int | None = None  # of the batch
        self.torn = False  # whether a batch may be half learnt, since something was raised meanwhile
        self.otherwise: tuple[int, int] | None = None  # the first and the last batch that another arithmetic had taught
        self.version += 1

    def _follow(self, connection: Any, way: Course) -> None:
        """Be on a course."""
        # by the mark too, since numbers come again in a ledger that was restored
        key = way.first, ledger_events.mark(connection, way.first) if way.first else None
        if key not in self._firsts:
            self._firsts = {key: course.began(connection, way)}
        self._encoders.clear()
        self.course, self.first = way, self._firsts[key]

    def name(self, columns: tuple[str, ...] | None) -> None:
        """Give bandit and shadow the names of the features, in the order of the ledger's rows, where they have none."""
        if columns is not None:
            for bandit in (self.bandit, self.shadow):
                if bandit is not None and bandit.columns is None:
                    bandit.columns = columns
                    self.version += 1

    def take(self, facts: ShadowFacts) -> None:
        """Another shadow, as it began."""
        self._former = self.shadow = None
        self.shadow_facts, self._shadow_at = facts, 0
        if self.aside is not None and self.aside.facts != facts:
            self.aside = None
        if facts.first is not None and self.aside is None:
            try:
                self.shadow = self._loaded(facts.first)
            except Exception as reason:
                self.set_aside(facts, reason, "when it was loaded")
        self.version += 1

    def set_aside(self, facts: ShadowFacts, reason: Exception, when: str) -> None:
        """Go on without the shadow, since it raised; facts : which one. Nothing happens where there is another by now.

        reason : what it raised, or the LearningError of that; when : it did so, in words
        """
        if facts == self.shadow_facts:
            raised = reason.__cause__ if isinstance(reason, LearningError) and reason.__cause__ else reason
            self.shadow, self._former = None, None
            self.aside = ShadowAside(facts, f"it raised {troubles.in_words(raised)} {when}")
            self.version += 1
            if self._tell is not None:
                self._tell(self.aside, reason)

    def replace_shadow(self, facts: ShadowFacts) -> None:
        """Another shadow, where what was learnt stands. It may be that bandit and shadow have changed their places."""
        former = (self.shadow_facts.first, self.shadow, self._shadow_at)
        learnt, itself = self.shadow_facts.learns, facts.learns and facts.first == self.first and not self.course.gaps
        self.take(facts)
        if itself and self.shadow is not None:  # the bandit was promoted from, and has learnt what a shadow learns
            self.shadow, self._shadow_at = copy.deepcopy(self.bandit), self.batch
        self._former = former if learnt else None

    def promoted(self, connection: Any, way: Course) -> bool:
        """Be on another course, where the shadow of before stands there already; -> whether it does."""
        if self._former is None or not Course(way.first, way.root).leads(way, self.batch):
            return False
        if self.watch.facts.settings is not None:  # an alarm has to see what this bandit predicted from the first on
            return False
        first, shadow, batch = self._former
        if shadow is None or batch != self.batch or first != course.began(connection, way._replace(first=way.root)):
            return False
        self.bandit, self._former = shadow, None
        self._follow(connection, way)
        self.bandit.decide_as(self._loaded(self.first))
        self.version += 1
        return True

    def heed(self, facts: alarms.AlarmFacts) -> None:
        """Another alarm, which has seen nothing yet. What was learnt is no state of it, if it has seen something."""
        self.watch = alarms.Watch(facts)

    def snapshot(self, connection: Any, row: Any, way: Course) -> None:
        """Stand where a snapshot does, after a batch of this course. The shadow does so where the snapshot has it."""
        has_shadow = self.shadow is not None and row.shadow == self.shadow_facts.number
        bandit = self._loaded(bytes(row.bytes))
        self._follow(connection, way)
        if has_shadow:
            self.shadow, self._shadow_at = self._loaded(bytes(row.shadow_bytes)), row.batch
        self.bandit, self.batch, self.mark = bandit, row.batch, row.mark
        self.watch.take(row.alarm)
        self.torn, self.otherwise = False, None
        self.version += 1

    def held(self) -> tuple[bytes, tuple[int, bytes] | None]:
        """What a snapshot holds: the bandit as bytes; number and bytes of a shadow that learns, or None."""
        learns = self.shadow is not None and self.shadow_facts.learns and self._shadow_at == self.batch
        return self.bandit.to_bytes(), (self.shadow_facts.number, self.shadow.to_bytes()) if learns else None  # type: ignore[union-attr]

    def up_to(self, connection: Any, to: int, way: Course) -> int:
        """Learn the batches up to one, by a course to which this state leads; -> how many rewards the model refused."""
        refused = 0
        before = self.first
        self._follow(connection, way)
        if self.first is not before:
            self.bandit.decide_as(self._loaded(self.first))
            self.version += 1
        self.catch_up(connection)
        # which batches the two learn, and by which features
        differ = self.shadow is not None and bool(way.gaps or way.features != self.shadow_facts.features)
        while self.batch < to:
            if self.shadow is None:
                self.batch = max([self.batch, *[high for low, high in way.gaps if low == self.batch + 1]])
            batch = self.lesson(connection, self.batch + 1, upto=to)
            judged = self._judged(connection, self.batch + 1, upto=to) if differ else batch
            refused += self.learn(batch, judged)
            self.torn = self.batch < to  # what is on the way, as it is corrected later, is no state of the ledger
        return refused

    def catch_up(self, connection: Any) -> None:
        """Let the shadow learn the batches at which the bandit stands already."""
        self.torn = True
        if self._shadow_at != self.batch:
            self.version += 1
        if self.shadow is not None and not self.shadow_facts.learns:
            self._teach_shadow(lessons.slots(connection, upto=self.batch), None)
        else:
            while self.shadow is not None and self._shadow_at < self.batch:
                batch = self._judged(connection, self._shadow_at + 1, upto=self.batch)
                self._teach_shadow(batch.grown, batch)
        self._shadow_at, self.torn = self.batch, False

    def _teach_shadow(self, slots: int | None, batch: lessons.Batch | None) -> None:
        """Let the shadow, where there is one, have so many slots, and learn a batch, which is the next one."""
        if self.shadow is None:
            return
        try:
            if batch is not None and self.shadow_facts.learns:
                teach(self.shadow, batch)
                self._shadow_at = batch.number
            else:
                grow(self.shadow, slots)
        except Exception as reason:
            when = "when it was given slots" if batch is None else f"when it learnt batch {batch.number}"
            self.set_aside(self.shadow_facts, reason, when)

    def lesson(self, connection: Any, number: int, *, upto: int) -> lessons.Batch:
        """A batch, as the bandit learns it for the state after another one, with what was corrected up to there."""
        bandit, encoder = self.bandit, self.encoder(connection, self.course.features)
        return lessons.batch(
            connection, number, bandit.dim, bandit.slots is not None, upto, self.course.gaps, encoder=encoder
        )

    def _judged(self, connection: Any, number: int, *, upto: int) -> lessons.Batch:
        """The same for the shadow, which learns all batches, by its own features."""
        bandit, encoder = self.shadow or self.bandit, self.encoder(connection, self.shadow_facts.features)
        return lessons.batch(connection, number, bandit.dim, bandit.slots is not None, upto, encoder=encoder)

    def encoder(self, connection: Any, features: int) -> Encoder | None:
        """Who has x as a version of the features makes it; None where the features never changed."""
        if features not in self._encoders:
            self._encoders[features] = encodings.encoder(connection, features)
        return self._encoders[features]

    def learn(self, batch: lessons.Batch, judged: lessons.Batch | None = None) -> int:
        """Learn the next batch; -> how many of its rewards the bandit's model refused.

        judged : what the shadow learns of it; None: the same
        """
        self.torn, judged = True, batch if judged is None else judged
        if self.watch.facts.settings is not None:
            self._watched(batch)
        refused = teach(self.bandit, batch)
        if refused:
            self.refusals[batch.number] = refused
        self._teach_shadow(judged.grown, judged)
        self.batch = self._shadow_at = batch.number
        self.mark, self.torn = batch.mark, False
        if batch.arithmetic is not None and not compiled.at_hand(batch.arithmetic):
            self.otherwise = (batch.number if self.otherwise is None else self.otherwise[0], batch.number)
        self.version += 1
        return refused

    def _watched(self, batch: lessons.Batch) -> None:
        """Let the alarm see a batch before it is learnt."""
        try:
            grow(self.bandit, batch.grown)
            self.watch.see(self.bandit, batch)
        except Exception as reason:
            raise LearningError(f"the model of the bandit raised {troubles.in_words(reason)}") from reason

    def room(self, slots: int) -> None:
        """Raise TypeError where one of them cannot have so many slots."""
        for bandit in (self.bandit, self.shadow):
            if bandit is not None and bandit.slots is not None and bandit.slots < slots:
                adapting.with_slots(adapting.adapted(bandit.model), slots)


def grow(bandit: Bandit, slots: int | None) -> None:
    """Have so many slots, where the bandit has slots, and fewer."""
    if slots is not None and bandit.slots is not None and bandit.slots < slots:
        bandit.grow(slots)


def teach(bandit: Bandit, batch: lessons.Batch) -> int:
    """Learn a batch; -> how many of its rewards the model refused.

    Where the model refuses the batch, its rewards are learnt one by one, without those that it refuses. So what is
    learnt is a function of the batch. Raises LearningError where the model raises something else.
    """
    try:
        if batch.arithmetic is None:
            return _taught(bandit, batch)
        with compiled.learnt_by(batch.arithmetic):
            return _taught(bandit, batch)
    except Exception as reason:
        raise LearningError(f"the model of the bandit raised {troubles.in_words(reason)}") from reason


def _taught(bandit: Bandit, batch: lessons.Batch) -> int:
    grow(bandit, batch.grown)
    n = len(batch.r)
    if n == 0:
        return batch.odd
    refused = batch.odd
    try:
        _update(bandit, batch, slice(0, n) if n > 1 else 0)
    except REFUSALS:
        for i in range(n):
            try:
                _update(bandit, batch, i)
            except REFUSALS:
                refused += 1
    return refused


def _update(bandit: Bandit, batch: lessons.Batch, rows: Any) -> None:
    part = teaching.Lessons(batch.x[rows], None if batch.slots is None else batch.slots[rows])
    teaching.teach(bandit, part, batch.r[rows], at=batch.at[rows])
