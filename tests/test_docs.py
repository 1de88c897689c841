"""What the documents show runs as it stands, and names what exists."""

import re
from pathlib import Path

import pytest

import dither
from dither.experiments import figures

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_python_blocks_run_one_after_another(page):
    names = {}
    for code in blocks(page, "python"):
        exec(compile(code, page.name, "exec"), names)  # seen red: a setting that does not exist


def test_commands_name_figures_and_algorithms_that_exist():
    lines = [
        line.partition("#")[0].split()
        for page in PAGES
        for language in ("sh", "text")
        for block in blocks(page, language)
        for line in block.splitlines()
        if re.match(r"(\.venv/bin/)?dither (reproduce|compare) ", line)
    ]
    assert len(lines) >= 4
    for _, command, *words in lines:
        names = [word for word in words if not word.startswith("-")]
        if command == "reproduce":
            figures.find(names[0])
        else:
            assert names[0].partition(":")[0] in dither.ALGORITHMS


def test_links_between_the_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_changelog_has_this_version():
    assert f"## {dither.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"version: {dither.__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
