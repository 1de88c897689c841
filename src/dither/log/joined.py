"""Decisions and reward events joined: one row a decision, with its reward by the rule of the log."""

from pathlib import Path
from typing import Any

from dither.log import parts, schema
from dither.log.ledger import Event


def events(received: list[Event]) -> Any:
    """Events as a frame."""
    pl = schema.polars()
    columns = list(zip(*received, strict=True)) or [()] * len(schema.EVENT)
    types = schema.dtypes(schema.EVENT)
    return pl.DataFrame(
        {name: pl.Series(name, list(c), dtype=types[name]) for name, c in zip(schema.EVENT, columns, strict=True)}
    )


def part(path: Path) -> Any:
    """One part of a log."""
    with parts.readable(path):
        return schema.polars().read_parquet(path)


def join(decisions: Any, received: Any, *, rule: str, first: int = 0) -> Any:
    """The decisions, from number `first` on, with reward, reward_time and rewards (and reward_list for "list").

    Events of other decisions are not looked at; conflicts never count.
    """
    pl = schema.polars()
    counted = received.filter(~pl.col("conflict"))
    by_time = counted.sort("time", maintain_order=True)
    if rule == "last":
        reward = by_time.group_by("decision").agg(pl.col("reward").last())
    elif rule == "sum":
        reward = counted.group_by("decision").agg(pl.col("reward").sum())
    else:
        reward = counted.group_by("decision", maintain_order=True).agg(pl.col("reward").alias("reward_list"))
        reward = reward.with_columns(pl.lit(None, dtype=pl.Float64).alias("reward"))
    facts = counted.group_by("decision").agg(
        pl.col("time").max().alias("reward_time"), pl.len().cast(pl.Int64).alias("rewards")
    )
    numbered = decisions.with_columns((pl.int_range(pl.len(), dtype=pl.Int64) + first).alias("__decision"))
    right = reward.join(facts, on="decision")
    found = numbered.join(right, left_on="__decision", right_on="decision", how="left", maintain_order="left")
    return found.drop("__decision").with_columns(pl.col("rewards").fill_null(0))
