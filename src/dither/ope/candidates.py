"""The policies that a log can be asked about, by how they are written.

uniform            every arm on offer with the same probability
arm:NAME           always that arm: its id, or its position where the log has no ids
column:NAME        a column of the log: lists with the probabilities of all arms, or q, the probability of the arm shown
column:q,g         two columns: q, and g = Σ_k Q_k M_k, the reward that is predicted for the policy in each row
FILE.npz           a saved bandit as it is: its propensities on the logged features
greedy:FILE.npz    the best arm of a saved bandit: the arm with the highest mean

From Python a policy may also be a `dither.Bandit`, the array of its probabilities in each row, or a `CandidatePolicy`.
"""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from dither.bandit import saving
from dither.bandit.bandit import Bandit
from dither.bandit.restoring import load
from dither.base import arrays, errors
from dither.base.errors import Option, Refused
from dither.deciding import inputs
from dither.deciding.inputs import ROUNDING
from dither.features import tokens
from dither.log import schema
from dither.log.logged import Logged
from dither.ope import labels
from dither.ope.rows import SILENT

LOGGING = "logging"  # the policy that ran: it is always shown, and the others are compared with it


class PolicyRows(NamedTuple):
    """What a policy does in n rows."""

    q: np.ndarray  # (n,) probability of the arm that was shown
    Q: np.ndarray | None = None  # (n, K) probabilities of all arms, 0 where padded; None: only q is known
    g: np.ndarray | None = None  # (n,) predicted reward of the policy, where the log has it
    kind: str = "exact"  # or "monte_carlo"


@runtime_checkable
class CandidatePolicy(Protocol):
    """A name, the columns that it reads, and what it does in the rows of a `dither.log.Logged`."""

    @property
    def name(self) -> str:
        """How it is called in tables."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the log that it reads."""
        ...

    def shown(self, logged: Logged) -> PolicyRows:
        """Its probabilities in each row."""
        ...


@dataclass(frozen=True)
class Uniform:
    """Every arm on offer with the same probability."""

    name: str = "uniform"
    columns: tuple[str, ...] = ("K",)

    def shown(self, logged: Logged) -> PolicyRows:
        """1/K."""
        K = logged.K
        return PolicyRows(1 / K, logged.mask / K[:, None])


@dataclass(frozen=True)
class Always:
    """One arm, whatever the context."""

    name: str
    arm: str
    columns: tuple[str, ...] = ("K", "arms")

    def shown(self, logged: Logged) -> PolicyRows:
        """1 for that arm. Raises ValueError if a row does not offer it."""
        mask = logged.mask
        if "arms" in logged.frame.columns and logged.frame["arms"].null_count() < len(logged):
            Q = np.zeros(mask.shape)
            for row, ids in zip(Q, logged.arm_ids(), strict=True):
                arm = self._written(ids)
                row[: len(ids)] = [name == arm for name in ids]
        else:
            Q = mask * (np.arange(mask.shape[1]) == self._position(logged.catalogue))
        absent = Q.sum(axis=1) == 0
        if absent.any():
            raise ValueError(
                f"arm {self.arm!r} was not on offer in row {logged.numbers[np.argmax(absent)]} "
                f"({int(absent.sum())} such rows of {len(logged)} looked at): the policy {self.name!r} is undefined "
                "there. Say what is shown there: write a column of lists with 1 for it where it is on offer, and for "
                "another arm elsewhere, and judge 'column:Q'. With log = dither.log.read(...), import polars as pl: "
                f"{self._or_another()}"
            )
        return PolicyRows(of_shown(Q, logged.a), Q)

    def _or_another(self) -> str:
        """How a log gets the column of a policy that shows another arm where this one is not on offer."""
        one = f"[float(id == ({self.arm!r} if {self.arm!r} in ids else 'ANOTHER')) for id in ids]"
        return f"log.frame.with_columns(Q=pl.Series([{one} for ids in log.arm_ids()]))"

    def _position(self, catalogue: tuple[str, ...] | None) -> int:
        """The position of the arm in every row, for a log that does not list the arms row by row."""
        if catalogue is not None:
            arm = self._written(catalogue)
            errors.among("arm", arm, catalogue)
            return catalogue.index(arm)
        if not self.arm.isdecimal():
            raise ValueError(f"the log has no ids of arms to find {self.arm!r} among: write a position, such as arm:0")
        return int(self.arm)

    def _written(self, ids: Sequence[str]) -> str:
        """The id of the arm as it stands among these: accents may be typed in two ways."""
        if self.arm in ids or self.arm.isascii():
            return self.arm
        arm = tokens.nfc(self.arm)
        return next((name for name in ids if tokens.nfc(name) == arm), arm)


