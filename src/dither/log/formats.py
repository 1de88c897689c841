"""Formats of logs in one table, for Python and for the command line: what a reader takes, `dither evaluate` takes.

FORMATS[name].read(path, **options)        in Python
--format NAME --with OPTION=VALUE          on the command line; the options are those of the reader
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dither.log import reader, schema
from dither.log.foreign import from_columns, open_bandit
from dither.log.logged import Logged
from dither.log.vw_json import dsjson
from dither.log.vw_text import vw_text


@dataclass(frozen=True)
class Format:
    """A format of logs: its reader, and what the command line has words of its own for."""

    read: Callable[..., Logged]
    words: str
    columns: bool = False  # --arm, --propensity, --reward and --kind name columns
    arms: str | None = None  # the option that --arms, a number, is
    features: bool = False  # the option features=True reads them
    own: tuple[str, ...] = ()  # options that are no options of the command

    @property
    def options(self) -> dict[str, inspect.Parameter]:
        """The options of --with, by name."""
        known = inspect.signature(self.read).parameters
        given = ("arm", "propensity", "reward", "kind") if self.columns else ()
        found = {
            name: one for name, one in known.items() if one.kind is one.KEYWORD_ONLY and name not in (*self.own, *given)
        }
        if any(one.kind is one.VAR_KEYWORD for one in known.values()):
            taken = ("arm", "reward", "propensity", "K", *found)
            column = inspect.Parameter("column", inspect.Parameter.KEYWORD_ONLY, annotation=str)
            found |= {name: column for name in schema.COLUMNS if name not in taken}
        return found


FORMATS = {
    "dither": Format(
        reader.read,
        "a decision log, or a table whose column arm holds positions: streamed",
        True,
        "arms",
        own=("require",),
    ),
    "table": Format(from_columns, "any table whose column arm holds ids: in memory", True, "arms"),
    "obd": Format(open_bandit, "columns of the Open Bandit Dataset: in memory", arms="arms"),
    "dsjson": Format(dsjson, "Vowpal Wabbit's --dsjson: in memory", features=True),
    "dat": Format(vw_text, "Vowpal Wabbit's text with cb labels: in memory", arms="K", features=True),
}


def typed(name: str, text: str, annotation: Any) -> Any:
    """What is typed, as the type of an option has it."""
    known = getattr(annotation, "__args__", (annotation,))
    text = text.strip().strip("'\"")
    if bool in known:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"option {name} must be true or false, got {text!r}")
        return text.lower() == "true"
    if int in known and str not in known:
        try:
            return int(text)
        except ValueError:
            raise ValueError(f"option {name} must be a whole number, got {text!r}") from None
    lists = [one for one in known if getattr(one, "__origin__", None) is not None]
    if lists and ("," in text or str not in known):
        return [part.strip() for part in text.split(",")]
    return text.replace("leave-out", "leave out")
