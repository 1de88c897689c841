"""The compiled step: used where it was built, and one switch demands it or turns it off."""

import importlib.util
import os
import re
import runpy
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

import dither
from dither.base import compiled

ROOT = Path(__file__).parents[2]


def anew(monkeypatch, switch, step):
    """`STEP` as an import would set it. step : the module that was built; an error: what its import raises"""

    def imported(name):
        assert name == "dither._step"
        if isinstance(step, Exception):
            raise step
        return step

    monkeypatch.setattr(importlib, "import_module", imported)
    if switch is None:
        monkeypatch.delenv("DITHER_COMPILED", raising=False)
    else:
        monkeypatch.setenv("DITHER_COMPILED", switch)
    names = runpy.run_path(compiled.__file__)
    return names["STEP"], names["arithmetic"]()


BUILT = types.SimpleNamespace(VERSION=compiled.VERSION, ARITHMETIC=7)
STALE = types.SimpleNamespace(VERSION=compiled.VERSION - 1, ARITHMETIC=7)
MISSING = ModuleNotFoundError("No module named 'dither._step'")


def test_the_step_is_used_where_it_was_built(monkeypatch):
    assert anew(monkeypatch, None, BUILT) == (BUILT, "compiled 7")
    assert anew(monkeypatch, "1", BUILT)[0] is BUILT
    assert anew(monkeypatch, "0", BUILT) == (None, "numpy")
    assert anew(monkeypatch, None, MISSING) == (None, "numpy")
    # seen red: an import that fails where nothing was built


def test_what_was_built_from_other_sources_is_not_used(monkeypatch):
    assert anew(monkeypatch, None, STALE) == (None, "numpy")
    with pytest.raises(ImportError, match=rf"version {compiled.VERSION - 1}, and this is {compiled.VERSION}\): .*pip"):
        anew(monkeypatch, "1", STALE)
    text = (ROOT / "src" / "_step" / "step.h").read_text("utf-8")
    assert re.search(r"#define STEP_VERSION (\d+)", text)[1] == str(compiled.VERSION)
    # seen red: no look at the version


def test_it_says_whether_it_is_in_use(monkeypatch):
    monkeypatch.delenv("DITHER_COMPILED", raising=False)
    monkeypatch.setattr(compiled, "STEP", BUILT)
    assert compiled.in_words() == "the compiled step is in use (compiled 7)"
    monkeypatch.setattr(compiled, "STEP", None)
    assert compiled.in_words() == "the compiled step was not built here, and NumPy does all"
    monkeypatch.setenv("DITHER_COMPILED", "0")
    assert compiled.in_words() == "the compiled step is turned off by DITHER_COMPILED=0, and NumPy does all"
    assert dither.compiled is compiled


def test_an_older_ledger_has_another_name_for_the_first_arithmetic(monkeypatch):
    monkeypatch.setattr(compiled, "STEP", types.SimpleNamespace(ARITHMETIC=1))
    assert [compiled.at_hand(name) for name in ("numpy", "compiled 1", "compiled 1 portable")] == [True] * 3
    assert not compiled.at_hand("compiled 2 portable")
    monkeypatch.setattr(compiled, "STEP", types.SimpleNamespace(ARITHMETIC=2))
    assert not compiled.at_hand("compiled 1 portable")
    monkeypatch.setattr(compiled, "STEP", None)
    assert not compiled.at_hand("compiled 1")
    # seen red: no look at the older name; the older name of any arithmetic


def test_who_demands_the_step_is_told_how_to_build_it(monkeypatch):
    with pytest.raises(ImportError, match=r"DITHER_COMPILED=1 demands .*No module.*pip install \. in a checkout"):
        anew(monkeypatch, "1", MISSING)


@pytest.mark.parametrize("switch", ["", "2", "off", "true"])
def test_the_switch_has_two_values(monkeypatch, switch):
    with pytest.raises(ValueError, match=rf"DITHER_COMPILED.* must be one of '0', '1'; got '{switch}'"):
        anew(monkeypatch, switch, BUILT)


if importlib.util.find_spec("setuptools"):  # else pip brings it where it builds

    def test_a_build_that_fails_is_a_notice(tmp_path):
        shutil.copy(ROOT / "setup.py", tmp_path)
        shutil.copytree(ROOT / "src" / "_step", tmp_path / "src" / "_step")
        command = [sys.executable, "setup.py", "build_ext", "--build-lib", "built"]
        environment = {"CC": "/bin/false", "PATH": os.environ["PATH"]}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0
        assert 'building extension "dither._step" failed' in done.stdout + done.stderr
        assert not list(tmp_path.rglob("_step*.so"))
        # seen red: an extension that is not optional
