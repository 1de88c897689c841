"""The version, the one copy of it."""

__version__ = "0.1.0"
