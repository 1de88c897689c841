"""What an evaluation says in plain words: numbers, notes, and a verdict on each policy."""

import math
from typing import NamedTuple

import numpy as np

from dither.base import errors
from dither.log.warm import only
from dither.ope import diagnostics, intervals, worth
from dither.ope.bounded import BOUNDED
from dither.ope.candidates import LOGGING
from dither.ope.contributions import NamedEstimator
from dither.ope.evaluation import EvaluationNumbers
from dither.ope.result import Difference, Estimate
from dither.ope.warn import SupportWarning

SHARE = 1e-3  # so small a share of a policy on arms that could not be shown is accepted
PERIODS = 0.01  # with a P-value below this a value has changed between periods
MOST = 100  # more rows than this many times those of the log are out of reach
RAN = "what ran"  # the name of the logging policy in tables, picture and page
APART = "cannot be told apart from what ran"
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


def verdicts(evaluation: EvaluationNumbers) -> list[Verdict]:
    """One for each policy, by the first estimator that was asked for."""
    return [Verdict(policy, *_verdict(evaluation, policy)) for policy in evaluation.policies]


def _verdict(evaluation: EvaluationNumbers, policy: str) -> tuple[str, str]:
    """Better or worse than what ran where the interval of the paired difference excludes 0, else not told apart."""
    by = evaluation.estimators[0]
    estimate, gap = evaluation.estimates[policy, by], evaluation.gap(policy, by)
    rounding = evaluation.rounding[policy]
    if evaluation.certain[policy] <= SHARE and _off(estimate) <= rounding:
        return "same", f"the same as what ran, in every row of this log (by {by})."
    has_P, certain = evaluation.has_P[policy], evaluation.certain[policy]
    why = unsupported(estimate, has_P=has_P, certain=certain, rounding=rounding)
    if not why and estimate.method != "dm" and evaluation.expected[policy] < _enough(estimate.n):
        promised, there = (_effective(x) for x in (evaluation.expected[policy], estimate.ess))
        why = (
            f"the logged probabilities promise {promised} effective rows of {estimate.n:,}. In these there are "
            f"{there}, as rare arms did not come: what is seen looks surer than it is. Judge a policy closer to the "
            "one that ran, or log more."
        )
    if why or gap is None:
        return "unsupported", f"not supported by this log: {why}"
    low, high = gap.interval
    if not np.isfinite([gap.value, low, high]).all():
        return "unclear", f"{APART}: {_endless(evaluation, estimate)}."
    rare = [] if estimate.method == "dm" else [who for who in (policy, LOGGING) if who in evaluation.events]
    if not all(evaluation.events[who].held for who in rare):
        return "unclear", f"{APART}: {_rare(evaluation, rare)}."
    least = rounding * _size(evaluation.logging)
    excludes = low > 0 or high < 0
    if not rare and (max(-low, high) <= least or (excludes and abs(gap.value) <= least)):
        return "same", f"the same as what ran, to the rounding of this log (by {by})."
    size = f"{number(abs(gap.value), high - low)} {_ends(gap)}"
    if low > 0:
        return "better", f"better than what ran: {size} more reward a decision (by {by})."
    if high < 0:
        return "worse", f"worse than what ran: {size} less reward a decision (by {by})."
    why = _rare(evaluation, rare) if rare else _wanted(gap)
    if evaluation.unknown:
        why = f"{evaluation.unknown:,} rewards are missing, and what they were can turn it"
    gain = f"{number(gap.value, high - low)} {interval(gap.interval)} reward a decision (by {by})"
    return "unclear", f"{APART}: {gain}; {why}."


def unsupported(e: Estimate, *, has_P: bool, certain: float, rounding: float = 0.0) -> str:
    """Why the log cannot tell the value of a policy; "" if it can. rounding : how far weights may be off.

    The number of effective rows is judged before the mean weight: with few such rows, an unseen heavy weight is common.
    """
    if e.method == "dm":
        return ""
    if certain > SHARE:
        return f"{certain:.2g} of what it would show is on arms that the log could not show, {NOWHERE}"
    if e.weight_max == 0:
        return "no row of the log shows what the policy would: all weights are 0."
    if e.ess < _enough(e.n):
        return (
            f"only {_effective(e.ess)} of {e.n:,} rows, as it were, carry the estimate (effective sample size; "
            f"largest weight {e.weight_max:.3g}). Judge a policy closer to the one that ran, or log more."
        )
    if abs(e.weight_mean - 1) <= rounding:
        return ""
    mean = _apart(e.weight_mean)
    if diagnostics.thin(e, has_P=has_P):
        return (
            f"the mean weight is {mean}, not 1: about {1 - e.weight_mean:.2g} of what it would show is on arms "
            f"that the log could not show, or shows too rarely, {NOWHERE}"
        )
    if e.weight_test < diagnostics.DOUBT:
        return (
            f"the weights average {mean} and not 1, so the logged propensities, or the "
            "probabilities of the policy, are not what they are said to be. Check both."
        )
    if diagnostics.uneven(e):
        return (
            f"all weights are {mean} and not 1, so no row shows what the policy would show "
            f"{'less' if e.weight_mean > 1 else 'more'} often. Log more, or check the propensities."
        )
    return ""


