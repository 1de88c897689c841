"""Whether two bandits have the same settings: by what a file says of each, but for slots, which grow."""

import json
from collections.abc import Mapping
from typing import Any

from dither.bandit import saving
from dither.bandit.bandit import Bandit

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


def _fixed(described: Any) -> Any:
    """A setting without the number of slots, which grows. Fields that older files lack have their defaults."""
    if not isinstance(described, dict):
        return described
    whole = saving.defaults(described.get("class")) | described
    return {k: _fixed(v) for k, v in whole.items() if k != "slots"}
