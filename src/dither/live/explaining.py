"""Why a stored decision has the arm that it has: the bandit as it was at that moment is asked again.

    the request   of the row: features, ids, values, minima, the baseline and what was safe
    the state     after the batch that the row knew (`past`), grown to the slots of the row, faded to its time
    the chance    z, where it was stored; the coins of the demands are derived (`deciding.causes`)

The ledger alone is asked, so any ledger that can be read may be, whoever has it open. What cannot be known is said in
`Explanation.unknown`, and never guessed. So that nothing is told of another state than that of the decision, the
probability that this state gives to the arm is compared with the one that was stored.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

from dither.bandit.bandit import Bandit
from dither.base import errors
from dither.deciding.answers import Kind
from dither.deciding.causes import ROUNDING, Chosen
from dither.deciding.explain import Explanation, StoredDecision
from dither.deciding.mean_parts import MeanParts
from dither.deciding.request import Request
from dither.live import beside, past, taught, turns
from dither.log import Ledger, acting, record
from dither.log.database import keeping, one_decision
from dither.log.database.one_decision import DecisionRow
from dither.log.reward_rules import id_text
from dither.log.troubles import in_words

AGREED = 1e-4  # the probability that was stored and that of the state agree to this share of it, in float32 too
_NOTHING = np.empty(0)


class PastMoment(NamedTuple):
    """What a ledger says of the moment of a decision."""

    bandit: Bandit | None  # as it was; None: that is not known
    slots: tuple[str, ...]  # ids of the disjoint slots
    forgotten: bool  # whether it had learnt what was erased since
    versions: dict[str, Any]
    unknown: tuple[str, ...]


def explained(ledger: Ledger, id: Any, *, known: tuple[type, ...] = (), model: Any = None) -> Explanation:
    """Why the arm of a decision was shown.

    id : of the decision; known, model : as for `dither.load`, where the bandit is made of classes of your own

    Raises LookupError for an id that no decision has.
    """
    ledger.committer.begun()
    with ledger.database.reading() as connection:
        decided = one_decision.read(connection, id_text(id))
        moment = _moment(connection, decided, {"known": known, "model": model})
    answer, odd = None, moment.unknown
    if moment.bandit is not None:
        try:
            answer, more = _compared(_asked(decided, moment.bandit, moment.slots), decided, moment)
        except Exception as reason:  # of a class of the user's, or the row is that of another bandit
            more = (f"what the bandit made of the request ({in_words(reason)})",)
        odd += more
    if answer is None:
        answer = _of_row(decided)
    if _fell(decided):
        answer = _of_fallback(answer)
    elif _ruled(decided):
        answer = _of_rule(answer, decided)
    judged, stored = _numbers(decided, beside.JUDGED), _stored(decided, moment.versions)
    return replace(answer, ids=decided.arms, decision=stored, judged=judged, unknown=answer.unknown + odd)


def _stored(decided: DecisionRow, versions: dict[str, Any]) -> StoredDecision:
    row, place = decided.row, decided.row.arm
    arm = str(place) if decided.arms is None else decided.arms[place]
    time = record.EPOCH + timedelta(microseconds=row.time)
    return StoredDecision(row.id, time, arm, place, _p(decided), row.propensity_kind, row.propensity_se, versions)


def _p(decided: DecisionRow) -> float:
    """The probability that was stored; NaN: none was."""
    return np.nan if decided.row.propensity is None else float(decided.row.propensity)


def _ruled(decided: DecisionRow) -> bool:
    """Whether a rule acted in place of the bandit."""
    return (decided.row.policy or "").startswith(acting.RULE)


def _fell(decided: DecisionRow) -> bool:
    """Whether nothing was drawn, as the store was away, and the fallback of the call was shown."""
    return decided.extra.get(beside.FALLBACK) is True and decided.row.propensity is None


# The moment


def _moment(connection: Any, decided: DecisionRow, load: dict[str, Any]) -> PastMoment:
    row, extra = decided.row, decided.extra
    facts = None if row.batch is None else one_decision.batch_facts(connection, row.batch)
    mark, arithmetic = (None, None) if facts is None else (f"{facts.mark:016x}", facts.arithmetic)
    versions = {"dither": row.version, "preset": row.preset, "policy": row.policy, "batch": row.batch}
    versions |= {"mark": mark, "arithmetic": arithmetic}
    versions |= {name: extra.get(name) for name in (beside.CATALOGUE, beside.SHADOW)} | {
        "features": None,
        "event": None,
    }
    nothing = PastMoment(None, (), False, versions, ())
    if decided.erased:
        return nothing._replace(unknown=("what it was decided from, as its data was erased",))
    odd = _budgets(connection, decided)
    if row.batch is None:
        return nothing._replace(unknown=(*odd, "what the bandit had learnt, as the row names no batch"))
    try:
        state, event = past.state(connection, row.batch, load)
        bandit = _then(connection, state.bandit, decided)
    except Exception as reason:  # the row is of another ledger, or a class of the user's is not there
        return nothing._replace(unknown=(*odd, f"what the bandit had learnt ({in_words(reason)})"))
    versions["event"] = None if event is None else event.number
    if bandit.features is not None:
        versions["features"] = bandit.features.fingerprint
    if state.otherwise is not None:
        batches = " to ".join(map(str, dict.fromkeys(state.otherwise)))
        odd += (f"the last digits, as another arithmetic has taught batches of {batches}",)
    forgotten = one_decision.erased_since(connection, row.batch, row.time)
    return PastMoment(bandit, one_decision.slots(connection), forgotten, versions, odd)


def _then(connection: Any, bandit: Bandit, decided: DecisionRow) -> Bandit:
    """What was learnt, with the slots of the row, at its time."""
    version = decided.extra.get(beside.CATALOGUE)
    if bandit.slots is not None and version is not None:
        taught.grow(bandit, one_decision.arms_by(connection, version))
    if bandit.clocked:
        bandit.advance(decided.row.time / 1e6)
    return bandit


def _budgets(connection: Any, decided: DecisionRow) -> tuple[str, ...]:
    """What is not known of arms that have a budget, and were not on offer."""
    offered = decided.arms or tuple(map(str, range(decided.row.K)))
    absent = [arm for arm in keeping.settings(connection).get(turns.BUDGETS, {}) if arm not in offered]
    return (f"whether {errors.either(absent)} was not asked for, or had spent its budget",) if absent else ()


# The request, asked again


def _asked(decided: DecisionRow, bandit: Bandit, slots: tuple[str, ...]) -> Explanation:
    """What the bandit says of the row: of the arms on offer."""
    if bandit.slots is None and decided.features is None:
        return _of_shown(decided, bandit)
    request, places = _request(decided, bandit, slots)
    safe = None if request.baseline is None else _spread(decided, beside.SAFE, request, places, 0.0)
    answer = bandit.account(
        request, arm=places[decided.row.arm], z=decided.row.z, safe=None if safe is None else safe > 0
    )
    return answer if request.mask is None else answer.of_arms(places)


def _request(decided: DecisionRow, bandit: Bandit, slots: tuple[str, ...]) -> tuple[Request, list[int]]:
    """The request of a row, and the positions in it of the arms on offer."""
    X, mask, places = decided.features, None, list(range(decided.row.K))
    if bandit.slots is not None:
        ids = (*slots, *map(str, range(len(slots), bandit.slots)))[: bandit.slots]
        places = places if decided.arms is None else [ids.index(arm) for arm in decided.arms]
        on = np.isin(np.arange(bandit.slots), places)
        X, mask = decided.x if decided.x is not None else X[0], None if on.all() else on  # type: ignore[index]
    request = Request(X, mask, (bandit.slots or len(places),), bandit.columns)  # type: ignore[arg-type]
    values = _spread(decided, beside.VALUES, request, places, 1.0)
    minimum = _spread(decided, beside.MINIMUM, request, places, 0.0)
    at, safe = decided.extra.get(beside.BASELINE), _numbers(decided, beside.SAFE)
    baseline = None if safe is None or at is None else np.array(places[at])
    return request._replace(values=values, minimum=minimum, baseline=baseline), places


def _numbers(decided: DecisionRow, name: str) -> np.ndarray | None:
    """A column that has a number for each arm on offer; None where the row has no such column."""
    numbers = decided.extra.get(name)
    if not isinstance(numbers, list) or len(numbers) != decided.row.K:
        return None
    if not all(x is None or isinstance(x, int | float) for x in numbers):
        return None
    return np.array(numbers, dtype=np.float64)


def _spread(decided: DecisionRow, name: str, request: Request, places: list[int], absent: float) -> np.ndarray | None:
    """Such a column over all arms of the request."""
    numbers = _numbers(decided, name)
    if numbers is None:
        return None
    spread = np.full(request.shape, absent)
    spread[places] = numbers
    return spread


def _of_shown(decided: DecisionRow, bandit: Bandit) -> Explanation:
    """What the bandit says where the features of the arm shown alone were stored."""
    row, values = decided.row, _numbers(decided, beside.VALUES)
    if decided.x is None:
        raise ValueError("the row has no features")
    v, n = None if values is None else values[[row.arm]], row.K
    one = bandit.account(Request(decided.x[None], None, (1,), bandit.columns, values=v), arm=0, z=row.z)
    if n == 1:
        return one
    minimum = _numbers(decided, beside.MINIMUM)
    request = Request(np.empty((n, 0)), None, (n,), minimum=minimum)  # of which the demands alone are asked
    chosen = bandit.coined(request, arm=row.arm, p=_p(decided) if row.propensity_kind == "exact" else np.nan)
    answer = replace(_of_row(decided), uniform=one.uniform, z=one.z, link=one.link, values=values, chosen=chosen)
    for name in ("m", "w", "mean", "width"):
        getattr(answer, name)[row.arm] = getattr(one, name)[0]
    if one.parts is not None:
        scores = np.full((n, len(one.parts.names)), np.nan)
        scores[row.arm] = one.parts.scores[0]
        answer = replace(answer, parts=MeanParts(one.parts.names, scores))
    lacks = "the features of the other arms, and so their means: those of the arm shown alone were stored"
    return replace(answer, unknown=(lacks,))


# What the row alone says


def _of_row(decided: DecisionRow) -> Explanation:
    """What is known of a decision without the bandit that made it."""
    row, n, p = decided.row, decided.row.K, _p(decided)
    nothing = [np.full(n, np.nan) for _ in range(7)]
    m, w, low, high, mean, width, each = nothing
    each[row.arm] = p
    if decided.probabilities is not None:
        each[:] = decided.probabilities
    coins, share = (row.floor or 0.0) / n, row.floor or 0.0
    chosen = Chosen(row.arm, "unknown")
    if n == 1:
        chosen = Chosen(row.arm, "alone")
    elif coins and row.propensity_kind == "exact" and p <= coins * (1 + ROUNDING):
        chosen = Chosen(row.arm, "uniform", 1.0)  # what the policy itself would never have shown
    kind: Kind = row.propensity_kind or "none"
    return Explanation(m, w, low, high, each, _NOTHING, None, share, row.z, (), mean, width, kind, chosen=chosen)


def _of_fallback(answer: Explanation) -> Explanation:
    """The same where nothing was drawn. The means are those of the bandit that was not asked."""
    none = np.full(len(answer.m), np.nan)
    arm, greedy = (0, ()) if answer.chosen is None else (answer.chosen.arm, answer.chosen.greedy)
    chosen = Chosen(arm, "fallback", None, greedy)
    nothing: dict[str, Any] = {"propensity": none, "propensity_se": None, "kind": "none", "uniform": 0.0}
    return replace(answer, chosen=chosen, best=(), unknown=_of_means(answer), **nothing)


def _of_means(answer: Explanation) -> tuple[str, ...]:
    """What is not known of the means, where the bandit did not choose: what it would have drawn is not asked."""
    return tuple(words for words in answer.unknown if "means" in words)


def _of_rule(answer: Explanation, decided: DecisionRow) -> Explanation:
    """The same where a rule acted, with a share of uniform choices. The means are those of the bandit beside it."""
    row, n, p, share = decided.row, decided.row.K, _p(decided), decided.row.floor or 0.0
    each = np.full(n, np.nan)
    ruled = p > share / n * (1 + ROUNDING)
    says = "It gave this arm." if ruled else "It gave another arm, and its share of uniform choices showed this one."
    if ruled:
        each[:] = share / n
    each[row.arm] = p
    coin = 1.0 if not ruled else share / n / p
    chosen = Chosen(row.arm, "rule", coin, answer.chosen.greedy if answer.chosen is not None else (), says)
    lacks = () if ruled else ("which arm the rule gave",)
    learnt = "Means and widths are those of the bandit beside it."
    chosen = replace(chosen, says=f"{says} {learnt}" if not np.isnan(answer.mean).all() else says)
    exact = dict(
        propensity=each, propensity_se=None, kind="exact", uniform=share, best=(), unknown=_of_means(answer) + lacks
    )
    return replace(answer, chosen=chosen, **exact)  # type: ignore[arg-type]


# Whether it is the state that decided


def _compared(
    answer: Explanation, decided: DecisionRow, moment: PastMoment
) -> tuple[Explanation | None, tuple[str, ...]]:
    """The explanation where it is one of the state that decided, else None; and what is not known."""
    row, agrees = decided.row, _agrees(answer, decided)
    if agrees is None and not _ruled(decided) and moment.bandit is not None:
        kind = type(moment.bandit.policy).__name__
        agrees = False if (row.policy or kind).partition("(")[0] != kind else None
    if moment.forgotten and agrees is not True:
        chosen, whole = answer.chosen, not np.isnan(answer.mean).any()  # else it is by the row alone
        if whole and chosen is not None and chosen.cause not in ("alone", "rule"):
            answer = replace(answer, chosen=Chosen(chosen.arm, "unknown"))
        lacks = "what the bandit had learnt of rewards that were erased since: means and widths are those without them"
        return answer, (lacks,)
    if agrees is False:
        p = errors.number(float(answer.propensity[row.arm]))
        return None, (
            f"what the bandit had learnt: after batch {row.batch} of this ledger it gives the arm {p}, and "
            f"{errors.number(_p(decided))} was stored, so another one has decided",
        )
    return answer, ()


def _agrees(answer: Explanation, decided: DecisionRow) -> bool | None:
    """Whether the state gives the probabilities that were stored; None: they cannot be compared."""
    stored, arm = np.array([_p(decided)]), decided.row.arm
    p, whole = answer.propensity[[arm]], answer.kind == "exact" and not np.isnan(answer.mean).any()
    if _ruled(decided):
        judged = _numbers(decided, beside.JUDGED)
        stored, p = (np.array([np.nan]) if judged is None else judged), answer.propensity
    elif decided.row.propensity_kind != "exact":
        return None
    if not whole or np.isnan(stored).any():
        return None
    return bool(np.all(abs(p - stored) <= AGREED * stored + 1e-9))
