"""coba's results, one JSON array a line, as an experiment of coba writes them (version 4).

["version",4]
["E",0,{...}] ["L",0,{...}] ["V",0,{...}]                   environments, learners, evaluators, by number
["I",[0,0,0],{"_packed":{"action":["a","b"],"probability":[0.5,0.5],"reward":[1,0],"actions":[["a","b"],["a","b"]]}}]

An I has the interactions of one environment, learner and evaluator, in their order, a list for each thing that was
recorded. Needed are action, probability and reward. With actions the log knows what was on offer; with context, and
actions that are numbers or records, it has features. coba rounds numbers to five digits, and so are these propensities.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from dither.base.errors import Option, Refused
from dither.features import tokens
from dither.log import lines, schema
from dither.log.foreign import filled_up
from dither.log.logged import Logged, by_value
from dither.log.vw_json import pairs

VERSION = 4
NEEDED = ("action", "probability", "reward")
OF = ("environment", "learner", "evaluator")
Row = dict[str, Any]


def coba(
    path: Any,
    *,
    environment: int | None = None,
    learner: int | None = None,
    evaluator: int | None = None,
    arms: int | None = None,
    features: bool = False,
    cross: bool = False,
    names: Sequence[str] | None = None,
    most: int = 1000,
    malformed: str = "error",
) -> Logged:
    """A log of what a learner of coba did, from a file of results.

    path : a file, packed (gzip, bzip2, xz, zstd) or not, or an iterable of lines
    environment, learner, evaluator : their numbers, where the file has interactions of several
    arms : how many actions were on offer, where no actions were recorded; None: those that were chosen, perhaps more
    features, cross, names, most, malformed : as for `dsjson`

    An action is its text, or its JSON where it is a list or a record. Raises as `dsjson` does.
    """
    lines.choice("malformed", malformed, "error", "leave out")
    columns = lines.FeatureNames(features=features, most=most, names=names, cross=cross)
    where = lines.named(path)
    number, packed = _interactions(lines.opened(path), (environment, learner, evaluator), where)
    listed = "actions" in packed
    shown = () if listed else tuple(sorted({_id(action) for action in packed["action"]}, key=by_value))
    if listed and arms is not None:
        raise Refused(f"{where} says in its actions how many were on offer: leave out ", Option("arms"))

    def row(one: Row) -> Row:
        return _decision(one, shown, columns if features else None)

    def split(_: Iterable[str]) -> Iterator[tuple[int, Row]]:
        n = len(packed["action"])
        return ((number, {name: values[i] for name, values in packed.items()} | {"row": i}) for i in range(n))

    rows = lines.log_of([], split, row, columns, malformed, where=where)
    if listed:
        return rows
    frame = rows.frame.drop("arms", "K")
    if arms is None:
        return replace(rows, frame=frame, catalogue=shown, shown_only=True)
    catalogue = filled_up(shown, arms)
    places = [catalogue.index(id) for id in shown]
    frame = frame.with_columns(
        schema.polars().col("arm").replace_strict(list(range(len(shown))), places, return_dtype=schema.dtype("whole")),
        schema.polars().lit(arms, dtype=schema.dtype("whole")).alias("K"),
    )
    return replace(rows, frame=frame, catalogue=catalogue)


def _interactions(text: Iterable[str], asked: Sequence[int | None], where: str) -> tuple[int, dict[str, list[Any]]]:
    """The interactions that are asked for, by what was recorded, and the number of their line."""
    every: dict[tuple[Any, ...], tuple[int, Any]] = {}
    version = None
    for number, line in lines.singly(text):
        what = _array(line, number, where)
        if version is None:
            version = what[1] if what[0] == "version" and len(what) > 1 else "none"
            if version != VERSION:
                raise ValueError(
                    f'line {number} of {where} must be ["version",{VERSION}], as coba writes its results; got '
                    f"{line[:60]!r}"
                )
        if what[0] == "I":
            key, value = _numbers(what, number, where)
            if key in every:
                raise ValueError(
                    f"line {number} of {where} has the interactions that line {every[key][0]} has "
                    f"({_listed({key: value})}): leave one of the two lines out, since only one of them is of the log"
                )
            every[key] = number, value
    some = {key: one for key, one in every.items() if all(a in (None, k) for a, k in zip(asked, key, strict=True))}
    if not some:
        raise ValueError(f"{where} holds no interactions" + f" of these numbers; it has {_listed(every)}" * bool(every))
    if len(some) > 1:
        place = next(i for i in range(3) if len({key[i] for key in some}) > 1)
        raise Refused(
            f"{where} has interactions of several ({_listed(some)}): say which with ",
            Option(OF[place]),
            ", as one log is of one learner",
        )
    number, packed = next(iter(some.values()))
    lacking = [name for name in NEEDED if name not in packed]
    if lacking:
        raise ValueError(
            f"the interactions in line {number} of {where} lack {', '.join(map(repr, lacking))}; they have "
            f"{', '.join(map(repr, packed))}: record it, as in SequentialCB(record=['action', 'probability', 'reward', "
            "'actions', 'context'])"
        )
    lengths = {name: len(values) if isinstance(values, list) else -1 for name, values in packed.items()}
    if set(lengths.values()) != {lengths["action"]} or lengths["action"] < 1:
        raise ValueError(f"the lists in line {number} of {where} must be of one length, at least 1; got {lengths}")
    return number, packed


def _array(line: str, number: int, where: str) -> list[Any]:
    try:
        what = lines.json_of(line)
    except lines.Malformed as error:
        raise ValueError(f"line {number} of {where}: {error}") from None
    if not isinstance(what, list) or not what:
        raise ValueError(f"line {number} of {where} must be a JSON array, got {line[:60]!r}")
    return what


def _numbers(what: list[Any], number: int, where: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The numbers of environment, learner and evaluator, and what was recorded."""
    if len(what) == 3 and isinstance(what[1], list) and 2 <= len(what[1]) <= 3 and isinstance(what[2], dict):
        key, packed = (*what[1], 0)[:3], what[2].get("_packed")
        if isinstance(packed, dict) and all(type(one) is int for one in key):
            return key, packed
    raise ValueError(f'line {number} of {where} must be ["I",[environment,learner,evaluator],{{"_packed":{{...}}}}]')