def _enough(n: int) -> float:
    """So many effective rows are needed."""
    return diagnostics.FEW if n >= diagnostics.FEW else diagnostics.SMALL * n


def notes(evaluation: EvaluationNumbers) -> list[str]:
    """What a reader must know besides: kinds of propensities, warnings, how intervals were made."""
    texts, how, events = [worth.AS_THEY_CAME] * evaluation.valued, evaluation.how, evaluation.events
    kinds = evaluation.kinds[LOGGING]
    if kinds != {"exact"}:
        listed = errors.listed(sorted(kinds))
        texts.append(f"The logged propensities are {listed}; Monte Carlo errors widen the intervals.")
    if "estimated" in kinds:
        texts.append("The intervals take estimated propensities as known: what that hides is not in them.")
    drawn = [policy for policy in evaluation.policies if "monte_carlo" in evaluation.kinds[policy]]
    if drawn:
        listed = errors.listed(drawn)
        texts.append(f"The probabilities of {listed} are Monte Carlo: unbiased, and their error is in the intervals.")
    texts += [_own_weights(evaluation), *_learnt(evaluation)]
    if evaluation.unknown:
        missing = f"{evaluation.unknown:,} rewards are missing"
        texts.append(f"{missing}: the intervals hold whatever they were in the range that was given.")
    texts += [] if evaluation.timed is None else evaluation.timed.notes()
    if len(evaluation.periods) > 1:
        texts += [_moved(evaluation, policy) for policy in evaluation.policies]
    texts += [f"{policy}: {LEARNT}." for policy in evaluation.saved]
    for policy in evaluation.policies:
        texts += [f"{policy}: {text}." for text in _complaints(evaluation, policy)]
    if how.interval == "bootstrap":
        many, rows = evaluation.blocks
        units = f"{many:,} blocks of {rows:,} successive rows" if rows > 1 else "rows"
        units = f"{evaluation.clusters:,} clusters" if evaluation.clusters else units
        texts.append(f"The bootstrap draws {how.resamples:,} times, {units}.")
    elif evaluation.clusters:
        texts.append(f"The intervals allow for dependence within {evaluation.clusters:,} clusters.")
    if events:
        held = all(one.held for one in events.values())
        texts.append(
            f"Few rewards differ from the others for {errors.listed([named(who) for who in events])}: their intervals "
            f"are widened to hold for events that these rows do not show"
            + ("." if held else ", where --reward-range says what can come.")
        )
    came, gone = events.get(LOGGING), evaluation.report.left_out.get("no reward came", 0)
    if gone and came is not None and len(came.tally.values) == 1:
        texts.append(only(gone, evaluation.report.used, came.tally.values[0], cure="--missing 0"))
    count = len(evaluation.policies)
    if count > 1 and how.level < 1:
        texts.append(
            f"{count} policies are judged, each by its own {how.level:.0%} interval: about "
            f"{count * (1 - how.level):.2g} of them are called better or worse by chance alone, and the best of them "
            "looks better than it is."
        )
    if how.interval in ("bernstein", "betting"):
        texts.append(f"Paired differences have normal intervals; those of the values are {how.interval}.")
    return texts


def _complaints(evaluation: EvaluationNumbers, policy: str) -> list[str]:
    """What `dither.ope` would warn of, without what the verdict already says."""
    estimate = evaluation.estimates[policy, evaluation.estimators[0]]
    has_P, certain = evaluation.has_P[policy], evaluation.certain[policy]
    complaints = diagnostics.complaints(estimate, has_P=has_P, certain=certain)
    return [text.replace(", with mask=", "") for category, text in complaints if category is not SupportWarning]


def _own_weights(evaluation: EvaluationNumbers) -> str:
    """The logging policy evaluated by itself."""
    bad = [f for f in evaluation.report.findings if f.kind == "weights"]
    if bad:
        return "The logging policy's own weights are not all 1: " + "; ".join(map(str, bad))
    if not evaluation.checked:
        return "Not checkable: the logging policy's own weights, as no exact probabilities of all arms are logged."
    return f"The logging policy's own weights are 1 in all {evaluation.checked:,} rows that can be checked."


