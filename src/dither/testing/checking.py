"""How checks are run: each alone, by its name, with expected failures that must fail.

A check is a function of one case. It returns where the case passes or where the rule does not concern it, and raises
AssertionError where it fails. Any other error is a failure too, since a part must be able to do what the checks ask.
The report then names the method of the part that raised the error, the shapes of its arguments, and the rule.
"""

import functools
import inspect
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, ParamSpec, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from dither.base import errors

P = ParamSpec("P")


class CheckFailed(AssertionError):
    """What a part fails. `failures` has the name of each check and what it found; `part` is the part's name."""

    def __init__(self, part: str, failures: Mapping[str, str]) -> None:
        self.part, self.failures = part, dict(failures)
        lines = [f"{part} fails the check {name!r}: {text}" for name, text in failures.items()]
        many = f"{part} fails {len(lines)} checks.\n" if len(lines) > 1 else ""
        super().__init__(many + "\n".join(lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.part, self.failures)


class CheckedCase(Protocol):
    """What the checks of one part start from."""

    @property
    def expected(self) -> Mapping[str, str]:
        """Name of a check -> why the part cannot pass it."""
        ...

    @property
    def part(self) -> str:
        """How errors call it."""
        ...


@runtime_checkable
class Promised(Protocol):
    """A case that knows what the methods of its part promise."""

    def promise(self, method: str) -> str | None:
        """What this method takes and gives, in words; None where nothing is known of it."""
        ...


@dataclass(frozen=True)
class Check:
    """One check of one part: call it. It raises `CheckFailed`, or returns None."""

    name: str
    rule: Callable[[Any], None] = field(repr=False)
    case: Any = field(repr=False)

    def __str__(self) -> str:
        return self.name

    def __call__(self) -> None:
        """Run the check; one that is expected to fail must."""
        reason = self.case.expected.get(self.name)
        try:
            with np.errstate(all="ignore"):
                self.rule(self.case)
        except Exception as error:
            if reason is not None:
                return
            raise CheckFailed(self.case.part, {self.name: _said(error, self.rule, self.case)}) from error
        if reason is not None:
            text = f"it is expected to fail ({reason}), and it passes: take it out of expected_failed_checks"
            raise CheckFailed(self.case.part, {self.name: text})


class Checker(Generic[P]):
    """A function that checks one kind of part. It runs every check and raises one `CheckFailed` of all that failed.

    gate : the name of a check that the others build on: where it fails, they are not run
    """

    def __init__(
        self, make: Callable[P, CheckedCase], rules: Mapping[str, Callable[[Any], None]], gate: str | None = None
    ) -> None:
        self.make, self.rules, self.gate = make, dict(rules), gate
        functools.update_wrapper(self, make)

    def __call__(self, *args: P.args, **options: P.kwargs) -> None:
        """Run all checks. Raises CheckFailed."""
        failures: dict[str, str] = {}
        checks = self.checks(*args, **options)
        for check in checks:
            try:
                check()
            except CheckFailed as failed:
                failures |= failed.failures
                if check.name == self.gate and check.name not in check.case.expected:
                    failures[check.name] += f"\nThe other {len(checks) - 1} checks are not run before {check} passes."
                    break
        if failures:
            raise CheckFailed(checks[0].case.part, failures)

    def checks(self, *args: P.args, **options: P.kwargs) -> list[Check]:
        """The checks one by one, each with its name: for `pytest.mark.parametrize("check", ..., ids=str)`."""
        case = self.make(*args, **options)
        for name in case.expected:
            errors.among("check", name, self.rules)
        return [Check(name, rule, case) for name, rule in self.rules.items()]


def checker(
    *rules: Callable[[Any], None], gate: Callable[[Any], None] | None = None
) -> Callable[[Callable[P, CheckedCase]], Checker[P]]:
    """Make a `Checker` of the function that builds the case; the checks are called as their functions are.

    gate : the check that comes first; where it fails, the others are not run
    """
    first = () if gate is None else (gate,)

    def make_checker(make: Callable[P, CheckedCase]) -> Checker[P]:
        by_name = {rule.__name__: rule for rule in (*first, *rules)}
        return Checker(make, by_name, None if gate is None else gate.__name__)

    return make_checker


def require(holds: Any, says: str, *, cure: str) -> None:
    """Fail where a rule does not hold; says: what there is in its place, with its numbers; cure: what to change."""
    if not holds:
        raise AssertionError(f"{says}. {cure}")


def agree(numbers: ArrayLike, wanted: ArrayLike, says: str, *, rtol: float, atol: float = 0.0, cure: str) -> None:
    """Fail where numbers are not `close` to those that are wanted; what is said ends with where they differ most."""
    require(close(numbers, wanted, rtol=rtol, atol=atol), f"{says} {farthest(numbers, wanted)}", cure=cure)


def close(numbers: ArrayLike, wanted: ArrayLike, *, rtol: float, atol: float = 0.0) -> bool:
    """Whether two arrays of numbers are of one shape and agree to rtol; NaN agrees with NaN."""
    x, y = np.asarray(numbers, dtype=float), np.asarray(wanted, dtype=float)
    return x.shape == y.shape and bool(np.allclose(x, y, rtol=rtol, atol=atol, equal_nan=True))


def farthest(numbers: ArrayLike, wanted: ArrayLike) -> str:
    """Where two arrays differ most, in words."""
    x, y = np.asarray(numbers, dtype=float), np.asarray(wanted, dtype=float)
    if x.shape != y.shape:
        return f"shape {x.shape} against {y.shape}"
    if not x.size:
        return "nothing"
    apart = np.where(np.isnan(x) & np.isnan(y), 0.0, np.nan_to_num(np.abs(x - y), nan=np.inf, posinf=np.inf))
    place = tuple(map(int, np.unravel_index(np.argmax(apart), apart.shape)))
    return f"{float(x[place]):.9g} against {float(y[place]):.9g}" + (f" at {place}" if place else "")


def _said(error: Exception, rule: Callable[[Any], None], case: CheckedCase) -> str:
    """What a failure says; of an error that no check raised on purpose, the method that raised it and the rule."""
    if isinstance(error, AssertionError) and str(error):
        return str(error)
    text = f"{type(error).__name__}: {error}"
    sentences = [f"The rule is: {inspect.getdoc(rule)}"]
    if (place := _raised(error, case)) is not None:
        owner, method, shapes = place
        text = f"{owner}.{method} raised {text}" + (f". It was given {shapes}" if shapes else "")
        promise = case.promise(method) if isinstance(case, Promised) else None
        sentences += [f"What `{method}` promises: {promise}"] if promise else []
    return ". ".join([text, *(sentence.rstrip(".") for sentence in sentences)])


def _raised(error: Exception, case: CheckedCase) -> tuple[str, str, str] | None:
    """The last method of the part that was entered: its class, its name and the shapes that it was given."""
    parts = [getattr(case, name) for name in ("model", "policy", "env") if hasattr(case, name)]
    place = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        of = frame.f_locals.get("self")
        name = frame.f_code.co_name
        if any(of is part for part in parts) and hasattr(type(of), name) and not name.startswith("_"):
            place = type(of).__name__, name, _shapes(frame.f_locals, frame.f_code)
    return place


def _shapes(values: Mapping[str, Any], code: Any) -> str:
    """The shapes of the arrays among the arguments of a call, as in "x (3,), r ()"."""
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return ", ".join(f"{name} {values[name].shape}" for name in names if hasattr(values.get(name), "shape"))
