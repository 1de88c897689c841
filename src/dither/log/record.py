"""The rows of decisions: what is recorded of one choice, or of a batch, and what its rewards teach."""

import functools
import hashlib
import os
import time as clock
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither import noise
from dither.base import errors
from dither.deciding import decision as policies
from dither.deciding import inputs
from dither.deciding.decision import Choice, Decision, Decisions
from dither.deciding.demands import Demands
from dither.deciding.request import Request
from dither.log import schema
from dither.log.check import ROUNDING


@dataclass(frozen=True, slots=True)
class Recorded(Decision):
    """A decision that is in the log: a `Decision` with the id that its reward needs."""

    id: str = ""


@dataclass(frozen=True, slots=True)
class RecordedMany(Decisions):
    """Decisions that are in the log, with the ids that their rewards need."""

    id: tuple[str, ...] = ()  # (B,)


def recorded(choice: Choice, ids: list[str]) -> Recorded | RecordedMany:
    """A choice that is in the log, as a user gets it."""
    shown = choice.arm, choice.p, choice.kind, choice.se, choice.z
    return Recorded(*shown, id=ids[0]) if choice.request.single else RecordedMany(*shown, id=tuple(ids))


@dataclass(frozen=True)
class Recorder:
    """Which columns a log has of a decision. The settings are those of `Log`."""

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

    def rows(
        self,
        choice: Choice,
        *,
        columns: tuple[str, ...] | None = None,
        id: Any = None,
        time: Any = None,
        extra: Mapping[str, Any] | None = None,
        probabilities: Any = None,
        floor: float | None = None,
    ) -> list[dict[str, Any]]:
        """The rows of a choice, one for each request.

        columns : (d,) names of the features in the order that the log has; None: in that of the request
        id, time, extra, probabilities, floor : as for `Log.record`; None: those of the choice
        """
        request, single = choice.request, choice.request.single
        B, K = request.size, request.shape[-1]
        X = None if request.X is None else placed(request, columns)
        X = X[None] if X is not None and single else X
        mask = None if request.mask is None else np.reshape(request.mask, (B, K))
        lists = self._lists(choice, (B, K), probabilities)
        _possible(choice)
        sure = choice.demands.floor if floor is None else np.full(B, floor)
        p, se, z, floors = [_column(one, B) for one in (choice.p, choice.se, choice.z, sure)]
        texts, more, arms, kinds = _texts(id, single, B), _extras(extra, single, B), _arms(choice.arm), choice.kinds
        common, rows = self._blank | {"time": schema.moment(time)}, []
        for i in range(B):
            on, n, place = _offer(arms[i], K, None if mask is None else mask[i])
            if place is None:
                raise ValueError(f"arm {arms[i]} is not on offer among {K} arms" + f" (request {i})" * (not single))
            row = common | {"propensity": p[i], "propensity_kind": kinds[i], "z": z[i], "floor": floors[i]}
            row |= {
                "propensity_se": se[i] if kinds[i] == choice.kind else None,  # else it is certain, beside others
                "id": texts[i],
                "arm": place,
                "K": n,
            }
            row["arms"] = _listed(request.ids, on, mask)
            if more is not None:
                row |= more[i]
            for name, numbers in lists.items():
                row[name] = np.array(numbers[i][on])
            if X is not None:
                shown = X[i][on] if X.ndim == 3 else X[i][None]
                row["arm_set"] = digest(shown) if self.arm_set else None
                row["features"] = np.array(shown) if self.features else None  # a copy: the caller's may change
            rows.append(row)
        return rows

    def _lists(self, choice: Choice, shape: tuple[int, int], probabilities: Any) -> dict[str, np.ndarray]:
        """Numbers of all arms by column, (B, K) each."""
        lists = {}
        if probabilities is not None:
            lists["probabilities"] = _each(probabilities, shape, choice.request.single)
        elif self.probabilities:
            lists["probabilities"] = np.reshape(choice.probabilities()[0], shape)
        if self.lines and choice.request.X is not None:
            if choice.basis is None:
                raise needs_bandit("lines")
            now = choice.basis.now
            lists["m"] = np.reshape(now.model.mean(now.state, choice.request.X), shape)
            if "width" in now.model.abilities:
                lists["w"] = np.reshape(now.model.width(now.state, choice.request.X), shape)
        return lists


def lessons(choice: Choice, *, columns: tuple[str, ...] | None, slots: bool, batch: int) -> list[dict[str, Any]]:
    """What the rewards of a choice teach, one for each request; batch : what the bandit had learnt.

    slots : whether arms are disjoint slots, so that a reward teaches the context and not the arm's own features
    """
    X, arms = placed(choice.request, columns), _arms(choice.arm)
    X = X[None] if choice.request.single else X
    return [
        {
            "x": X[i] if slots else X[i, arm],
            "slot": int(arm) if slots else None,
            "batch": batch,
            "width": X.shape[-1],
        }
        for i, arm in enumerate(arms)
    ]


def placed(request: Request, columns: tuple[str, ...] | None) -> np.ndarray:
    """The features of a request in the order of the columns that a log has.

    Raises ValueError where the log has other columns.
    """
    names = request.columns
    if columns is None or names is None or columns == names:
        return request.X
    if set(columns) != set(names):
        odd = sorted(set(columns) ^ set(names))
        raise ValueError(f"X must have the columns {list(columns)}, which the log has; {odd} differ")
    return request.X[..., [names.index(name) for name in columns]]


