"""The command `dither`: its commands, and errors as one line on stderr with exit code 2."""

import sys

from dither.base import errors, parts

EXTRA = ("typer", "rich", "polars", "matplotlib", "jinja2", "joblib", "sklearn", "threadpoolctl")  # of "experiments"


def main() -> None:
    """Run the command line."""
    try:
        from dither.cli.app import build

        build(sys.argv[1] if len(sys.argv) > 1 else None)()
    except Exception as error:
        sys.stderr.write(f"dither: {_line(error)}\n")
        sys.exit(2)
    except KeyboardInterrupt:  # a command that has begun says what is kept; this one had not
        sys.stderr.write("interrupted\n")
        sys.exit(130)


def _line(error: Exception) -> str:
    """What to tell the user; a mistake in this program is raised again, and not one in a file of the user's."""
    place, told = parts.place(error), str(error)
    meant = isinstance(error, (LookupError, ValueError, TypeError, ImportError, OSError))
    named = not meant or isinstance(error, (KeyError, IndexError))
    if named:
        if not place:
            raise error
        told = f"{type(error).__name__}: {told}"
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA:
            raise error
        told = str(errors.missing_extra(package, extra="experiments"))
    where = [*getattr(error, "__notes__", ()), *([place] if place and place not in told else [])]
    return " ".join(told.split()) + f" ({', '.join(where)})" * bool(where)
