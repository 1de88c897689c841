"""`Features`: contexts and arms as users have them become X, the features of the arms on offer.

Every column of X is a factor of the context times a factor of the arm:

    X[k, j] = c[left[j]] · A[k, right[j]]

    c (p,)      1, the columns of the context's fields, and products of them where a cross asks for these
    A (K, q)    1, the columns of the arm's fields, the slot of the arm, and products
    form        columns                                    for
    shared      1, c, a, crosses c·a                       one θ for all arms
    disjoint    1, c                                       models with slots, one θ for each slot
    hybrid      1, c, a, crosses, and (1, c) in each slot  one θ with a part for each slot (Li et al. 2010, Section 3.2)

So A may be kept for arms that stay the same (`Catalogue`), and the context multiplies.
"""

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dither.base import errors
from dither.features import absences, column_layout, counts, declared, records, slips, values
from dither.features.kind import Kind, Wrong

FORMAT = (
    3  # 2: kinds may have a version of the rule for texts, and texts may be unsigned. 3: hours, and `absent` by field
)
SETTINGS = ("intercept", "form", "slots", "absent")  # besides the fields and the crosses
FORMS = ("shared", "disjoint", "hybrid")
CURES = {  # of a value that a rule refuses
    "missing": "fill it in, or let the field have missing='zero' or 'column'",
    "unknown": "fit or state the values anew, or let the field have unknown='zero' or 'column'",
}


