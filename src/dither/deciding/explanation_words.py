"""An `Explanation` in words: sentences, a table of the arms, what their means are made of; as text, HTML and a dict.

All three have the same rows and sentences. HTML escapes every text. A dict has what JSON has: None where a number is
not known or has no end, and lists for arrays.
"""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dither.base import errors, notebook
from dither.base.visible import visible
from dither.deciding.causes import COINS

if TYPE_CHECKING:
    from dither.deciding.explain import Explanation

ARMS = 20  # rows of the table at most
FIELDS = 8  # fields that moved a choice, at most; the rest is one row
HEADS = ("arm", "mean", "width", "probability", "z from", "to")
_OF_COINS = {
    "uniform": "the policy's own share of uniform choices",
    "floor": "the floor",
    "minimum": "the minimum of this arm",
}


def title(e: "Explanation") -> str:
    """What is explained."""
    one = e.decision
    if one is None:
        at = f" at z = {e.z:.4f}" if e.z is not None else ""
        return f"Explanation of {len(e.m)} arms{at}" + ("" if e.law is None else f", {type(e.law).__name__}")
    p = errors.number(one.propensity)
    how = f"probability {p} ({one.propensity_kind})" if p != errors.DASH else "probability unknown"
    return f"Decision {one.id} of {one.time:%Y-%m-%d %H:%M:%S} UTC: arm {one.arm} of {len(e.m)}, {how}"


def why(e: "Explanation") -> str:
    """What chose the arm, in a sentence or two; "" where no arm is said to have been shown."""
    chosen = e.chosen
    if chosen is None:
        return ""
    arm, greedy, by_policy = e.name(chosen.arm), _named(e, chosen.greedy), _named(e, e.best)
    at = "" if e.z is None else f"z = {errors.number(e.z)}"
    others = f"; by the means alone it would be {greedy}" if greedy else ""
    words = {
        "alone": f"{arm} was the only arm on offer.",
        "greedy": f"{arm} has the highest mean{f', and at {at} it is the best' if at and by_policy else ''}.",
        "z": f"{at} moved it: there {arm} has the highest score{_interval(e, chosen.arm)}{others}.{_lead(e)}",
        "bonus": f"{arm} has the highest mean with its bonus{others}.",
        "draw": f"The policy's own draw, which is not kept, can have shown {arm}{others}.",
        "baseline": f"{arm} is the baseline, and was shown in place of what was not safe{_instead(e, chosen.arm)}.",
        "rule": "A rule of yours acted in place of the bandit.",
        "fallback": f"The store was away, so nothing was drawn, and the call's fallback {arm} was shown.",
        "unknown": f"What chose {arm} is not known.",
        **{
            coin: f"A coin chose {arm}: that of {what}{f'. At {at} the policy shows {by_policy}' if by_policy else ''}."
            for coin, what in _OF_COINS.items()
        },
    }
    return " ".join(filter(None, [words[chosen.cause] + _coin(e), chosen.says]))


def _named(e: "Explanation", arms: Sequence[int]) -> str:
    return errors.either(map(e.name, arms[:3])) + " or one of others that tie" * (len(arms) > 3) if arms else ""


def _interval(e: "Explanation", arm: int) -> str:
    low, high = float(e.low[arm]), float(e.high[arm])
    if math.isnan(low):
        return ""
    if math.isinf(low) or math.isinf(high):
        ends = f"below {errors.number(high)}" if math.isinf(low) else f"from {errors.number(low)} up"
        return f" (it has {ends})" if not (math.isinf(low) and math.isinf(high)) else " (it has for all z)"
    return f" (it has from {errors.number(low)} to {errors.number(high)})"


def _lead(e: "Explanation") -> str:
    """By how much the score of the arm is above that of the highest mean: by the means, and by z times the widths."""
    chosen, number = e.chosen, errors.number
    if chosen is None or not chosen.greedy or e.law is None or e.z is None:
        return ""
    a, b = chosen.arm, chosen.greedy[0]
    by_means, by_z = float(e.m[a] - e.m[b]), float(e.z * (e.w[a] - e.w[b]))
    words = f"{number(by_means, signed=True)} by the means, and {number(by_z, signed=True)} by z times the widths"
    return f" Its score is that of {e.name(b)} {number(by_means + by_z, signed=True)}: {words}."