@dataclass(frozen=True)
class ColumnPolicy:
    """Probabilities that the log holds."""

    name: str
    q: str
    g: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The one or two columns that it names, and K, which says how many arms there are."""
        return ("K", self.q) if self.g is None else ("K", self.q, self.g)

    def shown(self, logged: Logged) -> PolicyRows:
        """The probabilities of the column, checked."""
        Q = logged.matrix(self.q) if is_list(logged, self.q) else number(logged, self.q)
        if Q.ndim == 2 and np.isnan(Q).all(axis=1).any():
            cure = f"{SILENT.format(column=self.q)}; seen.write(path) makes a log for the command line"
            _, where = labels.first(np.isnan(Q).all(axis=1), len(logged), logged.numbers)
            raise ValueError(f"column {self.q!r} has no probabilities {where}: {cure}")
        rows = _of_arrays(Q, logged, f"column {self.q!r}")
        return rows if self.g is None else rows._replace(g=number(logged, self.g))


@dataclass(frozen=True, eq=False)
class Saved:
    """A bandit from a file, on the features that were logged."""

    name: str
    bandit: Bandit
    greedy: bool = False
    draws: int = 10_000  # Monte Carlo draws a row, where the policy has no closed form
    columns: tuple[str, ...] = ("K", "arms", "features")

    def shown(self, logged: Logged) -> PolicyRows:
        """Its probabilities now. The bandit learns nothing, and its streams do not move."""
        logged = logged.aligned(self.bandit)
        X, mask = logged.X, logged.mask
        slots = self.bandit.slots
        if slots is not None:
            if X.ndim != 2:
                raise ValueError(
                    f"{self.name} has slots and one context a row; the log has features of each arm, {X.shape}"
                )
            refuse(
                np.not_equal(logged.K, slots), logged, f"all {slots} slots of {self.name} must be on offer in every row"
            )
        offered, kind = None if mask.all() else mask, "exact"
        if self.greedy:
            predicts = "predict" in self.bandit.model.abilities
            Q = arrays.share(self.bandit.predict(X) if predicts else self.bandit.mean(X), mask=offered)
        elif self._exact(X, mask):
            Q = self.bandit.propensities(X, mask=offered)
        else:
            Q, kind = self._drawn(X, mask, logged.numbers), "monte_carlo"
        return PolicyRows(of_shown(Q, logged.a), Q, kind=kind)

    def _exact(self, X: np.ndarray, mask: np.ndarray) -> bool:
        """Whether the bandit has exact probabilities. The first row tells."""
        return not len(X) or self.bandit.propensities(X[0], mask=mask[0], draws=1, detail=True)[2] == "exact"

    def _drawn(self, X: np.ndarray, mask: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Monte Carlo probabilities (n, K). The chance of a row does not depend on the piece that holds the row."""
        bandit, Q = copy.copy(self.bandit), np.zeros(mask.shape)
        for i, row in enumerate(numbers.tolist()):
            bandit.decisions = self.bandit.decisions + row
            Q[i] = bandit.propensities(X[i], mask=mask[i], draws=self.draws)
        return Q


@dataclass(frozen=True, eq=False)
class ArrayPolicy:
    """Probabilities in each row of the whole log: Q (n, K) of all arms, or q (n,) of the arm shown."""

    name: str
    Q: np.ndarray
    columns: tuple[str, ...] = ("K",)

    def shown(self, logged: Logged) -> PolicyRows:
        """The probabilities in the rows of this piece, checked."""
        if self.Q.ndim not in (1, 2) or len(self.Q) <= logged.numbers.max(initial=-1):
            raise ValueError(
                f"{self.name} must be (n, K) or (n,), with a row for each row of the log; got {self.Q.shape}"
            )
        rows, mask = self.Q[logged.numbers], logged.mask
        if rows.ndim == 2 and rows.shape[1] < mask.shape[1]:
            raise ValueError(f"{self.name} must have a column for each of {mask.shape[1]} arms; got {self.Q.shape}")
        return _of_arrays(rows if rows.ndim == 1 else rows[:, : mask.shape[1]] * mask, logged, self.name)


