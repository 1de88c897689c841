"""The settings of rewards, which a ledger keeps: whoever opens it again has the same, and may give no others."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from dither.base import errors
from dither.log import reward_rules


class Terms(NamedTuple):
    """What a ledger has settled. The parameters of `ledger.Ledger` say what each means."""

    rewards: str = "sum"
    horizon: timedelta | None = None
    default: float | None = None
    late: str = "kept"
    parts: tuple[str, ...] | None = None


def wanted(
    *, rewards: str | None, horizon: Any, default: float | None, late: str | None, parts: Iterable[str] | None
) -> dict[str, Any]:
    """What a user asks for, as a ledger keeps it: the horizon in seconds; None: whatever the ledger has.

    Raises ValueError for a setting that no ledger can have.
    """
    if rewards is not None:
        errors.among("rule for rewards", rewards, reward_rules.RULES)
    if late is not None:
        errors.among("rule for late rewards", late, reward_rules.LATE)
    return {
        "rewards": rewards,
        "horizon": _seconds(horizon),
        "default": None if default is None else reward_rules.finite(default, "as the default"),
        "late": late,
        "parts": None if parts is None else reward_rules.parts(parts),
    }


def settle(home: Any, settings: Mapping[str, Any]) -> Terms:
    """Take the settings that the ledger has, or give it its settings.

    Raises ValueError where it has others than those that are asked for, and where two of them do not go together.
    """
    from dither.log.database import keeping, lessons

    with home.reading() as connection:  # a role that may only read can open it
        stored = keeping.settings(connection).get("ledger")
    if stored is None:
        with home.writing() as connection:
            lessons.hold(connection)  # of several processes that open a new ledger, one gives it its settings
            stored = keeping.settings(connection).get("ledger")
            if stored is None:
                terms = _merged(settings)
                _consistent(terms)
                keeping.put(connection, "ledger", terms)
                return _read(terms)
    terms = _merged(stored)
    for name, value in settings.items():
        if value is not None and value != terms[name]:
            raise ValueError(f"the ledger in {home.where} has {name}={terms[name]!r}, not {value!r}")
    return _read(terms)


def _merged(settings: Mapping[str, Any]) -> dict[str, Any]:
    return Terms()._asdict() | {name: value for name, value in settings.items() if value is not None}


def _read(terms: dict[str, Any]) -> Terms:
    return Terms(**terms)._replace(
        horizon=None if terms["horizon"] is None else timedelta(seconds=terms["horizon"]),
        parts=None if terms["parts"] is None else tuple(terms["parts"]),
    )


def _consistent(terms: Mapping[str, Any]) -> None:
    if terms["default"] is not None and (terms["horizon"] is None or terms["late"] == "counts"):
        raise ValueError(
            "default= needs a horizon, after which it counts, and late='kept': a decision that has its default takes "
            "no other reward"
        )
    if terms["parts"] is not None and terms["rewards"] != "sum":
        raise ValueError(f"the parts of a reward are summed: parts= needs rewards='sum', not {terms['rewards']!r}")


def _seconds(horizon: Any) -> float | None:
    if horizon is None:
        return None
    seconds = horizon.total_seconds() if isinstance(horizon, timedelta) else horizon
    errors.positive("horizon", seconds, most=1e11)  # some 3,000 years, for times that there are
    return max(float(seconds), 1e-6)
