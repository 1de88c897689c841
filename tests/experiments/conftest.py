import sys

import pytest

from dither import cli


@pytest.fixture
def dither(monkeypatch, capsys):
    """Runs the command line in this process -> (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["dither", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit:
            cli.main()
        return exit.value.code or 0, *capsys.readouterr()

    return run
