"""Fields that are spelt a little otherwise than they were declared.

Fields that nobody declared are ignored, since records come as users have them. But where a record lacks a field and has
one of nearly the same name, it is mostly a slip of the pen: it is told once, and counted each time.
"""

import difflib
import functools

NEAR = 0.75  # of difflib: `prize` is near to `price` (0.8), `county` to `country` (0.92)
_LOOKED_AT = 100  # fields of a record that are compared
_KEPT = 4096  # sets of fields whose answer is remembered, as most records have the same ones


class MisspeltWarning(UserWarning):
    """A record lacks a field, and has one of nearly the same name that was not declared."""


@functools.lru_cache(maxsize=_KEPT)
def nearly(keys: tuple[object, ...], names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """(field, what the record has in its place) of each field that the record lacks.

    keys : the fields of the record; names : the declared ones
    """
    others = {_letters(key): key for key in keys[:_LOOKED_AT] if isinstance(key, str) and key not in names}
    slips = []
    for name in names:
        if name not in keys and (near := difflib.get_close_matches(_letters(name), others, n=1, cutoff=NEAR)):
            slips.append((name, others[near[0]]))
    return tuple(slips)


def _letters(name: str) -> str:
    """A name without what is easily typed otherwise: `ageHours`, `age-hours` and `age_hours` are one."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())
