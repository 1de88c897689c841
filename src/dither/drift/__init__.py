"""An alarm for the mean of a stream."""

from dither.drift.alarm import LAWS, SIDES, Alarm

__all__ = ["LAWS", "SIDES", "Alarm"]
