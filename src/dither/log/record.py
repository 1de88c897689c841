"""The rows of decisions: what is recorded of one choice, or of a batch, and what its rewards teach."""

import hashlib
import json
import math
import os
import time as clock
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import numpy as np

from dither import _version, noise
from dither.base import errors
from dither.deciding import decision as policies
from dither.deciding import inputs
from dither.deciding.answers import Decision, Decisions
from dither.deciding.decision import Choice
from dither.deciding.request import Request
from dither.log import schema
from dither.log.check import ROUNDING
from dither.log.reward_rules import id_text, several

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Span: TypeAlias = tuple[int | None, int | None]  # microseconds since 1970: from, and before; None: without end
WHOLE: Span = (None, None)
_TICK = timedelta(microseconds=1)
LAST = (datetime.max.replace(tzinfo=UTC) - EPOCH) // _TICK  # the last moment that there is
_ARRAYS = ("features", "m", "w", "probabilities", "x")
_FLOAT = np.dtype("<f8")
_BESIDE = ("width", "extra", "x", "slot", "batch", "deadline", "digest")
_NOTHING = dict.fromkeys((*schema.DECISION, *_BESIDE)) | {"closed": False}


class About(TypedDict, total=False):
    """What is recorded with a decision; `Log.decide` says what each means."""

    time: datetime | str | float | None
    mask: Any
    arms: Any
    extra: Mapping[str, Any] | None


class AboutRecord(About, total=False):
    """What is recorded with a decision that was made elsewhere; `Log.record` says what each means."""

    X: Any
    id: Any
    probabilities: Any
    floor: float | None


@dataclass(frozen=True)
class Recorded(Decision):
    """A decision that is in the log: a `Decision` with the id that its reward needs."""

    id: str = ""


@dataclass(frozen=True)
class RecordedMany(Decisions):
    """Decisions that are in the log, with the ids that their rewards need."""

    id: tuple[str, ...] = ()  # (B,)


if TYPE_CHECKING:

    class RecordedOneOrMany(Recorded, RecordedMany):
        """What the type of X leaves open."""

        arm: Any
        propensity: Any
        propensity_se: Any
        z: Any
        id: Any


