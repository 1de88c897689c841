"""A log in memory: a frame of decisions and NumPy views of it, ready for `dither.ope`.

K is the largest number of arms on offer in a row. Rows with fewer arms are padded, and `mask` says where arms are.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from dither.base import errors
from dither.log import acting, check, schema, storage

DIGITS = 1000  # an id of more digits is a text: Python makes no number of very many
YOURS = " (yours)"  # is put after the name of a user's column, if a column of the log has that name


class ByArm(NamedTuple):
    """A log whose arms are numbered by a catalogue, the same in every row."""

    arms: tuple[str, ...]  # (K,) ids
    a: np.ndarray  # (n,) int64, number of the shown arm in `arms`
    P: np.ndarray  # (n, K) logged probabilities, 0 for arms not on offer; NaN where none were logged
    mask: np.ndarray  # (n, K) True: on offer


@dataclass(frozen=True, eq=False)
class Logged:
    """Decisions with their rewards, one row each."""

    frame: Any  # polars, with the columns of `schema` and the user's own
    first: int = 0  # number of the first row in the whole log
    catalogue: tuple[str, ...] | None = None  # (K,) ids by position, where the rows do not list theirs
    repeats: np.ndarray | None = field(default=None, repr=False)  # (n,) whether the id came before; None: see the rows
    report: check.Report | None = None  # what `usable`, or a reader, read, used and left out
    most: int | None = None  # number of arms in the whole log, where neither rows nor a catalogue say it
    least: int | None = None  # smallest position shown in the whole log; None: see the rows
    shown_only: bool = False  # whether the catalogue holds only the arms that were shown: there may be more
    names: tuple[str, ...] | None = field(default=None, repr=False)  # (d,) names of the features, where they are known
    encoded_by: str | None = field(default=None, repr=False)  # fingerprint of the `Features` that made the features
    slot_ids: tuple[str, ...] | None = field(default=None, repr=False)  # (K,) ids of the disjoint slots that decided
    sparse: bool = False  # whether a feature that is not in the log is 0, as in Vowpal Wabbit: then logs can be joined
    reward_range: schema.Range | None = None  # in which the log's rewards lie; None: no limits, or it does not say
    rows: np.ndarray | None = field(default=None, repr=False)  # (n,) numbers in the whole log; None: from `first` on
    wrote: tuple[acting.ActingPolicy, ...] | None = field(default=None, repr=False)  # the whole log; None: see the rows

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        return f"Logged({len(self)} rows; {', '.join(self.frame.columns)})"

    @property
    def numbers(self) -> np.ndarray:
        """The number of each row in the whole log: (n,) int64."""
        return self.first + np.arange(len(self)) if self.rows is None else self.rows

    @property
    def r(self) -> np.ndarray:
        """Rewards (n,); NaN where none came."""
        return self._numbers("reward")

    @property
    def p(self) -> np.ndarray:
        """Logged propensities (n,); NaN where null."""
        return self._numbers("propensity")

    @property
    def se(self) -> np.ndarray:
        """Standard errors of the propensities (n,); NaN where they are exact."""
        return self._numbers("propensity_se")

    @property
    def z(self) -> np.ndarray:
        """The scalar z that was drawn for each decision (n,); NaN where there was none."""
        return self._numbers("z")

    @property
    def floor(self) -> np.ndarray:
        """Share of uniform choices (n,); NaN where it was not logged."""
        return self._numbers("floor")

    @property
    def weight(self) -> np.ndarray | None:
        """How many decisions of the traffic each row stands for (n,), 1 where null; None if no row says it."""
        if "weight" not in self.frame.columns or self.frame["weight"].null_count() == len(self):
            return None
        return self.frame["weight"].fill_null(1.0).to_numpy()

    @property
    def valued(self) -> bool:
        """Whether a row says what a unit of reward was worth for its arms, in lists `values` (docs/values.md)."""
        pl, there = schema.polars(), "values" in self.frame.columns
        return (
            there
            and isinstance(self.frame["values"].dtype, (pl.List, pl.Array))
            and self.frame["values"].null_count() < len(self)
        )

    @property
    def erased(self) -> np.ndarray:
        """Whether the data of each decision was erased (n,): its features, your own columns and its reward."""
        if "was_erased" not in self.frame.columns:
            return np.zeros(len(self), dtype=bool)
        return self.frame["was_erased"].fill_null(False).to_numpy()

    @property
    def fallen(self) -> np.ndarray:
        """Whether each decision is a fallback (n,), shown while the store could not be reached (`Live.choose`)."""
        column = self.frame["fallback"] if "fallback" in self.frame.columns else None
        if column is None or column.dtype != schema.polars().Boolean:
            return np.zeros(len(self), dtype=bool)
        return column.fill_null(False).to_numpy() & (self.kinds == "none")

    def standing(self) -> "Logged":
        """The rows without those of weight 0, which stand for no decision. The report counts the rows left out."""
        s = self.weight
        if s is None or np.all(s > 0):
            return self
        return check.without(self, s > 0, "weight is 0: the row stands for no decision")

    @property
    def a(self) -> np.ndarray:
        """Positions of the shown arms among those on offer (n,), int64; -1 where the arm is unknown."""
        return self._column("arm").fill_null(-1).to_numpy()

    @property
    def K(self) -> np.ndarray:
        """Numbers of arms on offer (n,), int64: from `K`, else the lists, else the catalogue, else the arms shown."""
        K = self._listed()
        rest = len(self.catalogue) if self.catalogue is not None else self.most
        if rest is None:
            rest = int(self.a.max(initial=-1)) + 1
        return np.full(len(self), rest) if K is None else K.fill_null(rest).to_numpy()

    @property
    def known_arms(self) -> bool:
        """Whether the log says of every row how many arms were on offer. If not, `K` may be too small."""
        if self.catalogue is not None and not self.shown_only:
            return True
        K = self._listed()
        return len(self) == 0 or (K is not None and K.null_count() == 0)

    def _listed(self) -> Any:
        """The numbers of arms on offer that the rows say, null where one does not; None if no row says it."""
        pl, has = schema.polars(), self.frame.columns
        numbers = [self.frame["K"]] if "K" in has else []
        if {"K", "arms"} <= set(has):
            counts = self.frame["arms"].list.len().cast(pl.Int64)
            other = (counts != self.frame["K"]).fill_null(False).to_numpy()
            self._refuse(other, lambda i: f"lists {counts[i]} ids in 'arms', and says that K is {numbers[0][i]}")
        numbers += [self.frame[name].list.len().cast(pl.Int64) for name in ("arms", "probabilities") if name in has]
        if self.catalogue is None and "features" in has:
            counts = self.frame["features"].list.len().cast(pl.Int64)
            numbers += [counts] if counts.max() != 1 else []  # a single row may be a context
        return pl.select(pl.coalesce(pl.lit(None, dtype=pl.Int64), *numbers)).to_series() if numbers else None

    @property
    def mask(self) -> np.ndarray:
        """(n, K): True where there is an arm, False where a row is padded."""
        K = self.K
        return np.arange(K.max(initial=0)) < K[:, None]

    @property
    def kinds(self) -> np.ndarray:
        """The kind of each propensity (n,), text; "exact" where the log does not say."""
        if "propensity_kind" not in self.frame.columns:
            return np.full(len(self), "exact")
        return self.frame["propensity_kind"].fill_null("exact").to_numpy().astype(str)

    @property
    def kind(self) -> str:
        """The kind of all propensities; "mixed" where rows have different kinds."""
        if "propensity_kind" not in self.frame.columns:
            return "exact"
        kinds = self.frame["propensity_kind"].fill_null("exact").unique().to_list()
        return kinds[0] if len(kinds) == 1 else "mixed"

    @property
    def P(self) -> np.ndarray:
        """Probabilities of all arms on offer (n, K); 0 where padded, NaN in rows without probabilities."""
        return self._lists("probabilities", self._column("probabilities"))

    @property
    def X(self) -> np.ndarray:
        """Features (n, K, d) of the arms on offer, 0 where padded. With disjoint slots: contexts (n, d)."""
        rows, counts = self._rows()
        K = self.K
        if self.slots:
            return rows
        self._refuse(counts != K, lambda i: f"has {counts[i]} rows of features for {K[i]} arms on offer")
        X = np.zeros((*self.mask.shape, rows.shape[1]))
        X[self.mask] = rows
        return X

    @property
    def x(self) -> np.ndarray:
        """Features of the shown arms (n, d); the context of a row that has one."""
        rows, counts = self._rows()
        a = np.where(self.contexts, 0, self.a)
        wrong = (a < 0) | (a >= counts)
        self._refuse(wrong, lambda i: f"has no features for its arm {a[i]}: {counts[i]} rows of features")
        return rows[np.cumsum(counts) - counts + a]

    @property
    def slots(self) -> bool:
        """Whether each row has one context for all arms on offer, instead of features for each."""
        return bool(np.all(self.contexts)) and (self.slot_ids is not None or len(self) > 0)

    @property
    def contexts(self) -> np.ndarray:
        """Which rows have one context for all arms on offer (n,); a log that slots decided may hold other rows too."""
        single = self._column("features").list.len().to_numpy() == 1
        if self.slot_ids is not None:
            return single
        return np.full(len(self), bool(np.all(single) and np.any(self.K > 1)))

    @property
    def id(self) -> np.ndarray:
        """Ids (n,), text or None."""
        return self._column("id").to_numpy()

    @property
    def seconds(self) -> np.ndarray:
        """Times of the decisions in seconds since 1970 (n,), as a model with a half_life takes them.

        Raises ValueError where a row has no time.
        """
        at = self._column("time")
        if at.null_count():
            row = int(at.is_null().arg_max() or 0)
            raise ValueError(
                f"row {row} has no time ({at.null_count()} such rows), and a model with half_life= forgets by the "
                f"clock: log the column `time`, or forget by discount=, which counts observations"
            )
        return at.dt.epoch("us").to_numpy() / 1e6

    @property
    def time(self) -> np.ndarray:
        """Times (n,), datetime64[us] in UTC; NaT where null."""
        return self._column("time").dt.replace_time_zone(None).to_numpy()

    @property
    def acting(self) -> tuple[acting.ActingPolicy, ...]:
        """What the log says of the policies that wrote it."""
        return acting.policies(self.frame) if self.wrote is None else self.wrote

    def column(self, name: str) -> np.ndarray:
        """Any column as NumPy (n,), such as the user, for clusters. Of two with one name, your own comes first."""
        return self.series(name).to_numpy()

    def series(self, name: str) -> Any:
        """Any column as a polars series. Of two with one name, your own comes first."""
        yours = f"{name}{YOURS}"
        return self._column(yours if yours in self.frame.columns else name)

    def matrix(self, name: str) -> np.ndarray:
        """Any column of lists with a number for each arm on offer, as (n, K): 0 where padded, NaN in rows without."""
        return self._lists(name, self.series(name))

    def _lists(self, name: str, lists: Any) -> np.ndarray:
        K = self.K
        counts = lists.list.len()
        absent = counts.is_null().to_numpy()
        counts = counts.fill_null(0).to_numpy().astype(np.int64)
        wrong = ~absent & (counts != K)
        self._refuse(wrong, lambda i: f"has {counts[i]} numbers in {name!r} for {K[i]} arms on offer")
        out = np.zeros((len(self), K.max(initial=0)))
        out[np.arange(out.shape[1]) < counts[:, None]] = schema.flat(lists)
        out[absent] = np.nan
        return out

    def arm_ids(self) -> list[list[str]]:
        """The ids of the arms on offer, row by row: from the lists, else from the catalogue, else their positions."""
        K = self.K
        places = self.catalogue or tuple(map(str, range(K.max(initial=0))))
        lists = self.frame["arms"].to_list() if "arms" in self.frame.columns else [None] * len(self)
        return [list(places[:k]) if ids is None else ids for ids, k in zip(lists, K.tolist(), strict=True)]

    def by_arm(self, arms: Any = None) -> ByArm:
        """The log with its arms numbered by a catalogue.

        arms : (K,) ids; None: all ids that were on offer, sorted (numbers by value)

        Raises ValueError for an arm of the log that `arms` lacks.
        """
        offered = self.arm_ids()
        ids = set().union(*offered)
        order = sorted(ids, key=by_value) if arms is None else [str(arm) for arm in arms]
        if (twice := errors.repeated(order)) is not None:
            raise ValueError(f"arms must name each arm once; {twice!r} comes more than once: leave out the repeats")
        place = {arm: i for i, arm in enumerate(order)}
        unknown = sorted(ids - place.keys(), key=by_value)
        if unknown:
            raise ValueError(f"arms must name all that were on offer; it lacks {', '.join(map(repr, unknown[:5]))}")
        counts = np.array([len(ids) for ids in offered], dtype=np.int64)
        row = np.repeat(np.arange(len(self)), counts)
        column = np.array([place[id] for ids in offered for id in ids], int)
        mask, P = np.zeros((len(self), len(order)), dtype=bool), np.full((len(self), len(order)), np.nan)
        mask[row, column] = True
        if "probabilities" in self.frame.columns:
            P = np.zeros_like(P)
            P[row, column] = self.P[np.arange(counts.max(initial=0)) < counts[:, None]]
        first, a = np.cumsum(counts) - counts, self.a
        return ByArm(tuple(order), np.where(a >= 0, column[first + np.maximum(a, 0)], -1), P, mask)

    def check(self) -> check.Report:
        """What is wrong with the log, and what the log does not say: findings with counts and row numbers."""
        return check.check(self)

    def usable(self, *, missing: str | float = "error", invalid: str = "error", duplicates: str = "error") -> "Logged":
        """The rows that an estimate may use, with a `report` of what was read, used and left out.

        Rows whose data was erased are left out, whatever the arguments are, and fallbacks, which nothing has drawn.

        missing : rows without a reward: "error", "leave out", or the number that stands for it
        invalid : rows whose propensity, kind of propensity, arm or reward makes no sense: "error" or "leave out"
        duplicates : rows whose id came before: "error" or "leave out" (the first is kept)

        Raises ValueError, naming the rows and how many there are, for what was not asked to be left out.
        """
        return check.usable(self, missing=missing, invalid=invalid, duplicates=duplicates)

    def filter(self, keep: np.ndarray) -> "Logged":
        """The rows where keep (n,) is True; they keep their numbers."""
        repeats = None if self.repeats is None else self.repeats[keep]
        frame = self.frame.filter(schema.polars().Series(keep))
        return replace(self, frame=frame, repeats=repeats, rows=self.numbers[keep])

    def write(self, path: Any) -> None:
        """Write the whole log to one Parquet file, atomically."""
        storage.write(path, self.frame, self.about)

    @property
    def about(self) -> dict[str, Any]:
        """What a file must say besides the frame: the arms by position, and the names of the features."""
        lists = {"catalogue": self.catalogue, "names": self.names, "slots": self.slot_ids}
        flags = {"shown_only": self.shown_only, "sparse": self.sparse}
        return lists | flags | {"encoded_by": self.encoded_by, "reward_range": schema.ends(self.reward_range)}

    def aligned(self, bandit: Any) -> "Logged":
        """The log with its features in the order of the names that a bandit learnt.

        If the bandit or the log has no names, features go by place. Raises ValueError if both have names and differ,
        or if other `Features` made the log's features than those of the bandit.
        """
        return self.placed(bandit.columns, None if bandit.features is None else bandit.features.fingerprint)

    def placed(self, learnt: tuple[str, ...] | None, features: str | None) -> "Logged":
        """`aligned`, to columns (d,) that were learnt, and the fingerprint of the `Features` that made them."""
        if features is not None and self.encoded_by not in (None, features):
            raise ValueError(
                f"other Features made the features of the log ({self.encoded_by}) than the bandit has ({features}): "
                "their columns differ in scale or choice. Take a bandit with the Features of the log, or encode anew"
            )
        if learnt is None or self.names is None or self.names == learnt:
            return self
        if set(learnt) != set(self.names):
            odd = schema.some(sorted(set(learnt) ^ set(self.names)))
            raise ValueError(
                f"the log has other features than the bandit learnt: {odd} differ. Read the log with the names that "
                "the bandit learnt (names=bandit.columns, for logs of Vowpal Wabbit), or log the same features"
            )
        return replace(self, frame=schema.ordered(self.frame, self.names, learnt), names=learnt)

    def _refuse(self, wrong: np.ndarray, words: Callable[[int], str]) -> None:
        """Raise ValueError for the first row that is wrong (n,). words : its place -> what is said of it"""
        if wrong.any():
            i = int(np.argmax(wrong))
            raise ValueError(f"row {self.numbers[i]} {words(i)}")

    def _column(self, name: str) -> Any:
        if name not in self.frame.columns:
            raise ValueError(f"the log has no column {name!r}; it has {', '.join(map(repr, self.frame.columns))}")
        return self.frame[name]

    def _numbers(self, name: str) -> np.ndarray:
        if name not in self.frame.columns:
            return np.full(len(self), np.nan)
        return self.frame[name].fill_null(np.nan).to_numpy()

    def _rows(self) -> tuple[np.ndarray, np.ndarray]:
        """All rows of features (N, d), and how many each decision has (n,)."""
        lists = self._column("features")
        self._refuse(
            lists.is_null().to_numpy(), lambda i: f"has no features ({lists.null_count()} such rows): log them"
        )
        counts = lists.list.len().to_numpy().astype(np.int64)
        rows = lists.filter(lists.list.len() > 0).explode()
        widths = rows.list.len().to_numpy()
        if widths.size and np.any(widths != widths[0]):
            i = int(np.searchsorted(np.cumsum(counts), np.argmax(widths != widths[0]), side="right"))
            raise ValueError(f"row {self.numbers[i]} has features of another width than {widths[0]}")
        d = int(widths[0]) if widths.size else 0
        if d == 0:
            raise ValueError("the features of the log have width 0: there is nothing to learn from; log some")
        return schema.flat(rows).reshape(-1, d), counts


def by_value(arm: str) -> tuple[int, int, str]:
    """The sort key of ids: whole numbers come first, by value, then texts."""
    return (0, int(arm), arm) if arm.isdecimal() and len(arm) <= DIGITS else (1, 0, arm)