def _learnt(evaluation: EvaluationNumbers) -> list[str]:
    """What holds on the log of a policy that learnt, where the log says that it did."""
    ran, how, by = evaluation.ran.learnt, evaluation.how.interval, evaluation.estimators
    past = any(NamedEstimator.parse(name).rule.reads == "past" for name in by)
    if not ran.value or (evaluation.beside is None and (how in BOUNDED or (past and how == "asymptotic"))):
        return []
    says = f"The policy that ran {ran.words}"
    if evaluation.beside is not None and evaluation.how.reward_range is not None:
        low, high = evaluation.how.reward_range
        others = errors.listed([name for name in by if name != "ips"])
        return [
            f"{says}. So ips has {how} intervals, for rewards from {low:g} to {high:g}, and so have its differences: "
            f"they hold for a policy that was shown less and less. The {evaluation.beside} ones of {others} beside "
            "them are narrower, and cover too rarely there."
        ]
    cures = ["--estimator ips --interval anytime --reward-range LOW HIGH"]
    if evaluation.checked:
        cures.append("(narrower, a limit of many rows) --estimator stablevar --interval asymptotic")
    return [
        f"{says}. On such a log {how} intervals cover too rarely for a policy that it showed less and less: take "
        f"{' or '.join(cures)}."
    ]


def _moved(evaluation: EvaluationNumbers, policy: str) -> str:
    """Whether the value of a policy is the same in all periods."""
    by, count = evaluation.estimators[0], len(evaluation.periods)
    p = evaluation.changed(policy, by)
    if math.isnan(p):
        return f"{policy}: these rows cannot say whether its value is the same in the {count} periods."
    word = "is not the same in" if p < PERIODS else "may be the same in"
    return f"{policy}: the value {word} all {count} periods (P = {p:.2g} by {by})."


def estimate(e: Estimate) -> str:
    """A value with its interval."""
    return f"{number(e.value, e.interval[1] - e.interval[0])} {interval(e.interval)}"


def difference(gap: Difference | None) -> str:
    """A difference with its interval, signed."""
    if gap is None:
        return "–"
    width = gap.interval[1] - gap.interval[0]
    return f"{number(gap.value, width, signed=True)} {interval(gap.interval, signed=True)}"


def by(evaluation: EvaluationNumbers, name: str, e: Estimate) -> str:
    """The name of an estimator, with the kind of its interval where that is not the one of the verdict."""
    kind = e.interval_method.partition(",")[0]
    return name if kind == evaluation.how.interval else f"{name}, {kind}"


def interval(ends: tuple[float, float], *, signed: bool = False) -> str:
    """[low, high], with as many digits as its width justifies."""
    low, high = (number(end, ends[1] - ends[0], signed=signed) for end in ends)
    return f"[{low}, {high}]"


def number(x: float, width: float | None = None, *, signed: bool = False) -> str:
    """x with digits to a thousandth of `width`, or with four digits; a dash for NaN."""
    digits = None
    if width is not None and 0 < width < math.inf:
        digits = min(max(0, 2 - math.floor(math.log10(width))), 12)
    return errors.number(x, digits, signed=signed)


def named(policy: str) -> str:
    """How a policy is called in tables, picture and page."""
    return RAN if policy == LOGGING else policy


def _off(e: Estimate) -> float:
    """How far the weights are from 1: (mean of (w - 1)²)^½."""
    return math.hypot(e.weight_sd, e.weight_mean - 1)


def _size(e: Estimate) -> float:
    """The size of the rewards, (mean r²)^½, if rows are independent."""
    spread = e.se * math.sqrt(e.n)
    return math.hypot(e.value, spread if math.isfinite(spread) else 0.0)


def _endless(evaluation: EvaluationNumbers, estimate: Estimate) -> str:
    """Why a difference has no interval."""
    if estimate.n == 1:
        return "one row alone has no interval"
    if evaluation.clusters == 1:
        return "one cluster alone has no interval"
    if not math.isfinite(estimate.value):
        return "the estimate has no value in these rows"
    return f"{evaluation.how.interval} gives no interval for {estimate.n:,} rows"


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
    return f"about {rounded_up(rows):,} rows would be needed for an interval half as wide as the difference"


def rounded_up(rows: float) -> int:
    """Rounded up to two digits."""
    step = 10 ** max(0, math.floor(math.log10(rows)) - 1)
    return math.ceil(rows / step) * step


def _effective(ess: float) -> str:
    return f"{ess:.0f}" if ess >= 10 else f"{ess:.2g}"


def _rare(evaluation: EvaluationNumbers, rare: list[str]) -> str:
    """How few rewards differ, and what the interval assumes of those not seen."""
    event = evaluation.events[rare[0]]
    tally = event.tally
    common = int(np.argmax(tally.mass))
    rows = sum(tally.shown)
    others = rows - tally.shown[common]
    which = "rewards" if rare[0] == LOGGING else "rewards that it would have had"
    text = f"{'none' if not others else f'only {others:,}'} of the {rows:,} {which} differ{'s' * (others <= 1)} from "
    text += f"{tally.values[common]:g}"
    if not event.held:
        return f"{text}, and nothing says what others there could have been: say it with --reward-range LOW HIGH"
    low, high = intervals.span(tally, evaluation.how.reward_range) or (0.0, 1.0)
    return f"{text}; the interval holds for rewards from {low:g} to {high:g} that these rows do not show"
