"""The page on the researcher's bench, as a reader follows it: its files are written, its commands run as they stand."""

import re
import shlex
from pathlib import Path

import pytest

from dither.base import parts

PAGE = Path(__file__).parents[2] / "docs" / "bench.md"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files of the page."""
    monkeypatch.setattr(parts, "_LOADED", {})
    monkeypatch.chdir(tmp_path)
    for name, code in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        (tmp_path / name).write_text(code)
    return tmp_path


def commands():
    """The commands of the page, with fewer rounds and runs."""
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    quick = {"--rounds": "60", "--runs": "3"}
    for line in block.splitlines():
        words = shlex.split(line)[1:]
        yield [quick.get(before, word) for before, word in zip(["", *words], words, strict=False)]


def test_the_commands_of_the_page(dither, folder):
    said = []
    for words in commands():
        code, out, err = dither(*words)
        assert code == 0, (words, err)
        said.append(" ".join(out.split()))
    plain, swept, clicks, report = said
    assert "world.py:Drift, dim=4, speed=0.01, T=60, round 60" in plain
    assert all(name in plain for name in ("mine.py:BGE:C=0.1", "Greedy"))
    assert "mine.py:BGE:C=0.3" in swept
    assert "mine.py:clicks" in clicks
    assert "mine.py:clicks" in (folder / "clicks" / "compare-table.tex").read_text()
    assert "wrote report.html" in report
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "mine.py:BGE:C=0.1" in page
