"""A slow ledger in dictionaries, which goes through all events again for every answer; and rows for tests."""

import math
from datetime import UTC, datetime, timedelta

import numpy as np

from dither.bandit.bandit import Decision

COUNTS = ("counted", "default", "correction")


def moment(seconds):
    """A time, so many seconds after the first of March."""
    return datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def decision(arm=0, p=0.5):
    return Decision(arm, p, "exact", None, 0.25)


def features(number, K=2, d=3):
    """Features that no other number has."""
    return (np.arange(K * d, dtype=float).reshape(K, d) + 100 * number) / 8


def within(terms, r):
    """Whether a reward is one that decisions of these terms can have."""
    return terms["reward_range"] is None or terms["reward_range"][0] <= r <= terms["reward_range"][1]


class Slow:
    """What a ledger must say. Times are seconds."""

    def __init__(self, rule="sum", horizon=None, default=None, late="kept", parts=None):
        self.rule, self.parts = rule, parts
        self.terms = {"horizon": horizon, "default": default, "late": late, "reward_range": None}  # those to come
        self.ever = horizon is not None  # whether a decision could have a horizon
        self.decisions = {}  # id -> what is known of it, in order
        self.events = []  # (id, part, reward, time, standing)

    def enter(self, id, time, user, arm):
        self.decisions[id] = {"time": time, "user": user, "arm": arm, "closed": False, "erased": False}
        self.decisions[id] |= self.terms

    def change(self, new):
        """Whether these go together; then they are the terms of the decisions to come."""
        after = self.terms | new
        if after["default"] is not None and (
            after["horizon"] is None or after["late"] == "counts" or not within(after, after["default"])
        ):
            return False
        self.terms, self.ever = after, self.ever or after["horizon"] is not None
        return True

    def outside(self, id, r, part):
        """Whether a reward leaves the range of its decision, and is no retry."""
        if r in self.was(id, part):
            return False
        paid = {e[1]: e[2] for e in self.paid(id) if e[4] != "default"}
        return not within(self.decisions[id], sum((paid | {part: r}).values()) if self.rule == "sum" else r)

    def reward(self, id, r, part, time):
        first = self.was(id, part)
        if first:
            said = "known" if r in first else "conflict"
        elif self.decisions[id]["late"] == "kept" and self.passed(id, time):
            said = "late"
        else:
            said = "counted"
        if said != "known":
            self.events.append((id, part, r, time, said))
        return said

    def passed(self, id, time):
        one = self.decisions[id]
        return one["closed"] or (one["horizon"] is not None and time > one["time"] + one["horizon"])

    def paid(self, id):
        """The events that count, of each part the latest, where it came."""
        events = [e for e in self.events if e[0] == id and e[4] in COUNTS]
        return [e for i, e in enumerate(events) if e[1] not in [later[1] for later in events[i + 1 :]]]

    def was(self, id, part):
        """All rewards that counted for a part, but for a default and its corrections."""
        mine = [e for e in self.events if e[0] == id and e[1] == part and e[4] in COUNTS]
        return [e[2] for e in mine] if mine and mine[0][4] == "counted" else []

    def correct(self, id, r, part, time):
        """'counted' or 'known'; None: there is none to correct."""
        mine = [e for e in self.paid(id) if e[1] == part]
        if not mine:
            return None
        if mine[-1][2] == r:
            return "known"
        self.events.append((id, part, r, time, "correction"))
        return "counted"

    def expire(self, now):
        found = 0
        for id, one in self.decisions.items():
            if one["closed"] or one["horizon"] is None or one["time"] + one["horizon"] > now:
                continue
            one["closed"] = True
            if not self.paid(id) and not one["erased"]:
                found += 1
                if one["default"] is not None:
                    self.events.append((id, None, one["default"], now, "default"))
        return found

    def erase(self, ids):
        found = [id for id in ids if id in self.decisions and not self.decisions[id]["erased"]]
        for id in found:
            self.decisions[id].update(erased=True, user=None)
        return len(found)

    def of_user(self, user):
        return [id for id, one in self.decisions.items() if one["user"] == user and not one["erased"]]

    def pending(self):
        return [id for id, one in self.decisions.items() if not (one["closed"] or one["erased"] or self.complete(id))]

    def complete(self, id):
        """Whether all parts have come, or the horizon has passed; without parts, whether a reward has come."""
        paid = self.paid(id)
        if self.parts is None:
            return bool(paid)
        ended = self.decisions[id]["late"] == "kept" and self.decisions[id]["closed"] and bool(paid)
        return ended or {e[1] for e in paid} >= set(self.parts)

    def learnt(self):
        """What a bandit must have learnt: id -> reward, of decisions that are complete."""
        alone = [id for id, one in self.decisions.items() if not one["erased"] and self.complete(id)]
        if self.parts is None:
            return {id: e[2] for id in alone for e in self.paid(id) if e[1] is None}
        return {id: math.fsum(e[2] for e in self.paid(id)) for id in alone}

    def total(self, id):
        """The reward of a decision by the rule, for "list" a list; None where none counts."""
        paid = [] if self.decisions[id]["erased"] else self.paid(id)
        if not paid:
            return None
        if self.rule == "list":
            return [e[2] for e in paid]
        if self.rule == "sum":
            return sum(e[2] for e in paid)
        return sorted(paid, key=lambda e: e[3])[-1][2]  # of equal times the last, as sorted is stable
