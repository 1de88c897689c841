"""What each page shows, as its template takes it."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from dither.base.visible import visible
from dither.log import ArmDay, ArmDays, reward_rules
from dither.log.database import fetching
from dither.watch import charts, happened, latest, query, shadowing
from dither.watch.desk import Busy
from dither.watch.judging import POLICIES, ROWS
from dither.watch.query import Order
from dither.watch.watched import StillReading, WatchedLedger

DAYS: dict[str, int | None] = {"14": 14, "90": 90, "all": None}  # as the address says it -> days that are drawn
FEW = 8  # arms, decisions and events on the overview
ROWS_OF_WHY = 20  # arms, and fields, of an explanation
NAMED = 200  # arms whose ids are proposed
SORTS: dict[str, Callable[[ArmDay], Any]] = {  # column of the table of arms -> what it is sorted by
    "arm": lambda arm: str(arm.arm),
    "share": lambda arm: arm.decisions,
    "stated": lambda arm: _last(arm.stated_mean),
    "reward": lambda arm: _last(arm.mean_reward),
    "value": lambda arm: _last(arm.value),
    "rows": lambda arm: arm.effective_rows,
}

Query = Mapping[str, str]
Content = dict[str, Any]


def _last(x: float) -> float:
    """A number to sort by: what is not known comes last."""
    return -math.inf if math.isnan(x) else x


def overview(watched: WatchedLedger, asked: Query) -> Content:
    """The state of what runs, and its latest days."""
    seen, text = watched.status(), asked.get("days", "")
    sums = seen.days
    shown = text if text in DAYS else "90"
    days = charts.whole_days(sums.by_day(), most=DAYS[shown])
    drawn = [charts.reward(days), charts.traffic(days), charts.shares(sums, days), charts.exploration(days)]
    return {
        "charts": {one.name: one for one in drawn} if days else {},
        "days": days,
        "choices": list(DAYS),
        "chosen": shown,
        "decisions": latest.decisions(watched.ledger, FEW),
        "seen": seen,
        "few": FEW,
        "shadow": shadowing.shadow(watched.ledger, watched.judge),
        "events": events(watched, asked)["events"][:FEW],
        **table_of_arms(sums, asked, most=FEW),
    }


def arms(watched: WatchedLedger, asked: Query) -> Content:
    """All arms, sorted as the address says."""
    return table_of_arms(watched.status().days, asked)


def table_of_arms(sums: ArmDays, asked: Query, *, most: int | None = None) -> Content:
    """The rows of the table of arms. most : at most so many of them"""
    order = query.order(asked.get("sort"), SORTS, default=Order("share", True))
    rows = sorted(sums.by_arm(), key=SORTS[order.by], reverse=order.down)
    total = sums.total()
    shares = [arm.decisions / total.decisions for arm in rows] + [arm.stated_mean for arm in rows if arm.stated]
    return {
        "arms": rows[:most],
        "all_arms": len(rows),
        "order": order,
        "total": total,
        "longest": max(shares, default=1.0) or 1.0,
        "stated": any(arm.stated for arm in rows),
    }


def decisions(watched: WatchedLedger, asked: Query) -> Content:
    """The latest decisions, a page of them."""
    before = query.whole(asked.get("before"))
    rows = latest.decisions(watched.ledger, before=before)
    older = rows[-1].number if len(rows) == latest.PAGE and rows[-1].number > 1 else None
    return {"decisions": rows, "before": before, "older": older, "sought": asked.get("id", "")}


def number_of(watched: WatchedLedger, id: str) -> int | None:
    """The number of the decision with this id; None: there is none."""
    try:
        id = reward_rules.id_text(id)
    except ValueError:  # no decision has such an id, and PostgreSQL refuses to look for it
        return None
    with watched.ledger.database.reading() as connection:
        return fetching.number(connection, id)


def decision(watched: WatchedLedger, number: int) -> Content | None:
    """Why an arm was shown; None: there is no such decision."""
    one = latest.decision(watched.ledger, number, records=watched.show_context)
    if one is None:
        return None
    context = latest.context(one) if watched.show_context else []
    busy, why = False, None
    try:
        why = watched.why(one.id)
    except Busy:
        busy = True
    return {
        "one": one,
        "context": context,
        "show_context": watched.show_context,
        "busy": busy,
        "most": ROWS_OF_WHY,
        "why": None if why is None else why.to_dict(),
        "again": 2 if why is None else None,
    }


def events(watched: WatchedLedger, asked: Query) -> Content:
    """What was changed while it ran."""
    with watched.ledger.database.reading() as connection:
        return {"events": happened.changes(connection)}


def judge(watched: WatchedLedger, asked: Query) -> Content:
    """A question about another policy, and its answer where it is there."""
    question, answer, busy = query.asked(asked), None, False
    arms = _arms(watched)
    if question is not None:
        question = question._replace(arm=arms.get(question.arm, question.arm))
        try:
            answer = watched.judge.answer(question)
        except Busy:
            busy = True
    chart = None if answer is None or answer.evaluation is None else charts.estimates(answer.evaluation)
    return {
        "policies": POLICIES,
        "rows": ROWS,
        "arms": [name for name in arms if len(name) <= NAMED][:NAMED],
        "asked": question,
        "typed": {name: asked.get(name, "") for name in ("settings", "missing", "least", "most")},
        "answer": answer,
        "busy": busy,
        "chart": chart,
        "seconds": watched.seconds,
        "again": 2 if question is not None and answer is None else None,
    }


def _arms(watched: WatchedLedger) -> dict[str, str]:
    """The ids of the arms, by what a page shows of them. An id that is such a text itself is the one that it names."""
    try:
        ids = [str(arm.arm) for arm in watched.status().days.by_arm()]
    except StillReading:  # they are proposed alone
        return {}
    return {visible(id): id for id in ids} | {id: id for id in ids if visible(id) == id}
