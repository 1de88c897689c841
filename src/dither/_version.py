"""The version of the library. It is written here and nowhere else."""

__version__ = "0.1.0"
