"""Data sets as bandits: shuttle, isolet, mushroom, MNIST and Fashion-MNIST, any CSV or Parquet file, any OpenML id.

load("mnist")                  the data as published, from a folder of the original files or from OpenML
environment("mnist", "unit")   a bandit from the data set: `envs.Classification`, scaled as `PREPROCESSING` says
table("my.csv", "label")       a bandit from a table
"""

from dither.datasets.data_sets import SOURCES, Source
from dither.datasets.dataset import Dataset
from dither.datasets.loading import FOLDER, load, located
from dither.datasets.originals import present
from dither.datasets.preprocessing import PREPROCESSING, Pipeline, environment
from dither.datasets.user_tables import fingerprint, table

__all__ = [
    "FOLDER",
    "PREPROCESSING",
    "SOURCES",
    "Dataset",
    "Pipeline",
    "Source",
    "environment",
    "fingerprint",
    "load",
    "located",
    "present",
    "table",
]