def _of_arrays(Q: np.ndarray, logged: Logged, what: str) -> PolicyRows:
    """Probabilities of all arms (n, K), or of the arm shown (n,), checked."""
    if Q.ndim == 1:
        refuse(~((Q >= 0) & (Q <= 1 + ROUNDING)), logged, f"{what} must hold probabilities in [0, 1]")
        return PolicyRows(Q)
    Q, proper = inputs.shares(Q)
    refuse(~proper, logged, f"{what} must hold probabilities of all arms on offer, which sum to 1")
    return PolicyRows(of_shown(Q, logged.a), Q)


def parse(text: str, *, draws: int) -> CandidatePolicy:
    """The policy that a word means.

    Raises LookupError for an unknown word, FileNotFoundError and ValueError for files that hold no bandit.
    """
    head, colon, rest = text.partition(":")
    make = PREFIXES.get(head) if colon and rest else None
    if make is not None:
        return make(text, rest, draws)
    if text == "uniform":
        return Uniform()
    if text.endswith(".npz"):
        return Saved(Path(text).stem, _loaded(text), draws=draws)
    raise errors.unknown("policy", text, names=("uniform", LOGGING, *(f"{p}:..." for p in PREFIXES), "FILE.npz"))


def policies(several: Mapping[str, Any] | Iterable[Any], *, draws: int) -> tuple[CandidatePolicy, ...]:
    """The policies that are written in any of these ways. A mapping names them; in a list they are numbered."""
    if isinstance(several, str):
        raise ValueError(f"policies must be a list, or a mapping of names; got {several!r}: write [{several!r}]")
    named = several.items() if isinstance(several, Mapping) else enumerate(several, start=1)
    return tuple(_policy(name, one, draws) for name, one in named if not (isinstance(one, str) and one == LOGGING))


def _policy(name: str | int, policy: Any, draws: int) -> CandidatePolicy:
    called = name if isinstance(name, str) else f"policy {name}"
    if isinstance(policy, str):
        parsed = parse(policy, draws=draws)
        return replace(parsed, name=name) if isinstance(name, str) else parsed  # type: ignore[type-var]
    if isinstance(policy, Bandit):
        return Saved(called, policy, draws=draws)
    return policy if isinstance(policy, CandidatePolicy) else ArrayPolicy(called, inputs.numbers(policy, name=called))


def _loaded(path: str) -> Bandit:
    """The bandit of a file. Its classes must be those of this library, since nothing in a file is executed."""
    try:
        return load(path)
    except saving.UnknownClass as reason:
        raise Refused(
            f"{path} holds a {reason.name}, a class of your own, which is not loaded here. A policy of your own is "
            "judged by a column: Q = bandit.propensities(X), ",
            Option("policies", "column:Q"),
        ) from None


def _column(text: str, rest: str, draws: int) -> CandidatePolicy:
    q, comma, g = rest.partition(",")
    return ColumnPolicy(q, q, g if comma else None)


PREFIXES: dict[str, Callable[[str, str, int], CandidatePolicy]] = {
    "arm": lambda text, rest, draws: Always(text, rest),
    "column": _column,
    "greedy": lambda text, rest, draws: Saved(f"greedy:{Path(rest).stem}", _loaded(rest), greedy=True, draws=draws),
}


def is_list(logged: Logged, name: str) -> bool:
    """Whether a column holds lists. Raises ValueError for a column that is not there."""
    pl = schema.polars()
    return isinstance(logged.series(name).dtype, (pl.List, pl.Array))


def number(logged: Logged, name: str) -> np.ndarray:
    """A column of plain finite numbers (n,)."""
    column = logged.series(name)
    if is_list(logged, name) or not (column.dtype.is_numeric() or column.dtype.is_(bool)):
        raise ValueError(f"column {name!r} must hold a number in each row, got {column.dtype}")
    x = column.cast(float).fill_null(np.nan).to_numpy()
    refuse(~np.isfinite(x), logged, f"column {name!r} must hold finite numbers")
    return x


def of_shown(Q: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Q[i, a_i], (n,)."""
    return Q[np.arange(len(a)), a]


def refuse(wrong: np.ndarray, logged: Logged, rule: str) -> None:
    """Raise ValueError if some rows are wrong (n,). The error names the first row and how many there are."""
    if wrong.any():
        raise ValueError(f"{rule}; row {logged.numbers[np.argmax(wrong)]} does not ({int(wrong.sum())} such rows)")
