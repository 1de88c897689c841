"""Vowpal Wabbit's decision-service JSON (--dsjson), one decision a line. Costs become rewards, r = -cost.

a, p                    the actions as ranked, counted from 1, and their probabilities in that order
c                       the context; c._multi has the features of each action, in the order of the numbers of actions
_label_cost, _label_probability, _label_Action (from 1), _labelIndex (from 0)      of the action shown; they may also
                        stand in an object _label, in upper or lower case
_original_label_cost    in apprentice mode the cost of the traffic; there _label_cost says only whether the baseline was
                        imitated
EventId, Timestamp
_skipLearn              the action was never shown (activation was deferred)
pdrop                   the probability with which the thinning of the log leaves out such a line; so the row stands for
                        1/(1 - pdrop) decisions

Features have these names in the context. A feature in an object is object^feature. A number is the value of its
feature. A text is the feature name=text with value 1, and true is 1. Each word of _text is a feature. The numbers of an
array are name[0], name[1], ... Names that begin with _ are not features.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from dither.base.errors import Option, Refused
from dither.deciding.inputs import MOST_OFF, ROUNDING
from dither.features import tokens
from dither.log import lines
from dither.log.logged import Logged

COSTS = ("error", "label", "original")


def dsjson(
    path: Any,
    *,
    features: bool = False,
    cross: bool = False,
    names: Sequence[str] | None = None,
    most: int = 1000,
    cost: str = "error",
    malformed: str = "error",
    skipped: str = "error",
) -> Logged:
    """A log of --dsjson lines.

    path : a file, packed (gzip, bzip2, xz) or not, or an iterable of lines
    features : whether to read features: for each action those of the context and its own
    cross : whether to add the product of each shared feature and each feature of the action, as -q does in Vowpal
        Wabbit. For an action without features, its id takes their place. Without products, a shared context says
        nothing about which action is best.
    names : the columns of the features, such as `log.names` of another log; None: all names in the file, sorted
    most : the largest number of features. More are refused, since every row gets a vector of that length
    cost : which cost makes the reward where a line of apprentice mode has two: "label" (whether the baseline was
        imitated), "original" (the cost of the traffic), or "error"
    malformed : lines that do not have this form: "error" (it names the line), or "leave out" (`report` counts them)
    skipped : lines with _skipLearn, whose action was never shown: "error", "leave out" (counted) or "keep"

    Raises FileNotFoundError. Raises ValueError as said above, and if no decision is left.
    """
    lines.choice("malformed", malformed, "error", "leave out")
    lines.choice("skipped", skipped, "error", "leave out", "keep")
    lines.choice("cost", cost, *COSTS)
    columns = lines.FeatureNames(features=features, most=most, names=names, cross=cross)

    def row(line: str) -> dict[str, Any] | str:
        event = _json(line)
        if event.get("_skipLearn") and skipped != "keep":
            if skipped == "error":
                ways = Option("skipped", "leave out"), " or ", Option("skipped", "keep")
                raise Refused("was never shown (_skipLearn): ask for ", *ways)
            return lines.SKIPPED
        return _decision(event, columns if features else None, cost)

    return lines.positions(
        lines.log_of(lines.opened(path), lines.singly, row, columns, malformed, where=lines.named(path))
    )


def _decision(event: dict[str, Any], names: lines.FeatureNames | None, cost: str) -> dict[str, Any]:
    context = event.get("c")
    if "_outcomes" in event or (isinstance(context, dict) and "_slots" in context):
        raise ValueError("has several slots (CCB or slates), of which a log of single decisions cannot be made")
    ranked, p = event.get("a"), event.get("p")
    if not isinstance(context, dict) or not isinstance(ranked, list) or not isinstance(p, list):
        raise lines.Malformed("a decision has an object c and lists a and p")
    multi = context.get("_multi")
    actions = multi if isinstance(multi, list) else [{}] * len(ranked)
    K = len(actions)
    if len(ranked) != len(p) or not ranked:
        raise lines.Malformed(f"a has {len(ranked)} actions and p {len(p)} probabilities")
    base = 0 if 0 in ranked else 1
    places = [lines.whole(i, "a") - base for i in ranked]
    if len(set(places)) < len(places) or min(places) < 0 or max(places) >= K:
        raise lines.Malformed(f"a must hold different actions from {base} to {K - 1 + base}, got {ranked}")
    P = [0.0] * K
    for place, probability in zip(places, p, strict=True):
        P[place] = lines.real(probability, "p")
    if min(P) < 0 or abs(sum(P) - 1) > min(ROUNDING * max(K, 10), MOST_OFF):
        raise lines.Malformed(
            f"p must hold probabilities that sum to 1, got {p}, which sum to {sum(P):.6g}: log those of all "
            "actions in a"
        )
    label = _label(event)
    arm = _shown(label, places[0], K)
    paid, stated = _cost(label, cost), label.get("probability")
    pdrop = lines.real(event.get("pdrop", event.get("_pdrop", 0.0)), "pdrop")
    if not 0 <= pdrop < 1:
        raise lines.Malformed(f"pdrop must be in [0, 1), got {pdrop}")
    tags = [action.get("_tag") for action in actions if isinstance(action, dict)]
    texts = [tokens.nfc(tag) for tag in tags if isinstance(tag, str)]
    ids = texts if len(set(texts)) == K else [str(i + 1) for i in range(K)]
    features = None
    if names is not None:
        arms = [lines.summed(pairs(action)) for action in actions]
        features = names.arms(lines.summed(pairs(context)), arms, ids)
    id, time = event.get("EventId"), lines.moment(event.get("Timestamp"))
    p_shown = P[arm] if stated is None else lines.real(stated, "_label_probability")
    more = {"id": None if id is None else str(id), "time": time, "probabilities": P, "weight": 1 / (1 - pdrop)}
    return lines.decision(ids, features, arm, p_shown, paid, **more)


def _label(event: dict[str, Any]) -> dict[str, Any]:
    """What the line says of the action shown: cost, probability, action, index, original; in upper or lower case."""
    inner = next((v for k, v in event.items() if k.lower() == "_label" and isinstance(v, dict)), {})
    values: dict[str, Any] = {}
    spelt = [(f"_label_{key.lstrip('_')}", value) for key, value in inner.items()]
    for key, value in (*spelt, *event.items()):
        name = key.lower()
        if name in values and name != "_label" and values[name] != value and "label" in name:
            raise lines.Malformed(f"{name} stands there twice, as {values[name]!r} and as {value!r}: leave one out")
        values[name] = value
    names = {"_labelindex": "index", "_original_label_cost": "original"}
    names |= {f"_label_{name}": name for name in ("cost", "probability", "action")}
    return {ours: values[theirs] for theirs, ours in names.items() if values.get(theirs) is not None}


def _cost(label: dict[str, Any], cost: str) -> float | None:
    """The cost that counts; None if none came."""
    paid = None if "cost" not in label else lines.real(label["cost"], "_label_cost")
    if "original" not in label:
        return paid
    original = lines.real(label["original"], "_original_label_cost")
    if cost == "error" and original != paid:
        raise Refused(
            f"is of apprentice mode: _label_cost ({paid}) says whether the baseline was imitated, and the cost of the "
            f"traffic is _original_label_cost ({original}): pass ",
            *(Option("cost", "original"), ", or ", Option("cost", "label"), " for the imitation"),
        )
    return original if cost == "original" else paid


def _shown(label: dict[str, Any], first: int, K: int) -> int:
    """The place of the action shown: from the label, else the first of the ranking."""
    index = None if "index" not in label else lines.whole(label["index"], "_labelIndex")
    action = None if "action" not in label else lines.whole(label["action"], "_label_Action") - 1
    if index is not None and action is not None and index != action:
        raise lines.Malformed(f"_labelIndex {index} and _label_Action {action + 1} are not the same action")
    arm = next((place for place in (index, action) if place is not None), first)
    if not 0 <= arm < K:
        raise lines.Malformed(f"the action shown is number {arm + 1} of {K}")
    return arm


def pairs(value: Any, prefix: str = "") -> Iterator[tuple[str, float]]:
    """The name and the value of each feature; the docstring of the module says how they are named."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "_text" and isinstance(inner, str):
                yield from ((f"{prefix}^{word}" if prefix else word, 1.0) for word in inner.split())
            elif not key.startswith("_"):
                yield from pairs(inner, f"{prefix}^{key}" if prefix else key)
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from pairs(inner, prefix if isinstance(inner, dict) else f"{prefix}[{i}]")
    elif isinstance(value, str):
        yield f"{prefix}={value}", 1.0
    elif isinstance(value, (bool, int, float)) and value:
        yield prefix, 1.0 if value is True else lines.real(value, prefix)


def _json(line: str) -> dict[str, Any]:
    event = lines.json_of(line)
    if not isinstance(event, dict):
        raise lines.Malformed(f"a decision is a JSON object, got {type(event).__name__}")
    return event
