"""Errors that state the rule, the value and the cure, and how names and numbers stand in a sentence."""

import dataclasses
import difflib
import math
import numbers
import operator
from collections.abc import Collection, Iterable, Sequence
from typing import Any

LARGEST = 1e100  # numbers and settings must be below this: their products with 1/√λ, at most 1e50, have finite squares

MANY = 10  # names in a sentence
MINUS, DASH = "−", "–"  # of a negative number; in place of a number that is not there


def listed(names: Iterable[object], *, most: int | None = MANY) -> str:
    """Names in a sentence, "a, b and c"; the first of them where there are more than `most`. None: no such limit."""
    *others, last = texts = [str(name) for name in names]
    if most is not None and len(texts) > most:
        return f"{', '.join(texts[: most - 2])} and {len(texts) - most + 2} more"
    return f"{', '.join(others)} and {last}" if others else last


def either(names: Iterable[object]) -> str:
    """Names in a sentence, of which one is taken: "a, b or c"."""
    *others, last = map(str, names)
    return f"{', '.join(others)} or {last}" if others else last


def quoted(names: Iterable[object]) -> str:
    """Names as Python writes them: "'a', 'b'"."""
    return ", ".join(map(repr, names))


def number(x: float | None, digits: int | None = None, *, signed: bool = False) -> str:
    """A number in a table or a sentence: so many decimals, or else four figures; a dash for None and for NaN."""
    if x is None or math.isnan(x):
        return DASH
    sign = "+" if signed else ""
    text = f"{x:{sign}.4g}" if digits is None else f"{round(x, digits) + 0.0:{sign},.{digits}f}"  # + 0.0: no -0.00
    return text.replace("-", MINUS)


def nearest(name: object, names: Sequence[str]) -> str | None:
    """The closest name: one spelt nearly the same, else one with the same beginning, else one a little alike."""
    typed, spelt = str(name).casefold(), {n.casefold(): n for n in reversed(names)}
    begins = [n for n in spelt if len(typed) > 2 and n.startswith(typed[:4])]
    near = difflib.get_close_matches(typed, spelt, n=1, cutoff=0.75) or begins
    near = near or difflib.get_close_matches(typed, spelt, n=1, cutoff=0.6)
    return spelt[near[0]] if near and typed else None


def unknown(what: str, name: object, *, names: Iterable[str]) -> LookupError:
    """The error of a name that is in no table. It says the nearest match, or else all names that there are."""
    return LookupError(_unknown(what, name, list(names)))


def unknown_setting(what: str, name: object, *, names: Iterable[str]) -> TypeError:
    """The error of a keyword that a call does not take, in the words of `unknown`."""
    return TypeError(_unknown(what, name, list(names)))


def _unknown(what: str, name: object, names: Sequence[str]) -> str:
    near = nearest(name, names)
    return f"no {what} {name!r}: " + (f"did you mean {near!r}?" if near else f"one of {', '.join(names)}")


def among(what: str, name: str, names: Collection[str]) -> None:
    """Raise `unknown` unless the name is one of these."""
    if name not in names:
        raise unknown(what, name, names=names)


def one_of(name: str, value: object, values: Iterable[str]) -> None:
    """Raise ValueError that lists all values that there are, unless the value is one of them."""
    every = list(values)
    if value not in every:
        raise ValueError(f"{name} must be one of {quoted(every)}; got {value!r}")


def missing_extra(package: str, *, extra: str) -> ImportError:
    """The error of a missing package that an extra would install.

    The cure names a checkout, since no package index has the library.
    """
    return ImportError(
        f"this needs {package}, which is not installed and comes with dither[{extra}]: run pip install '.[{extra}]' "
        "in a checkout of dither"
    )