def stated(made: Decision | Decisions, request: Request, *, floor: float | None) -> Choice:
    """A decision that was made elsewhere, as a choice; floor : the share of uniform choices, None: it is not known."""
    shown = (made.arm, made.propensity, made.propensity_kind, made.propensity_se, getattr(made, "z", None))
    lead = () if np.ndim(made.arm) == 0 else (len(np.asarray(made.arm)),)
    if request.shape[:-1] != lead:
        of = f"{request.size} request{'s' * (request.size != 1)}"
        B = lead[0] if lead else 1
        raise ValueError(f"X must be that of the decision: {B} request{'s' * (B != 1)}, got {of}")
    return Choice(request, Demands(request.shape, request.mask, np.nan if floor is None else floor), shown)


def asked(
    made: Decision | Decisions,
    *,
    X: Any = None,
    mask: Any = None,
    arms: Any = None,
    probabilities: Any = None,
    slots: int | None = None,
    columns: tuple[str, ...] | None = None,
) -> Request:
    """The request of a decision that was made elsewhere. The arguments are those of `Log.record`.

    slots : K, where arms are disjoint slots; columns : of the log
    """
    lead = () if np.ndim(made.arm) == 0 else (len(np.asarray(made.arm)),)
    array = None
    if X is not None:
        names = inputs.column_names(X)
        width = len(names) if names is not None else np.shape(X)[-1] if np.ndim(X) else 0
        array, columns = inputs.features(X, name="X", dim=width, columns=columns)
        if array.ndim != len(lead) + (1 if slots else 2) or array.shape[: len(lead)] != lead:
            B = lead[0] if lead else 1
            raise ValueError(f"X must be that of the decision: {B} request{'s' * (B != 1)}, got shape {np.shape(X)}")
        K = slots or array.shape[-2]
    else:
        sizes = [slots] if slots else [np.shape(part)[-1] for part in (arms, mask, probabilities) if part is not None]
        if not sizes:
            raise ValueError("give X, arms, mask or probabilities: the log must know how many arms were on offer")
        K = int(sizes[0])
    offered = None if mask is None else inputs.offered(mask, shape=(*lead, K))
    return Request(array, offered, (*lead, K), columns)  # type: ignore[arg-type]


def needs_bandit(what: str) -> ValueError:
    """The error of a log that is to hold what a bandit alone knows."""
    return ValueError(f"{what}=True needs the bandit: Log(path, bandit=...)")


def _possible(choice: Choice) -> None:
    """Raise ValueError for a propensity that an arm which was shown cannot have."""
    if choice.kind == "none" or (type(choice.p) is float and 0 < choice.p <= 1 + ROUNDING):
        return
    B = choice.request.size
    p = np.reshape(np.asarray(choice.p, dtype=np.float64), (B,))
    wrong = ~((p > 0) & (p <= 1 + ROUNDING))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(
            f"the propensity of an arm that was shown must lie in (0, 1], got {p[i]:g}"
            + f" (request {i})" * (B > 1)
            + ": record what the policy gave it, or the kind 'none' where that is not known"
        )


def agreed(choice: Choice, P: np.ndarray) -> None:
    """Raise ValueError if the bandit gives the arm another probability than the decision has: X is another one then."""
    if choice.kind != "exact":
        return
    P = np.reshape(P, (choice.request.size, -1))
    arm, p = np.atleast_1d(np.asarray(choice.arm)), np.atleast_1d(np.asarray(choice.p, dtype=float))
    inside = (arm >= 0) & (arm < P.shape[1])  # the others are refused with their row
    now = P[np.arange(len(P)), np.where(inside, arm, 0)]
    off = inside & (abs(now - p) > ROUNDING)
    if off.any():
        i = int(np.argmax(off))
        raise ValueError(
            f"X must be that of the decision, recorded before the bandit learns more: arm {arm[i]} was chosen with "
            f"propensity {p[i]:.6g}, and the bandit now gives it {now[i]:.6g} among the arms of X"
        )


def digest(X: np.ndarray) -> str:
    """A digest of the arms on offer, 32 characters. Features (K, d) that are equal to the bit have the same digest."""
    shape = repr(X.shape).encode()
    return hashlib.blake2b(shape + np.ascontiguousarray(X + 0.0).tobytes(), digest_size=16).hexdigest()


def ids(arms: Any, K: int) -> tuple[str, ...]:
    """The ids of K arms as text. Raises ValueError unless they are K different ids, each a text or a number."""
    if isinstance(arms, (str, bytes)):
        raise ValueError(f"arms must be a list of ids, got {arms!r}: arms=[{arms!r}]")
    names = tuple(id_text(arm) for arm in arms)
    if len(names) != K or len(set(names)) != K:
        raise ValueError(
            f"arms must be {K} different ids, one for each arm, got {len(names)} ({len(set(names))} different)"
        )
    return names


def _arms(arm: Any) -> list[Any]:
    """The arms of a choice as numbers."""
    return [arm] if np.ndim(arm) == 0 else np.asarray(arm).tolist()


def _offer(arm: int, K: int, offered: np.ndarray | None) -> tuple[Any, int, int | None]:
    """Which of K positions are on offer, how many, and the place of the arm among them; None: it is not on offer."""
    if offered is None:
        return slice(None), K, int(arm) if 0 <= arm < K and arm == int(arm) else None
    on = np.flatnonzero(offered)
    place = int(np.searchsorted(on, arm))
    return on, len(on), place if place < len(on) and on[place] == arm else None


def _listed(names: tuple[str, ...] | None, on: Any, offered: np.ndarray | None) -> list[str] | None:
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
    kind = policies.law(policy)
    if isinstance(kind, noise.Points):
        return "points"
    return "continuous" if isinstance(kind, (noise.Gaussian, noise.Ball, noise.Custom)) else None
