"""The alarm of a ledger: what its rewards differ from what was predicted before they were learnt (`drift.residuals`).

It is a part of what was learnt (`taught`), and like it a function of the ledger: it sees the rewards in the batches in
which they are learnt, stands in each snapshot, goes back with corrections and rollbacks, and a replay gives the same.
The settings are in the ledger. They hold from the batch after which they were passed, in all processes.
"""

import json
import logging
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from dither import links
from dither.bandit.bandit import Bandit
from dither.drift.residuals import Change, ResidualAlarm, WatchedResiduals
from dither.log import record
from dither.log.database import keeping, lessons
from dither.models import adapting, model

ALARM = "alarm"  # the setting that holds it
_log = logging.getLogger("dither.live")


class AlarmFacts(NamedTuple):
    """The alarm as the ledger has it."""

    number: int = 0  # grows with every one that is passed
    settings: ResidualAlarm | None = None  # None: nothing is watched
    after: int = 0  # the batch after which it watches


@dataclass(frozen=True)
class LiveAlarm:
    """The rewards are not any more what the bandit predicts."""

    time: datetime  # of the decision whose reward gave the alarm
    batch: int  # in which this reward was learnt
    began: datetime  # time of the decision from which on it was probably so
    began_batch: int
    rewards: int  # how many were watched from there on
    difference: float  # mean of reward - prediction over these, less what it was before

    def __str__(self) -> str:
        how = "above" if self.difference > 0 else "below"
        return (
            f"since {self.began:%Y-%m-%d %H:%M:%S} UTC, for {self.rewards:,} rewards, rewards are "
            f"{abs(self.difference):.3g} {how} what was predicted, so the world has probably changed"
        )


def of(connection: Any) -> AlarmFacts:
    """The alarm of a ledger; number 0 where it never had one."""
    return _facts(keeping.settings(connection).get(ALARM))


def _facts(about: dict[str, Any] | None) -> AlarmFacts:
    if about is None:
        return AlarmFacts()
    settings = None if about["settings"] is None else ResidualAlarm(**about["settings"])
    return AlarmFacts(about["number"], settings, about["after"])


def settle(connection: Any, alarm: bool | ResidualAlarm | None, bandit: Bandit) -> None:
    """Let a ledger have this alarm from the next batch on; None: that which it has, False: none. It locks the lease.

    Raises TypeError for what is none; ValueError for a bandit whose model has no widths.
    """
    if alarm is None:
        return
    if not isinstance(alarm, (bool, ResidualAlarm)):
        raise TypeError(f"alarm must be True, False, None or a dither.drift.ResidualAlarm, got {alarm!r}")
    if alarm:
        _sure(bandit, "watch its residuals by dither.drift.Alarm")
    lessons.hold(connection)
    before, settings = of(connection), (ResidualAlarm() if alarm is True else alarm or None)
    if settings != before.settings:
        described = None if settings is None else asdict(settings)
        about = {"number": before.number + 1, "settings": described, "after": lessons.last(connection)}
        keeping.put(connection, ALARM, about)
        lessons.changed(connection)


def fits(connection: Any, bandit: Bandit) -> None:
    """Raise ValueError where the ledger has an alarm, and this bandit is to act and has no widths."""
    if of(connection).settings is not None:
        _sure(bandit, "end the alarm first, dither.Live(home, alarm=False), or pass a bandit with widths")


def _sure(bandit: Bandit, cure: str) -> None:
    if "width" not in bandit._model.abilities:
        raise ValueError(
            f"alarm= needs a model that knows how sure it is, such as that of LinFP or GLMFP, and {bandit.model!r} has "
            f"no widths: {cure}"
        )


class Watch:
    """What the alarm has seen, after a batch."""

    def __init__(self, facts: AlarmFacts) -> None:
        self.facts, self.seen = facts, WatchedResiduals()

    def see(self, bandit: Bandit, batch: lessons.Batch) -> None:
        """The rewards of a batch that is about to be learnt. The bandit has its slots already."""
        if self.facts.settings is None or batch.number <= self.facts.after or not len(batch.r):
            return
        m, v = _predicted(bandit, batch)
        rows = zip(batch.r.tolist(), m.tolist(), v.tolist(), batch.at.tolist(), strict=True)
        for r, predicted, share, at in rows:
            self.seen.see(self.facts.settings, r, predicted, share, [at, batch.number])

    def held(self) -> str | None:
        """As a snapshot has it; None: nothing is watched."""
        if self.facts.settings is None:
            return None
        return json.dumps({"number": self.facts.number, "seen": self.seen.described()})

    def take(self, text: str | None) -> None:
        """Stand where a snapshot does. One from before the alarm has seen nothing."""
        self.seen = WatchedResiduals()
        if text is not None and (about := json.loads(text))["number"] == self.facts.number:
            self.seen = WatchedResiduals.of_description(about["seen"])

    def lacks(self, batch: int, text: str | None) -> bool:
        """Whether a snapshot of this batch lacks what was seen: an older dither wrote it, which knows no alarm."""
        seen = text is not None and json.loads(text)["number"] == self.facts.number
        return self.facts.settings is not None and batch > self.facts.after and not seen

    @property
    def alarms(self) -> list[LiveAlarm]:
        """Them, the newest last."""
        return raised(self.seen)


def raised(seen: WatchedResiduals) -> list[LiveAlarm]:
    """The alarms of what was seen, the newest last."""
    return [_alarm(one) for one in seen.alarms]


def held_by(settings: dict[str, Any], text: str | None) -> WatchedResiduals | None:
    """What the alarm of a ledger had seen at a snapshot; None: nothing is watched. settings : of the ledger"""
    watch = Watch(_facts(settings.get(ALARM)))
    watch.take(text)
    return None if watch.facts.settings is None else watch.seen


def tell(alarms: list[LiveAlarm]) -> None:
    """A line of the log for each."""
    for alarm in alarms:
        _log.warning("alarm: %s", alarm)


def _alarm(change: Change) -> LiveAlarm:
    (at, batch), (began, began_batch) = change.place, change.began
    return LiveAlarm(_time(at), batch, _time(began), began_batch, change.rewards, change.difference)


def _time(seconds: float) -> datetime:
    return record.EPOCH + timedelta(seconds=seconds)


def _predicted(bandit: Bandit, batch: lessons.Batch) -> tuple[np.ndarray, np.ndarray]:
    """What is predicted for each reward, (n,), and the share of its variance that is the model's own, (n,)."""
    with np.errstate(all="ignore"):
        m, w = bandit.predict(batch.x), bandit.width(batch.x)
        if batch.slots is not None:
            rows = np.arange(len(batch.r))
            m, w = m[rows, batch.slots], w[rows, batch.slots]
        link = model.link(adapting.adapted(bandit.model))
        if link is links.LINKS["identity"]:
            return m, w * w
        if link is links.LINKS["log"]:
            return m, w * w * m
        if link is links.LINKS["logit"]:
            return m, w * w * m * (1 - m)
        slope = np.exp(-(special.ndtri(m) ** 2) / 2) / np.sqrt(2 * np.pi)
        return m, (slope * w) ** 2 / (m * (1 - m))
