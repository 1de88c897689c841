"""Sums by day and arm are those of the rows that `read` gives, added up by hand."""

import numpy as np
import pytest

from dither import log
from dither.bandit.bandit import Decision
from ledgers import features
from sums_by_hand import by_hand, same

DAYS = ("2026-03-01T23:59:59.999999", "2026-03-02T00:00:00", "1969-12-31T23:59:59")


def filled(home, **terms):
    """A ledger with rows of every kind."""
    ledger, rng = log.Ledger(home, **terms), np.random.default_rng(0)
    for n in range(40):
        K = 1 + n % 4
        arm, floor = int(rng.integers(K)), [None, 0.2, 1.0][n % 3]
        P = rng.dirichlet(np.ones(K))
        p = 1 / K if floor == 1 else 1.0 if n % 5 == 0 else float(P[arm])
        kind = "none" if n % 11 == 10 else "exact"
        ledger.record(
            Decision(arm, p if kind == "exact" else float("nan"), kind, None, None),
            X=features(n, K=K),
            id=n,
            time=DAYS[n % 3],
            arms=None if n % 4 == 0 else [f"a{k}" for k in rng.permutation(6)[:K]],
            probabilities=P if n % 2 and p == float(P[arm]) else None,
            floor=floor,
            extra={"user": n % 7},
        )
    for n in range(0, 40, 2):
        ledger.reward(n, float(rng.normal()), DAYS[1])
    ledger.reward(2, 7.0)  # a conflict
    return ledger


@pytest.mark.parametrize("rule", ["sum", "last", "list"])
def test_sums_are_those_of_the_rows(home, rule):
    ledger = filled(home, rewards=rule)
    ledger.correct(4, 2.5)
    for part, r, at in (("x", 1.0, DAYS[1]), ("y", 2.0, DAYS[0]), ("z", 3.0, DAYS[1])):
        ledger.reward(1, r, at, part=part)
    same(ledger.days(), by_hand(ledger))
    assert ledger.erase(user=3) > 0
    same(ledger.days(), by_hand(ledger))
    total = ledger.days().total()
    assert (total.decisions, total.erased, total.conflicts, total.corrections) == (40, 6, 1, 1)
    ledger.close()
