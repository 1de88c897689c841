"""Rewards into the table, by the rules of `reward_rules`; and the horizon, when it passes."""

import collections
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import sqlalchemy as sa

from dither.log import reward_rules, terms
from dither.log.database import reward_terms, sql_tables
from dither.log.database.entering import CARELESS, TOGETHER
from dither.log.database.home import Home

_DECISION, _REWARD = sql_tables.decisions.c, sql_tables.rewards.c
_COUNTS = sql_tables.counts(_REWARD.standing)
_COLUMNS = ["decision", "part", "reward", "time", "standing", "batch"]
_INSERT = sql_tables.rewards.insert()
_LEARNT = ("counted", reward_rules.WHOLE)  # by whoever has written them; a default and a correction are learnt later
_STANDING = sql_tables.among(_REWARD.standing, ("counted", "default", reward_rules.CORRECTION, reward_rules.WHOLE))
_PAID = (
    sa.select(_REWARD.decision, _REWARD.part, _REWARD.reward, _REWARD.standing)
    .where(_REWARD.decision == sa.bindparam("number"), _STANDING)
    .order_by(_REWARD.seq)
)


class Sent(NamedTuple):
    """A reward as it was sent."""

    id: str
    reward: float
    part: str | None
    time: int  # microseconds
    corrects: bool = False  # whether it takes the place of the one that counts


class CountedParts:
    """What counts for one decision, as its events come, in order."""

    def __init__(self) -> None:
        self.parts: dict[str, list[float]] = {}  # part -> the reward that counted, and its corrections
        self.default: list[float] = []  # the default, and its corrections
        self.whole = False  # whether the sum of the parts was kept

    def take(self, part: str, r: float, standing: str) -> None:
        """One event that counts."""
        if standing == reward_rules.WHOLE:
            self.whole = True
        elif standing == "default" or (standing == reward_rules.CORRECTION and part not in self.parts):
            self.default.append(r)
        else:
            self.parts.setdefault(part, []).append(r)

    def of(self, part: str) -> list[float]:
        """The reward of a part that counts, at the end, and those that it was before; [] where there is none."""
        return self.parts.get(part) or ([] if part else self.default)

    def total(self, part: str, r: float) -> float:
        """The sum of all parts that count, with this reward for one of them."""
        return reward_rules.total([*(values[-1] for name, values in self.parts.items() if name != part), r])


class Standing(NamedTuple):
    """A decision as a reward finds it."""

    id: str
    number: int
    deadline: int | None
    closed: bool
    erased: int | None
    x: bytes | None
    slot: int | None
    time: int
    terms: str  # JSON of its terms


_TERMS = sa.select(sql_tables.changes.c.terms).where(sql_tables.changes.c.number == _DECISION.terms).scalar_subquery()
_FIELDS: list[Any] = [*[_DECISION[name] for name in Standing._fields[:-1]], _TERMS.label("terms")]
_FIND = sa.select(*_FIELDS).where(_DECISION.id == sa.bindparam("id")).with_for_update()


def _alone(careless: bool) -> Any:
    """The plain case in one statement: the first reward of an open decision, in time, under terms that are known.

    It gives no row in any other case, of which a `Judge` says what it is. careless : whether it waits for no disk
    """
    fields = [_DECISION[name] for name in ("number", "deadline", "closed", "erased", "terms")]
    one = sa.select(*fields).where(_DECISION.id == sa.bindparam("id")).with_for_update().cte("one").c
    at, r = sa.cast(sa.bindparam("time"), sql_tables.Whole), sa.cast(sa.bindparam("reward"), sa.Double)
    agreed = sa.select(sql_tables.changes.c.terms).where(sql_tables.changes.c.number == one.terms).scalar_subquery()
    conditions: list[Any] = [
        one.erased.is_(None),
        ~one.closed,
        one.deadline.is_(None) | (at <= one.deadline),
        agreed == sa.bindparam("terms"),
        ~sa.exists().where(_REWARD.decision == one.number),
        *([CARELESS] if careless else []),
    ]
    part: Any = sa.literal_column("''")
    standing: Any = sa.literal_column("'counted'")
    row = sa.select(one.number, part, r, at, standing).where(*conditions)
    return _INSERT.from_select(_COLUMNS[:-1], row).returning(_REWARD.decision)


ALONE = {True: _alone(False), False: _alone(True)}


def plain(sent: Sent, text: str) -> bool:
    """Whether a reward may be the plain case, under terms as the ledger has them."""
    agreed = terms.of_text(text)
    low, high = agreed.reward_range or (-math.inf, math.inf)
    return sent.part is None and not sent.corrects and agreed.parts is None and low <= sent.reward <= high