class Features:
    """How the fields of contexts and arms become columns.

    Parameters
    ----------
    context, arm : field -> its kind: "numeric", "standard", "category", "hashed", "text", "words", "hour", "weekday",
        or one with settings, such as `features.Numeric(mean=40, scale=15)`. A list of values is a category with these
    cross : pairs (or more) of fields whose products are columns: [("country", "topic")]; "all": each field of the
        context with each of the arm. A context that all arms share says only through a cross which arm is best, where
        the model is linear in X. None warns of that; () says that it is meant
    intercept : whether the first column is 1
    form : "shared", "disjoint" (X is the context, for a bandit with `disjoint=` slots) or "hybrid" (a block of columns
        for each of `slots` arms, besides those that all arms share)
    slots : for the hybrid form, how many arms can have a block
    absent : a field that a record does not have: "error", or "missing" (it counts as a missing value). Or field -> what
        stands for it: "error", "missing", "column" (a column says so), or a value of the field, which then stands for a
        missing value too

    Numeric, standard, category and words without stated values must be fitted first: `fit` returns Features that are.

    Raises ValueError for settings that make no sense, and for columns of one name.
    """

    def __init__(
        self,
        *,
        context: Mapping[str, Any] | None = None,
        arm: Mapping[str, Any] | None = None,
        cross: Any = None,
        intercept: bool = True,
        form: str = "shared",
        slots: int | None = None,
        absent: str | Mapping[str, Any] = "error",
    ) -> None:
        errors.one_of("form", form, FORMS)
        errors.true_or_false("intercept", intercept)
        of_context, of_arm = declared.fields("context", context), declared.fields("arm", arm)
        self.absent, self.optional, self._stands, kinds = absences.settled(absent, of_arm | of_context)
        self.context, self.arm = ({name: kinds[name] for name in side} for side in (of_context, of_arm))
        self.intercept, self.form = bool(intercept), form
        self.cross = declared.crosses(cross, self.context, self.arm)
        self.slots = declared.plain(slots)
        self._check(warn=cross is None)
        self.fitted = all(kind.fitted for kind in (*self.context.values(), *self.arm.values()))
        self._layout = self._laid_out()
        self._counts = counts.Counts()
        self._told: set[str] = set()  # fields whose slips were told

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of X, (d,)."""
        return self._ready().columns

    @property
    def terms(self) -> tuple[str, ...]:
        """The field or the cross that each column of X is of, (d,): "country", "country*topic", "intercept".

        In the hybrid form the columns of all slots have the term of their field too, as "slot*country".
        """
        return self._ready().terms

    @property
    def dim(self) -> int:
        """d, the number of columns of X."""
        return len(self._ready().columns)

    @property
    def of_width(self) -> int:
        """q, the number of factors of an arm."""
        return self._ready().right.width

    @property
    def missing(self) -> dict[str, int]:
        """Field -> how many missing values were encoded, by this object in this process."""
        return dict(self._counts.missing)

    @property
    def unknown(self) -> dict[str, int]:
        """Field -> how many unknown values were encoded, by this object in this process."""
        return dict(self._counts.unknown)

    @property
    def cancelled(self) -> dict[str, int]:
        """Field -> how many texts were encoded, by this object in this process, in which words cancelled (`Text`)."""
        return dict(self._counts.cancelled)

    @property
    def fingerprint(self) -> str:
        """16 hex digits. Features with the same fingerprint make the same X of the same fields."""
        return hashlib.sha256(declared.canonical(self.settings)).hexdigest()[:16]

    def fit(self, contexts: Any = None, arms: Any = None) -> "Features":
        """Features whose kinds have learnt what was not stated: means, scales, categories, vocabularies.

        These Features stay as they are, and the new ones never learn again: X is one function of the fields for as long
        as a bandit learns, and its file and its ledger keep it.

        contexts, arms : records or a frame, n of them each; a side where all is stated needs none. arms may also be
            id -> record, as for a `Catalogue`

        Raises ValueError, which names the fields, where a side that must be fitted is not given, and where a field has
        fewer values than its kind needs. Raises ImportError where scikit-learn is missing (extra `features`).
        """
        if isinstance(arms, Mapping):
            arms = [{"id": id} | records.record(one, f"arm {id!r}") for id, one in arms.items()]
        sides: dict[str, Any] = {}
        for side, data in (("context", contexts), ("arm", arms)):
            kinds = sides[side] = dict(self._sides[side])
            lacking = [name for name, kind in kinds.items() if not kind.fitted]
            if not lacking:
                continue
            if data is None:
                raise ValueError(f"fit needs {side}s, for {', '.join(map(repr, lacking))}: fit({side}s=[...])")
            read = records.table(data, lacking, what=side, optional=self.optional)
            self.tell(read.slips, side)
            if read.single or not read.n:
                raise ValueError(f"fit needs a list of {side}s or a frame of them; got {read.n}")
            for name, column in zip(lacking, read.fields, strict=True):
                kinds[name] = _fitted(name, kinds[name], column, side)
        return Features(**sides, cross=self.cross, **{name: getattr(self, name) for name in SETTINGS})

    def encode(self, context: Any = None, arms: Any = None, *, slots: Any = None) -> np.ndarray:
        """X of one request, (K, d), or of B requests, (B, K, d). In the disjoint form the context, (d,) or (B, d).

        context : one record, or B of them (a list, or a frame); None if the context has no fields
        arms : K records, the same for all requests; or for B requests a list of B lists of K records
        slots : (K,) in the hybrid form, the slot of each arm (a `Catalogue` knows it)

        Missing and unknown values are counted (`missing`, `unknown`).

        Raises ValueError for values that a field cannot take, naming the record and the field. Nothing is counted then.
        """
        left = self.of_context(context)
        if self.form == "disjoint":
            if arms is not None:
                raise ValueError("the disjoint form has no features of arms: leave arms out, or choose another form")
            return self.joined(left, None)
        if arms is None:
            raise ValueError(f"the {self.form} form needs arms: encode(context, arms)")
        arms = records.listed(arms)
        if records.sequence(arms) and len(arms) and records.several(arms[0]):
            return self.joined(left, self._each(left, arms, slots))
        right = self.of_arms(arms, slots=slots)
        if len(right) > 1 and self.arm and (right == right[0]).all():
            warnings.warn(SAME, UserWarning, stacklevel=2)
        return self.joined(left, right)

    def of_context(self, context: Any) -> np.ndarray:
        """c, the factors of the context: (p,), or (B, p)."""
        return self._factors("context", self._ready().left, context)

    def of_arms(self, arms: Any, *, slots: Any = None, called: Sequence[str] | None = None) -> np.ndarray:
        """A, the factors of arms: (K, q).

        slots : as for `encode`; called : (K,) how errors call the arms; None: "arm 0", "arm 1", ...
        """
        if isinstance(arms, Mapping):
            raise TypeError(
                "arms must be a list of records or a frame, with one for each arm; got a dict: list(arms.values()), if "
                "its keys are ids; or a Catalogue"
            )
        out = self._factors("arm", self._ready().right, arms, each=called)
        if out.ndim == 1:
            raise TypeError("arms must be a list of records or a frame, with one for each arm; got a single record")
        if not len(out):
            raise ValueError("arms must hold at least one arm, got none")
        return self._in_slots(out, slots)

    def of_arm(self, arm: Any, *, slot: int | None = None, called: str = "the arm", count: bool = True) -> np.ndarray:
        """The factors of one arm, (q,).

        slot : as for `encode`; called : how errors call the arm; count : whether missing and unknown values are counted
        """
        out = self._factors("arm", self._ready().right, arm, called=called, count=count)
        if out.ndim != 1:
            raise TypeError(f"{called} must be one record, got {len(out)} of them")
        return self._in_slots(out[None], None if slot is None else [slot])[0]

    def joined(self, left: np.ndarray, right: np.ndarray | None) -> np.ndarray:
        """X of the factors: left (p,) or (B, p), right (K, q) or (B, K, q) -> (K, d) or (B, K, d).

        Without right, in the disjoint form: (d,) or (B, d).
        """
        laid = self._ready()
        c = left.take(laid.of_left, axis=-1)
        if right is None:
            return c
        X = right.take(laid.of_right, axis=-1)
        if left.ndim == 2 and right.ndim == 2:
            return c[:, None, :] * X
        X *= c[..., None, :]  # in place: a second array of this size would cost more than the product
        return X

    def check(self, other: "Features", *, what: str, whose: str) -> None:
        """Raise ValueError, naming what differs, unless the other Features make the same X.

        what : how the error calls the other Features, such as "features="
        whose : how it calls the owner of these, such as "the bandit in b.npz"
        """
        if other.fingerprint != self.fingerprint:
            raise ValueError(
                f"{what} are not those of {whose}: {self.fingerprint} there, {other.fingerprint} here; "
                f"{self.difference(other)}. Encode with the ones that were learnt "
                "(`bandit.features`), or learn again"
            )

    def difference(self, other: "Features") -> str:
        """What differs in the settings of other Features, in words."""
        return declared.difference(self.settings, other.settings)

    def fits(self, dim: int, *, slots: int | None) -> list[str]:
        """The names of the columns, for a bandit of this dimension and with so many disjoint slots, or None.

        Raises ValueError unless its X has this form.
        """
        if dim != self.dim:
            raise ValueError(f"dim must be {self.dim}, the number of columns of the features; got {dim}")
        if (self.form == "disjoint") != (slots is not None):
            cure = "give the bandit disjoint=K" if slots is None else "leave disjoint out, or make disjoint features"
            raise ValueError(f"features of the form {self.form!r} do not go with disjoint={slots}: {cure}")
        return list(self.columns)

    def arm_record(self, arm: Any, *, called: str) -> dict[str, Any]:
        """One arm's record as JSON holds it: texts, numbers, lists of texts, None. A slip of the pen is told.

        called : how errors call the arm

        Raises ValueError for a field that it lacks and may not lack, and for what no field can take.
        """
        read = records.table(arm, list(self.arm), what=called, optional=self.optional)
        fields = records.plain(read, self.arm, what=called)
        self.tell(read.slips, "arm")
        return fields

    def silent(self) -> "Features":
        """The same Features, which warn of no slip of the pen: for records that were told when they came."""
        again = Features.from_bytes(self.to_bytes())
        again._told = {*again.context, *again.arm}
        return again

    def tell(self, near: Sequence[tuple[str, str]], what: str) -> None:
        """Count fields that came under nearly their names as unknown values of theirs, and warn of each field once.

        near : (field, what a record has in its place), as `slips.nearly` gives it
        """
        odd = [(name, other) for name, other in near if other not in self.context and other not in self.arm]
        if not odd:
            return
        self._counts.add([(what, name, 1) for name, _ in odd for what in ("unknown", "misspelt")])
        for name, other in odd:
            if name not in self._told:
                self._told.add(name)
                warnings.warn(
                    f"a record of the {what} has no field {name!r}, and has {other!r}, which is not declared: was it a "
                    f"slip of the pen? It is ignored, and counted in `unknown` of {name!r}. This is said once",
                    slips.MisspeltWarning,
                    stacklevel=4,
                )

    def to_bytes(self) -> bytes:
        """Everything as JSON: equal Features have equal bytes. `from_bytes` reads it."""
        return declared.canonical(self.described)

    @property
    def described(self) -> dict[str, Any]:
        """What `to_bytes` writes, as lists and dicts."""
        number = declared.format(self._sides, self.absent)
        return {"format": number, "fingerprint": self.fingerprint, "features": self.settings}

    @classmethod
    def from_bytes(cls, data: bytes) -> "Features":
        """The Features that `to_bytes` wrote. Raises ValueError for anything else."""
        with declared.damaged(data, "no Features, or damaged ones"):
            return cls.of_description(json.loads(data))

    @classmethod
    def of_description(cls, described: Mapping[str, Any]) -> "Features":
        """The Features with this description (`described`). Raises an error of some kind for anything else."""
        number = described["format"]
        if type(number) is not int or number < 1:
            raise ValueError(f"their format is {number!r}")
        if number > FORMAT:
            raise ValueError(f"their format is {number}, and this version reads up to {FORMAT}: upgrade dither")
        settings = dict(described["features"])
        for side in ("context", "arm"):
            settings[side] = {name: declared.of_settings(kind) for name, kind in settings[side]}
        features = cls(**settings | {"cross": tuple(map(tuple, settings["cross"]))})
        if features.fingerprint != described["fingerprint"]:
            raise ValueError(f"their fingerprint is {features.fingerprint}, and {described['fingerprint']!r} was saved")
        return features

    @property
    def settings(self) -> dict[str, Any]:
        """The settings and all that was fitted, in lists and dicts as JSON has them."""
        return {
            **{side: [[n, declared.settings(k)] for n, k in kinds.items()] for side, kinds in self._sides.items()},
            "cross": [list(cross) for cross in self.cross],
            **{name: getattr(self, name) for name in SETTINGS},
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Features) and self.settings == other.settings

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        return Features.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        what = f"{self.dim} columns" if self.fitted else "not fitted"
        return f"Features({what}, {self.form}, fingerprint {self.fingerprint})"

    def __str__(self) -> str:
        return column_layout.shown(self)

    def _check(self, *, warn: bool) -> None:
        """Raise ValueError for settings that do not go together. Warn where the context cancels."""
        if both := sorted(self.context.keys() & self.arm.keys()):
            raise ValueError(f"{both[0]!r} is a field of the context and of the arm: give one of them another name")
        if self.form == "hybrid":
            errors.at_least("slots, the number of arms that can have a block,", self.slots, 1)
        elif self.slots is not None:
            raise ValueError(f"slots is for the hybrid form alone; the form is {self.form!r}: leave slots out")
        crossed = [set(cross) for cross in self.cross]
        if self.form == "disjoint" and (self.arm or any(cross & self.arm.keys() for cross in crossed)):
            raise ValueError("the disjoint form has no fields of the arm: leave arm out, or choose the form 'hybrid'")
        if self.form == "shared" and not self.arm:
            raise ValueError(
                "the shared form needs fields of the arm, which tell arms apart: give arm, or another form"
            )
        meets = any(cross & self.context.keys() and cross & self.arm.keys() for cross in crossed)
        if warn and self.form == "shared" and self.context and not meets:
            warnings.warn(
                "a context that all arms share cancels when they are ranked by a model that is linear in X: cross its "
                "fields with those of the arm, such as "
                f"cross=[({next(iter(self.context))!r}, {next(iter(self.arm))!r})], or say cross=() if that is meant",
                UserWarning,
                stacklevel=3,
            )

    def _laid_out(self) -> column_layout.ColumnLayout | None:
        """The columns; None before the fit. Raises ValueError for too many of them, and for two of one name."""
        if not self.fitted:
            return None
        names = {side: [(n, kind.columns(n)) for n, kind in kinds.items()] for side, kinds in self._sides.items()}
        return column_layout.lay_out(names, self.cross, intercept=self.intercept, form=self.form, slots=self.slots)

    @property
    def _sides(self) -> dict[str, dict[str, Kind]]:
        return {"context": self.context, "arm": self.arm}

    def _ready(self) -> column_layout.ColumnLayout:
        if self._layout is None:
            lacking = [repr(name) for kinds in self._sides.values() for name, kind in kinds.items() if not kind.fitted]
            raise ValueError(
                f"{', '.join(lacking)} must be fitted first: f = f.fit(contexts, arms), which returns new Features; or "
                "state what they need, as in features.Numeric(mean=40, scale=15), features.Category(['a', 'b'])"
            )
        return self._layout

    def _factors(
        self,
        what: str,
        side: column_layout.Side,
        data: Any,
        *,
        called: str | None = None,
        each: Sequence[str] | None = None,
        count: bool = True,
    ) -> np.ndarray:
        """The factors of records: (n, p), or (p,) of a single record.

        called, each : how errors call a single record, and each of n
        """
        kinds = self._sides[what]
        if data is None and not kinds:
            read = records.FieldValues([], 1, True)
        else:
            read = records.table(data, side.names, what=called or what, optional=self.optional)

        def called_at(place: int) -> str:
            if read.single:
                return called or f"the {what}"
            return f"{what} {place}" if each is None else each[place]

        out = np.zeros((read.n, side.width))
        out[:, 0] = 1.0
        numbers = []
        for name, at, column in zip(side.names, side.places, read.fields, strict=True):
            kind, stands = kinds[name], self._stands.get(name)
            if stands is not None and (gone := [i for i, value in enumerate(column) if values.missing(value)]):
                numbers.append(("missing", name, len(gone)))
                column = [stands if values.missing(value) else value for value in column]
            try:
                gaps = kind.write(column, out[:, at])
            except Wrong as reason:
                raise ValueError(f"{name!r} of {called_at(reason.place)} {reason}") from None
            if gaps.cancelled:
                numbers.append(("cancelled", name, len(gaps.cancelled)))
            for rule, places in (("missing", gaps.missing), ("unknown", gaps.unknown)):
                if not places:
                    continue
                answer = getattr(kind, rule)
                if answer == "error":
                    i = places[0]
                    odd = "is missing" if rule == "missing" else f"is {column[i]!r}, which is unknown"
                    raise ValueError(f"{name!r} of {called_at(i)} {odd}: {CURES[rule]}")
                if answer == "column":  # that for missing values is the last one
                    out[places, at.stop - 1 - (rule == "unknown" and kind.missing == "column")] = 1.0
                numbers.append((rule, name, len(places)))
        for at, product in side.products:
            out[:, at] = column_layout.outer([out[:, place] for place in product])
        if numbers and count:
            self._counts.add(numbers)
        if read.slips and count:
            self.tell(read.slips, what)
        return out[0] if read.single else out

    def _in_slots(self, out: np.ndarray, slots: Any) -> np.ndarray:
        """The factors of arms (K, q), with a 1 in the slot of each arm."""
        if self.form != "hybrid":
            if slots is not None:
                raise ValueError(f"slots is for the hybrid form; the form is {self.form!r}: leave slots out")
            return out
        if slots is None:
            raise ValueError(
                "the hybrid form needs the slot of each arm: encode(context, arms, slots=[...]), or a Catalogue"
            )
        at = np.asarray(slots)
        if at.dtype.kind not in "iu" or at.shape != (len(out),) or at.min() < 0 or at.max() >= (self.slots or 0):
            raise ValueError(f"slots must be {len(out)} whole numbers from 0 to {(self.slots or 0) - 1}, got {slots!r}")
        out[np.arange(len(out)), self._ready().right.slots.start + at] = 1.0
        return out

    def _each(self, left: np.ndarray, arms: Sequence[Any], slots: Any) -> np.ndarray:
        """The factors of arms that each request has for itself, (B, K, q)."""
        if left.ndim == 1 or len(arms) != len(left):
            n = "one" if left.ndim == 1 else len(left)
            raise ValueError(
                f"arms holds {len(arms)} lists of arms for {n} context: one list for each context of a batch"
            )
        of = [None] * len(arms) if slots is None else slots
        factors = [self.of_arms(one, slots=at) for one, at in zip(arms, of, strict=True)]
        numbers = sorted({len(one) for one in factors})
        if len(numbers) > 1:
            raise ValueError(f"each request of a batch must have as many arms; got {numbers}: encode them one by one")
        return np.stack(factors)


def checked(features: Any) -> Features:
    """The features that a user passed. Raises TypeError for anything else."""
    if not isinstance(features, Features):
        raise TypeError(f"features must be dither.Features, got {type(features).__name__}")
    return features


SAME = (
    "all arms of the request have the same features, so chance alone chooses between them: add a field of the arm that "
    "tells them apart, such as its id"
)


def _fitted(name: str, kind: Kind, column: Sequence[Any], side: str) -> Kind:
    try:
        return kind.fit(column)
    except Wrong as reason:
        raise ValueError(f"{name!r} of {side} {reason.place} {reason}") from None
    except ValueError as reason:
        raise ValueError(f"{name!r} {reason}") from None