def recorded(choice: Choice, ids: list[str]) -> Recorded | RecordedMany:
    """A choice that is in the log, as a user gets it."""
    shown = choice.arm, choice.p, choice.kind, choice.se, choice.z, choice.learnt
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

    def rows(
        self,
        choice: Choice,
        *,
        columns: tuple[str, ...] | None = None,
        time: datetime,
        id: Any = None,
        extra: Mapping[str, Any] | None = None,
        probabilities: Any = None,
        floor: float | None = None,
    ) -> list[dict[str, Any]]:
        """The rows of a choice, one for each request.

        columns : (d,) names of the features in the order that the log has; None: in that of the request
        id, extra, probabilities, floor : as for `Log.record`; None: those of the choice
        """
        each = self._each(choice, time, id, columns=columns, probabilities=probabilities, floor=floor)
        rows = [dict(zip(schema.DECISION, one, strict=True)) for one in each]
        more = _extras(extra, choice.request.single, len(rows))
        return rows if more is None else [row | besides for row, besides in zip(rows, more, strict=True)]

    def stored(
        self,
        choice: Choice,
        *,
        time: datetime,
        id: Any,
        extra: Mapping[str, Any] | None,
        slots: bool,
        batch: int,
        digest: bytes | None = None,
    ) -> list[tuple[Any, ...]]:
        """The rows of a choice as the table of a database holds them (`database.entering.COLUMNS`), with lessons.

        id, extra : as for `Log.record`; batch : what the bandit had learnt; digest : of what was asked for
        slots : whether arms are disjoint slots, so that a reward teaches the context and not the arm's own features

        Raises ValueError for a column of the user's that JSON cannot hold.
        """
        each = self._each(choice, time, id)
        more = _extras(extra, choice.request.single, len(each))
        X, arms, at, rows = _batched(choice), _arms(choice), micros(time), []
        for i, row in enumerate(each):
            name, _, names, K, arm_set, features, place, p, kind, se, floor, z, z_law, m, w, each_p, *which, _ = row
            arm, besides = arms[i], None if more is None else _json(more[i])
            x = _bytes(X[i] if slots else X[i, arm])
            row = (name, at, None if names is None else json.dumps(names), K, arm_set, _bytes(features), place, p, kind)
            row += (se, floor, z, z_law, _bytes(m), _bytes(w), _bytes(each_p), *which)
            rows.append((*row, X.shape[-1], besides, x, int(arm) if slots else None, batch, at, False, digest))
        return rows

    def _each(
        self,
        choice: Choice,
        time: datetime,
        id: Any,
        *,
        columns: tuple[str, ...] | None = None,
        probabilities: Any = None,
        floor: float | None = None,
    ) -> list[tuple[Any, ...]]:
        """The columns `schema.DECISION` of each request, in their order."""
        request = choice.request
        if request.ids is not None and len(request.ids) != request.shape[-1]:  # slots came since they were named
            request = choice.request = request._replace(ids=slot_names(request.ids, request.shape[-1]))
        single, B, K, names = request.single, request.size, request.shape[-1], request.ids
        X = None if request.X is None else placed(request, columns)
        X = X[None] if X is not None and single else X
        mask = None if request.mask is None else np.reshape(request.mask, (B, K))
        m, w, each = self._lists(choice, (B, K), probabilities)
        _possible(choice)
        sure = choice.floor if floor is None else floor
        p, se, z = _column(choice.p, B), _column(choice.se, B), _column(choice.z, B)
        floors = _column(sure if B == 1 else np.broadcast_to(sure, (B,)), B)
        texts, arms, kinds, constants, rows = _texts(id, single, B), _arms(choice), choice.kinds, self.constants, []
        which = constants["policy"], constants["preset"], constants["version"], choice.learnt
        for i, arm in enumerate(arms):
            on, n, place = _offer(arm, K, None if mask is None else mask[i])
            if place is None:
                raise ValueError(f"arm {arm} is not on offer among {K} arms" + f" (request {i})" * (not single))
            shown = arm_set = features = None
            if X is not None and (self.arm_set or self.features):
                shown = X[i][on] if X.ndim == 3 else X[i][None]
                arm_set = digest(shown) if self.arm_set else None
                features = np.array(shown) if self.features else None  # a copy: the caller's may change
            error = se[i] if kinds[i] == choice.kind else None  # else it is certain, beside others
            row = (texts[i], time, _listed(names, on, mask), n, arm_set, features, place, p[i], kinds[i], error)
            lists = [None if of is None else np.array(of[i][on]) for of in (m, w, each)]
            rows.append((*row, floors[i], z[i], constants["z_law"], *lists, *which))
        return rows

    def _lists(self, choice: Choice, shape: tuple[int, int], probabilities: Any) -> list[np.ndarray | None]:
        """Numbers of all arms, (B, K) each: means, widths, probabilities; None where the log has none."""
        m = w = each = None
        if probabilities is not None:
            each = _each(probabilities, shape, choice.request.single)
        elif self.probabilities:
            each = np.reshape(choice.probabilities()[0], shape)
        if self.lines and choice.request.X is not None:
            basis = choice.parts[0].basis if choice.parts else choice.basis  # nothing is learnt between parts
            if basis is None:
                raise needs_bandit("lines")
            now = basis.now
            m = np.reshape(now.model.mean(now.state, choice.request.X), shape)
            if "width" in now.model.abilities:
                w = np.reshape(now.model.width(now.state, choice.request.X), shape)
        return [m, w, each]


def micros(time: datetime) -> int:
    """Microseconds since 1970."""
    return (time - EPOCH) // _TICK


def span(since: Any, until: Any) -> Span:
    """The span from one time on and before another. Raises ValueError unless they are times, the earlier first."""
    low, high = (None if end is None else micros(schema.moment(end)) for end in (since, until))
    if low is not None and high is not None and not low < high:
        raise ValueError(f"since must be before until, got {since!r} and {until!r}")
    return low, high