def _instead(e: "Explanation", arm: int) -> str:
    others = _named(e, [one for one in e.best if one != arm])
    return f", such as {others}" if others else ""


def _coin(e: "Explanation") -> str:
    """What is to be said of a coin that may have chosen as well."""
    chosen = e.chosen
    if chosen is None or chosen.cause in (*COINS, "alone", "rule", "fallback", "unknown") or chosen.coin == 0:
        return ""
    if chosen.coin is None:
        return f" A coin may have shown it as well: a share {errors.number(e.uniform)} of choices is uniform." * bool(
            e.uniform
        )
    return f" A coin of the demands may have shown it as well: with probability {errors.number(chosen.coin)}."


def rows(e: "Explanation", most: int = ARMS) -> list[tuple[str, ...]]:
    """The cells of `HEADS`, the arm shown first, then the others by their probability."""
    number = errors.number
    cells, wide = [], widths(e)
    for i in order(e)[:most]:
        ends = [
            errors.DASH if math.isnan(end) else f"{end:.4g}".replace("-", errors.MINUS) for end in (e.low[i], e.high[i])
        ]
        se = "" if e.propensity_se is None or math.isnan(e.propensity[i]) else f" ± {number(e.propensity_se[i])}"
        mark = " (shown)" if e.chosen is not None and e.chosen.arm == i else ""
        mark += " ← z" if i in e.best and e.z is not None else ""
        cells.append(
            (
                e.name(i) + mark,
                number(e.mean[i]),
                number(wide[i]),
                number(e.propensity[i]) + se,
                *ends,
            )
        )
    return cells


def widths(e: "Explanation") -> np.ndarray:
    """How much one unit of z moves the score of each arm, (K,); of a policy without lines the width of the model."""
    return e.width if e.law is None else e.w


def order(e: "Explanation") -> list[int]:
    """The arms, the one shown first, then by their probability; those that are not on offer are left out."""
    first = np.arange(len(e.m)) == (-1 if e.chosen is None else e.chosen.arm)
    p = np.where(np.isnan(e.propensity), -1.0, e.propensity)
    keys = np.lexsort((np.arange(len(e.m)), -p, ~first))
    return [int(i) for i in keys if not (p[i] == 0 and np.isnan(e.mean[i]))]


def moved(e: "Explanation") -> tuple[str, list[tuple[str, str]]]:
    """What the rows are about, and the fields with what each gives; "" and [] where no parts are known."""
    made_of = e.parts
    if made_of is None:
        return "", []
    number = errors.number
    if made_of.differences is None or made_of.arm is None or made_of.against is None:
        return "", []
    a, b = made_of.arm, made_of.against
    each = [(made_of.names[g], float(made_of.differences[g])) for g in made_of.order]
    if made_of.of_values:
        each.insert(0, ("value", made_of.of_values))
    some = [one for one in each if one[1] != 0]
    lines = [(name, number(delta, signed=True)) for name, delta in some[:FIELDS]]
    if some[FIELDS:]:
        rest = math.fsum(delta for _, delta in some[FIELDS:])
        lines.append((f"{len(some) - FIELDS} more fields", number(rest, signed=True)))
    whole = number(float(e.mean[a] - e.mean[b]), signed=True)
    words = f"What tells {e.name(a)} from {e.name(b)}, the best mean of the others, in units of reward"
    return f"{words}: {whole} in all", [*lines] or [("nothing", number(0.0))]


def sentences(e: "Explanation") -> list[str]:
    """What is said below the tables."""
    number, able = errors.number, len(order(e))
    said = [f"{able - ARMS} more arms are on offer."] if able > ARMS else []
    if e.link != "identity" and not np.isnan(widths(e)).all():
        said.append(f"Widths are those of the scores, before the link ({e.link}).")
    if e.uniform:
        said.append(f"A share {number(e.uniform)} of choices is uniform over the arms on offer.")
    if e.decision is not None:
        facts = ((name, value) for name, value in e.decision.versions.items() if value is not None)
        said.append(f"Versions: {', '.join(f'{name} {value}' for name, value in facts)}.")
    return said + [f"Not known: {what}." for what in e.unknown]


