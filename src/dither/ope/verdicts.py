"""What an evaluation says in plain words: numbers, notes, and a verdict on each policy."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dither.log.warm import only
from dither.ope import diagnostics, intervals
from dither.ope.candidates import LOGGING
from dither.ope.contributions import find
from dither.ope.result import Difference, Estimate
from dither.ope.warn import SupportWarning

if TYPE_CHECKING:
    from dither.ope.judge import Evaluation

SHARE = 1e-3  # so small a share of a policy on arms that could not be shown is accepted
HOLD = ("bernstein", "betting", "anytime")  # intervals that held in all logs of policies that learn (measured)
PERIODS = 0.01  # with a P-value below this a value has changed between periods
MOST = 100  # more rows than this many times those of the log are out of reach
RAN = "what ran"  # the name of the logging policy in tables, picture and page
MINUS = "−"
NOWHERE = "whose rewards nobody knows. Log with floor=, or judge a policy closer to the one that ran."
LEARNT = (  # for a saved bandit, whose file does not say from which rows it learnt
    "if this bandit learnt from these rows, the estimate leans high and the interval does not cover: judge it on "
    "later rows"
)


class Verdict(NamedTuple):
    """One policy against what ran."""

    policy: str
    word: str  # "better", "worse", "same", "unclear" or "unsupported"
    text: str


def verdicts(found: "Evaluation") -> list[Verdict]:
    """One for each policy, by the first estimator that was asked for."""
    return [verdict(found, policy) for policy in found.policies]


def verdict(found: "Evaluation", policy: str) -> Verdict:
    """Better or worse than what ran where the interval of the paired difference excludes 0, else not told apart."""
    by = found.estimators[0]
    estimate, gap = found.estimates[policy, by], found.gap(policy, by)
    rounding = found.rounding[policy]
    if found.certain[policy] <= SHARE and _off(estimate) <= rounding:
        return Verdict(policy, "same", f"the same as what ran, in every row of this log (by {by}).")
    why = unsupported(estimate, known=found.known[policy], certain=found.certain[policy], rounding=rounding)
    if not why and estimate.method != "dm" and found.expected[policy] < _enough(estimate.n):
        promised, there = (_effective(x) for x in (found.expected[policy], estimate.ess))
        why = (
            f"the logged probabilities promise {promised} effective rows of {estimate.n:,}. In these there are "
            f"{there}, as rare arms did not come: what is seen looks surer than it is. Judge a policy closer to the "
            "one that ran, or log more."
        )
    if why or gap is None:
        return Verdict(policy, "unsupported", f"not supported by this log: {why}")
    low, high = gap.interval
    if not np.isfinite([gap.value, low, high]).all():
        return Verdict(policy, "unclear", f"cannot be told apart from what ran: {_endless(found, estimate)}.")
    rare = [] if estimate.method == "dm" else [who for who in (policy, LOGGING) if who in found.events]
    if not all(found.events[who].held for who in rare):
        return Verdict(policy, "unclear", f"cannot be told apart from what ran: {_rare(found, rare)}.")
    least = found.rounding[policy] * _size(found.logging)
    excludes = low > 0 or high < 0
    if not rare and (max(-low, high) <= least or (excludes and abs(gap.value) <= least)):
        return Verdict(policy, "same", f"the same as what ran, to the rounding of this log (by {by}).")
    said = f"{number(abs(gap.value), high - low)} {_ends(gap)}"
    if low > 0:
        return Verdict(policy, "better", f"better than what ran: {said} more reward a decision (by {by}).")
    if high < 0:
        return Verdict(policy, "worse", f"worse than what ran: {said} less reward a decision (by {by}).")
    why = _rare(found, rare) if rare else _wanted(gap)
    if found.unknown:
        why = f"{found.unknown:,} rewards are missing, and what they were can turn it"
    return Verdict(
        policy,
        "unclear",
        f"cannot be told apart from what ran: {number(gap.value, high - low)} {interval(gap.interval)} reward a "
        f"decision (by {by}); {why}.",
    )


def unsupported(found: Estimate, *, known: bool, certain: float, rounding: float = 0.0) -> str:
    """Why the log cannot tell the value of a policy; "" if it can. rounding : how far weights may be off.

    The number of effective rows is judged before the mean weight: with few such rows, an unseen heavy weight is common.
    """
    if found.method == "dm":
        return ""
    if certain > SHARE:
        return f"{certain:.2g} of what it would show is on arms that the log could not show, {NOWHERE}"
    if found.weight_max == 0:
        return "no row of the log shows what the policy would: all weights are 0."
    if found.ess < _enough(found.n):
        return (
            f"only {_effective(found.ess)} of {found.n:,} rows, as it were, carry the estimate (effective sample size; "
            f"largest weight {found.weight_max:.3g}). Judge a policy closer to the one that ran, or log more."
        )
    if abs(found.weight_mean - 1) <= rounding:
        return ""
    mean = _apart(found.weight_mean)
    if diagnostics.thin(found, known=known):
        return (
            f"the mean weight is {mean}, not 1: about {1 - found.weight_mean:.2g} of what it would show is on arms "
            f"that the log could not show, or shows too rarely, {NOWHERE}"
        )
    if found.weight_test < diagnostics.DOUBT:
        return (
            f"the weights average {mean} and not 1, so the logged propensities, or the "
            "probabilities of the policy, are not what they are said to be. Check both."
        )
    if diagnostics.uneven(found):
        return (
            f"all weights are {mean} and not 1, so no row shows what the policy would show "
            f"{'less' if found.weight_mean > 1 else 'more'} often. Log more, or check the propensities."
        )
    return ""


def _enough(n: int) -> float:
    """So many effective rows are needed."""
    return diagnostics.FEW if n >= diagnostics.FEW else diagnostics.SMALL * n


def notes(found: "Evaluation") -> list[str]:
    """What a reader must know besides: kinds of propensities, warnings, how intervals were made."""
    said = []
    kinds = found.kinds[LOGGING]
    if kinds != {"exact"}:
        said.append(f"The logged propensities are {_list(sorted(kinds))}; Monte Carlo errors widen the intervals.")
    if "estimated" in kinds:
        said.append("The intervals take estimated propensities as known: what that hides is not in them.")
    drawn = [policy for policy in found.policies if "monte_carlo" in found.kinds[policy]]
    if drawn:
        said.append(
            f"The probabilities of {_list(drawn)} are Monte Carlo: unbiased, and their error is in the intervals."
        )
    said.append(_own(found))
    said += _changed(found)
    if found.unknown:
        said.append(
            f"{found.unknown:,} rewards are missing: the intervals hold whatever they were in the range that was given."
        )
    said += [] if found.timed is None else found.timed.notes()
    if len(found.periods) > 1:
        said += [_moved(found, policy) for policy in found.policies]
    said += [f"{policy}: {LEARNT}." for policy in found.saved]
    for policy in found.policies:
        said += [f"{policy}: {text}." for text in _complaints(found, policy)]
    if found.how.interval == "bootstrap":
        many, rows = found.blocks
        units = f"{found.clusters:,} clusters" if found.clusters else f"{many:,} blocks of {rows:,} successive rows"
        said.append(
            f"The bootstrap draws {found.how.resamples:,} times, {units if found.clusters or rows > 1 else 'rows'}."
        )
    elif found.clusters:
        said.append(f"The intervals allow for dependence within {found.clusters:,} clusters.")
    if found.events:
        said.append(
            f"Few rewards differ from the others for {_list([named(who) for who in found.events])}: their intervals "
            f"are widened to hold for events that these rows do not show"
            + ("." if all(one.held for one in found.events.values()) else ", where --reward-range says what can come.")
        )
    came, gone = found.events.get(LOGGING), found.report.left_out.get("no reward came", 0)
    if gone and came is not None and len(came.tally.values) == 1:
        said.append(only(gone, found.report.used, came.tally.values[0], cure="--missing 0"))
    if len(found.policies) > 1 and found.how.level < 1:
        chance = len(found.policies) * (1 - found.how.level)
        said.append(
            f"{len(found.policies)} policies are judged, each by its own {found.how.level:.0%} interval: about "
            f"{chance:.2g} of them are called better or worse by chance alone, and the best of them looks better than "
            f"it is."
        )
    if found.how.bounded:
        said.append(f"Paired differences have normal intervals; those of the values are {found.how.interval}.")
    return said


def _complaints(found: "Evaluation", policy: str) -> list[str]:
    """What `dither.ope` would warn of, without what the verdict already says."""
    estimate = found.estimates[policy, found.estimators[0]]
    known, certain = found.known[policy], found.certain[policy]
    complaints = diagnostics.complaints(estimate, known=known, certain=certain)
    return [text.replace(", with mask=", "") for category, text in complaints if category is not SupportWarning]


def _own(found: "Evaluation") -> str:
    """The logging policy evaluated by itself."""
    bad = [f for f in found.report.findings if f.kind == "weights"]
    if bad:
        return "The logging policy's own weights are not all 1: " + "; ".join(map(str, bad))
    if not found.checked:
        return "Not checkable: the logging policy's own weights, as no exact probabilities of all arms are logged."
    return f"The logging policy's own weights are 1 in all {found.checked:,} rows that can be checked."


def _changed(found: "Evaluation") -> list[str]:
    """What to take on the log of a policy that learnt, where the log says that it did and nobody took it."""
    rows, of = found.changes
    past = any(find(name.partition(":")[0]).reads == "past" for name in found.estimators)
    if not rows or found.how.interval in HOLD or (past and found.how.interval == "asymptotic"):
        return []
    cures = ["--estimator ips --interval anytime --reward-range LOW HIGH"]
    cures += ["(narrower, a limit of many rows) --estimator stablevar --interval asymptotic"] if found.checked else []
    return [
        f"The policy that ran changed while it ran: in {rows:,} of {of:,} rows at the start whose arms came again, the "
        f"arm shown had another probability then. It learnt, or saw more than the log has. On such a log "
        f"{found.how.interval} intervals cover too rarely for a policy that it showed less and less: take "
        f"{' or '.join(cures)}."
    ]


def _moved(found: "Evaluation", policy: str) -> str:
    """Whether the value of a policy is the same in all periods."""
    p = found.changed(policy, found.estimators[0])
    if math.isnan(p):
        return f"{policy}: these rows cannot say whether its value is the same in the {len(found.periods)} periods."
    word = "is not the same in" if p < PERIODS else "may be the same in"
    return f"{policy}: the value {word} all {len(found.periods)} periods (P = {p:.2g} by {found.estimators[0]})."


def estimate(found: Estimate) -> str:
    """A value with its interval."""
    return f"{number(found.value, found.interval[1] - found.interval[0])} {interval(found.interval)}"


def difference(gap: Difference | None) -> str:
    """A difference with its interval, signed."""
    if gap is None:
        return "–"
    width = gap.interval[1] - gap.interval[0]
    return f"{number(gap.value, width, signed=True)} {interval(gap.interval, signed=True)}"


def interval(ends: tuple[float, float], *, signed: bool = False) -> str:
    """[low, high], with as many digits as its width justifies."""
    low, high = (number(end, ends[1] - ends[0], signed=signed) for end in ends)
    return f"[{low}, {high}]"


def number(x: float, width: float | None = None, *, signed: bool = False) -> str:
    """x with digits to a thousandth of `width`, or with four digits; a dash for NaN."""
    if math.isnan(x):
        return "–"
    if width is None or not 0 < width < math.inf:
        text = f"{x:{'+' if signed else ''}.4g}"
    else:
        digits = min(max(0, 2 - math.floor(math.log10(width))), 12)
        text = f"{round(x, digits) + 0.0:{'+' if signed else ''},.{digits}f}"  # + 0.0: no negative zero
    return text.replace("-", MINUS)


def named(policy: str) -> str:
    """How a policy is called in tables, picture and page."""
    return RAN if policy == LOGGING else policy


def _off(found: Estimate) -> float:
    """How far the weights are from 1: (mean of (w - 1)²)^½."""
    return math.hypot(found.weight_sd, found.weight_mean - 1)


def _size(found: Estimate) -> float:
    """The size of the rewards, (mean r²)^½, if rows are independent."""
    spread = found.se * math.sqrt(found.n)
    return math.hypot(found.value, spread if math.isfinite(spread) else 0.0)


def _endless(found: "Evaluation", estimate: Estimate) -> str:
    """Why a difference has no interval."""
    if estimate.n == 1:
        return "one row alone has no interval"
    if found.clusters == 1:
        return "one cluster alone has no interval"
    if not math.isfinite(estimate.value):
        return "the estimate has no value in these rows"
    return f"{found.how.interval} gives no interval for {estimate.n:,} rows"


def _apart(mean: float) -> str:
    """A mean weight, with enough digits to differ from 1."""
    return next((text for digits in range(3, 17) if float(text := f"{mean:.{digits}g}") != 1), "1")


def _ends(gap: Difference) -> str:
    """The interval of a difference's size."""
    low, high = gap.interval
    return interval((low, high) if gap.value > 0 else (-high, -low))