def _listed(every: dict[tuple[Any, ...], Any]) -> str:
    some = [f"{e}, {lrn}, {v}" for e, lrn, v in list(every)[:4]]
    return f"{', '.join(OF)}: {'; '.join(some)}" + "; ..." * (len(every) > 4)


def _decision(one: Row, shown: Sequence[str], names: lines.FeatureNames | None) -> Row:
    where, chosen = f"interaction {one['row']}", _id(one["action"])
    p = lines.real(one["probability"], f"the probability of {where}")
    reward = None if one["reward"] is None else lines.real(one["reward"], f"the reward of {where}")
    cost = None if reward is None else -reward
    shared = lines.summed(pairs(_plain(one.get("context")), "context"))
    if shown:
        features = None if names is None else [names.noted(shared)]
        return lines.decision(None, features, shown.index(chosen), p, cost)
    actions = one["actions"]
    if not isinstance(actions, list) or not actions:
        raise lines.Malformed(f"the actions of {where} must be a list, got {actions!r}")
    ids = [_id(action) for action in actions]
    if len(set(ids)) < len(ids) or chosen not in ids:
        raise lines.Malformed(f"the action of {where}, {chosen}, must be one of its actions, which differ: {ids}")
    features = None
    if names is not None:
        each = [lines.summed(pairs(_plain(action), "action")) for action in actions]
        features = names.arms(shared, each, ids)
    return lines.decision(ids, features, ids.index(chosen), p, cost)


def _plain(value: Any) -> Any:
    """A context or an action. A text or a number of its own is a name, and not a number."""
    return value if isinstance(value, (list, dict)) else None if value is None else str(value)


def _id(action: Any) -> str:
    """The id of an action."""
    if isinstance(action, str):
        return tokens.nfc(action)
    return json.dumps(action, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
