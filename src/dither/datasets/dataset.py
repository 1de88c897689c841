"""A data set in memory."""

import hashlib
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Dataset:
    """N rows of d columns and their labels, as published.

    X : (N, d) uint8 (pixels, 0 to 255), int16, float64, or text of one letter (categories, where `?` is missing)
    y : (N,) labels, whole numbers or text
    """

    name: str
    X: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    columns: tuple[str, ...] = field(repr=False)  # d names
    licence: str
    citation: str
    openml: int  # id at openml.org
    url: str  # where the originals are
    origin: str  # where these rows were read from: the folder, or "OpenML ID"
    shape: tuple[int, ...] | None = None  # of the image, where a row is one

    def order(self) -> np.ndarray:
        """Row numbers (N,) in an order that depends on nothing but the rows: by their bytes, then by label."""
        _, codes = np.unique(self.y, return_inverse=True)
        X = np.ascontiguousarray(self.X)
        keys = X.view(np.dtype((np.void, X.dtype.itemsize * X.shape[1])))[:, 0]
        by_label = np.argsort(codes, kind="stable")
        return by_label[np.argsort(keys[by_label], kind="stable")]

    def digest(self) -> str:
        """SHA-256 of all rows and labels. It does not depend on their order, nor on the file that they came in."""
        order = self.order()
        sha = hashlib.sha256(f"{self.X.dtype.str} {self.X.shape}".encode())
        sha.update(np.ascontiguousarray(self.X[order]).tobytes())
        sha.update("\n".join(map(str, self.y[order].tolist())).encode())
        return sha.hexdigest()
