"""Encoding as ratios to a step, measured side by side in one process: `make bench`.

    step         choose + update of one LinFP, K = 50, d = 32
    plain step   the same as one would write it in NumPy (`speed.py`): no checks, no propensity
    dicts        encode 100 arms that are dicts of 20 categories (target: at most 20 steps)
    known        encode a request for 50 known arms of a catalogue, d = 32, 4 fields of context (target: at most 1 step)

Beside them: scikit-learn's FeatureHasher and DictVectorizer on the same dicts, and a loop over cells as one would write
it first.
"""

import numpy as np
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from speed import OurStep, PlainStep, side_by_side

import dither
from dither.features import Hashed, Numeric

REPEATS = 15


def wide(kind):
    return dither.Features(arm={f"f{j}": kind for j in range(20)})


def dict_arms(values: list[str]) -> list[dict[str, str]]:
    rng = np.random.default_rng(0)
    return [{f"f{j}": values[rng.integers(len(values))] for j in range(20)} for _ in range(100)]


def by_cells(arms: list[dict[str, str]], values: list[str]) -> np.ndarray:
    """One-hot, one cell at a time."""
    X = np.zeros((len(arms), 1 + 20 * len(values)))
    for i, arm in enumerate(arms):
        X[i, 0] = 1.0
        for j in range(20):
            X[i, 1 + j * len(values) + values.index(arm[f"f{j}"])] = 1.0
    return X


def shop() -> dither.Catalogue:
    """50 arms of 3 fields; d = 32 with an intercept, main effects and two crosses."""
    f = dither.Features(
        context={"age": Numeric(40, 10), "country": ["a", "b", "c", "d"], "hour": Numeric(12, 6), "device": ["x", "y"]},
        arm={"price": Numeric(5, 2), "topic": ["n", "s", "o"], "brand": ["p", "q"]},
        cross=[("country", "topic"), ("age", "price"), ("hour", "topic"), ("device", "price")],
        intercept=False,
    )
    assert f.dim == 32
    rng = np.random.default_rng(1)
    arms = {
        f"a{k}": {"price": rng.uniform(1, 9), "topic": "nso"[rng.integers(3)], "brand": "pq"[rng.integers(2)]}
        for k in range(50)
    }
    return dither.Catalogue(f, arms)


def main() -> None:
    X = np.random.default_rng(2).standard_normal((50, 32))
    ours, plain = OurStep(32), PlainStep(32)
    steps = {
        "step": lambda: [ours(X, 0.5) for _ in range(200)],
        "plain step": lambda: [plain(X, 0.5) for _ in range(200)],
    }
    values = [f"v{i}" for i in range(10)]
    arms, many = dict_arms(values), dict_arms([f"v{i}" for i in range(5000)])
    one_hot, hashed = wide(values), wide(Hashed(16))
    known, context = shop(), {"age": 33, "country": "b", "hour": 20, "device": "y"}
    some = list(known.ids)[:20]
    hasher = FeatureHasher(321, input_type="dict")
    vectoriser = DictVectorizer(sparse=False).fit(arms)
    np.testing.assert_array_equal(by_cells(arms, values), one_hot.encode(None, arms))
    calls = {
        "dicts: one-hot, d = 201": lambda: one_hot.encode(None, arms),
        "dicts: hashed, d = 321": lambda: hashed.encode(None, many),
        "dicts: a loop over cells": lambda: by_cells(arms, values),
        "dicts: DictVectorizer": lambda: vectoriser.transform(arms),
        "dicts: FeatureHasher, dense": lambda: hasher.transform(many).toarray(),
        "known: all 50 arms": lambda: known.encode(context),
        "known: 20 ids of them": lambda: known.encode(context, some),
        "known: as 50 dicts": lambda: known.features.encode(context, list(known.records.values())),
        "known: 100 contexts, 50 arms": lambda: known.encode([context] * 100),
    }
    for name, call in calls.items():
        told = []
        for step, loop in steps.items():
            mine, theirs, ratio = side_by_side(lambda call=call: [call() for _ in range(200)], loop, repeats=REPEATS)
            told.append(f"{ratio:6.2f} {step}s of {theirs * 5e3:.0f} µs")
        print(f"{name:30} {mine * 5e3:6.0f} µs: {', '.join(told)}", flush=True)


if __name__ == "__main__":
    main()
