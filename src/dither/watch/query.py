"""What a reader asks of a page, in its address. What makes no sense is left out, as if it had not been asked."""

import math
from collections.abc import Collection, Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from dither.watch.judging import POLICIES, ROWS, Asked

SETTINGS = 8  # at most, of one question
KEPT = ("sort", "days", "by")  # what a link to the same page keeps
LONGEST = 40  # characters of what is kept


class Order(NamedTuple):
    """How a table is sorted."""

    by: str
    down: bool


def order(text: str | None, columns: Collection[str], *, default: Order) -> Order:
    """The order that `column` or `column-down` means."""
    by, dash, _ = (text or "").partition("-down")
    return Order(by, bool(dash)) if by in columns else default


def link(query: Mapping[str, str], **other: str) -> str:
    """The address of the same page with another choice, which keeps the others. Of `days` and `by` there is one."""
    gone = {"days", "by"} if other.keys() & {"days", "by"} else set()
    kept = {name: query[name] for name in KEPT if name not in gone and 0 < len(query.get(name, "")) <= LONGEST}
    return f"?{urlencode(other | kept | other)}"


def whole(text: str | None) -> int | None:
    """A whole number from 1 on that a ledger can count to; None where it is none."""
    number = int(text) if text and text.isascii() and text.isdecimal() and len(text) < 19 else 0
    return number or None


def asked(query: Mapping[str, str]) -> Asked | None:
    """The question of the page that compares policies; None: none is asked."""
    policy, rows = query.get("policy", ""), whole(query.get("rows")) or ROWS[1]
    other = settings(query.get("settings"))
    if policy not in POLICIES or (policy == "arm" and not query.get("arm")) or (policy == "settings" and not other):
        return None
    rows = rows if rows in ROWS else ROWS[1]
    low, high = _number(query.get("least")), _number(query.get("most"))
    span = (low, high) if low is not None and high is not None and low < high else None
    arm = query["arm"] if policy == "arm" else ""
    return Asked(policy, arm, other if policy == "settings" else (), rows, _number(query.get("missing")), span)


def settings(text: str | None) -> tuple[tuple[str, float], ...]:
    """Settings and their numbers, of a text such as "c=0.5 floor=0.1"; () where it is none."""
    pairs = [word.partition("=")[::2] for word in (text or "").replace(",", " ").split()]
    numbers = [(name, _number(value)) for name, value in pairs]
    if len(dict(numbers)) < len(numbers) or len(numbers) > SETTINGS:
        return ()
    fit = [(name, value) for name, value in numbers if name.isidentifier() and value is not None]
    return tuple(fit) if len(fit) == len(numbers) else ()


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "nan")
    except ValueError:
        return None
    return number if math.isfinite(number) else None