def _wanted(gap: Difference) -> str:
    """How many rows give an interval of width |d|/2: n (2W/|d|)², since a width W from n rows falls with 1/√n."""
    width = gap.interval[1] - gap.interval[0]
    rows = gap.n * (2 * width / abs(gap.value)) ** 2 if gap.value else math.inf
    if rows > MOST * gap.n:
        return "no number of rows within reach would tell"
    return f"about {_round(rows):,} rows would be needed for an interval half as wide as the difference"


def _round(rows: float) -> int:
    """Rounded up to two digits."""
    step = 10 ** max(0, math.floor(math.log10(rows)) - 1)
    return math.ceil(rows / step) * step


def _effective(ess: float) -> str:
    return f"{ess:.0f}" if ess >= 10 else f"{ess:.2g}"


def _rare(found: "Evaluation", rare: list[str]) -> str:
    """How few rewards differ, and what the interval assumes of those not seen."""
    event = found.events[rare[0]]
    tally = event.tally
    common = int(np.argmax(tally.mass))
    rows = sum(tally.shown)
    others = rows - tally.shown[common]
    which = "rewards" if rare[0] == LOGGING else "rewards that it would have had"
    said = f"{'none' if not others else f'only {others:,}'} of the {rows:,} {which} differ{'s' * (others <= 1)} from "
    said += f"{tally.values[common]:g}"
    if not event.held:
        return f"{said}, and nothing says what others there could have been: say it with --reward-range LOW HIGH"
    low, high = intervals.span(tally, found.how.reward_range) or (0.0, 1.0)
    return f"{said}; the interval holds for rewards from {low:g} to {high:g} that these rows do not show"


def _list(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
