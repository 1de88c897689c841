"""Vowpal Wabbit's decision-service JSON (--dsjson), one decision a line. Costs become rewards, r = -cost.

a, p                    the actions as ranked, counted from 1, and their probabilities in that order
c                       the context; the actions' own features in c._multi, in the order of their numbers
_label_cost, _label_probability, _label_Action (from 1), _labelIndex (from 0)      of the action shown
EventId, Timestamp
_skipLearn              the action was never shown (activation was deferred)
pdrop                   the probability with which the line would have been left out when the log was thinned: the
                        row stands for 1/(1 - pdrop) decisions
"""

import json
from typing import Any

from dither.log import schema
from dither.log.lines import Features, Malformed, Names, choice, log_of, named, opened, real, singly
from dither.log.logged import Logged


def dsjson(
    path: Any, *, features: bool = False, most: int = 1000, malformed: str = "error", skipped: str = "error"
) -> Logged:
    """A log of --dsjson lines.

    path : a file, or an iterable of lines
    features : read the context: shared features and the action's own, for each action
    most : features that there may be; more are refused, as every row gets a vector of that length
    malformed : lines that are not of the format: "error" (naming the line), or "leave out" (counted in `report`)
    skipped : lines with _skipLearn, whose action was never shown: "error", "leave out" (counted) or "keep"

    Raises FileNotFoundError; ValueError as above, and where no decision is left.
    """
    choice("malformed", malformed, "error", "leave out")
    choice("skipped", skipped, "error", "leave out", "keep")
    names = Names(most)

    def row(line: str) -> dict[str, Any] | None:
        event = _json(line)
        if event.get("_skipLearn") and skipped != "keep":
            if skipped == "error":
                raise ValueError("was never shown (_skipLearn): ask for skipped='leave out' or 'keep'")
            return None
        return _decision(event, names if features else None)

    return log_of(opened(path), singly, row, names, malformed, where=named(path))


def _decision(event: dict[str, Any], names: Names | None) -> dict[str, Any]:
    context = event.get("c")
    if "_outcomes" in event or (isinstance(context, dict) and "_slots" in context):
        raise ValueError("has several slots (CCB or slates), of which a log of single decisions cannot be made")
    ranked, p = event.get("a"), event.get("p")
    if not isinstance(context, dict) or not isinstance(ranked, list) or not isinstance(p, list):
        raise Malformed("a decision has an object c and lists a and p")
    multi = context.get("_multi")
    K = len(multi) if isinstance(multi, list) else len(ranked)
    if len(ranked) != len(p) or not ranked:
        raise Malformed(f"a has {len(ranked)} actions and p {len(p)} probabilities")
    base = 0 if 0 in ranked else 1
    places = [int(real(i, "a")) - base for i in ranked]
    if len(set(places)) < len(places) or min(places) < 0 or max(places) >= K:
        raise Malformed(f"a must hold different actions from {base} to {K - 1 + base}, got {ranked}")
    P = [0.0] * K
    for place, probability in zip(places, p, strict=True):
        P[place] = real(probability, "p")
    arm = _shown(event, places[0], K)
    cost, stated = event.get("_label_cost"), event.get("_label_probability")
    pdrop = real(event.get("pdrop", event.get("_pdrop", 0.0)), "pdrop")
    if not 0 <= pdrop < 1:
        raise Malformed(f"pdrop must be in [0, 1), got {pdrop}")
    tags = [one.get("_tag") if isinstance(one, dict) else None for one in multi] if isinstance(multi, list) else []
    tagged = bool(tags) and all(isinstance(tag, str) for tag in tags) and len(set(tags)) == K
    rows = None
    if names is not None:
        shared = _flatten({k: v for k, v in context.items() if k != "_multi"})
        rows = [names.sparse(shared | _flatten(one)) for one in (multi if isinstance(multi, list) else [{}] * K)]
    return {
        "id": None if event.get("EventId") is None else str(event["EventId"]),
        "time": _time(event.get("Timestamp")),
        "arms": tags if tagged else [str(i + 1) for i in range(K)],
        "K": K,
        "features": rows,
        "arm": arm,
        "propensity": P[arm] if stated is None else real(stated, "_label_probability"),
        "propensity_kind": "exact",
        "probabilities": P,
        "reward": None if cost is None else 0.0 - real(cost, "_label_cost"),
        "weight": 1 / (1 - pdrop),
    }


def _shown(event: dict[str, Any], first: int, K: int) -> int:
    """The place of the action shown: by its label, else the first of the ranking."""
    index, action = event.get("_labelIndex"), event.get("_label_Action")
    if (
        index is not None
        and action is not None
        and int(real(index, "_labelIndex")) != int(real(action, "_label_Action")) - 1
    ):
        raise Malformed(f"_labelIndex {index} and _label_Action {action} are not the same action")
    if index is None and action is None:
        arm = first
    else:
        arm = int(real(action, "_label_Action")) - 1 if index is None else int(real(index, "_labelIndex"))
    if not 0 <= arm < K:
        raise Malformed(f"the action shown is number {arm + 1} of {K}")
    return arm


def _flatten(value: Any, prefix: str = "") -> Features:
    """Numbers by name, texts as name=text, truth as 1; names that begin with _ are not features."""
    found: Features = {}
    if isinstance(value, dict):
        for key, inner in value.items():
            if not key.startswith("_"):
                found |= _flatten(inner, f"{prefix}^{key}" if prefix else key)
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            found |= _flatten(inner, prefix if isinstance(inner, dict) else f"{prefix}[{i}]")
    elif isinstance(value, str):
        found[f"{prefix}={value}"] = 1.0
    elif isinstance(value, (bool, int, float)) and value:
        found[prefix] = real(float(value), prefix)
    return found


def _json(line: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError as error:
        raise Malformed(f"it is no JSON ({error})") from None
    if not isinstance(event, dict):
        raise Malformed(f"a decision is a JSON object, got {type(event).__name__}")
    return event


def _time(text: Any) -> Any:
    try:
        return None if text is None else schema.moment(text)
    except ValueError as error:
        raise Malformed(str(error)) from None
