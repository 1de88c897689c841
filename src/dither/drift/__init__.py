"""Alarms for the mean of a stream, and for the residuals of a model."""

from dither.drift.alarm import LAWS, SIDES, Alarm
from dither.drift.residuals import Change, ResidualAlarm

__all__ = ["LAWS", "SIDES", "Alarm", "Change", "ResidualAlarm"]