class Judge:
    """Says of the rewards of one transaction what becomes of each, and keeps the events to insert."""

    def __init__(self, connection: sa.Connection, home: Home, ids: list[str]) -> None:
        """ids : of the decisions of all rewards to come. These decisions are locked until the transaction ends."""
        self.rows: list[tuple[Any, ...]] = []  # decision, part, reward, time, standing
        self.taught: list[tuple[Any, ...]] = []  # x, slot, reward, time of what teaches, in the order of the rows
        self._decisions: dict[str, Standing] = {}
        self.later: list[tuple[Any, ...]] = []  # rows of which no transaction says that it learns them
        self._paid: dict[int, CountedParts] = collections.defaultdict(CountedParts)  # by the numbers of the decisions
        ids = sorted(set(ids))  # in one order, so that no two processes wait for each other
        if len(ids) == 1:
            for row in home.quick(connection, _FIND, id=ids[0]):
                one = Standing(*row)
                self._decisions[one.id] = one
                self._take(home.quick(connection, _PAID, number=one.number))
            return
        for at in range(0, len(ids), TOGETHER):
            mine = _DECISION.id.in_(ids[at : at + TOGETHER])
            rows = connection.execute(sa.select(*_FIELDS).where(mine).order_by(_DECISION.id).with_for_update())
            standing = [Standing(*row) for row in rows]
            self._decisions.update((row.id, row) for row in standing)
            numbers = [row.number for row in standing]
            paid = sa.select(_REWARD.decision, _REWARD.part, _REWARD.reward, _REWARD.standing)
            mine = _REWARD.decision.in_(numbers)
            self._take(connection.execute(paid.where(mine, _STANDING).order_by(_REWARD.seq)))

    @property
    def terms(self) -> str | None:
        """Those of a decision, as the ledger has them; None: there is none."""
        return next((one.terms for one in self._decisions.values()), None)

    def _take(self, rows: Iterable[Any]) -> None:
        for number, part, r, standing in rows:
            if r is not None:  # erased
                self._paid[number].take(part, r, standing)

    def refuse(self, sent: Sent) -> None:
        """Raise LookupError for a reward that has no decision, or whose decision was erased.

        Raises ValueError for one that would make the reward of its decision one that it cannot have.
        """
        row = self._decisions.get(sent.id)
        if row is None:
            raise reward_rules.unknown(sent.id)
        if row.erased is not None:
            raise reward_rules.erased(sent.id)
        self._within(row, sent)

    def _within(self, row: Standing, sent: Sent) -> None:
        """Raise ValueError where the reward leaves the range: it, or the sum of the parts that have come so far."""
        agreed, part, paid = terms.of_text(row.terms), sent.part or "", self._paid[row.number]
        if part and agreed.taught and agreed.parts is None and not paid.of(part):
            raise ValueError(
                f"the reward of this ledger has no parts, so part={part!r} would never be learnt: "
                f"Live(home, parts=[...]) says of which parts a new ledger's rewards are the sum"
            )
        if sent.corrects and not paid.of(part):
            what = f"reward for its part {part!r}" if part else "reward"
            raise ValueError(
                f"decision {sent.id!r} has no {what} that counts, so there is none to correct: reward(id, r)"
            )
        if agreed.reward_range is None or sent.reward in paid.parts.get(part, ()):
            return
        low, high = agreed.reward_range
        total = paid.total(part, sent.reward) if agreed.rewards == "sum" else sent.reward
        if not low <= total <= high:
            summed = f", the sum of its parts so far {total!r}" * (total != sent.reward)
            raise ValueError(
                f"reward must lie in reward_range, {terms.words(agreed.reward_range)}, for decision {sent.id!r}; got "
                f"{sent.reward!r}{summed}. Send it in the unit of the range, or let later decisions have another one: "
                f"change(reward_range=...)"
            )

    def answer(self, sent: Sent, *, counts: bool | None = None) -> str:
        """'counted', 'known', 'conflict' or 'late'.

        counts : whether it counts in the ledger that it comes from, whatever the horizon is here; None: not judged yet
        """
        row, part = self._decisions[sent.id], sent.part or ""
        agreed, paid = terms.of_text(row.terms), self._paid[row.number]
        if sent.corrects:
            return self._corrected(row, sent, agreed.parts)
        passed = row.closed or (row.deadline is not None and sent.time > row.deadline)
        before = paid.parts.get(part, [])
        counted = sent.reward if sent.reward in before else before[-1] if before else None
        late = passed and agreed.late == "kept" if counts is None else not counts
        said = reward_rules.answer(sent.reward, counted=counted, late=late)
        if said != "known":
            self.rows.append((row.number, part, sent.reward, sent.time, said))
        if said == "counted":
            paid.take(part, sent.reward, said)
            if not part:
                self.taught.append((row.x, row.slot, sent.reward, row.time))
            elif agreed.parts is not None and set(agreed.parts) <= paid.parts.keys():
                total = paid.total(part, sent.reward)  # this part was the last that was missing
                self.rows.append((row.number, "", total, sent.time, reward_rules.WHOLE))
                self.taught.append((row.x, row.slot, total, row.time))
                paid.whole = True
        return said

    def _corrected(self, row: Standing, sent: Sent, parts: tuple[str, ...] | None) -> str:
        """'counted', or 'known' where this counts already. A sum that was kept is kept anew."""
        part, paid = sent.part or "", self._paid[row.number]
        if paid.of(part)[-1] == sent.reward:
            return "known"
        self.later.append((row.number, part, sent.reward, sent.time, reward_rules.CORRECTION))
        if part and parts is not None and paid.whole:
            total = paid.total(part, sent.reward)
            self.later.append((row.number, "", total, sent.time, reward_rules.WHOLE))
        paid.take(part, sent.reward, reward_rules.CORRECTION)
        return "counted"


