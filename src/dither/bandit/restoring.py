"""Load a bandit from a file, or from bytes that you kept elsewhere. It goes on where it was saved."""

from typing import Any, Literal

import numpy as np

from dither.bandit import saving
from dither.bandit.bandit import COUNTS, SETTINGS, Bandit
from dither.base import errors, streams
from dither.deciding import baseline as baselines
from dither.features import Features


def load(
    path: Any,
    *,
    known: tuple[type, ...] = (),
    model: Any = None,
    seed: int | Literal["saved"] | None = "saved",
    features: Features | None = None,
) -> Bandit:
    """The bandit that `save` wrote. It goes on as if nothing had happened, or with a new seed beside others.

    known : classes of your own that its model or policy is made of
    model : the model again, where a file cannot hold it: a module or an estimator of your own
    seed : "saved": its streams go on to the bit, which is right for one process alone. A copy that decides beside
        others takes None (fresh entropy) or a whole number of its own (`Bandit.reseed`).
    features : the `Features` that are to make X from now on, to be sure that the bandit learnt with the same ones

    Raises FileNotFoundError. Raises ValueError for anything that is not a whole file of this format, for another model
    than the one that was saved, for other `features` than those that were saved, for a class that is not in `known`,
    and for a value that is no seed. Nothing is executed. An error of your own classes, while they are made again, is
    passed on as it is.
    """
    return _loaded(saving.read(path), known, model, seed, features)


def from_bytes(
    data: bytes,
    *,
    known: tuple[type, ...] = (),
    model: Any = None,
    seed: int | Literal["saved"] | None = "saved",
    features: Features | None = None,
) -> Bandit:
    """The bandit that `Bandit.to_bytes` wrote: arguments and errors as for `load`."""
    return _loaded(saving.from_bytes(data), known, model, seed, features)


def _loaded(
    content: saving.Content,
    known: tuple[type, ...],
    model: Any,
    seed: int | Literal["saved"] | None,
    expected: Features | None,
) -> Bandit:
    table = saving.table(known)
    if seed != "saved":
        streams.entropy(seed)  # refused before anything is made

    def build(header: dict[str, Any], content: dict[str, np.ndarray]) -> Bandit:
        again, policy = saving.model_of(header["model"], model, table), saving.unpack(header["policy"], table)
        features = None if header.get("features") is None else Features.of_description(header["features"])
        kept = saving.unpack(header.get("baseline"), table)
        bandit = Bandit.__new__(Bandit)
        bandit._begin(again, policy, features=features, baseline=kept, **{name: header[name] for name in SETTINGS})
        if kept is not None:
            bandit.kept = baselines.restored(content, bandit.dim)
        for name in COUNTS:
            errors.at_least(name, header[name], 0)
            setattr(bandit, name, header[name])
        for name, rng in bandit._streams().items():
            rng.bit_generator.state = saving.unplain(header["streams"][name])
        columns = header["columns"]
        names = columns if isinstance(columns, list) else []
        if columns is not None and (len({c for c in names if isinstance(c, str)}) != bandit.dim or names[bandit.dim :]):
            raise ValueError(f"its columns {columns!r} are not {bandit.dim} names")
        if features is not None and names != list(features.columns):
            raise ValueError("its columns are not those of its features")
        bandit.columns = None if columns is None else tuple(columns)
        bandit._sizes = None  # its first rows were looked at as they came
        bandit.state = saving.filled(bandit.state, content)
        bandit._model.check(bandit.state)
        bandit.state = bandit._model.restored(bandit.state)
        return bandit

    bandit = content.build(build, known=table, of_user=model is not None)
    if expected is not None:
        if bandit.features is None:
            raise ValueError(f"{content.where} holds a bandit without features: leave features= out")
        bandit.features.check(expected, what="features=", whose=f"the bandit in {content.where}")
    if seed != "saved":
        bandit.reseed(seed)
    return bandit
