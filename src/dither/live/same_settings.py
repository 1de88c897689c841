"""Whether two bandits have the same settings: by what a file says of each, but for slots, which grow."""

import json
from collections.abc import Mapping
from typing import Any

from dither.bandit import saving
from dither.bandit.bandit import Bandit
from dither.features import Features

_SAME = ("model", "policy", "features", "dim", "floor", "monte_carlo", "baseline")  # in headers of two equal bandits


def differing(one: Bandit, other: Bandit) -> list[str]:
    """The settings in which two bandits are not the same."""
    return names(header(one), header(other))


def header(bandit: Bandit) -> dict[str, Any]:
    """What a file says of a bandit."""
    return read(saving.from_bytes(bandit.to_bytes()).header)


def read(header: Mapping[str, Any]) -> dict[str, Any]:
    """A header as it is read from a file."""
    return dict(json.loads(json.dumps(header)))


def names(header: Mapping[str, Any], first: Mapping[str, Any]) -> list[str]:
    """The settings in which a header is another one than that of a ledger."""
    return [name for name in _SAME if _fixed(header.get(name)) != _fixed(first.get(name))]


def words(name: str, header: Mapping[str, Any], first: Mapping[str, Any]) -> str:
    """How a setting differs, by those of its fields alone that do."""
    there, here = first.get(name), header.get(name)
    if name == "features" and there and here:
        return f"its Features differ ({Features.of_description(there).difference(Features.of_description(here))})"
    there, here = _apart(there, here)
    return f"{name} is {there!r} there and {here!r} in what was passed"


def _apart(one: Any, other: Any) -> tuple[Any, Any]:
    """Two described settings, without the fields that are the same, if they are of one class."""
    if not (isinstance(one, dict) and isinstance(other, dict) and one.get("class") == other.get("class")):
        return one, other
    one, other = ({**saving.defaults(each.get("class")), **each} for each in (one, other))
    fields = [name for name in {**one, **other} if _fixed(one.get(name)) != _fixed(other.get(name)) and name != "slots"]
    each = {name: _apart(one.get(name), other.get(name)) for name in fields}
    return {name: a for name, (a, _) in each.items()}, {name: b for name, (_, b) in each.items()}


def _fixed(described: Any) -> Any:
    """A setting without the number of slots, which grows. Fields that older files lack have their defaults."""
    if not isinstance(described, dict):
        return described
    whole = saving.defaults(described.get("class")) | described
    return {k: _fixed(v) for k, v in whole.items() if k != "slots"}
