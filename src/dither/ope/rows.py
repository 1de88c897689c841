"""The rows of a log, checked once: what every estimator starts from.

    w_i = Q[i, a_i] / p_i       the importance weight, E[w] = 1 where the log supports the new policy
    s_i                         how many rows of the traffic row i stands for (`weight=`): 1 if the log was not thinned

No row is left out unless the caller asks (`mask=`, `bad="leave_out"`, a weight of 0). Such rows are counted by reason.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict

import numpy as np

from dither.base import errors
from dither.deciding import inputs
from dither.deciding.inputs import ROUNDING
from dither.log.check import HEAVIEST, LIGHTEST
from dither.log.schema import KINDS
from dither.ope import agree, labels

OF_Q = "Q must hold probabilities that sum to 1 in each row"
SILENT = (  # the cure where a log has no probabilities of a policy in some rows
    "rows have none that came before a shadow was given, say. Take those that have them, and everything from these: "
    "seen = seen.filter(~np.isnan(seen.matrix({column!r})).any(axis=1))"
)


class Propensities(NamedTuple):
    """Estimated probabilities of the logging policy: the estimators take it as p, or its parts as p=, P= and kind=."""

    p: np.ndarray  # (n,) of the arms shown
    P: np.ndarray  # (n, K) of all arms
    kind: str  # "estimated"
    clipped: int  # rows whose p was raised to `clip`


class RowOptions(TypedDict, total=False):
    """The options of the rows; n rows, K arms."""

    mask: Any  # (n,) booleans, True: the row is used; the others are left out and counted
    bad: str  # "refuse" (default) rows that break a rule, or "leave_out" them, counted
    kind: Any  # kind of p: "exact" (default), "monte_carlo" or "estimated"; one word, or (n,) words
    p_se: Any  # (n,) standard error of p, independent over the rows; needed by kind="monte_carlo"
    cluster: Any  # (n,) labels, such as users: rows of one label may depend on each other
    P: Any  # (n, K) the logging policy's probabilities of all arms, p among them, for the unsupported mass
    time: Any  # (n,) sorts the rows for the test of drift and for "betting"
    weight: Any  # (n,) how many rows of the traffic each row stands for, such as 1/(1 - pdrop); a row of 0 is left out


class Rows(NamedTuple):
    """The rows that are used, n of them."""

    r: np.ndarray  # (n,) rewards
    a: np.ndarray  # (n,) arms shown, int64
    p: np.ndarray  # (n,) their logged probabilities
    w: np.ndarray  # (n,) weights q/p
    Q: np.ndarray  # (n, K) the new policy
    M: np.ndarray | None  # (n, K) reward predictions
    p_se: np.ndarray | None  # (n,) standard error of p; None where exact
    kind: str  # the weakest kind of the rows, one of KINDS
    group: np.ndarray | None  # (n,) numbers of the clusters from 0
    order: np.ndarray | None  # (n,) rows in order of time; None: as they are
    gap: np.ndarray | None  # (n,) mass of Q on arms with P = 0; None where P is not known
    places: np.ndarray | None  # (n,) in what was passed; None: all of it
    left_out: dict[str, int]  # reason -> rows
    s: np.ndarray | None = None  # (n,) weights of the rows; None: all are 1
    limit: float | None = None  # what w cannot exceed, max Q/P over rows and arms; None where P is not known
    P: np.ndarray | None = None  # (n, K) the logging policy's probabilities of all arms, where they are known

    @property
    def share(self) -> Any:
        """s over its mean (n,), or 1: what a row's term is multiplied by in a mean over the traffic."""
        return 1.0 if self.s is None else self.s / np.mean(self.s)

    @property
    def ess(self) -> float:
        """(Σsw)²/Σ(sw)²: so many rows of equal weight would say as much (Kish); 0 where all weights are 0."""
        carried = self.share * self.w
        squares = float(carried @ carried)
        return float(np.sum(carried)) ** 2 / squares if squares else 0.0

    def mean(self, x: np.ndarray) -> float:
        """Σ s x/Σ s of x (n,)."""
        return float(np.mean(x)) if self.s is None else float(np.mean(self.share * x))

    def some(self, which: Any) -> "Rows":
        """Some of the rows, without clusters, as far as a value and its error read them."""
        s = None if self.s is None else self.s[which]
        return self._replace(r=self.r[which], w=self.w[which], s=s, group=None, order=None)


