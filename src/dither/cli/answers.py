"""What `dither evaluate` shows on the terminal."""

from rich.console import Console
from rich.text import Text

from dither.cli import terminal
from dither.ope import verdicts
from dither.ope.candidates import LOGGING
from dither.ope.evaluation import EvaluationNumbers

NAMES = ("policy", "estimator")


def show(console: Console, evaluation: EvaluationNumbers, *, source: str) -> None:
    """Counts, estimates, differences, verdicts and notes."""
    console.print(Text(f"{source}: {evaluation.report}"), highlight=False, soft_wrap=True)
    table = terminal.table(
        f"Reward a decision, {evaluation.how.level:.0%} {evaluation.how.interval} interval",
        texts=NAMES,
        numbers=("value", "effective rows", "largest weight", "mean weight", "rows used"),
    )
    for (policy, estimator), e in evaluation.estimates.items():
        numbers = (verdicts.estimate(e), f"{e.ess:,.0f}", f"{e.weight_max:.3g}", f"{e.weight_mean:.4f}")
        by = verdicts.by(evaluation, estimator, e)
        table.add_row(Text(verdicts.named(policy)), by, *numbers, f"{e.n / evaluation.report.read:.1%}")
    console.print(table)
    if evaluation.policies:
        _differences(console, evaluation)
    if evaluation.periods:
        _periods(console, evaluation)
    for said in verdicts.verdicts(evaluation):
        console.print(Text.assemble((said.policy, "bold"), ": ", said.text), highlight=False)
    for note in verdicts.notes(evaluation):
        console.print(Text(f"Note: {note}"), highlight=False)


def _differences(console: Console, evaluation: EvaluationNumbers) -> None:
    rivals = [LOGGING, *evaluation.policies[:1]] if len(evaluation.policies) > 1 else [LOGGING]
    against = [f"to {verdicts.named(rival)}" for rival in rivals]
    table = terminal.table("Paired difference, on the same rows", texts=NAMES, numbers=against)
    for policy in evaluation.policies:
        for estimator in evaluation.estimators:
            cells = [verdicts.difference(evaluation.gap(policy, estimator, rival)) for rival in rivals]
            by = verdicts.by(evaluation, estimator, evaluation.estimates[policy, estimator])
            table.add_row(Text(policy), by, *cells)
    console.print(table)


def _periods(console: Console, evaluation: EvaluationNumbers) -> None:
    """The value of each policy in each period."""
    by = None if evaluation.timed is None else evaluation.timed.by
    title = f"Value by {by}, each with its {evaluation.how.level:.0%} interval"
    table = terminal.table(title, texts=("period", *NAMES), numbers=("value", "effective rows", "rows"))
    for period, one in evaluation.periods.items():
        for (policy, estimator), e in one.estimates.items():
            if policy == LOGGING or estimator == evaluation.estimators[0]:
                cells = (verdicts.estimate(e), f"{e.ess:,.0f}", f"{e.n:,}")
                table.add_row(period, Text(verdicts.named(policy)), estimator, *cells)
    console.print(table)
