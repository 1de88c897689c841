"""What a sweep found, in sentences, with the caution that many were tried."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from dither.base import errors
from dither_bench.judge import words
from dither_bench.judge.choices import BestSetting, SettingsSearch

CAUTION = "The lowest of several looks better than it is: its regret is the one on the fresh runs."

NAMED = 3  # settings at most that a sentence names


def all_of(search: SettingsSearch, winners: pl.DataFrame, *, seed: int) -> list[str]:
    """A sentence or more for each algorithm, and the caution. winners : `tables.values` of the fresh runs."""
    fresh = {row["algorithm"]: row for row in winners.iter_rows(named=True)}
    sentences = [chosen(choice, fresh.get(str(choice.winner)), search.seed, seed) for choice in search.choices]
    sentences += [CAUTION] if any(len(choice.of.specs) > 1 for choice in search.choices) else []
    return [*sentences, *failures(search)]


def chosen(choice: BestSetting, fresh: dict[str, Any] | None, of_search: int, seed: int) -> str:
    """What was chosen of one algorithm. fresh : its row of the fresh runs; of_search, seed : the two seeds."""
    of, winner = choice.of, choice.winner
    tried = words.with_error({"regret": choice.mean, "se": choice.se})
    again = "" if fresh is None else f" On fresh runs (seed {seed}) it has {words.with_error(fresh)}."
    if len(of.specs) == 1:
        return f"{winner}: one setting, so nothing was chosen; {tried} on the runs of the search.{again}"
    text = (
        f"{of.base}: {of.setting(winner)} has the lowest regret of {len(of.specs)} settings tried, {tried} on the runs "
        f"of the search (seed {of_search}).{again}"
    )
    return " ".join([text, *_doubts(choice)])


def failures(search: SettingsSearch) -> Iterator[str]:
    """A sentence for each setting that ended with an error."""
    for name, error in search.failed.items():
        yield f"{name} ended with an error and is left out: {error}"


def _doubts(choice: BestSetting) -> Iterator[str]:
    of = choice.of
    unlike = [spec for spec in choice.alike if spec not in choice.equal]
    if choice.equal:
        same = errors.listed([of.setting(spec) for spec in choice.equal])
        yield f"{same} {'has' if len(choice.equal) == 1 else 'have'} the same regret; the first was taken."
    if choice.runs == 1:
        yield words.ONE_RUN
    elif unlike:
        names = errors.listed([of.setting(spec) for spec in unlike])
        if len(unlike) > NAMED:
            names = f"{len(unlike)} of the {len(of.specs) - 1} others"
        yield f"It cannot be told apart from {names} (95 % interval of the paired difference)."
    for name in of.ends(choice.winner):
        end = "smallest" if choice.winner.value(name) == of.values[name][0] else "largest"
        yield f"It has the {end} {name} that was tried: look further there."
