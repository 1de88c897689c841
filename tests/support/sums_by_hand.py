"""What a ledger adds up to by day and arm: row by row of what `read` gives, and of the table of rewards."""

import math
from collections import defaultdict
from dataclasses import asdict

import numpy as np
import sqlalchemy as sa
from numpy.testing import assert_allclose

from dither.log import arm_days
from dither.log.database import sql_tables

STANDINGS = {"defaults": "default", "corrections": "correction", "conflicts": "conflict", "late": "late"}
WITH_REWARD = ("rewarded_weight", "rewarded_weight_squared", "weighted_reward", "squared_weighted_reward")


def by_hand(ledger, *, hours=False):
    """(day, arm) -> name -> count, or list of what is summed; hours : (begin of the hour, None) -> the same."""
    rows = defaultdict(lambda: defaultdict(list))
    if not len(ledger):
        return rows
    frame = ledger.read(rewards="sum" if ledger.rewards == "list" else None).frame
    events, deadlines = defaultdict(list), {}
    with ledger.database.reading() as connection:
        d, e = sql_tables.decisions.c, sql_tables.rewards.c
        deadlines = {row.id: row.deadline for row in connection.execute(sa.select(d.id, d.deadline))}
        both = sa.select(d.id, e.part, e.reward, e.standing).join_from(sql_tables.rewards, sql_tables.decisions)
        for row in connection.execute(both.order_by(e.seq)):
            events[row.id].append(row)
    for row in frame.iter_rows(named=True):
        names = row["arms"] or [str(k) for k in range(row["K"])]
        day, arm = row["time"].date(), names[row["arm"]]
        if hours:
            day, arm = row["time"].replace(minute=0, second=0, microsecond=0), None
        cell = rows[day, arm]
        cell["decisions"].append(1)
        if row.get("was_erased"):
            cell["erased"].append(1)
            continue
        there = [one for one in events[row["id"]] if one.reward is not None]
        for name, standing in dict(
            defaults="default", corrections="correction", conflicts="conflict", late="late"
        ).items():
            cell[name] += [1 for one in there if one.standing == standing]
        complete = row["rewards"] > 0
        if ledger.parts:
            complete = any(one.standing == "whole" for one in there)
        cell["waiting"] += [1] * (deadlines[row["id"]] is None and not complete)
        r, p, P = row["reward"], row["propensity"], row["probabilities"]
        cell["floor"].append(row["floor"] or 0.0)
        if r is not None:
            cell["rewarded"].append(1)
            cell["reward"].append(r)
            cell["reward_squared"].append(r**2)
        if P is None and row["floor"] == 1:
            P = [1 / row["K"]] * row["K"]
        if P is None and p == 1:
            P = [float(k == row["arm"]) for k in range(row["K"])]
        best = row["m"] or P
        if best is not None and len(set(best)) > 1:
            cell["told"].append(1)
            cell["explored"] += [1] * (best[row["arm"]] < max(best))
        if row["propensity_kind"] == "none":
            continue
        w = 1 / p
        cell["usable"].append(1)
        for name, value in {"propensity": p, "weight": w, "weight_squared": w**2}.items():
            cell[name].append(value)
        if r is not None:
            for name, value in zip(WITH_REWARD, (w, w**2, w * r, w**2 * r), strict=True):
                cell[name].append(value)
            cell["weighted_reward_squared"].append((w * r) ** 2)
        for k, name in enumerate(() if hours else names):
            other = rows[day, name]
            other["offered"].append(1)
            if P is not None:
                other["stated"].append(1)
                other["stated_shown"] += [1] * (k == row["arm"])
                other["expected"].append(P[k])
                other["expected_variance"].append(P[k] * (1 - P[k]))
    return rows


def same(days, wanted):
    """Assert that these are the rows: counts are equal, and sums to 1e-12 of what they are sums of."""
    assert [(row.day, row.arm) for row in days.rows] == sorted(wanted)
    for row in days.rows:
        cell, seen = wanted[row.day, row.arm], asdict(row)
        assert {name: seen[name] for name in arm_days.COUNTS} == {name: len(cell[name]) for name in arm_days.COUNTS}
        for name in arm_days.SUMS:
            scale = max(1.0, float(np.sum(np.abs(cell[name]))))
            assert_allclose(seen[name] / scale, math.fsum(cell[name]) / scale, rtol=0, atol=1e-12, err_msg=name)
