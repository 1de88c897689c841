"""How texts, numbers and times of a ledger stand in a page.

Every text of a ledger is hostile until it is shown: the templates escape it, and `plain` shows what an eye cannot see,
such as marks that turn the direction of writing, and cuts what is too long.
"""

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import markupsafe

from dither.base.errors import DASH, MINUS, number
from dither.base.visible import visible

UNITS = ((86400, "d"), (3600, "h"), (60, "min"))  # seconds of a unit of time, and its short name


def plain(text: Any, length: int = 200) -> str:
    """A text on one line, of at most so many characters; what cannot be seen is written as its number."""
    whole = str(text)
    cut = whole if len(whole) <= length else f"{whole[: length - 1]}…"
    return visible(cut)


def when(time: datetime | None, *, seconds: bool = True) -> markupsafe.Markup:
    """A time, in UTC, as an element that says it to machines too; a dash for None."""
    if time is None:
        return markupsafe.Markup(DASH)
    at = time.astimezone(UTC)
    text = at.strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")
    return markupsafe.Markup('<time datetime="{}">{}</time>').format(at.strftime("%Y-%m-%dT%H:%M:%SZ"), text)


def ago(time: datetime | None, now: datetime) -> str:
    """How long ago, in one unit."""
    return DASH if time is None else f"{lasts((now - time).total_seconds())} ago"


def lasts(seconds: float) -> str:
    """A length of time in one unit, rounded down."""
    for unit, word in UNITS:
        if seconds >= 2 * unit:
            return f"{int(seconds // unit)} {word}"
    return f"{max(int(seconds), 0)} s"


def count(n: int | None) -> str:
    """A whole number with commas; a dash for None."""
    return DASH if n is None else f"{n:,}"


def share(p: float | None, digits: int = 1) -> str:
    """A share in per cent; a dash for None and NaN."""
    return DASH if p is None or math.isnan(p) else f"{number(100 * p, digits)}\u00a0%"


def reward(r: float | None) -> str:
    """A reward or a mean of rewards: four figures."""
    return number(r)


def interval(low: float | None, high: float | None) -> str:
    """Both ends, with the figures of rewards; a dash where one is not known."""
    ends = (low, high)
    return DASH if any(e is None or math.isnan(e) for e in ends) else f"{number(low)} to {number(high)}"


def period(length: str | float | None) -> str:
    """The period of a budget."""
    if length is None:
        return "for ever"
    if isinstance(length, str):
        return f"each {length}"
    unit, word = next(((unit, word) for unit, word in UNITS if length % unit == 0), (1, "s"))
    return f"every {length / unit:g} {word}"


def measured(value: float, error: float) -> markupsafe.Markup:
    """A value and its standard error, with the digits that the error justifies."""
    if math.isnan(value):
        return markupsafe.Markup(DASH)
    digits = max(0, min(9, 1 - math.floor(math.log10(error)))) if 0 < error < math.inf else None
    text = markupsafe.Markup('{} <span class="unknown">± {}</span>')
    return (
        text.format(number(value, digits), number(error, digits))
        if digits is not None
        else markupsafe.escape(number(value))
    )


def end(z: float | None, side: int) -> str:
    """An end of an interval of z; None: it has none on this side."""
    return f"{MINUS if side < 0 else ''}∞" if z is None else number(z)


def signed(x: float | None) -> str:
    """A number with its sign, with three figures."""
    return DASH if x is None else f"{x:+.3g}".replace("-", MINUS)


FILTERS: dict[str, Callable[..., Any]] = {
    "plain": plain,
    "visible": visible,
    "when": when,
    "ago": ago,
    "lasts": lasts,
    "count": count,
    "share": share,
    "signed": signed,
    "end": end,
    "measured": measured,
    "reward": reward,
    "number": number,
    "period": period,
}
