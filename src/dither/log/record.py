"""The rows of decisions: what is recorded of one decision, or of a batch."""

import functools
import hashlib
import os
import time as clock
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither import noise
from dither.bandit.bandit import Bandit, Decision
from dither.base import errors
from dither.deciding import decision as deciding
from dither.deciding import inputs
from dither.log import schema
from dither.log.check import ROUNDING


@dataclass(frozen=True)
class Maker:
    """Makes the rows. The settings are those of `Log`."""

    bandit: Bandit | None
    features: bool
    lines: bool
    probabilities: bool
    arm_set: bool
    constants: Mapping[str, Any]  # columns that are the same in every row

    def __post_init__(self) -> None:
        for name in ("features", "lines", "probabilities", "arm_set"):
            errors.true_or_false(name, getattr(self, name))

    @functools.cached_property
    def _blank(self) -> dict[str, Any]:
        """A row with nothing but the constants."""
        return dict.fromkeys(schema.DECISION) | dict(self.constants)

    @property
    def names(self) -> list[str] | None:
        """The names of the features that are logged, where the bandit knows them."""
        return None if self.bandit is None or not self.features else self.bandit._columns

    @property
    def encoded_by(self) -> str | None:
        """The fingerprint of the `Features` that made the features which are logged, where the bandit has them."""
        known = None if self.bandit is None or not self.features else self.bandit.features
        return None if known is None else known.fingerprint

    def rows(
        self,
        decision: Decision,
        *,
        X: Any = None,
        id: Any = None,
        time: Any = None,
        mask: Any = None,
        arms: Any = None,
        extra: Mapping[str, Any] | None = None,
        probabilities: Any = None,
        floor: float | None = None,
    ) -> list[dict[str, Any]]:
        """The rows of one decision, or of a batch. The arguments are those of `Log.record`."""
        single = type(decision.arm) is int or np.ndim(decision.arm) == 0
        B = 1 if single else len(np.asarray(decision.arm))
        features, K = self._features(X, single, B, arms, mask, probabilities)
        offered = None if mask is None else np.broadcast_to(inputs.offered(mask, shape=(B, K)), (B, K))
        names = None if arms is None else ids(arms, K)
        if probabilities is None and self.probabilities:
            if self.bandit is not None and self.bandit.baseline is not None:
                raise ValueError(
                    "a bandit that keeps a baseline has other probabilities after it has chosen: ask for them before, "
                    "and pass probabilities=; Log.decide and Live do so"
                )
            probabilities = self._of_bandit("probabilities").propensities(X, mask=mask)
            _agreed(decision, np.reshape(probabilities, (B, K)))
        lists = {} if probabilities is None else {"probabilities": _each(probabilities, (B, K), single)}
        if self.lines and features is not None:
            filled = features if offered is None or features.ndim == 2 else np.where(offered[..., None], features, 0.0)
            lists |= {
                name: line for name, line in zip("mw", self._lines(filled, B, K), strict=True) if line is not None
            }
        if floor is None and self.bandit is not None:
            floor = self.bandit.floor if self.bandit.baseline is None else 0.0  # what is not safe has no floor
        at, kind = schema.moment(time), decision.propensity_kind
        common = self._blank | {"time": at, "propensity_kind": kind, "floor": floor}
        _possible(decision, B)
        p, se, z = [_column(getattr(decision, name, None), B) for name in ("propensity", "propensity_se", "z")]
        texts, more, arm = _texts(id, single, B), _extras(extra, single, B), _whole(decision.arm, single)
        rows = []
        for i in range(B):
            on, n, place = _offer(arm[i], K, None if offered is None else offered[i])
            if place is None:
                raise ValueError(f"arm {arm[i]} is not on offer among {K} arms" + f" (request {i})" * (not single))
            row = common | {"propensity": p[i], "propensity_se": se[i], "z": z[i]}
            row |= {"id": texts[i], "arm": place, "K": n, "arms": _listed(names, on, offered)}
            if more is not None:
                row |= more[i]
            for name, values in lists.items():
                row[name] = np.array(values[i][on])
            if features is not None:
                shown = features[i][on] if features.ndim == 3 else features[i][None]
                row["arm_set"] = digest(shown) if self.arm_set else None
                row["features"] = np.array(shown) if self.features else None  # a copy: the caller's may change
            rows.append(row)
        return rows

    def _features(
        self, X: Any, single: bool, B: int, arms: Any, mask: Any, probabilities: Any
    ) -> tuple[np.ndarray | None, int]:
        """The features as (B, K, d), or (B, d) of disjoint slots, and K."""
        slots = None if self.bandit is None else self.bandit.slots
        if X is None:
            if self.features or self.lines:
                raise ValueError("X must be given where features or lines are logged: Log(..., features=False)")
            known = [slots] if slots else [np.shape(a)[-1] for a in (arms, mask, probabilities) if a is not None]
            if not known:
                raise ValueError("give X, arms, mask or probabilities: the log must know how many arms were on offer")
            return None, int(known[0])
        if self.bandit is not None:
            array, _ = inputs.features(X, name="X", dim=self.bandit.dim, columns=self.bandit._columns)
        else:
            array = inputs.numbers(X, name="X")
        array = array[None] if single else array
        if array.ndim != (2 if slots else 3) or len(array) != B:
            raise ValueError(f"X must be that of the decision: {B} request{'s' * (B != 1)}, got shape {np.shape(X)}")
        return array, slots or array.shape[1]

    def _lines(self, X: np.ndarray, B: int, K: int) -> list[np.ndarray | None]:
        """m and w, (B, K) each, where the model has them."""
        bandit = self._of_bandit("lines")
        width = bandit.width(X).reshape(B, K) if "width" in bandit.model.abilities else None
        return [bandit.mean(X).reshape(B, K), width]

    def _of_bandit(self, what: str) -> Bandit:
        if self.bandit is None:
            raise ValueError(f"{what}=True needs the bandit: Log(path, bandit=...)")
        return self.bandit


