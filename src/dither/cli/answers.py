"""What `dither evaluate` shows on the terminal."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dither.cli import terminal
from dither.ope import verdicts
from dither.ope.candidates import LOGGING
from dither.ope.evaluation import EvaluationNumbers


def show(console: Console, found: EvaluationNumbers, *, log: str) -> None:
    """Counts, estimates, differences, verdicts and notes."""
    console.print(Text(f"{log}: {found.report}"), highlight=False, soft_wrap=True)
    table = _table(f"Reward a decision, {found.how.level:.0%} {found.how.interval} interval")
    for name in ("value", "effective rows", "largest weight", "mean weight", "rows used"):
        table.add_column(name, justify="right", no_wrap=True)
    for (policy, estimator), e in found.estimates.items():
        numbers = (verdicts.estimate(e), f"{e.ess:,.0f}", f"{e.weight_max:.3g}", f"{e.weight_mean:.4f}")
        table.add_row(Text(verdicts.named(policy)), estimator, *numbers, f"{e.n / found.report.read:.1%}")
    console.print(table)
    if found.policies:
        _differences(console, found)
    if found.periods:
        _periods(console, found)
    for said in verdicts.verdicts(found):
        console.print(Text.assemble((said.policy, "bold"), ": ", said.text), highlight=False)
    for note in verdicts.notes(found):
        console.print(Text(f"Note: {note}"), highlight=False)


def _differences(console: Console, found: EvaluationNumbers) -> None:
    first = found.policies[0]
    table = _table("Paired difference, on the same rows")
    for name in ("to what ran", *([f"to {first}"] if len(found.policies) > 1 else [])):
        table.add_column(Text(name), justify="right", no_wrap=True)
    for policy in found.policies:
        for estimator in found.estimators:
            cells = [verdicts.difference(found.gap(policy, estimator, LOGGING))]
            if len(found.policies) > 1:
                cells.append(verdicts.difference(found.gap(policy, estimator, first)))
            table.add_row(Text(policy), estimator, *cells)
    console.print(table)


def _periods(console: Console, found: EvaluationNumbers) -> None:
    """The value of each policy in each period."""
    by = None if found.timed is None else found.timed.by
    table = _table(f"Value by {by}, each with its {found.how.level:.0%} interval", first="period")
    for name in ("value", "effective rows", "rows"):
        table.add_column(name, justify="right", no_wrap=True)
    for period, one in found.periods.items():
        for (policy, estimator), e in one.estimates.items():
            if policy == LOGGING or estimator == found.estimators[0]:
                cells = (verdicts.estimate(e), f"{e.ess:,.0f}", f"{e.n:,}")
                table.add_row(period, Text(verdicts.named(policy)), estimator, *cells)
    console.print(table)


def _table(title: str, first: str | None = None) -> Table:
    table = terminal.table(title)
    for name in (*([] if first is None else [first]), "policy", "estimator"):
        table.add_column(name, no_wrap=True)
    return table