def read(r: Any, a: Any, p: Any, Q: Any, M: Any = None, **options: Any) -> Rows:
    """Check the arrays of a log against the rules and take the weights.

    r (n,), a (n,) whole numbers in [0, K), p (n,) in (0, 1] or `Propensities`, Q (n, K) rows that sum to 1, M (n, K)
    or None; options as in `RowOptions`. Raises ValueError that names the argument, the first row that breaks a rule,
    and their number.
    """
    for name in options.keys() - RowOptions.__annotations__:
        raise TypeError(str(errors.unknown("option", name, names=RowOptions.__annotations__)))
    if isinstance(p, Propensities):
        options = {"kind": p.kind, **options}
        _refuse_rare_arms(a, p, options)
    agree.rows(r=r, a=a, p=p, Q=Q, M=M, **{name: x for name, x in options.items() if name not in ("bad", "kind")})
    agree.columns(Q=Q, M=M, P=options.get("P"))
    r, a, p, Q, M = _shaped(r, a, p, Q, M)
    n, K = Q.shape
    s = row_weights(options.get("weight"), n)
    Q, proper = inputs.shares(Q)
    P = None if options.get("P") is None else numbers(options["P"], name="P", shape=(n, K))
    kind, p_se = _kind(options.get("kind", "exact"), options.get("p_se"), n)
    exact = np.broadcast_to(np.asarray(options.get("kind", "exact"), dtype=object) == "exact", (n,))
    keep, left_out = _kept(_rules(r, a, p, Q, M, P, exact, proper), n, options, s)
    places = None
    if not keep.all():
        places = np.flatnonzero(keep)
        r, a, p, Q, M, P, p_se, s = (None if x is None else x[places] for x in (r, a, p, Q, M, P, p_se, s))
    if not len(r):
        raise ValueError(f"no row is left of {n}" + "".join(f"; {count}: {why}" for why, count in left_out.items()))
    arms = a.astype(np.int64)
    q = np.take_along_axis(Q, arms[:, None], axis=1)[:, 0]
    gap = None if P is None else np.sum(Q, axis=1, where=P <= 0)
    group, order = labels.numbered(options.get("cluster"), n, places), labels.order(options.get("time"), n, places)
    limit = None if P is None else float(np.max(np.divide(Q, P, out=np.zeros_like(Q), where=P > 0)))
    return Rows(r, arms, p, q / p, Q, M, p_se, kind, group, order, gap, places, left_out, s, limit, P)


def row_weights(weight: Any, n: int) -> np.ndarray | None:
    """Weights of rows (n,), checked; None for None. Raises ValueError that names the first row that breaks the rule."""
    if weight is None:
        return None
    s = inputs.numbers(weight, name="weight")
    if s.shape != (n,):
        raise ValueError(f"weight must have shape ({n},), a number for each row; got {s.shape}")
    with np.errstate(invalid="ignore"):
        bad = ~((s == 0) | ((s >= LIGHTEST) & (s <= HEAVIEST)))
    if bad.any():
        row, where = labels.first(bad, n)
        raise ValueError(
            f"weight must be 0 or lie in [{LIGHTEST:g}, {HEAVIEST:g}], as it is how many rows of the traffic a row "
            f"stands for; got {s[row]} {where}: mend the log, or leave these rows out with mask="
        )
    if n and not s.any():
        raise ValueError(f"weight must not be 0 in all {n} rows: no row stands for anything")
    return s