def _possible(decision: Decision, B: int) -> None:
    """Raise ValueError for a propensity that an arm which was shown cannot have."""
    if decision.propensity_kind == "none":
        return
    if B == 1 and type(decision.propensity) is float and 0 < decision.propensity <= 1 + ROUNDING:
        return
    p = np.reshape(np.asarray(decision.propensity, dtype=np.float64), (B,))
    wrong = ~((p > 0) & (p <= 1 + ROUNDING))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(
            f"the propensity of an arm that was shown must lie in (0, 1], got {p[i]:g}"
            + f" (request {i})" * (B > 1)
            + ": record what the policy gave it, or the kind 'none' where that is not known"
        )


def _agreed(decision: Decision, P: np.ndarray) -> None:
    """Raise ValueError if the bandit gives the arm another probability than the decision has: X is another one then."""
    if decision.propensity_kind != "exact":
        return
    arm, p = np.atleast_1d(np.asarray(decision.arm)), np.atleast_1d(np.asarray(decision.propensity, dtype=float))
    inside = (arm >= 0) & (arm < P.shape[1])  # the others are refused below
    own = P[np.arange(len(P)), np.where(inside, arm, 0)]
    off = inside & (abs(own - p) > ROUNDING)
    if off.any():
        i = int(np.argmax(off))
        raise ValueError(
            f"X must be that of the decision, recorded before the bandit learns more: arm {arm[i]} was chosen with "
            f"propensity {p[i]:.6g}, and the bandit now gives it {own[i]:.6g} among the arms of X"
        )


def digest(X: np.ndarray) -> str:
    """A digest of the arms on offer, 32 characters. Features (K, d) that are equal to the bit have the same digest."""
    shape = repr(X.shape).encode()
    return hashlib.blake2b(shape + np.ascontiguousarray(X + 0.0).tobytes(), digest_size=16).hexdigest()


def ids(arms: Any, K: int) -> list[str]:
    """The ids of K arms as text. Raises ValueError unless they are K different ids, each a text or a number."""
    if isinstance(arms, (str, bytes)):
        raise ValueError(f"arms must be a list of ids, got {arms!r}: arms=[{arms!r}]")
    names = [id_text(arm) for arm in arms]
    if len(names) != K or len(set(names)) != K:
        raise ValueError(
            f"arms must be {K} different ids, one for each arm, got {len(names)} ({len(set(names))} different)"
        )
    return names


def _whole(arm: Any, single: bool) -> list[Any]:
    """The arms of a decision as numbers."""
    return [arm] if single else np.asarray(arm).tolist()


