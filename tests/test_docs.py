"""What the documents show runs as it stands, and names what exists."""

import importlib
import itertools
import re
import tomllib
from pathlib import Path

import pytest

import dither
from dither import links
from dither.algorithms import Spec
from dither.experiments import environments, figures
from dither.models.glm import glm

ROOT = Path(__file__).parent.parent
FILES = [path for folder in ("src", "docs") for path in (ROOT / folder).rglob("*.*")]
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


SOURCES = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "src").rglob("*.jinja"))]
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def resolved(name):
    """Whether a dotted name leads somewhere: a module, what is in it, or a field of a class."""
    found = None
    for part in name.split("."):
        if found is None or not hasattr(found, part):
            if part in getattr(found, "__annotations__", {}):
                return True
            try:
                found = importlib.import_module(part if found is None else f"{found.__name__}.{part}")
            except (ImportError, AttributeError):
                return False
        else:
            found = getattr(found, part)
    return True


@pytest.mark.parametrize("page", [*PAGES, *SOURCES], ids=lambda page: str(page.relative_to(ROOT)))
def test_names_files_and_cures_exist(page):
    text = page.read_text(encoding="utf-8")
    for name in set(re.findall(r"(?<![\w/.-])dither(?:\.[A-Za-z_]\w*)+", text)):
        assert resolved(name.removesuffix(".py")), name
    for path in set(re.findall(r"`((?:[\w-]+/)*\w+\.(?:py|md|rst))`", text)):
        assert (ROOT / path).exists() or any(found.as_posix().endswith(f"/{path}") for found in FILES), path
    for what in re.findall(r"pip install (?:-e )?'?([^' `\n]+)", text):
        assert what.startswith("."), f"no index has {what}"
    for extras in re.findall(r"(?:dither|'\.)\[([a-z,]+)\]", text):
        assert set(extras.split(",")) <= EXTRAS, extras
    # seen red: dither.ope.difference; dither.ope.choose_c; `propensity.py`; pip install 'dither[experiments]'


def test_the_test_of_names_finds_what_is_wrong():
    assert resolved("dither.ope.ips")
    assert resolved("dither.envs.base.Environment.fill")
    assert resolved("dither.Decision.arm")  # a field without a default
    assert not resolved("dither.ope.difference")
    assert not resolved("dither.Bandit.chose")
    assert not resolved("dither.nothing")


def test_the_changelog_has_this_version():
    assert f"## {dither.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"version: {dither.__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
