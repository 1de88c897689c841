"""Arms that are called by their positions, counted from 1."""

import dataclasses

from dither.log import schema
from dither.log.logged import Logged


def positions(log: Logged) -> Logged:
    """The log with a catalogue 1, 2, ... in place of lists of ids, where every row lists exactly these.

    A position is then a position for whoever reads the log: `warm_start` teaches slot 0 what came of action 1.
    """
    pl = schema.polars()
    ids, top = log.frame["arms"], int(log.K.max())
    count = pl.int_ranges(1, log.frame["K"] + 1, dtype=pl.Int64, eager=True).cast(schema.dtype("texts"))
    if ids.null_count() or not (ids == count).all():
        return log
    catalogue = tuple(str(i + 1) for i in range(top))
    return dataclasses.replace(log, frame=log.frame.drop("arms"), catalogue=catalogue)