def _offer(arm: int, K: int, offered: np.ndarray | None) -> tuple[Any, int, int | None]:
    """Which of K positions are on offer, how many, and the place of the arm among them; None: it is not on offer."""
    if offered is None:
        return slice(None), K, int(arm) if 0 <= arm < K and arm == int(arm) else None
    on = np.flatnonzero(offered)
    place = int(np.searchsorted(on, arm))
    return on, len(on), place if place < len(on) and on[place] == arm else None


def _listed(names: list[str] | None, on: Any, offered: np.ndarray | None) -> list[str] | None:
    """The ids of the arms on offer; None where all positions are on offer and have no other ids."""
    if names is None:
        return None if offered is None else [str(i) for i in on]
    return list(names) if offered is None else [names[i] for i in on]


def id_text(id: Any) -> str:
    """The id of a decision as the log holds it: a text; a number is written as text."""
    if hasattr(id, "propensity"):
        raise TypeError(f"id must be the id of a decision, and not the decision itself: pass its field id, got {id!r}")
    if isinstance(id, (list, tuple, set, dict, np.ndarray)) or id is None or id != id:
        raise ValueError(f"id must be a text or a number, got {id!r}")
    return id if isinstance(id, str) else str(_plain(id))


def new_id() -> str:
    """An id that no other decision has: a UUID of version 7 (RFC 9562, 5.7), which begins with the time.

    So ids that are made together stand together in the index of a database. Ids that are random all over would touch
    another page of it with every decision.
    """
    bits = clock.time_ns() // 1_000_000 << 80 | int.from_bytes(os.urandom(10), "big")
    return f"{bits & ~(0xF << 76 | 3 << 62) | 7 << 76 | 2 << 62:032x}"


def _texts(id: Any, single: bool, B: int) -> list[str]:
    """The ids given, or new ones."""
    if id is None:
        return [new_id() for _ in range(B)]
    ids = list(id) if not single and isinstance(id, (list, tuple, np.ndarray)) else [id]
    texts = [id_text(one) for one in ids]
    if len(texts) != B or "" in texts:
        raise ValueError(f"id must be {'a text' if single else f'{B} texts'} that is not empty, got {id!r}")
    return texts


def _extras(extra: Mapping[str, Any] | None, single: bool, B: int) -> list[dict[str, Any]] | None:
    """The user's own columns, row by row; None where there are none."""
    if not extra:
        return None
    if not isinstance(extra, Mapping) or not all(isinstance(name, str) and name for name in extra):
        raise ValueError(
            f"extra must be a dict from names, which are texts that are not empty, to values; got {extra!r}"
        )
    taken = [name for name in extra if name in schema.COLUMNS or name == "__decision"]
    if taken:
        raise ValueError(f"extra must not have the log's own column {taken[0]!r}")
    if single:
        return [{name: _plain(value) for name, value in extra.items()}]
    for name, value in extra.items():
        if isinstance(value, (str, bytes)) or not hasattr(value, "__len__") or len(value) != B:
            raise ValueError(f"extra[{name!r}] must hold {B} values, one a request")
    return [{name: _plain(value[i]) for name, value in extra.items()} for i in range(B)]


def _each(values: Any, shape: tuple[int, int], single: bool) -> np.ndarray:
    array = inputs.numbers(values, name="probabilities")
    if array.shape != (shape[1:] if single else shape):
        raise ValueError(f"probabilities must have shape {shape[1:] if single else shape}, got {array.shape}")
    return array.reshape(shape)


def _column(value: Any, B: int) -> list[Any]:
    """One number for each request; None for NaN, or where there is no such number."""
    if B == 1 and type(value) is float:
        return [None if value != value else value]
    if value is None or np.size(value) != B:  # some policies draw a z for each arm
        return [None] * B
    return [None if x != x else x for x in np.asarray(value, dtype=np.float64).reshape(B).tolist()]


def _plain(value: Any) -> Any:
    """A NumPy scalar as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def law(policy: Any) -> str | None:
    """The kind of law that z has; None for a law that this library does not know."""
    found = deciding.law(policy)
    if isinstance(found, noise.Points):
        return "points"
    return "continuous" if isinstance(found, (noise.Gaussian, noise.Ball, noise.Custom)) else None
