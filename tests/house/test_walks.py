"""How many files a call enters: a reader follows it through no more."""

import importlib.util
from pathlib import Path

import pytest

MOST = {
    "choose, LinFP": 12,
    "update, LinFP": 10,
    "update, GLMFP": 16,
    "Live.choose": 17,
    "Live.choose, budget": 19,
    "Live.reward": 20,
    "evaluate": 16,
    "reproduce": 68,
}


@pytest.fixture(scope="module")
def found():
    path = Path(__file__).parents[2] / "benchmarks" / "walks.py"
    spec = importlib.util.spec_from_file_location("walks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.walks()


@pytest.mark.parametrize("name", MOST)
def test_a_walk_is_no_longer(found, name):
    assert len(found[name]) <= MOST[name], sorted(found[name])
    # seen red: a test of drift that looks into `diagnostics`, 15; `Workers` made where one process computes, 15


def test_the_walk_is_the_whole_walk(found):
    """From the file of a decision to the interval: where one of these is not entered, something else was counted."""
    whole = {"log/storage.py", "log/check.py", "ope/contributions.py", "ope/partial.py", "ope/intervals.py"}
    assert whole <= set(found["evaluate"])
    assert found["evaluate"]["log/storage.py"] >= 10  # the files of the folder are opened
    assert not any(file.startswith(("cli", "dither_bench")) for file in found["evaluate"])
    assert {"dither_bench/show/plots.py", "dither_bench/keep/store.py", "models/ridge.py"} <= set(found["reproduce"])
    assert sum(found["reproduce"].values()) < 26_000  # seen red: sources that are read for each command, 40,000
    # seen red: a log that is in memory already
