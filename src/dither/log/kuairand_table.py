"""KuaiRand (Gao et al. 2022): videos of which some were replaced by a video that was drawn uniformly from a pool.

log_random_*.csv        user_id, video_id, date, hourmin, time_ms, is_click, is_like, ..., long_view, is_rand, tab

Where is_rand is 1, the video was drawn from the pool of 7,583 videos, so its propensity is 1/7583. Where it is 0, the
recommender chose by a policy that the data do not tell.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dither.base import errors
from dither.base.errors import Option, Refused
from dither.log import check, foreign, lines, reader, schema
from dither.log.logged import Logged

POOL = 7583  # videos that could be drawn, in all three sizes of the data
NAMES = ("video_id", "user_id")
FLAGS = ("is_", "long_view")  # how the names of signals begin that are 0 or 1
STANDARD = "is_rand is 0: the recommender chose"


def kuairand(frame: Any, *, signal: str = "is_click", arms: int = POOL, standard: str = "error") -> Logged:
    """A log of the rows of KuaiRand that were drawn at random: video_id is the arm, its propensity 1/arms.

    frame : a path of a file, or a frame
    signal : the column of the reward: is_click, is_like, long_view, play_time_ms, ... Signals that say whether
        something happened (is_* and long_view) must be 0 or 1
    arms : how many videos are in the pool
    standard : rows in which is_rand is 0, of which no propensity is known: "error", or "leave out" (`report` counts)

    The other columns stay (`log.column("user_id")`). Raises as `from_columns` does.
    """
    lines.choice("standard", standard, "error", "leave out")
    errors.at_least("arms", arms, 1)
    pl, where = schema.polars(), reader.words(frame)
    if isinstance(frame, (str, Path)):
        table = reader.scanned(Path(frame), names=NAMES, numbers=[signal, "is_rand"])
    else:
        table = reader.framed(frame)
    table = table.lazy().collect()
    for name in (*NAMES, "time_ms", "is_rand", signal):
        errors.among(f"column of {where}", name, table.columns)
    drawn = table["is_rand"].cast(pl.Float64, strict=False)
    odd = ~drawn.is_in([0.0, 1.0]).fill_null(False)
    if odd.any():
        row = int(odd.arg_max())
        raise ValueError(f"is_rand must be 0 or 1, got {table['is_rand'][row]!r} in row {row} of {where}")
    at_random, n = drawn == 1.0, len(table)
    if standard == "error" and not at_random.all():
        row = int((~at_random).arg_max())
        raise Refused(
            f"{n - at_random.sum():,} of {n:,} rows of {where} were chosen by the recommender, by probabilities that "
            f"the data do not tell (is_rand is 0), such as row {row}: read log_random_*.csv, or pass ",
            Option("standard", "leave out"),
        )
    table = table.filter(at_random)
    if not len(table):
        raise ValueError(f"{where} holds no rows with is_rand 1: read log_random_*.csv")
    columns = {"arm": "video_id", "reward": signal, "propensity": "propensity", "time": "time_ms"}
    read = foreign.from_columns(table.with_columns(propensity=1 / arms), arms=arms, **columns)
    if signal.startswith(FLAGS):
        foreign.happened(read.r, name=signal, rows=np.flatnonzero(at_random), where=where)
    left_out = {STANDARD: n - len(table)} if len(table) < n else {}
    return replace(read, report=check.Report(n, len(table), left_out)) if left_out else read
