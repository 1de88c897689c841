"""The command `dither`: its commands, and errors as one line on stderr with exit code 2."""

import sys

from dither import errors, parts

EXTRA = ("typer", "rich", "polars", "matplotlib", "jinja2", "joblib", "sklearn", "threadpoolctl")  # of "experiments"


def main() -> None:
    """Run the command line."""
    try:
        from dither.cli.app import build

        build(sys.argv[1] if len(sys.argv) > 1 else None)()
    except (LookupError, ValueError, TypeError, ImportError, OSError) as error:
        sys.stderr.write(f"dither: {_line(error)}\n")
        sys.exit(2)


def _line(error: Exception) -> str:
    """What to tell the user; what was not meant for one is raised again."""
    if isinstance(error, (KeyError, IndexError)):  # a mistake in the program
        raise error
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA:
            raise error
        error = errors.missing_extra(package, extra="experiments")
    where = parts.place(error)
    return " ".join(str(error).split()) + f" ({where})" * (where not in str(error))
