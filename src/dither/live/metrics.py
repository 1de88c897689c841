"""A `Status` as metrics of Prometheus, by prometheus-client.

Counters are what never falls. What an erasure or a correction takes back is a gauge.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dither.base import errors
from dither.log import ArmDay

if TYPE_CHECKING:
    from dither.live.status import Status

ARMS = 1000  # the most shown arms have a label of their own
_BY_ARM = {  # name of a gauge -> the property of an arm, and its help
    "dither_rewarded_decisions": ("rewarded", "Decisions that have a reward"),
    "dither_reward_sum": ("reward", "Sum of the rewards that count"),
    "dither_offered_decisions": ("offered", "Decisions with the arm on offer"),
    "dither_arm_drawn_ratio": ("stated_share", "Share of the decisions with stated probabilities that showed the arm"),
    "dither_arm_stated_ratio": ("stated_mean", "Mean of the probability that was stated for the arm"),
    "dither_arm_stated_error_ratio": ("stated_se", "Standard error of drawn around stated"),
    "dither_arm_weight_ratio": ("mean_weight", "Mean of 1/p over the decisions with the arm on offer: about 1"),
    "dither_arm_effective_rows": ("effective_rows", "Rows of showing the arm alone that the log is worth"),
}


_COUNTED = {  # name of a counter -> its label, the property of a status, and its help
    "dither_unknown_values": ("field", "unknown", "Values that features did not know"),
    "dither_misspelt_fields": ("field", "misspelt", "Fields that came under nearly their names"),
    "dither_troubles": ("what", "failures", "What failed beside calls that were answered"),
}


class StatusCollector:
    """Gives the metrics of one status to a registry."""

    def __init__(self, seen: "Status") -> None:
        self._seen = seen
        self._core = errors.imported("prometheus_client.core", "prometheus-client", extra="serve")

    def collect(self) -> Iterator[Any]:
        """The metrics."""
        seen, total = self._seen, self._seen.days.total()
        arms = sorted(seen.days.by_arm(), key=lambda one: (-one.decisions, one.arm or ""))[:ARMS]
        shown = self._core.CounterMetricFamily(
            "dither_decisions", "Decisions, by the arm that was shown", labels=["arm"]
        )
        for one in arms:
            shown.add_metric([one.arm or ""], one.decisions)
        yield shown
        yield self._core.CounterMetricFamily("dither_erased_decisions", "Decisions that were erased", total.erased)
        yield self._core.CounterMetricFamily("dither_batches", "Batches that were learnt", seen.learning.batches)
        yield self._core.CounterMetricFamily("dither_refused_rewards", "Rewards that the model refused", seen.refused)
        for name, (label, field, words) in _COUNTED.items():
            family = self._core.CounterMetricFamily(name, words, labels=[label])
            for one, n in getattr(seen, field).items():
                family.add_metric([one], n)
            yield family
        for name, (field, words) in _BY_ARM.items():
            yield self._by_arm(name, words, [(one, getattr(one, field)) for one in arms])
        for name, (words, value) in _single(seen, total).items():
            if value is not None and not math.isnan(value):
                yield self._core.GaugeMetricFamily(name, words, value)
        yield from self._labelled()

    def _by_arm(self, name: str, words: str, values: list[tuple[ArmDay, float]]) -> Any:
        family = self._core.GaugeMetricFamily(name, words, labels=["arm"])
        for one, value in values:
            if not math.isnan(value):
                family.add_metric([one.arm or ""], value)
        return family

    def _labelled(self) -> Iterator[Any]:
        """Budgets, and the troubles that stand."""
        seen = self._seen
        for name, field in (("dither_budget_spent", "spent"), ("dither_budget_limit", "most")):
            family = self._core.GaugeMetricFamily(name, "Budgets, in the period of now", labels=["arm", "period"])
            for one in seen.budgets:
                family.add_metric([one.arm, str(one.period or "ever")], getattr(one, field))
            yield family
        began = self._core.GaugeMetricFamily(
            "dither_trouble_begin_timestamp_seconds",
            "When a trouble that stands began",
            labels=["what", "process"],
        )
        first: dict[tuple[str, str], float] = {}  # a process may have the ledger open twice
        for trouble in seen.troubles:
            if trouble.ended is None:
                place = trouble.what, trouble.host
                first[place] = min(trouble.first.timestamp(), first.get(place, math.inf))
        for place, time in first.items():
            began.add_metric(place, time)
        yield began


def _single(seen: "Status", total: ArmDay) -> dict[str, tuple[str, float | None]]:
    """Gauges without labels: name -> help and value; None: it is not known."""
    learning = seen.learning
    return {
        "dither_up": ("Whether the ledger could be read", 1.0),
        "dither_warnings": ("What somebody should look at", len(seen.warnings)),
        "dither_pending_decisions": ("Decisions that wait for their reward", seen.pending),
        "dither_overdue_decisions": ("Decisions past their horizon that are not closed", seen.overdue),
        "dither_conflicting_rewards": ("Rewards that are kept and never count, as another one did", total.conflicts),
        "dither_late_rewards": ("Rewards that came after the horizon", total.late),
        "dither_corrected_rewards": ("Rewards that were put in the place of others", total.corrections),
        "dither_default_rewards": ("Decisions whose reward is the default", total.defaults),
        "dither_waiting_rewards": ("Rewards that are not learnt yet", learning.waiting),
        "dither_learning_lag_seconds": ("Age of the first reward that is not learnt yet", learning.lag),
        "dither_snapshot_lag_batches": ("Batches that no snapshot has", learning.behind),
        "dither_lease_expiry_timestamp_seconds": (
            "When the lease of the learner ends",
            None if learning.expires is None else learning.expires.timestamp(),
        ),
        "dither_last_decision_timestamp_seconds": (
            "Time of the newest decision",
            None if seen.latest is None else seen.latest.timestamp(),
        ),
        "dither_watched_rewards": ("Rewards that the alarm has seen", seen.watched),
        "dither_alarms": ("Alarms so far", None if seen.watched is None else len(seen.alarms)),
        "dither_last_alarm_timestamp_seconds": (
            "Time of the decision whose reward gave the last alarm",
            seen.alarms[-1].time.timestamp() if seen.alarms else None,
        ),
        "dither_propensity_ratio": ("Mean probability of what was shown", total.mean_propensity),
        "dither_floor_ratio": ("Mean share of uniform choices", total.mean_floor),
        "dither_exploration_ratio": ("Share of the decisions that did not show the best arm", total.exploration),
        "dither_standing_troubles": (
            "Troubles that stand, in all processes",
            sum(one.ended is None for one in seen.troubles),
        ),
    }


def text(seen: "Status") -> str:
    """The metrics in the text format of Prometheus."""
    client = errors.imported("prometheus_client", "prometheus-client", extra="serve")
    registry = client.CollectorRegistry()
    registry.register(StatusCollector(seen))
    return str(client.generate_latest(registry).decode())