def stored(row: Mapping[str, Any], *, lesson: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What the table of a database holds of a row that `Recorder` made, by name.

    lesson : x, slot and batch, where a learner needs them; x is taken from the features where they are there. Without
        a batch, the row's `learnt` stands in its place

    Raises ValueError for a column of the user's that JSON cannot hold.
    """
    extra = None
    if not row.keys() <= schema.COLUMNS.keys():
        extra = {name: value for name, value in row.items() if name not in schema.COLUMNS}
        row = {name: value for name, value in row.items() if name in schema.COLUMNS}
    values = {**_NOTHING, **row, "batch": row.get("learnt"), **(lesson or {})}
    values["extra"] = None if extra is None else _json(extra)
    values["time"] = micros(row["time"])
    if row["arms"] is not None:
        values["arms"] = json.dumps(row["arms"])
    features = row.get("features")
    if features is not None:
        values["width"] = features.shape[1]
        if values["x"] is None:
            values["x"] = features[row["arm"] if len(features) == row["K"] else 0]
    for name in _ARRAYS:
        values[name] = _bytes(values[name])
    values["deadline"] = values["time"]  # to which the statement adds the horizon (`database.entering`)
    return values


def as_kept(name: str, value: Any) -> Any:
    """A value of a user's own column as it is kept: NaN, infinity and what is masked are missing, so None.

    Raises ValueError for a dict, also in an array without axes.
    """
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.tolist()
    if isinstance(value, dict):
        raise _odd(name, value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _odd(name: str, value: Any) -> ValueError:
    return ValueError(f"extra must hold texts, numbers, times, lists of these or None, got {name}={value!r}")


def _json(extra: dict[str, Any]) -> str:
    text = _dumped({name: as_kept(name, value) for name, value in extra.items()})
    if "\\ud" in text:  # rare: what is beyond 16 bits, in a pair, or half of one, which can never be written
        try:
            json.dumps(json.loads(text), ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError(f"extra must be Unicode, and half of a surrogate pair is in {extra!r}") from None
    return text


def _dumped(extra: dict[str, Any]) -> str:
    try:
        return json.dumps(extra, default=as_json)
    except ValueError:
        for name, value in extra.items():
            try:
                json.dumps(value, default=as_json)
            except ValueError:
                raise _odd(name, value) from None
        raise


def as_json(value: Any) -> Any:
    """What JSON has for a value that it does not know."""
    if isinstance(value, (datetime, date, clock_time)):
        return value.isoformat()
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise ValueError(f"extra must hold texts, numbers, times, lists of these or None, got {value!r}")


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


def slot_names(names: tuple[str, ...], K: int) -> tuple[str, ...]:
    """The ids of K disjoint slots, of which the first have names: each further one has its position.

    Raises ValueError where that is the id of another slot, and where there are more names than slots.
    """
    if len(names) > K:
        raise ValueError(
            f"the log names {len(names)} slots, {list(names)}, and the bandit has {K}: let it learn from the log first"
        )
    rest = tuple(map(str, range(len(names), K)))
    taken = [position for position in rest if position in names]
    if taken:
        raise ValueError(
            f"slot {taken[0]} has no id, and {taken[0]!r} is the id of slot {names.index(taken[0])}: "
            f"name all {K} slots with arms="
        )
    return names + rest


def _arms(choice: Choice) -> list[Any]:
    """The arms of a choice as numbers."""
    return [choice.arm] if choice.request.single else np.asarray(choice.arm).tolist()


def _batched(choice: Choice) -> np.ndarray:
    """The features of a choice, with an axis for its requests."""
    return choice.request.X[None] if choice.request.single else choice.request.X


def _bytes(array: Any) -> bytes | None:
    """An array as a database has it; None: there is none."""
    return None if array is None else np.asarray(array, dtype=_FLOAT).tobytes()


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
    ids = list(id) if not single and several(id) else [id]
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


def constants(bandit: Any, *, policy: str | None = None, preset: str | None = None) -> dict[str, Any]:
    """The columns that are the same in every row. bandit : the one that decides; None: decisions are made elsewhere"""
    if policy is None and bandit is not None:
        policy = f"{bandit.policy} on {bandit.model}"
    z_law = None if bandit is None else _law(bandit.policy)
    return {"policy": policy, "preset": preset, "version": _version.__version__, "z_law": z_law}


def _law(policy: Any) -> str | None:
    """The kind of law that z has; None for a law that this library does not know."""
    kind = policies.law(policy)
    if isinstance(kind, noise.Points):
        return "points"
    return "continuous" if isinstance(kind, (noise.Gaussian, noise.Ball, noise.Custom)) else None