def insert(connection: sa.Connection, home: Home, rows: list[tuple[Any, ...]], batch: int | None = None) -> None:
    """Insert events: decision, part, reward, time, standing. batch : that of those that teach; a part has 0."""
    numbered = [(*row, 0 if row[1] else batch if row[4] in _LEARNT else None) for row in rows]
    home.many(connection, sql_tables.rewards, _COLUMNS, numbered)


def unpaid(parts: tuple[str, ...] | None) -> sa.ColumnElement[bool]:
    """Whether a decision waits for its reward, or for parts of it."""
    ends = _COUNTS if not parts else sql_tables.teaches(_REWARD.standing) & (_REWARD.part == "")
    return ~sa.exists().where(_REWARD.decision == _DECISION.number, ends)


def _summed(connection: sa.Connection, numbers: list[int]) -> dict[int, float]:
    """The sums of the parts that count, of those decisions that have any; the default is none."""
    standings = sql_tables.among(_REWARD.standing, ("counted", reward_rules.CORRECTION))
    fields = sa.select(_REWARD.decision, _REWARD.part, _REWARD.reward).order_by(_REWARD.seq)
    parts: dict[int, dict[str, float]] = {}
    for number, part, r in connection.execute(fields.where(_REWARD.decision.in_(numbers), standings)):
        parts.setdefault(number, {})[part] = r  # the latest of each
    return {number: reward_rules.total(list(paid.values())) for number, paid in parts.items()}


def expire(connection: sa.Connection, home: Home, now: int) -> int:
    """Close the decisions whose deadline is not after `now`. Those without a reward get the default; -> how many.

    Each is judged by its own terms. Raises ValueError where no decision can have a deadline.
    """
    agreed = reward_terms.every(connection)
    if all(one.horizon is None for one in agreed.values()):
        raise ValueError("the ledger has no horizon, so no decision expires: Ledger(home, horizon=...)")
    due = sa.select(_DECISION.number, _DECISION.terms).where(sql_tables.OPEN, _DECISION.deadline <= now)
    numbers = [
        (row.number, agreed[row.terms]) for row in connection.execute(due.order_by(_DECISION.id).with_for_update())
    ]
    count, ended = 0, list[tuple[Any, ...]]()
    for at in range(0, len(numbers), TOGETHER):
        part = dict(numbers[at : at + TOGETHER])
        mine, parts = _DECISION.number.in_(part), agreed[0].parts
        waits = sa.select(_DECISION.number).where(mine, unpaid(parts), _DECISION.erased.is_(None))
        waiting = list(connection.scalars(waits.order_by(_DECISION.number)))
        some = _summed(connection, waiting) if parts else {}
        for number in waiting:
            if number not in some:
                count += 1
                if part[number].default is not None:
                    ended.append((number, "", part[number].default, now, "default"))
            elif part[number].late == "kept":
                ended.append((number, "", some[number], now, reward_rules.WHOLE))
        connection.execute(sa.update(sql_tables.decisions).where(mine).values(closed=True))
    insert(connection, home, ended)
    return count


def pending(connection: sa.Connection, parts: tuple[str, ...] | None, after: int, limit: int) -> list[Any]:
    """The first decisions with a number above `after` that wait for a reward: number, id, time, deadline of each."""
    waits = unpaid(parts) & ~_DECISION.closed & _DECISION.erased.is_(None) & (_DECISION.number > after)
    fields = sa.select(_DECISION.number, _DECISION.id, _DECISION.time, _DECISION.deadline).where(waits)
    return list(connection.execute(fields.order_by(_DECISION.number).limit(limit)))
