"""How many decisions, at which floor, tell two policies apart by a log: before it is written.

The policy that will run shows one arm, its favourite, and with the share f (the floor) any of K arms alike:

    p = 1 - f + f/K      of its favourite            q = f/K      of any other arm

A policy that is judged shows another arm than the favourite in the share δ of requests, and the favourite in the rest.
Where rewards have the standard deviation σ, the difference of two self-normalised or doubly robust values has, in one
row, the variance

    to what ran     σ²(1 - R²) (δ (1/q - 1) + (1 - δ) (1/p - 1))     its weight, less that of what ran, which is 1
    to another      σ²(1 - R²) δ (1/q + 1/q)                         of two other arms; with K = 2 it is 1/p + 1/q

R² is the share of σ² that the reward model of `dr` explains; 0: `snips`. With a model comes d² (1/δ - 1), as the
difference d that it sees is in a share of the requests alone. That is the variance of importance weighting (Horvitz and
Thompson 1952) and of doubly robust values (Dudík, Langford and Li 2011, Theorem 2) for these policies, where all arms
have rewards of one spread; the square of d, which it overstates, is left in. Then by the normal law, two-sided,

    n = (z_level + z_power)² variance/d²

and at least so many that the judged policy has 30 effective rows, as fewer give no verdict (`ope.evaluate`).

What it costs: n f choices are uniform. If one costs `loss` in reward, that is n f loss. As n grows with K/f, what is
paid in all is nearly the same for all small floors, and what a larger floor buys is time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special

from dither.base import errors, notebook
from dither.base.errors import Option, Refused
from dither.log import schema
from dither.log.logged import Logged
from dither.ope.diagnostics import FEW
from dither.ope.estimators import contributions
from dither.ope.in_memory import estimate

FLOORS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
KINDS = ("to what ran", "to another")
HEADS = ("floor", "difference", "decisions", "uniform decisions", "reward given up")


@dataclass(frozen=True)
class Planned:
    """What one floor takes for one kind of difference."""

    floor: float
    kind: str  # one of `KINDS`: a policy to the one that ran, or to another one that did not
    decisions: int  # n, with rewards
    uniform: float  # n f, how many of them are uniform over the arms
    given_up: float  # n f loss, the reward that these cost in all; NaN where `loss` is not known


@dataclass(frozen=True)
class Plan:
    """How many decisions tell two policies apart, by floor and kind of difference."""

    rows: tuple[Planned, ...]
    arms: int  # K
    difference: float  # d, in reward a decision
    mean: float  # of the rewards; NaN where it is not known
    spread: float  # σ of the rewards
    loss: float  # of reward, by a uniform choice in the place of the favourite; NaN: not known
    differs: float  # δ
    explained: float  # R²
    power: float
    level: float
    parts: tuple[tuple[object, ...], ...] = field(default=(), repr=False)  # of each sentence: texts and `Option`s

    @property
    def says(self) -> tuple[str, ...]:
        """What a reader must know besides, in sentences."""
        return tuple("".join(map(str, parts)) for parts in self.parts)

    def decisions(self, floor: float, kind: str = KINDS[0]) -> int:
        """How many decisions a floor takes. Raises LookupError for a floor or kind that was not planned."""
        for row in self.rows:
            if row.floor == floor and row.kind == kind:
                return row.decisions
        raise LookupError(f"no plan for floor {floor:g} {kind!r}: {sorted({row.floor for row in self.rows})}, {KINDS}")

    def table(self) -> Any:
        """One row for each floor and kind, as a polars frame."""
        columns = ("floor", "kind", "decisions", "uniform", "given_up")
        return schema.polars().DataFrame([{name: getattr(row, name) for name in columns} for row in self.rows])

    def cells(self) -> list[tuple[str, ...]]:
        """The rows as texts, under `HEADS`."""
        return [
            (f"{row.floor:g}", row.kind, f"{row.decisions:,}", f"{row.uniform:,.0f}", given_up(row.given_up))
            for row in self.rows
        ]

    def __str__(self) -> str:
        lines = [HEADS, *self.cells()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        return "\n".join([*rows, *self.says])

    def _repr_html_(self) -> str:
        """What a notebook shows: the table and the sentences."""
        return notebook.table(HEADS, self.cells(), says=self.says, texts=2)


def given_up(reward: float) -> str:
    """A sum of reward as it is shown."""
    return "not known" if math.isnan(reward) else f"{reward:,.3g}"


def plan(
    log: Logged | None = None,
    *,
    difference: float,
    arms: int | None = None,
    rate: float | None = None,
    spread: float | None = None,
    loss: float | None = None,
    floors: Sequence[float] = FLOORS,
    differs: float = 1.0,
    explained: float = 0.0,
    power: float = 0.8,
    level: float = 0.95,
) -> Plan:
    """How many decisions, at which floor, tell two policies apart whose values differ by `difference` a decision.

    log : a log with rewards, which says what is not given: arms, spread and loss; None: they are given
    difference : d, above 0, in reward a decision
    arms : K on offer, 2 at least
    rate : the mean of rewards of 0 or 1, such as clicks, which says their spread; or
    spread : σ, the standard deviation of the rewards
    loss : reward that a uniform choice costs; None: not known, or from the log the value of its favourite less that of
        uniform choices, by `snips`
    floors : shares of uniform choices, in (0, 1]
    differs : δ, the share of requests in which a judged policy shows another arm than the one that runs
    explained : R², the share of the variance of rewards that a reward model explains, for `dr`; 0 is `snips`
    power : the probability of telling them apart; level : of the two-sided interval of the difference

    The plan is for a policy that does not learn meanwhile, and for exact propensities. Raises ValueError for what is
    missing or impossible.
    """
    errors.positive("difference", difference, most=errors.LARGEST)
    _between("power", power), _between("level", level)
    errors.within("explained", explained, 0, 1)
    _share("differs", differs)
    for one in floors:
        _share("floors", one)
    if not len(floors):
        raise ValueError("floors must be at least one share of uniform choices, got none")
    mean = math.nan if rate is None else _rate(rate, spread)
    if rate is not None:
        spread = math.sqrt(rate * (1 - rate))
    if log is not None:
        from_log = _of_log(log)
        arms = from_log.arms if arms is None else arms
        if spread is None:
            mean, spread = from_log.mean, from_log.spread
        loss = from_log.loss if loss is None else loss
    if spread is None:
        raise Refused(
            *(
                "spread of the rewards is not known: give ",
                Option("rate"),
                " (of clicks), ",
                Option("spread"),
                ", or a log",
            )
        )
    errors.positive("spread", spread, most=errors.LARGEST)
    errors.at_least("arms", arms, 2)
    assert arms is not None
    rows = []
    for floor in floors:
        for kind in KINDS:
            variance = of_row(kind, arms, floor, differs) * spread**2 * (1 - explained)
            variance += difference**2 * (1 / differs - 1) * (explained > 0)
            z = special.ndtri((1 + level) / 2) + special.ndtri(power)
            least = FEW * (differs / _other(arms, floor) + (1 - differs) / _favourite(arms, floor))
            n = math.ceil(max(z**2 * variance / difference**2, least))
            cost = math.nan if loss is None else n * floor * loss
            rows.append(Planned(float(floor), kind, n, n * floor, cost))
    facts = (arms, float(difference), mean, float(spread), math.nan if loss is None else float(loss))
    of = (float(differs), float(explained), float(power), float(level))
    return Plan(tuple(rows), *facts, *of, parts=_says(arms, difference, mean, spread, loss, differs, power, level))


def of_row(kind: str, arms: int, floor: float, differs: float = 1.0) -> float:
    """The variance of one row's part of a difference, where rewards have the variance 1 and no model explains them."""
    errors.one_of("kind", kind, KINDS)
    p, q = _favourite(arms, floor), _other(arms, floor)
    if kind == "to what ran":
        return differs * (1 / q - 1) + (1 - differs) * (1 / p - 1)
    return differs * (1 / q + 1 / (q if arms > 2 else p))


