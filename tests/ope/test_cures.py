"""Errors of policies that are not known in all rows: what they name as the cure works as it stands."""

import re

import numpy as np
import polars as pl
import pytest

import dither
from dither import log, ope

X = np.eye(3)


def a_ledger(**options):
    return dither.Live(None, bandit=dither.LinFP(dim=3, lam=1.0, seed=0, floor=0.5), **options)


def test_an_arm_that_was_not_always_on_offer():
    with a_ledger(budgets={"mail": dither.Budget(20)}) as live:
        for i in range(120):
            live.reward(live.choose(X, arms=["none", "mail", "call"]).id, float(i % 3 == 0))
        seen = live.read()
    assert 0 < sum("mail" in ids for ids in seen.arm_ids()) < 120
    with pytest.raises(ValueError, match="arm 'mail' was not on offer in row") as refused:
        ope.evaluate(seen, ["arm:mail"], ["ips"], interval="normal")
    cure = re.search(r"log\.frame\.with_columns\(.*\)$", str(refused.value))
    assert cure is not None  # seen red: no cure
    frame = eval(cure[0].replace("ANOTHER", "none"), {"log": seen, "pl": pl})
    got = ope.evaluate(log.read(frame), ["column:Q"], ["ips"], interval="normal").estimates["Q", "ips"].value
    shown = [ids[a] == ("mail" if "mail" in ids else "none") for ids, a in zip(seen.arm_ids(), seen.a, strict=True)]
    assert got == pytest.approx(np.mean(seen.r * shown / seen.p), rel=1e-12)


def test_rows_from_before_a_shadow():
    with a_ledger() as live:
        for i in range(60):
            if i == 20:
                live.replace_shadow(dither.Softmax(dim=3, lam=1.0, temperature=0.2))
            live.reward(live.choose(X).id, float(i % 2))
        seen = live.read()
    assert np.isnan(seen.matrix("judged")).any(axis=1).tolist() == [True] * 20 + [False] * 40
    ways = (
        lambda rows: ope.snips(rows.r, rows.a, rows.p, rows.matrix("judged")),
        lambda rows: ope.evaluate(rows, ["column:judged"], ["snips"], interval="normal"),
    )
    for way in ways:
        with pytest.raises(ValueError, match="20 such rows of 60") as refused:
            way(seen)
        cure = re.search(r"seen = (seen\.filter\(.*axis=1\)\))", str(refused.value))
        assert cure is not None  # seen red: no cure
        rest = eval(cure[1], {"seen": seen, "np": np})
        assert len(rest) == 40
        way(rest)
    with pytest.raises(ValueError, match="mend the log"):  # other faults have the cure that they had
        ope.snips(seen.r, seen.a, seen.p, np.full((60, 3), 0.5))
