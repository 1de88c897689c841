"""What the documents show runs as it stands, and names what exists."""

import importlib
import itertools
import re
from pathlib import Path

import pytest

import dither
from dither import links
from dither.algorithms import Spec
from dither.experiments import environments, figures
from dither.models import glm

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_python_blocks_run_one_after_another(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for what they write
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
        names = list(itertools.takewhile(lambda word: not word.startswith("-"), words))
        if command == "reproduce":
            figures.find(names[0])
        else:
            for name in names:
                Spec.parse(name).configure(5, disjoint=None, facts={})
            if "--env" in words:
                environments.describe(words[words.index("--env") + 1])


def heading(text):
    """The anchor that a heading has."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def test_links_between_the_pages_lead_somewhere():
    for page in PAGES:
        for target, _, anchor in re.findall(r"\]\(([^)#:]+)(#([^)]+))?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
            if anchor:
                found = re.findall(r"^#+ (.*)$", (page.parent / target).read_text(encoding="utf-8"), flags=re.MULTILINE)
                assert anchor in [heading(text) for text in found], f"{page.name}: {target}#{anchor}"


def test_what_there_is_is_named():
    readme, guide = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/glm.md"))
    words = set(re.findall(r"[\w-]+", readme))
    assert set(dither.ALGORITHMS) | set(figures.FIGURES) <= words
    assert set(dither.envs.__all__) - {"Environment", "Kappas", "Replayed", "kappas"} <= words
    of_glm = {name for name, algorithm in dither.ALGORITHMS.items() if algorithm.model is glm.GLM}
    assert of_glm <= set(re.findall(r"[\w-]+", guide))
    assert {f'`"{name}"`' for name in (*links.LINKS, *glm.SOLVERS)} <= set(re.findall(r'`"\w+"`', guide))


def test_figures_a_page_names_in_full_are_all_there():
    listed = re.findall(r"^\| experiments \| (.*) \|$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"`([^`]+)`", listed[0])) == set(figures.FIGURES)


def test_the_reference_and_the_makefile_name_what_exists():
    reference = (ROOT / "docs" / "reference.rst").read_text(encoding="utf-8")
    for module, members in re.findall(r"automodule:: (\S+)(?:\n   :members:(.*))?", reference):
        found = importlib.import_module(module)
        for name in filter(None, (part.strip() for part in members.split(","))):
            assert hasattr(found, name), f"{module}.{name}"
    for name in re.findall(r"auto(?:class|function):: (\S+)", reference):
        module, _, inner = name.rpartition(".")
        assert hasattr(importlib.import_module(module), inner), name
    scripts = re.findall(r"benchmarks/\w+\.py", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert scripts
    assert all((ROOT / script).exists() for script in scripts)


def test_the_changelog_has_this_version():
    assert f"## {dither.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"version: {dither.__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