def second(P: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """φ = Σ_k Q_k²/P_k (n,), over the arms that P can show: the mean of w² over them."""
    return np.sum(np.divide(Q * Q, P, out=np.zeros(P.shape), where=P > 0), axis=1)


def _refuse_rare_arms(a: Any, p: Propensities, options: Mapping[str, Any]) -> None:
    """Refuse rows whose arm no model of another fold has seen: their p is 0, and nothing is wrong with the log."""
    zero = np.asarray(p.p) == 0
    zero = zero & np.asarray(options["mask"], dtype=bool) if options.get("mask") is not None else zero
    if options.get("bad", "refuse") == "refuse" and zero.any() and np.shape(a) == zero.shape:
        row = int(np.argmax(zero))
        arm = np.asarray(a)[row]
        raise ValueError(
            f"p must lie in (0, 1]; it is 0 at row {row} ({int(zero.sum())} such rows): arm {arm} is so rare (shown in "
            f"{int(np.sum(np.asarray(a) == arm))} of {len(zero)} rows) that a fold learnt without it. Join rare "
            "arms to one, leave their rows out with mask=, or estimate with propensities_from(..., clip=the least p)"
        )


def faults(r: Any, a: Any, p: Any, Q: Any, M: Any = None) -> dict[str, np.ndarray]:
    """The rows that break each rule of `read`, as rule -> row numbers; empty where none does."""
    agree.rows(r=r, a=a, p=p, Q=Q, M=M)
    agree.columns(Q=Q, M=M)
    r, a, p, Q, M = _shaped(r, a, p, Q, M)
    broken = _rules(r, a, p, Q, M)
    return {rule: np.flatnonzero(wrong) for rule, (wrong, _) in broken.items() if wrong.any()}


def _shaped(r: Any, a: Any, p: Any, Q: Any, M: Any) -> tuple[Any, ...]:
    Q = inputs.numbers(Q, name="Q")
    if Q.ndim != 2 or Q.shape[1] == 0:
        raise ValueError(f"Q must be (n, K): the new policy's probability of each arm in each row; got {Q.shape}")
    n = len(Q)
    p = p.p if isinstance(p, Propensities) else p
    r, a, p = (numbers(x, name=name, shape=(n,)) for x, name in ((r, "r"), (a, "a"), (p, "p")))
    return r, a, p, Q, M if M is None else numbers(M, name="M", shape=Q.shape)


def numbers(x: Any, *, name: str, shape: tuple[int, ...], of: str = "Q") -> np.ndarray:
    """Real numbers of a given shape, which is that of the argument `of`; else ValueError."""
    array = inputs.numbers(x, name=name)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, as {of} has a row for each decision; got {array.shape}")
    return array


def _rules(r, a, p, Q, M, P=None, exact=True, proper=None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rule -> (rows that break it, the argument that breaks it). exact (n,): p has no error; proper (n,): ΣQ = 1."""
    K = Q.shape[1]
    whole = (a >= 0) & (a < K) & (a == np.floor(a))
    possible = (p > 0) & (p <= 1 + ROUNDING)
    with np.errstate(invalid="ignore", over="ignore"):
        proper = inputs.shares(Q)[1] if proper is None else proper
        arms = np.where(whole, a, 0).astype(np.int64)
        q = np.take_along_axis(Q, arms[:, None], axis=1)[:, 0]
        heavy = possible & proper & (q > HEAVIEST * p)
    rules = {
        "r must be finite and below 1e100 in size": (~(np.abs(r) < inputs.LARGEST), r),
        f"a must be a whole number from 0 to {K - 1}": (~whole, a),
        "p must lie in (0, 1]": (~possible, p),
        "q/p must be below 1e100": (heavy, p),
        OF_Q: (~proper, Q),
    }
    if M is not None:
        rules["M must be finite and below 1e100 in size"] = (~np.all(np.abs(M) < inputs.LARGEST, axis=1), M)
    if P is not None:
        shown = np.take_along_axis(P, arms[:, None], axis=1)[:, 0]
        agrees = np.all((P >= 0) & (P <= 1 + ROUNDING), axis=1) & ((shown > 0) | ~possible)
        rules["P must hold probabilities, above 0 for the arm shown"] = (~agrees, P)
        apart = exact & agrees & possible & (np.abs(shown - p) > ROUNDING * p)
        rule = f"P and p must agree for the arm shown, within {ROUNDING:g} of p, where kind= says that p is exact"
        rules[rule] = (apart, np.stack([shown, p], axis=1))
    return rules


def _kept(rules, n: int, options: Mapping[str, Any], s: np.ndarray | None = None) -> tuple[np.ndarray, dict[str, int]]:
    """Which rows are used, and how many are not, by reason; a row counts under the first reason that it has."""
    keep, left_out = np.ones(n, dtype=bool), {}
    if options.get("mask") is not None:
        mask = np.asarray(options["mask"])
        if mask.shape != (n,) or not np.all((mask == 0) | (mask == 1)):
            raise ValueError(f"mask must be {n} booleans, one for each row (True: use it); got shape {mask.shape}")
        keep = mask == 1
        if not keep.all():
            left_out["mask"] = int(n - keep.sum())
    if s is not None and np.any(keep & (s == 0)):
        left_out["weight is 0"] = int(np.sum(keep & (s == 0)))
        keep &= s > 0
    bad = options.get("bad", "refuse")
    if bad not in ("refuse", "leave_out"):
        raise ValueError(f"bad must be 'refuse' or 'leave_out', got {bad!r}")
    for rule, (wrong, argument) in rules.items():
        wrong = wrong & keep
        if not wrong.any():
            continue
        if bad == "refuse":
            row, where = labels.first(wrong, n)
            if rule == OF_Q and np.isnan(argument[row]).all():
                raise ValueError(f"{rule}; got {argument[row].tolist()} {where}: {SILENT.format(column='judged')}")
            raise ValueError(
                f"{rule}; got {argument[row].tolist()} {where}: mend the log, or pass bad='leave_out', which biases "
                f"the estimate and is counted"
            )
        left_out[rule] = int(wrong.sum())
        keep &= ~wrong
    return keep, left_out


def _kind(kind: Any, p_se: Any, n: int) -> tuple[str, np.ndarray | None]:
    """The weakest kind, and the standard errors of p: 0 where exact."""
    kinds = np.asarray(kind, dtype=object)
    if kinds.shape not in ((), (n,)):
        raise ValueError(f"kind must be one word or {n} of them, one a row; got shape {kinds.shape}")
    for word in set(kinds.ravel().tolist()):
        errors.among("kind of propensity", word, KINDS)
    none = np.broadcast_to(kinds == "none", (n,))
    if none.any():
        raise ValueError(
            f"p is of kind 'none' at row {int(np.argmax(none))} ({int(none.sum())} of {n} rows): no probability was "
            f"logged. Estimate them with dither.ope.propensities_from, or log with monte_carlo= draws"
        )
    least = max(kinds.ravel().tolist(), key=KINDS.index, default=KINDS[0])
    drawn = np.broadcast_to(kinds == "monte_carlo", (n,))
    if p_se is None:
        if drawn.any():
            raise ValueError("kind='monte_carlo' needs p_se=, the standard error of each p: the interval widens by it")
        return least, None
    p_se = inputs.numbers(p_se, name="p_se")
    if p_se.shape not in ((), (n,)):
        raise ValueError(f"p_se must be one number or have shape ({n},), one for each row; got {p_se.shape}")
    p_se = np.broadcast_to(p_se, (n,))
    if kinds.ndim:
        p_se = np.where(kinds == "exact", 0.0, p_se)
    wrong = ~((p_se >= 0) & (p_se < np.inf))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"p_se must be finite and not negative, got {p_se[row]} at row {row}")
    return least, p_se


class ArmRows(NamedTuple):
    """n decisions among K arms of d features: what learning from a log starts from."""

    r: np.ndarray  # (n,) rewards
    a: np.ndarray  # (n,) int, arms shown
    p: np.ndarray  # (n,) their probabilities
    X: np.ndarray  # (n, K, d), 0 for arms not on offer; (n, d) of slots
    mask: np.ndarray  # (n, K) True: on offer
    s: np.ndarray | None = None  # (n,) how many rows of the traffic each stands for; None: 1

    @property
    def x(self) -> np.ndarray:
        """The features of the arms shown, (n, d); the contexts of slots."""
        return self.X if self.X.ndim == 2 else self.X[np.arange(len(self.a)), self.a]

    def standing(self) -> "ArmRows":
        """The rows that stand for any: those of weight 0 do not."""
        return self if self.s is None or self.s.all() else self.part(self.s > 0)

    def part(self, rows: Any) -> "ArmRows":
        """Some of the rows."""
        return ArmRows(*(None if x is None else x[rows] for x in self))  # type: ignore[arg-type]


def with_arms(r: Any, a: Any, p: Any, X: Any, mask: Any, weight: Any = None, *, slots: int | None = None) -> ArmRows:
    """Check the arrays of a log with the features of all arms on offer.

    r, a, p, weight (n,); X (n, K, d), or (n, d) contexts where there are K slots; mask (n, K). Of mask and weight, None
    too.

    Raises ValueError that names the argument, the first row that breaks a rule and their number.
    """
    agree.rows(r=r, a=a, p=p, weight=weight)
    X = inputs.numbers(X, name="X")
    if X.ndim != (3 if slots is None else 2) or 0 in X.shape:
        shape = "(n, K, d): the arms on offer in each row" if slots is None else "(n, d): the context of each row"
        raise ValueError(f"X must be {shape}, with at least one row; got {X.shape}")
    n, K = len(X), X.shape[1] if slots is None else slots
    offered = np.ones((n, K), dtype=bool) if mask is None else inputs.offered(mask, shape=(n, K))
    inputs.finite(X, name="X", mask=offered if slots is None else None)
    X = np.where(offered[..., None], X, 0.0) if slots is None else X
    r, p = (numbers(x, name=name, shape=(n,), of="X") for x, name in ((r, "r"), (p, "p")))
    inputs.finite(r, name="r")
    a = inputs.whole(a, name="a", below=K, shape=(n,))
    bad = ~((p > 0) & (p <= 1 + ROUNDING))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"p must lie in (0, 1], as the arm was shown; got {p[row]} at row {row} ({int(bad.sum())} such rows): "
            f"log the probability of each decision, or leave these rows out and say so"
        )
    off = ~offered[np.arange(n), a]
    if off.any():
        row = int(np.argmax(off))
        raise ValueError(f"row {row} shows arm {a[row]}, which mask rules out ({int(off.sum())} such rows)")
    return ArmRows(r, a, p, X, offered, row_weights(weight, n))