def positive(name: str, value: object, *, most: float = math.inf) -> None:
    """Raise ValueError unless the value is a finite number above 0, and not above `most`."""
    if not 0 < _number(value) < math.inf:
        raise ValueError(f"{name} must be a finite number above 0, got {value!r}")
    if _number(value) > most:
        raise ValueError(f"{name} must be at most {most:g}, got {value!r}")


def _number(value: object) -> float:
    """The value as a float; NaN if it is no real number, or too large for a float."""
    try:
        return math.nan if isinstance(value, bool) or not isinstance(value, numbers.Real) else float(value)
    except OverflowError:
        return math.nan


def at_least(name: str, value: object, least: int, *, or_none: bool = False) -> None:
    """Raise ValueError unless the value is a whole number of at least `least`. or_none: None is allowed too."""
    if or_none and value is None:
        return
    n = whole(value)
    if n is None or n < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")


def whole(value: object) -> int | None:
    """The value as an int; None for what is no whole number, such as True, 2.0, a text or an array of several."""
    try:
        return None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def within(name: str, value: object, low: float, high: float) -> None:
    """Raise ValueError unless the value is a number in [low, high]."""
    if not low <= _number(value) <= high:
        raise ValueError(f"{name} must lie in [{low:g}, {high:g}], got {value!r}")


def true_or_false(name: str, value: object, *, more: str = "") -> None:
    """Raise ValueError unless the value is True or False. more : what else the error names, where that is taken too."""
    if value not in (True, False) or isinstance(value, (str, bytes)):
        raise ValueError(f"{name} must be True or False{more}, got {value!r}")


def lacks(model: object, *abilities: str, policy: object) -> TypeError:
    """The error of a policy that asks a model for something that the model does not give."""
    shown = repr(model) if dataclasses.is_dataclass(model) else type(model).__name__
    scales = any(ability.startswith("error_") for ability in abilities)
    hint = "; sigma='auto' is for models.Ridge and Diagonal, so give sigma a number" if scales else ""
    return TypeError(
        f"{type(policy).__name__} needs {' and '.join(map(repr, abilities))} of its model, which {shown} does not "
        f"give: choose another model, other settings of it, or another policy{hint}"
    )


def overflow(name: str | None = None) -> ValueError:
    """The error of an estimate that is not finite; name : of the user's model that made it."""
    if name is not None:
        return ValueError(
            f"{name}.update gave NaN or infinity: the estimate overflows, so scale x and r down; or {name}.update "
            f"divides by 0"
        )
    return ValueError("x and r are too large for float64: the estimate overflows; scale them down")


def not_finite(what: str) -> ValueError:
    """The error of scores, means or widths that no arm can be chosen by."""
    return ValueError(
        f"{what} must be finite, and NaN or infinity came: let the model and the policy give finite numbers, before "
        f"the first reward too"
    )


@dataclasses.dataclass(frozen=True)
class Option:
    """A setting that would cure a refusal. Python writes it `name=value`, the command line `--name value`."""

    name: str
    value: object = None  # the value to set; None: the user finds it, and `means` says what it is
    means: str = ""  # such as "NUMBER"

    def __str__(self) -> str:
        return f"{self.name}={self.means if self.value is None else repr(self.value)}"


class Refused(ValueError):
    """A refusal that an option cures. args : texts and `Option`s, in the order in which they are said.

    The command line writes options in another way. It makes the message anew from `args`, without a search in a text.
    """

    def __str__(self) -> str:
        return "".join(map(str, self.args))


def said(error: Exception) -> tuple[object, ...]:
    """What an error says, in the form that `Refused` takes."""
    return error.args if isinstance(error, Refused) else (str(error),)


def repeated(names: Iterable[Any]) -> Any:
    """The first name that came before; None where all differ."""
    before = set()
    for name in names:
        if name in before:
            return name
        before.add(name)
    return None


def imported(module: str, package: str, *, extra: str) -> Any:
    """A module that is needed only here. Raises the error of `missing_extra` where its package is missing."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise missing_extra(package, extra=extra) from None
