"""`simulate`: many runs of many algorithms in one environment, in lockstep."""

from dither.simulation.simulate import Results, simulate

__all__ = ["Results", "simulate"]