def text(e: "Explanation") -> str:
    """All of it as text."""
    lines = [title(e), *filter(None, [why(e)]), ""]
    lines += _table(HEADS, rows(e), texts=1)
    words, fields = moved(e)
    if fields:
        lines += ["", words, *_table(None, fields, texts=1)]
    return "\n".join(map(visible, [*lines, "", *sentences(e)])).rstrip()


def _table(heads: Sequence[str] | None, cells: Iterable[Sequence[str]], *, texts: int) -> list[str]:
    every = [*([] if heads is None else [heads]), *cells]
    sizes = [max(map(len, column)) for column in zip(*every, strict=True)]
    return [
        "  "
        + "  ".join(
            f"{cell:<{size}}" if i < texts else f"{cell:>{size}}"
            for i, (cell, size) in enumerate(zip(row, sizes, strict=True))
        ).rstrip()
        for row in every
    ]


def html(e: "Explanation") -> str:
    """All of it as HTML, every text escaped."""
    words, fields = moved(e)
    parts = [notebook.sentences([title(e)]), notebook.table(HEADS, rows(e), title=why(e))]
    if fields:
        parts.append(notebook.table(["field", "gives"], fields, title=words))
    return "\n".join([*parts, notebook.sentences(sentences(e))])


def as_dict(e: "Explanation") -> dict[str, Any]:
    """All of it, as JSON has it."""
    one, chosen, made_of = e.decision, e.chosen, e.parts
    described: dict[str, Any] = {
        "title": title(e),
        "why": why(e),
        "cause": None if chosen is None else chosen.cause,
        "coin": None if chosen is None else _number(chosen.coin),
        "arm": None if chosen is None else e.name(chosen.arm),
        "z": _number(e.z),
        "best": [e.name(i) for i in e.best],
        "uniform": _number(e.uniform),
        "kind": e.kind,
        "link": e.link,
        "arms": [_arm(e, i) for i in order(e)],
        "parts": _parts(e),
        "unknown": list(e.unknown),
    }
    if made_of is not None and made_of.against is not None:
        described["against"] = e.name(made_of.against)
    if one is not None:
        about = {"id": one.id, "time": one.time.isoformat(), "place": one.place}
        about |= {"propensity": _number(one.propensity), "propensity_kind": one.propensity_kind}
        described |= about | {"propensity_se": _number(one.propensity_se), "versions": dict(one.versions)}
    return described


def _arm(e: "Explanation", i: int) -> dict[str, Any]:
    able = not math.isnan(e.low[i])
    about = {
        "arm": e.name(i),
        "place": i,
        "mean": _number(e.mean[i]),
        "width": _number(widths(e)[i]),
        "m": _number(e.m[i]),
        "w": _number(e.w[i]),
        "probability": _number(e.propensity[i]),
        "probability_se": None if e.propensity_se is None else _number(e.propensity_se[i]),
        "z": [_number(e.low[i]), _number(e.high[i])] if able else None,
    }
    if e.values is not None:
        about["value"] = _number(e.values[i])
    if e.judged is not None:
        about["judged"] = _number(e.judged[i])
    if e.parts is not None and i in (e.parts.arm, e.parts.against):  # of all arms they would be many numbers
        about["score"] = {name: _number(s) for name, s in zip(e.parts.names, e.parts.scores[i], strict=True)}
    return about


def _parts(e: "Explanation") -> list[dict[str, Any]] | None:
    made_of = e.parts
    if made_of is None or made_of.differences is None:
        return None
    each = [{"field": made_of.names[g], "gives": _number(made_of.differences[g])} for g in made_of.order]
    return [{"field": "value", "gives": _number(made_of.of_values)}, *each] if made_of.of_values else each


def _number(x: Any) -> float | None:
    """A number as JSON has it."""
    return None if x is None or not math.isfinite(x) else float(x)
