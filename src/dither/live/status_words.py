"""A `Status` as tables for a terminal, by rich."""

import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dither.base import errors
from dither.base.visible import visible
from dither.log import ArmDay

if TYPE_CHECKING:
    from dither.live.status import Status

OVER = 5  # troubles that are over, the latest
WIDTH, DAYS, ARMS = 124, 14, 20  # characters of a line; the latest days and the most shown arms that are listed
_NONE = "–"


def text(seen: "Status") -> str:
    """All of it, as lines."""
    console_of = errors.imported("rich.console", "rich", extra="serve")
    out = io.StringIO()
    console = console_of.Console(file=out, width=WIDTH, emoji=False, markup=False, highlight=False)
    total = seen.days.total()
    console.print(f"{seen.where} at {_moment(seen.now)}", soft_wrap=True)
    for line in _lines(seen, total):
        console.print(line, soft_wrap=True)
    tables = [_days(seen), _arms(seen, total)] if total.decisions else []
    for title, sheet in tables + ([_budgets(seen)] if seen.budgets else []):
        console.print(f"\n{title}")
        console.print(sheet)
    words = seen.warnings
    for warning in words:
        console.print(f"Warning: {warning}.", soft_wrap=True)
    if not words:
        console.print("Nothing needs to be looked at.")
    return out.getvalue()


def _lines(seen: "Status", total: ArmDay) -> list[str]:
    learning = seen.learning
    who = "nobody learns now"
    if learning.holder is not None and learning.expires is not None:
        who = f"{learning.holder} learns, with a lease until {learning.expires:%H:%M:%S}"
    waits = f"{learning.waiting:,} rewards wait"
    if learning.waiting:
        waits += f", the first for {learning.lag:,.0f} s"
    lines = [
        f"{total.decisions:,} decisions, the newest at {_moment(seen.latest)} by dither {seen.version or 'unknown'}; "
        f"{total.rewarded:,} with a reward, {seen.pending:,} pending, {total.erased:,} erased",
        f"{total.conflicts:,} conflicts, {total.late:,} late rewards, {total.corrections:,} corrections, "
        f"{total.defaults:,} defaults",
        f"learner: {learning.batches:,} batches, {learning.behind:,} of them in no snapshot; {waits}; {who}",
    ]
    if seen.watched is not None:
        last = f", the last one: {seen.alarms[-1]}" if seen.alarms else ""
        lines.append(f"alarm: {seen.watched:,} rewards watched, {len(seen.alarms):,} alarms{last}")
    lines += [
        f"{one.time:%Y-%m-%d %H:%M:%S} UTC, batch {one.batch:,}: {one.what} by {one.author}" for one in seen.events
    ]
    if seen.overdue:
        lines.append(f"{seen.overdue:,} decisions are past their horizon and not closed")
    told = (("unknown values", seen.unknown), ("misspelt fields", seen.misspelt), ("troubles", seen.failures))
    odd = [f"{words}: {_counts(counts)}" for words, counts in told]
    lines.append("; ".join([f"{seen.refused:,} rewards refused by the model", *odd]))
    over = [one for one in seen.troubles if one.ended is not None][-OVER:]
    for one in over:
        how = "mended" if one.state == "mended" else "whose process is gone"
        when = f"from {_moment(one.first)} to {_moment(one.ended)}, {times(one.times)}"
        lines.append(f"trouble with {one.what} {when}, in {one.host}, {how}: {one.words}")
    return list(map(visible, lines))


def times(n: int) -> str:
    """How often."""
    return "once" if n == 1 else f"{n:,} times"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {n:,}" for name, n in counts.items()) or "none"


def _days(seen: "Status") -> tuple[str, Any]:
    heads = ("decisions", "rewards", "mean reward", "mean propensity", "floor", "exploration")
    rows = [
        (str(one.day), f"{one.decisions:,}", f"{one.rewarded:,}", _with_error(one.mean_reward, one.mean_reward_se),
         _number(one.mean_propensity), _share(one.mean_floor), _share(one.exploration))
        for one in seen.days.by_day()
    ]  # fmt: skip
    return "By day (UTC)" + _cut(rows, DAYS, "the latest"), _table(("day",), heads, rows[-DAYS:])


def _arms(seen: "Status", total: ArmDay) -> tuple[str, Any]:
    heads = ("shown", "share", "drawn", "stated", "mean of 1/p", "mean reward", "always it", "effective rows")
    every = sorted(seen.days.by_arm(), key=lambda one: (-one.decisions, one.arm or ""))
    rows = [
        (str(one.arm), f"{one.decisions:,}", _share(one.decisions / total.decisions), _share(one.stated_share),
         _with_error(one.stated_mean, one.stated_se), _with_error(one.mean_weight, one.mean_weight_se),
         _with_error(one.mean_reward, one.mean_reward_se), _with_error(one.value, one.value_se),
         f"{one.effective_rows:,.0f}")
        for one in every
    ]  # fmt: skip
    return "By arm" + _cut(rows, ARMS, "the most shown"), _table(("arm",), heads, rows[:ARMS])


def _budgets(seen: "Status") -> tuple[str, Any]:
    rows = [(one.arm, str(one.period or "for ever"), f"{one.spent:,.6g}", f"{one.most:,.6g}") for one in seen.budgets]
    return "Budgets, in the period of now", _table(("arm", "period"), ("spent", "of"), rows)


def _table(texts: tuple[str, ...], numbers: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Any:
    tables = errors.imported("rich.table", "rich", extra="serve")
    boxes = errors.imported("rich.box", "rich", extra="serve")
    sheet = tables.Table(box=boxes.SIMPLE_HEAD, pad_edge=False)
    for name in texts:
        sheet.add_column(name, overflow="ellipsis", max_width=32, no_wrap=True)
    for name in numbers:
        sheet.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        sheet.add_row(*map(visible, row))
    return sheet


def _cut(rows: list[Any], most: int, which: str) -> str:
    return f", {which} {most} of {len(rows):,}" if len(rows) > most else ""


def _moment(time: Any) -> str:
    return _NONE if time is None else f"{time:%Y-%m-%d %H:%M:%S} UTC"


def _number(value: float) -> str:
    return _NONE if math.isnan(value) else f"{value:.4g}"


def _share(value: float) -> str:
    return _NONE if math.isnan(value) else f"{value:.1%}"


def _with_error(value: float, se: float) -> str:
    return _number(value) if math.isnan(se) or math.isnan(value) else f"{value:.4g} ± {se:.1g}"