def _favourite(arms: int, floor: float) -> float:
    return 1 - floor + floor / arms


def _other(arms: int, floor: float) -> float:
    return floor / arms


@dataclass(frozen=True)
class _Facts:
    """What a log says for a plan."""

    arms: int
    mean: float
    spread: float
    loss: float


def _of_log(log: Logged) -> _Facts:
    """K, mean and spread of the rewards, and what a uniform choice costs."""
    if not len(log):
        raise Refused("the log has no rows: give ", Option("rate"), " or ", Option("spread"), ", and ", Option("arms"))
    r, K = log.r, log.K
    uniform = np.where(np.arange(int(K.max())) < K[:, None], 1 / K[:, None], 0.0)
    floor = log.floor
    share = float(np.mean(floor)) if not np.isnan(floor).any() else 0.0
    value = estimate(contributions("snips", r, log.a, log.p, uniform), warn=False).value
    loss = max(0.0, (float(np.mean(r)) - value) / (1 - share)) if share < 1 else math.nan
    return _Facts(int(np.median(K)), float(np.mean(r)), float(np.std(r)), loss)


def _rate(rate: float, spread: float | None) -> float:
    if spread is not None:
        raise ValueError("rate is of rewards of 0 or 1, which says their spread: give one of the two")
    return float(_between("rate", rate))


def _between(name: str, value: Any) -> Any:
    """The value. Raises ValueError unless it is a number between 0 and 1, without the two."""
    errors.within(name, value, 0, 1)
    if value in (0, 1):
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")
    return value


def _share(name: str, value: Any) -> None:
    """Raise ValueError unless the value is a share above 0."""
    errors.within(name, value, 0, 1)
    if value == 0:
        raise ValueError(f"{name} must be above 0, got {value!r}: without it nothing is told apart")


def _says(
    arms: int,
    difference: float,
    mean: float,
    spread: float,
    loss: float | None,
    differs: float,
    power: float,
    level: float,
) -> tuple[tuple[object, ...], ...]:
    """What a reader must know besides the table: the parts of each sentence."""
    of_mean = "" if math.isnan(mean) or mean <= 0 else f", {difference / mean:.0%} of the mean {mean:.4g},"
    where = "every request" if differs == 1 else f"{differs:.0%} of the requests"
    said: list[str | tuple[object, ...]] = [
        f"So many decisions with rewards tell a difference of {difference:g}{of_mean} in {power:.0%} of all cases, by "
        f"an interval of level {level:.0%}. That is for {arms} arms, rewards with the standard deviation {spread:.4g}, "
        f"and a policy that shows another arm in {where}.",
        "They are for a policy that does not learn while it is logged, with exact propensities. Where it learns, the "
        "intervals that hold are wider, and it takes more.",
    ]
    if loss is None or math.isnan(loss):
        said.append(("What a uniform choice costs is not known: give ", Option("loss"), ", or a log."))
    return tuple((one,) if isinstance(one, str) else one for one in said)
