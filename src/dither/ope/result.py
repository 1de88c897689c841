"""What an estimate says: the value of a policy, how well it is known, and the difference of two values."""

from dataclasses import dataclass, field

from dither.base import notebook
from dither.ope.contributions import Contributions


@dataclass(frozen=True)
class Estimate:
    """A policy's value, how well it is known, and whether the log can tell."""

    value: float  # mean reward of a decision; NaN where the formula gives none
    se: float  # standard error of the value; NaN for one row
    interval: tuple[float, float]  # at `level`
    n: int  # rows used
    ess: float  # (Σsw)²/Σ(sw)², effective sample size, s the weights of rows; 0 where all weights are 0
    weight_mean: float  # Σsw/Σs; its expectation is 1 if the log supports the policy and p is right
    weight_max: float  # the largest w
    weight_sd: float  # standard deviation of w over the traffic; 0 if all weights are equal
    unsupported: float  # mass of Q on arms that the log could not show: from P, else 1 - weight_mean, at least 0
    weight_test: float  # P-value of "the mean weight is 1", valid for every law of the weights (`log.bets`)
    support_test: float  # P-value of "no weight is heavier than those seen"; 1 where weight_mean is 1 or more
    drift: float  # P-value of "the weighted rewards have one mean over time"; NaN without time=
    level: float
    method: str  # the estimator
    interval_method: str  # one of intervals.INTERVALS
    kind: str  # of the propensities: "exact", "monte_carlo" or "estimated"
    left_out: dict[str, int]  # reason -> rows not used
    notes: tuple[str, ...]
    contributions: Contributions | None = field(repr=False, compare=False)  # for `compare`; None after `sums`

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.method} {self.value:.6g} ± {self.se:.2g}, {self.level:.0%} {self.interval_method} interval "
            f"[{low:.6g}, {high:.6g}]; {self.n} rows, {self.ess:.1f} effective, mean weight {self.weight_mean:.4g}"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: one row, and the notes."""
        return notebook.table(HEADS, [row_of(self)], says=self.notes)


HEADS = ["estimator", "value", "se", "interval", "rows", "effective", "mean weight"]


def row_of(estimate: Estimate) -> tuple[object, ...]:
    """The numbers of an estimate as a row of a table, under `HEADS`."""
    low, high = estimate.interval
    sure = f"[{low:.6g}, {high:.6g}] {estimate.level:.0%} {estimate.interval_method}"
    numbers = (f"{estimate.value:.6g}", f"{estimate.se:.2g}", sure, f"{estimate.n:,}", f"{estimate.ess:,.1f}")
    return (estimate.method, *numbers, f"{estimate.weight_mean:.4g}")


@dataclass(frozen=True)
class Difference:
    """The value of one estimate minus that of another, on the same rows."""

    value: float
    se: float
    interval: tuple[float, float]
    p_value: float  # of "there is no difference": two-sided, by the normal law or by what the interval is made of
    level: float
    n: int
    interval_method: str = "normal"  # or "bootstrap", or "anytime"

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"difference {self.value:.6g} ± {self.se:.2g}, {self.level:.0%} {self.interval_method} interval "
            f"[{low:.6g}, {high:.6g}]; P = {self.p_value:.2g} of 'no difference', {self.n} rows"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the sentence."""
        return notebook.sentences([str(self)])
