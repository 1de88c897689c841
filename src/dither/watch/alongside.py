"""What runs beside the bandit: budgets of its arms, and a shadow that is judged."""

from datetime import UTC, datetime
from typing import NamedTuple

from dither.live import turns
from dither.live.taught import ShadowFacts, shadow_of
from dither.log import Ledger, record
from dither.ope.verdicts import Verdict
from dither.watch.desk import Busy
from dither.watch.judging import Asked, Judge


class BudgetRow(NamedTuple):
    """A budget of an arm, and what is spent of it in its present period."""

    arm: str
    most: float
    period: str
    spent: float

    @property
    def share(self) -> float:
        """How much of it is spent, at most 1."""
        return min(self.spent / self.most, 1.0)


class ShadowRow(NamedTuple):
    """The shadow of a ledger, and what it would have earned."""

    facts: ShadowFacts
    verdict: Verdict | None  # None: it is being computed
    words: str = ""  # why there is no verdict


def budgets(ledger: Ledger) -> list[BudgetRow]:
    """The budgets, those first of which most is spent."""
    now = record.micros(datetime.now(UTC))
    with ledger.database.reading() as connection:
        limited = turns.budgets_of(connection)
        spent = turns.spent_of(connection, ledger.database, limited, now)
    rows = [
        BudgetRow(arm, one.most, _period(one.period), amount)
        for arm, several in limited.items()
        for one, amount in zip(several, spent[arm], strict=True)
    ]
    return sorted(rows, key=lambda row: -row.share)


def _period(period: str | float | None) -> str:
    if period is None:
        return "for ever"
    return f"each {period}" if isinstance(period, str) else f"every {period:g} s"


def shadow(ledger: Ledger, judge: Judge) -> ShadowRow | None:
    """The shadow, judged beside the page; None: the ledger has none."""
    with ledger.database.reading() as connection:
        facts = shadow_of(connection)
    if facts.first is None:
        return None
    try:
        answer = judge.answer(Asked("shadow"), wait=0)
    except Busy:
        return ShadowRow(facts, None)
    if answer is None:
        return ShadowRow(facts, None)
    if answer.evaluation is None:
        return ShadowRow(facts, None, answer.words)
    return ShadowRow(facts, answer.evaluation.verdicts()[0])
